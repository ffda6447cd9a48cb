// The stages of the model as kernels. What a launch reads, what it writes and how its parameters
// lie in memory all follow from the types here; a process that replays a capture has the same
// kernels by registering them through the same entry point, and shares nothing else with the one
// that recorded.
#pragma once

#include <cstdint>
#include <span>

#include "refrain/refrain.hpp"

namespace vad {

using JoinContext = refrain::Kernel<refrain::In<float>, refrain::In<float>, refrain::Out<float>>;
using ReflectEnd = refrain::Kernel<refrain::In<float>, refrain::Out<float>>;
using KeepTail = refrain::Kernel<refrain::In<float>, refrain::Out<float>>;
using Stft = refrain::Kernel<refrain::In<float>, refrain::In<float>, refrain::Out<float>>;
using Magnitude = refrain::Kernel<refrain::In<float>, refrain::Out<float>>;
using Conv1d =
    refrain::Kernel<refrain::In<float>, refrain::In<float>, refrain::In<float>, refrain::Out<float>,
                    std::int32_t, std::int32_t, std::int32_t, std::int32_t>;
/// The last is the count: it is launched with several, and a CUDA kernel cannot see which.
using Relu = refrain::Kernel<refrain::In<float>, refrain::Out<float>, std::uint32_t>;
using Matvec = refrain::Kernel<refrain::In<float>, refrain::In<float>, refrain::In<float>,
                               refrain::Out<float>>;
using LstmCell = refrain::Kernel<refrain::In<float>, refrain::In<float>, refrain::InOut<float>,
                                 refrain::Out<float>>;
using OutputConv = refrain::Kernel<refrain::In<float>, refrain::In<float>, refrain::In<float>,
                                   refrain::Out<float>>;
using Sigmoid = refrain::Kernel<refrain::In<float>, refrain::Out<float>>;

/// The relu as a kernel. Fails with `invalid_argument` when `count` is not that of the spans.
refrain::Result<void> counted_relu(std::span<const float> x, std::span<float> y,
                                   std::uint32_t count);

/// The one entry point that registers all stages.
void register_kernels(refrain::host::KernelRegistry& kernels);

/// Registers kernels of the same names and parameters that do nothing. With them a step costs what
/// issuing it costs.
void register_empty_kernels(refrain::host::KernelRegistry& kernels);

/// The kernels, loaded and ready to be launched.
struct Kernels {
  JoinContext join_context;
  ReflectEnd reflect_end;
  KeepTail keep_tail;
  Stft stft;
  Magnitude magnitude;
  Conv1d conv1d;
  Relu relu;
  Matvec matvec;
  LstmCell lstm_cell;
  OutputConv output_conv;
  Sigmoid sigmoid;
};

/// Loads the kernels of a device. Throws `refrain::BadResult` when one is not registered with it.
Kernels load_kernels(const refrain::Device& device);

}  // namespace vad
