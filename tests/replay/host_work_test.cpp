// Host work in a replay: it runs in its place, its failure names its node, and it belongs to
// whatever may still run it.
#include <doctest/doctest.h>

#include <memory>
#include <thread>

#include "counter_graph.hpp"

using namespace refrain;
using namespace refrain::test;

namespace {

/// A step of one launch and, after it, host work that reads its result and counts.
struct Counted {
  explicit Counted(StreamKind kind) : stream(base.device.stream(kind).value()) {}

  /// x is a state of ones; y = 2 x, and total[0] += y[0], which host work adds up.
  Recording record() {
    const auto weight = base.device.constant<float>("weight", bytes_of(all(2))).value();
    const auto x = base.device.state<float>("x", std::span<const float>(all(1))).value();
    const auto y = base.device.buffer<float>("", kCount).value();
    const auto total = base.device.buffer<float>("total", kCount, Role::state).value();
    auto window = stream.record().value();
    stream.launch(*base.scale, grid(kCount), x, weight, y);
    stream.host<In<float>, InOut<float>>(
        "add",
        [runs = runs, fails = fails, throws = throws](std::span<const float> from,
                                                      std::span<float> sum) -> Result<void> {
          ++*runs;
          if (*throws) throw std::runtime_error("The abacus is on fire.");
          if (*fails) return Error(ErrorKind::kernel_failed, "The abacus lost a bead.");
          for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += from[i];
          return {};
        },
        y, total);
    return window.seal({.name = "counted"}).value();
  }
  [[nodiscard]] bool freed() const { return runs.use_count() == 1; }

  CounterDevice base;
  std::shared_ptr<std::atomic<int>> runs = std::make_shared<std::atomic<int>>(0);
  std::shared_ptr<std::atomic<bool>> fails = std::make_shared<std::atomic<bool>>(false);
  std::shared_ptr<std::atomic<bool>> throws = std::make_shared<std::atomic<bool>>(false);
  Stream stream;
};

template <class Case>
void on_both_kinds_of_streams(Case&& each) {
  SUBCASE("inline") { each(StreamKind::inline_); }
  SUBCASE("worker") { each(StreamKind::worker); }
}

}  // namespace

TEST_CASE("B82: host work that counts has counted five after five replays, and is freed once") {
  on_both_kinds_of_streams([](StreamKind kind) {
    Counted it(kind);
    {
      std::optional<Plan> plan(Plan::prepare(it.base.device, it.record().graph()).value());
      Instance step = plan->instance().value();
      plan.reset();
      for (int each = 0; each < 5; ++each) CHECK(step.replay(it.stream).executed_cleanly());
      REQUIRE(it.stream.sync().ok());
      CHECK(*it.runs == 5);
      CHECK(it.stream.read(step.view<float>("total").value()).value() == all(10));
      CHECK_FALSE(it.freed());
    }
    CHECK(it.freed());
    CHECK(*it.runs == 5);
    CHECK(it.base.device.live_failures() == 0);
  });
}

TEST_CASE("B82: host work outlives its instance while a replay is on its way") {
  Counted it(StreamKind::worker);
  std::atomic<bool> go{false};
  {
    const auto y = it.base.device.buffer<float>("y", kCount, Role::output).value();
    auto window = it.stream.record().value();
    it.stream.host<Out<float>>(
        "wait",
        [&go, runs = it.runs](std::span<float> all) {
          while (!go) std::this_thread::yield();
          for (float& each : all) each = 1;
          ++*runs;
        },
        y);
    Instance step =
        Plan::prepare(it.base.device, window.seal().value().graph()).value().instance().value();
    CHECK(step.replay(it.stream).executed_cleanly());
  }
  CHECK_FALSE(it.freed());
  CHECK(*it.runs == 0);
  go = true;
  REQUIRE(it.stream.sync().ok());
  CHECK(*it.runs == 1);
  CHECK(it.freed());
}

TEST_CASE(
    "P1, E10: a replay fails when its host work does, naming the node, and claims its writes") {
  on_both_kinds_of_streams([](StreamKind kind) {
    Counted it(kind);
    Instance step = instance(it.record()).value();
    CHECK(step.replay(it.stream).executed_cleanly());
    *it.fails = true;
    CHECK(step.replay(it.stream).executed_cleanly() == (kind == StreamKind::worker));
    CHECK(it.stream.sync().ok() == (kind == StreamKind::inline_));
    const auto read = it.stream.read(step.view<float>("total").value());
    REQUIRE(!read.ok());
    const std::string text = read.error().text();
    CHECK(text.find("The abacus lost a bead.") != std::string::npos);
    CHECK(text.find("While replaying node 1, \"add\" (") != std::string::npos);
    CHECK(text.find("), of graph \"counted\".") != std::string::npos);
    *it.fails = false;
    REQUIRE(step.reset(it.stream).ok());
    CHECK(step.replay(it.stream).executed_cleanly());
    CHECK(it.stream.read(step.view<float>("total").value()).value() == all(2));
  });
}

TEST_CASE("E4: what host work throws in a replay is what its writes carry") {
  on_both_kinds_of_streams([](StreamKind kind) {
    Counted it(kind);
    Instance step = instance(it.record()).value();
    *it.throws = true;
    bool passed_on = false;
    try {
      static_cast<void>(step.replay(it.stream));
    } catch (const std::runtime_error&) {
      passed_on = true;
    }
    CHECK(passed_on == (kind == StreamKind::inline_));
    static_cast<void>(it.stream.sync());
    const auto carried = it.base.device.check(step.view<float>("total").value());
    REQUIRE(carried.has_value());
    CHECK(carried->exception() != nullptr);
  });
}

TEST_CASE("bind: host work gets the bytes that its instance is bound to") {
  Counted it(StreamKind::inline_);
  const auto mine = it.base.device.buffer<float>("mine", kCount, Role::state).value();
  Instance step = Plan::prepare(it.base.device, it.record().graph()).value().instance().value();
  REQUIRE(step.bind("total", mine).ok());
  CHECK(step.replay(it.stream).executed_cleanly());
  CHECK(it.stream.read(mine).value() == all(2));
}

TEST_CASE("a plan is refused when a kernel has other effects than it was recorded with") {
  Counted it(StreamKind::inline_);
  using Roll = Kernel<InOut<float>>;
  const auto roll = [](std::span<float> all) { all[0] += 1; };
  it.base.device.kernels().add<Roll>("roll", roll, 1, Effects::uses("rng"));
  host::Device other;
  other.kernels().add<Roll>("roll", roll);
  const auto state = it.base.device.buffer<float>("dice", kCount, Role::state).value();
  const auto loaded = it.base.device.kernel<Roll>("roll").value();
  auto window = it.stream.record().value();
  it.stream.launch(loaded, grid(1), state);
  const Recording recording = window.seal({.name = "dice"}).value();
  CHECK(Plan::prepare(it.base.device, recording.graph()).ok());
  const auto refused = Plan::prepare(other, recording.graph());
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().kind() == ErrorKind::kernel_signature);
  CHECK(refused.error().text() ==
        "Kernel \"roll\" is registered as roll/1(in_out f32*) and is wanted as roll/1(in_out f32*) "
        "using \"rng\".\n  - While preparing graph \"dice\".");
}
