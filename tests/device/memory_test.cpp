// Rules M: claims and memory, handles that are no good, and views that reach outside.
#include "device/rig.hpp"
#include "support/watched_backend.hpp"

namespace refrain {
namespace {

using namespace test;

View<float> stale_view(Rig& rig) {
  const Buffer<float> gone = rig.floats("gone", 1);
  return gone.view();
}

}  // namespace

ON_BOTH_KINDS("M1: a failure in one slice of a large buffer leaves the other slices readable") {
  const Buffer<float> cache = rig.device.buffer<float>("cache", 1024).value();
  CHECK(rig.stream.fill(cache, 1).executed_cleanly());
  rig.control.does[1] = fails("it broke");
  rig.stream.launch(*rig.make, grid(64), cache.view(256, 64), 1U);
  rig.stream.launch(*rig.make, grid(64), cache.view(512, 64), 1U);
  rig.settle();
  CHECK(rig.values(cache.view(0, 256)).size() == 256);
  CHECK(rig.values(cache.view(320, 192)).size() == 192);
  CHECK(rig.values(cache.view(576, 448)).size() == 448);
  CHECK(rig.carried(cache.view(256, 64)).message() == "it broke");
  CHECK(rig.stream.fill(cache.view(256, 32), 1).executed_cleanly());
  rig.settle();
  CHECK(rig.clean(cache.view(256, 32)));
  CHECK(rig.carried(cache.view(256, 64)).message() == "it broke");
}

ON_BOTH_KINDS("M2: a failure goes with the last byte that carries it") {
  const Buffer<float> y = rig.bad("y", "y never came");
  for (std::uint64_t at = 0; at < 4; ++at) {
    CHECK(rig.device.live_failures() == 1);
    CHECK(rig.stream.fill(y.view(at, 1), 1).executed_cleanly());
  }
  rig.settle();
  CHECK(rig.device.live_failures() == 0);
}

ON_BOTH_KINDS("M3: numbers of failures are never used again") {
  const Buffer<float> y = rig.floats("y", 1);
  FailureId last;
  for (int i = 0; i < 5; ++i) {
    rig.stream.failed_write(y, broken("y never came"));
    const FailureId now = rig.carried(y).failure();
    CHECK(now > last);
    CHECK(rig.stream.fill(y, 1).executed_cleanly());
    CHECK(rig.device.story(now).find("no longer carried") != std::string::npos);
    last = now;
  }
}

ON_BOTH_KINDS(
    "M4: claims go with the last owner of their bytes, and memory starts with none of them") {
  {
    const Buffer<float> y = rig.bad("y", "y never came");
    CHECK(rig.device.live_failures() == 1);
  }
  CHECK(rig.device.live_failures() == 0);
  const Buffer<float> fresh = rig.unwritten("fresh");
  CHECK(rig.carried(fresh).kind() == ErrorKind::unwritten);
}

ON_BOTH_KINDS("M4: a window that has ended keeps no buffer, though its handle stays") {
  OpenWindow window = rig.stream.record().value();
  View<float> view;
  {
    const Buffer<float> y = rig.unwritten("y");
    view = y.view();
    CHECK(rig.stream.fill(y, 1).executed_cleanly());
    SUBCASE("aborted") { window.abort(); }
    SUBCASE("refused") {
      rig.stream.failed_write(y, broken("y never came"));
      CHECK_FALSE(window.seal().ok());
    }
  }
  CHECK(rig.carried(view).kind() == ErrorKind::stale_buffer);
  CHECK(rig.device.live_failures() == 0);
}

ON_BOTH_KINDS("M5: reading bytes that nobody wrote fails and says so, and writing them heals") {
  const Buffer<float> x = rig.unwritten("x");
  const Buffer<float> y = rig.unwritten("y");
  CHECK(rig.carried(x).kind() == ErrorKind::unwritten);
  const Error error = rig.unreadable(x);
  CHECK(error.kind() == ErrorKind::unwritten);
  CHECK(says(error, "\"x\""));
  CHECK(rig.stream.launch(*rig.map, grid(4), x, y, 0U).skipped());
  CHECK(rig.stream.launch(*rig.update, grid(4), x, 0U).skipped());
  CHECK(rig.stream.fill(x.view(0, 2), 1).executed_cleanly());
  CHECK(rig.carried(x).kind() == ErrorKind::unwritten);
  CHECK(rig.values(x.view(0, 2)) == std::vector<float>{1, 1});
  CHECK(rig.stream.fill(x.view(2, 2), 1).executed_cleanly());
  CHECK(rig.stream.launch(*rig.map, grid(4), x, y, 0U).executed_cleanly());
  CHECK(rig.values(y) == four(2));
}

TEST_CASE("M5: a state and a constant are written when they are made") {
  Rig rig(StreamKind::inline_);
  const Buffer<float> zero = rig.device.buffer<float>("zero", 4, Role::state).value();
  CHECK(rig.values(zero) == four(0));
  const std::vector<float> start{1, 2, 3, 4};
  const Buffer<float> state = rig.device.state<float>("state", start).value();
  CHECK(rig.values(state) == start);
  const auto bytes = std::as_bytes(std::span(start));
  const Buffer<float> weights =
      rig.device.constant<float>("weights", SharedBytes::copy_of(bytes)).value();
  CHECK(rig.values(weights) == start);
}

TEST_CASE("M5: without checks a fresh buffer carries nothing") {
  Rig rig(StreamKind::inline_, false);
  const Buffer<float> x = rig.unwritten("x");
  CHECK(rig.clean(x));
  CHECK(rig.device.live_failures() == 0);
  CHECK(rig.stream.read(x).ok());
}

ON_BOTH_KINDS(
    "M6: a stale buffer is refused with its own error, and the launch's other outputs are "
    "claimed") {
  const View<float> stale = stale_view(rig);
  const Buffer<float> x = rig.floats("x", 1);
  const Buffer<float> y = rig.floats("y", 1);
  CHECK(rig.carried(stale).kind() == ErrorKind::stale_buffer);
  const Error read = rig.unreadable(stale);
  CHECK(read.kind() == ErrorKind::stale_buffer);
  CHECK(rig.device.live_failures() == 0);

  const auto in = rig.stream.launch(*rig.map, grid(4), stale, y, 0U);
  REQUIRE(in.failed());
  CHECK(in.error().kind() == ErrorKind::stale_buffer);
  CHECK(says(in.error(), "\"map\""));
  CHECK(says(in.error(), "memory_test.cpp"));
  CHECK(rig.carried(y).kind() == ErrorKind::stale_buffer);

  const auto out = rig.stream.launch(*rig.split, grid(4), x, stale, y.view(0, 2), 0U);
  REQUIRE(out.failed());
  CHECK(rig.device.live_failures() == 2);
  CHECK(rig.carried(stale).kind() == ErrorKind::stale_buffer);
  CHECK_FALSE(rig.carried(stale).failure());  // it claims nothing of its own
  CHECK(rig.clean(x));
  CHECK(rig.control.runs(0) == 0);
  CHECK(rig.heard().size() == 2);
}

ON_BOTH_KINDS("M6: a slot that was given out again does not answer to the old handle") {
  const View<float> stale = stale_view(rig);
  const Buffer<float> fresh = rig.floats("fresh", 7);
  CHECK(fresh.id().slot == stale.binding().buffer.slot);
  CHECK(rig.unreadable(stale).kind() == ErrorKind::stale_buffer);
  rig.stream.fill(stale, 1);
  rig.stream.write(stale, four(1));
  rig.stream.failed_write(stale, broken("no"));
  rig.settle();
  CHECK(rig.values(fresh) == four(7));
}

ON_BOTH_KINDS(
    "M6: copies, fills and writes refuse a stale handle, and claim their destination if it is "
    "good") {
  const View<float> stale = stale_view(rig);
  const Buffer<float> y = rig.floats("y", 1);
  const auto from = rig.stream.copy(y.view(), stale);
  REQUIRE(from.failed());
  CHECK(from.error().kind() == ErrorKind::stale_buffer);
  CHECK(rig.carried(y).kind() == ErrorKind::stale_buffer);
  CHECK(rig.stream.fill(y, 1).executed_cleanly());
  const auto to = rig.stream.copy(stale, y.view());
  REQUIRE(to.failed());
  CHECK(to.error().kind() == ErrorKind::stale_buffer);
  const auto filled = rig.stream.fill(stale, 1);
  REQUIRE(filled.failed());
  CHECK(filled.error().kind() == ErrorKind::stale_buffer);
  const auto written = rig.stream.write(stale, four(1));
  REQUIRE(written.failed());
  CHECK(written.error().kind() == ErrorKind::stale_buffer);
  rig.settle();
  CHECK(rig.clean(y));
  CHECK(rig.device.live_failures() == 0);
}

ON_BOTH_KINDS("M6: a buffer, a kernel or a view of another device is refused by its own error") {
  Rig far(StreamKind::inline_);
  const Buffer<float> there = far.floats("there", 1);
  const Buffer<float> y = rig.floats("y", 1);
  const auto launched = rig.stream.launch(*rig.map, grid(4), there, y, 0U);
  REQUIRE(launched.failed());
  CHECK(launched.error().kind() == ErrorKind::other_device);
  CHECK(rig.carried(y).kind() == ErrorKind::other_device);
  CHECK(rig.unreadable(there).kind() == ErrorKind::other_device);
  CHECK(far.clean(there));

  CHECK(rig.stream.fill(y, 1).executed_cleanly());
  const auto kernel = rig.stream.launch(*far.make, grid(4), y, 0U);
  REQUIRE(kernel.failed());
  CHECK(kernel.error().kind() == ErrorKind::other_device);
  CHECK(rig.carried(y).kind() == ErrorKind::other_device);
  CHECK(far.control.runs(0) == 0);

  const auto nothing = rig.stream.fill(View<float>(), 1);
  REQUIRE(nothing.failed());
  CHECK(nothing.error().kind() == ErrorKind::stale_buffer);
}

ON_BOTH_KINDS("M6: constants are not written, and the error names them") {
  const auto weights =
      rig.device.constant<float>("weights", SharedBytes::copy_of(std::vector<std::byte>(16)))
          .value();
  const Buffer<float> x = rig.floats("x", 1);
  const Buffer<float> z = rig.floats("z", 1);
  const auto refused = [&](const ScopedOutcome<void>& outcome) {
    REQUIRE(outcome.failed());
    CHECK(outcome.error().kind() == ErrorKind::constant_written);
    CHECK(says(outcome.error(), "\"weights\""));
    CHECK(rig.clean(weights));
  };
  refused(rig.stream.launch(*rig.make, grid(4), weights, 0U));
  refused(rig.stream.launch(*rig.update, grid(4), weights, 0U));
  refused(rig.stream.copy(weights, x));
  refused(rig.stream.fill(weights, 1));
  refused(rig.stream.write(weights, four(1)));
  refused(rig.stream.launch(*rig.split, grid(4), x, weights, z, 0U));
  CHECK(rig.carried(z).kind() == ErrorKind::constant_written);
  CHECK(rig.values(weights) == four(0));
  CHECK(rig.stream.launch(*rig.map, grid(4), weights, x, 0U).executed_cleanly());
}

ON_BOTH_KINDS("M6: views that reach outside are refused wherever they are used") {
  const Buffer<float> x = rig.floats("x", 1);
  const Buffer<float> y = rig.floats("y", 1);
  constexpr std::uint64_t kHuge = ~std::uint64_t{0};
  const BufferId id = x.id();
  const std::vector<View<float>> outside{
      x.view(0, 5),
      x.view(4, 1),
      x.view(5, 0),
      x.view(kHuge, 1),
      x.view(1, kHuge),
      x.view(kHuge / 4, kHuge / 4),
      x.view(2, 2).view(1, 2),
      x.view(0, 5).view(0, 0),
      View<float>(BufferBinding{id, {8, 4}}),
      View<float>(BufferBinding{id, {0, kHuge}}),
      View<float>(BufferBinding{id, {kHuge, 4}}),
      View<float>(BufferBinding{id, {0, std::uint64_t{1} << 60U}}),
  };
  for (std::size_t at = 0; at < outside.size(); ++at) {
    CAPTURE(at);
    const View<float>& view = outside[at];
    const auto refused = [&](const ScopedOutcome<void>& outcome) {
      REQUIRE(outcome.failed());
      CHECK(outcome.error().kind() == ErrorKind::invalid_argument);
      CHECK(says(outcome.error(), "\"x\""));
    };
    refused(rig.stream.launch(*rig.make, grid(4), view, 0U));
    refused(rig.stream.launch(*rig.map, grid(4), view, y, 0U));
    refused(rig.stream.copy(y.view(), view));
    refused(rig.stream.copy(view, y.view()));
    refused(rig.stream.fill(view, 1));
    refused(rig.stream.write(view, four(1)));
    CHECK(rig.unreadable(view).kind() == ErrorKind::invalid_argument);
    std::vector<float> room(4);
    const Result<void> into = rig.stream.read_into(view, room);
    REQUIRE_FALSE(into.ok());
    CHECK(rig.carried(view).kind() == ErrorKind::invalid_argument);
    rig.stream.failed_write(view, broken("no"));
    CHECK(rig.clean(x));
    CHECK(rig.carried(y).kind() == ErrorKind::invalid_argument);
    CHECK(rig.stream.fill(y, 1).executed_cleanly());
  }
  rig.settle();
  CHECK(rig.control.runs(0) == 0);
  CHECK(rig.device.live_failures() == 0);
}

ON_BOTH_KINDS(
    "M6: a launch with several bad arguments names the first and claims all good outputs") {
  const View<float> stale = stale_view(rig);
  Rig far(StreamKind::inline_);
  const Buffer<float> there = far.floats("there", 1);
  const Buffer<float> y = rig.floats("y", 1);
  const auto outcome = rig.stream.launch(*rig.join, grid(4), there, stale, y, 0U);
  REQUIRE(outcome.failed());
  CHECK(outcome.error().kind() == ErrorKind::other_device);
  CHECK(says(outcome.error(), "at argument 1 (in f32*)"));
  CHECK(rig.carried(y).kind() == ErrorKind::other_device);
  CHECK(rig.only_heard().error.kind() == ErrorKind::other_device);
}

ON_BOTH_KINDS("M6: copies, fills and writes of the wrong size claim what was to come") {
  const Buffer<float> x = rig.floats("x", 1);
  const Buffer<float> y = rig.floats("y", 1);
  const auto refused = [&](const ScopedOutcome<void>& outcome, const View<float>& claimed) {
    REQUIRE(outcome.failed());
    CHECK(outcome.error().kind() == ErrorKind::invalid_argument);
    CHECK(rig.carried(claimed).kind() == ErrorKind::invalid_argument);
    CHECK(rig.stream.fill(claimed, 1).executed_cleanly());
  };
  refused(rig.stream.copy(y.view(0, 2), x.view(0, 3)), y.view(0, 2));
  refused(rig.stream.copy(x.view(1, 2), x.view(0, 2)), x.view(1, 2));
  refused(rig.stream.write(y, std::vector<float>(3)), y);
  refused(rig.stream.write(y, std::vector<float>()), y);
  refused(rig.stream.fill_bytes({y.id(), {0, 6}}, 0, 4, Where::here()), y.view(0, 1));
  refused(rig.stream.fill_bytes({y.id(), {0, 6}}, 0, 3, Where::here()), y.view(0, 1));
  refused(rig.stream.fill_bytes({y.id(), {0, 8}}, 0x100, 1, Where::here()), y.view(0, 2));
  CHECK(rig.stream.copy(x.view(2, 2), x.view(0, 2)).executed_cleanly());
  std::vector<float> room(3);
  const Result<void> into = rig.stream.read_into(y, room);
  REQUIRE_FALSE(into.ok());
  CHECK(into.error().kind() == ErrorKind::invalid_argument);
  rig.settle();
  CHECK(rig.device.live_failures() == 0);
}

ON_BOTH_KINDS("M6: work on no bytes at all is no work") {
  const Buffer<float> x = rig.bad("x", "x never came");
  const View<float> empty = x.view(2, 0);
  CHECK(rig.stream.fill(empty, 1).executed_cleanly());
  CHECK(rig.stream.copy(empty, x.view(0, 0)).executed_cleanly());
  CHECK(rig.stream.write(empty, std::vector<float>()).executed_cleanly());
  CHECK(rig.values(empty).empty());
  CHECK(rig.carried(x).message() == "x never came");
}

ON_BOTH_KINDS("M7: a read of several failures names each once, and clears nothing") {
  const Buffer<float> x = rig.floats("x", 1);
  const Buffer<float> y = rig.floats("y", 1);
  rig.stream.failed_write(x.view(0, 1), broken("the first frame was lost"));
  rig.stream.failed_write(x.view(2, 1), broken("the third frame was lost"));
  CHECK(rig.stream.copy(y.view(0, 1), x.view(0, 1)).skipped());
  for (int again = 0; again < 2; ++again) {
    const Error error = rig.unreadable(x);
    CHECK(error.kind() == ErrorKind::failed_input);
    CHECK(says(error, "2 failures"));
    const std::string text = error.text();
    const std::size_t first = text.find("the first frame was lost");
    REQUIRE(first != std::string::npos);
    CHECK(text.find("the first frame was lost", first + 1) == std::string::npos);
    CHECK(says(error, "the third frame was lost"));
    CHECK(says(error, "2 buffers carry it: \"x\", \"y\""));
    CHECK(says(error, "1 buffer carries it: \"x\""));
  }
}

TEST_CASE("M8: check answers without waiting and takes nothing") {
  Rig rig(StreamKind::worker);
  Gate gate;
  rig.control.does[1] = waits(gate);
  const Buffer<float> x = rig.bad("x", "x never came");
  const Buffer<float> y = rig.floats("y", 1);
  rig.stream.launch(*rig.make, grid(4), y, 1U);
  for (int again = 0; again < 3; ++again) {
    CHECK(rig.clean(y));
    CHECK(rig.carried(x).message() == "x never came");
  }
  gate.open();
  rig.settle();
}

TEST_CASE("buffers that cannot be are refused by name") {
  Rig rig(StreamKind::inline_);
  const auto refused = [](const auto& made, ErrorKind kind) {
    REQUIRE_FALSE(made.ok());
    CHECK(made.error().kind() == kind);
    CHECK(says(made.error(), "\"odd\""));
  };
  refused(rig.device.buffer<float>("odd", 0), ErrorKind::invalid_argument);
  refused(rig.device.buffer<float>("odd", ~std::uint64_t{0}), ErrorKind::invalid_argument);
  refused(rig.device.buffer<float>("odd", std::uint64_t{1} << 62U), ErrorKind::invalid_argument);
  refused(rig.device.state<float>("odd", {}), ErrorKind::invalid_argument);
  refused(rig.device.constant<float>("odd", SharedBytes()), ErrorKind::invalid_argument);
  refused(rig.device.constant<float>("odd", SharedBytes::copy_of(std::vector<std::byte>(6))),
          ErrorKind::invalid_argument);
  refused(rig.device.buffer<std::uint8_t>("odd", std::uint64_t{1} << 60U),
          ErrorKind::out_of_memory);
}

TEST_CASE("M4: inline work that drops its own buffers keeps their memory until it has ended") {
  auto kernels = std::make_shared<host::KernelRegistry>();
  const auto backend = std::make_shared<WatchedBackend>(host::make_backend(kernels));
  const Device device(backend, DeviceOptions{});
  Stream stream = device.stream().value();
  std::optional<Buffer<float>> x(device.buffer<float>("x", 4).value());
  std::optional<Buffer<float>> y(device.buffer<float>("y", 4).value());
  stream.fill(*x, 1);
  const View<float> from = x->view();
  const View<float> to = y->view();
  const std::vector<std::string> freed{"memory of 64", "memory of 64"};
  const auto body = [&](std::span<const float> in, std::span<float> out) {
    x.reset();
    y.reset();
    // Dead at once, also for work inside, and the memory is there all the same.
    CHECK(device.check(to)->kind() == ErrorKind::stale_buffer);
    CHECK(stream.fill(to, 1).into_result().error().kind() == ErrorKind::stale_buffer);
    CHECK(backend->destroyed().empty());
    std::copy(in.begin(), in.end(), out.begin());
  };
  SUBCASE("a kernel") {
    using Both = Kernel<In<float>, Out<float>>;
    kernels->add<Both>("both", body);
    const Both both = device.kernel<Both>("both").value();
    stream.launch(both, grid(4), from, to);
    CHECK(backend->destroyed() == freed);
  }
  SUBCASE("host work") {
    stream.host<In<float>, Out<float>>("both", body, from, to);
    CHECK(backend->destroyed() == freed);
  }
  CHECK(device.live_failures() == 0);
}

ON_BOTH_KINDS("M4: a listener that drops a buffer as work on it begins does not take its memory") {
  std::optional<Buffer<float>> y;
  DeviceOptions options;
  options.on_unread = [&](const UnreadFailure&) { y.reset(); };
  const host::Device device(options);
  Control control;
  register_on(device.kernels(), control);
  Stream stream = device.stream(rig.kind()).value();
  y.emplace(device.buffer<float>("y", 4).value());
  const View<float> view = y->view();
  stream.failed_write(view, broken("y never came"));  // which the work below lets go of, unread
  SUBCASE("a launch") { stream.launch(device.kernel<Make>("make").value(), grid(4), view, 0U); }
  SUBCASE("a fill") { stream.fill(view, 1); }
  SUBCASE("a write") { stream.write(view, four(1)); }
  SUBCASE("host work") {
    stream.host<Out<float>>(
        "set", [](std::span<float> all) { all[3] = 1; }, view);
  }
  CHECK_FALSE(y.has_value());
  CHECK(device.check(view)->kind() == ErrorKind::stale_buffer);
  static_cast<void>(stream.sync());
}

}  // namespace refrain
