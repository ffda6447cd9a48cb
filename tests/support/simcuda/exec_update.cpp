// Updating an executable from another graph: which nodes belong together, and which changes an
// executable takes. What a real driver was seen to answer goes before what the header says.
#include <algorithm>

#include "simcuda/exec.hpp"
#include "simcuda/node_attributes.hpp"
#include "simcuda/node_params.hpp"
#include "simcuda/user_object.hpp"

namespace sim {
namespace {

std::vector<Node*> exits_of(const Graph& graph) {
  std::vector<Node*> exits;
  std::copy_if(graph.nodes.begin(), graph.nodes.end(), std::back_inserter(exits),
               [](const Node* node) { return dependents_of(*node).empty(); });
  return exits;
}

Mismatch topology(Node* node, Node* from = nullptr) {
  return {CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, node, from};
}

/// Finds for every node of one graph, and of those within, the node of the other that it updates.
class Pairing {
 public:
  std::optional<Mismatch> pair(const Graph& graph, Graph& image) {
    // The header says that the topology changed; drivers were seen to say this.
    if (graph.nodes.size() != image.nodes.size()) {
      return Mismatch{CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED, nullptr, nullptr};
    }
    const std::vector<Node*> theirs = exits_of(graph);
    const std::vector<Node*> had = exits_of(image);
    if (theirs.size() != had.size()) return topology(theirs.empty() ? nullptr : theirs.front());
    std::vector<Node*> open;
    for (std::size_t i = 0; i < theirs.size(); ++i) {
      if (type_of(theirs[i]->work) != type_of(had[i]->work)) {
        return Mismatch{CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED, theirs[i], nullptr};
      }
      join(theirs[i], had[i]);
      open.push_back(theirs[i]);
    }
    while (!open.empty()) {
      Node* node = open.back();
      open.pop_back();
      if (auto mismatch = pair_dependencies(node, open)) return mismatch;
    }
    for (Node* node : graph.nodes) {
      if (auto mismatch = pair_inner(node)) return mismatch;
    }
    graphs.emplace_back(&graph, &image);
    return std::nullopt;
  }

  std::map<Node*, Node*> ours;  ///< A node of the other graph -> the executable's.
  std::vector<std::pair<const Graph*, Graph*>> graphs;

 private:
  void join(Node* theirs, Node* our) {
    ours[theirs] = our;
    theirs_[our] = theirs;
  }

  std::optional<Mismatch> pair_dependencies(Node* node, std::vector<Node*>& open) {
    const auto wanted = dependencies_of(*node);
    const auto had = dependencies_of(*ours.at(node));
    if (wanted.size() != had.size()) return topology(node);
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      Node* from = wanted[i].node;
      Node* our = had[i].node;
      const bool known = ours.count(from) != 0;
      if (known != (theirs_.count(our) != 0) || (known && ours.at(from) != our)) {
        return topology(node, from);
      }
      if (!same(wanted[i].data, had[i].data)) return topology(node, from);
      if (known) continue;
      // Seen: a type that differs behind an edge is a change of topology.
      if (type_of(from->work) != type_of(our->work)) return topology(node, from);
      join(from, our);
      open.push_back(from);
    }
    return std::nullopt;
  }

  std::optional<Mismatch> pair_inner(Node* node) {
    const std::vector<Graph*> wanted = graphs_in(node->work);
    const std::vector<Graph*> had = graphs_in(ours.at(node)->work);
    if (wanted.size() != had.size()) {
      return Mismatch{CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED, node, nullptr};
    }
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      if (auto mismatch = pair(*wanted[i], *had[i])) return mismatch;
    }
    return std::nullopt;
  }

  std::map<Node*, Node*> theirs_;
};

bool is_flat(const CUDA_MEMSET_NODE_PARAMS& fill) { return fill.height <= 1; }

using Reason = std::optional<CUgraphExecUpdateResult>;

