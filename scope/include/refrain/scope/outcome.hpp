// What a scope's work did (R1).
#pragma once

#include <utility>
#include <variant>

#include "refrain/base/result.hpp"

namespace refrain {

/// The work did not run, because an input carried `failure`. What it would have written carries
/// that failure now, so reading it tells the story.
struct Skipped {
  FailureId failure;
};

/// `Executed(value)`, `Skipped` or `Failed(error)`. May be dropped: the claim on the write set is
/// the report.
template <class T>
class ScopedOutcome {
 public:
  using Value = std::conditional_t<std::is_void_v<T>, std::monostate, T>;

  static ScopedOutcome executed(Value value = {}) {
    return ScopedOutcome(State(std::in_place_index<0>, std::move(value)));
  }
  ScopedOutcome(Skipped skipped) noexcept : state_(skipped) {}       // NOLINT: `return Skipped{}`
  ScopedOutcome(Error error) noexcept : state_(std::move(error)) {}  // NOLINT: `return error`

  [[nodiscard]] bool executed_cleanly() const noexcept { return state_.index() == 0; }
  [[nodiscard]] bool skipped() const noexcept { return state_.index() == 1; }
  [[nodiscard]] bool failed() const noexcept { return state_.index() == 2; }

  /// What the work answered; the caller knows that it executed.
  [[nodiscard]] const Value& value() const { return std::get<0>(state_); }
  /// The failure that an input carried; the caller knows that it was skipped.
  [[nodiscard]] FailureId failure() const { return std::get<1>(state_).failure; }
  /// The error that it failed with; the caller knows that it failed.
  [[nodiscard]] const Error& error() const { return std::get<2>(state_); }

  /// The value, or an error. A skip is an error kind of its own: it carries the failure's number
  /// and not its text, because the claim on the write set is the report.
  [[nodiscard]] Result<T> into_result() && {
    if (skipped()) return Error(ErrorKind::skipped, failure());
    if (failed()) return std::get<2>(std::move(state_));
    if constexpr (std::is_void_v<T>) {
      return {};
    } else {
      return std::get<0>(std::move(state_));
    }
  }

 private:
  using State = std::variant<Value, Skipped, Error>;
  explicit ScopedOutcome(State state) : state_(std::move(state)) {}

  State state_;
};

}  // namespace refrain
