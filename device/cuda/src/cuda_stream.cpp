#include "cuda_stream.hpp"

#include <algorithm>

#include "driver_error.hpp"

namespace refrain::cuda {

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
    if (!put_fence().ok()) unfenced_ = true;
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
  let_go(progress_->given());
  if (adopted_) return;
  context_->destroy([handle = handle_](const DriverApi& api) { api.cuStreamDestroy_v2(handle); });
}

void CudaStream::wait() noexcept {
  const Lock lock(fencing_);
  const Ticket through = progress_->given();
  if (progress_->ended() < through && pass_fence()) progress_->ended(through);
}

void CudaStream::drain() noexcept {
  const Lock lock(fencing_);
  static_cast<void>(pass_fence());
}

bool CudaStream::pass_fence() noexcept {
  if (context_->lost()) return false;
  const Entered here(*context_);
  const DriverApi& api = context_->api();
  Result<void> passed = adopted_ && !unfenced_ ? Result<void>() : put_fence();
  if (passed.ok()) {
    passed = context_->check(api.cuEventSynchronize(fence_->handle()), "cuEventSynchronize");
  }
  if (passed.ok() || context_->lost()) return passed.ok();
  passed = context_->check(api.cuStreamSynchronize(handle_), "cuStreamSynchronize");
  if (passed.ok()) unfenced_ = false;
  // Nothing may pass for ended that was not seen to end.
  if (!passed.ok() && !context_->lost()) context_->lose(passed.error());
  return passed.ok();
}

Settled CudaStream::settle(Ticket ticket) noexcept {
  context_->sweep();
  if (ticket > progress_->ended()) wait();
  Settled settled;
  settled.through = progress_->ended();
  if (context_->lost()) {
    context_->tell();
    settled.lost = context_->lost_in_flight();
    settled.lost_through = progress_->given();
  }
  let_go(std::max(settled.through, settled.lost_through));
  return settled;
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
