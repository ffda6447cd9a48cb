// Device memory: addresses that the host cannot touch, backed by pages that only the simulation
// knows; and host memory that the driver has pinned.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

namespace sim {

struct Context;
struct Pool;

/// Guarded by the driver's mutex, except where it says otherwise.
class Memory {
 public:
  /// Reported as the device's size, and the most that can be allocated.
  static constexpr std::uint64_t kTotal = std::uint64_t{8} << 30U;
  /// Of every allocation; a real device aligns to 256 or more.
  static constexpr std::uint64_t kAlignment = 512;

  Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() = default;  // its ranges live as long as the process

  struct Block {
    std::uint64_t bytes = 0;
    Pool* pool = nullptr;              ///< Null: cuMemAlloc.
    bool usable = true;                ///< Its alloc has run, and no free of it has.
    bool free_issued = false;          ///< No further free is legal.
    std::uint64_t id = 0;              ///< Never used again, unlike the address.
    const Context* context = nullptr;  ///< That it goes with; null: none.
  };

  /// An address, or 0 when there is no room. The bytes are garbage, and look like it.
  std::uint64_t allocate(std::uint64_t bytes, Pool* pool = nullptr);
  /// Gives an allocation back; its first address.
  void free(std::uint64_t address);
  /// The allocation that holds an address, with its first address.
  [[nodiscard]] const std::pair<const std::uint64_t, Block>* find(std::uint64_t address) const;
  [[nodiscard]] Block* block(std::uint64_t address);

  /// Host memory that the driver pinned; its address is its device address too.
  void pin(void* bytes, std::uint64_t size, bool registered, unsigned flags,
           const Context& context);
  void unpin(void* bytes);
  struct Pinned {
    std::uint64_t bytes = 0;
    bool registered = false;  ///< By cuMemHostRegister, so the caller's own.
    unsigned flags = 0;
    const Context* context = nullptr;
    bool free_issued = false;  ///< No further free is legal.
  };
  void about_to_unpin(std::uint64_t address) { pinned_.at(address).free_issued = true; }
  [[nodiscard]] const std::pair<const std::uint64_t, Pinned>* pinned(std::uint64_t address) const;

  /// Gives back what goes with a context, and pins no more of its host memory.
  void release_all(const Context& context);

  [[nodiscard]] bool overlaps_pinned(std::uint64_t address, std::uint64_t bytes) const;

  /// Where the simulation may reach `bytes` bytes of device or pinned memory; null unless all of
  /// them are one allocation's.
  [[nodiscard]] void* reach(std::uint64_t address, std::uint64_t bytes) const;
  /// Whether an address lies in the range that device memory comes from, allocated or not.
  [[nodiscard]] bool is_device(std::uint64_t address) const noexcept;

  void limit(std::uint64_t bytes) noexcept { limit_ = bytes; }
  [[nodiscard]] std::uint64_t in_use() const noexcept { return in_use_; }
  [[nodiscard]] std::uint64_t total() const noexcept { return limit_ != 0 ? limit_ : kTotal; }

 private:
  std::uint64_t first_ = 0;       ///< Of the device's range, which has no access rights.
  std::byte* backing_ = nullptr;  ///< The same bytes, readable and writable.
  std::map<std::uint64_t, Block> blocks_;
  std::map<std::uint64_t, Pinned> pinned_;
  std::uint64_t limit_ = 0;
  std::uint64_t in_use_ = 0;
  std::uint64_t last_id_ = 0;
};

}  // namespace sim
