// The functions that tell what a graph consists of. The pointers among the parameters that they
// return are the driver's own.
#include <algorithm>

#include "simcuda/export.hpp"
#include "simcuda/graph.hpp"
#include "simcuda/node_params.hpp"

using namespace sim;

namespace {

/// Fills a caller's array of `*count` entries, the rest with null, as each of these functions does.
template <class Item, class Get>
void list(const std::vector<Item>& items, std::size_t room, CUgraphNode* out, Get get) {
  for (std::size_t i = 0; i < room; ++i) {
    out[i] = i < items.size() ? handle_of<CUgraphNode>(get(items[i])) : nullptr;
  }
}

CUresult nodes_to(const std::vector<Node*>& nodes, CUgraphNode* out, std::size_t* count) {
  if (out == nullptr) {
    *count = nodes.size();
    return CUDA_SUCCESS;
  }
  list(nodes, *count, out, [](Node* node) { return node; });
  *count = std::min(*count, nodes.size());
  return CUDA_SUCCESS;
}

bool is_annotated(const Dependency& each) { return annotated(each.data); }

CUresult neighbours_to(const std::vector<Dependency>& neighbours, CUgraphNode* out,
                       CUgraphEdgeData* data, std::size_t* count) {
  const bool lossy = std::any_of(neighbours.begin(), neighbours.end(), is_annotated);
  if (out == nullptr) {
    // The text can be read as refusing even this.
    if (lossy) return kUnsettled;
    *count = neighbours.size();
    return CUDA_SUCCESS;
  }
  if (lossy && data == nullptr) return CUDA_ERROR_LOSSY_QUERY;
  list(neighbours, *count, out, [](const Dependency& each) { return each.node; });
  *count = std::min(*count, neighbours.size());
  for (std::size_t i = 0; data != nullptr && i < *count; ++i) data[i] = neighbours[i].data;
  return CUDA_SUCCESS;
}

/// Runs `tell` with the work of a node of that kind.
template <class Kind, class Output, class Tell>
CUresult get(const char* function, CUgraphNode handle, Output* output, Tell tell) {
  return graph_call(function, handle, [&](Driver&) -> CUresult {
    auto* node = find<Node>(handle, function);
    if (node == nullptr || output == nullptr || !std::holds_alternative<Kind>(node->work)) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    *output = tell(*node, std::get<Kind>(node->work));
    return CUDA_SUCCESS;
  });
}

/// Nodes of that kind cannot be made here, so no node is one.
CUresult never(const char* function, CUgraphNode handle) {
  return graph_call(function, handle, [&](Driver&) -> CUresult {
    find<Node>(handle, function);
    return CUDA_ERROR_INVALID_VALUE;
  });
}

}  // namespace

