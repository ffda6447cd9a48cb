// Objects of a fatbin: a container of cubins and PTX for several architectures. Its layout is not
// documented by NVIDIA; docs/cuda.md says on what it was measured.
#pragma once

#include "image_bytes.hpp"
#include "kernel_gathering.hpp"

namespace refrain::cuda {

inline constexpr std::uint32_t kFatbinMagic = 0xBA55ED50;

Result<std::vector<CodeObject>> read_fatbin(Bytes bytes, Budget& budget);

}  // namespace refrain::cuda
