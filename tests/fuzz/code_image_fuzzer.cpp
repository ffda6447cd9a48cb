// libFuzzer target for the reader of code images: whatever the bytes are, the answer is an image or
// an error. What an image claims is checked too, so that a wrong answer is found and not only a
// crash.
#include <cstdint>
#include <cstdlib>
#include <span>

#include "refrain/cuda/code_image.hpp"

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

void check(const refrain::cuda::KernelImage& kernel) {
  std::uint64_t end = 0;
  for (const refrain::cuda::KernelParameter& parameter : kernel.parameters) {
    require(parameter.size != 0 && parameter.offset >= end);
    end = std::uint64_t{parameter.offset} + parameter.size;
  }
  require(end == kernel.parameter_bytes && end <= 32'764);
  require(!kernel.name.empty() && !text(kernel).empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto image = refrain::cuda::parse_code_image(std::as_bytes(std::span(data, size)));
  if (!image.ok()) {
    require(!image.error().text().empty());
    return 0;
  }
  for (const refrain::cuda::CodeObject& object : image->objects) {
    require(object.offset <= size && object.size <= size - object.offset);
    for (const refrain::cuda::KernelImage& kernel : object.kernels) {
      check(kernel);
      const auto found = find_kernel(*image, kernel.name, object.architecture.number);
      require(found.ok() && (*found)->name == kernel.name);
    }
  }
  return 0;
}
