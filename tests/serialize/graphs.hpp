// Graphs to save, and when two of them are the same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "refrain/capture/sealed_graph.hpp"

namespace refrain::test {

/// `bytes` bytes that depend on `seed` and their place.
SharedBytes pattern(std::size_t bytes, unsigned seed = 1);

/// Puts graphs together, so that a test says only what matters to it.
struct GraphBuilder {
  GraphParts parts;

  std::uint32_t region(std::string name, Role role, std::uint64_t bytes, RegionStart start = {});
  std::uint32_t kernel(KernelSignature signature);
  /// A launch whose views are `arguments` and whose scalars are left zero.
  Node& launch(std::uint32_t kernel, std::vector<RegionBytes> arguments);
  Node& copy(RegionBytes source, RegionBytes destination);
  Node& fill(RegionBytes destination, std::uint32_t pattern, std::uint32_t width);

  /// The graph; the test fails where it is none.
  SealedGraph seal();
};

/// Reads an input and a constant, keeps a state, writes an output: a few hundred bytes in a file
/// when it has no constant.
SealedGraph small_graph(bool with_constant = true);

/// Launches four kernels: two of one code image, one of another with the same symbol, one built in.
SealedGraph graph_with_code();

/// Nothing when both are the same throughout, else the first thing in which they differ.
std::string difference(const SealedGraph& a, const SealedGraph& b);

}  // namespace refrain::test
