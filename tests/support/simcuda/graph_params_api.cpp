// The functions that give nodes of a graph other parameters, and a kernel's attributes.
#include <algorithm>

#include "simcuda/export.hpp"
#include "simcuda/graph.hpp"
#include "simcuda/node_attributes.hpp"
#include "simcuda/node_params.hpp"

using namespace sim;

namespace {

/// Replaces the parameters of a node of that kind by what `fill` makes.
template <class Kind, class Fill>
CUresult set(const char* function, CUgraphNode handle, Fill fill) {
  return graph_call(function, handle, [&](Driver&) -> CUresult {
    auto* node = find<Node>(handle, function);
    if (node == nullptr || !std::holds_alternative<Kind>(node->work)) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    Kind work;
    const CUresult code = fill(std::get<Kind>(node->work), work);
    if (code == CUDA_SUCCESS) replace_work(*node, std::move(work));
    return code;
  });
}

}  // namespace

SIM_API CUresult CUDAAPI cuGraphNodeSetParams(CUgraphNode handle, CUgraphNodeParams* parameters) {
  return graph_call(__func__, handle, [&](Driver&) -> CUresult {
    auto* node = find<Node>(handle, this_thread().function);
    if (node == nullptr || parameters == nullptr || !is_well_formed(*parameters) ||
        raw(parameters->type) != type_of(node->work)) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    Work work;
    const CUresult code = work_of(*parameters, work);
    if (code == CUDA_SUCCESS) replace_work(*node, std::move(work));
    return code;
  });
}

SIM_API CUresult CUDAAPI cuGraphKernelNodeSetParams_v2(CUgraphNode handle,
                                                       const CUDA_KERNEL_NODE_PARAMS* parameters) {
  return set<KernelWork>(__func__, handle, [&](const KernelWork&, KernelWork& work) {
    return parameters == nullptr ? CUDA_ERROR_INVALID_VALUE : kernel_work(*parameters, work);
  });
}

SIM_API CUresult CUDAAPI cuGraphMemcpyNodeSetParams(CUgraphNode handle, const CUDA_MEMCPY3D* copy) {
  return set<CopyWork>(__func__, handle, [&](const CopyWork& old, CopyWork& work) {
    if (copy == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return copy_work(*copy, handle_of<CUcontext>(old.context), work);
  });
}

SIM_API CUresult CUDAAPI cuGraphMemsetNodeSetParams(CUgraphNode handle,
                                                    const CUDA_MEMSET_NODE_PARAMS* fill) {
  return set<FillWork>(__func__, handle, [&](const FillWork& old, FillWork& work) {
    if (fill == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return fill_work(*fill, handle_of<CUcontext>(old.context), work);
  });
}

SIM_API CUresult CUDAAPI cuGraphHostNodeSetParams(CUgraphNode handle,
                                                  const CUDA_HOST_NODE_PARAMS* parameters) {
  return set<HostWork>(__func__, handle, [&](const HostWork&, HostWork& work) {
    return parameters == nullptr ? CUDA_ERROR_INVALID_VALUE : host_work(*parameters, work);
  });
}

SIM_API CUresult CUDAAPI cuGraphKernelNodeGetAttribute(CUgraphNode handle, CUkernelNodeAttrID id,
                                                       CUkernelNodeAttrValue* value) {
  return graph_call(__func__, handle, [&](Driver&) -> CUresult {
    auto* node = find<Node>(handle, this_thread().function);
    const auto* kernel = node == nullptr ? nullptr : std::get_if<KernelWork>(&node->work);
    if (kernel == nullptr || value == nullptr || !is_node_attribute(id)) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    *value = attribute_of(*kernel, id);
    return CUDA_SUCCESS;
  });
}

SIM_API CUresult CUDAAPI cuGraphKernelNodeSetAttribute(CUgraphNode handle, CUkernelNodeAttrID id,
                                                       const CUkernelNodeAttrValue* value) {
  return graph_call(__func__, handle, [&](Driver&) -> CUresult {
    auto* node = find<Node>(handle, this_thread().function);
    auto* kernel = node == nullptr ? nullptr : std::get_if<KernelWork>(&node->work);
    if (kernel == nullptr || value == nullptr || !is_node_attribute(id)) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    if (id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE && value->cooperative != 0 && kernel->by_extra) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    set_attribute(*kernel, id, *value);
    return CUDA_SUCCESS;
  });
}
