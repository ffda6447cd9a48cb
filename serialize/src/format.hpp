// The numbers of the format, for the side that writes and the side that reads. docs/format.md
// explains them.
//
// Saved in files: never renumber.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace refrain::format {

// Parameter blocks and constants are stored as they lie in memory.
static_assert(std::endian::native == std::endian::little,
              "capture files hold little-endian data, and this processor is big-endian");

/// As in PNG: a first byte that no text has, CR LF and LF, which a transfer as text changes, and
/// 0x1A, at which DOS stops to print.
inline constexpr std::array<unsigned char, 8> kMagic{0x8C, 'R', 'F', 'N', '\r', '\n', 0x1A, '\n'};

inline constexpr std::uint16_t kMajor = 1;          ///< A reader refuses every other one.
inline constexpr std::uint16_t kMinor = 0;          ///< A higher one adds only what may be skipped.
inline constexpr std::uint16_t kMinorWithCode = 1;  ///< Of a file with code images.

inline constexpr std::uint64_t kHeaderBytes = 64;
inline constexpr std::uint64_t kLargestHeader = 4'096;
inline constexpr std::uint64_t kEntryBytes = 96;

/// Of MANIFEST and CAPTURE, which are one message each.
inline constexpr std::uint64_t kLargestMessage = std::uint64_t{1} << 20U;
/// Of one record in REGIONS, NODES and SYMBOLS.
inline constexpr std::uint64_t kLargestRecord = std::uint64_t{1} << 16U;
inline constexpr int kDeepestMessage = 16;
inline constexpr std::size_t kDependenciesPerRecord = 1'024;

inline constexpr std::uint32_t kMessageAlignment = 8;
/// Of constants from this size on, so that they can be mapped by themselves; and of their section.
inline constexpr std::uint32_t kPage = 4'096;
/// Of smaller ones: a cache line, which is what an allocation has at least.
inline constexpr std::uint32_t kLine = 64;

/// Required by a file some kernel of which has effects: its nodes follow more than their bytes say.
inline constexpr std::string_view kEffectsFeature = "effects";

/// Required by a file some launch of which asks for more than its extent.
inline constexpr std::string_view kLaunchAttributesFeature = "launch_attributes";

enum class SectionKind : std::uint32_t {
  manifest = 1,
  capture = 2,
  regions = 3,
  nodes = 4,
  symbols = 5,
  constants = 6,
  code = 7,
};

/// Flag of a section: a reader that does not know its kind refuses the file.
inline constexpr std::uint32_t kCritical = 1;

enum class DigestKind : std::uint32_t { xxh3_128 = 1, sha_256 = 2 };

/// What an argument's address becomes in the parameter block.
enum class Relocation : std::uint32_t {
  none = 0,       ///< There is no block: a copy or a fill.
  address64 = 1,  ///< 8 bytes, little-endian.
};

/// As docs/format.md calls it, or "unknown".
constexpr std::string_view name_of(SectionKind kind) noexcept {
  switch (kind) {
    case SectionKind::manifest: return "MANIFEST";
    case SectionKind::capture: return "CAPTURE";
    case SectionKind::regions: return "REGIONS";
    case SectionKind::nodes: return "NODES";
    case SectionKind::symbols: return "SYMBOLS";
    case SectionKind::constants: return "CONST";
    case SectionKind::code: return "CODE";
  }
  return "unknown";
}

/// `at`, moved up to a multiple of `alignment`, a power of two. `at` is within a file.
constexpr std::uint64_t align_up(std::uint64_t at, std::uint64_t alignment) noexcept {
  return (at + alignment - 1) & ~(alignment - 1);
}

}  // namespace refrain::format
