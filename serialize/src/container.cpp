#include "container.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "little_endian.hpp"
#include "refusal.hpp"

namespace refrain::format {
namespace {

constexpr std::size_t kDigestInHeader = 32;

std::string describe(std::size_t index, SectionKind kind) {
  const bool known = name_of(kind) != "unknown";
  return "section " + std::to_string(index) + " (" +
         (known ? std::string(name_of(kind))
                : "kind " + std::to_string(static_cast<std::uint32_t>(kind))) +
         ")";
}

bool all_zero(std::span<const std::byte> bytes) noexcept {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; });
}

/// Says what a file is that does not start with the header of a capture file.
Error no_header(std::span<const std::byte> bytes, const std::string& file) {
  if (bytes.empty()) {
    return refuse_file(ErrorKind::file_foreign, file, "is empty, so it is no capture file.");
  }
  const std::size_t compared = std::min(bytes.size(), kMagic.size());
  if (std::memcmp(bytes.data(), kMagic.data(), compared) == 0) {
    return refuse_file(ErrorKind::file_damaged, file,
                       "ends at byte " + std::to_string(bytes.size()) +
                           ", and a header alone has " + std::to_string(kHeaderBytes) + ".");
  }
  constexpr std::size_t kTag = 4;  // the rest is there to be spoilt by a transfer as text
  if (bytes.size() > kTag && std::memcmp(bytes.data(), kMagic.data(), kTag) == 0) {
    return refuse_file(ErrorKind::file_damaged, file,
                       "has lost its line ends, as after a transfer as text.");
  }
  return refuse_file(ErrorKind::file_foreign, file, "is no capture file: it starts otherwise.");
}

}  // namespace

std::string VerifiedContainer::describe(std::size_t section) const {
  return format::describe(section, sections_[section].kind);
}

Result<ParsedContainer> ParsedContainer::parse(SharedBytes bytes, std::string file,
                                               const LoadLimits& limits) {
  const std::span<const std::byte> all = bytes.span();
  const auto damaged = [&](const std::string& what) {
    return refuse_file(ErrorKind::file_damaged, file, what);
  };
  if (all.size() > limits.file_bytes) {
    return refuse_file(ErrorKind::file_limit, file,
                       "has " + std::to_string(all.size()) + " bytes, more than the limit of " +
                           std::to_string(limits.file_bytes) + ".");
  }
  if (all.size() < kHeaderBytes || std::memcmp(all.data(), kMagic.data(), kMagic.size()) != 0) {
    return no_header(all, file);
  }

  const std::byte* const header = all.data();
  const auto major = load<std::uint16_t>(header + 8);
  const auto minor = load<std::uint16_t>(header + 10);
  const auto header_bytes = load<std::uint32_t>(header + 12);
  const auto file_bytes = load<std::uint64_t>(header + 16);
  const auto count = load<std::uint32_t>(header + 24);
  const auto flags = load<std::uint32_t>(header + 28);
  // First of all: what follows is only known for this major version.
  if (major != kMajor) {
    return refuse_file(ErrorKind::file_version, file,
                       "has format " + std::to_string(major) + "." + std::to_string(minor) +
                           ", and this version of refrain reads " + std::to_string(kMajor) + ".x.");
  }
  if (file_bytes > all.size()) {
    return damaged("ends at byte " + std::to_string(all.size()) +
                   ", but its header says that it has " + std::to_string(file_bytes) + " bytes.");
  }
  if (file_bytes < all.size()) {
    return damaged("has " + std::to_string(all.size()) + " bytes, but its header says that it " +
                   "has " + std::to_string(file_bytes) + ".");
  }
  if (header_bytes < kHeaderBytes || header_bytes > kLargestHeader || header_bytes % 8 != 0 ||
      header_bytes > all.size()) {
    return damaged("says that its header has " + std::to_string(header_bytes) +
                   " bytes, which cannot be.");
  }
  if (count > (all.size() - header_bytes) / kEntryBytes) {
    return damaged("has " + std::to_string(all.size()) + " bytes, too few for the " +
                   std::to_string(count) + " sections that its header speaks of.");
  }
  if (count > limits.sections) {
    return refuse_file(ErrorKind::file_limit, file,
                       "has " + std::to_string(count) + " sections, more than the limit of " +
                           std::to_string(limits.sections) + ".");
  }

  const std::uint64_t table_end = header_bytes + count * kEntryBytes;
  Digester digester(DigestKind::sha_256);
  constexpr Digest kNoDigest{};
  digester.add(all.first(kDigestInHeader));
  digester.add(kNoDigest);
  digester.add(all.subspan(kHeaderBytes, table_end - kHeaderBytes));
  const Digest digest = digester.finish();
  if (std::memcmp(digest.data(), header + kDigestInHeader, digest.size()) != 0) {
    return damaged("has a header and table that do not match their digest.");
  }
  if (flags != 0) {
    return refuse_file(ErrorKind::file_version, file,
                       "has the flags " + std::to_string(flags) +
                           " in its header, none of which this version of refrain knows.");
  }

  ParsedContainer parsed(std::move(bytes), std::move(file), table_end);
  parsed.sections_.reserve(count);
  std::uint64_t end = table_end;
  for (std::uint64_t at = 0; at < count; ++at) {
    REFRAIN_TRY(parsed.add(all.subspan(header_bytes + at * kEntryBytes, kEntryBytes), end));
  }
  if (end != all.size()) {
    return refuse_file(ErrorKind::file_damaged, parsed.file_,
                       "has " + std::to_string(all.size()) +
                           " bytes, and its last section ends at byte " + std::to_string(end) +
                           ".");
  }
  return parsed;
}

