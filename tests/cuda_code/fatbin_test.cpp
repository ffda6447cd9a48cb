// Fatbins: their objects, and which of them a device takes.
#include <doctest/doctest.h>

#include "handmade_image.hpp"

using namespace refrain;
using namespace refrain::test;
using cuda::ObjectKind;

namespace {

constexpr std::uint64_t kPlain = 0x11;
constexpr std::uint64_t kZstd = 0x8011;
constexpr std::uint64_t kSuffixA = 0x100011;
constexpr std::uint64_t kSuffixF = 0x200011;

std::string cubin_for(unsigned sm, const std::string& kernel = "k", unsigned bytes = 8) {
  HandmadeCubin cubin;
  cubin.flags = sm << 8U;
  cubin.kernel(kernel, parameter(0, 0, bytes) + parameter_bank(bytes));
  return cubin.image();
}

std::string ptx_for(unsigned sm, const std::string& suffix, const std::string& bytes) {
  return ".version 8.4 .target sm_" + std::to_string(sm) + suffix + " .entry k(.param .b8 x[" +
         bytes + "]){}";
}

HandmadeEntry cubin_entry(unsigned sm, std::uint64_t flags, unsigned bytes) {
  return {2, sm, flags, cubin_for(sm, "k", bytes), 64};
}

HandmadeEntry ptx_entry(unsigned sm, std::uint64_t flags, const std::string& bytes) {
  const std::string suffix = flags == kSuffixA ? "a" : flags == kSuffixF ? "f" : "";
  return {1, sm, flags, ptx_for(sm, suffix, bytes), 80};
}

void check_refused(const std::string& image, ErrorKind kind, const std::string& text) {
  const auto parsed = parse(image);
  REQUIRE_FALSE(parsed.ok());
  CHECK(parsed.error().text() == text);
  CHECK(name_of(parsed.error().kind()) == name_of(kind));
}

/// The size of k's parameter as a device finds it; 0 where it finds no k.
std::uint32_t found_by(const std::string& image, std::uint32_t sm) {
  const auto parsed = parse(image);
  REQUIRE(parsed.ok());
  const auto kernel = find_kernel(*parsed, "k", sm);
  if (kernel.ok()) return (*kernel)->parameter_bytes;
  CHECK(kernel.error().kind() == ErrorKind::kernel_missing);
  return 0;
}

}  // namespace

TEST_CASE("fatbin: every object is listed, and the kernels of those that are plain") {
  const std::string cubin = cubin_for(75);
  const std::string image = fatbin({{2, 75, kPlain, cubin, 64},
                                    {1, 90, kPlain, std::string(kSaxpyPtx) + '\0', 80},
                                    {1, 100, kZstd | 0x200000, "compressed", 80},
                                    {8, 90, kZstd, "for a linker", 120}});
  const auto parsed = parse(image);
  REQUIRE(parsed.ok());
  CHECK(parsed->kind == cuda::ImageKind::fatbin);
  const auto& objects = parsed->objects;
  REQUIRE(objects.size() == 4);
  CHECK(objects[0].kind == ObjectKind::cubin);
  CHECK(objects[0].architecture == cuda::Architecture{75, 0});
  CHECK(image.substr(objects[0].offset, objects[0].size) == cubin);
  CHECK(text(objects[0].kernels.at(0)) == "k(8@0)");
  CHECK(objects[1].kind == ObjectKind::ptx);
  CHECK_FALSE(objects[1].compressed);
  CHECK(text(objects[1].kernels.at(0)) == "saxpy(8@0, 8@8, 4@16)");
  CHECK(objects[2].kind == ObjectKind::ptx);
  CHECK(objects[2].architecture == cuda::Architecture{100, 'f'});
  CHECK(objects[2].compressed);
  CHECK(objects[2].kernels.empty());
  CHECK(image.substr(objects[2].offset, objects[2].size) == "compressed");
  CHECK(objects[3].kind == ObjectKind::other);
}

TEST_CASE("fatbin: zeros may stand behind it, and nothing else") {
  const std::string image = fatbin({cubin_entry(75, kPlain, 8)});
  CHECK(parse(image + std::string(7, '\0')).ok());
  check_refused(image + '\1', ErrorKind::file_damaged,
                "The fatbin ends at byte " + std::to_string(image.size()) +
                    ", and something else stands behind it.");
  const auto none = parse(fatbin({}));
  REQUIRE(none.ok());
  CHECK(none->objects.empty());
}

