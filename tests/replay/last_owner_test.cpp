// M4 while work is queued: whoever owned some memory last, what goes is dead at once in the thread
// that let it go, and only the memory waits for the work.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "refrain/host/device.hpp"
#include "refrain/replay/plan.hpp"
#include "support/watched_backend.hpp"

namespace refrain {
namespace {

using namespace test;
using Copy = Kernel<In<float>, Out<float>>;
using Hold = Kernel<>;

/// A worker stream that is held before its next replay, and an inline stream.
struct Queued {
  Queued() {
    auto kernels = std::make_shared<host::KernelRegistry>();
    kernels->add<Copy>("copy", [this](std::span<const float> from, std::span<float> to) {
      std::copy(from.begin(), from.end(), to.begin());
      ran_on.push_back(to[0]);
    });
    kernels->add<Hold>("hold", [this] {
      while (!open) std::this_thread::yield();
    });
    backend = std::make_shared<WatchedBackend>(host::make_backend(kernels));
    device.emplace(backend, DeviceOptions{});
    worker.emplace(device->stream(StreamKind::worker).value());
    caller.emplace(device->stream().value());
    copy.emplace(device->kernel<Copy>("copy").value());
    gate.emplace(device->kernel<Hold>("hold").value());
    x.emplace(device->buffer<float>("x", 4, Role::input).value());
    y.emplace(device->buffer<float>("y", 4, Role::output).value());
    OpenWindow window = caller->record().value();
    caller->launch(*copy, grid(4), *x, *y);
    recording.emplace(window.seal().value());
    plan.emplace(Plan::prepare(*device, recording->graph()).value());
  }

  ~Queued() { open = true; }
  Queued(const Queued&) = delete;
  Queued& operator=(const Queued&) = delete;

  void hold() { worker->launch(*gate, grid(1)); }
  void go() {
    open = true;
    REQUIRE(worker->sync().ok());
  }
  /// Every way to use `view` says that it is stale, and none waits.
  void dead(const View<float>& view, const Buffer<float>& other) {
    const auto stale = [](const std::optional<Error>& error) {
      return error && error->kind() == ErrorKind::stale_buffer;
    };
    const auto error = [](auto outcome) -> std::optional<Error> {
      const auto result = std::move(outcome).into_result();
      return result.ok() ? std::nullopt : std::optional<Error>(result.error());
    };
    REQUIRE(stale(device->check(view)));
    for (Stream* const stream : {&*worker, &*caller}) {
      CHECK(stale(error(stream->launch(*copy, grid(4), view, other))));
      CHECK(stale(error(stream->copy(other.view(), view))));
      CHECK(stale(error(stream->fill(view, 1))));
      CHECK(stale(error(stream->write(view, std::vector<float>(4, 1)))));
      const auto read = stream->read(view);
      CHECK(stale(read.ok() ? std::nullopt : std::optional<Error>(read.error())));
    }
    Instance binding = plan->instance().value();
    const Result<void> bound = binding.bind("x", view);
    CHECK(stale(bound.ok() ? std::nullopt : std::optional<Error>(bound.error())));
  }

