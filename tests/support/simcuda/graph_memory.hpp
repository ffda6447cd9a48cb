// Memory that belongs to a graph's alloc node. Its address is taken when the node is made and is
// the same in every launch; it is memory from when the node has run until it is freed. The address
// goes back when no node, executable or launch refers to it any more and it is not allocated.
//
// Guarded by the driver's mutex, where every reference to an allocation is let go of too.
#pragma once

#include <cstdint>
#include <memory>

#include "simcuda/driver.hpp"

namespace sim {

struct GraphAllocation {
  GraphAllocation(Driver& owner, std::uint64_t at, std::uint64_t size)
      : driver(owner), address(at), bytes(size) {}
  ~GraphAllocation();
  GraphAllocation(const GraphAllocation&) = delete;
  GraphAllocation& operator=(const GraphAllocation&) = delete;

  Driver& driver;
  const std::uint64_t address;
  const std::uint64_t bytes;
  const Graph* made_in = nullptr;   ///< The graph whose node makes it.
  const Graph* freed_in = nullptr;  ///< A graph that has a node that frees it.
  /// Set while it is allocated, as the work that was issued so far leaves it.
  std::shared_ptr<GraphAllocation> itself;
  bool usable = false;  ///< Likewise, as the work that has run so far leaves it.
};

/// Fills in an alloc node's work and its parameters' address: 1 for bad parameters, 2 without room.
CUresult graph_allocate(Driver& driver, AllocWork& work);

/// The allocation that begins at an address, if a graph's node made it and it still exists.
std::shared_ptr<GraphAllocation> graph_allocation(std::uint64_t address);

/// Before an alloc or a free node becomes part of a graph: notes whose it is. 1 for a free of what
/// no graph allocated, or that is freed elsewhere already.
CUresult join_graph(const Graph& graph, Work& work);

/// What issuing an alloc node, and anything that frees, changes at once.
void issue_allocation(const std::shared_ptr<GraphAllocation>& allocation);
void issue_free(GraphAllocation& allocation);

/// What they change when they run, on the device's thread and without the mutex.
CUresult run_allocation(GraphAllocation& allocation);
CUresult run_free(GraphAllocation& allocation);

/// What cuDeviceGetGraphMemAttribute tells.
struct GraphMemory {
  std::uint64_t used = 0;
  std::uint64_t used_high = 0;
  std::uint64_t reserved = 0;
  std::uint64_t reserved_high = 0;
};
GraphMemory& graph_memory();

}  // namespace sim
