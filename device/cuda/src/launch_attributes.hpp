// What a launch asks of the driver beside its extent. Private to device/cuda.
#pragma once

#include <boost/container/static_vector.hpp>

#include "cuda_api.hpp"
#include "refrain/capture/grid.hpp"

namespace refrain::cuda {

using DriverAttributes = boost::container::static_vector<CUlaunchAttribute, 4>;

/// As the driver takes them, those that differ from its own defaults. A priority is the stream's
/// outside of graphs, so it is left out there; in a graph it is the edges that let a kernel start
/// early, and outside only where the device can do that.
inline DriverAttributes driver_attributes(const LaunchAttributes& asked, bool in_graph,
                                          bool starts_early) {
  DriverAttributes all;
  const auto add = [&](CUlaunchAttributeID id) -> CUlaunchAttributeValue& {
    CUlaunchAttribute attribute{};
    attribute.id = id;
    all.push_back(attribute);
    return all.back().value;
  };
  if (!asked.cluster.empty()) {
    CUlaunchAttributeValue& value = add(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
    value.clusterDim.x = asked.cluster.x;
    value.clusterDim.y = asked.cluster.y;
    value.clusterDim.z = asked.cluster.z;
  }
  if (asked.cooperative) add(CU_LAUNCH_ATTRIBUTE_COOPERATIVE).cooperative = 1;
  if (in_graph && asked.priority != 0) add(CU_LAUNCH_ATTRIBUTE_PRIORITY).priority = asked.priority;
  if (!in_graph && starts_early && asked.programmatic) {
    add(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION)
        .programmaticStreamSerializationAllowed = 1;
  }
  return all;
}

}  // namespace refrain::cuda
