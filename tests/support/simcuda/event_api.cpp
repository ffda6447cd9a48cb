// Events: a place in a stream that can be asked, waited for and timed.
#include <algorithm>
#include <chrono>

#include "simcuda/capture.hpp"
#include "simcuda/export.hpp"

namespace sim {
namespace {

CUresult record(Driver& driver, CUevent event_handle, CUstream stream_handle, unsigned flags) {
  if (event_handle == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if ((flags & ~static_cast<unsigned>(CU_EVENT_RECORD_EXTERNAL)) != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  auto& event = *find<Event>(event_handle, this_thread().function);
  Stream& stream = stream_of(driver, stream_handle);
  if (event.context != stream.context) return CUDA_ERROR_INVALID_HANDLE;
  const Override planned = this_thread().override_;
  if (planned == Override::no_node) return CUDA_SUCCESS;
  if (stream.legacy) {
    if (const CUresult code = enter_legacy(driver, *stream.context); code != CUDA_SUCCESS) {
      return code;
    }
  }
  if (planned != Override::runs_now) {
    if (const auto answer = capture_record(driver, stream, event, flags)) return *answer;
  }
  event.recorded = enqueue(driver, stream, {});
  // The bug "wait-sees-later-record", without which no event keeps its waits.
  for (const auto& wait : event.waits) {
    if (!wait->done) wait->after.assign(1, event.recorded);
  }
  return CUDA_SUCCESS;
}

/// Whether time can be taken from an event: made for it, and recorded.
bool is_timed(const Event& event) {
  return (event.flags & CU_EVENT_DISABLE_TIMING) == 0 && event.recorded != nullptr;
}

}  // namespace
}  // namespace sim

using namespace sim;

SIM_API CUresult CUDAAPI cuEventCreate(CUevent* event, unsigned flags) {
  return call({__func__}, [&](Driver& driver) -> CUresult {
    constexpr unsigned kKnown =
        CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;
    if (event == nullptr || (flags & ~kKnown) != 0) return CUDA_ERROR_INVALID_VALUE;
    if ((flags & CU_EVENT_INTERPROCESS) != 0) {
      const bool timed = (flags & CU_EVENT_DISABLE_TIMING) == 0;
      return timed ? CUDA_ERROR_INVALID_VALUE : kUnsettled;
    }
    if (const CUresult code = perhaps_unsafe(driver); code != CUDA_SUCCESS) return code;
    Context& context = Driver::current();
    std::erase_if(context.events, [](const Event* each) { return each->destroyed_by != nullptr; });
    auto* made = make<Event>();
    made->context = &context;
    made->flags = flags;
    context.events.push_back(made);
    *event = handle_of<CUevent>(made);
    return CUDA_SUCCESS;
  });
}

// What waits for it waits on; only the handle is gone.
SIM_API CUresult CUDAAPI cuEventDestroy_v2(CUevent handle) {
  return call({__func__, handle}, [&](Driver&) -> CUresult {
    auto* event = find<Event>(handle, this_thread().function);
    if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    destroy(*event, this_thread().function);
    return CUDA_SUCCESS;
  });
}

SIM_API CUresult CUDAAPI cuEventRecord(CUevent event, CUstream stream) {
  return call({__func__, stream}, [&](Driver& driver) { return record(driver, event, stream, 0); });
}

SIM_API CUresult CUDAAPI cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned flags) {
  return call({__func__, stream},
              [&](Driver& driver) { return record(driver, event, stream, flags); });
}

SIM_API CUresult CUDAAPI cuEventQuery(CUevent handle) {
  return call({__func__, handle}, [&](Driver& driver) -> CUresult {
    auto* event = find<Event>(handle, this_thread().function);
    if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (const CUresult code = before_event_sync(driver, *event); code != CUDA_SUCCESS) return code;
    if (event->recorded == nullptr) {
      return driver.has_bug("event-query-never-recorded") ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
    }
    return event->recorded->done ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
  });
}

SIM_API CUresult CUDAAPI cuEventSynchronize(CUevent handle) {
  return call({__func__, handle}, [&](Driver& driver) -> CUresult {
    auto* event = find<Event>(handle, this_thread().function);
    if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (const CUresult code = before_event_sync(driver, *event); code != CUDA_SUCCESS) return code;
    return wait_for(driver, *event->context, event->recorded);
  });
}

SIM_API CUresult CUDAAPI cuEventElapsedTime(float* milliseconds, CUevent start, CUevent end) {
  return call({__func__, start}, [&](Driver&) -> CUresult {
    if (milliseconds == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const auto* first = find<Event>(start, this_thread().function);
    const auto* second = find<Event>(end, this_thread().function);
    if (first == nullptr || second == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    for (const Event* each : {first, second}) {
      if (const CUresult code = before_event_time(*each); code != CUDA_SUCCESS) return code;
      if (!is_timed(*each)) return CUDA_ERROR_INVALID_HANDLE;
    }
    if (!first->recorded->done || !second->recorded->done) return CUDA_ERROR_NOT_READY;
    *milliseconds =
        std::chrono::duration<float, std::milli>(second->recorded->ended - first->recorded->ended)
            .count();
    return CUDA_SUCCESS;
  });
}
