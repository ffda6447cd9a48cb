// Rules K: skips, through real launches.
#include "device/rig.hpp"

namespace refrain {
namespace {

using namespace test;

}  // namespace

ON_BOTH_KINDS(
    "K1: a skip points all that it would have written at the input's failure, minting none") {
  const Buffer<float> x = rig.bad("x", "x never came");
  const Buffer<float> y = rig.floats("y", 1);
  const Buffer<float> z = rig.floats("z", 1);
  const FailureId root = rig.carried(x).failure();
  const auto outcome = rig.stream.launch(*rig.split, grid(4), x, y, z.view(1, 2), 0U);
  REQUIRE(outcome.skipped());
  CHECK(outcome.failure() == root);
  CHECK(rig.carried(y).failure() == root);
  CHECK(rig.carried(z.view(1, 2)).failure() == root);
  CHECK(rig.clean(z.view(0, 1)));
  CHECK(rig.clean(z.view(3, 1)));
  CHECK(rig.device.live_failures() == 1);
}

ON_BOTH_KINDS("K2: a skip replaces older claims, and a failure whose last byte goes is dropped") {
  const Buffer<float> x = rig.bad("x", "x never came");
  const Buffer<float> y = rig.bad("y", "y never came");
  CHECK(rig.device.live_failures() == 2);
  CHECK(rig.stream.launch(*rig.map, grid(4), x, y, 0U).skipped());
  CHECK(rig.carried(y).message() == "x never came");
  CHECK(rig.device.live_failures() == 1);
}

ON_BOTH_KINDS("K3: the body of a skipped launch never runs") {
  const Buffer<float> x = rig.bad("x", "x never came");
  const Buffer<float> y = rig.floats("y", 1);
  CHECK(rig.stream.launch(*rig.map, grid(4), x, y, 3U).skipped());
  CHECK(rig.stream.launch(*rig.update, grid(4), x, 3U).skipped());
  rig.settle();
  CHECK(rig.control.runs(3) == 0);
}

ON_BOTH_KINDS("K4: a skip is heard and dooms the window also when its scope is never executed") {
  const Buffer<float> x = rig.bad("x", "x never came");
  const Buffer<float> y = rig.floats("y", 1);
  OpenWindow window = rig.stream.record().value();
  {
    const std::array reads{x.view().binding()};
    WriteSet writes = rig.stream.write_set();
    writes.add(y.view().binding());
    const auto scope = ExecuteScope<Stream>::launching(rig.stream, intern_kernel_name("never"),
                                                       reads, std::move(writes), Where::here());
    CHECK(scope.skipped());
  }
  CHECK(rig.heard().size() == 1);
  CHECK(window.state() == WindowState::doomed);
  window.abort();
}

ON_BOTH_KINDS("K5: the listener hears the input's own error and never that something was skipped") {
  const Buffer<float> x = rig.bad("x", "x never came");
  const Buffer<float> y = rig.floats("y", 1);
  CHECK(rig.stream.launch(*rig.map, grid(4), x, y, 0U).skipped());
  const Heard heard = rig.only_heard();
  CHECK(heard.stream == rig.stream.id());
  CHECK(heard.error.kind() == ErrorKind::kernel_failed);
  CHECK(heard.error.message() == "x never came");
  CHECK(heard.error.failure() == rig.carried(x).failure());
}

ON_BOTH_KINDS("K6: failures travel along the data and not along the stream") {
  const Buffer<float> x = rig.bad("x", "x never came");
  const Buffer<float> y = rig.floats("y", 1);
  const Buffer<float> z = rig.floats("z", 1);
  const Buffer<float> elsewhere = rig.floats("elsewhere", 1);
  Stream other = rig.another();
  CHECK(rig.stream.launch(*rig.map, grid(4), x, y, 0U).skipped());
  CHECK(rig.stream.launch(*rig.update, grid(4), elsewhere, 0U).executed_cleanly());
  CHECK(other.wait(rig.stream.record_event().value()).ok());
  CHECK(other.launch(*rig.map, grid(4), y, z, 0U).skipped());
  CHECK(rig.carried(z).failure() == rig.carried(x).failure());
  CHECK(rig.values(elsewhere) == four(2));
  CHECK(other.sync().ok());
  CHECK(rig.stream.fill(x, 5).executed_cleanly());
  CHECK(rig.stream.launch(*rig.map, grid(4), x, y, 0U).executed_cleanly());
  rig.settle();
  CHECK(other.launch(*rig.map, grid(4), y, z, 0U).executed_cleanly());
  CHECK(rig.values(z) == four(7));
}

ON_BOTH_KINDS("K7: a read names the path back, newest first, and the root") {
  const Buffer<float> x = rig.bad("x", "x never came");
  const Buffer<float> y = rig.floats("y", 1);
  const Buffer<float> z = rig.floats("z", 1);
  rig.stream.launch(*rig.map, grid(4), x, y, 0U);
  rig.stream.copy(z, y);
  const std::string story = rig.unreadable(z).text();
  CAPTURE(story);
  const std::size_t root = story.find("x never came");
  const std::size_t copied = story.find("\"copy\"");
  const std::size_t mapped = story.find("\"map\"");
  REQUIRE(root != std::string::npos);
  REQUIRE(copied != std::string::npos);
  REQUIRE(mapped != std::string::npos);
  CHECK(root < copied);
  CHECK(copied < mapped);
  CHECK(story.find("skipping_test.cpp") != std::string::npos);
  CHECK(story.find("needed \"y\"") != std::string::npos);
  CHECK(story.find("would have written \"z\"") != std::string::npos);
}

ON_BOTH_KINDS("K7: the newest 16 skips are kept and the number dropped is said") {
  const Buffer<float> x = rig.bad("x", "x never came");
  const Buffer<float> y = rig.floats("y", 1);
  for (int i = 0; i < 20; ++i) rig.stream.launch(*rig.map, grid(4), x, y, 0U);
  const std::string story = rig.device.story(rig.carried(y).failure());
  CHECK(story.find("4 earlier skips") != std::string::npos);
  CHECK(story.find("x never came") != std::string::npos);
}

}  // namespace refrain
