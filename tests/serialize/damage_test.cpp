// A file with one bit or byte other than it was is refused, whichever it is.
#include <doctest/doctest.h>
#include <sys/stat.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graphs.hpp"
#include "handmade_file.hpp"
#include "refrain/serialize/capture_file.hpp"
#include "support/temporary_folder.hpp"

namespace {

using namespace refrain;        // NOLINT(google-build-using-namespace): all of it is tested here
using namespace refrain::test;  // NOLINT(google-build-using-namespace)

using Bytes = std::vector<std::byte>;

/// Uses `bytes` where they are, so that changing one of them needs no copy of the rest.
Result<CaptureFile> parse(const Bytes& bytes) {
  return CaptureFile::parse(SharedBytes(nullptr, bytes));
}

bool about_files(ErrorKind kind) {
  return kind == ErrorKind::file_foreign || kind == ErrorKind::file_version ||
         kind == ErrorKind::file_damaged || kind == ErrorKind::file_limit;
}

Bytes encoded(const SealedGraph& graph) {
  Result<Bytes> bytes = encode(graph);
  REQUIRE_MESSAGE(bytes.ok(), bytes.error().text());
  return std::move(*bytes);
}

Bytes of(std::string_view text) {
  const std::span<const std::byte> bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

void check_refused(const Bytes& bytes, ErrorKind kind, const std::string& message) {
  const Result<CaptureFile> file = parse(bytes);
  REQUIRE(!file.ok());
  CHECK(name_of(file.error().kind()) == name_of(kind));
  CHECK(file.error().message() == message);
}

TEST_CASE("file: every flipped bit is refused") {
  // The second has constants, and so a page of zeros before them and some between them.
  GraphBuilder builder;
  builder.region("a", Role::constant, 33, pattern(33, 1));
  builder.region("b", Role::constant, 65, pattern(65, 2));
  for (const SealedGraph& graph : {small_graph(false), builder.seal(), graph_with_code()}) {
    Bytes bytes = encoded(graph);
    REQUIRE(parse(bytes).ok());
    std::size_t accepted = 0;
    std::size_t odd = 0;
    for (std::byte& byte : bytes) {
      for (unsigned bit = 0; bit < 8; ++bit) {
        byte ^= std::byte{1} << bit;
        const Result<CaptureFile> file = parse(bytes);
        if (file.ok()) {
          ++accepted;
        } else if (!about_files(file.error().kind()) ||
                   file.error().message().find("\"memory\"") == std::string::npos) {
          ++odd;
        }
        byte ^= std::byte{1} << bit;
      }
    }
    CHECK(accepted == 0);
    CHECK(odd == 0);
    CHECK(parse(bytes).ok());
  }
}

TEST_CASE("file: every shorter length is refused") {
  const Bytes whole = encoded(small_graph());
  std::size_t accepted = 0;
  for (std::size_t length = 0; length < whole.size(); ++length) {
    // A copy of exactly that length, so that a read past its end is seen.
    const Bytes cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length));
    const Result<CaptureFile> file = parse(cut);
    if (file.ok() || !about_files(file.error().kind())) ++accepted;
  }
  CHECK(accepted == 0);
  const Bytes cut(whole.begin(), whole.begin() + 120);
  check_refused(cut, ErrorKind::file_damaged,
                "The file \"memory\" ends at byte 120, but its header says that it has " +
                    std::to_string(whole.size()) + " bytes.");
}

