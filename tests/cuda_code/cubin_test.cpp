// Cubins: what is read, and what is refused.
#include <doctest/doctest.h>

#include "handmade_image.hpp"

using namespace refrain;
using namespace refrain::test;
using cuda::Architecture;

namespace {

const cuda::KernelImage& only_kernel(const Result<cuda::CodeImage>& image) {
  if (!image.ok()) FAIL(image.error().text());
  REQUIRE(image->objects.size() == 1);
  REQUIRE(image->objects[0].kernels.size() == 1);
  return image->objects[0].kernels[0];
}

void check_refused(const std::string& image, ErrorKind kind, const std::string& message) {
  const auto parsed = parse(image);
  REQUIRE_FALSE(parsed.ok());
  CHECK(parsed.error().message() == message);
  CHECK(name_of(parsed.error().kind()) == name_of(kind));
}

}  // namespace

TEST_CASE("cubin: its kernel, parameters and attributes are read") {
  const auto image = parse(saxpy_cubin().image());
  const cuda::KernelImage& kernel = only_kernel(image);
  CHECK(image->kind == cuda::ImageKind::cubin);
  CHECK(image->objects[0].architecture == Architecture{90, 0});
  CHECK(text(kernel) == "saxpy(8@0, 8@8, 4@16)");
  CHECK(kernel.parameter_bytes == 20);
  CHECK(kernel.max_threads == 256);
  CHECK(kernel.registers == 24);
  CHECK(kernel.static_shared_bytes == 512);  // without the 1,024 that are set aside
  CHECK_FALSE(kernel.required_block.has_value());
  CHECK_FALSE(kernel.cluster.has_value());
}

TEST_CASE("cubin: clusters and required blocks are read") {
  HandmadeCubin cubin;
  cubin.kernel("k", extent(0x10, 32, 2, 1) + extent(0x3D, 2, 1, 1) +
                        record(0x3F, little_endian(8, 4)) + '\3' + "\x1B" +
                        std::string("\xFF\0", 2));
  const auto image = parse(cubin.image());
  const cuda::KernelImage& kernel = only_kernel(image);
  CHECK(kernel.required_block == cuda::KernelImage::Extent{32, 2, 1});
  CHECK(kernel.cluster == cuda::KernelImage::Extent{2, 1, 1});
  CHECK(kernel.max_cluster_blocks == 8);
  CHECK(kernel.static_shared_bytes == 0);
  CHECK_FALSE(kernel.max_threads.has_value());
  CHECK(text(kernel) == "k()");
}

TEST_CASE("cubin: in a large parameter's record only the low half is the size") {
  HandmadeCubin cubin;
  cubin.kernel("k", large_parameter(1, 5000, 8, 0x0500) + large_parameter(0, 0, 5000, 0) +
                        parameter_bank(5008));
  CHECK(text(only_kernel(parse(cubin.image()))) == "k(5000@0, 8@5000)");
}

TEST_CASE("cubin: both ELF ABIs tell the architecture, and its suffix where it can be told") {
  HandmadeCubin cubin = saxpy_cubin();
  const auto architecture = [&] { return parse(cubin.image()).value().objects[0].architecture; };
  cubin.abi = 7;
  cubin.flags = 0x5A055A;
  CHECK(architecture() == Architecture{90, 0});
  cubin.flags = 0x5A0D5A;
  CHECK(architecture() == Architecture{90, 'a'});
  cubin.abi = 8;
  cubin.flags = 0x600640A;
  CHECK(architecture() == Architecture{100, 'a'});
  cubin.flags = 0x6006402;
  CHECK(architecture() == Architecture{100, 0});
  cubin.sections.push_back({".note.nv.tkinfo", 7, "ptxas -arch sm_100f -m 64"});
  CHECK(architecture() == Architecture{100, 'f'});
  cubin.sections.back().bytes = "-arch sm_100";
  CHECK(architecture() == Architecture{100, 0});
  cubin.abi = 9;
  check_refused(cubin.image(), ErrorKind::file_version,
                "The cubin is of the ELF ABI 9, and this version of refrain reads 7 and 8.");
}

TEST_CASE("cubin: functions that are no kernels, and symbols without a section, are passed over") {
  HandmadeCubin cubin = saxpy_cubin();
  cubin.symbols.push_back({"device_function", 0x12, 0x00, 1});
  cubin.symbols.push_back({"elsewhere", 0x12, 0x10, 0});
  cubin.symbols.push_back({"data", 0x11, 0x10, 1});
  CHECK(only_kernel(parse(cubin.image())).name == "saxpy");
}

