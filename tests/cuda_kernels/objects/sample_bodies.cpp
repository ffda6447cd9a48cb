// The kernels of the samples for the simulated driver, which runs no machine code: what one thread
// does, as nvcc compiles it for a GPU, for every thread of a launch. For SIM_KERNELS.
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>

#include "quickstart/saxpy_cuda.hpp"
#include "simcuda/control.hpp"
#include "vad/kernels_cuda.hpp"

namespace {

/// An argument as the thread takes it: a view is the memory behind its address.
template <class P>
P argument(const sim::Launch* launch, std::size_t at) {
  if constexpr (std::is_pointer_v<P>) {
    return static_cast<P>(launch->memory(launch, launch->argument<std::uint64_t>(at), 1));
  } else {
    return launch->argument<P>(at);
  }
}

template <auto kThread, class... P, std::size_t... At>
void run(const sim::Launch* launch, void (*)(std::size_t, P...), std::index_sequence<At...>) {
  const std::tuple<P...> arguments(argument<P>(launch, At)...);
  std::size_t threads = 1;
  for (int axis = 0; axis < 3; ++axis) {
    threads *= std::size_t{launch->grid[axis]} * launch->block[axis];
  }
  for (std::size_t index = 0; index < threads; ++index) {
    std::apply([&](P... each) { kThread(index, each...); }, arguments);
  }
}

template <class... P>
constexpr std::size_t count(void (*)(std::size_t, P...)) {
  return sizeof...(P);
}

template <auto kThread>
void body(const sim::Launch* launch) {
  run<kThread>(launch, kThread, std::make_index_sequence<count(kThread)>());
}

constexpr sim::NamedBody kBodies[] = {{"saxpy", body<saxpy_thread>},
                                      {"vad_join_context", body<vad::thread::join_context>},
                                      {"vad_reflect_end", body<vad::thread::reflect_end>},
                                      {"vad_keep_tail", body<vad::thread::keep_tail>},
                                      {"vad_stft", body<vad::thread::stft>},
                                      {"vad_magnitude", body<vad::thread::magnitude>},
                                      {"vad_conv1d", body<vad::thread::conv1d>},
                                      {"vad_relu", body<vad::thread::relu>},
                                      {"vad_matvec", body<vad::thread::matvec>},
                                      {"vad_lstm_cell", body<vad::thread::lstm_cell>},
                                      {"vad_output_conv", body<vad::thread::output_conv>},
                                      {"vad_sigmoid", body<vad::thread::sigmoid>},
                                      {nullptr, nullptr}};

}  // namespace

extern "C" __attribute__((visibility("default"))) const sim::NamedBody* simKernels() {
  return kBodies;
}
