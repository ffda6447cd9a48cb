// When device memory that work in flight may use goes back.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "simcuda/driver.hpp"

namespace sim {

/// Frees an allocation when all of `before` have ended: at once if they have. From now on no
/// further free of it is legal.
void free_after(Driver& driver, std::vector<std::shared_ptr<Op>> before, std::uint64_t address);

}  // namespace sim