TEST_CASE("cubin: other ELF files are foreign") {
  std::string image = saxpy_cubin().image();
  put(image, 4, 1, 1);
  check_refused(image, ErrorKind::file_foreign,
                "This is an ELF file, but not one of 64 bits with the lowest byte first.");
  image = saxpy_cubin().image();
  put(image, 18, 62, 2);
  check_refused(image, ErrorKind::file_foreign,
                "This is an ELF file for machine 62, and CUDA is 190.");
}

TEST_CASE("cubin: sections past the end, huge counts and sizes that overflow are refused") {
  const std::string sound = saxpy_cubin().image();
  const std::size_t info = section_entry(sound, 4);
  const std::string size = std::to_string(sound.size());

  std::string image = sound;
  put(image, info + 24, ~std::uint64_t{0}, 8);
  check_refused(image, ErrorKind::file_damaged,
                "Section 4 has " + std::to_string(get(sound, info + 32, 8)) +
                    " bytes from byte 18446744073709551615 on, past the end of the cubin at " +
                    size + ".");
  image = sound;
  put(image, info + 32, ~std::uint64_t{0} - 16, 8);
  CHECK(parse(image).error().kind() == ErrorKind::file_damaged);
  image = sound;
  put(image, 60, 0xFEFF, 2);
  check_refused(image, ErrorKind::file_damaged,
                "The table of 65279 sections at byte " + std::to_string(section_entry(sound, 0)) +
                    " is past the end of the cubin at " + size + ".");
  image = sound;
  put(image, 60, 0xFF00, 2);
  check_refused(image, ErrorKind::file_limit, "The cubin has more than 65279 sections.");
  image = sound;
  put(image, 62, 4, 2);
  check_refused(image, ErrorKind::file_damaged,
                "The names of its sections are to be in section 4, which is no table of strings.");
}

TEST_CASE("cubin: sections of one name, and sections that share bytes, are refused") {
  HandmadeCubin cubin = saxpy_cubin();
  cubin.sections.push_back(cubin.sections.front());
  check_refused(cubin.image(), ErrorKind::file_damaged,
                "The cubin has two sections \".nv.info.saxpy\".");

  std::string image = saxpy_cubin().image();
  const std::uint64_t at = get(image, section_entry(image, 4) + 24, 8);
  put(image, section_entry(image, 5) + 24, at + 8, 8);
  check_refused(image, ErrorKind::file_damaged,
                "The sections \".nv.info.saxpy\" and \".nv.info\" share bytes of the cubin, from "
                "byte " +
                    std::to_string(at + 8) + " on.");
}

