// What is saved is what is loaded: every field at full width, and the constants where they lie.
#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "graphs.hpp"
#include "handmade_file.hpp"
#include "refrain/serialize/capture_file.hpp"
#include "support/temporary_folder.hpp"

namespace {

using namespace refrain;        // NOLINT(google-build-using-namespace): all of it is tested here
using namespace refrain::test;  // NOLINT(google-build-using-namespace)

constexpr std::uint32_t kMost = std::numeric_limits<std::uint32_t>::max();

/// What `graph` is after it was a file in memory.
SealedGraph there_and_back(const SealedGraph& graph) {
  const Result<std::vector<std::byte>> bytes = encode(graph);
  REQUIRE_MESSAGE(bytes.ok(), bytes.error().text());
  const Result<CaptureFile> file = CaptureFile::parse(SharedBytes::copy_of(*bytes));
  REQUIRE_MESSAGE(file.ok(), file.error().text());
  Result<SealedGraph> loaded = file->graph();
  REQUIRE_MESSAGE(loaded.ok(), loaded.error().text());
  return *loaded;
}

KernelSignature one_view(Direction direction) {
  KernelSignature signature;
  signature.name = "touch";
  signature.block_bytes = 8;
  signature.parameters = {{0, 8, 8, ParameterKind::view, direction, ElementType::bytes}};
  return signature;
}

TEST_CASE("file: a graph comes back from memory as it was") {
  const SealedGraph graph = small_graph();
  CHECK(difference(graph, there_and_back(graph)) == "");
}

TEST_CASE("file: a graph comes back from a file as it was, mapped and copied") {
  const TemporaryFolder folder;
  const SealedGraph graph = small_graph();
  REQUIRE(save(graph, folder.file("step.refrain")).ok());
  for (const FileAccess access : {FileAccess::mapped, FileAccess::copied}) {
    LoadOptions options;
    options.access = access;
    const Result<CaptureFile> file = CaptureFile::open(folder.file("step.refrain"), options);
    REQUIRE_MESSAGE(file.ok(), file.error().text());
    CHECK(file->name() == folder.file("step.refrain").string());
    CHECK(file->producer().starts_with("refrain "));
    REQUIRE(file->captures().size() == 1);
    CHECK(file->captures()[0] == "step");
    const Result<SealedGraph> loaded = file->graph();
    REQUIRE_MESSAGE(loaded.ok(), loaded.error().text());
    CHECK(difference(graph, *loaded) == "");
    const Result<SealedGraph> by_name = file->graph("step");
    REQUIRE(by_name.ok());
    CHECK(difference(graph, *by_name) == "");
  }
}

TEST_CASE("file: a loaded graph can be saved again, to the same bytes") {
  const SealedGraph graph = small_graph();
  const Result<std::vector<std::byte>> once = encode(graph);
  const Result<std::vector<std::byte>> twice = encode(there_and_back(graph));
  REQUIRE(once.ok());
  REQUIRE(twice.ok());
  CHECK(*once == *twice);
}

TEST_CASE("file: the same graph gives the same bytes, on disk and in memory") {
  const TemporaryFolder folder;
  // Made twice, so that nothing of where it lies can be in the file.
  REQUIRE(save(small_graph(), folder.file("a")).ok());
  REQUIRE(save(small_graph(), folder.file("b")).ok());
  const Result<std::vector<std::byte>> bytes = encode(small_graph());
  REQUIRE(bytes.ok());
  CHECK(read_file(folder.file("a")) == *bytes);
  CHECK(read_file(folder.file("b")) == *bytes);
}

TEST_CASE("file: the bytes are those that docs/format.md describes") {
  HandmadeCapture by_hand;
  const Result<std::vector<std::byte>> bytes = encode(small_graph());
  REQUIRE(bytes.ok());
  const Result<CaptureFile> file = CaptureFile::parse(SharedBytes::copy_of(*bytes));
  REQUIRE(file.ok());
  by_hand.producer = file->producer();
  CHECK(by_hand.file() == *bytes);

  const Result<CaptureFile> handmade = CaptureFile::parse(SharedBytes::copy_of(by_hand.file()));
  REQUIRE_MESSAGE(handmade.ok(), handmade.error().text());
  const Result<SealedGraph> graph = handmade->graph();
  REQUIRE_MESSAGE(graph.ok(), graph.error().text());
  CHECK(difference(small_graph(), *graph) == "");
}

TEST_CASE("file: every launch extent keeps its full width") {
  GraphBuilder builder;
  const std::uint32_t y = builder.region("y", Role::output, 8);
  const std::uint32_t kernel = builder.kernel(one_view(Direction::out));
  constexpr std::array<std::uint32_t, 7> kExtremes{1,          2,         0x7FFFFFFF, 0x80000000,
                                                   0x80000001, kMost - 1, kMost};
  const auto add = [&](Dim3 blocks, Dim3 threads, std::uint32_t shared) {
    std::get<KernelCall>(builder.launch(kernel, {{y, {0, 8}}}).call).grid =
        Grid{blocks, threads, shared, {}, {}};
  };
  for (const std::uint32_t extreme : kExtremes) {
    add({extreme, 1, 1}, {1, 1, 1}, 0);
    add({1, extreme, 1}, {1, 1, 1}, 1);
    add({1, 1, extreme}, {1, 1, 1}, 0x7FFFFFFF);
    add({1, 1, 1}, {extreme, 1, 1}, 0x80000000);
    add({1, 1, 1}, {1, extreme, 1}, kMost);
    add({1, 1, 1}, {1, 1, extreme}, extreme);
    add({extreme, extreme, extreme}, {extreme, extreme, extreme}, extreme);
  }
  const SealedGraph graph = builder.seal();
  CHECK(difference(graph, there_and_back(graph)) == "");
}

TEST_CASE("file: every launch attribute keeps its full width, and asks readers to know it") {
  constexpr std::int32_t kLeast = std::numeric_limits<std::int32_t>::min();
  constexpr std::array<LaunchAttributes, 7> kAll{
      LaunchAttributes{{kMost, 1, 2}, false, 0, false},
      LaunchAttributes{{0, 0, 0}, true, 0, false},
      LaunchAttributes{{0, 0, 0}, false, kLeast, false},
      LaunchAttributes{{0, 0, 0}, false, std::numeric_limits<std::int32_t>::max(), false},
      LaunchAttributes{{0, 0, 0}, false, 0, true},
      LaunchAttributes{{1, 2, kMost}, true, -1, true},
      LaunchAttributes{}};
  GraphBuilder builder;
  const std::uint32_t y = builder.region("y", Role::output, 8);
  const std::uint32_t kernel = builder.kernel(one_view(Direction::out));
  for (const LaunchAttributes& attributes : kAll) {
    std::get<KernelCall>(builder.launch(kernel, {{y, {0, 8}}}).call).grid =
        grid(1).with(attributes);
  }
  const SealedGraph graph = builder.seal();
  const SealedGraph loaded = there_and_back(graph);
  for (std::size_t at = 0; at < kAll.size(); ++at) {
    CHECK(std::get<KernelCall>(loaded.nodes()[at].call).grid.attributes == kAll[at]);
  }
  const auto mentions = [](const SealedGraph& of) {
    const std::vector<std::byte> bytes = encode(of).value();
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return text.find("launch_attributes") != std::string_view::npos;
  };
  CHECK(mentions(graph));
  CHECK_FALSE(mentions(small_graph()));
}

TEST_CASE("file: sizes and ranges keep their full width") {
  constexpr std::uint64_t k4GiB = std::uint64_t{1} << 32U;
  constexpr std::uint64_t kAll = std::numeric_limits<std::uint64_t>::max();
  GraphBuilder builder;
  const std::uint32_t kernel = builder.kernel(one_view(Direction::in_out));
  for (const std::uint64_t bytes :
       {std::uint64_t{1}, std::uint64_t{0x7FFFFFFF}, std::uint64_t{0x80000000}, k4GiB - 1, k4GiB,
        k4GiB + 1, std::uint64_t{1} << 63U, kAll}) {
    const std::uint32_t region =
        builder.region("r" + std::to_string(bytes), Role::state, bytes, ZeroStart{});
    builder.launch(kernel, {{region, {0, bytes}}});
    builder.launch(kernel, {{region, {bytes - 1, bytes}}});
    builder.launch(kernel, {{region, {bytes, bytes}}});
    builder.launch(kernel, {{region, {0, 0}}});
  }
  const SealedGraph graph = builder.seal();
  CHECK(difference(graph, there_and_back(graph)) == "");
}

TEST_CASE("file: every role, start, element type, alignment and name comes back") {
  GraphBuilder builder;
  builder.parts.name = "krok/β — 模型 🎵";
  builder.region("said by nobody", Role::none, 1);
  builder.region("input", Role::input, 2);
  builder.region("output", Role::output, 3);
  builder.region("nothing said", Role::state, 4);
  builder.region("zero", Role::state, 5, ZeroStart{});
  builder.region("bytes", Role::state, 6, pattern(6, 2));
  builder.region("input with a start", Role::input, 7, pattern(7, 3));
  builder.region("constant", Role::constant, 8, pattern(8, 4));
  builder.region("żółw", Role::constant, 4096, pattern(4096, 5));
  builder.region(std::string("with\0zero\n\"quotes\"", 18), Role::constant, 4097, pattern(4097, 6));
  builder.region("", Role::scratch, 9);
  builder.region("", Role::scratch, 9);
  builder.region("frozen", Role::constant, 9, pattern(9, 7));
  builder.parts.regions.back().frozen = true;
  for (std::uint8_t type = 0; type <= kLastElementType; ++type) {
    builder.region("type " + std::to_string(type), Role::scratch, 64);
    builder.parts.regions.back().element = static_cast<ElementType>(type);
  }
  for (unsigned shift = 0; shift < 32; ++shift) {
    builder.region("alignment " + std::to_string(shift), Role::scratch, 64);
    builder.parts.regions.back().alignment = std::uint32_t{1} << shift;
  }
  const SealedGraph graph = builder.seal();
  const SealedGraph loaded = there_and_back(graph);
  CHECK(difference(graph, loaded) == "");
  CHECK(loaded.frozen() == graph.frozen());
}

TEST_CASE("file: kernels come back with every parameter, structures and their fields too") {
  GraphBuilder builder;
  const std::uint32_t y = builder.region("y", Role::output, 64);
  KernelSignature signature;
  signature.name = "rot/π";
  signature.version = kMost;
  signature.block_bytes = 48;
  signature.parameters = {
      {0, 1, 1, ParameterKind::scalar, Direction::none, ElementType::boolean},
      {8, 16, 8, ParameterKind::structure, Direction::none, ElementType::bytes},
      {8, 4, 4, ParameterKind::field, Direction::none, ElementType::i32},
      {16, 8, 8, ParameterKind::field, Direction::none, ElementType::f64},
      {24, 8, 8, ParameterKind::view, Direction::out, ElementType::f32},
      {32, 8, 8, ParameterKind::scalar, Direction::none, ElementType::u64},
      {40, 2, 2, ParameterKind::scalar, Direction::none, ElementType::i16},
  };
  KernelSignature none;
  none.name = "none";
  none.version = 0;
  const std::uint32_t first = builder.kernel(signature);
  const std::uint32_t second = builder.kernel(none);
  const std::uint32_t third = builder.kernel(signature);  // the same once more
  builder.launch(first, {{y, {0, 64}}});
  for (std::size_t at = 32; at < 42; ++at) builder.parts.parameter_bytes[at] = std::byte{0xFF};
  builder.launch(second, {});
  builder.launch(third, {{y, {0, 32}}});
  // A scalar that looks like an address stays a scalar.
  builder.parts.parameter_bytes[48 + 37] = std::byte{0x7F};
  const SealedGraph graph = builder.seal();
  const SealedGraph loaded = there_and_back(graph);
  CHECK(difference(graph, loaded) == "");
  CHECK(loaded.kernels().size() == 3);
}

TEST_CASE("file: copies and fills come back with their patterns") {
  GraphBuilder builder;
  const std::uint32_t x = builder.region("x", Role::input, 64);
  const std::uint32_t y = builder.region("y", Role::output, 64);
  builder.fill({y, {0, 64}}, 0, 1);
  builder.fill({y, {1, 2}}, 0xFF, 1);
  builder.fill({y, {2, 4}}, 0xFFFF, 2);
  builder.fill({y, {4, 8}}, kMost, 4);
  builder.fill({y, {8, 8}}, 0, 1);
  builder.copy({x, {0, 32}}, {y, {32, 64}});
  builder.copy({y, {0, 16}}, {y, {16, 32}});
  const SealedGraph graph = builder.seal();
  CHECK(difference(graph, there_and_back(graph)) == "");
}

TEST_CASE("file: a graph without anything comes back") {
  GraphBuilder builder;
  const SealedGraph graph = builder.seal();
  CHECK(difference(graph, there_and_back(graph)) == "");
}

TEST_CASE("file: more dependencies than one record holds come back") {
  for (const std::uint32_t count : {1023U, 1024U, 1025U, 2048U, 3000U}) {
    GraphBuilder builder;
    const std::uint32_t x = builder.region("x", Role::output, count);
    const std::uint32_t y = builder.region("y", Role::output, count);
    for (std::uint32_t at = 0; at < count; ++at) builder.fill({x, {at, at + 1}}, 1, 1);
    builder.copy({x, {0, count}}, {y, {0, count}});
    builder.fill({y, {0, 1}}, 1, 1);
    const SealedGraph graph = builder.seal();
    REQUIRE(graph.dependencies(graph.nodes()[count]).size() == count);
    CHECK(difference(graph, there_and_back(graph)) == "");
  }
}

TEST_CASE("file: constants are used where they lie, and outlive the file's handle") {
  const TemporaryFolder folder;
  GraphBuilder builder;
  builder.region("small", Role::constant, 100, pattern(100, 1));
  builder.region("page", Role::constant, 5000, pattern(5000, 2));
  builder.region("large", Role::constant, 100'000, pattern(100'000, 3));
  const SealedGraph graph = builder.seal();
  REQUIRE(save(graph, folder.file("f")).ok());

