// What every row is measured against: the least that anything could do which knows for each buffer
// who is using it. The floor is fixed; what is measured changes, this does not.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace refrain::bench {

/// The call that both sides make: nothing, and never inlined.
[[gnu::noinline]] void near_empty() noexcept;

/// For each buffer one owner word, on a pair of cache lines of its own, since caches fetch them in
/// pairs.
class Floor {
 public:
  explicit Floor(std::size_t buffers) : words_(buffers) {}

  /// For each of `buffers` one compare-exchange of its owner from 0 to a tag, then the call, then
  /// for each one release store of 0.
  void call(std::span<const std::uint32_t> buffers) noexcept {
    for (const std::uint32_t buffer : buffers) {
      std::uint64_t free = 0;
      words_[buffer].owner.compare_exchange_strong(free, kTag);
    }
    near_empty();
    for (const std::uint32_t buffer : buffers) {
      words_[buffer].owner.store(0, std::memory_order_release);
    }
  }

 private:
  static constexpr std::uint64_t kTag = 0x5C09E;
  struct alignas(128) Word {
    std::atomic<std::uint64_t> owner{0};
  };
  std::vector<Word> words_;
};

}  // namespace refrain::bench