TEST_CASE("fatbin: headers that cannot be are refused, saying of which object") {
  const std::string sound = fatbin({cubin_entry(75, kPlain, 8), cubin_entry(80, kPlain, 8)});
  const std::size_t second = 16 + 64 + cubin_for(75).size();
  const std::string here =
      "\n  - While reading object 1 of the fatbin, at byte " + std::to_string(second) + ".";
  std::string image = sound;
  put(image, second + 4, 63, 4);
  check_refused(image, ErrorKind::file_damaged,
                "It says that its header has 63 bytes, and 64 are the least." + here);
  image = sound;
  put(image, second + 8, ~std::uint64_t{0}, 8);
  check_refused(image, ErrorKind::file_damaged,
                "It has a header of 64 bytes and 18446744073709551615 of code, and the fatbin ends "
                "after " +
                    std::to_string(sound.size() - second) + "." + here);
  image = sound;
  put(image, second + 2, 0x0201, 2);
  check_refused(image, ErrorKind::file_version,
                "It has version 513, and this version of refrain reads 257." + here);
  image = sound;
  put(image, second + 28, 86, 4);
  check_refused(image, ErrorKind::file_damaged,
                "The fatbin says that it is for sm_86, and it says itself sm_80." + here);
  image = sound;
  put(image, second + 64, 0, 4);
  check_refused(image, ErrorKind::file_damaged, "The cubin is no ELF file." + here);

  image = sound;
  put(image, 8, ~std::uint64_t{0}, 8);
  check_refused(image, ErrorKind::file_damaged,
                "The fatbin says that it has a header of 16 bytes and 18446744073709551615 behind "
                "it, and it has " +
                    std::to_string(sound.size()) + " in all.");
  image = sound;
  put(image, 4, 2, 2);
  check_refused(image, ErrorKind::file_version,
                "The fatbin has version 2, and this version of refrain reads 1.");
}

TEST_CASE("fatbin: the limits are for all its objects together") {
  const std::string image = fatbin({cubin_entry(75, kPlain, 8), cubin_entry(80, kPlain, 8)});
  cuda::CodeImageLimits limits;
  limits.objects = 1;
  auto parsed = parse(image, limits);
  REQUIRE_FALSE(parsed.ok());
  CHECK(parsed.error().kind() == ErrorKind::file_limit);
  CHECK(parsed.error().message() == "The fatbin has more objects than the limit of 1.");
  limits = {};
  limits.kernels = 1;
  parsed = parse(image, limits);
  REQUIRE_FALSE(parsed.ok());
  CHECK(parsed.error().kind() == ErrorKind::file_limit);
  CHECK(parsed.error().message() == "The image has more kernels than the limit of 1.");
}

TEST_CASE("find_kernel: just the device's cubin, else an older minor one, else PTX") {
  const std::string image =
      fatbin({ptx_entry(75, kPlain, "1"), ptx_entry(90, kPlain, "2"), cubin_entry(80, kPlain, 3),
              cubin_entry(86, kPlain, 4), cubin_entry(100, kPlain, 5)});
  CHECK(found_by(image, 70) == 0);
  CHECK(found_by(image, 75) == 1);
  CHECK(found_by(image, 80) == 3);
  CHECK(found_by(image, 86) == 4);
  CHECK(found_by(image, 89) == 4);
  CHECK(found_by(image, 90) == 2);
  CHECK(found_by(image, 100) == 5);
  CHECK(found_by(image, 103) == 5);
  CHECK(found_by(image, 120) == 2);
}

TEST_CASE("find_kernel: code with a suffix is taken only where it runs") {
  CHECK(found_by(fatbin({cubin_entry(90, kSuffixA, 1)}), 90) == 1);
  const std::string specific = fatbin({cubin_entry(100, kSuffixA, 1)});
  CHECK(found_by(specific, 100) == 1);
  CHECK(found_by(specific, 103) == 0);
  const std::string family = fatbin({cubin_entry(100, kSuffixF, 1), ptx_entry(90, kPlain, "2")});
  CHECK(found_by(family, 103) == 1);
  CHECK(found_by(family, 120) == 2);
  CHECK(found_by(fatbin({ptx_entry(90, kSuffixA, "1")}), 100) == 0);
  CHECK(found_by(fatbin({ptx_entry(100, kSuffixF, "1")}), 103) == 1);
  CHECK(found_by(fatbin({ptx_entry(100, kSuffixF, "1")}), 120) == 0);
}

