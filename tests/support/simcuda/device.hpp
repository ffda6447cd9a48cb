// The one device that is simulated: its numbers, which are those of no real one in particular but
// plausible for compute capability 9.0.
#pragma once

namespace sim {

inline constexpr char kDeviceName[] = "Simulated CUDA device (refrain simcuda, no GPU)";
inline constexpr int kComputeMajor = 9;
inline constexpr int kComputeMinor = 0;
inline constexpr int kComputeCapability = 10 * kComputeMajor + kComputeMinor;
inline constexpr int kMultiprocessors = 132;
inline constexpr int kWarp = 32;
inline constexpr int kBlockThreads = 1024;
inline constexpr int kMultiprocessorThreads = 2048;
inline constexpr int kMultiprocessorBlocks = 32;
inline constexpr int kBlockShared = 48 * 1024;
inline constexpr int kBlockSharedOptin = 227 * 1024;
inline constexpr int kMultiprocessorShared = 228 * 1024;
inline constexpr int kReservedShared = 1024;  ///< Of each block's, for the system.
inline constexpr int kRegisters = 64 * 1024;
inline constexpr int kLeastPriority = 0;
inline constexpr int kGreatestPriority = -5;

}  // namespace sim
