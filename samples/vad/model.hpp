// Silero VAD v6 at 16 kHz, cut into its stages: is there speech in these 32 ms? Each stage is a
// plain function over spans, so that it can be called directly or be registered as a kernel and
// launched. One step is these 19 launches, in this order:
//
//    1 join_context   tail, samples -> joined         11 relu          encoded[2] -> rectified[2]
//    2 reflect_end    joined -> padded                12 conv1d        rectified[2] -> encoded[3]
//    3 keep_tail      joined -> tail                  13 relu          encoded[3] -> rectified[3]
//    4 stft           padded -> spectrum              14 matvec        rectified[3] -> from_input
//    5 magnitude      spectrum -> magnitudes          15 matvec        h -> from_hidden
//    6 conv1d         magnitudes -> encoded[0]        16 lstm_cell     from_*, c -> c, h
//    7 relu           encoded[0] -> rectified[0]      17 relu          h -> rectified_h
//    8 conv1d         rectified[0] -> encoded[1]      18 output_conv   rectified_h -> logit
//    9 relu           encoded[1] -> rectified[1]      19 sigmoid       logit -> probability
//   10 conv1d         rectified[1] -> encoded[2]
//
// What must stay true: a stage keeps nothing between calls. All that a session remembers (tail, c
// and h, zeros at its first step) is in the arguments, so any number of sessions can run at once.
// And a stage checks the sizes that it is given before it touches a byte, since the arguments of a
// replayed launch come from a file.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "refrain/base/result.hpp"
#include "vad/sizes.hpp"

namespace vad {

inline constexpr std::size_t kLaunchesPerStep = 19;

/// A convolution with kernel 3 and padding 1. Its numbers have the type that a launch carries.
struct ConvShape {
  std::int32_t in_channels;
  std::int32_t out_channels;
  std::int32_t length;  ///< of each input channel
  std::int32_t stride;

  [[nodiscard]] constexpr std::int32_t out_length() const { return (length - 1) / stride + 1; }
  [[nodiscard]] constexpr std::size_t out_count() const {
    return static_cast<std::size_t>(out_channels) * static_cast<std::size_t>(out_length());
  }
};

inline constexpr std::array<ConvShape, 4> kEncoder = {{
    {129, 128, 4, 1},
    {128, 64, 4, 2},
    {64, 64, 2, 2},
    {64, 128, 1, 1},
}};

/// The tensors of the model, in the order of `kTensors`.
enum class Tensor : std::uint8_t {
  stft_basis,
  conv0_weight,
  conv0_bias,
  conv1_weight,
  conv1_bias,
  conv2_weight,
  conv2_bias,
  conv3_weight,
  conv3_bias,
  weight_ih,
  bias_ih,
  weight_hh,
  bias_hh,
  output_weight,
  output_bias,
};

/// What a weights file calls a tensor, and the shape that it must have there. Row-major, F32.
struct TensorShape {
  std::string_view name;
  std::array<std::size_t, 3> dims;  ///< the first `rank` of them count
  std::size_t rank;

