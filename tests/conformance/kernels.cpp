#include "kernels.hpp"

#include <cstring>

namespace conformance {
namespace {

// Version 7.0 for sm_70: every driver that is opened compiles it for every GPU that it supports.
constexpr char kImage[] = R"ptx(
.version 7.0
.target sm_70
.address_size 64

.visible .global .align 4 .u32 counter = 7;

.extern .func __assertfail(.param .b64 message, .param .b64 file, .param .b32 line,
                           .param .b64 function, .param .b64 char_size);
.global .align 1 .b8 assertion[8] = {102, 97, 108, 115, 101, 0, 0, 0};

.visible .entry write_word(.param .u64 where, .param .u32 value)
{
  .reg .b64 %rd<2>;
  .reg .b32 %r<2>;
  ld.param.u64 %rd0, [where];
  ld.param.u32 %r0, [value];
  st.global.u32 [%rd0], %r0;
  ret;
}

.visible .entry add_one(.param .u64 where)
{
  .reg .b64 %rd<2>;
  .reg .b32 %r<2>;
  ld.param.u64 %rd0, [where];
  atom.global.add.u32 %r0, [%rd0], 1;
  ret;
}

.visible .entry copy_words(.param .u64 from, .param .u64 to, .param .u32 count)
{
  .reg .pred %p<1>;
  .reg .b64 %rd<5>;
  .reg .b32 %r<8>;
  ld.param.u64 %rd0, [from];
  ld.param.u64 %rd1, [to];
  ld.param.u32 %r0, [count];
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  mov.u32 %r4, %nctaid.x;
  mad.lo.u32 %r5, %r1, %r2, %r3;
  mul.lo.u32 %r6, %r4, %r2;
next:
  setp.ge.u32 %p0, %r5, %r0;
  @%p0 bra done;
  mul.wide.u32 %rd2, %r5, 4;
  add.u64 %rd3, %rd0, %rd2;
  add.u64 %rd4, %rd1, %rd2;
  ld.global.u32 %r7, [%rd3];
  st.global.u32 [%rd4], %r7;
  add.u32 %r5, %r5, %r6;
  bra next;
done:
  ret;
}

.visible .entry many_params(.param .s8 c, .param .f64 d, .param .s16 s,
                            .param .align 8 .b8 block[72], .param .u64 out,
                            .param .align 1 .b8 three[3], .param .align 16 .b8 four[16])
{
  .reg .b64 %rd<1>;
  .reg .b32 %r<9>;
  .reg .b16 %h<1>;
  .reg .f64 %fd<1>;
  ld.param.u64 %rd0, [out];
  ld.param.s8 %r0, [c];
  st.global.u32 [%rd0], %r0;
  ld.param.f64 %fd0, [d];
  cvt.rzi.s32.f64 %r1, %fd0;
  st.global.u32 [%rd0+4], %r1;
  ld.param.s16 %h0, [s];
  cvt.s32.s16 %r2, %h0;
  st.global.u32 [%rd0+8], %r2;
  ld.param.u32 %r3, [block];
  st.global.u32 [%rd0+12], %r3;
  ld.param.u32 %r3, [block+68];
  st.global.u32 [%rd0+16], %r3;
  ld.param.u8 %r4, [three];
  ld.param.u8 %r5, [three+1];
  ld.param.u8 %r6, [three+2];
  shl.b32 %r5, %r5, 8;
  shl.b32 %r6, %r6, 16;
  or.b32 %r7, %r4, %r5;
  or.b32 %r7, %r7, %r6;
  st.global.u32 [%rd0+20], %r7;
  ld.param.u32 %r8, [four];
  st.global.u32 [%rd0+24], %r8;
  ld.param.u32 %r8, [four+12];
  st.global.u32 [%rd0+28], %r8;
  ret;
}

.visible .entry spin(.param .u64 flag, .param .u64 nanoseconds)
{
  .reg .pred %p<2>;
  .reg .b64 %rd<5>;
  .reg .b32 %r<1>;
  ld.param.u64 %rd0, [flag];
  ld.param.u64 %rd1, [nanoseconds];
  mov.u64 %rd2, %globaltimer;
again:
  ld.volatile.global.u32 %r0, [%rd0];
  setp.ne.u32 %p0, %r0, 0;
  @%p0 bra over;
  mov.u64 %rd3, %globaltimer;
  sub.u64 %rd4, %rd3, %rd2;
  setp.lt.u64 %p1, %rd4, %rd1;
  @%p1 bra again;
over:
  ret;
}

.visible .entry trap()
{
  trap;
  ret;
}

.visible .entry assert_fail()
{
  .reg .b64 %rd<3>;
  mov.u64 %rd0, assertion;
  cvta.global.u64 %rd1, %rd0;
  mov.u64 %rd2, 1;
  {
    .param .b64 message;
    .param .b64 file;
    .param .b32 line;
    .param .b64 function;
    .param .b64 char_size;
    st.param.b64 [message], %rd1;
    st.param.b64 [file], %rd1;
    st.param.b32 [line], 1;
    st.param.b64 [function], %rd1;
    st.param.b64 [char_size], %rd2;
    call __assertfail, (message, file, line, function, char_size);
  }
  ret;
}
)ptx";

// What a GPU answers for an address that is not aligned to what is read there.
constexpr int kMisaligned = 716;
constexpr int kAssertion = 710;
constexpr int kTrap = 719;

void write_word(const sim::Launch* launch) {
  if (launch->argument<std::uint64_t>(0) % sizeof(std::uint32_t) != 0) {
    launch->fail(launch, kMisaligned);
    return;
  }
  auto* where = launch->array<std::uint32_t>(0, 1);
  if (where != nullptr) *where = launch->argument<std::uint32_t>(1);
}

void add_one(const sim::Launch* launch) {
  auto* where = launch->array<std::uint32_t>(0, 1);
  if (where == nullptr) return;
  unsigned threads = 1;
  for (int axis = 0; axis < 3; ++axis) threads *= launch->grid[axis] * launch->block[axis];
  *where += threads;
}

void copy_words(const sim::Launch* launch) {
  const auto count = launch->argument<std::uint32_t>(2);
  if (count == 0) return;
  const auto* from = launch->array<std::uint32_t>(0, count);
  auto* to = launch->array<std::uint32_t>(1, count);
  if (from != nullptr && to != nullptr) std::memmove(to, from, count * sizeof(std::uint32_t));
}

void many_params(const sim::Launch* launch) {
  auto* out = launch->array<std::uint32_t>(4, kManyWords);
  if (out == nullptr) return;
  const auto& block = launch->argument<ManyParams::Block>(3);
  const auto* three = static_cast<const unsigned char*>(launch->arguments[5]);
  const auto& four = launch->argument<ManyParams::Four>(6);
  out[0] = static_cast<std::uint32_t>(std::int32_t{launch->argument<signed char>(0)});
  out[1] = static_cast<std::uint32_t>(static_cast<std::int32_t>(launch->argument<double>(1)));
  out[2] = static_cast<std::uint32_t>(std::int32_t{launch->argument<short>(2)});
  out[3] = block.words[0];
  out[4] = block.words[17];
  out[5] = std::uint32_t{three[0]} | std::uint32_t{three[1]} << 8U | std::uint32_t{three[2]} << 16U;
  std::memcpy(&out[6], &four.values[0], sizeof(float));
  std::memcpy(&out[7], &four.values[3], sizeof(float));
}

// The simulation is kept busy by its controls, not by a kernel.
void spin(const sim::Launch*) {}

void trap(const sim::Launch* launch) { launch->fail(launch, kTrap); }

void assert_fail(const sim::Launch* launch) { launch->fail(launch, kAssertion); }

}  // namespace

const char* kernel_image() noexcept { return kImage; }

void register_kernel_bodies(const sim::Control& control) {
  control.kernel_body("write_word", write_word);
  control.kernel_body("add_one", add_one);
  control.kernel_body("copy_words", copy_words);
  control.kernel_body("many_params", many_params);
  control.kernel_body("spin", spin);
  control.kernel_body("trap", trap);
  control.kernel_body("assert_fail", assert_fail);
}

}  // namespace conformance
