// Scalars for kernels that are more than a number: an enum, and a struct with padding.
#pragma once

#include <cstdint>
#include <tuple>

#include "refrain/device/kernel.hpp"

namespace refrain::test {

enum class Mode : std::uint16_t { off = 1, on = 0xBEEF };

/// Has padding after `small` and at its end.
struct Padded {
  std::uint8_t small;
  double large;
  Mode mode;
};

}  // namespace refrain::test

template <>
struct refrain::Fields<refrain::test::Padded> {
  static constexpr auto list =
      std::make_tuple(&test::Padded::small, &test::Padded::large, &test::Padded::mode);
};
