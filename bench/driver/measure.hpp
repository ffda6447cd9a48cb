// The measurements, in the order in which they are made. Each adds its rows to the report, and
// throws `BadResult` where the driver refuses something.
#pragma once

#include "report.hpp"
#include "rig.hpp"
#include "shape.hpp"

namespace refrain::bench {

/// Calls that are made beside launches: the clock itself, context, events, queries.
void measure_small_calls(const Rig& rig, const Effort& effort, Report& report);
/// One launch of an empty kernel.
void measure_kernel_launch(const Rig& rig, const Effort& effort, Report& report);
/// One launch of a whole graph, uploaded before.
void measure_graph_launch(const Rig& rig, const Shape& shape, const Effort& effort, Report& report);
/// Instantiating, uploading, and the first launch after either.
void measure_making(const Rig& rig, const Shape& shape, const Effort& effort, Report& report);
/// Giving an executable other parameters: one node's, or a whole graph's.
void measure_updates(const Rig& rig, const Shape& shape, const Effort& effort, Report& report);
/// Device memory that executables take.
void measure_memory(const Rig& rig, const Shape& shape, Report& report);

}  // namespace refrain::bench
