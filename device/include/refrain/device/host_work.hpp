// Host work: a function of the program's own that runs in a stream's order over the views that it
// declares. Its types say what it reads and what it writes, as a kernel's do; whatever else it
// needs, it captures.
#pragma once

#include <concepts>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "refrain/capture/host_function.hpp"
#include "refrain/device/function_views.hpp"

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

template <class T>
using HostSpan = std::span<T>;  // clang takes std::span for no template of one parameter

}  // namespace detail

/// Owns `body` for as long as a graph may call it.
template <class... P, class Body>
std::shared_ptr<const HostFunction> host_function(const HostWork& work, Body&& body) {
  auto function = std::make_shared<HostFunction>();
  function->signature = signature_of<P...>(work.name, 1);
  function->signature.effects = work.effects;
  function->body = [body = std::forward<Body>(body)](
                       std::span<const std::span<std::byte>> views) -> Result<void> {
    return detail::FunctionCaller<detail::HostSpan, P...>::call(body, views);
  };
  return function;
}

}  // namespace refrain
