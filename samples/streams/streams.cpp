// Two streams in one window: warmed up, recorded, and replayed on the memory that they were
// recorded over, without a file. What a stream must do to join a window, and to leave it again.
#include <cstdio>
#include <span>
#include <vector>

#include "refrain/refrain.hpp"

namespace {

using AddTo = refrain::Kernel<refrain::In<float>, refrain::InOut<float>>;

void register_kernels(refrain::host::KernelRegistry& kernels) {
  kernels.add<AddTo>("add_to", [](std::span<const float> x, std::span<float> sum) {
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += x[i];
  });
}

}  // namespace

int main() {
  refrain::host::Device device;
  device.register_kernels(register_kernels).value();
  auto main_stream = device.stream().value();
  auto side_stream = device.stream().value();
  auto add_to = device.kernel<AddTo>("add_to").value();

  auto x = device.buffer<float>("x", 256, refrain::Role::input).value();
  auto left = device.buffer<float>("left", 256, refrain::Role::state).value();
  auto right = device.buffer<float>("right", 256, refrain::Role::state).value();
  main_stream.write(x, std::vector(256, 1.0F));

  // The step, the same for the warm-up and the recording. A stream joins a window by waiting on an
  // event of a stream that is in it, and leaves when such a stream waits on an event of its own.
  const auto step = [&] {
    side_stream.wait(main_stream.record_event().value()).value();  // fork
    side_stream.launch(add_to, refrain::grid(256), x, right);
    main_stream.launch(add_to, refrain::grid(256), x, left);
    main_stream.wait(side_stream.record_event().value()).value();  // join
  };

  // Runs the step for real until nothing happens for the first time, and puts its states back.
  auto window = main_stream.prepare(step).value();
  window.begin().value();
  step();  // recorded, not run
  auto recording = window.seal().value();

  auto instance = refrain::instance(recording).value();
  for (int i = 0; i < 3; ++i) instance.replay(main_stream).into_result().value();
  const float sum = main_stream.read(left).value()[0] + main_stream.read(right).value()[0];
  std::printf("left + right = %.1f after three replays\n", static_cast<double>(sum));
  return sum == 6.0F ? 0 : 1;
}
