#include "crowd.hpp"

#include <algorithm>
#include <numeric>
#include <random>

namespace refrain::bench {

Crowd::Crowd(std::size_t live, std::size_t claimed) : floor_(live) {
  device_.kernels().add<Near>(
      "near_empty", [](std::span<const float>, std::span<float>, std::uint32_t) -> Result<void> {
        near_empty();
        return {};
      });
  kernel_.emplace(device_.kernel<Near>("near_empty").value());
  for (int thread = 0; thread < 2; ++thread) streams_.push_back(device_.stream().value());
  for (std::size_t at = 0; at < live; ++at) {
    buffers_.push_back(device_.buffer<float>("buffer " + std::to_string(at), kFloats).value());
    if (at + claimed < live) {
      stream(0).fill(buffers_.back(), 0);
    } else {
      stream(0).failed_write(buffers_.back(), Error(ErrorKind::kernel_failed, "It is broken."));
    }
  }
  // The two threads share no buffer. The order is shuffled, the same in every run.
  std::vector<std::uint32_t> shuffled(2 * kOwn);
  std::iota(shuffled.begin(), shuffled.end(), 0U);
  std::shuffle(shuffled.begin(), shuffled.end(), std::mt19937(1));
  for (std::size_t at = 0; at < shuffled.size(); ++at) {
    const std::uint32_t number = shuffled[at];
    order_[at % 2].push_back(number);
    whole_[at % 2].push_back(buffers_[number].view().binding());
    slices_[at % 2].push_back(buffers_[number].view(kFloats / 4, kFloats / 2).binding());
  }
}

void Crowd::mend() {
  for (const std::uint32_t number : order_[0]) stream(0).fill(buffers_[number], 0);
}

}  // namespace refrain::bench
