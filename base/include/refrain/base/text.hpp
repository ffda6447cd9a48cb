// How messages name things, so that all of them do it alike.
#pragma once

#include <string>
#include <string_view>

#include "refrain/base/byte_range.hpp"
#include "refrain/base/where.hpp"

namespace refrain {

/// `"name"`. Control characters become `\xNN`: a name may come from a file that nobody trusts, and
/// a message may go to a terminal.
inline std::string quote(std::string_view name) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text = "\"";
  for (const char each : name) {
    const auto byte = static_cast<unsigned char>(each);
    if (byte >= 0x20 && byte != 0x7F) {
      text += each;
      continue;
    }
    text += "\\x";
    text += kDigits[byte >> 4U];
    text += kDigits[byte & 0xFU];
  }
  return text + "\"";
}

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
