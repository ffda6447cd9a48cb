// The functions that change single nodes of an executable, named by the nodes of the graph that it
// was made from. They concern later launches only.
#include "simcuda/exec.hpp"
#include "simcuda/export.hpp"
#include "simcuda/node_params.hpp"

using namespace sim;

namespace {

/// The executable's own node for a node of its graph. kUnsettled: one of a graph within.
CUresult find_node(const Exec& exec, const Node& node, Node*& found) {
  if (node.graph == exec.source) {
    const auto at = exec.image->clone_of.find(const_cast<Node*>(&node));
    if (at == exec.image->clone_of.end()) return CUDA_ERROR_INVALID_VALUE;
    found = at->second;
    return CUDA_SUCCESS;
  }
  const Node* owner = node.graph->owner;
  while (owner != nullptr && owner->graph != exec.source) owner = owner->graph->owner;
  return owner == nullptr ? CUDA_ERROR_INVALID_VALUE : kUnsettled;
}

/// Runs `change` with the executable and its own node.
template <class Change>
CUresult with_node(const char* function, CUgraphExec handle, CUgraphNode node_handle,
                   Change change) {
  const GraphUse use(node_handle, function);
  return call({function, handle}, [&](Driver& driver) -> CUresult {
    auto* exec = find<Exec>(handle, function);
    const auto* node = find<Node>(node_handle, function);
    if (exec == nullptr || node == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Node* ours = nullptr;
    if (const CUresult code = find_node(*exec, *node, ours); code != CUDA_SUCCESS) return code;
    return change(driver, *exec, *ours);
  });
}

/// Beyond what an update of everything refuses: copies and fills of more than one row, and of none.
bool is_too_much(const Work& now, const Work& wanted) {
  if (const auto* copy = std::get_if<CopyWork>(&now)) {
    const auto is_flat = [](const CUDA_MEMCPY3D& each) {
      return each.Height <= 1 && each.Depth <= 1;
    };
    return !is_flat(copy->copy) || !is_flat(std::get<CopyWork>(wanted).copy);
  }
  if (const auto* fill = std::get_if<FillWork>(&now)) {
    return fill->fill.height != std::get<FillWork>(wanted).fill.height;
  }
  return false;
}

CUresult become(const Driver& driver, Exec& exec, Node& node, Work wanted) {
  if (node.work.index() != wanted.index()) return CUDA_ERROR_INVALID_VALUE;
  if (auto* kernel = std::get_if<KernelWork>(&wanted)) {
    kernel->attributes = std::get<KernelWork>(node.work).attributes;
  }
  if (is_too_much(node.work, wanted) || cannot_become(driver, exec, node.work, wanted)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  node.work = std::move(wanted);
  exec.program = nullptr;
  return CUDA_SUCCESS;
}

/// Changes a node to what `fill` makes of the caller's parameters.
template <class Kind, class Fill>
CUresult set(const char* function, CUgraphExec exec_handle, CUgraphNode node_handle, Fill fill) {
  return with_node(function, exec_handle, node_handle,
                   [&](Driver& driver, Exec& exec, Node& node) -> CUresult {
                     Kind work;
                     const CUresult code = fill(work);
                     if (code != CUDA_SUCCESS) return code;
                     return become(driver, exec, node, std::move(work));
                   });
}

bool is_empty(const CUDA_MEMCPY3D& copy) {
  return copy.WidthInBytes == 0 || copy.Height == 0 || copy.Depth == 0;
}

CUresult set_child(Exec& exec, Node& node, CUgraph handle) {
  const auto* child = find<Graph>(handle, this_thread().function);
  const auto* work = std::get_if<ChildWork>(&node.work);
  if (child == nullptr || work == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (child->capture != nullptr || first_cyclic(*child) != nullptr) return kUnsettled;
  // That it is refused is documented, with which code is not.
  return update(exec, *child, *work->graph) ? kUnsettled : CUDA_SUCCESS;
}

bool can_be_disabled(const Node& node) {
  return std::holds_alternative<KernelWork>(node.work) ||
         std::holds_alternative<CopyWork>(node.work) || std::holds_alternative<FillWork>(node.work);
}

}  // namespace

SIM_API CUresult CUDAAPI cuGraphExecNodeSetParams(CUgraphExec exec_handle, CUgraphNode node_handle,
                                                  CUgraphNodeParams* parameters) {
  return with_node(__func__, exec_handle, node_handle,
                   [&](Driver& driver, Exec& exec, Node& node) -> CUresult {
                     if (parameters == nullptr || !is_well_formed(*parameters) ||
                         raw(parameters->type) != type_of(node.work)) {
                       return CUDA_ERROR_INVALID_VALUE;
                     }
                     if (parameters->type == CU_GRAPH_NODE_TYPE_GRAPH) {
                       return set_child(exec, node, parameters->graph.graph);
                     }
                     if (parameters->type == CU_GRAPH_NODE_TYPE_EMPTY) return kUnsettled;
                     Work work;
                     const CUresult code = work_of(*parameters, work);
                     if (code != CUDA_SUCCESS) return code;
                     return become(driver, exec, node, std::move(work));
                   });
}

SIM_API CUresult CUDAAPI cuGraphExecKernelNodeSetParams_v2(
    CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS* parameters) {
  return set<KernelWork>(__func__, exec, node, [&](KernelWork& work) {
    return parameters == nullptr ? CUDA_ERROR_INVALID_VALUE : kernel_work(*parameters, work);
  });
}

SIM_API CUresult CUDAAPI cuGraphExecMemcpyNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                                        const CUDA_MEMCPY3D* copy,
                                                        CUcontext context) {
  return set<CopyWork>(__func__, exec, node, [&](CopyWork& work) {
    if (copy == nullptr || is_empty(*copy)) return CUDA_ERROR_INVALID_VALUE;
    return copy_work(*copy, context, work);
  });
}

SIM_API CUresult CUDAAPI cuGraphExecMemsetNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                                        const CUDA_MEMSET_NODE_PARAMS* fill,
                                                        CUcontext context) {
  return set<FillWork>(__func__, exec, node, [&](FillWork& work) {
    if (fill == nullptr || fill->width == 0 || fill->height == 0) return CUDA_ERROR_INVALID_VALUE;
    return fill_work(*fill, context, work);
  });
}

SIM_API CUresult CUDAAPI cuGraphExecHostNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                                      const CUDA_HOST_NODE_PARAMS* parameters) {
  return set<HostWork>(__func__, exec, node, [&](HostWork& work) {
    return parameters == nullptr ? CUDA_ERROR_INVALID_VALUE : host_work(*parameters, work);
  });
}

