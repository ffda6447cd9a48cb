// Code images in a file: each once, by its digest, and never believed before it has been checked.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "graphs.hpp"
#include "handmade_file.hpp"
#include "refrain/serialize/capture_file.hpp"

namespace {

using namespace refrain;        // NOLINT(google-build-using-namespace): all of it is tested here
using namespace refrain::test;  // NOLINT(google-build-using-namespace)

using Bytes = std::vector<std::byte>;

/// The kinds of the sections in the table.
std::vector<int> sections(const Bytes& file) {
  std::vector<int> kinds;
  const auto count = static_cast<std::size_t>(file[24]);
  for (std::size_t at = 0; at < count; ++at) kinds.push_back(static_cast<int>(file[64 + 96 * at]));
  return kinds;
}

/// A file with one kernel that comes from code 1 as "touch".
HandmadeCapture with_code() {
  HandmadeCapture capture;
  capture.code = {"an image"};
  capture.kernels.at(0).number(7, 1).bytes(8, "touch");
  return capture;
}

void check_refused(const HandmadeContainer& container, ErrorKind kind, const std::string& says) {
  const Result<CaptureFile> file = CaptureFile::parse(SharedBytes::copy_of(container.file()));
  const Result<SealedGraph> graph = file.ok() ? file->graph() : file.error();
  REQUIRE_FALSE(graph.ok());
  CHECK_MESSAGE(graph.error().kind() == kind, graph.error().text());
  CHECK_MESSAGE(graph.error().message().find(says) != std::string::npos, graph.error().text());
}

TEST_CASE("file: kernels come back with the images that they came from, each image once") {
  const SealedGraph graph = graph_with_code();
  const Bytes bytes = encode(graph).value();
  CHECK(sections(bytes) == std::vector<int>{1, 5, 2, 3, 4, 7, 7});
  CHECK(bytes[10] == std::byte{1});  // of format 1.1
  const SealedGraph loaded =
      CaptureFile::parse(SharedBytes::copy_of(bytes)).value().graph().value();
  CHECK(difference(graph, loaded) == "");
  REQUIRE(loaded.kernels().size() == 4);
  for (std::size_t at = 0; at < 4; ++at) {
    CAPTURE(at);
    const KernelSource& before = graph.kernels()[at].source;
    const KernelSource& after = loaded.kernels()[at].source;
    CHECK(after == before);
    REQUIRE((after.code == nullptr) == (at == 3));
    if (at == 3) continue;
    CHECK(after.code->kind == before.code->kind);
    CHECK(std::equal(after.code->bytes.span().begin(), after.code->bytes.span().end(),
                     before.code->bytes.span().begin(), before.code->bytes.span().end()));
  }
  CHECK(loaded.kernels()[0].source.code == loaded.kernels()[1].source.code);  // shared
  CHECK(encode(loaded).value() == bytes);
}

TEST_CASE("file: a graph without code is written as it always was") {
  const Bytes bytes = encode(small_graph()).value();
  CHECK(sections(bytes) == std::vector<int>{1, 5, 2, 3, 4, 6});
  CHECK(bytes[10] == std::byte{0});
}

TEST_CASE("file: an image made by hand is read, and one that no kernel names is passed over") {
  HandmadeCapture capture = with_code();
  capture.code.emplace_back("another");
  const SealedGraph graph =
      CaptureFile::parse(SharedBytes::copy_of(capture.file())).value().graph().value();
  REQUIRE(graph.kernels()[0].source.code != nullptr);
  CHECK(graph.kernels()[0].source.symbol == "touch");
  CHECK(graph.kernels()[0].source.code->kind == CodeKind::cubin);
  CHECK(graph.kernels()[0].source.code->bytes.size() == 8);
}

TEST_CASE("file: code that is not what the manifest says, or of no known kind, is refused") {
  HandmadeCapture capture = with_code();
  capture.manifest_code = {code_object("an imago", 1, 6)};
  check_refused(capture.container(), ErrorKind::file_damaged,
                "section 6 (CODE) is not the code that the manifest names");
  for (const std::uint32_t kind : {0U, 4U, 255U}) {
    capture.manifest_code = {code_object("an image", kind, 6)};
    check_refused(capture.container(), ErrorKind::file_damaged, "holds code of kind");
  }
  for (const std::uint32_t section : {0U, 4U, 5U, 7U, 0xFFFFFFFFU}) {
    capture.manifest_code = {code_object("an image", 1, section)};
    check_refused(capture.container(), ErrorKind::file_damaged, "the manifest looks for CODE");
  }
  // A digest that finds damage and not malice says too little of code.
  HandmadeContainer container = with_code().container();
  container.sections.back().digest_kind = 1;
  check_refused(container, ErrorKind::file_damaged, "is not the code that the manifest names");
  container.sections.back().digest_kind = 2;
  container.sections.back().bytes = "an imago";
  check_refused(container, ErrorKind::file_damaged, "is not the code that the manifest names");
}

TEST_CASE("file: a kernel of an image that is not there, or without a sound symbol, is refused") {
  const auto kernel = [](std::uint64_t code, std::string_view symbol) {
    HandmadeCapture capture;
    capture.code = {"an image"};
    capture.kernels.at(0).number(7, code).bytes(8, symbol);
    return capture.container();
  };
  check_refused(kernel(2, "touch"), ErrorKind::file_damaged, "comes from code 2 of 1");
  check_refused(kernel(0xFFFFFFFFU, "touch"), ErrorKind::file_damaged, "of 1 as \"touch\"");
  check_refused(kernel(1, ""), ErrorKind::file_damaged, "comes from code 1 of 1 as \"\"");
  check_refused(kernel(0, "touch"), ErrorKind::file_damaged, "comes from code 0 of 1");
  check_refused(kernel(1, "\xFF"), ErrorKind::file_damaged, "the symbol of kernel 0");
  check_refused(kernel(1, std::string(20000, 'x')), ErrorKind::file_limit,
                "the symbol of kernel 0");
}

TEST_CASE("capture: a kernel whose code and symbol do not belong together makes no graph") {
  const auto makes = [](KernelSource source) {
    GraphBuilder builder;
    const std::uint32_t y = builder.region("y", Role::output, 16);
    KernelSignature signature;
    signature.name = "touch";
    signature.block_bytes = 8;
    signature.parameters = {{0, 8, 8, ParameterKind::view, Direction::out, ElementType::bytes}};
    signature.source = std::move(source);
    builder.launch(builder.kernel(signature), {{y, {0, 16}}});
    return SealedGraph::make(builder.parts).ok();
  };
  const auto code = [](std::uint8_t kind, std::size_t bytes) {
    return PortableCode::make(static_cast<CodeKind>(kind), pattern(bytes));
  };
  CHECK(makes({code(3, 4), "touch"}));
  CHECK_FALSE(makes({code(3, 4), ""}));
  CHECK_FALSE(makes({nullptr, "touch"}));
  CHECK_FALSE(makes({code(0, 4), "touch"}));
  CHECK_FALSE(makes({code(4, 4), "touch"}));
  CHECK_FALSE(makes({code(3, 0), "touch"}));
}

}  // namespace
