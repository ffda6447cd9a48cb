// B23: waiting for all streams of a device at once, and refusing to while a window is open.
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
  rig.control.does[1] = [&]() -> Result<void> {
    gate.wait();
    return {};
  };
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
