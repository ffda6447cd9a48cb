// The few kernels that the cases run, as PTX that a real driver compiles, and as host functions for
// the simulation. Each is bounded: none can keep a GPU for longer than its arguments say.
//
//   write_word(u32* where, u32 value)        one word; an address that is not valid is a fault
//   (700),
//                                            one that is not a multiple of four too (716)
//   add_one(u32* where)                      each thread of the launch adds one, atomically
//   copy_words(const u32* from, u32* to, u32 count)   strided over all threads
//   many_params(s8, f64, s16, 72 bytes, u32* out, 3 bytes, 16 bytes)   eight words, kManyWords
//   spin(const volatile u32* flag, u64 nanoseconds)   until the flag is not zero, or for that long
//   trap()                                   the trap instruction
//   assert_fail()                            a device-side assertion that fails
//
// and one variable, `u32 counter = 7`.
#pragma once

#include <cstddef>
#include <cstdint>

#include "support/simcuda/control.hpp"

namespace conformance {

/// The image, a text that ends in a zero byte.
const char* kernel_image() noexcept;

/// The names of the kernels in it, sorted.
inline constexpr const char* kKernelNames[] = {
    "add_one", "assert_fail", "copy_words", "many_params", "spin", "trap", "write_word"};

/// The parameters of many_params as one struct has them, which is how a launch passes them too.
struct ManyParams {
  signed char c = 0;
  double d = 0;
  short s = 0;
  struct alignas(8) Block {
    std::uint32_t words[18] = {};
  } block;
  std::uint64_t out = 0;
  unsigned char three[3] = {};
  struct alignas(16) Four {
    float values[4] = {};
  } four;
};
static_assert(offsetof(ManyParams, out) == 96 && offsetof(ManyParams, three) == 104 &&
              offsetof(ManyParams, four) == 112 && sizeof(ManyParams) == 128);

/// What many_params writes: c, d and s as integers, the first and the last word of the block, the
/// three bytes as one number, the first and the last of the four as bits.
inline constexpr std::size_t kManyWords = 8;

/// Gives the kernels their bodies in a simulation.
void register_kernel_bodies(const sim::Control& control);

}  // namespace conformance
