// The types of elements that buffers hold and kernels take.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace refrain {

/// Saved in files: never renumber. `bytes` means: no type is known.
enum class ElementType : std::uint8_t {
  bytes = 0,
  u8 = 1,
  i8 = 2,
  u16 = 3,
  i16 = 4,
  u32 = 5,
  i32 = 6,
  u64 = 7,
  i64 = 8,
  f32 = 9,
  f64 = 10,
  boolean = 11,
};

inline constexpr std::uint8_t kLastElementType = 11;

/// Size of one element in bytes.
constexpr std::uint32_t size_of(ElementType type) noexcept {
  switch (type) {
    case ElementType::u16:
    case ElementType::i16: return 2;
    case ElementType::u32:
    case ElementType::i32:
    case ElementType::f32: return 4;
    case ElementType::u64:
    case ElementType::i64:
    case ElementType::f64: return 8;
    default: return 1;
  }
}

std::string_view name_of(ElementType type) noexcept;

/// The element type of a C++ type: arithmetic types by size and sign, enums as what they are made
/// of, `std::byte` and everything else as `bytes`.
template <class T>
constexpr ElementType element_type_of() noexcept {
  using U = std::remove_cv_t<T>;
  if constexpr (std::is_same_v<U, std::byte>) {
    return ElementType::bytes;
  } else if constexpr (std::is_enum_v<U>) {
    return element_type_of<std::underlying_type_t<U>>();
  } else if constexpr (std::is_same_v<U, bool>) {
    return ElementType::boolean;
  } else if constexpr (std::is_floating_point_v<U> && sizeof(U) == 4) {
    return ElementType::f32;
  } else if constexpr (std::is_floating_point_v<U> && sizeof(U) == 8) {
    return ElementType::f64;
  } else if constexpr (std::is_integral_v<U>) {
    constexpr bool negative = std::is_signed_v<U>;
    if constexpr (sizeof(U) == 1) return negative ? ElementType::i8 : ElementType::u8;
    if constexpr (sizeof(U) == 2) return negative ? ElementType::i16 : ElementType::u16;
    if constexpr (sizeof(U) == 4) return negative ? ElementType::i32 : ElementType::u32;
    if constexpr (sizeof(U) == 8) return negative ? ElementType::i64 : ElementType::u64;
  }
  return ElementType::bytes;
}

}  // namespace refrain
