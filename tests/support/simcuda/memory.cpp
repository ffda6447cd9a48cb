#include "simcuda/memory.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "simcuda/objects.hpp"

namespace sim {
namespace {

/// Addresses, many more than there are bytes, so that room is never short for being scattered.
constexpr std::uint64_t kRange = std::uint64_t{32} << 30U;
/// Left free behind each allocation, so that running over its end meets nobody else's bytes.
constexpr std::uint64_t kGap = 512;
/// Fresh bytes and freed bytes look like this, for as much of a block as is cheap to touch.
constexpr int kFresh = 0xA5;
constexpr int kFreed = 0xDD;
constexpr std::uint64_t kMarked = std::uint64_t{1} << 20U;

std::uint64_t rounded(std::uint64_t bytes) {
  return (bytes + Memory::kAlignment - 1) / Memory::kAlignment * Memory::kAlignment;
}

std::byte* reserve(int protection) {
  void* range =
      mmap(nullptr, kRange, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (range == MAP_FAILED) give_up("cuInit", "found no room for the device's addresses");
  return static_cast<std::byte*>(range);
}

/// The entry of a map of ranges, first address -> something with `bytes`, that holds an address.
template <class Map>
const typename Map::value_type* holding(const Map& map, std::uint64_t address) {
  auto at = map.upper_bound(address);
  if (at == map.begin()) return nullptr;
  --at;
  return address - at->first < at->second.bytes ? &*at : nullptr;
}

}  // namespace

Memory::Memory()
    : first_(reinterpret_cast<std::uint64_t>(reserve(PROT_NONE))),
      backing_(reserve(PROT_READ | PROT_WRITE)) {}

std::uint64_t Memory::allocate(std::uint64_t bytes, Pool* pool) {
  if (bytes > total() || in_use_ > total() - bytes) return 0;
  // The lowest gap that fits, so that freed addresses come back soon, as they do on a real device.
  std::uint64_t address = first_;
  for (const auto& [begin, block] : blocks_) {
    if (begin - address >= rounded(bytes) + kGap) break;
    address = begin + rounded(block.bytes) + kGap;
  }
  if (address + rounded(bytes) + kGap > first_ + kRange) return 0;
  blocks_.emplace(address, Block{bytes, pool, true});
  blocks_.at(address).id = ++last_id_;
  in_use_ += bytes;
  std::memset(backing_ + (address - first_), kFresh, std::min(bytes, kMarked));
  return address;
}

void Memory::free(std::uint64_t address) {
  const auto at = blocks_.find(address);
  std::byte* bytes = backing_ + (address - first_);
  if (at->second.bytes > kMarked) {
    madvise(bytes, at->second.bytes, MADV_DONTNEED);  // the pages of a large block go back
  }
  std::memset(bytes, kFreed, std::min(at->second.bytes, kMarked));
  in_use_ -= at->second.bytes;
  blocks_.erase(at);
}

const std::pair<const std::uint64_t, Memory::Block>* Memory::find(std::uint64_t address) const {
  return holding(blocks_, address);
}

Memory::Block* Memory::block(std::uint64_t address) {
  const auto at = blocks_.find(address);
  return at == blocks_.end() ? nullptr : &at->second;
}

void Memory::pin(void* bytes, std::uint64_t size, bool registered, unsigned flags,
                 const Context& context) {
  pinned_.emplace(reinterpret_cast<std::uint64_t>(bytes),
                  Pinned{size, registered, flags, &context});
}

void Memory::unpin(void* bytes) { pinned_.erase(reinterpret_cast<std::uint64_t>(bytes)); }

void Memory::release_all(const Context& context) {
  std::vector<std::uint64_t> going;
  for (const auto& [address, block] : blocks_) {
    if (block.context == &context) going.push_back(address);
  }
  for (const std::uint64_t address : going) free(address);
  std::erase_if(pinned_, [&](const auto& entry) {
    if (entry.second.context != &context) return false;
    if (!entry.second.registered) std::free(reinterpret_cast<void*>(entry.first));  // NOLINT
    return true;
  });
}

const std::pair<const std::uint64_t, Memory::Pinned>* Memory::pinned(std::uint64_t address) const {
  return holding(pinned_, address);
}

bool Memory::overlaps_pinned(std::uint64_t address, std::uint64_t bytes) const {
  if (pinned(address) != nullptr) return true;
  const auto next = pinned_.lower_bound(address);
  return next != pinned_.end() && next->first - address < bytes;
}

void* Memory::reach(std::uint64_t address, std::uint64_t bytes) const {
  if (const auto* block = find(address)) {
    const bool inside = bytes <= block->second.bytes - (address - block->first);
    return inside && block->second.usable ? backing_ + (address - first_) : nullptr;
  }
  if (const auto* host = pinned(address)) {
    const bool inside = bytes <= host->second.bytes - (address - host->first);
    return inside ? reinterpret_cast<void*>(address) : nullptr;  // NOLINT: it is a host address
  }
  return nullptr;
}

bool Memory::is_device(std::uint64_t address) const noexcept { return address - first_ < kRange; }

}  // namespace sim
