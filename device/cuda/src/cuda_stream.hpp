// A stream of a CUDA device. Nobody tells how its work ends: it is asked, and only then a fence is
// put behind what it was given, so that a replay is one driver call. Private to device/cuda.
#pragma once

#include <atomic>
#include <list>
#include <memory>
#include <utility>

#include "context.hpp"
#include "refrain/device/backend.hpp"

namespace refrain::cuda {

/// Memory of the host's that the device copies from and to. For one thread at a time.
class PinnedMemory {
 public:
  static Result<std::unique_ptr<PinnedMemory>> allocate(const std::shared_ptr<Context>& context,
                                                        std::uint64_t bytes);
  PinnedMemory(std::shared_ptr<Context> context, void* memory) noexcept
      : context_(std::move(context)), memory_(memory) {}
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;
  ~PinnedMemory() {
    context_->destroy([memory = memory_](const DriverApi& api) { api.cuMemFreeHost(memory); });
  }
  [[nodiscard]] std::byte* data() const noexcept { return static_cast<std::byte*>(memory_); }

 private:
  std::shared_ptr<Context> context_;
  void* memory_;
};

/// What is known of a stream's work; its events share it. Safe to share.
class StreamProgress {
 public:
  /// The driver has taken the work. By the stream's thread.
  void given(Ticket ticket) noexcept { given_.store(ticket, std::memory_order_release); }
  [[nodiscard]] Ticket given() const noexcept { return given_.load(std::memory_order_acquire); }
  /// All up to `ticket` has ended.
  void ended(Ticket ticket) noexcept;
  [[nodiscard]] Ticket ended() const noexcept { return ended_.load(std::memory_order_acquire); }

 private:
  std::atomic<Ticket> given_{0};
  std::atomic<Ticket> ended_{0};
};

class CudaEvent final : public BackendEvent {
 public:
  static Result<std::unique_ptr<CudaEvent>> create(const std::shared_ptr<Context>& context);
  CudaEvent(std::shared_ptr<Context> context, CUevent handle) noexcept
      : context_(std::move(context)), handle_(handle) {}
  CudaEvent(const CudaEvent&) = delete;
  CudaEvent& operator=(const CudaEvent&) = delete;
  ~CudaEvent() override {
    context_->destroy([handle = handle_](const DriverApi& api) { api.cuEventDestroy_v2(handle); });
  }
  [[nodiscard]] CUevent handle() const noexcept { return handle_; }

  /// It has been recorded behind the work of `progress` up to `through`.
  void stands_behind(std::shared_ptr<StreamProgress> progress, Ticket through) noexcept {
    progress_ = std::move(progress);
    through_ = through;
  }
  /// It was seen to be reached.
  void passed() const noexcept {
    if (progress_) progress_->ended(through_);
  }

 private:
  std::shared_ptr<Context> context_;
  CUevent handle_;
  std::shared_ptr<StreamProgress> progress_;
  Ticket through_ = 0;
};

class CudaStream final : public BackendStream {
 public:
  static Result<std::unique_ptr<CudaStream>> create(const std::shared_ptr<Context>& context,
                                                    Completion& completion);
  /// Over a stream of the program's, which outlives this. Refuses the legacy stream and the one of
  /// each thread, one of another context, and one that is being captured.
  static Result<std::unique_ptr<CudaStream>> adopt(const std::shared_ptr<Context>& context,
                                                   Completion& completion, CUstream handle);
  CudaStream(std::shared_ptr<Context> context, Completion& completion, CUstream handle,
             std::unique_ptr<CudaEvent> fence, bool adopted) noexcept
      : context_(std::move(context)),
        completion_(completion),
        handle_(handle),
        fence_(std::move(fence)),
        adopted_(adopted) {}
  CudaStream(const CudaStream&) = delete;
  CudaStream& operator=(const CudaStream&) = delete;
  ~CudaStream() override;

  [[nodiscard]] bool asynchronous() const noexcept override { return true; }
  [[nodiscard]] bool silent() const noexcept override { return true; }
  Settled settle(Ticket ticket) noexcept override;
  void look() noexcept override;
  [[nodiscard]] bool may_wait() const noexcept override { return !InDriverCallback::here(); }

  [[nodiscard]] CUstream handle() const noexcept { return handle_; }
  [[nodiscard]] Completion& completion() const noexcept { return completion_; }
  [[nodiscard]] const std::shared_ptr<StreamProgress>& progress() const noexcept {
    return progress_;
  }
  /// The driver has taken the work.
  void given(Ticket ticket) noexcept;
  /// Refuses while somebody else is capturing the stream: what is issued would land in their graph.
  [[nodiscard]] Result<void> ours() const noexcept {
    return adopted_ ? not_captured() : Result<void>();
  }
  /// Waits for whatever the driver has of it, also what does not count as given.
  void drain() noexcept;
  /// Keeps `thing` until the work has ended; for good when the device is lost meanwhile, since
  /// nobody knows what the driver does with it then.
  void keep(Ticket ticket, std::shared_ptr<const void> thing);

 private:
  struct Kept {
    Ticket ticket = 0;
    std::shared_ptr<const void> thing;
  };
  [[nodiscard]] Result<void> not_captured() const noexcept;
  /// Puts the fence behind what the driver has of it.
  [[nodiscard]] Result<void> put_fence() noexcept REFRAIN_REQUIRES(fencing_);
  /// Waits for all that has been given.
  void wait() noexcept;
  /// Waits for the fence, with `put` for a new one. Answers whether it was seen to be reached.
  [[nodiscard]] bool pass_fence(bool put) noexcept REFRAIN_REQUIRES(fencing_);
  /// Waits for the stream itself.
  [[nodiscard]] bool synchronize() noexcept REFRAIN_REQUIRES(fencing_);
  void let_go(Ticket through) noexcept;

  std::shared_ptr<Context> context_;
  Completion& completion_;
  CUstream handle_;
  std::unique_ptr<CudaEvent> fence_;
  // Its owner may begin to capture it at any time, and waiting must not touch it then: its fence is
  // put behind each piece of work at once.
  bool adopted_;
  std::shared_ptr<StreamProgress> progress_ = std::make_shared<StreamProgress>();
  Mutex fencing_;                                       // held while one thread waits for the fence
  Ticket looked_for_ REFRAIN_GUARDED_BY(fencing_) = 0;  // the fence is behind that, or further
  Mutex mutex_;
  std::list<Kept> kept_ REFRAIN_GUARDED_BY(mutex_);
};

}  // namespace refrain::cuda
