#include "shape.hpp"

#include <fmt/format.h>

namespace refrain::bench {

std::string Shape::name() const {
  if (branches == 1) return fmt::format("straight {}", depth);
  return fmt::format("forked {}x{}", branches, depth);
}

const std::vector<Shape>& shapes() {
  static const std::vector<Shape> all = {{1, 1}, {1, 10}, {1, 100}, {1, 1000},
                                         {8, 1}, {8, 12}, {8, 125}};
  return all;
}

NodeParameters::NodeParameters(const Rig& rig, std::uint64_t value)
    : value_(value), arguments_{&value_} {
  parameters_.func = rig.empty_kernel();
  parameters_.gridDimX = parameters_.gridDimY = parameters_.gridDimZ = 1;
  parameters_.blockDimX = parameters_.blockDimY = parameters_.blockDimZ = 1;
  parameters_.kernelParams = arguments_;
}

ShapedGraph build(const Rig& rig, const Shape& shape, std::uint64_t value) {
  CUgraph graph = nullptr;
  must(rig.cu().cuGraphCreate(&graph, 0), "cuGraphCreate");
  ShapedGraph built{Graph(rig.cu(), graph), {}};
  const NodeParameters parameters(rig, value);
  const auto add = [&](const std::vector<CUgraphNode>& after) {
    CUgraphNode node = nullptr;
    must(rig.cu().cuGraphAddKernelNode_v2(&node, graph, after.data(), after.size(),
                                          &parameters.get()),
         "cuGraphAddKernelNode");
    built.nodes.push_back(node);
    return node;
  };

  const bool forked = shape.branches > 1;
  std::vector<CUgraphNode> ends(shape.branches, forked ? add({}) : nullptr);
  for (std::size_t level = 0; level < shape.depth; ++level) {
    for (CUgraphNode& end : ends) {
      end = end == nullptr ? add({}) : add({end});
    }
  }
  if (forked) add(ends);
  return built;
}

Executable instantiate(const Rig& rig, CUgraph graph) {
  CUDA_GRAPH_INSTANTIATE_PARAMS parameters{};
  CUgraphExec executable = nullptr;
  must(rig.cu().cuGraphInstantiateWithParams(&executable, graph, &parameters),
       "cuGraphInstantiate");
  return {rig.cu(), executable};
}

}  // namespace refrain::bench
