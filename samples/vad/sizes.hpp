// The sizes that the model fixes, in elements. They stand apart because the CUDA kernels need them
// too: a kernel on a GPU gets addresses and no lengths.
#pragma once

#include <cstddef>

namespace vad {

inline constexpr std::size_t kStepSamples = 512;  ///< new samples a step: 32 ms at 16 kHz
inline constexpr std::size_t kTailSamples = 64;   ///< of the step before, put in front of them
inline constexpr std::size_t kJoinedSamples = kTailSamples + kStepSamples;
inline constexpr std::size_t kPaddedSamples = kJoinedSamples + kTailSamples;
inline constexpr std::size_t kWindow = 256;  ///< taps of an STFT filter
inline constexpr std::size_t kHop = 128;     ///< samples from one STFT frame to the next
inline constexpr std::size_t kFrames = (kPaddedSamples - kWindow) / kHop + 1;
inline constexpr std::size_t kBins = kWindow / 2 + 1;
inline constexpr std::size_t kFilters = 2 * kBins;  ///< the real parts, then the imaginary parts
inline constexpr std::size_t kHidden = 128;
inline constexpr std::size_t kGates = 4 * kHidden;  ///< input, forget, cell, output

}  // namespace vad
