// The launch attributes that a kernel node keeps.
#pragma once

#include <algorithm>

#include "simcuda/graph.hpp"
#include "simcuda/work.hpp"

namespace sim {

/// Valid for graph nodes, by the header.
inline bool is_node_attribute(const CUlaunchAttributeID& id) {
  switch (raw(id)) {
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
    case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
    case 11:  // preferred cluster dimension, which the oldest headers do not name
    case 14:  // preferred shared memory carveout, likewise
      return true;
    default: return false;
  }
}

inline CUlaunchAttributeValue attribute_of(const KernelWork& kernel, CUlaunchAttributeID id) {
  const auto at = std::find_if(kernel.attributes.begin(), kernel.attributes.end(),
                               [&](const CUlaunchAttribute& each) { return each.id == id; });
  return at == kernel.attributes.end() ? CUlaunchAttributeValue{} : at->value;
}

inline void set_attribute(KernelWork& kernel, CUlaunchAttributeID id,
                          const CUlaunchAttributeValue& value) {
  const auto at = std::find_if(kernel.attributes.begin(), kernel.attributes.end(),
                               [&](const CUlaunchAttribute& each) { return each.id == id; });
  if (at != kernel.attributes.end()) {
    at->value = value;
    return;
  }
  CUlaunchAttribute attribute{};
  attribute.id = id;
  attribute.value = value;
  kernel.attributes.push_back(attribute);
}

}  // namespace sim
