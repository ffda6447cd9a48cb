// The functions that add nodes to graphs: one for each type, and the one for all of them.
#include <algorithm>

#include "simcuda/export.hpp"
#include "simcuda/graph.hpp"
#include "simcuda/graph_memory.hpp"
#include "simcuda/node_params.hpp"

using namespace sim;

namespace {

/// SWITCH, which the oldest headers do not name.
constexpr int kSwitch = 2;
constexpr int kFirstWithElse = 12080;

/// Where a node goes, as a caller says it.
struct Place {
  CUgraphNode* out = nullptr;
  CUgraph graph_handle = nullptr;
  const CUgraphNode* nodes = nullptr;
  const CUgraphEdgeData* data = nullptr;
  std::size_t count = 0;

  Graph* graph = nullptr;
  std::vector<Dependency> dependencies;
};

/// Looks a place up; whether there is anything wrong with it.
bool is_good(Place& place) {
  const char* function = this_thread().function;
  place.graph = find<Graph>(place.graph_handle, function);
  if (place.out == nullptr || place.graph == nullptr) return false;
  if (place.count != 0 && place.nodes == nullptr) return false;
  for (std::size_t i = 0; i < place.count; ++i) {
    auto* node = find<Node>(place.nodes[i], function);
    if (node == nullptr || node->graph != place.graph) return false;
    if (std::find(place.nodes, place.nodes + i, place.nodes[i]) != place.nodes + i) return false;
    place.dependencies.push_back({node, place.data == nullptr ? CUgraphEdgeData{} : place.data[i]});
  }
  return true;
}

bool may_connect(const Place& place, const CUgraphNodeType& type) {
  const Work to = raw(type) == CU_GRAPH_NODE_TYPE_KERNEL ? Work{KernelWork{}} : Work{EmptyWork{}};
  return std::all_of(
      place.dependencies.begin(), place.dependencies.end(),
      [&](const Dependency& each) { return may_connect(each.node->work, to, each.data); });
}

/// Makes the node.
CUresult put(Place& place, Work work) {
  if (const CUresult code = join_graph(*place.graph, work); code != CUDA_SUCCESS) return code;
  *place.out = handle_of<CUgraphNode>(add_node(*place.graph, std::move(work), place.dependencies));
  return CUDA_SUCCESS;
}

/// Makes a node of work that `fill` fills in from the caller's parameters.
template <class Kind, class Fill>
CUresult add(const char* function, Place place, Fill fill) {
  return graph_call(function, place.graph_handle, [&](Driver& driver) -> CUresult {
    if (!is_good(place)) return CUDA_ERROR_INVALID_VALUE;
    Kind work;
    if (const CUresult code = fill(driver, place, work); code != CUDA_SUCCESS) return code;
    return put(place, std::move(work));
  });
}

CUresult child_copy(const Place& place, CUgraph handle, ChildWork& work) {
  auto* child = find<Graph>(handle, this_thread().function);
  if (child == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (has_memory(*child) || has<ConditionalWork>(*child)) return CUDA_ERROR_INVALID_VALUE;
  if (child == place.graph || child->capture != nullptr) return kUnsettled;
  work.graph = copy_graph(*child, Handles::known);
  return CUDA_SUCCESS;
}

/// The child itself becomes the node's, with its memory.
CUresult child_moved(const Place& place, CUgraph handle, ChildWork& work) {
  auto* child = find<Graph>(handle, this_thread().function);
  if (child == nullptr || child->owner != nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (has<ConditionalWork>(*child)) return CUDA_ERROR_INVALID_VALUE;
  if (child == place.graph || child->capture != nullptr || child->executables != 0) {
    return kUnsettled;
  }
  work.graph = child;
  return CUDA_SUCCESS;
}

CUresult child_as_asked(const Driver& driver, const Place& place,
                        const CUDA_CHILD_GRAPH_NODE_PARAMS& parameters, ChildWork& work) {
#if CUDA_VERSION >= 12090
  if (parameters.ownership != CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE) {
    if (driver.version < 12090 || parameters.ownership != CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    return child_moved(place, parameters.graph, work);
  }
#else
  (void)driver;
  (void)child_moved;
#endif
  return child_copy(place, parameters.graph, work);
}

/// No memory and no conditions in a child, no memory in a body.
bool may_hold_memory(const Graph& graph) { return graph.owner == nullptr; }
bool may_hold_conditionals(const Graph& graph) {
  return graph.owner == nullptr || std::holds_alternative<ConditionalWork>(graph.owner->work);
}

CUresult allocation(Driver& driver, const Place& place,
                    const CUDA_MEM_ALLOC_NODE_PARAMS& parameters, AllocWork& work) {
  if (!may_hold_memory(*place.graph)) return CUDA_ERROR_INVALID_VALUE;
  if (parameters.accessDescCount > 1) return CUDA_ERROR_INVALID_VALUE;
  if (parameters.accessDescCount != 0) return kUnsettled;  // there is no peer to give access to
  work.parameters = parameters;
  return graph_allocate(driver, work);
}

CUresult release_of(const Place& place, CUdeviceptr address, FreeWork& work) {
  if (!may_hold_memory(*place.graph)) return CUDA_ERROR_INVALID_VALUE;
  work.address = address;
  return CUDA_SUCCESS;
}

/// Whether a condition is of this graph or of one that it is within.
bool reaches(const Graph& graph, const Condition& condition) {
  for (const Graph* at = &graph;; at = at->owner->graph) {
    if (condition.graph == at) return true;
    if (at->owner == nullptr) return false;
  }
}

bool is_size(const Driver& driver, const CUDA_CONDITIONAL_NODE_PARAMS& parameters) {
  const int type = raw(parameters.type);
  if (type == CU_GRAPH_COND_TYPE_WHILE) return parameters.size == 1;
  if (type == CU_GRAPH_COND_TYPE_IF) {
    return parameters.size == 1 || (parameters.size == 2 && driver.version >= kFirstWithElse);
  }
  return type == kSwitch && parameters.size > 0 && driver.version >= kFirstWithElse;
}

CUresult conditional(const Driver& driver, const Place& place,
                     const CUDA_CONDITIONAL_NODE_PARAMS& parameters, ConditionalWork& work) {
  if (!may_hold_conditionals(*place.graph)) return CUDA_ERROR_INVALID_VALUE;
  auto condition = condition_of(parameters.handle);
  if (condition == nullptr || !reaches(*place.graph, *condition) || !is_size(driver, parameters)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  auto* context = find<Context>(parameters.ctx, this_thread().function);
  if (context == nullptr || condition->used) return kUnsettled;
  condition->used = true;
  work.condition = std::move(condition);
  work.type = parameters.type;
  work.context = context;
  for (unsigned i = 0; i < parameters.size; ++i) {
    work.bodies.push_back(handle_of<CUgraph>(make_graph()));
  }
  return CUDA_SUCCESS;
}

CUresult work_for(Driver& driver, const Place& place, const CUgraphNodeParams& parameters,
                  Work& work) {
  CUresult code = CUDA_SUCCESS;
  switch (raw(parameters.type)) {
    case CU_GRAPH_NODE_TYPE_GRAPH:
      code = child_as_asked(driver, place, parameters.graph, work.emplace<ChildWork>());
      break;
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC: {
      CUDA_MEM_ALLOC_NODE_PARAMS given{};
      given.poolProps = parameters.alloc.poolProps;
      given.accessDescs = parameters.alloc.accessDescs;
      given.accessDescCount = parameters.alloc.accessDescCount;
      given.bytesize = parameters.alloc.bytesize;
      code = allocation(driver, place, given, work.emplace<AllocWork>());
      break;
    }
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
      code = release_of(place, parameters.free.dptr, work.emplace<FreeWork>());
      break;
    case CU_GRAPH_NODE_TYPE_CONDITIONAL:
      code = conditional(driver, place, parameters.conditional, work.emplace<ConditionalWork>());
      break;
    default: code = work_of(parameters, work);
  }
  return code;
}

/// Parameters that the call itself fills in.
void tell(const Node& node, CUgraphNodeParams& parameters) {
  if (const auto* alloc = std::get_if<AllocWork>(&node.work)) {
    parameters.alloc.dptr = alloc->parameters.dptr;
  }
  if (const auto* work = std::get_if<ConditionalWork>(&node.work)) {
    parameters.conditional.phGraph_out = const_cast<CUgraph*>(work->bodies.data());
  }
}

}  // namespace

SIM_API CUresult CUDAAPI cuGraphAddNode_v2(CUgraphNode* out, CUgraph graph,
                                           const CUgraphNode* nodes, const CUgraphEdgeData* data,
                                           std::size_t count, CUgraphNodeParams* parameters) {
  return graph_call(__func__, graph, [&](Driver& driver) -> CUresult {
    Place place{out, graph, nodes, data, count, nullptr, {}};
    if (!is_good(place) || parameters == nullptr || !is_well_formed(*parameters)) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    if (!may_connect(place, parameters->type)) return CUDA_ERROR_INVALID_VALUE;
    Work work;
    CUresult code = work_for(driver, place, *parameters, work);
    if (code == CUDA_SUCCESS) code = put(place, std::move(work));
    if (code == CUDA_SUCCESS) tell(*place.graph->nodes.back(), *parameters);
    return code;
  });
}

SIM_API CUresult CUDAAPI cuGraphAddKernelNode_v2(CUgraphNode* out, CUgraph graph,
                                                 const CUgraphNode* nodes, std::size_t count,
                                                 const CUDA_KERNEL_NODE_PARAMS* parameters) {
  return add<KernelWork>(__func__, {out, graph, nodes, nullptr, count, nullptr, {}},
                         [&](Driver&, const Place&, KernelWork& work) {
                           if (parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
                           return kernel_work(*parameters, work);
                         });
}

SIM_API CUresult CUDAAPI cuGraphAddMemcpyNode(CUgraphNode* out, CUgraph graph,
                                              const CUgraphNode* nodes, std::size_t count,
                                              const CUDA_MEMCPY3D* copy, CUcontext context) {
  return add<CopyWork>(__func__, {out, graph, nodes, nullptr, count, nullptr, {}},
                       [&](Driver&, const Place&, CopyWork& work) {
                         if (copy == nullptr) return CUDA_ERROR_INVALID_VALUE;
                         return copy_work(*copy, context, work);
                       });
}

SIM_API CUresult CUDAAPI cuGraphAddMemsetNode(CUgraphNode* out, CUgraph graph,
                                              const CUgraphNode* nodes, std::size_t count,
                                              const CUDA_MEMSET_NODE_PARAMS* fill,
                                              CUcontext context) {
  return add<FillWork>(__func__, {out, graph, nodes, nullptr, count, nullptr, {}},
                       [&](Driver&, const Place&, FillWork& work) {
                         if (fill == nullptr) return CUDA_ERROR_INVALID_VALUE;
                         return fill_work(*fill, context, work);
                       });
}

SIM_API CUresult CUDAAPI cuGraphAddHostNode(CUgraphNode* out, CUgraph graph,
                                            const CUgraphNode* nodes, std::size_t count,
                                            const CUDA_HOST_NODE_PARAMS* parameters) {
  return add<HostWork>(__func__, {out, graph, nodes, nullptr, count, nullptr, {}},
                       [&](Driver&, const Place&, HostWork& work) {
                         if (parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
                         return host_work(*parameters, work);
                       });
}

SIM_API CUresult CUDAAPI cuGraphAddEmptyNode(CUgraphNode* out, CUgraph graph,
                                             const CUgraphNode* nodes, std::size_t count) {
  return add<EmptyWork>(__func__, {out, graph, nodes, nullptr, count, nullptr, {}},
                        [](Driver&, const Place&, EmptyWork&) { return CUDA_SUCCESS; });
}

SIM_API CUresult CUDAAPI cuGraphAddChildGraphNode(CUgraphNode* out, CUgraph graph,
                                                  const CUgraphNode* nodes, std::size_t count,
                                                  CUgraph child) {
  const GraphUse use(child, __func__);
  return add<ChildWork>(
      __func__, {out, graph, nodes, nullptr, count, nullptr, {}},
      [&](Driver&, const Place& place, ChildWork& work) { return child_copy(place, child, work); });
}

SIM_API CUresult CUDAAPI cuGraphAddEventRecordNode(CUgraphNode* out, CUgraph graph,
                                                   const CUgraphNode* nodes, std::size_t count,
                                                   CUevent event) {
  return add<RecordWork>(
      __func__, {out, graph, nodes, nullptr, count, nullptr, {}},
      [&](Driver&, const Place&, RecordWork& work) { return record_work(event, work); });
}

SIM_API CUresult CUDAAPI cuGraphAddEventWaitNode(CUgraphNode* out, CUgraph graph,
                                                 const CUgraphNode* nodes, std::size_t count,
                                                 CUevent event) {
  return add<WaitWork>(
      __func__, {out, graph, nodes, nullptr, count, nullptr, {}},
      [&](Driver&, const Place&, WaitWork& work) { return wait_work(event, work); });
}

SIM_API CUresult CUDAAPI cuGraphAddMemAllocNode(CUgraphNode* out, CUgraph graph,
                                                const CUgraphNode* nodes, std::size_t count,
                                                CUDA_MEM_ALLOC_NODE_PARAMS* parameters) {
  CUdeviceptr address = 0;
  const CUresult code = add<AllocWork>(__func__, {out, graph, nodes, nullptr, count, nullptr, {}},
                                       [&](Driver& driver, const Place& place, AllocWork& work) {
                                         if (parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
                                         const CUresult made =
                                             allocation(driver, place, *parameters, work);
                                         address = work.parameters.dptr;
                                         return made;
                                       });
  if (code == CUDA_SUCCESS) parameters->dptr = address;
  return code;
}

SIM_API CUresult CUDAAPI cuGraphAddMemFreeNode(CUgraphNode* out, CUgraph graph,
                                               const CUgraphNode* nodes, std::size_t count,
                                               CUdeviceptr address) {
  return add<FreeWork>(__func__, {out, graph, nodes, nullptr, count, nullptr, {}},
                       [&](Driver&, const Place& place, FreeWork& work) {
                         return release_of(place, address, work);
                       });
}
