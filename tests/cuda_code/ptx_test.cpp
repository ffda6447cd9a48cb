// PTX: what is read of a kernel's declaration, and what is refused.
#include <doctest/doctest.h>

#include "handmade_image.hpp"

using namespace refrain;
using namespace refrain::test;

namespace {

const std::string kHead = ".version 8.4\n.target sm_90\n.address_size 64\n";

/// The kernels, as text, separated by spaces.
std::string kernels_of(const std::string& ptx) {
  const auto image = parse(ptx);
  if (!image.ok()) return image.error().text();
  std::string all;
  for (const cuda::KernelImage& kernel : image->objects.at(0).kernels) all += text(kernel) + ' ';
  return all;
}

void check_refused(const std::string& ptx, ErrorKind kind, const std::string& message) {
  const auto parsed = parse(ptx);
  REQUIRE_FALSE(parsed.ok());
  CHECK(parsed.error().message() == message);
  CHECK(name_of(parsed.error().kind()) == name_of(kind));
}

void check_damaged(const std::string& behind_head, const std::string& message) {
  check_refused(kHead + behind_head, ErrorKind::file_damaged, message);
}

}  // namespace

TEST_CASE("ptx: a kernel has the layout that its cubin has") {
  const auto ptx = parse(kSaxpyPtx);
  const auto cubin = parse(saxpy_cubin().image());
  REQUIRE(ptx.ok());
  REQUIRE(cubin.ok());
  CHECK(ptx->kind == cuda::ImageKind::ptx);
  const cuda::CodeObject& object = ptx->objects.at(0);
  CHECK(object.kind == cuda::ObjectKind::ptx);
  CHECK(object.architecture == cuda::Architecture{90, 0});
  CHECK(object.ptx_version == 84);
  CHECK(object.kernels.at(0).parameters == cubin->objects.at(0).kernels.at(0).parameters);
  CHECK(object.kernels.at(0).parameter_bytes == 20);
  CHECK(object.kernels.at(0).max_threads == 256);
  CHECK(text(object.kernels.at(0)) == "saxpy(8@0, 8@8, 4@16)");
}

TEST_CASE("ptx: parameters lie at their natural alignment, in order") {
  CHECK(kernels_of(kHead + R"(.entry k(
      .param .u8 a, .param .f64 b, .param .s16 c, .param .align 8 .b8 d[72], .param .u64 e,
      .param .align 1 .b8 f[3], .param .align 16 .b8 g[0x10], .param .b32 h[3], .param .b128 i)
      { ret; })") == "k(1@0, 8@8, 2@16, 72@24, 8@96, 3@104, 16@112, 12@128, 16@144) ");
}

TEST_CASE("ptx: what a pointer points to does not align the pointer") {
  CHECK(kernels_of(kHead + ".entry k(.param .u32 a, .param .u64 .ptr .global .align 256 b,"
                           ".param .u64 .ptr .align 16 c){}") == "k(4@0, 8@8, 8@16) ");
}

