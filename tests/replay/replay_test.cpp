// Replays over both kinds of streams. On a worker a replay answers before it has run, so what a
// case asks about a failure is asked after a sync.
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "counter_graph.hpp"

using namespace refrain;
using namespace refrain::test;

namespace {

/// A device, a stream, a plan of the step, an instance, and its inputs bound.
struct Replaying {
  explicit Replaying(StreamKind kind)
      : stream(base.device.stream(kind).value()),
        plan(Plan::prepare(base.device, base.record(stream).graph()).value()),
        x(base.device.buffer<float>("my x", kCount, Role::input).value()),
        y(base.device.buffer<float>("my y", kCount, Role::output).value()),
        step(plan.instance().value()) {
    step->bind("x", x).value();
    step->bind("y", y).value();
  }
  ~Replaying() {
    // The table empties with the buffers, whatever happened (M2).
    step.reset();
    static_cast<void>(stream.sync());
    { const Buffer<float> gone = std::move(x); }
    { const Buffer<float> gone = std::move(y); }
    CHECK(base.device.live_failures() == 0);
  }

  bool replay() {
    auto ran = step->replay(stream);
    return ran.executed_cleanly() && stream.sync().ok();
  }
  float result() { return stream.read(y).value()[0]; }
  float total() { return stream.read(step->view<float>("total").value()).value()[0]; }

  CounterDevice base;
  Stream stream;
  Plan plan;
  Buffer<float> x;
  Buffer<float> y;
  std::optional<Instance> step;
};

template <class Case>
void on_both_kinds_of_streams(Case&& each) {
  SUBCASE("inline") { each(StreamKind::inline_); }
  SUBCASE("worker") { each(StreamKind::worker); }
}

}  // namespace

TEST_CASE("P1: a clean replay releases all that the graph writes, and its numbers count up") {
  on_both_kinds_of_streams([](StreamKind kind) {
    Replaying it(kind);
    CHECK(it.base.device.check(it.y));  // unwritten so far
    it.stream.write(it.x, all(1.5F));
    auto first = it.step->replay(it.stream);
    REQUIRE(first.executed_cleanly());
    CHECK(first.value().number == 1);
    REQUIRE(it.stream.sync().ok());
    CHECK(!it.base.device.check(it.y));
    CHECK(it.result() == 3.0F);
    auto second = it.step->replay(it.stream);
    REQUIRE(second.executed_cleanly());
    CHECK(second.value().number == 2);
    CHECK(it.stream.read(it.y).value() == all(6.0F));
  });
}

TEST_CASE("P1: a replay that fails claims all that the graph writes") {
  on_both_kinds_of_streams([](StreamKind kind) {
    Replaying it(kind);
    it.stream.write(it.x, all(1));
    REQUIRE(it.replay());
    it.base.script().accumulate_fails = true;
    auto failed = it.step->replay(it.stream);
    CHECK(failed.executed_cleanly() == (kind == StreamKind::worker));
    const Result<void> synced = it.stream.sync();
    CHECK(synced.ok() == (kind == StreamKind::inline_));
    const auto read = it.stream.read(it.y);
    REQUIRE(!read.ok());
    CHECK(read.error().text().find("The adder lost count.") != std::string::npos);
    CHECK(read.error().text().find("node 1, \"accumulate\"") != std::string::npos);
    const auto state = it.stream.read(it.step->view<float>("total").value());
    REQUIRE(!state.ok());
    CHECK(state.error().failure() == read.error().failure());
    CHECK(it.base.heard.size() == 1);
  });
}

TEST_CASE(
    "P1: on the memory of a recording what was made as scratch is claimed and freed as well") {
  on_both_kinds_of_streams([](StreamKind kind) {
    CounterDevice base;
    Stream stream = base.device.stream(kind).value();
    const auto x = base.device.buffer<float>("x", kCount, Role::input).value();
    const auto weight = base.device.constant<float>("weight", bytes_of(all(2))).value();
    const auto scaled = base.device.buffer<float>("scaled", kCount, Role::scratch).value();
    const auto total = base.device.buffer<float>("total", kCount, Role::state).value();
    const auto y = base.device.buffer<float>("y", kCount, Role::output).value();
    auto window = stream.record().value();
    base.launch(stream, x, weight, scaled, total, y);
    Instance step = instance(window.seal().value()).value();
    for (const bool fails : {true, false}) {
      CAPTURE(fails);
      stream.write(x, all(1));
      REQUIRE(step.reset(stream).ok());
      base.script().accumulate_fails = fails;
      static_cast<void>(step.replay(stream));
      CHECK(stream.sync().ok() == (!fails || kind == StreamKind::inline_));
      CHECK(base.device.check(scaled).has_value() == fails);
      CHECK(base.device.check(y).has_value() == fails);
    }
  });
}

