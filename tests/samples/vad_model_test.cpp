// The stages of the model called one after another, without a device: what they compute is right
// before anything is launched or recorded.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include "vad/audio.hpp"
#include "vad/model.hpp"
#include "vad/weights.hpp"

namespace {

constexpr float kTolerance = 1e-5F;

/// One stream of speech: what is remembered between steps, and scratch.
class Session {
 public:
  explicit Session(const vad::Weights& weights) : weights_(weights) {
    // Scratch is filled with what no stage may read, since each writes all of its output first.
    const float poison = std::numeric_limits<float>::quiet_NaN();
    for (auto* scratch : {&joined_, &padded_, &spectrum_, &magnitudes_, &from_input_, &from_hidden_,
                          &rectified_h_, &logit_, &probability_}) {
      std::fill(scratch->begin(), scratch->end(), poison);
    }
    for (std::size_t layer = 0; layer < vad::kEncoder.size(); ++layer) {
      encoded_[layer].assign(vad::kEncoder[layer].out_count(), poison);
      rectified_[layer].assign(vad::kEncoder[layer].out_count(), poison);
    }
  }

  float step(std::span<const float> samples) {
    using vad::Tensor;
    launches_ = 0;
    ran(vad::join_context(tail_, samples, joined_));
    ran(vad::reflect_end(joined_, padded_));
    ran(vad::keep_tail(joined_, tail_));
    ran(vad::stft(padded_, weights_[Tensor::stft_basis], spectrum_));
    ran(vad::magnitude(spectrum_, magnitudes_));
    std::span<const float> input = magnitudes_;
    for (std::size_t layer = 0; layer < vad::kEncoder.size(); ++layer) {
      const vad::ConvShape& shape = vad::kEncoder[layer];
      ran(vad::conv1d(input, weights_[vad::conv_weight(layer)], weights_[vad::conv_bias(layer)],
                      encoded_[layer], shape.in_channels, shape.out_channels, shape.length,
                      shape.stride));
      ran(vad::relu(encoded_[layer], rectified_[layer]));
      input = rectified_[layer];
    }
    ran(vad::matvec(weights_[Tensor::weight_ih], weights_[Tensor::bias_ih], input, from_input_));
    ran(vad::matvec(weights_[Tensor::weight_hh], weights_[Tensor::bias_hh], h_, from_hidden_));
    ran(vad::lstm_cell(from_input_, from_hidden_, c_, h_));
    ran(vad::relu(h_, rectified_h_));
    ran(vad::output_conv(rectified_h_, weights_[Tensor::output_weight],
                         weights_[Tensor::output_bias], logit_));
    ran(vad::sigmoid(logit_, probability_));
    REQUIRE(launches_ == vad::kLaunchesPerStep);
    return probability_[0];
  }

 private:
  void ran(const refrain::Result<void>& outcome) {
    if (!outcome) FAIL(outcome.error().text());
    ++launches_;
  }

  const vad::Weights& weights_;
  std::size_t launches_ = 0;
  std::vector<float> tail_ = std::vector<float>(vad::kTailSamples);
  std::vector<float> c_ = std::vector<float>(vad::kHidden);
  std::vector<float> h_ = std::vector<float>(vad::kHidden);
  std::vector<float> joined_ = std::vector<float>(vad::kJoinedSamples);
  std::vector<float> padded_ = std::vector<float>(vad::kPaddedSamples);
  std::vector<float> spectrum_ = std::vector<float>(vad::kFilters * vad::kFrames);
  std::vector<float> magnitudes_ = std::vector<float>(vad::kBins * vad::kFrames);
  std::array<std::vector<float>, 4> encoded_;
  std::array<std::vector<float>, 4> rectified_;
  std::vector<float> from_input_ = std::vector<float>(vad::kGates);
  std::vector<float> from_hidden_ = std::vector<float>(vad::kGates);
  std::vector<float> rectified_h_ = std::vector<float>(vad::kHidden);
  std::vector<float> logit_ = std::vector<float>(1);
  std::vector<float> probability_ = std::vector<float>(1);
};

vad::Weights weights() {
  auto read = vad::read_weights(VAD_DATA_DIR "/silero_vad_v6_16k.safetensors");
  REQUIRE(read.ok());
  return *std::move(read);
}

vad::Audio audio() {
  auto read = vad::read_audio(VAD_DATA_DIR "/goforward.raw");
  REQUIRE(read.ok());
  return *std::move(read);
}

TEST_CASE("vad: the stages called one after another give the 87 reference probabilities") {
  std::vector<float> expected;
  std::ifstream file(VAD_DATA_DIR "/goforward.probabilities.txt");
  for (float value = 0; file >> value;) {
    expected.push_back(value);
  }
  REQUIRE(expected.size() == 87);

  const vad::Weights model = weights();
  const vad::Audio speech = audio();
  REQUIRE(speech.steps() == expected.size());
  Session session(model);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    INFO("step " << i);
    const float probability = session.step(speech.step(i));
    // Written so that a NaN fails.
    CHECK(std::abs(probability - expected[i]) <= kTolerance);
  }
}

TEST_CASE("vad: two sessions that take turns are each the same as alone") {
  const vad::Weights model = weights();
  const vad::Audio speech = audio();
  Session alone(model);
  std::vector<float> expected;
  for (std::size_t i = 0; i < speech.steps(); ++i) {
    expected.push_back(alone.step(speech.step(i)));
  }

  constexpr std::size_t kLate = 7;
  Session first(model);
  Session second(model);
  for (std::size_t i = 0; i < speech.steps() + kLate; ++i) {
    INFO("step " << i);
    if (i < speech.steps()) CHECK(first.step(speech.step(i)) == expected[i]);
    if (i >= kLate) CHECK(second.step(speech.step(i - kLate)) == expected[i - kLate]);
  }
}