  std::vector<SealedGraph> loaded;
  {
    const Result<CaptureFile> file = CaptureFile::open(folder.file("f"));
    REQUIRE(file.ok());
    for (int i = 0; i < 2; ++i) {
      Result<SealedGraph> each = file->graph();
      REQUIRE(each.ok());
      loaded.push_back(*each);
    }
  }
  std::filesystem::remove(folder.file("f"));
  CHECK(difference(graph, loaded[0]) == "");
  for (std::size_t at = 0; at < graph.regions().size(); ++at) {
    const auto& first = std::get<SharedBytes>(loaded[0].regions()[at].start);
    const auto& second = std::get<SharedBytes>(loaded[1].regions()[at].start);
    CHECK(first.data() == second.data());
    const std::uintptr_t alignment = first.size() >= 4096 ? 4096 : 64;
    CHECK(reinterpret_cast<std::uintptr_t>(first.data()) % alignment == 0);
  }

  // In memory that the caller has: the same memory.
  const Result<std::vector<std::byte>> bytes = encode(graph);
  REQUIRE(bytes.ok());
  const SharedBytes shared = SharedBytes::copy_of(*bytes);
  const Result<CaptureFile> file = CaptureFile::parse(shared);
  REQUIRE(file.ok());
  const Result<SealedGraph> in_memory = file->graph();
  REQUIRE(in_memory.ok());
  for (const Region& region : in_memory->regions()) {
    const auto& start = std::get<SharedBytes>(region.start);
    CHECK(start.data() >= shared.data());
    CHECK(start.data() + start.size() <= shared.data() + shared.size());
  }
}

