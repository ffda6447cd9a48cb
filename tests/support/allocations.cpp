#include "support/allocations.hpp"

#include <cstdlib>
#include <new>
#include <utility>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define REFRAIN_TEST_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define REFRAIN_TEST_SANITIZED 1
#endif
#endif

#ifdef REFRAIN_TEST_SANITIZED

const bool refrain::test::kCountsAllocations = false;
std::uint64_t refrain::test::allocations() noexcept { return 0; }
void refrain::test::fail_allocation(std::uint64_t) noexcept {}
bool refrain::test::stop_failing() noexcept { return false; }

#else

// NOLINTBEGIN(cppcoreguidelines-no-malloc): this is what new and delete are made of

namespace {

thread_local std::uint64_t count = 0;
thread_local std::uint64_t to_fail = 0;  // by that count; 0 for none

/// One more is taken.
void take_one() {
  if (++count == to_fail) throw std::bad_alloc();
}

void* take(std::size_t size) {
  take_one();
  if (void* const memory = std::malloc(size != 0 ? size : 1)) return memory;
  throw std::bad_alloc();
}

void* take(std::size_t size, std::align_val_t alignment) {
  take_one();
  const auto to = static_cast<std::size_t>(alignment);
  if (void* const memory = std::aligned_alloc(to, (size + to - 1) / to * to)) return memory;
  throw std::bad_alloc();
}

}  // namespace

const bool refrain::test::kCountsAllocations = true;
std::uint64_t refrain::test::allocations() noexcept { return count; }
void refrain::test::fail_allocation(std::uint64_t n) noexcept { to_fail = count + n + 1; }
bool refrain::test::stop_failing() noexcept {
  const bool thrown = to_fail != 0 && count >= to_fail;
  to_fail = 0;
  return thrown;
}

// The nothrow forms of the standard library call these.
void* operator new(std::size_t size) { return take(size); }
void* operator new[](std::size_t size) { return take(size); }
void* operator new(std::size_t size, std::align_val_t to) { return take(size, to); }
void* operator new[](std::size_t size, std::align_val_t to) { return take(size, to); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

// NOLINTEND(cppcoreguidelines-no-malloc)

#endif
