// Rules M, as far as the table goes: claims are byte ranges, and go when their memory goes.
#include <doctest/doctest.h>

#include <set>
#include <string>
#include <vector>

#include "scope/scopes_fixture.hpp"

namespace refrain {
namespace {

using namespace test;

}  // namespace

TEST_CASE_FIXTURE(Scopes, "M1: a clean write of a part heals that part only") {
  const BufferId cache = buffer("kv cache", 4096);
  fail(bytes(cache, 1024, 2048), "one slice");
  CHECK(clean(bytes(cache, 0, 1024)));
  CHECK(clean(bytes(cache, 2048, 4096)));
  CHECK(over(stream, {bytes(cache, 1500, 1501)}).execute(succeeds).executed_cleanly());
  CHECK(clean(bytes(cache, 1500, 1501)));
  CHECK(carried(bytes(cache, 1499, 1500)).message() == "one slice");
  CHECK(carried(bytes(cache, 1501, 1502)).message() == "one slice");
  const BufferId y = buffer("y");
  CHECK(launching(stream, {bytes(cache, 0, 1024)}, {bytes(y, 0, 16)})
            .execute(succeeds)
            .executed_cleanly());
  CHECK(
      launching(stream, {bytes(cache, 1023, 1025)}, {bytes(y, 0, 16)}).execute(succeeds).skipped());
}

TEST_CASE_FIXTURE(Scopes, "M1: ranges of one failure that touch are one range") {
  const BufferId x = buffer("x");
  const BufferId y = buffer("y");
  fail(bytes(x, 0, 16), "root");
  // In any order of joining: left to right, right to left, and a gap that is filled last.
  for (const Bindings& parts : {Bindings{bytes(y, 0, 4), bytes(y, 4, 8), bytes(y, 8, 12)},
                                Bindings{bytes(y, 8, 12), bytes(y, 4, 8), bytes(y, 0, 4)},
                                Bindings{bytes(y, 0, 4), bytes(y, 8, 12), bytes(y, 4, 8)},
                                Bindings{bytes(y, 0, 7), bytes(y, 3, 12)}}) {
    for (const BufferBinding& part : parts) {
      CHECK(launching(stream, {bytes(x, 0, 16)}, {part}).execute(succeeds).skipped());
    }
    const auto found = table.read_failure(stream.show(), Bindings{bytes(y, 0, 16)});
    REQUIRE(static_cast<bool>(found));
    CHECK(found.needed() == bytes(y, 0, 12));
    CHECK(over(stream, {bytes(y, 0, 16)}).execute(succeeds).executed_cleanly());
  }
}

TEST_CASE_FIXTURE(Scopes, "M1: failed and skipped bytes of one failure that touch are one range") {
  const BufferId y = buffer("y");
  fail(bytes(y, 4, 8), "root");
  CHECK(launching(stream, {bytes(y, 4, 8)}, {bytes(y, 8, 12)}).execute(succeeds).skipped());
  CHECK(launching(stream, {bytes(y, 4, 8)}, {bytes(y, 0, 4)}).execute(succeeds).skipped());
  const auto found = table.read_failure(stream.show(), Bindings{bytes(y, 0, 16)});
  REQUIRE(static_cast<bool>(found));
  CHECK(found.needed() == bytes(y, 0, 12));
}

TEST_CASE_FIXTURE(Scopes, "M1: ranges of two failures that touch stay two") {
  const BufferId y = buffer("y");
  fail(bytes(y, 0, 8), "left");
  fail(bytes(y, 8, 16), "right");
  CHECK(carried(bytes(y, 7, 9)).message() == "left");
  CHECK(carried(bytes(y, 8, 9)).message() == "right");
}

TEST_CASE_FIXTURE(Scopes, "M2: a failure goes with the last byte that carries it") {
  const BufferId x = buffer("x");
  const BufferId y = buffer("y");
  const FailureId id = fail(bytes(x, 0, 16), "boom");
  CHECK(launching(stream, {bytes(x, 0, 1)}, {bytes(y, 3, 4)}).execute(succeeds).skipped());
  CHECK(over(stream, {bytes(x, 0, 16)}).execute(succeeds).executed_cleanly());
  CHECK(table.live_failures() == 1);
  CHECK(table.story(id).find("boom") != std::string::npos);
  CHECK(over(stream, {bytes(y, 3, 4)}).execute(succeeds).executed_cleanly());
  CHECK(table.live_failures() == 0);
  CHECK(table.story(id).find("no longer carried") != std::string::npos);
}

TEST_CASE_FIXTURE(Scopes, "M2: dropping every buffer leaves the table empty") {
  std::vector<BufferId> many;
  many.reserve(3000);
  for (int i = 0; i < 3000; ++i) many.push_back(table.add("b", 8, nullptr, i % 2 == 0));
  for (const BufferId each : many) fail(bytes(each, 2, 6), "boom");
  CHECK(table.live_failures() == 3000 + 1500);
  for (const BufferId each : many) table.remove(each);
  CHECK(table.live_failures() == 0);
}

TEST_CASE_FIXTURE(Scopes, "M2: a long chain of failures goes at once") {
  // Each piece of work failed because of the one before, and only the last is still carried.
  const BufferId a = buffer("a");
  const BufferId b = buffer("b");
  fail(bytes(a, 0, 16), "root");
  for (int i = 0; i < 100'000; ++i) {
    const BufferId from = i % 2 == 0 ? a : b;
    const BufferId to = i % 2 == 0 ? b : a;
    const auto met = table.check(bytes(from, 0, 16));
    over(stream, {bytes(to, 0, 16)}).execute([&](ScopeServer&) -> Result<void> { return *met; });
  }
  stream.log.clear();
  CHECK(table.live_failures() == 100'001);
  CHECK(over(stream, {bytes(a, 0, 16), bytes(b, 0, 16)}).execute(succeeds).executed_cleanly());
  CHECK(table.live_failures() == 0);
}

TEST_CASE_FIXTURE(Scopes, "M3: failure ids are never reused") {
  const BufferId y = buffer("y");
  std::set<FailureId> seen;
  for (int i = 0; i < 1000; ++i) {
    CHECK(seen.insert(fail(bytes(y, 0, 16), "boom")).second);
    if (i % 3 == 0) CHECK(over(stream, {bytes(y, 0, 16)}).execute(succeeds).executed_cleanly());
  }
}

TEST_CASE_FIXTURE(Scopes, "M3: failures of two devices have different numbers") {
  FailureTable second(2);
  ScopeServer elsewhere(second, StreamId(9));
  const BufferId y = buffer("y");
  const BufferId z = second.add("z", 16, nullptr, false);
  over(elsewhere, {bytes(z, 0, 8)}).execute(fails("of the second device"));
  const FailureId mine = fail(bytes(y, 0, 16), "of the first device");
  const auto theirs = second.check(bytes(z, 0, 8));
  REQUIRE(theirs.has_value());
  CHECK(theirs->failure() != mine);

  // So an error that came from one device cannot name an unrelated failure of another.
  over(elsewhere, {bytes(z, 8, 16)}).execute([&](ScopeServer&) -> Result<void> {
    return broken("carried over").with_failure(mine);
  });
  const auto report = second.report(Bindings{bytes(z, 8, 16)});
  REQUIRE(report.has_value());
  CHECK(report->message().find("carried over") != std::string::npos);
  CHECK(report->message().find("of the second device") == std::string::npos);
  second.remove(z);
  CHECK(second.live_failures() == 0);
}

TEST_CASE_FIXTURE(Scopes, "M4: memory that is handed out again has none of the old claims") {
  const BufferId old = buffer("old", 64);
  fail(bytes(old, 0, 64), "boom");
  table.remove(old);
  CHECK(table.live_failures() == 0);
  const BufferId fresh = buffer("fresh", 64);
  REQUIRE(fresh.slot == old.slot);
  CHECK(fresh != old);
  CHECK(clean(bytes(fresh, 0, 64)));
}

TEST_CASE_FIXTURE(Scopes, "M4: claims beyond the end of an allocation go with it too") {
  const BufferId old = buffer("old", 16);
  fail(bytes(old, 8, 64), "beyond the end");
  table.remove(old);
  CHECK(table.live_failures() == 0);
  const BufferId fresh = buffer("fresh", 64);
  REQUIRE(fresh.slot == old.slot);
  CHECK(clean(bytes(fresh, 0, 64)));
}

TEST_CASE_FIXTURE(Scopes, "M4: a failure that others still carry outlives its first buffer") {
  const BufferId x = buffer("x");
  const BufferId y = buffer("y");
  fail(bytes(x, 0, 16), "boom");
  CHECK(launching(stream, {bytes(x, 0, 16)}, {bytes(y, 0, 16)}).execute(succeeds).skipped());
  table.remove(x);
  CHECK(carried(bytes(y, 0, 16)).message() == "boom");
}

TEST_CASE_FIXTURE(Scopes,
                  "M5: a fresh allocation may say that nobody wrote it, and writing heals") {
  const BufferId y = buffer("y", 16, true);
  const Error error = carried(bytes(y, 0, 1));
  CHECK(error.kind() == ErrorKind::unwritten);
  CHECK(error.message().find("Nobody has written") != std::string::npos);
  CHECK(over(stream, {bytes(y, 0, 8)}).execute(succeeds).executed_cleanly());
  CHECK(clean(bytes(y, 0, 8)));
  CHECK(carried(bytes(y, 7, 9)).kind() == ErrorKind::unwritten);
  const auto report = table.report(Bindings{bytes(y, 0, 16)});
  REQUIRE(report.has_value());
  CHECK(report->kind() == ErrorKind::unwritten);
  CHECK(table.add("empty", 0, nullptr, true).generation == 1);  // nothing to be unwritten
}

TEST_CASE_FIXTURE(Scopes, "M6: a stale handle answers that it is stale and has no owner") {
  const BufferId y = buffer("y");
  CHECK(table.owner_of(y) == this);
  CHECK(table.name_of(y) == "y");
  fail(bytes(y, 0, 16), "boom");
  table.remove(y);
  const Error gone = carried(bytes(y, 0, 16));
  CHECK(gone.kind() == ErrorKind::stale_buffer);
  CHECK(gone.failure() == FailureId{});
  CHECK(table.owner_of(y) == nullptr);
  CHECK(table.name_of(y) == "y");  // for messages, until something takes its place
  table.remove(y);                 // a second time is nothing

  const BufferId again = buffer("again");
  REQUIRE(again.slot == y.slot);
  CHECK(table.name_of(y).empty());
  CHECK(table.owner_of(y) == nullptr);  // also when the slot is in use again
  CHECK(carried(bytes(y, 0, 16)).kind() == ErrorKind::stale_buffer);
  table.remove(y);
  CHECK(table.owner_of(again) == this);
}

TEST_CASE_FIXTURE(Scopes,
                  "M6: handles that were never given out, or by another device, are stale") {
  buffer("y");
  for (const BufferId wrong : {BufferId{}, BufferId{1, 5, 1}, BufferId{1, 0, 2},
                               BufferId{1, 0xffffffffU, 1}, BufferId{2, 0, 1}}) {
    CHECK(table.owner_of(wrong) == nullptr);
    CHECK(carried(bytes(wrong, 0, 16)).kind() == ErrorKind::stale_buffer);
  }
}

TEST_CASE_FIXTURE(Scopes, "M6: a stale handle claims nothing, and the other outputs are claimed") {
  const BufferId gone = buffer("gone");
  const BufferId y = buffer("y");
  table.remove(gone);
  const BufferId fresh = buffer("fresh");
  REQUIRE(fresh.slot == gone.slot);
  failed_writing(stream, intern_kernel_name("launch"),
                 stream.writes(Bindings{bytes(gone, 0, 16), bytes(y, 0, 16)}),
                 Error(ErrorKind::stale_buffer, "The handle is stale."), at_line(8));
  CHECK(carried(bytes(y, 0, 16)).message() == "The handle is stale.");
  CHECK(clean(bytes(fresh, 0, 16)));
  // Neither a clean exit, nor a skip, nor a late failure reaches the new owner of the slot.
  CHECK(over(stream, {bytes(gone, 0, 16)}).execute(succeeds).executed_cleanly());
  CHECK(launching(stream, {bytes(y, 0, 16)}, {bytes(gone, 0, 16)}).execute(succeeds).skipped());
  table.claim_late(broken("late"), {}, StreamId(7), {}, Bindings{bytes(gone, 0, 16)},
                   [](LateClaim&, std::span<const FailureTable::Open>) {});
  table.mark(Bindings{bytes(gone, 0, 16)}, broken("mark"), StreamId(7), {});
  CHECK(clean(bytes(fresh, 0, 16)));
  CHECK(table.live_failures() == 1);
}

TEST_CASE_FIXTURE(Scopes,
                  "M6: a clean exit over a stale handle leaves its successor's claims alone") {
  const BufferId gone = buffer("gone");
  table.remove(gone);
  const BufferId fresh = buffer("fresh");
  REQUIRE(fresh.slot == gone.slot);
  fail(bytes(fresh, 0, 16), "boom");
  CHECK(over(stream, {bytes(gone, 0, 16)}).execute(succeeds).executed_cleanly());
  CHECK(carried(bytes(fresh, 0, 16)).message() == "boom");
}

TEST_CASE_FIXTURE(Scopes, "M7: a read of several failed bindings reports each failure once") {
  const BufferId x = buffer("x");
  const BufferId y = buffer("y");
  const BufferId z = buffer("z");
  const BufferId free = buffer("free");
  const FailureId first = fail(bytes(x, 0, 16), "the first root");
  CHECK(launching(stream, {bytes(x, 0, 16)}, {bytes(y, 0, 8)}).execute(succeeds).skipped());
  const FailureId second = fail(bytes(z, 0, 16), "the second root");
  const Bindings asked{bytes(free, 0, 16), bytes(y, 0, 16), bytes(x, 0, 16), bytes(z, 0, 16),
                       bytes(y, 2, 3)};
  const auto report = table.report(asked);
  REQUIRE(report.has_value());
  const std::string text = report->message();
  INFO(text);
  CHECK(report->kind() == ErrorKind::failed_input);
  CHECK(report->failure() == first);
  CHECK(text.find("Buffer \"y\" [0, 16) cannot be read") != std::string::npos);
  CHECK(text.find("2 failures") != std::string::npos);
  const auto once = [&](const std::string& part) {
    const auto at = text.find(part);
    return at != std::string::npos && text.find(part, at + 1) == std::string::npos;
  };
  CHECK(once("the first root"));
  CHECK(once("the second root"));
  CHECK(once("failure " + std::to_string(first.number) + ":"));
  CHECK(once("failure " + std::to_string(second.number) + ":"));
  CHECK(once("2 buffers carry it: \"y\", \"x\"."));
  CHECK(once("1 buffer carries it: \"z\"."));
}

TEST_CASE_FIXTURE(Scopes, "M7: reading clears nothing, and a clean read says nothing") {
  const BufferId x = buffer("x");
  const BufferId y = buffer("y");
  fail(bytes(x, 0, 8), "boom");
  const auto once = table.report(Bindings{bytes(x, 0, 16)});
  const auto twice = table.report(Bindings{bytes(x, 0, 16)});
  REQUIRE(once.has_value());
  REQUIRE(twice.has_value());
  CHECK(once->message() == twice->message());
  CHECK(carried(bytes(x, 0, 16)).message() == "boom");
  CHECK_FALSE(table.report(Bindings{bytes(x, 8, 16), bytes(y, 0, 16)}).has_value());
  CHECK_FALSE(table.report(Bindings{}).has_value());
}

TEST_CASE_FIXTURE(Scopes, "M7: of many carriers some are named and all are counted") {
  std::vector<BufferId> many;
  Bindings all;
  for (int i = 0; i < 7; ++i) {
    many.push_back(buffer("b" + std::to_string(i)));
    all.push_back(bytes(many.back(), 0, 16));
  }
  CHECK(over(stream, all).execute(fails("boom")).failed());
  const auto told = [&](const BufferBinding& asked) {
    const auto report = table.report(Bindings{asked});
    REQUIRE(report.has_value());
    const std::string text = report->message();
    return text.substr(text.rfind('\n'));
  };
  CHECK(told(all[0]) == "\n    7 buffers carry it: \"b0\", \"b1\", \"b2\", \"b3\" and 3 more.");
  // First the one that was asked for.
  CHECK(told(all[2]) == "\n    7 buffers carry it: \"b2\", \"b0\", \"b1\", \"b3\" and 3 more.");
  CHECK(told(all[6]) == "\n    7 buffers carry it: \"b6\", \"b0\", \"b1\", \"b2\" and 3 more.");
  const FailureId failure = table.check(all[0])->failure();
  const std::string story = table.story(failure);
  CHECK(story.substr(story.rfind('\n')) ==
        "\n  7 buffers carry it: \"b0\", \"b1\", \"b2\", \"b3\" and 3 more.");
  CHECK(over(stream, {all[1], all[3], all[5]})
            .execute([](auto&) { return Result<void>(); })
            .executed_cleanly());
  CHECK(told(all[6]) == "\n    4 buffers carry it: \"b6\", \"b0\", \"b2\", \"b4\".");
}

TEST_CASE_FIXTURE(Scopes, "M8: check answers without taking anything") {
  const BufferId y = buffer("y");
  const FailureId id = fail(bytes(y, 4, 8), "boom");
  for (int i = 0; i < 3; ++i) {
    const Error error = carried(bytes(y, 0, 16));
    CHECK(error.message() == "boom");
    CHECK(error.kind() == ErrorKind::kernel_failed);
    CHECK(error.failure() == id);
  }
  CHECK(table.live_failures() == 1);
  CHECK(clean(bytes(y, 0, 4)));
  CHECK(clean(bytes(y, 5, 5)));  // no bytes carry nothing
}

TEST_CASE_FIXTURE(Scopes, "M8: a check from another thread's view does not disturb an open scope") {
  const BufferId y = buffer("y");
  for (const bool good : {true, false}) {
    const auto body = [&](ScopeServer&) -> Result<void> {
      for (int i = 0; i < 3; ++i) {
        CHECK(carried(bytes(y, 0, 16)).kind() == ErrorKind::torn_down);
        CHECK(table.live_failures() == 1);
      }
      if (!good) return broken("boom");
      return {};
    };
    over(stream, {bytes(y, 0, 16)}).execute(body);
    CHECK(clean(bytes(y, 0, 16)) == good);
  }
}

TEST_CASE("M2: a table may go while buffers and failures are still there") {
  FailureTable table(1);
  const BufferId y = table.add("y", 16, nullptr, true);
  {
    test::ScopeServer stream(table, StreamId(7));
    test::over(stream, {test::bytes(y, 0, 8)}).execute(test::fails("boom"));
    table.mark(std::vector{test::bytes(y, 4, 12)}, test::broken("mark"), StreamId(7), {});
  }
  CHECK(table.live_failures() == 3);
}

}  // namespace refrain