TEST_CASE("cubin: names that are longer than the file together are refused") {
  // Each of many names is the tail of one long one: a few bytes that ask for a lot of memory.
  HandmadeCubin cubin;
  const std::string tail(5'000, 'x');
  cubin.symbols.push_back({tail});
  std::string table;
  for (int at = 0; at < 200; ++at) cubin.symbols.push_back({""});
  std::string image = cubin.image();
  const std::uint64_t symbols = get(image, section_entry(image, 3) + 24, 8);
  for (std::size_t at = 1; at <= 201; ++at) put(image, symbols + 24 * at, 1 + at, 4);
  check_refused(image, ErrorKind::file_damaged,
                "The names of its symbols are longer than the file together.");
}

TEST_CASE("cubin: parameters that cannot be are refused, naming kernel and parameter") {
  const auto refused = [](const std::string& records, const std::string& message) {
    HandmadeCubin cubin;
    cubin.kernel("k", records);
    check_refused(cubin.image(), ErrorKind::file_damaged, message);
  };
  refused(parameter(0, 0, 8) + parameter(0, 8, 8) + parameter_bank(16),
          "Kernel \"k\" has 2 parameters, and none or two of them are number 1.");
  refused(parameter(1, 0, 8) + parameter_bank(8),
          "Kernel \"k\" has 1 parameters, and none or two of them are number 0.");
  refused(parameter(0, 0, 8) + parameter(1, 4, 8) + parameter_bank(12),
          "Kernel \"k\" has a parameter 1 at byte 4, and the one before it ends at byte 8.");
  refused(parameter(0, 0, 0) + parameter_bank(0), "Kernel \"k\" has a parameter 0 of no bytes.");
  refused(parameter(0, 0, 8) + parameter_bank(4),
          "Kernel \"k\" says that it has 4 bytes of parameters, and its last one ends at byte 8.");
  refused(parameter(0, 0, 8),
          "Kernel \"k\" says that it has 0 bytes of parameters, and its last one ends at byte 8.");
  refused(extent(0x05, 0x10000, 0x10000, 1),
          "The section \".nv.info.k\" allows more threads than can be, before its byte 16.");
  refused(record(0x17, "short"),
          "The section \".nv.info.k\" has a record 23 of 5 bytes in place "
          "of 12, before its byte 9.");
  refused(std::string("\5\0\0\0", 4),
          "The section \".nv.info.k\" has a record of the unknown "
          "format 5, before its byte 0.");
  refused(std::string("\4\x17\x0D\0", 4) + "1234",
          "The section \".nv.info.k\" has a record of 13 "
          "bytes past its end, before its byte 4.");
  refused("\4\x17\x0D", "The section \".nv.info.k\" ends within a record, before its byte 0.");
}

TEST_CASE("cubin: texture parameters are said not to be read") {
  HandmadeCubin cubin;
  cubin.kernel("k", parameter(0, 0xFFFF, 0) + parameter_bank(0));
  check_refused(
      cubin.image(), ErrorKind::file_version,
      "Kernel \"k\" has a texture, sampler or surface as a parameter, which is not read.");
}

TEST_CASE("cubin: a kernel without records, named twice or not nameable is refused") {
  HandmadeCubin cubin = saxpy_cubin();
  cubin.symbols.push_back({"saxpy"});
  check_refused(cubin.image(), ErrorKind::file_damaged,
                "Kernel \"saxpy\" is defined twice in one object.");
  cubin = saxpy_cubin();
  cubin.symbols.push_back({"other"});
  check_refused(cubin.image(), ErrorKind::file_damaged,
                "Kernel \"other\" has no section \".nv.info.other\".");
  cubin = HandmadeCubin();
  cubin.kernel("red\x1B[31m", "");
  check_refused(cubin.image(), ErrorKind::file_damaged,
                "A kernel has control characters in its name \"red\\x1b[31m\".");
}

TEST_CASE("cubin: more than a limit is refused as such") {
  const auto refused = [](auto change, const std::string& message) {
    cuda::CodeImageLimits limits;
    change(limits);
    const auto parsed = parse(saxpy_cubin().image(), limits);
    REQUIRE_FALSE(parsed.ok());
    CHECK(parsed.error().kind() == ErrorKind::file_limit);
    CHECK(parsed.error().message() == message);
  };
  const std::string size = std::to_string(saxpy_cubin().image().size());
  refused([](auto& limits) { limits.image_bytes = 100; },
          "The image has " + size + " bytes, more than the limit of 100.");
  refused([](auto& limits) { limits.kernels = 0; },
          "The image has more kernels than the limit of 0.");
  refused([](auto& limits) { limits.name_bytes = 4; },
          "A kernel has a name of 5 bytes, more than the limit of 4.");
  refused([](auto& limits) { limits.parameters = 2; },
          "Kernel \"saxpy\" has more parameters than the limit of 2.");
  refused([](auto& limits) { limits.parameter_bytes = 19; },
          "Kernel \"saxpy\" has 20 bytes of parameters, more than the limit of 19.");
}

TEST_CASE("cubin: every truncation is refused") {
  const std::string sound = saxpy_cubin().image();
  REQUIRE(parse(sound).ok());
  for (std::size_t size = 0; size < sound.size(); ++size) {
    CAPTURE(size);
    const auto parsed = parse(sound.substr(0, size));
    REQUIRE_FALSE(parsed.ok());
  }
}

TEST_CASE(
    "cubin: whatever one byte is changed to, the answer is an error or an image that can be") {
  const std::string sound = saxpy_cubin().image();
  std::size_t refused = 0;
  for (std::size_t at = 0; at < sound.size(); ++at) {
    for (unsigned value = 0; value < 256; ++value) {
      std::string image = sound;
      put(image, at, value, 1);
      const auto parsed = parse(image);
      CAPTURE(at);
      CAPTURE(value);
      if (parsed.ok()) REQUIRE(is_sound(*parsed, image.size()));
      if (!parsed.ok()) ++refused;
    }
  }
  CHECK(refused > sound.size());
}
