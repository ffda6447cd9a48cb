// E6: code that must not call its device. The call is refused and changes nothing, and the work
// whose code made it fails, so that a call which did not happen is never taken for one that did.
#include <memory>

#include "device/rig.hpp"
#include "refrain/replay/instance.hpp"
#include "refrain/replay/plan.hpp"

namespace refrain {
namespace {

using namespace test;

/// A call that waits or issues work, and what the refusal calls it. It answers its error, if it
/// can.
struct ForbiddenCall {
  const char* says;
  std::function<std::optional<Error>()> make;
};

template <class T>
std::optional<Error> error_of(const Result<T>& result) {
  return result.ok() ? std::nullopt : std::optional<Error>(result.error());
}
template <class T>
std::optional<Error> error_of(ScopedOutcome<T> outcome) {
  return error_of(std::move(outcome).into_result());
}

/// A device with everything that can be called, by a stream of its own and of the given kind.
struct Scene {
  explicit Scene(StreamKind kind) : rig(kind) {
    OpenWindow window = rig.stream.record().value();
    rig.stream.launch(*rig.update, grid(4), state, 0U);
    recording.emplace(window.seal().value());
    step.emplace(Plan::prepare(rig.device, recording->graph()).value().instance().value());
    event.emplace(rig.stream.record_event().value());
  }

  [[nodiscard]] std::vector<ForbiddenCall> calls() {
    Stream& on = rig.stream;
    return {
        {"cannot launch", [&] { return error_of(on.launch(*rig.make, grid(4), other, 9U)); }},
        {"cannot launch", [&] { return error_of(on.launch(*rig.make, extent, other, 9U)); }},
        {"cannot copy", [&] { return error_of(on.copy(other, y)); }},
        {"cannot fill", [&] { return error_of(on.fill(other, 1)); }},
        {"cannot write", [&] { return error_of(on.write(other, four(1))); }},
        {"cannot write", [&] { return error_of(on.write_each({other.view()}, four(1))); }},
        {"cannot take host work", [&] { return error_of(on.host("more", [&] { ++ran; })); }},
        {"cannot open a scope",
         [&] {
           return error_of(on.scope("parts", {other}, [&](Stream&) -> Result<void> {
             ++ran;
             return {};
           }));
         }},
        {"cannot read", [&] { return error_of(on.read(other)); }},
        {"cannot read",
         [&] {
           std::vector<float> to(4);
           return error_of(on.read_into(other.view(), to));
         }},
        {"cannot sync", [&] { return error_of(on.sync()); }},
        {"cannot record an event", [&] { return error_of(on.record_event()); }},
        {"cannot wait on an event", [&] { return error_of(on.wait(*event)); }},
        {"cannot open a window", [&] { return error_of(on.record()); }},
        {"cannot open a window", [&] { return error_of(on.prepare()); }},
        {"cannot open a window", [&] { return error_of(on.prepare([] {})); }},
        {"cannot do first-use work",
         [&] {
           return error_of(on.first_use("tuning", [&]() -> Result<void> {
             ++ran;
             return {};
           }));
         }},
        {"cannot be synced", [&] { return error_of(rig.device.sync()); }},
        {"cannot be waited for by the host", [&] { return error_of(event->wait()); }},
        {"cannot replay", [&] { return error_of(step->replay(on)); }},
        {"cannot reset an instance", [&] { return error_of(step->reset(on)); }},
        {"cannot be bound", [&] { return error_of(step->bind("state", state)); }},
        {"cannot launch",
         [&]() -> std::optional<Error> {
           on.failed_launch<Make>("make", grid(4), broken("no kernel"), other, 9U);
           return std::nullopt;
         }},
        {"cannot write",
         [&]() -> std::optional<Error> {
           on.failed_write(other, broken("it never came"));
           return std::nullopt;
         }},
    };
  }
  /// Whether nothing of what was called has happened.
  void nothing_happened() {
    CHECK(ran == 0);
    CHECK(rig.control.runs(9) == 0);
    CHECK(rig.clean(other));
    CHECK(rig.values(other) == four(5));
  }

