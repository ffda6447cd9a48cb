// Rule E10: work that fails after it was issued, on worker streams.
#include <chrono>
#include <thread>

#include "device/rig.hpp"

namespace refrain {
namespace {

using namespace test;

/// A rig whose first launch waits, so that what is issued behind it is queued before it fails.
struct Late {
  explicit Late(std::function<Result<void>()> end = fails("it broke late")) {
    rig.control.does[1] = [this, end] {
      gate.wait();
      return end();
    };
  }
  Gate gate;  // first: the worker looks at it
  Rig rig{StreamKind::worker};
};

}  // namespace

TEST_CASE(
    "E10: work queued behind a failure that reads its bytes does not run and carries the root") {
  for (const bool thrown : {false, true}) {
    CAPTURE(thrown);
    Late late(thrown ? throws("it broke late") : fails("it broke late"));
    Rig& rig = late.rig;
    const Buffer<float> x = rig.floats("x", 1);
    const Buffer<float> y = rig.floats("y", 1);
    const Buffer<float> z = rig.floats("z", 1);
    const Buffer<float> apart = rig.floats("apart", 1);
    CHECK(rig.stream.launch(*rig.make, grid(4), x, 1U).executed_cleanly());
    CHECK(rig.stream.launch(*rig.map, grid(4), x, y, 2U).executed_cleanly());
    CHECK(rig.stream.copy(z, y).executed_cleanly());
    CHECK(rig.stream.launch(*rig.update, grid(4), apart, 3U).executed_cleanly());
    CHECK(rig.heard().empty());
    late.gate.open();
    rig.settle();
    CHECK(rig.control.runs(2) == 0);
    CHECK(rig.control.runs(3) == 1);
    const FailureId root = rig.carried(x).failure();
    CHECK(rig.carried(y).failure() == root);
    CHECK(rig.carried(z).failure() == root);
    CHECK(rig.device.live_failures() == 1);
    CHECK(rig.values(apart) == four(2));
    const Heard heard = rig.only_heard();
    CHECK(heard.stream == rig.stream.id());
    CHECK(says(heard.error, "it broke late"));
    if (thrown) CHECK(rig.carried(z).exception() != nullptr);

    const std::string story = rig.unreadable(z).text();
    CAPTURE(story);
    const std::size_t copied = story.find("\"copy\"");
    REQUIRE(copied != std::string::npos);
    CHECK(story.find("it broke late") < copied);
    CHECK(story.find("skipped: \"map\"") > copied);
    CHECK(story.find("late_failure_test.cpp") != std::string::npos);
  }
}

TEST_CASE("E10: work queued behind a failure that writes its bytes anew makes them good") {
  Late late;
  Rig& rig = late.rig;
  const Buffer<float> x = rig.floats("x", 1);
  const Buffer<float> y = rig.floats("y", 1);
  rig.stream.launch(*rig.make, grid(4), x, 1U);
  rig.stream.launch(*rig.make, grid(4), x.view(0, 2), 2U);
  rig.stream.launch(*rig.map, grid(4), x.view(0, 2), y.view(0, 2), 3U);
  rig.stream.launch(*rig.map, grid(4), x.view(2, 2), y.view(2, 2), 4U);
  late.gate.open();
  rig.settle();
  CHECK(rig.control.runs(2) == 1);
  CHECK(rig.control.runs(3) == 1);
  CHECK(rig.control.runs(4) == 0);
  CHECK(rig.clean(x.view(0, 2)));
  CHECK(rig.clean(y.view(0, 2)));
  CHECK(rig.carried(x.view(2, 2)).message() == "it broke late");
  CHECK(rig.carried(y.view(2, 2)).message() == "it broke late");
  CHECK(rig.values(y.view(0, 2)) == std::vector<float>{11, 11});
}

TEST_CASE("E10: a failure follows the data across two streams that an event orders") {
  Late late;
  Rig& rig = late.rig;
  const Buffer<float> x = rig.floats("x", 1);
  const Buffer<float> y = rig.floats("y", 1);
  const Buffer<float> apart = rig.floats("apart", 1);
  Stream other = rig.another();
  rig.stream.launch(*rig.make, grid(4), x, 1U);
  const Event event = rig.stream.record_event().value();
  REQUIRE(other.wait(event).ok());
  other.launch(*rig.map, grid(4), x, y, 2U);
  other.launch(*rig.update, grid(4), apart, 3U);
  late.gate.open();
  REQUIRE(event.wait().ok());
  static_cast<void>(other.sync());
  CHECK(rig.control.runs(2) == 0);
  CHECK(rig.control.runs(3) == 1);
  CHECK(rig.carried(y).failure() == rig.carried(x).failure());
  CHECK(says(rig.unreadable(y), "stream " + std::to_string(other.id().number)));
}

TEST_CASE(
    "E10: a failure follows the data over three streams and through a stream that did no work") {
  Late late;
  Rig& rig = late.rig;
  const Buffer<float> x = rig.floats("x", 1);
  const Buffer<float> y = rig.floats("y", 1);
  Stream middle = rig.another();
  Stream last = rig.another();
  rig.stream.launch(*rig.make, grid(4), x, 1U);
  REQUIRE(middle.wait(rig.stream.record_event().value()).ok());
  REQUIRE(last.wait(middle.record_event().value()).ok());
  last.launch(*rig.map, grid(4), x, y, 2U);
  last.launch(*rig.make, grid(4), x, 0U);
  late.gate.open();
  static_cast<void>(last.sync());
  CHECK(rig.control.runs(2) == 0);
  CHECK(rig.carried(y).message() == "it broke late");
  CHECK(rig.clean(x));  // written anew, after it
}

TEST_CASE("E10: a second failure keeps to the bytes that carry none") {
  Late late;
  Rig& rig = late.rig;
  rig.control.does[2] = fails("a second one broke");
  const Buffer<float> x = rig.floats("x", 1);
  const Buffer<float> y = rig.floats("y", 1);
  rig.stream.launch(*rig.make, grid(4), x.view(0, 2), 1U);
  rig.stream.launch(*rig.make, grid(4), y, 2U);
  rig.stream.launch(*rig.join, grid(4), x, y, y, 3U);
  late.gate.open();
  rig.settle();
  CHECK(rig.control.runs(3) == 0);
  CHECK(rig.carried(x.view(0, 2)).message() == "it broke late");
  CHECK(rig.heard().size() == 2);
}

TEST_CASE("E10: sync answers the first late failure once") {
  Late late;
  Rig& rig = late.rig;
  rig.control.does[2] = fails("a second one broke");
  const Buffer<float> x = rig.floats("x", 1);
  const Buffer<float> y = rig.floats("y", 1);
  rig.stream.launch(*rig.make, grid(4), x, 1U);
  rig.stream.launch(*rig.make, grid(4), y, 2U);
  late.gate.open();
  const Result<void> first = rig.stream.sync();
  REQUIRE_FALSE(first.ok());
  CHECK(first.error().message() == "it broke late");
  CHECK(rig.stream.sync().ok());
}

TEST_CASE("E10: a read waits for the last writer and then looks, and check looks at once") {
  Late late;
  Rig& rig = late.rig;
  const Buffer<float> x = rig.floats("x", 1);
  rig.stream.launch(*rig.make, grid(4), x, 1U);
  CHECK(rig.clean(x));  // M8: what is known now, without waiting
  std::thread opener([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    late.gate.open();
  });
  CHECK(says(rig.unreadable(x), "it broke late"));
  opener.join();
}

TEST_CASE("E10: an input that fails between issue and run stops the work, not the stream") {
  Late late;
  Rig& rig = late.rig;
  const Buffer<float> x = rig.floats("x", 1);
  const Buffer<float> y = rig.floats("y", 1);
  rig.stream.launch(*rig.make, grid(4), x, 1U);
  const auto issued = rig.stream.launch(*rig.map, grid(4), x, y, 2U);
  CHECK(issued.executed_cleanly());  // enqueued
  late.gate.open();
  rig.settle();
  CHECK(rig.control.runs(2) == 0);
  rig.forget_heard();
  CHECK(rig.stream.launch(*rig.map, grid(4), x, y, 2U).skipped());  // now it is known
  CHECK(rig.only_heard().error.message() == "it broke late");
  CHECK(rig.stream.fill(x, 1).executed_cleanly());
  CHECK(rig.stream.launch(*rig.map, grid(4), x, y, 2U).executed_cleanly());
  CHECK(rig.values(y) == four(2));
}

TEST_CASE("E10: a late failure dooms no window, which sees it in what it reads from then on") {
  Late late;
  Rig& rig = late.rig;
  const Buffer<float> x = rig.floats("x", 1);
  const Buffer<float> y = rig.floats("y", 1);
  const Buffer<float> z = rig.floats("z", 1);
  rig.stream.launch(*rig.make, grid(4), x, 1U);
  OpenWindow window = rig.stream.record().value();
  CHECK(rig.stream.launch(*rig.map, grid(4), x, y, 0U).executed_cleanly());
  late.gate.open();
  while (rig.clean(x)) std::this_thread::yield();
  CHECK(window.state() == WindowState::recording);
  CHECK(rig.stream.launch(*rig.update, grid(4), z, 0U).executed_cleanly());
  CHECK(rig.stream.launch(*rig.map, grid(4), x, y, 0U).skipped());
  CHECK(window.state() == WindowState::doomed);
  window.abort();
}

TEST_CASE("E10: an unwritten buffer that failed work was to write carries the failure") {
  Late late;
  Rig& rig = late.rig;
  const Buffer<float> x = rig.unwritten("x");
  rig.stream.launch(*rig.make, grid(4), x.view(0, 2), 1U);
  late.gate.open();
  rig.settle();
  CHECK(rig.carried(x.view(0, 2)).message() == "it broke late");
  CHECK(rig.carried(x.view(2, 2)).kind() == ErrorKind::unwritten);
}

TEST_CASE("M4: buffers may go while work on them is queued, and the memory waits for the work") {
  for (const bool failing : {false, true}) {
    CAPTURE(failing);
    Late late(failing ? fails("it broke late") : [] { return Result<void>(); });
    Rig& rig = late.rig;
    const Buffer<float> kept = rig.floats("kept", 1);
    {
      const Buffer<float> x = rig.floats("x", 1);
      const Buffer<float> y = rig.floats("y", 1);
      rig.stream.launch(*rig.make, grid(4), x, 1U);
      rig.stream.launch(*rig.map, grid(4), x, y, 2U);
      rig.stream.copy(kept, y);
    }
    const Buffer<float> again =
        rig.device.buffer<float>("again", 4).value();  // perhaps the same slot
    late.gate.open();
    rig.settle();
    CHECK(rig.control.runs(2) == (failing ? 0 : 1));
    CHECK(rig.carried(again).kind() == ErrorKind::unwritten);
    if (failing) {
      CHECK(says(rig.unreadable(kept), "it broke late"));
      CHECK(says(rig.unreadable(kept), "(gone by now)"));
    } else {
      CHECK(rig.values(kept) == four(11));
    }
  }
}

TEST_CASE("a stream may go while its work is queued: it waits, and a failure is not lost") {
  Late late;
  Rig& rig = late.rig;
  const Buffer<float> x = rig.floats("x", 1);
  std::thread opener;
  {
    Stream going = rig.another();
    going.launch(*rig.make, grid(4), x, 1U);
    opener = std::thread([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      late.gate.open();
    });
  }
  CHECK(rig.carried(x).message() == "it broke late");
  opener.join();
}

TEST_CASE("a stream waits for its work when it goes, also when a spent window's handle stays") {
  Rig rig(StreamKind::worker);
  const Buffer<float> x = rig.floats("x", 1);
  std::atomic<bool> ended{false};
  rig.control.does[1] = [&]() -> Result<void> {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    ended = true;
    return {};
  };
  std::optional<OpenWindow> window;
  {
    Stream going = rig.another();
    window.emplace(going.record().value());
    window->abort();
    going.launch(*rig.make, grid(4), x, 1U);
  }
  CHECK(ended);
}

TEST_CASE("the handle of a device may go first") {
  Control control;
  std::optional<host::Device> device(std::in_place, DeviceOptions{true, {}});
  register_on(device->kernels(), control);
  const auto make = device->kernel<Make>("make").value();
  Stream stream = device->stream(StreamKind::worker).value();
  Buffer<float> x = device->buffer<float>("x", 4).value();
  device.reset();
  CHECK(stream.launch(make, grid(4), x, 0U).executed_cleanly());
  const auto got = stream.read(x);
  REQUIRE(got.ok());
  CHECK(*got == four(10));
}

TEST_CASE("events: one is reached when all work before it has ended") {
  Rig rig(StreamKind::worker);
  const Buffer<float> x = rig.floats("x", 1);
  Gate gate;
  rig.control.does[1] = waits(gate);
  rig.stream.launch(*rig.make, grid(4), x, 1U);
  const Event event = rig.stream.record_event().value();
  CHECK_FALSE(event.reached().value());
  gate.open();
  REQUIRE(event.wait().ok());
  CHECK(event.reached().value());
}

TEST_CASE("events: an inline stream that waits on one runs after what it stands for") {
  Rig rig(StreamKind::worker);
  const Buffer<float> x = rig.floats("x", 1);
  const Buffer<float> y = rig.floats("y", 1);
  rig.control.does[1] = [&]() -> Result<void> {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return {};
  };
  Stream other = rig.device.stream(StreamKind::inline_).value();
  rig.stream.launch(*rig.make, grid(4), x, 1U);
  REQUIRE(other.wait(rig.stream.record_event().value()).ok());
  CHECK(other.launch(*rig.map, grid(4), x, y, 0U).executed_cleanly());
  CHECK(rig.values(y) == four(11));
}

TEST_CASE("events: one that outlives its stream is reached") {
  Rig rig(StreamKind::worker);
  std::optional<Event> event;
  {
    Stream going = rig.another();
    event.emplace(going.record_event().value());
  }
  REQUIRE(rig.stream.wait(*event).ok());
  CHECK(rig.stream.sync().ok());
  CHECK(event->reached().value());
}

ON_BOTH_KINDS("events: one of another device is refused") {
  Rig far(StreamKind::inline_);
  const Event event = far.stream.record_event().value();
  const Result<void> waited = rig.stream.wait(event);
  REQUIRE_FALSE(waited.ok());
  CHECK(waited.error().kind() == ErrorKind::other_device);
}

TEST_CASE("E11: a host write waits for the work that uses its bytes, on whichever stream") {
  Rig rig(StreamKind::worker);
  const Buffer<float> x = rig.floats("x", 1);
  const Buffer<float> y = rig.floats("y", 1);
  rig.control.does[1] = [&]() -> Result<void> {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return {};
  };
  Stream other = rig.another();
  SUBCASE("a writer") {
    rig.stream.launch(*rig.make, grid(4), x, 1U);
    CHECK(other.write(x, four(5)).executed_cleanly());
    rig.settle();
    CHECK(rig.values(x) == four(5));
  }
  SUBCASE("a reader") {
    rig.stream.launch(*rig.map, grid(4), x, y, 1U);
    CHECK(other.write(x, four(5)).executed_cleanly());
    CHECK(rig.values(y) == four(2));
  }
}

TEST_CASE("E10: a scope is not hurt by what work inside it makes of bytes that it has read") {
  Late late;
  Rig& rig = late.rig;
  const Buffer<float> x = rig.floats("x", 1);
  const Buffer<float> read = rig.floats("read", 1);
  const Buffer<float> y = rig.floats("y", 1);
  CHECK(rig.stream.launch(*rig.make, grid(4), x, 1U).executed_cleanly());
  const std::array reads{read.view().binding()};
  WriteSet writes = rig.stream.write_set();
  writes.add(y.view().binding());
  const auto outcome = ExecuteScope<Stream>::launching(rig.stream, intern_kernel_name("outer"),
                                                       reads, std::move(writes), Where::here())
                           .execute([&](Stream& stream) -> Result<void> {
                             CHECK(stream.copy(read, x).executed_cleanly());  // issued
                             late.gate.open();
                             static_cast<void>(stream.sync());
                             return {};
                           });
  CHECK(outcome.executed_cleanly());
  CHECK(rig.carried(read).message() == "it broke late");
  CHECK(rig.clean(y));
}

}  // namespace refrain
