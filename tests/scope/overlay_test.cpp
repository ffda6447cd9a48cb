// Rules C8, C11 and C18, as far as claims go: what happens in a window stays there until it ends.
#include "refrain/scope/overlay.hpp"

#include <doctest/doctest.h>

#include <optional>
#include <string>

#include "scope/scopes_fixture.hpp"

namespace refrain {
namespace {

using namespace test;

/// A stream in a window, and another one that knows nothing of it.
class WindowScopes : public Scopes {
 public:
  WindowScopes() { begin(); }
  ~WindowScopes() { end(); }

  void begin() { stream.open_window(&overlay.emplace(table, StreamId(7))); }
  /// The window ends without a claim, as `abort` does.
  void end() {
    stream.close_window();
    overlay.reset();
  }
  /// The window refuses to seal, and then ends.
  void refuse(std::string message) {
    REQUIRE(overlay.has_value());
    overlay->refuse(Error(ErrorKind::window_doomed, std::move(message)), at_line(20));
    end();
  }
  /// Makes `binding` carry a failure that the whole program sees.
  void fail_outside(const BufferBinding& binding, std::string message) {
    over(outside, {binding}, "outside").execute(fails(std::move(message)));
  }
  [[nodiscard]] FoundFailure meets(const BufferBinding& binding) {
    return overlay->read_failure(Bindings{binding});
  }

