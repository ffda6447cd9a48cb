// The CUDA kernels of `vad`, thread by thread on the host: each gives the bits of the stage that it
// stands for, on random values and in every launch of the model over real speech. It is the source
// that nvcc compiles; what a GPU makes of it is not shown here.
#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <random>
#include <span>
#include <vector>

#include "refrain/refrain.hpp"
#include "thread_launch.hpp"
#include "vad/audio.hpp"
#include "vad/kernels.hpp"
#include "vad/kernels_cuda.hpp"
#include "vad/model.hpp"
#include "vad/probabilities.hpp"
#include "vad/session.hpp"
#include "vad/weights.hpp"
#include "vad_fixture.hpp"

namespace {

using refrain::grid;
using thread_launch::compared;

/// Random values, and room for the answers to them.
class Values {
 public:
  explicit Values(std::mt19937& random) : random_(random) {}

  std::span<float> operator()(std::size_t count) {
    std::uniform_real_distribution<float> between(-4.0F, 4.0F);
    auto& values = made_.emplace_back(count);
    for (float& value : values) value = between(random_);
    return values;
  }
  std::int32_t number(std::int32_t most) {
    return std::uniform_int_distribution<std::int32_t>(1, most)(random_);
  }

 private:
  std::mt19937& random_;
  std::list<std::vector<float>> made_;
};

TEST_CASE("vad: the threads of each CUDA kernel give the bits of its stage on random values") {
  const auto seed = std::random_device{}();
  CAPTURE(seed);
  std::mt19937 random(seed);
  Values values(random);
  for (int round = 0; round < 5; ++round) {
    CAPTURE(round);
    compared<vad::JoinContext>(vad::join_context, vad::thread::join_context, random)(
        grid(vad::kJoinedSamples), values(vad::kTailSamples), values(vad::kStepSamples),
        values(vad::kJoinedSamples));
    compared<vad::ReflectEnd>(vad::reflect_end, vad::thread::reflect_end, random)(
        grid(vad::kPaddedSamples), values(vad::kJoinedSamples), values(vad::kPaddedSamples));
    compared<vad::KeepTail>(vad::keep_tail, vad::thread::keep_tail, random)(
        grid(vad::kTailSamples), values(vad::kJoinedSamples), values(vad::kTailSamples));
    compared<vad::Stft>(vad::stft, vad::thread::stft, random)(
        grid(vad::kFilters * vad::kFrames), values(vad::kPaddedSamples),
        values(vad::kFilters * vad::kWindow), values(vad::kFilters * vad::kFrames));
    compared<vad::Magnitude>(vad::magnitude, vad::thread::magnitude, random)(
        grid(vad::kBins * vad::kFrames), values(vad::kFilters * vad::kFrames),
        values(vad::kBins * vad::kFrames));
    compared<vad::Matvec>(vad::matvec, vad::thread::matvec, random)(
        grid(vad::kGates), values(vad::kGates * vad::kHidden), values(vad::kGates),
        values(vad::kHidden), values(vad::kGates));
    compared<vad::LstmCell>(vad::lstm_cell, vad::thread::lstm_cell, random)(
        grid(vad::kHidden), values(vad::kGates), values(vad::kGates), values(vad::kHidden),
        values(vad::kHidden));
    compared<vad::OutputConv>(vad::output_conv, vad::thread::output_conv, random)(
        grid(1), values(vad::kHidden), values(vad::kHidden), values(1), values(1));
    compared<vad::Sigmoid>(vad::sigmoid, vad::thread::sigmoid, random)(grid(1), values(1),
                                                                       values(1));
  }
}

TEST_CASE("vad: the CUDA kernels that take their sizes give the bits of their stages for any") {
  const auto seed = std::random_device{}();
  CAPTURE(seed);
  std::mt19937 random(seed);
  Values values(random);
  for (int round = 0; round < 100; ++round) {
    const auto count = static_cast<std::uint32_t>(values.number(600));
    CAPTURE(count);
    compared<vad::Relu>(vad::counted_relu, vad::thread::relu, random)(grid(count), values(count),
                                                                      values(count), count);

    const vad::ConvShape shape = {values.number(40), values.number(40), values.number(9),
                                  values.number(4)};
    CAPTURE(shape.in_channels);
    CAPTURE(shape.out_channels);
    CAPTURE(shape.length);
    CAPTURE(shape.stride);
    const auto ins = static_cast<std::size_t>(shape.in_channels);
    const auto outs = static_cast<std::size_t>(shape.out_channels);
    compared<vad::Conv1d>(vad::conv1d, vad::thread::conv1d, random)(
        grid(shape.out_count()), values(ins * static_cast<std::size_t>(shape.length)),
        values(outs * ins * 3), values(outs), values(shape.out_count()), shape.in_channels,
        shape.out_channels, shape.length, shape.stride);
  }
}

TEST_CASE("vad: a convolution of no channels, length or stride has no work for a CUDA thread") {
  const std::vector<float> in(64, 1.0F);
  std::vector<float> out(64, 9.0F);
  const auto run = [&](std::int32_t ins, std::int32_t outs, std::int32_t length,
                       std::int32_t stride) {
    for (std::size_t index = 0; index < out.size(); ++index) {
      vad::thread::conv1d(index, in.data(), in.data(), in.data(), out.data(), ins, outs, length,
                          stride);
    }
  };
  run(0, 1, 4, 1);
  run(1, 0, 4, 1);
  run(1, 1, 0, 1);
  run(1, 1, 4, 0);
  run(-1, -1, -4, -1);
  CHECK(out == std::vector<float>(64, 9.0F));
}

TEST_CASE("vad: a launch of the relu whose count is not that of its values fails") {
  const std::vector<float> x(4);
  std::vector<float> y(4, 9.0F);
  const auto outcome = vad::counted_relu(x, y, 3);
  REQUIRE_FALSE(outcome.ok());
  CHECK(outcome.error().kind() == refrain::ErrorKind::invalid_argument);
  CHECK(vad_test::mentions(outcome.error().text(), "a count of 3 and 4 values"));
  CHECK(y == std::vector<float>(4, 9.0F));
}

/// Registers what `compared` makes of a stage and its thread.
template <class K, class Stage>
void add(refrain::host::KernelRegistry& kernels, std::mt19937& random, const char* name,
         Stage stage, typename thread_launch::Both<K>::Thread thread) {
  kernels.add<K>(name, compared<K>(stage, thread, random));
}

TEST_CASE("vad: the CUDA threads of all 19 launches give the reference over 87 steps of speech") {
  const auto seed = std::random_device{}();
  CAPTURE(seed);
  std::mt19937 random(seed);
  refrain::host::Device device;
  auto& kernels = device.kernels();
  add<vad::JoinContext>(kernels, random, "vad.join_context", vad::join_context,
                        vad::thread::join_context);
  add<vad::ReflectEnd>(kernels, random, "vad.reflect_end", vad::reflect_end,
                       vad::thread::reflect_end);
  add<vad::KeepTail>(kernels, random, "vad.keep_tail", vad::keep_tail, vad::thread::keep_tail);
  add<vad::Stft>(kernels, random, "vad.stft", vad::stft, vad::thread::stft);
  add<vad::Magnitude>(kernels, random, "vad.magnitude", vad::magnitude, vad::thread::magnitude);
  add<vad::Conv1d>(kernels, random, "vad.conv1d", vad::conv1d, vad::thread::conv1d);
  add<vad::Relu>(kernels, random, "vad.relu", vad::counted_relu, vad::thread::relu);
  add<vad::Matvec>(kernels, random, "vad.matvec", vad::matvec, vad::thread::matvec);
  add<vad::LstmCell>(kernels, random, "vad.lstm_cell", vad::lstm_cell, vad::thread::lstm_cell);
  add<vad::OutputConv>(kernels, random, "vad.output_conv", vad::output_conv,
                       vad::thread::output_conv);
  add<vad::Sigmoid>(kernels, random, "vad.sigmoid", vad::sigmoid, vad::thread::sigmoid);

  const auto weights =
      std::make_shared<const vad::Weights>(vad::read_weights(vad_test::kWeights).value());
  const vad::Audio speech = vad::read_audio(vad_test::kSpeech).value();
  vad::EagerSession session(device, weights);
  const auto found = vad::probabilities_of(vad::run(session, speech));
  const auto expected = vad::read_probabilities(vad_test::kReference).value();
  REQUIRE(found.size() == 87);
  REQUIRE(expected.size() == 87);
  const double difference = vad::largest_difference(found, expected);
  MESSAGE("the largest difference to the reference is ", difference);
  CHECK(difference <= vad::kTolerance);
}

}  // namespace