SIM_API CUresult CUDAAPI cuGraphExecChildGraphNodeSetParams(CUgraphExec exec_handle,
                                                            CUgraphNode node_handle,
                                                            CUgraph child) {
  const GraphUse use(child, __func__);
  return with_node(
      __func__, exec_handle, node_handle,
      [&](Driver&, Exec& exec, Node& node) -> CUresult { return set_child(exec, node, child); });
}

SIM_API CUresult CUDAAPI cuGraphNodeSetEnabled(CUgraphExec exec_handle, CUgraphNode node_handle,
                                               unsigned enabled) {
  return with_node(__func__, exec_handle, node_handle,
                   [&](Driver&, Exec& exec, Node& node) -> CUresult {
                     if (!can_be_disabled(node)) return CUDA_ERROR_INVALID_VALUE;
                     if (enabled != 0) {
                       exec.disabled.erase(&node);
                     } else {
                       exec.disabled.insert(&node);
                     }
                     exec.program = nullptr;
                     return CUDA_SUCCESS;
                   });
}

SIM_API CUresult CUDAAPI cuGraphNodeGetEnabled(CUgraphExec exec_handle, CUgraphNode node_handle,
                                               unsigned* enabled) {
  return with_node(__func__, exec_handle, node_handle,
                   [&](Driver&, Exec& exec, Node& node) -> CUresult {
                     if (!can_be_disabled(node) || enabled == nullptr) {
                       return CUDA_ERROR_INVALID_VALUE;
                     }
                     *enabled = exec.disabled.count(&node) == 0 ? 1 : 0;
                     return CUDA_SUCCESS;
                   });
}
