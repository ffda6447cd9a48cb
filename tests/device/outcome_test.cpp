// Rules R3 and R4: writes to several destinations, and launches of kernels that could not be had.
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "device/rig.hpp"
#include "support/faulty_backend.hpp"

namespace refrain {
namespace {

using namespace test;

}  // namespace

ON_BOTH_KINDS(
    "R3: one write goes to several destinations, and one that fails does not stop the others") {
  const Buffer<float> a = rig.floats("a", 0);
  const Buffer<float> short_one = rig.floats("short one", 0);
  const Buffer<float> b = rig.unwritten("b");
  CHECK(rig.stream.write_each({a.view(), b.view()}, four(1)).executed_cleanly());
  CHECK(rig.values(a) == four(1));
  CHECK(rig.values(b) == four(1));

  const View<float> half = short_one.view(1, 2);
  const std::array all{a.view(), half, b.view()};
  const auto outcome = rig.stream.write_each(std::span<const View<float>>(all), four(2));
  REQUIRE(outcome.failed());
  CHECK(outcome.error().kind() == ErrorKind::invalid_argument);
  CHECK(says(outcome.error(), "\"short one\""));
  CHECK(rig.values(a) == four(2));
  CHECK(rig.values(b) == four(2));
  CHECK(rig.carried(half).kind() == ErrorKind::invalid_argument);
  CHECK(rig.clean(short_one.view(0, 1)));
  CHECK(rig.only_heard().error.kind() == ErrorKind::invalid_argument);
  // Written again, it is good again.
  CHECK(rig.stream.write_each({half}, std::vector<float>(2, 3)).executed_cleanly());
  CHECK(rig.clean(short_one));
  CHECK(rig.stream.write_each(std::initializer_list<View<float>>{}, four(1)).executed_cleanly());
}

ON_BOTH_KINDS(
    "R3: of several destinations that fail each carries its own error, and the first is told") {
  const Buffer<float> a = rig.floats("a", 0);
  const std::vector<float> sevens = four(7);
  const Buffer<float> constant =
      rig.device.constant<float>("constant", SharedBytes::copy_of(std::as_bytes(std::span(sevens))))
          .value();
  std::optional<Buffer<float>> gone(rig.floats("gone", 0));
  const View<float> stale = *gone;
  gone.reset();
  const View<float> half = a.view(0, 2);
  const View<float> rest = a.view(2, 2);
  const auto outcome =
      rig.stream.write_each({stale, constant.view(), half, rest}, std::vector<float>(2, 1));
  REQUIRE(outcome.failed());
  CHECK(outcome.error().kind() == ErrorKind::stale_buffer);
  REQUIRE(rig.heard().size() == 2);
  CHECK(rig.heard()[0].error.kind() == ErrorKind::stale_buffer);
  CHECK(rig.heard()[1].error.kind() == ErrorKind::constant_written);
  CHECK(rig.values(a) == four(1));
  CHECK(rig.clean(constant));
}

TEST_CASE("R3: a device that refuses one destination, or throws, still gets the others") {
  const auto kernels = std::make_shared<host::KernelRegistry>();
  const auto backend = std::make_shared<FaultyBackend>(host::make_backend(kernels));
  const Device device(backend, DeviceOptions{true, {}});
  Stream stream = device.stream().value();
  const Buffer<float> a = device.buffer<float>("a", 4).value();
  const Buffer<float> b = device.buffer<float>("b", 4).value();
  SUBCASE("refuses") {
    backend->fail_next("write");
    const auto outcome = stream.write_each({a.view(), b.view()}, four(1));
    REQUIRE(outcome.failed());
    CHECK(outcome.error().kind() == ErrorKind::device_refused);
    CHECK(device.check(a)->kind() == ErrorKind::device_refused);
  }
  SUBCASE("throws") {
    backend->throw_next("write");
    CHECK_THROWS_AS(stream.write_each({a.view(), b.view()}, four(1)), std::bad_alloc);
    CHECK(device.check(a)->kind() == ErrorKind::exception);
  }
  CHECK(stream.read(b).value() == four(1));
}

ON_BOTH_KINDS("R3: in a window each destination is recorded, and the host bytes are frozen once") {
  const Buffer<float> a = rig.floats("a", 0, Role::output);
  const Buffer<float> b = rig.floats("b", 0, Role::output);
  OpenWindow window = rig.stream.record().value();
  CHECK(rig.stream.write_each({a.view(), b.view()}, four(5)).executed_cleanly());
  const Result<Recording> sealed = window.seal();
  REQUIRE(sealed.ok());
  CHECK(sealed->graph().nodes().size() == 2);
  CHECK(sealed->graph().frozen().size() == 1);
  CHECK(sealed->graph().regions().size() == 3);
  CHECK(sealed->graph().writes().size() == 2);

  OpenWindow doomed = rig.stream.record().value();
  CHECK(rig.stream.write_each({a.view(0, 2), b.view()}, four(6)).failed());
  const Result<Recording> refused = doomed.seal();
  REQUIRE_FALSE(refused.ok());
  CHECK(says(refused.error(), "\"a\""));
  rig.stream.fill(a, 0);
  rig.stream.fill(b, 0);
}

ON_BOTH_KINDS(
    "R4: a kernel that could not be had claims what its launch writes and leaves its inputs") {
  const Buffer<float> x = rig.floats("x", 1);
  const Buffer<float> y = rig.floats("y", 0);
  const Buffer<float> z = rig.floats("z", 0);
  const auto missing = rig.device.kernel<Split>("split that there is not");
  REQUIRE_FALSE(missing.ok());
  rig.stream.failed_launch<Split>("split that there is not", grid(4), missing.error(), x, y,
                                  z.view(0, 2), 0U);
  CHECK(rig.only_heard().error.kind() == ErrorKind::kernel_missing);
  CHECK(rig.only_heard().stream == rig.stream.id());
  CHECK(rig.values(x) == four(1));
  CHECK(rig.clean(z.view(2, 2)));
  for (const View<float>& each : {y.view(), z.view(0, 2)}) {
    const Error error = rig.unreadable(each);
    CHECK(says(error, "\"split that there is not\" on stream"));
    CHECK(says(error, "outcome_test.cpp:"));
    CHECK(says(error, "is not registered"));
    CHECK(rig.carried(each).kind() == ErrorKind::kernel_missing);
  }
  CHECK(rig.carried(y).failure() == rig.carried(z).failure());
  rig.forget_heard();
  // What reads them is skipped, and a launch that can be had heals them.
  CHECK(rig.stream.launch(*rig.map, grid(4), y, x, 0U).skipped());
  CHECK(rig.stream.launch(*rig.make, grid(4), x, 0U).executed_cleanly());
  CHECK(rig.stream.launch(*rig.split, grid(4), x, y, z, 0U).executed_cleanly());
  CHECK(rig.values(y) == four(10));
}

ON_BOTH_KINDS(
    "R4: of a failed launch what is updated is claimed, and broken inputs keep their own failure") {
  const Buffer<float> s = rig.floats("s", 1);
  const Buffer<float> x = rig.bad("x", "x broke");
  const Buffer<float> y = rig.floats("y", 1);
  rig.stream.failed_launch<Update>("update", grid(4), broken("no code"), s, 0U);
  CHECK(says(rig.carried(s), "no code"));
  rig.forget_heard();
  rig.stream.failed_launch<Map>("map", grid(4), broken("no code either"), x, y, 0U);
  CHECK(says(rig.only_heard().error, "no code either"));
  CHECK(says(rig.carried(x), "x broke"));
  CHECK(says(rig.carried(y), "no code either"));
  rig.forget_heard();
  rig.stream.failed_launch<Make>("make", grid(0), broken("not told"), x, 0U);  // O11
  CHECK(rig.heard().empty());
  CHECK(says(rig.carried(x), "x broke"));
  // M6: a stale view claims nothing of its own, and what is given besides it is claimed.
  std::optional<Buffer<float>> gone(rig.floats("gone", 0));
  const View<float> stale = *gone;
  gone.reset();
  const Buffer<float> out = rig.floats("out", 0);
  rig.stream.failed_launch<Split>("split", grid(4), broken("nor split"), stale, stale, out, 0U);
  CHECK(says(rig.carried(out), "nor split"));
}

ON_BOTH_KINDS("R4: a failed launch dooms the window, and states that it would have read stay") {
  const Buffer<float> s = rig.floats("s", 1);
  const Buffer<float> y = rig.floats("y", 1);
  OpenWindow window = rig.stream.record().value();
  rig.stream.fill(y, 2);
  rig.stream.failed_launch<Update>("update", grid(4), broken("no code"), s, 0U);
  CHECK(says(rig.only_heard().error, "no code"));
  CHECK(rig.clean(s));
  CHECK(window.state() == WindowState::doomed);
  const Result<Recording> sealed = window.seal();
  REQUIRE_FALSE(sealed.ok());
  CHECK(says(sealed.error(), "\"update\""));
  CHECK(says(sealed.error(), "no code"));
  CHECK(rig.clean(s));  // C11
  CHECK(rig.carried(y).kind() == ErrorKind::window_doomed);
}

TEST_CASE("R4: a failed launch never reaches the device") {
  const auto kernels = std::make_shared<host::KernelRegistry>();
  const auto backend = std::make_shared<FaultyBackend>(host::make_backend(kernels));
  const Device device(backend, DeviceOptions{true, {}});
  for (const StreamKind kind : {StreamKind::inline_, StreamKind::worker}) {
    Stream stream = device.stream(kind).value();
    const Buffer<float> y = device.buffer<float>("y", 4).value();
    const std::uint64_t before = backend->calls();
    stream.failed_launch<Make>("make", grid(4), broken("no code"), y, 0U);
    CHECK(backend->calls() == before);
    CHECK(device.check(y)->kind() == ErrorKind::kernel_failed);
  }
}

}  // namespace refrain
