// Launches of kernels and of functions of the host.
#include <algorithm>
#include <vector>

#include "simcuda/capture.hpp"
#include "simcuda/code.hpp"
#include "simcuda/device.hpp"
#include "simcuda/export.hpp"
#include "simcuda/graph.hpp"
#include "simcuda/node_params.hpp"

namespace sim {
namespace {

CUresult check_attributes(const CUlaunchAttribute* attributes, unsigned count, bool captures) {
  if (count != 0 && attributes == nullptr) return CUDA_ERROR_INVALID_VALUE;
  for (unsigned i = 0; i < count; ++i) {
    switch (raw(attributes[i].id)) {
      case CU_LAUNCH_ATTRIBUTE_IGNORE:
      case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
      case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
      case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
      case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
      case CU_LAUNCH_ATTRIBUTE_PRIORITY:
      case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
      case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
      case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN: break;
      case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
      case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
        // In a capture these become edges; that is for the capture to answer.
        if (!captures) return kUnsettled;
        break;
      default: return kUnsettled;
    }
  }
  return CUDA_SUCCESS;
}

/// A cluster must divide the grid, and eight blocks are what every device of its kind takes.
CUresult check_cluster(const KernelWork& work) {
  for (const CUlaunchAttribute& each : work.attributes) {
    if (each.id != CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) continue;
    const auto& cluster = each.value.clusterDim;
    if (cluster.x == 0 || cluster.y == 0 || cluster.z == 0) return CUDA_ERROR_INVALID_VALUE;
    if (work.grid[0] % cluster.x != 0 || work.grid[1] % cluster.y != 0 ||
        work.grid[2] % cluster.z != 0) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    if (std::uint64_t{cluster.x} * cluster.y * cluster.z > 8) return kUnsettled;
  }
  return CUDA_SUCCESS;
}

/// All blocks of a cooperative launch are on the device at once.
CUresult check_cooperative(const KernelWork& work) {
  const bool cooperative = std::any_of(
      work.attributes.begin(), work.attributes.end(), [](const CUlaunchAttribute& each) {
        return each.id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE && each.value.cooperative != 0;
      });
  if (!cooperative) return CUDA_SUCCESS;
  const std::uint64_t blocks = std::uint64_t{work.grid[0]} * work.grid[1] * work.grid[2];
  const std::uint64_t threads = std::uint64_t{work.block[0]} * work.block[1] * work.block[2];
  const std::uint64_t at_once =
      std::min<std::uint64_t>(kMultiprocessorThreads / threads, kMultiprocessorBlocks) *
      kMultiprocessors;
  return blocks > at_once ? CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE : CUDA_SUCCESS;
}

CUresult check_shared(const KernelWork& work) {
  int most = 0;
  const CUresult code =
      get_attribute(*work.function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, &most);
  if (code != CUDA_SUCCESS) return code;
  return work.shared_bytes > static_cast<unsigned>(most) ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult launch(Driver& driver, const CUlaunchConfig& config, CUfunction function,
                void** parameters, void** extra) {
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  Stream& stream = stream_of(driver, config.hStream);
  CUresult code = check_attributes(config.attrs, config.numAttrs, captures(stream));
  if (code != CUDA_SUCCESS) return code;

  CUDA_KERNEL_NODE_PARAMS_v2 given{};
  given.func = function;
  given.gridDimX = config.gridDimX;
  given.gridDimY = config.gridDimY;
  given.gridDimZ = config.gridDimZ;
  given.blockDimX = config.blockDimX;
  given.blockDimY = config.blockDimY;
  given.blockDimZ = config.blockDimZ;
  given.sharedMemBytes = config.sharedMemBytes;
  given.kernelParams = parameters;
  given.extra = extra;
  KernelWork work;
  work.attributes.assign(config.attrs, config.attrs + config.numAttrs);
  code = kernel_work(given, work);
  if (code == CUDA_SUCCESS) code = check_shared(work);
  if (code == CUDA_SUCCESS) code = check_cluster(work);
  if (code == CUDA_SUCCESS) code = check_cooperative(work);
  return code == CUDA_SUCCESS ? submit(driver, stream, std::move(work)) : code;
}

CUlaunchConfig configuration(const unsigned (&grid)[3], const unsigned (&block)[3], unsigned shared,
                             CUstream stream) {
  CUlaunchConfig config{};
  config.gridDimX = grid[0];
  config.gridDimY = grid[1];
  config.gridDimZ = grid[2];
  config.blockDimX = block[0];
  config.blockDimY = block[1];
  config.blockDimZ = block[2];
  config.sharedMemBytes = shared;
  config.hStream = stream;
  return config;
}

}  // namespace
}  // namespace sim

using namespace sim;

SIM_API CUresult CUDAAPI cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y,
                                        unsigned grid_z, unsigned block_x, unsigned block_y,
                                        unsigned block_z, unsigned shared_bytes, CUstream stream,
                                        void** parameters, void** extra) {
  return call({__func__, function}, [&](Driver& driver) -> CUresult {
    const CUlaunchConfig config =
        configuration({grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes, stream);
    return launch(driver, config, function, parameters, extra);
  });
}

SIM_API CUresult CUDAAPI cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function,
                                          void** parameters, void** extra) {
  return call({__func__, function}, [&](Driver& driver) -> CUresult {
    if (config == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return launch(driver, *config, function, parameters, extra);
  });
}

SIM_API CUresult CUDAAPI cuLaunchCooperativeKernel(CUfunction function, unsigned grid_x,
                                                   unsigned grid_y, unsigned grid_z,
                                                   unsigned block_x, unsigned block_y,
                                                   unsigned block_z, unsigned shared_bytes,
                                                   CUstream stream, void** parameters) {
  return call({__func__, function}, [&](Driver& driver) -> CUresult {
    CUlaunchConfig config =
        configuration({grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes, stream);
    CUlaunchAttribute cooperative{};
    cooperative.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
    cooperative.value.cooperative = 1;
    config.attrs = &cooperative;
    config.numAttrs = 1;
    return launch(driver, config, function, parameters, nullptr);
  });
}

SIM_API CUresult CUDAAPI cuLaunchHostFunc(CUstream stream, CUhostFn function, void* user) {
  return call({__func__, stream}, [&](Driver& driver) -> CUresult {
    if (function == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return submit(driver, stream_of(driver, stream), HostWork{function, user});
  });
}
