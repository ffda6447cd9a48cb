// The functions that make, copy and destroy graphs, and that change their edges. What the header
// calls an error without saying which is 1 where the function documents no other, as here.
#include <algorithm>

#include "simcuda/export.hpp"
#include "simcuda/graph.hpp"

using namespace sim;

namespace {

/// The edges that a caller gives as arrays; no value: an end of one is not a node of the graph.
std::optional<std::vector<Edge>> given(const Graph& graph, const CUgraphNode* from,
                                       const CUgraphNode* to, const CUgraphEdgeData* data,
                                       std::size_t count) {
  std::vector<Edge> edges;
  if (count != 0 && (from == nullptr || to == nullptr)) return std::nullopt;
  for (std::size_t i = 0; i < count; ++i) {
    Edge edge;
    edge.from = find<Node>(from[i], this_thread().function);
    edge.to = find<Node>(to[i], this_thread().function);
    if (edge.from == nullptr || edge.from->graph != &graph) return std::nullopt;
    if (edge.to == nullptr || edge.to->graph != &graph) return std::nullopt;
    if (data != nullptr) edge.data = data[i];
    edges.push_back(edge);
  }
  return edges;
}

/// After an edge is gone, what only it joined to the capture's origin need not be joined any more.
void excuse(Graph& graph, Node* from) {
  if (graph.capture == nullptr) return;
  std::vector<Node*> open{from};
  while (!open.empty()) {
    Node* node = open.back();
    open.pop_back();
    if (graph.capture->work.erase(node) == 0) continue;
    for (const Dependency& each : dependencies_of(*node)) open.push_back(each.node);
  }
}

void must_be_free(const Graph& graph, const char* function) {
  if (graph.capture != nullptr) {
    give_up(function, "was called on a graph, or a node of one, that is being captured into");
  }
}

/// Whether a graph is a node's, or within one that is.
bool is_within(const Graph& inner, const Graph& outer) {
  for (const Graph* graph = &inner; graph != nullptr;
       graph = graph->owner == nullptr ? nullptr : graph->owner->graph) {
    if (graph == &outer) return true;
  }
  return false;
}

}  // namespace

