// A sealed graph checks itself: whatever is wrong with its parts is refused by name, because parts
// come from files too.
#include "refrain/capture/sealed_graph.hpp"

#include <doctest/doctest.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace refrain {
namespace {

constexpr std::uint32_t kX = 0;
constexpr std::uint32_t kY = 1;
constexpr std::uint32_t kWeights = 2;

Parameter view_of_floats(std::uint32_t offset, Direction direction) {
  return {offset, 8, 8, ParameterKind::view, direction, ElementType::f32};
}

Region region(std::string name, Role role, std::uint64_t bytes) {
  Region made;
  made.name = std::move(name);
  made.role = role;
  made.element = ElementType::f32;
  made.bytes = bytes;
  if (role == Role::constant) {
    made.start = SharedBytes::copy_of(std::vector<std::byte>(bytes));
  }
  return made;
}

/// y = a * x + y, then y copied to x, then x filled: three nodes that nothing is wrong with.
GraphParts sound_parts() {
  GraphParts parts;
  parts.name = "sound";
  parts.kernels.push_back({"saxpy",
                           1,
                           20,
                           {view_of_floats(0, Direction::in),
                            view_of_floats(8, Direction::in_out),
                            {16, 4, 4, ParameterKind::scalar, Direction::none, ElementType::f32}}});
  parts.regions = {region("x", Role::input, 64), region("y", Role::state, 64),
                   region("weights", Role::constant, 64)};
  parts.regions[kY].start = ZeroStart{};
  parts.parameter_bytes.resize(20);
  parts.arguments = {{0, Direction::in, kX, {0, 64}},
                     {8, Direction::in_out, kY, {0, 64}},
                     {0, Direction::in, kY, {0, 64}},
                     {0, Direction::out, kX, {0, 64}},
                     {0, Direction::out, kX, {16, 32}}};
  Node kernel;
  kernel.call = KernelCall{0, grid(16), {0, 20}};
  kernel.arguments = {0, 2};
  Node copy;
  copy.call = CopyCall{};
  copy.arguments = {2, 2};
  Node fill;
  fill.call = FillCall{0xABCD, 2};
  fill.arguments = {4, 1};
  parts.nodes = {kernel, copy, fill};
  return parts;
}

struct Spoiled {
  std::string_view what;
  std::function<void(GraphParts&)> spoil;
  std::vector<std::string_view> said;  ///< What the message names.
  ErrorKind kind = ErrorKind::invalid_argument;
};

void refuses(const std::vector<Spoiled>& all) {
  for (const Spoiled& each : all) {
    CAPTURE(each.what);
    GraphParts parts = sound_parts();
    each.spoil(parts);
    const Result<SealedGraph> made = SealedGraph::make(std::move(parts));
    REQUIRE_FALSE(made.ok());
    CHECK(made.error().kind() == each.kind);
    for (const std::string_view said : each.said) {
      CAPTURE(made.error().message());
      CAPTURE(said);
      CHECK(made.error().message().find(said) != std::string::npos);
    }
  }
}

KernelCall& call(GraphParts& parts) { return std::get<KernelCall>(parts.nodes[0].call); }

}  // namespace

TEST_CASE("a graph of sound parts is made and keeps them") {
  const Result<SealedGraph> made = SealedGraph::make(sound_parts());
  REQUIRE(made.ok());
  const SealedGraph& graph = *made;
  CHECK(graph.name() == "sound");
  CHECK(graph.nodes().size() == 3);
  CHECK(graph.node_name(graph.nodes()[0]) == "saxpy");
  CHECK(graph.node_name(graph.nodes()[1]) == "copy");
  CHECK(graph.node_name(graph.nodes()[2]) == "fill");
  CHECK(graph.region("y") == kY);
  CHECK_FALSE(graph.region("z").has_value());
  CHECK_FALSE(graph.region("").has_value());
  CHECK(graph.arguments(graph.nodes()[0]).size() == 2);
  CHECK(graph.block(std::get<KernelCall>(graph.nodes()[0].call)).size() == 20);
  CHECK(graph.not_portable().empty());
  CHECK(graph.frozen().empty());
}

TEST_CASE("a graph without nodes is a graph") {
  const Result<SealedGraph> made = SealedGraph::make(GraphParts{});
  REQUIRE(made.ok());
  CHECK(made->nodes().empty());
  CHECK(made->writes().empty());
}

