#include "graphs.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <utility>

namespace refrain::test {

SharedBytes pattern(std::size_t bytes, unsigned seed) {
  std::vector<std::byte> made(bytes);
  for (std::size_t at = 0; at < bytes; ++at) {
    made[at] = static_cast<std::byte>((at * 31 + at / 251 + std::size_t{seed} * 97) & 0xFFU);
  }
  return SharedBytes::copy_of(made);
}

std::uint32_t GraphBuilder::region(std::string name, Role role, std::uint64_t bytes,
                                   RegionStart start) {
  Region region;
  region.name = std::move(name);
  region.role = role;
  region.bytes = bytes;
  region.start = std::move(start);
  parts.regions.push_back(std::move(region));
  return static_cast<std::uint32_t>(parts.regions.size() - 1);
}

std::uint32_t GraphBuilder::kernel(KernelSignature signature) {
  parts.kernels.push_back(std::move(signature));
  return static_cast<std::uint32_t>(parts.kernels.size() - 1);
}

Node& GraphBuilder::launch(std::uint32_t kernel, std::vector<RegionBytes> arguments) {
  const KernelSignature& signature = parts.kernels.at(kernel);
  KernelCall call;
  call.kernel = kernel;
  call.block = {static_cast<std::uint32_t>(parts.parameter_bytes.size()), signature.block_bytes};
  parts.parameter_bytes.resize(parts.parameter_bytes.size() + signature.block_bytes);
  Node node;
  node.arguments.first = static_cast<std::uint32_t>(parts.arguments.size());
  auto next = arguments.begin();
  for (const Parameter& parameter : signature.parameters) {
    if (parameter.kind != ParameterKind::view) continue;
    REQUIRE(next != arguments.end());
    parts.arguments.push_back({parameter.offset, parameter.direction, next->region, next->range});
    ++next;
  }
  node.arguments.count = static_cast<std::uint32_t>(arguments.size());
  node.call = call;
  parts.nodes.push_back(node);
  return parts.nodes.back();
}

Node& GraphBuilder::copy(RegionBytes source, RegionBytes destination) {
  Node node;
  node.call = CopyCall{};
  node.arguments = {static_cast<std::uint32_t>(parts.arguments.size()), 2};
  parts.arguments.push_back({0, Direction::in, source.region, source.range});
  parts.arguments.push_back({0, Direction::out, destination.region, destination.range});
  parts.nodes.push_back(node);
  return parts.nodes.back();
}

Node& GraphBuilder::fill(RegionBytes destination, std::uint32_t pattern, std::uint32_t width) {
  Node node;
  node.call = FillCall{pattern, width};
  node.arguments = {static_cast<std::uint32_t>(parts.arguments.size()), 1};
  parts.arguments.push_back({0, Direction::out, destination.region, destination.range});
  parts.nodes.push_back(node);
  return parts.nodes.back();
}

SealedGraph GraphBuilder::seal() {
  Result<SealedGraph> graph = SealedGraph::make(std::move(parts));
  REQUIRE_MESSAGE(graph.ok(), graph.error().text());
  return *graph;
}

SealedGraph graph_with_code() {
  const auto image = [](unsigned seed, std::size_t bytes) {
    return PortableCode::make(seed == 1 ? CodeKind::fatbin : CodeKind::ptx, pattern(bytes, seed));
  };
  const auto first = image(1, 70);
  const auto second = image(2, 5);
  GraphBuilder builder;
  builder.parts.name = "coded";
  const std::uint32_t y = builder.region("y", Role::output, 16);
  const std::array<KernelSource, 4> sources{KernelSource{first, "touch"}, KernelSource{first, "go"},
                                            KernelSource{second, "touch"}, KernelSource{}};
  for (const KernelSource& source : sources) {
    KernelSignature signature;
    signature.name = "touch";
    signature.block_bytes = 8;
    signature.parameters = {{0, 8, 8, ParameterKind::view, Direction::out, ElementType::bytes}};
    signature.source = source;
    builder.launch(builder.kernel(std::move(signature)), {{y, {0, 16}}});
  }
  return builder.seal();
}

SealedGraph small_graph(bool with_constant) {
  GraphBuilder builder;
  builder.parts.name = "step";
  const std::uint32_t x = builder.region("x", Role::input, 64);
  const std::uint32_t y = builder.region("y", Role::output, 64);
  const std::uint32_t h = builder.region("h", Role::state, 64, ZeroStart{});
  const std::uint32_t scratch = builder.region("", Role::scratch, 64);
  KernelSignature mix;
  mix.name = "mix";
  mix.version = 3;
  mix.block_bytes = 28;
  mix.parameters = {{0, 8, 8, ParameterKind::view, Direction::in, ElementType::f32},
                    {8, 8, 8, ParameterKind::view, Direction::in_out, ElementType::f32},
                    {16, 8, 8, ParameterKind::view, Direction::out, ElementType::f32},
                    {24, 4, 4, ParameterKind::scalar, Direction::none, ElementType::f32}};
  const std::uint32_t kernel = builder.kernel(mix);
  builder.copy({x, {0, 64}}, {scratch, {0, 64}});
  if (with_constant) {
    const std::uint32_t w = builder.region("w", Role::constant, 32, pattern(32));
    builder.copy({w, {0, 32}}, {scratch, {0, 32}});
  }
  builder.launch(kernel, {{scratch, {0, 64}}, {h, {0, 64}}, {y, {0, 64}}});
  builder.parts.parameter_bytes[24] = std::byte{0x80};
  builder.parts.parameter_bytes[27] = std::byte{0x3F};
  return builder.seal();
}

namespace {

std::string difference(const Region& a, const Region& b) {
  if (a.name != b.name) return "name";
  if (a.role != b.role) return "role";
  if (a.element != b.element) return "element";
  if (a.bytes != b.bytes) return "size";
  if (a.alignment != b.alignment) return "alignment";
  if (a.frozen != b.frozen) return "frozen";
  if (a.start.index() != b.start.index()) return "kind of start";
  const auto* const left = std::get_if<SharedBytes>(&a.start);
  if (left == nullptr) return "";
  const auto& right = std::get<SharedBytes>(b.start);
  return std::equal(left->span().begin(), left->span().end(), right.span().begin(),
                    right.span().end())
             ? ""
             : "bytes that it starts with";
}

template <class Range>
bool equal(const Range& a, const Range& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

std::string difference(const SealedGraph& a, const Node& left, const SealedGraph& b,
                       const Node& right) {
  if (left.call.index() != right.call.index()) return "kind of call";
  if (!equal(a.arguments(left), b.arguments(right))) return "arguments";
  if (!equal(a.dependencies(left), b.dependencies(right))) return "dependencies";
  const auto* const kernel = std::get_if<KernelCall>(&left.call);
  if (kernel == nullptr) return left.call == right.call ? "" : "call";
  const auto& other = std::get<KernelCall>(right.call);
  if (kernel->kernel != other.kernel) return "kernel";
  if (!(kernel->grid == other.grid)) return "grid";
  return equal(a.block(*kernel), b.block(other)) ? "" : "parameter block";
}

}  // namespace

std::string difference(const SealedGraph& a, const SealedGraph& b) {
  if (a.name() != b.name()) return "name";
  if (!equal(a.kernels(), b.kernels())) return "kernels";
  if (a.regions().size() != b.regions().size()) return "number of regions";
  for (std::size_t at = 0; at < a.regions().size(); ++at) {
    const std::string found = difference(a.regions()[at], b.regions()[at]);
    if (!found.empty()) return found + " of region " + std::to_string(at);
  }
  if (a.nodes().size() != b.nodes().size()) return "number of nodes";
  for (std::size_t at = 0; at < a.nodes().size(); ++at) {
    const std::string found = difference(a, a.nodes()[at], b, b.nodes()[at]);
    if (!found.empty()) return found + " of node " + std::to_string(at);
  }
  if (!equal(a.external_reads(), b.external_reads())) return "external reads";
  if (!equal(a.writes(), b.writes())) return "writes";
  if (!equal(a.fresh_writes(), b.fresh_writes())) return "fresh writes";
  return "";
}

}  // namespace refrain::test
