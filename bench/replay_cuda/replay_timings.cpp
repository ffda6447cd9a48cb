// What refrain adds to the one driver call of a replay: the floor is that call alone, through the
// same pointer, for a graph of as many of the same nodes that was made by hand. Over a driver that
// answers at once what is left is refrain; over a real one, how much it weighs. Measurements, never
// assertions.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string_view>

#include "distribution.hpp"
#include "driver_api.hpp"
#include "driver_error.hpp"
#include "refrain/cuda/device.hpp"
#include "refrain/refrain.hpp"

namespace refrain::bench {
namespace {

using Update = Kernel<InOut<float>, std::uint32_t>;
constexpr std::uint32_t kFloats = 16;
constexpr std::size_t kBatch = 64;  // replays between two syncs, as of a step that ends with a read

constexpr std::string_view kImage = R"ptx(
.version 7.0
.target sm_70
.address_size 64
.visible .entry update(.param .u64 y, .param .u32 n) { ret; }
)ptx";

void must(CUresult code) {
  if (code != CUDA_SUCCESS) throw BadResult(cuda::driver_error(code, "the bare driver"));
}

/// The same graph without refrain.
class BareGraph {
 public:
  BareGraph(const cuda::DriverApi& api, std::size_t nodes) : api_(api) {
    must(api.cuLibraryLoadData(&library_, kImage.data(), nullptr, nullptr, 0, nullptr, nullptr, 0));
    CUkernel kernel = nullptr;
    CUfunction function = nullptr;
    must(api.cuLibraryGetKernel(&kernel, library_, "update"));
    must(api.cuKernelGetFunction(&function, kernel));
    must(api.cuMemAlloc_v2(&memory_, nodes * 256));
    must(api.cuStreamCreateWithPriority(&stream_, CU_STREAM_NON_BLOCKING, 0));
    must(api.cuGraphCreate(&graph_, 0));
    for (std::size_t at = 0; at < nodes; ++at) {
      CUdeviceptr address = memory_ + at * 256;
      std::uint32_t count = kFloats;
      void* arguments[] = {&address, &count};
      CUDA_KERNEL_NODE_PARAMS params{};
      params.func = function;
      params.gridDimX = params.gridDimY = params.gridDimZ = 1;
      params.blockDimX = 256;
      params.blockDimY = params.blockDimZ = 1;
      params.kernelParams = arguments;
      CUgraphNode node = nullptr;
      must(api.cuGraphAddKernelNode_v2(&node, graph_, nullptr, 0, &params));
    }
    CUDA_GRAPH_INSTANTIATE_PARAMS params{};
    must(api.cuGraphInstantiateWithParams(&exec_, graph_, &params));
    must(api.cuGraphUpload(exec_, stream_));
    must(api.cuStreamSynchronize(stream_));
  }
  BareGraph(const BareGraph&) = delete;
  BareGraph& operator=(const BareGraph&) = delete;
  ~BareGraph() {
    api_.cuGraphExecDestroy(exec_);
    api_.cuGraphDestroy(graph_);
    api_.cuStreamDestroy_v2(stream_);
    api_.cuMemFree_v2(memory_);
    api_.cuLibraryUnload(library_);
  }
  void launch() const { must(api_.cuGraphLaunch(exec_, stream_)); }
  void sync() const { must(api_.cuStreamSynchronize(stream_)); }

