// Rules K: a launch whose input carries a failure does not run, and its outputs carry it on.
#include <doctest/doctest.h>

#include <string>
#include <utility>

#include "scope/scopes_fixture.hpp"

namespace refrain {
namespace {

using namespace test;

std::size_t count(const std::string& text, const std::string& word) {
  std::size_t found = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    ++found;
  }
  return found;
}

}  // namespace

TEST_CASE_FIXTURE(Scopes, "K1: a skip points its whole write set at its input's failure") {
  const BufferId x = buffer("x");
  const BufferId y = buffer("y");
  const BufferId z = buffer("z");
  const FailureId root = fail(bytes(x, 3, 4), "root");
  const auto outcome =
      launching(stream, {bytes(x, 0, 16)}, {bytes(y, 0, 16), bytes(z, 2, 6), bytes(z, 10, 12)})
          .execute(succeeds);
  REQUIRE(outcome.skipped());
  CHECK(outcome.failure() == root);
  for (const BufferBinding& written :
       {bytes(y, 0, 1), bytes(y, 15, 16), bytes(z, 2, 6), bytes(z, 10, 12)}) {
    CHECK(carried(written).failure() == root);
    CHECK(carried(written).message() == "root");
  }
  CHECK(clean(bytes(z, 0, 2)));
  CHECK(clean(bytes(z, 6, 10)));
  CHECK(clean(bytes(z, 12, 16)));
  CHECK(clean(bytes(x, 0, 3)));
}

TEST_CASE_FIXTURE(Scopes, "K1: a skip mints no failure") {
  const BufferId x = buffer("x");
  const BufferId y = buffer("y");
  const FailureId root = fail(bytes(x, 0, 16), "root");
  for (int i = 0; i < 10; ++i) {
    CHECK(launching(stream, {bytes(x, 0, 16)}, {bytes(y, 0, 16)}).execute(succeeds).skipped());
  }
  CHECK(table.live_failures() == 1);
  const FailureId next = fail(bytes(y, 0, 16), "next");
  CHECK(next == FailureId(root.number + 1));
}

TEST_CASE_FIXTURE(Scopes, "K1: reading what nobody wrote skips, and the outputs say so") {
  const BufferId x = buffer("x", 16, true);
  const BufferId y = buffer("y");
  CHECK(launching(stream, {bytes(x, 8, 9)}, {bytes(y, 0, 16)}).execute(succeeds).skipped());
  CHECK(carried(bytes(y, 0, 16)).kind() == ErrorKind::unwritten);
  CHECK(carried(bytes(y, 0, 16)).failure() == carried(bytes(x, 0, 16)).failure());
}

TEST_CASE_FIXTURE(Scopes, "K2: a skip replaces older claims on what it would have written") {
  const BufferId x = buffer("x");
  const BufferId y = buffer("y");
  fail(bytes(y, 0, 8), "older");
  const FailureId root = fail(bytes(x, 0, 16), "root");
  CHECK(launching(stream, {bytes(x, 0, 16)}, {bytes(y, 4, 12)}).execute(succeeds).skipped());
  CHECK(carried(bytes(y, 0, 4)).message() == "older");
  CHECK(carried(bytes(y, 4, 12)).failure() == root);
  CHECK(table.live_failures() == 2);
}

TEST_CASE_FIXTURE(Scopes, "K2: a failure whose last byte a skip takes is dropped") {
  const BufferId x = buffer("x");
  const BufferId y = buffer("y");
  const FailureId older = fail(bytes(y, 4, 8), "older");
  fail(bytes(x, 0, 16), "root");
  REQUIRE(table.live_failures() == 2);
  CHECK(launching(stream, {bytes(x, 0, 16)}, {bytes(y, 0, 16)}).execute(succeeds).skipped());
  CHECK(table.live_failures() == 1);
  CHECK(table.story(older).find("no longer carried") != std::string::npos);
}

