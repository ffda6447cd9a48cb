#include "vad/kernels.hpp"

#include <fmt/format.h>

#include "vad/model.hpp"

namespace vad {
namespace {

// Names in captures: a stage that computes something else needs another version.
constexpr const char* kJoinContext = "vad.join_context";
constexpr const char* kReflectEnd = "vad.reflect_end";
constexpr const char* kKeepTail = "vad.keep_tail";
constexpr const char* kStft = "vad.stft";
constexpr const char* kMagnitude = "vad.magnitude";
constexpr const char* kConv1d = "vad.conv1d";
constexpr const char* kRelu = "vad.relu";
constexpr const char* kMatvec = "vad.matvec";
constexpr const char* kLstmCell = "vad.lstm_cell";
constexpr const char* kOutputConv = "vad.output_conv";
constexpr const char* kSigmoid = "vad.sigmoid";

/// Registers under each stage's name what `body_of` makes of it.
template <class BodyOf>
void add_stages(refrain::host::KernelRegistry& kernels, const BodyOf& body_of) {
  kernels.add<JoinContext>(kJoinContext, body_of(join_context));
  kernels.add<ReflectEnd>(kReflectEnd, body_of(reflect_end));
  kernels.add<KeepTail>(kKeepTail, body_of(keep_tail));
  kernels.add<Stft>(kStft, body_of(stft));
  kernels.add<Magnitude>(kMagnitude, body_of(magnitude));
  kernels.add<Conv1d>(kConv1d, body_of(conv1d));
  kernels.add<Relu>(kRelu, body_of(counted_relu));
  kernels.add<Matvec>(kMatvec, body_of(matvec));
  kernels.add<LstmCell>(kLstmCell, body_of(lstm_cell));
  kernels.add<OutputConv>(kOutputConv, body_of(output_conv));
  kernels.add<Sigmoid>(kSigmoid, body_of(sigmoid));
}

}  // namespace

refrain::Result<void> counted_relu(std::span<const float> x, std::span<float> y,
                                   std::uint32_t count) {
  if (count != y.size()) {
    return refrain::Error(
        refrain::ErrorKind::invalid_argument,
        fmt::format(R"(The stage "relu" is given a count of {} and {} values in "y".)", count,
                    y.size()));
  }
  return relu(x, y);
}

void register_kernels(refrain::host::KernelRegistry& kernels) {
  add_stages(kernels, [](auto stage) { return stage; });
}

void register_empty_kernels(refrain::host::KernelRegistry& kernels) {
  add_stages(kernels, [](auto) { return [](const auto&...) {}; });
}

Kernels load_kernels(const refrain::Device& device) {
  return Kernels{
      .join_context = device.kernel<JoinContext>(kJoinContext).value(),
      .reflect_end = device.kernel<ReflectEnd>(kReflectEnd).value(),
      .keep_tail = device.kernel<KeepTail>(kKeepTail).value(),
      .stft = device.kernel<Stft>(kStft).value(),
      .magnitude = device.kernel<Magnitude>(kMagnitude).value(),
      .conv1d = device.kernel<Conv1d>(kConv1d).value(),
      .relu = device.kernel<Relu>(kRelu).value(),
      .matvec = device.kernel<Matvec>(kMatvec).value(),
      .lstm_cell = device.kernel<LstmCell>(kLstmCell).value(),
      .output_conv = device.kernel<OutputConv>(kOutputConv).value(),
      .sigmoid = device.kernel<Sigmoid>(kSigmoid).value(),
  };
}

}  // namespace vad
