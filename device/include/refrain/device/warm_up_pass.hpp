// One pass of a warm-up: the body runs for real, and what it reads and then writes is put back, so
// that no state advances (C20). It hears every scope that its thread opens on the device, on
// whatever stream and for whatever kind of work, because all of them take their claims from
// `Stream::Claims`. Work that a window records does not run, and is none of its business.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "refrain/base/mutex.hpp"
#include "refrain/device/preserved.hpp"
#include "refrain/device/stream_core.hpp"
#include "refrain/scope/lifted_marks.hpp"

namespace refrain {

class Stream;

/// For the thread that makes it, but for `failed`.
class WarmUpPass {
 public:
  /// A pass for `window`, which `stream` opened at `where`. There is one a thread.
  WarmUpPass(Stream& stream, Window& window, Where where) noexcept;
  /// Puts back, also when the body throws.
  ~WarmUpPass();
  WarmUpPass(const WarmUpPass&) = delete;
  WarmUpPass& operator=(const WarmUpPass&) = delete;

  /// The one of this thread, or null.
  [[nodiscard]] static WarmUpPass* of_this_thread() noexcept { return current_; }
  /// The same, if it warms up that device.
  [[nodiscard]] static WarmUpPass* hearing(const DeviceCore& device) noexcept {
    WarmUpPass* const pass = current_;
    return pass != nullptr && &pass->device_ == &device ? pass : nullptr;
  }

  [[nodiscard]] Window& window() const noexcept { return window_; }

  // Before work looks at its inputs, before it claims its outputs, and before these are claimed for
  // what it lacks.
  void about_to_read(StreamCore& on, std::span<const BufferBinding> reads) noexcept;
  void about_to_run(StreamCore& on, const OpenScope& scope) noexcept;
  void about_to_write(StreamCore& on, std::span<const BufferBinding> writes) noexcept;

  /// Work of the pass failed or was skipped; the first is kept. From any thread.
  void failed(StreamId stream, const Error& error) noexcept;
  /// What this thread has just told with `failed` was the failure of an input of this work, which
  /// did not run.
  void skipped(const Skip& skip) noexcept;
  /// The body has come back: waits for its work to end, and says what of it went wrong.
  [[nodiscard]] std::optional<Error> end();

 private:
  void save(StreamCore& on, const BufferBinding& part);
  void hear(StreamCore& on);
  /// The pass could not save what it must put back.
  void lacks(const Error& error) noexcept;
  /// The first thing that went wrong.
  struct Failed {
    Error error;
    StreamId on{};
    std::optional<Skip> skip{};  ///< When the work did not run at all.
    bool state_lost = false;     ///< When it was the pass that could not save a state.
    bool followed = false;       ///< Something else has gone wrong since.
  };
  /// The work that it was, and how it ended, as a sentence.
  [[nodiscard]] std::string described(const Failed& failed) const;

  Stream& stream_;
  const DeviceCore& device_;
  Window& window_;
  Where where_;
  Preserved preserved_;
  LiftedMarks lifted_;
  std::vector<std::shared_ptr<Ledger>> heard_;
  Mutex mutex_;
  std::optional<Failed> failed_ REFRAIN_GUARDED_BY(mutex_);

  static inline thread_local constinit WarmUpPass* current_ = nullptr;
};

}  // namespace refrain