TEST_CASE("P1, E4: a kernel that throws in a replay leaves its exception on all that it writes") {
  Replaying it(StreamKind::inline_);
  it.stream.write(it.x, all(1));
  it.base.script().accumulate_throws = true;
  CHECK_THROWS_WITH_AS(static_cast<void>(it.step->replay(it.stream)), "The adder is on fire.",
                       std::runtime_error);
  const auto read = it.stream.read(it.y);
  REQUIRE(!read.ok());
  CHECK(read.error().text().find("The adder is on fire.") != std::string::npos);
  it.base.script().accumulate_throws = false;
  REQUIRE(it.step->reset(it.stream).ok());
  CHECK(it.replay());  // and the instance is not left busy
}

TEST_CASE("E10: a kernel that throws in a replay on a worker is told at the next sync") {
  Replaying it(StreamKind::worker);
  it.stream.write(it.x, all(1));
  it.base.script().accumulate_throws = true;
  CHECK(it.step->replay(it.stream).executed_cleanly());
  const Result<void> synced = it.stream.sync();
  REQUIRE(!synced.ok());
  REQUIRE(synced.error().exception());
  CHECK_THROWS_AS(std::rethrow_exception(synced.error().exception()), std::runtime_error);
  CHECK(it.base.heard.size() == 1);
}

TEST_CASE("P2: a replay over an input that did not arrive is skipped and its state is untouched") {
  on_both_kinds_of_streams([](StreamKind kind) {
    Replaying it(kind);
    it.stream.write(it.x, all(1));
    REQUIRE(it.replay());
    const int runs = it.base.script().scale_runs;

    it.stream.failed_write(it.x, Error(ErrorKind::kernel_failed, "The microphone is unplugged."));
    auto skipped = it.step->replay(it.stream);
    REQUIRE(skipped.skipped());
    CHECK(it.stream.sync().ok());
    CHECK(it.base.script().scale_runs == runs);  // nothing ran

    const auto read = it.stream.read(it.y);
    REQUIRE(!read.ok());
    CHECK(read.error().failure() == skipped.failure());
    const std::string text = read.error().text();
    CHECK(text.find("The microphone is unplugged.") != std::string::npos);  // the root
    CHECK(text.find("\"graph counter\"") != std::string::npos);             // the path
    CHECK(text.find("needed \"my x\"") != std::string::npos);
    CHECK(it.total() == 2.0F);

    // P3, P4: writing the input is all that it takes.
    it.stream.write(it.x, all(10));
    REQUIRE(it.replay());
    CHECK(it.result() == 22.0F);
  });
}

TEST_CASE("P2, K5: a skipped replay tells the listener the input's own error, once") {
  Replaying it(StreamKind::inline_);
  it.stream.failed_write(it.x, Error(ErrorKind::kernel_failed, "The microphone is unplugged."));
  it.base.heard.clear();
  REQUIRE(it.step->replay(it.stream).skipped());
  REQUIRE(it.base.heard.size() == 1);
  CHECK(it.base.heard[0].find("The microphone is unplugged.") != std::string::npos);
}

TEST_CASE("P3: writing fresh inputs is what clears a claim on them, and nothing else is") {
  Replaying it(StreamKind::inline_);
  it.stream.failed_write(it.x, Error(ErrorKind::kernel_failed, "The microphone is unplugged."));
  CHECK(it.step->replay(it.stream).skipped());
  REQUIRE(it.step->reset(it.stream).ok());
  CHECK(!it.stream.read(it.x).ok());
  CHECK(it.step->replay(it.stream).skipped());  // neither a reset, nor a read, nor a replay
  it.stream.write(it.x.view(0, kCount - 1), std::vector<float>(kCount - 1, 1.0F));
  CHECK(it.step->replay(it.stream).skipped());  // one element is still missing
  it.stream.write(it.x.view(kCount - 1, 1), std::vector<float>(1, 1.0F));
  CHECK(it.replay());
}

