// A result holds a value or an error, says so, and cannot be used as if it held the other one.
#include "refrain/base/result.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <type_traits>

namespace refrain {
namespace {

Error refused(const char* why) { return Error(ErrorKind::invalid_argument, why); }

Result<int> half(int number) {
  if (number % 2 != 0) return refused("The number (3) is odd.");
  return number / 2;
}

Result<std::string> quarter(int number) {
  REFRAIN_TRY(half(number));
  REFRAIN_TRY(half(number / 2));
  return std::to_string(number / 4);
}

Result<void> only_even(int number) {
  REFRAIN_TRY(half(number));
  return {};
}

template <class From, class To>
constexpr bool kBecomes = std::is_convertible_v<From, To>;

// What a result promises through its type.
static_assert(kBecomes<Error, Result<int>>);
static_assert(kBecomes<int, Result<int>>);
static_assert(kBecomes<const char*, Result<std::string>>);
static_assert(!kBecomes<Result<int>, bool>, "a failed result must not pass for false");
static_assert(!kBecomes<Result<int>, int>);
static_assert(!std::is_default_constructible_v<Result<int>>, "a result of nothing says nothing");
static_assert(std::is_default_constructible_v<Result<void>>);
static_assert(!std::is_copy_constructible_v<Result<std::unique_ptr<int>>>);
static_assert(std::is_nothrow_move_constructible_v<Result<std::unique_ptr<int>>>);
static_assert(std::is_same_v<decltype(std::declval<Result<int>&>().value()), int&>);
static_assert(std::is_same_v<decltype(std::declval<const Result<int>&>().value()), const int&>);
static_assert(std::is_same_v<decltype(std::declval<Result<int>>().value()), int>);
static_assert(std::is_void_v<decltype(std::declval<Result<void>&>().value())>);
static_assert(std::is_void_v<decltype(std::declval<const Result<void>&>().value())>);
static_assert(std::is_void_v<decltype(std::declval<Result<void>>().value())>);

}  // namespace

TEST_CASE("Result: a value is there and can be taken") {
  Result<int> result = half(8);
  REQUIRE(result.ok());
  CHECK(static_cast<bool>(result));
  CHECK(*result == 4);
  CHECK(result.value() == 4);
  *result = 5;
  CHECK(result.value() == 5);

  Result<std::unique_ptr<int>> owner = std::make_unique<int>(7);
  REQUIRE(owner.ok());
  CHECK(*owner.value() == 7);
  const std::unique_ptr<int> taken = *std::move(owner);
  CHECK(*taken == 7);

  Result<std::string> text = "hello";
  REQUIRE(text.ok());
  CHECK(text->size() == 5);
  CHECK(std::move(text).value() == "hello");
}

TEST_CASE("Result: an error is there and can be taken") {
  Result<int> result = half(3);
  REQUIRE_FALSE(result.ok());
  CHECK_FALSE(static_cast<bool>(result));
  CHECK(result.error().kind() == ErrorKind::invalid_argument);
  CHECK(result.error().message() == "The number (3) is odd.");
  const Error taken = std::move(result).error();
  CHECK(taken.message() == "The number (3) is odd.");
}

TEST_CASE("Result: value() of a failed one throws what the error says, context and all") {
  const Result<int> result = refused("It is odd.").with_context("While halving \"n\".");
  REQUIRE_FALSE(result.ok());
  try {
    static_cast<void>(result.value());
    FAIL("value() returned");
  } catch (const BadResult& bad) {
    CHECK(std::string(bad.what()) == "It is odd.\n  - While halving \"n\".");
    CHECK(bad.error().kind() == ErrorKind::invalid_argument);
  }
}

TEST_CASE("Result: one that holds nothing still holds an error") {
  Result<void> good;
  REQUIRE(good.ok());
  CHECK_NOTHROW(good.value());
  CHECK_NOTHROW(std::as_const(good).value());
  CHECK_NOTHROW(std::move(good).value());

  Result<void> bad = refused("No.");
  REQUIRE_FALSE(bad.ok());
  CHECK(bad.error().message() == "No.");
  CHECK_THROWS_AS(bad.value(), BadResult);
  CHECK_THROWS_AS(std::as_const(bad).value(), BadResult);
  CHECK_THROWS_AS(std::move(bad).value(), BadResult);
}

TEST_CASE("Result: REFRAIN_TRY returns the first error and goes on otherwise") {
  const Result<std::string> good = quarter(8);
  REQUIRE(good.ok());
  CHECK(*good == "2");

  const Result<std::string> first = quarter(3);
  REQUIRE_FALSE(first.ok());
  CHECK(first.error().message() == "The number (3) is odd.");
  const Result<std::string> second = quarter(6);
  REQUIRE_FALSE(second.ok());
  CHECK(second.error().kind() == ErrorKind::invalid_argument);

  CHECK(only_even(2).ok());
  const Result<void> odd = only_even(3);
  REQUIRE_FALSE(odd.ok());
  CHECK(odd.error().message() == "The number (3) is odd.");
}

TEST_CASE("Result: REFRAIN_TRY evaluates its expression once") {
  int calls = 0;
  const auto count = [&]() -> Result<void> {
    ++calls;
    return {};
  };
  const auto twice = [&]() -> Result<void> {
    if (calls < 0)
      REFRAIN_TRY(count());  // one statement, also without braces
    else
      REFRAIN_TRY(count());
    REFRAIN_TRY(count());
    return {};
  };
  CHECK(twice().ok());
  CHECK(calls == 2);
}

}  // namespace refrain
