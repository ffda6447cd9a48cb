// Rules E2, E9 and E10 where the body of a scope works on another stream than its scope's: what
// goes wrong there is not mended when the scope ends, whoever looked meanwhile.
#include "device/faulty.hpp"
#include "device/rig.hpp"

namespace refrain {
namespace {

using namespace test;

/// When somebody looks at what the scope writes, which puts the scope's claim into the table.
enum class When : std::uint8_t { never, first, last };

/// A scope of one stream around work of another, both on bytes of `y`.
struct Across {
  explicit Across(StreamKind kind, StreamKind inner)
      : rig(kind), other(rig.device.stream(inner).value()), y(rig.floats("y", 1)) {}

  void look() const { static_cast<void>(rig.device.check(y)); }
  /// Runs `body` as work of the rig's stream that writes `y`, and waits for both streams.
  template <class Body>
  ScopedOutcome<void> around(When when, Body&& body) {
    auto outcome = own_work(rig.stream, {y}, [&](Stream&) -> Result<void> {
      if (when == When::first) look();
      Result<void> done = body();
      if (when == When::last) look();
      return done;
    });
    static_cast<void>(other.sync());
    rig.settle();
    return outcome;
  }

  Rig rig;
  Stream other;
  Buffer<float> y;
};

template <class Check>
void for_all(Check&& check) {
  for (const StreamKind kind : kKinds) {
    for (const StreamKind inner : kKinds) {
      for (const When when : {When::never, When::first, When::last}) {
        CAPTURE(kind);
        CAPTURE(inner);
        CAPTURE(when);
        Across across(kind, inner);
        check(across, when);
      }
    }
  }
}

}  // namespace

TEST_CASE("E9: work of another stream that fails in a body keeps its bytes claimed") {
  for_all([](Across& across, When when) {
    across.rig.control.does[1] = fails("the inner one broke");
    across.around(when, [&]() -> Result<void> {
      across.other.launch(*across.rig.make, grid(4), across.y.view(0, 2), 1U);
      return {};
    });
    CHECK(across.rig.carried(across.y.view(0, 2)).message() == "the inner one broke");
    CHECK(across.rig.clean(across.y.view(2, 2)));
  });
}

TEST_CASE("E9: work of another stream that is skipped in a body keeps its bytes claimed") {
  for_all([](Across& across, When when) {
    const Buffer<float> bad = across.rig.bad("bad", "the input never came");
    across.around(when, [&]() -> Result<void> {
      across.other.launch(*across.rig.map, grid(4), bad, across.y.view(0, 2), 0U);
      return {};
    });
    CHECK(across.rig.carried(across.y.view(0, 2)).message() == "the input never came");
    CHECK(across.rig.clean(across.y.view(2, 2)));
  });
}

TEST_CASE("E9: work of another stream that is skipped or fails once more is mended by good work") {
  for_all([](Across& across, When when) {
    across.rig.control.does[1] = fails("the inner one broke");
    across.around(when, [&]() -> Result<void> {
      across.other.launch(*across.rig.make, grid(4), across.y, 1U);
      static_cast<void>(across.other.sync());
      CHECK(across.other.launch(*across.rig.make, grid(4), across.y, 0U).executed_cleanly());
      return {};
    });
    CHECK(across.rig.clean(across.y));
    CHECK(across.rig.device.live_failures() == 0);
  });
}

TEST_CASE("E2: a body that fails claims what work of another stream wrote in it") {
  for_all([](Across& across, When when) {
    const auto outcome = across.around(when, [&]() -> Result<void> {
      CHECK(across.other.launch(*across.rig.make, grid(4), across.y.view(0, 2), 0U)
                .executed_cleanly());
      return broken("the outer one broke");
    });
    CHECK(outcome.failed());
    CHECK(across.rig.carried(across.y).message() == "the outer one broke");
    CHECK(across.rig.carried(across.y.view(0, 2)).message() == "the outer one broke");
  });
}

TEST_CASE(
    "E10: work of another stream that fails late, in or after the body, is not mended by it") {
  for (const StreamKind kind : kKinds) {
    for (const bool within : {true, false}) {
      CAPTURE(kind);
      CAPTURE(within);
      Gate gate;
      std::thread opener;
      Across across(kind, StreamKind::worker);
      across.rig.control.does[1] = [&]() -> Result<void> {
        gate.wait();
        return broken("it broke late");
      };
      const auto outcome = across.around(When::never, [&]() -> Result<void> {
        across.other.launch(*across.rig.make, grid(4), across.y.view(0, 2), 1U);
        if (within) {
          gate.open();
          static_cast<void>(across.other.sync());
        } else {
          opener = std::thread([&] { gate.open(); });
        }
        return {};
      });
      if (opener.joinable()) opener.join();
      CHECK(outcome.executed_cleanly());
      CHECK(across.rig.carried(across.y.view(0, 2)).message() == "it broke late");
      CHECK(across.rig.clean(across.y.view(2, 2)));
    }
  }
}

}  // namespace refrain