TEST_CASE("a graph with a broken kernel signature is refused by the kernel's name") {
  const auto parameter = [](std::size_t at, auto change) {
    return [=](GraphParts& parts) { change(parts.kernels[0].parameters[at]); };
  };
  refuses({
      {"no name", [](GraphParts& parts) { parts.kernels[0].name.clear(); }, {"kernel has no name"}},
      {"no size", parameter(2, [](Parameter& p) { p.size = 0; }), {"\"saxpy\"", "offset 16"}},
      {"alignment 3", parameter(2, [](Parameter& p) { p.alignment = 3; }), {"\"saxpy\""}},
      {"alignment 0", parameter(2, [](Parameter& p) { p.alignment = 0; }), {"\"saxpy\""}},
      {"misaligned", parameter(1, [](Parameter& p) { p.offset = 9; }), {"\"saxpy\"", "offset 9"}},
      {"overlapping", parameter(1, [](Parameter& p) { p.offset = 0; }), {"\"saxpy\""}},
      {"past the block", parameter(2, [](Parameter& p) { p.size = 8; }), {"\"saxpy\"", "20 bytes"}},
      {"offset at the end of numbers",
       parameter(2, [](Parameter& p) { p.offset = 0xFFFFFFFC; }),
       {"\"saxpy\""}},
      {"a view of 4 bytes", parameter(0, [](Parameter& p) { p.size = 4; }), {"\"saxpy\""}},
      {"a view without direction",
       parameter(0, [](Parameter& p) { p.direction = Direction::none; }),
       {"\"saxpy\""}},
      {"a scalar with direction",
       parameter(2, [](Parameter& p) { p.direction = Direction::in; }),
       {"\"saxpy\""}},
      {"a field of nothing",
       parameter(2, [](Parameter& p) { p.kind = ParameterKind::field; }),
       {"\"saxpy\""}},
      {"a kind that there is not",
       parameter(2, [](Parameter& p) { p.kind = static_cast<ParameterKind>(9); }),
       {"\"saxpy\""}},
      {"an element type that there is not",
       parameter(2, [](Parameter& p) { p.element = static_cast<ElementType>(99); }),
       {"\"saxpy\""}},
      {"a direction that there is not",
       parameter(0, [](Parameter& p) { p.direction = static_cast<Direction>(9); }),
       {"\"saxpy\""}},
      {"a scalar inside a structure, after its last field",
       [](GraphParts& parts) {
         KernelSignature& kernel = parts.kernels[0];
         kernel.block_bytes = 32;
         kernel.parameters.resize(2);
         kernel.parameters.push_back(
             {16, 16, 8, ParameterKind::structure, Direction::none, ElementType::bytes});
         kernel.parameters.push_back(
             {16, 4, 4, ParameterKind::field, Direction::none, ElementType::f32});
         kernel.parameters.push_back(
             {24, 8, 8, ParameterKind::scalar, Direction::none, ElementType::f64});
       },
       {"\"saxpy\"", "offset 24"}},
      {"a field past its structure",
       [](GraphParts& parts) {
         KernelSignature& kernel = parts.kernels[0];
         kernel.block_bytes = 32;
         kernel.parameters.resize(2);
         kernel.parameters.push_back(
             {16, 8, 8, ParameterKind::structure, Direction::none, ElementType::bytes});
         kernel.parameters.push_back(
             {24, 4, 4, ParameterKind::field, Direction::none, ElementType::f32});
       },
       {"\"saxpy\"", "offset 24"}},
  });
}

TEST_CASE("a graph with a broken region is refused by the region's name") {
  refuses({
      {"no bytes",
       [](GraphParts& parts) { parts.regions[kX].bytes = 0; },
       {"Region \"x\"", "no bytes"}},
      {"no bytes and no name",
       [](GraphParts& parts) { parts.regions.push_back(region("", Role::none, 0)); },
       {"Region 3", "no bytes"}},
      {"alignment 48",
       [](GraphParts& parts) { parts.regions[kY].alignment = 48; },
       {"Region \"y\"", "48"}},
      {"alignment 0", [](GraphParts& parts) { parts.regions[kY].alignment = 0; }, {"Region \"y\""}},
      {"a name twice", [](GraphParts& parts) { parts.regions[kY].name = "x"; }, {"\"x\""}},
      {"a start of another size",
       [](GraphParts& parts) {
         parts.regions[kY].start = SharedBytes::copy_of(std::vector<std::byte>(63));
       },
       {"Region \"y\"", "64", "63"}},
      {"a constant without bytes",
       [](GraphParts& parts) { parts.regions[kWeights].start = NoStart{}; },
       {"Region \"weights\"", "constant"}},
      {"a constant that starts at zero",
       [](GraphParts& parts) { parts.regions[kWeights].start = ZeroStart{}; },
       {"Region \"weights\""}},
      {"a role that there is not",
       [](GraphParts& parts) { parts.regions[kX].role = static_cast<Role>(77); },
       {"Region \"x\""}},
      {"an element type that there is not",
       [](GraphParts& parts) { parts.regions[kX].element = static_cast<ElementType>(77); },
       {"Region \"x\""}},
      {"frozen bytes that are no constant",
       [](GraphParts& parts) { parts.regions[kX].frozen = true; },
       {"Region \"x\""}},
  });
}

