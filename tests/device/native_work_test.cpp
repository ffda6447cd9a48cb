// Native work on the host device: a body that does its work itself, in the same scope as a launch,
// outside windows, in them and in replays, with a workspace of its own.
#include <algorithm>
#include <memory>
#include <set>

#include "device/faulty.hpp"
#include "refrain/refrain.hpp"

namespace refrain {
namespace {

using namespace test;

/// y = 2 x.
constexpr auto kTwice = [](const NativeCall&, DeviceSpan<const float> x, DeviceSpan<float> y) {
  for (std::uint64_t i = 0; i < y.size; ++i) y.address[i] = 2 * x.address[i];
};

/// What bodies were called with.
struct Calls {
  std::mutex mutex;
  std::vector<NativeCall> all;

  void add(const NativeCall& call) {
    const std::lock_guard lock(mutex);
    all.push_back(call);
  }
};

/// y += 1, by way of its workspace.
auto through_workspace(const std::shared_ptr<Calls>& calls) {
  return [calls](const NativeCall& call, DeviceSpan<float> y) {
    calls->add(call);
    auto* const room = reinterpret_cast<float*>(call.workspace.address);
    for (std::uint64_t i = 0; i < y.size; ++i) room[i] = y.address[i];
    std::this_thread::yield();
    for (std::uint64_t i = 0; i < y.size; ++i) y.address[i] = room[i] + 1;
  };
}

}  // namespace

ON_BOTH_KINDS("native work runs in the order of its stream over the views that it declares") {
  const Buffer<float> x = rig.floats("x", 1);
  const Buffer<float> y = rig.floats("y", 0);
  CHECK(rig.stream.launch(*rig.update, grid(4), x, 0U).executed_cleanly());
  CHECK(rig.stream.native<In<float>, Out<float>>("twice", kTwice, x, y).executed_cleanly());
  CHECK(rig.stream.launch(*rig.update, grid(4), y, 0U).executed_cleanly());
  CHECK(rig.stream.native<In<float>, Out<float>>("twice", kTwice, x.view(0, 1), y.view(3, 1))
            .executed_cleanly());
  CHECK(rig.values(y) == std::vector<float>{5, 5, 5, 4});
}

ON_BOTH_KINDS("O2, K1, K3: native work over a broken input is skipped, its body is not called") {
  const Buffer<float> x = rig.bad("x", "x never came");
  const Buffer<float> y = rig.floats("y", 1);
  bool called = false;
  const auto body = [&called](const NativeCall&, auto, auto) { called = true; };
  CHECK(rig.stream.native<In<float>, Out<float>>("gemm", body, x, y).skipped());
  rig.settle();
  CHECK_FALSE(called);
  CHECK(rig.carried(y).failure() == rig.carried(x).failure());
  CHECK(says(rig.unreadable(y), "skipped: \"gemm\" on stream"));
}

ON_BOTH_KINDS("E2, E4: native work that fails or throws leaves that on what it was to write") {
  const Buffer<float> y = rig.floats("y", 1);
  rig.stream.native<Out<float>>(
      "gemm", [](const NativeCall&, auto) -> Result<void> { return broken("no handle"); },
      y.view(0, 3));
  rig.settle();
  CHECK(rig.carried(y.view(0, 3)).message() == "no handle");
  CHECK(rig.clean(y.view(3, 1)));
  bool passed_on = false;
  try {
    rig.stream.native<Out<float>>(
        "gemm", [](const NativeCall&, auto) { throw std::runtime_error("no dice"); }, y);
  } catch (const std::runtime_error& error) {
    passed_on = std::string(error.what()) == "no dice";
  }
  CHECK(passed_on == !rig.worker());
  rig.settle();
  REQUIRE(rig.carried(y).exception() != nullptr);
  CHECK_THROWS_AS(std::rethrow_exception(rig.carried(y).exception()), std::runtime_error);
  rig.stream.fill(y, 0);
}

ON_BOTH_KINDS("E6: native work that calls its device is refused the call, and fails") {
  const Buffer<float> x = rig.floats("x", 1);
  const Buffer<float> y = rig.floats("y", 1);
  rig.stream.native<Out<float>>(
      "gemm",
      [&](const NativeCall&, auto) {
        CHECK(rig.stream.launch(*rig.make, grid(4), x, 0U).failed());
      },
      y);
  rig.settle();
  CHECK(says(rig.carried(y), "cannot launch inside \"gemm\" on stream"));
  CHECK(rig.clean(x));
  rig.stream.fill(y, 0);
}

ON_BOTH_KINDS("native work has a workspace of the size and alignment that it asks for, its own") {
  const Buffer<float> y = rig.floats("y", 1);
  const auto calls = std::make_shared<Calls>();
  for (const std::uint64_t bytes : {0U, 64U, 4096U}) {
    CAPTURE(bytes);
    const auto look = [calls](const NativeCall& call, auto) { calls->add(call); };
    CHECK(rig.stream.native<InOut<float>>({"look", bytes}, look, y).executed_cleanly());
    rig.settle();
    CHECK(calls->all.back().workspace.size == bytes);
    CHECK((calls->all.back().workspace.address == nullptr) == (bytes == 0));
    CHECK(reinterpret_cast<std::uintptr_t>(calls->all.back().workspace.address) % 256 == 0);
    CHECK(calls->all.back().stream == nullptr);
  }
  CHECK(
      rig.stream.native<InOut<float>>({"add", 64}, through_workspace(calls), y).executed_cleanly());
  CHECK(rig.values(y) == four(2));
}

ON_BOTH_KINDS("C2, C14: native work is recorded and not run, and runs with each replay") {
  const Buffer<float> x = rig.floats("x", 1, Role::input);
  const Buffer<float> y = rig.floats("y", 0, Role::state);
  const auto calls = std::make_shared<Calls>();
  const auto record = [&] {
    OpenWindow window = rig.stream.record().value();
    rig.stream.native<In<float>, InOut<float>>(
        {"gemm", 512, Effects::none()},
        [calls](const NativeCall& call, DeviceSpan<const float> from, DeviceSpan<float> to) {
          calls->add(call);
          for (std::uint64_t i = 0; i < to.size; ++i) to.address[i] += from.address[i];
        },
        x, y);
    return window.seal({.name = "gemm"}).value();
  };
  const Recording recording = record();
  CHECK(calls->all.empty());
  const SealedGraph& graph = recording.graph();
  REQUIRE(graph.nodes().size() == 1);
  CHECK(graph.node_name(graph.nodes()[0]) == "gemm");
  CHECK(graph.effects(graph.nodes()[0]) == Effects::none());
  REQUIRE(graph.arguments(graph.nodes()[0]).size() == 3);  // and its workspace
  CHECK(graph.regions().size() == 3);
  CHECK(rig.carried(y).kind() == ErrorKind::not_replayed);
  {
    Instance step = instance(recording).value();
    for (int each = 0; each < 3; ++each) CHECK(step.replay(rig.stream).executed_cleanly());
    CHECK(rig.values(y) == four(3));
    CHECK(calls->all.size() == 3);
    CHECK(calls->all[0].workspace.size == 512);
  }
}

ON_BOTH_KINDS("C3, C17: native work that the device cannot record dooms the window") {
  const Faulty faulty;
  Stream stream = faulty.device.stream(rig.kind()).value();
  const Buffer<float> y = faulty.floats("y", stream);
  for (const char* const call : {"prove", "allocate"}) {
    for (const bool throws : {false, true}) {
      CAPTURE(call);
      CAPTURE(throws);
      OpenWindow window = stream.record().value();
      throws ? faulty.backend->throw_next(call) : faulty.backend->fail_next(call);
      const auto work = [&] {
        return stream.native<Out<float>>(
            {"gemm", 64}, [](const NativeCall&, auto) {}, y);
      };
      if (throws) {
        CHECK_THROWS_AS(work(), std::bad_alloc);
      } else {
        CHECK(work().failed());
      }
      CHECK(window.state() == WindowState::doomed);
      const Error told = window.seal().error();
      CHECK(says(told, throws ? "std::bad_alloc" : "The device would not "));
      if (std::string(call) == "prove") CHECK(says(told, "because \"gemm\" ("));
      CHECK(stream.fill(y, 1).executed_cleanly());
    }
  }
}

ON_BOTH_KINDS("native work in two instances, and twice in one, never shares a workspace") {
  const Buffer<float> a = rig.floats("a", 1, Role::state);
  const Buffer<float> b = rig.floats("b", 1, Role::state);
  const auto calls = std::make_shared<Calls>();
  OpenWindow window = rig.stream.record().value();
  for (const Buffer<float>* const each : {&a, &b}) {
    rig.stream.native<InOut<float>>({"add", 64, Effects::none()}, through_workspace(calls), *each);
  }
  const Recording recording = window.seal().value();
  const Plan plan = Plan::prepare(rig.device, recording.graph()).value();
  std::set<std::byte*> seen;
  std::vector<Instance> steps;
  for (int each = 0; each < 2; ++each) {
    steps.push_back(plan.instance().value());
    REQUIRE(steps.back().reset(rig.stream).ok());
    CHECK(steps.back().replay(rig.stream).executed_cleanly());
    REQUIRE(rig.stream.sync().ok());
  }
  for (const NativeCall& call : calls->all) seen.insert(call.workspace.address);
  CHECK(calls->all.size() == 4);
  CHECK(seen.size() == 4);
  rig.stream.fill(a, 0);
  rig.stream.fill(b, 0);
}

ON_BOTH_KINDS("P1, E10: a replay fails when its native work does, naming the node") {
  const Buffer<float> y = rig.floats("y", 1, Role::state);
  const auto fails = std::make_shared<std::atomic<bool>>(false);
  OpenWindow window = rig.stream.record().value();
  rig.stream.native<InOut<float>>(
      {"gemm", 0, Effects::opaque(), false, Where{"decode.cpp", 7}},
      [fails](const NativeCall&, DeviceSpan<float> all) -> Result<void> {
        if (*fails) return broken("the handle is gone");
        all.address[0] += 1;
        return {};
      },
      y);
  Instance step = instance(window.seal({.name = "decode"}).value()).value();
  CHECK(step.replay(rig.stream).executed_cleanly());
  *fails = true;
  CHECK(step.replay(rig.stream).executed_cleanly() == rig.worker());
  rig.settle();
  CHECK(says(rig.unreadable(y), "the handle is gone"));
  CHECK(says(rig.unreadable(y), "While replaying node 0, \"gemm\" (decode.cpp:7), of graph"));
  *fails = false;
  rig.stream.fill(y, 0);
  CHECK(step.replay(rig.stream).executed_cleanly());
  rig.settle();
}

ON_BOTH_KINDS("bind: native work gets the bytes that its instance is bound to") {
  const Buffer<float> x = rig.floats("x", 3, Role::input);
  const Buffer<float> y = rig.floats("y", 0, Role::output);
  OpenWindow window = rig.stream.record().value();
  rig.stream.native<In<float>, Out<float>>("twice", kTwice, x, y);
  const Recording recording = window.seal().value();
  Instance step = Plan::prepare(rig.device, recording.graph()).value().instance().value();
  const Buffer<float> other = rig.floats("other", 5);
  const Buffer<float> result = rig.floats("result", 0);
  REQUIRE(step.bind("y", result).ok());
  for (const Buffer<float>* const each : {&x, &other}) {
    REQUIRE(step.bind("x", *each).ok());
    CHECK(step.replay(rig.stream).executed_cleanly());
    CHECK(rig.values(result) == four(each == &x ? 6 : 10));
  }
  rig.stream.fill(y, 0);
}

ON_BOTH_KINDS("a graph with native work is not portable, and says which node") {
  const Buffer<float> y = rig.floats("y", 1, Role::state);
  OpenWindow window = rig.stream.record().value();
  rig.stream.native<InOut<float>>(
      "gemm", [](const NativeCall&, auto) {}, y);
  const Recording recording = window.seal({.name = "decode"}).value();
  const Result<std::vector<std::byte>> file = encode(recording.graph());
  REQUIRE_FALSE(file.ok());
  CHECK(file.error().kind() == ErrorKind::not_portable);
  CHECK(says(file.error(), "Node 0, \"gemm\", is native work"));
  rig.stream.fill(y, 0);
}

ON_BOTH_KINDS("step_through issues native work as eager work, with a workspace of its own") {
  const Buffer<float> y = rig.floats("y", 1, Role::state);
  const auto calls = std::make_shared<Calls>();
  OpenWindow window = rig.stream.record().value();
  rig.stream.native<InOut<float>>({"add", 64}, through_workspace(calls), y);
  Instance step = instance(window.seal().value()).value();
  REQUIRE(step.reset(rig.stream).ok());
  REQUIRE(step.step_through(rig.stream, [](auto, auto) -> Result<void> { return {}; }).ok());
  CHECK(rig.values(y) == four(1));
  REQUIRE(calls->all.size() == 1);
  CHECK(calls->all[0].workspace.size == 64);
}

}  // namespace refrain
