// One step of the model on a device: the memory that it uses, said what each piece is for, and its
// 19 launches. The same `launch_step` runs the step, or, while a window is open, records it.
#pragma once

#include <memory>
#include <vector>

#include "refrain/refrain.hpp"
#include "vad/kernels.hpp"
#include "vad/model.hpp"
#include "vad/weights.hpp"

namespace vad {

/// What the recorded graph is called, and its bindings.
inline constexpr const char* kGraphName = "silero-vad";
inline constexpr const char* kSamples = "samples";
inline constexpr const char* kProbability = "probability";

/// The memory of a step and the kernels that work on it. The members stand in the order in which a
/// step uses them; what is scratch is written in a step before it is read.
struct Step {
  Kernels kernels;
  std::vector<refrain::Buffer<float>> weights;  ///< Constants, by `Tensor`.

  refrain::Buffer<float> samples;  ///< The input.
  refrain::Buffer<float> tail;     ///< State, like `c` and `h`: zero at the first step.
  refrain::Buffer<float> joined;
  refrain::Buffer<float> padded;
  refrain::Buffer<float> spectrum;
  refrain::Buffer<float> magnitudes;
  std::vector<refrain::Buffer<float>> encoded;    ///< By layer.
  std::vector<refrain::Buffer<float>> rectified;  ///< By layer.
  refrain::Buffer<float> from_input;
  refrain::Buffer<float> from_hidden;
  refrain::Buffer<float> c;
  refrain::Buffer<float> h;
  refrain::Buffer<float> rectified_h;
  refrain::Buffer<float> logit;
  refrain::Buffer<float> probability;  ///< The output.

  [[nodiscard]] const refrain::Buffer<float>& weight(Tensor tensor) const {
    return weights[index_of(tensor)];
  }
};

/// Memory for a step. The weights are used where they lie and stay alive as long as somebody uses
/// them. Throws `refrain::BadResult` when the device lacks a kernel or memory.
Step make_step(const refrain::Device& device, const std::shared_ptr<const Weights>& weights);

/// Issues the launches of one step: `samples` in, `probability` out, the state moved on. What goes
/// wrong is carried by what the step should have written.
void launch_step(refrain::Stream& stream, const Step& step);

/// Writes the start of every state, so that the next step is a first one.
void reset(refrain::Stream& stream, const Step& step);

/// Records one step: nothing runs. Fails with what kept the step from being recorded whole.
refrain::Result<refrain::Recording> record_step(refrain::Stream& stream, const Step& step);

}  // namespace vad
