#include "simcuda/graph_memory.hpp"

#include <algorithm>
#include <map>

namespace sim {
namespace {

/// Never destroyed, as the driver.
std::map<std::uint64_t, std::weak_ptr<GraphAllocation>>& allocations() {
  static auto* const kAllocations = new std::map<std::uint64_t, std::weak_ptr<GraphAllocation>>;
  return *kAllocations;
}

void set_usable(GraphAllocation& allocation, bool usable) {
  const std::lock_guard lock(allocation.driver.mutex);
  if (allocation.usable == usable) return;
  allocation.usable = usable;
  allocation.driver.memory.block(allocation.address)->usable = usable;
  GraphMemory& all = graph_memory();
  all.used = usable ? all.used + allocation.bytes : all.used - allocation.bytes;
  all.used_high = std::max(all.used_high, all.used);
  all.reserved = std::max(all.reserved, all.used);
  all.reserved_high = std::max(all.reserved_high, all.reserved);
}

}  // namespace

GraphAllocation::~GraphAllocation() {
  allocations().erase(address);
  driver.memory.free(address);
}

CUresult graph_allocate(Driver& driver, AllocWork& work) {
  CUDA_MEM_ALLOC_NODE_PARAMS& parameters = work.parameters;
  if (parameters.bytesize == 0 || parameters.poolProps.allocType != CU_MEM_ALLOCATION_TYPE_PINNED ||
      parameters.poolProps.handleTypes != CU_MEM_HANDLE_TYPE_NONE ||
      parameters.poolProps.location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
      parameters.poolProps.location.id != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const std::uint64_t address = driver.memory.allocate(parameters.bytesize);
  if (address == 0) return CUDA_ERROR_OUT_OF_MEMORY;
  driver.memory.block(address)->usable = false;
  parameters.dptr = address;
  work.allocation = std::make_shared<GraphAllocation>(driver, address, parameters.bytesize);
  allocations()[address] = work.allocation;
  return CUDA_SUCCESS;
}

std::shared_ptr<GraphAllocation> graph_allocation(std::uint64_t address) {
  const auto at = allocations().find(address);
  return at == allocations().end() ? nullptr : at->second.lock();
}

CUresult join_graph(const Graph& graph, Work& work) {
  if (auto* alloc = std::get_if<AllocWork>(&work)) alloc->allocation->made_in = &graph;
  auto* free = std::get_if<FreeWork>(&work);
  if (free == nullptr) return CUDA_SUCCESS;
  auto allocation = graph_allocation(free->address);
  if (allocation == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Graph* other = allocation->freed_in;
  const bool by_owner = allocation->made_in == &graph || allocation->made_in == other;
  if (other == &graph || (other != nullptr && by_owner)) return CUDA_ERROR_INVALID_VALUE;
  allocation->freed_in = &graph;
  free->allocation = std::move(allocation);
  return CUDA_SUCCESS;
}

void issue_allocation(const std::shared_ptr<GraphAllocation>& allocation) {
  allocation->itself = allocation;
}

void issue_free(GraphAllocation& allocation) { allocation.itself = nullptr; }

CUresult run_allocation(GraphAllocation& allocation) {
  set_usable(allocation, true);
  return CUDA_SUCCESS;
}

CUresult run_free(GraphAllocation& allocation) {
  set_usable(allocation, false);
  return CUDA_SUCCESS;
}

GraphMemory& graph_memory() {
  static GraphMemory memory;
  return memory;
}

}  // namespace sim
