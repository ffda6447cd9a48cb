// Several graphs over one live state: a mark says that what was recorded has not run, and keeps
// nobody from running over the bytes beneath it (C18, decision 0007).
#include <doctest/doctest.h>

#include <string>

#include "counter_graph.hpp"

namespace refrain::test {
namespace {

/// A state, an input of ones, and graphs that add the one to the other.
class Counters {
 public:
  Counters() { stream.write(one, all(1)); }

  void step(int times) {
    for (int time = 0; time < times; ++time) {
      stream.launch(*base.accumulate, grid(kCount), one, total);
    }
  }
  Recording record(const std::string& name, int times, bool warm) {
    OpenWindow window =
        warm ? stream.prepare([&] { step(times); }).value() : stream.prepare().value();
    REQUIRE(window.begin().ok());
    step(times);
    return window.seal({.name = name}).value();
  }
  [[nodiscard]] bool marked() const {
    const auto carried = base.device.check(total);
    return carried && carried->kind() == ErrorKind::not_replayed;
  }
  [[nodiscard]] float count() { return stream.read(total).value()[0]; }

  CounterDevice base;
  Stream stream = base.device.stream().value();
  Buffer<float> total = base.device.buffer<float>("total", kCount, Role::state).value();
  Buffer<float> one = base.device.buffer<float>("one", kCount, Role::input).value();
};

}  // namespace

TEST_CASE("C18: graphs that are recorded over one live state replay in any order") {
  for (const bool warm : {false, true}) {
    CAPTURE(warm);
    Counters it;
    const Recording first = it.record("first", 1, warm);
    auto one = instance(first).value();
    REQUIRE(one.replay(it.stream).executed_cleanly());
    CHECK(it.count() == 1.0F);
    const Recording second = it.record("second", 10, warm);
    const Recording third = it.record("third", 100, warm);
    CHECK(it.marked());
    CHECK_FALSE(it.stream.read(it.total).ok());
    REQUIRE(one.replay(it.stream).executed_cleanly());  // beneath the mark of another graph
    CHECK(it.count() == 2.0F);
    auto two = instance(second).value();
    auto three = instance(third).value();
    REQUIRE(three.replay(it.stream).executed_cleanly());
    REQUIRE(two.replay(it.stream).executed_cleanly());
    REQUIRE(one.replay(it.stream).executed_cleanly());
    CHECK(it.count() == 113.0F);
  }
}

TEST_CASE("C18: a loaded plan looks beneath marks on the buffer that is bound to its state") {
  Counters it;
  const Recording first = it.record("first", 1, false);
  auto step = Plan::prepare(it.base.device, first.graph()).value().instance().value();
  REQUIRE(step.bind("total", it.total).ok());
  REQUIRE(step.bind("one", it.one).ok());
  CHECK(it.marked());
  REQUIRE(step.replay(it.stream).executed_cleanly());
  CHECK(it.count() == 1.0F);
  const Recording second = it.record("second", 10, true);
  CHECK(it.marked());
  REQUIRE(step.replay(it.stream).executed_cleanly());
  CHECK(it.count() == 2.0F);
}

TEST_CASE("C18: what no state carries is looked at, and so is a failure beneath a mark") {
  Counters it;
  const auto made = it.base.device.buffer<float>("made", kCount).value();
  auto window = it.stream.record().value();
  it.stream.fill(made, 1);
  const Recording producer = window.seal({.name = "producer"}).value();
  auto reading = it.stream.record().value();
  it.stream.launch(*it.base.accumulate, grid(kCount), made, it.total);
  const Recording consumer = reading.seal({.name = "consumer"}).value();
  auto step = instance(consumer).value();
  const auto early = step.replay(it.stream);
  REQUIRE(early.skipped());
  CHECK(it.base.device.story(early.failure()).find("Graph \"producer\"") != std::string::npos);
  auto before = instance(producer).value();
  REQUIRE(before.replay(it.stream).executed_cleanly());
  REQUIRE(step.replay(it.stream).executed_cleanly());
  CHECK(it.count() == 1.0F);

  it.stream.failed_write(it.total, Error(ErrorKind::kernel_failed, "The cache was lost."));
  // Recorded over, by a graph that writes it first.
  auto over = it.stream.record().value();
  it.stream.fill(it.total, 0);
  const Recording clears = over.seal({.name = "clears"}).value();
  const auto lost = step.replay(it.stream);
  REQUIRE(lost.skipped());
  CHECK(it.base.device.story(lost.failure()).find("The cache was lost.") != std::string::npos);
}

TEST_CASE("C18, K1: eager work that a mark skips makes no failure of the state's mark") {
  Counters it;
  const Recording first = it.record("first", 1, false);
  const auto copied = it.base.device.buffer<float>("copied", kCount).value();
  it.stream.write(copied, all(0));
  CHECK(it.stream.launch(*it.base.accumulate, grid(kCount), it.one, it.total).skipped());
  CHECK(it.stream.copy(copied, it.total).skipped());
  CHECK(it.marked());
  CHECK_FALSE(it.stream.read(it.total).ok());
  CHECK_FALSE(it.stream.read(copied).ok());  // it lacks the copy, and says so
  auto step = instance(first).value();
  REQUIRE(step.replay(it.stream).executed_cleanly());
  CHECK(it.count() == 1.0F);
  CHECK_FALSE(it.stream.read(copied).ok());
}

TEST_CASE("C18: the text of a mark says what to do") {
  Counters it;
  const Recording first = it.record("first", 1, false);
  const std::string text = it.stream.read(it.total).error().text();
  CHECK(text.find("(Replay it, or write or reset these bytes.)") != std::string::npos);
  it.stream.fill(it.total, 5);
  CHECK(it.count() == 5.0F);
}

TEST_CASE("C18, C20: a warm-up runs beneath marks, and puts back the bytes and the marks") {
  Counters it;
  const auto made = it.base.device.buffer<float>("made", kCount).value();
  it.stream.fill(made, 4);
  it.stream.fill(it.total, 3);
  auto window = it.stream.record().value();
  it.stream.fill(made, 1);
  it.step(1);
  const Recording first = window.seal({.name = "first"}).value();
  const auto body = [&] { it.stream.launch(*it.base.accumulate, grid(kCount), made, it.total); };
  auto second = it.stream.prepare(body);
  REQUIRE(second.ok());
  CHECK(it.marked());
  CHECK(it.base.device.check(made).value().kind() == ErrorKind::not_replayed);  // only read
  second->abort();
  auto step = instance(first).value();
  REQUIRE(step.replay(it.stream).executed_cleanly());
  CHECK(it.count() == 4.0F);
  CHECK(it.stream.read(made).value()[0] == 1.0F);
}

TEST_CASE("C20: a warm-up whose body replays puts the states of the replay back") {
  for (const bool look : {true, false}) {
    CAPTURE(look);
    Counters it;
    const Recording first = it.record("first", 1, false);
    auto step = instance(first).value();
    REQUIRE(step.replay(it.stream).executed_cleanly());
    auto other = it.base.device.stream().value();
    int passes = 0;
    auto window = it.stream.prepare([&]() -> Result<void> {
      REFRAIN_TRY(step.replay(other, {.check_inputs = look}).into_result());
      if (++passes < 3) return it.stream.first_use("it", []() -> Result<void> { return {}; });
      return {};
    });
    REQUIRE(window.ok());
    CHECK(passes == 3);
    CHECK(it.count() == 1.0F);
  }
}

TEST_CASE("C20: a warm-up in which a replay was skipped or failed is none") {
  Counters it;
  const Recording first = it.record("first", 1, false);
  auto step = instance(first).value();
  REQUIRE(step.replay(it.stream).executed_cleanly());
  it.base.script().accumulate_fails = true;
  const auto failed = it.stream.prepare([&] { static_cast<void>(step.replay(it.stream)); });
  it.base.script().accumulate_fails = false;
  REQUIRE_FALSE(failed.ok());
  CHECK(failed.error().text().find("The adder lost count.") != std::string::npos);
  CHECK(it.count() == 1.0F);
  it.stream.failed_write(it.one, Error(ErrorKind::kernel_failed, "No input came."));
  const auto skipped = it.stream.prepare([&] { static_cast<void>(step.replay(it.stream)); });
  REQUIRE_FALSE(skipped.ok());
  CHECK(skipped.error().text().find("No input came.") != std::string::npos);
  CHECK(it.count() == 1.0F);
}

}  // namespace refrain::test