TEST_CASE("C7: calls that are refused and failures elsewhere do not doom a window") {
  Replaying it(StreamKind::inline_);
  auto other = it.base.device.stream().value();
  const auto elsewhere = it.base.device.buffer<float>("elsewhere", kCount).value();
  const auto y = it.base.device.buffer<float>("y", kCount).value();
  auto window = it.stream.record().value();
  it.stream.fill(y, 1.0F);
  CHECK(!it.stream.read(y).ok());
  CHECK(!it.stream.sync().ok());
  CHECK(!it.stream.record().ok());
  CHECK(!it.step->bind("nothing", y).ok());
  other.failed_write(elsewhere, Error(ErrorKind::kernel_failed, "Another stream's trouble."));
  CHECK(window.state() == WindowState::recording);
  CHECK(window.seal().ok());
  it.stream.fill(y, 0.0F);
}

TEST_CASE("P2: one broken byte of an input is enough, and bytes beside it are not") {
  Replaying it(StreamKind::inline_);
  const auto wide = it.base.device.buffer<float>("wide", 3 * kCount, Role::input).value();
  it.stream.write(wide, std::vector<float>(3 * kCount, 1.0F));
  REQUIRE(it.step->bind("x", wide.view(kCount, kCount)).ok());
  const Error broken(ErrorKind::kernel_failed, "A byte went missing.");
  it.stream.failed_write(wide.view(0, kCount), broken);
  it.stream.failed_write(wide.view(2 * kCount, kCount), broken);
  CHECK(it.replay());
  it.stream.failed_write(wide.view(2 * kCount - 1, 1), broken);
  CHECK(it.step->replay(it.stream).skipped());
}

TEST_CASE("P2: a caller can turn the check of the inputs off") {
  Replaying it(StreamKind::inline_);
  it.stream.write(it.x, all(1));
  it.stream.failed_write(it.x, Error(ErrorKind::kernel_failed, "The microphone is unplugged."));
  CHECK(it.step->replay(it.stream, {.check_inputs = false}).executed_cleanly());
}

TEST_CASE("P2: an input that nobody has written is refused") {
  Replaying it(StreamKind::inline_);
  auto skipped = it.step->replay(it.stream);
  REQUIRE(skipped.skipped());
  CHECK(it.base.device.story(skipped.failure()).find("Nobody has written") != std::string::npos);
  CHECK(it.base.script().scale_runs == 0);
}

TEST_CASE(
    "P2, E10: a replay that is held back because its input failed late leaves its state alone") {
  Replaying it(StreamKind::worker);
  it.stream.write(it.x, all(1));
  REQUIRE(it.replay());
  using Produce = Kernel<Out<float>>;
  std::atomic<bool> go{false};
  it.base.device.kernels().add<Produce>("produce", [&go](std::span<float>) -> Result<void> {
    while (!go) std::this_thread::yield();
    return Error(ErrorKind::kernel_failed, "The microphone is unplugged.");
  });
  const auto produce = it.base.device.kernel<Produce>("produce").value();
  const int runs = it.base.script().scale_runs;
  it.stream.launch(produce, grid(1), it.x);
  CHECK(it.step->replay(it.stream).executed_cleanly());  // queued behind it
  go = true;
  CHECK(!it.stream.sync().ok());
  CHECK(it.base.script().scale_runs == runs);
  const auto read = it.stream.read(it.y);
  REQUIRE(!read.ok());
  CHECK(read.error().text().find("The microphone is unplugged.") != std::string::npos);
  CHECK(it.total() == 2.0F);
  it.stream.write(it.x, all(10));
  REQUIRE(it.replay());
  CHECK(it.result() == 22.0F);
}

TEST_CASE("P4: after a replay that failed while it ran, the state must be reset or written") {
  on_both_kinds_of_streams([](StreamKind kind) {
    Replaying it(kind);
    it.stream.write(it.x, all(1));
    it.base.script().accumulate_fails = true;
    static_cast<void>(it.step->replay(it.stream));
    static_cast<void>(it.stream.sync());
    it.base.script().accumulate_fails = false;

    auto refused = it.step->replay(it.stream);
    REQUIRE(refused.skipped());
    CHECK(it.base.device.story(refused.failure()).find("reset the instance") != std::string::npos);

    SUBCASE("reset") { REQUIRE(it.step->reset(it.stream).ok()); }
    SUBCASE("written") { it.stream.write(it.step->view<float>("total").value(), all(0)); }
    REQUIRE(it.replay());
    CHECK(it.result() == 2.0F);
  });
}

