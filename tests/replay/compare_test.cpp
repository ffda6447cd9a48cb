// Two devices compared node by node, and an instance stepped through.
#include "refrain/replay/compare.hpp"

#include <doctest/doctest.h>

#include <vector>

#include "refrain/host/device.hpp"
#include "refrain/replay/plan.hpp"

namespace refrain {
namespace {

using Double = Kernel<In<float>, Out<float>>;
using Count = Kernel<InOut<float>, float>;

/// A device whose "double" is off by `error`, and which fails when it is negative.
struct Side {
  explicit Side(float error) {
    device.kernels().add<Double>(
        "double", [error](std::span<const float> x, std::span<float> y) -> Result<void> {
          if (error < 0) return Error(ErrorKind::kernel_failed, "It fails on purpose.");
          for (std::size_t i = 0; i < y.size(); ++i) y[i] = 2 * x[i] + (i == 2 ? error : 0);
          return {};
        });
    device.kernels().add<Count>("count", [](std::span<float> sum, float by) {
      for (float& each : sum) each += by;
    });
  }
  [[nodiscard]] Instance step(const SealedGraph& graph) {
    return Plan::prepare(device, graph).value().instance().value();
  }
  void give(Instance& step, float value) {
    stream.write(step.view<float>("x").value(), std::vector<float>(4, value));
  }
  host::Device device;
  Stream stream = device.stream().value();
};

SealedGraph recorded() {
  Side side(0);
  const auto x = side.device.buffer<float>("x", 4, Role::input).value();
  const auto y = side.device.buffer<float>("y", 4, Role::scratch).value();
  const auto z = side.device.buffer<float>("z", 4, Role::output).value();
  const auto sum = side.device.buffer<float>("sum", 4, Role::state).value();
  const auto twice = side.device.kernel<Double>("double").value();
  const auto count = side.device.kernel<Count>("count").value();
  OpenWindow window = side.stream.record().value();
  side.stream.launch(twice, grid(4), x, y);
  side.stream.copy(z, y);
  side.stream.launch(count, grid(4), sum, 3.0F);
  side.stream.fill(z.view(0, 1), 9.0F);
  side.stream.host<In<float>>(
      {"look", Effects::none()}, [](std::span<const float>) {}, z);
  return window.seal().value().graph();
}

}  // namespace

TEST_CASE("replay: a step through the nodes gives what a replay gives, and states move on") {
  Side side(0);
  Instance step = side.step(recorded());
  side.give(step, 1);
  std::vector<std::uint32_t> seen;
  const auto after = [&](std::uint32_t node, std::span<const NodeWrite> writes) -> Result<void> {
    seen.push_back(node);
    CHECK(writes.size() == (node == 4 ? 0 : 1));
    return {};
  };
  CHECK(step.step_through(side.stream, after).ok());
  CHECK(seen == std::vector<std::uint32_t>{0, 1, 2, 3, 4});
  CHECK(side.stream.read(step.view<float>("z").value()).value() == std::vector<float>{9, 2, 2, 2});
  CHECK(step.replay(side.stream).executed_cleanly());
  CHECK(side.stream.read(step.view<float>("sum").value()).value() == std::vector<float>(4, 6));
}

TEST_CASE(
    "replay: a step through refuses an input that nobody gave, another device and a second call") {
  Side side(0);
  Instance step = side.step(recorded());
  const auto nothing = [](std::uint32_t, std::span<const NodeWrite>) -> Result<void> { return {}; };
  CHECK(step.step_through(side.stream, nothing).error().kind() == ErrorKind::unbound);
  side.give(step, 1);
  Side other(0);
  CHECK(step.step_through(other.stream, nothing).error().kind() == ErrorKind::other_device);
  const auto again = [&](std::uint32_t, std::span<const NodeWrite>) -> Result<void> {
    return step.step_through(side.stream, nothing);
  };
  CHECK(step.step_through(side.stream, again).error().kind() == ErrorKind::busy);
  OpenWindow window = side.stream.record().value();
  CHECK(step.step_through(side.stream, nothing).error().kind() == ErrorKind::refused_in_window);
}

TEST_CASE("replay: of two devices the first node that differs is named, with the element") {
  const SealedGraph graph = recorded();
  Side one(0);
  for (const float error : {0.0F, 0.5F}) {
    CAPTURE(error);
    Side other(error);
    Instance first = one.step(graph);
    Instance second = other.step(graph);
    one.give(first, 1);
    other.give(second, 1);
    const auto found = compare(first, one.stream, second, other.stream).value();
    CHECK(found.has_value() == (error != 0));
    if (!found) continue;
    CHECK(found->node == 0);
    CHECK(found->name == "double");
    CHECK(found->region == "y");
    CHECK(found->element == 2);
    CHECK(found->value == 2);
    CHECK(found->other == 2.5);
    CHECK(text(*found) == "node 0, \"double\", wrote 2.000000 to \"y\" [2], and 2.500000 there");
    const auto close = compare(first, one.stream, second, other.stream, {.absolute = 0.5}).value();
    CHECK(close.has_value());  // the state of the second was left a step behind
    CHECK(close->name == "count");
  }
}

TEST_CASE("replay: a node that fails while two devices are compared is named") {
  const SealedGraph graph = recorded();
  Side one(0);
  Side other(-1);
  Instance first = one.step(graph);
  Instance second = other.step(graph);
  one.give(first, 1);
  other.give(second, 1);
  const Error error = compare(first, one.stream, second, other.stream).error();
  CHECK(error.kind() == ErrorKind::kernel_failed);
  CHECK(error.text().find("While stepping through node 0, \"double\"") != std::string::npos);
}

}  // namespace refrain
