// Native work: calls into another library, or launches that refrain does not make, which a graph
// holds as one node. The function gives the device its work through the stream and the addresses of
// one call and through nothing that it kept from an earlier one: it may be called again on others,
// for each instance, each binding or each replay, and must make the same work every time. It is
// owned as a host function is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "refrain/base/result.hpp"
#include "refrain/capture/device_memory.hpp"
#include "refrain/capture/kernel_signature.hpp"

namespace refrain {

/// How the address of a workspace is aligned, in bytes.
inline constexpr std::uint32_t kWorkspaceAlignment = 256;

/// What native work is given besides its views.
struct NativeCall {
  /// The CUstream (or cudaStream_t) that takes its work; null on the host device, where a body does
  /// its work itself.
  void* stream = nullptr;
  /// As many bytes as were asked for. They hold nothing, and are this call's and its work's alone.
  DeviceSpan<std::byte> workspace{};
};

/// Immutable; its body may run on several threads at once when several instances replay it.
struct NativeFunction {
  /// Its name, its effects, and its views as a kernel would take them; no scalars. A node that
  /// calls it has one argument more where there is a workspace, at the end of the block.
  KernelSignature signature;
  std::uint64_t workspace_bytes = 0;
  /// Whether it makes calls that a capture of CUDA's forbids to other threads' sake, such as
  /// allocating: it is captured in relaxed mode then.
  bool relaxed = false;
  /// Is given each view. What it answers or throws ends the node as a kernel's does.
  std::function<Result<void>(const NativeCall&, std::span<const DeviceMemory>)> body;
};

}  // namespace refrain
