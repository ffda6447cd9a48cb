// Rules O: what opens, what is skipped, and what is no work at all, through real launches.
#include <type_traits>

#include "device/rig.hpp"

namespace refrain {
namespace {

using namespace test;

static_assert(!std::is_copy_constructible_v<Stream>);  // O9
static_assert(!std::is_copy_constructible_v<OpenWindow>);
static_assert(!std::is_copy_constructible_v<ExecuteScope<Stream>>);
static_assert(!std::is_move_constructible_v<ExecuteScope<Stream>>);

}  // namespace

ON_BOTH_KINDS("O2: a fill, a write and a launch that only writes mend a broken buffer") {
  for (int how = 0; how < 3; ++how) {
    CAPTURE(how);
    const Buffer<float> y = rig.bad("y", "y never came");
    if (how == 0) CHECK(rig.stream.fill(y, 3).executed_cleanly());
    if (how == 1) CHECK(rig.stream.write(y, four(3)).executed_cleanly());
    if (how == 2) CHECK(rig.stream.launch(*rig.make, grid(4), y, 0U).executed_cleanly());
    CHECK(rig.values(y) == four(how == 2 ? 10 : 3));
    CHECK(rig.heard().empty());
  }
}

ON_BOTH_KINDS("O2: a copy over a broken source is skipped and does not launder the failure") {
  const Buffer<float> x = rig.bad("x", "x never came");
  const Buffer<float> y = rig.floats("y", 1);
  CHECK(rig.stream.copy(y, x).skipped());
  CHECK(rig.carried(y).failure() == rig.carried(x).failure());
}

ON_BOTH_KINDS("O3: work in place does not meet its own claim") {
  const Buffer<float> y = rig.floats("y", 1);
  CHECK(rig.stream.launch(*rig.update, grid(4), y, 0U).executed_cleanly());
  CHECK(rig.stream.launch(*rig.update, grid(4), y, 0U).executed_cleanly());
  CHECK(rig.values(y) == four(3));
}

ON_BOTH_KINDS("O4: the first failed input in argument order is the one carried on") {
  const Buffer<float> a = rig.bad("a", "a never came");
  const Buffer<float> b = rig.bad("b", "b never came");
  const Buffer<float> y = rig.floats("y", 1);
  CHECK(rig.stream.launch(*rig.join, grid(4), b, a, y, 0U).skipped());
  CHECK(rig.carried(y).failure() == rig.carried(b).failure());
  CHECK(rig.stream.launch(*rig.join, grid(4), a, b, y, 0U).skipped());
  CHECK(rig.carried(y).failure() == rig.carried(a).failure());
  CHECK(rig.control.runs(0) == 0);
}

ON_BOTH_KINDS("O5: a failed buffer that is only written does not cause a skip") {
  const Buffer<float> x = rig.floats("x", 1);
  const Buffer<float> y = rig.bad("y", "y never came");
  CHECK(rig.stream.launch(*rig.map, grid(4), x, y, 0U).executed_cleanly());
  CHECK(rig.values(y) == four(2));
}

TEST_CASE("O6: while a body runs its outputs are torn down, on exactly the bytes that it names") {
  Rig rig(StreamKind::inline_);
  const Buffer<float> y = rig.floats("y", 1);
  Stream other = rig.another();
  rig.control.does[1] = [&]() -> Result<void> {
    CHECK(rig.carried(y.view(0, 2)).kind() == ErrorKind::torn_down);
    CHECK(rig.clean(y.view(2, 2)));
    const auto nested = rig.stream.read(y.view(0, 2));
    REQUIRE_FALSE(nested.ok());
    CHECK(says(nested.error(), "begun and"));
    return {};
  };
  CHECK(rig.stream.launch(*rig.make, grid(4), y.view(0, 2), 1U).executed_cleanly());
  CHECK(rig.values(y) == std::vector<float>{10, 10, 1, 1});
}

TEST_CASE("O6: a read from another stream sees the provisional of work that is running") {
  Rig rig(StreamKind::inline_);
  const Buffer<float> y = rig.floats("y", 1);
  Gate running;
  Gate go_on;
  rig.control.does[1] = [&]() -> Result<void> {
    running.open();
    go_on.wait();
    return {};
  };
  std::thread runner([&] { rig.stream.launch(*rig.make, grid(4), y, 1U); });
  running.wait();
  Stream other = rig.another();
  const auto got = other.read(y);
  go_on.open();
  runner.join();
  REQUIRE_FALSE(got.ok());
  CHECK(got.error().kind() == ErrorKind::failed_input);
  CHECK(rig.values(y) == four(10));
}

ON_BOTH_KINDS(
    "O7: work that writes nothing claims nothing, and its failure is heard all the same") {
  const Buffer<float> x = rig.floats("x", 1);
  rig.control.does[1] = fails("it did not like x");
  rig.stream.launch(*rig.look, grid(1), x, 1U);
  rig.settle();
  CHECK(rig.device.live_failures() == 0);
  CHECK(rig.only_heard().error.message() == "it did not like x");

  const Buffer<float> bad = rig.bad("bad", "bad never came");
  CHECK(rig.stream.launch(*rig.look, grid(1), bad, 0U).skipped());
  CHECK(rig.device.live_failures() == 1);
  CHECK(rig.only_heard().error.message() == "bad never came");
}

ON_BOTH_KINDS("O8: the storage of write sets is back in its pool after every exit") {
  const Buffer<float> x = rig.floats("x", 1);
  const Buffer<float> y = rig.floats("y", 1);
  const WriteSetPool& pool = rig.stream.core().pool;
  const auto all_back = [&] { return pool.idle() == pool.total(); };
  rig.control.does[1] = fails("broke");
  rig.control.does[2] = throws("threw");
  rig.stream.launch(*rig.map, grid(4), x, y, 0U);
  CHECK(all_back());
  rig.stream.launch(*rig.map, grid(4), x, y, 1U);
  rig.settle();
  CHECK(all_back());
  rig.stream.launch(*rig.map, grid(4), y, x, 0U);  // skipped
  CHECK(all_back());
  rig.stream.fill(x, 1);
  try {
    rig.stream.launch(*rig.map, grid(4), x, y, 2U);
  } catch (const std::runtime_error&) {
    CHECK_FALSE(rig.worker());
  }
  rig.settle();
  CHECK(all_back());
  CHECK(pool.total() == 1);
}

ON_BOTH_KINDS("O10: a scope that is dropped without execute leaves its bytes claimed") {
  const Buffer<float> y = rig.floats("y", 1);
  const auto open_and_drop = [&] {
    WriteSet writes = rig.stream.write_set();
    writes.add(y.view(1, 2).binding());
    const auto scope = ExecuteScope<Stream>::over(rig.stream, intern_kernel_name("forgotten"),
                                                  std::move(writes), Where::here());
    CHECK_FALSE(scope.skipped());
  };
  open_and_drop();
  CHECK(rig.carried(y.view(1, 2)).kind() == ErrorKind::torn_down);
  CHECK(rig.clean(y.view(0, 1)));
  CHECK(rig.clean(y.view(3, 1)));
  CHECK(rig.stream.fill(y, 1).executed_cleanly());

  OpenWindow window = rig.stream.record().value();
  open_and_drop();
  CHECK(window.state() == WindowState::doomed);
  const auto sealed = window.seal();
  REQUIRE_FALSE(sealed.ok());
  CHECK(says(sealed.error(), "forgotten"));
}

ON_BOTH_KINDS("O11: a launch of zero threads is no work: it heals nothing and skips nothing") {
  const Buffer<float> x = rig.bad("x", "x never came");
  const Buffer<float> y = rig.bad("y", "y never came");
  const Grid nothing = grid(Dim3{0, 1, 1}, Dim3{1, 1, 1});
  CHECK(rig.stream.launch(*rig.make, nothing, y, 0U).executed_cleanly());
  CHECK(rig.stream.launch(*rig.map, nothing, x, y, 0U).executed_cleanly());
  CHECK(rig.stream.launch(*rig.make, grid(0), y, 0U).executed_cleanly());
  CHECK(rig.carried(y).message() == "y never came");
  CHECK(rig.heard().empty());
  CHECK(rig.control.runs(0) == 0);
}

namespace {

Buffer<std::uint32_t> extent(Rig& rig, std::vector<std::uint32_t> values) {
  auto made = rig.device.buffer<std::uint32_t>("extent", values.size()).value();
  REQUIRE(rig.stream.write(made, values).executed_cleanly());
  return made;
}

}  // namespace

ON_BOTH_KINDS("O11: a grid that is read from a buffer is an input like any other") {
  const Buffer<float> y = rig.floats("y", 1);
  const Buffer<std::uint32_t> good = extent(rig, {1, 1, 1, 4, 1, 1});
  CHECK(rig.stream.launch(*rig.make, good.view(), y, 0U).executed_cleanly());
  CHECK(rig.values(y) == four(10));
  CHECK(rig.control.runs(0) == 1);

  SUBCASE("no threads") {
    const Buffer<std::uint32_t> none = extent(rig, {1, 1, 0, 4, 1, 1});
    rig.stream.failed_write(y, broken("y never came"));
    CHECK(rig.stream.launch(*rig.make, none.view(), y, 0U).executed_cleanly());
    CHECK(rig.carried(y).message() == "y never came");
  }
  SUBCASE("a failure") {
    rig.stream.failed_write(good, broken("the extent never came"));
    CHECK(rig.stream.launch(*rig.make, good.view(), y, 0U).skipped());
    CHECK(rig.carried(y).message() == "the extent never came");
    CHECK(rig.carried(y).failure() == rig.carried(good).failure());
  }
  SUBCASE("nobody wrote it") {
    const auto never = rig.device.buffer<std::uint32_t>("never", 6).value();
    CHECK(rig.stream.launch(*rig.make, never.view(), y, 0U).skipped());
    CHECK(rig.carried(y).kind() == ErrorKind::unwritten);
  }
  SUBCASE("another size") {
    const auto failed = rig.stream.launch(*rig.make, good.view(0, 3), y, 0U);
    REQUIRE(failed.failed());
    CHECK(failed.error().kind() == ErrorKind::invalid_argument);
    CHECK(rig.carried(y).kind() == ErrorKind::invalid_argument);
  }
  SUBCASE("a stale one") {
    View<std::uint32_t> stale;
    {
      const Buffer<std::uint32_t> gone = extent(rig, {1, 1, 1, 4, 1, 1});
      stale = gone.view();
    }
    const auto failed = rig.stream.launch(*rig.make, stale, y, 0U);
    REQUIRE(failed.failed());
    CHECK(failed.error().kind() == ErrorKind::stale_buffer);
    CHECK(rig.carried(y).kind() == ErrorKind::stale_buffer);
  }
  CHECK(rig.control.runs(0) == 1);
}

ON_BOTH_KINDS("O11: a grid that is read from a buffer waits for its last writer") {
  const Buffer<float> y = rig.floats("y", 1);
  Stream other = rig.another();
  using Write = Kernel<Out<std::uint32_t>>;
  rig.device.kernels().add<Write>("extent", [](std::span<std::uint32_t> to) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    for (std::uint32_t& each : to) each = 1;
  });
  const auto write = rig.device.kernel<Write>("extent").value();
  const auto where = rig.device.buffer<std::uint32_t>("extent", 6).value();
  CHECK(other.launch(write, grid(1), where).executed_cleanly());
  CHECK(rig.stream.launch(*rig.make, where.view(), y, 0U).executed_cleanly());
  CHECK(rig.values(y) == four(10));
}

