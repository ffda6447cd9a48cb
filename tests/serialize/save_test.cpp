// Saving is all or nothing: whatever stops it, the path has the old file or the new one.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstddef>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "graphs.hpp"
#include "refrain/serialize/capture_file.hpp"
#include "support/temporary_folder.hpp"

namespace {

using namespace refrain;        // NOLINT(google-build-using-namespace): all of it is tested here
using namespace refrain::test;  // NOLINT(google-build-using-namespace)

/// A graph with so many constant bytes.
SealedGraph large_graph(std::size_t bytes, unsigned seed) {
  GraphBuilder builder;
  builder.parts.name = "large " + std::to_string(seed);
  builder.region("w", Role::constant, bytes, pattern(bytes, seed));
  return builder.seal();
}

/// Runs `body` in a process of its own and answers how that ended. `body` returns its exit status.
int in_child(const std::function<int()>& body) {
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) _exit(body());
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  return status;
}

bool is_io_error(const Result<void>& saved) {
  return !saved.ok() && saved.error().kind() == ErrorKind::file_io;
}

TEST_CASE("file: saving replaces an older file, and leaves nothing else") {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.file("step.refrain");
  REQUIRE(save(large_graph(10'000, 1), path).ok());
  const std::vector<std::byte> first = read_file(path);
  REQUIRE(save(large_graph(20'000, 2), path).ok());
  CHECK(read_file(path) != first);
  CHECK(folder.size() == 1);
  const Result<CaptureFile> file = CaptureFile::open(path);
  REQUIRE(file.ok());
  CHECK(file->captures()[0] == "large 2");
}

TEST_CASE("file: a file that is open stays as it was when another is saved over it") {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.file("step.refrain");
  const SealedGraph old_graph = large_graph(100'000, 1);
  REQUIRE(save(old_graph, path).ok());
  const Result<CaptureFile> file = CaptureFile::open(path);
  REQUIRE(file.ok());
  REQUIRE(save(large_graph(5'000, 2), path).ok());
  const Result<SealedGraph> graph = file->graph();
  REQUIRE(graph.ok());
  CHECK(difference(old_graph, *graph) == "");
}

TEST_CASE("file: a name as long as names can be, without a folder or through a link, is saved") {
  const TemporaryFolder folder;
  const SealedGraph graph = small_graph();
  CHECK(save(graph, folder.file(std::string(255, 'n'))).ok());
  const Result<void> longer = save(graph, folder.file(std::string(256, 'n')));
  CHECK(is_io_error(longer));
  CHECK(folder.size() == 1);
  std::filesystem::create_symlink(folder.file("nowhere"), folder.file("link"));
  CHECK(save(graph, folder.file("link")).ok());
  CHECK(CaptureFile::open(folder.file("link")).ok());
  const int status = in_child([&] {
    if (chdir(folder.path().c_str()) != 0) return 1;
    return save(graph, "here").ok() && CaptureFile::open("here").ok() ? 0 : 2;
  });
  CHECK(status == 0);
}

TEST_CASE("file: its permissions are those that the process gives to new files") {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.file("f");
  const int status = in_child([&] {
    umask(027);
    return save(small_graph(), path).ok() ? 0 : 1;
  });
  CHECK(status == 0);
  struct stat there {};
  REQUIRE(stat(path.c_str(), &there) == 0);
  CHECK((there.st_mode & 0777U) == 0640U);
}

TEST_CASE("file: where nothing can be saved, that is an error and nothing has changed") {
  const TemporaryFolder folder;
  const SealedGraph graph = small_graph();
  const Result<void> nowhere = save(graph, folder.file("no such folder") / "f");
  REQUIRE(is_io_error(nowhere));
  CHECK(nowhere.error().message() == "The file \"" +
                                         (folder.file("no such folder") / "f").string() +
                                         "\" cannot be written: No such file or directory.");
  CHECK(is_io_error(save(graph, folder.path())));  // a folder
  CHECK(is_io_error(save(graph, "")));
  CHECK(folder.size() == 0);

  // A rename over a device would put a file in its place.
  const std::filesystem::path pipe = folder.file("pipe");
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  CHECK(is_io_error(save(graph, pipe)));
  CHECK(std::filesystem::is_fifo(pipe));
  CHECK(folder.size() == 1);
}

TEST_CASE("file: a folder that one may not write leaves the old file") {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.file("f");
  REQUIRE(save(large_graph(10'000, 1), path).ok());
  const std::vector<std::byte> before = read_file(path);
  REQUIRE(chmod(folder.path().c_str(), 0555) == 0);
  const int status = in_child([&] {
    constexpr uid_t kNobody = 65534;
    if (geteuid() == 0 && setuid(kNobody) != 0) return 2;  // root may write everywhere
    const Result<void> saved = save(large_graph(10'000, 2), path);
    return is_io_error(saved) &&
                   saved.error().message().find("Permission denied") != std::string::npos
               ? 0
               : 1;
  });
  REQUIRE(chmod(folder.path().c_str(), 0755) == 0);
  CHECK(status == 0);
  CHECK(read_file(path) == before);
  CHECK(folder.size() == 1);
}

TEST_CASE("file: a limit on file size, at every size, leaves the old file and nothing else") {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.file("f");
  REQUIRE(save(large_graph(1'000, 1), path).ok());
  const std::vector<std::byte> before = read_file(path);
  const SealedGraph graph = large_graph(200'000, 2);
  const Result<std::vector<std::byte>> whole = encode(graph);
  REQUIRE(whole.ok());
  for (const std::size_t limit :
       {std::size_t{0}, std::size_t{1}, std::size_t{4'095}, std::size_t{4'096}, std::size_t{65'536},
        std::size_t{100'000}, whole->size() - 1}) {
    const int status = in_child([&] {
      signal(SIGXFSZ, SIG_IGN);  // the write answers EFBIG instead
      const rlimit most{limit, limit};
      if (setrlimit(RLIMIT_FSIZE, &most) != 0) return 2;
      return is_io_error(save(graph, path)) ? 0 : 1;
    });
    CHECK(status == 0);
    CHECK(read_file(path) == before);
    CHECK(folder.size() == 1);
  }
  const int status = in_child([&] {
    const rlimit most{whole->size(), whole->size()};
    if (setrlimit(RLIMIT_FSIZE, &most) != 0) return 2;
    return save(graph, path).ok() ? 0 : 1;
  });
  CHECK(status == 0);
  CHECK(read_file(path) == *whole);
  CHECK(folder.size() == 1);
}

TEST_CASE("file: a device stays a device") {
  const Result<void> saved = save(small_graph(), "/dev/full");
  CHECK(is_io_error(saved));
  CHECK(std::filesystem::is_character_file("/dev/full"));
}

TEST_CASE("file: a process that is killed while it saves leaves the old file or the new one") {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.file("f");
  const SealedGraph one = large_graph(300'000, 1);
  const SealedGraph two = large_graph(400'000, 2);
  REQUIRE(save(one, path).ok());
  for (int round = 0; round < 25; ++round) {
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      for (;;) {
        if (!save(two, path).ok() || !save(one, path).ok()) _exit(1);
      }
    }
    std::this_thread::sleep_for(std::chrono::microseconds(500 + 731 * round));
    REQUIRE(kill(child, SIGKILL) == 0);
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    REQUIRE(WIFSIGNALED(status));

    const Result<CaptureFile> file = CaptureFile::open(path);
    REQUIRE_MESSAGE(file.ok(), file.error().text());
    const Result<SealedGraph> graph = file->graph();
    REQUIRE_MESSAGE(graph.ok(), graph.error().text());
    CHECK((difference(one, *graph).empty() || difference(two, *graph).empty()));
  }
}

}  // namespace
