#include "counts.hpp"

#include <algorithm>
#include <array>

namespace refrain::format {

Result<void> check_within(const Counts& counts, const LoadLimits& limits,
                          const std::string& subject) {
  struct Row {
    const char* name;
    std::uint64_t has;
    std::uint64_t limit;
  };
  const std::array rows{
      Row{"kernels", counts.kernels, limits.kernels},
      Row{"regions", counts.regions, limits.regions},
      Row{"nodes", counts.nodes, limits.nodes},
      Row{"arguments", counts.arguments, limits.arguments},
      Row{"dependencies", counts.dependencies, limits.dependencies},
      Row{"bytes of parameters", counts.parameter_bytes, limits.parameter_bytes},
  };
  for (const Row& row : rows) {
    // A graph counts in 32 bits, whatever the caller allows.
    const std::uint64_t limit = std::min<std::uint64_t>(row.limit, 0xFFFFFFFFU);
    if (row.has > limit) {
      return Error(ErrorKind::file_limit, subject + " has " + std::to_string(row.has) + " " +
                                              row.name + ", more than the limit of " +
                                              std::to_string(limit) + ".");
    }
  }
  return {};
}

}  // namespace refrain::format
