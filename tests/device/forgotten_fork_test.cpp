// A fork that was forgotten: a stream that should have joined a window runs its work at once, on
// the bytes of before, and the graph lacks it. Three nets catch that (decision 0008): the warm-up
// (C15), the bytes (C9) and scratch that nobody fills.
#include <doctest/doctest.h>

#include <string>

#include "rig.hpp"

namespace refrain::test {
namespace {

std::string number(const Stream& stream) { return std::to_string(stream.id().number); }

}  // namespace

ON_BOTH_KINDS("C15: a stream that the warm-up heard and that did not join the window dooms it") {
  const Buffer<float> x = rig.floats("x", 1);
  const Buffer<float> y = rig.floats("y", 1);
  Stream side = rig.another();
  bool forgets = false;
  const auto body = [&] {
    rig.stream.launch(*rig.update, grid(4), x, 0U);
    if (!forgets) REQUIRE(side.wait(rig.stream.record_event().value()).ok());
    side.fill(y, 2);
    if (!forgets) REQUIRE(rig.stream.wait(side.record_event().value()).ok());
  };
  for (const bool last : {false, true}) {
    CAPTURE(last);
    forgets = false;
    OpenWindow window = rig.stream.prepare(body).value();
    forgets = last;
    REQUIRE(window.begin().ok());
    body();
    const auto sealed = window.seal();
    REQUIRE(sealed.ok() == !last);
    if (last) {
      CHECK(sealed.error().kind() == ErrorKind::window_doomed);
      CHECK(says(sealed.error(), "because the warm-up ran \"fill\" ("));
      CHECK(
          says(sealed.error(), " on stream " + number(side) + ", which did not join the window."));
    }
    static_cast<void>(side.sync());
    rig.stream.fill(x, 1);
    rig.stream.fill(y, 1);
    rig.settle();
  }
}

ON_BOTH_KINDS(
    "C9: work of the thread that is not recorded and reads what its window writes is refused") {
  const Buffer<float> hidden = rig.floats("hidden", 1);
  const Buffer<float> gated = rig.floats("gated", 1);
  const Buffer<float> y = rig.floats("y", 1);
  Stream side = rig.another();
  OpenWindow window = rig.stream.record().value();
  rig.stream.launch(*rig.make, grid(4), hidden.view(0, 2), 0U);
  const auto refused = [&](auto&& work) {
    const auto outcome = work();
    REQUIRE(outcome.failed());
    CHECK(outcome.error().kind() == ErrorKind::unordered);
    CHECK(says(outcome.error(),
               "bytes [0, 8) of \"hidden\", which the window of stream " + number(rig.stream)));
    CHECK(says(outcome.error(), "Wait on an event of that window first"));
    CHECK(rig.carried(gated).kind() == ErrorKind::unordered);
    side.fill(gated, 1);
  };
  refused([&] { return side.launch(*rig.map, grid(4), hidden, gated, 0U); });
  refused([&] { return side.copy(gated, hidden); });
  refused([&] {
    return side.host<In<float>, Out<float>>(
        HostWork{"gate"}, [](std::span<const float>, std::span<float>) {}, hidden, gated);
  });
  CHECK(rig.control.runs(0) == 0);
  CHECK(side.launch(*rig.map, grid(4), hidden.view(2, 2), y.view(0, 2), 0U).executed_cleanly());
  static_cast<void>(side.sync());
  CHECK(side.read(hidden).value() == four(1));  // C8: the bytes are what they were
  std::thread([&] {
    Stream serving = rig.another();
    CHECK(serving.launch(*rig.map, grid(4), hidden, y, 0U).executed_cleanly());
    static_cast<void>(serving.sync());
  }).join();
  REQUIRE(side.wait(rig.stream.record_event().value()).ok());
  CHECK(side.launch(*rig.map, grid(4), hidden, gated, 0U).executed_cleanly());  // it has joined
  REQUIRE(rig.stream.wait(side.record_event().value()).ok());
  CHECK(window.seal().ok());
  for (const Buffer<float>* each : {&hidden, &gated}) rig.stream.fill(*each, 0);
  rig.settle();
  CHECK(side.launch(*rig.map, grid(4), hidden, gated, 0U).executed_cleanly());
  static_cast<void>(side.sync());
}

ON_BOTH_KINDS("C9: work that only writes what a window writes, or reads what it reads, runs") {
  const Buffer<float> x = rig.floats("x", 1);
  const Buffer<float> y = rig.floats("y", 1);
  const Buffer<float> z = rig.floats("z", 1);
  Stream side = rig.another();
  OpenWindow window = rig.stream.record().value();
  rig.stream.launch(*rig.map, grid(4), x, y, 0U);
  CHECK(side.launch(*rig.map, grid(4), x, z, 0U).executed_cleanly());
  CHECK(side.fill(y, 3).executed_cleanly());
  static_cast<void>(side.sync());
  window.abort();
  CHECK(side.launch(*rig.map, grid(4), y, z, 0U).executed_cleanly());
  static_cast<void>(side.sync());
}

ON_BOTH_KINDS("scratch that is read before anything in the graph writes it refuses the seal") {
  const Buffer<float> gated = rig.unwritten("gated", Role::scratch);
  const Buffer<float> y = rig.floats("y", 1);
  OpenWindow window = rig.stream.record().value();
  rig.stream.fill(gated.view(0, 2), 1);
  rig.stream.launch(*rig.map, grid(4), gated.view(0, 2), y, 0U);
  rig.stream.launch(*rig.map, grid(4), gated, y, 0U);
  const auto sealed = window.seal();
  REQUIRE_FALSE(sealed.ok());
  CHECK(sealed.error().kind() == ErrorKind::invalid_argument);
  CHECK(sealed.error().message() ==
        "Scratch \"gated\" is read by node 2, \"map\", before anything in the graph writes it.");
}

}  // namespace refrain::test
