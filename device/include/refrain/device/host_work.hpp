// Host work: a function of the program's own that runs in a stream's order over the views that it
// declares. Its types say what it reads and what it writes, as a kernel's do; whatever else it
// needs, it captures.
#pragma once

#include <concepts>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "refrain/capture/host_function.hpp"
#include "refrain/device/kernel.hpp"

namespace refrain {

/// What host work is called, what it does besides its views, and where it was issued.
struct HostWork {
  template <class Name>
  requires(std::convertible_to<const Name&, std::string_view>)
      HostWork(const Name& called, Effects does = Effects::opaque(),  // NOLINT: a name is enough
               Where issued = Where::here())
      : name(std::string_view(called)), effects(std::move(does)), where(issued) {}

  std::string name;
  Effects effects;
  Where where;
};

namespace detail {

/// What a body gets for one view.
template <class P>
struct HostView {
  static_assert(
      ParameterOf<P>::kIsView,
      "Host work takes In<T>, Out<T> and InOut<T>; its body captures what else it needs.");
};
template <class T>
struct HostView<In<T>> {
  using Type = std::span<const T>;
};
template <class T>
struct HostView<Out<T>> {
  using Type = std::span<T>;
};
template <class T>
struct HostView<InOut<T>> {
  using Type = std::span<T>;
};

template <class... P>
struct HostCaller {
  template <class Body>
  static Result<void> call(const Body& body, std::span<const std::span<std::byte>> views) {
    return spread(body, views, std::index_sequence_for<P...>{});
  }

 private:
  template <class View>
  static View typed(std::span<std::byte> bytes) {
    using Element = typename View::element_type;
    return View(reinterpret_cast<Element*>(bytes.data()), bytes.size() / sizeof(Element));
  }
  template <class Body, std::size_t... At>
  static Result<void> spread(const Body& body,
                             [[maybe_unused]] std::span<const std::span<std::byte>> views,
                             std::index_sequence<At...>) {
    static_assert(std::is_invocable_v<const Body&, typename HostView<P>::Type...>,
                  "The body takes std::span<const T> for In<T> and std::span<T> for Out<T> and "
                  "InOut<T>, and can be called while it is const.");
    if constexpr (std::is_void_v<
                      std::invoke_result_t<const Body&, typename HostView<P>::Type...>>) {
      body(typed<typename HostView<P>::Type>(views[At])...);
      return {};
    } else {
      return body(typed<typename HostView<P>::Type>(views[At])...);
    }
  }
};

}  // namespace detail

/// Owns `body` for as long as a graph may call it.
template <class... P, class Body>
std::shared_ptr<const HostFunction> host_function(const HostWork& work, Body&& body) {
  auto function = std::make_shared<HostFunction>();
  function->signature = signature_of<P...>(work.name, 1);
  function->signature.effects = work.effects;
  function->body = [body = std::forward<Body>(body)](
                       std::span<const std::span<std::byte>> views) -> Result<void> {
    return detail::HostCaller<P...>::call(body, views);
  };
  return function;
}

}  // namespace refrain
