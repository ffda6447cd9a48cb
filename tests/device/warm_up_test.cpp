// Warming up before a window records: until nothing happens for the first time (C20), advancing no
// state, and as what is recorded then (C15).
#include <doctest/doctest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "rig.hpp"

namespace refrain::test {
namespace {

Error refused(OpenWindow& window) {
  const Result<Recording> sealed = window.seal();
  REQUIRE_FALSE(sealed.ok());
  return sealed.error();
}

}  // namespace

ON_BOTH_KINDS(
    "C15: a recording that runs another kernel than its warm-up is doomed at the first "
    "difference") {
  const Buffer<float> x = rig.floats("x", 1);
  const Buffer<float> y = rig.floats("y", 1);
  OpenWindow window = rig.stream.prepare().value();
  rig.stream.launch(*rig.map, grid(4), x, y, 0U);
  rig.stream.launch(*rig.update, grid(4), y, 0U);
  REQUIRE(window.begin().ok());
  rig.stream.launch(*rig.map, grid(4), x, y, 0U);
  rig.stream.fill(y, 1);
  rig.stream.launch(*rig.make, grid(4), y, 0U);
  CHECK(window.state() == WindowState::doomed);
  const Error error = refused(window);
  CHECK(error.kind() == ErrorKind::window_doomed);
  CHECK(says(error, "because its work 2 is \"fill\" ("));
  CHECK(says(error, "its warm-up ran something else there: \"update\" ("));
}

ON_BOTH_KINDS("C15: a recording that ends before its warm-up did, or goes on after it, is doomed") {
  const Buffer<float> x = rig.floats("x", 1);
  const Buffer<float> y = rig.floats("y", 1);
  const auto warmed = [&] {
    OpenWindow window = rig.stream.prepare().value();
    rig.stream.fill(y, 1);
    rig.stream.launch(*rig.update, grid(4), y, 0U);
    REQUIRE(window.begin().ok());
    rig.stream.fill(y, 1);
    return window;
  };
  {
    OpenWindow window = warmed();
    const Error error = refused(window);
    CHECK(says(error, "because it ended after 1, and its warm-up went on with: \"update\""));
    CHECK(rig.carried(y).kind() == ErrorKind::window_doomed);
  }
  rig.stream.fill(y, 1);
  OpenWindow window = warmed();
  rig.stream.launch(*rig.update, grid(4), y, 0U);
  rig.stream.copy(x, y);
  CHECK(says(refused(window), "its work 3 is \"copy\""));
}

ON_BOTH_KINDS(
    "C15: the same work is no difference, and without a warm-up there is nothing to compare") {
  const Buffer<float> y = rig.floats("y", 1);
  for (const bool warm : {true, false}) {
    CAPTURE(warm);
    OpenWindow window = rig.stream.prepare().value();
    if (warm) rig.stream.launch(*rig.make, grid(4), y, 0U);
    REQUIRE(window.begin().ok());
    rig.stream.launch(*rig.make, grid(4), y, 1U);
    CHECK(window.seal().ok());
    rig.stream.fill(y, 1);
  }
}

ON_BOTH_KINDS("C15: another version of a kernel is another kernel") {
  const Buffer<float> y = rig.floats("y", 1);
  rig.device.kernels().add<Make>(
      "make", [](std::span<float>, std::uint32_t) -> Result<void> { return {}; }, 2);
  const Make newer = rig.device.kernel<Make>("make", 2).value();
  OpenWindow window =
      rig.stream.prepare([&] { rig.stream.launch(*rig.make, grid(4), y, 0U); }).value();
  REQUIRE(window.begin().ok());
  rig.stream.launch(newer, grid(4), y, 0U);
  const Error error = refused(window);
  CHECK(says(error, "its work 1 is \"make\" version 2 ("));
  CHECK(says(error, "ran something else there: \"make\" version 1 ("));
}

ON_BOTH_KINDS(
    "C20: a kernel that was never loaded is refused in a window before the device sees it, and "
    "dooms") {
  const Buffer<float> y = rig.floats("y", 1);
  rig.device.kernels().add<Make>(
      "late", [](std::span<float>, std::uint32_t) -> Result<void> { return {}; });
  OpenWindow window = rig.stream.record().value();
  CHECK(rig.device.kernel<Make>("make").ok());  // loaded long ago
  CHECK(window.state() == WindowState::recording);
  const auto late = rig.device.kernel<Make>("late", 1, Where{"decode.cpp", 41});
  REQUIRE_FALSE(late.ok());
  CHECK(late.error().kind() == ErrorKind::needs_warm_up);
  constexpr const char* kSays = "it needs warm-up: loading kernel \"late\" (decode.cpp:41).";
  CHECK(says(late.error(), kSays));
  CHECK(window.state() == WindowState::doomed);
  CHECK(says(refused(window), std::string("because ") + kSays));
  CHECK(rig.device.kernel<Make>("late").ok());
}

ON_BOTH_KINDS("C20: what another thread loads dooms no window of this one") {
  OpenWindow window = rig.stream.record().value();
  rig.device.kernels().add<Make>(
      "late", [](std::span<float>, std::uint32_t) -> Result<void> { return {}; });
  std::thread([&] { CHECK(rig.device.kernel<Make>("late").ok()); }).join();
  CHECK(window.state() == WindowState::recording);
  window.abort();
}

ON_BOTH_KINDS(
    "B11: first-use work that was not done is refused in a window, and after a warm-up the same "
    "code seals") {
  const Buffer<float> y = rig.floats("y", 1);
  int tuned = 0;
  const auto op = [&]() -> Result<void> {
    if (tuned == 0) {
      REFRAIN_TRY(rig.stream.first_use(
          "tuning op X",
          [&]() -> Result<void> {
            ++tuned;
            return {};
          },
          Where{"decode.cpp", 42}));
    }
    rig.stream.launch(*rig.make, grid(4), y, 0U);
    return {};
  };
  {
    OpenWindow cold = rig.stream.record().value();
    const Result<void> ran = op();
    REQUIRE_FALSE(ran.ok());
    CHECK(ran.error().kind() == ErrorKind::needs_warm_up);
    CHECK(tuned == 0);
    CHECK(says(refused(cold), "it needs warm-up: tuning op X (decode.cpp:42)."));
  }
  OpenWindow window = rig.stream.prepare(op).value();
  CHECK(tuned == 1);
  REQUIRE(window.begin().ok());
  CHECK(op().ok());
  CHECK(window.seal().ok());
  rig.stream.fill(y, 0);
}

ON_BOTH_KINDS("C20: preparing repeats the body until a pass does nothing for the first time") {
  const Buffer<float> y = rig.floats("y", 1);
  int passes = 0;
  const auto body = [&] {
    ++passes;
    if (passes < 4) {
      const std::string name = "late" + std::to_string(passes);
      rig.device.kernels().add<Make>(
          name, [](std::span<float>, std::uint32_t) -> Result<void> { return {}; });
      CHECK(rig.device.kernel<Make>(name).ok());
    }
    rig.stream.launch(*rig.make, grid(4), y, 0U);
  };
  OpenWindow window = rig.stream.prepare(body).value();
  CHECK(passes == 4);
  CHECK(window.state() == WindowState::prepared);
  REQUIRE(window.begin().ok());
  body();
  CHECK(window.seal().ok());  // C15 compares with the last pass
  rig.stream.fill(y, 0);
}

ON_BOTH_KINDS(
    "B19: a warm-up that never settles is refused with what still happens, and the stream is "
    "free") {
  const Buffer<float> y = rig.floats("y", 1);
  int passes = 0;
  const auto body = [&]() -> Result<void> {
    ++passes;
    return rig.stream.first_use(
        "growing a cache of op f", []() -> Result<void> { return {}; }, Where{"decode.cpp", 43});
  };
  const auto prepared = rig.stream.prepare(body, 3);
  REQUIRE_FALSE(prepared.ok());
  CHECK(passes == 3);
  CHECK(prepared.error().kind() == ErrorKind::needs_warm_up);
  CHECK(says(prepared.error(), "did not settle in 3 passes"));
  CHECK(says(prepared.error(), "growing a cache of op f (decode.cpp:43)."));
  CHECK(rig.stream.record().ok());
}

ON_BOTH_KINDS("C20: warming up puts back what it read and then wrote, and no more") {
  const Buffer<float> state = rig.floats("state", 1, Role::state);
  const Buffer<float> half = rig.floats("half", 1);
  const Buffer<float> y = rig.floats("y", 1);
  int passes = 0;
  const auto body = [&]() -> Result<void> {
    rig.stream.launch(*rig.update, grid(4), state, 0U);
    rig.stream.launch(*rig.update, grid(4), state, 0U);
    rig.stream.launch(*rig.map, grid(4), half.view(0, 2), y.view(0, 2), 0U);
    rig.stream.fill(half.view(1, 2), 9);
    rig.stream.launch(*rig.map, grid(4), state, y.view(2, 2), 0U);
    if (++passes < 3) {
      return rig.stream.first_use("something", []() -> Result<void> { return {}; });
    }
    return {};
  };
  OpenWindow window = rig.stream.prepare(body).value();
  window.abort();
  CHECK(passes == 3);
  CHECK(rig.values(state) == four(1));
  CHECK(rig.values(half) == std::vector<float>{1, 1, 9, 1});  // only [1, 2) was read first
  CHECK(rig.values(y) == std::vector<float>{2, 2, 4, 4});
}

ON_BOTH_KINDS(
    "C20: warming up hears every stream that its body uses, and puts back what they wrote") {
  const Buffer<float> p = rig.floats("p", 1, Role::state);
  const Buffer<float> q = rig.floats("q", 1, Role::state);
  Stream other = rig.another();
  bool changed = false;
  const auto body = [&] {
    rig.stream.launch(*rig.update, grid(4), p, 0U);
    REQUIRE(other.wait(rig.stream.record_event().value()).ok());
    if (changed) {
      other.fill(q, 7);
    } else {
      other.launch(*rig.update, grid(4), q, 0U);
    }
    REQUIRE(rig.stream.wait(other.record_event().value()).ok());
  };
  for (const bool differ : {false, true}) {
    CAPTURE(differ);
    changed = false;
    OpenWindow window = rig.stream.prepare(body).value();
    CHECK(rig.another().read(p).value() == four(1));
    CHECK(rig.another().read(q).value() == four(1));
    changed = differ;
    REQUIRE(window.begin().ok());
    body();
    const Result<Recording> sealed = window.seal();
    REQUIRE(sealed.ok() == !differ);
    if (differ) {
      CHECK(says(sealed.error(),
                 "its work 1 on stream " + std::to_string(other.id().number) + " is \"fill\""));
    }
    rig.stream.fill(p, 1);
    rig.stream.fill(q, 1);
    rig.settle();
  }
}

ON_BOTH_KINDS("C15: a stream that the warm-up did not hear may work beside the recording") {
  const Buffer<float> y = rig.floats("y", 1);
  const Buffer<float> z = rig.floats("z", 1);
  Stream apart = rig.another();
  OpenWindow window = rig.stream.prepare([&] { rig.stream.fill(y, 1); }).value();
  REQUIRE(window.begin().ok());
  rig.stream.fill(y, 1);
  apart.fill(z, 2);
  apart.fill(z, 3);
  CHECK(window.seal().ok());
  static_cast<void>(apart.sync());
  rig.stream.fill(y, 0);
}

ON_BOTH_KINDS("C20: a state that carries a failure is not made good by a warm-up") {
  const Buffer<float> state = rig.bad("state", "the state was lost");
  const auto window =
      rig.stream.prepare([&] { rig.stream.launch(*rig.update, grid(4), state, 0U); });
  REQUIRE_FALSE(window.ok());
  CHECK(says(window.error(), "the state was lost"));
  CHECK(says(rig.unreadable(state), "the state was lost"));
}

ON_BOTH_KINDS("C20: good bytes beside bad ones are put back") {
  const Buffer<float> state = rig.floats("state", 1, Role::state);
  rig.stream.failed_write(state.view(2, 1), broken("one of them was lost"));
  const auto window = rig.stream.prepare([&] {
    rig.stream.launch(*rig.look, grid(4), state, 0U);
    rig.stream.fill(state, 7);
  });
  CHECK_FALSE(window.ok());
  rig.stream.fill(state.view(2, 1), 5);
  CHECK(rig.values(state) == std::vector<float>{1, 1, 5, 1});
}

ON_BOTH_KINDS(
    "C20: a warm-up that fails or throws puts its state back, ends the window and tells why") {
  const Buffer<float> state = rig.floats("state", 1, Role::state);
  const auto failed = rig.stream.prepare([&]() -> Result<void> {
    rig.stream.launch(*rig.update, grid(4), state, 0U);
    return broken("the tokenizer is gone");
  });
  REQUIRE_FALSE(failed.ok());
  CHECK(failed.error().message() == "the tokenizer is gone");
  CHECK(rig.values(state) == four(1));

  CHECK_THROWS_AS(static_cast<void>(rig.stream.prepare([&] {
                    rig.stream.launch(*rig.update, grid(4), state, 0U);
                    throw std::runtime_error("out of cheese");
                  })),
                  std::runtime_error);
  CHECK(rig.values(state) == four(1));
  CHECK(rig.stream.record().ok());
}

}  // namespace refrain::test
