#include "simcuda/node_params.hpp"

#include <algorithm>
#include <cstring>

#include "simcuda/graph.hpp"

namespace sim {
namespace {

constexpr unsigned kMostBlockX = 1024;
constexpr unsigned kMostBlockZ = 64;
constexpr unsigned kMostGridX = 0x7FFFFFFF;
constexpr unsigned kMostGridYZ = 65535;

/// Overwrites what a caller may still hold a pointer to.
constexpr std::byte kStale{0xDD};

const char* function_now() { return this_thread().function; }

bool fits(const CUDA_KERNEL_NODE_PARAMS_v2& from, const Entry& entry) {
  if (from.gridDimX == 0 || from.gridDimY == 0 || from.gridDimZ == 0) return false;
  if (from.blockDimX == 0 || from.blockDimY == 0 || from.blockDimZ == 0) return false;
  if (from.gridDimX > kMostGridX || from.gridDimY > kMostGridYZ || from.gridDimZ > kMostGridYZ) {
    return false;
  }
  if (from.blockDimX > kMostBlockX || from.blockDimY > kMostBlockX ||
      from.blockDimZ > kMostBlockZ) {
    return false;
  }
  const std::uint64_t threads = std::uint64_t{from.blockDimX} * from.blockDimY * from.blockDimZ;
  return threads <= static_cast<std::uint64_t>(entry.max_threads);
}

bool pack_each(void** pointers, const Entry& entry, std::vector<std::byte>& block) {
  for (std::size_t i = 0; i < entry.parameters.size(); ++i) {
    if (pointers[i] == nullptr) return false;
    const Entry::Parameter& parameter = entry.parameters[i];
    std::memcpy(block.data() + parameter.offset, pointers[i], parameter.size);
  }
  return true;
}

bool pack_extra(void** extra, std::vector<std::byte>& block) {
  const void* bytes = nullptr;
  std::size_t size = 0;
  for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
    if (extra[0] == CU_LAUNCH_PARAM_BUFFER_POINTER) {
      bytes = extra[1];
    } else if (extra[0] == CU_LAUNCH_PARAM_BUFFER_SIZE) {
      size = *static_cast<const std::size_t*>(extra[1]);
    } else {
      return false;
    }
  }
  if (size < block.size()) return false;
  if (!block.empty()) std::memcpy(block.data(), bytes, block.size());
  return true;
}

bool pack(const CUDA_KERNEL_NODE_PARAMS_v2& from, const Entry& entry,
          std::vector<std::byte>& block) {
  if (from.kernelParams != nullptr && from.extra != nullptr) return false;
  block.assign(entry.parameter_bytes, std::byte{0});
  if (from.extra != nullptr) return pack_extra(from.extra, block);
  if (entry.parameters.empty()) return true;
  return from.kernelParams != nullptr && pack_each(from.kernelParams, entry, block);
}

/// One side of a copy.
CUresult check_side(const CUmemorytype& type, const void* host, CUdeviceptr device,
                    const void* reserved, std::size_t row_end, std::size_t pitch, bool rows) {
  if (reserved != nullptr) return CUDA_ERROR_INVALID_VALUE;
  switch (raw(type)) {
    case CU_MEMORYTYPE_HOST:
      if (host == nullptr) return CUDA_ERROR_INVALID_VALUE;
      break;
    case CU_MEMORYTYPE_DEVICE:
    case CU_MEMORYTYPE_UNIFIED:
      if (device == 0) return CUDA_ERROR_INVALID_VALUE;
      break;
    case CU_MEMORYTYPE_ARRAY: return kUnsettled;  // arrays are not simulated
    default: return CUDA_ERROR_INVALID_VALUE;
  }
  return rows && pitch < row_end ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

template <class Member>
bool rest_is_zero(const CUgraphNodeParams& parameters, const Member& member) {
  const auto* begin = reinterpret_cast<const std::byte*>(&member) + sizeof member;
  const auto* end = reinterpret_cast<const std::byte*>(&parameters) + sizeof parameters;
  return std::all_of(begin, end, [](std::byte each) { return each == std::byte{0}; });
}

template <class To, class From>
To as(const From& from) {
  static_assert(sizeof(To) <= sizeof(From));
  To to{};
  std::memcpy(&to, &from, sizeof to);
  return to;
}

}  // namespace

CUresult kernel_work(const CUDA_KERNEL_NODE_PARAMS_v2& from, KernelWork& to) {
  auto* function = find<Function>(from.func, function_now());
  if (function == nullptr) function = find<Function>(from.kern, function_now());
  if (function == nullptr || !fits(from, *function->entry)) return CUDA_ERROR_INVALID_VALUE;
  KernelWork work;
  if (!pack(from, *function->entry, work.arguments)) return CUDA_ERROR_INVALID_VALUE;
  work.function = function;
  work.grid[0] = from.gridDimX;
  work.grid[1] = from.gridDimY;
  work.grid[2] = from.gridDimZ;
  work.block[0] = from.blockDimX;
  work.block[1] = from.blockDimY;
  work.block[2] = from.blockDimZ;
  work.shared_bytes = from.sharedMemBytes;
  work.by_extra = from.extra != nullptr;
  work.attributes = to.attributes;
  work.context = function->code->context;
  if (work.context == nullptr && from.func == nullptr) {
    work.context = find<Context>(from.ctx, function_now());
  }
  if (work.context == nullptr) work.context = &Driver::current();
  to = std::move(work);
  return CUDA_SUCCESS;
}

CUresult copy_work(const CUDA_MEMCPY3D& from, CUcontext context, CopyWork& to) {
  const bool rows = from.Height > 1 || from.Depth > 1;
  CUresult code = check_side(from.srcMemoryType, from.srcHost, from.srcDevice, from.reserved0,
                             from.srcXInBytes + from.WidthInBytes, from.srcPitch, rows);
  if (code != CUDA_SUCCESS) return code;
  code = check_side(from.dstMemoryType, from.dstHost, from.dstDevice, from.reserved1,
                    from.dstXInBytes + from.WidthInBytes, from.dstPitch, rows);
  if (code != CUDA_SUCCESS) return code;
  if (from.srcLOD != 0 || from.dstLOD != 0) return CUDA_ERROR_INVALID_VALUE;
  if (from.WidthInBytes == 0 || from.Height == 0 || from.Depth == 0) return kUnsettled;
  if (context == nullptr) return kUnsettled;
  to.copy = from;
  to.context = find<Context>(context, function_now());
  return CUDA_SUCCESS;
}

CUresult fill_work(const CUDA_MEMSET_NODE_PARAMS& from, CUcontext context, FillWork& to) {
  const unsigned size = from.elementSize;
  if (from.dst == 0 || (size != 1 && size != 2 && size != 4) || from.dst % size != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (from.height > 1 && from.pitch < from.width * size) return CUDA_ERROR_INVALID_VALUE;
  if (from.width == 0 || from.height == 0 || context == nullptr) return kUnsettled;
  to.fill = from;
  to.context = find<Context>(context, function_now());
  return CUDA_SUCCESS;
}

CUresult host_work(const CUDA_HOST_NODE_PARAMS& from, HostWork& to) {
  if (from.fn == nullptr) return CUDA_ERROR_INVALID_VALUE;
  to = {from.fn, from.userData};
  return CUDA_SUCCESS;
}

CUresult record_work(CUevent from, RecordWork& to) {
  to.event = find<Event>(from, function_now());
  return to.event == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult wait_work(CUevent from, WaitWork& to) {
  to.event = find<Event>(from, function_now());
  return to.event == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

bool is_well_formed(const CUgraphNodeParams& parameters) {
  for (const int each : parameters.reserved0) {
    if (each != 0) return false;
  }
  switch (raw(parameters.type)) {
    case CU_GRAPH_NODE_TYPE_KERNEL: return rest_is_zero(parameters, parameters.kernel);
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      return parameters.memcpy.flags == 0 && parameters.memcpy.reserved == 0 &&
             rest_is_zero(parameters, parameters.memcpy);
    case CU_GRAPH_NODE_TYPE_MEMSET: return rest_is_zero(parameters, parameters.memset);
    case CU_GRAPH_NODE_TYPE_HOST: return rest_is_zero(parameters, parameters.host);
    case CU_GRAPH_NODE_TYPE_GRAPH: return rest_is_zero(parameters, parameters.graph);
    case CU_GRAPH_NODE_TYPE_EMPTY:
      return parameters.reserved1[0] == 0 && rest_is_zero(parameters, parameters.reserved1[0]);
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT: return rest_is_zero(parameters, parameters.eventWait);
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD: return rest_is_zero(parameters, parameters.eventRecord);
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC: return rest_is_zero(parameters, parameters.alloc);
    case CU_GRAPH_NODE_TYPE_MEM_FREE: return rest_is_zero(parameters, parameters.free);
    case CU_GRAPH_NODE_TYPE_CONDITIONAL: return rest_is_zero(parameters, parameters.conditional);
    default: return true;
  }
}

CUresult work_of(const CUgraphNodeParams& parameters, Work& to) {
  const auto filled = [&](auto work, const auto& fill) {
    const CUresult code = fill(work);
    if (code == CUDA_SUCCESS) to = std::move(work);
    return code;
  };
  switch (raw(parameters.type)) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
      return filled(KernelWork{}, [&](KernelWork& work) {
        return kernel_work(as<CUDA_KERNEL_NODE_PARAMS_v2>(parameters.kernel), work);
      });
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      return filled(CopyWork{}, [&](CopyWork& work) {
        return copy_work(parameters.memcpy.copyParams, parameters.memcpy.copyCtx, work);
      });
    case CU_GRAPH_NODE_TYPE_MEMSET:
      return filled(FillWork{}, [&](FillWork& work) {
        return fill_work(as<CUDA_MEMSET_NODE_PARAMS>(parameters.memset), parameters.memset.ctx,
                         work);
      });
    case CU_GRAPH_NODE_TYPE_HOST:
      return filled(HostWork{}, [&](HostWork& work) {
        return host_work(as<CUDA_HOST_NODE_PARAMS>(parameters.host), work);
      });
    case CU_GRAPH_NODE_TYPE_EMPTY: to = EmptyWork{}; return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
      return filled(WaitWork{},
                    [&](WaitWork& work) { return wait_work(parameters.eventWait.event, work); });
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
      return filled(RecordWork{}, [&](RecordWork& work) {
        return record_work(parameters.eventRecord.event, work);
      });
    default: return kUnsettled;
  }
}

void replace_work(Node& node, Work work) {
  if (auto* kernel = std::get_if<KernelWork>(&work)) {
    kernel->attributes = std::get<KernelWork>(node.work).attributes;
  }
  std::fill(node.shown_block.begin(), node.shown_block.end(), kStale);
  node.work = std::move(work);
}

CUDA_KERNEL_NODE_PARAMS_v2 shown_kernel(Node& node) {
  const auto& work = std::get<KernelWork>(node.work);
  const Entry& entry = *work.function->entry;
  // Never smaller than before: a caller may still hold the pointers of an earlier call.
  node.shown_block.resize(std::max(node.shown_block.size(), work.arguments.size()));
  std::copy(work.arguments.begin(), work.arguments.end(), node.shown_block.begin());
  CUDA_KERNEL_NODE_PARAMS_v2 shown{};
  if (work.by_extra) {
    node.shown_block_bytes = work.arguments.size();
    node.shown_extra = {CU_LAUNCH_PARAM_BUFFER_POINTER, node.shown_block.data(),
                        CU_LAUNCH_PARAM_BUFFER_SIZE, &node.shown_block_bytes, CU_LAUNCH_PARAM_END};
    shown.extra = node.shown_extra.data();
  } else if (!entry.parameters.empty()) {
    node.shown_arguments.resize(std::max(node.shown_arguments.size(), entry.parameters.size()));
    for (std::size_t i = 0; i < entry.parameters.size(); ++i) {
      node.shown_arguments[i] = node.shown_block.data() + entry.parameters[i].offset;
    }
    shown.kernelParams = node.shown_arguments.data();
  }
  if (work.function->is_kernel) {
    shown.kern = handle_of<CUkernel>(work.function);
  } else {
    shown.func = handle_of<CUfunction>(work.function);
  }
  shown.gridDimX = work.grid[0];
  shown.gridDimY = work.grid[1];
  shown.gridDimZ = work.grid[2];
  shown.blockDimX = work.block[0];
  shown.blockDimY = work.block[1];
  shown.blockDimZ = work.block[2];
  shown.sharedMemBytes = work.shared_bytes;
  shown.ctx = handle_of<CUcontext>(work.context);
  return shown;
}

CUmemorytype memory_kind(const Driver& driver, CUmemorytype type, CUdeviceptr device) {
  if (type != CU_MEMORYTYPE_UNIFIED) return type;
  return driver.memory.is_device(device) ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
}

}  // namespace sim
