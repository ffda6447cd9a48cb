// Host work: a function of the program's own that keeps the rules of a launch, outside windows, in
// them, and as something that a graph owns.
#include <memory>

#include "device/rig.hpp"

namespace refrain {
namespace {

using namespace test;

/// y = 2 x.
constexpr auto kTwice = [](std::span<const float> x, std::span<float> y) {
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = 2 * x[i];
};

/// A body that counts how often it ran, and shows by `owned` whether somebody still owns it.
struct Counting {
  std::shared_ptr<std::atomic<int>> runs = std::make_shared<std::atomic<int>>(0);

  [[nodiscard]] auto body() const {
    return [held = runs] { ++*held; };
  }
  /// Nobody but this has it.
  [[nodiscard]] bool freed() const { return runs.use_count() == 1; }
};

}  // namespace

ON_BOTH_KINDS("host work runs in the order of its stream over the views that it declares") {
  const Buffer<float> x = rig.floats("x", 1);
  const Buffer<float> y = rig.floats("y", 0);
  CHECK(rig.stream.launch(*rig.update, grid(4), x, 0U).executed_cleanly());
  CHECK(rig.stream.host<In<float>, Out<float>>("twice", kTwice, x, y).executed_cleanly());
  CHECK(rig.stream.launch(*rig.update, grid(4), y, 0U).executed_cleanly());
  CHECK(rig.stream
            .host<InOut<float>>(
                "halve",
                [](std::span<float> all) -> Result<void> {
                  all[1] /= 2;
                  return {};
                },
                y.view(1, 2))
            .executed_cleanly());
  CHECK(rig.values(y) == std::vector<float>{5, 5, 2.5F, 5});
}

TEST_CASE(
    "host work on an inline stream has run, with its name and place, before the call is back") {
  Rig rig(StreamKind::inline_);
  const Counting counting;
  CHECK(rig.stream.host("count", counting.body()).executed_cleanly());
  CHECK(*counting.runs == 1);
  CHECK(counting.freed());
  const HostWork named(std::string("count"));
  CHECK(named.effects == Effects::opaque());
  CHECK(std::string_view(named.where.file).ends_with("host_call_test.cpp"));
}

ON_BOTH_KINDS("O2, K1, K3: host work over a broken input is skipped, and its body is not called") {
  const Buffer<float> x = rig.bad("x", "x never came");
  const Buffer<float> y = rig.floats("y", 1);
  const Counting counting;
  const auto body = [count = counting.body()](std::span<const float>, std::span<float>) {
    count();
  };
  CHECK(rig.stream.host<In<float>, Out<float>>("sample", body, x, y).skipped());
  rig.settle();
  CHECK(*counting.runs == 0);
  CHECK(rig.carried(y).failure() == rig.carried(x).failure());
  const Error story = rig.unreadable(y);
  CHECK(says(story, "skipped: \"sample\" on stream"));
  CHECK(says(story, "host_call_test.cpp"));
  CHECK(rig.only_heard().error.message() == "x never came");
}

ON_BOTH_KINDS("O5: host work that only writes mends a broken buffer") {
  const Buffer<float> y = rig.bad("y", "y never came");
  const auto body = [](std::span<float> all) {
    for (float& each : all) each = 3;
  };
  CHECK(rig.stream.host<Out<float>>("fetch", body, y).executed_cleanly());
  CHECK(rig.values(y) == four(3));
}

ON_BOTH_KINDS("O7: host work that writes nothing claims nothing, and can fail and be skipped") {
  const Buffer<float> x = rig.floats("x", 1);
  const Buffer<float> bad = rig.bad("bad", "it never came");
  rig.stream.host("log", []() -> Result<void> { return broken("the log is full"); });
  rig.settle();
  CHECK(rig.only_heard().error.message() == "the log is full");
  CHECK(rig.device.live_failures() == 1);  // that of `bad`
  CHECK(rig.stream
            .host<In<float>>(
                "log", [](std::span<const float>) {}, bad)
            .skipped());
  CHECK(rig.clean(x));
}

ON_BOTH_KINDS("E2: host work that fails leaves its own error on what it was to write") {
  const Buffer<float> y = rig.floats("y", 1);
  const auto body = [](std::span<float>) -> Result<void> { return broken("no sample"); };
  const auto outcome = rig.stream.host<Out<float>>("sample", body, y.view(0, 3));
  CHECK(outcome.failed() == !rig.worker());
  rig.settle();
  CHECK(rig.carried(y.view(0, 3)).message() == "no sample");
  CHECK(rig.clean(y.view(3, 1)));
  CHECK(says(rig.unreadable(y), "\"sample\" on stream"));
  CHECK(rig.only_heard().stream == rig.stream.id());
}

ON_BOTH_KINDS("E4: host work that throws leaves the exception itself on its bytes") {
  const Buffer<float> y = rig.floats("y", 1);
  const auto body = [](std::span<float>) { throw std::runtime_error("no dice"); };
  bool passed_on = false;
  try {
    rig.stream.host<Out<float>>("sample", body, y);
  } catch (const std::runtime_error& error) {
    passed_on = std::string(error.what()) == "no dice";
  }
  CHECK(passed_on == !rig.worker());
  rig.settle();
  REQUIRE(rig.carried(y).exception() != nullptr);
  CHECK_THROWS_AS(std::rethrow_exception(rig.carried(y).exception()), std::runtime_error);
  CHECK(rig.stream.fill(y, 1).executed_cleanly());
  CHECK(rig.values(y) == four(1));
}

TEST_CASE("E9: work that a body issues on its own inline stream is inside of it") {
  Rig rig(StreamKind::inline_);
  const Buffer<float> y = rig.floats("y", 1);
  rig.control.does[1] = fails("the inner one broke");
  const auto outcome = rig.stream.host<Out<float>>(
      "outer",
      [&](std::span<float>) {
        rig.stream.launch(*rig.make, grid(4), y.view(0, 2), 1U);
        CHECK(rig.stream.launch(*rig.make, grid(4), y.view(2, 2), 0U).executed_cleanly());
        CHECK(rig.carried(y.view(2, 2)).kind() == ErrorKind::torn_down);  // the outer's, put back
      },
      y);
  CHECK(outcome.executed_cleanly());
  CHECK(rig.carried(y.view(0, 2)).message() == "the inner one broke");
  CHECK(rig.values(y.view(2, 2)) == std::vector<float>{10, 10});
}

TEST_CASE("E10: host work that fails late is followed through what was queued behind it") {
  for (const bool thrown : {false, true}) {
    CAPTURE(thrown);
    Gate gate;
    Rig rig(StreamKind::worker);
    const Buffer<float> x = rig.floats("x", 1);
    const Buffer<float> y = rig.floats("y", 1);
    const Buffer<float> z = rig.floats("z", 1);
    const Counting counting;
    rig.stream.host<Out<float>>(
        "fetch",
        [&](std::span<float>) -> Result<void> {
          gate.wait();
          if (thrown) throw std::runtime_error("the net is down");
          return broken("the net is down");
        },
        x);
    CHECK(rig.stream.launch(*rig.map, grid(4), x, y, 2U).executed_cleanly());
    rig.stream.host<In<float>, Out<float>>(
        "after", [count = counting.body()](auto, auto) { count(); }, y, z);
    gate.open();
    rig.settle();
    CHECK(rig.control.runs(2) == 0);
    CHECK(*counting.runs == 0);
    CHECK(counting.freed());
    CHECK(says(rig.carried(x), "the net is down"));
    CHECK(rig.carried(z).failure() == rig.carried(x).failure());
    CHECK((rig.carried(z).exception() != nullptr) == thrown);
  }
}

ON_BOTH_KINDS(
    "M6: host work with an argument that cannot be does not run, and what is good is claimed") {
  const Buffer<float> y = rig.floats("y", 1);
  const Counting counting;
  const auto body = [count = counting.body()](auto, auto) { count(); };
  View<float> stale;
  {
    const Buffer<float> gone = rig.unwritten("gone");
    stale = gone.view();
  }
  const auto refused = rig.stream.host<In<float>, Out<float>>("sample", body, stale, y);
  REQUIRE(refused.failed());
  CHECK(refused.error().kind() == ErrorKind::stale_buffer);
  CHECK(says(refused.error(), "While calling \"sample\" ("));
  CHECK(rig.carried(y).kind() == ErrorKind::stale_buffer);

  const Buffer<float> constant =
      rig.device.constant<float>("w", SharedBytes::copy_of(std::vector<std::byte>(16))).value();
  const auto written = rig.stream.host<In<float>, Out<float>>("sample", body, y, constant);
  REQUIRE(written.failed());
  CHECK(written.error().kind() == ErrorKind::constant_written);

  BufferBinding half = y.view().binding();
  half.range.end -= 2;
  const auto torn = rig.stream.host<In<float>, InOut<float>>("sample", body, y, View<float>(half));
  REQUIRE(torn.failed());
  CHECK(says(torn.error(), "argument 2 (in_out f32*) of kernel "));
  CHECK(*counting.runs == 0);
}

ON_BOTH_KINDS(
    "C2, C14: in a window host work is recorded with what it reads and writes, and not run") {
  const Buffer<float> y = rig.floats("y", 1);
  const Counting counting;
  OpenWindow window = rig.stream.record().value();
  {
    const Buffer<float> x = rig.floats("x", 1, Role::input);  // a fill, recorded
    CHECK(rig.stream
              .host<In<float>, Out<float>>(
                  "sample", [count = counting.body()](auto, auto) { count(); }, x.view(2, 2),
                  y.view(1, 2))
              .executed_cleanly());
  }
  Result<Recording> sealed = window.seal();
  REQUIRE_MESSAGE(sealed.ok(), sealed.error().text());
  const SealedGraph& graph = sealed->graph();
  REQUIRE(graph.nodes().size() == 2);
  const Node& node = graph.nodes()[1];
  CHECK(graph.node_name(node) == "sample");
  CHECK(graph.effects(node) == Effects::opaque());
  CHECK(graph.dependencies(node).size() == 1);
  REQUIRE(graph.arguments(node).size() == 2);
  CHECK(graph.arguments(node)[0].range == ByteRange{8, 16});
  CHECK(graph.arguments(node)[1].range == ByteRange{4, 12});
  CHECK(graph.arguments(node)[1].direction == Direction::out);
  CHECK(*counting.runs == 0);
  CHECK(rig.carried(y.view(1, 2)).kind() == ErrorKind::not_replayed);
  CHECK(rig.clean(y.view(0, 1)));
  rig.stream.fill(y, 0);
}

ON_BOTH_KINDS("C3, C4: host work that is refused or skipped in a window dooms it") {
  const Buffer<float> bad = rig.bad("bad", "x never came");
  const Buffer<float> y = rig.floats("y", 1);
  const auto body = [](auto, auto) {};
  {
    OpenWindow window = rig.stream.record().value();
    CHECK(rig.stream.host<In<float>, Out<float>>("sample", body, View<float>(), y).failed());
    CHECK(window.state() == WindowState::doomed);
    CHECK(says(window.seal().error(), "because \"sample\" ("));
  }
  rig.stream.fill(y, 1);
  OpenWindow window = rig.stream.record().value();
  CHECK(rig.stream.host<In<float>, Out<float>>("sample", body, bad, y).skipped());
  CHECK(says(window.seal().error(), "x never came"));
  CHECK(rig.carried(y).message() == "x never came");  // C11
}

ON_BOTH_KINDS(
    "C2, C16: host work that writes other bytes than the scope around it claims dooms the window") {
  const Buffer<float> y = rig.floats("y", 1);
  const Buffer<float> z = rig.floats("z", 1);
  for (const bool same : {true, false}) {
    CAPTURE(same);
    OpenWindow window = rig.stream.record().value();
    WriteSet writes = rig.stream.write_set();
    writes.add(y.view().binding());
    ExecuteScope<Stream>::over(rig.stream, intern_kernel_name("outer"), std::move(writes),
                               Where::here())
        .execute([&](Stream& stream) -> Result<void> {
          stream.host<Out<float>>(
              "sample", [](auto) {}, same ? y : z);
          return {};
        });
    CHECK(window.state() == (same ? WindowState::recording : WindowState::doomed));
    if (!same) CHECK(says(window.seal().error(), "\"outer\""));
    if (same) window.abort();
  }
  rig.stream.fill(y, 0);
  rig.stream.fill(z, 0);
}

ON_BOTH_KINDS(
    "C8: work in a window sees what host work recorded there before it, and nobody else does") {
  const Buffer<float> x = rig.bad("x", "x never came");
  const Buffer<float> y = rig.floats("y", 1);
  OpenWindow window = rig.stream.record().value();
  rig.stream.host<Out<float>>(
      "fetch", [](auto) {}, x);
  CHECK(rig.stream.launch(*rig.map, grid(4), x, y, 0U).executed_cleanly());
  CHECK(rig.carried(x).message() == "x never came");
  window.abort();
  CHECK(rig.clean(y));
}

ON_BOTH_KINDS("C15: a window that records other host work than its warm-up ran is doomed") {
  const Counting counting;
  OpenWindow window =
      rig.stream.prepare([&] { rig.stream.host("first", counting.body()); }).value();
  rig.settle();
  CHECK(*counting.runs == 1);  // it runs for real (C5)
  REQUIRE(window.begin().ok());
  rig.stream.host("second", counting.body());
  const Error error = window.seal().error();
  CHECK(says(error, "is \"second\" ("));
  CHECK(says(error, "ran something else there: \"first\" ("));
  CHECK(*counting.runs == 1);
}

ON_BOTH_KINDS("C13: host work on two streams that no event orders refuses the seal, both named") {
  const Buffer<float> y = rig.floats("y", 1);
  Stream other = rig.another();
  OpenWindow window = rig.stream.record().value();
  REQUIRE(other.wait(rig.stream.record_event().value()).ok());
  rig.stream.host<Out<float>>(
      "left", [](auto) {}, y);
  other.host<InOut<float>>(
      "right", [](auto) {}, y.view(1, 1));
  REQUIRE(rig.stream.wait(other.record_event().value()).ok());
  const Error error = window.seal().error();
  CHECK(says(error, "use bytes [4, 8) of \"y\" and no event orders them: \"left\" on stream"));
  CHECK(says(error, "and \"right\" on stream " + std::to_string(other.id().number)));
}

ON_BOTH_KINDS("B58: host work that declares nothing claims nothing, and is recorded as opaque") {
  const Counting counting;
  OpenWindow window = rig.stream.record().value();
  CHECK(rig.stream.host("log", counting.body()).executed_cleanly());
  CHECK(window.state() == WindowState::recording);
  const Result<Recording> sealed = window.seal();
  REQUIRE(sealed.ok());
  CHECK(sealed->graph().writes().empty());
  CHECK(sealed->graph().effects(sealed->graph().nodes()[0]) == Effects::opaque());
  CHECK(rig.device.live_failures() == 0);
}

ON_BOTH_KINDS(
    "B82: a body belongs to the window, and then to the recording, and goes with the last") {
  const Counting counting;
  const Buffer<float> y = rig.floats("y", 1);
  const auto body = [count = counting.body()](auto) { count(); };
  const auto others = counting.runs.use_count();  // this body's own
  {
    OpenWindow window = rig.stream.record().value();
    rig.stream.host<Out<float>>("count", body, y);
    CHECK(counting.runs.use_count() == others + 1);
    SUBCASE("aborted") {
      window.abort();
      CHECK(counting.runs.use_count() == others);
    }
    SUBCASE("doomed") {
      rig.stream.failed_write(y, broken("doom"));
      CHECK_FALSE(window.seal().ok());
      CHECK(counting.runs.use_count() == others);
    }
    SUBCASE("sealed") {
      std::optional<Recording> recording(window.seal().value());
      std::optional<SealedGraph> graph(recording->graph());
      recording.reset();
      CHECK(counting.runs.use_count() == others + 1);
      graph.reset();
      CHECK(counting.runs.use_count() == others);
    }
    SUBCASE("dropped") {}
  }
  CHECK(counting.runs.use_count() == others);
  CHECK(*counting.runs == 0);
  rig.stream.fill(y, 0);
}

ON_BOTH_KINDS(
    "B83: a body that cannot be owned dooms the window, and there is no node that calls it") {
  struct NoCopy {
    NoCopy() = default;
    NoCopy(const NoCopy&) { throw std::bad_alloc(); }
    void operator()(std::span<float>) const {}
  };
  const Buffer<float> y = rig.floats("y", 1);
  const NoCopy body;
  OpenWindow window = rig.stream.record().value();
  CHECK_THROWS_AS(rig.stream.host<Out<float>>("sample", body, y), std::bad_alloc);
  CHECK(window.state() == WindowState::doomed);
  const Error error = window.seal().error();
  CHECK(says(error, "because \"sample\" ("));
  CHECK(says(error, "bad_alloc"));
  CHECK(rig.carried(y).exception() != nullptr);
  CHECK(rig.heard().size() == 1);
}

TEST_CASE(
    "B116: a window seals while host work that writes what it reads is still pending elsewhere") {
  for (const StreamKind kind : {StreamKind::inline_, StreamKind::worker}) {
    CAPTURE(static_cast<int>(kind));
    Gate gate;
    Rig rig(kind);
    const Buffer<float> x = rig.floats("x", 1);
    const Buffer<float> y = rig.floats("y", 1);
    Stream outside = rig.device.stream(StreamKind::worker).value();
    outside.host<Out<float>>(
        "fetch",
        [&](std::span<float> all) {
          gate.wait();
          for (float& each : all) each = 7;
        },
        x);
    OpenWindow window = rig.stream.record().value();
    CHECK(rig.stream.launch(*rig.map, grid(4), x, y, 0U).executed_cleanly());
    const Result<Recording> sealed = window.seal();
    CHECK_MESSAGE(sealed.ok(), sealed.error().text());
    gate.open();
    CHECK(outside.sync().ok());
    CHECK(rig.values(x) == four(7));
    rig.stream.fill(y, 0);
  }
}

}  // namespace refrain
