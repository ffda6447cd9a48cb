// The n-th allocation of each call on plans and instances fails, for every n. What the call was
// made on works afterwards, and nothing reads as good that is not.
#include <doctest/doctest.h>

#include <functional>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "counter_graph.hpp"
#include "support/allocations.hpp"

namespace refrain::test {
namespace {

/// The step of counter_graph.hpp with an instance that has replayed once, on x = 1. Its worker's
/// allocations are not this thread's and do not fail.
class World {
 public:
  explicit World(StreamKind kind)
      : stream(base.device.stream(kind).value()),
        x(base.device.buffer<float>("my x", kCount).value()),
        y(base.device.buffer<float>("my y", kCount).value()) {
    recording.emplace(base.record(stream));
    plan.emplace(Plan::prepare(base.device, recording->graph()).value());
    step.emplace(plan->instance().value());
    REQUIRE(step->bind("y", y).ok());
    write_x(*step);
    REQUIRE(step->replay(stream).executed_cleanly());
    REQUIRE(stream.sync().ok());
  }
  ~World() { static_cast<void>(stream.sync()); }

  void write_x(Instance& on) { stream.write(on.view<float>("x").value(), all(1)); }
  /// Whether `on` can be made to do what a fresh instance does.
  [[nodiscard]] bool works(Instance& on) {
    static_cast<void>(stream.sync());
    if (!on.reset(stream).ok()) return false;
    write_x(on);
    if (!on.replay(stream).executed_cleanly() || !stream.sync().ok()) return false;
    const auto got = stream.read(on.view<float>("y").value());
    return got.ok() && *got == all(2);
  }

  CounterDevice base;
  Stream stream;
  // With a second one there is an order to keep (E11).
  Stream other = base.device.stream(StreamKind::worker).value();
  Buffer<float> x;
  Buffer<float> y;
  std::optional<Recording> recording;
  std::optional<Plan> plan;
  std::optional<Instance> step;
};

struct Call {
  std::string name;
  std::function<void(World&)> make;
  /// What is so after it, whether it threw, was refused or came back.
  std::function<bool(World&, bool threw)> after;
};

/// What y reads is what the only replay before made of it, or the next one, or it is refused.
bool counts(World& it, bool threw) {
  static_cast<void>(it.stream.sync());
  const auto got = it.stream.read(it.y);
  return !got.ok() || (!threw && (*got == all(2) || *got == all(4)));
}

const std::vector<Call> kCalls{
    {"Plan::prepare",
     [](World& it) { static_cast<void>(Plan::prepare(it.base.device, it.recording->graph())); },
     [](World& it, bool) {
       Instance made =
           Plan::prepare(it.base.device, it.recording->graph()).value().instance().value();
       return it.works(made);
     }},
    {"Plan::instance", [](World& it) { static_cast<void>(it.plan->instance()); },
     [](World& it, bool) {
       Instance made = it.plan->instance().value();
       return it.works(made);
     }},
    {"instance(recording)", [](World& it) { static_cast<void>(instance(*it.recording)); },
     [](World& it, bool) {
       Result<Instance> made = instance(*it.recording);
       return made.ok() && it.works(*made);
     }},
    {"bind", [](World& it) { static_cast<void>(it.step->bind("x", it.x)); },
     [](World& it, bool) { return it.works(*it.step); }},
    {"view and the first replay",
     [](World& it) {
       it.step.emplace(it.plan->instance().value());
       it.write_x(*it.step);
       static_cast<void>(it.step->replay(it.stream));
     },
     [](World& it, bool) { return it.works(*it.step); }},
    {"replay", [](World& it) { static_cast<void>(it.step->replay(it.stream)); }, counts},
    {"replay on another stream", [](World& it) { static_cast<void>(it.step->replay(it.other)); },
     counts},
    {"replay after a bind",
     [](World& it) {
       static_cast<void>(it.step->bind("x", it.x));
       static_cast<void>(it.step->replay(it.stream));
     },
     [](World& it, bool) { return it.works(*it.step); }},
    {"replay of what fails",
     [](World& it) {
       it.base.script().accumulate_fails = true;
       static_cast<void>(it.step->replay(it.stream));
     },
     [](World& it, bool) {
       static_cast<void>(it.stream.sync());
       return !it.stream.read(it.y).ok();
     }},
    {"replay of what throws",
     [](World& it) {
       it.base.script().accumulate_throws = true;
       try {
         static_cast<void>(it.step->replay(it.stream));
       } catch (const std::runtime_error& fire) {
         CHECK(std::string_view(fire.what()) == "The adder is on fire.");
       }
     },
     [](World& it, bool) {
       static_cast<void>(it.stream.sync());
       return !it.stream.read(it.y).ok();
     }},
    {"reset", [](World& it) { static_cast<void>(it.step->reset(it.stream)); },
     [](World& it, bool threw) {
       // One that threw may have reset it, but does not leave the old value as if it had.
       const auto got = it.stream.read(it.step->view<float>("total").value());
       return got.ok() ? !threw || *got == all(0) : true;
     }},
};

}  // namespace

TEST_CASE("P4: a call on a plan or an instance for which there is no memory leaves both usable") {
  if (!kCountsAllocations) return;  // a sanitizer's build, which has an operator new of its own
  for (const StreamKind kind : {StreamKind::inline_, StreamKind::worker}) {
    for (const Call& call : kCalls) {
      bool failed = true;
      std::uint64_t nth = 1;
      for (; failed && nth < 2000; ++nth) {
        CAPTURE(static_cast<int>(kind));
        CAPTURE(call.name);
        CAPTURE(nth);
        World it(kind);
        bool threw = false;
        fail_allocation(nth - 1);
        try {
          call.make(it);
        } catch (const std::bad_alloc&) {
          threw = true;
        }
        failed = stop_failing();
        CHECK(call.after(it, threw));
        it.base.script().accumulate_fails = false;
        it.base.script().accumulate_throws = false;
        CHECK(it.works(*it.step));
      }
      CHECK_FALSE(failed);
    }
  }
}

}  // namespace refrain::test
