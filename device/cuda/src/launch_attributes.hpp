// What a launch asks of the driver beside its extent. Private to device/cuda.
#pragma once

#include <boost/container/static_vector.hpp>

#include "cuda_api.hpp"
#include "refrain/capture/grid.hpp"

namespace refrain::cuda {

using DriverAttributes = boost::container::static_vector<CUlaunchAttribute, 3>;

/// As the driver takes them, those that differ from its own defaults, without those that are one
/// thing on a stream and another in a graph.
inline DriverAttributes common_attributes(const LaunchAttributes& asked) {
  DriverAttributes all;
  if (!asked.cluster.empty()) {
    CUlaunchAttribute cluster{};
    cluster.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    cluster.value.clusterDim.x = asked.cluster.x;
    cluster.value.clusterDim.y = asked.cluster.y;
    cluster.value.clusterDim.z = asked.cluster.z;
    all.push_back(cluster);
  }
  if (asked.cooperative) {
    CUlaunchAttribute cooperative{};
    cooperative.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
    cooperative.value.cooperative = 1;
    all.push_back(cooperative);
  }
  return all;
}

/// Of a node of a graph, where it is the edges that let a kernel start early.
inline DriverAttributes node_attributes(const LaunchAttributes& asked) {
  DriverAttributes all = common_attributes(asked);
  if (asked.priority != 0) {
    CUlaunchAttribute priority{};
    priority.id = CU_LAUNCH_ATTRIBUTE_PRIORITY;
    priority.value.priority = asked.priority;
    all.push_back(priority);
  }
  return all;
}

/// Of a launch on a stream, whose priority is that of the stream.
inline DriverAttributes stream_attributes(const LaunchAttributes& asked, bool can_start_early) {
  DriverAttributes all = common_attributes(asked);
  if (can_start_early && asked.programmatic) {
    CUlaunchAttribute early{};
    early.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    early.value.programmaticStreamSerializationAllowed = 1;
    all.push_back(early);
  }
  return all;
}

}  // namespace refrain::cuda