 private:
  const cuda::DriverApi& api_;
  CUlibrary library_ = nullptr;
  CUdeviceptr memory_ = 0;
  CUstream stream_ = nullptr;
  CUgraph graph_ = nullptr;
  CUgraphExec exec_ = nullptr;
};

struct Figures {
  std::size_t nodes = 0;
  std::size_t buffers = 0;
  Distribution floor;
  Distribution replay;
};

/// The nanoseconds of one of `kBatch` calls.
template <class Call>
Nanoseconds timed(Call&& call) {
  const auto from = std::chrono::steady_clock::now();
  for (std::size_t i = 0; i < kBatch; ++i) call();
  return between(from, std::chrono::steady_clock::now()) / static_cast<double>(kBatch);
}

Figures measure(const cuda::Driver& driver, const cuda::Device& device, std::size_t nodes,
                std::size_t rounds) {
  Stream stream = device.stream().value();
  const Update update = device.kernel<Update>("update").value();
  std::vector<Buffer<float>> buffers;
  for (std::size_t i = 0; i < nodes; ++i) {
    buffers.push_back(
        device.buffer<float>("state " + std::to_string(i), kFloats, Role::state).value());
  }
  OpenWindow window = stream.record().value();
  for (const Buffer<float>& each : buffers) stream.launch(update, grid(kFloats), each, kFloats);
  const Recording recording = window.seal().value();
  Instance step = instance(recording).value();
  stream.write(buffers.front(), std::vector<float>(kFloats));
  const cuda::Entrance entered = device.enter();

  std::vector<Nanoseconds> floors;
  std::vector<Nanoseconds> replays;
  const BareGraph bare(driver.api(), nodes);
  for (std::size_t round = 0; round < rounds + 5; ++round) {
    // Neither finds the device busy with the other's work.
    const Nanoseconds floor = timed([&] { bare.launch(); });
    bare.sync();
    const Nanoseconds replay = timed([&] {
      auto replayed = step.replay(stream).into_result();
      if (!replayed.ok()) throw BadResult(replayed.error());
    });
    stream.sync().value();
    if (round < 5) continue;
    floors.push_back(floor);
    replays.push_back(replay);
  }
  return {nodes, buffers.size(), distribution(std::move(floors)), distribution(std::move(replays))};
}

int run(const std::string& library, std::size_t rounds, const std::string& json) {
  const cuda::Driver driver = cuda::Driver::open({library}).value();
  const cuda::Device device = cuda::Device::open({.driver = {library}}).value();
  device.add_image(SharedBytes::copy_of(std::as_bytes(std::span(kImage)))).value();
  nlohmann::json all = nlohmann::json::array();
  fmt::print("driver: {}\n", driver.device_name(0).value());
  fmt::print("{:>8} {:>12} {:>12} {:>12} {:>12} {:>12}\n", "nodes", "floor ns", "replay ns",
             "over it", "floor p99", "replay p99");
  for (const std::size_t nodes : {1U, 10U, 100U, 1000U, 10000U}) {
    const Figures figures = measure(driver, device, nodes, rounds);
    const Nanoseconds over = figures.replay.median - figures.floor.median;
    fmt::print("{:8} {:12.1f} {:12.1f} {:12.1f} {:12.1f} {:12.1f}\n", nodes, figures.floor.median,
               figures.replay.median, over, figures.floor.p99, figures.replay.p99);
    all.push_back({{"nodes", nodes},
                   {"floor_ns", figures.floor.median},
                   {"ns", figures.replay.median},
                   {"floor_p99_ns", figures.floor.p99},
                   {"p99_ns", figures.replay.p99},
                   {"over_ns", over}});
  }
  if (!json.empty()) std::ofstream(json) << all.dump(2) << "\n";
  return 0;
}

}  // namespace
}  // namespace refrain::bench

int main(int argc, char** argv) {
  CLI::App app("Times replays over a CUDA driver that does nothing.");
  std::string library = REFRAIN_NULL_DRIVER;
  std::size_t rounds = 201;
  std::string json;
  app.add_option("--driver", library,
                 "the CUDA driver; the system's is libcuda.so.1 (default: one that does nothing)");
  app.add_option("--rounds", rounds, "how many rounds a row has")->check(CLI::PositiveNumber);
  app.add_option("--json", json, "write the figures to this file too");
  CLI11_PARSE(app, argc, argv);
  return refrain::bench::run(library, rounds, json);
}
