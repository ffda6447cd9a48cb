// The stages as CUDA runs them: what one thread does. nvcc compiles these functions into the
// kernels of kernels.cu; any C++ compiler makes plain functions of them, which tests call with the
// index of every thread, so that the arithmetic is tested where there is no GPU.
//
// A stage is launched with at least as many threads as its output has elements, in a row, in blocks
// of at most `thread::kBlock`: what `refrain::grid(elements)` gives. Thread `index` writes element
// `index` of each output, reads no other thread's, and beyond the end does nothing. It adds in the
// order of model.cpp, and is compiled without fused multiply-add, so that only exp and tanh may
// differ from the host in the last bits.
//
// What must stay true: the parameters after the index are those of the `refrain::Kernel` in
// kernels.hpp, a view as its address. No length comes with it, so unlike the stages of model.hpp
// these functions cannot check what they are given: sizes are those of the model, or scalars.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "vad/sizes.hpp"

#ifdef __CUDACC__
#define VAD_DEVICE __device__
#else
#define VAD_DEVICE
#endif

namespace vad::thread {

inline constexpr unsigned kBlock = 256;  ///< The most threads in one block.

/// The sum of `term(0)` to `term(count - 1)`, kept in 16 lanes as in model.cpp.
template <class Term>
VAD_DEVICE float sum(std::size_t count, const Term& term) {
  constexpr std::size_t kLanes = 16;
  float sums[kLanes] = {};
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) sums[lane] += term(i + lane);
  }
  float rest = 0;
  for (; i < count; ++i) rest += term(i);
  for (std::size_t width = kLanes / 2; width > 0; width /= 2) {
    for (std::size_t lane = 0; lane < width; ++lane) sums[lane] += sums[lane + width];
  }
  return sums[0] + rest;
}

VAD_DEVICE inline float dot(const float* a, const float* b, std::size_t count) {
  return sum(count, [=](std::size_t i) { return a[i] * b[i]; });
}

VAD_DEVICE inline float logistic(float x) { return 1.0F / (1.0F + std::exp(-x)); }

VAD_DEVICE inline void join_context(std::size_t index, const float* tail, const float* samples,
                                    float* joined) {
  if (index >= kJoinedSamples) return;
  joined[index] = index < kTailSamples ? tail[index] : samples[index - kTailSamples];
}

VAD_DEVICE inline void reflect_end(std::size_t index, const float* joined, float* padded) {
  if (index >= kPaddedSamples) return;
  padded[index] = joined[index < kJoinedSamples ? index : 2 * kJoinedSamples - 2 - index];
}

VAD_DEVICE inline void keep_tail(std::size_t index, const float* joined, float* tail) {
  if (index >= kTailSamples) return;
  tail[index] = joined[kJoinedSamples - kTailSamples + index];
}

/// The spectrum is filters x frames.
VAD_DEVICE inline void stft(std::size_t index, const float* padded, const float* basis,
                            float* spectrum) {
  if (index >= kFilters * kFrames) return;
  const std::size_t filter = index / kFrames;
  const std::size_t frame = index % kFrames;
  spectrum[index] = dot(basis + filter * kWindow, padded + frame * kHop, kWindow);
}

VAD_DEVICE inline void magnitude(std::size_t index, const float* spectrum, float* magnitudes) {
  constexpr std::size_t kCount = kBins * kFrames;
  if (index >= kCount) return;
  const float re = spectrum[index];
  const float im = spectrum[kCount + index];
  magnitudes[index] = std::sqrt(re * re + im * im);
}

/// The output is out_channels x ((length - 1) / stride + 1). Numbers below 1 are no convolution,
/// and nothing is done for them.
VAD_DEVICE inline void conv1d(std::size_t index, const float* input, const float* weight,
                              const float* bias, float* output, std::int32_t in_channels,
                              std::int32_t out_channels, std::int32_t length, std::int32_t stride) {
  if (in_channels < 1 || out_channels < 1 || length < 1 || stride < 1) return;
  constexpr std::size_t kTaps = 3;
  const auto in_length = static_cast<std::size_t>(length);
  const auto step = static_cast<std::size_t>(stride);
  const std::size_t out_length = (in_length - 1) / step + 1;
  if (index >= static_cast<std::size_t>(out_channels) * out_length) return;

  const std::size_t channel = index / out_length;
  const std::size_t position = index % out_length;
  const std::size_t patch = static_cast<std::size_t>(in_channels) * kTaps;
  const float* row = weight + channel * patch;
  // The padding is multiplied like a sample, as in model.cpp: a NaN among the weights shows.
  const auto term = [=](std::size_t i) {
    const std::size_t at = position * step + i % kTaps;  // one more than the index into the input
    const float sample = at < 1 || at > in_length ? 0.0F : input[i / kTaps * in_length + at - 1];
    return row[i] * sample;
  };
  output[index] = bias[channel] + sum(patch, term);
}

VAD_DEVICE inline void relu(std::size_t index, const float* x, float* y, std::uint32_t count) {
  if (index >= count) return;
  y[index] = x[index] < 0.0F ? 0.0F : x[index];
}

/// The one of this model: `kGates` rows of `kHidden`.
VAD_DEVICE inline void matvec(std::size_t index, const float* weight, const float* bias,
                              const float* x, float* y) {
  if (index >= kGates) return;
  y[index] = bias[index] + dot(weight + index * kHidden, x, kHidden);
}

VAD_DEVICE inline void lstm_cell(std::size_t index, const float* from_input,
                                 const float* from_hidden, float* c, float* h) {
  if (index >= kHidden) return;
  const auto gate = [=](std::size_t which) {
    return from_input[which * kHidden + index] + from_hidden[which * kHidden + index];
  };
  const float cell = logistic(gate(1)) * c[index] + logistic(gate(0)) * std::tanh(gate(2));
  c[index] = cell;
  h[index] = logistic(gate(3)) * std::tanh(cell);
}

VAD_DEVICE inline void output_conv(std::size_t index, const float* x, const float* weight,
                                   const float* bias, float* logit) {
  if (index >= 1) return;
  logit[0] = bias[0] + dot(weight, x, kHidden);
}

/// The one of this model: one value.
VAD_DEVICE inline void sigmoid(std::size_t index, const float* x, float* y) {
  if (index >= 1) return;
  y[0] = logistic(x[0]);
}

}  // namespace vad::thread
