// Runs a sample program as a person would: in a process of its own, with a command line, an exit
// status, and two streams of text.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace refrain::test {

/// What a program left behind.
struct Ended {
  int status = -1;  ///< What it returned; -1 when a signal ended it.
  std::string out;
  std::string err;
};

/// Runs `program` to its end. What it prints passes through files in `folder`, which are gone
/// afterwards.
Ended run(const std::string& program, std::vector<std::string> arguments,
          const std::filesystem::path& folder);

}  // namespace refrain::test
