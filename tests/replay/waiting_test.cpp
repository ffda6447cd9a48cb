// E11 for replays on a worker: what the host does to the bytes of one waits for it, whether or not
// anybody checks anything.
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "refrain/host/device.hpp"
#include "refrain/replay/plan.hpp"

namespace refrain::test {
namespace {

struct Checks {
  bool device;
  bool inputs;
};

/// A replay on a worker, held there until a thread of its own lets it go, a while later. It reads
/// `x` and, unless it `only_reads`, counts in two states and writes `y`.
class Held {
 public:
  Held(Checks checks, bool only_reads)
      : device(DeviceOptions{.checks = checks.device}),
        stream(device.stream(StreamKind::worker).value()),
        other(device.stream().value()) {
    const std::vector<float> ones(4, 1);
    const auto zeroed = device.buffer<float>("zeroed", 4, Role::state).value();
    const auto begun = device.state<float>("begun", std::span<const float>(ones)).value();
    OpenWindow window = other.record().value();
    other.host<In<float>>(
        "look",
        [this, only_reads](std::span<const float> all) {
          while (!go_) std::this_thread::yield();
          seen = all[0];
          if (only_reads) ended = true;
        },
        x);
    if (!only_reads) {
      other.host<InOut<float>, InOut<float>, Out<float>>(
          "count",
          [this](std::span<float> a, std::span<float> b, std::span<float> all) {
            a[0] += 1;
            b[0] += 1;
            for (float& each : all) each = 3;
            ended = true;
          },
          zeroed, begun, y);
    }
    step.emplace(Plan::prepare(device, window.seal().value().graph()).value().instance().value());
    REQUIRE(step->bind("x", x).ok());
    if (!only_reads) REQUIRE(step->bind("y", y).ok());
    other.fill(x, 5.0F);
    REQUIRE(step->replay(stream, {.check_inputs = checks.inputs}).executed_cleanly());
    lets_go_ = std::thread([this] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      go_ = true;
    });
  }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  ~Held() {
    lets_go_.join();
    CHECK(stream.sync().ok());
  }

 private:
  std::atomic<bool> go_{false};
  std::thread lets_go_;

 public:
  std::atomic<bool> ended{false};
  std::atomic<float> seen{0};
  host::Device device;
  Stream stream;
  Stream other;
  Buffer<float> x = device.buffer<float>("x", 4, Role::input).value();
  Buffer<float> y = device.buffer<float>("y", 4, Role::output).value();
  Buffer<float> spare = device.buffer<float>("spare", 4).value();
  std::optional<Instance> step;
};

struct Call {
  const char* name;
  std::function<bool(Held&)> make;
  bool of_readers;  // it concerns what the graph reads
};

const std::vector<float> kNines(4, 9);

const std::vector<Call> kCalls{
    {"write", [](Held& it) { return it.other.write(it.x, kNines).executed_cleanly(); }, true},
    {"failed_write",
     [](Held& it) {
       it.other.failed_write(it.x, Error(ErrorKind::kernel_failed, "No sound came."));
       return true;
     },
     true},
    {"bind", [](Held& it) { return it.step->bind("x", it.spare).ok(); }, true},
    {"bind of an output", [](Held& it) { return it.step->bind("y", it.spare).ok(); }, false},
    {"reset", [](Held& it) { return it.step->reset(it.other).ok(); }, false},
    {"read", [](Held& it) { return it.other.read(it.y).ok(); }, false},
};

template <class Case>
void on_each(Case&& each) {
  for (const bool device : {true, false}) {
    for (const bool inputs : {true, false}) {
      CAPTURE(device);
      CAPTURE(inputs);
      each(Checks{device, inputs});
    }
  }
}

}  // namespace

TEST_CASE("E11: what the host does to bytes that a replay uses waits for it, checks or no checks") {
  on_each([](Checks checks) {
    for (const Call& call : kCalls) {
      for (const bool only_reads : {true, false}) {
        if (only_reads && !call.of_readers) continue;
        CAPTURE(call.name);
        CAPTURE(only_reads);
        Held it(checks, only_reads);
        CHECK(call.make(it));
        CHECK(it.ended);
        CHECK(it.seen == 5);
      }
    }
  });
}

TEST_CASE("P2, E10: a replay whose inputs are not looked at is not held back either") {
  for (const bool inputs : {true, false}) {
    CAPTURE(inputs);
    Held it({true, true}, false);
    const auto z = it.device.buffer<float>("z", 4, Role::output).value();
    Stream recorder = it.device.stream().value();
    OpenWindow window = recorder.record().value();
    bool ran = false;
    recorder.host<In<float>, Out<float>>(
        "after", [&](std::span<const float>, std::span<float> all) { ran = true, all[0] = 1; },
        it.y, z);
    Instance after =
        Plan::prepare(it.device, window.seal().value().graph()).value().instance().value();
    const auto w = it.device.buffer<float>("w", 4).value();
    REQUIRE(after.bind("y", w).ok());
    // Queued before `w` fails, and after the work that fails it.
    it.stream.host<Out<float>>(
        "breaks",
        [](std::span<float>) -> Result<void> {
          return Error(ErrorKind::kernel_failed, "It broke.");
        },
        w);
    static_cast<void>(after.replay(it.stream, {.check_inputs = inputs}));
    CHECK_FALSE(it.stream.sync().ok());
    CHECK(ran == !inputs);
  }
}

}  // namespace refrain::test
