// What went wrong. An error is made once and may then be carried by thousands of buffers, so it is
// a small handle to an immutable body; copying it never allocates, and text is built only when
// somebody reads it.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <string_view>

#include "refrain/base/ids.hpp"

namespace refrain {

/// What kind of thing went wrong. docs/errors.md says of each what it means and what to do.
enum class ErrorKind : std::uint16_t {
  // Work and its data.
  kernel_failed,  ///< A kernel answered with an error of its own.
  exception,      ///< A body or kernel threw; the error holds the exception.
  torn_down,      ///< Work was begun and has not come back.
  skipped,        ///< Work did not run: an input carries a failure, named by its number.
  failed_input,   ///< A read met bytes that carry a failure; the text tells its story.
  unwritten,      ///< Bytes that nobody has written were read.
  unordered,      ///< Work of two streams uses the same bytes, and nothing orders the two.
  // Handles and arguments.
  stale_buffer,      ///< A handle to memory that is gone.
  other_device,      ///< A handle of another device.
  constant_written,  ///< Work names a constant among what it writes.
  invalid_argument,  ///< A size, shape, range or option that cannot be.
  kernel_missing,    ///< No kernel of that name and version is registered.
  kernel_signature,  ///< A kernel's parameters are not those that were asked for or recorded.
  out_of_memory,     ///< The device has no memory left.
  device_refused,    ///< The device refused a call.
  device_poisoned,   ///< The device failed for good; its memory is lost.
  // The CUDA driver.
  driver_missing,  ///< No driver, or a library that is none.
  driver_stub,     ///< The toolkit's library for linking, which cannot run.
  driver_too_old,  ///< A driver that lacks what was asked for.
  no_gpu,          ///< A driver without a device.
  // The window.
  wrong_state,        ///< A call out of order; nothing has changed.
  refused_in_window,  ///< A call that cannot be recorded; the window goes on.
  window_doomed,      ///< The window cannot seal; the text says what doomed it.
  needs_warm_up,      ///< First-use work that cannot be recorded, or that never settles.
  recorded_nothing,   ///< Nothing was recorded in a window.
  not_replayed,       ///< Bytes that a recording will write, and no replay has written yet.
  // Replay.
  busy,     ///< Used from two threads at once.
  unbound,  ///< A binding that the graph does not have, or that was not given.
  // Files.
  file_io,       ///< The operating system refused a file operation.
  file_foreign,  ///< Not a capture file.
  file_version,  ///< A format or feature that this version does not read.
  file_damaged,  ///< Bytes that do not match their digest, or a structure that cannot be.
  file_limit,    ///< More than the limits allow.
  not_portable,  ///< A graph that cannot be saved; the text lists why.
};

/// The enumerator's name, as in the source.
std::string_view name_of(ErrorKind kind) noexcept;

/// Something that went wrong. A handle to an immutable body; safe to share, cheap to copy.
class Error {
 public:
  Error(ErrorKind kind, std::string message);

  /// An error that needs no text of its own; allocates nothing.
  explicit Error(ErrorKind kind, FailureId failure = {}) noexcept
      : kind_(kind), failure_(failure) {}

  /// Holds what a body threw; its text is read when somebody asks (E4). Allocates nothing.
  static Error thrown(std::exception_ptr exception) noexcept;

  [[nodiscard]] ErrorKind kind() const noexcept { return kind_; }

  /// One or more full sentences, innermost first, without the context lines.
  [[nodiscard]] std::string message() const;

  /// The message and, below it, the context lines, newest last.
  [[nodiscard]] std::string text() const;

  /// The failure that this stems from, if it stems from one.
  [[nodiscard]] FailureId failure() const noexcept { return failure_; }

  /// The exception that a body threw, if that is what this is.
  [[nodiscard]] const std::exception_ptr& exception() const noexcept { return exception_; }

  /// The same error, said to have happened "while ...".
  [[nodiscard]] Error with_context(std::string line) const;

  /// The same error, said to stem from `failure`. Allocates nothing.
  [[nodiscard]] Error with_failure(FailureId failure) const noexcept;

 private:
  struct Body {
    std::string message;
    std::string context;  // lines, each "\n  - ..."
  };

  ErrorKind kind_;
  FailureId failure_;
  std::shared_ptr<const Body> body_;
  std::exception_ptr exception_;
};

}  // namespace refrain
