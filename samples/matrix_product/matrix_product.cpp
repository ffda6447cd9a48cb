// A call into another library as one node of a graph: a matrix product that refrain does not launch
// itself. On the host device the body computes it; with --cublas it is cuBLAS on the first GPU.
//
//   matrix_product [--cublas [LIBRARY]]
#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cublas.hpp"
#include "refrain/refrain.hpp"
#ifdef HAS_CUDA
#include "refrain/cuda/device.hpp"
#endif

namespace matrix_product {
namespace {

constexpr int kRows = 64;
constexpr std::size_t kValues = std::size_t{kRows} * kRows;
/// c = a b, row by row.
void multiply(const float* a, const float* b, float* c) {
  for (int row = 0; row < kRows; ++row) {
    for (int column = 0; column < kRows; ++column) {
      float sum = 0;
      for (int i = 0; i < kRows; ++i) sum += a[row * kRows + i] * b[i * kRows + column];
      c[row * kRows + column] = sum;
    }
  }
}

using Product = std::function<refrain::Result<void>(
    const refrain::NativeCall&, refrain::DeviceSpan<const float>, refrain::DeviceSpan<const float>,
    refrain::DeviceSpan<float>)>;

/// Records y = w x and replays it on two inputs.
refrain::Result<void> run(const refrain::Device& device, std::uint64_t workspace,
                          const Product& product) {
  auto stream = device.stream();
  if (!stream.ok()) return stream.error();
  const auto buffer = [&](const char* name, refrain::Role role) {
    return device.buffer<float>(name, kValues, role);
  };
  const auto w = buffer("w", refrain::Role::input);
  const auto x = buffer("x", refrain::Role::input);
  const auto y = buffer("y", refrain::Role::output);
  for (const auto* const each : {&w, &x, &y}) {
    if (!each->ok()) return each->error();
  }
  auto window = stream->record();
  if (!window.ok()) return window.error();
  stream->native<refrain::In<float>, refrain::In<float>, refrain::Out<float>>(
      {"product", workspace, refrain::Effects::none()}, product, *w, *x, *y);
  const auto recording = window->seal({.name = "product"});
  if (!recording.ok()) return recording.error();
  auto step = instance(*recording);
  if (!step.ok()) return step.error();

  std::vector<float> weights(kValues);
  for (std::size_t i = 0; i < kValues; ++i) weights[i] = static_cast<float>(i % 7) / 8;
  stream->write(*w, weights);
  for (const int add : {0, 1}) {
    std::vector<float> values(kValues);
    for (std::size_t i = 0; i < kValues; ++i) {
      values[i] = static_cast<float>((i + static_cast<std::size_t>(add)) % 5) / 4;
    }
    stream->write(*x, values);
    REFRAIN_TRY(step->replay(*stream).into_result());
    const auto got = stream->read(*y);
    if (!got.ok()) return got.error();
    std::vector<float> expected(kValues);
    multiply(weights.data(), values.data(), expected.data());
    float worst = 0;
    for (std::size_t i = 0; i < kValues; ++i) {
      worst = std::fmax(worst, std::fabs((*got)[i] - expected[i]));
    }
    std::printf("product %d: largest difference %g\n", add + 1, static_cast<double>(worst));
    if (!(worst < 1e-3F)) {
      return refrain::Error(refrain::ErrorKind::kernel_failed, "The products differ.");
    }
  }
  return {};
}

refrain::Result<void> on_host() {
  const refrain::host::Device device;
  return run(device, 0,
             [](const refrain::NativeCall&, refrain::DeviceSpan<const float> a,
                refrain::DeviceSpan<const float> b,
                refrain::DeviceSpan<float> c) -> refrain::Result<void> {
               multiply(a.address, b.address, c.address);
               return {};
             });
}

#ifdef HAS_CUDA
/// What NVIDIA advises for cuBLAS on a GPU of compute capability 9.0.
constexpr std::uint64_t kWorkspace = std::uint64_t{32} << 20U;

refrain::Result<void> on_cuda(const std::string& library) {
  const auto device = refrain::cuda::Device::open();
  if (!device.ok()) return device.error();
  const auto entered = device->enter();  // cuBLAS works in the context that is current
  const auto cublas = Cublas::open(library);
  if (!cublas.ok()) return cublas.error();
  return run(*device, kWorkspace,
             [cublas = *cublas](const refrain::NativeCall& call, refrain::DeviceSpan<const float> a,
                                refrain::DeviceSpan<const float> b, refrain::DeviceSpan<float> c) {
               return cublas->multiply(call.stream, call.workspace.address, call.workspace.size,
                                       kRows, a.address, b.address, c.address);
             });
}
#else
refrain::Result<void> on_cuda(const std::string&) {
  return refrain::Error(refrain::ErrorKind::driver_missing,
                        "This program was built without CUDA, so it has the host device only.");
}
#endif

}  // namespace
}  // namespace matrix_product

int main(int argc, char** argv) {
  std::optional<std::string> library;
  if (argc > 1 && std::strcmp(argv[1], "--cublas") == 0 && argc < 4) {
    library = argc == 3 ? argv[2] : "";
  } else if (argc > 1) {
    std::fprintf(stderr, "usage: matrix_product [--cublas [LIBRARY]]\n");
    return 2;
  }
  const refrain::Result<void> ran =
      library ? matrix_product::on_cuda(*library) : matrix_product::on_host();
  if (ran.ok()) return 0;
  std::fprintf(stderr, "%s: %s\n", std::string(name_of(ran.error().kind())).c_str(),
               ran.error().text().c_str());
  return 1;
}
