// C17: calls that the device refuses while a window of the thread records. (Memory is asked about
// in window_test.cpp, graphs in tests/replay.)
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "device/rig.hpp"
#include "support/faulty_backend.hpp"

namespace refrain {
namespace {

using namespace test;

struct Faulty {
  Faulty() { register_on(*kernels, control); }

  Control control;
  std::shared_ptr<host::KernelRegistry> kernels = std::make_shared<host::KernelRegistry>();
  std::shared_ptr<FaultyBackend> backend =
      std::make_shared<FaultyBackend>(host::make_backend(kernels));
  Device device{backend, DeviceOptions{true, {}}};
};

using Other = Kernel<InOut<float>, float>;

}  // namespace

TEST_CASE(
    "C17: a stream, a kernel or an event that the device refuses dooms the window that records") {
  Faulty faulty;
  const Device& device = faulty.device;
  REQUIRE(device.kernel<Make>("make").ok());
  Stream stream = device.stream().value();
  Stream outside = device.stream().value();
  const Event event = outside.record_event().value();
  const Buffer<float> y = device.buffer<float>("y", 4, Role::output).value();
  std::string call = "nothing";
  std::string why = "The device would not ";
  std::function<bool()> refused;
  SUBCASE("an inline stream") {
    call = "stream";
    refused = [&] { return !device.stream().ok(); };
  }
  SUBCASE("a worker stream") {
    call = "stream";
    refused = [&] { return !device.stream(StreamKind::worker).ok(); };
  }
  SUBCASE("a kernel that was loaded before") {
    call = "kernel";
    refused = [&] { return !device.kernel<Make>("make").ok(); };
  }
  SUBCASE("a kernel that has other parameters") {
    why = "Kernel \"make\" is registered as";
    refused = [&] { return !device.kernel<Other>("make").ok(); };
  }
  SUBCASE("a kernel that there is not") {
    // Not that it needs warm-up, which would not bring it.
    why = "Kernel nowhere/1(out f32*, u32) is not registered with the host device.";
    refused = [&] { return !device.kernel<Make>("nowhere").ok(); };
  }
  SUBCASE("asking for an event from outside") {
    call = "reached";
    refused = [&] { return !event.reached().ok(); };
  }
  SUBCASE("waiting on the host for an event from outside") {
    call = "wait_on_host";
    refused = [&] { return !event.wait().ok(); };
  }
  {
    // Outside windows, and in one that is only prepared, the call's own error is all there is.
    OpenWindow prepared = stream.prepare().value();
    faulty.backend->fail_next(call);
    CHECK(refused());
    CHECK(prepared.state() == WindowState::prepared);
    prepared.abort();
  }
  OpenWindow window = stream.record().value();
  stream.fill(y, 1);
  faulty.backend->fail_next(call);
  CHECK(refused());
  CHECK(window.state() == WindowState::doomed);
  const Result<Recording> sealed = window.seal();
  REQUIRE_FALSE(sealed.ok());
  CHECK(sealed.error().kind() == ErrorKind::window_doomed);
  CHECK(says(sealed.error(), why));
}

TEST_CASE("C9, C17: what the device refuses to another stream is that stream's and dooms nothing") {
  Faulty faulty;
  const Device& device = faulty.device;
  Stream stream = device.stream().value();
  Stream other = device.stream().value();
  const Buffer<float> x = device.buffer<float>("x", 4, Role::state).value();
  const Buffer<float> y = device.buffer<float>("y", 4, Role::output).value();
  OpenWindow window = stream.record().value();
  stream.fill(y, 1);
  for (const std::string call : {"issue", "write", "read", "sync", "record"}) {
    CAPTURE(call);
    faulty.backend->fail_next(call);
    bool good = other.fill(x, 1).executed_cleanly();
    good = other.write(x, four(1)).executed_cleanly() && good;
    good = other.read(x).ok() && good;
    good = other.sync().ok() && good;
    good = other.record_event().ok() && good;
    CHECK_FALSE(good);
  }
  CHECK(window.state() == WindowState::recording);
  CHECK(window.seal().ok());
}

}  // namespace refrain