TEST_CASE("ptx: kernels of every linkage are found, and nothing else") {
  CHECK(kernels_of(kHead + R"(
      // .entry in_comment() {}
      /* .entry in_comment() {} */
      .file 1 "a path with .entry in_string() { \" /* inside"
      .extern .func (.param .b32 result) printf(.param .b64 a);
      .global .align 4 .b8 data[4] = {1, 2, 3, 4};
      .visible .entry a() { .pragma "{"; { ret; } }
      .weak .entry b { ret; }
      .entry declared(.param .u32 x);
      .visible.entry declared(.param.u32 x){ st.param.b32 [x], 1; }
      .section .debug_str { .b8 46, 101 })") == "a() b() declared(4@0) ");
}

TEST_CASE("ptx: what a launch must keep to is read") {
  const auto image = parse(kHead + R"(
      .entry k() .reqntid 32, 4 .pragma "a", "b;{"; .minnctapersm 2 .maxclusterrank 8
                 .blocksareclusters .reqnctapercluster 2, 1, 1 .maxnreg 64 { }
      .entry m() .maxntid 0x20, 2, 010 { })");
  REQUIRE(image.ok());
  const auto& kernels = image->objects.at(0).kernels;
  REQUIRE(kernels.size() == 2);
  CHECK(kernels[0].required_block == cuda::KernelImage::Extent{32, 4, 1});
  CHECK(kernels[0].cluster == cuda::KernelImage::Extent{2, 1, 1});
  CHECK(kernels[0].min_blocks_per_multiprocessor == 2);
  CHECK(kernels[0].max_cluster_blocks == 8);
  CHECK_FALSE(kernels[0].max_threads.has_value());
  CHECK_FALSE(kernels[0].registers.has_value());
  CHECK_FALSE(kernels[0].static_shared_bytes.has_value());
  CHECK(kernels[1].max_threads == 512);
}

TEST_CASE("ptx: a suffix belongs to the architecture, and other target options do not") {
  const auto image = parse(".version 9.0 .target sm_120f, texmode_independent");
  REQUIRE(image.ok());
  CHECK(image->objects.at(0).architecture == cuda::Architecture{120, 'f'});
  CHECK(image->objects.at(0).ptx_version == 90);
}

TEST_CASE("ptx: zeros may end the text, and nothing may follow them") {
  CHECK(kernels_of(kHead + ".entry k() {}" + std::string(5, '\0')) == "k() ");
  check_damaged(std::string("\0x", 2), "The PTX goes on behind the zero at its byte 44.");
}

TEST_CASE("ptx: what is no code image is foreign") {
  const std::string message =
      "This is no code image: neither a cubin, nor a fatbin, nor PTX, which starts with .version.";
  for (const char* const text :
       {"hello", ".target sm_90", "// .version 8.4", "/* open", "\"open", ".versions 8.4",
        "\x7F"
        "EL"}) {
    CAPTURE(text);
    check_refused(text, ErrorKind::file_foreign, message);
  }
  check_refused("", ErrorKind::file_foreign, "There are no bytes, so there is no code image.");
  check_refused("\xB1\x43\x62\x46...", ErrorKind::file_foreign,
                "This is what nvcc puts around a fatbin in a host object: it holds the address of "
                "the fatbin and no code.");
}

TEST_CASE("ptx: garbage is refused by line and word") {
  check_refused(".version x", ErrorKind::file_damaged,
                "In line 1 of the PTX stands \"x\" where a version as 8.4 is to be.");
  check_refused(".version 8.4", ErrorKind::file_damaged, "The PTX has no .target.");
  check_refused(".version 8.4\n.target compute_90", ErrorKind::file_damaged,
                "In line 2 of the PTX stands \"compute_90\" where an architecture as sm_90 is to "
                "be.");
  check_damaged(".entry (",
                "In line 4 of the PTX stands \"(\" where the name of a kernel is to be.");
  check_damaged(".entry", "The PTX ends where the name of a kernel is to be.");
  check_damaged(".entry k(int)", "In line 4 of the PTX stands \"int\" where a .param is to be.");
  check_damaged(".entry k(.param x)",
                "In line 4 of the PTX stands \"x\" where the type of a parameter is to be.");
  check_damaged(".entry k(.param .u32)",
                "In line 4 of the PTX stands \")\" where the name of a parameter is to be.");
  check_damaged(".entry k(.param .align 3 .b8 x)",
                "In line 4 of the PTX stands \"3\" where an alignment that is a power of two is to "
                "be.");
  check_damaged(".entry k(.param .b8 x[99999999999])",
                "In line 4 of the PTX stands \"99999999999\" where the length of an array is to "
                "be.");
  check_damaged(".entry k(.param .b8 x[2",
                "The PTX ends where the end of an array's length is to be.");
  check_damaged(".entry k(.param .b8 x y",
                "In line 4 of the PTX stands \"y\" where a comma or the end of the parameters is "
                "to be.");
  check_damaged(".entry k(.param .b8 x[0])",
                "The PTX ends where the body of kernel \"k\" is to be.");
  check_damaged(".entry k(.param .b8 x[0]){}", "Kernel \"k\" has a parameter 0 of no bytes.");
  check_damaged(".entry k()\n.maxntid many {}",
                "In line 5 of the PTX stands \"many\" where the size of a block is to be.");
  check_damaged(".entry k() .maxntid 65536, 65536 {}",
                "In line 4 of the PTX stands \"{\" where no block of more threads than can be is "
                "behind it.");
  check_damaged(".entry k() .pragma x;",
                "In line 4 of the PTX stands \"x\" where the strings of a .pragma are to be.");
  check_damaged(".entry k()\n{ {\n}",
                "The PTX ends where the end of what begins in line 5 is to be.");
  check_damaged(".entry k() {} .entry k() {}", "Kernel \"k\" is defined twice in one object.");
  check_damaged("\n/* open", "In the PTX, a comment that begins in line 5 has no end.");
  check_damaged(".file \"open\\\"", "In the PTX, a string that begins in line 4 has no end.");
}

TEST_CASE("ptx: types that are not read, and too many parameters, are said to be") {
  check_refused(kHead + ".entry k(.param .texref t){}", ErrorKind::file_version,
                "Kernel \"k\" has in line 4 of the PTX a parameter of the type \".texref\", which "
                "is not read.");
  const std::string limit =
      "Kernel \"k\" has more parameters than the limits of 4096 and of 32764 bytes.";
  check_refused(kHead + ".entry k(.param .b8 x[32765]){}", ErrorKind::file_limit, limit);
  check_refused(kHead + ".entry k(.param .align 2147483648 .b128 x[4294967295]){}",
                ErrorKind::file_limit, limit);
  CHECK(kernels_of(kHead + ".entry k(.param .b8 x[32764]){}") == "k(32764@0) ");
  std::string many = ".entry k(";
  for (int at = 0; at < 4'096; ++at) many += ".param .b8 x,";
  check_refused(kHead + many + ".param .b8 y){}", ErrorKind::file_limit, limit);
}

TEST_CASE("ptx: braces of any depth are passed over without a stack") {
  const std::string deep = std::string(200'000, '{') + std::string(200'000, '}');
  CHECK(kernels_of(kHead + ".entry k()" + deep + ".entry m(){}") == "k() m() ");
}

TEST_CASE("ptx: a text that is cut anywhere gives an error or fewer kernels, never half a kernel") {
  const std::string sound(kSaxpyPtx);
  const std::size_t end = sound.rfind('}');
  for (std::size_t size = 0; size < sound.size(); ++size) {
    CAPTURE(size);
    const auto parsed = parse(sound.substr(0, size));
    if (size > end) {
      CHECK((parsed.ok() && parsed->objects.at(0).kernels.size() == 1));
    } else if (parsed.ok()) {
      CHECK(parsed->objects.at(0).kernels.empty());
    }
  }
}
