// Rules E1 to E8: however a body ends, what it was to write says how.
#include <doctest/doctest.h>

#include <stdexcept>
#include <string>
#include <utility>

#include "scope/scopes_fixture.hpp"

namespace refrain {
namespace {

using namespace test;

// Settling cannot throw, whatever the error.
static_assert(noexcept(std::declval<FailureView&>().exit_write(std::declval<OpenScope&>(),
                                                               nullptr)));
static_assert(std::is_nothrow_destructible_v<Scope>);

struct Boom : std::runtime_error {
  Boom() : std::runtime_error("boom") {}
};

Result<void> throws(ScopeServer&) { throw Boom(); }

}  // namespace

TEST_CASE_FIXTURE(Scopes, "E1: success releases the write set and nothing else") {
  const BufferId x = buffer("x");
  const BufferId y = buffer("y");
  fail(bytes(x, 0, 16), "x broke");
  fail(bytes(y, 0, 16), "y broke");
  CHECK(over(stream, {bytes(y, 4, 6), bytes(y, 10, 16)}).execute(succeeds).executed_cleanly());
  CHECK(clean(bytes(y, 4, 6)));
  CHECK(clean(bytes(y, 10, 16)));
  CHECK(carried(bytes(y, 0, 4)).message() == "y broke");
  CHECK(carried(bytes(y, 6, 10)).message() == "y broke");
  CHECK(carried(bytes(x, 0, 16)).message() == "x broke");
}

TEST_CASE_FIXTURE(Scopes,
                  "E1: success releases only bytes that still carry the provisional claim") {
  const BufferId y = buffer("y");
  ScopeServer other(table, StreamId(8));
  const auto body = [&](ScopeServer&) -> Result<void> {
    CHECK(carried(bytes(y, 0, 16)).kind() == ErrorKind::torn_down);
    // Another stream claims some of the bytes meanwhile. It is unordered with this work, so what
    // it found out may not be lost.
    CHECK(over(other, {bytes(y, 4, 8)}).execute(fails("meanwhile")).failed());
    return {};
  };
  CHECK(over(stream, {bytes(y, 0, 16)}).execute(body).executed_cleanly());
  CHECK(clean(bytes(y, 0, 4)));
  CHECK(carried(bytes(y, 4, 8)).message() == "meanwhile");
  CHECK(clean(bytes(y, 8, 16)));
}

TEST_CASE_FIXTURE(Scopes, "E1: success releases everything that a check has looked at") {
  const BufferId y = buffer("y");
  const auto body = [&](ScopeServer&) -> Result<void> {
    CHECK(carried(bytes(y, 0, 16)).kind() == ErrorKind::torn_down);
    CHECK(table.live_failures() == 1);
    return {};
  };
  CHECK(over(stream, {bytes(y, 0, 8), bytes(y, 8, 16), bytes(y, 4, 12)})
            .execute(body)
            .executed_cleanly());
  CHECK(clean(bytes(y, 0, 16)));
  CHECK(table.live_failures() == 0);
}

TEST_CASE_FIXTURE(Scopes, "E2: failure leaves the real error on the write set") {
  const BufferId y = buffer("y");
  const auto outcome =
      over(stream, {bytes(y, 0, 4), bytes(y, 8, 12)}).execute(fails("the real error"));
  REQUIRE(outcome.failed());
  CHECK(outcome.error().message() == "the real error");
  CHECK(carried(bytes(y, 0, 4)).message() == "the real error");
  CHECK(carried(bytes(y, 8, 12)).message() == "the real error");
  CHECK(clean(bytes(y, 4, 8)));
  CHECK(clean(bytes(y, 12, 16)));
  CHECK(table.live_failures() == 1);  // one failure, however many ranges
}

TEST_CASE_FIXTURE(Scopes,
                  "E2: everything that carried the provisional claim carries the real error") {
  const BufferId y = buffer("y");
  const BufferId z = buffer("z");
  const auto body = [&](ScopeServer& inside) -> Result<void> {
    // A skip has carried it beyond the write set before the cause was known.
    CHECK(launching(inside, {bytes(y, 0, 16)}, {bytes(z, 0, 16)}, "next")
              .execute(succeeds)
              .skipped());
    CHECK(carried(bytes(z, 0, 16)).kind() == ErrorKind::torn_down);
    return broken("the real error");
  };
  CHECK(over(stream, {bytes(y, 0, 16)}).execute(body).failed());
  CHECK(carried(bytes(y, 0, 16)).message() == "the real error");
  CHECK(carried(bytes(z, 0, 16)).message() == "the real error");
  CHECK(carried(bytes(z, 0, 16)).failure() == carried(bytes(y, 0, 16)).failure());
}

TEST_CASE_FIXTURE(Scopes, "E3: any early return is a success or a failure") {
  const BufferId y = buffer("y");
  const auto body = [&](int way) {
    return [way](ScopeServer&) -> Result<int> {
      if (way == 0) return 10;
      if (way == 1) return broken("early");
      if (way == 2) return Error(ErrorKind::busy);
      return 20;
    };
  };
  const auto first = over(stream, {bytes(y, 0, 16)}).execute(body(0));
  REQUIRE(first.executed_cleanly());
  CHECK(first.value() == 10);
  CHECK(clean(bytes(y, 0, 16)));
  CHECK(over(stream, {bytes(y, 0, 16)}).execute(body(1)).failed());
  CHECK(carried(bytes(y, 0, 16)).message() == "early");
  CHECK(over(stream, {bytes(y, 0, 16)}).execute(body(2)).failed());
  CHECK(carried(bytes(y, 0, 16)).kind() == ErrorKind::busy);
  const auto last = over(stream, {bytes(y, 0, 16)}).execute(body(3));
  REQUIRE(last.executed_cleanly());
  CHECK(last.value() == 20);
  CHECK(clean(bytes(y, 0, 16)));
}

TEST_CASE_FIXTURE(Scopes, "E4: a body that throws leaves its cause on the bytes") {
  const BufferId y = buffer("y");
  CHECK_THROWS_AS(over(stream, {bytes(y, 2, 6)}).execute(throws), Boom);
  const Error error = carried(bytes(y, 2, 6));
  CHECK(error.kind() == ErrorKind::exception);
  CHECK(error.message() == "An exception was thrown: boom");
  REQUIRE(error.exception() != nullptr);
  CHECK_THROWS_AS(std::rethrow_exception(error.exception()), Boom);
  CHECK(clean(bytes(y, 0, 2)));
  CHECK(clean(bytes(y, 6, 16)));
}

TEST_CASE_FIXTURE(Scopes, "E4: a body that throws dooms the window and tells the listener") {
  const BufferId y = buffer("y");
  stream.open_window();
  CHECK_THROWS_AS(over(stream, {bytes(y, 0, 16)}).execute(throws), Boom);
  CHECK(stream.log.order() == std::vector<Heard>{Heard::store_entered, Heard::window_failed,
                                                 Heard::store_failed, Heard::listener});
  for (const Heard who : {Heard::window_failed, Heard::listener}) {
    const LogEntry heard = only(stream.log, who);
    CHECK(heard.error.kind() == ErrorKind::exception);
    CHECK(heard.error.exception() != nullptr);
  }
}

TEST_CASE_FIXTURE(Scopes, "E4: the exception goes on unchanged, the very object") {
  const BufferId y = buffer("y");
  const Boom* thrown = nullptr;
  const auto body = [&](ScopeServer&) -> Result<void> {
    try {
      throw Boom();
    } catch (const Boom& boom) {
      thrown = &boom;
      throw;
    }
  };
  try {
    static_cast<void>(over(stream, {bytes(y, 0, 16)}).execute(body));
    FAIL("the exception was swallowed");
  } catch (const Boom& boom) {
    CHECK(&boom == thrown);
  }
  try {
    std::rethrow_exception(carried(bytes(y, 0, 16)).exception());
  } catch (const Boom& boom) {
    CHECK(&boom == thrown);  // what the claim holds is that object too
  }
}

TEST_CASE_FIXTURE(Scopes, "E4: an exception that is no std::exception is kept as well") {
  const BufferId y = buffer("y");
  CHECK_THROWS_AS(
      over(stream, {bytes(y, 0, 16)}).execute([](ScopeServer&) -> Result<void> { throw 42; }), int);
  CHECK(carried(bytes(y, 0, 16)).message() == "An exception was thrown that is no std::exception.");
}

TEST_CASE_FIXTURE(Scopes, "E4: an exception passes through scopes in scopes and is left in each") {
  const BufferId a = buffer("a");
  const BufferId b = buffer("b");
  CHECK_THROWS_AS(over(stream, {bytes(a, 0, 16)}).execute([&](ScopeServer& inside) -> Result<void> {
    static_cast<void>(over(inside, {bytes(b, 0, 16)}).execute(throws));
    return {};
  }),
                  Boom);
  CHECK(carried(bytes(a, 0, 16)).message() == "An exception was thrown: boom");
  CHECK(carried(bytes(b, 0, 16)).message() == "An exception was thrown: boom");
  CHECK(stream.log.of(Heard::listener).size() == 2);
}

TEST_CASE_FIXTURE(Scopes, "E4: the table never destroys an exception while it is locked") {
  // An exception is the user's object. One that holds a buffer comes back to the table when it
  // goes, on whatever thread takes the last claim away.
  struct Holder {
    FailureTable* table;
    BufferId held;
    Holder(FailureTable& of, BufferId buffer) : table(&of), held(buffer) {}
    Holder(const Holder&) = default;
    Holder& operator=(const Holder&) = default;
    ~Holder() { static_cast<void>(table->check(bytes(held, 0, 1))); }
  };
  const BufferId y = buffer("y");
  const BufferId held = buffer("held");
  const auto claim = [&] {
    CHECK_THROWS_AS(over(stream, {bytes(y, 0, 16)}).execute([&](ScopeServer&) -> Result<void> {
      throw Holder(table, held);
    }),
                    Holder);
  };
  SUBCASE("a buffer goes") {
    claim();
    table.remove(y);
  }
  SUBCASE("other work mends it") {
    claim();
    CHECK(over(stream, {bytes(y, 0, 16)}).execute(succeeds).executed_cleanly());
  }
  SUBCASE("other work fails on it") {
    claim();
    CHECK(over(stream, {bytes(y, 0, 16)}).execute(fails("newer")).failed());
  }
  SUBCASE("a skip takes its place") {
    claim();
    const BufferId x = buffer("x");
    fail(bytes(x, 0, 1), "other");
    CHECK(launching(stream, {bytes(x, 0, 16)}, {bytes(y, 0, 16)}).execute(succeeds).skipped());
  }
  SUBCASE("a mark replaces a mark") {
    const Error error = Error::thrown(std::make_exception_ptr(Holder(table, held)));
    table.mark(Bindings{bytes(y, 0, 16)}, error, StreamId(7), at_line(4));
    table.mark(Bindings{bytes(y, 0, 16)}, broken("newer"), StreamId(7), at_line(4));
  }
  SUBCASE("a failure that was found goes last") {
    claim();
    auto found = table.read_failure(stream.show(), Bindings{bytes(y, 0, 16)});
    REQUIRE(static_cast<bool>(found));
    table.remove(y);
    const FoundFailure last = std::move(found);
  }
  SUBCASE("a window is forgotten") {
    Overlay overlay(table, StreamId(7));
    stream.open_window(&overlay);
    claim();
    stream.close_window();
  }
}

TEST_CASE_FIXTURE(Scopes, "E4: the table asks no exception for its text while it is locked") {
  struct Curious : std::exception {
    explicit Curious(FailureTable& of) : table(&of) {}
    FailureTable* table;
    [[nodiscard]] const char* what() const noexcept override {
      return table->live_failures() != 0 && table->story(FailureId(0)).empty() ? "?" : "curious";
    }
  };
  const BufferId y = buffer("y");
  CHECK_THROWS_AS(over(stream, {bytes(y, 0, 16)}).execute([&](ScopeServer&) -> Result<void> {
    throw Curious(table);
  }),
                  Curious);
  const auto report = table.report(Bindings{bytes(y, 0, 16)});
  REQUIRE(report.has_value());
  CHECK(report->message().find("An exception was thrown: curious") != std::string::npos);
  CHECK(table.story(report->failure()).find("curious") != std::string::npos);
}

TEST_CASE_FIXTURE(Scopes, "E5: on a clean exit the window hears first, then the claims settle") {
  const BufferId y = buffer("y");
  FakeWindow& window = stream.open_window();
  window.staged = 3;
  const auto body = [&](ScopeServer&) -> Result<void> {
    window.staged = 4;
    return {};
  };
  CHECK(over(stream, {bytes(y, 0, 16)}).execute(body).executed_cleanly());
  CHECK(stream.log.order() ==
        std::vector<Heard>{Heard::store_entered, Heard::window_recorded, Heard::store_released});
  const LogEntry recorded = only(stream.log, Heard::window_recorded);
  CHECK(recorded.writes == 1);
  CHECK(recorded.recorded_before == 3);  // so the window knows which nodes are this scope's
}

TEST_CASE_FIXTURE(Scopes, "E5: on a failure window, claims and listener hear in that order, once") {
  const BufferId y = buffer("y");
  stream.open_window();
  CHECK(over(stream, {bytes(y, 0, 16)}).execute(fails("boom")).failed());
  CHECK(stream.log.order() == std::vector<Heard>{Heard::store_entered, Heard::window_failed,
                                                 Heard::store_failed, Heard::listener});
  for (const Heard who : {Heard::window_failed, Heard::store_failed, Heard::listener}) {
    CHECK(only(stream.log, who).error.message() == "boom");
  }
}

TEST_CASE_FIXTURE(Scopes, "E5: success tells no listener") {
  const BufferId y = buffer("y");
  CHECK(over(stream, {bytes(y, 0, 16)}).execute(succeeds).executed_cleanly());
  CHECK(stream.log.of(Heard::listener).empty());
}

TEST_CASE_FIXTURE(Scopes, "E6: the listener hears the stream that the work was issued on") {
  const BufferId y = buffer("y");
  ScopeServer other(table, StreamId(8));
  CHECK(over(stream, {bytes(y, 0, 16)}).execute(succeeds).executed_cleanly());
  CHECK(over(other, {bytes(y, 0, 16)}).execute(fails("boom")).failed());
  CHECK(only(other.log, Heard::listener).stream == StreamId(8));
  CHECK(stream.log.of(Heard::listener).empty());
}

TEST_CASE_FIXTURE(Scopes, "E7: settling reaches allocations whichever stream wrote them before") {
  const BufferId y = buffer("y");
  const BufferId z = buffer("z");
  fail(bytes(y, 0, 16), "first");
  ScopeServer other(table, StreamId(8));
  CHECK(over(other, {bytes(y, 0, 16)}).execute(succeeds).executed_cleanly());
  CHECK(clean(bytes(y, 0, 16)));
  CHECK(over(other, {bytes(y, 0, 16), bytes(z, 0, 16)}).execute(fails("second")).failed());
  CHECK(launching(stream, {bytes(y, 0, 16)}, {bytes(z, 0, 16)}).execute(succeeds).skipped());
  CHECK(carried(bytes(z, 0, 16)).message() == "second");
}

TEST_CASE_FIXTURE(Scopes, "E8: a provisional claim that nothing took is gone after the exit") {
  const BufferId y = buffer("y");
  const auto looks = [&](ScopeServer&) -> Result<void> {
    static_cast<void>(table.check(bytes(y, 0, 1)));
    CHECK(table.live_failures() == 1);
    return {};
  };
  SUBCASE("a clean exit") {
    CHECK(over(stream, {bytes(y, 0, 16)}).execute(looks).executed_cleanly());
  }
  SUBCASE("a failed exit over buffers that went meanwhile") {
    CHECK(over(stream, {bytes(y, 0, 16)})
              .execute([&](ScopeServer& inside) -> Result<void> {
                REFRAIN_TRY(looks(inside));
                table.remove(y);
                return broken("nobody can carry it");
              })
              .failed());
  }
  SUBCASE("a failed exit over bytes that inner work took") {
    const BufferId x = buffer("x");
    fail(bytes(x, 0, 1), "root");
    CHECK(over(stream, {bytes(y, 0, 16)})
              .execute([&](ScopeServer& inside) -> Result<void> {
                CHECK(launching(inside, {bytes(x, 0, 1)}, {bytes(y, 0, 16)})
                          .execute(succeeds)
                          .skipped());
                return broken("outer");
              })
              .failed());
    CHECK(carried(bytes(y, 0, 16)).message() == "root");
    CHECK(table.live_failures() == 1);
    return;
  }
  CHECK(table.live_failures() == 0);
}

TEST_CASE_FIXTURE(Scopes, "E8: a buffer made where one went during the body carries nothing") {
  const BufferId y = buffer("y");
  BufferId fresh;
  CHECK(over(stream, {bytes(y, 0, 16)})
            .execute([&](ScopeServer&) -> Result<void> {
              table.remove(y);
              fresh = buffer("fresh");
              return broken("boom");
            })
            .failed());
  REQUIRE(fresh.slot == y.slot);
  CHECK(clean(bytes(fresh, 0, 16)));
  CHECK(carried(bytes(y, 0, 16)).kind() == ErrorKind::stale_buffer);
}

}  // namespace refrain
