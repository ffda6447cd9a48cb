// P6 from the inside: what the work of a replay does to the very instance that runs it. Nothing but
// the replay may own the instance any more, and the rest of its nodes have still to run.
#include <doctest/doctest.h>

#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "refrain/host/device.hpp"
#include "refrain/replay/plan.hpp"

namespace refrain::test {
namespace {

/// An instance of two nodes: `first` does what a case says, and then `second` writes `y`.
class TwoNodes {
 public:
  TwoNodes(StreamKind kind, bool on_recording)
      : stream(device.stream(kind).value()),
        state(device.buffer<float>("state", 4, Role::state).value()),
        y(device.buffer<float>("y", 4, Role::output).value()) {
    step = record(on_recording);
    const auto x = device.buffer<float>("x", 4, Role::output).value();
    OpenWindow window = stream.record().value();
    stream.fill(x, 1.0F);
    spare = std::make_unique<Instance>(instance(window.seal().value()).value());
    stream.fill(state, 0.0F);
    REQUIRE(stream.sync().ok());
  }

  /// Nothing outside of the instance owns its graph, so `seconds` shows whether that lives.
  std::unique_ptr<Instance> record(bool on_recording) {
    const auto second = std::make_shared<int>(0);
    seconds = second;
    OpenWindow window = stream.record().value();
    stream.host<InOut<float>>(
        "first", [this](std::span<float>) { return first(); }, state);
    stream.host<Out<float>>(
        "second",
        [second](std::span<float> all) {
          ++*second;
          for (float& each : all) each = 7;
        },
        y);
    const Recording recording = window.seal({.name = "two nodes"}).value();
    if (on_recording) return std::make_unique<Instance>(instance(recording).value());
    auto made = std::make_unique<Instance>(
        Plan::prepare(device, recording.graph()).value().instance().value());
    REQUIRE(made->bind("y", y).ok());
    REQUIRE(made->bind("state", state).ok());
    return made;
  }

  /// `first` destroys the instance, and ends as `end` does.
  void lets_go(std::function<Result<void>()> end) {
    first = [this, end = std::move(end)]() -> Result<void> {
      step.reset();
      alive = !seconds.expired();
      return end();
    };
  }

