// A function of the program's own that a graph calls in its place among the nodes. It is owned
// before a node that calls it exists, and freed once, when no recording, plan, instance or replay
// in flight needs it any more.
#pragma once

#include <cstddef>
#include <functional>
#include <span>

#include "refrain/base/result.hpp"
#include "refrain/capture/kernel_signature.hpp"

namespace refrain {

/// Immutable; its body may run on several threads at once when several instances replay it.
struct HostFunction {
  /// Its name, its effects, and its views as a kernel would take them; no scalars.
  KernelSignature signature;
  /// Is given the bytes of each view. What it answers or throws ends the node as a kernel's does.
  std::function<Result<void>(std::span<const std::span<std::byte>>)> body;
};

}  // namespace refrain