SIM_API CUresult CUDAAPI cuGraphCreate(CUgraph* handle, unsigned flags) {
  return call({__func__}, [&](Driver&) -> CUresult {
    if (handle == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    *handle = handle_of<CUgraph>(make_graph());
    return CUDA_SUCCESS;
  });
}

SIM_API CUresult CUDAAPI cuGraphDestroy(CUgraph handle) {
  return graph_call(__func__, handle, [&](Driver&) -> CUresult {
    auto* graph = find<Graph>(handle, this_thread().function);
    if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
    must_be_free(*graph, this_thread().function);
    if (graph->owner != nullptr) give_up(__func__, "was given a graph that a node owns");
    destroy_graph(*graph, this_thread().function);
    return CUDA_SUCCESS;
  });
}

SIM_API CUresult CUDAAPI cuGraphClone(CUgraph* clone, CUgraph handle) {
  return graph_call(__func__, handle, [&](Driver&) -> CUresult {
    auto* graph = find<Graph>(handle, this_thread().function);
    if (graph == nullptr || clone == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (has_memory(*graph) || has<ConditionalWork>(*graph)) return CUDA_ERROR_INVALID_VALUE;
    if (graph->capture != nullptr) return kUnsettled;
    Graph* copy = copy_graph(*graph, Handles::known);
    copy->cloned_from = graph;
    *clone = handle_of<CUgraph>(copy);
    return CUDA_SUCCESS;
  });
}

SIM_API CUresult CUDAAPI cuGraphNodeFindInClone(CUgraphNode* found, CUgraphNode handle,
                                                CUgraph clone_handle) {
  return graph_call(__func__, clone_handle, [&](Driver&) -> CUresult {
    auto* clone = find<Graph>(clone_handle, this_thread().function);
    auto* node = find<Node>(handle, this_thread().function);
    if (found == nullptr || clone == nullptr || node == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (clone->cloned_from == nullptr) {
      return clone->owner != nullptr ? kUnsettled : CUDA_ERROR_INVALID_VALUE;
    }
    const auto at = clone->clone_of.find(node);
    if (at == clone->clone_of.end()) {
      const bool nested = is_within(*node->graph, *clone->cloned_from);
      return nested && node->graph != clone->cloned_from ? kUnsettled : CUDA_ERROR_INVALID_VALUE;
    }
    if (at->second->destroyed_by != nullptr) return CUDA_ERROR_INVALID_VALUE;
    *found = handle_of<CUgraphNode>(at->second);
    return CUDA_SUCCESS;
  });
}

SIM_API CUresult CUDAAPI cuGraphAddDependencies_v2(CUgraph handle, const CUgraphNode* from,
                                                   const CUgraphNode* to,
                                                   const CUgraphEdgeData* data, std::size_t count) {
  return graph_call(__func__, handle, [&](Driver&) -> CUresult {
    auto* graph = find<Graph>(handle, this_thread().function);
    if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const auto edges = given(*graph, from, to, data, count);
    if (!edges) return CUDA_ERROR_INVALID_VALUE;
    for (auto at = edges->begin(); at != edges->end(); ++at) {
      const bool twice = std::any_of(edges->begin(), at, [&](const Edge& other) {
        return other.from == at->from && other.to == at->to;
      });
      if (twice || at->from == at->to || has_edge(*graph, at->from, at->to) ||
          !may_connect(at->from->work, at->to->work, at->data)) {
        return CUDA_ERROR_INVALID_VALUE;
      }
    }
    graph->edges.insert(graph->edges.end(), edges->begin(), edges->end());
    return CUDA_SUCCESS;
  });
}

SIM_API CUresult CUDAAPI cuGraphRemoveDependencies_v2(CUgraph handle, const CUgraphNode* from,
                                                      const CUgraphNode* to,
                                                      const CUgraphEdgeData* data,
                                                      std::size_t count) {
  return graph_call(__func__, handle, [&](Driver&) -> CUresult {
    auto* graph = find<Graph>(handle, this_thread().function);
    if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const auto edges = given(*graph, from, to, data, count);
    if (!edges || (count != 0 && has_memory(*graph))) return CUDA_ERROR_INVALID_VALUE;
    std::vector<Edge> left = graph->edges;
    for (const Edge& edge : *edges) {
      const auto at = std::find_if(left.begin(), left.end(), [&](const Edge& other) {
        return other.from == edge.from && other.to == edge.to && same(other.data, edge.data);
      });
      if (at == left.end()) return CUDA_ERROR_INVALID_VALUE;
      left.erase(at);
    }
    graph->edges = std::move(left);
    for (const Edge& edge : *edges) excuse(*graph, edge.from);
    return CUDA_SUCCESS;
  });
}

SIM_API CUresult CUDAAPI cuGraphDestroyNode(CUgraphNode handle) {
  return graph_call(__func__, handle, [&](Driver&) -> CUresult {
    auto* node = find<Node>(handle, this_thread().function);
    if (node == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Graph& graph = *node->graph;
    must_be_free(graph, this_thread().function);
    if (has_memory(graph)) return CUDA_ERROR_INVALID_VALUE;
    graph.nodes.erase(std::find(graph.nodes.begin(), graph.nodes.end(), node));
    const auto touches = [&](const Edge& edge) { return edge.from == node || edge.to == node; };
    graph.edges.erase(std::remove_if(graph.edges.begin(), graph.edges.end(), touches),
                      graph.edges.end());
    destroy_node(*node, this_thread().function);
    return CUDA_SUCCESS;
  });
}

SIM_API CUresult CUDAAPI cuGraphConditionalHandleCreate(CUgraphConditionalHandle* handle,
                                                        CUgraph graph_handle, CUcontext context,
                                                        unsigned initial, unsigned flags) {
  return graph_call(__func__, graph_handle, [&](Driver& driver) -> CUresult {
    auto* graph = find<Graph>(graph_handle, this_thread().function);
    if (handle == nullptr || graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (flags != 0 && flags != CU_GRAPH_COND_ASSIGN_DEFAULT) return CUDA_ERROR_INVALID_VALUE;
    if (find<Context>(context, this_thread().function) == nullptr) return kUnsettled;
    const bool reset = flags == CU_GRAPH_COND_ASSIGN_DEFAULT;
    *handle = make_condition(driver, *graph, initial, reset)->handle;
    return CUDA_SUCCESS;
  });
}
