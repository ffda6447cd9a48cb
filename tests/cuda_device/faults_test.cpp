// What the CUDA device does when the driver refuses, when the program's own code fails, and when
// the device is lost.
#include <atomic>
#include <memory>
#include <optional>
#include <stdexcept>
#include <thread>

#include "gpu.hpp"

namespace refrain::test {
namespace {

bool names(const Error& error, const std::string& what) {
  const bool found = error.text().find(what) != std::string::npos;
  if (!found) MESSAGE(error.text());
  return found;
}

}  // namespace

TEST_CASE("E2: a launch that the driver refuses claims its outputs, and names the call") {
  const Gpu gpu;
  Stream stream = gpu.stream();
  const Buffer<float> x = gpu.filled(stream, "x", 1);
  const Buffer<float> y = gpu.filled(stream, "y", 2);
  const auto map = gpu.kernel<Map>("map");
  const auto update = gpu.kernel<Update>("update");
  gpu.control->fault("cuLaunchKernelEx", 1, 701, sim::Effect::refuse);
  CHECK(stream.launch(map, grid(Gpu::kCount), x, y, Gpu::kCount).failed());
  CHECK(stream.launch(update, grid(Gpu::kCount), y, Gpu::kCount).skipped());
  const Error error = stream.read(y).error();
  CHECK(names(error, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"));
  CHECK(names(error, "map"));
  CHECK(stream.read(x).value() == all(1));
  CHECK(stream.launch(map, grid(Gpu::kCount), x, y, Gpu::kCount).executed_cleanly());
  CHECK(stream.read(y).value() == all(2));
}

TEST_CASE("E10: host work that fails or throws on the device's stream is found by whoever reads") {
  const Gpu gpu;
  Stream stream = gpu.stream();
  const Buffer<float> x = gpu.filled(stream, "x", 1);
  const Buffer<float> y = gpu.filled(stream, "y", 2);
  const Buffer<float> z = gpu.filled(stream, "z", 3);
  const auto map = gpu.kernel<Map>("map");
  for (const bool throws : {false, true}) {
    CAPTURE(throws);
    gpu.control->hold();
    CHECK(stream
              .host<InOut<float>>(
                  {"sample"},
                  [throws](std::span<float>) -> Result<void> {
                    if (throws) throw std::runtime_error("no luck");
                    return Error(ErrorKind::kernel_failed, "no luck");
                  },
                  x)
              .executed_cleanly());
    CHECK(stream.launch(map, grid(Gpu::kCount), x, y, Gpu::kCount).executed_cleanly());
    gpu.control->release();
    CHECK(names(stream.read(y).error(), "no luck"));
    CHECK(names(stream.read(x).error(), "sample"));
    CHECK(stream.read(z).value() == all(3));
    CHECK(names(stream.sync().error(), "no luck"));
    stream.write(x, all(5));
    CHECK(stream.launch(map, grid(Gpu::kCount), x, y, Gpu::kCount).executed_cleanly());
    CHECK(stream.read(y).value() == all(6));
  }
}

TEST_CASE("E10: host work whose input has failed meanwhile does not run") {
  const Gpu gpu;
  Stream stream = gpu.stream();
  const Buffer<float> x = gpu.filled(stream, "x", 1);
  const Buffer<float> y = gpu.filled(stream, "y", 2);
  bool ran = false;
  gpu.control->hold();
  stream.host<Out<float>>(
      {"first"},
      [](std::span<float>) -> Result<void> { return Error(ErrorKind::kernel_failed, "no luck"); },
      x);
  const auto second = [&] {
    return stream.host<In<float>, Out<float>>(
        {"second"}, [&](std::span<const float>, std::span<float>) { ran = true; }, x, y);
  };
  CHECK(second().executed_cleanly());  // handed over, before anybody knew
  gpu.control->release();
  CHECK(names(stream.read(y).error(), "no luck"));
  CHECK_FALSE(ran);
  CHECK(second().skipped());
}

TEST_CASE("E10: a failure of the program's own code is known when it has happened") {
  std::atomic<int> heard = 0;
  DeviceOptions options;
  options.on_failure = [&](StreamId, const Error&) { ++heard; };
  const Gpu gpu(options);
  Stream stream = gpu.stream();
  const Buffer<float> x = gpu.filled(stream, "x", 1);
  stream.host<Out<float>>(
      {"first"}, [](std::span<float>) { throw std::runtime_error("no luck"); }, x);
  while (heard == 0) std::this_thread::yield();  // nobody waited for the stream
  CHECK(gpu.device->check(x).has_value());
  CHECK_FALSE(stream.sync().ok());
  CHECK(heard == 1);
}

TEST_CASE("P1: a node of the program's that fails in a replay claims all that the graph writes") {
  const Gpu gpu;
  Stream stream = gpu.stream();
  const Buffer<float> x = gpu.filled(stream, "x", 1, Role::input);
  const Buffer<float> y = gpu.buffer("y");
  const Buffer<float> z = gpu.buffer("z");
  bool fails = true;
  bool second = false;
  const auto map = gpu.kernel<Map>("map");
  OpenWindow window = stream.record().value();
  stream.host<In<float>, Out<float>>(
      {"sample"},
      [&](std::span<const float> in, std::span<float> out) {
        if (fails) throw std::runtime_error("no luck");
        std::copy(in.begin(), in.end(), out.begin());
      },
      x, y);
  stream.launch(map, grid(Gpu::kCount), y, z, Gpu::kCount);
  stream.host<In<float>>(
      {"look"}, [&](std::span<const float>) { second = true; }, z);
  const Recording recording = window.seal().value();
  Instance step = instance(recording).value();
  CHECK(step.replay(stream).executed_cleanly());
  const Error error = stream.read(z).error();
  CHECK(names(error, "no luck"));
  CHECK(names(error, "node 0, \"sample\""));
  CHECK_FALSE(second);
  CHECK_FALSE(stream.sync().ok());
  fails = false;
  CHECK(step.replay(stream).executed_cleanly());
  CHECK(stream.read(z).value() == all(2));
  CHECK(second);
}

TEST_CASE("cuda: a lost device claims the work in flight, and every call says what happened") {
  if (!in_own_process()) return;
  DeviceOptions options;
  std::vector<std::string> heard;
  options.on_failure = [&](StreamId, const Error& error) { heard.push_back(error.text()); };
  const Gpu gpu(options);
  gpu.leaves_something = true;
  Stream stream = gpu.stream();
  Stream other = gpu.stream();
  const Buffer<float> x = gpu.filled(stream, "x", 1);
  const Buffer<float> y = gpu.filled(stream, "y", 2);
  const Buffer<float> z = gpu.filled(stream, "z", 3);
  const Buffer<float> old = gpu.filled(stream, "old", 4);
  const auto map = gpu.kernel<Map>("map");
  const auto update = gpu.kernel<Update>("update");
  gpu.control->hold();
  gpu.control->kernel_fault("map", 1, 700);
  CHECK(stream.launch(map, grid(Gpu::kCount), x, y, Gpu::kCount).executed_cleanly());
  CHECK(other.launch(update, grid(Gpu::kCount), z, Gpu::kCount).executed_cleanly());
  CHECK_FALSE(gpu.device->check(y).has_value());
  gpu.control->release();
  CHECK_FALSE(stream.sync().ok());
  // Both were in flight; who was the cause is not known.
  CHECK(gpu.device->check(y).has_value());
  CHECK(gpu.device->check(z).has_value());
  CHECK(names(stream.read(y).error(), "CUDA_ERROR_ILLEGAL_ADDRESS"));
  CHECK(names(other.read(z).error(), "in flight when its device was lost"));
  // What was there before is lost too, and nothing claims that it ever failed.
  CHECK_FALSE(gpu.device->check(old).has_value());
  CHECK(stream.read(old).error().kind() == ErrorKind::device_poisoned);
  gpu.control->clear_journal();
  CHECK(stream.launch(update, grid(Gpu::kCount), old, Gpu::kCount).failed());
  CHECK(gpu.device->buffer<float>("new", 1).error().kind() == ErrorKind::device_poisoned);
  CHECK(stream.record_event().error().kind() == ErrorKind::device_poisoned);
  CHECK_FALSE(gpu.device->stream().ok());
  CHECK(names(gpu.device->health().error(), "CUDA_ERROR_ILLEGAL_ADDRESS"));
  CHECK(gpu.journal().empty());  // the driver is left alone
  CHECK(heard.size() >= 2);
}

TEST_CASE("cuda: a function that runs while the device is lost keeps what it uses until it ends") {
  if (!in_own_process()) return;
  for (const bool replayed : {false, true}) {
    CAPTURE(replayed);
    const Gpu gpu;
    gpu.leaves_something = true;
    Stream stream = gpu.stream();
    Stream other = gpu.stream();
    const Buffer<float> x = gpu.filled(stream, "x", 1);
    const Buffer<float> z = gpu.buffer("z");
    std::atomic<bool> runs{false};
    std::atomic<bool> go_on{false};
    std::weak_ptr<int> uses;
    std::atomic<bool> had_it{false};
    std::optional<Instance> step;
    const auto issue = [&] {
      auto used = std::make_shared<int>(7);
      uses = used;
      return stream.host<InOut<float>>(
          {"long"},
          [&, used = std::move(used)](std::span<float> values) {
            runs = true;
            while (!go_on) std::this_thread::yield();
            had_it = !uses.expired() && *used == 7;
            values[0] = 7;
          },
          x);
    };
    if (replayed) {
      OpenWindow window = stream.record().value();
      issue();
      step.emplace(instance(window.seal().value()).value());
      CHECK(step->replay(stream).executed_cleanly());
    } else {
      CHECK(issue().executed_cleanly());
    }
    while (!runs) std::this_thread::yield();
    gpu.control->fault("cuStreamSynchronize", 1, 700, sim::Effect::refuse);
    CHECK(
        other.write(z, all(2)).failed());  // hears of the loss, and does not wait for the function
    CHECK_FALSE(gpu.device->health().ok());
    step.reset();
    CHECK_FALSE(uses.expired());
    go_on = true;
    CHECK(names(stream.read(x).error(), "in flight when its device was lost"));
    CHECK(had_it);
  }
}

TEST_CASE("E6: host work cannot call the device that runs it") {
  const Gpu gpu;
  Stream stream = gpu.stream();
  const Buffer<float> x = gpu.filled(stream, "x", 1);
  const Event event = stream.record_event().value();
  std::vector<std::optional<Error>> answers;
  const auto note = [&](const auto& result) {
    answers.push_back(result.ok() ? std::nullopt : std::optional(result.error()));
  };
  stream.host<InOut<float>>(
      {"calls back"},
      [&](std::span<float>) {
        note(gpu.device->buffer<float>("q", 4));
        note(gpu.device->stream());
        note(gpu.device->kernel<Map>("map"));
        note(gpu.device->pinned(64));
        note(event.reached());
        const auto entered = gpu.device->enter();
      },
      x);
  static_cast<void>(stream.sync());
  CHECK(answers.size() == 5);
  for (const std::optional<Error>& each : answers) {
    REQUIRE(each.has_value());
    CHECK(each->kind() == ErrorKind::wrong_state);
    CHECK(names(*each, "cannot be called inside work of the program's"));
  }
}

TEST_CASE("cuda: a kernel with other parameters, or that is in no image, is refused by name") {
  const Gpu gpu;
  using Wrong = Kernel<In<float>, Out<float>, std::uint64_t>;
  const Error wrong = gpu.device->kernel<Wrong>("map").error();
  CHECK(wrong.kind() == ErrorKind::kernel_signature);
  CHECK(names(wrong, "(8@0, 8@8, 8@16)"));
  CHECK(names(wrong, "(8@0, 8@8, 4@16)"));
  CHECK(gpu.device->kernel<Map>("map").ok());
  CHECK(gpu.device->kernel<Map>("map", 2).error().kind() == ErrorKind::kernel_missing);
  CHECK(gpu.device->kernel<Map>("vad.map").error().kind() == ErrorKind::kernel_missing);
  CHECK(names(gpu.device->kernel<Map>("vad.map").error(), "vad_map"));
  CHECK_FALSE(gpu.device->add_image(test_image()).ok());  // the same kernels in the same version
  CHECK(gpu.device->add_image(test_image(), 2).ok());
  CHECK(gpu.device->kernel<Map>("map", 2).ok());
  const std::array<std::byte, 4> junk{};
  CHECK_FALSE(gpu.device->add_image(SharedBytes::copy_of(junk)).ok());
}

TEST_CASE("B95: a change that the driver refuses makes the graph anew, once") {
  const Gpu gpu;
  Stream stream = gpu.stream();
  const Buffer<float> x = gpu.filled(stream, "x", 1, Role::input);
  const Buffer<float> y = gpu.buffer("y", Role::output);
  const auto map = gpu.kernel<Map>("map");
  OpenWindow window = stream.record().value();
  stream.launch(map, grid(Gpu::kCount), x, y, Gpu::kCount);
  const Recording recording = window.seal().value();
  Instance step = Plan::prepare(*gpu.device, recording.graph()).value().instance().value();
  REQUIRE(step.bind("x", x).ok());
  CHECK(step.replay(stream).executed_cleanly());
  const Buffer<float> other = gpu.filled(stream, "other", 5);
  gpu.control->fault("cuGraphExecKernelNodeSetParams_v2", 1, 910, sim::Effect::refuse);
  gpu.control->clear_journal();
  CHECK(step.bind("x", other).ok());
  CHECK(gpu.control->calls("cuGraphExecKernelNodeSetParams_v2") == 1);
  CHECK(gpu.control->calls("cuGraphInstantiateWithParams") == 1);
  CHECK(step.replay(stream).executed_cleanly());
  CHECK(stream.read(step.view<float>("y").value()).value() == all(6));
  // Refused again and again: an error each time, and the next one that is not refused is right.
  gpu.control->fault("cuGraphExecKernelNodeSetParams_v2", 1, 910, sim::Effect::refuse);
  gpu.control->fault("cuGraphInstantiateWithParams", 1, 2, sim::Effect::refuse);
  CHECK(step.bind("x", x).error().kind() == ErrorKind::out_of_memory);
  CHECK(step.replay(stream).executed_cleanly());
  CHECK(stream.read(step.view<float>("y").value()).value() == all(6));
}

TEST_CASE("P6: an instance, a stream and buffers that go while work is in flight disturb nothing") {
  const Gpu gpu;
  std::optional<Stream> stream(gpu.stream());
  std::optional<Buffer<float>> x(gpu.filled(*stream, "x", 1, Role::input));
  const Buffer<float> y = gpu.buffer("y");
  {
    const auto map = gpu.kernel<Map>("map");
    OpenWindow window = stream->record().value();
    stream->launch(map, grid(Gpu::kCount), *x, y, Gpu::kCount);
    const Recording recording = window.seal().value();
    Instance step = instance(recording).value();
    gpu.control->hold();
    CHECK(step.replay(*stream).executed_cleanly());
    x.reset();
  }
  CHECK(gpu.control->live("exec") == 1);  // kept until its replay has been seen to end
  Stream reader = gpu.stream();
  gpu.control->release();
  CHECK(reader.read(y).value() == all(2));
  CHECK(gpu.control->live("exec") == 0);
  stream.reset();
}

TEST_CASE("M4: host work that lets go of a stream does not wait for it, and it goes later") {
  for (const bool own : {true, false}) {
    CAPTURE(own);
    const Gpu gpu;
    Stream other = gpu.stream();
    const std::size_t streams = gpu.control->live("stream");
    const Buffer<float> x = gpu.filled(other, "x", 1);
    const Buffer<float> y = gpu.filled(other, "y", 1);
    const auto goes = std::make_shared<std::optional<Stream>>(gpu.stream());
    std::optional<Stream> stays(gpu.stream());
    Stream& on = own ? **goes : *stays;
    gpu.control->hold();
    CHECK((*goes)->fill(x, 3.0F).executed_cleanly());
    CHECK(on.host<Out<float>>(
                "last",
                [goes](std::span<float> all) {
                  goes->reset();
                  std::fill(all.begin(), all.end(), 2.0F);
                },
                y)
              .executed_cleanly());
    gpu.control->release();
    CHECK(other.read(y).value() == all(2));
    CHECK(other.read(x).value() == all(3));
    stays.reset();
    CHECK(gpu.device->sync().ok());
    CHECK(gpu.control->live("stream") == streams);
  }
}

}  // namespace refrain::test