SIM_API CUresult CUDAAPI cuGraphGetNodes(CUgraph handle, CUgraphNode* nodes, std::size_t* count) {
  return graph_call(__func__, handle, [&](Driver&) -> CUresult {
    const auto* graph = find<Graph>(handle, this_thread().function);
    if (graph == nullptr || count == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return nodes_to(graph->nodes, nodes, count);
  });
}

SIM_API CUresult CUDAAPI cuGraphGetRootNodes(CUgraph handle, CUgraphNode* nodes,
                                             std::size_t* count) {
  return graph_call(__func__, handle, [&](Driver&) -> CUresult {
    const auto* graph = find<Graph>(handle, this_thread().function);
    if (graph == nullptr || count == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::vector<Node*> roots;
    std::copy_if(graph->nodes.begin(), graph->nodes.end(), std::back_inserter(roots),
                 [](const Node* node) { return dependencies_of(*node).empty(); });
    return nodes_to(roots, nodes, count);
  });
}

SIM_API CUresult CUDAAPI cuGraphGetEdges_v2(CUgraph handle, CUgraphNode* from, CUgraphNode* to,
                                            CUgraphEdgeData* data, std::size_t* count) {
  return graph_call(__func__, handle, [&](Driver&) -> CUresult {
    const auto* graph = find<Graph>(handle, this_thread().function);
    if (graph == nullptr || count == nullptr || (from == nullptr) != (to == nullptr) ||
        (data != nullptr && from == nullptr)) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    const std::vector<Edge>& edges = graph->edges;
    if (from == nullptr) {
      *count = edges.size();
      return CUDA_SUCCESS;
    }
    const bool lossy = std::any_of(edges.begin(), edges.end(),
                                   [](const Edge& edge) { return annotated(edge.data); });
    if (lossy && data == nullptr) return CUDA_ERROR_LOSSY_QUERY;
    list(edges, *count, from, [](const Edge& edge) { return edge.from; });
    list(edges, *count, to, [](const Edge& edge) { return edge.to; });
    *count = std::min(*count, edges.size());
    for (std::size_t i = 0; data != nullptr && i < *count; ++i) data[i] = edges[i].data;
    return CUDA_SUCCESS;
  });
}

SIM_API CUresult CUDAAPI cuGraphNodeGetDependencies_v2(CUgraphNode handle, CUgraphNode* nodes,
                                                       CUgraphEdgeData* data, std::size_t* count) {
  return graph_call(__func__, handle, [&](Driver&) -> CUresult {
    const auto* node = find<Node>(handle, this_thread().function);
    if (node == nullptr || count == nullptr || (data != nullptr && nodes == nullptr)) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    return neighbours_to(dependencies_of(*node), nodes, data, count);
  });
}

SIM_API CUresult CUDAAPI cuGraphNodeGetDependentNodes_v2(CUgraphNode handle, CUgraphNode* nodes,
                                                         CUgraphEdgeData* data,
                                                         std::size_t* count) {
  return graph_call(__func__, handle, [&](Driver&) -> CUresult {
    const auto* node = find<Node>(handle, this_thread().function);
    if (node == nullptr || count == nullptr || (data != nullptr && nodes == nullptr)) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    return neighbours_to(dependents_of(*node), nodes, data, count);
  });
}

SIM_API CUresult CUDAAPI cuGraphNodeGetType(CUgraphNode handle, CUgraphNodeType* type) {
  return graph_call(__func__, handle, [&](Driver&) -> CUresult {
    const auto* node = find<Node>(handle, this_thread().function);
    if (node == nullptr || type == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *type = type_of(node->work);
    return CUDA_SUCCESS;
  });
}

SIM_API CUresult CUDAAPI cuGraphKernelNodeGetParams_v2(CUgraphNode handle,
                                                       CUDA_KERNEL_NODE_PARAMS* parameters) {
  return get<KernelWork>(__func__, handle, parameters,
                         [](Node& node, const KernelWork&) { return shown_kernel(node); });
}

SIM_API CUresult CUDAAPI cuGraphMemcpyNodeGetParams(CUgraphNode handle, CUDA_MEMCPY3D* copy) {
  return get<CopyWork>(__func__, handle, copy,
                       [](const Node&, const CopyWork& work) { return work.copy; });
}

SIM_API CUresult CUDAAPI cuGraphMemsetNodeGetParams(CUgraphNode handle,
                                                    CUDA_MEMSET_NODE_PARAMS* fill) {
  return get<FillWork>(__func__, handle, fill,
                       [](const Node&, const FillWork& work) { return work.fill; });
}

SIM_API CUresult CUDAAPI cuGraphHostNodeGetParams(CUgraphNode handle,
                                                  CUDA_HOST_NODE_PARAMS* parameters) {
  return get<HostWork>(__func__, handle, parameters, [](const Node&, const HostWork& work) {
    return CUDA_HOST_NODE_PARAMS{work.function, work.user};
  });
}

SIM_API CUresult CUDAAPI cuGraphChildGraphNodeGetGraph(CUgraphNode handle, CUgraph* graph) {
  return get<ChildWork>(__func__, handle, graph, [](const Node&, const ChildWork& work) {
    return handle_of<CUgraph>(work.graph);
  });
}

SIM_API CUresult CUDAAPI cuGraphEventRecordNodeGetEvent(CUgraphNode handle, CUevent* event) {
  return get<RecordWork>(__func__, handle, event, [](const Node&, const RecordWork& work) {
    return handle_of<CUevent>(work.event);
  });
}

SIM_API CUresult CUDAAPI cuGraphEventWaitNodeGetEvent(CUgraphNode handle, CUevent* event) {
  return get<WaitWork>(__func__, handle, event, [](const Node&, const WaitWork& work) {
    return handle_of<CUevent>(work.event);
  });
}

SIM_API CUresult CUDAAPI cuGraphMemAllocNodeGetParams(CUgraphNode handle,
                                                      CUDA_MEM_ALLOC_NODE_PARAMS* parameters) {
  return get<AllocWork>(__func__, handle, parameters,
                        [](const Node&, const AllocWork& work) { return work.parameters; });
}

SIM_API CUresult CUDAAPI cuGraphMemFreeNodeGetParams(CUgraphNode handle, CUdeviceptr* address) {
  return get<FreeWork>(__func__, handle, address,
                       [](const Node&, const FreeWork& work) { return work.address; });
}

SIM_API CUresult CUDAAPI cuGraphBatchMemOpNodeGetParams(CUgraphNode handle,
                                                        CUDA_BATCH_MEM_OP_NODE_PARAMS*) {
  return never(__func__, handle);
}

SIM_API CUresult CUDAAPI
cuGraphExternalSemaphoresSignalNodeGetParams(CUgraphNode handle, CUDA_EXT_SEM_SIGNAL_NODE_PARAMS*) {
  return never(__func__, handle);
}

SIM_API CUresult CUDAAPI
cuGraphExternalSemaphoresWaitNodeGetParams(CUgraphNode handle, CUDA_EXT_SEM_WAIT_NODE_PARAMS*) {
  return never(__func__, handle);
}
