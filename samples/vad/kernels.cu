// The entries of the CUDA kernels. A kernel is found in the image by its registered name with the
// dots made underscores, and takes exactly the parameter block of its type in kernels.hpp; what a
// thread does is in kernels_cuda.hpp.
#include "vad/kernels_cuda.hpp"

#define VAD_KERNEL extern "C" __global__ void __launch_bounds__(vad::thread::kBlock)

namespace {

__device__ std::size_t this_thread() {
  return static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}

}  // namespace

VAD_KERNEL vad_join_context(const float* tail, const float* samples, float* joined) {
  vad::thread::join_context(this_thread(), tail, samples, joined);
}

VAD_KERNEL vad_reflect_end(const float* joined, float* padded) {
  vad::thread::reflect_end(this_thread(), joined, padded);
}

VAD_KERNEL vad_keep_tail(const float* joined, float* tail) {
  vad::thread::keep_tail(this_thread(), joined, tail);
}

VAD_KERNEL vad_stft(const float* padded, const float* basis, float* spectrum) {
  vad::thread::stft(this_thread(), padded, basis, spectrum);
}

VAD_KERNEL vad_magnitude(const float* spectrum, float* magnitudes) {
  vad::thread::magnitude(this_thread(), spectrum, magnitudes);
}

VAD_KERNEL vad_conv1d(const float* input, const float* weight, const float* bias, float* output,
                      std::int32_t in_channels, std::int32_t out_channels, std::int32_t length,
                      std::int32_t stride) {
  vad::thread::conv1d(this_thread(), input, weight, bias, output, in_channels, out_channels, length,
                      stride);
}

VAD_KERNEL vad_relu(const float* x, float* y, std::uint32_t count) {
  vad::thread::relu(this_thread(), x, y, count);
}

VAD_KERNEL vad_matvec(const float* weight, const float* bias, const float* x, float* y) {
  vad::thread::matvec(this_thread(), weight, bias, x, y);
}

VAD_KERNEL vad_lstm_cell(const float* from_input, const float* from_hidden, float* c, float* h) {
  vad::thread::lstm_cell(this_thread(), from_input, from_hidden, c, h);
}

VAD_KERNEL vad_output_conv(const float* x, const float* weight, const float* bias, float* logit) {
  vad::thread::output_conv(this_thread(), x, weight, bias, logit);
}

VAD_KERNEL vad_sigmoid(const float* x, float* y) { vad::thread::sigmoid(this_thread(), x, y); }