  std::weak_ptr<int> seconds;
  bool alive = false;  // when the node that let go of it went on
  /// Whether the instance was there when the listener heard of its failure, if it has. That is
  /// after the last node, and before the call is back.
  std::optional<bool> alive_when_heard;
  host::Device device{DeviceOptions{
      .on_failure = [this](StreamId, const Error&) { alive_when_heard = !seconds.expired(); }}};
  std::function<Result<void>()> first = [] { return Result<void>(); };
  std::unique_ptr<Instance> spare;  // of another graph
  std::unique_ptr<Instance> step;
  Stream stream;
  Buffer<float> state;
  Buffer<float> y;
};

/// Each way in which a handle lets go of its instance, by name.
const std::vector<std::pair<const char*, std::function<void(TwoNodes&)>>>& ways_to_go() {
  static const std::vector<std::pair<const char*, std::function<void(TwoNodes&)>>> all{
      {"destroyed", [](TwoNodes& it) { it.step.reset(); }},
      {"moved and destroyed", [](TwoNodes& it) { const Instance gone = std::move(*it.step); }},
      {"another in its place", [](TwoNodes& it) { *it.step = std::move(*it.spare); }},
  };
  return all;
}

template <class Case>
void on_each(Case&& each) {
  for (const StreamKind kind : {StreamKind::inline_, StreamKind::worker}) {
    for (const bool on_recording : {false, true}) {
      CAPTURE(static_cast<int>(kind));
      CAPTURE(on_recording);
      each(kind, on_recording);
    }
  }
}

}  // namespace

TEST_CASE("P6: a kernel lets go of the instance that runs it, and the replay goes on") {
  on_each([](StreamKind kind, bool on_recording) {
    for (const auto& way : ways_to_go()) {
      CAPTURE(way.first);
      TwoNodes it(kind, on_recording);
      bool alive = false;
      const auto seconds = it.seconds;
      it.first = [&, go = way.second]() -> Result<void> {
        go(it);
        alive = !seconds.expired();
        return {};
      };
      CHECK(it.step->replay(it.stream).executed_cleanly());
      CHECK(it.stream.sync().ok());
      CHECK(alive);
      CHECK(seconds.expired());
      CHECK(it.stream.read(it.y).value() == std::vector<float>(4, 7));
      CHECK(it.stream.read(it.state).value() == std::vector<float>(4, 0));
    }
  });
}

TEST_CASE("P6: a kernel lets go of the instance that runs it and fails, and that is told") {
  on_each([](StreamKind kind, bool on_recording) {
    TwoNodes it(kind, on_recording);
    it.lets_go([]() -> Result<void> {
      return Error(ErrorKind::kernel_failed, "The first one gives up.");
    });
    static_cast<void>(it.step->replay(it.stream));
    CHECK_FALSE(it.stream.sync().ok() == (kind == StreamKind::worker));
    CHECK(it.alive);
    CHECK(it.alive_when_heard == true);
    CHECK(it.seconds.expired());
    const auto read = it.stream.read(it.y);
    REQUIRE_FALSE(read.ok());
    CHECK(read.error().text().find("The first one gives up.") != std::string::npos);
    CHECK_FALSE(it.stream.read(it.state).ok());
  });
}

TEST_CASE("P6, E4: a kernel lets go of the instance that runs it and throws, and that is told") {
  on_each([](StreamKind kind, bool on_recording) {
    TwoNodes it(kind, on_recording);
    it.lets_go([]() -> Result<void> { throw std::runtime_error("The first one is on fire."); });
    bool thrown = false;
    try {
      static_cast<void>(it.step->replay(it.stream));
    } catch (const std::runtime_error&) {
      thrown = true;
    }
    CHECK(thrown == (kind == StreamKind::inline_));
    static_cast<void>(it.stream.sync());
    CHECK(it.alive);
    CHECK(it.alive_when_heard == true);
    CHECK(it.seconds.expired());
    const auto carried = it.device.check(it.y);
    REQUIRE(carried.has_value());
    CHECK(carried->exception() != nullptr);
  });
}

TEST_CASE("P7: a kernel that calls the instance that runs it is told that it is busy") {
  for (const bool on_recording : {false, true}) {
    CAPTURE(on_recording);
    TwoNodes it(StreamKind::inline_, on_recording);
    std::vector<ErrorKind> refused;
    it.first = [&]() -> Result<void> {
      Stream other = it.device.stream().value();
      const auto replayed = it.step->replay(other).into_result();
      if (!replayed.ok()) refused.push_back(replayed.error().kind());
      for (const Result<void>& called : {it.step->reset(other), it.step->bind("y", it.y)}) {
        if (!called.ok()) refused.push_back(called.error().kind());
      }
      const auto view = it.step->view<float>("y");
      if (!view.ok()) refused.push_back(view.error().kind());
      return {};
    };
    CHECK(it.step->replay(it.stream).executed_cleanly());
    CHECK(refused == std::vector<ErrorKind>(4, ErrorKind::busy));
    it.first = [] { return Result<void>(); };
    CHECK(it.step->replay(it.stream).executed_cleanly());
  }
}

TEST_CASE("P7: memory that was recorded has no second instance before the first has ended") {
  TwoNodes it(StreamKind::inline_, false);
  const auto z = it.device.buffer<float>("z", 4, Role::output).value();
  OpenWindow window = it.stream.record().value();
  std::function<void()> does;
  it.stream.host<Out<float>>(
      "gone", [&](std::span<float>) { does(); }, z);
  const Recording recording = window.seal().value();
  auto step = std::make_unique<Instance>(instance(recording).value());
  std::optional<ErrorKind> refused;
  does = [&] {
    step.reset();
    const auto second = instance(recording);
    if (!second.ok()) refused = second.error().kind();
  };
  CHECK(step->replay(it.stream).executed_cleanly());
  CHECK(refused == ErrorKind::busy);
  CHECK(instance(recording).ok());
}

}  // namespace refrain::test
