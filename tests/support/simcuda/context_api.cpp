// The primary context, other contexts, and which one is current in a thread.
#include <algorithm>

#include "simcuda/context.hpp"
#include "simcuda/device.hpp"
#include "simcuda/export.hpp"
#include "simcuda/graph.hpp"
#include "simcuda/submit.hpp"

namespace sim {
namespace {

struct Limit {
  CUlimit id;
  std::size_t value;
};
constexpr Limit kLimits[] = {{CU_LIMIT_STACK_SIZE, 1024},
                             {CU_LIMIT_PRINTF_FIFO_SIZE, std::size_t{1} << 20U},
                             {CU_LIMIT_MALLOC_HEAP_SIZE, std::size_t{8} << 20U}};

bool are_flags(unsigned flags) {
  const unsigned schedule = flags & CU_CTX_SCHED_MASK;
  const bool one = schedule == CU_CTX_SCHED_AUTO || schedule == CU_CTX_SCHED_SPIN ||
                   schedule == CU_CTX_SCHED_YIELD || schedule == CU_CTX_SCHED_BLOCKING_SYNC;
  return one && (flags & ~static_cast<unsigned>(CU_CTX_FLAGS_MASK)) == 0;
}

CUresult check_device(CUdevice device) {
  return device == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

std::vector<Context*>& stack() { return this_thread().contexts; }

/// A context that is named, or the current one for null; null: none is.
Context* named_or_current(CUcontext handle) {
  if (handle != nullptr) return find<Context>(handle, this_thread().function);
  return stack().empty() ? nullptr : stack().back();
}

}  // namespace
}  // namespace sim

using namespace sim;

SIM_API CUresult CUDAAPI cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  return call({__func__, Needs::initialised}, [&](Driver& driver) -> CUresult {
    if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult code = check_device(device); code != CUDA_SUCCESS) return code;
    if (driver.lost) return kUnsettled;
    if (driver.primary == nullptr) driver.primary = make_context(driver, driver.primary_flags);
    ++driver.primary_references;
    *context = handle_of<CUcontext>(driver.primary);
    return CUDA_SUCCESS;
  });
}

SIM_API CUresult CUDAAPI cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  return call({__func__, Needs::initialised}, [&](Driver& driver) -> CUresult {
    if (const CUresult code = check_device(device); code != CUDA_SUCCESS) return code;
    if (driver.primary_references == 0) return CUDA_ERROR_INVALID_CONTEXT;
    if (driver.primary->error != CUDA_SUCCESS) return kUnsettled;
    if (--driver.primary_references == 0) {
      destroy_context(driver, *driver.primary);
      driver.primary = nullptr;
    }
    return CUDA_SUCCESS;
  });
}

// What is left of handles, and of references, after a reset of a context in use is not established.
SIM_API CUresult CUDAAPI cuDevicePrimaryCtxReset_v2(CUdevice device) {
  return call({__func__, Needs::initialised}, [&](Driver& driver) -> CUresult {
    if (const CUresult code = check_device(device); code != CUDA_SUCCESS) return code;
    return driver.primary == nullptr ? CUDA_SUCCESS : kUnsettled;
  });
}

SIM_API CUresult CUDAAPI cuDevicePrimaryCtxGetState(CUdevice device, unsigned* flags, int* active) {
  return call({__func__, Needs::initialised}, [&](Driver& driver) -> CUresult {
    if (flags == nullptr || active == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult code = check_device(device); code != CUDA_SUCCESS) return code;
    *flags = driver.primary_flags;
    *active = driver.primary != nullptr ? 1 : 0;
    return CUDA_SUCCESS;
  });
}

SIM_API CUresult CUDAAPI cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned flags) {
  return call({__func__, Needs::initialised}, [&](Driver& driver) -> CUresult {
    if (!are_flags(flags)) return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult code = check_device(device); code != CUDA_SUCCESS) return code;
    driver.primary_flags = flags;
    if (driver.primary != nullptr) driver.primary->flags = flags;
    return CUDA_SUCCESS;
  });
}

#if CUDA_VERSION >= 12050
SIM_API CUresult CUDAAPI cuCtxCreate_v4(CUcontext* context, CUctxCreateParams* parameters,
                                        unsigned flags, CUdevice device) {
  return call({__func__, Needs::initialised}, [&](Driver& driver) -> CUresult {
    if (context == nullptr || !are_flags(flags)) return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult code = check_device(device); code != CUDA_SUCCESS) return code;
    if (parameters != nullptr || driver.lost) return kUnsettled;
    Context* made = make_context(driver, flags);
    stack().push_back(made);
    *context = handle_of<CUcontext>(made);
    return CUDA_SUCCESS;
  });
}
#endif

