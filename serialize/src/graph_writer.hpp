// From a sealed graph to the sections of a capture file.
#pragma once

#include "container_writer.hpp"
#include "refrain/base/result.hpp"
#include "refrain/capture/sealed_graph.hpp"

namespace refrain::format {

/// Adds all sections of a file that holds `graph`, which the caller keeps until the file is
/// written. Refuses a graph that is not portable, or of which a reader would refuse the size.
Result<void> write_graph(const SealedGraph& graph, ContainerWriter& file);

}  // namespace refrain::format
