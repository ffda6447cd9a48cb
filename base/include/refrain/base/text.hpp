// How messages name things, so that all of them do it alike.
#pragma once

#include <string>
#include <string_view>

#include "refrain/base/byte_range.hpp"
#include "refrain/base/where.hpp"

namespace refrain {

/// `"name"`.
inline std::string quote(std::string_view name) { return "\"" + std::string(name) + "\""; }

/// `[begin, end)`.
inline std::string text(ByteRange range) {
  return "[" + std::to_string(range.begin) + ", " + std::to_string(range.end) + ")";
}

/// ` (file:line)`, or nothing when the place is not known.
inline std::string text(Where where) {
  if (!where.known()) return "";
  return " (" + std::string(where.file) + ":" + std::to_string(where.line) + ")";
}

}  // namespace refrain
