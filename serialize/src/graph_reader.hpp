// From the sections of a capture to a sealed graph. Checks what only a file can get wrong; the
// structure of the graph is checked where every graph's is, in `SealedGraph::make`.
#pragma once

#include <string>

#include "container.hpp"
#include "manifest.hpp"
#include "refrain/base/result.hpp"
#include "refrain/capture/sealed_graph.hpp"
#include "refrain/serialize/load_limits.hpp"

namespace refrain::format {

/// Reads capture number `capture` of `contents`, which are those of `container`.
Result<SealedGraph> read_graph(const VerifiedContainer& container, const Contents& contents,
                               std::size_t capture, const LoadLimits& limits);

}  // namespace refrain::format
