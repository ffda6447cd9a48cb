// The arithmetic of the stages. The order of every sum is written down: it is kept in several
// lanes, which the compiler turns into vector registers as they stand. So no -ffast-math is needed,
// and a step gives the same bits however many sessions run beside it.
#include "vad/model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

namespace vad {
namespace {

constexpr std::size_t kLanes = 16;

// Those of the largest encoder layer. They stay on the stack, so that a stage allocates nothing.
constexpr std::size_t kMaxPatches = kBins * 3 * kFrames;

float dot(const float* a, const float* b, std::size_t count) {
  std::array<float, kLanes> sums{};
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      sums[lane] += a[i + lane] * b[i + lane];
    }
  }
  float rest = 0;
  for (; i < count; ++i) {
    rest += a[i] * b[i];
  }
  for (std::size_t width = kLanes / 2; width > 0; width /= 2) {
    for (std::size_t lane = 0; lane < width; ++lane) {
      sums[lane] += sums[lane + width];
    }
  }
  return sums[0] + rest;
}

float logistic(float x) { return 1.0F / (1.0F + std::exp(-x)); }

refrain::Error bad_sizes(std::string message) {
  return refrain::Error(refrain::ErrorKind::invalid_argument, std::move(message));
}

refrain::Error misfit(std::string_view stage, std::string_view argument, std::size_t found,
                      std::size_t expected) {
  return bad_sizes(fmt::format(R"(The stage "{}" is given {} values in "{}" and needs {}.)", stage,
                               found, argument, expected));
}

}  // namespace

refrain::Result<void> join_context(std::span<const float> tail, std::span<const float> samples,
                                   std::span<float> joined) {
  if (joined.size() != tail.size() + samples.size()) {
    return misfit("join_context", "joined", joined.size(), tail.size() + samples.size());
  }
  const auto rest = std::copy(tail.begin(), tail.end(), joined.begin());
  std::copy(samples.begin(), samples.end(), rest);
  return {};
}

refrain::Result<void> reflect_end(std::span<const float> joined, std::span<float> padded) {
  const std::size_t count = joined.size();
  // The first sample is the last that can be mirrored: 2n - 1 is as long as it gets.
  if (padded.size() < count || padded.size() - count >= count) {
    return bad_sizes(
        fmt::format("The stage \"reflect_end\" cannot lengthen {} values to {}: a mirror image "
                    "adds at most one fewer than there are.",
                    count, padded.size()));
  }
  std::copy(joined.begin(), joined.end(), padded.begin());
  for (std::size_t j = 0; count + j < padded.size(); ++j) {
    padded[count + j] = joined[count - 2 - j];
  }
  return {};
}

refrain::Result<void> keep_tail(std::span<const float> joined, std::span<float> tail) {
  if (joined.size() < tail.size()) return misfit("keep_tail", "joined", joined.size(), tail.size());
  const auto end = joined.last(tail.size());
  std::copy(end.begin(), end.end(), tail.begin());
  return {};
}

refrain::Result<void> stft(std::span<const float> padded, std::span<const float> basis,
                           std::span<float> spectrum) {
  if (padded.size() < kWindow) return misfit("stft", "padded", padded.size(), kWindow);
  const std::size_t filters = basis.size() / kWindow;
  const std::size_t frames = (padded.size() - kWindow) / kHop + 1;
  if (basis.size() != filters * kWindow)
    return misfit("stft", "basis", basis.size(), filters * kWindow);
  if (spectrum.size() != filters * frames)
    return misfit("stft", "spectrum", spectrum.size(), filters * frames);

  for (std::size_t filter = 0; filter < filters; ++filter) {
    for (std::size_t frame = 0; frame < frames; ++frame) {
      spectrum[filter * frames + frame] =
          dot(&basis[filter * kWindow], &padded[frame * kHop], kWindow);
    }
  }
  return {};
}

refrain::Result<void> magnitude(std::span<const float> spectrum, std::span<float> magnitudes) {
  const std::size_t count = magnitudes.size();
  if (spectrum.size() != 2 * count)
    return misfit("magnitude", "spectrum", spectrum.size(), 2 * count);
  for (std::size_t i = 0; i < count; ++i) {
    const float re = spectrum[i];
    const float im = spectrum[count + i];
    magnitudes[i] = std::sqrt(re * re + im * im);
  }
  return {};
}

