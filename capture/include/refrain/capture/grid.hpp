// How many threads a kernel is launched with, in CUDA's terms: a grid of blocks of threads.
#pragma once

#include <cstdint>

#include "refrain/base/where.hpp"

namespace refrain {

struct Dim3 {
  std::uint32_t x = 1;
  std::uint32_t y = 1;
  std::uint32_t z = 1;

  [[nodiscard]] constexpr bool empty() const noexcept { return x == 0 || y == 0 || z == 0; }
  friend constexpr bool operator==(const Dim3&, const Dim3&) noexcept = default;
};

/// What a launch asks of a device beside its extent. A device that has no such thing does without:
/// the host's kernels are functions, which run alone.
struct LaunchAttributes {
  /// Blocks that run together and reach each other's shared memory, of sm_90 and later; 0, 0, 0 for
  /// what the kernel itself says.
  Dim3 cluster{0, 0, 0};
  bool cooperative = false;   ///< All blocks run at once and may wait for each other.
  std::int32_t priority = 0;  ///< In a graph, as CUDA has it: the lower, the sooner.
  /// The kernel may start while kernels before it still run (programmatic dependent launch, sm_90
  /// and later), because it waits by itself (`cudaGridDependencySynchronize`, in every block)
  /// before it touches memory that other work uses. One that does not is a race that nothing finds.
  bool programmatic = false;

  friend constexpr bool operator==(const LaunchAttributes&,
                                   const LaunchAttributes&) noexcept = default;
};

/// A launch's extent. `grid(n)` and `grid(blocks, threads)` note where they were called, which is
/// where the launch will be said to have been issued.
struct Grid {
  Dim3 blocks;
  Dim3 threads;                    ///< In one block.
  std::uint32_t shared_bytes = 0;  ///< Dynamic shared memory of one block.
  Where where{};
  LaunchAttributes attributes{};

  /// This grid with other attributes.
  [[nodiscard]] constexpr Grid with(const LaunchAttributes& other) const noexcept {
    Grid changed = *this;
    changed.attributes = other;
    return changed;
  }

  /// A launch of no threads, which is no work at all (O11).
  [[nodiscard]] constexpr bool empty() const noexcept { return blocks.empty() || threads.empty(); }
  /// Compares all but the place.
  friend constexpr bool operator==(const Grid& a, const Grid& b) noexcept {
    return a.blocks == b.blocks && a.threads == b.threads && a.shared_bytes == b.shared_bytes &&
           a.attributes == b.attributes;
  }
};

/// At least `threads` threads in a row, in blocks of 256. A kernel whose work does not fill the
/// last block looks at its own sizes. More blocks than 2^32 - 1 are held at
/// that.
constexpr Grid grid(std::uint64_t threads, Where where = Where::here()) noexcept {
  constexpr std::uint64_t kBlock = 256;
  const std::uint64_t blocks = threads / kBlock + (threads % kBlock != 0 ? 1 : 0);
  const std::uint64_t most = 0xFFFFFFFFU;
  return Grid{{static_cast<std::uint32_t>(blocks < most ? blocks : most), 1, 1},
              {static_cast<std::uint32_t>(kBlock), 1, 1},
              0,
              where,
              {}};
}

/// `blocks` blocks of `threads` threads each.
constexpr Grid grid(Dim3 blocks, Dim3 threads, std::uint32_t shared_bytes = 0,
                    Where where = Where::here()) noexcept {
  return Grid{blocks, threads, shared_bytes, where, {}};
}

}  // namespace refrain
