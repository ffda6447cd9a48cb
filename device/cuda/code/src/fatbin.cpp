#include "fatbin.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "cubin.hpp"
#include "ptx.hpp"

namespace refrain::cuda {
namespace {

constexpr std::uint64_t kHeaderBytes = 16;
constexpr std::uint64_t kEntryBytes = 64;  // at least; options may stand behind it
constexpr std::uint16_t kContainerVersion = 1;
constexpr std::uint16_t kEntryVersion = 0x0101;
constexpr std::uint16_t kPtxEntry = 1;
constexpr std::uint16_t kCubinEntry = 2;
constexpr std::uint64_t kCompressed = 0x8000 | 0x2000;  // zstd, and the LZ4 of older toolkits
constexpr std::uint64_t kArchitectureSpecific = std::uint64_t{1} << 20U;
constexpr std::uint64_t kFamilySpecific = std::uint64_t{1} << 21U;

struct Entry {
  std::uint16_t kind = 0;
  std::uint64_t flags = 0;
  Architecture architecture;
  std::uint64_t header_bytes = 0;
  Bytes payload;
};

char suffix_of(std::uint64_t flags) noexcept {
  if ((flags & kArchitectureSpecific) != 0) return 'a';
  return (flags & kFamilySpecific) != 0 ? 'f' : '\0';
}

/// The entry that `left` starts with.
Result<Entry> read_entry(Bytes left) {
  if (left.size() < kEntryBytes) {
    return damaged("It has " + std::to_string(left.size()) + " bytes, and its header alone has " +
                   std::to_string(kEntryBytes) + ".");
  }
  if (const auto version = load<std::uint16_t>(left, 2); version != kEntryVersion) {
    return Error(ErrorKind::file_version, "It has version " + std::to_string(version) +
                                              ", and this version of refrain reads " +
                                              std::to_string(kEntryVersion) + ".");
  }
  Entry entry;
  entry.kind = load<std::uint16_t>(left, 0);
  entry.header_bytes = load<std::uint32_t>(left, 4);
  entry.flags = load<std::uint64_t>(left, 40);
  entry.architecture = {load<std::uint32_t>(left, 28), suffix_of(entry.flags)};
  if (entry.header_bytes < kEntryBytes) {
    return damaged("It says that its header has " + std::to_string(entry.header_bytes) +
                   " bytes, and " + std::to_string(kEntryBytes) + " are the least.");
  }
  const auto payload_bytes = load<std::uint64_t>(left, 8);
  const auto payload = slice(left, entry.header_bytes, payload_bytes);
  if (!payload) {
    return damaged("It has a header of " + std::to_string(entry.header_bytes) + " bytes and " +
                   std::to_string(payload_bytes) + " of code, and the fatbin ends after " +
                   std::to_string(left.size()) + ".");
  }
  entry.payload = *payload;
  return entry;
}

Result<CodeObject> read_plain(const Entry& entry, Budget& budget) {
  auto object =
      entry.kind == kPtxEntry ? read_ptx(entry.payload, budget) : read_cubin(entry.payload, budget);
  if (!object) return object;
  if (object->architecture.number != entry.architecture.number) {
    return damaged("The fatbin says that it is for " + text(entry.architecture) +
                   ", and it says itself " + text(object->architecture) + ".");
  }
  if (entry.architecture.suffix != 0) object->architecture = entry.architecture;
  return object;
}

Result<CodeObject> read_object(const Entry& entry, Budget& budget) {
  CodeObject object;
  object.kind = entry.kind == kPtxEntry     ? ObjectKind::ptx
                : entry.kind == kCubinEntry ? ObjectKind::cubin
                                            : ObjectKind::other;
  object.architecture = entry.architecture;
  object.compressed = (entry.flags & kCompressed) != 0;
  if (object.kind == ObjectKind::other || object.compressed) return object;
  return read_plain(entry, budget);
}

/// The entries, without the header of the container.
Result<Bytes> open_container(Bytes bytes) {
  if (bytes.size() < kHeaderBytes) {
    return damaged("The fatbin ends at byte " + std::to_string(bytes.size()) +
                   ", within its header.");
  }
  if (const auto version = load<std::uint16_t>(bytes, 4); version != kContainerVersion) {
    return Error(ErrorKind::file_version, "The fatbin has version " + std::to_string(version) +
                                              ", and this version of refrain reads " +
                                              std::to_string(kContainerVersion) + ".");
  }
  const auto header_bytes = load<std::uint16_t>(bytes, 6);
  const auto entries_bytes = load<std::uint64_t>(bytes, 8);
  const auto entries = slice(bytes, header_bytes, entries_bytes);
  if (header_bytes < kHeaderBytes || !entries) {
    return damaged("The fatbin says that it has a header of " + std::to_string(header_bytes) +
                   " bytes and " + std::to_string(entries_bytes) + " behind it, and it has " +
                   std::to_string(bytes.size()) + " in all.");
  }
  const Bytes rest = bytes.subspan(header_bytes + entries_bytes);
  if (std::any_of(rest.begin(), rest.end(), [](std::byte each) { return each != std::byte{0}; })) {
    return damaged("The fatbin ends at byte " + std::to_string(header_bytes + entries_bytes) +
                   ", and something else stands behind it.");
  }
  return *entries;
}

}  // namespace

Result<std::vector<CodeObject>> read_fatbin(Bytes bytes, Budget& budget) {
  const auto entries = open_container(bytes);
  if (!entries) return entries.error();
  std::vector<CodeObject> objects;
  Bytes left = *entries;
  while (!left.empty()) {
    const auto at = static_cast<std::size_t>(left.data() - bytes.data());
    const auto here = [&](const Error& error) {
      return error.with_context("While reading object " + std::to_string(objects.size()) +
                                " of the fatbin, at byte " + std::to_string(at) + ".");
    };
    if (objects.size() == budget.limits.objects) {
      return Error(ErrorKind::file_limit, "The fatbin has more objects than the limit of " +
                                              std::to_string(budget.limits.objects) + ".");
    }
    const auto entry = read_entry(left);
    if (!entry) return here(entry.error());
    auto object = read_object(*entry, budget);
    if (!object) return here(object.error());
    object->offset = at + entry->header_bytes;
    object->size = entry->payload.size();
    objects.push_back(*std::move(object));
    left = left.subspan(entry->header_bytes + entry->payload.size());
  }
  return objects;
}

}  // namespace refrain::cuda
