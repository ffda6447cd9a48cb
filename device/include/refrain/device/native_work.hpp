// Native work: a function of the program's own that gives the device work by a call into another
// library or a launch of its own. Its types say what that work reads and writes, as a kernel's do.
#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "refrain/capture/native_function.hpp"
#include "refrain/device/function_views.hpp"

namespace refrain {

/// What native work is called, how many bytes of workspace it needs, what it does besides its
/// views, and where it was issued. `relaxed`: see `NativeFunction`.
struct NativeWork {
  template <class Name>
  requires(std::convertible_to<const Name&, std::string_view>)
      NativeWork(const Name& called, std::uint64_t workspace = 0,  // NOLINT: a name is enough
                 Effects does = Effects::opaque(), bool captured_relaxed = false,
                 Where issued = Where::here())
      : name(std::string_view(called)),
        workspace_bytes(workspace),
        effects(std::move(does)),
        relaxed(captured_relaxed),
        where(issued) {}

  std::string name;
  std::uint64_t workspace_bytes;
  Effects effects;
  bool relaxed;
  Where where;
};

/// Owns `body` for as long as a graph may call it.
template <class... P, class Body>
std::shared_ptr<const NativeFunction> native_function(const NativeWork& work, Body&& body) {
  auto function = std::make_shared<NativeFunction>();
  function->signature = signature_of<P...>(work.name, 1);
  function->signature.effects = work.effects;
  function->workspace_bytes = work.workspace_bytes;
  function->relaxed = work.relaxed;
  function->body = [body = std::forward<Body>(body)](
                       const NativeCall& call,
                       std::span<const DeviceMemory> views) -> Result<void> {
    return detail::FunctionCaller<DeviceSpan, P...>::call(body, views, call);
  };
  return function;
}

}  // namespace refrain
