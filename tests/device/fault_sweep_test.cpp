// Fails the n-th call that reaches the backend, for every n, and every run of a kernel: whatever
// fails, the right bytes carry the right root, the streams go on, and nothing is left behind.
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "device/rig.hpp"
#include "support/faulty_backend.hpp"

namespace refrain {
namespace {

using namespace test;

class Sweep {
 public:
  explicit Sweep(StreamKind kind) : kind_(kind) {
    register_on(*kernels_, control);
    make_.emplace(device.kernel<Make>("make").value());
    map_.emplace(device.kernel<Map>("map").value());
    update_.emplace(device.kernel<Update>("update").value());
  }

  /// Allocates, writes, launches, copies, fills, records the same, seals, reads, waits. True when
  /// nothing went wrong; otherwise every result that is bad has said so.
  bool run() {
    const std::uint64_t before = device.live_failures();
    REQUIRE(before == 0);
    bool good = true;
    Result<Stream> made = device.stream(kind_);
    Result<Stream> second = device.stream(kind_);
    if (!made.ok() || !second.ok()) return false;
    Stream& stream = *made;
    Result<Buffer<float>> x = device.buffer<float>("x", 4, Role::input);
    Result<Buffer<float>> y = device.buffer<float>("y", 4, Role::output);
    Result<Buffer<float>> s = device.buffer<float>("s", 4, Role::state);
    if (!x.ok() || !y.ok() || !s.ok()) return false;
    const auto work = [&](Stream& on) {
      bool all = true;
      const auto did = [&](const ScopedOutcome<void>& outcome) {
        all = outcome.executed_cleanly() && all;
      };
      did(on.write(*x, four(1)));
      did(on.launch(*map_, grid(4), *x, *y, 0U));
      did(on.launch(*update_, grid(4), *s, 0U));
      did(on.copy(s->view(0, 2), y->view(0, 2)));
      did(on.fill(y->view(3, 1), 7));
      did(on.launch(*make_, grid(4), y->view(2, 1), 0U));
      return all;
    };
    bool all_issued = true;
    try {
      good = work(stream);
    } catch (const std::runtime_error&) {
      good = all_issued = false;
    }
    const Result<Event> event = stream.record_event();
    good = event.ok() && good;
    if (event.ok()) {
      good = second->wait(*event).ok() && good;
      const bool waited = event->wait().ok();
      good = waited && good;
      const Result<bool> reached = event->reached();
      good = reached.ok() && good;
      if (waited && reached.ok()) CHECK(*reached);
    }
    const bool synced = stream.sync().ok();
    good = synced && good;
    for (const View<float>& view : {y->view(), s->view(), x->view()}) {
      const auto got = stream.read(view);
      good = got.ok() && good;
      // Whoever is told that there is nothing wrong gets what a run without faults gives.
      if (got.ok() && all_issued) good_values(view, *got, *x, *y, *s);
    }
    if (!good) return false;
    {
      OpenWindow window = stream.record().value();
      const bool all = work(stream);
      const Result<Recording> sealed = window.seal({.name = "sweep"});
      good = all && sealed.ok();
      CHECK(all == sealed.ok());  // C3: a graph that lacks work never seals
      if (sealed.ok()) CHECK(sealed->graph().nodes().size() == 6);
    }
    return good;
  }

  void good_values(const View<float>& view, const std::vector<float>& got, const Buffer<float>& x,
                   const Buffer<float>& y, const Buffer<float>& s) {
    if (view.binding().buffer == x.id()) CHECK(got == four(1));
    if (view.binding().buffer == y.id()) CHECK(got == std::vector<float>{2, 2, 10, 7});
    // A state starts at zero: what failed before it ran has left it, and claims it.
    if (view.binding().buffer == s.id()) CHECK(got == std::vector<float>{2, 2, 1, 1});
  }

 private:
  StreamKind kind_;
  std::shared_ptr<host::KernelRegistry> kernels_ = std::make_shared<host::KernelRegistry>();

 public:
  Control control;
  std::shared_ptr<FaultyBackend> backend =
      std::make_shared<FaultyBackend>(host::make_backend(kernels_));
  Device device{backend, DeviceOptions{true, {}}};

