// Random programs on the library and on the model, which must agree on everything. The seed is
// fixed, so that the test is the same everywhere; REFRAIN_SEED gives another one. The case that is
// skipped goes on for REFRAIN_SOAK_SECONDS with seeds that nobody has tried: scripts/soak.
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

constexpr std::size_t kSize = 120;  // operations of a program, about

std::uint64_t number_from(const char* name, std::uint64_t otherwise) {
  const char* const given = std::getenv(name);  // NOLINT: one thread
  return given != nullptr ? std::strtoull(given, nullptr, 10) : otherwise;
}

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
  const std::uint64_t seed = number_from("REFRAIN_SEED", 20260501);
  Runs runs;
  while (runs.done < 100000) REQUIRE(runs.agree(seed + runs.programs, false));
  MESSAGE(runs.programs, " programs from seed ", seed, ", ", runs.done, " operations");
  for (const auto& [what, count] : runs.tally) std::cout << what << " " << count << "\n";
}

TEST_CASE("soak: random programs for as long as one likes" * doctest::skip()) {
  const std::uint64_t seed = number_from("REFRAIN_SEED", std::random_device{}());
  const std::chrono::seconds time(number_from("REFRAIN_SOAK_SECONDS", 10));
  const auto until = std::chrono::steady_clock::now() + time;
  Runs runs;
  while (std::chrono::steady_clock::now() < until) runs.agree(seed + runs.programs, true);
  std::cout << runs.programs << " programs from REFRAIN_SEED=" << seed << ", " << runs.done
            << " operations, " << runs.wrong << " programs that ended wrong" << std::endl;
  CHECK(runs.wrong == 0);
  CHECK(runs.done != 0);
}

}  // namespace refrain::model
