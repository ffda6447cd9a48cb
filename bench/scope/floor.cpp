#include "floor.hpp"

namespace refrain::bench {

void near_empty() noexcept { asm volatile(""); }

}  // namespace refrain::bench
