// A step that is not kernels alone: weights that never change, a scope around several launches, and
// functions of the program's own in the graph. Recorded under a name and replayed.
#include <cstdio>
#include <random>
#include <span>
#include <vector>

#include "refrain/refrain.hpp"

namespace {

using Scale = refrain::Kernel<refrain::In<float>, refrain::In<float>, refrain::Out<float>>;
using AddTo = refrain::Kernel<refrain::In<float>, refrain::InOut<float>>;

void register_kernels(refrain::host::KernelRegistry& kernels) {
  kernels.add<Scale>(
      "scale", [](std::span<const float> x, std::span<const float> by, std::span<float> scaled) {
        for (std::size_t i = 0; i < scaled.size(); ++i) scaled[i] = x[i] * by[i % by.size()];
      });
  kernels.add<AddTo>("add_to", [](std::span<const float> x, std::span<float> sum) {
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += x[i];
  });
}

}  // namespace

int main() {
  refrain::host::Device device;
  device.register_kernels(register_kernels).value();
  auto stream = device.stream().value();
  auto scale = device.kernel<Scale>("scale").value();
  auto add_to = device.kernel<AddTo>("add_to").value();

  // A constant: its bytes are part of the graph, and writing it is refused. (From a mapped file
  // `SharedBytes` takes them without a copy.)
  const std::vector<float> weights{2.0F};
  auto by =
      device
          .constant<float>(
              "by", refrain::SharedBytes::copy_of(std::as_bytes(std::span<const float>(weights))))
          .value();
  auto x = device.buffer<float>("x", 8, refrain::Role::input).value();
  auto scaled = device.buffer<float>("scaled", 8, refrain::Role::scratch).value();
  auto sum = device.buffer<float>("sum", 8, refrain::Role::state).value();
  auto chosen = device.buffer<float>("chosen", 1, refrain::Role::output).value();

  std::minstd_rand generator;
  int calls = 0;
  const auto step = [&] {
    // Two launches as one: should either fail, all of `scaled` carries that, and errors say
    // "heads".
    stream.scope("heads", {scaled}, [&](refrain::Stream& inner) -> refrain::Result<void> {
      REFRAIN_TRY(
          inner.launch(scale, refrain::grid(4), x.view(0, 4), by, scaled.view(0, 4)).into_result());
      return inner.launch(scale, refrain::grid(4), x.view(4, 4), by, scaled.view(4, 4))
          .into_result();
    });
    stream.launch(add_to, refrain::grid(8), scaled, sum);

    // A function in the graph. It is opaque, so it keeps its place among other opaque work of its
    // stream; one that says what it uses keeps its place only among others that use it, on
    // whatever stream, and one that says `none` is free to move.
    stream.host<refrain::In<float>, refrain::Out<float>>(
        {"choose", refrain::Effects::uses("generator")},
        [&generator](std::span<const float> from, std::span<float> to) {
          to[0] = from[generator() % from.size()];
        },
        sum, chosen);
    stream.host("count", [&calls] { ++calls; });
  };

  auto window = stream.record().value();
  step();
  auto recording = window.seal({.name = "accumulate and choose"}).value();
  auto instance = refrain::instance(recording).value();
  for (int i = 0; i < 3; ++i) {
    stream.write(x, std::vector(8, 1.0F));
    instance.replay(stream).into_result().value();
  }
  const float value = stream.read(chosen).value()[0];
  std::printf("chosen = %.1f, after %d calls\n", static_cast<double>(value), calls);
  return value == 6.0F && calls == 3 ? 0 : 1;
}