TEST_CASE("P6: memory whose last owner goes is gone at once, though a replay of it is on its way") {
  using Gate = Kernel<std::uint32_t>;
  std::atomic<bool> open{false};
  Replaying it(StreamKind::worker);
  it.base.device.kernels().add<Gate>("gate", [&](std::uint32_t) {
    while (!open) std::this_thread::yield();
  });
  const Gate gate = it.base.device.kernel<Gate>("gate").value();
  for (const bool writes : {false, true}) {
    CAPTURE(writes);
    std::optional<Instance> last(it.plan.instance().value());
    it.stream.write(last->view<float>("x").value(), all(3));
    open = false;
    it.stream.launch(gate, grid(1), 0U);
    const View<float> y = last->view<float>("y").value();
    REQUIRE(last->replay(it.stream).executed_cleanly());
    last.reset();
    std::thread opener([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      open = true;
    });
    Result<void> got;
    if (writes) {
      got = it.stream.write(y, all(1)).into_result();
    } else if (const auto read = it.stream.read(y); !read.ok()) {
      got = read.error();
    }
    opener.join();
    REQUIRE_FALSE(got.ok());
    CHECK(got.error().kind() == ErrorKind::stale_buffer);
  }
}

TEST_CASE("P6: destroying an instance does not disturb a replay that is on its way") {
  Replaying it(StreamKind::worker);
  it.stream.write(it.x, all(3));
  REQUIRE(it.step->replay(it.stream).executed_cleanly());
  it.step.reset();
  CHECK(it.result() == 6.0F);
}

TEST_CASE("P7: an instance that is in use refuses a second thread") {
  Replaying it(StreamKind::inline_);
  it.stream.write(it.x, all(1));
  std::atomic<bool> inside{false};
  std::atomic<bool> leave{false};
  using Wait = Kernel<InOut<float>>;
  it.base.device.kernels().add<Wait>("wait", [&](std::span<float>) {
    inside = true;
    while (!leave) std::this_thread::yield();
  });
  const auto wait = it.base.device.kernel<Wait>("wait").value();
  const auto buffer = it.base.device.buffer<float>("b", kCount, Role::input).value();
  it.stream.write(buffer, all(0));
  auto window = it.stream.record().value();
  it.stream.launch(wait, grid(1), buffer);
  auto recording = window.seal().value();
  it.stream.write(buffer, all(0));
  auto slow = instance(recording).value();

  std::thread other([&] {
    auto stream = it.base.device.stream().value();
    CHECK(slow.replay(stream).executed_cleanly());
  });
  while (!inside) std::this_thread::yield();
  auto second = slow.replay(it.stream);
  const auto bound = slow.bind("b", it.x);
  const auto viewed = slow.view<float>("b");
  const auto reset = slow.reset(it.stream);
  leave = true;
  other.join();
  REQUIRE(second.failed());
  CHECK(second.error().kind() == ErrorKind::busy);
  REQUIRE(!bound.ok());
  CHECK(bound.error().kind() == ErrorKind::busy);
  REQUIRE(!viewed.ok());
  CHECK(viewed.error().kind() == ErrorKind::busy);
  REQUIRE(!reset.ok());
  CHECK(reset.error().kind() == ErrorKind::busy);
  CHECK(!it.base.device.check(buffer));  // a refusal by P7 claims nothing
  CHECK(slow.replay(it.stream).executed_cleanly());
}

TEST_CASE("P7: threads share a plan and each has an instance and a state of its own") {
  on_both_kinds_of_streams([](StreamKind kind) {
    Replaying it(kind);
    std::vector<std::thread> threads;
    std::vector<float> totals(4);
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        auto stream = it.base.device.stream(kind).value();
        auto step = it.plan.instance().value();
        const auto x = step.view<float>("x").value();
        for (int i = 0; i < 100; ++i) {
          stream.write(x, all(static_cast<float>(t + 1)));
          if (!step.replay(stream).executed_cleanly()) return;
        }
        totals[static_cast<std::size_t>(t)] =
            stream.read(step.view<float>("y").value()).value()[kCount - 1];
      });
    }
    for (std::thread& thread : threads) thread.join();
    CHECK(totals == std::vector<float>{200, 400, 600, 800});
  });
}