TEST_CASE("find_kernel: a compressed object that the device would take is not passed over") {
  const std::string ptx =
      std::string(".version 8.0\n.target sm_80\n.entry k(.param .u64 p) {}") + '\0';
  const auto parsed = parse(fatbin({{2, 90, kZstd, "compressed", 80}, {1, 80, kPlain, ptx, 80}}));
  REQUIRE_MESSAGE(parsed.ok(), parsed.error().text());
  const auto hidden = find_kernel(*parsed, "k", 90);
  REQUIRE_FALSE(hidden.ok());
  CHECK(hidden.error().kind() == ErrorKind::kernel_missing);
  CHECK(hidden.error().text() ==
        "What kernel \"k\" is on sm_90 cannot be said, because the cubin for sm_90 is compressed, "
        "and "
        "so not read; nvcc leaves it plain with --no-compress.");
  CHECK(find_kernel(*parsed, "k", 80).ok());   // a device that takes the PTX
  CHECK(find_kernel(*parsed, "k", 100).ok());  // and one that cannot run that cubin
}

TEST_CASE("find_kernel: an error says what there is, and how to make it readable") {
  const auto missing = [](const std::string& image, std::string_view name, std::uint32_t sm) {
    const auto parsed = parse(image);
    REQUIRE(parsed.ok());
    const auto kernel = find_kernel(*parsed, name, sm);
    REQUIRE_FALSE(kernel.ok());
    CHECK(kernel.error().kind() == ErrorKind::kernel_missing);
    return kernel.error().message();
  };
  const std::string plain = fatbin({cubin_entry(80, kPlain, 8)});
  CHECK(missing(plain, "k", 90) ==
        "The image has no kernel \"k\" that runs on sm_90. It has it as cubin for sm_80.");
  CHECK(missing(plain, "m", 80) ==
        "The image has no kernel \"m\" that runs on sm_80. Its kernels are \"k\".");
  CHECK(missing(fatbin({{1, 75, kZstd, "?", 80}}), "k", 80) ==
        "The image has no kernel \"k\" that runs on sm_80. Compressed, and so not read: PTX for "
        "sm_75; nvcc leaves them plain with --no-compress.");
  std::string many = ".version 8.4 .target sm_75 ";
  for (int at = 0; at < 10; ++at) many += ".entry k" + std::to_string(at) + "(){}";
  CHECK(missing(many, "m", 80) ==
        "The image has no kernel \"m\" that runs on sm_80. Its kernels are \"k0\", \"k1\", \"k2\", "
        "\"k3\", \"k4\", \"k5\", \"k6\", \"k7\" and 2 more.");
}

TEST_CASE("fatbin: every truncation is refused") {
  const std::string sound = fatbin(
      {{2, 90, kPlain, saxpy_cubin().image(), 64}, {1, 90, kPlain, std::string(kSaxpyPtx), 80}});
  REQUIRE(parse(sound).ok());
  for (std::size_t size = 0; size < sound.size(); ++size) {
    CAPTURE(size);
    const auto parsed = parse(sound.substr(0, size));
    REQUIRE_FALSE(parsed.ok());
  }
}

TEST_CASE(
    "fatbin: whatever one byte is changed to, the answer is an error or an image that can be") {
  const std::string sound = fatbin(
      {{2, 90, kPlain, saxpy_cubin().image(), 64}, {1, 90, kPlain, std::string(kSaxpyPtx), 80}});
  std::size_t refused = 0;
  for (std::size_t at = 0; at < sound.size(); ++at) {
    for (unsigned bit = 0; bit < 8; ++bit) {
      std::string image = sound;
      put(image, at, get(sound, at, 1) ^ (1U << bit), 1);
      const auto parsed = parse(image);
      CAPTURE(at);
      CAPTURE(bit);
      if (parsed.ok()) REQUIRE(is_sound(*parsed, image.size()));
      if (!parsed.ok()) ++refused;
    }
  }
  CHECK(refused > sound.size());
}