TEST_CASE("vad: the context goes in front and the end is mirrored without its last sample") {
  std::vector<float> tail = {1, 2};
  const std::vector<float> samples = {3, 4, 5, 6};
  std::vector<float> joined(6);
  std::vector<float> padded(8);
  REQUIRE(vad::join_context(tail, samples, joined).ok());
  REQUIRE(vad::reflect_end(joined, padded).ok());
  REQUIRE(vad::keep_tail(joined, tail).ok());
  CHECK(padded == std::vector<float>{1, 2, 3, 4, 5, 6, 5, 4});
  CHECK(tail == std::vector<float>{5, 6});
}

TEST_CASE("vad: a convolution pads with zeros and keeps every stride-th position") {
  const std::vector<float> input = {1, 2, 3, 4, 10, 20, 30, 40};  // two channels of four
  const std::vector<float> weight = {1, 0, 0, 0, 0, 1};  // the left neighbour, the right neighbour
  const std::vector<float> bias = {0.5F};
  std::vector<float> every(4);
  std::vector<float> second(2);
  REQUIRE(vad::conv1d(input, weight, bias, every, 2, 1, 4, 1).ok());
  REQUIRE(vad::conv1d(input, weight, bias, second, 2, 1, 4, 2).ok());
  CHECK(every == std::vector<float>{20.5F, 31.5F, 42.5F, 3.5F});
  CHECK(second == std::vector<float>{20.5F, 42.5F});
}

TEST_CASE("vad: a relu keeps a NaN so that poison is seen at the end") {
  const std::vector<float> x = {-1, 2, std::numeric_limits<float>::quiet_NaN()};
  std::vector<float> y(3);
  REQUIRE(vad::relu(x, y).ok());
  CHECK(y[0] == 0.0F);
  CHECK(y[1] == 2.0F);
  CHECK(std::isnan(y[2]));
}

TEST_CASE("vad: a stage given sizes that do not fit answers with an error and writes nothing") {
  const std::vector<float> in(4096, 1.0F);
  const std::span<const float> data = in;
  std::vector<float> output(64, 9.0F);
  const std::span<float> out = output;
  constexpr std::int32_t kMost = std::numeric_limits<std::int32_t>::max();

  const std::vector<refrain::Result<void>> outcomes = {
      vad::join_context(data.first(2), data.first(2), out.first(5)),
      vad::reflect_end(data.first(4), out.first(3)),
      vad::reflect_end(data.first(4), out.first(8)),
      vad::reflect_end(data.first(0), out.first(0)),
      vad::keep_tail(data.first(2), out.first(3)),
      vad::stft(data.first(255), data.first(256), out.first(1)),
      vad::stft(data.first(256), data.first(255), out.first(1)),
      vad::stft(data.first(256), data.first(256), out.first(2)),
      vad::magnitude(data.first(3), out.first(2)),
      vad::conv1d(data.first(4), data.first(3), data.first(1), out.first(4), 0, 1, 4, 1),
      vad::conv1d(data.first(4), data.first(3), data.first(1), out.first(4), 1, 1, 4, 0),
      vad::conv1d(data.first(4), data.first(3), data.first(1), out.first(4), -1, -1, -4, -1),
      vad::conv1d(data.first(4), data.first(3), data.first(1), out.first(4), kMost, kMost, kMost,
                  kMost),
      vad::conv1d(data.first(4), data.first(3), data.first(1), out.first(4), 1, kMost, kMost, 1),
      vad::conv1d(data.first(3), data.first(3), data.first(1), out.first(4), 1, 1, 4, 1),
      vad::conv1d(data.first(4), data.first(2), data.first(1), out.first(4), 1, 1, 4, 1),
      vad::conv1d(data.first(4), data.first(3), data.first(2), out.first(4), 1, 1, 4, 1),
      vad::conv1d(data.first(4), data.first(3), data.first(1), out.first(3), 1, 1, 4, 1),
      vad::relu(data.first(3), out.first(4)),
      vad::matvec(data.first(6), data.first(3), data.first(3), out.first(2)),
      vad::matvec(data.first(5), data.first(2), data.first(3), out.first(2)),
      vad::lstm_cell(data.first(8), data.first(8), out.first(3), out.last(2)),
      vad::lstm_cell(data.first(7), data.first(8), out.first(2), out.last(2)),
      vad::lstm_cell(data.first(8), data.first(9), out.first(2), out.last(2)),
      vad::output_conv(data.first(3), data.first(4), data.first(1), out.first(1)),
      vad::output_conv(data.first(3), data.first(3), data.first(2), out.first(1)),
      vad::output_conv(data.first(3), data.first(3), data.first(1), out.first(2)),
      vad::sigmoid(data.first(3), out.first(4)),
  };
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    INFO("outcome " << i);
    REQUIRE_FALSE(outcomes[i].ok());
    CHECK(outcomes[i].error().kind() == refrain::ErrorKind::invalid_argument);
    CHECK(outcomes[i].error().text().rfind("The stage \"", 0) == 0);
  }
  CHECK(std::all_of(output.begin(), output.end(), [](float value) { return value == 9.0F; }));
}

}  // namespace
