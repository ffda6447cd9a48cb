// How much a capture file may ask for. A file is untrusted: each of these is looked at before the
// first byte is set aside for what the file says that it holds.
#pragma once

#include <cstdint>

namespace refrain {

/// The most that a file, or one capture in it, may have. A file that says more is refused
/// (`file_limit`). What is saved keeps to the defaults, so it can be loaded with them; only
/// `order_steps` is not looked at when saving.
struct LoadLimits {
  std::uint64_t file_bytes = std::uint64_t{1} << 36U;
  std::uint32_t sections = 65'536;
  std::uint32_t captures = 4'096;
  /// Of one name: a capture's, a region's, a kernel's, its symbol's, which of a C++ template has
  /// thousands.
  std::uint32_t name_bytes = 16'384;

  // In one capture.
  std::uint64_t kernels = 65'536;
  std::uint64_t regions = std::uint64_t{1} << 20U;
  std::uint64_t nodes = std::uint64_t{1} << 22U;
  std::uint64_t arguments = std::uint64_t{1} << 24U;
  std::uint64_t dependencies = std::uint64_t{1} << 26U;
  std::uint64_t parameter_bytes = std::uint64_t{1} << 28U;
  /// To find the order of its nodes: a few for each argument of an honest graph, and as many as the
  /// square of them for one that is made to hurt.
  std::uint64_t order_steps = std::uint64_t{1} << 26U;

  /// Of a region whose bytes are in the file. Past 4,096 a mapping does not give it and the bytes
  /// are copied.
  std::uint32_t alignment = std::uint32_t{1} << 21U;
};

}  // namespace refrain
