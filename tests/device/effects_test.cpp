// Work whose effects are not all declared keeps its order: what a graph's nodes follow, through
// streams, events, and kernels that are registered with effects.
#include "device/rig.hpp"

namespace refrain {
namespace {

using namespace test;

using Edges = std::vector<std::vector<std::uint32_t>>;

constexpr auto kNothing = [] {};

Edges edges_of(const Result<Recording>& sealed) {
  REQUIRE_MESSAGE(sealed.ok(), sealed.error().text());
  Edges edges;
  for (const Node& node : sealed->graph().nodes()) {
    const auto found = sealed->graph().dependencies(node);
    edges.emplace_back(found.begin(), found.end());
  }
  return edges;
}

void order(Stream& first, Stream& then) { REQUIRE(then.wait(first.record_event().value()).ok()); }

}  // namespace

ON_BOTH_KINDS("opaque work of one stream keeps its order, and other work stays beside it") {
  const Buffer<float> y = rig.unwritten("y");
  OpenWindow window = rig.stream.record().value();
  rig.stream.host("a", kNothing);
  rig.stream.fill(y, 1);
  rig.stream.host("b", kNothing);
  rig.stream.host({"apart", Effects::none()}, kNothing);
  rig.stream.host<InOut<float>>(
      "c", [](auto) {}, y);
  CHECK(edges_of(window.seal()) == Edges{{}, {}, {0}, {}, {1, 2}});
}

ON_BOTH_KINDS(
    "work that names what it uses is ordered with others that use it, and with opaque work") {
  OpenWindow window = rig.stream.record().value();
  rig.stream.host({"a", Effects::uses("rng")}, kNothing);
  rig.stream.host({"b", Effects::uses("log")}, kNothing);
  rig.stream.host({"c", Effects::uses("rng")}, kNothing);
  rig.stream.host("d", kNothing);
  rig.stream.host({"e", Effects::uses("log")}, kNothing);
  rig.stream.host({"f", Effects::uses("log")}, kNothing);
  rig.stream.host("g", kNothing);
  CHECK(edges_of(window.seal()) == Edges{{}, {}, {0}, {1, 2}, {1, 3}, {4}, {5}});
}

ON_BOTH_KINDS("opaque work of two streams is ordered by events alone") {
  Stream other = rig.another();
  OpenWindow window = rig.stream.record().value();
  rig.stream.host("a", kNothing);
  order(rig.stream, other);
  other.host("b", kNothing);
  rig.stream.host("c", kNothing);
  order(other, rig.stream);
  rig.stream.host("d", kNothing);
  CHECK(edges_of(window.seal()) == Edges{{}, {0}, {0}, {1, 2}});
}

ON_BOTH_KINDS(
    "C13: two streams that use one resource with no event between refuse the seal, both named") {
  Stream other = rig.another();
  for (const bool ordered : {false, true}) {
    CAPTURE(ordered);
    OpenWindow window = rig.stream.record().value();
    order(rig.stream, other);
    rig.stream.host({"left", Effects::uses("rng")}, kNothing);
    if (ordered) order(rig.stream, other);
    other.host({"right", Effects::uses("rng")}, kNothing);
    order(other, rig.stream);
    const Result<Recording> sealed = window.seal();
    CHECK(sealed.ok() == ordered);
    if (ordered) {
      CHECK(edges_of(sealed) == Edges{{}, {0}});
      continue;
    }
    CHECK(sealed.error().kind() == ErrorKind::window_doomed);
    CHECK(says(sealed.error(),
               "two of its nodes use \"rng\" and no event orders them: \"left\" on "));
    CHECK(says(sealed.error(), "and \"right\" on stream " + std::to_string(other.id().number)));
  }
}

ON_BOTH_KINDS("a kernel has the effects that it is registered with, also in a graph") {
  rig.device.kernels().add<Make>(
      "roll", [](std::span<float>, std::uint32_t) {}, 1, Effects::uses("rng"));
  rig.device.kernels().add<Make>(
      "spill", [](std::span<float>, std::uint32_t) {}, 2, Effects::opaque());
  const auto roll = rig.device.kernel<Make>("roll").value();
  const auto spill = rig.device.kernel<Make>("spill", 2).value();
  CHECK(roll.loaded().signature->effects == Effects::uses("rng"));
  CHECK(text(*roll.loaded().signature) == "roll/1(out f32*, u32) using \"rng\"");
  CHECK(text(*spill.loaded().signature) == "spill/2(out f32*, u32) opaque");
  const Buffer<float> x = rig.unwritten("x");
  const Buffer<float> y = rig.unwritten("y");
  const Buffer<float> z = rig.unwritten("z");
  OpenWindow window = rig.stream.record().value();
  rig.stream.launch(roll, grid(4), x, 0U);
  rig.stream.launch(*rig.make, grid(4), y, 0U);
  rig.stream.launch(spill, grid(4), z, 0U);
  rig.stream.launch(roll, grid(4), y, 0U);
  rig.stream.host({"reseed", Effects::uses("rng")}, kNothing);
  CHECK(edges_of(window.seal()) == Edges{{}, {}, {0}, {0, 1, 2}, {3}});
}

}  // namespace refrain
