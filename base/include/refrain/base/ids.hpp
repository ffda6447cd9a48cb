// Strong ids: numbers that cannot be mixed up and have no arithmetic. Zero means "none".
#pragma once

#include <compare>
#include <cstdint>
#include <functional>

namespace refrain {

/// A number of its own type. `Tag` only tells ids apart.
template <class Tag, class Number = std::uint64_t>
struct Id {
  Number number = 0;

  constexpr Id() noexcept = default;
  constexpr explicit Id(Number value) noexcept : number(value) {}

  constexpr explicit operator bool() const noexcept { return number != 0; }
  friend constexpr auto operator<=>(const Id&, const Id&) noexcept = default;
};

/// A logical stream. Unique in the process, never reused.
using StreamId = Id<struct StreamTag>;

/// A failure. 64 bits, never reused (M3), so a number in a log means one failure for ever.
using FailureId = Id<struct FailureTag>;

/// What a piece of work is called: an interned name. See `kernel_name.hpp`.
using KernelId = Id<struct KernelTag, std::uint32_t>;

/// One allocation: a slot of one device's table, and how often that slot has been given out.
/// A handle to memory that is gone keeps its old generation and is refused (M6).
struct BufferId {
  std::uint32_t device = 0;
  std::uint32_t slot = 0;
  std::uint64_t generation = 0;

  constexpr explicit operator bool() const noexcept { return generation != 0; }
  friend constexpr auto operator<=>(const BufferId&, const BufferId&) noexcept = default;
};

}  // namespace refrain

template <class Tag, class Number>
struct std::hash<refrain::Id<Tag, Number>> {
  std::size_t operator()(const refrain::Id<Tag, Number>& id) const noexcept {
    return std::hash<Number>{}(id.number);
  }
};

template <>
struct std::hash<refrain::BufferId> {
  std::size_t operator()(const refrain::BufferId& id) const noexcept {
    return std::hash<std::uint64_t>{}((std::uint64_t{id.device} << 48U) ^
                                      (std::uint64_t{id.slot} << 24U) ^ id.generation);
  }
};
