// Reads a whole file into memory, so that the readers of weights and of audio look at bytes that
// can no longer change and whose number they know.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "refrain/base/result.hpp"

namespace vad {

/// The bytes of the file at `path`, which may be a pipe. Fails, naming the file, when it cannot be
/// opened or read (`file_io`), and when it is longer than `limit` bytes (`file_limit`).
refrain::Result<std::vector<std::byte>> read_file(const std::string& path, std::size_t limit);

}  // namespace vad
