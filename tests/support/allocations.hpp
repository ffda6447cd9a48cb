// Counts what a thread takes from the heap, so that a test can say "this allocates nothing", and
// refuses it, so that a test can say what is left when there is no more.
// A program that uses it has its global operator new replaced; one that does not keeps its own. The
// sanitizers bring an operator new that must stay, so under them nothing is counted.
#pragma once

#include <cstdint>

namespace refrain::test {

/// Whether this build counts at all.
extern const bool kCountsAllocations;

/// How often this thread has called operator new so far; 0 where nothing is counted.
std::uint64_t allocations() noexcept;

/// How often `work()` called operator new, on this thread.
template <class Work>
std::uint64_t allocations_in(Work&& work) {
  const std::uint64_t before = allocations();
  work();
  return allocations() - before;
}

/// From now on the `n`-th call of operator new on this thread, counted from 0, throws, and no
/// other.
void fail_allocation(std::uint64_t n) noexcept;
/// Ends that; answers whether it has thrown.
bool stop_failing() noexcept;

}  // namespace refrain::test
