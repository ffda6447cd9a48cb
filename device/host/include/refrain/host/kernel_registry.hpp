// The kernels of the host device: functions over typed views, registered by name and version. One
// entry point registers them, in the program or exported by a shared object, so that a process
// that only has a file and such an object can replay it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "refrain/base/mutex.hpp"
#include "refrain/device/kernel.hpp"

namespace refrain::host {

/// What a launch hands a kernel: its parameter block, the sizes of its views, its grid.
struct Call {
  const std::byte* block = nullptr;
  const std::uint64_t* view_bytes = nullptr;
  const Grid* grid = nullptr;
};

/// A registered kernel. Safe to share; its body may run on several threads at once.
struct HostKernel final : KernelCode {
  KernelSignature signature;
  std::function<Result<void>(const Call&)> body;

  [[nodiscard]] Effects effects() const override { return signature.effects; }
};

namespace detail {

/// What a body gets for one parameter: a span, or the scalar.
template <class P>
struct Unpacked {
  using Type = P;
  static P from(const Call& call, std::uint32_t offset, std::size_t) {
    P value{};
    std::memcpy(&value, call.block + offset, sizeof(P));
    return value;
  }
};
template <class Element, class P>
struct UnpackedView {
  using Type = std::span<Element>;
  static Type from(const Call& call, std::uint32_t offset, std::size_t view) {
    std::uint64_t address = 0;
    std::memcpy(&address, call.block + offset, sizeof(address));
    return Type(reinterpret_cast<Element*>(address), call.view_bytes[view] / sizeof(Element));
  }
};
template <class T>
struct Unpacked<In<T>> : UnpackedView<const T, In<T>> {};
template <class T>
struct Unpacked<Out<T>> : UnpackedView<T, Out<T>> {};
template <class T>
struct Unpacked<InOut<T>> : UnpackedView<T, InOut<T>> {};

template <class K>
struct Caller;
template <class... P>
struct Caller<Kernel<P...>> {
  template <class Body>
  static Result<void> call(const Body& body, const Call& call) {
    return unpack(body, call, std::index_sequence_for<P...>{});
  }

 private:
  template <class Body, std::size_t... At>
  static Result<void> unpack(const Body& body, const Call& call, std::index_sequence<At...>) {
    using Layout = typename Kernel<P...>::Layout;
    std::tuple<typename Unpacked<P>::Type...> arguments{
        Unpacked<P>::from(call, Layout::kOffsets[At], Layout::kViewIndexes[At])...};
    return std::apply(
        [&](auto&... argument) -> Result<void> {
          if constexpr (std::is_invocable_v<const Body&, const Grid&, decltype(argument)...>) {
            return answer(body, *call.grid, argument...);
          } else {
            static_assert(std::is_invocable_v<const Body&, decltype(argument)...>,
                          "The body takes std::span<const T> for In<T>, std::span<T> for Out<T> "
                          "and InOut<T>, and scalars by value; a Grid may come first.");
            return answer(body, argument...);
          }
        },
        arguments);
  }

  template <class Body, class... A>
  static Result<void> answer(const Body& body, A&... arguments) {
    if constexpr (std::is_void_v<std::invoke_result_t<const Body&, A&...>>) {
      body(arguments...);
      return {};
    } else {
      return body(arguments...);
    }
  }
};

}  // namespace detail

/// Safe to share.
class KernelRegistry {
 public:
  /// Registers `body` as a kernel of type `K`, a `Kernel<...>`. It takes `std::span<const T>` for
  /// `In<T>`, `std::span<T>` for `Out<T>` and `InOut<T>`, scalars by value, and before them a
  /// `const Grid&` if it wants one; it answers nothing, or a `Result<void>` whose error fails the
  /// launch; it may throw. What it does besides its arguments is said in `effects`. A second kernel
  /// of the same name and version is refused.
  template <class K, class Body>
  void add(std::string_view name, Body body, std::uint32_t version = 1,
           Effects effects = Effects::none()) {
    auto kernel = std::make_shared<HostKernel>();
    kernel->signature = K::signature(name, version);
    kernel->signature.effects = std::move(effects);
    kernel->body = [body = std::move(body)](const Call& call) {
      return detail::Caller<K>::call(body, call);
    };
    add(std::move(kernel));
  }
  void add(std::shared_ptr<const HostKernel> kernel);

  /// The kernel with exactly these parameters; the error says what there is instead.
  [[nodiscard]] Result<std::shared_ptr<const KernelCode>> find(const KernelSignature& wanted) const;

  /// The first registration that was refused since this was last asked.
  [[nodiscard]] Result<void> take_refusal();

 private:
  mutable Mutex mutex_;
  std::map<std::pair<std::string, std::uint32_t>, std::shared_ptr<const HostKernel>> kernels_
      REFRAIN_GUARDED_BY(mutex_);
  std::optional<Error> refusal_ REFRAIN_GUARDED_BY(mutex_);
};

/// Registers kernels: the one entry point. A shared object exports a function of this type as
/// `refrain_register_kernels_v1`, with C linkage; the number changes when this interface does.
using RegisterKernels = void (*)(KernelRegistry&);

inline constexpr const char* kRegisterKernelsSymbol = "refrain_register_kernels_v1";

}  // namespace refrain::host
