#include "refrain/base/error.hpp"

#include <utility>

namespace refrain {
namespace {

/// What a kind says for itself when an error was made without text.
std::string_view standard_text(ErrorKind kind) noexcept {
  switch (kind) {
    case ErrorKind::torn_down:
      return "The work that was to write this was begun and has not come back.";
    case ErrorKind::skipped: return "The work did not run, because an input carries a failure.";
    case ErrorKind::unwritten: return "Nobody has written these bytes.";
    default: return name_of(kind);
  }
}

std::string text_of(const std::exception_ptr& exception) {
  try {
    std::rethrow_exception(exception);
  } catch (const std::exception& e) {
    return std::string("An exception was thrown: ") + e.what();
  } catch (...) {
    return "An exception was thrown that is no std::exception.";
  }
}

}  // namespace

std::string_view name_of(ErrorKind kind) noexcept {
  switch (kind) {
    case ErrorKind::kernel_failed: return "kernel_failed";
    case ErrorKind::exception: return "exception";
    case ErrorKind::torn_down: return "torn_down";
    case ErrorKind::skipped: return "skipped";
    case ErrorKind::failed_input: return "failed_input";
    case ErrorKind::unordered: return "unordered";
    case ErrorKind::unwritten: return "unwritten";
    case ErrorKind::stale_buffer: return "stale_buffer";
    case ErrorKind::other_device: return "other_device";
    case ErrorKind::constant_written: return "constant_written";
    case ErrorKind::invalid_argument: return "invalid_argument";
    case ErrorKind::kernel_missing: return "kernel_missing";
    case ErrorKind::kernel_signature: return "kernel_signature";
    case ErrorKind::out_of_memory: return "out_of_memory";
    case ErrorKind::device_refused: return "device_refused";
    case ErrorKind::device_poisoned: return "device_poisoned";
    case ErrorKind::driver_missing: return "driver_missing";
    case ErrorKind::driver_stub: return "driver_stub";
    case ErrorKind::driver_too_old: return "driver_too_old";
    case ErrorKind::no_gpu: return "no_gpu";
    case ErrorKind::wrong_state: return "wrong_state";
    case ErrorKind::refused_in_window: return "refused_in_window";
    case ErrorKind::window_doomed: return "window_doomed";
    case ErrorKind::needs_warm_up: return "needs_warm_up";
    case ErrorKind::recorded_nothing: return "recorded_nothing";
    case ErrorKind::not_replayed: return "not_replayed";
    case ErrorKind::busy: return "busy";
    case ErrorKind::unbound: return "unbound";
    case ErrorKind::file_io: return "file_io";
    case ErrorKind::file_foreign: return "file_foreign";
    case ErrorKind::file_version: return "file_version";
    case ErrorKind::file_damaged: return "file_damaged";
    case ErrorKind::file_limit: return "file_limit";
    case ErrorKind::not_portable: return "not_portable";
  }
  return "unknown";
}

Error::Error(ErrorKind kind, std::string message)
    : kind_(kind), body_(std::make_shared<const Body>(Body{std::move(message), {}})) {}

Error Error::thrown(std::exception_ptr exception) noexcept {
  Error error(ErrorKind::exception);
  error.exception_ = std::move(exception);
  return error;
}

std::string Error::message() const {
  if (body_ && !body_->message.empty()) return body_->message;
  if (exception_) return text_of(exception_);
  std::string text(standard_text(kind_));
  if (failure_) text += " (failure " + std::to_string(failure_.number) + ")";
  return text;
}

std::string Error::text() const { return body_ ? message() + body_->context : message(); }

Error Error::with_context(std::string line) const {
  Body body = body_ ? *body_ : Body{};
  body.context += "\n  - " + std::move(line);
  Error copy = *this;
  copy.body_ = std::make_shared<const Body>(std::move(body));
  return copy;
}

Error Error::with_failure(FailureId failure) const noexcept {
  Error copy = *this;
  copy.failure_ = failure;
  return copy;
}

}  // namespace refrain