refrain::Result<void> conv1d(std::span<const float> input, std::span<const float> weight,
                             std::span<const float> bias, std::span<float> output,
                             std::int32_t in_channels, std::int32_t out_channels,
                             std::int32_t length, std::int32_t stride) {
  constexpr std::size_t kTaps = 3;
  if (in_channels < 1 || out_channels < 1 || length < 1 || stride < 1) {
    return bad_sizes(
        fmt::format("The stage \"conv1d\" is given {} input channels, {} output channels, length "
                    "{} and stride {}, and needs at least 1 of each.",
                    in_channels, out_channels, length, stride));
  }
  const auto ins = static_cast<std::size_t>(in_channels);
  const auto outs = static_cast<std::size_t>(out_channels);
  const auto in_length = static_cast<std::size_t>(length);
  const auto step = static_cast<std::size_t>(stride);
  const std::size_t out_length = (in_length - 1) / step + 1;
  const std::size_t patch = ins * kTaps;
  if (patch > kMaxPatches / out_length) {
    return bad_sizes(
        fmt::format("The stage \"conv1d\" is given {} input channels and {} output positions; it "
                    "has room for {} values in all patches.",
                    in_channels, out_length, kMaxPatches));
  }
  if (input.size() != ins * in_length)
    return misfit("conv1d", "input", input.size(), ins * in_length);
  if (weight.size() != outs * patch) return misfit("conv1d", "weight", weight.size(), outs * patch);
  if (bias.size() != outs) return misfit("conv1d", "bias", bias.size(), outs);
  if (output.size() != outs * out_length)
    return misfit("conv1d", "output", output.size(), outs * out_length);

  // What one output position sees, laid out as a row of the weight is, so that the convolution is
  // dot products over contiguous memory. The zeros that stay are the padding.
  std::array<float, kMaxPatches> patches{};
  for (std::size_t position = 0; position < out_length; ++position) {
    for (std::size_t channel = 0; channel < ins; ++channel) {
      for (std::size_t tap = 0; tap < kTaps; ++tap) {
        const std::size_t at = position * step + tap;  // one more than the index into the input
        if (at < 1 || at > in_length) continue;
        patches[position * patch + channel * kTaps + tap] = input[channel * in_length + at - 1];
      }
    }
  }
  for (std::size_t channel = 0; channel < outs; ++channel) {
    for (std::size_t position = 0; position < out_length; ++position) {
      output[channel * out_length + position] =
          bias[channel] + dot(&weight[channel * patch], &patches[position * patch], patch);
    }
  }
  return {};
}

refrain::Result<void> relu(std::span<const float> x, std::span<float> y) {
  if (x.size() != y.size()) return misfit("relu", "x", x.size(), y.size());
  for (std::size_t i = 0; i < y.size(); ++i) {
    y[i] = x[i] < 0.0F ? 0.0F : x[i];
  }
  return {};
}

refrain::Result<void> matvec(std::span<const float> weight, std::span<const float> bias,
                             std::span<const float> x, std::span<float> y) {
  if (bias.size() != y.size()) return misfit("matvec", "bias", bias.size(), y.size());
  if (weight.size() != y.size() * x.size())
    return misfit("matvec", "weight", weight.size(), y.size() * x.size());
  for (std::size_t row = 0; row < y.size(); ++row) {
    y[row] = bias[row] + dot(weight.data() + row * x.size(), x.data(), x.size());
  }
  return {};
}

refrain::Result<void> lstm_cell(std::span<const float> from_input,
                                std::span<const float> from_hidden, std::span<float> c,
                                std::span<float> h) {
  const std::size_t count = h.size();
  if (c.size() != count) return misfit("lstm_cell", "c", c.size(), count);
  if (from_input.size() != 4 * count)
    return misfit("lstm_cell", "from_input", from_input.size(), 4 * count);
  if (from_hidden.size() != 4 * count)
    return misfit("lstm_cell", "from_hidden", from_hidden.size(), 4 * count);

  const auto gate = [&](std::size_t which, std::size_t i) {
    return from_input[which * count + i] + from_hidden[which * count + i];
  };
  for (std::size_t i = 0; i < count; ++i) {
    c[i] = logistic(gate(1, i)) * c[i] + logistic(gate(0, i)) * std::tanh(gate(2, i));
    h[i] = logistic(gate(3, i)) * std::tanh(c[i]);
  }
  return {};
}

refrain::Result<void> output_conv(std::span<const float> x, std::span<const float> weight,
                                  std::span<const float> bias, std::span<float> logit) {
  if (weight.size() != x.size()) return misfit("output_conv", "weight", weight.size(), x.size());
  if (bias.size() != 1) return misfit("output_conv", "bias", bias.size(), 1);
  if (logit.size() != 1) return misfit("output_conv", "logit", logit.size(), 1);
  logit[0] = bias[0] + dot(weight.data(), x.data(), x.size());
  return {};
}

refrain::Result<void> sigmoid(std::span<const float> x, std::span<float> y) {
  if (x.size() != y.size()) return misfit("sigmoid", "x", x.size(), y.size());
  for (std::size_t i = 0; i < y.size(); ++i) {
    y[i] = logistic(x[i]);
  }
  return {};
}

}  // namespace vad
