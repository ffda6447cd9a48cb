// The outside of a capture file, written: sections in, the bytes of the file out. Large bytes, the
// constants, are never copied on their way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <vector>

#include "container.hpp"

namespace refrain::format {

/// Bytes that somebody else keeps.
using Piece = std::span<const std::byte>;

/// A file in the making: add sections in order, then finish. Nothing of it depends on where or
/// when it is made.
class ContainerWriter {
 public:
  /// A section with these bytes, which the writer keeps.
  void add(SectionKind kind, std::uint64_t count, std::string bytes);
  /// A section that is made of these pieces, which the caller keeps.
  void add(SectionKind kind, std::uint64_t count, std::uint32_t alignment,
           std::vector<Piece> pieces);

  /// A code image, which the caller keeps. A reader that does not know such sections skips it, and
  /// needs kernels of its own.
  void add_code(Piece bytes);

  /// Where the next section will stand in the table.
  [[nodiscard]] std::uint32_t next() const noexcept {
    return static_cast<std::uint32_t>(sections_.size());
  }

  /// The whole file in order; valid as long as the writer and what was given to it.
  std::vector<Piece> finish();

 private:
  struct Draft {
    Section section;
    std::string owned;
    std::vector<Piece> pieces;
  };

  std::deque<Draft> sections_;  // a deque: `owned` stays where it is
  std::vector<std::byte> header_;
  std::uint16_t minor_ = kMinor;
};

/// `bytes` zeros as pieces.
void append_zeros(std::vector<Piece>& pieces, std::uint64_t bytes);

}  // namespace refrain::format