TEST_CASE("file: bytes after the end are refused") {
  Bytes bytes = encoded(small_graph());
  const std::string size = std::to_string(bytes.size());
  bytes.push_back(std::byte{0});
  check_refused(bytes, ErrorKind::file_damaged,
                "The file \"memory\" has " + std::to_string(bytes.size()) +
                    " bytes, but its header says that it has " + size + ".");
  const Bytes twice = encoded(small_graph());
  bytes.pop_back();
  bytes.insert(bytes.end(), twice.begin(), twice.end());
  CHECK(!parse(bytes).ok());

  // Also when the header knows of them.
  HandmadeContainer container = HandmadeCapture().container();
  Bytes longer = container.file();
  longer.push_back(std::byte{0});
  longer[16] = static_cast<std::byte>(longer.size() & 0xFFU);
  longer[17] = static_cast<std::byte>(longer.size() >> 8U);
  seal_header(longer);
  check_refused(longer, ErrorKind::file_damaged,
                "The file \"memory\" has " + std::to_string(longer.size()) +
                    " bytes, and its last section ends at byte " +
                    std::to_string(longer.size() - 1) + ".");
}

TEST_CASE("file: what is no capture file is refused as such") {
  check_refused({}, ErrorKind::file_foreign,
                "The file \"memory\" is empty, so it is no capture file.");
  const std::string starts = "The file \"memory\" is no capture file: it starts otherwise.";
  check_refused(of("x"), ErrorKind::file_foreign, starts);
  check_refused(of("Hello, this is text and goes on for a while.\n"), ErrorKind::file_foreign,
                starts);
  check_refused(of(std::string(10'000, '\0')), ErrorKind::file_foreign, starts);
  check_refused(of("\x89PNG\r\n\x1A\n and what else a picture has, which is no graph at all ..."),
                ErrorKind::file_foreign, starts);
}

TEST_CASE("file: one that was carried as text is told so") {
  Bytes bytes = encoded(small_graph());
  bytes.erase(bytes.begin() + 4);  // CR LF became LF
  check_refused(bytes, ErrorKind::file_damaged,
                "The file \"memory\" has lost its line ends, as after a transfer as text.");
}

TEST_CASE("file: another major version is refused, a newer minor one is read") {
  HandmadeContainer container = HandmadeCapture().container();
  for (const std::uint16_t major : std::array<std::uint16_t, 3>{0, 2, 65'535}) {
    container.major = major;
    container.minor = 7;
    check_refused(container.file(), ErrorKind::file_version,
                  "The file \"memory\" has format " + std::to_string(major) +
                      ".7, and this version of refrain reads 1.x.");
  }
  container.major = 1;
  container.minor = 65'535;
  const Bytes bytes = container.file();
  const Result<CaptureFile> file = parse(bytes);
  REQUIRE_MESSAGE(file.ok(), file.error().text());
  CHECK(file->graph().ok());
}

TEST_CASE("file: a longer header is skipped as far as it is not known") {
  HandmadeContainer container = HandmadeCapture().container();
  container.header_bytes = 128;
  const Bytes bytes = container.file();
  REQUIRE(parse(bytes).ok());
  CHECK(parse(bytes)->graph().ok());
}

TEST_CASE("file: one that lies where nobody can read it, or is none, is refused by name") {
  const TemporaryFolder folder;
  const auto refused = [](const std::filesystem::path& path, const std::string& why) {
    for (const FileAccess access : {FileAccess::mapped, FileAccess::copied}) {
      LoadOptions options;
      options.access = access;
      const Result<CaptureFile> file = CaptureFile::open(path, options);
      REQUIRE(!file.ok());
      CHECK(file.error().kind() == ErrorKind::file_io);
      CHECK(file.error().message() == "The file \"" + path.string() + "\" " + why);
    }
  };
  refused(folder.file("missing"), "cannot be read: No such file or directory.");
  refused(folder.path(), "is a folder.");
  refused("/dev/null", "is no regular file.");
  const std::filesystem::path pipe = folder.file("pipe");
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  refused(pipe, "is no regular file.");  // and nobody waits for a writer

  write_file(folder.file("empty"), {});
  const Result<CaptureFile> empty = CaptureFile::open(folder.file("empty"));
  REQUIRE(!empty.ok());
  CHECK(empty.error().kind() == ErrorKind::file_foreign);
  CHECK(empty.error().message().find(folder.file("empty").string()) != std::string::npos);
}

}  // namespace