Result<void> ParsedContainer::add(std::span<const std::byte> entry, std::uint64_t& end) {
  const std::byte* const from = entry.data();
  Section section;
  section.kind = static_cast<SectionKind>(load<std::uint32_t>(from));
  section.flags = load<std::uint32_t>(from + 4);
  section.offset = load<std::uint64_t>(from + 8);
  section.size = load<std::uint64_t>(from + 16);
  section.count = load<std::uint64_t>(from + 24);
  section.alignment = load<std::uint32_t>(from + 32);
  section.digest_kind = static_cast<DigestKind>(load<std::uint32_t>(from + 36));
  std::memcpy(section.digest.data(), from + 40, section.digest.size());

  const std::string name = describe(sections_.size(), section.kind);
  const auto newer = [&](const std::string& what) {
    return refuse_in_file(ErrorKind::file_version, file_,
                          name + " " + what + " this version of refrain does not know.");
  };
  const auto damaged = [&](const std::string& what) {
    return refuse_in_file(ErrorKind::file_damaged, file_, name + " " + what);
  };
  if ((section.flags & ~kCritical) != 0) {
    return newer("has the flags " + std::to_string(section.flags) + ", which");
  }
  if (name_of(section.kind) == "unknown" && (section.flags & kCritical) != 0) {
    return newer("must be understood, and is of a kind that");
  }
  if (section.digest_kind != DigestKind::xxh3_128 && section.digest_kind != DigestKind::sha_256) {
    return newer("has a digest of kind " +
                 std::to_string(static_cast<std::uint32_t>(section.digest_kind)) + ", which");
  }
  if (!all_zero(entry.subspan(72))) return damaged("has an entry whose last bytes are not zero.");
  if (!std::has_single_bit(section.alignment)) {
    return damaged("has an alignment of " + std::to_string(section.alignment) +
                   ", which is no power of two.");
  }
  // `end` is within the file, so this does not overflow.
  if (section.offset != align_up(end, section.alignment)) {
    return damaged("starts at byte " + std::to_string(section.offset) +
                   ", and the next multiple of " + std::to_string(section.alignment) +
                   " after what comes before it is " +
                   std::to_string(align_up(end, section.alignment)) + ".");
  }
  const std::uint64_t file_bytes = bytes_.size();
  if (section.offset > file_bytes || section.size > file_bytes - section.offset) {
    return damaged("has " + std::to_string(section.size) + " bytes from byte " +
                   std::to_string(section.offset) + " on, past the end of the file at " +
                   std::to_string(file_bytes) + ".");
  }
  end = section.offset + section.size;
  sections_.push_back(section);
  return {};
}

Result<VerifiedContainer> ParsedContainer::verify() && {
  const std::span<const std::byte> bytes = bytes_.span();
  std::uint64_t end = table_end_;
  for (std::size_t at = 0; at < sections_.size(); ++at) {
    const Section& section = sections_[at];
    const auto damaged = [&](const std::string& what) {
      return refuse_in_file(ErrorKind::file_damaged, file_,
                            describe(at, section.kind) + " " + what);
    };
    // A digest does not cover the zeros between sections.
    if (!all_zero(bytes.subspan(end, section.offset - end))) {
      return damaged("has something other than zeros before it, in bytes " +
                     text(ByteRange{end, section.offset}) + ".");
    }
    if (digest_of(section.digest_kind, bytes.subspan(section.offset, section.size)) !=
        section.digest) {
      return damaged("does not match its digest.");
    }
    end = section.offset + section.size;
  }
  return VerifiedContainer(std::move(bytes_), std::move(file_), std::move(sections_));
}

}  // namespace refrain::format