  std::optional<Overlay> overlay;
  ScopeServer outside{table, StreamId(8)};
};

}  // namespace

TEST_CASE_FIXTURE(WindowScopes,
                  "C8: a failure in a window is seen by its own work and nobody else") {
  const BufferId x = buffer("x");
  const BufferId y = buffer("y");
  const BufferId z = buffer("z");
  CHECK(over(stream, {bytes(x, 0, 16)}).execute(fails("inside")).failed());
  CHECK(clean(bytes(x, 0, 16)));
  CHECK_FALSE(table.report(Bindings{bytes(x, 0, 16)}).has_value());
  CHECK(launching(outside, {bytes(x, 0, 16)}, {bytes(z, 0, 16)})
            .execute(succeeds)
            .executed_cleanly());

  const auto outcome = launching(stream, {bytes(x, 0, 16)}, {bytes(y, 0, 16)}).execute(succeeds);
  REQUIRE(outcome.skipped());
  CHECK(clean(bytes(y, 0, 16)));
  const auto met = meets(bytes(y, 0, 16));
  REQUIRE(static_cast<bool>(met));
  CHECK(met.error().message() == "inside");
  CHECK(met.id() == outcome.failure());
}

TEST_CASE_FIXTURE(WindowScopes, "C8: a clean write in a window heals there and nowhere else") {
  const BufferId x = buffer("x");
  const BufferId y = buffer("y");
  fail_outside(bytes(x, 0, 16), "real");
  CHECK(over(stream, {bytes(x, 4, 8)}).execute(succeeds).executed_cleanly());
  CHECK(carried(bytes(x, 4, 8)).message() == "real");
  CHECK(
      launching(stream, {bytes(x, 4, 8)}, {bytes(y, 0, 16)}).execute(succeeds).executed_cleanly());
  CHECK(launching(stream, {bytes(x, 4, 9)}, {bytes(y, 0, 16)}).execute(succeeds).skipped());
}

TEST_CASE_FIXTURE(WindowScopes, "C8: reads look at the overlay first and then at the real claims") {
  const BufferId x = buffer("x");
  fail_outside(bytes(x, 8, 12), "real");
  over(stream, {bytes(x, 4, 6)}).execute(fails("inside"));
  over(stream, {bytes(x, 10, 12)}).execute(succeeds);
  const auto all = meets(bytes(x, 0, 16));
  REQUIRE(static_cast<bool>(all));
  CHECK(all.error().message() == "inside");
  CHECK(all.needed() == bytes(x, 4, 6));
  const auto rest = meets(bytes(x, 6, 16));
  REQUIRE(static_cast<bool>(rest));
  CHECK(rest.error().message() == "real");
  CHECK(rest.needed() == bytes(x, 8, 10));
  CHECK_FALSE(static_cast<bool>(meets(bytes(x, 10, 16))));
  CHECK_FALSE(static_cast<bool>(meets(bytes(x, 6, 8))));
}

TEST_CASE_FIXTURE(WindowScopes, "C8: an unwritten byte is no failure in a window") {
  const BufferId x = buffer("x", 16, true);
  const BufferId y = buffer("y");
  CHECK(
      launching(stream, {bytes(x, 0, 16)}, {bytes(y, 0, 16)}).execute(succeeds).executed_cleanly());
  CHECK(carried(bytes(x, 0, 16)).kind() == ErrorKind::unwritten);
  CHECK(launching(outside, {bytes(x, 0, 16)}, {bytes(y, 0, 16)}).execute(succeeds).skipped());
}

TEST_CASE_FIXTURE(WindowScopes,
                  "C8: a mark is no failure in a window, but what lies beneath it is") {
  const BufferId x = buffer("x");
  const BufferId y = buffer("y");
  fail_outside(bytes(x, 8, 16), "beneath");
  table.mark(Bindings{bytes(x, 0, 16)}, broken("mark"), StreamId(9), at_line(21));
  CHECK(
      launching(stream, {bytes(x, 0, 8)}, {bytes(y, 0, 16)}).execute(succeeds).executed_cleanly());
  const auto met = meets(bytes(x, 0, 16));
  REQUIRE(static_cast<bool>(met));
  CHECK(met.error().message() == "beneath");
}

TEST_CASE_FIXTURE(WindowScopes, "C8: O6, E1 and E2 act on the overlay inside a body") {
  const BufferId y = buffer("y");
  const BufferId z = buffer("z");
  for (const bool good : {true, false}) {
    over(stream, {bytes(y, 4, 8)}).execute([&](ScopeServer& inside) -> Result<void> {
      CHECK(overlay->inside());
      CHECK(clean(bytes(y, 0, 16)));
      const auto met = meets(bytes(y, 0, 16));
      REQUIRE(static_cast<bool>(met));
      CHECK(met.error().kind() == ErrorKind::torn_down);
      CHECK(met.needed() == bytes(y, 4, 8));
      CHECK(launching(inside, {bytes(y, 7, 9)}, {bytes(z, 0, 1)}).execute(succeeds).skipped());
      if (!good) return broken("inside");
      return {};
    });
    CHECK_FALSE(overlay->inside());
    CHECK(static_cast<bool>(meets(bytes(y, 0, 16))) != good);
  }
}

TEST_CASE_FIXTURE(WindowScopes, "C8: E4 in a window leaves the exception in the overlay") {
  const BufferId y = buffer("y");
  CHECK_THROWS_AS(
      over(stream, {bytes(y, 0, 16)}).execute([](ScopeServer&) -> Result<void> { throw 1; }), int);
  CHECK(clean(bytes(y, 0, 16)));
  const auto met = meets(bytes(y, 0, 16));
  REQUIRE(static_cast<bool>(met));
  CHECK(met.error().kind() == ErrorKind::exception);
}

TEST_CASE_FIXTURE(WindowScopes,
                  "C8: E9 in a window: the outer scope answers for all but inner failures") {
  const BufferId x = buffer("x");
  const BufferId y = buffer("y");
  fail_outside(bytes(x, 0, 16), "root");
  const auto message = [&](std::uint64_t at) {
    const auto met = meets(bytes(y, at, at + 1));
    return met ? met.error().message() : std::string();
  };
  for (const bool good : {true, false}) {
    over(stream, {bytes(y, 0, 12)}, "outer").execute([&](ScopeServer& inside) -> Result<void> {
      CHECK(over(inside, {bytes(y, 0, 6)}).execute(fails("inner")).failed());
      CHECK(over(inside, {bytes(y, 4, 8)}).execute(succeeds).executed_cleanly());
      CHECK(launching(inside, {bytes(x, 0, 1)}, {bytes(y, 10, 14)}).execute(succeeds).skipped());
      CHECK(over(inside, {bytes(y, 14, 16)}).execute(succeeds).executed_cleanly());
      if (!good) return broken("outer");
      return {};
    });
    const std::string outer = good ? "" : "outer";
    CHECK(message(0) == "inner");
    CHECK(message(4) == outer);
    CHECK(message(8) == outer);
    CHECK(message(10) == "root");
    CHECK(message(13) == "root");
    CHECK(message(15).empty());
    CHECK(clean(bytes(y, 0, 16)));
    over(stream, {bytes(y, 0, 16)}).execute(succeeds);
  }
}

TEST_CASE_FIXTURE(WindowScopes, "C8: E9 in a window: a skip on what the outer scope writes stays") {
  const BufferId y = buffer("y");
  over(stream, {bytes(y, 0, 16)}, "outer").execute([&](ScopeServer& inside) -> Result<void> {
    CHECK(launching(inside, {bytes(y, 0, 4)}, {bytes(y, 8, 12)}).execute(succeeds).skipped());
    return {};
  });
  CHECK_FALSE(static_cast<bool>(meets(bytes(y, 0, 8))));
  CHECK(static_cast<bool>(meets(bytes(y, 8, 12))));
}

TEST_CASE_FIXTURE(WindowScopes,
                  "C8: O10 in a window: a dropped scope leaves its claim in the overlay") {
  const BufferId y = buffer("y");
  { const Scope dropped = over(stream, {bytes(y, 0, 16)}); }
  CHECK(clean(bytes(y, 0, 16)));
  const auto met = meets(bytes(y, 0, 16));
  REQUIRE(static_cast<bool>(met));
  CHECK(met.error().kind() == ErrorKind::torn_down);
}

TEST_CASE_FIXTURE(WindowScopes,
                  "C8: scopes of a window that end in another order settle their own bytes") {
  const BufferId a = buffer("a");
  const BufferId b = buffer("b");
  auto first = kept([&] { return over(stream, {bytes(a, 0, 16)}); });
  auto second = kept([&] { return over(stream, {bytes(b, 0, 16)}); });
  CHECK(std::move(*first).execute(succeeds).executed_cleanly());
  first.reset();
  CHECK(overlay->inside());
  CHECK(over(stream, {bytes(a, 0, 8)}).execute(succeeds).executed_cleanly());
  CHECK(std::move(*second).execute(fails("second")).failed());
  second.reset();
  CHECK_FALSE(overlay->inside());
  CHECK_FALSE(static_cast<bool>(meets(bytes(a, 0, 16))));
  CHECK(static_cast<bool>(meets(bytes(b, 0, 16))));
}

TEST_CASE_FIXTURE(WindowScopes, "C11: an aborted window leaves all claims as they were before it") {
  const BufferId x = buffer("x");
  const BufferId y = buffer("y", 16, true);
  const BufferId z = buffer("z");
  fail_outside(bytes(x, 0, 8), "real");
  over(stream, {bytes(x, 0, 16)}).execute(succeeds);
  over(stream, {bytes(y, 0, 16)}).execute(succeeds);
  over(stream, {bytes(z, 0, 16)}).execute(fails("inside"));
  end();
  CHECK(carried(bytes(x, 0, 8)).message() == "real");
  CHECK(clean(bytes(x, 8, 16)));
  CHECK(carried(bytes(y, 0, 16)).kind() == ErrorKind::unwritten);
  CHECK(clean(bytes(z, 0, 16)));
  CHECK(table.live_failures() == 2);
}

TEST_CASE_FIXTURE(WindowScopes,
                  "C11: a refused window claims recorded work with the window's error") {
  const BufferId x = buffer("x");
  const BufferId y = buffer("y");
  fail_outside(bytes(y, 0, 4), "replaced");
  CHECK(
      launching(stream, {bytes(x, 0, 16)}, {bytes(y, 0, 8)}).execute(succeeds).executed_cleanly());
  refuse("The window cannot seal.");
  CHECK(carried(bytes(y, 0, 8)).kind() == ErrorKind::window_doomed);
  CHECK(carried(bytes(y, 0, 8)).message() == "The window cannot seal.");
  CHECK(clean(bytes(y, 8, 16)));
  CHECK(clean(bytes(x, 0, 16)));
  CHECK(table.live_failures() == 1);
}

TEST_CASE_FIXTURE(WindowScopes,
                  "C11: a refused window claims failed and skipped work with its own error") {
  const BufferId x = buffer("x");
  const BufferId y = buffer("y");
  const BufferId z = buffer("z");
  fail_outside(bytes(x, 0, 16), "root");
  over(stream, {bytes(y, 0, 4)}).execute(fails("failed inside"));
  CHECK(launching(stream, {bytes(x, 0, 16)}, {bytes(y, 4, 8)}).execute(succeeds).skipped());
  CHECK(launching(stream, {bytes(y, 0, 4)}, {bytes(z, 0, 16)}).execute(succeeds).skipped());
  over(stream, {bytes(y, 8, 12)}).execute(succeeds);
  refuse("refused");
  CHECK(carried(bytes(y, 0, 4)).message() == "failed inside");
  CHECK(carried(bytes(y, 4, 8)).message() == "root");
  CHECK(carried(bytes(y, 8, 12)).message() == "refused");
  CHECK(clean(bytes(y, 12, 16)));
  CHECK(carried(bytes(z, 0, 16)).message() == "failed inside");
}

TEST_CASE_FIXTURE(WindowScopes, "C11: state, read before it is written, keeps what it carried") {
  const BufferId state = buffer("state");
  const BufferId old = buffer("old", 16, true);
  const BufferId y = buffer("y");
  // In place, and in two steps, and only a part of what is written.
  CHECK(launching(stream, {bytes(state, 0, 8)}, {bytes(state, 0, 8)})
            .execute(succeeds)
            .executed_cleanly());
  CHECK(launching(stream, {bytes(old, 0, 4)}, {bytes(y, 0, 16)})
            .execute(succeeds)
            .executed_cleanly());
  CHECK(over(stream, {bytes(old, 0, 8)}).execute(succeeds).executed_cleanly());
  // Read after it was written: that is no state.
  CHECK(
      launching(stream, {bytes(y, 0, 16)}, {bytes(y, 0, 16)}).execute(succeeds).executed_cleanly());
  refuse("refused");
  CHECK(clean(bytes(state, 0, 16)));
  CHECK(carried(bytes(old, 0, 4)).kind() == ErrorKind::unwritten);
  CHECK(carried(bytes(old, 4, 8)).message() == "refused");
  CHECK(carried(bytes(old, 8, 16)).kind() == ErrorKind::unwritten);
  CHECK(carried(bytes(y, 0, 16)).message() == "refused");
}

TEST_CASE_FIXTURE(WindowScopes,
                  "C11: a failed in-place step on state claims nothing, since nothing ran") {
  const BufferId state = buffer("state");
  CHECK(launching(stream, {bytes(state, 0, 16)}, {bytes(state, 0, 16)})
            .execute(fails("inside"))
            .failed());
  refuse("refused");
  CHECK(clean(bytes(state, 0, 16)));
  CHECK(table.live_failures() == 0);
}

TEST_CASE_FIXTURE(WindowScopes, "C11: a refused window that wrote nothing claims nothing") {
  refuse("refused");
  CHECK(table.live_failures() == 0);
}

TEST_CASE_FIXTURE(WindowScopes,
                  "C11: buffers that went before the refusal are not claimed, nor their heirs") {
  const BufferId y = buffer("y");
  over(stream, {bytes(y, 0, 16)}).execute(succeeds);
  table.remove(y);
  const BufferId fresh = buffer("fresh");
  REQUIRE(fresh.slot == y.slot);
  refuse("refused");
  CHECK(clean(bytes(fresh, 0, 16)));
}

TEST_CASE_FIXTURE(WindowScopes, "C11: what a refused window claims is a failure like any other") {
  const BufferId y = buffer("y");
  const BufferId z = buffer("z");
  CHECK(over(stream, {bytes(y, 0, 16)}).execute(fails("inside")).failed());
  refuse("refused");
  // A launch skips on it, and a scope that missed it at its opening is bad all the same (E10).
  CHECK(launching(outside, {bytes(y, 0, 16)}, {bytes(z, 0, 8)}).execute(succeeds).skipped());
  const Bindings reads{bytes(y, 0, 4)};
  Scope::over(outside, intern_kernel_name("late"), outside.writes(Bindings{bytes(z, 8, 16)}),
              at_line(23), ReplayTerms{reads})
      .execute(succeeds);
  CHECK(carried(bytes(z, 0, 8)).message() == "inside");
  CHECK(carried(bytes(z, 8, 16)).message() == "inside");
}

TEST_CASE_FIXTURE(Scopes, "C18: a mark is met by every reader, over whatever lies beneath") {
  const BufferId y = buffer("y");
  const BufferId z = buffer("z");
  fail(bytes(y, 4, 8), "beneath");
  const FailureId mark =
      table.mark(Bindings{bytes(y, 0, 12)}, Error(ErrorKind::not_replayed, "not replayed"),
                 StreamId(7), at_line(22));
  for (const BufferBinding& part : {bytes(y, 0, 4), bytes(y, 4, 8), bytes(y, 8, 12)}) {
    CHECK(carried(part).message() == "not replayed");
    CHECK(carried(part).failure() == mark);
  }
  CHECK(clean(bytes(y, 12, 16)));
  const auto outcome = launching(stream, {bytes(y, 4, 8)}, {bytes(z, 0, 16)}).execute(succeeds);
  REQUIRE(outcome.skipped());
  CHECK(outcome.failure() == mark);
  const auto report = table.report(Bindings{bytes(y, 4, 8)});
  REQUIRE(report.has_value());
  CHECK(report->message().find("not replayed") != std::string::npos);
}

TEST_CASE_FIXTURE(Scopes, "C18: the recording's own replay looks beneath its mark") {
  const BufferId y = buffer("y");
  const FailureId beneath = fail(bytes(y, 4, 8), "beneath");
  const FailureId mark = table.mark(Bindings{bytes(y, 0, 12)}, broken("mine"), StreamId(7), {});
  const auto read = [&](BufferBinding binding, FailureId looks_beneath) {
    return table.read_failure(stream.show(), Bindings{binding}, looks_beneath);
  };
  CHECK_FALSE(static_cast<bool>(read(bytes(y, 0, 4), mark)));
  const auto met = read(bytes(y, 0, 12), mark);
  REQUIRE(static_cast<bool>(met));
  CHECK(met.id() == beneath);
  CHECK(met.needed() == bytes(y, 4, 8));

  // Another graph's mark, laid later, is met by both.
  const FailureId other = table.mark(Bindings{bytes(y, 0, 2)}, broken("other"), StreamId(7), {});
  const auto theirs = read(bytes(y, 0, 4), mark);
  REQUIRE(static_cast<bool>(theirs));
  CHECK(theirs.id() == other);
  CHECK_FALSE(static_cast<bool>(read(bytes(y, 2, 4), mark)));
  CHECK_FALSE(static_cast<bool>(read(bytes(y, 0, 2), other)));
}

TEST_CASE_FIXTURE(Scopes, "C18: a clean write takes away both the mark and what lay beneath") {
  const BufferId y = buffer("y");
  fail(bytes(y, 4, 8), "beneath");
  table.mark(Bindings{bytes(y, 0, 16)}, broken("mark"), StreamId(7), {});
  CHECK(over(stream, {bytes(y, 0, 6)}).execute(succeeds).executed_cleanly());
  CHECK(clean(bytes(y, 0, 6)));
  CHECK(carried(bytes(y, 6, 8)).message() == "mark");
  CHECK(over(stream, {bytes(y, 6, 16)}).execute(succeeds).executed_cleanly());
  CHECK(table.live_failures() == 0);
}

TEST_CASE_FIXTURE(Scopes, "C18: a mark on nothing is gone, and a mark goes with its buffers") {
  const BufferId y = buffer("y");
  CHECK(static_cast<bool>(table.mark(Bindings{}, broken("mark"), StreamId(7), {})));
  CHECK(table.live_failures() == 0);
  fail(bytes(y, 0, 4), "beneath");
  table.mark(Bindings{bytes(y, 0, 8), bytes(y, 4, 12)}, broken("mark"), StreamId(7), {});
  table.mark(Bindings{bytes(y, 2, 6)}, broken("another"), StreamId(7), {});
  CHECK(table.live_failures() == 3);
  table.remove(y);
  CHECK(table.live_failures() == 0);
}

TEST_CASE_FIXTURE(Scopes,
                  "C18: a mark laid while a scope is open goes with that scope's clean write") {
  const BufferId y = buffer("y");
  CHECK(over(stream, {bytes(y, 0, 8)})
            .execute([&](ScopeServer&) -> Result<void> {
              CHECK(carried(bytes(y, 0, 8)).kind() == ErrorKind::torn_down);
              table.mark(Bindings{bytes(y, 4, 12)}, broken("mark"), StreamId(8), {});
              return {};
            })
            .executed_cleanly());
  CHECK(clean(bytes(y, 0, 8)));
  CHECK(carried(bytes(y, 8, 12)).message() == "mark");
}

}  // namespace refrain
