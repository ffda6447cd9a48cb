// Cases that users of recorded graphs have met, around the window: something outside breaks it, a
// join that goes wrong halfway, a cause that gets lost, handles that go before the replay. A name
// begins with the case's number.
#include "device/faulty.hpp"
#include "refrain/replay/plan.hpp"

namespace refrain::test {
namespace {}  // namespace

TEST_CASE(
    "B20: whatever another thread does on the device, and is refused, leaves the window alone") {
  for (const StreamKind kind : kKinds) {
    Faulty it;
    Stream stream = it.device.stream(kind).value();
    const Buffer<float> y = it.floats("y", stream);
    const auto make = it.device.kernel<Make>("make").value();
    OpenWindow window = stream.record().value();
    stream.launch(make, grid(4), y, 0U);
    const auto stranger = [&] {
      Stream own = it.device.stream(kind).value();
      const auto mine = it.floats("mine", own);
      const auto update = it.device.kernel<Update>("update").value();
      CHECK(own.launch(update, grid(4), mine, 0U).executed_cleanly());
      CHECK(own.read(mine).value() == four(2));
      CHECK(own.first_use("tuning", []() -> Result<void> { return {}; }).ok());
      {
        OpenWindow second = own.record().value();
        own.fill(mine, 5);
        CHECK(second.seal().ok());
      }
      for (const char* const call : {"allocate", "kernel", "stream", "issue", "read", "sync"}) {
        it.backend->fail_next(call);
        const bool all = it.device.buffer<float>("more", 4).ok() &&
                         it.device.kernel<Make>("make").ok() && it.device.stream(kind).ok() &&
                         own.fill(mine, 1).executed_cleanly() && own.read(mine).ok() &&
                         own.sync().ok();
        CHECK_FALSE(all);
        CHECK(own.fill(mine, 1).executed_cleanly());
      }
      OpenWindow third = own.record().value();
      own.failed_write(mine, broken("mine alone"));
      CHECK_FALSE(third.seal().ok());
    };
    std::thread(stranger).join();
    CHECK(window.state() == WindowState::recording);
    const Result<Recording> sealed = window.seal();
    REQUIRE_MESSAGE(sealed.ok(), sealed.error().text());
    CHECK(sealed->graph().nodes().size() == 1);
  }
}

ON_BOTH_KINDS("B22: two devices in two threads, one recording and one refused, do not meet") {
  const Buffer<float> y = rig.floats("y", 1);
  Faulty other;
  OpenWindow window = rig.stream.record().value();
  rig.stream.launch(*rig.make, grid(4), y, 0U);
  const auto fails_there = [&] {
    Stream stream = other.device.stream(rig.kind()).value();
    const auto z = other.floats("z", stream);
    other.backend->fail_next("allocate");
    CHECK_FALSE(other.device.buffer<float>("more", 4).ok());
    other.backend->fail_next("issue");
    CHECK(stream.fill(z, 1).failed());
    CHECK(other.device.check(z).has_value());
    CHECK(rig.device.live_failures() == 0);
  };
  std::thread(fails_there).join();
  fails_there();  // in the window's own thread as well
  CHECK(window.state() == WindowState::recording);
  CHECK(window.seal().ok());
  CHECK(other.device.live_failures() == 0);
  rig.stream.fill(y, 1);
}

ON_BOTH_KINDS(
    "B29: a join that goes wrong in its second step refuses the seal and frees every fork") {
  std::vector<Buffer<float>> buffers;
  std::vector<std::unique_ptr<Stream>> forks;
  for (int at = 0; at < 4; ++at) {
    buffers.push_back(rig.floats("b" + std::to_string(at), 1));
    forks.push_back(std::make_unique<Stream>(rig.another()));
  }
  const Event outside = forks[1]->record_event().value();
  std::optional<OpenWindow> window = rig.stream.record().value();
  const Event begin = rig.stream.record_event().value();
  for (std::size_t at = 0; at < 4; ++at) {
    REQUIRE(forks[at]->wait(begin).ok());
    forks[at]->launch(*rig.make, grid(4), buffers[at], 0U);
  }
  bool dropped = false;
  std::string second = std::to_string(forks[1]->id().number);
  for (std::size_t at = 0; at < 4; ++at) {
    const Event end = forks[at]->record_event().value();
    const Result<void> joined = rig.stream.wait(at == 1 ? outside : end);
    CHECK(joined.ok() == (at != 1));
    if (!joined.ok()) CHECK(joined.error().kind() == ErrorKind::refused_in_window);
  }
  SUBCASE("sealed") {
    const Result<Recording> sealed = window->seal();
    REQUIRE_FALSE(sealed.ok());
    CHECK(says(sealed.error(), "because stream " + second + ", which joined it"));
    CHECK(says(sealed.error(), "its last is \"make\" on stream " + second));
  }
  SUBCASE("dropped") {
    dropped = true;
    window.reset();
  }
  SUBCASE("a fork destroyed first") {
    forks.erase(forks.begin() + 1);
    const Result<Recording> sealed = window->seal();
    REQUIRE_FALSE(sealed.ok());
    CHECK(says(sealed.error(), "because stream " + second));
    CHECK(says(sealed.error(), "was destroyed with work that nobody waits for"));
  }
  for (const Buffer<float>& each : buffers) {
    CHECK(rig.carried(each).kind() == ErrorKind::window_doomed);
    CHECK(says(rig.carried(each), "dropped") == dropped);
  }
  for (const auto& each : forks) {
    CHECK(each->sync().ok());
    CHECK(each->record().ok());
  }
  CHECK(rig.stream.record().ok());
}

TEST_CASE("B29: a wait that the device refuses outside a window is told, and the others hold") {
  for (const StreamKind kind : kKinds) {
    Faulty it;
    Stream first = it.device.stream(kind).value();
    std::vector<std::unique_ptr<Stream>> forks;
    for (int at = 0; at < 4; ++at)
      forks.push_back(std::make_unique<Stream>(it.device.stream(kind).value()));
    const Buffer<float> x = it.floats("x", first);
    const Event event = first.record_event().value();
    for (std::size_t at = 0; at < 4; ++at) {
      if (at == 1) it.backend->fail_next("wait");
      const Result<void> waited = forks[at]->wait(event);
      CHECK(waited.ok() == (at != 1));
      if (!waited.ok()) CHECK(says(waited.error(), "The device would not wait."));
    }
    for (const auto& each : forks) {
      CHECK(each->sync().ok());
      CHECK(each->record().ok());
    }
  }
}

TEST_CASE(
    "B37: of six pieces of work of which four are refused, the first is the root and three are "
    "counted") {
  for (const StreamKind kind : kKinds) {
    Faulty it;
    Stream stream = it.device.stream(kind).value();
    std::vector<Buffer<float>> buffers;
    for (const char* const name : {"b1", "b2", "b3", "b4", "b5", "b6"}) {
      buffers.push_back(it.floats(name, stream));
    }
    const auto write_all = [&](int& third) {
      for (std::size_t at = 0; at < 6; ++at) {
        if (at == 2) third = __LINE__ + 1;
        stream.write(buffers[at], four(2));
      }
    };
    int third = 0;
    OpenWindow window = stream.record().value();
    it.backend->fail_from(3);
    write_all(third);
    it.backend->fail(0);
    const Result<Recording> sealed = window.seal();
    REQUIRE_FALSE(sealed.ok());
    const std::string text = sealed.error().text();
    CAPTURE(text);
    CHECK(says(sealed.error(), "in \"write\" (" __FILE__ ":" + std::to_string(third) + ")"));
    CHECK(says(sealed.error(), "The device would not adopt."));
    CHECK(text.find("would not") == text.rfind("would not"));  // one root
    CHECK(says(sealed.error(), "3 times more"));
    // Outside a window each piece of work has its own.
    it.backend->fail_from(3);
    write_all(third);
    it.backend->fail(0);
    for (std::size_t at = 0; at < 6; ++at) {
      CHECK(it.device.check(buffers[at]).has_value() == (at >= 2));
    }
    CHECK(it.device.live_failures() == 4);
  }
}

ON_BOTH_KINDS(
    "B38: a user's own clean-up finds the window doomed and the error told, and the exception goes "
    "on") {
  const Buffer<float> y = rig.floats("y", 1);
  std::vector<std::string> order;
  struct Hook {  // what a user runs when the recording ends
    OpenWindow& window;
    std::vector<std::string>& order;
    Rig& rig;
    ~Hook() {
      order.push_back(std::string(name_of(window.state())) + " with " +
                      std::to_string(rig.heard().size()) + " heard");
      if (window.state() == WindowState::doomed) return;
      rig.stream.fill(rig.device.buffer<float>("trace", 4).value(), 1);
      order.push_back("ran");
    }
  };
  struct Unplugged {
    int code;
  };
  OpenWindow window = rig.stream.record().value();
  try {
    const Hook hook{window, order, rig};
    own_work(rig.stream, {y}, [&](Stream&) -> Result<void> { throw Unplugged{7}; });
    FAIL("it did not throw");
  } catch (const Unplugged& unplugged) {
    CHECK(unplugged.code == 7);
  }
  CHECK(order == std::vector<std::string>{"doomed with 1 heard"});
  const Result<Recording> sealed = window.seal();
  REQUIRE_FALSE(sealed.ok());
  CHECK(says(sealed.error(), "because \"own work\""));
  CHECK_FALSE(says(sealed.error(), "more."));
  REQUIRE(rig.carried(y).kind() == ErrorKind::exception);
  CHECK_THROWS_AS(std::rethrow_exception(rig.carried(y).exception()), Unplugged);
}

ON_BOTH_KINDS(
    "B43: a replay that fails names its graph, its node, where that was recorded, and its number") {
  const Buffer<float> x = rig.floats("x", 1, Role::input);
  const Buffer<float> y = rig.floats("y", 1, Role::output);
  const Buffer<float> apart = rig.floats("apart", 1);
  OpenWindow window = rig.stream.record().value();
  rig.stream.launch(*rig.map, grid(4, Where{"decode.cpp", 12}), x, y, 0U);
  const Recording recording = window.seal({.name = "decode/8"}).value();
  Instance step = instance(recording).value();
  REQUIRE(step.replay(rig.stream).executed_cleanly());
  REQUIRE(rig.stream.sync().ok());
  const auto gate = std::make_shared<Gate>();
  if (!rig.worker()) gate->open();
  rig.control.does[0] = [gate]() -> Result<void> {
    gate->wait();
    return broken("a lane is out");
  };
  const auto second = step.replay(rig.stream);
  CHECK(second.executed_cleanly() == rig.worker());  // there it has only been queued
  CHECK(rig.clean(apart));
  gate->open();
  const Result<void> synced = rig.stream.sync();
  CHECK(synced.ok() == !rig.worker());
  const Error told = rig.worker() ? synced.error() : second.error();
  CHECK(says(told, "a lane is out"));
  CHECK(says(told, "While replaying node 0, \"map\" (decode.cpp:12), of graph \"decode/8\"."));
  CHECK(says(told, "It was replay 2 of its instance."));
  CHECK(says(rig.unreadable(y), "It was replay 2 of its instance."));
  CHECK(rig.clean(apart));
  rig.control.does[0] = nullptr;
  const auto third = step.replay(rig.stream);
  REQUIRE(third.executed_cleanly());
  CHECK(third.value().number == 3);
  CHECK(rig.values(y) == four(2));
}

TEST_CASE("B118: whichever handles go between seal and replay, the replay is right") {
  enum : unsigned {
    kBuffers = 1,
    kKernel = 2,
    kStream = 4,
    kEvent = 8,
    kDevice = 16,
    kRecording = 32
  };
  for (const StreamKind kind : kKinds) {
    for (unsigned gone = 0; gone < 64; ++gone) {
      CAPTURE(gone);
      auto control = std::make_shared<Control>();
      std::optional<host::Device> device(std::in_place);
      register_on(device->kernels(), *control);
      std::optional<Map> map = device->kernel<Map>("map").value();
      std::optional<Stream> stream = device->stream(kind).value();
      std::optional<Stream> replays = device->stream(kind).value();
      std::optional<Stream> member = device->stream(kind).value();
      std::optional<Buffer<float>> x = device->buffer<float>("x", 4, Role::input).value();
      std::optional<Buffer<float>> y = device->buffer<float>("y", 4, Role::output).value();
      stream->fill(*x, 1);
      REQUIRE(stream->sync().ok());
      std::optional<Recording> recording;
      std::optional<Event> event;
      {
        OpenWindow window = stream->record().value();
        event.emplace(stream->record_event().value());
        REQUIRE(member->wait(*event).ok());
        member->launch(*map, grid(4), *x, *y, 0U);
        REQUIRE(stream->wait(member->record_event().value()).ok());
        recording.emplace(window.seal().value());
      }
      const View<float> out = y->view();
      Instance step = instance(*recording).value();
      if ((gone & kBuffers) != 0) {
        x.reset();
        y.reset();
      }
      if ((gone & kKernel) != 0) map.reset();
      if ((gone & kStream) != 0) {
        member.reset();
        stream.reset();
      }
      if ((gone & kEvent) != 0) event.reset();
      if ((gone & kDevice) != 0) device.reset();
      if ((gone & kRecording) != 0) recording.reset();
      const auto ran = step.replay(*replays);
      REQUIRE(ran.executed_cleanly());
      CHECK(replays->read(out).value() == four(2));
      // A view does not keep its buffer, and says so once the last owner is gone.
      { const Instance last = std::move(step); }
      x.reset();
      y.reset();
      recording.reset();
      const auto stale = replays->read(out);
      REQUIRE_FALSE(stale.ok());
      CHECK(stale.error().kind() == ErrorKind::stale_buffer);
    }
  }
}

}  // namespace refrain::test
