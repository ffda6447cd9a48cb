// Kernels with typed signatures. What a launch reads, what it writes, its parameter block and
// where addresses go in it all follow from the types; nobody states them twice.
//
// A parameter block has the same layout on every device: parameters in order at their natural
// alignment, a view as its 8-byte address. Padding is zero, so equal launches have equal blocks.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "refrain/base/kernel_name.hpp"
#include "refrain/capture/kernel_signature.hpp"
#include "refrain/capture/window.hpp"
#include "refrain/device/backend.hpp"
#include "refrain/device/buffer.hpp"

namespace refrain {

/// A view whose every byte the kernel may read.
template <class T>
struct In {};
/// A view whose every byte the kernel writes, and none of whose old ones it reads. A kernel that
/// may leave some alone takes `InOut`, or a launch would heal what it did not write.
template <class T>
struct Out {};
/// A view that the kernel may read and may write.
template <class T>
struct InOut {};

/// Specialise to pass a struct as a scalar: `static constexpr auto list = std::make_tuple(&S::a,
/// &S::b);` names every field. Only the fields are copied, so padding is zero.
template <class T>
struct Fields;

namespace detail {

template <class T>
concept ListsFields = requires {
  Fields<T>::list;
};
// Up to 8 bytes: `long double` is another thing on every machine and has padding of its own.
template <class T>
concept PlainScalar = (std::is_arithmetic_v<T> || std::is_enum_v<T>)&&sizeof(T) <= 8;

template <class P>
struct ParameterOf {
  static_assert(PlainScalar<P> || (std::is_class_v<P> && ListsFields<P>),
                "A kernel takes In<T>, Out<T>, InOut<T>, an arithmetic value, an enum, or a "
                "struct for which refrain::Fields is specialised. A raw pointer would be an "
                "address that nobody declared.");
  static_assert(std::is_trivially_copyable_v<P>, "A kernel's scalar is copied byte by byte.");
  using Argument = P;
  static constexpr bool kIsView = false;
  static constexpr Direction kDirection = Direction::none;
  static constexpr std::uint32_t kSize = sizeof(P);
  static constexpr std::uint32_t kAlignment = alignof(P);
};
template <class T, Direction D>
struct ViewParameter {
  static_assert(PlainScalar<T> || std::is_same_v<T, std::byte>,
                "A view is of arithmetic elements, enums or bytes.");
  static_assert(!std::is_const_v<T>, "The direction says what is const.");
  using Argument = View<T>;
  using Element = T;
  static constexpr bool kIsView = true;
  static constexpr Direction kDirection = D;
  static constexpr std::uint32_t kSize = 8;
  static constexpr std::uint32_t kAlignment = 8;
};
template <class T>
struct ParameterOf<In<T>> : ViewParameter<T, Direction::in> {};
template <class T>
struct ParameterOf<Out<T>> : ViewParameter<T, Direction::out> {};
template <class T>
struct ParameterOf<InOut<T>> : ViewParameter<T, Direction::in_out> {};

/// Where each of `P...` lies in the block, and how long the block is.
template <class... P>
struct BlockLayout {
  static constexpr std::size_t kCount = sizeof...(P);
  static constexpr std::size_t kViews =
      (std::size_t{0} + ... + (ParameterOf<P>::kIsView ? 1U : 0U));

  static constexpr std::array<std::uint32_t, kCount + 1> kOffsets = [] {
    std::array<std::uint32_t, kCount + 1> offsets{};
    const std::array<std::uint32_t, kCount + 1> sizes{ParameterOf<P>::kSize..., 0};
    const std::array<std::uint32_t, kCount + 1> alignments{ParameterOf<P>::kAlignment..., 1};
    std::uint32_t at = 0;
    for (std::size_t i = 0; i < kCount; ++i) {
      at = (at + alignments[i] - 1) / alignments[i] * alignments[i];
      offsets[i] = at;
      at += sizes[i];
    }
    offsets[kCount] = at;
    return offsets;
  }();
  static constexpr std::uint32_t kBytes = kOffsets[kCount];

