// Graphs of empty kernels, in the two shapes that replays have: one chain, and a fork of several
// chains that join again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "rig.hpp"

namespace refrain::bench {

/// `branches` chains of `depth` nodes each. More than one have a node before them and one after.
struct Shape {
  std::size_t branches = 1;
  std::size_t depth = 1;

  [[nodiscard]] std::size_t nodes() const noexcept {
    return branches * depth + (branches > 1 ? 2 : 0);
  }
  /// "straight 100", "forked 8x12".
  [[nodiscard]] std::string name() const;
};

/// About 1, 10, 100 and 1000 nodes, straight and eight wide.
const std::vector<Shape>& shapes();

struct ShapedGraph {
  Graph graph;
  std::vector<CUgraphNode> nodes;
};

/// A graph of that shape, whose kernels all take `value`.
ShapedGraph build(const Rig& rig, const Shape& shape, std::uint64_t value);

/// The parameters of one kernel node, which point into this: it neither moves nor is copied.
class NodeParameters {
 public:
  NodeParameters(const Rig& rig, std::uint64_t value);
  NodeParameters(const NodeParameters&) = delete;
  [[nodiscard]] const CUDA_KERNEL_NODE_PARAMS_v2& get() const noexcept { return parameters_; }

 private:
  std::uint64_t value_;
  void* arguments_[1];
  CUDA_KERNEL_NODE_PARAMS_v2 parameters_{};
};

Executable instantiate(const Rig& rig, CUgraph graph);

}  // namespace refrain::bench
