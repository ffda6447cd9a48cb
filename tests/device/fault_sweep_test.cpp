// B34, B35: in each scenario every call that reaches the backend is refused, and throws, and every
// piece of the user's code fails, and throws, once each (device/fault_world.hpp). Whatever it was:
// nothing crashes, everybody is told that one cause, streams are free, nothing is left behind, and
// the same scenario then works on the same streams and buffers.
#include "device/fault_world.hpp"
#include "device/faulty.hpp"
#include "refrain/load.hpp"
#include "refrain/replay/plan.hpp"
#include "support/temporary_folder.hpp"

namespace refrain::test {
namespace {

/// Writes what a recording marked, so that the next run finds it clean.
void fill_all(World& world, Stream& on, std::initializer_list<const Buffer<float>*> buffers) {
  for (const Buffer<float>* const each : buffers) {
    world.did([&] { return on.fill(*each, 0); });
  }
}

void eager_chain(World& world) {
  Stream& first = world.stream(0);
  Stream& second = world.stream(1);
  const auto& x = world.buffer("x", Role::input);
  const auto& y = world.buffer("y", Role::output);
  const auto& z = world.buffer("z");
  const auto& state = world.buffer("state", Role::state);
  world.did([&] { return first.write(x, four(1)); });
  world.did([&] { return first.fill(state, 0); });
  world.did([&] { return first.launch(*world.map, grid(4), x, y, 0U); });
  world.did([&] { return first.launch(*world.update, grid(4), y, 0U); });
  world.did([&] { return first.launch(*world.update, grid(4), state, 0U); });
  world.did([&] { return first.copy(state.view(0, 2), y.view(0, 2)); });
  world.did([&] { return first.copy(y.view(0, 1), state.view(1, 1)); });
  world.did([&] { return first.fill(y.view(3, 1), 7); });
  world.did([&] { return first.launch(*world.make, grid(4), y.view(2, 1), 0U); });
  const Event event = world.needs(first.record_event());
  world.needs(second.wait(event));
  world.did([&] { return second.launch(*world.map, grid(4), y, z, 0U); });
  if (world.did([&] { return event.wait(); })) {
    world.did([&]() -> Result<void> {
      const Result<bool> reached = event.reached();
      if (!reached.ok()) return reached.error();
      CHECK(*reached);
      return {};
    });
  }
  world.order(second, first);
  world.reads(first, state, {3, 3, 1, 1});
  world.reads(first, y, {3, 3, 10, 7});
  world.reads(second, z, {4, 4, 11, 8});
  world.did([&] { return first.sync(); });
}

/// `to = from + 5` by host work of the program's own.
ScopedOutcome<void> host_step(World& world, Stream& on, const Buffer<float>& from,
                              const Buffer<float>& to) {
  return on.host<In<float>, Out<float>>(
      "host step",
      [&world](std::span<const float> read, std::span<float> written) -> Result<void> {
        for (std::size_t i = 0; i < written.size(); ++i) written[i] = read[i] + 5;
        return world.user();
      },
      from, to);
}

void host_work(World& world) {
  Stream& stream = world.stream(0);
  const auto& x = world.buffer("x", Role::input);
  const auto& y = world.buffer("y", Role::output);
  const auto& z = world.buffer("z", Role::output);
  world.did([&] { return stream.write(x, four(1)); });
  world.did([&] { return host_step(world, stream, x, y); });
  world.reads(stream, y, four(6));
  OpenWindow window = world.needs(stream.record());
  const bool first = world.did([&] { return host_step(world, stream, x, y); });
  const bool second = world.did([&] { return host_step(world, stream, y, z); });
  Instance step = world.needs(instance(world.needs(window.seal({.name = "host steps"}))));
  CHECK((first && second));  // C3
  if (world.did([&] { return step.replay(stream); })) world.reads(stream, z, four(11));
  fill_all(world, stream, {&y, &z});
}

/// `to = from + 5` by native work, through its workspace.
ScopedOutcome<void> native_step(World& world, Stream& on, const Buffer<float>& from,
                                const Buffer<float>& to) {
  return on.native<In<float>, Out<float>>(
      {"native step", 4 * sizeof(float)},
      [&world](const NativeCall& call, DeviceSpan<const float> read,
               DeviceSpan<float> written) -> Result<void> {
        auto* const room = reinterpret_cast<float*>(call.workspace.address);
        for (std::uint64_t i = 0; i < read.size; ++i) room[i] = read.address[i];
        for (std::uint64_t i = 0; i < written.size; ++i) written.address[i] = room[i] + 5;
        return world.user();
      },
      from, to);
}

void native_work(World& world) {
  Stream& stream = world.stream(0);
  const auto& x = world.buffer("x", Role::input);
  const auto& y = world.buffer("y", Role::output);
  const auto& z = world.buffer("z", Role::output);
  world.did([&] { return stream.write(x, four(1)); });
  world.did([&] { return native_step(world, stream, x, y); });
  world.reads(stream, y, four(6));
  OpenWindow window = world.needs(stream.record());
  const bool first = world.did([&] { return native_step(world, stream, x, y); });
  const bool second = world.did([&] { return native_step(world, stream, y, z); });
  Instance step = world.needs(instance(world.needs(window.seal({.name = "native steps"}))));
  CHECK((first && second));  // C3
  if (world.did([&] { return step.replay(stream); })) world.reads(stream, z, four(11));
  fill_all(world, stream, {&y, &z});
}

void nested_scopes(World& world) {
  Stream& stream = world.stream(0);
  const auto& x = world.buffer("x");
  const auto& y = world.buffer("y");
  const auto& z = world.buffer("z");
  world.did([&] { return stream.fill(x, 1); });
  world.did([&] {
    return own_work(stream, {y, z}, [&](Stream&) -> Result<void> {
      REFRAIN_TRY(world.user());
      return own_work(stream, {z},
                      [&](Stream& on) -> Result<void> {
                        REFRAIN_TRY(on.launch(*world.map, grid(4), x, y, 0U).into_result());
                        REFRAIN_TRY(on.launch(*world.map, grid(4), x, z, 0U).into_result());
                        return world.user();
                      })
          .into_result();
    });
  });
  world.reads(stream, y, four(2));
  world.reads(stream, z, four(2));
}

void warm_up(World& world) {
  Stream& stream = world.stream(0);
  const auto& y = world.buffer("y");
  const auto& state = world.buffer("state");
  world.did([&] { return stream.write(state, four(1)); });
  bool tuned = false;
  const auto body = [&]() -> Result<void> {
    if (!tuned) {
      REFRAIN_TRY(stream.first_use("tuning", [&] { return world.user(); }));
      tuned = true;
    }
    REFRAIN_TRY(stream.launch(*world.update, grid(4), state, 0U).into_result());
    return stream.launch(*world.map, grid(4), state, y, 0U).into_result();
  };
  OpenWindow window = world.needs(stream.prepare(body));
  world.reads(stream, y, four(3));
  world.reads(stream, state, four(1));  // C20: no state has advanced
  world.needs(window.begin());
  const bool recorded = world.did(body);
  const bool sealed = world.did([&] { return window.seal(); });
  CHECK(recorded == sealed);  // C3
  fill_all(world, stream, {&y, &state});
}

void first_use(World& world) {
  Stream& stream = world.stream(0);
  const auto& y = world.buffer("y");
  world.did([&] { return stream.first_use("tuning", [&] { return world.user(); }); });
  const Make again = world.needs(world.device.kernel<Make>("make"));
  world.did([&] { return stream.launch(again, grid(4), y, 0U); });
  world.reads(stream, y, four(10));
}

void fork_and_join(World& world) {
  Stream& origin = world.stream(0);
  Stream& left = world.stream(1);
  Stream& right = world.stream(2);
  const auto& x = world.buffer("x");
  const auto& y = world.buffer("y");
  const auto& z = world.buffer("z");
  world.did([&] { return origin.write(x, four(1)); });
  OpenWindow window = world.needs(origin.record());
  bool all = world.did([&] { return origin.launch(*world.update, grid(4), x, 0U); });
  world.order(origin, left);
  world.order(origin, right);
  all = world.did([&] { return left.launch(*world.map, grid(4), x, y, 0U); }) && all;
  all = world.did([&] { return left.write(y.view(0, 1), std::vector<float>{5}); }) && all;
  const auto body = [&](Stream& on) -> Result<void> {
    on.launch(*world.map, grid(4), x, z, 0U);
    return world.user();
  };
  all = world.did([&] { return own_work(right, {z}, body); }) && all;
  world.order(left, origin);
  world.order(right, origin);
  all = world.did([&] { return origin.launch(*world.join, grid(4), y, z, x, 0U); }) && all;
  const bool sealed = world.did([&] { return window.seal(); });
  CHECK(sealed == all);  // C3
  fill_all(world, origin, {&x, &y, &z});
}

void several_windows(World& world) {
  const std::array names{"a", "b", "c"};
  std::vector<OpenWindow> windows;
  std::array<bool, 3> all{true, true, true};
  for (std::size_t at = 0; at < 3; ++at) {
    const auto& buffer = world.buffer(names[at]);
    world.did([&] { return world.stream(at).fill(buffer, 1); });
    windows.push_back(world.needs(world.stream(at).record()));
  }
  for (std::size_t at = 0; at < 3; ++at) {
    Stream& stream = world.stream(at);
    const auto& buffer = world.buffer(names[at]);
    all[at] = world.did([&] { return stream.launch(*world.update, grid(4), buffer, 0U); });
    all[at] = world.did([&] { return stream.write(buffer, four(2)); }) && all[at];
    const auto body = [&](Stream& on) -> Result<void> {
      on.fill(buffer, 3);
      return world.user();
    };
    all[at] = world.did([&] { return own_work(stream, {buffer}, body); }) && all[at];
  }
  for (std::size_t at = 0; at < 3; ++at) {
    const bool sealed = world.did([&] { return windows[at].seal(); });
    if (sealed) CHECK(all[at]);  // C3; memory that is refused dooms the others as well (C17)
    fill_all(world, world.stream(at), {&world.buffer(names[at])});
  }
}

/// A recording of `state += 1`, `y = x + state`, `z = 2`.
Recording record_step(World& world, Stream& stream) {
  const auto& x = world.buffer("x", Role::input);
  const auto& y = world.buffer("y", Role::output);
  const auto& z = world.buffer("z", Role::output);
  const auto& state = world.buffer("state", Role::state);
  world.did([&] { return stream.fill(x, 0); });
  world.did([&] { return stream.fill(state, 5); });
  OpenWindow window = world.needs(stream.record());
  world.did([&] { return stream.launch(*world.update, grid(4), state, 0U); });
  world.did([&] { return stream.launch(*world.join, grid(4), x, state, y, 0U); });
  world.did([&] { return stream.write(z, four(2)); });
  return world.needs(window.seal({.name = "step"}));
}

void replays(World& world) {
  Stream& stream = world.stream(0);
  const auto& x = world.buffer("x", Role::input);
  const auto& state = world.buffer("state", Role::state);
  const Recording recording = record_step(world, stream);
  Instance step = world.needs(instance(recording));
  world.did([&] { return stream.write(x, four(1)); });
  const bool first = world.did([&] { return step.replay(stream); });
  if (first) world.reads(stream, state, four(6));
  world.did([&] { return step.replay(stream); });
  world.did([&] { return step.reset(stream); });
  const bool last = world.did([&] { return step.replay(stream); });
  if (last) world.reads(stream, state, four(1));
  world.reads(stream, world.buffer("y"), four(2));
  world.reads(stream, world.buffer("z"), four(2));
}

void saved_and_loaded(World& world) {
  const TemporaryFolder folder;
  Stream& stream = world.stream(0);
  world.needs(save(record_step(world, stream).graph(), folder.file("step")));
  const Plan plan = world.needs(load(world.device, folder.file("step")));
  Instance step = world.needs(plan.instance());
  const auto& x = world.buffer("my x");
  const auto& y = world.buffer("my y");
  world.needs(step.bind("x", x));
  world.needs(step.bind("y", y));
  world.did([&] { return stream.fill(x, 1); });
  world.did([&] { return step.replay(stream); });
  world.did([&] { return step.reset(stream); });
  world.did([&] { return step.replay(stream); });
  world.reads(stream, y, four(2));
  world.reads(stream, world.needs(step.view<float>("z")), four(2));
  fill_all(world, stream, {&world.buffer("y"), &world.buffer("z"), &world.buffer("state")});
}

void freed_in_the_middle(World& world) {
  Stream& stream = world.stream(0);
  const auto& y = world.buffer("y");
  {
    const auto freed = world.needs(world.device.buffer<float>("freed", 4));
    world.did([&] { return stream.fill(freed, 1); });
    world.did([&] { return stream.launch(*world.map, grid(4), freed, y, 0U); });
  }
  world.did([&] { return stream.launch(*world.update, grid(4), y, 0U); });
  world.reads(stream, y, four(3));
  OpenWindow window = world.needs(stream.record());
  {
    const auto freed = world.needs(world.device.buffer<float>("freed", 4));
    world.did([&] { return stream.fill(freed, 4); });
    world.did([&] { return stream.launch(*world.map, grid(4), freed, y, 0U); });
  }
  const Recording recording = world.needs(window.seal());
  Instance step = world.needs(instance(recording));
  world.did([&] { return step.replay(stream); });
  world.reads(stream, y, four(5));
}

void stream_destroyed_in_the_middle(World& world) {
  Stream& stays = world.stream(0);
  const auto& x = world.buffer("x");
  const auto& y = world.buffer("y");
  const auto& z = world.buffer("z");
  {
    Stream goes = world.needs(world.device.stream(world.kind()));
    world.did([&] { return goes.fill(x, 1); });
    world.did([&] { return goes.launch(*world.map, grid(4), x, y, 0U); });
    world.order(goes, stays);
  }
  world.did([&] { return stays.launch(*world.map, grid(4), y, z, 0U); });
  {
    Stream goes = world.needs(world.device.stream(world.kind()));
    world.order(stays, goes);
    const OpenWindow window = world.needs(goes.record());
    world.did([&] { return goes.write(x, four(2)); });  // abandoned (C10)
  }
  world.reads(stays, y, four(2));
  world.reads(stays, z, four(3));
  fill_all(world, stays, {&x});
}

void late_with_work_queued_behind(World& world) {
  Stream& first = world.stream(0);
  Stream& second = world.stream(1);
  const auto& x = world.buffer("x");
  const auto& y = world.buffer("y");
  const auto& z = world.buffer("z");
  const auto& apart = world.buffer("apart");
  const auto gate = std::make_shared<Gate>();
  struct Opens {
    Gate& gate;
    ~Opens() { gate.open(); }
  };
  const Opens opens{*gate};
  if (world.kind() == StreamKind::inline_) gate->open();
  world.control.does[1] = [gate, &world] {
    gate->wait();
    return world.user();
  };
  world.did([&] { return first.launch(*world.make, grid(4), x, 1U); });
  world.did([&] { return first.launch(*world.map, grid(4), x, y, 2U); });
  world.did([&] { return first.launch(*world.update, grid(4), y, 2U); });
  world.order(first, second);
  world.did([&] { return second.launch(*world.map, grid(4), y, z, 2U); });
  world.did([&] { return second.launch(*world.make, grid(4), apart, 2U); });
  world.did([&] { return second.launch(*world.update, grid(4), z, 2U); });
  gate->open();
  world.reads(second, apart, four(10));
  world.reads(second, z, four(14));
  world.reads(first, y, four(12));
  world.reads(first, x, four(10));
}

}  // namespace

TEST_CASE("B34: whatever goes wrong in an eager chain, it is told and nothing is left behind") {
  sweep(eager_chain);
}
TEST_CASE("B34: whatever goes wrong in host work, it is told and nothing is left behind") {
  sweep(host_work);
}
TEST_CASE("B34: whatever goes wrong in native work, it is told and nothing is left behind") {
  sweep(native_work);
}
TEST_CASE("B34: whatever goes wrong in nested scopes, it is told and nothing is left behind") {
  sweep(nested_scopes);
}
TEST_CASE("B34: whatever goes wrong from warm-up to seal, it is told and nothing is left behind") {
  sweep(warm_up);
}
TEST_CASE("B34: whatever goes wrong with first-use work, it is told and nothing is left behind") {
  sweep(first_use);
}
TEST_CASE("B34: whatever goes wrong in a fork and a join, it is told and nothing is left behind") {
  sweep(fork_and_join);
}
TEST_CASE("B34: whatever goes wrong in windows side by side, it is told and nothing is left") {
  sweep(several_windows);
}
TEST_CASE("B35: whatever goes wrong around replays, it is told and nothing is left behind") {
  sweep(replays);
}
TEST_CASE("B35: whatever goes wrong from a saved file on, it is told and nothing is left behind") {
  sweep(saved_and_loaded);
}
TEST_CASE("B35: whatever goes wrong while buffers are freed, it is told and nothing is left") {
  sweep(freed_in_the_middle);
}
TEST_CASE("B35: whatever goes wrong while a stream is destroyed, it is told and nothing is left") {
  sweep(stream_destroyed_in_the_middle);
}
TEST_CASE("B35: whatever goes wrong late, work queued behind it is held back and nothing is left") {
  sweep(late_with_work_queued_behind);
}

TEST_CASE("C20: a warm-up that could not save a state is refused with the device's error") {
  for (const StreamKind kind : {StreamKind::inline_, StreamKind::worker}) {
    World world(kind);
    Stream& stream = world.stream(0);
    const auto& state = world.buffer("state", Role::state);
    world.backend->fail(1);  // the read that saves
    const auto prepared = stream.prepare([&] { stream.launch(*world.update, grid(4), state, 0U); });
    REQUIRE_FALSE(prepared.ok());
    CHECK(prepared.error().kind() == ErrorKind::device_refused);
    CHECK(says(prepared.error(), "While warming up: a state may have advanced."));
    CHECK(stream.record().ok());
  }
}

TEST_CASE("faults: work that the device would not take claims its bytes with the device's error") {
  for (const StreamKind kind : {StreamKind::inline_, StreamKind::worker}) {
    World world(kind);
    Stream& stream = world.stream(0);
    const auto& y = world.buffer("y");
    world.backend->fail_next("issue");
    const auto refused = stream.fill(y, 1);
    REQUIRE(refused.failed());
    CHECK(refused.error().kind() == ErrorKind::device_refused);
    const auto carried = world.device.check(y);
    REQUIRE(carried.has_value());
    CHECK(carried->kind() == ErrorKind::device_refused);
    CHECK(stream.sync().ok());  // it never was in flight
    CHECK(stream.fill(y, 1).executed_cleanly());
    CHECK(stream.read(y).ok());
  }
}

TEST_CASE("faults: a backend that throws while it takes work leaves the stream usable") {
  for (const StreamKind kind : {StreamKind::inline_, StreamKind::worker}) {
    World world(kind);
    Stream& stream = world.stream(0);
    const auto& y = world.buffer("y");
    world.backend->throw_next("issue");
    CHECK_THROWS_AS(stream.fill(y, 1), std::bad_alloc);
    const auto carried = world.device.check(y);
    REQUIRE(carried.has_value());
    CHECK(carried->kind() == ErrorKind::exception);
    CHECK(stream.sync().ok());
    CHECK(stream.fill(y, 1).executed_cleanly());
    const auto got = stream.read(y);
    REQUIRE(got.ok());
    CHECK(*got == four(1));
  }
}

}  // namespace refrain::test
