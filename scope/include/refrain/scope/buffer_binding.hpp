// What a piece of work touches: a byte range of one allocation.
#pragma once

#include "refrain/base/byte_range.hpp"
#include "refrain/base/ids.hpp"

namespace refrain {

/// The bytes `range` of the allocation `buffer`. Owns nothing; may be stale (M6).
struct BufferBinding {
  BufferId buffer;
  ByteRange range;

  friend constexpr bool operator==(const BufferBinding&, const BufferBinding&) noexcept = default;
};

}  // namespace refrain
