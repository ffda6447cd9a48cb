// What nvcc makes, read: the layout in a cubin is that of the PTX that it was made from.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "refrain/cuda/code_image.hpp"

using namespace refrain;
using namespace refrain::cuda;

namespace {

CodeImage image(const std::string& name) {
  std::ifstream file(std::filesystem::path(REFRAIN_NVCC_IMAGES) / name, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), {});
  return parse_code_image(std::as_bytes(std::span(bytes))).value();
}

const KernelImage& kernel(const CodeImage& image, std::string_view name, std::uint32_t sm) {
  return *find_kernel(image, name, sm).value();
}

constexpr std::uint32_t kArchitectures[] = {REFRAIN_NVCC_ARCHITECTURES};

}  // namespace

TEST_CASE("nvcc: the layout in every cubin is that of the PTX") {
  for (const std::uint32_t sm : kArchitectures) {
    CAPTURE(sm);
    const CodeImage cubin = image("layouts." + std::to_string(sm) + ".cubin");
    const CodeImage ptx = image("layouts." + std::to_string(sm) + ".ptx");
    REQUIRE(cubin.objects.at(0).architecture == Architecture{sm, 0});
    REQUIRE(ptx.objects.at(0).architecture == Architecture{sm, 0});
    CHECK(cubin.objects[0].kernels.size() == ptx.objects[0].kernels.size());
    for (const std::string_view name : {"varied", "large", "none", "bounded", "shared_array"}) {
      CAPTURE(name);
      CHECK(text(kernel(cubin, name, sm)) == text(kernel(ptx, name, sm)));
      CHECK(kernel(cubin, name, sm).max_threads == kernel(ptx, name, sm).max_threads);
      CHECK(kernel(cubin, name, sm).registers.has_value());
    }
    CHECK(text(kernel(cubin, "varied", sm)) ==
          "varied(1@0, 8@8, 2@16, 72@24, 8@96, 3@104, 16@112)");
    CHECK(text(kernel(cubin, "large", sm)) == "large(5000@0, 8@5000, 1@5008)");
    CHECK(kernel(cubin, "bounded", sm).max_threads == 256);
    CHECK(kernel(ptx, "bounded", sm).min_blocks_per_multiprocessor == 2);
    CHECK(kernel(cubin, "shared_array", sm).static_shared_bytes == 1332);
    CHECK(kernel(cubin, "none", sm).static_shared_bytes == 0);
    if (sm >= 90) {
      CHECK(kernel(cubin, "clustered", sm).cluster == KernelImage::Extent{2, 1, 1});
      CHECK(kernel(ptx, "clustered", sm).cluster == KernelImage::Extent{2, 1, 1});
    }
  }
}

TEST_CASE(
    "nvcc: a parameter aligned to more than 16 has its PTX's size and order, not its offset") {
  for (const std::uint32_t sm : kArchitectures) {
    CAPTURE(sm);
    const CodeImage cubin = image("layouts." + std::to_string(sm) + ".cubin");
    const CodeImage ptx = image("layouts." + std::to_string(sm) + ".ptx");
    CHECK(text(kernel(ptx, "aligned", sm)) == "aligned(128@0, 8@128)");
    const std::string in_cubin = text(kernel(cubin, "aligned", sm));
    CHECK(in_cubin == (sm < 90    ? "aligned(128@32, 8@160)"
                       : sm < 100 ? "aligned(128@48, 8@176)"
                                  : "aligned(128@0, 8@128)"));
  }
}

TEST_CASE("nvcc: a fatbin as it comes has plain cubins and compressed PTX") {
  const CodeImage fatbin = image("layouts.fatbin");
  REQUIRE(fatbin.objects.size() == 2);
  CHECK(fatbin.objects[0].kind == ObjectKind::cubin);
  CHECK_FALSE(fatbin.objects[0].compressed);
  CHECK(fatbin.objects[1].kind == ObjectKind::ptx);
  CHECK(fatbin.objects[1].compressed);
  CHECK(text(kernel(fatbin, "bounded", 80)) == "bounded(8@0)");
  const auto newer = find_kernel(fatbin, "bounded", 90);
  REQUIRE_FALSE(newer.ok());
  CHECK(newer.error().message().find("--no-compress") != std::string::npos);
}