TEST_CASE("a graph with a broken argument is refused by the node and the region") {
  refuses({
      {"arguments that are not there",
       [](GraphParts& parts) { parts.nodes[2].arguments.first = 9; },
       {"Node 2"}},
      {"more arguments than there are",
       [](GraphParts& parts) { parts.nodes[0].arguments.count = 0xFFFFFFFF; },
       {"Node 0"}},
      {"a region that is not there",
       [](GraphParts& parts) { parts.arguments[2].region = 3; },
       {"Node 1", "region 3 of 3"}},
      {"bytes past the region",
       [](GraphParts& parts) {
         parts.arguments[4].range = {16, 66};
       },
       {"Node 2", "[16, 66)", "\"x\"", "64"}},
      {"bytes backwards",
       [](GraphParts& parts) {
         parts.arguments[4].range = {32, 16};
       },
       {"Node 2", "\"x\""}},
      {"no direction",
       [](GraphParts& parts) { parts.arguments[0].direction = Direction::none; },
       {"Node 0", "direction"}},
      {"a constant that a kernel writes",
       [](GraphParts& parts) { parts.arguments[1].region = kWeights; },
       {"Node 0", "\"weights\""},
       ErrorKind::constant_written},
      {"a constant that a copy writes",
       [](GraphParts& parts) { parts.arguments[3].region = kWeights; },
       {"Node 1", "\"weights\""},
       ErrorKind::constant_written},
      {"a constant that a fill writes",
       [](GraphParts& parts) { parts.arguments[4].region = kWeights; },
       {"Node 2", "\"weights\""},
       ErrorKind::constant_written},
  });
}

TEST_CASE("a graph with a broken launch is refused by the node and the kernel") {
  refuses({
      {"a kernel that is not there",
       [](GraphParts& parts) { call(parts).kernel = 1; },
       {"Node 0", "kernel 1 of 1"}},
      {"an empty grid",
       [](GraphParts& parts) { call(parts).grid.threads.y = 0; },
       {"Node 0", "grid"}},
      {"a block past the parameter bytes",
       [](GraphParts& parts) { call(parts).block.first = 1; },
       {"Node 0", "saxpy"}},
      {"a block of another size",
       [](GraphParts& parts) { call(parts).block.count = 16; },
       {"Node 0", "16 bytes", "saxpy", "20"}},
      {"too few arguments",
       [](GraphParts& parts) { parts.nodes[0].arguments.count = 1; },
       {"Node 0", "too few", "saxpy"}},
      {"too many arguments",
       [](GraphParts& parts) { parts.nodes[0].arguments.count = 3; },
       {"Node 0", "too many", "saxpy"}},
      {"an argument of another place",
       [](GraphParts& parts) { parts.arguments[1].offset = 12; },
       {"Node 0", "offset 12", "saxpy"}},
      {"an argument of another direction",
       [](GraphParts& parts) { parts.arguments[1].direction = Direction::out; },
       {"Node 0", "offset 8", "saxpy"}},
      {"half an element at the end",
       [](GraphParts& parts) {
         parts.arguments[0].range = {0, 62};
       },
       {"Node 0", "[0, 62)", "4 bytes"}},
      {"half an element at the start",
       [](GraphParts& parts) {
         parts.arguments[0].range = {2, 62};
       },
       {"Node 0", "[2, 62)"}},
      {"an address of another process",
       [](GraphParts& parts) { parts.parameter_bytes[15] = std::byte{1}; },
       {"Node 0", "address", "offset 8"}},
  });
}

