#include "program.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <fstream>
#include <iterator>

namespace refrain::test {
namespace {

std::string taken_from(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  REQUIRE(file.good());
  std::string text{std::istreambuf_iterator<char>(file), {}};
  std::filesystem::remove(path);
  return text;
}

}  // namespace

Ended run(const std::string& program, std::vector<std::string> arguments,
          const std::filesystem::path& folder) {
  const std::filesystem::path out = folder / ".out";
  const std::filesystem::path err = folder / ".err";
  std::string name = program;
  std::vector<char*> words = {name.data()};
  for (std::string& argument : arguments) words.push_back(argument.data());
  words.push_back(nullptr);

  posix_spawn_file_actions_t actions{};
  REQUIRE(::posix_spawn_file_actions_init(&actions) == 0);
  constexpr int kFlags = O_WRONLY | O_CREAT | O_TRUNC;
  REQUIRE(::posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, out.c_str(), kFlags, 0600) ==
          0);
  REQUIRE(::posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, err.c_str(), kFlags, 0600) ==
          0);
  pid_t child = 0;
  const int spawned =
      ::posix_spawn(&child, program.c_str(), &actions, nullptr, words.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  REQUIRE(spawned == 0);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) REQUIRE(errno == EINTR);

  Ended ended;
  if (WIFEXITED(status)) ended.status = WEXITSTATUS(status);
  ended.out = taken_from(out);
  ended.err = taken_from(err);
  return ended;
}

}  // namespace refrain::test
