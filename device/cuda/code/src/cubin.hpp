// Kernels of a cubin: an ELF file whose `.nv.info` sections hold records about each kernel. The
// numbers of these records are not documented by NVIDIA; docs/cuda.md says on what they were
// measured.
#pragma once

#include "image_bytes.hpp"
#include "kernel_gathering.hpp"

namespace refrain::cuda {

/// Reads one cubin; where it lies in an image is the caller's to fill in.
Result<CodeObject> read_cubin(Bytes bytes, Budget& budget);

}  // namespace refrain::cuda
