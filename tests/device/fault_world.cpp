#include "device/fault_world.hpp"

namespace refrain::test {
namespace {

void with_fault(void (*scenario)(World&), StreamKind kind, Fault fault, std::int64_t nth) {
  CAPTURE(static_cast<int>(kind));
  CAPTURE(static_cast<int>(fault));
  CAPTURE(nth);
  World world(kind);
  world.plan(fault, nth);
  world.run(scenario);
  const std::string failed_call = world.backend->failed();
  CAPTURE(failed_call);
  world.backend->fail(0);  // looking makes calls of its own
  world.look();
  CHECK_MESSAGE(world.hurt(), "a fault that nobody was told of");
  world.forget_fault();
  world.run(scenario);
  world.look();
  CHECK_FALSE(world.hurt());
  world.empty();
}

}  // namespace

void sweep(void (*scenario)(World&)) {
  for (const StreamKind kind : {StreamKind::inline_, StreamKind::worker}) {
    std::int64_t calls = 0;
    std::int64_t user_calls = 0;
    {
      World world(kind);
      world.run(scenario);
      calls = world.calls();
      world.look();
      user_calls = world.user_calls();
      REQUIRE_FALSE(world.hurt());
      world.empty();
    }
    REQUIRE(calls > 0);
    REQUIRE(user_calls > 0);
    for (std::int64_t nth = 1; nth <= calls; ++nth) {
      with_fault(scenario, kind, Fault::call_refused, nth);
      with_fault(scenario, kind, Fault::call_throws, nth);
    }
    for (std::int64_t nth = 1; nth <= user_calls; ++nth) {
      with_fault(scenario, kind, Fault::user_fails, nth);
      with_fault(scenario, kind, Fault::user_throws, nth);
    }
  }
}

}  // namespace refrain::test
