// Memory of a device with a name, a role and an owner. A buffer owns, a view does not; a view of
// memory that is gone is refused by whatever it is given to (M6).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "refrain/capture/region.hpp"
#include "refrain/device/backend.hpp"
#include "refrain/device/held.hpp"
#include "refrain/scope/buffer_binding.hpp"

namespace refrain {

class DeviceCore;

/// A stretch of a device's memory, freed when the last owner is gone. Work in flight owns it too,
/// so memory waits for its work even when its claims are gone (M4).
class MemoryBlock final : public Held {
 public:
  MemoryBlock(std::shared_ptr<Backend> backend, DeviceMemory memory, SharedBytes bytes) noexcept
      : backend_(std::move(backend)), memory_(memory), bytes_(std::move(bytes)) {}
  /// Memory of the program's, which `owner` keeps.
  MemoryBlock(DeviceMemory memory, std::shared_ptr<const void> owner) noexcept
      : memory_(memory), owner_(std::move(owner)) {}
  ~MemoryBlock() override {
    if (backend_ != nullptr) backend_->release(memory_);
  }
  MemoryBlock(const MemoryBlock&) = delete;
  MemoryBlock& operator=(const MemoryBlock&) = delete;

  [[nodiscard]] std::uint64_t address() const noexcept { return memory_.address; }

 private:
  std::shared_ptr<Backend> backend_;  // null for memory of the program's
  DeviceMemory memory_;
  SharedBytes bytes_;  // of a constant that is used in place
  std::shared_ptr<const void> owner_;
};

/// Frees `memory` of `device` when the last owner lets go of it.
struct FreeMemory {
  std::shared_ptr<DeviceCore> device;
  void operator()(MemoryBlock* memory) const noexcept;
};

/// Around a call that uses memory in this thread. What the thread frees meanwhile waits until the
/// call is back, since a kernel may drop the very buffer that it works on.
class MemoryInUse {
 public:
  explicit MemoryInUse(DeviceCore& device) noexcept : device_(device), around_(innermost_) {
    innermost_ = this;
  }
  MemoryInUse(const MemoryInUse&) = delete;
  MemoryInUse& operator=(const MemoryInUse&) = delete;
  ~MemoryInUse() {
    innermost_ = around_;
    if (!freed_.empty()) free_all();
  }

  /// The innermost such call on `device`, or null.
  static MemoryInUse* of(const DeviceCore& device) noexcept {
    MemoryInUse* each = innermost_;
    while (each != nullptr && &each->device_ != &device) each = each->around_;
    return each;
  }
  void keep(std::unique_ptr<Held> memory) noexcept { freed_.push(std::move(memory)); }

 private:
  void free_all() noexcept;

  DeviceCore& device_;
  MemoryInUse* around_;
  HeldList freed_;
  static inline thread_local constinit MemoryInUse* innermost_ = nullptr;
};

/// An allocation: memory, what it is for, and its place in the failure table. Owned by handles,
/// windows, recordings and instances, and never by queued work, so that its claims go in the thread
/// that lets go of it last (M4). Immutable; safe to share.
class Allocation {
 public:
  /// Takes its place in the table of `core`.
  Allocation(std::shared_ptr<DeviceCore> core, Region region, std::shared_ptr<MemoryBlock> memory,
             bool unwritten);
  ~Allocation();
  Allocation(const Allocation&) = delete;
  Allocation& operator=(const Allocation&) = delete;

  [[nodiscard]] BufferId id() const noexcept { return id_; }
  [[nodiscard]] const Region& region() const noexcept { return region_; }
  [[nodiscard]] const std::shared_ptr<MemoryBlock>& memory() const noexcept { return memory_; }
  [[nodiscard]] std::uint64_t address() const noexcept { return memory_->address(); }
  [[nodiscard]] DeviceCore& core() const noexcept { return *core_; }
  [[nodiscard]] BufferBinding whole() const noexcept { return {id_, {0, region_.bytes}}; }
  /// For the table, which knows allocations by address.
  [[nodiscard]] std::shared_ptr<const Allocation> shared() const noexcept { return self_.lock(); }

  static std::shared_ptr<const Allocation> make(std::shared_ptr<DeviceCore> core, Region region,
                                                std::shared_ptr<MemoryBlock> memory,
                                                bool unwritten);

 private:
  std::shared_ptr<DeviceCore> core_;
  Region region_;
  std::shared_ptr<MemoryBlock> memory_;
  std::weak_ptr<const Allocation> self_;
  BufferId id_;
};

/// Elements of a buffer. Owns nothing; cheap to copy. Once the last owner of its buffer is gone it
/// is refused (M6), whatever work is queued (M4); an owner that goes while another thread is inside
/// a call with the view is a race, as of any object.
template <class T>
class View {
 public:
  View() = default;
  explicit View(const BufferBinding& binding) noexcept : binding_(binding) {}

  [[nodiscard]] const BufferBinding& binding() const noexcept { return binding_; }
  /// In elements.
  [[nodiscard]] std::uint64_t size() const noexcept { return binding_.range.size() / sizeof(T); }

  /// `count` elements from `first`. One that reaches past this view is refused where it is used.
  [[nodiscard]] View view(std::uint64_t first, std::uint64_t count) const noexcept {
    const std::uint64_t begin = binding_.range.begin + first * sizeof(T);
    const bool inside = first <= size() && count <= size() - first;
    return View({binding_.buffer, inside ? ByteRange{begin, begin + count * sizeof(T)} : kOutside});
  }

 private:
  static constexpr ByteRange kOutside{~std::uint64_t{0} - 1, ~std::uint64_t{0}};
  BufferBinding binding_;
};

/// Owns an allocation of elements of `T`. Move-only; made by `Device::buffer` and its kin.
template <class T>
class Buffer {
 public:
  explicit Buffer(std::shared_ptr<const Allocation> allocation) noexcept
      : allocation_(std::move(allocation)) {}
  Buffer(Buffer&&) noexcept = default;
  Buffer& operator=(Buffer&&) noexcept = default;

  /// In elements.
  [[nodiscard]] std::uint64_t size() const noexcept {
    return allocation_->region().bytes / sizeof(T);
  }
  [[nodiscard]] const std::string& name() const noexcept { return allocation_->region().name; }
  [[nodiscard]] BufferId id() const noexcept { return allocation_->id(); }
  [[nodiscard]] const std::shared_ptr<const Allocation>& allocation() const noexcept {
    return allocation_;
  }

  [[nodiscard]] View<T> view() const noexcept { return View<T>(allocation_->whole()); }
  [[nodiscard]] View<T> view(std::uint64_t first, std::uint64_t count) const noexcept {
    return view().view(first, count);
  }
  operator View<T>() const noexcept { return view(); }  // NOLINT: a buffer is all of its elements

 private:
  std::shared_ptr<const Allocation> allocation_;
};

/// Bytes of a view or of a whole buffer, whatever their type.
class Bytes {
 public:
  template <class T>
  Bytes(const View<T>& view) noexcept : binding_(view.binding()) {}  // NOLINT: as good as the view
  template <class T>
  Bytes(const Buffer<T>& buffer) noexcept : Bytes(buffer.view()) {}  // NOLINT

  [[nodiscard]] const BufferBinding& binding() const noexcept { return binding_; }

 private:
  BufferBinding binding_;
};

}  // namespace refrain
