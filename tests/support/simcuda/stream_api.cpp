// Streams: made, asked, waited for and destroyed. What a stream in a capture answers is told by
// capture.hpp.
#include <algorithm>

#include "simcuda/capture.hpp"
#include "simcuda/device.hpp"
#include "simcuda/export.hpp"
#include "simcuda/graph.hpp"

namespace sim {
namespace {

/// Destroyed streams stay in their context's list while their work may still have to be waited for
/// by the legacy stream.
void forget_ended(Context& context) {
  std::erase_if(context.streams, [](const Stream* each) {
    return each->destroyed_by != nullptr && (each->last == nullptr || each->last->done);
  });
}

CUresult create(Driver& driver, CUstream* stream, unsigned flags, int priority) {
  if (stream == nullptr || (flags & ~static_cast<unsigned>(CU_STREAM_NON_BLOCKING)) != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (const CUresult code = perhaps_unsafe(driver); code != CUDA_SUCCESS) return code;
  Context& context = Driver::current();
  forget_ended(context);
  auto* made = make<Stream>();
  made->context = &context;
  made->flags = flags;
  made->priority = std::clamp(priority, kGreatestPriority, kLeastPriority);
  made->id = ++driver.last_id;
  context.streams.push_back(made);
  *stream = handle_of<CUstream>(made);
  return CUDA_SUCCESS;
}

/// What must have ended for a stream to be ready: for the legacy stream also the work of the
/// blocking streams, which everything that is asked of it comes after.
std::vector<std::shared_ptr<Op>> unfinished(Stream& stream) {
  if (stream.legacy) return predecessors(stream);
  if (stream.last == nullptr || stream.last->done) return {};
  return {stream.last};
}

/// Whether an attribute is one that a stream keeps; what the others do is not simulated.
bool is_kept(CUstreamAttrID attribute) {
  const int id = raw(attribute);
  return id == CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY ||
         id == CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW;
}

CUresult run_callback(Driver& driver, const Context& context, CUstream stream,
                      CUstreamCallback callback, void* user) {
  CUresult status = CUDA_SUCCESS;
  {
    const std::lock_guard lock(driver.mutex);
    status = context.error;
  }
  this_thread().in_host_function = true;
  callback(stream, status, user);
  this_thread().in_host_function = false;
  return CUDA_SUCCESS;
}

}  // namespace
}  // namespace sim

using namespace sim;

SIM_API CUresult CUDAAPI cuStreamCreate(CUstream* stream, unsigned flags) {
  return call({__func__}, [&](Driver& driver) { return create(driver, stream, flags, 0); });
}

SIM_API CUresult CUDAAPI cuStreamCreateWithPriority(CUstream* stream, unsigned flags,
                                                    int priority) {
  return call({__func__}, [&](Driver& driver) { return create(driver, stream, flags, priority); });
}

// Work in flight goes on; only the handle is gone.
SIM_API CUresult CUDAAPI cuStreamDestroy_v2(CUstream handle) {
  return call({__func__, handle}, [&](Driver& driver) -> CUresult {
    Stream& stream = stream_of(driver, handle);
    if (stream.legacy) return kUnsettled;
    if (const CUresult code = before_stream_destroy(stream); code != CUDA_SUCCESS) return code;
    destroy(stream, this_thread().function);
    forget_ended(*stream.context);
    return CUDA_SUCCESS;
  });
}

SIM_API CUresult CUDAAPI cuStreamSynchronize(CUstream handle) {
  return call({__func__, handle}, [&](Driver& driver) -> CUresult {
    Stream& stream = stream_of(driver, handle);
    if (const CUresult code = before_stream_sync(driver, stream); code != CUDA_SUCCESS) return code;
    Context& context = *stream.context;
    for (const auto& op : unfinished(stream)) {
      if (const CUresult code = wait_for(driver, context, op); code != CUDA_SUCCESS) return code;
    }
    return CUDA_SUCCESS;
  });
}

SIM_API CUresult CUDAAPI cuStreamQuery(CUstream handle) {
  return call({__func__, handle}, [&](Driver& driver) -> CUresult {
    Stream& stream = stream_of(driver, handle);
    if (const CUresult code = before_stream_sync(driver, stream); code != CUDA_SUCCESS) return code;
    return unfinished(stream).empty() ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
  });
}

SIM_API CUresult CUDAAPI cuStreamWaitEvent(CUstream handle, CUevent event_handle, unsigned flags) {
  return call({__func__, handle}, [&](Driver& driver) -> CUresult {
    if (event_handle == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if ((flags & ~static_cast<unsigned>(CU_EVENT_WAIT_EXTERNAL)) != 0) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    Stream& stream = stream_of(driver, handle);
    auto& event = *find<Event>(event_handle, this_thread().function);
    const Override planned = this_thread().override_;
    if (planned == Override::no_node) return CUDA_SUCCESS;
    if (stream.legacy) {
      const CUresult code = enter_legacy(driver, *stream.context);
      if (code != CUDA_SUCCESS) return code;
    }
    if (planned != Override::runs_now) {
      if (const auto answer = capture_wait(driver, stream, event, flags)) return *answer;
    }
    if (event.recorded == nullptr && !driver.has_bug("wait-sees-later-record")) {
      return CUDA_SUCCESS;
    }
    const auto op = enqueue(driver, stream, {}, {event.recorded});
    if (driver.has_bug("wait-sees-later-record")) event.waits.push_back(op);
    return CUDA_SUCCESS;
  });
}

SIM_API CUresult CUDAAPI cuStreamGetFlags(CUstream handle, unsigned* flags) {
  return call({__func__, handle}, [&](Driver& driver) -> CUresult {
    if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *flags = stream_of(driver, handle).flags;
    return CUDA_SUCCESS;
  });
}

SIM_API CUresult CUDAAPI cuStreamGetPriority(CUstream handle, int* priority) {
  return call({__func__, handle}, [&](Driver& driver) -> CUresult {
    if (priority == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *priority = stream_of(driver, handle).priority;
    return CUDA_SUCCESS;
  });
}

SIM_API CUresult CUDAAPI cuStreamGetCtx(CUstream handle, CUcontext* context) {
  return call({__func__, handle}, [&](Driver& driver) -> CUresult {
    if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *context = handle_of<CUcontext>(stream_of(driver, handle).context);
    return CUDA_SUCCESS;
  });
}

SIM_API CUresult CUDAAPI cuStreamGetId(CUstream handle, unsigned long long* id) {
  return call({__func__, handle}, [&](Driver& driver) -> CUresult {
    if (id == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *id = stream_of(driver, handle).id;
    return CUDA_SUCCESS;
  });
}

#if CUDA_VERSION >= 12080
SIM_API CUresult CUDAAPI cuStreamGetDevice(CUstream handle, CUdevice* device) {
  return call({__func__, handle}, [&](Driver& driver) -> CUresult {
    if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
    static_cast<void>(stream_of(driver, handle));
    *device = 0;
    return CUDA_SUCCESS;
  });
}
#endif

SIM_API CUresult CUDAAPI cuStreamGetAttribute(CUstream handle, CUstreamAttrID attribute,
                                              CUstreamAttrValue* value) {
  return call({__func__, handle}, [&](Driver& driver) -> CUresult {
    if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const Stream& stream = stream_of(driver, handle);
    CUstreamAttrValue found{};
    if (raw(attribute) == CU_STREAM_ATTRIBUTE_PRIORITY) {
      found.priority = stream.priority;
    } else if (!is_kept(attribute)) {
      return kUnsettled;
    } else if (const auto at = stream.attributes.find(attribute); at != stream.attributes.end()) {
      found = at->second;
    } else if (raw(attribute) == CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY) {
      found.syncPolicy = CU_SYNC_POLICY_AUTO;
    }
    *value = found;
    return CUDA_SUCCESS;
  });
}

SIM_API CUresult CUDAAPI cuStreamSetAttribute(CUstream handle, CUstreamAttrID attribute,
                                              const CUstreamAttrValue* value) {
  return call({__func__, handle}, [&](Driver& driver) -> CUresult {
    if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Stream& stream = stream_of(driver, handle);
    if (!is_kept(attribute)) return kUnsettled;
    stream.attributes[attribute] = *value;
    return CUDA_SUCCESS;
  });
}

SIM_API CUresult CUDAAPI cuStreamCopyAttributes(CUstream to, CUstream from) {
  return call({__func__, to}, [&](Driver& driver) -> CUresult {
    stream_of(driver, to).attributes = stream_of(driver, from).attributes;
    return CUDA_SUCCESS;
  });
}

SIM_API CUresult CUDAAPI cuStreamAddCallback(CUstream handle, CUstreamCallback callback, void* user,
                                             unsigned flags) {
  return call({__func__, handle}, [&](Driver& driver) -> CUresult {
    if (callback == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    Stream& stream = stream_of(driver, handle);
    if (const CUresult code = refuse_in_capture(stream); code != CUDA_SUCCESS) return code;
    Context& context = *stream.context;
    if (stream.legacy) {
      if (const CUresult code = enter_legacy(driver, context); code != CUDA_SUCCESS) return code;
    }
    enqueue(
        driver, stream,
        [&driver, &context, handle, callback, user] {
          return run_callback(driver, context, handle, callback, user);
        },
        {}, true);
    return CUDA_SUCCESS;
  });
}
