// Kernels of PTX text: its `.entry` declarations. NVIDIA documents this language ("PTX ISA"); of
// it, only what a launch needs to know is read, and bodies are passed over.
#pragma once

#include <string_view>

#include "image_bytes.hpp"
#include "kernel_gathering.hpp"

namespace refrain::cuda {

/// Whether the bytes are text that begins as PTX does: with `.version`, after comments and space.
bool looks_like_ptx(Bytes bytes);

/// Reads PTX text, which may end with zeros; where it lies in an image is the caller's to fill in.
Result<CodeObject> read_ptx(Bytes bytes, Budget& budget);

}  // namespace refrain::cuda