ON_BOTH_KINDS(
    "O11: a grid that is read from a buffer is refused in a window, which then lacks it") {
  const Buffer<float> y = rig.floats("y", 1);
  const Buffer<std::uint32_t> good = extent(rig, {1, 1, 1, 4, 1, 1});
  OpenWindow window = rig.stream.record().value();
  const auto refused = rig.stream.launch(*rig.make, good.view(), y, 0U);
  REQUIRE(refused.failed());
  CHECK(refused.error().kind() == ErrorKind::refused_in_window);
  CHECK(says(refused.error(), "grid from a buffer"));
  CHECK_FALSE(window.seal().ok());
  CHECK(rig.control.runs(0) == 0);
}

ON_BOTH_KINDS("O11: a launch that lacks its grid claims no constant, which nothing could mend") {
  const auto weights =
      rig.device.constant<float>("w", SharedBytes::copy_of(std::vector<std::byte>(16))).value();
  const Buffer<std::uint32_t> grid_of = extent(rig, {1, 1, 1, 4, 1, 1});
  rig.stream.failed_write(grid_of, broken("the extent never came"));
  rig.stream.launch(*rig.make, grid_of.view(), weights, 0U);
  CHECK(rig.clean(weights));
  rig.stream.launch(*rig.make, grid_of.view(0, 2), weights, 0U);
  CHECK(rig.clean(weights));
}

}  // namespace refrain
