// A value or an error. Over tl::expected, which is std::expected for C++20, with two differences:
// a result cannot be dropped without a warning, and asking a failed one for its value throws an
// exception that says what the error was.
#pragma once

#include <exception>
#include <string>
#include <tl/expected.hpp>
#include <type_traits>
#include <utility>

#include "refrain/base/error.hpp"

namespace refrain {

/// Thrown by `Result::value()` when there is none. The library itself never calls that.
class BadResult : public std::exception {
 public:
  explicit BadResult(Error error) : error_(std::move(error)), text_(error_.text()) {}
  [[nodiscard]] const char* what() const noexcept override { return text_.c_str(); }
  [[nodiscard]] const Error& error() const noexcept { return error_; }

 private:
  Error error_;
  std::string text_;
};

/// A `T`, or why there is none.
template <class T>
class [[nodiscard]] Result {
 public:
  Result() requires(std::is_void_v<T>) = default;
  Result(Error error) : expected_(tl::unexpect, std::move(error)) {}  // NOLINT: `return error;`
  template <class U = T>
  requires(!std::is_void_v<T> && std::is_constructible_v<T, U&&> &&
           !std::is_same_v<std::remove_cvref_t<U>, Error> &&
           !std::is_same_v<std::remove_cvref_t<U>, Result>)
      Result(U&& value)  // NOLINT: `return value;`
      : expected_(std::forward<U>(value)) {}

  [[nodiscard]] bool ok() const noexcept { return expected_.has_value(); }
  explicit operator bool() const noexcept { return ok(); }

  /// The value; throws `BadResult` with the error's text when there is none.
  decltype(auto) value() & {
    require();
    if constexpr (!std::is_void_v<T>) return *expected_;
  }
  decltype(auto) value() const& {
    require();
    if constexpr (!std::is_void_v<T>) return *expected_;
  }
  T value() && {
    require();
    if constexpr (!std::is_void_v<T>) return std::move(*expected_);
  }

  /// The value, which the caller knows to be there.
  decltype(auto) operator*() & { return *expected_; }
  decltype(auto) operator*() const& { return *expected_; }
  decltype(auto) operator*() && { return *std::move(expected_); }
  auto operator->() { return expected_.operator->(); }
  auto operator->() const { return expected_.operator->(); }

  /// The error, which the caller knows to be there.
  [[nodiscard]] const Error& error() const& { return expected_.error(); }
  [[nodiscard]] Error error() && { return std::move(expected_).error(); }

 private:
  void require() const {
    if (!ok()) throw BadResult(expected_.error());
  }

  tl::expected<T, Error> expected_;
};

}  // namespace refrain

/// Returns the error of `expression` from the enclosing function, if it has one.
#define REFRAIN_TRY(expression)                             \
  do {                                                      \
    if (auto refrain_try = (expression); !refrain_try.ok()) \
      return ::std::move(refrain_try).error();              \
  } while (false)