  /// How many views stand before each parameter.
  static constexpr std::array<std::size_t, kCount + 1> kViewIndexes = [] {
    std::array<std::size_t, kCount + 1> indexes{};
    const std::array<bool, kCount + 1> views{ParameterOf<P>::kIsView..., false};
    for (std::size_t i = 0; i < kCount; ++i) indexes[i + 1] = indexes[i] + (views[i] ? 1U : 0U);
    return indexes;
  }();
};

/// Calls `visit(offset, field)` for each listed field of `value`, those of nested structs too.
template <class T, class Visit>
void visit_fields(const T& value, std::uint32_t base, Visit&& visit) {
  std::apply(
      [&](auto... members) {
        const auto one = [&](const auto& field) {
          using Field = std::remove_cvref_t<decltype(field)>;
          const auto offset = static_cast<std::uint32_t>(
              base + static_cast<std::size_t>(reinterpret_cast<const std::byte*>(&field) -
                                              reinterpret_cast<const std::byte*>(&value)));
          if constexpr (PlainScalar<Field>) {
            visit(offset, field);
          } else {
            static_assert(ListsFields<Field>, "A field is a scalar or lists its own fields.");
            visit_fields(field, offset, visit);
          }
        };
        (one(value.*members), ...);
      },
      Fields<T>::list);
}

template <class T>
void pack_scalar(const T& value, std::byte* place) {
  if constexpr (PlainScalar<T>) {
    std::memcpy(place, &value, sizeof(T));
  } else {
    visit_fields(value, 0, [&](std::uint32_t offset, const auto& field) {
      std::memcpy(place + offset, &field, sizeof(field));
    });
  }
}

template <class P>
void describe(std::uint32_t offset, std::vector<Parameter>& parameters) {
  using Of = ParameterOf<P>;
  if constexpr (Of::kIsView) {
    parameters.push_back({offset, Of::kSize, Of::kAlignment, ParameterKind::view, Of::kDirection,
                          element_type_of<typename Of::Element>()});
  } else if constexpr (PlainScalar<P>) {
    parameters.push_back({offset, Of::kSize, Of::kAlignment, ParameterKind::scalar, Direction::none,
                          element_type_of<P>()});
  } else {
    parameters.push_back({offset, Of::kSize, Of::kAlignment, ParameterKind::structure,
                          Direction::none, ElementType::bytes});
    const std::size_t first = parameters.size();
    visit_fields(P{}, offset, [&](std::uint32_t at, const auto& field) {
      using Field = std::remove_cvref_t<decltype(field)>;
      parameters.push_back({at, sizeof(Field), alignof(Field), ParameterKind::field,
                            Direction::none, element_type_of<Field>()});
    });
    std::sort(parameters.begin() + static_cast<std::ptrdiff_t>(first), parameters.end(),
              [](const Parameter& a, const Parameter& b) { return a.offset < b.offset; });
  }
}

}  // namespace detail

/// The signature that the types `P...` describe.
template <class... P>
KernelSignature signature_of(std::string_view name, std::uint32_t version) {
  using Layout = detail::BlockLayout<P...>;
  KernelSignature signature;
  signature.name = name;
  signature.version = version;
  signature.block_bytes = Layout::kBytes;
  std::size_t at = 0;
  (detail::describe<P>(Layout::kOffsets[at++], signature.parameters), ...);
  return signature;
}

/// A kernel that a device has loaded, without its types. Safe to share; copying shares.
struct LoadedKernel {
  std::shared_ptr<const KernelSignature> signature;
  std::shared_ptr<const KernelCode> code;
  KernelId id;
  std::uint32_t device = 0;
};

template <class... P>
class PackedArguments;

/// A kernel that takes `P...`: each of them `In<T>`, `Out<T>`, `InOut<T>`, an arithmetic value, an
/// enum, or a struct that lists its fields. Made by `Device::kernel`. Safe to share.
template <class... P>
class Kernel {
 public:
  using Layout = detail::BlockLayout<P...>;
  using Arguments = PackedArguments<P...>;

  static KernelSignature signature(std::string_view name, std::uint32_t version = 1) {
    return signature_of<P...>(name, version);
  }

  explicit Kernel(LoadedKernel loaded) noexcept : loaded_(std::move(loaded)) {}
  [[nodiscard]] const LoadedKernel& loaded() const noexcept { return loaded_; }

 private:
  LoadedKernel loaded_;
};

/// A launch's arguments, packed: the block with every address zero, and the views beside it.
template <class... P>
class PackedArguments {
 public:
  using Layout = detail::BlockLayout<P...>;

  explicit PackedArguments(const typename detail::ParameterOf<P>::Argument&... arguments) {
    pack_all(std::index_sequence_for<P...>{}, arguments...);
  }

  [[nodiscard]] std::span<const std::byte> block() const noexcept {
    return std::span(block_).first(Layout::kBytes);
  }
  [[nodiscard]] std::span<const StagedArgument> views() const noexcept {
    return std::span(views_).first(Layout::kViews);
  }

 private:
  template <std::size_t... At>
  void pack_all(std::index_sequence<At...>,
                const typename detail::ParameterOf<P>::Argument&... arguments) {
    (pack<P, At>(arguments), ...);
  }
  template <class Parameter, std::size_t At>
  void pack(const typename detail::ParameterOf<Parameter>::Argument& argument) {
    using Of = detail::ParameterOf<Parameter>;
    if constexpr (Of::kIsView) {
      views_[Layout::kViewIndexes[At]] =
          StagedArgument{Layout::kOffsets[At], Of::kDirection, argument.binding()};
    } else {
      detail::pack_scalar(argument, block_.data() + Layout::kOffsets[At]);
    }
  }

  alignas(16) std::array<std::byte, Layout::kBytes + 1> block_{};
  std::array<StagedArgument, Layout::kViews + 1> views_{};
};

}  // namespace refrain
