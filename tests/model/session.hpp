// Runs a program on the library and on the model, operation by operation, and compares whatever
// can be asked: every outcome, every byte, what each failure is called, what the listener heard.
//
// Workers run on their own threads, so nothing may depend on when. The model says how far each of
// them comes; a worker that is held waits at a gate, a kernel that fails waits for its turn, and
// the session waits until the library's workers are where the model's are. A call that waits for
// more than the rules let it wait for never comes back; a watchdog notices.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "model/program.hpp"

namespace refrain::model {

/// What went wrong first, or nothing.
struct Verdict {
  std::string wrong;
  std::size_t at = 0;    ///< The operation.
  std::size_t done = 0;  ///< Operations that did something.
  /// How often what happened, like "replay skipped".
  std::map<std::string, std::uint64_t> tally{};
  [[nodiscard]] bool right() const { return wrong.empty(); }
};

Verdict run(const Program& program);

/// The same in a process of its own, so that one that crashes is wrong like any other. Tells no
/// tally.
Verdict run_apart(const Program& program);

/// The program made smaller, as long as something is still wrong with it.
Program shrink(Program program);

}  // namespace refrain::model
