// Files whose digests are right and whose contents are not: what somebody makes who means harm.
// Each is refused before anything is done with what it says, and the refusal names the place.
#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "graphs.hpp"
#include "handmade_file.hpp"
#include "refrain/serialize/capture_file.hpp"

namespace {

using namespace refrain;        // NOLINT(google-build-using-namespace): all of it is tested here
using namespace refrain::test;  // NOLINT(google-build-using-namespace)

constexpr std::uint64_t kAll = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint32_t kMost = std::numeric_limits<std::uint32_t>::max();

Result<SealedGraph> load(const std::vector<std::byte>& bytes, const LoadLimits& limits = {}) {
  const Result<CaptureFile> file = CaptureFile::parse(SharedBytes::copy_of(bytes), limits);
  if (!file.ok()) return file.error();
  return file->graph();
}

void check_refused(const std::vector<std::byte>& bytes, ErrorKind kind, const std::string& says,
                   const LoadLimits& limits = {}) {
  const Result<SealedGraph> graph = load(bytes, limits);
  REQUIRE(!graph.ok());
  CHECK_MESSAGE(name_of(graph.error().kind()) == name_of(kind), graph.error().message());
  CHECK_MESSAGE(graph.error().message().find("he file \"memory\"") != std::string::npos,
                graph.error().message());
  CHECK_MESSAGE(graph.error().message().find(says) != std::string::npos, graph.error().message());
}

void check_damaged(const HandmadeCapture& capture, const std::string& says) {
  check_refused(capture.file(), ErrorKind::file_damaged, says);
}

void check_damaged(const HandmadeContainer& container, const std::string& says) {
  check_refused(container.file(), ErrorKind::file_damaged, says);
}

/// The file with these bytes from `at` on, digests of header and table right again.
std::vector<std::byte> with(std::vector<std::byte> file, std::size_t at, std::uint64_t value,
                            std::size_t width) {
  for (std::size_t i = 0; i < width; ++i) {
    file[at + i] = static_cast<std::byte>((value >> (8 * i)) & 0xFFU);
  }
  seal_header(file);
  return file;
}

/// Where the table says something of a section.
constexpr std::size_t entry(std::size_t section, std::size_t field) {
  return 64 + 96 * section + field;
}

TEST_CASE("file: an unknown section is refused when it is critical, else skipped") {
  HandmadeContainer container = HandmadeCapture().container();
  container.sections.push_back({99, 5, "something newer", 0});
  const Result<SealedGraph> graph = load(container.file());
  REQUIRE_MESSAGE(graph.ok(), graph.error().text());
  CHECK(difference(small_graph(), *graph) == "");
  container.sections.back().flags = 1;
  check_refused(container.file(), ErrorKind::file_version,
                "section 6 (kind 99) must be understood");
  // A section that is skipped is checked all the same.
  container.sections.back().flags = 0;
  std::vector<std::byte> damaged = container.file();
  damaged.back() ^= std::byte{1};
  check_refused(damaged, ErrorKind::file_damaged, "section 6 (kind 99) does not match its digest");
}

TEST_CASE("file: a required feature that is not known is refused by its name") {
  HandmadeCapture capture;
  capture.required_features = {"conditional nodes"};
  check_refused(capture.file(), ErrorKind::file_version, "requires \"conditional nodes\"");
}

TEST_CASE("file: flags and digests that are not known are refused") {
  HandmadeContainer container = HandmadeCapture().container();
  container.flags = 2;
  check_refused(container.file(), ErrorKind::file_version, "has the flags 2 in its header");
  container.flags = 0;
  container.sections[3].flags = 3;
  check_refused(container.file(), ErrorKind::file_version, "section 3 (REGIONS) has the flags 3");
  container.sections[3].flags = 1;
  container.sections[4].digest_kind = 3;
  check_refused(container.file(), ErrorKind::file_version,
                "section 4 (NODES) has a digest of kind 3");
  // The other one that is known.
  for (HandmadeSection& section : container.sections) section.digest_kind = 2;
  REQUIRE(load(container.file()).ok());
  std::vector<std::byte> damaged = container.file();
  damaged.back() ^= std::byte{1};
  check_refused(damaged, ErrorKind::file_damaged, "does not match its digest");
}

TEST_CASE("file: a table that points elsewhere is refused") {
  const HandmadeContainer container = HandmadeCapture().container();
  const std::vector<std::byte> file = container.file();
  const std::string offset_of_1 = "section 1 (SYMBOLS) starts at byte ";
  // Before the table, over its neighbour, one alignment later, past the end, around the end.
  for (const std::uint64_t at : {std::uint64_t{0}, std::uint64_t{64}, std::uint64_t{640},
                                 std::uint64_t{100'000}, kAll, kAll - 7, std::uint64_t{1} << 63U}) {
    check_refused(with(file, entry(1, 8), at, 8), ErrorKind::file_damaged,
                  offset_of_1 + std::to_string(at));
  }
  // The last section too long by any amount, and one in the middle.
  for (const std::uint64_t size : {std::uint64_t{33}, kAll, kAll - 4096, std::uint64_t{1} << 63U}) {
    check_refused(with(file, entry(5, 16), size, 8), ErrorKind::file_damaged,
                  "section 5 (CONST) has " + std::to_string(size));
    CHECK(!load(with(file, entry(2, 16), size, 8)).ok());
  }
  CHECK(!load(with(file, entry(5, 16), 31, 8)).ok());
  CHECK(!load(with(file, entry(5, 16), 0, 8)).ok());
  for (const std::uint32_t alignment : {0U, 3U, 12U, kMost}) {
    check_refused(with(file, entry(1, 32), alignment, 4), ErrorKind::file_damaged,
                  "which is no power of two");
  }
  CHECK(!load(with(file, entry(1, 32), 0x80000000, 4)).ok());
  check_refused(with(file, entry(1, 95), 1, 1), ErrorKind::file_damaged, "last bytes are not zero");
  check_refused(with(file, entry(1, 71), 1, 1), ErrorKind::file_damaged, "its digest");
  // Header sizes and section counts.
  for (const std::uint32_t bytes : {0U, 8U, 63U, 65U, 4104U, kMost}) {
    std::vector<std::byte> odd = file;
    for (std::size_t i = 0; i < 4; ++i) odd[12 + i] = static_cast<std::byte>(bytes >> (8 * i));
    check_refused(odd, ErrorKind::file_damaged, "its header has " + std::to_string(bytes));
  }
  for (const std::uint32_t count : {1000U, kMost}) {
    std::vector<std::byte> odd = file;
    for (std::size_t i = 0; i < 4; ++i) odd[24 + i] = static_cast<std::byte>(count >> (8 * i));
    check_refused(odd, ErrorKind::file_damaged, "the " + std::to_string(count) + " sections");
  }
}

TEST_CASE("file: something between sections is refused") {
  const HandmadeContainer container = HandmadeCapture().container();
  std::vector<std::byte> file = container.file();
  // The page before CONST: no digest covers it.
  REQUIRE(file.size() == 4096 + 32);
  file[4000] = std::byte{1};
  check_refused(file, ErrorKind::file_damaged, "other than zeros before it");
}

TEST_CASE("file: a manifest that is none, doubled, too large or points elsewhere is refused") {
  const HandmadeContainer honest = HandmadeCapture().container();
  HandmadeContainer container = honest;
  container.sections.erase(container.sections.begin());
  check_damaged(container, "has 0 manifests");
  container = honest;
  container.sections.push_back(container.sections.front());
  check_damaged(container, "has 2 manifests");
  container = honest;
  container.sections[0].bytes.clear();
  check_damaged(container, "the manifest looks for SYMBOLS in section 0");
  container.sections[0].bytes = Wire().number(4, 1).text();
  check_damaged(container, "holds no capture");
  container.sections[0].bytes = "\xFF\xFF\xFF";
  check_damaged(container, "section 0 (MANIFEST) is no message of its kind");
  container.sections[0].bytes = Wire().number(4, 1).bytes(15, std::string(1U << 20U, 'x')).text();
  check_refused(container.file(), ErrorKind::file_limit, "section 0 (MANIFEST) has 10485");

  const auto manifest = [&](const std::vector<Wire>& captures, std::uint32_t symbols) {
    Wire wire;
    for (const Wire& capture : captures) wire.message(3, capture);
    container.sections[0].bytes = wire.number(4, symbols).text();
    return container;
  };
  const auto capture = [](std::uint32_t head, std::uint32_t regions, std::uint32_t nodes) {
    return Wire().bytes(1, "step").number(2, head).number(3, regions).number(4, nodes);
  };
  CHECK(load(manifest({capture(2, 3, 4)}, 1).file()).ok());
  check_damaged(manifest({capture(2, 3, 4)}, 6), "looks for SYMBOLS in section 6");
  check_damaged(manifest({capture(2, 3, 4)}, kMost), "looks for SYMBOLS in section 4294967295");
  check_damaged(manifest({capture(3, 3, 4)}, 1), "looks for CAPTURE in section 3");
  check_damaged(manifest({capture(2, 4, 4)}, 1), "looks for REGIONS in section 4");
  check_damaged(manifest({capture(2, 3, kMost)}, 1), "looks for NODES in section 4294967295");
  check_damaged(manifest({capture(2, 3, 4), capture(2, 3, 4)}, 1),
                "two captures are called \"step\"");
  check_damaged(manifest({capture(2, 3, 4).bytes(1, "\xC0\xAF")}, 1), "not UTF-8");
  check_refused(manifest({capture(2, 3, 4).bytes(1, std::string(16385, 'n'))}, 1).file(),
                ErrorKind::file_limit, "16385");
  check_refused(manifest(std::vector<Wire>(4097, Wire()), 1).file(), ErrorKind::file_limit,
                "4097 captures");
  // Nested deeper than any message of the format, in a field that nobody knows.
  std::string deep;
  for (int i = 0; i < 100; ++i) deep += '\x7B';  // a group of field 15 begins
  for (int i = 0; i < 100; ++i) deep += '\x7C';
  container.sections[0].bytes = deep;
  check_damaged(container, "is no message of its kind");
}

TEST_CASE("file: records that are none are refused") {
  const HandmadeContainer honest = HandmadeCapture().container();
  for (const std::size_t section : {1U, 3U, 4U}) {
    HandmadeContainer container = honest;
    std::string& bytes = container.sections[section].bytes;
    const std::string records = bytes;
    bytes = records + '\x05';
    check_damaged(container, "says that it has 5 bytes, and the section ends 0 after");
    bytes = records + '\x80';
    check_damaged(container, "has no length");
    bytes = records + "\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF";
    CHECK(!load(container.file()).ok());
    bytes = records + varint(65'537) + std::string(65'537, '\0');
    check_refused(container.file(), ErrorKind::file_limit, "65537 bytes, more than");
    bytes = records + varint(kMost);
    check_refused(container.file(), ErrorKind::file_limit, "4294967295 bytes, more than");
    bytes = records + '\x01' + '\x07';
    check_damaged(container, "is no message of its kind");
    bytes = records;
    container.sections[section].count += 1;
    check_damaged(container, "records, and the table says");
    container.sections[section].count = kAll;
    check_damaged(container, "records, and the table says 18446744073709551615");
  }
}

TEST_CASE("file: counts that are not those of the records are refused") {
  using Count = std::uint64_t HandmadeCapture::*;
  for (const Count count : {&HandmadeCapture::region_count, &HandmadeCapture::node_count,
                            &HandmadeCapture::argument_count, &HandmadeCapture::dependency_count,
                            &HandmadeCapture::parameter_bytes}) {
    const std::uint64_t honest = HandmadeCapture().*count;
    for (const std::uint64_t other :
         {std::uint64_t{0}, honest - 1, honest + 1, std::uint64_t{1} << 19U}) {
      HandmadeCapture capture;
      capture.*count = other;
      check_damaged(capture, "capture \"step\"");
    }
    for (const std::uint64_t huge : {std::uint64_t{kMost}, std::uint64_t{kMost} + 1, kAll}) {
      HandmadeCapture capture;
      capture.*count = huge;
      check_refused(capture.file(), ErrorKind::file_limit,
                    "capture \"step\" has " + std::to_string(huge));
      // Also where a caller allows everything.
      LoadLimits limits;
      limits.regions = limits.nodes = limits.arguments = kAll;
      limits.dependencies = limits.parameter_bytes = kAll;
      const Result<SealedGraph> graph = load(capture.file(), limits);
      REQUIRE(!graph.ok());
    }
  }
}

TEST_CASE("file: kernels that cannot be are refused") {
  const auto kernel = [](const std::vector<Wire>& parameters, std::string_view name = "mix") {
    HandmadeCapture capture;
    Wire wire;
    wire.bytes(1, name).number(2, 3).number(3, 28);
    for (const Wire& each : parameters) wire.message(4, each);
    capture.kernels = {wire};
    return capture;
  };
  check_damaged(kernel({parameter(0, 8, 8, 0, 1, 9)}), "kind 0");
  check_damaged(kernel({parameter(0, 8, 8, 5, 1, 9)}), "kind 5");
  check_damaged(kernel({parameter(0, 8, 8, 257, 1, 9)}), "kind 257");
  check_damaged(kernel({parameter(0, 8, 8, 1, 4, 9)}), "direction 4");
  check_damaged(kernel({parameter(0, 8, 8, 1, 1, 12)}), "element type 12");
  check_damaged(kernel({parameter(0, 8, 8, 1, 1, kMost)}), "element type 4294967295");
  check_damaged(kernel({parameter(24, 8, 8, 1, 1, 9)}), "does not fit its block");
  check_damaged(kernel({parameter(kMost - 7, 8, 8, 1, 1, 9)}), "does not fit its block");
  check_damaged(kernel({parameter(0, 4, 4, 1, 1, 9)}), "does not fit its block");
  check_damaged(kernel({parameter(0, 8, 0, 1, 1, 9)}), "does not fit its block");
  check_damaged(kernel({parameter(8, 8, 8, 1, 1, 9), parameter(8, 8, 8, 1, 1, 9)}),
                "does not fit its block");
  check_damaged(kernel({parameter(0, 8, 8, 4, 0, 9)}), "does not fit its block");
  check_damaged(kernel({}, ""), "A kernel has no name");
  check_damaged(kernel({}, "\xED\xA0\x80"), "not UTF-8");  // half of a surrogate pair
  check_refused(kernel({}, std::string(16385, 'k')).file(), ErrorKind::file_limit, "16385");
  HandmadeCapture capture;
  capture.used_kernels = {1};
  check_damaged(capture, "names symbol 1 of 1");
  capture.used_kernels = {kMost};
  check_damaged(capture, "names symbol 4294967295 of 1");
  capture.used_kernels.clear();
  check_damaged(capture, "names kernel 0 of 0");
}

TEST_CASE("file: effects that cannot be are refused, and an order that they do not ask for") {
  // Three kernels that write nothing, with effects of `kind` on `resource`.
  const auto effects = [](std::uint64_t kind, std::string_view resource,
                          const std::vector<std::uint64_t>& of_last) {
    HandmadeCapture capture;
    capture.required_features = {"effects"};
    capture.kernels = {Wire().bytes(1, "roll").number(2, 1).number(5, kind).bytes(6, resource)};
    const std::vector<std::uint64_t> chain = kind == 2 ? std::vector<std::uint64_t>{0} : of_last;
    capture.nodes = {node(0, kKernelField, launch(0, ""), {}, {}),
                     node(1, kKernelField, launch(0, ""), chain, {}),
                     node(2, kKernelField, launch(0, ""), of_last, {})};
    capture.argument_count = capture.parameter_bytes = 0;
    capture.dependency_count = chain.size() + of_last.size();
    return capture;
  };
  const Result<SealedGraph> opaque = load(effects(1, "", {0}).file());
  REQUIRE_MESSAGE(opaque.ok(), opaque.error().text());
  CHECK(opaque->effects(opaque->nodes()[2]) == Effects::opaque());
  CHECK(opaque->dependencies(opaque->nodes()[2]).size() == 1);
  REQUIRE(load(effects(2, "rng", {1}).file()).ok());
  check_damaged(effects(2, "rng", {0}), "its bytes and effects ask for nodes 1.");
  check_damaged(effects(2, "rng", {}), "its bytes and effects ask for nodes 1.");
  check_damaged(effects(0, "", {0}), "its bytes and effects ask for no node.");
  check_damaged(effects(1, "", {0, 0}), "states nodes 0, 0 as what it follows");
  check_damaged(effects(1, "", {kMost}), "states nodes 4294967295 as what it follows");
  check_damaged(effects(3, "", {}), "has effects of kind 3");
  check_damaged(effects(257, "", {}), "has effects of kind 257");
  check_damaged(effects(0, "rng", {}), "names \"rng\" as what it uses, and uses nothing");
  check_damaged(effects(1, "rng", {}), "names \"rng\" as what it uses, and uses nothing");
  check_damaged(effects(2, "\xED\xA0\x80", {1}), "not UTF-8");
  check_refused(effects(2, std::string(16385, 'k'), {1}).file(), ErrorKind::file_limit, "16385");
}

TEST_CASE("file: regions that cannot be are refused") {
  const auto last = [](const Wire& record) {
    HandmadeCapture capture;
    capture.regions.back() = record;
    return capture;
  };
  const auto stored = [](std::uint64_t section, std::uint64_t offset) {
    return Wire().number(1, section).number(2, offset);
  };
  check_damaged(last(region("w", 6, 32)), "role 6");
  check_damaged(last(region("w", 257, 32)), "role 257");
  check_damaged(last(region("w", 4, 32).number(3, 12)), "element type 12");
  check_damaged(last(region("w", 4, 0).message(8, stored(5, 0))), "has no bytes");
  check_damaged(last(region("w", 1, 0)), "has no bytes");
  check_damaged(last(region("w", 1, 32, 0)), "no power of two");
  check_damaged(last(region("w", 1, 32, 48)), "no power of two");
  check_damaged(last(region("w", 4, 32, 48).message(8, stored(5, 0))), "no power of two");
  check_damaged(last(region("w", 4, 32)), "is a constant without bytes");
  check_damaged(last(region("w", 4, 32).message(7, Wire())), "is a constant without bytes");
  check_damaged(last(region("x", 4, 32).message(8, stored(5, 0))), "Two regions are called \"x\"");
  check_damaged(last(region("\x80", 4, 32).message(8, stored(5, 0))), "not UTF-8");
  check_refused(last(region(std::string(16385, 'r'), 4, 32)).file(), ErrorKind::file_limit,
                "16385");
  check_refused(last(region("w", 4, 32, 1U << 22U).message(8, stored(5, 0))).file(),
                ErrorKind::file_limit, "alignment of 4194304");
  // Bytes that are elsewhere.
  for (const std::uint64_t section : {0U, 4U, 6U, kMost}) {
    check_damaged(last(region("w", 4, 32).message(8, stored(section, 0))),
                  "which holds no constants");
  }
  for (const std::uint64_t offset : {std::uint64_t{1}, std::uint64_t{32}, kAll, kAll - 31}) {
    check_damaged(last(region("w", 4, 32).message(8, stored(5, offset))),
                  "has its region 4 start with 32 bytes at " + std::to_string(offset));
  }
  for (const std::uint64_t bytes : {std::uint64_t{33}, kAll, std::uint64_t{1} << 63U}) {
    check_damaged(last(region("w", 4, bytes).message(8, stored(5, 0))),
                  "start with " + std::to_string(bytes) + " bytes");
  }
  // Two that share their bytes could make a reader copy more than the file has.
  HandmadeCapture twice;
  twice.regions.push_back(region("w2", 4, 32, 1).message(8, stored(5, 0)));
  twice.region_count = 6;
  check_damaged(twice, "keeps them in order");
}

TEST_CASE("file: nodes that cannot be are refused") {
  std::string block(28, '\0');
  const auto second = [](const Wire& record) {
    HandmadeCapture capture;
    capture.nodes[1] = record;
    return capture;
  };
  const auto launched = [&](const Wire& call, const std::vector<Wire>& arguments) {
    HandmadeCapture capture;
    capture.nodes[2] = node(2, kKernelField, call, {0, 1}, arguments);
    capture.argument_count = 4 + arguments.size();
    return capture;
  };
  const std::vector<Wire> views{argument(1, 0, 1, 3, 0, 64), argument(1, 8, 3, 2, 0, 64),
                                argument(1, 16, 2, 1, 0, 64)};
  const std::vector<Wire> ends{argument(0, 0, 1, 4, 0, 32), argument(0, 0, 2, 3, 0, 32)};
  REQUIRE(load(launched(launch(0, block), views).file()).ok());

  SUBCASE("ids") {
    check_damaged(second(node(0, kCopyField, Wire(), {0}, ends)), "node 0 where node 1 belongs");
    check_damaged(second(node(2, kCopyField, Wire(), {0}, ends)), "node 2 where node 1 belongs");
    check_damaged(second(node(kMost, kCopyField, Wire(), {0}, ends)),
                  "node 4294967295 where node 1 belongs");
    check_damaged(second(node(1, 0, Wire(), {0}, {})), "node 1 without a call");
    check_damaged(second(node(0, 0, Wire(), {0}, {})), "node 0 without a call");
  }
  SUBCASE("dependencies") {
    const auto depends = [&](const std::vector<std::uint64_t>& on) {
      HandmadeCapture capture = second(node(1, kCopyField, Wire(), on, ends));
      capture.dependency_count = 2 + on.size();
      return capture;
    };
    REQUIRE(load(depends({0}).file()).ok());
    check_damaged(depends({}),
                  "node 1 of capture \"step\" states no node as what it follows, and "
                  "its bytes and effects ask for nodes 0.");
    check_damaged(depends({1}), "states nodes 1 as what it follows");        // itself
    check_damaged(depends({2}), "states nodes 2 as what it follows");        // a later one
    check_damaged(depends({0, 0}), "states nodes 0, 0 as what it follows");  // twice
    check_damaged(depends({0, 1}), "states nodes 0, 1 as what it follows");  // one too many
    check_damaged(depends({kMost}), "states nodes 4294967295 as what");      // one that is not
    check_refused(depends(std::vector<std::uint64_t>(1025, 0)).file(), ErrorKind::file_limit,
                  "1025 dependencies in one record of node 1");
    // Following records: only after a full one, of the same node.
    HandmadeCapture more = depends({0});
    more.nodes.insert(more.nodes.begin() + 2, node(1, 0, Wire(), {0}, {}));
    more.dependency_count += 1;
    check_damaged(more, "does not go on from the one before it");
  }
  SUBCASE("kernels and blocks") {
    check_damaged(launched(launch(1, block), views), "names kernel 1 of 1");
    check_damaged(launched(launch(kMost, block), views), "names kernel 4294967295 of 1");
    HandmadeCapture shorter = launched(launch(0, block.substr(1)), views);
    shorter.parameter_bytes = 27;
    check_damaged(shorter, "has a parameter block of 27 bytes");
    check_damaged(launched(launch(0, block + '\0'), views), "more bytes of parameters than the 28");
    // An address in the file would be one of another process.
    block[8] = '\x10';
    check_damaged(launched(launch(0, block), views), "holds an address at offset 8");
    check_damaged(launched(Wire().number(1, 0).bytes(9, std::string(28, '\0')), views),
                  "has an empty grid");
  }
  SUBCASE("relocations") {
    const auto first = [&](const Wire& changed) {
      std::vector<Wire> arguments = views;
      arguments[0] = changed;
      return launched(launch(0, block), arguments);
    };
    check_damaged(first(argument(1, 4, 1, 3, 0, 64)), "has an argument at offset 4");
    check_damaged(first(argument(1, 28, 1, 3, 0, 64)), "has an argument at offset 28");
    check_damaged(first(argument(1, kMost, 1, 3, 0, 64)), "has an argument at offset 4294967295");
    check_damaged(first(argument(1, 8, 1, 3, 0, 64)), "has an argument at offset 8");
    check_damaged(first(argument(1, 0, 2, 3, 0, 64)), "not the one its kernel");
    check_damaged(first(argument(1, 0, 0, 3, 0, 64)), "without a direction");
    check_damaged(first(argument(1, 0, 4, 3, 0, 64)), "direction 4");
    check_damaged(first(argument(1, 0, 257, 3, 0, 64)), "direction 257");
    check_damaged(first(argument(1, 0, 1, 5, 0, 64)), "names region 5 of 5");
    check_damaged(first(argument(1, 0, 1, kMost, 0, 64)), "names region 4294967295 of 5");
    check_damaged(first(argument(1, 0, 1, 3, 0, 68)), "which has 64");
    check_damaged(first(argument(1, 0, 1, 3, 64, 4)), "which has 64");
    check_damaged(first(argument(1, 0, 1, 3, kAll, 0)), "which has 64");
    check_damaged(first(argument(1, 0, 1, 3, 1, kAll)), "past the last byte that can be");
    check_damaged(first(argument(1, 0, 1, 3, kAll, kAll)), "past the last byte that can be");
    check_damaged(first(argument(1, 0, 1, 3, 0, 63)), "whole elements");
    check_refused(first(argument(2, 0, 1, 3, 0, 64)).file(), ErrorKind::file_version,
                  "relocation of kind 2 at node 2");
    check_refused(first(argument(0, 0, 1, 3, 0, 64)).file(), ErrorKind::file_version,
                  "relocation of kind 0 at node 2");
    check_damaged(launched(launch(0, block), {views[0], views[1]}), "too few arguments");
    std::vector<Wire> four = views;
    four.push_back(views[0]);
    check_damaged(launched(launch(0, block), four), "too many arguments");
  }
  SUBCASE("copies") {
    const auto copied = [&](const std::vector<Wire>& arguments) {
      HandmadeCapture capture = second(node(1, kCopyField, Wire(), {0}, arguments));
      capture.argument_count = 5 + arguments.size();
      return capture;
    };
    check_damaged(copied({}), "takes a source and a destination");
    check_damaged(copied({ends[0]}), "takes a source and a destination");
    check_damaged(copied({ends[0], ends[0]}), "takes a source and a destination");
    check_damaged(copied({ends[0], argument(0, 0, 2, 3, 0, 31)}), "copies 32 bytes to 31");
    check_damaged(copied({argument(0, 0, 1, 3, 16, 32), ends[1]}), "onto themselves");
    check_damaged(copied({ends[0], argument(0, 0, 2, 4, 0, 32)}), "which is a constant");
    check_refused(copied({ends[0], argument(1, 0, 2, 3, 0, 32)}).file(), ErrorKind::file_version,
                  "relocation of kind 1 at node 1");
  }
  SUBCASE("fills") {
    const auto filled = [&](const Wire& call) {
      HandmadeCapture capture = second(node(1, kFillField, call, {0}, {ends[1]}));
      capture.argument_count = 6;
      return capture;
    };
    REQUIRE(load(filled(fill(0xFF, 1)).file()).ok());
    check_damaged(filled(fill(0x100, 1)), "does not fit");
    check_damaged(filled(fill(0x10000, 2)), "does not fit");
    check_damaged(filled(fill(0, 0)), "does not fit");
    check_damaged(filled(fill(0, 3)), "does not fit");
    check_damaged(filled(fill(0, 8)), "does not fit");
    check_damaged(filled(fill(0, kMost)), "does not fit");
  }
}

TEST_CASE("file: each limit refuses what has one more, and takes what has as many") {
  HandmadeCapture capture;
  capture.name = "stepping";  // the longest name
  const HandmadeContainer container = capture.container();
  const std::vector<std::byte> file = container.file();
  REQUIRE(load(file).ok());
  const auto check = [&](auto LoadLimits::*limit, std::uint64_t has) {
    LoadLimits limits;
    using Number = std::remove_reference_t<decltype(limits.*limit)>;
    limits.*limit = static_cast<Number>(has);
    const Result<SealedGraph> graph = load(file, limits);
    CHECK_MESSAGE(graph.ok(), graph.error().text());
    limits.*limit = static_cast<Number>(has - 1);
    check_refused(file, ErrorKind::file_limit, "limit of " + std::to_string(has - 1), limits);
  };
  check(&LoadLimits::file_bytes, file.size());
  check(&LoadLimits::sections, 6);
  check(&LoadLimits::captures, 1);
  check(&LoadLimits::name_bytes, 8);
  check(&LoadLimits::kernels, 1);
  check(&LoadLimits::regions, 5);
  check(&LoadLimits::nodes, 3);
  check(&LoadLimits::arguments, 7);
  check(&LoadLimits::dependencies, 3);
  check(&LoadLimits::parameter_bytes, 28);
  check(&LoadLimits::alignment, 64);
}

TEST_CASE("file: a graph whose order takes the square of its nodes to find is refused in time") {
  // Each reads all of x and leaves its mark on every piece of it; then each cuts it once more.
  constexpr std::uint32_t kNodes = 20'000;
  HandmadeCapture capture;
  capture.kernels = {
      Wire().bytes(1, "look").number(2, 1).number(3, 8).message(4, parameter(0, 8, 8, 1, 1, 0))};
  capture.regions = {region("x", 1, std::uint64_t{2} * kNodes)};
  capture.constants.clear();
  capture.nodes.clear();
  for (std::uint32_t at = 0; at < 2 * kNodes; ++at) {
    const bool cuts = at >= kNodes;
    const std::uint64_t begin = cuts ? std::uint64_t{2} * (at - kNodes) : 0;
    const std::uint64_t size = cuts ? 1 : std::uint64_t{2} * kNodes;
    capture.nodes.push_back(node(at, kKernelField, launch(0, std::string(8, '\0')), {},
                                 {argument(1, 0, 1, 0, begin, size)}));
  }
  capture.region_count = 1;
  capture.node_count = capture.argument_count = capture.nodes.size();
  capture.dependency_count = 0;
  capture.parameter_bytes = 8 * capture.nodes.size();
  check_refused(capture.file(), ErrorKind::file_limit, "takes more than 67108864 steps to find");
}

TEST_CASE("file: a bit of a message flipped, with digests made right again, does no harm") {
  const HandmadeContainer honest = HandmadeCapture().container();
  std::size_t loaded = 0;
  std::size_t refused = 0;
  for (std::size_t section = 0; section < 5; ++section) {
    for (std::size_t at = 0; at < honest.sections[section].bytes.size(); ++at) {
      for (unsigned bit = 0; bit < 8; ++bit) {
        HandmadeContainer container = honest;
        char& byte = container.sections[section].bytes[at];
        byte = static_cast<char>(static_cast<unsigned char>(byte) ^ (1U << bit));
        const Result<SealedGraph> graph = load(container.file());
        ++(graph.ok() ? loaded : refused);
        if (graph.ok()) CHECK((!graph->not_portable().empty() || encode(*graph).ok()));
      }
    }
  }
  CHECK(loaded > 0);
  CHECK(refused > loaded);
}

}  // namespace
