// The memory of a graph without the memory: what each region is for, how large it is and how it
// starts. Roles are said by whoever made the buffer, never guessed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "refrain/base/byte_range.hpp"
#include "refrain/base/shared_bytes.hpp"
#include "refrain/capture/element.hpp"

namespace refrain {

/// What a region is for. Saved in files: never renumber.
enum class Role : std::uint8_t {
  none = 0,      ///< Nobody said. Read from outside, its graph cannot be saved.
  input = 1,     ///< The caller gives its bytes, for each replay; it may also be written.
  output = 2,    ///< Written, and read by the caller.
  state = 3,     ///< Has a declared start, and is carried from replay to replay.
  constant = 4,  ///< Never changes; its bytes are part of the graph.
  scratch = 5,   ///< Written before it is read; nobody outside looks at it.
};

inline constexpr std::uint8_t kLastRole = 5;

std::string_view name_of(Role role) noexcept;

/// Nothing is said about the first bytes.
struct NoStart {
  friend bool operator==(const NoStart&, const NoStart&) = default;
};
/// All zero.
struct ZeroStart {
  friend bool operator==(const ZeroStart&, const ZeroStart&) = default;
};
/// How the bytes of a region start: a state's declared start, or a constant's bytes.
using RegionStart = std::variant<NoStart, ZeroStart, SharedBytes>;

/// One stretch of memory that a graph uses; an instance gives it an address.
struct Region {
  std::string name;  ///< Unique among the regions that have one; scratch may have none.
  Role role = Role::none;
  ElementType element = ElementType::bytes;
  std::uint64_t bytes = 0;
  std::uint32_t alignment = 64;  ///< In bytes, a power of two.
  RegionStart start;
  bool frozen = false;  ///< Host bytes that a window recorded (C14); always a constant.
};

/// Bytes of a region, by its index in the graph.
struct RegionBytes {
  std::uint32_t region = 0;
  ByteRange range;

  friend constexpr bool operator==(const RegionBytes&, const RegionBytes&) noexcept = default;
};

}  // namespace refrain