TEST_CASE("C12: a replay and a reset inside a window are refused and doom nothing") {
  Replaying it(StreamKind::inline_);
  it.stream.write(it.x, all(1));
  const auto other = it.base.device.buffer<float>("other", kCount).value();
  auto window = it.stream.record().value();
  it.stream.fill(other, 1.0F);
  auto refused = it.step->replay(it.stream);
  REQUIRE(refused.failed());
  CHECK(refused.error().kind() == ErrorKind::refused_in_window);
  const auto reset = it.step->reset(it.stream);
  REQUIRE(!reset.ok());
  CHECK(reset.error().kind() == ErrorKind::refused_in_window);
  CHECK(window.seal().ok());
}

TEST_CASE("C18, P2: a recording's own replay looks beneath its mark, and clears it") {
  CounterDevice base;
  auto stream = base.device.stream().value();
  const auto x = base.device.buffer<float>("x", kCount, Role::input).value();
  const auto weight = base.device.constant<float>("weight", bytes_of(all(2))).value();
  const auto scaled = base.device.buffer<float>("", kCount).value();
  const auto total = base.device.buffer<float>("total", kCount, Role::state).value();
  const auto y = base.device.buffer<float>("y", kCount, Role::output).value();
  stream.write(x, all(1));
  base.launch(stream, x, weight, scaled, total, y);  // once for real
  CHECK(stream.read(y).value()[0] == 2.0F);

  auto window = stream.record().value();
  base.launch(stream, x, weight, scaled, total, y);
  auto recording = window.seal().value();
  for (const auto* buffer : {&scaled, &total, &y}) {
    const auto carried = base.device.check(*buffer);
    REQUIRE(carried);
    CHECK(carried->kind() == ErrorKind::not_replayed);
  }
  auto step = instance(recording).value();
  REQUIRE(step.replay(stream).executed_cleanly());
  CHECK(stream.read(y).value()[0] == 4.0F);  // the state went on from the eager step
  CHECK(!base.device.check(scaled));
  CHECK(base.device.live_failures() == 0);
}

TEST_CASE("C14: a recording keeps what it uses, and has one instance on its memory at a time") {
  CounterDevice base;
  auto stream = base.device.stream().value();
  std::optional<Recording> recording(base.record(stream));  // every handle of a buffer is gone
  {
    auto step = instance(*recording).value();
    const auto second = instance(*recording);
    REQUIRE(!second.ok());
    CHECK(second.error().kind() == ErrorKind::busy);
    stream.write(step.view<float>("x").value(), all(4));
    REQUIRE(step.replay(stream).executed_cleanly());
    CHECK(stream.read(step.view<float>("y").value()).value()[0] == 8.0F);
  }
  CHECK(instance(*recording).ok());
  recording.reset();
  CHECK(base.device.live_failures() == 0);
}

TEST_CASE("C14: a replay sends the host bytes that were recorded, whatever became of them") {
  CounterDevice base;
  auto stream = base.device.stream().value();
  const auto y = base.device.buffer<float>("y", kCount, Role::output).value();
  std::vector<float> bytes = all(7);
  auto window = stream.record().value();
  stream.write(y, bytes);
  auto recording = window.seal().value();
  bytes = all(-1);
  CHECK(recording.graph().frozen().size() == 1);
  auto step = instance(recording).value();
  for (int i = 0; i < 3; ++i) {
    stream.fill(y, 0.0F);
    REQUIRE(step.replay(stream).executed_cleanly());
    CHECK(stream.read(y).value() == all(7));
  }
}

TEST_CASE("P1: a fresh instance is a reset one, and reset brings it back") {
  on_both_kinds_of_streams([](StreamKind kind) {
    Replaying it(kind);
    it.stream.write(it.x, all(1));
    REQUIRE(it.replay());
    REQUIRE(it.replay());
    CHECK(it.total() == 4.0F);
    auto fresh = it.plan.instance().value();
    CHECK(it.stream.read(fresh.view<float>("total").value()).value() == all(0));
    REQUIRE(it.step->reset(it.stream).ok());
    CHECK(it.total() == 0.0F);
    REQUIRE(it.replay());
    CHECK(it.result() == 2.0F);
  });
}