  Rig rig;
  Buffer<float> y = rig.floats("y", 1);
  Buffer<float> other = rig.floats("other", 5);
  Buffer<float> state = rig.floats("state", 0, Role::state);
  Buffer<std::uint32_t> words = rig.device.buffer<std::uint32_t>("words", 6).value();
  View<std::uint32_t> extent = words.view();
  std::optional<Recording> recording;
  std::optional<Instance> step;
  std::optional<Event> event;
  std::atomic<int> ran{0};
};

void refuses(Scene& scene, const ForbiddenCall& call, const std::optional<Error>& got,
             const std::string& inside) {
  CAPTURE(call.says);
  const Error carried = scene.rig.carried(scene.y);
  for (const Error& error : {got.value_or(carried), carried}) {
    CHECK(error.kind() == ErrorKind::wrong_state);
    CHECK_MESSAGE(says(error, call.says), error.text());
    CHECK_MESSAGE(says(error, inside), error.text());
    CHECK_MESSAGE(says(error, "forbidden_calls_test.cpp:"), error.text());
  }
}

}  // namespace

TEST_CASE("E6: work on a worker stream that calls the device fails, and the call does nothing") {
  Scene scene(StreamKind::worker);
  for (const ForbiddenCall& call : scene.calls()) {
    for (const bool host : {false, true}) {
      std::optional<Error> got;
      scene.rig.control.does[1] = [&]() -> Result<void> {
        got = call.make();
        return {};
      };
      if (host) {
        scene.rig.stream.host<Out<float>>(
            "make", [&](std::span<float>) { static_cast<void>(scene.rig.control.run(1)); },
            scene.y);
      } else {
        scene.rig.stream.launch(*scene.rig.make, grid(4), scene.y, 1U);
      }
      CHECK(scene.rig.stream.sync().error().kind() == ErrorKind::wrong_state);
      refuses(scene, call, got,
              "inside \"make\" on stream " + std::to_string(scene.rig.stream.id().number) + " (");
      scene.nothing_happened();
    }
  }
}

ON_BOTH_KINDS("E6: a node of a replay that calls the device fails it, and the call does nothing") {
  Scene scene(rig.kind());
  std::optional<Error> got;
  std::function<std::optional<Error>()> make;
  OpenWindow window = scene.rig.stream.record().value();
  scene.rig.stream.host<Out<float>>(
      "make", [&](std::span<float>) { got = make(); }, scene.y);
  const Recording recording = window.seal().value();
  Instance replayed = instance(recording).value();
  for (const ForbiddenCall& call : scene.calls()) {
    got.reset();
    make = call.make;
    static_cast<void>(replayed.replay(scene.rig.stream));
    scene.rig.settle();
    refuses(scene, call, got, scene.rig.worker() ? "a worker's thread runs" : ", a replay.");
    scene.nothing_happened();
  }
}

ON_BOTH_KINDS("E6: listeners that call the device are refused, and the call does nothing") {
  std::function<std::optional<Error>()> make;
  std::optional<Error> got;
  DeviceOptions options;
  const auto hears = [&] {
    if (make) got = std::exchange(make, nullptr)();
  };
  const char* listener = nullptr;
  SUBCASE("on_failure") {
    listener = "the listener on_failure";
    options.on_failure = [&](StreamId, const Error&) { hears(); };
  }
  SUBCASE("on_unread") {
    listener = "the listener on_unread";
    options.on_unread = [&](const UnreadFailure&) { hears(); };
  }
  const host::Device device(options);
  Stream stream = device.stream(rig.kind()).value();
  Stream other = device.stream().value();
  const auto y = device.buffer<float>("y", 4).value();
  const auto z = device.buffer<float>("z", 4).value();
  const ForbiddenCall calls[] = {
      {"cannot fill", [&] { return error_of(other.fill(z, 1)); }},
      {"cannot sync", [&] { return error_of(other.sync()); }},
      {"cannot be synced", [&] { return error_of(device.sync()); }},
  };
  for (const ForbiddenCall& call : calls) {
    got.reset();
    make = call.make;
    stream.failed_write(y, broken("y never came"));
    CHECK(stream.fill(y, 1).executed_cleanly());
    CHECK(stream.sync().ok());
    REQUIRE(got.has_value());
    CHECK(got->kind() == ErrorKind::wrong_state);
    CHECK(says(*got, call.says));
    CHECK(says(*got, listener));
  }
  CHECK(device.check(z)->kind() == ErrorKind::unwritten);
}

TEST_CASE("E6, E9: inline work outside of replays calls its device, and any work another device") {
  Rig worker(StreamKind::worker);
  Rig other(StreamKind::inline_);
  const Buffer<float> y = worker.floats("y", 1);
  const Buffer<float> z = other.floats("z", 1);
  worker.stream.host<Out<float>>(
      "elsewhere", [&](std::span<float> all) { all[0] = other.values(z)[0]; }, y);
  CHECK(worker.stream.sync().ok());
  CHECK(other.stream
            .host<Out<float>>(
                "inner",
                [&](std::span<float>) { CHECK(other.stream.fill(z, 2).executed_cleanly()); }, z)
            .executed_cleanly());
}

}  // namespace refrain
