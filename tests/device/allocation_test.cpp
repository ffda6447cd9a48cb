// What a launch costs the heap: nothing, on an inline stream, once its pools are warm; and what its
// exits cost, however it ends.
#include "device/rig.hpp"
#include "support/allocations.hpp"

namespace refrain {
namespace {

using namespace test;

}  // namespace

TEST_CASE("O8: a clean launch, copy, fill and write allocate nothing once the stream is warm") {
  for (const bool something_bad : {false, true}) {
    CAPTURE(something_bad);
    Rig rig(StreamKind::inline_);
    const Buffer<float> x = rig.floats("x", 1);
    const Buffer<float> y = rig.floats("y", 1);
    const Buffer<float> z = rig.floats("z", 1);
    std::optional<Buffer<float>> bad;
    if (something_bad) bad.emplace(rig.bad("bad", "a failure lives, so scopes go the long way"));
    const std::vector<float> values = four(1);
    const auto work = [&] {
      rig.stream.launch(*rig.map, grid(4), x, y, 0U);
      rig.stream.launch(*rig.split, grid(4), x, y, z, 0U);
      rig.stream.launch(*rig.update, grid(4), y, 0U);
      rig.stream.copy(z, y);
      rig.stream.fill(z, 2);
      rig.stream.write(x, values);
    };
    work();
    CHECK(allocations_in([&] {
            for (int i = 0; i < 10; ++i) work();
          }) == 0);
  }
}

TEST_CASE("O8: a launch that fails, throws or is skipped allocates nothing of its own") {
  Rig rig(StreamKind::inline_);
  const Device quiet(rig.device.core()->backend_owner(), DeviceOptions{true, {}});
  Stream stream = quiet.stream().value();
  const auto map = quiet.kernel<Map>("map").value();
  const Buffer<float> x = quiet.buffer<float>("x", 4).value();
  const Buffer<float> y = quiet.buffer<float>("y", 4).value();
  const Buffer<float> z = quiet.buffer<float>("z", 4).value();
  const Error error = broken("made before");
  rig.control.does[1] = [&]() -> Result<void> { return error; };
  const auto work = [&] {
    stream.fill(x, 1);
    stream.launch(map, grid(4), x, y, 1U);
    stream.launch(map, grid(4), y, z, 0U);  // skipped
    stream.fill(y, 1);
    stream.fill(z, 1);
  };
  for (int warm = 0; warm < 3; ++warm) work();
  CHECK(allocations_in(work) == 0);
}

TEST_CASE("M8: check allocates nothing when there is nothing to say") {
  Rig rig(StreamKind::inline_);
  const Buffer<float> x = rig.floats("x", 1);
  CHECK(allocations_in([&] { CHECK(rig.clean(x)); }) <= allocations_in([] { CHECK(true); }));
}

}  // namespace refrain