Reason cannot(const Exec& exec, const KernelWork& now, const KernelWork& wanted) {
  if (now.context != wanted.context) return CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE;
  const auto cooperative = [](const KernelWork& work) {
    return attribute_of(work, CU_LAUNCH_ATTRIBUTE_COOPERATIVE).cooperative != 0;
  };
  const auto priority = [](const KernelWork& work) {
    return attribute_of(work, CU_LAUNCH_ATTRIBUTE_PRIORITY).priority;
  };
  const bool by_priority = (exec.flags & CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY) != 0;
  if (cooperative(now) != cooperative(wanted) ||
      (by_priority && priority(now) != priority(wanted))) {
    return CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED;
  }
  return std::nullopt;
}

Reason cannot(const Driver& driver, const CUDA_MEMCPY3D& now, const CUDA_MEMCPY3D& wanted) {
  const bool same_kinds = memory_kind(driver, now.srcMemoryType, now.srcDevice) ==
                              memory_kind(driver, wanted.srcMemoryType, wanted.srcDevice) &&
                          memory_kind(driver, now.dstMemoryType, now.dstDevice) ==
                              memory_kind(driver, wanted.dstMemoryType, wanted.dstDevice);
  if (same_kinds) return std::nullopt;
  return CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
}

Reason cannot(const Driver& driver, const CUDA_MEMSET_NODE_PARAMS& now,
              const CUDA_MEMSET_NODE_PARAMS& wanted) {
  const bool same_kind = memory_kind(driver, CU_MEMORYTYPE_UNIFIED, now.dst) ==
                         memory_kind(driver, CU_MEMORYTYPE_UNIFIED, wanted.dst);
  const bool same_size = now.width == wanted.width && now.height == wanted.height &&
                         now.elementSize == wanted.elementSize && now.pitch == wanted.pitch;
  const bool both_flat = is_flat(now) && is_flat(wanted);
  if (same_kind && (same_size || both_flat)) return std::nullopt;
  return CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
}

/// The wanted work with the executable's own graphs in it.
Work adopted(const Work& now, const Work& wanted) {
  Work work = wanted;
  if (auto* child = std::get_if<ChildWork>(&work)) child->graph = std::get<ChildWork>(now).graph;
  if (auto* conditional = std::get_if<ConditionalWork>(&work)) {
    conditional->bodies = std::get<ConditionalWork>(now).bodies;
  }
  return work;
}

}  // namespace

Reason cannot_become(const Driver& driver, const Exec& exec, const Work& now, const Work& wanted) {
  if (const auto* kernel = std::get_if<KernelWork>(&now)) {
    return cannot(exec, *kernel, std::get<KernelWork>(wanted));
  }
  if (const auto* copy = std::get_if<CopyWork>(&now)) {
    return cannot(driver, copy->copy, std::get<CopyWork>(wanted).copy);
  }
  if (const auto* fill = std::get_if<FillWork>(&now)) {
    return cannot(driver, fill->fill, std::get<FillWork>(wanted).fill);
  }
  if (std::holds_alternative<AllocWork>(now) || std::holds_alternative<FreeWork>(now)) {
    return CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED;
  }
  if (const auto* conditional = std::get_if<ConditionalWork>(&now)) {
    if (conditional->type != std::get<ConditionalWork>(wanted).type) {
      return CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
    }
  }
  return std::nullopt;
}

std::optional<Mismatch> update(Exec& exec, const Graph& graph, Graph& image) {
  const Driver& driver = Driver::get();
  Pairing pairing;
  exec.unsettled = true;  // until it is done
  if (auto mismatch = pairing.pair(graph, image)) return mismatch;
  for (const auto& [node, ours] : pairing.ours) {
    if (const auto reason = cannot_become(driver, exec, ours->work, node->work)) {
      return Mismatch{*reason, node, nullptr};
    }
  }
  for (const auto& [node, ours] : pairing.ours) ours->work = adopted(ours->work, node->work);
  for (const auto& [theirs, ours] : pairing.graphs) {
    ours->conditions = theirs->conditions;
    exec.references[ours] = std::make_shared<HeldReferences>(theirs->references);
  }
  exec.program = nullptr;
  exec.unsettled = false;
  return std::nullopt;
}

}  // namespace sim