  std::atomic<bool> open{false};
  std::vector<float> ran_on;
  std::shared_ptr<WatchedBackend> backend;
  std::optional<Device> device;
  std::optional<Copy> copy;
  std::optional<Hold> gate;
  std::optional<Buffer<float>> x;
  std::optional<Buffer<float>> y;
  std::optional<Recording> recording;
  std::optional<Plan> plan;
  std::optional<Stream> worker;
  std::optional<Stream> caller;
};

}  // namespace

TEST_CASE("M4: what its last owner lets go of is dead at once though queued work uses its memory") {
  Queued it;
  const auto other = it.device->buffer<float>("other", 4).value();
  const std::vector<float> sevens(4, 7);
  std::optional<Instance> instance;
  std::vector<View<float>> gone;
  const auto replay = [&] {
    it.caller->write(instance->view<float>("x").value(), sevens);
    gone.push_back(instance->view<float>("x").value());
    gone.push_back(instance->view<float>("y").value());
    it.hold();
    REQUIRE(instance->replay(*it.worker).executed_cleanly());
  };
  SUBCASE("an instance, of memory of its own") {
    instance.emplace(it.plan->instance().value());
    replay();
    instance.reset();
  }
  SUBCASE("an instance, of buffers that were bound") {
    instance.emplace(it.plan->instance().value());
    {
      const auto x = it.device->buffer<float>("mine", 4).value();
      const auto y = it.device->buffer<float>("mine too", 4).value();
      REQUIRE(instance->bind("x", x).ok());
      REQUIRE(instance->bind("y", y).ok());
    }
    replay();
    instance.reset();
  }
  SUBCASE("an instance, of memory that was recorded") {
    instance.emplace(refrain::instance(*it.recording).value());
    it.x.reset();
    it.y.reset();
    replay();
    it.recording.reset();
    instance.reset();
  }
  SUBCASE("a recording") {
    instance.emplace(refrain::instance(*it.recording).value());
    it.x.reset();
    it.y.reset();
    replay();
    instance.reset();
    it.recording.reset();
  }
  SUBCASE("a buffer") {
    std::optional<Buffer<float>> x(it.device->buffer<float>("mine", 4).value());
    std::optional<Buffer<float>> y(it.device->buffer<float>("mine too", 4).value());
    it.caller->write(*x, sevens);
    gone = {x->view(), y->view()};
    it.hold();
    REQUIRE(it.worker->launch(*it.copy, grid(4), *x, *y).executed_cleanly());
    x.reset();
    y.reset();
  }
  for (const View<float>& view : gone) it.dead(view, other);
  it.go();
  CHECK(it.ran_on == std::vector<float>{7});
}

TEST_CASE("M4: memory that queued work uses is freed when the work has ended, and not before") {
  Queued it;
  std::optional<Instance> instance(it.plan->instance().value());
  it.caller->write(instance->view<float>("x").value(), std::vector<float>(4, 7));
  it.hold();
  REQUIRE(instance->replay(*it.worker).executed_cleanly());
  static_cast<void>(it.backend->destroyed());
  instance.reset();
  CHECK(it.backend->destroyed().empty());
  it.go();
  auto freed = it.backend->destroyed();
  std::sort(freed.begin(), freed.end());
  CHECK(freed == std::vector<std::string>{"executable", "memory of 64", "memory of 64"});
}

TEST_CASE("P7: the memory of a recording is free for another instance as soon as one is gone") {
  Queued it;
  std::optional<Instance> first(instance(*it.recording).value());
  it.caller->write(*it.x, std::vector<float>(4, 7));
  it.hold();
  REQUIRE(first->replay(*it.worker).executed_cleanly());
  CHECK_FALSE(instance(*it.recording).ok());
  first.reset();
  Result<Instance> second = instance(*it.recording);
  REQUIRE(second.ok());
  REQUIRE(second->replay(*it.worker).executed_cleanly());
  it.go();
  CHECK(it.ran_on == std::vector<float>{7, 7});
}

TEST_CASE("P6: an instance that goes inside its own replay goes when that has ended") {
  auto kernels = std::make_shared<host::KernelRegistry>();
  std::optional<Instance> going;
  kernels->add<Copy>("copy", [&](std::span<const float> x, std::span<float> y) {
    going.reset();
    std::copy(x.begin(), x.end(), y.begin());
  });
  const Device device(host::make_backend(kernels), DeviceOptions{});
  Stream stream = device.stream().value();
  const auto x = device.buffer<float>("x", 4, Role::input).value();
  const auto y = device.buffer<float>("y", 4, Role::output).value();
  const Copy copy = device.kernel<Copy>("copy").value();
  OpenWindow window = stream.record().value();
  stream.launch(copy, grid(4), x, y);
  const Recording recording = window.seal().value();
  going.emplace(Plan::prepare(device, recording.graph()).value().instance().value());
  const View<float> own = going->view<float>("x").value();
  stream.write(own, std::vector<float>(4, 7));
  CHECK(going->replay(stream).executed_cleanly());
  CHECK(device.check(own)->kind() == ErrorKind::stale_buffer);
}

TEST_CASE("M4: who waits for work that owns a buffer last reads what the work has left there") {
  host::Device device;
  Stream worker = device.stream(StreamKind::worker).value();
  Stream caller = device.stream().value();
  for (const bool replayed : {false, true}) {
    CAPTURE(replayed);
    std::atomic<bool> open{false};
    auto owned =
        std::make_shared<Buffer<float>>(device.buffer<float>("owned", 4, Role::output).value());
    const View<float> view = owned->view();
    auto body = [owned, &open](std::span<float> all) {
      while (!open) std::this_thread::yield();
      for (float& each : all) each = 7;
    };
    owned.reset();
    if (replayed) {
      OpenWindow window = caller.record().value();
      caller.host<Out<float>>("fill", std::move(body), view);
      const Recording recording = window.seal().value();
      std::optional<Instance> step(instance(recording).value());
      static_cast<void>(step->replay(worker));
    } else {
      worker.host<Out<float>>("fill", std::move(body), view);
    }
    std::thread opener([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      open = true;
    });
    const Result<std::vector<float>> got = caller.read(view);
    if (got.ok()) {
      CHECK(*got == std::vector<float>(4, 7));
    } else {
      CHECK(got.error().kind() == ErrorKind::stale_buffer);
    }
    opener.join();
    static_cast<void>(worker.sync());
  }
}

}  // namespace refrain
