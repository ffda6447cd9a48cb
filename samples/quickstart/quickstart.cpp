// Records one saxpy, saves it, loads it as another process would, and replays it.
#include <cstdio>
#include <refrain/refrain.hpp>
#include <span>
#include <vector>

using Saxpy = refrain::Kernel<refrain::In<float>, refrain::InOut<float>, float>;

// The one entry point that registers kernels; a shared object can export it too.
void register_kernels(refrain::host::KernelRegistry& kernels) {
  kernels.add<Saxpy>("saxpy", [](std::span<const float> x, std::span<float> y, float a) {
    for (std::size_t i = 0; i < y.size(); ++i) y[i] += a * x[i];
  });
}

int main() {
  refrain::host::Device device;
  device.register_kernels(register_kernels).value();
  auto stream = device.stream().value();
  auto x = device.buffer<float>("x", 1024, refrain::Role::input).value();
  auto y = device.buffer<float>("y", 1024, refrain::Role::input).value();
  auto saxpy = device.kernel<Saxpy>("saxpy").value();

  auto window = stream.record().value();
  stream.launch(saxpy, refrain::grid(1024), x, y, 2.0F);  // recorded, not run
  auto recording = window.seal().value();                 // a recording, or why there is none
  refrain::save(recording.graph(), "step.refrain").value();

  // What follows needs only the file and the kernel: usually it is another process.
  auto plan = refrain::load(device, "step.refrain").value();
  auto step = plan.instance().value();
  step.bind("x", x).value();  // a pointer, no copy
  step.bind("y", y).value();
  stream.write(x, std::vector(1024, 1.0F));
  stream.write(y, std::vector(1024, 0.5F));
  for (int i = 0; i < 3; ++i) step.replay(stream).into_result().value();
  const auto result = stream.read(y);  // the values, or the failure with its root and its path
  std::printf("y[0] = %.1f after three replays\n", static_cast<double>(result.value()[0]));
  return result.value()[0] == 6.5F ? 0 : 1;
}
