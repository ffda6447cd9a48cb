// What stands for a kernel when the device runs it: the host function that a test has registered
// under its name.
#include <cstdio>
#include <vector>

#include "simcuda/graph.hpp"
#include "simcuda/submit.hpp"

namespace sim {
namespace {

/// One launch and how it ends; only the device's thread touches it.
struct Running : Launch {
  explicit Running(Driver& of) : Launch(), driver(of) {}

  Driver& driver;
  mutable CUresult code = CUDA_SUCCESS;

  /// The first failure of a launch is the one that counts.
  void end_with(CUresult with) const {
    if (code == CUDA_SUCCESS) code = with;
  }
};

const Running& running(const Launch* launch) { return *static_cast<const Running*>(launch); }

void* memory_of(const Launch* launch, std::uint64_t address, std::size_t bytes) {
  const Running& it = running(launch);
  const std::lock_guard lock(it.driver.mutex);
  void* found = it.driver.memory.reach(address, bytes);
  if (found == nullptr) it.end_with(CUDA_ERROR_ILLEGAL_ADDRESS);
  return found;
}

void fail(const Launch* launch, int code) { running(launch).end_with(static_cast<CUresult>(code)); }

void set_condition_of(const Launch* launch, std::uint64_t handle, unsigned value) {
  set_condition(running(launch).driver, handle, value);
}

std::vector<const void*> pointers_to(const KernelWork& work) {
  std::vector<const void*> pointers;
  for (const Entry::Parameter& each : work.function->entry->parameters) {
    pointers.push_back(work.arguments.data() + each.offset);
  }
  return pointers;
}

}  // namespace

CUresult run_kernel(Driver& driver, const KernelWork& work) {
  const std::string& name = work.function->entry->name;
  KernelBody body = nullptr;
  {
    const std::lock_guard lock(driver.mutex);
    if (const CUresult planned = driver.kernel_runs(name); planned != CUDA_SUCCESS) return planned;
    const auto at = driver.bodies.find(name);
    if (at != driver.bodies.end()) body = at->second;
  }
  if (body == nullptr) {
    std::fprintf(stderr, "simcuda: the kernel %s has no host body, and its code is not run.\n",
                 name.c_str());
    return CUDA_ERROR_LAUNCH_FAILED;
  }
  const std::vector<const void*> pointers = pointers_to(work);
  Running launch(driver);
  for (int axis = 0; axis < 3; ++axis) {
    launch.grid[axis] = work.grid[axis];
    launch.block[axis] = work.block[axis];
  }
  launch.shared_bytes = work.shared_bytes;
  launch.arguments = pointers.data();
  launch.argument_count = pointers.size();
  launch.memory = memory_of;
  launch.fail = fail;
  launch.set_condition = set_condition_of;
  body(&launch);
  return launch.code;
}

}  // namespace sim
