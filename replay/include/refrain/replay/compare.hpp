// Where two devices first differ: one step of the same graph on both, node by node. For finding out
// why a replay gives another answer than its twin, and not for speed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "refrain/base/result.hpp"
#include "refrain/replay/instance.hpp"

namespace refrain {

struct CompareOptions {
  /// By how much elements of f32 and f64 may differ: at most `absolute + relative * |value|`.
  /// Everything else is compared bit by bit, and so are these when both are zero.
  double absolute = 0;
  double relative = 0;
};

/// The first element that differs.
struct NodeDifference {
  std::uint32_t node = 0;  ///< Its index in the graph.
  std::string name;        ///< What the node is called.
  std::string region;      ///< What it wrote; empty for scratch without a name.
  std::uint64_t element = 0;
  double value = 0;  ///< Of the first instance, as far as a double can tell it.
  double other = 0;
};

/// One line: `node 3, "vad.stft", wrote 0.25 to "spectrum" [17], and 0.5 there`.
std::string text(const NodeDifference& difference);

/// Runs one step of `first` and one of `second`, instances of the same graph with the same inputs
/// and states, node by node, each node under a scope of its own, and compares what each node
/// writes. Answers the first difference, after which neither instance has finished its step, or
/// none. An error of a node, or of what it reads, is the answer, and names the node. Refused:
/// graphs that are not the same, what a replay refuses, and a stream of another device.
Result<std::optional<NodeDifference>> compare(Instance& first, Stream& on, Instance& second,
                                              Stream& there, const CompareOptions& options = {});

}  // namespace refrain
