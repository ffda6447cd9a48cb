#include "distribution.hpp"

#include <algorithm>
#include <cmath>

namespace refrain::bench {

Distribution distribution(std::vector<Nanoseconds> samples) {
  if (samples.empty()) return {};
  std::sort(samples.begin(), samples.end());
  const auto at = [&samples](double percent) {
    const double rank = std::ceil(percent / 100.0 * static_cast<double>(samples.size()));
    return samples[static_cast<std::size_t>(std::max(rank, 1.0)) - 1];
  };
  return {samples.size(), samples.front(), at(10), at(50), at(90), at(99), samples.back()};
}

}  // namespace refrain::bench
