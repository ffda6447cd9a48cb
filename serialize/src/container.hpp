// The outside of a capture file, read: header, table, sections and the zeros between them. Knows
// nothing of graphs.
//
// What must stay true: bytes of a section come only from a `VerifiedContainer`, and there is none
// whose bounds, digests and padding have not all been checked. Every number is copied out of the
// file first and checked then, so a file that changes meanwhile cannot slip between the two.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "digest.hpp"
#include "format.hpp"
#include "refrain/base/result.hpp"
#include "refrain/base/shared_bytes.hpp"
#include "refrain/serialize/load_limits.hpp"

namespace refrain::format {

/// One entry of the table.
struct Section {
  SectionKind kind{};  // may be one that this version does not know
  std::uint32_t flags = 0;
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
  std::uint64_t count = 0;  ///< Of its records.
  std::uint32_t alignment = 1;
  DigestKind digest_kind = DigestKind::xxh3_128;
  Digest digest{};
};

/// A file whose sections are what their digests say.
class VerifiedContainer {
 public:
  [[nodiscard]] const std::string& file() const noexcept { return file_; }
  [[nodiscard]] std::span<const Section> sections() const noexcept { return sections_; }
  [[nodiscard]] std::span<const std::byte> bytes(std::size_t section) const noexcept {
    return bytes_.span().subspan(sections_[section].offset, sections_[section].size);
  }
  /// The whole file, to be kept alive by what is used in place.
  [[nodiscard]] const SharedBytes& whole() const noexcept { return bytes_; }

  /// `section 3 (NODES)`.
  [[nodiscard]] std::string describe(std::size_t section) const;

 private:
  friend class ParsedContainer;
  VerifiedContainer(SharedBytes bytes, std::string file, std::vector<Section> sections) noexcept
      : bytes_(std::move(bytes)), file_(std::move(file)), sections_(std::move(sections)) {}

  SharedBytes bytes_;
  std::string file_;
  std::vector<Section> sections_;
};

/// A file whose header and table are whole and whose sections lie within it, in order, without
/// overlap and without a byte left over.
class ParsedContainer {
 public:
  static Result<ParsedContainer> parse(SharedBytes bytes, std::string file,
                                       const LoadLimits& limits);

  /// Reads all of the file once.
  Result<VerifiedContainer> verify() &&;

 private:
  ParsedContainer(SharedBytes bytes, std::string file, std::uint64_t table_end) noexcept
      : bytes_(std::move(bytes)), file_(std::move(file)), table_end_(table_end) {}
  Result<void> add(std::span<const std::byte> entry, std::uint64_t& end);

  SharedBytes bytes_;
  std::string file_;
  std::uint64_t table_end_;
  std::vector<Section> sections_;
};

}  // namespace refrain::format
