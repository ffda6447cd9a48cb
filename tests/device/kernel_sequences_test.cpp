// The parameter block of every sequence of up to three parameters, out of one of each kind: where
// each lies, that the rest is zero, and that the kernel sees what was passed.
#include <array>
#include <cstddef>
#include <cstring>
#include <type_traits>
#include <utility>

#include "device/padded.hpp"
#include "device/rig.hpp"

namespace refrain {
namespace {

using namespace test;

/// A value of each kind of parameter, and what the body must see of it.
template <class P>
struct Sample {
  static P argument() {
    if constexpr (std::is_same_v<P, Mode>) {
      return Mode::on;
    } else {
      return static_cast<P>(77);
    }
  }
  static bool seen(const P& value) { return value == argument(); }
};
template <>
struct Sample<Padded> {
  static Padded argument() {
    Padded value;
    std::memset(static_cast<void*>(&value), 0xFF, sizeof(value));  // padding is not zero here
    value.small = 9;
    value.large = 2.5;
    value.mode = Mode::off;
    return value;
  }
  static bool seen(const Padded& value) {
    return value.small == 9 && value.large == 2.5 && value.mode == Mode::off;
  }
};
/// Where the parameters `P...` must lie, computed the slow way.
struct Expected {
  std::uint32_t bytes = 0;
  std::vector<std::uint32_t> offsets;
  std::vector<bool> meaningful;  ///< Of each byte: whether a value, and no padding, lies there.

