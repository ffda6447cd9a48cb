// Counts what a thread takes from the heap, so that a test can say "this allocates nothing".
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

/// The `nth` call of operator new on this thread from now on throws, counting from 1; 0 for none.
/// Answers whether one that was to throw has not come yet.
bool fail_allocation(std::uint64_t nth) noexcept;

}  // namespace refrain::test
