// B23: waiting for all streams of a device at once, and refusing to while a window is open.
#include <chrono>
#include <optional>
#include <thread>

#include "device/rig.hpp"

namespace refrain {
namespace {

using namespace test;

}  // namespace

TEST_CASE("device sync: waits for the work of every stream, in any thread") {
  Rig rig(StreamKind::worker);
  const Buffer<float> x = rig.floats("x", 0);
  const Buffer<float> y = rig.floats("y", 0);
  Gate gate;
  rig.control.does[1] = waits(gate);
  Stream other = rig.another();
  rig.stream.launch(*rig.make, grid(4), x, 1U);
  other.launch(*rig.make, grid(4), y, 1U);
  std::atomic<bool> synced{false};
  std::thread waiter([&] {
    CHECK(rig.device.sync().ok());
    synced = true;
  });
  CHECK_FALSE(synced);
  gate.open();
  waiter.join();
  CHECK(rig.control.runs(1) == 2);
  // E11: whatever is issued from now on comes after all of it.
  CHECK(other.launch(*rig.map, grid(4), x, y, 0U).executed_cleanly());
}

TEST_CASE(
    "device sync: tells each stream's first late failure once, as the stream's own sync would") {
  Rig rig(StreamKind::worker);
  rig.control.does[1] = fails("the first broke");
  rig.control.does[2] = fails("the second broke");
  const Buffer<float> x = rig.floats("x", 0);
  const Buffer<float> y = rig.floats("y", 0);
  const Buffer<float> z = rig.floats("z", 0);
  Stream second = rig.another();
  Stream third = rig.another();
  rig.stream.launch(*rig.make, grid(4), x, 1U);
  second.launch(*rig.make, grid(4), y, 2U);
  third.launch(*rig.make, grid(4), z, 1U);
  const Result<void> first = rig.device.sync();
  REQUIRE_FALSE(first.ok());
  CHECK(says(first.error(), "the first broke"));
  const Result<void> told = second.sync();
  REQUIRE_FALSE(told.ok());
  CHECK(says(told.error(), "the second broke"));
  const Result<void> last = rig.device.sync();
  REQUIRE_FALSE(last.ok());
  CHECK(says(last.error(), "the first broke"));
  CHECK(rig.device.sync().ok());
  CHECK(rig.stream.sync().ok());
}

TEST_CASE("E11: while another thread is in a device sync, what still runs has not ended") {
  Rig rig(StreamKind::worker);
  const Buffer<float> x = rig.floats("x", 0);
  const Buffer<float> y = rig.floats("y", 0);
  Gate gate;
  rig.control.does[1] = waits(gate);
  Stream second = rig.another();
  Stream third = rig.another();
  // The one that waits has been given nothing since. Whichever comes first on the device.
  Stream* runs = &rig.stream;
  Stream* waits = &second;
  SUBCASE("the one that waits came later") {}
  SUBCASE("the one that waits came first") { std::swap(runs, waits); }
  runs->launch(*rig.make, grid(4), x, 1U);
  REQUIRE(waits->wait(runs->record_event().value()).ok());
  std::thread waiter([&] { CHECK(rig.device.sync().ok()); });
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(100);
  bool refused = true;
  while (refused && std::chrono::steady_clock::now() < until) {
    refused = third.launch(*rig.map, grid(4), x, y, 2U).into_result().error().kind() ==
              ErrorKind::unordered;
  }
  CHECK(refused);
  CHECK(rig.control.runs(2) == 0);
  gate.open();
  waiter.join();
  CHECK(third.launch(*rig.map, grid(4), x, y, 0U).executed_cleanly());
  CHECK(third.sync().ok());
}

TEST_CASE("E11: no wait of another thread ends work whose call is not over") {
  Gate inside;
  Gate gate;
  DeviceOptions options;
  options.on_unread = [&](const UnreadFailure&) {
    inside.open();
    gate.wait();
  };
  const host::Device device(options);
  Control control;
  register_on(device.kernels(), control);
  const auto make = device.kernel<Make>("make").value();
  const auto map = device.kernel<Map>("map").value();
  const auto y = device.buffer<float>("y", 4).value();
  const auto z = device.buffer<float>("z", 4).value();
  Stream first = device.stream(StreamKind::worker).value();
  Stream second = device.stream(StreamKind::worker).value();
  Stream caller = device.stream().value();
  caller.failed_write(y, broken("y never came"));
  // It counts as issued, and the device does not have it yet.
  std::thread issuing([&] { CHECK(first.launch(make, grid(4), y, 0U).executed_cleanly()); });
  inside.wait();
  SUBCASE("a sync of the device") { CHECK(device.sync().ok()); }
  SUBCASE("a read of what it writes") { CHECK_FALSE(caller.read(y).ok()); }
  CHECK(second.launch(map, grid(4), y, z, 1U).into_result().error().kind() == ErrorKind::unordered);
  gate.open();
  issuing.join();
  CHECK(device.sync().ok());
  CHECK(second.launch(map, grid(4), y, z, 1U).executed_cleanly());
  CHECK(second.sync().ok());
  CHECK(caller.read(z).value() == four(11));
}

TEST_CASE("E11, C20: what a warm-up saves before its work runs does not end that work") {
  Rig rig(StreamKind::worker);
  const Buffer<float> y = rig.floats("y", 0);
  const Buffer<float> z = rig.floats("z", 0);
  Gate gate;
  rig.control.does[1] = waits(gate);
  Stream other = rig.another();
  Result<OpenWindow> window = rig.stream.prepare([&] {
    rig.stream.launch(*rig.update, grid(4), y, 1U);
    CHECK(other.launch(*rig.map, grid(4), y, z, 2U).into_result().error().kind() ==
          ErrorKind::unordered);
    gate.open();
  });
  REQUIRE_FALSE(window.ok());  // C20: the work that was refused is missing
  CHECK(window.error().kind() == ErrorKind::unordered);
}

TEST_CASE("device sync: on inline streams there is nothing to wait for") {
  const Rig rig(StreamKind::inline_);
  CHECK(rig.device.sync().ok());
}

ON_BOTH_KINDS(
    "B23: a device sync is refused while a window is open in any thread, which survives it") {
  const Buffer<float> y = rig.floats("y", 1);
  OpenWindow window = rig.stream.record().value();
  rig.stream.fill(y, 2);
  const auto refused = [&](const std::string& whose) {
    const Result<void> synced = rig.device.sync();
    REQUIRE_FALSE(synced.ok());
    CHECK(synced.error().kind() == ErrorKind::refused_in_window);
    CHECK(says(synced.error(), "stream " + std::to_string(rig.stream.id().number) + " has one"));
    CHECK(says(synced.error(), "sync_test.cpp:"));
    CHECK(says(synced.error(), whose + " thread"));
  };
  refused("this");
  std::thread([&] { refused("another"); }).join();
  CHECK(window.state() == WindowState::recording);
  CHECK(window.seal().ok());
  CHECK(rig.device.sync().ok());
  OpenWindow prepared = rig.stream.prepare().value();
  refused("this");
  prepared.abort();
  CHECK(rig.device.sync().ok());
}

}  // namespace refrain