TEST_CASE("a graph with a broken copy or fill is refused by the node") {
  refuses({
      {"a copy without destination",
       [](GraphParts& parts) { parts.nodes[1].arguments.count = 1; },
       {"Node 1", "copy"}},
      {"a copy backwards",
       [](GraphParts& parts) {
         parts.arguments[2].direction = Direction::out;
         parts.arguments[3].direction = Direction::in;
       },
       {"Node 1", "copy"}},
      {"a copy of two sizes",
       [](GraphParts& parts) {
         parts.arguments[3].range = {0, 32};
       },
       {"Node 1", "64", "32"}},
      {"a copy onto itself",
       [](GraphParts& parts) {
         parts.arguments[2] = {0, Direction::in, kX, {0, 32}};
         parts.arguments[3] = {0, Direction::out, kX, {16, 48}};
       },
       {"Node 1", "[0, 32)", "[16, 48)"}},
      {"a fill that reads",
       [](GraphParts& parts) { parts.arguments[4].direction = Direction::in_out; },
       {"Node 2", "fill"}},
      {"a fill of nothing",
       [](GraphParts& parts) { parts.nodes[2].arguments.count = 0; },
       {"Node 2", "fill"}},
      {"a pattern of 3 bytes",
       [](GraphParts& parts) {
         parts.nodes[2].call = FillCall{1, 3};
       },
       {"Node 2", "3"}},
      {"a pattern of no bytes",
       [](GraphParts& parts) {
         parts.nodes[2].call = FillCall{1, 0};
       },
       {"Node 2"}},
      {"a pattern that is too wide",
       [](GraphParts& parts) {
         parts.nodes[2].call = FillCall{0x100, 1};
       },
       {"Node 2"}},
      {"half a pattern",
       [](GraphParts& parts) {
         parts.nodes[2].call = FillCall{1, 4};
         parts.arguments[4].range = {16, 30};
       },
       {"Node 2", "14"}},
  });
}

TEST_CASE("a copy within a region between ranges that only touch is sound") {
  GraphParts parts = sound_parts();
  parts.arguments[2] = {0, Direction::in, kX, {0, 32}};
  parts.arguments[3] = {0, Direction::out, kX, {32, 64}};
  CHECK(SealedGraph::make(std::move(parts)).ok());
}

TEST_CASE("what is written before it is read and has no name is scratch") {
  GraphParts parts;
  parts.regions = {region("", Role::none, 16), region("named", Role::none, 16),
                   region("", Role::none, 16)};
  parts.arguments = {{0, Direction::out, 0, {0, 16}},
                     {0, Direction::in, 0, {0, 16}},
                     {0, Direction::out, 1, {0, 16}},
                     {0, Direction::in, 2, {0, 16}},
                     {0, Direction::out, 1, {0, 16}}};
  Node fill;
  fill.call = FillCall{};
  fill.arguments = {0, 1};
  Node copy;
  copy.call = CopyCall{};
  copy.arguments = {1, 2};
  Node outside = copy;
  outside.arguments = {3, 2};
  parts.nodes = {fill, copy, outside};
  const Result<SealedGraph> made = SealedGraph::make(std::move(parts));
  REQUIRE(made.ok());
  CHECK(made->regions()[0].role == Role::scratch);
  CHECK(made->regions()[1].role == Role::none);  // it has a name: somebody may look at it
  CHECK(made->regions()[2].role == Role::none);  // it is read from outside
  const std::vector<std::string> reasons = made->not_portable();
  REQUIRE(reasons.size() == 1);
  CHECK(reasons[0].find("Region 2") != std::string::npos);
}

TEST_CASE("a graph that reads what nobody said the role of cannot be saved, and says each once") {
  for (const Role role : {Role::none, Role::output}) {
    CAPTURE(name_of(role));
    GraphParts parts = sound_parts();
    parts.regions[kX].role = role;
    // Two stretches of one region are read: it is named once all the same.
    parts.arguments[0].range = {0, 16};
    parts.arguments.push_back({0, Direction::in, kX, {32, 48}});
    parts.arguments.push_back({8, Direction::in_out, kY, {0, 64}});
    Node again = parts.nodes[0];
    again.arguments = {5, 2};
    parts.nodes.insert(parts.nodes.begin() + 1, again);
    const Result<SealedGraph> made = SealedGraph::make(std::move(parts));
    REQUIRE(made.ok());
    const std::vector<std::string> reasons = made->not_portable();
    REQUIRE(reasons.size() == 1);
    CHECK(reasons[0].find("\"x\"") != std::string::npos);
    CHECK(reasons[0].find(name_of(role)) != std::string::npos);
  }
}