TEST_CASE_FIXTURE(Scopes,
                  "K3: the body of a skipped scope never runs, and executing it does nothing") {
  const BufferId x = buffer("x");
  const BufferId y = buffer("y");
  fail(bytes(x, 0, 16), "root");
  stream.open_window();
  Scope scope = launching(stream, {bytes(x, 0, 16)}, {bytes(y, 0, 16)});
  REQUIRE(scope.skipped());
  const auto heard = stream.log.order();
  bool ran = false;
  const auto outcome = std::move(scope).execute([&](ScopeServer&) -> Result<int> {
    ran = true;
    return 1;
  });
  CHECK(outcome.skipped());
  CHECK_FALSE(outcome.executed_cleanly());
  CHECK_FALSE(outcome.failed());
  CHECK_FALSE(ran);
  CHECK(stream.log.order() == heard);
}

TEST_CASE_FIXTURE(Scopes,
                  "K4: a skip tells the listener, dooms the window, then moves the claims") {
  const BufferId x = buffer("x");
  const BufferId y = buffer("y");
  fail(bytes(x, 0, 16), "root");
  FakeWindow& window = stream.open_window();
  window.staged = 5;
  const Scope never_executed = launching(stream, {bytes(x, 0, 16)}, {bytes(y, 0, 8)});
  // All of it when the scope is made, so also for one that is never executed.
  CHECK(stream.log.order() ==
        std::vector<Heard>{Heard::listener, Heard::window_failed, Heard::store_propagated});
  CHECK(only(stream.log, Heard::listener).stream == StreamId(7));
  CHECK(only(stream.log, Heard::window_failed).writes == 1);  // the window learns the hole
  CHECK(carried(bytes(y, 0, 8)).message() == "root");
}

TEST_CASE_FIXTURE(Scopes, "K5: the listener and the window hear the input's own error") {
  const BufferId x = buffer("x");
  const BufferId y = buffer("y");
  const BufferId z = buffer("z");
  const FailureId root = fail(bytes(x, 0, 16), "root");
  CHECK(launching(stream, {bytes(x, 0, 16)}, {bytes(y, 0, 16)}).execute(succeeds).skipped());
  stream.log.clear();
  stream.open_window();
  // Also where the input was itself the output of a skip.
  CHECK(launching(stream, {bytes(y, 0, 16)}, {bytes(z, 0, 16)}).execute(succeeds).skipped());
  for (const Heard who : {Heard::listener, Heard::window_failed}) {
    const LogEntry heard = only(stream.log, who);
    CHECK(heard.error.kind() == ErrorKind::kernel_failed);
    CHECK(heard.error.message() == "root");
    CHECK(heard.error.failure() == root);
  }
}

TEST_CASE_FIXTURE(Scopes, "K6: failures travel along the data and not along the stream") {
  const BufferId x = buffer("x");
  const BufferId y = buffer("y");
  const BufferId z = buffer("z");
  const BufferId free = buffer("free");
  const FailureId root = fail(bytes(x, 0, 16), "root");
  ScopeServer other(table, StreamId(8));
  CHECK(launching(stream, {bytes(x, 0, 16)}, {bytes(y, 0, 16)}).execute(succeeds).skipped());
  // The same stream runs on with other data, and another stream stops on this data.
  CHECK(launching(stream, {bytes(free, 0, 8)}, {bytes(free, 8, 16)})
            .execute(succeeds)
            .executed_cleanly());
  const auto outcome = launching(other, {bytes(y, 0, 16)}, {bytes(z, 0, 16)}).execute(succeeds);
  REQUIRE(outcome.skipped());
  CHECK(outcome.failure() == root);
  CHECK(carried(bytes(z, 0, 16)).message() == "root");
  CHECK(only(other.log, Heard::listener).stream == StreamId(8));
}

