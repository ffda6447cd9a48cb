#include "own_process.hpp"

#include <doctest/doctest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "report.hpp"

namespace conformance {
namespace {

constexpr char kMark[] = "REFRAIN_CONFORMANCE_OWN_PROCESS";
constexpr char kFile[] = "REFRAIN_OBSERVATIONS=";

/// This process's environment, with the mark and without the observation file, which is the
/// parent's to write.
std::vector<char*> child_environment(std::string& mark) {
  std::vector<char*> variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (std::strncmp(*entry, kFile, sizeof kFile - 1) != 0) variables.push_back(*entry);
  }
  variables.push_back(mark.data());
  variables.push_back(nullptr);
  return variables;
}

/// What the child is doing, as the parent sees it.
struct Child {
  pid_t id = 0;
  std::FILE* output = nullptr;
};

// The driver forbids to go on with CUDA after a fork; a spawned program starts anew.
Child spawn(const std::string& name) {
  int ends[2] = {-1, -1};
  REQUIRE(pipe(ends) == 0);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addclose(&actions, ends[0]);
  posix_spawn_file_actions_addclose(&actions, ends[1]);

  std::string program = "/proc/self/exe";
  std::string filter = "--test-case=" + name;
  char* arguments[] = {program.data(), filter.data(), nullptr};
  std::string mark = std::string(kMark) + "=1";
  Child child;
  const int failed = posix_spawn(&child.id, program.c_str(), &actions, nullptr, arguments,
                                 child_environment(mark).data());
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  REQUIRE(failed == 0);
  child.output = fdopen(ends[0], "r");
  REQUIRE(child.output != nullptr);
  return child;
}

/// Takes over what a line of the child hands back; passes every other line on.
void take(std::string_view line) {
  if (line.starts_with(kObserved)) {
    line.remove_prefix(std::strlen(kObserved));
    const std::size_t middle = line.find(" = ");
    if (middle != std::string_view::npos) {
      observe(line.substr(0, middle), line.substr(middle + 3));
      return;
    }
  }
  if (line.starts_with(kCaseSkipped)) {
    note_skip(line.substr(std::strlen(kCaseSkipped)));
    return;
  }
  std::printf("  | %.*s\n", static_cast<int>(line.size()), line.data());
}

}  // namespace

bool in_own_process() { return std::getenv(kMark) != nullptr; }

void run_in_own_process() {
  std::fflush(stdout);
  const Child child = spawn(running_case());
  char* line = nullptr;
  std::size_t capacity = 0;
  bool ran = false;
  for (ssize_t size = 0; (size = getline(&line, &capacity, child.output)) > 0;) {
    std::string_view text(line, static_cast<std::size_t>(size));
    if (text.ends_with('\n')) text.remove_suffix(1);
    // A filter that matches no case would pass too.
    const std::size_t count = text.find("test cases:");
    if (count != std::string_view::npos) ran = std::atoi(text.data() + count + 11) == 1;
    take(text);
  }
  std::free(line);
  std::fclose(child.output);
  int status = 0;
  REQUIRE(waitpid(child.id, &status, 0) == child.id);
  CHECK_MESSAGE(WIFEXITED(status), "the case's own process is killed by signal ",
                WIFSIGNALED(status) ? WTERMSIG(status) : 0);
  if (WIFEXITED(status)) CHECK(WEXITSTATUS(status) == 0);
  CHECK_MESSAGE(ran, "the case's own process runs the case");
}

}  // namespace conformance
