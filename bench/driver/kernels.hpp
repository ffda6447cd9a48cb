// The kernels that the timings launch: one that does nothing and one that keeps the GPU busy for a
// while. They are PTX text, which every driver compiles for its own GPU, so no nvcc is needed.
#pragma once

namespace refrain::bench {

inline constexpr const char* kEmptyKernel = "refrain_bench_empty";
inline constexpr const char* kSpinKernel = "refrain_bench_spin";

/// Both take one u64: the empty one ignores it, the other runs for that many nanoseconds. The
/// spinning one counts its rounds too, so that it ends on a GPU whose timer stands still.
inline constexpr const char* kKernels = R"ptx(
.version 7.0
.target sm_52
.address_size 64

.visible .entry refrain_bench_empty(.param .u64 ignored)
{
  ret;
}

.visible .entry refrain_bench_spin(.param .u64 nanoseconds)
{
  .reg .pred %over;
  .reg .b32 %round;
  .reg .b64 %limit, %start, %spent;
  ld.param.u64 %limit, [nanoseconds];
  mov.u64 %start, %globaltimer;
  mov.u32 %round, 0;
again:
  mov.u64 %spent, %globaltimer;
  sub.u64 %spent, %spent, %start;
  setp.ge.u64 %over, %spent, %limit;
  @%over bra done;
  add.u32 %round, %round, 1;
  setp.lt.u32 %over, %round, 10000000;
  @%over bra again;
done:
  ret;
}
)ptx";

}  // namespace refrain::bench