  void add(std::uint32_t size, std::uint32_t alignment,
           const std::vector<std::pair<std::uint32_t, std::uint32_t>>& values) {
    while (bytes % alignment != 0) ++bytes;
    offsets.push_back(bytes);
    meaningful.resize(bytes + size, false);
    for (const auto& [at, length] : values) {
      for (std::uint32_t i = 0; i < length; ++i) meaningful[bytes + at + i] = true;
    }
    bytes += size;
  }
  template <class P>
  void add_parameter() {
    if constexpr (detail::ParameterOf<P>::kIsView) {
      add(8, 8, {});  // an address, which is zero in the block
    } else if constexpr (std::is_same_v<P, Padded>) {
      add(sizeof(Padded), alignof(Padded),
          {{offsetof(Padded, small), 1},
           {offsetof(Padded, large), 8},
           {offsetof(Padded, mode), 2}});
    } else {
      add(sizeof(P), alignof(P), {{0, sizeof(P)}});
    }
  }
};

using Floats = std::array<Buffer<float>, 3>;

/// A block with its addresses in place, as a launch makes it.
struct BoundBlock {
  BoundBlock(std::span<const std::byte> packed, std::span<const StagedArgument> views,
             const Floats& floats)
      : block(packed.begin(), packed.end()) {
    block.resize(block.size() + 1);
    for (const StagedArgument& view : views) {
      for (const Buffer<float>& each : floats) {
        if (each.id() != view.binding.buffer) continue;
        const std::uint64_t address = each.allocation()->address();
        std::memcpy(block.data() + view.offset, &address, sizeof(address));
      }
      view_bytes.push_back(view.binding.range.size());
    }
  }
  std::vector<std::byte> block;
  std::vector<std::uint64_t> view_bytes;
};

template <class P>
typename detail::ParameterOf<P>::Argument argument_of(const Buffer<float>& floats) {
  if constexpr (detail::ParameterOf<P>::kIsView) {
    return floats.view();
  } else {
    return Sample<P>::argument();
  }
}

template <class Seen>
bool seen_right(const Seen& seen) {
  if constexpr (std::is_same_v<Seen, std::span<const float>> ||
                std::is_same_v<Seen, std::span<float>>) {
    return seen.size() == 4 && seen[0] == 5 && seen[3] == 5;
  } else {
    return Sample<Seen>::seen(seen);
  }
}

/// Outside the templates, of which there are hundreds.
void compare(const KernelSignature& signature, const Expected& expected,
             std::span<const std::byte> block, std::size_t parameters) {
  CHECK(signature.block_bytes == expected.bytes);
  std::size_t at = 0;
  for (const Parameter& parameter : signature.parameters) {
    if (parameter.kind == ParameterKind::field) continue;
    REQUIRE(at < expected.offsets.size());
    CHECK(parameter.offset == expected.offsets[at++]);
  }
  CHECK(at == parameters);
  REQUIRE(block.size() == expected.bytes);
  for (std::uint32_t byte = 0; byte < expected.bytes; ++byte) {
    if (!expected.meaningful[byte]) CHECK(block[byte] == std::byte{0});
  }
}
void is_right(bool right) { CHECK(right); }

/// The layout of `P...` is the expected one, its padding is zero, and what is unpacked from it at
/// the places where a kernel looks is what was passed.
template <class... P>
void check_sequence(Rig&, const Floats& floats, int& checked) {
  using Layout = detail::BlockLayout<P...>;
  ++checked;
  Expected expected;
  (expected.add_parameter<P>(), ...);
  [&]<std::size_t... At>(std::index_sequence<At...>) {
    const PackedArguments<P...> packed(argument_of<P>(floats.at(At))...);
    compare(signature_of<P...>("k", 1), expected, packed.block(), sizeof...(P));
    const BoundBlock bound(packed.block(), packed.views(), floats);
    [[maybe_unused]] const host::Call call{bound.block.data(), bound.view_bytes.data(), nullptr};
    is_right((seen_right(host::detail::Unpacked<P>::from(call, Layout::kOffsets[At],
                                                         Layout::kViewIndexes[At])) &&
              ...));
  }
  (std::index_sequence_for<P...>{});
}

/// A launch of a kernel that takes `P...`: its body sees what was passed.
template <class... P>
void launch_sequence(Rig& rig, const Floats& floats, int& checked) {
  using K = Kernel<P...>;
  const std::string name = "k" + std::to_string(checked++);
  int runs = 0;
  bool right = false;
  // With its types said: a body that takes anything would be given the grid too.
  rig.device.kernels().add<K>(name, [&](typename host::detail::Unpacked<P>::Type... seen) {
    ++runs;
    right = (seen_right(seen) && ...);
  });
  const K kernel = rig.device.kernel<K>(name).value();
  [&]<std::size_t... At>(std::index_sequence<At...>) {
    rig.stream.launch(kernel, grid(4), argument_of<P>(floats.at(At))...);
  }
  (std::index_sequence_for<P...>{});
  is_right(runs == 1 && right);
}

template <class... Types>
struct List {};
using All = List<std::uint8_t, std::int16_t, float, double, Mode, Padded, In<float>, Out<float>,
                 InOut<float>>;

/// Every sequence of exactly `Left` more parameters after `Sofar...`, looked at, or launched.
template <int Left, bool Launched, class... Sofar>
void each_sequence(Rig& rig, const Floats& floats, int& checked) {
  if constexpr (Left != 0) {
    [&]<class... Types>(List<Types...>) {
      (each_sequence<Left - 1, Launched, Sofar..., Types>(rig, floats, checked), ...);
    }(All{});
  } else if constexpr (Launched) {
    launch_sequence<Sofar...>(rig, floats, checked);
  } else {
    check_sequence<Sofar...>(rig, floats, checked);
  }
}

template <bool Launched, int... Lengths>
int check_all(std::integer_sequence<int, Lengths...>) {
  Rig rig(StreamKind::inline_);
  // One buffer for each view: they are different, whatever their directions are.
  const Floats floats{rig.floats("a", 5), rig.floats("b", 5), rig.floats("c", 5)};
  int checked = 0;
  (each_sequence<Lengths, Launched>(rig, floats, checked), ...);
  return checked;
}

}  // namespace

TEST_CASE("kernels: every sequence of up to three parameters is laid out as it should be") {
  CHECK(check_all<false>(std::make_integer_sequence<int, 4>{}) == 1 + 9 + 81 + 729);
}

TEST_CASE("kernels: the body of a kernel with any two parameters sees what was passed") {
  CHECK(check_all<true>(std::make_integer_sequence<int, 3>{}) == 1 + 9 + 81);
}

}  // namespace refrain
