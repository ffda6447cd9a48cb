// cuGraphDebugDotPrint: a valid description in the DOT language, with each node's type and a
// kernel's name. How a real driver words it is its own affair, and nothing may read it.
#include <fstream>

#include "simcuda/export.hpp"
#include "simcuda/graph.hpp"

using namespace sim;

namespace {

std::string label_of(const Node& node) {
  switch (type_of(node.work)) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
      return "KERNEL " + std::get<KernelWork>(node.work).function->entry->name;
    case CU_GRAPH_NODE_TYPE_MEMCPY: return "MEMCPY";
    case CU_GRAPH_NODE_TYPE_MEMSET: return "MEMSET";
    case CU_GRAPH_NODE_TYPE_HOST: return "HOST";
    case CU_GRAPH_NODE_TYPE_GRAPH: return "GRAPH";
    case CU_GRAPH_NODE_TYPE_EMPTY: return "EMPTY";
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT: return "WAIT_EVENT";
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD: return "EVENT_RECORD";
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC: return "MEM_ALLOC";
    case CU_GRAPH_NODE_TYPE_MEM_FREE: return "MEM_FREE";
    default: return "CONDITIONAL";
  }
}

/// One subgraph for each graph within.
void write(std::ostream& out, const Graph& graph, std::map<const Node*, std::size_t>& numbers) {
  out << "subgraph cluster_" << numbers.size() << " {\n";
  for (const Node* node : graph.nodes) {
    const std::size_t number = numbers.emplace(node, numbers.size()).first->second;
    out << "  n" << number << " [label=\"" << label_of(*node) << "\"];\n";
    for (const Graph* inner : graphs_in(node->work)) write(out, *inner, numbers);
  }
  for (const Edge& edge : graph.edges) {
    out << "  n" << numbers.at(edge.from) << " -> n" << numbers.at(edge.to) << ";\n";
  }
  out << "}\n";
}

}  // namespace

SIM_API CUresult CUDAAPI cuGraphDebugDotPrint(CUgraph handle, const char* path, unsigned) {
  return graph_call(__func__, handle, [&](Driver&) -> CUresult {
    const auto* graph = find<Graph>(handle, this_thread().function);
    if (graph == nullptr || path == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::ofstream out(path);
    std::map<const Node*, std::size_t> numbers;
    out << "digraph graph_of_simcuda {\n";
    write(out, *graph, numbers);
    out << "}\n";
    out.flush();
    return out ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
  });
}
