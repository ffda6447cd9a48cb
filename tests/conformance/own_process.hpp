// Cases that lose their context, and with it the process: each runs in a process of its own, so
// that the whole suite can still run in one. The child is this program again with that one case;
// what it observes and whether it was skipped comes back in the lines that it prints.
#pragma once

namespace conformance {

/// How the lines that a child hands back begin.
inline constexpr char kObserved[] = "observed: ";
inline constexpr char kCaseSkipped[] = "case skipped: ";

/// Whether this process is such a child.
bool in_own_process();

/// Runs the running case in a child, and fails it unless the child passes.
void run_in_own_process();

}  // namespace conformance

/// The first line of a case that may leave the process without a usable driver.
#define OWN_PROCESS()                   \
  if (!conformance::in_own_process()) { \
    conformance::run_in_own_process();  \
    return;                             \
  }
