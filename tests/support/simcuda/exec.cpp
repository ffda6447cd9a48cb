#include "simcuda/exec.hpp"

#include <algorithm>

#include "simcuda/user_object.hpp"

namespace sim {
namespace {

constexpr auto kConditionUnused = static_cast<CUgraphInstantiateResult>(5);  // named since 12.8
constexpr int kFirstWithConditionUnused = 12080;

bool may_be_in_body(const Work& work) {
  return std::holds_alternative<KernelWork>(work) || std::holds_alternative<EmptyWork>(work) ||
         std::holds_alternative<ChildWork>(work) || std::holds_alternative<FillWork>(work) ||
         std::holds_alternative<CopyWork>(work) || std::holds_alternative<ConditionalWork>(work);
}

bool may_launch_on_device(const Work& work) {
  return std::holds_alternative<KernelWork>(work) || std::holds_alternative<ChildWork>(work) ||
         std::holds_alternative<FillWork>(work) || std::holds_alternative<CopyWork>(work);
}

/// The first node, here or within, that does not pass.
template <class Passes>
Node* first_failing(const Graph& graph, Passes passes) {
  for (Node* node : graph.nodes) {
    if (!passes(node->work)) return node;
    for (const Graph* inner : graphs_in(node->work)) {
      if (Node* failing = first_failing(*inner, passes)) return failing;
    }
  }
  return nullptr;
}

bool bodies_are_good(const Work& work) {
  if (!std::holds_alternative<ConditionalWork>(work)) return true;
  const std::vector<Graph*> bodies = graphs_in(work);
  return std::all_of(bodies.begin(), bodies.end(), [](const Graph* body) {
    return first_failing(*body, may_be_in_body) == nullptr;
  });
}

bool has_unused_condition(const Graph& graph) {
  const auto unused = [](const auto& condition) { return !condition->used; };
  if (std::any_of(graph.conditions.begin(), graph.conditions.end(), unused)) return true;
  for (const Node* node : graph.nodes) {
    for (const Graph* inner : graphs_in(node->work)) {
      if (has_unused_condition(*inner)) return true;
    }
  }
  return false;
}

Verdict refused(CUresult code) { return {code, CUDA_GRAPH_INSTANTIATE_ERROR, nullptr}; }

}  // namespace

Verdict check(const Driver& driver, const Graph& graph, std::uint64_t flags) {
  constexpr std::uint64_t kKnown = 15;
  constexpr std::uint64_t kFree = CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH;
  constexpr std::uint64_t kDevice = CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH;
  if ((flags & ~kKnown) != 0) return refused(CUDA_ERROR_INVALID_VALUE);
  if ((flags & kFree) != 0 && (flags & kDevice) != 0) return refused(CUDA_ERROR_INVALID_VALUE);
  if (graph.capture != nullptr || graph.owner != nullptr) return refused(kUnsettled);
  if (Node* node = first_cyclic(graph)) {
    return {CUDA_ERROR_INVALID_VALUE, CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE, node};
  }
  const bool only_one = has_memory(graph) || has<ConditionalWork>(graph);
  if (only_one && graph.executables != 0) return refused(CUDA_ERROR_INVALID_VALUE);
  if (first_failing(graph, bodies_are_good) != nullptr) return refused(kUnsettled);
  if (has_unused_condition(graph)) {
    const bool named = driver.version >= kFirstWithConditionUnused;
    return {kUnsettled, named ? kConditionUnused : CUDA_GRAPH_INSTANTIATE_ERROR, nullptr};
  }
  if ((flags & kDevice) != 0) {
    if (graph.nodes.empty()) return refused(kUnsettled);
    if (Node* node = first_failing(graph, may_launch_on_device)) {
      return {kUnsettled, CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED, node};
    }
  }
  return {};
}

Exec* instantiate(Graph& graph, std::uint64_t flags) {
  constexpr std::uint64_t kUpload = CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD;
  Exec* exec = make<Exec>();
  exec->source = &graph;
  exec->flags = flags & ~kUpload;
  exec->image = copy_graph(graph, Handles::hidden);
  take_references(*exec, graph, *exec->image);
  ++graph.executables;
  return exec;
}

void destroy_exec(Exec& exec, const char* function) {
  --exec.source->executables;
  delete_hidden(exec.image);
  exec.image = nullptr;
  exec.program = nullptr;
  exec.references.clear();
  exec.disabled.clear();
  exec.last_launch = nullptr;
  destroy(exec, function);
}

void take_references(Exec& exec, const Graph& from, const Graph& image) {
  exec.references[&image] = std::make_shared<HeldReferences>(from.references);
  for (std::size_t i = 0; i < from.nodes.size(); ++i) {
    const std::vector<Graph*> theirs = graphs_in(from.nodes[i]->work);
    const std::vector<Graph*> ours = graphs_in(image.nodes[i]->work);
    for (std::size_t k = 0; k < theirs.size(); ++k) take_references(exec, *theirs[k], *ours[k]);
  }
}

}  // namespace sim
