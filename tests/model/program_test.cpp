// Random programs on the library and on the model, which must agree on everything. The seed is
// fixed, so that the test is the same everywhere; REFRAIN_SEED gives another one. With
// REFRAIN_SOAK_SECONDS it goes on for so long, with seeds that nobody has tried: scripts/soak.
#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <map>
#include <random>
#include <string>

#include "model/session.hpp"

namespace refrain::model {
namespace {

constexpr std::size_t kSize = 120;              // operations of a program, about
constexpr std::uint64_t kOperations = 100'000;  // of an ordinary run

std::uint64_t number_from(const char* name, std::uint64_t otherwise) {
  const char* const given = std::getenv(name);  // NOLINT: one thread
  return given != nullptr ? std::strtoull(given, nullptr, 10) : otherwise;
}

constexpr const char* kMustHappen[] = {
    "a call that waits",
    "a late failure",
    "bind: invalid_argument",
    "bind: unbound",
    "bind: well",
    "copy in a window: skipped",
    "copy: unordered",
    "first_use in a window: needs_warm_up",
    "host_wait: refused_in_window",
    "instance: busy",
    "instance: well",
    "launch in a window: skipped",
    "launch in a window: stale_buffer",
    "launch in a window: well",
    "launch: constant_written",
    "launch: invalid_argument",
    "launch: kernel_failed",
    "launch: skipped",
    "launch: stale_buffer",
    "launch: threw",
    "launch: unordered",
    "launch_extent in a window: refused_in_window",
    "launch_extent: skipped",
    "launch_extent: well",
    "load in a window: needs_warm_up",
    "nest in a window: kernel_failed",
    "nest in a window: skipped",
    "nest in a window: well",
    "nest: kernel_failed",
    "nest: skipped",
    "nest: threw",
    "nest: torn_down",
    "plan: not_portable",
    "plan: well",
    "read in a window: refused_in_window",
    "read: failed_input",
    "read: unwritten",
    "record in a window: wrong_state",
    "replay in a window: refused_in_window",
    "replay: kernel_failed",
    "replay: skipped",
    "replay: threw",
    "replay: unbound",
    "replay: unordered",
    "replay: well",
    "reset in a window: refused_in_window",
    "reset: well",
    "seal: constant_written",
    "seal: invalid_argument",
    "seal: recorded_nothing",
    "seal: well",
    "seal: window_doomed",
    "seal: wrong_state",
    "sync: exception",
    "sync: kernel_failed",
    "wait_event in a window: refused_in_window",
    "wait_event in a window: well",
    "wait_event: wrong_state",
    "warm_up: kernel_failed",
    "warm_up: needs_warm_up",
    "warm_up: well",
};

/// Runs programs, and says of each that ends wrong how to get there.
struct Runs {
  std::uint64_t programs = 0;
  std::uint64_t wrong = 0;
  std::uint64_t done = 0;
  std::map<std::string, std::uint64_t> tally;

  bool agree(std::uint64_t seed, bool apart) {
    const Program program = generate(seed, kSize);
    const Verdict verdict = apart ? run_apart(program) : run(program);
    ++programs;
    done += verdict.done;
    for (const auto& [what, count] : verdict.tally) tally[what] += count;
    if (verdict.right()) return true;
    ++wrong;
    std::cout << "REFRAIN_SEED=" << seed << ": " << verdict.wrong << std::endl;
    const Program small = shrink(program);
    const Verdict again = run_apart(small);
    std::cout << (again.right() ? "(gone when run again)" : again.wrong) << " at operation "
              << again.at + 1 << " of\n"
              << text(small) << std::endl;
    return false;
  }
};

}  // namespace

TEST_CASE("model: random programs end the same way on the library and on the model") {
  // In a soak every program runs in a process of its own, and one that ends wrong does not stop it.
  const std::chrono::seconds soak(number_from("REFRAIN_SOAK_SECONDS", 0));
  const bool soaks = soak.count() != 0;
  const auto until = std::chrono::steady_clock::now() + soak;
  const std::uint64_t seed =
      number_from("REFRAIN_SEED", soaks ? std::random_device{}() : std::uint64_t{20260501});
  Runs runs;
  const auto enough = [&] {
    if (soaks) return std::chrono::steady_clock::now() >= until;
    return runs.done >= kOperations || runs.wrong != 0;
  };
  do {
    runs.agree(seed + runs.programs, soaks);
  } while (!enough());
  std::cout << runs.programs << " programs from REFRAIN_SEED=" << seed << ", " << runs.done
            << " operations, " << runs.wrong << " programs that ended wrong" << std::endl;
  CHECK(runs.done != 0);
  REQUIRE(runs.wrong == 0);
  if (soaks) return;  // what happened is known to the processes that have ended
  // A rule that no program comes near is not tested.
  for (const char* const what : kMustHappen) {
    CHECK_MESSAGE(runs.tally[what] != 0, "this never happened: ", std::string(what));
  }
}

}  // namespace refrain::model