SIM_API CUresult CUDAAPI cuCtxDestroy_v2(CUcontext context) {
  return call({__func__, context, Needs::initialised}, [&](Driver& driver) -> CUresult {
    auto* going = find<Context>(context, this_thread().function);
    if (going == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (going == driver.primary || going->error != CUDA_SUCCESS) return kUnsettled;
    if (going->ending) {
      give_up(this_thread().function, "was given a context that another thread is destroying");
    }
    going->ending = true;
    destroy_context(driver, *going);
    if (!stack().empty() && stack().back() == going) stack().pop_back();
    return CUDA_SUCCESS;
  });
}

SIM_API CUresult CUDAAPI cuCtxPushCurrent_v2(CUcontext context) {
  return call({__func__, context, Needs::initialised}, [&](Driver&) -> CUresult {
    auto* pushed = find<Context>(context, this_thread().function);
    if (pushed == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    stack().push_back(pushed);
    return CUDA_SUCCESS;
  });
}

SIM_API CUresult CUDAAPI cuCtxPopCurrent_v2(CUcontext* context) {
  return call({__func__, Needs::initialised}, [&](Driver&) -> CUresult {
    if (stack().empty()) return CUDA_ERROR_INVALID_CONTEXT;
    if (context != nullptr) *context = handle_of<CUcontext>(stack().back());
    stack().pop_back();
    return CUDA_SUCCESS;
  });
}

// Takes the place of the top of the stack; null only takes it away.
SIM_API CUresult CUDAAPI cuCtxSetCurrent(CUcontext context) {
  return call({__func__, context, Needs::initialised}, [&](Driver&) -> CUresult {
    auto* chosen = find<Context>(context, this_thread().function);
    if (!stack().empty()) stack().pop_back();
    if (chosen != nullptr) stack().push_back(chosen);
    return CUDA_SUCCESS;
  });
}

SIM_API CUresult CUDAAPI cuCtxGetCurrent(CUcontext* context) {
  return call({__func__, Needs::initialised}, [&](Driver&) -> CUresult {
    if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *context = handle_of<CUcontext>(named_or_current(nullptr));
    return CUDA_SUCCESS;
  });
}

SIM_API CUresult CUDAAPI cuCtxGetDevice(CUdevice* device) {
  return call({__func__}, [&](Driver&) -> CUresult {
    if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *device = 0;
    return CUDA_SUCCESS;
  });
}

SIM_API CUresult CUDAAPI cuCtxGetId(CUcontext context, unsigned long long* id) {
  return call({__func__, context, Needs::initialised}, [&](Driver&) -> CUresult {
    if (id == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const Context* asked = named_or_current(context);
    if (asked == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    *id = asked->id;
    return CUDA_SUCCESS;
  });
}

SIM_API CUresult CUDAAPI cuCtxGetApiVersion(CUcontext context, unsigned* version) {
  return call({__func__, context, Needs::initialised}, [&](Driver&) -> CUresult {
    if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (named_or_current(context) == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    *version = 3020;
    return CUDA_SUCCESS;
  });
}

SIM_API CUresult CUDAAPI cuCtxGetFlags(unsigned* flags) {
  return call({__func__}, [&](Driver&) -> CUresult {
    if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *flags = Driver::current().flags;
    return CUDA_SUCCESS;
  });
}

SIM_API CUresult CUDAAPI cuCtxSynchronize() {
  return call({__func__}, [&](Driver& driver) -> CUresult {
    Context& context = Driver::current();
    if (const CUresult code = context_wide(driver, context); code != CUDA_SUCCESS) return code;
    return wait_for_all(driver, context);
  });
}

SIM_API CUresult CUDAAPI cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  return call({__func__}, [&](Driver&) -> CUresult {
    if (least != nullptr) *least = kLeastPriority;
    if (greatest != nullptr) *greatest = kGreatestPriority;
    return CUDA_SUCCESS;
  });
}

SIM_API CUresult CUDAAPI cuCtxGetLimit(std::size_t* value, CUlimit limit) {
  return call({__func__}, [&](Driver&) -> CUresult {
    if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const auto& set = Driver::current().limits;
    if (const auto at = set.find(limit); at != set.end()) {
      *value = at->second;
      return CUDA_SUCCESS;
    }
    for (const Limit& each : kLimits) {
      if (raw(each.id) != raw(limit)) continue;
      *value = each.value;
      return CUDA_SUCCESS;
    }
    return CUDA_ERROR_UNSUPPORTED_LIMIT;
  });
}

SIM_API CUresult CUDAAPI cuCtxSetLimit(CUlimit limit, std::size_t value) {
  return call({__func__}, [&](Driver&) -> CUresult {
    const bool known = std::any_of(std::begin(kLimits), std::end(kLimits),
                                   [&](const Limit& each) { return raw(each.id) == raw(limit); });
    if (!known) return CUDA_ERROR_UNSUPPORTED_LIMIT;
    Driver::current().limits[limit] = value;
    return CUDA_SUCCESS;
  });
}
