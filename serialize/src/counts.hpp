// How much a capture has of everything: looked at against the limits before a reader sets anything
// aside, and before a writer writes what no reader would take.
#pragma once

#include <cstdint>
#include <string>

#include "refrain/base/result.hpp"
#include "refrain/serialize/load_limits.hpp"

namespace refrain::format {

struct Counts {
  std::uint64_t kernels = 0;
  std::uint64_t regions = 0;
  std::uint64_t nodes = 0;
  std::uint64_t arguments = 0;
  std::uint64_t dependencies = 0;
  std::uint64_t parameter_bytes = 0;
};

/// Refuses (`file_limit`) what is more than the limits or than a graph can have; `subject` is who
/// has too much, as a message begins with it.
Result<void> check_within(const Counts& counts, const LoadLimits& limits,
                          const std::string& subject);

}  // namespace refrain::format
