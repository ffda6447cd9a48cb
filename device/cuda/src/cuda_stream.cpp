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
  const Entered here(*context);
  REFRAIN_TRY(here.check(*context));
  CUstream handle = nullptr;
  REFRAIN_TRY(
      context->check(context->api().cuStreamCreateWithPriority(&handle, CU_STREAM_NON_BLOCKING, 0),
                     "cuStreamCreateWithPriority"));
  return std::make_unique<CudaStream>(context, completion, handle, *std::move(fence));
}

CudaStream::~CudaStream() {
  wait();
  let_go(progress_->given());
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
  Result<void> passed =
      context_->check(api.cuEventRecord(fence_->handle(), handle_), "cuEventRecord");
  if (passed.ok()) {
    passed = context_->check(api.cuEventSynchronize(fence_->handle()), "cuEventSynchronize");
  }
  if (passed.ok() || context_->lost()) return passed.ok();
  passed = context_->check(api.cuStreamSynchronize(handle_), "cuStreamSynchronize");
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
