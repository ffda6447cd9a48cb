// Stream::scope: work of several parts as one.
#include "device/rig.hpp"

namespace refrain {
namespace {

using namespace test;

}  // namespace

ON_BOTH_KINDS("E2: a scope of the program's own that fails claims all that it names") {
  const Buffer<float> x = rig.floats("x", 1);
  const Buffer<float> y = rig.floats("y", 1);
  const auto outcome = rig.stream.scope("block", {x, y.view(0, 2)}, [&](Stream& stream) {
    stream.launch(*rig.make, grid(4), x, 0U);
    return Result<void>(broken("the second half never came"));
  });
  CHECK(outcome.failed());
  CHECK(rig.carried(x).message() == "the second half never came");
  CHECK(rig.carried(y.view(0, 2)).message() == "the second half never came");
  CHECK(rig.clean(y.view(2, 2)));
  CHECK(says(rig.unreadable(y), "\"block\" on stream"));
}

ON_BOTH_KINDS("E1: a scope of the program's own answers what its body answers") {
  const Buffer<float> y = rig.bad("y", "it was bad before");
  const auto outcome = rig.stream.scope("block", {y}, [&](Stream& stream) -> Result<int> {
    CHECK(rig.carried(y).kind() == ErrorKind::torn_down);
    REFRAIN_TRY(stream.launch(*rig.make, grid(4), y, 0U).into_result());
    return 7;
  });
  REQUIRE(outcome.executed_cleanly());
  CHECK(outcome.value() == 7);
  CHECK(rig.values(y) == four(10));
}

ON_BOTH_KINDS("O6: work in a scope cannot read what the scope is to write") {
  const Buffer<float> x = rig.floats("x", 1);
  const Buffer<float> y = rig.floats("y", 1);
  rig.stream.scope("block", {x}, [&](Stream& stream) -> Result<void> {
    CHECK(stream.launch(*rig.make, grid(4), x, 0U).executed_cleanly());
    CHECK(stream.launch(*rig.map, grid(4), x, y, 0U).skipped());
    return {};
  });
  CHECK(rig.clean(x));
  CHECK(says(rig.unreadable(y), "\"block\" on stream"));
}

ON_BOTH_KINDS(
    "M6: a scope that may not claim one of its writes claims the others and runs nothing") {
  const Buffer<float> x = rig.floats("x", 1);
  const auto weights =
      rig.device.constant<float>("w", SharedBytes::copy_of(std::vector<std::byte>(16))).value();
  View<float> stale;
  {
    const Buffer<float> gone = rig.floats("gone", 1);
    stale = gone.view();
  }
  const auto body = [](Stream&) -> Result<void> {
    FAIL("a refused body ran");
    return {};
  };
  for (const View<float>& bad : {stale, weights.view(), x.view(3, 2)}) {
    const auto outcome = rig.stream.scope("block", {x, bad}, body);
    REQUIRE(outcome.failed());
    CHECK(says(outcome.error(), "While opening \"block\" ("));
    CHECK(says(outcome.error(), "at write 2 of 2."));
    CHECK(rig.carried(x).message() == outcome.error().message());
    CHECK(rig.stream.fill(x, 1).executed_cleanly());
    rig.settle();
  }
  CHECK(rig.clean(weights));
}

ON_BOTH_KINDS("C3, C16: a scope of the program's own is recorded if it writes what it claims") {
  const Buffer<float> x = rig.floats("x", 1);
  for (const bool all : {true, false}) {
    OpenWindow window = rig.stream.record().value();
    rig.stream.scope("block", {x}, [&](Stream& stream) -> Result<void> {
      stream.launch(*rig.make, grid(4), all ? x.view() : x.view(0, 2), 0U);
      return {};
    });
    CHECK(window.seal().ok() == all);
    CHECK(rig.stream.fill(x, 1).executed_cleanly());
    rig.settle();
  }
}

TEST_CASE("E11: a scope of the program's own that conflicts with unordered work is refused") {
  Rig rig(StreamKind::worker);
  Stream other = rig.another();
  const Buffer<float> x = rig.floats("x", 1);
  CHECK(rig.stream.launch(*rig.make, grid(4), x, 0U).executed_cleanly());
  const auto outcome = other.scope("block", {x}, [](Stream&) -> Result<void> { return {}; });
  REQUIRE(outcome.failed());
  CHECK(outcome.error().kind() == ErrorKind::unordered);
}

TEST_CASE("E11, E9: parts of a scope of the program's own may be on other streams than it") {
  Rig rig(StreamKind::worker);
  Stream other = rig.another();
  const Buffer<float> x = rig.floats("x", 1);
  const auto outcome = rig.stream.scope("block", {x}, [&](Stream&) -> Result<void> {
    REFRAIN_TRY(other.launch(*rig.make, grid(4), x.view(0, 2), 0U).into_result());
    return other.sync();
  });
  CHECK(outcome.executed_cleanly());
  CHECK(other.launch(*rig.make, grid(4), x.view(2, 2), 0U).executed_cleanly());
}

}  // namespace refrain
