// How the body of host or native work gets its views: one argument for each, of a type that follows
// from `In<T>`, `Out<T>` or `InOut<T>`. `Span` is std::span on the host and DeviceSpan for native
// work.
#pragma once

#include <cstddef>
#include <span>
#include <type_traits>
#include <utility>

#include "refrain/base/result.hpp"
#include "refrain/capture/device_memory.hpp"
#include "refrain/device/kernel.hpp"

namespace refrain::detail {

/// What a body gets for one view.
template <template <class> class Span, class P>
struct FunctionView {
  static_assert(ParameterOf<P>::kIsView,
                "Host and native work take In<T>, Out<T> and InOut<T>; their bodies capture what "
                "else they need.");
};
template <template <class> class Span, class T>
struct FunctionView<Span, In<T>> {
  using Type = Span<const T>;
};
template <template <class> class Span, class T>
struct FunctionView<Span, Out<T>> {
  using Type = Span<T>;
};
template <template <class> class Span, class T>
struct FunctionView<Span, InOut<T>> {
  using Type = Span<T>;
};

template <class T>
std::span<T> typed_view(std::span<std::byte> bytes, std::type_identity<std::span<T>>) noexcept {
  return std::span<T>(reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T));
}
template <class T>
DeviceSpan<T> typed_view(const DeviceMemory& memory, std::type_identity<DeviceSpan<T>>) noexcept {
  return DeviceSpan<T>{reinterpret_cast<T*>(memory.address), memory.bytes / sizeof(T)};
}

template <template <class> class Span, class... P>
struct FunctionCaller {
  /// Calls `body` with `first` and then with what `views` are for `P...`.
  template <class Body, class View, class... First>
  static Result<void> call(const Body& body, std::span<const View> views, const First&... first) {
    return spread(body, views, std::index_sequence_for<P...>{}, first...);
  }

 private:
  template <class Body, class View, std::size_t... At, class... First>
  static Result<void> spread(const Body& body, [[maybe_unused]] std::span<const View> views,
                             std::index_sequence<At...>, const First&... first) {
    static_assert(
        std::is_invocable_v<const Body&, const First&..., typename FunctionView<Span, P>::Type...>,
        "The body takes a span of const T for In<T> and a span of T for Out<T> and InOut<T> "
        "(std::span for host work, DeviceSpan after a NativeCall for native work), and can be "
        "called while it is const.");
    const auto called = [&] {
      return body(
          first...,
          typed_view(views[At], std::type_identity<typename FunctionView<Span, P>::Type>{})...);
    };
    if constexpr (std::is_void_v<decltype(called())>) {
      called();
      return {};
    } else {
      return called();
    }
  }
};

}  // namespace refrain::detail
