// C19 and C17 for what replays are made of: recordings, plans and instances that go while a window
// is open, and graphs that the device refuses while one records.
#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "refrain/host/device.hpp"
#include "refrain/replay/plan.hpp"
#include "support/faulty_backend.hpp"
#include "support/watched_backend.hpp"

namespace refrain {
namespace {

using namespace test;
using Names = std::vector<std::string>;
using Add = Kernel<In<float>, In<float>, InOut<float>>;

std::shared_ptr<host::KernelRegistry> adders() {
  auto kernels = std::make_shared<host::KernelRegistry>();
  kernels->add<Add>(
      "add", [](std::span<const float> x, std::span<const float> weight, std::span<float> total) {
        for (std::size_t i = 0; i < total.size(); ++i) total[i] += x[i] * weight[i];
      });
  return kernels;
}

/// One node, with an input, a constant and a state.
Recording record(const Device& device, Stream& stream) {
  const std::vector<float> twos(4, 2);
  const auto add = device.kernel<Add>("add").value();
  const auto x = device.buffer<float>("x", 4, Role::input).value();
  const auto weight =
      device.constant<float>("weight", SharedBytes::copy_of(std::as_bytes(std::span(twos))))
          .value();
  const auto total = device.buffer<float>("total", 4, Role::state).value();
  OpenWindow window = stream.record().value();
  stream.launch(add, grid(4), x, weight, total);
  return window.seal().value();
}

}  // namespace

TEST_CASE("B25, C19: a recording, a plan and instances that go in a window wait for its end") {
  const auto backend = std::make_shared<WatchedBackend>(host::make_backend(adders()));
  {
    const Device device(backend, DeviceOptions{});
    Stream stream = device.stream().value();
    Stream other = device.stream().value();
    std::optional<Recording> recording(record(device, stream));
    std::optional<Plan> plan(Plan::prepare(device, recording->graph()).value());
    std::optional<Instance> planned(plan->instance().value());
    std::optional<Instance> recorded(instance(*recording).value());
    static_cast<void>(backend->destroyed());
    Names expected;
    OpenWindow window = other.record().value();
    SUBCASE("an instance of a plan") {
      planned.reset();
      expected = {"executable", "memory of 64"};
    }
    SUBCASE("everything") {
      recording.reset();
      plan.reset();
      planned.reset();
      recorded.reset();
      // Of each: kernels, an executable, a constant and a state; and the recorded input.
      expected = {"constant", "constant",     "executable",   "executable",  "kernel",
                  "kernel",   "memory of 64", "memory of 64", "memory of 64"};
    }
    CHECK(backend->destroyed().empty());
    window.abort();
    Names gone = backend->destroyed();
    std::sort(gone.begin(), gone.end());
    CHECK(gone == expected);
  }
  CHECK(backend->alive() == 0);
}

TEST_CASE("C19, P6: an instance on its way when it goes in a window ends its replay first") {
  const auto backend = std::make_shared<WatchedBackend>(host::make_backend(adders()));
  {
    const Device device(backend, DeviceOptions{});
    Stream stream = device.stream(StreamKind::worker).value();
    Stream other = device.stream().value();
    const Recording recording = record(device, stream);
    const auto x = device.buffer<float>("mine", 4).value();
    const auto total = device.buffer<float>("my total", 4, Role::state).value();
    stream.write(x, std::vector<float>(4, 1));
    const Plan plan = Plan::prepare(device, recording.graph()).value();
    std::optional<Instance> going(plan.instance().value());
    REQUIRE(going->bind("x", x).ok());
    REQUIRE(going->bind("total", total).ok());
    static_cast<void>(backend->destroyed());
    OpenWindow window = other.record().value();
    REQUIRE(going->replay(stream).executed_cleanly());
    going.reset();
    CHECK(stream.read(total).value() == std::vector<float>(4, 2));
    CHECK(backend->destroyed().empty());
    window.abort();
    const Names after = backend->destroyed();
    CHECK(std::count(after.begin(), after.end(), "executable") == 1);
  }
  CHECK(backend->alive() == 0);
}

TEST_CASE("C17: a graph that the device will not prepare or rebind dooms the window that records") {
  const auto backend = std::make_shared<FaultyBackend>(host::make_backend(adders()));
  const Device device(backend, DeviceOptions{});
  Stream stream = device.stream().value();
  const Recording recording = record(device, stream);
  const Plan plan = Plan::prepare(device, recording.graph()).value();
  Instance bound = plan.instance().value();
  const auto x = device.buffer<float>("mine", 4).value();
  const auto y = device.buffer<float>("y", 4, Role::output).value();
  OpenWindow window = stream.record().value();
  stream.fill(y, 1);
  SUBCASE("an instance of a plan") {
    backend->fail_next("prepare");
    CHECK_FALSE(plan.instance().ok());
  }
  SUBCASE("an instance on recorded memory") {
    backend->fail_next("prepare");
    CHECK_FALSE(instance(recording).ok());
  }
  SUBCASE("a binding") {
    backend->fail_next("rebind");
    CHECK_FALSE(bound.bind("x", x).ok());
  }
  SUBCASE("a plan's kernel") {
    backend->fail_next("kernel");
    CHECK_FALSE(Plan::prepare(device, recording.graph()).ok());
  }
  CHECK(window.state() == WindowState::doomed);
  const Result<Recording> sealed = window.seal();
  REQUIRE_FALSE(sealed.ok());
  const std::string why = "The device would not " + backend->failed();
  CHECK(sealed.error().text().find(why) != std::string::npos);
}

}  // namespace refrain
