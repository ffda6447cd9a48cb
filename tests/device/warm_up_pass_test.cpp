// What a pass of a warm-up hears: all work of its thread, of whatever kind and on whatever stream,
// so that no state advances (C20) and none of it goes wrong unnoticed.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "rig.hpp"

namespace refrain::test {
namespace {

/// Native work of the program's own that adds one to `state`, which only `launching` says it reads.
ScopedOutcome<void> native(Rig& rig, Stream& on, const Buffer<float>& state) {
  WriteSet writes = on.write_set();
  writes.add(state.view().binding());
  const std::vector<BufferBinding> reads{state.view().binding()};
  return ExecuteScope<Stream>::launching(on, intern_kernel_name("native"), reads, std::move(writes),
                                         Where::here())
      .execute([&](Stream& inside) -> Result<void> {
        // What it launches only writes; that the bytes were read is known from its own scope.
        return inside.launch(*rig.make, grid(4), state, 0U).into_result();
      });
}

}  // namespace

ON_BOTH_KINDS("C20: native work in a body is heard") {
  const Buffer<float> state = rig.floats("state", 3, Role::state);
  auto window =
      rig.stream.prepare([&] { CHECK(native(rig, rig.stream, state).executed_cleanly()); });
  REQUIRE(window.ok());
  CHECK(rig.values(state) == four(3));
}

ON_BOTH_KINDS("C20: a body is heard on streams that have a prepared window of their own") {
  const Buffer<float> state = rig.floats("state", 3, Role::state);
  Stream other = rig.another();
  {
    OpenWindow own = other.prepare().value();  // before the body
    auto window = rig.stream.prepare([&] { other.launch(*rig.update, grid(4), state, 0U); });
    REQUIRE(window.ok());
    own.abort();
    CHECK(rig.values(state) == four(3));
  }
  auto window = rig.stream.prepare([&] {
    OpenWindow own = other.prepare().value();  // or inside of it
    other.launch(*rig.update, grid(4), state, 0U);
    own.abort();
  });
  REQUIRE(window.ok());
  CHECK(rig.values(state) == four(3));
}

ON_BOTH_KINDS("C20: what a body records is no work of the pass") {
  const Buffer<float> state = rig.floats("state", 3, Role::state);
  Stream other = rig.another();
  auto window = rig.stream.prepare([&] {
    OpenWindow own = other.record().value();
    other.launch(*rig.update, grid(4), state, 0U);
    other.failed_write(state, broken("not to be"));
    own.abort();
  });
  REQUIRE(window.ok());
  CHECK(rig.values(state) == four(3));
}

ON_BOTH_KINDS("C20: the body of a warm-up begins no other one") {
  const Buffer<float> state = rig.floats("state", 3, Role::state);
  Stream other = rig.another();
  auto window = rig.stream.prepare([&]() -> Result<void> {
    rig.stream.launch(*rig.look, grid(4), state, 0U);
    const auto inner = other.prepare([&] { other.launch(*rig.make, grid(4), state, 0U); });
    REQUIRE_FALSE(inner.ok());
    CHECK(inner.error().kind() == ErrorKind::wrong_state);
    CHECK(says(inner.error(), "by the body of another warm-up, that of stream " +
                                  std::to_string(rig.stream.id().number)));
    return {};
  });
  REQUIRE(window.ok());
  CHECK(rig.control.runs(0) == 1);  // the look, and nothing of the inner body
  CHECK(rig.values(state) == four(3));
  CHECK(other.record().ok());
}

ON_BOTH_KINDS("C20: work that fails in a body which drops the outcome refuses the warm-up") {
  const Buffer<float> state = rig.floats("state", 1, Role::state);
  const Buffer<float> y = rig.floats("y", 1);
  rig.control.does[1] = fails("out of luck");
  Stream other = rig.another();
  for (Stream* const on : {&rig.stream, &other}) {
    const auto window = rig.stream.prepare([&] {
      rig.stream.launch(*rig.update, grid(4), state, 0U);
      on->launch(*rig.make, grid(4), y, 1U);
    });
    REQUIRE_FALSE(window.ok());
    CHECK(window.error().kind() == ErrorKind::kernel_failed);
    CHECK(says(window.error(), "out of luck"));
    CHECK(says(window.error(),
               "While warming up: \"make\" on stream " + std::to_string(on->id().number)));
    CHECK(rig.values(state) == four(1));
    rig.settle();
    static_cast<void>(other.sync());
    rig.stream.fill(y, 1);
    CHECK(rig.stream.record().ok());
    static_cast<void>(rig.stream.sync());
  }
}

ON_BOTH_KINDS("C20: a state that failed work of a body would have advanced is put back") {
  const Buffer<float> state = rig.floats("state", 1, Role::state);
  rig.control.does[1] = fails("half way");
  const auto window =
      rig.stream.prepare([&] { rig.stream.launch(*rig.update, grid(4), state, 1U); });
  REQUIRE_FALSE(window.ok());
  CHECK(rig.values(state) == four(1));
  rig.settle();
}

ON_BOTH_KINDS("C20: work that is skipped in a body refuses the warm-up, and states are put back") {
  const Buffer<float> bad = rig.bad("bad", "it never came");
  const Buffer<float> state = rig.floats("state", 1, Role::state);
  const Buffer<float> y = rig.floats("y", 1);
  const auto window = rig.stream.prepare([&] {
    rig.stream.launch(*rig.look, grid(4), state, 0U);
    rig.stream.launch(*rig.map, grid(4), bad, state, 0U);
  });
  REQUIRE_FALSE(window.ok());
  CHECK(says(window.error(), "it never came"));
  CHECK(window.error().failure() == rig.carried(bad).failure());
  CHECK(rig.values(state) == four(1));
}

ON_BOTH_KINDS(
    "C20: a launch that is refused in a body refuses the warm-up, and states are put back") {
  const Buffer<float> state = rig.floats("state", 1, Role::state);
  const Buffer<float> y = rig.floats("y", 1);
  View<float> gone;
  {
    const Buffer<float> soon = rig.floats("soon", 1);
    gone = soon.view();
  }
  const auto window = rig.stream.prepare([&] {
    rig.stream.launch(*rig.look, grid(4), state, 0U);
    rig.stream.launch(*rig.join, grid(4), gone, state, state, 0U);
  });
  REQUIRE_FALSE(window.ok());
  CHECK(window.error().kind() == ErrorKind::stale_buffer);
  CHECK(rig.values(state) == four(1));
}

ON_BOTH_KINDS("C20: what failed before a warm-up, or beside it, is none of its failures") {
  const Buffer<float> y = rig.floats("y", 1);
  const Buffer<float> z = rig.floats("z", 1);
  rig.control.does[1] = fails("long ago");
  rig.stream.launch(*rig.make, grid(4), z, 1U);
  Stream beside = rig.another();
  auto window = rig.stream.prepare([&] {
    rig.stream.launch(*rig.make, grid(4), y, 0U);
    std::thread([&] {
      const Buffer<float> own = rig.device.buffer<float>("own", 4).value();
      beside.launch(*rig.make, grid(4), own, 1U);
      static_cast<void>(beside.sync());
    }).join();
  });
  CHECK(window.ok());
  rig.settle();
}

}  // namespace refrain::test
