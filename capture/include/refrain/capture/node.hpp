// A node: one launch, copy, fill, host call or native call. The same node is issued at once, staged
// in a window, kept in a sealed graph and read from a file; what differs is what its arguments
// point into, a buffer or a region.
#pragma once

#include <cstdint>
#include <string_view>
#include <variant>

#include "refrain/base/byte_range.hpp"
#include "refrain/base/where.hpp"
#include "refrain/capture/grid.hpp"
#include "refrain/capture/kernel_signature.hpp"

namespace refrain {

/// A stretch of one of the graph's flat tables.
struct Slice {
  std::uint32_t first = 0;
  std::uint32_t count = 0;

  friend constexpr bool operator==(const Slice&, const Slice&) noexcept = default;
};

/// Runs a kernel: its parameter block has every address zero, and one argument for each of them.
struct KernelCall {
  std::uint32_t kernel = 0;  ///< Index among the graph's kernels.
  Grid grid;
  Slice block;  ///< Its parameter block, among the graph's parameter bytes.

  friend bool operator==(const KernelCall&, const KernelCall&) = default;
};

/// Copies argument 0 (in) to argument 1 (out), of the same size, not overlapping.
struct CopyCall {
  friend bool operator==(const CopyCall&, const CopyCall&) = default;
};

/// Fills argument 0 (out) with a pattern of 1, 2 or 4 bytes, little-endian.
struct FillCall {
  std::uint32_t pattern = 0;
  std::uint32_t width = 1;

  friend bool operator==(const FillCall&, const FillCall&) = default;
};

/// Calls a function of the program's own, which is no part of a file.
struct HostCall {
  std::uint32_t function = 0;  ///< Index among the graph's host functions.

  friend bool operator==(const HostCall&, const HostCall&) = default;
};

/// Calls a function of the program's own that gives the device work. Its views come first; the last
/// argument is its workspace (out), where it has one.
struct NativeFunctionCall {
  std::uint32_t function = 0;  ///< Index among the graph's native functions.

  friend bool operator==(const NativeFunctionCall&, const NativeFunctionCall&) = default;
};

using Call = std::variant<KernelCall, CopyCall, FillCall, HostCall, NativeFunctionCall>;

/// Bytes that a node touches. For a kernel also where its address goes in the parameter block: a
/// relocation, known because the launch declared it.
struct Argument {
  std::uint32_t offset = 0;
  Direction direction = Direction::in;
  std::uint32_t region = 0;
  ByteRange range;

  friend bool operator==(const Argument&, const Argument&) = default;
};

/// An order of two nodes, by their indexes: `before` has ended when `after` starts.
struct NodeOrder {
  std::uint32_t before = 0;
  std::uint32_t after = 0;

  friend constexpr bool operator==(const NodeOrder&, const NodeOrder&) noexcept = default;
};

struct Node {
  Call call;
  Slice arguments;
  Slice dependencies;  ///< Nodes that must have ended before this one starts, ascending.
  Where where{};       ///< Where it was recorded; not saved.
};

}  // namespace refrain
