// What all parts of a CUDA device share: the driver, the context that they work in, and whether
// that context is lost. Private to device/cuda.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "driver_api.hpp"
#include "refrain/base/mutex.hpp"
#include "refrain/base/result.hpp"
#include "refrain/cuda/driver.hpp"

namespace refrain::cuda {

/// Safe to share.
class Context {
 public:
  /// Retains the primary context of device `ordinal`, until this goes.
  static Result<std::shared_ptr<Context>> primary(const Driver& driver, int ordinal);
  /// Works in a context of the program's, which outlives this.
  static Result<std::shared_ptr<Context>> adopt(const Driver& driver, CUcontext context);
  /// For these two.
  Context(Driver driver, CUdevice device, CUcontext handle, bool retained) noexcept
      : driver_(std::move(driver)), device_(device), handle_(handle), retained_(retained) {}
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  [[nodiscard]] const DriverApi& api() const noexcept { return driver_.api(); }
  [[nodiscard]] CUdevice device() const noexcept { return device_; }
  [[nodiscard]] CUcontext handle() const noexcept { return handle_; }
  /// Whether a kernel can start while those before it still run; source: the CUDA C++ programming
  /// guide, "Programmatic Dependent Launch": "from compute capability 9.0".
  [[nodiscard]] bool can_start_early() const noexcept { return compute_major_ >= 9; }
  /// A stream, which unless `flags` say otherwise waits for no other (and so not for the default
  /// stream); the caller destroys it.
  [[nodiscard]] Result<CUstream> create_stream(unsigned flags = CU_STREAM_NON_BLOCKING);

  /// The error of `call`, if `code` is one. A sticky code means that the device is lost.
  Result<void> check(CUresult code, const char* call) noexcept;
  /// The device is lost for a reason of our own.
  Error lose(const Error& cause) noexcept;
  /// Refuses once the device is lost, with the cause.
  [[nodiscard]] Result<void> alive() const;
  [[nodiscard]] bool lost() const noexcept { return lost_.load(std::memory_order_acquire); }
  /// Whether it is lost and no function of the program's runs any more: then none will.
  [[nodiscard]] bool lost_and_quiet() const noexcept {
    return lost_.load() && functions_.load() == 0;
  }
  /// What became of work that was in flight when the device was lost (P12).
  [[nodiscard]] Error lost_in_flight() const;

  void on_lost(std::function<void()> listener);
  /// Calls the listener, once, if the device has been lost. Not with a lock held.
  void tell() noexcept;
  /// The same when `result` is an error.
  template <class T>
  Result<T> told(Result<T> result) noexcept {
    if (!result.ok() && lost()) tell();
    return result;
  }

  /// Calls the driver as `call()`, for work on a stream. Such a call is refused, with nothing
  /// done, where another context is current in this thread, or none: then again with this one.
  template <class Call>
  CUresult attempt(Call&& call) noexcept;

  /// Destroys with `destroy(handle)`: now, or where that may not be done, in a function that the
  /// driver calls, with the next call that may. Not at all when the device is lost.
  void destroy(std::function<void(const DriverApi&)> destroy) noexcept;
  /// Does what was put off.
  void sweep() noexcept;

 private:
  friend class InDriverCallback;
  [[nodiscard]] bool current() const noexcept;

  Result<void> ask_capability();

  Driver driver_;
  int compute_major_ = 0;
  CUdevice device_;
  CUcontext handle_;
  bool retained_;
  std::atomic<bool> lost_{false};
  std::atomic<int> functions_{0};  // of the program's, that are running
  std::atomic<bool> told_{false};
  std::atomic<bool> put_off_any_{false};
  mutable Mutex mutex_;
  std::optional<Error> cause_ REFRAIN_GUARDED_BY(mutex_);
  std::function<void()> listener_ REFRAIN_GUARDED_BY(mutex_);
  std::vector<std::function<void(const DriverApi&)>> put_off_ REFRAIN_GUARDED_BY(mutex_);
};

/// For a function of the program's that the driver calls, where nothing of the driver may be
/// called. It may not run once the device is lost, because what it uses may be gone; while one runs
/// nothing in flight goes.
class InDriverCallback {
 public:
  explicit InDriverCallback(Context& context) noexcept : context_(context) {
    ++depth_;
    context_.functions_.fetch_add(1);  // first: who finds the device lost looks at it next
    may_run_ = !context_.lost_.load();
  }
  InDriverCallback(const InDriverCallback&) = delete;
  InDriverCallback& operator=(const InDriverCallback&) = delete;
  ~InDriverCallback() {
    context_.functions_.fetch_sub(1);
    --depth_;
  }
  [[nodiscard]] bool may_run() const noexcept { return may_run_; }
  [[nodiscard]] static bool here() noexcept { return depth_ != 0; }

 private:
  Context& context_;
  bool may_run_ = false;
  static inline thread_local constinit int depth_ = 0;
};

/// For a block: the context is current in this thread.
class Current {
 public:
  explicit Current(const Context& context) noexcept
      : api_(context.api()), code_(api_.cuCtxPushCurrent_v2(context.handle())) {}
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;
  ~Current() {
    CUcontext popped = nullptr;
    if (code_ == CUDA_SUCCESS) api_.cuCtxPopCurrent_v2(&popped);
  }
  [[nodiscard]] CUresult code() const noexcept { return code_; }

 private:
  const DriverApi& api_;
  CUresult code_;
};

/// The same for calls that a driver holds to be unsafe while some stream is captured (allocating,
/// freeing, loading, asking): refrain knows that they concern no capture, and says so. Calls
/// nothing, and refuses, in a function that the driver calls (E6).
class Entered {
 public:
  explicit Entered(const Context& context) noexcept : api_(context.api()) {
    if (InDriverCallback::here()) return;
    current_.emplace(context);
    exchanged_ = api_.cuThreadExchangeStreamCaptureMode(&mode_) == CUDA_SUCCESS;
  }
  Entered(const Entered&) = delete;
  Entered& operator=(const Entered&) = delete;
  ~Entered() {
    if (exchanged_) api_.cuThreadExchangeStreamCaptureMode(&mode_);
  }
  /// Refuses when the context could not be made current.
  [[nodiscard]] Result<void> check(Context& context) const noexcept {
    if (!current_) return in_callback();
    return context.check(current_->code(), "cuCtxPushCurrent");
  }

 private:
  static Error in_callback() noexcept;

  const DriverApi& api_;
  std::optional<Current> current_;
  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
  bool exchanged_ = false;
};

template <class Call>
CUresult Context::attempt(Call&& call) noexcept {
  const CUresult code = call();
  if (code != CUDA_ERROR_INVALID_CONTEXT && code != CUDA_ERROR_INVALID_HANDLE) return code;
  if (current()) return code;
  const Current here(*this);
  return here.code() == CUDA_SUCCESS ? call() : here.code();
}

}  // namespace refrain::cuda