 private:
  std::optional<Make> make_;
  std::optional<Map> map_;
  std::optional<Update> update_;
};

}  // namespace

TEST_CASE("faults: whichever call the device refuses, it is told and nothing is left behind") {
  for (const StreamKind kind : {StreamKind::inline_, StreamKind::worker}) {
    CAPTURE(static_cast<int>(kind));
    Sweep sweep(kind);
    const std::uint64_t before = sweep.backend->calls();
    REQUIRE(sweep.run());
    const std::uint64_t calls = sweep.backend->calls() - before;
    CHECK(calls > 15);
    for (std::uint64_t nth = 1; nth <= calls; ++nth) {
      CAPTURE(nth);
      sweep.backend->fail(nth);
      CHECK_FALSE(sweep.run());
      CAPTURE(sweep.backend->failed());
      sweep.backend->fail(0);
      CHECK(sweep.device.live_failures() == 0);
      CHECK(sweep.run());
      CHECK(sweep.device.live_failures() == 0);
    }
  }
}

TEST_CASE("faults: whichever kernel fails or throws, it is told and nothing is left behind") {
  for (const StreamKind kind : {StreamKind::inline_, StreamKind::worker}) {
    for (const bool throwing : {false, true}) {
      for (int nth = 1; nth <= 3; ++nth) {
        CAPTURE(static_cast<int>(kind));
        CAPTURE(throwing);
        CAPTURE(nth);
        Sweep sweep(kind);
        std::atomic<int> left{nth};
        sweep.control.does[0] = [&]() -> Result<void> {
          if (--left != 0) return {};
          if (throwing) throw std::runtime_error("threw");
          return broken("broke");
        };
        CHECK_FALSE(sweep.run());
        CHECK(sweep.device.live_failures() == 0);
        CHECK(sweep.run());
        CHECK(sweep.device.live_failures() == 0);
      }
    }
  }
}

TEST_CASE("C20: a warm-up that could not save a state is refused with the device's error") {
  for (const StreamKind kind : {StreamKind::inline_, StreamKind::worker}) {
    Sweep sweep(kind);
    Stream stream = sweep.device.stream(kind).value();
    const auto update = sweep.device.kernel<Update>("update").value();
    const auto state = sweep.device.buffer<float>("state", 4, Role::state).value();
    sweep.backend->fail(1);  // the read that saves
    const auto prepared = stream.prepare([&] { stream.launch(update, grid(4), state, 0U); });
    REQUIRE_FALSE(prepared.ok());
    CHECK(prepared.error().kind() == ErrorKind::device_refused);
    CHECK(says(prepared.error(), "While warming up: a state may have advanced."));
    CHECK(stream.record().ok());
  }
}

TEST_CASE("faults: work that the device would not take claims its bytes with the device's error") {
  for (const StreamKind kind : {StreamKind::inline_, StreamKind::worker}) {
    Sweep sweep(kind);
    Stream stream = sweep.device.stream(kind).value();
    const Buffer<float> y = sweep.device.buffer<float>("y", 4).value();
    sweep.backend->fail_next("issue");
    const auto refused = stream.fill(y, 1);
    REQUIRE(refused.failed());
    CHECK(refused.error().kind() == ErrorKind::device_refused);
    const auto carried = sweep.device.check(y);
    REQUIRE(carried.has_value());
    CHECK(carried->kind() == ErrorKind::device_refused);
    CHECK(stream.sync().ok());  // it never was in flight
    CHECK(stream.fill(y, 1).executed_cleanly());
    CHECK(stream.read(y).ok());
  }
}

TEST_CASE("faults: a backend that throws while it takes work leaves the stream usable") {
  for (const StreamKind kind : {StreamKind::inline_, StreamKind::worker}) {
    Sweep sweep(kind);
    Stream stream = sweep.device.stream(kind).value();
    const Buffer<float> y = sweep.device.buffer<float>("y", 4).value();
    sweep.backend->throw_next("issue");
    CHECK_THROWS_AS(stream.fill(y, 1), std::bad_alloc);
    const auto carried = sweep.device.check(y);
    REQUIRE(carried.has_value());
    CHECK(carried->kind() == ErrorKind::exception);
    CHECK(stream.sync().ok());
    CHECK(stream.fill(y, 1).executed_cleanly());
    const auto got = stream.read(y);
    REQUIRE(got.ok());
    CHECK(*got == four(1));
  }
}

}  // namespace refrain
