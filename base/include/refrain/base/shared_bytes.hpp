// Immutable bytes with a shared owner: the weights of a model, a mapped file, the private copy of
// bytes that a window recorded. Sharing them is what lets a constant be bound without a copy.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <utility>

namespace refrain {

/// Bytes that never change, kept alive by whoever holds a copy of this handle.
/// Safe to share.
class SharedBytes {
 public:
  SharedBytes() = default;

  /// Views `bytes`, which `owner` keeps alive and nobody changes.
  SharedBytes(std::shared_ptr<const void> owner, std::span<const std::byte> bytes) noexcept
      : owner_(std::move(owner)), bytes_(bytes) {}

  /// A private copy, aligned to 64 bytes so that a kernel may use it in place.
  static SharedBytes copy_of(std::span<const std::byte> bytes) {
    struct alignas(64) Line {
      std::byte bytes[64];
    };
    const std::size_t lines = (bytes.size() + sizeof(Line) - 1) / sizeof(Line);
    std::shared_ptr<Line[]> owner(new Line[lines]());
    auto* const data = reinterpret_cast<std::byte*>(owner.get());
    if (!bytes.empty()) std::memcpy(data, bytes.data(), bytes.size());
    const std::span<const std::byte> view(data, bytes.size());
    return SharedBytes(std::move(owner), view);
  }

  [[nodiscard]] std::span<const std::byte> span() const noexcept { return bytes_; }
  [[nodiscard]] std::size_t size() const noexcept { return bytes_.size(); }
  [[nodiscard]] const std::byte* data() const noexcept { return bytes_.data(); }

 private:
  std::shared_ptr<const void> owner_;
  std::span<const std::byte> bytes_;
};

}  // namespace refrain
