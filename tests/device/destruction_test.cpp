// C19: what is destroyed while a window is open anywhere on the device is dead at once, and the
// backend hears of it when the last window has closed.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "device/rig.hpp"
#include "support/watched_backend.hpp"

namespace refrain {
namespace {

using namespace test;
using Names = std::vector<std::string>;

/// A device that tells what is destroyed on it.
class Watched {
 public:
  Watched() {
    register_on(*kernels_, control);
    REQUIRE(device->kernel<Make>("make").ok());  // so that no window refuses it as a first use
    static_cast<void>(destroyed());
  }
  Watched(const Watched&) = delete;
  Watched& operator=(const Watched&) = delete;
  ~Watched() {
    CHECK(device->live_failures() == 0);
    device.reset();
    CHECK_MESSAGE(backend->alive() == 0, "something of the backend's was never destroyed");
  }

  [[nodiscard]] Stream stream(StreamKind kind = StreamKind::inline_) const {
    return device->stream(kind).value();
  }
  [[nodiscard]] Buffer<float> floats(std::string name, std::uint64_t count) const {
    return device->buffer<float>(std::move(name), count, Role::state).value();
  }
  [[nodiscard]] Names destroyed() const { return backend->destroyed(); }

  Control control;

 private:
  std::shared_ptr<host::KernelRegistry> kernels_ = std::make_shared<host::KernelRegistry>();

 public:
  std::shared_ptr<WatchedBackend> backend =
      std::make_shared<WatchedBackend>(host::make_backend(kernels_));
  std::optional<Device> device{Device(backend, DeviceOptions{true, {}})};
};

/// A window of another thread, which closes it when it is told to.
class WindowElsewhere {
 public:
  explicit WindowElsewhere(const Watched& on)
      : thread_([this, &on] {
          Stream stream = on.stream();
          {
            OpenWindow window = stream.record().value();
            opened_.open();
            close_.wait();
            window.abort();
          }
          closed_.open();
          end_.wait();
        }) {
    opened_.wait();
  }
  WindowElsewhere(const WindowElsewhere&) = delete;
  WindowElsewhere& operator=(const WindowElsewhere&) = delete;
  ~WindowElsewhere() {
    close();
    end_.open();
    thread_.join();
  }
  void close() {
    close_.open();
    closed_.wait();
  }

