#include "cuda_stream.hpp"

#include <algorithm>
#include <thread>

#include "driver_error.hpp"

namespace refrain::cuda {
namespace {

/// Never frees them: the driver may come back to them.
template <class List>
void leave(List& things) noexcept {
  // Made once and never destroyed; a process without memory for that ends.
  static auto* const kMutex = new Mutex;  // NOLINT
  static auto* const kAll = new List;     // NOLINT
  const Lock lock(*kMutex);
  kAll->splice(kAll->end(), things);
}

}  // namespace

Result<std::unique_ptr<PinnedMemory>> PinnedMemory::allocate(
    const std::shared_ptr<Context>& context, std::uint64_t bytes) {
  const Entered here(*context);
  REFRAIN_TRY(here.check(*context));
  void* memory = nullptr;
  REFRAIN_TRY(context->check(context->api().cuMemHostAlloc(&memory, bytes, 0), "cuMemHostAlloc"));
  return std::make_unique<PinnedMemory>(context, memory);
}

void StreamProgress::ended(Ticket ticket) noexcept {
  Ticket known = ended_.load(std::memory_order_relaxed);
  while (known < ticket &&
         !ended_.compare_exchange_weak(known, ticket, std::memory_order_acq_rel)) {
  }
}

Result<std::unique_ptr<CudaEvent>> CudaEvent::create(const std::shared_ptr<Context>& context) {
  const Entered here(*context);
  REFRAIN_TRY(here.check(*context));
  CUevent handle = nullptr;
  REFRAIN_TRY(context->check(context->api().cuEventCreate(&handle, CU_EVENT_DISABLE_TIMING),
                             "cuEventCreate"));
  return std::make_unique<CudaEvent>(context, handle);
}

Result<std::unique_ptr<CudaStream>> CudaStream::create(const std::shared_ptr<Context>& context,
                                                       Completion& completion) {
  auto fence = CudaEvent::create(context);
  if (!fence.ok()) return std::move(fence).error();
  const Result<CUstream> handle = context->create_stream();
  if (!handle.ok()) return handle.error();
  return std::make_unique<CudaStream>(context, completion, *handle, *std::move(fence), false);
}

Result<std::unique_ptr<CudaStream>> CudaStream::adopt(const std::shared_ptr<Context>& context,
                                                      Completion& completion, CUstream handle) {
  if (handle == nullptr || handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD) {
    return Error(ErrorKind::invalid_argument,
                 "A default stream cannot be adopted: work on it waits for work of all others, or "
                 "is another thread's own. (Make one with cuStreamCreate or cudaStreamCreate.)");
  }
  auto fence = CudaEvent::create(context);
  if (!fence.ok()) return std::move(fence).error();
  const Entered here(*context);
  REFRAIN_TRY(here.check(*context));
  CUcontext of = nullptr;
  REFRAIN_TRY(context->check(context->api().cuStreamGetCtx(handle, &of), "cuStreamGetCtx"));
  if (of != context->handle()) {
    return Error(ErrorKind::other_device, "A stream of another CUDA context cannot be adopted.");
  }
  auto made = std::make_unique<CudaStream>(context, completion, handle, *std::move(fence), true);
  REFRAIN_TRY(made->not_captured());
  return made;
}

Result<void> CudaStream::not_captured() const noexcept {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  REFRAIN_TRY(context_->check(
      context_->attempt([&] { return context_->api().cuStreamIsCapturing(handle_, &status); }),
      "cuStreamIsCapturing"));
  if (status == CU_STREAM_CAPTURE_STATUS_NONE) return {};
  return Error(ErrorKind::wrong_state,
               "The program's stream is being captured by somebody else, so work that is issued "
               "to it would not run but become part of their graph. (End that capture first.)");
}

void CudaStream::given(Ticket ticket) noexcept {
  if (adopted_) {
    const Lock lock(fencing_);
    // Nobody captures it now, and later somebody may: so it is waited for now if need be.
    if (!put_fence().ok()) static_cast<void>(synchronize());
  }
  progress_->given(ticket);
}

Result<void> CudaStream::put_fence() noexcept {
  return context_->check(
      context_->attempt([&] { return context_->api().cuEventRecord(fence_->handle(), handle_); }),
      "cuEventRecord");
}

CudaStream::~CudaStream() {
  wait();
  // Its work counts as ended now, and a function that still runs is part of that.
  while (context_->lost() && !context_->lost_and_quiet() && !InDriverCallback::here()) {
    std::this_thread::yield();
  }
  let_go(progress_->ended());
  if (context_->lost()) leave(kept_);
  if (adopted_) return;
  context_->destroy([handle = handle_](const DriverApi& api) { api.cuStreamDestroy_v2(handle); });
}

void CudaStream::wait() noexcept {
  const Lock lock(fencing_);
  const Ticket through = progress_->given();
  if (progress_->ended() < through && pass_fence(!adopted_)) progress_->ended(through);
}

void CudaStream::drain() noexcept {
  const Lock lock(fencing_);
  static_cast<void>(pass_fence(true));
}

bool CudaStream::pass_fence(bool put) noexcept {
  if (context_->lost()) return false;
  const Entered here(*context_);
  const auto reached = [&] {
    return context_
        ->check(context_->api().cuEventSynchronize(fence_->handle()), "cuEventSynchronize")
        .ok();
  };
  if ((!put || put_fence().ok()) && reached()) return true;
  // A stream of the program's may be captured by now, and is not touched then: once more the fence.
  return !put && reached() ? true : synchronize();
}

bool CudaStream::synchronize() noexcept {
  if (context_->lost()) return false;
  const Entered here(*context_);
  const Result<void> passed =
      context_->check(context_->api().cuStreamSynchronize(handle_), "cuStreamSynchronize");
  // Nothing may pass for ended that was not seen to end.
  if (!passed.ok() && !context_->lost()) context_->lose(passed.error());
  return passed.ok();
}

Settled CudaStream::settle(Ticket ticket) noexcept {
  context_->sweep();
  if (ticket > progress_->ended()) wait();
  Settled settled;
  settled.through = progress_->ended();
  if (context_->lost()) context_->tell();
  if (context_->lost_and_quiet()) {
    settled.lost = context_->lost_in_flight();
    settled.lost_through = progress_->given();
  }
  let_go(settled.through);
  return settled;
}

void CudaStream::look() noexcept {
  if (context_->lost() || !fencing_.try_lock()) return;  // who waits for the fence finds out more
  const Entered here(*context_);
  const Ticket given = progress_->given();
  if (adopted_) looked_for_ = given;
  if (looked_for_ != 0) {
    const CUresult code = context_->api().cuEventQuery(fence_->handle());
    if (code != CUDA_ERROR_NOT_READY && context_->check(code, "cuEventQuery").ok()) {
      progress_->ended(std::exchange(looked_for_, 0));
    }
  }
  if (!adopted_ && looked_for_ == 0 && put_fence().ok()) looked_for_ = given;
  fencing_.unlock();
}

void CudaStream::keep(Ticket ticket, std::shared_ptr<const void> thing) {
  const Lock lock(mutex_);
  kept_.push_back({ticket, std::move(thing)});
}

void CudaStream::let_go(Ticket through) noexcept {
  std::list<Kept> gone;
  const Lock lock(mutex_);
  auto end = kept_.begin();
  while (end != kept_.end() && end->ticket <= through) ++end;
  gone.splice(gone.end(), kept_, kept_.begin(), end);
}

}  // namespace refrain::cuda