TEST_CASE_FIXTURE(Scopes, "K7: a read names the path back, newest first, and the root") {
  const BufferId x = buffer("x");
  const BufferId y = buffer("y");
  const BufferId z = buffer("z");
  fail(bytes(x, 0, 16), "the root error", "decode");
  CHECK(
      launching(stream, {bytes(x, 4, 12)}, {bytes(y, 0, 8)}, "first").execute(succeeds).skipped());
  CHECK(launching(stream, {bytes(y, 0, 16)}, {bytes(z, 1, 3), bytes(z, 5, 6)}, "second")
            .execute(succeeds)
            .skipped());
  const auto report = table.report(Bindings{bytes(z, 0, 16)});
  REQUIRE(report.has_value());
  const std::string text = report->message();
  INFO(text);
  CHECK(text.find("\"decode\" on stream 7 (model.cc:1): the root error") != std::string::npos);
  // What each needed, to the byte, and what it would have written.
  const auto second = text.find(
      "skipped: \"second\" on stream 7 (model.cc:2) needed \"y\" [0, 8) and would have written "
      "\"z\" [1, 3) and 1 more");
  const auto first = text.find(
      "skipped: \"first\" on stream 7 (model.cc:2) needed \"x\" [4, 12) and would have written "
      "\"y\" [0, 8)");
  REQUIRE(second != std::string::npos);
  REQUIRE(first != std::string::npos);
  CHECK(second < first);
}

TEST_CASE_FIXTURE(Scopes, "K7: the newest 16 skips are kept and the number dropped is said") {
  const BufferId x = buffer("x");
  const BufferId y = buffer("y");
  fail(bytes(x, 0, 16), "the root error");
  for (int i = 1; i <= 16; ++i) {
    const std::string kernel = "step " + std::to_string(i) + ".";
    CHECK(launching(stream, {bytes(x, 0, 16)}, {bytes(y, 0, 16)}, kernel)
              .execute(succeeds)
              .skipped());
  }
  const auto sixteen = table.report(Bindings{bytes(y, 0, 16)});
  REQUIRE(sixteen.has_value());
  CHECK(count(sixteen->message(), "skipped:") == 16);
  CHECK(sixteen->message().find("earlier skip") == std::string::npos);

  for (int i = 17; i <= 20; ++i) {
    const std::string kernel = "step " + std::to_string(i) + ".";
    CHECK(launching(stream, {bytes(x, 0, 16)}, {bytes(y, 0, 16)}, kernel)
              .execute(succeeds)
              .skipped());
  }
  const auto twenty = table.report(Bindings{bytes(y, 0, 16)});
  REQUIRE(twenty.has_value());
  const std::string text = twenty->message();
  CHECK(count(text, "skipped:") == 16);
  CHECK(text.find("4 earlier skips") != std::string::npos);
  CHECK(text.find("step 4.") == std::string::npos);
  CHECK(text.find("step 5.") != std::string::npos);
  CHECK(text.find("step 20.") < text.find("step 19."));
  CHECK(text.find("the root error") != std::string::npos);  // the root is always there
}

TEST_CASE_FIXTURE(Scopes,
                  "K7: a failure that takes the place of an old one has none of its skips") {
  const BufferId x = buffer("x");
  const BufferId y = buffer("y");
  fail(bytes(x, 0, 16), "old");
  CHECK(launching(stream, {bytes(x, 0, 16)}, {bytes(y, 0, 16)}, "victim")
            .execute(succeeds)
            .skipped());
  table.remove(x);
  table.remove(y);
  REQUIRE(table.live_failures() == 0);
  const FailureId fresh = fail(bytes(buffer("z"), 0, 16), "new");
  CHECK(table.story(fresh).find("victim") == std::string::npos);
}

TEST_CASE_FIXTURE(Scopes, "K7: a path through a buffer that is gone still tells the rest") {
  const BufferId x = buffer("x");
  const BufferId y = buffer("y");
  const BufferId z = buffer("z");
  const FailureId root = fail(bytes(x, 0, 16), "the root error");
  CHECK(
      launching(stream, {bytes(x, 0, 16)}, {bytes(y, 0, 16)}, "first").execute(succeeds).skipped());
  CHECK(launching(stream, {bytes(y, 0, 16)}, {bytes(z, 0, 16)}, "second")
            .execute(succeeds)
            .skipped());
  table.remove(x);
  table.remove(y);
  const auto report = table.report(Bindings{bytes(z, 0, 16)});
  REQUIRE(report.has_value());
  CHECK(report->failure() == root);
  CHECK(report->message().find("the root error") != std::string::npos);
  CHECK(report->message().find("needed \"y\" [0, 16) (gone by now)") != std::string::npos);
}

}  // namespace refrain
