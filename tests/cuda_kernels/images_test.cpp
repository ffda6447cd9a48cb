// The CUDA kernels of the samples as they are embedded: the image has code for every architecture
// that was asked for, and in each of them every kernel has exactly the parameters that a launch of
// it packs. What the kernels compute is tested in tests/samples, on the host.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "refrain/cuda/code_image.hpp"
#include "refrain/refrain.hpp"
#include "saxpy_kernels_image.hpp"
#include "vad/kernels.hpp"
#include "vad_kernels_image.hpp"

namespace {

namespace cuda = refrain::cuda;
using Signatures = std::vector<refrain::KernelSignature>;

// As in quickstart.cpp, which is one program and has no header.
using Saxpy = refrain::Kernel<refrain::In<float>, refrain::InOut<float>, float>;

/// What a kernel of a registered name is called in an image.
std::string symbol_of(std::string name) {
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
}

Signatures vad_signatures() {
  refrain::host::Device device;
  device.register_kernels(vad::register_kernels).value();
  const vad::Kernels k = vad::load_kernels(device);
  Signatures all;
  for (const refrain::LoadedKernel& loaded :
       {k.join_context.loaded(), k.reflect_end.loaded(), k.keep_tail.loaded(), k.stft.loaded(),
        k.magnitude.loaded(), k.conv1d.loaded(), k.relu.loaded(), k.matvec.loaded(),
        k.lstm_cell.loaded(), k.output_conv.loaded(), k.sigmoid.loaded()}) {
    all.push_back(*loaded.signature);
  }
  return all;
}

/// In one line, in an order that does not depend on how they came.
std::string sorted(std::vector<std::string> words) {
  std::sort(words.begin(), words.end());
  std::string line;
  for (const std::string& word : words) line += word + " ";
  return line;
}

/// As "cubin:sm_80".
std::string objects_of(const cuda::CodeImage& image) {
  std::vector<std::string> all;
  for (const cuda::CodeObject& object : image.objects) {
    const char* kind = object.kind == cuda::ObjectKind::cubin ? "cubin:" : "ptx:";
    all.push_back(kind + text(object.architecture));
  }
  return sorted(all);
}

/// What REFRAIN_CUDA_ARCHITECTURES asks for, in the same way.
std::string wanted_objects() {
  std::istringstream list(REFRAIN_TEST_ARCHITECTURES);
  std::vector<std::string> all;
  for (std::string architecture; list >> architecture;) {
    if (all.empty()) all.push_back("ptx:sm_" + architecture);
    all.push_back("cubin:sm_" + architecture);
  }
  return sorted(all);
}

void check_kernel(const cuda::KernelImage& found, const refrain::KernelSignature& wanted) {
  INFO(text(found) << " for " << text(wanted));
  std::vector<cuda::KernelParameter> parameters;
  for (const refrain::Parameter& parameter : wanted.parameters) {
    parameters.push_back({parameter.offset, parameter.size});
  }
  CHECK(found.parameters == parameters);
  CHECK(found.parameter_bytes == wanted.block_bytes);
  // A launch by refrain::grid(n) fits, whatever n is.
  CHECK(found.max_threads == refrain::grid(1).threads.x);
}

void check_image(std::span<const std::byte> bytes, const Signatures& signatures) {
  const cuda::CodeImage image = cuda::parse_code_image(bytes).value();
  CHECK(image.kind == cuda::ImageKind::fatbin);
  CHECK(objects_of(image) == wanted_objects());
  for (const cuda::CodeObject& object : image.objects) {
    INFO(cuda::name_of(object.kind) << " " << text(object.architecture));
    CHECK_FALSE(object.compressed);
    CHECK(object.kernels.size() == signatures.size());
    for (const refrain::KernelSignature& wanted : signatures) {
      const auto found = std::find_if(
          object.kernels.begin(), object.kernels.end(),
          [&](const cuda::KernelImage& kernel) { return kernel.name == symbol_of(wanted.name); });
      REQUIRE_MESSAGE(found != object.kernels.end(), wanted.name);
      check_kernel(*found, wanted);
    }
  }
}

TEST_CASE("vad: every CUDA kernel takes the parameter block of its type on every architecture") {
  check_image(vad_kernels_image(), vad_signatures());
}

TEST_CASE("quickstart: the CUDA saxpy takes the parameter block of its type") {
  check_image(saxpy_kernels_image(), {Saxpy::signature("saxpy")});
}

}  // namespace
