// Rule P5: what surrounds a replay does not grow with the graph, and what is not walked is not
// missed either.
#include <doctest/doctest.h>

#include <thread>

#include "counter_graph.hpp"
#include "support/allocations.hpp"

using namespace refrain;
using namespace refrain::test;

namespace {

/// A graph over `count` buffers: the first is an input, each of the others a copy of the one
/// before.
struct Chain {
  Chain(const host::Device& device, StreamKind kind, std::size_t count)
      : stream(device.stream(kind).value()) {
    for (std::size_t at = 0; at < count; ++at) {
      buffers.push_back(
          device.buffer<float>("b" + std::to_string(at), 4, at == 0 ? Role::input : Role::output)
              .value());
    }
    OpenWindow window = stream.record().value();
    for (std::size_t at = 1; at < count; ++at) stream.copy(buffers[at], buffers[at - 1]);
    recording.emplace(window.seal().value());
    step.emplace(instance(*recording).value());
    stream.fill(buffers[0], 1.0F);
    REQUIRE(replay());
    REQUIRE(replay());
  }

  bool replay() {
    const bool ran = step->replay(stream).executed_cleanly();
    return stream.sync().ok() && ran;
  }

  Stream stream;
  std::vector<Buffer<float>> buffers;
  std::optional<Recording> recording;
  std::optional<Instance> step;
};

}  // namespace

TEST_CASE("P5: a replay takes as little memory over a thousand buffers as over ten") {
  if (!kCountsAllocations) return;  // a sanitizer's build, which has an operator new of its own
  for (const StreamKind kind : {StreamKind::inline_, StreamKind::worker}) {
    CAPTURE(static_cast<int>(kind));
    const host::Device device;
    const auto broken = device.buffer<float>("nobody writes this", 4).value();
    Chain small(device, kind, 10);
    Chain large(device, kind, 1000);
    const auto taken = [](Chain& chain) {
      return allocations_in([&] { CHECK(chain.step->replay(chain.stream).executed_cleanly()); });
    };
    static_cast<void>(taken(small) + taken(large));  // the first time, each learns of the other
    const std::uint64_t few = taken(small);
    CHECK(taken(large) == few);
    if (kind == StreamKind::inline_) CHECK(few == 0);
  }
}

TEST_CASE("P5: whatever turns bad after a clean replay is met by the next one") {
  for (const StreamKind kind : {StreamKind::inline_, StreamKind::worker}) {
    CAPTURE(static_cast<int>(kind));
    const host::Device device;
    const auto elsewhere = device.buffer<float>("elsewhere", 4).value();
    Chain chain(device, kind, 20);
    for (int round = 0; round < 3; ++round) {
      // The input.
      chain.stream.failed_write(chain.buffers[0],
                                Error(ErrorKind::kernel_failed, "No input came."));
      CHECK(chain.step->replay(chain.stream).skipped());
      CHECK(chain.step->replay(chain.stream).skipped());
      CHECK_FALSE(chain.stream.read(chain.buffers[19]).ok());
      chain.stream.fill(chain.buffers[0], 2.0F);
      CHECK(chain.replay());
      CHECK(chain.stream.read(chain.buffers[19]).value() == std::vector<float>(4, 2.0F));
      CHECK(chain.replay());
      // Part of an output, which a replay heals.
      chain.stream.failed_write(chain.buffers[7].view(1, 2),
                                Error(ErrorKind::kernel_failed, "Somebody else broke it."));
      CHECK(chain.replay());
      CHECK(chain.stream.read(chain.buffers[7]).ok());
      CHECK(device.live_failures() == 1);  // what nobody has written, elsewhere
      CHECK(chain.replay());
    }
  }
}

TEST_CASE("P5: a bound buffer is looked at from its first replay on") {
  const host::Device device;
  Chain chain(device, StreamKind::inline_, 5);
  const auto plan = Plan::prepare(device, chain.recording->graph()).value();
  auto step = plan.instance().value();
  const auto good = device.buffer<float>("good", 4).value();
  const auto bad = device.buffer<float>("bad", 4).value();
  chain.stream.fill(good, 5.0F);
  for (int round = 0; round < 2; ++round) {
    REQUIRE(step.bind("b0", good).ok());
    CHECK(step.replay(chain.stream).executed_cleanly());
    CHECK(step.replay(chain.stream).executed_cleanly());
    REQUIRE(step.bind("b0", bad).ok());
    CHECK(step.replay(chain.stream).skipped());
    CHECK(step.replay(chain.stream).skipped());
  }
}

TEST_CASE("P5: nested in a piece of work a replay meets what that work is still writing") {
  const host::Device device;
  Chain chain(device, StreamKind::inline_, 5);
  WriteSet writes = chain.stream.write_set();
  writes.add(chain.buffers[0].view().binding());
  ExecuteScope<Stream>::over(chain.stream, intern_kernel_name("outer"), std::move(writes),
                             Where::here())
      .execute([&](Stream& stream) -> Result<void> {
        CHECK(chain.step->replay(stream).skipped());  // O6
        return {};
      });
  CHECK(chain.step->replay(chain.stream).executed_cleanly());
}
