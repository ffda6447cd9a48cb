// Numbers as bytes, lowest byte first, whatever the processor does.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>

namespace refrain::format {

template <std::unsigned_integral T>
constexpr void store(std::byte* to, T value) noexcept {
  for (std::size_t at = 0; at < sizeof(T); ++at) {
    to[at] = static_cast<std::byte>((std::uint64_t{value} >> (8 * at)) & 0xFFU);
  }
}

template <std::unsigned_integral T>
constexpr T load(const std::byte* from) noexcept {
  std::uint64_t value = 0;
  for (std::size_t at = 0; at < sizeof(T); ++at) {
    value |= std::to_integer<std::uint64_t>(from[at]) << (8 * at);
  }
  return static_cast<T>(value);
}

}  // namespace refrain::format
