// The CUDA kernel of the quickstart, thread by thread on the host.
#include <doctest/doctest.h>

#include <cstddef>
#include <random>
#include <span>
#include <vector>

#include "quickstart/saxpy_cuda.hpp"
#include "refrain/refrain.hpp"
#include "thread_launch.hpp"

namespace {

// As in quickstart.cpp, which is one program and has no header.
using Saxpy = refrain::Kernel<refrain::In<float>, refrain::InOut<float>, float>;
constexpr std::size_t kCount = 1024;

TEST_CASE("quickstart: the threads of the CUDA saxpy add a times x to y and write nothing else") {
  const auto seed = std::random_device{}();
  CAPTURE(seed);
  std::mt19937 random(seed);
  std::uniform_int_distribution<int> between(-1000, 1000);
  // Whole numbers, so that every way to round gives the same.
  std::vector<float> x(kCount);
  std::vector<float> y(kCount);
  for (float& value : x) value = static_cast<float>(between(random));
  for (float& value : y) value = static_cast<float>(between(random));

  const auto stage = [](std::span<const float> in, std::span<float> out, float a) {
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = a * in[i] + out[i];
    return refrain::Result<void>();
  };
  const auto before = y;
  thread_launch::compared<Saxpy>(stage, saxpy_thread, random)(
      refrain::grid(kCount), std::span<const float>(x), std::span<float>(y), 2.0F);
  for (const std::size_t i : {std::size_t{0}, kCount / 2, kCount - 1}) {
    CHECK(y[i] == before[i] + 2.0F * x[i]);
  }
}

}  // namespace