TEST_CASE("scratch that is read before the graph writes it is refused, with who reads it") {
  for (const bool named : {true, false}) {
    GraphParts parts;
    parts.regions = {region(named ? "gated" : "", Role::scratch, 16), region("y", Role::none, 16)};
    parts.arguments = {{0, Direction::out, 0, {0, 12}},
                       {0, Direction::in, 0, {0, 8}},
                       {0, Direction::out, 1, {0, 8}},
                       {0, Direction::in, 0, {8, 16}},
                       {0, Direction::out, 1, {8, 16}}};
    parts.nodes.resize(3);
    parts.nodes[0].call = FillCall{};
    parts.nodes[0].arguments = {0, 1};
    parts.nodes[1].call = parts.nodes[2].call = CopyCall{};
    parts.nodes[1].arguments = {1, 2};
    parts.nodes[2].arguments = {3, 2};
    const Result<SealedGraph> made = SealedGraph::make(std::move(parts));
    REQUIRE_FALSE(made.ok());
    CHECK(made.error().kind() == ErrorKind::invalid_argument);
    CHECK(made.error().text() == std::string("Scratch ") + (named ? "\"gated\"" : "0") +
                                     " is read by node 2, \"copy\", before anything in the graph "
                                     "writes it.");
  }
}

TEST_CASE(
    "native work without a body, or whose workspace is another than it asks for, is refused") {
  /// A call of it behind the sound nodes, with y (in and out) and a workspace of 512 bytes.
  const auto with_call = [](GraphParts& parts) {
    auto function = std::make_shared<NativeFunction>();
    function->signature = {"gemm", 1, 8, {view_of_floats(0, Direction::in_out)}};
    function->workspace_bytes = 512;
    function->body = [](const NativeCall&, std::span<const DeviceMemory>) -> Result<void> {
      return {};
    };
    parts.native_functions.push_back(function);
    parts.regions.push_back(region("", Role::scratch, 512));
    parts.regions.back().alignment = kWorkspaceAlignment;
    Node node;
    node.call = NativeFunctionCall{0};
    node.arguments = {static_cast<std::uint32_t>(parts.arguments.size()), 2};
    parts.arguments.push_back({0, Direction::in_out, kY, {0, 64}});
    parts.arguments.push_back({8, Direction::out, 3, {0, 512}});
    parts.nodes.push_back(node);
    return function;
  };
  GraphParts sound = sound_parts();
  with_call(sound);
  const Result<SealedGraph> made = SealedGraph::make(std::move(sound));
  REQUIRE_MESSAGE(made.ok(), made.error().text());
  CHECK(made->node_name(made->nodes()[3]) == "gemm");
  constexpr std::string_view kNone = "has no workspace of 512 bytes for \"gemm\"";
  refuses({
      {"no body",
       [&](GraphParts& parts) { with_call(parts)->body = nullptr; },
       {"native function has no body"}},
      {"another function",
       [&](GraphParts& parts) {
         with_call(parts);
         parts.nodes[3].call = NativeFunctionCall{1};
       },
       {"names native function 1 of 1"}},
      {"no workspace",
       [&](GraphParts& parts) {
         with_call(parts);
         parts.nodes[3].arguments.count = 1;
       },
       {kNone}},
      {"a part of one",
       [&](GraphParts& parts) {
         with_call(parts);
         parts.arguments.back().range.end = 256;
       },
       {kNone}},
      {"one that is read",
       [&](GraphParts& parts) {
         with_call(parts);
         parts.arguments.back().direction = Direction::in_out;
       },
       {kNone}},
      {"one in another place of the block",
       [&](GraphParts& parts) {
         with_call(parts);
         parts.arguments.back().offset = 16;
       },
       {kNone}},
      {"one that is not aligned",
       [&](GraphParts& parts) {
         with_call(parts);
         parts.regions.back().alignment = 64;
       },
       {kNone}},
  });
}

TEST_CASE("C14: the regions of frozen host bytes are listed") {
  GraphParts parts = sound_parts();
  parts.regions[kWeights].frozen = true;
  const Result<SealedGraph> made = SealedGraph::make(std::move(parts));
  REQUIRE(made.ok());
  CHECK(made->frozen() == std::vector<std::uint32_t>{kWeights});
}

}  // namespace refrain
