// Random programs on the library and on the model, which must agree on everything. The seed is
// fixed, so that the test is the same everywhere; REFRAIN_SEED gives another one. With
// REFRAIN_SOAK_SECONDS it goes on with fresh seeds for that long: scripts/soak.
#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <iostream>

#include "model/session.hpp"

namespace refrain::model {
namespace {

constexpr std::size_t kSize = 120;  // operations of a program, about

std::uint64_t number_from(const char* name, std::uint64_t otherwise) {
  const char* const given = std::getenv(name);  // NOLINT: one thread
  return given != nullptr ? std::strtoull(given, nullptr, 10) : otherwise;
}

/// Runs the program of `seed`; says what is wrong with it, and how to get there.
bool agree(std::uint64_t seed, std::uint64_t& done) {
  const Program program = generate(seed, kSize);
  const Verdict verdict = run(program);
  done += verdict.done;
  if (verdict.right()) return true;
  std::cout << "seed " << seed << ": " << verdict.wrong << std::endl;
  const Program small = shrink(program);
  const Verdict again = run(small);
  std::cout << (again.right() ? "(it is gone now)" : again.wrong) << " at operation "
            << again.at + 1 << " of\n"
            << text(small) << std::flush;
  return false;
}

}  // namespace

TEST_CASE("model: random programs end the same way on the library and on the model") {
  const std::uint64_t seed = number_from("REFRAIN_SEED", 20260501);
  std::uint64_t done = 0;
  if (const char* const one = std::getenv("REFRAIN_ONE"); one != nullptr) {  // NOLINT: one thread
    CHECK(agree(seed, done));
    return;
  }
  std::uint64_t programs = 0;
  for (; done < 100000; ++programs) {
    INFO("REFRAIN_SEED=", seed);
    REQUIRE(agree(seed + programs, done));
  }
  MESSAGE(programs, " programs from seed ", seed, ", ", done, " operations");
}

}  // namespace refrain::model
