// What replaying saves: the same steps launched one by one and replayed, in one process and taking
// turns, so that whatever else the machine does falls on both.
#pragma once

#include <cstddef>
#include <memory>

#include "refrain/refrain.hpp"
#include "vad/audio.hpp"
#include "vad/weights.hpp"

namespace vad {

/// Prints the medians over `passes` passes, with the model's kernels and with empty ones. False
/// when two passes gave different probabilities, which it says on stderr.
bool compare(const std::shared_ptr<const Weights>& weights, const Audio& audio, std::size_t passes);

/// Runs `audio` through the recorded step on `device` and on `twin` side by side, node by node, and
/// prints the first node whose result differs by more than `tolerance` from its twin's. Answers
/// whether none does.
bool compare_nodes(const refrain::Device& device, const refrain::Device& twin,
                   const std::shared_ptr<const Weights>& weights, const Audio& audio,
                   double tolerance);

}  // namespace vad