TEST_CASE("file: a constant has its region's alignment wherever the file's bytes lie") {
  GraphBuilder builder;
  for (const std::uint32_t alignment : {1U, 64U, 4096U, 65'536U, 2'097'152U}) {
    builder.region("at " + std::to_string(alignment), Role::constant, 333, pattern(333, alignment));
    builder.parts.regions.back().alignment = alignment;
  }
  const SealedGraph graph = builder.seal();
  const Result<std::vector<std::byte>> bytes = encode(graph);
  REQUIRE(bytes.ok());
  for (const std::size_t shift : {0U, 1U, 17U, 64U}) {
    std::vector<std::byte> moved(shift, std::byte{0});
    moved.insert(moved.end(), bytes->begin(), bytes->end());
    const SharedBytes shared = SharedBytes::copy_of(moved);
    const SharedBytes part(std::make_shared<const SharedBytes>(shared),
                           shared.span().subspan(shift));
    const Result<CaptureFile> file = CaptureFile::parse(part);
    REQUIRE_MESSAGE(file.ok(), file.error().text());
    const Result<SealedGraph> loaded = file->graph();
    REQUIRE_MESSAGE(loaded.ok(), loaded.error().text());
    CHECK(difference(graph, *loaded) == "");
    for (const Region& region : loaded->regions()) {
      const auto at = reinterpret_cast<std::uintptr_t>(std::get<SharedBytes>(region.start).data());
      CHECK(at % region.alignment == 0);
    }
  }
}

TEST_CASE("file: several captures share symbols and constants, and are read by name") {
  const HandmadeCapture whole;
  HandmadeContainer container = whole.container();
  // A second capture: the head of another graph over the same sections, and a third of its own.
  GraphBuilder builder;
  const std::uint32_t y = builder.region("y", Role::output, 16);
  builder.fill({y, {0, 16}}, 7, 1);
  const SealedGraph second = [&] {
    builder.parts.name = "fill";
    return builder.seal();
  }();
  container.sections.push_back(
      {kCaptureSection, 1, Wire().number(2, 1).number(3, 1).number(4, 1).text()});
  container.sections.push_back({kRegionsSection, 1, delimited({region("y", 2, 16)})});
  container.sections.push_back(
      {kNodesSection, 1,
       delimited({node(0, kFillField, fill(7, 1), {}, {argument(0, 0, 2, 0, 0, 16)})})});
  Wire manifest;
  manifest.message(1, Wire().bytes(1, "by hand"));
  manifest.message(3, Wire().bytes(1, "step").number(2, 2).number(3, 3).number(4, 4));
  manifest.message(3, Wire().bytes(1, "fill").number(2, 6).number(3, 7).number(4, 8));
  manifest.message(3, Wire().bytes(1, "again").number(2, 2).number(3, 3).number(4, 4));
  manifest.number(4, 1);
  container.sections[0].bytes = manifest.text();

  const Result<CaptureFile> file = CaptureFile::parse(SharedBytes::copy_of(container.file()));
  REQUIRE_MESSAGE(file.ok(), file.error().text());
  REQUIRE(file->captures().size() == 3);
  const Result<SealedGraph> step = file->graph("step");
  REQUIRE_MESSAGE(step.ok(), step.error().text());
  CHECK(difference(small_graph(), *step) == "");
  const Result<SealedGraph> filled = file->graph("fill");
  REQUIRE_MESSAGE(filled.ok(), filled.error().text());
  CHECK(difference(second, *filled) == "");
  const Result<SealedGraph> again = file->graph("again");
  REQUIRE_MESSAGE(again.ok(), again.error().text());
  CHECK(again->name() == "again");

  const Result<SealedGraph> which = file->graph();
  REQUIRE(!which.ok());
  CHECK(which.error().kind() == ErrorKind::invalid_argument);
  const Result<SealedGraph> none = file->graph("stop");
  REQUIRE(!none.ok());
  CHECK(none.error().kind() == ErrorKind::invalid_argument);
  CHECK(none.error().message() == "The file \"memory\" holds no capture \"stop\".");
}

TEST_CASE("file: a graph that is not portable is refused, and why") {
  const TemporaryFolder folder;
  GraphBuilder builder;
  builder.parts.name = "step";
  const std::uint32_t x = builder.region("left", Role::none, 8);
  const std::uint32_t z = builder.region("right", Role::output, 8);
  const std::uint32_t y = builder.region("y", Role::output, 8);
  builder.copy({x, {0, 8}}, {y, {0, 8}});
  builder.copy({z, {0, 8}}, {y, {0, 8}});
  const SealedGraph graph = builder.seal();
  REQUIRE(graph.not_portable().size() == 2);

  const Result<void> saved = save(graph, folder.file("f"));
  REQUIRE(!saved.ok());
  CHECK(saved.error().kind() == ErrorKind::not_portable);
  for (const std::string& reason : graph.not_portable()) {
    CHECK(saved.error().message().find(reason) != std::string::npos);
  }
  CHECK(saved.error().text().find(folder.file("f").string()) != std::string::npos);
  CHECK(folder.size() == 0);
  const Result<std::vector<std::byte>> encoded = encode(graph);
  REQUIRE(!encoded.ok());
  CHECK(encoded.error().kind() == ErrorKind::not_portable);
}

TEST_CASE("file: a graph with host or native work is refused, with every node of it") {
  const TemporaryFolder folder;
  GraphBuilder builder;
  builder.parts.name = "step";
  const std::uint32_t y = builder.region("y", Role::output, 8);
  builder.fill({y, {0, 8}}, 0, 1);
  for (const char* const name : {"sample", "log"}) {
    auto function = std::make_shared<HostFunction>();
    function->signature.name = name;
    function->body = [](std::span<const std::span<std::byte>>) -> Result<void> { return {}; };
    Node node;
    node.call = HostCall{static_cast<std::uint32_t>(builder.parts.host_functions.size())};
    builder.parts.host_functions.push_back(std::move(function));
    builder.parts.nodes.push_back(node);
  }
  auto native = std::make_shared<NativeFunction>();
  native->signature.name = "gemm";
  native->body = [](const NativeCall&, std::span<const DeviceMemory>) -> Result<void> {
    return {};
  };
  builder.parts.native_functions.push_back(std::move(native));
  Node node;
  node.call = NativeFunctionCall{0};
  builder.parts.nodes.push_back(node);
  const Result<void> saved = save(builder.seal(), folder.file("f"));
  REQUIRE(!saved.ok());
  CHECK(saved.error().kind() == ErrorKind::not_portable);
  CHECK(
      saved.error().message() ==
      "The graph \"step\" cannot be saved. Node 1, \"sample\", is host work, whose function is "
      "this process's own; register it as a kernel. Node 2, \"log\", is host work, whose function "
      "is this process's own; register it as a kernel. Node 3, \"gemm\", is native work, whose "
      "body "
      "is this process's own; no file can hold it yet.");
  CHECK(folder.size() == 0);
}

TEST_CASE("file: the effects of kernels come back, and the order that they ask for") {
  GraphBuilder builder;
  builder.parts.name = "step";
  const std::uint32_t y = builder.region("y", Role::output, 64);
  std::uint32_t at = 0;
  const auto launch = [&](Effects effects) {
    KernelSignature signature = one_view(Direction::out);
    signature.effects = std::move(effects);
    builder.launch(builder.kernel(signature), {{y, {at, at + 8}}});
    at += 8;
  };
  launch(Effects::opaque());
  launch(Effects::uses("rng"));
  launch(Effects::none());
  launch(Effects::uses("rng"));
  launch(Effects::opaque());  // of another stream than the first
  launch(Effects::opaque());
  builder.parts.stream_order = {{0, 1}, {0, 5}, {3, 5}};
  const SealedGraph graph = builder.seal();
  CHECK(graph.dependencies(graph.nodes()[5]).size() == 2);
  const SealedGraph back = there_and_back(graph);
  CHECK(difference(graph, back) == "");
  CHECK(back.effects(back.nodes()[1]) == Effects::uses("rng"));
  CHECK(back.effects(back.nodes()[2]) == Effects::none());
  CHECK(encode(graph).value() == encode(back).value());
}

TEST_CASE("file: what no reader would take is refused when it is saved") {
  const auto refused = [](GraphBuilder& builder, ErrorKind kind, const std::string& named) {
    const Result<std::vector<std::byte>> bytes = encode(builder.seal());
    REQUIRE(!bytes.ok());
    CHECK(bytes.error().kind() == kind);
    CHECK_MESSAGE(bytes.error().message().find(named) != std::string::npos,
                  bytes.error().message());
  };
  SUBCASE("a region's name that is not UTF-8") {
    GraphBuilder builder;
    builder.region("x\xC3\x28", Role::output, 8);
    refused(builder, ErrorKind::not_portable, "UTF-8");
  }
  SUBCASE("a graph's name that is not UTF-8") {
    GraphBuilder builder;
    builder.parts.name = "\xFF";
    refused(builder, ErrorKind::not_portable, "UTF-8");
  }
  SUBCASE("a kernel's name that is too long") {
    GraphBuilder builder;
    builder.kernel({std::string(16385, 'k'), 1, 0, {}});
    refused(builder, ErrorKind::file_limit, "16385");
  }
  SUBCASE("a node that takes too much") {
    GraphBuilder builder;
    KernelSignature signature;
    signature.name = "huge";
    signature.block_bytes = 65'536;
    builder.launch(builder.kernel(signature), {});
    refused(builder, ErrorKind::file_limit, "Node 0");
  }
  SUBCASE("constant bytes at an alignment that is not given") {
    GraphBuilder builder;
    builder.region("w", Role::constant, 8, pattern(8));
    builder.parts.regions.back().alignment = 0x80000000;
    refused(builder, ErrorKind::file_limit, "2147483648");
  }
}

}  // namespace
