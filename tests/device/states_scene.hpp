// A stream and its window in one of the states that the table of states has as columns, with
// everything beside them that a call may need. Says what a call may not have changed.
#pragma once

#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "device/rig.hpp"
#include "refrain/replay/plan.hpp"

namespace refrain::test {

/// Of the window of the stream that a call concerns.
enum class State : std::uint8_t {
  idle,       ///< None has ever been open.
  prepared,   ///< Open, and work runs.
  recording,  ///< With work recorded.
  joined,  ///< The same, and the call concerns a member that recorded work which nobody waits for.
  inside,  ///< Recording, and the call is made by the body of a scope on its stream.
  doomed,  ///< Recording on, and it will not seal.
  sealed,  ///< Its handle is still there, as in the next two.
  ended,   ///< By `abort`.
  abandoned,  ///< The stream was destroyed while it recorded.
};
constexpr std::array<const char*, 9> kStates{"idle",   "prepared",  "recording",
                                             "joined", "in a body", "doomed",
                                             "sealed", "ended",     "abandoned"};

constexpr bool records(State state) {
  return state == State::recording || state == State::joined || state == State::inside ||
         state == State::doomed;
}

/// What a call may not have changed.
struct Snapshot {
  std::optional<WindowState> window;
  std::vector<float> values;        // of all buffers, as they lie in memory
  std::vector<std::string> claims;  // of each of their elements
  std::uint64_t live_failures = 0;
  std::size_t heard = 0;
  int runs = 0;  // of kernels

  bool operator==(const Snapshot&) const = default;
};

class Scene {
 public:
  Scene(StreamKind kind, State in) : rig(kind), state(in) {
    prepare_replays();
    outside.emplace(rig.stream.record_event().value());
    origin.emplace(rig.another());
    if (in == State::idle) return;
    if (in == State::prepared) {
      window.emplace(origin->prepare().value());
      watched = origin->core().window;
      return;
    }
    window.emplace(origin->record().value());
    watched = origin->core().window;
    origin->fill(y, 2);
    origin->fill(*spare, 2);
    inside.emplace(origin->record_event().value());
    switch (in) {
      case State::joined:
        member.emplace(rig.another());
        REQUIRE(member->wait(*inside).ok());
        member->fill(z, 2);
        break;
      case State::doomed: origin->failed_write(z, broken("a frame was lost")); break;
      case State::sealed: sealed.emplace(window->seal({.name = "sealed"}).value()); break;
      case State::ended: window->abort(); break;
      case State::abandoned: origin.reset(); break;
      default: break;
    }
    rig.forget_heard();
  }

  /// The stream that a call concerns.
  [[nodiscard]] Stream& stream() { return member ? *member : *origin; }

  [[nodiscard]] Snapshot look() {
    Snapshot now;
    if (watched) now.window = watched->state();
    for (const Buffer<float>* const buffer : {&x, &y, &z}) {
      const std::array whole{buffer->view().binding()};
      rig.device.core()->wait_for(whole, true);
      std::array<float, 4> values{};
      // By its address, since a read is an effect that some states refuse.
      std::memcpy(values.data(), reinterpret_cast<const void*>(buffer->allocation()->address()),
                  sizeof(values));
      now.values.insert(now.values.end(), values.begin(), values.end());
      for (std::uint64_t at = 0; at < 4; ++at) {
        const std::optional<Error> carried = rig.device.check(buffer->view(at, 1));
        now.claims.push_back(carried ? carried->text() : "");
      }
    }
    now.live_failures = rig.device.live_failures();
    now.heard = rig.heard().size();
    now.runs = rig.control.runs(0);
    return now;
  }

  Rig rig;  // its own stream is a bystander
  State state;
  Buffer<float> x = rig.floats("x", 1, Role::input);
  Buffer<float> y = rig.floats("y", 1, Role::output);
  Buffer<float> z = rig.floats("z", 1);
  std::optional<Buffer<float>> spare = rig.floats("spare", 1);
  Buffer<std::uint32_t> extent = rig.device.buffer<std::uint32_t>("extent", 6).value();
  Buffer<float> replayed_in = rig.floats("replayed in", 1, Role::input);
  Buffer<float> replayed_state = rig.floats("replayed state", 1, Role::state);
  std::optional<Recording> recording;  // of an earlier window, as its plan and instance
  std::optional<Plan> plan;
  std::optional<Instance> step;
  std::optional<Stream> origin;
  std::optional<Stream> member;
  std::optional<OpenWindow> window;
  std::shared_ptr<Window> watched;  // the window, also once its handle is gone
  std::optional<Recording> sealed;
  std::optional<Event> outside;  // recorded before the window opened
  std::optional<Event> inside;   // recorded in the window

 private:
  void prepare_replays() {
    rig.stream.write(extent, std::vector<std::uint32_t>{1, 1, 1, 4, 1, 1});
    {
      OpenWindow earlier = rig.stream.record().value();
      rig.stream.launch(*rig.map, grid(4), replayed_in, replayed_state, 1U);
      recording.emplace(earlier.seal({.name = "earlier"}).value());
    }
    plan.emplace(Plan::prepare(rig.device, recording->graph()).value());
    step.emplace(plan->instance().value());
    step->bind("replayed in", replayed_in).value();
  }
};

}  // namespace refrain::test
