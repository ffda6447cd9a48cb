#include "container_writer.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "little_endian.hpp"

namespace refrain::format {

void append_zeros(std::vector<Piece>& pieces, std::uint64_t bytes) {
  static constexpr std::array<std::byte, kPage> kZeros{};
  while (bytes != 0) {
    const std::uint64_t now = std::min<std::uint64_t>(bytes, kZeros.size());
    pieces.push_back(std::span(kZeros).first(now));
    bytes -= now;
  }
}

void ContainerWriter::add(SectionKind kind, std::uint64_t count, std::string bytes) {
  Draft& draft = sections_.emplace_back();
  draft.section.kind = kind;
  draft.section.count = count;
  draft.section.flags = kCritical;
  draft.section.alignment = kMessageAlignment;
  draft.owned = std::move(bytes);
  draft.pieces.push_back(std::as_bytes(std::span(draft.owned)));
}

void ContainerWriter::add(SectionKind kind, std::uint64_t count, std::uint32_t alignment,
                          std::vector<Piece> pieces) {
  Draft& draft = sections_.emplace_back();
  draft.section.kind = kind;
  draft.section.count = count;
  draft.section.flags = kCritical;
  draft.section.alignment = alignment;
  draft.pieces = std::move(pieces);
}

void ContainerWriter::add_code(Piece bytes) {
  add(SectionKind::code, 1, kPage, {bytes});
  sections_.back().section.flags = 0;
  sections_.back().section.digest_kind = DigestKind::sha_256;
  minor_ = kMinorWithCode;
}

std::vector<Piece> ContainerWriter::finish() {
  header_.assign(kHeaderBytes + sections_.size() * kEntryBytes, std::byte{0});
  std::vector<Piece> file{header_};
  std::uint64_t end = header_.size();
  std::byte* entry = header_.data() + kHeaderBytes;
  for (Draft& draft : sections_) {
    Section& section = draft.section;
    section.offset = align_up(end, section.alignment);
    append_zeros(file, section.offset - end);
    Digester digester(section.digest_kind);
    for (const Piece piece : draft.pieces) {
      section.size += piece.size();
      digester.add(piece);
      file.push_back(piece);
    }
    section.digest = digester.finish();
    end = section.offset + section.size;

    store(entry, static_cast<std::uint32_t>(section.kind));
    store(entry + 4, section.flags);
    store(entry + 8, section.offset);
    store(entry + 16, section.size);
    store(entry + 24, section.count);
    store(entry + 32, section.alignment);
    store(entry + 36, static_cast<std::uint32_t>(section.digest_kind));
    std::memcpy(entry + 40, section.digest.data(), section.digest.size());
    entry += kEntryBytes;
  }
  std::byte* const header = header_.data();
  std::memcpy(header, kMagic.data(), kMagic.size());
  store(header + 8, kMajor);
  store(header + 10, minor_);
  store(header + 12, static_cast<std::uint32_t>(kHeaderBytes));
  store(header + 16, end);
  store(header + 24, next());
  // The flags, at 28, are zero, and so is the digest, at 32, while it is made.
  const Digest digest = digest_of(DigestKind::sha_256, header_);
  std::memcpy(header + 32, digest.data(), digest.size());
  return file;
}

}  // namespace refrain::format