  [[nodiscard]] constexpr std::size_t count() const {
    std::size_t product = 1;
    for (std::size_t i = 0; i < rank; ++i) {
      product *= dims[i];
    }
    return product;
  }
};

inline constexpr std::array<TensorShape, 15> kTensors = {{
    {"stft.forward_basis_buffer", {kFilters, 1, kWindow}, 3},
    {"encoder.0.reparam_conv.weight", {128, 129, 3}, 3},
    {"encoder.0.reparam_conv.bias", {128}, 1},
    {"encoder.1.reparam_conv.weight", {64, 128, 3}, 3},
    {"encoder.1.reparam_conv.bias", {64}, 1},
    {"encoder.2.reparam_conv.weight", {64, 64, 3}, 3},
    {"encoder.2.reparam_conv.bias", {64}, 1},
    {"encoder.3.reparam_conv.weight", {128, 64, 3}, 3},
    {"encoder.3.reparam_conv.bias", {128}, 1},
    {"decoder.rnn.weight_ih", {kGates, kHidden}, 2},
    {"decoder.rnn.bias_ih", {kGates}, 1},
    {"decoder.rnn.weight_hh", {kGates, kHidden}, 2},
    {"decoder.rnn.bias_hh", {kGates}, 1},
    {"decoder.decoder.2.weight", {1, kHidden, 1}, 3},
    {"decoder.decoder.2.bias", {1}, 1},
}};

constexpr std::size_t index_of(Tensor tensor) { return static_cast<std::size_t>(tensor); }
constexpr const TensorShape& shape_of(Tensor tensor) { return kTensors[index_of(tensor)]; }

/// The weight and the bias of `kEncoder[layer]`.
constexpr Tensor conv_weight(std::size_t layer) {
  return static_cast<Tensor>(index_of(Tensor::conv0_weight) + 2 * layer);
}
constexpr Tensor conv_bias(std::size_t layer) {
  return static_cast<Tensor>(index_of(Tensor::conv0_bias) + 2 * layer);
}

// The stages. A `span<const float>` is only read and a `span<float>` wholly written, except where
// it says otherwise; arguments do not overlap. A stage to which the sizes do not fit answers
// `invalid_argument`, names the argument, and has written nothing.

/// Puts the last samples of the step before in front of the new ones.
refrain::Result<void> join_context(std::span<const float> tail, std::span<const float> samples,
                                   std::span<float> joined);

/// Lengthens a signal at its right end by its mirror image, the last sample not repeated:
/// padded[n + j] = joined[n - 2 - j].
refrain::Result<void> reflect_end(std::span<const float> joined, std::span<float> padded);

/// Keeps the end of the signal for the next step. It comes after the `join_context` that reads the
/// old one.
refrain::Result<void> keep_tail(std::span<const float> joined, std::span<float> tail);

/// A short-time Fourier transform as a convolution: filters of `kWindow` taps, a frame every `kHop`
/// samples, no padding. The spectrum is filters x frames.
refrain::Result<void> stft(std::span<const float> padded, std::span<const float> basis,
                           std::span<float> spectrum);

/// sqrt(re^2 + im^2); the first half of the spectrum is the real parts, the second the imaginary.
refrain::Result<void> magnitude(std::span<const float> spectrum, std::span<float> magnitudes);

/// One-dimensional convolution, kernel 3, zero padding 1. The input is in_channels x length, the
/// weight out_channels x in_channels x 3, the output out_channels x ((length - 1) / stride + 1).
refrain::Result<void> conv1d(std::span<const float> input, std::span<const float> weight,
                             std::span<const float> bias, std::span<float> output,
                             std::int32_t in_channels, std::int32_t out_channels,
                             std::int32_t length, std::int32_t stride);

/// y = max(x, 0), a NaN staying one.
refrain::Result<void> relu(std::span<const float> x, std::span<float> y);

/// y = weight x + bias, the weight being y.size() rows of x.size().
refrain::Result<void> matvec(std::span<const float> weight, std::span<const float> bias,
                             std::span<const float> x, std::span<float> y);

/// One LSTM cell. The two vectors of gate pre-activations are added; the quarters of the sum are
/// the input, forget, cell and output gate. Reads and writes `c`; writes `h`.
refrain::Result<void> lstm_cell(std::span<const float> from_input,
                                std::span<const float> from_hidden, std::span<float> c,
                                std::span<float> h);

/// The 1x1 convolution to one channel: the dot product of `x` and `weight`, plus `bias`.
refrain::Result<void> output_conv(std::span<const float> x, std::span<const float> weight,
                                  std::span<const float> bias, std::span<float> logit);

/// y = 1 / (1 + exp(-x))
refrain::Result<void> sigmoid(std::span<const float> x, std::span<float> y);

}  // namespace vad
