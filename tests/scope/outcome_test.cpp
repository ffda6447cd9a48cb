// Rules R1 and R2: what a scope answers, and how work that never began is told.
#include "refrain/scope/outcome.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <utility>

#include "scope/scopes_fixture.hpp"

namespace refrain {
namespace {

using namespace test;

static_assert(!std::is_default_constructible_v<ScopedOutcome<int>>);
static_assert(!std::is_copy_constructible_v<ScopedOutcome<std::unique_ptr<int>>>);
static_assert(std::is_move_constructible_v<ScopedOutcome<std::unique_ptr<int>>>);

}  // namespace

TEST_CASE_FIXTURE(Scopes,
                  "R1: an outcome is executed, skipped or failed, and exactly one of them") {
  const BufferId x = buffer("x");
  const BufferId y = buffer("y");
  const FailureId root = fail(bytes(x, 0, 16), "root");
  const auto seven = [](ScopeServer&) -> Result<int> { return 7; };

  const auto executed = over(stream, {bytes(y, 0, 16)}).execute(seven);
  CHECK(executed.executed_cleanly());
  CHECK_FALSE(executed.skipped());
  CHECK_FALSE(executed.failed());
  CHECK(executed.value() == 7);

  const auto skipped = launching(stream, {bytes(x, 0, 16)}, {bytes(y, 0, 16)}).execute(seven);
  CHECK(skipped.skipped());
  CHECK_FALSE(skipped.executed_cleanly());
  CHECK_FALSE(skipped.failed());
  CHECK(skipped.failure() == root);

  const auto failed = over(stream, {bytes(y, 0, 16)}).execute(fails("boom"));
  CHECK(failed.failed());
  CHECK_FALSE(failed.executed_cleanly());
  CHECK_FALSE(failed.skipped());
  CHECK(failed.error().message() == "boom");
}

TEST_CASE_FIXTURE(Scopes, "R1: as a result, a skip carries the failure's number and not its text") {
  const BufferId x = buffer("x");
  const BufferId y = buffer("y");
  const FailureId root = fail(bytes(x, 0, 16), "the root text");
  auto result =
      launching(stream, {bytes(x, 0, 16)}, {bytes(y, 0, 16)}).execute(succeeds).into_result();
  REQUIRE_FALSE(result.ok());
  CHECK(result.error().kind() == ErrorKind::skipped);
  CHECK(result.error().failure() == root);
  CHECK(result.error().text().find("the root text") == std::string::npos);
  CHECK(result.error().text().find(std::to_string(root.number)) != std::string::npos);
}

TEST_CASE_FIXTURE(Scopes, "R1: as a result, a failure is its error and success its value") {
  const BufferId y = buffer("y");
  auto failed = over(stream, {bytes(y, 0, 16)}).execute(fails("boom")).into_result();
  REQUIRE_FALSE(failed.ok());
  CHECK(failed.error().message() == "boom");

  auto nothing = over(stream, {bytes(y, 0, 16)}).execute(succeeds).into_result();
  CHECK(nothing.ok());

  auto owner = over(stream, {bytes(y, 0, 16)})
                   .execute([](ScopeServer&) -> Result<std::unique_ptr<int>> {
                     return std::make_unique<int>(9);
                   })
                   .into_result();
  REQUIRE(owner.ok());
  CHECK(**owner == 9);
}

TEST_CASE_FIXTURE(Scopes, "R1: an outcome may be dropped, since the claim is the report") {
  const BufferId y = buffer("y");
  over(stream, {bytes(y, 0, 16)}).execute(fails("boom"));  // compiles without a warning
  CHECK(carried(bytes(y, 0, 16)).message() == "boom");
}

TEST_CASE_FIXTURE(Scopes, "R2: failed_writing claims, dooms and reports once, and runs nothing") {
  const BufferId y = buffer("y");
  const BufferId z = buffer("z");
  fail(bytes(y, 0, 16), "old");
  stream.open_window();
  failed_writing(stream, intern_kernel_name("never compiled"),
                 stream.writes(Bindings{bytes(y, 0, 8), bytes(z, 0, 16)}),
                 Error(ErrorKind::kernel_missing, "No such kernel."), at_line(5));
  CHECK(carried(bytes(y, 0, 8)).message() == "No such kernel.");
  CHECK(carried(bytes(z, 0, 16)).kind() == ErrorKind::kernel_missing);
  CHECK(carried(bytes(y, 8, 16)).message() == "old");
  CHECK(stream.log.order() == std::vector<Heard>{Heard::store_entered, Heard::window_failed,
                                                 Heard::store_failed, Heard::listener});
  CHECK(only(stream.log, Heard::listener).error.message() == "No such kernel.");
  CHECK(table.story(carried(bytes(z, 0, 16)).failure())
            .find("\"never compiled\" on stream 7 "
                  "(model.cc:5)") != std::string::npos);
}

TEST_CASE_FIXTURE(Scopes, "R2: failed_writing of nothing still dooms and reports") {
  stream.open_window();
  failed_writing(stream, intern_kernel_name("never compiled"), WriteSet(), broken("no outputs"),
                 at_line(6));
  CHECK(only(stream.log, Heard::window_failed).error.message() == "no outputs");
  CHECK(only(stream.log, Heard::listener).error.message() == "no outputs");
  CHECK(table.live_failures() == 0);
}

TEST_CASE_FIXTURE(Scopes, "R2: what failed_writing claims, a later launch is skipped on") {
  const BufferId x = buffer("x");
  const BufferId y = buffer("y");
  failed_writing(stream, intern_kernel_name("upload"), stream.writes(Bindings{bytes(x, 0, 16)}),
                 broken("the bytes never came"), at_line(7));
  CHECK(launching(stream, {bytes(x, 0, 16)}, {bytes(y, 0, 16)}).execute(succeeds).skipped());
  CHECK(carried(bytes(y, 0, 16)).message() == "the bytes never came");
}

}  // namespace refrain
