// Rules E1 to E9: how work ends, and what its bytes say then, through real launches.
#include "device/rig.hpp"

namespace refrain {
namespace {

using namespace test;

}  // namespace

ON_BOTH_KINDS("E1: a clean launch releases exactly the bytes that it wrote") {
  const Buffer<float> y = rig.bad("y", "y never came");
  CHECK(rig.stream.launch(*rig.make, grid(4), y.view(1, 2), 0U).executed_cleanly());
  rig.settle();
  CHECK(rig.values(y.view(1, 2)) == std::vector<float>{10, 10});
  CHECK(rig.carried(y.view(0, 1)).message() == "y never came");
  CHECK(rig.carried(y.view(3, 1)).message() == "y never came");
}

ON_BOTH_KINDS("E2: a kernel that fails leaves its own error on what it was to write") {
  const Buffer<float> y = rig.floats("y", 1);
  rig.control.does[1] = fails("it broke");
  const auto outcome = rig.stream.launch(*rig.make, grid(4), y.view(0, 3), 1U);
  CHECK(outcome.failed() == !rig.worker());
  rig.settle();
  const Error error = rig.carried(y.view(0, 3));
  CHECK(error.kind() == ErrorKind::kernel_failed);
  CHECK(error.message() == "it broke");
  CHECK(rig.clean(y.view(3, 1)));
  const Error story = rig.unreadable(y);
  CHECK(says(story, "it broke"));
  CHECK(says(story, "\"make\""));
  CHECK(says(story, "settling_test.cpp"));
  CHECK(rig.only_heard().error.message() == "it broke");
}

ON_BOTH_KINDS("E4: a kernel that throws leaves the exception itself on its bytes") {
  const Buffer<float> y = rig.floats("y", 1);
  rig.control.does[1] = throws("a thing was thrown");
  bool passed_on = false;
  try {
    rig.stream.launch(*rig.make, grid(4), y, 1U);
  } catch (const std::runtime_error& error) {
    passed_on = true;
    CHECK(std::string(error.what()) == "a thing was thrown");
  }
  CHECK(passed_on == !rig.worker());  // nobody is there to catch it on a worker
  rig.settle();
  const Error error = rig.carried(y);
  CHECK(error.kind() == ErrorKind::exception);
  REQUIRE(error.exception() != nullptr);
  CHECK_THROWS_AS(std::rethrow_exception(error.exception()), std::runtime_error);
  CHECK(says(rig.unreadable(y), "a thing was thrown"));
  CHECK(rig.only_heard().error.kind() == ErrorKind::exception);
  CHECK(rig.stream.launch(*rig.make, grid(4), y, 0U).executed_cleanly());
  CHECK(rig.values(y) == four(10));
}

ON_BOTH_KINDS("E6: the listener is told the stream that the work was issued on") {
  const Buffer<float> y = rig.floats("y", 1);
  Stream other = rig.another();
  rig.control.does[1] = fails("it broke");
  other.launch(*rig.make, grid(4), y, 1U);
  static_cast<void>(other.sync());
  CHECK(rig.only_heard().stream == other.id());
  rig.forget_heard();
  CHECK(rig.stream.launch(*rig.update, grid(4), y, 0U).skipped());
  CHECK(rig.only_heard().stream == rig.stream.id());
}

ON_BOTH_KINDS("E7: a failure reaches its bytes whichever stream used them before") {
  Stream other = rig.another();
  const Buffer<float> y = rig.floats("y", 1);  // written by the first stream
  rig.control.does[1] = fails("it broke");
  other.launch(*rig.update, grid(4), y, 1U);
  static_cast<void>(other.sync());
  CHECK(rig.carried(y).message() == "it broke");
  CHECK(rig.stream.fill(y, 2).executed_cleanly());
  CHECK(rig.clean(y));
}

ON_BOTH_KINDS("E8: after a clean exit no provisional is left") {
  const Buffer<float> bad = rig.bad("bad", "a failure lives, so scopes go the long way");
  const Buffer<float> y = rig.floats("y", 1);
  CHECK(rig.stream.launch(*rig.make, grid(4), y, 0U).executed_cleanly());
  rig.settle();
  CHECK(rig.device.live_failures() == 1);
}

TEST_CASE(
    "E9: an inner launch that fails keeps its bytes claimed when the scope around it succeeds") {
  Rig rig(StreamKind::inline_);
  const Buffer<float> y = rig.floats("y", 1);
  const Buffer<float> z = rig.floats("z", 1);
  rig.control.does[1] = fails("the inner one broke");
  WriteSet writes = rig.stream.write_set();
  writes.add(y.view().binding());
  writes.add(z.view().binding());
  const auto outcome =
      ExecuteScope<Stream>::over(rig.stream, intern_kernel_name("outer"), std::move(writes),
                                 Where::here())
          .execute([&](Stream& stream) -> Result<void> {
            stream.launch(*rig.make, grid(4), y.view(0, 2), 1U);
            CHECK(stream.launch(*rig.make, grid(4), z, 0U).executed_cleanly());
            CHECK(rig.carried(z).kind() == ErrorKind::torn_down);  // the outer's, put back
            return {};
          });
  CHECK(outcome.executed_cleanly());
  CHECK(rig.carried(y.view(0, 2)).message() == "the inner one broke");
  CHECK(rig.clean(y.view(2, 2)));
  CHECK(rig.clean(z));
}

ON_BOTH_KINDS("R2: what was to be written and cannot come claims its bytes once") {
  const Buffer<float> y = rig.floats("y", 1);
  rig.stream.failed_write(y.view(1, 1), broken("the frame was lost"));
  CHECK(rig.carried(y.view(1, 1)).message() == "the frame was lost");
  CHECK(rig.clean(y.view(2, 2)));
  CHECK(rig.only_heard().error.message() == "the frame was lost");
}

ON_BOTH_KINDS("R2: a constant is never claimed, because nothing could mend it") {
  const auto weights =
      rig.device.constant<float>("w", SharedBytes::copy_of(std::vector<std::byte>(16))).value();
  rig.stream.failed_write(weights, broken("the frame was lost"));
  CHECK(rig.clean(weights));
  CHECK(rig.heard().size() == 1);
}

}  // namespace refrain
