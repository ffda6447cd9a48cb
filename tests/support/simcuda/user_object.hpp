// User objects: values whose destructor runs once nothing refers to them, on a thread of the
// driver's own, where it may not call the driver.
#pragma once

#include <map>

#include "simcuda/driver.hpp"

namespace sim {

void retain(UserObject& object, unsigned count);
/// At the last reference the destructor is handed to that thread, and the handle is no more.
void release(UserObject& object, unsigned count, const char* function);

/// The references of an executable, released with this: under the driver's mutex, as everything
/// that holds one is let go of.
struct HeldReferences {
  explicit HeldReferences(std::map<UserObject*, unsigned> references);
  ~HeldReferences();
  HeldReferences(const HeldReferences&) = delete;
  HeldReferences& operator=(const HeldReferences&) = delete;

  const std::map<UserObject*, unsigned> objects;
};

}  // namespace sim
