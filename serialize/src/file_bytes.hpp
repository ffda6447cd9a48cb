// The bytes of a file, mapped or read.
#pragma once

#include <filesystem>

#include "refrain/base/result.hpp"
#include "refrain/base/shared_bytes.hpp"
#include "refrain/serialize/capture_file.hpp"

namespace refrain::format {

/// All bytes of the regular file at `path`, at the start of a page. Refuses more than `most`
/// before it sets aside or maps any.
Result<SharedBytes> bytes_of(const std::filesystem::path& path, FileAccess access,
                             std::uint64_t most);

}  // namespace refrain::format