TEST_CASE("P1: a state starts, and is reset, at its declared start") {
  CounterDevice base;
  auto stream = base.device.stream().value();
  const auto start = all(100);
  auto total = base.device.state<float>("total", start).value();
  CHECK(stream.read(total).value() == start);
  const auto one = base.device.buffer<float>("one", kCount, Role::input).value();
  stream.write(one, all(1));
  auto window = stream.record().value();
  stream.launch(*base.accumulate, grid(kCount), one, total);
  const auto plan = Plan::prepare(base.device, window.seal().value().graph()).value();
  auto step = plan.instance().value();
  REQUIRE(step.bind("one", one).ok());
  REQUIRE(step.replay(stream).executed_cleanly());
  const auto view = step.view<float>("total").value();
  CHECK(stream.read(view).value()[0] == 101.0F);
  REQUIRE(step.reset(stream).ok());
  CHECK(stream.read(view).value() == start);
}

TEST_CASE("binding: what does not fit is refused by name and the old binding stays") {
  Replaying it(StreamKind::inline_);
  it.stream.write(it.x, all(1));
  const auto refused = [&](const Result<void>& bound, ErrorKind kind, const std::string& says) {
    REQUIRE(!bound.ok());
    CHECK(bound.error().kind() == kind);
    INFO(bound.error().text());
    CHECK(bound.error().text().find(says) != std::string::npos);
    CHECK(it.replay());
  };
  const auto& device = it.base.device;
  const auto small = device.buffer<float>("small", 3).value();
  const auto ints = device.buffer<std::int32_t>("ints", kCount).value();
  const auto fixed = device.constant<float>("fixed", bytes_of(all(1))).value();
  refused(it.step->bind("z", it.x), ErrorKind::unbound, "\"x\", \"total\", \"y\"");
  refused(it.step->bind("weight", it.x), ErrorKind::unbound, "constant");
  refused(it.step->bind("x", small), ErrorKind::invalid_argument, "12 bytes");
  refused(it.step->bind("x", ints), ErrorKind::invalid_argument, "i32");
  refused(it.step->bind("y", fixed), ErrorKind::invalid_argument, "constant");
  refused(it.step->bind("y", it.x), ErrorKind::invalid_argument, "same bytes");
  refused(it.step->bind("x", it.x.view(kCount, 1)), ErrorKind::invalid_argument, "outside");
  std::optional<Buffer<float>> gone(device.buffer<float>("gone", kCount).value());
  const View<float> stale = *gone;
  gone.reset();
  refused(it.step->bind("x", stale), ErrorKind::stale_buffer, "after it was freed");
  host::Device other;
  const auto foreign = other.buffer<float>("foreign", kCount).value();
  refused(it.step->bind("x", foreign), ErrorKind::other_device, "another device");
  CHECK(it.step->bind("x", fixed).ok());  // an input that is only read may be a constant
}

TEST_CASE("binding: a pointer and no copy, kept by the instance, and waited for when in flight") {
  Replaying it(StreamKind::worker);
  it.stream.write(it.x, all(1));
  REQUIRE(it.step->replay(it.stream).executed_cleanly());
  {
    const auto next = it.base.device.buffer<float>("next", kCount, Role::input).value();
    it.stream.write(next, all(5));
    REQUIRE(it.step->bind("x", next).ok());
  }  // the instance keeps it
  REQUIRE(it.step->replay(it.stream).executed_cleanly());
  CHECK(it.result() == 12.0F);
}

TEST_CASE("binding: an input that nobody gave is refused and nothing is claimed") {
  CounterDevice base;
  auto stream = base.device.stream().value();
  const auto plan = Plan::prepare(base.device, base.record(stream).graph()).value();
  auto step = plan.instance().value();
  auto refused = step.replay(stream);
  REQUIRE(refused.failed());
  CHECK(refused.error().kind() == ErrorKind::unbound);
  CHECK(refused.error().text().find("\"x\"") != std::string::npos);
  CHECK(base.device.live_failures() == 0);
}

TEST_CASE(
    "a replay that does nothing cannot pass: outputs poisoned before, inputs changed each time") {
  on_both_kinds_of_streams([](StreamKind kind) {
    Replaying it(kind);
    float total = 0;
    for (int i = 1; i <= 20; ++i) {
      it.stream.fill(it.y, -1.0F);
      it.stream.write(it.x, all(static_cast<float>(i)));
      REQUIRE(it.replay());
      total += 2 * static_cast<float>(i);
      REQUIRE(it.stream.read(it.y).value() == all(total));
    }
  });
}

