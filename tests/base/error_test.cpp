// An error is made once and carried by many: copies cost nothing and text is built when it is read.
#include "refrain/base/error.hpp"

#include <doctest/doctest.h>

#include <array>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "support/allocations.hpp"

namespace refrain {
namespace {

using test::allocations_in;

static_assert(std::is_nothrow_copy_constructible_v<Error>);
static_assert(std::is_nothrow_move_constructible_v<Error>);
static_assert(std::is_nothrow_copy_assignable_v<Error>);
static_assert(noexcept(Error(ErrorKind::torn_down)));
static_assert(!std::is_convertible_v<ErrorKind, Error>, "an error is made on purpose");

// A text that fits no small string.
constexpr const char* kLong =
    R"(The kernel "attention" answered with code 700 while it read 4096 bytes of "keys".)";

std::exception_ptr caught(const std::string& text) {
  return std::make_exception_ptr(std::runtime_error(text));
}

}  // namespace

TEST_CASE("Error: says its kind, its message and where it comes from") {
  const Error error(ErrorKind::kernel_failed, kLong);
  CHECK(error.kind() == ErrorKind::kernel_failed);
  CHECK(error.message() == kLong);
  CHECK(error.text() == kLong);
  CHECK(error.failure() == FailureId{});
  CHECK(error.exception() == nullptr);
}

TEST_CASE("Error: copying, moving and naming the failure allocate nothing") {
  const Error error =
      Error(ErrorKind::kernel_failed, kLong).with_context("While replaying \"decode/8\".");
  const Error thrown = Error::thrown(caught(kLong));
  std::array<std::optional<Error>, 6> kept;
  Error assigned(ErrorKind::torn_down);
  CHECK(allocations_in([&] {
          kept[0].emplace(error);
          kept[1].emplace(error.with_failure(FailureId(7)));
          kept[2].emplace(thrown);
          kept[3].emplace(std::move(*kept[2]));
          kept[4].emplace(ErrorKind::unwritten);
          kept[5].emplace(ErrorKind::skipped, FailureId(9));
          assigned = error;
        }) == 0);
  CHECK(kept[0]->text() == error.text());
  CHECK(kept[1]->text() == error.text());
  CHECK(kept[1]->failure() == FailureId(7));
  CHECK(error.failure() == FailureId{});
  CHECK(assigned.message() == kLong);
}

TEST_CASE("Error: holding an exception allocates nothing, and its text is read when asked") {
  const std::exception_ptr exception = caught(kLong);
  std::optional<Error> error;
  CHECK(allocations_in([&] { error.emplace(Error::thrown(exception)); }) == 0);
  REQUIRE(error.has_value());
  CHECK(error->kind() == ErrorKind::exception);
  CHECK(error->exception() == exception);
  CHECK(error->message() == std::string("An exception was thrown: ") + kLong);
  CHECK_THROWS_WITH_AS(std::rethrow_exception(error->exception()), kLong, std::runtime_error);
}

TEST_CASE("Error: an exception that is no std::exception has a text too") {
  const Error error = Error::thrown(std::make_exception_ptr(42));
  CHECK(error.message() == "An exception was thrown that is no std::exception.");
}

TEST_CASE("Error: context lines stand below the message, newest last") {
  const Error inner(ErrorKind::kernel_failed, "It failed.");
  const Error middle = inner.with_context("While replaying \"decode/8\".");
  const Error outer = middle.with_context("While serving request 3.").with_failure(FailureId(5));
  CHECK(inner.text() == "It failed.");
  CHECK(middle.text() == "It failed.\n  - While replaying \"decode/8\".");
  CHECK(outer.text() ==
        "It failed.\n  - While replaying \"decode/8\".\n  - While serving request 3.");
  CHECK(outer.message() == "It failed.");
  CHECK(outer.kind() == ErrorKind::kernel_failed);
  CHECK(outer.failure() == FailureId(5));
}

TEST_CASE("Error: context goes with an exception and with an error without text of its own") {
  const Error thrown = Error::thrown(caught("boom")).with_context("While drawing.");
  CHECK(thrown.message() == "An exception was thrown: boom");
  CHECK(thrown.text() == "An exception was thrown: boom\n  - While drawing.");
  CHECK(thrown.exception() != nullptr);

  const Error plain = Error(ErrorKind::unwritten).with_context("While reading \"x\".");
  CHECK(plain.text() == "Nobody has written these bytes.\n  - While reading \"x\".");
}

TEST_CASE("Error: one without text of its own is still a sentence, and names its failure") {
  CHECK(Error(ErrorKind::torn_down).message() ==
        "The work that was to write this was begun and has not come back.");
  CHECK(Error(ErrorKind::skipped, FailureId(12)).message() ==
        "The work did not run, because an input carries a failure. (failure 12)");
}

TEST_CASE("Error: every kind has a name of its own") {
  std::set<std::string_view> names;
  int kinds = 0;
  for (; name_of(static_cast<ErrorKind>(kinds)) != "unknown"; ++kinds) {
    names.insert(name_of(static_cast<ErrorKind>(kinds)));
  }
  CHECK(kinds == static_cast<int>(ErrorKind::not_portable) + 1);
  CHECK(names.size() == static_cast<std::size_t>(kinds));
  CHECK(name_of(ErrorKind::kernel_failed) == "kernel_failed");
}

}  // namespace refrain
