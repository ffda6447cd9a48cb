// Rules C: windows on a device's streams. That nothing runs and that claims end up right is asked
// here; what a window does with nodes, in tests/capture.
#include <string>
#include <vector>

#include "device/rig.hpp"
#include "support/faulty_backend.hpp"

namespace refrain {
namespace {

using namespace test;

/// The error of a seal that is refused.
Error refused(OpenWindow& window, const SealOptions& options = {}) {
  const Result<Recording> sealed = window.seal(options);
  REQUIRE_FALSE(sealed.ok());
  CHECK((window.state() == WindowState::ended || window.state() == WindowState::abandoned));
  return sealed.error();
}

}  // namespace

ON_BOTH_KINDS("C1: a stream has one window, opened outside of all work") {
  const Buffer<float> y = rig.floats("y", 1);
  OpenWindow window = rig.stream.record().value();
  const auto second = rig.stream.record();
  REQUIRE_FALSE(second.ok());
  CHECK(second.error().kind() == ErrorKind::wrong_state);
  CHECK(says(second.error(), "window_test.cpp"));
  const auto prepared = rig.stream.prepare();
  REQUIRE_FALSE(prepared.ok());
  CHECK(window.state() == WindowState::recording);
  window.abort();
  CHECK(window.state() == WindowState::ended);
  OpenWindow next = rig.stream.record().value();
  window.abort();  // spent: it does not touch the next one
  CHECK(next.state() == WindowState::recording);
  const Result<Recording> spent = window.seal();
  REQUIRE_FALSE(spent.ok());
  CHECK(spent.error().kind() == ErrorKind::wrong_state);
  CHECK(next.state() == WindowState::recording);
  next.abort();
}

TEST_CASE("C1: a window neither opens nor begins inside a piece of work") {
  Rig rig(StreamKind::inline_);
  const Buffer<float> y = rig.floats("y", 1);
  OpenWindow window = rig.stream.prepare().value();
  const auto inside = [&](auto what) {
    WriteSet writes = rig.stream.write_set();
    writes.add(y.view().binding());
    const auto outcome = ExecuteScope<Stream>::over(rig.stream, intern_kernel_name("outer"),
                                                    std::move(writes), Where::here())
                             .execute([&](Stream&) -> Result<void> {
                               what();
                               return {};
                             });
    CHECK(outcome.executed_cleanly());
  };
  inside([&] {
    const Result<void> begun = window.begin();
    REQUIRE_FALSE(begun.ok());
    CHECK(begun.error().kind() == ErrorKind::wrong_state);
    CHECK(window.state() == WindowState::prepared);
  });
  CHECK(rig.clean(y));
  window.abort();
  inside([&] {
    const auto opened = rig.stream.record();
    REQUIRE_FALSE(opened.ok());
    CHECK(opened.error().kind() == ErrorKind::wrong_state);
  });
}

ON_BOTH_KINDS("C2: what is recorded is in the graph and has not run") {
  const Buffer<float> x = rig.floats("x", 1, Role::input);
  const Buffer<float> y = rig.floats("y", 2, Role::output);
  OpenWindow window = rig.stream.record().value();
  CHECK(rig.stream.launch(*rig.map, grid(4), x, y, 0U).executed_cleanly());
  CHECK(rig.stream.copy(x, y).executed_cleanly());
  CHECK(rig.stream.fill(y.view(1, 2), 5).executed_cleanly());
  const Result<Recording> sealed = window.seal({.name = "step"});
  REQUIRE(sealed.ok());
  CHECK(window.state() == WindowState::sealed);
  rig.settle();
  CHECK(rig.control.runs(0) == 0);
  const SealedGraph& graph = sealed->graph();
  REQUIRE(graph.nodes().size() == 3);
  CHECK(graph.node_name(graph.nodes()[0]) == "map");
  CHECK(graph.node_name(graph.nodes()[1]) == "copy");
  CHECK(graph.node_name(graph.nodes()[2]) == "fill");
  const std::vector<RegionBytes> external(graph.external_reads().begin(),
                                          graph.external_reads().end());
  CHECK(external == std::vector<RegionBytes>{{*graph.region("x"), {0, 16}}});
  CHECK(std::string(graph.nodes()[0].where.file).find("window_test.cpp") != std::string::npos);
}

ON_BOTH_KINDS(
    "C3: a launch that is refused in a window dooms it, and state keeps what it carried") {
  View<float> stale;
  {
    const Buffer<float> gone = rig.floats("gone", 1);
    stale = gone.view();
  }
  const Buffer<float> state = rig.floats("state", 1, Role::state);
  const Buffer<float> y = rig.floats("y", 1);
  using Step = Kernel<In<float>, InOut<float>, Out<float>>;
  rig.device.kernels().add<Step>("step", [](auto...) {});
  const auto step = rig.device.kernel<Step>("step").value();
  OpenWindow window = rig.stream.record().value();
  CHECK(rig.stream.launch(step, grid(4), stale, state, y).failed());
  CHECK(window.state() == WindowState::doomed);
  const Error error = refused(window);
  CHECK(error.kind() == ErrorKind::window_doomed);
  CHECK(says(error, "\"step\""));
  CHECK(rig.clean(state));
  CHECK(rig.carried(y).kind() == ErrorKind::stale_buffer);
}

ON_BOTH_KINDS(
    "C4: a skip dooms the window with the input's error, and later work is still not run") {
  const Buffer<float> x = rig.bad("x", "x never came");
  const Buffer<float> y = rig.floats("y", 1);
  const Buffer<float> z = rig.floats("z", 1);
  OpenWindow window = rig.stream.record().value();
  CHECK(rig.stream.launch(*rig.map, grid(4), x, y, 0U).skipped());
  CHECK(rig.stream.launch(*rig.make, grid(4), z, 0U).executed_cleanly());
  CHECK(rig.stream.launch(*rig.map, grid(4), y, z, 0U).skipped());
  const Error error = refused(window);
  CHECK(error.failure() == rig.carried(x).failure());
  CHECK(says(error, "x never came"));
  CHECK(says(error, "once more"));
  CHECK(rig.carried(z).failure() == rig.carried(x).failure());
  rig.settle();
  CHECK(rig.control.runs(0) == 0);
}

ON_BOTH_KINDS("C5: while a window is only prepared work runs for real and dooms nothing") {
  const Buffer<float> y = rig.floats("y", 1);
  OpenWindow window = rig.stream.prepare().value();
  rig.control.does[1] = fails("warm-up broke");
  rig.stream.launch(*rig.make, grid(4), y, 1U);
  rig.settle();
  CHECK(rig.control.runs(1) == 1);
  CHECK(rig.carried(y).message() == "warm-up broke");
  CHECK(window.state() == WindowState::prepared);
  CHECK(rig.stream.launch(*rig.make, grid(4), y, 0U).executed_cleanly());
  CHECK(rig.values(y) == four(10));
  REQUIRE(window.begin().ok());
  rig.stream.launch(*rig.make, grid(4), y, 0U);
  rig.stream.launch(*rig.make, grid(4), y, 0U);
  CHECK(window.seal().ok());
  rig.settle();
  CHECK(rig.control.runs(0) == 1);
}

ON_BOTH_KINDS("C8: what is recorded changes no claim until the window ends") {
  const Buffer<float> x = rig.bad("x", "x never came");
  const Buffer<float> y = rig.floats("y", 1);
  OpenWindow window = rig.stream.record().value();
  rig.stream.fill(x, 1);
  CHECK(rig.stream.launch(*rig.map, grid(4), x, y, 0U).executed_cleanly());
  CHECK(rig.carried(x).message() == "x never came");
  CHECK(rig.clean(y));
  std::thread([&] {  // the window's own thread may not read what it has recorded writes of (C9)
    Stream other = rig.another();
    CHECK(other.launch(*rig.update, grid(4), y, 0U).executed_cleanly());
    CHECK(other.launch(*rig.update, grid(4), x, 0U).skipped());
    static_cast<void>(other.sync());
  })
      .join();
  CHECK(window.state() == WindowState::recording);
  window.abort();
}

ON_BOTH_KINDS("C9: another stream's work is neither recorded nor able to doom the window") {
  const Buffer<float> y = rig.floats("y", 1);
  const Buffer<float> z = rig.floats("z", 1);
  rig.control.does[1] = fails("it broke");
  OpenWindow window = rig.stream.record().value();
  Stream other = rig.another();
  other.launch(*rig.make, grid(4), z, 1U);
  static_cast<void>(other.sync());
  CHECK(rig.control.runs(1) == 1);
  rig.stream.launch(*rig.make, grid(4), y, 0U);
  const Result<Recording> sealed = window.seal();
  REQUIRE(sealed.ok());
  CHECK(sealed->graph().nodes().size() == 1);
}

ON_BOTH_KINDS(
    "C11: a refusal claims fresh outputs with the window's error and leaves state alone") {
  const Buffer<float> state = rig.floats("state", 1, Role::state);
  const Buffer<float> y = rig.floats("y", 1);
  const Buffer<float> z = rig.bad("z", "an old failure");
  OpenWindow window = rig.stream.record().value();
  rig.stream.launch(*rig.update, grid(4), state, 0U);
  rig.stream.launch(*rig.map, grid(4), state, y.view(0, 2), 0U);
  rig.stream.failed_write(y.view(2, 1), broken("a frame was lost"));
  rig.stream.fill(z.view(0, 2), 1);
  const Error error = refused(window);
  CHECK(says(error, "a frame was lost"));
  CHECK(rig.values(state) == four(1));
  CHECK(rig.carried(y.view(0, 2)).kind() == ErrorKind::window_doomed);
  CHECK(says(rig.unreadable(y.view(0, 1)), "window_test.cpp"));
  CHECK(rig.carried(y.view(2, 1)).message() == "a frame was lost");
  CHECK(rig.clean(y.view(3, 1)));
  CHECK(rig.carried(z.view(0, 2)).kind() == ErrorKind::window_doomed);
  CHECK(rig.carried(z.view(2, 2)).message() == "an old failure");
}

ON_BOTH_KINDS("C11: a window whose handle is dropped claims, and one that is aborted does not") {
  const Buffer<float> y = rig.floats("y", 1);
  {
    const OpenWindow window = rig.stream.record().value();
    rig.stream.launch(*rig.make, grid(4), y, 0U);
  }
  CHECK(rig.carried(y).kind() == ErrorKind::window_doomed);
  CHECK(says(rig.carried(y), "dropped"));
  CHECK(rig.stream.fill(y, 2).executed_cleanly());
  OpenWindow window = rig.stream.record().value();
  rig.stream.launch(*rig.make, grid(4), y, 0U);
  window.abort();
  CHECK(rig.values(y) == four(2));
  CHECK(rig.device.live_failures() == 0);
}

ON_BOTH_KINDS("C10: a window whose stream goes is abandoned, and its handle is told whose it was") {
  const Buffer<float> y = rig.floats("y", 1);
  std::optional<OpenWindow> window;
  StreamId gone;
  {
    Stream going = rig.another();
    gone = going.id();
    window.emplace(going.record().value());
    going.launch(*rig.make, grid(4), y, 0U);
  }
  CHECK(window->state() == WindowState::abandoned);
  CHECK(rig.carried(y).kind() == ErrorKind::window_doomed);
  const Error told = refused(*window);
  CHECK(told.kind() == ErrorKind::window_doomed);
  CHECK(says(told, "The window of stream " + std::to_string(gone.number)));
  CHECK(says(told, "window_test.cpp"));
  CHECK(says(told, "was abandoned: its stream was destroyed while it was recording."));
  CHECK(refused(*window).text() == told.text());
  CHECK_FALSE(window->begin().ok());
  window->abort();
  CHECK(rig.carried(y).text() == told.text());  // it was claimed already (C11)
}

ON_BOTH_KINDS("C10: an abandoned window says what had doomed it") {
  const Buffer<float> y = rig.floats("y", 1);
  std::optional<OpenWindow> window;
  {
    Stream going = rig.another();
    window.emplace(going.record().value());
    going.failed_write(y, broken("a frame was lost"));
  }
  const Error told = refused(*window);
  CHECK(says(told, "was destroyed while it was doomed"));
  CHECK(says(told, "a frame was lost"));
}

ON_BOTH_KINDS("C10: a window that was only prepared when its stream went claims nothing") {
  const Buffer<float> y = rig.floats("y", 1);
  std::optional<OpenWindow> window;
  {
    Stream going = rig.another();
    window.emplace(going.prepare().value());
    going.launch(*rig.make, grid(4), y, 0U);
  }
  CHECK(window->state() == WindowState::abandoned);
  CHECK(says(refused(*window), "while it was prepared"));
  CHECK(rig.values(y) == four(10));
}

ON_BOTH_KINDS("C11: a window moves with its stream and its handle") {
  const Buffer<float> y = rig.floats("y", 1);
  Stream first = rig.another();
  OpenWindow window = first.record().value();
  first.launch(*rig.make, grid(4), y, 0U);
  Stream second = std::move(first);
  second.launch(*rig.update, grid(4), y, 0U);
  OpenWindow moved = std::move(window);
  const Result<Recording> sealed = moved.seal();
  REQUIRE(sealed.ok());
  CHECK(sealed->graph().nodes().size() == 2);
}

ON_BOTH_KINDS(
    "C12: what cannot be recorded is refused before the device sees it, and dooms nothing") {
  const Buffer<float> y = rig.floats("y", 1);
  Stream other = rig.another();
  const Event event = other.record_event().value();
  OpenWindow window = rig.stream.record().value();
  const auto refuses = [&](const Error& error, std::string_view call) {
    CHECK(error.kind() == ErrorKind::refused_in_window);
    CHECK(says(error, call));
    CHECK(says(error, "window_test.cpp"));
    CHECK(window.state() == WindowState::recording);
  };
  const auto read = rig.stream.read(y);
  REQUIRE_FALSE(read.ok());
  refuses(read.error(), "read");
  std::vector<float> room(4);
  const auto into = rig.stream.read_into(y, room);
  REQUIRE_FALSE(into.ok());
  refuses(into.error(), "read");
  const auto synced = rig.stream.sync();
  REQUIRE_FALSE(synced.ok());
  refuses(synced.error(), "sync");
  const auto waited = rig.stream.wait(event);
  REQUIRE_FALSE(waited.ok());
  refuses(waited.error(), "event");
  rig.stream.launch(*rig.make, grid(4), y, 0U);
  CHECK(window.seal().ok());
}

ON_BOTH_KINDS("C14: host bytes are copied when they are recorded") {
  const Buffer<float> x = rig.floats("x", 1);
  OpenWindow window = rig.stream.record().value();
  std::vector<float> source{1, 2, 3, 4};
  CHECK(rig.stream.write(x, source).executed_cleanly());
  source.assign(4, -1);
  const Result<Recording> sealed = window.seal();
  REQUIRE(sealed.ok());
  const SealedGraph& graph = sealed->graph();
  REQUIRE(graph.frozen().size() == 1);
  const Region& frozen = graph.regions()[graph.frozen()[0]];
  CHECK(frozen.role == Role::constant);
  const auto bytes = std::get<SharedBytes>(frozen.start).span();
  std::vector<float> kept(4);
  std::memcpy(kept.data(), bytes.data(), bytes.size());
  CHECK(kept == std::vector<float>{1, 2, 3, 4});
}

ON_BOTH_KINDS("C14: a recording keeps the memory that its window touched") {
  View<float> view;
  {
    std::optional<Recording> recording;
    {
      const Buffer<float> y = rig.floats("y", 1);
      view = y.view();
      OpenWindow window = rig.stream.record().value();
      rig.stream.launch(*rig.make, grid(4), y, 0U);
      recording.emplace(window.seal().value());
    }
    CHECK(rig.carried(view).kind() == ErrorKind::not_replayed);
    CHECK(rig.stream.fill(view, 3).executed_cleanly());
    CHECK(rig.values(view) == four(3));
  }
  CHECK(rig.carried(view).kind() == ErrorKind::stale_buffer);
}

ON_BOTH_KINDS("C16: a scope that stages nothing dooms the window unless it reuses what is there") {
  const Buffer<float> y = rig.floats("y", 1);
  const auto cached = [&](bool reuses) {
    WriteSet writes = rig.stream.write_set();
    writes.add(y.view().binding());
    return ExecuteScope<Stream>::over(rig.stream, intern_kernel_name("cached"), std::move(writes),
                                      Where::here())
        .execute([&](Stream& stream) -> Result<void> {
          if (reuses) stream.reuses(y.view());
          return {};
        });
  };
  OpenWindow first = rig.stream.record().value();
  CHECK(cached(false).executed_cleanly());
  const Error error = refused(first);
  CHECK(says(error, "\"cached\""));
  CHECK(rig.stream.fill(y, 1).executed_cleanly());
  OpenWindow second = rig.stream.record().value();
  CHECK(cached(true).executed_cleanly());
  CHECK(second.seal({.allow_empty = true}).ok());
}

TEST_CASE("C17: memory that the device refuses dooms the window, though nothing else went wrong") {
  const auto kernels = std::make_shared<host::KernelRegistry>();
  const auto backend = std::make_shared<FaultyBackend>(host::make_backend(kernels));
  const Device device(backend, DeviceOptions{true, {}});
  Stream stream = device.stream().value();
  Stream other = device.stream().value();
  const Buffer<float> y = device.buffer<float>("y", 4, Role::output).value();
  OpenWindow window = stream.record().value();
  stream.fill(y, 1);
  SUBCASE("a buffer") {
    backend->fail_next("allocate");
    CHECK_FALSE(device.buffer<float>("more", 4).ok());
  }
  SUBCASE("a state's start") {
    backend->fail_next("zero");
    CHECK_FALSE(device.buffer<float>("more", 4, Role::state).ok());
  }
  SUBCASE("bytes to be frozen") {
    backend->fail_next("adopt");
    CHECK(stream.write(y, four(1)).failed());
  }
  CHECK(window.state() == WindowState::doomed);
  const Error error = refused(window);
  CHECK(error.kind() == ErrorKind::window_doomed);
  CHECK(says(error, "The device would not"));
  CHECK(backend->calls("issue") == 0);
}

TEST_CASE("C17: what another thread was refused dooms no window of this one") {
  const auto kernels = std::make_shared<host::KernelRegistry>();
  const auto backend = std::make_shared<FaultyBackend>(host::make_backend(kernels));
  const Device device(backend, DeviceOptions{true, {}});
  Stream stream = device.stream().value();
  OpenWindow window = stream.record().value();
  backend->fail_next("allocate");
  std::thread([&] { CHECK_FALSE(device.buffer<float>("more", 4).ok()); }).join();
  CHECK(window.state() == WindowState::recording);
  window.abort();
}

TEST_CASE("C17, C20: a window that is handed to another thread is that thread's from its call on") {
  const auto kernels = std::make_shared<host::KernelRegistry>();
  Control control;
  register_on(*kernels, control);
  const auto backend = std::make_shared<FaultyBackend>(host::make_backend(kernels));
  const Device device(backend, DeviceOptions{true, {}});
  const Buffer<float> y = device.buffer<float>("y", 4).value();
  Stream stream = device.stream().value();
  const std::vector<std::function<bool()>> refused{
      [&] {
        backend->fail_next("allocate");
        return !device.buffer<float>("more", 4).ok();
      },
      [&] { return !device.kernel<Make>("make").ok(); },
  };
  for (const auto& refusal : refused) {
    OpenWindow window = stream.record().value();
    std::thread([&] { stream.fill(y, 1); }).join();
    if (&refusal == refused.data()) {  // the opener's affairs are no longer the window's
      CHECK(refusal());
      CHECK(window.state() == WindowState::recording);
    }
    std::thread([&] {
      stream.fill(y, 2);
      CHECK(refusal());
    }).join();
    CHECK(window.state() == WindowState::doomed);
    window.abort();
  }
}

TEST_CASE("C17: a launch in a window makes no device call at all") {
  const auto kernels = std::make_shared<host::KernelRegistry>();
  Control control;
  register_on(*kernels, control);
  const auto backend = std::make_shared<FaultyBackend>(host::make_backend(kernels));
  const Device device(backend, DeviceOptions{true, {}});
  Stream stream = device.stream().value();
  const Buffer<float> x = device.buffer<float>("x", 4, Role::input).value();
  const Buffer<float> y = device.buffer<float>("y", 4, Role::output).value();
  const auto map = device.kernel<Map>("map").value();
  const std::uint64_t before = backend->calls();
  OpenWindow window = stream.record().value();
  stream.launch(map, grid(4), x, y, 0U);
  stream.copy(x, y);
  stream.fill(y, 1);
  CHECK(window.seal().ok());
  CHECK(backend->calls() == before);
}

ON_BOTH_KINDS("C17: an empty window is refused unless the caller allows it") {
  OpenWindow empty = rig.stream.record().value();
  CHECK(refused(empty).kind() == ErrorKind::recorded_nothing);
  OpenWindow allowed = rig.stream.record().value();
  CHECK(allowed.seal({.allow_empty = true}).ok());
}

ON_BOTH_KINDS("C18: from sealing the written bytes say that they were recorded and not replayed") {
  const Buffer<float> x = rig.floats("x", 1, Role::input);
  const Buffer<float> y = rig.floats("y", 1, Role::output);
  const Buffer<float> z = rig.floats("z", 1);
  OpenWindow window = rig.stream.record().value();
  rig.stream.launch(*rig.map, grid(4), x, y.view(0, 2), 0U);
  const Recording recording = window.seal({.name = "step"}).value();
  CHECK(rig.clean(x));
  CHECK(rig.clean(y.view(2, 2)));
  CHECK(rig.carried(y.view(0, 2)).kind() == ErrorKind::not_replayed);
  CHECK(says(rig.unreadable(y.view(0, 2)), "\"step\""));
  CHECK(rig.stream.copy(z.view(0, 2), y.view(0, 2)).skipped());
  CHECK(rig.carried(z.view(0, 2)).kind() == ErrorKind::not_replayed);
  CHECK(rig.stream.fill(y.view(0, 1), 3).executed_cleanly());
  rig.settle();
  CHECK(rig.clean(y.view(0, 1)));
  CHECK(rig.carried(y.view(1, 1)).kind() == ErrorKind::not_replayed);
  CHECK(rig.stream.fill(y, 3).executed_cleanly());
  CHECK(rig.stream.fill(z, 3).executed_cleanly());
  rig.settle();
  CHECK(rig.device.live_failures() == 0);
}

ON_BOTH_KINDS("C18: a mark is no failure for what is recorded next") {
  const Buffer<float> x = rig.floats("x", 1, Role::state);
  const auto record = [&] {
    OpenWindow window = rig.stream.record().value();
    CHECK(rig.stream.launch(*rig.update, grid(4), x, 0U).executed_cleanly());
    return window.seal();
  };
  const auto first = record();
  REQUIRE(first.ok());
  const auto second = record();
  REQUIRE(second.ok());
}

ON_BOTH_KINDS("roles: what a buffer was made as, or is named at sealing, is the graph's") {
  const Buffer<float> x = rig.floats("x", 1);
  const Buffer<float> y = rig.floats("y", 1, Role::output);
  OpenWindow window = rig.stream.record().value();
  rig.stream.launch(*rig.map, grid(4), x, y, 0U);
  const Result<Recording> sealed =
      window.seal({.name = "step", .roles = {{x.id(), Role::input, "frame"}}});
  REQUIRE(sealed.ok());
  const SealedGraph& graph = sealed->graph();
  REQUIRE(graph.region("frame").has_value());
  CHECK(graph.regions()[*graph.region("frame")].role == Role::input);
  REQUIRE(graph.region("y").has_value());
  CHECK(graph.regions()[*graph.region("y")].role == Role::output);
  CHECK(graph.not_portable().empty());
}

}  // namespace refrain