TEST_CASE("a plan is refused by name for a missing kernel and for one with other parameters") {
  CounterDevice base;
  auto stream = base.device.stream().value();
  const SealedGraph graph = base.record(stream).graph();
  host::Device bare;
  const auto missing = Plan::prepare(bare, graph);
  REQUIRE(!missing.ok());
  CHECK(missing.error().kind() == ErrorKind::kernel_missing);
  CHECK(missing.error().text().find("scale/1(in f32*, in f32*, out f32*)") != std::string::npos);
  using Other = Kernel<In<float>, In<float>, InOut<float>>;
  bare.kernels().add<Other>("scale", [](auto, auto, auto) {});
  const auto changed = Plan::prepare(bare, graph);
  REQUIRE(!changed.ok());
  CHECK(changed.error().kind() == ErrorKind::kernel_signature);
  CHECK(changed.error().text().find("in_out f32*") != std::string::npos);
}

TEST_CASE("M5: an input that was made as a state has no start and counts as unwritten") {
  CounterDevice base;
  auto stream = base.device.stream().value();
  const auto x = base.device.buffer<float>("x", kCount, Role::state).value();
  const auto y = base.device.buffer<float>("y", kCount, Role::output).value();
  auto window = stream.record().value();
  stream.copy(y, x);
  const auto recording =
      window.seal({.name = "step", .roles = {{x.id(), Role::input, ""}}}).value();
  auto step = Plan::prepare(base.device, recording.graph()).value().instance().value();
  REQUIRE(step.view<float>("x").ok());
  CHECK(step.replay(stream).skipped());
}

TEST_CASE("binding: bytes that begin inside an element are refused") {
  Replaying it(StreamKind::inline_);
  const auto wide = it.base.device.buffer<float>("wide", kCount + 1).value();
  const BufferBinding crooked{wide.id(), {1, 1 + kCount * sizeof(float)}};
  const auto bound = it.step->bind("x", crooked, ElementType::f32);
  REQUIRE(!bound.ok());
  CHECK(bound.error().text().find("inside an element") != std::string::npos);
}

TEST_CASE("P7: a recording's memory is free again once its last replay has been waited for") {
  CounterDevice base;
  auto stream = base.device.stream(StreamKind::worker).value();
  const Recording recording = base.record(stream);
  for (int i = 1; i <= 200; ++i) {
    auto step = instance(recording);
    REQUIRE(step.ok());
    stream.write(step->view<float>("x").value(), all(1));
    const auto y = step->view<float>("y").value();
    REQUIRE(step->replay(stream).executed_cleanly());
    { const Instance gone = *std::move(step); }
    REQUIRE(stream.read(y).value()[0] == 2.0F * static_cast<float>(i));
  }
}

TEST_CASE("P4: sync answers a failed replay with what it asks of its user") {
  Replaying it(StreamKind::worker);
  it.stream.write(it.x, all(1));
  it.base.script().accumulate_fails = true;
  static_cast<void>(it.step->replay(it.stream));
  const auto synced = it.stream.sync();
  REQUIRE(!synced.ok());
  CHECK(synced.error().text().find("reset the instance") != std::string::npos);
}

TEST_CASE("C1: a window that is left inside a piece of its work ends after that work") {
  CounterDevice base;
  auto stream = base.device.stream().value();
  const auto y = base.device.buffer<float>("y", kCount).value();
  stream.fill(y, 1.0F);
  std::optional<OpenWindow> window(stream.record().value());
  const bool abort = [] {
    bool aborts = false;
    SUBCASE("aborted") { aborts = true; }
    SUBCASE("dropped") { aborts = false; }
    return aborts;
  }();
  WriteSet writes = stream.write_set();
  writes.add(y.view().binding());
  ExecuteScope<Stream>::over(stream, intern_kernel_name("body"), std::move(writes), Where::here())
      .execute([&](Stream& on) -> Result<void> {
        if (abort) window->abort();
        window.reset();
        CHECK(!on.record().ok());
        on.fill(y, 2.0F);
        return {};
      });
  CHECK(stream.read(y).ok() == abort);  // C11: what was dropped is claimed, what was aborted is not
  auto next = stream.record();
  REQUIRE(next.ok());
  stream.fill(y, 3.0F);
  CHECK(next->seal().ok());
  stream.fill(y, 0.0F);
}

TEST_CASE("M6: a constant without bytes is refused") {
  const host::Device device;
  const auto made = device.buffer<float>("weights", 4, Role::constant);
  REQUIRE(!made.ok());
  CHECK(made.error().kind() == ErrorKind::invalid_argument);
}