 private:
  Gate opened_;
  Gate close_;
  Gate closed_;
  Gate end_;
  std::thread thread_;
};

/// Something on a device whose last handle a test drops.
struct Dropped {
  std::function<void()> drop;
  Names destroys;  ///< What of the backend's goes with it.
};

/// One of everything that a device makes.
Dropped one_of(const Watched& on, const std::string& what) {
  const auto drops = [](auto handle, Names names) {
    auto kept = std::make_shared<std::optional<decltype(handle)>>(std::move(handle));
    return Dropped{[kept] { kept->reset(); }, std::move(names)};
  };
  if (what == "buffer") return drops(on.floats("b", 4), {"memory of 64"});
  if (what == "constant") {
    const std::vector<float> ones = four(1);
    SharedBytes bytes = SharedBytes::copy_of(std::as_bytes(std::span(ones)));
    return drops(on.device->constant<float>("c", std::move(bytes)).value(), {"constant"});
  }
  if (what == "kernel") return drops(on.device->kernel<Make>("make").value(), {"kernel"});
  if (what == "inline stream") return drops(on.stream(), {"stream"});
  if (what == "worker stream") return drops(on.stream(StreamKind::worker), {"stream"});
  REQUIRE(what == "event");
  Stream stream = on.stream();
  Event event = stream.record_event().value();
  return drops(std::make_pair(std::move(stream), std::move(event)), {"event", "stream"});
}

constexpr const char* kEverything[] = {"buffer",        "constant",      "kernel",
                                       "inline stream", "worker stream", "event"};

void append(Names& names, const Names& more) {
  names.insert(names.end(), more.begin(), more.end());
}

}  // namespace

TEST_CASE("C19: without a window everything is destroyed at once") {
  const Watched on;
  for (const char* const what : kEverything) {
    CAPTURE(what);
    const Dropped each = one_of(on, what);
    each.drop();
    CHECK(on.destroyed() == each.destroys);
  }
}

TEST_CASE(
    "B25, C19: what is dropped in a window goes once it has closed, in order, however it ends") {
  const Watched on;
  Names expected;
  std::vector<Dropped> all;
  for (const char* const what : kEverything) all.push_back(one_of(on, what));
  Stream stream = on.stream();
  const Buffer<float> y = on.floats("y", 4);
  const auto drop_all = [&] {
    for (const Dropped& each : all) {
      each.drop();
      append(expected, each.destroys);
    }
    CHECK(on.destroyed().empty());
  };
  SUBCASE("sealed") {
    OpenWindow window = stream.record().value();
    stream.fill(y, 1);
    drop_all();
    const Result<Recording> sealed = window.seal();
    CHECK(sealed.ok());
    CHECK(on.destroyed() == expected);
  }
  SUBCASE("refused") {
    OpenWindow window = stream.record().value();
    drop_all();
    CHECK_FALSE(window.seal().ok());
    CHECK(on.destroyed() == expected);
  }
  SUBCASE("aborted") {
    OpenWindow window = stream.record().value();
    drop_all();
    window.abort();
    CHECK(on.destroyed() == expected);
  }
  SUBCASE("dropped") {
    {
      const OpenWindow window = stream.record().value();
      drop_all();
    }
    CHECK(on.destroyed() == expected);
  }
  SUBCASE("only prepared") {
    OpenWindow window = stream.prepare().value();
    drop_all();
    CHECK_FALSE(window.seal().ok());
    CHECK(on.destroyed() == expected);
  }
  SUBCASE("abandoned with its stream") {
    std::optional<Stream> going(on.stream());
    const OpenWindow window = going->record().value();
    drop_all();
    going.reset();
    expected.emplace_back("stream");
    CHECK(on.destroyed() == expected);
  }
  SUBCASE("left from inside a piece of work, whose end ends it") {
    std::optional<OpenWindow> window(stream.record().value());
    WriteSet writes = stream.write_set();
    ExecuteScope<Stream>::over(stream, intern_kernel_name("outer"), std::move(writes),
                               Where::here())
        .execute([&](Stream&) -> Result<void> {
          window->abort();
          drop_all();
          CHECK(on.destroyed().empty());
          return {};
        });
    CHECK(on.destroyed() == expected);
  }
  SUBCASE("in a warm-up that fails") {
    const auto prepared = stream.prepare([&]() -> Result<void> {
      drop_all();
      return broken("it would not warm up");
    });
    CHECK_FALSE(prepared.ok());
    CHECK(on.destroyed() == expected);
  }
  CHECK(on.destroyed().empty());  // and nothing twice
}

TEST_CASE("C19: a window of another thread holds everything back, too") {
  const Watched on;
  for (const char* const what : kEverything) {
    CAPTURE(what);
    const Dropped each = one_of(on, what);
    Names expected = each.destroys;
    {
      WindowElsewhere window(on);
      each.drop();
      CHECK(on.destroyed().empty());
      window.close();
      CHECK(on.destroyed() == expected);
    }
    CHECK(on.destroyed() == Names{"stream"});  // its own
  }
}

TEST_CASE("C19: of several windows only the last to close lets things go") {
  const std::uint32_t seed = std::random_device{}();
  CAPTURE(seed);
  std::mt19937 random(seed);
  const auto below = [&](std::size_t end) { return random() % end; };
  for (int round = 0; round < 40; ++round) {
    const Watched on;
    std::vector<Stream> streams;
    for (int at = 0; at < 3; ++at) streams.push_back(on.stream());
    std::vector<OpenWindow> windows;
    Names expected;
    for (int step = 0; step < 30; ++step) {
      if (windows.size() < streams.size() && below(3) == 0) {
        for (Stream& stream : streams) {
          Result<OpenWindow> opened = stream.record();
          if (!opened.ok()) continue;
          windows.push_back(*std::move(opened));
          break;
        }
      } else if (!windows.empty() && below(3) == 0) {
        const std::size_t at = below(windows.size());
        windows[at].abort();
        std::vector<OpenWindow> left;
        for (std::size_t each = 0; each < windows.size(); ++each) {
          if (each != at) left.push_back(std::move(windows[each]));
        }
        windows.swap(left);
      } else {
        const Dropped dropped = one_of(on, kEverything[below(std::size(kEverything))]);
        dropped.drop();
        append(expected, dropped.destroys);
      }
      if (windows.empty()) {
        REQUIRE(on.destroyed() == expected);
        expected.clear();
      } else {
        REQUIRE(on.destroyed().empty());
      }
    }
  }
}

TEST_CASE("C19, M4, M6: a buffer that waits is dead at once, and a window that uses it keeps it") {
  const Watched on;
  Stream stream = on.stream();
  Stream other = on.stream();
  std::optional<Buffer<float>> gone(on.floats("gone", 4));
  std::optional<Buffer<float>> used(on.floats("used", 8));
  const View<float> stale = gone->view();
  other.failed_write(*gone, broken("it broke"));
  std::optional<Recording> recording;
  OpenWindow window = stream.record().value();
  stream.fill(*used, 1);
  REQUIRE(on.device->live_failures() == 1);
  gone.reset();
  used.reset();
  CHECK(on.device->live_failures() == 0);
  const auto refused = other.fill(stale, 1);
  REQUIRE(refused.failed());
  CHECK(refused.error().kind() == ErrorKind::stale_buffer);
  CHECK(on.destroyed().empty());
  recording.emplace(window.seal().value());
  CHECK(on.destroyed() == Names{"memory of 64"});
  recording.reset();
  CHECK(on.destroyed() == Names{"memory of 64"});
}

TEST_CASE("C19: the bytes of a constant are kept as long as the constant waits") {
  const Watched on;
  auto owner = std::make_shared<std::vector<float>>(four(1));
  const std::weak_ptr<std::vector<float>> kept = owner;
  std::optional<Buffer<float>> constant(
      on.device->constant<float>("c", SharedBytes(owner, std::as_bytes(std::span(*owner))))
          .value());
  owner.reset();
  Stream stream = on.stream();
  OpenWindow window = stream.record().value();
  constant.reset();
  CHECK_FALSE(kept.expired());
  window.abort();
  CHECK(kept.expired());
}

TEST_CASE(
    "C19: a worker stream that goes in somebody's window is not waited for, and its work runs") {
  Watched on;
  Gate gate;
  on.control.does[1] = waits(gate);
  on.control.does[2] = fails("it broke late");
  const auto make = on.device->kernel<Make>("make").value();
  const auto map = on.device->kernel<Map>("map").value();
  Stream stream = on.stream();
  const Buffer<float> x = on.floats("x", 4);
  const Buffer<float> y = on.floats("y", 4);
  const Buffer<float> z = on.floats("z", 4);
  {
    OpenWindow window = stream.record().value();
    {
      Stream worker = on.stream(StreamKind::worker);
      worker.launch(make, grid(4), x, 1U);
      worker.launch(make, grid(4), y, 2U);
      worker.launch(map, grid(4), y, z, 0U);
    }  // does not wait: the gate is shut
    CHECK(on.control.runs(2) == 0);
    // Whoever needs those bytes waits for the work all the same (E11), and hears what became of it.
    gate.open();
    Stream reader = on.stream();
    const auto got = reader.read(x);
    REQUIRE(got.ok());
    CHECK(*got == four(10));
    const auto bad = reader.read(z);
    REQUIRE_FALSE(bad.ok());
    CHECK(says(bad.error(), "it broke late"));
    CHECK(on.destroyed().empty());
    window.abort();
    CHECK(on.destroyed() == Names{"stream"});
  }
  CHECK(on.control.runs(2) == 1);
  CHECK(on.control.runs(0) == 0);
  stream.fill(y, 1);
  stream.fill(z, 1);
}

TEST_CASE("C19: what ends the last window waits for a worker stream that was dropped in it") {
  Watched on;
  std::atomic<bool> ran{false};
  on.control.does[1] = [&]() -> Result<void> {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    ran = true;
    return {};
  };
  const auto make = on.device->kernel<Make>("make").value();
  Stream stream = on.stream();
  std::optional<Buffer<float>> y(on.floats("y", 4));
  OpenWindow window = stream.record().value();
  {
    Stream worker = on.stream(StreamKind::worker);
    worker.launch(make, grid(4), *y, 1U);
    y.reset();  // its memory waits for the work, and then for the window
  }
  window.abort();
  CHECK(ran);
  Names destroyed = on.destroyed();
  std::sort(destroyed.begin(), destroyed.end());
  CHECK(destroyed == Names{"memory of 64", "stream"});
}

TEST_CASE(
    "C19, E11: work of a worker stream that went in a window is unordered until the window ends") {
  Watched on;
  const auto make = on.device->kernel<Make>("make").value();
  Stream first = on.stream(StreamKind::worker);
  Stream stream = on.stream();
  Stream other = on.stream();
  const Buffer<float> y = on.floats("y", 4);
  first.launch(make, grid(4), y, 0U);
  std::optional<Stream> going(on.stream(StreamKind::worker));
  REQUIRE(going->wait(first.record_event().value()).ok());  // and is given no work
  OpenWindow window = stream.record().value();
  going.reset();
  const auto refused = other.fill(y, 1);
  REQUIRE(refused.failed());
  CHECK(refused.error().kind() == ErrorKind::unordered);
  window.abort();
  // It has ended now, and with it what it had waited for.
  CHECK(other.fill(y, 1).executed_cleanly());
}

TEST_CASE("C19, C21: a member that goes dooms its window, and its stream waits for the end") {
  Watched on;
  const auto make = on.device->kernel<Make>("make").value();
  Stream stream = on.stream();
  const Buffer<float> y = on.floats("y", 4);
  OpenWindow window = stream.record().value();
  std::optional<Stream> member(on.stream(StreamKind::worker));
  REQUIRE(member->wait(stream.record_event().value()).ok());
  REQUIRE(member->launch(make, grid(4), y, 0U).executed_cleanly());
  const std::uint64_t number = member->id().number;
  member.reset();
  CHECK(on.destroyed().empty());
  const Result<Recording> sealed = window.seal();
  REQUIRE_FALSE(sealed.ok());
  CHECK(says(sealed.error(), "stream " + std::to_string(number)));
  CHECK(says(sealed.error(), "was destroyed"));
  CHECK(on.destroyed() == Names{"stream"});
  stream.fill(y, 1);
}

TEST_CASE(
    "B26, C19: a window has ended before anything is destroyed, and one that opens holds the "
    "rest") {
  Watched on;
  Stream stream = on.stream();
  Stream other = on.stream();
  OpenWindow window = stream.record().value();
  std::optional<Buffer<float>> inner(on.floats("inner", 32));
  std::optional<OpenWindow> opened;
  std::vector<WindowState> states;
  on.backend->on_destroy([&](const std::string& what) {
    if (what == "memory of 64") {
      states.push_back(window.state());
      CHECK(on.device->sync().ok());
      inner.reset();  // goes at once: no window is open
    }
    if (what == "memory of 192") opened.emplace(other.record().value());
  });
  static_cast<void>(on.floats("first", 16));
  static_cast<void>(on.floats("second", 48));
  static_cast<void>(on.floats("third", 64));
  CHECK(on.destroyed().empty());
  window.abort();
  CHECK(states == std::vector<WindowState>{WindowState::ended});
  CHECK(on.destroyed() == Names{"memory of 128", "memory of 64", "memory of 192"});
  opened->abort();
  CHECK(on.destroyed() == Names{"memory of 256"});
  on.backend->on_destroy({});
}

TEST_CASE("C19: the last handles of a device may go while a window is open") {
  std::optional<Watched> on(std::in_place);
  const auto backend = on->backend;
  Gate gate;
  on->control.does[1] = waits(gate);
  std::optional<Stream> stream(on->stream());
  std::optional<OpenWindow> window(stream->record().value());
  {
    const auto make = on->device->kernel<Make>("make").value();
    const Buffer<float> y = on->floats("y", 4);
    Stream worker = on->stream(StreamKind::worker);
    worker.launch(make, grid(4), y, 1U);
  }
  on->device.reset();
  CHECK(backend->destroyed().empty());
  gate.open();
  SUBCASE("the stream first") {
    stream.reset();
    window.reset();
  }
  SUBCASE("the window first") {
    window.reset();
    stream.reset();
  }
  CHECK(backend->alive() == 0);
  on->device.emplace(backend, DeviceOptions{});
}

TEST_CASE(
    "C19: threads drop things while others open and close windows, and everything goes once") {
  const Watched on;
  std::vector<std::thread> threads;
  for (int at = 0; at < 2; ++at) {
    threads.emplace_back([&] {
      Stream stream = on.stream();
      for (int round = 0; round < 100; ++round) stream.record().value().abort();
    });
    threads.emplace_back([&] {
      for (int round = 0; round < 100; ++round) {
        Stream worker = on.stream(StreamKind::worker);
        const Buffer<float> y = on.floats("y", 4);
        worker.fill(y, 1);
        static_cast<void>(worker.record_event());
      }
    });
  }
  for (std::thread& each : threads) each.join();
  CHECK(on.backend->alive() == 0);
  CHECK(on.destroyed().size() == 2 * (1 + 3 * 100));
}

}  // namespace refrain
