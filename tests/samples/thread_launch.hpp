// Runs what one thread of a CUDA kernel does for every thread of a launch, on the host, as a kernel
// body that compares the result with that of the stage it stands for, bit for bit. Threads run in a
// random order, those of one block too many as well, and outputs lie between guards: so a thread
// that reads what another writes, writes twice or writes where it should not is seen.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <random>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "refrain/refrain.hpp"

namespace thread_launch {

/// A NaN of our own. An output that still has it was not written; around an input, it shows in what
/// a thread makes of it.
inline constexpr std::uint32_t kPoison = 0x7FC0DEADU;
/// Around an output: a small number, which a thread that adds to it does not leave as it was.
inline constexpr std::uint32_t kFence = 0x3A5EED01U;
inline constexpr std::size_t kGuard = 512;  ///< Elements before and after a view.

/// `values` between guards.
inline std::vector<float> guarded(std::span<const float> values, std::uint32_t guard) {
  std::vector<float> all(values.size() + 2 * kGuard, std::bit_cast<float>(guard));
  std::copy(values.begin(), values.end(), all.begin() + kGuard);
  return all;
}

/// Views are of floats here. What a launch's argument is to the stage, and what it is to a thread.
template <class P>
class Side {
 public:
  using ForThread = P;
  explicit Side(P value) : value_(value) {}
  P for_stage() { return value_; }
  P for_thread() { return value_; }
  void settle() {}

 private:
  P value_;
};

template <>
class Side<refrain::In<float>> {
 public:
  using ForThread = const float*;
  explicit Side(std::span<const float> view) : view_(view), guarded_(guarded(view, kPoison)) {}
  std::span<const float> for_stage() { return view_; }
  const float* for_thread() { return guarded_.data() + kGuard; }
  void settle() {}

 private:
  std::span<const float> view_;
  std::vector<float> guarded_;
};

/// The stage and the threads each write one of their own.
class OutputSide {
 public:
  using ForThread = float*;
  OutputSide(std::span<float> view, bool is_read)
      : view_(view), expected_(view.begin(), view.end()) {
    if (!is_read) std::fill(expected_.begin(), expected_.end(), std::bit_cast<float>(kPoison));
    guarded_ = guarded(expected_, kFence);
  }
  std::span<float> for_stage() { return expected_; }
  float* for_thread() { return guarded_.data() + kGuard; }

  /// Compares, and hands on what the threads wrote.
  void settle() {
    std::size_t guards = 0;
    std::size_t others = 0;
    for (std::size_t i = 0; i < guarded_.size(); ++i) {
      const auto bits = std::bit_cast<std::uint32_t>(guarded_[i]);
      if (i < kGuard || i >= kGuard + view_.size()) {
        if (bits != kFence) ++guards;
      } else if (bits != std::bit_cast<std::uint32_t>(expected_[i - kGuard]) || bits == kPoison) {
        ++others;
      }
    }
    CHECK_MESSAGE(guards == 0, "values were written beside an output");
    CHECK_MESSAGE(others == 0, "values differ from those of the stage, or were not written");
    std::copy_n(guarded_.begin() + kGuard, view_.size(), view_.begin());
  }

 private:
  std::span<float> view_;
  std::vector<float> expected_;
  std::vector<float> guarded_;
};

template <>
class Side<refrain::Out<float>> : public OutputSide {
 public:
  explicit Side(std::span<float> view) : OutputSide(view, false) {}
};
template <>
class Side<refrain::InOut<float>> : public OutputSide {
 public:
  explicit Side(std::span<float> view) : OutputSide(view, true) {}
};

/// Calls `thread` with every index of the launch and of one block more.
template <class Thread>
void run_threads(const refrain::Grid& grid, std::mt19937& random, const Thread& thread) {
  REQUIRE(grid.blocks.y * grid.blocks.z * grid.threads.y * grid.threads.z == 1);
  std::vector<std::size_t> indexes(std::size_t{grid.blocks.x + 1} * grid.threads.x);
  std::iota(indexes.begin(), indexes.end(), std::size_t{0});
  std::shuffle(indexes.begin(), indexes.end(), random);
  for (const std::size_t index : indexes) thread(index);
}

template <class K>
struct Both;
template <class... P>
struct Both<refrain::Kernel<P...>> {
  /// What a CUDA kernel with the parameters of this type is to a thread.
  using Thread = void (*)(std::size_t, typename Side<P>::ForThread...);

  template <class Stage>
  static auto body(Stage stage, Thread thread, std::mt19937& random) {
    return [stage, thread, &random](const refrain::Grid& grid, auto... arguments) {
      std::tuple<Side<P>...> sides{Side<P>(arguments)...};
      std::apply(
          [&](auto&... side) {
            REQUIRE(stage(side.for_stage()...).ok());
            run_threads(grid, random,
                        [&](std::size_t index) { thread(index, side.for_thread()...); });
            (side.settle(), ...);
          },
          sides);
    };
  }
};

/// A body for a kernel of type `K`. That `thread` takes the parameters of `K` is a condition for
/// compiling.
template <class K, class Stage>
auto compared(Stage stage, typename Both<K>::Thread thread, std::mt19937& random) {
  return Both<K>::body(stage, thread, random);
}

}  // namespace thread_launch
