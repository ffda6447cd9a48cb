// Looking into bytes that nobody trusts: every range is checked before it is made, in arithmetic
// that cannot overflow, and numbers are lowest byte first whatever the processor does.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace refrain::cuda {

using Bytes = std::span<const std::byte>;

/// `size` bytes from `offset` on, if `bytes` has them.
inline std::optional<Bytes> slice(Bytes bytes, std::uint64_t offset, std::uint64_t size) noexcept {
  if (offset > bytes.size() || size > bytes.size() - offset) return std::nullopt;
  return bytes.subspan(offset, size);
}

/// The number at `at`, which the caller knows to be inside.
template <std::unsigned_integral T>
T load(Bytes bytes, std::size_t at) noexcept {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    value |= std::to_integer<std::uint64_t>(bytes[at + i]) << (8 * i);
  }
  return static_cast<T>(value);
}

}  // namespace refrain::cuda
