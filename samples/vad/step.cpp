#include "vad/step.hpp"

#include <string>

namespace vad {
namespace {

using refrain::Role;

std::vector<refrain::Buffer<float>> make_weights(const refrain::Device& device,
                                                 const std::shared_ptr<const Weights>& weights) {
  std::vector<refrain::Buffer<float>> buffers;
  for (std::size_t i = 0; i < kTensors.size(); ++i) {
    const auto values = std::as_bytes((*weights)[static_cast<Tensor>(i)]);
    buffers.push_back(
        device.constant<float>(std::string(kTensors[i].name), refrain::SharedBytes(weights, values))
            .value());
  }
  return buffers;
}

std::vector<refrain::Buffer<float>> make_layers(const refrain::Device& device,
                                                const std::string& name) {
  std::vector<refrain::Buffer<float>> buffers;
  for (std::size_t layer = 0; layer < kEncoder.size(); ++layer) {
    buffers.push_back(device
                          .buffer<float>(name + "." + std::to_string(layer),
                                         kEncoder[layer].out_count(), Role::scratch)
                          .value());
  }
  return buffers;
}

}  // namespace

Step make_step(const refrain::Device& device, const std::shared_ptr<const Weights>& weights) {
  const auto buffer = [&](const char* name, std::size_t count, Role role = Role::scratch) {
    return device.buffer<float>(name, count, role).value();
  };
  return Step{
      .kernels = load_kernels(device),
      .weights = make_weights(device, weights),
      .samples = buffer(kSamples, kStepSamples, Role::input),
      .tail = buffer("tail", kTailSamples, Role::state),
      .joined = buffer("joined", kJoinedSamples),
      .padded = buffer("padded", kPaddedSamples),
      .spectrum = buffer("spectrum", kFilters * kFrames),
      .magnitudes = buffer("magnitudes", kBins * kFrames),
      .encoded = make_layers(device, "encoded"),
      .rectified = make_layers(device, "rectified"),
      .from_input = buffer("from_input", kGates),
      .from_hidden = buffer("from_hidden", kGates),
      .c = buffer("c", kHidden, Role::state),
      .h = buffer("h", kHidden, Role::state),
      .rectified_h = buffer("rectified_h", kHidden),
      .logit = buffer("logit", 1),
      .probability = buffer(kProbability, 1, Role::output),
  };
}

void launch_step(refrain::Stream& stream, const Step& step) {
  using refrain::grid;
  const Kernels& k = step.kernels;
  stream.launch(k.join_context, grid(kJoinedSamples), step.tail, step.samples, step.joined);
  stream.launch(k.reflect_end, grid(kPaddedSamples), step.joined, step.padded);
  stream.launch(k.keep_tail, grid(kTailSamples), step.joined, step.tail);
  stream.launch(k.stft, grid(step.spectrum.size()), step.padded, step.weight(Tensor::stft_basis),
                step.spectrum);
  stream.launch(k.magnitude, grid(step.magnitudes.size()), step.spectrum, step.magnitudes);
  for (std::size_t layer = 0; layer < kEncoder.size(); ++layer) {
    const ConvShape& shape = kEncoder[layer];
    const auto& input = layer == 0 ? step.magnitudes : step.rectified[layer - 1];
    const auto& encoded = step.encoded[layer];
    stream.launch(k.conv1d, grid(encoded.size()), input, step.weight(conv_weight(layer)),
                  step.weight(conv_bias(layer)), encoded, shape.in_channels, shape.out_channels,
                  shape.length, shape.stride);
    stream.launch(k.relu, grid(encoded.size()), encoded, step.rectified[layer],
                  static_cast<std::uint32_t>(encoded.size()));
  }
  stream.launch(k.matvec, grid(kGates), step.weight(Tensor::weight_ih),
                step.weight(Tensor::bias_ih), step.rectified.back(), step.from_input);
  stream.launch(k.matvec, grid(kGates), step.weight(Tensor::weight_hh),
                step.weight(Tensor::bias_hh), step.h, step.from_hidden);
  stream.launch(k.lstm_cell, grid(kHidden), step.from_input, step.from_hidden, step.c, step.h);
  stream.launch(k.relu, grid(kHidden), step.h, step.rectified_h, std::uint32_t{kHidden});
  stream.launch(k.output_conv, grid(1), step.rectified_h, step.weight(Tensor::output_weight),
                step.weight(Tensor::output_bias), step.logit);
  stream.launch(k.sigmoid, grid(1), step.logit, step.probability);
}

void reset(refrain::Stream& stream, const Step& step) {
  stream.fill(step.tail, 0.0F);
  stream.fill(step.c, 0.0F);
  stream.fill(step.h, 0.0F);
}

refrain::Result<refrain::Recording> record_step(refrain::Stream& stream, const Step& step) {
  auto window = stream.record();
  if (!window) return std::move(window).error();
  launch_step(stream, step);
  return window->seal({.name = kGraphName});
}

}  // namespace vad
