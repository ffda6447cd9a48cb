// Streams, memory and contexts of the program's own.
#include <atomic>
#include <chrono>
#include <memory>
#include <thread>

#include "driver_api.hpp"
#include "gpu.hpp"

namespace refrain::test {
namespace {

/// What a program has that uses CUDA itself.
struct Program {
  explicit Program(const Gpu& gpu) : entered(gpu.device->enter()) {
    REQUIRE(api.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
    REQUIRE(api.cuMemAlloc_v2(&memory, kBytes) == CUDA_SUCCESS);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  ~Program() {
    CHECK(api.cuStreamSynchronize(stream) == CUDA_SUCCESS);
    CHECK(api.cuMemFree_v2(memory) == CUDA_SUCCESS);
    CHECK(api.cuStreamDestroy_v2(stream) == CUDA_SUCCESS);
  }
  static constexpr std::size_t kBytes = Gpu::kCount * sizeof(float);
  cuda::Driver driver = cuda::Driver::open({REFRAIN_SIMCUDA}).value();
  const cuda::DriverApi& api = driver.api();
  cuda::Entrance entered;
  CUstream stream = nullptr;
  CUdeviceptr memory = 0;
};

}  // namespace

TEST_CASE(
    "cuda: work goes to a stream of the program's, in the order of what the program does there") {
  const Gpu gpu;
  const Program program(gpu);
  const std::size_t streams = gpu.control->live("stream");
  {
    Stream stream = gpu.device->adopt_stream(program.stream).value();
    const auto x = gpu.device->adopt<float>("x", program.memory, Gpu::kCount, Role::input).value();
    const Buffer<float> y = gpu.buffer("y");
    const auto map = gpu.kernel<Map>("map");
    gpu.control->hold();
    REQUIRE(program.api.cuMemsetD32Async(program.memory, 0x40000000, Gpu::kCount, program.stream) ==
            CUDA_SUCCESS);
    CHECK(stream.launch(map, grid(Gpu::kCount), x, y, Gpu::kCount).executed_cleanly());
    gpu.control->release();
    CHECK(stream.read(y).value() == all(3));

    OpenWindow window = stream.record().value();
    stream.launch(map, grid(Gpu::kCount), x, y, Gpu::kCount);
    const Recording recording = window.seal().value();
    Instance step = instance(recording).value();
    stream.write(x, all(7));
    CHECK(step.replay(stream).executed_cleanly());
    CHECK(stream.read(y).value() == all(8));
  }
  CHECK(gpu.control->live("stream") == streams);
}

TEST_CASE(
    "B24: nothing is issued to a stream that somebody else captures, and waits do not touch it") {
  const Gpu gpu;
  const Program program(gpu);
  Stream stream = gpu.device->adopt_stream(program.stream).value();
  const Buffer<float> x = gpu.filled(stream, "x", 1);
  const Buffer<float> y = gpu.filled(stream, "y", 2);
  const auto map = gpu.kernel<Map>("map");
  CHECK(stream.launch(map, grid(Gpu::kCount), x, y, Gpu::kCount).executed_cleanly());
  REQUIRE(program.api.cuStreamBeginCapture_v2(program.stream, CU_STREAM_CAPTURE_MODE_GLOBAL) ==
          CUDA_SUCCESS);
  CHECK(stream.read(y).value() == all(2));
  CHECK(stream.sync().ok());
  const auto refused = stream.launch(map, grid(Gpu::kCount), x, y, Gpu::kCount);
  REQUIRE(refused.failed());
  CHECK(refused.error().kind() == ErrorKind::wrong_state);
  CHECK_FALSE(stream.record_event().ok());
  CHECK_FALSE(gpu.device->adopt_stream(program.stream).ok());
  // Their capture has come to no harm.
  REQUIRE(program.api.cuMemsetD8Async(program.memory, 1, 1, program.stream) == CUDA_SUCCESS);
  CUgraph graph = nullptr;
  REQUIRE(program.api.cuStreamEndCapture(program.stream, &graph) == CUDA_SUCCESS);
  std::size_t nodes = 0;
  CHECK(program.api.cuGraphGetNodes(graph, nullptr, &nodes) == CUDA_SUCCESS);
  CHECK(nodes == 1);
  CHECK(program.api.cuGraphDestroy(graph) == CUDA_SUCCESS);
  CHECK(stream.launch(map, grid(Gpu::kCount), x, y, Gpu::kCount).executed_cleanly());
  CHECK(stream.read(y).value() == all(2));
}

TEST_CASE("B20: what the library allocates, frees, loads and asks breaks no capture of anybody") {
  const Gpu gpu;
  const Program program(gpu);
  REQUIRE(program.api.cuStreamBeginCapture_v2(program.stream, CU_STREAM_CAPTURE_MODE_GLOBAL) ==
          CUDA_SUCCESS);
  const auto work = [&] {
    Stream stream = gpu.stream();
    const Buffer<float> x = gpu.filled(stream, "x", 1, Role::input);
    const Buffer<float> y = gpu.buffer("y");
    const auto map = gpu.kernel<Map>("map");
    OpenWindow window = stream.record().value();
    stream.launch(map, grid(Gpu::kCount), x, y, Gpu::kCount);
    const Recording recording = window.seal().value();
    Instance step = instance(recording).value();
    CHECK(step.replay(stream).executed_cleanly());
    stream.host<InOut<float>>(
        {"own"}, [](std::span<float> each) { each[0] += 1; }, y);
    const Event event = stream.record_event().value();
    CHECK(event.wait().ok());
    CHECK(event.reached().value());
    CHECK(stream.read(y).value()[0] == 3);
  };
  work();                    // in the thread that captures
  std::thread(work).join();  // and in another
  REQUIRE(program.api.cuMemsetD8Async(program.memory, 1, 1, program.stream) == CUDA_SUCCESS);
  CUgraph graph = nullptr;
  CHECK(program.api.cuStreamEndCapture(program.stream, &graph) == CUDA_SUCCESS);
  CHECK(program.api.cuGraphDestroy(graph) == CUDA_SUCCESS);
}

TEST_CASE("B25: what is destroyed inside a window is destroyed in the driver when it has closed") {
  const Gpu gpu;
  Stream stream = gpu.stream();
  std::optional<Stream> other(gpu.stream());
  const Buffer<float> x = gpu.filled(stream, "x", 1, Role::input);
  const Buffer<float> y = gpu.buffer("y");
  std::optional<Buffer<float>> z(gpu.buffer("z"));
  const auto map = gpu.kernel<Map>("map");
  std::optional<Event> event(stream.record_event().value());
  std::optional<Instance> old;
  {
    OpenWindow window = stream.record().value();
    stream.launch(map, grid(Gpu::kCount), x, y, Gpu::kCount);
    old.emplace(instance(window.seal().value()).value());
  }
  OpenWindow window = stream.record().value();
  stream.launch(map, grid(Gpu::kCount), x, y, Gpu::kCount);
  gpu.control->clear_journal();
  event.reset();
  z.reset();
  old.reset();
  other.reset();
  CHECK(gpu.journal().empty());
  CHECK(window.seal().ok());
  CHECK(gpu.control->calls("cuEventDestroy_v2") == 2);  // and the fence of the stream
  CHECK(gpu.control->calls("cuMemFree_v2") == 1);
  CHECK(gpu.control->calls("cuGraphExecDestroy") == 1);
  CHECK(gpu.control->calls("cuStreamDestroy_v2") == 1);
}

TEST_CASE("E2: host work on an adopted stream that is refused half way has ended with its call") {
  const Gpu gpu;
  const Program program(gpu);
  Stream stream = gpu.device->adopt_stream(program.stream).value();
  const Buffer<float> x = gpu.filled(stream, "x", 1);
  CHECK(stream.launch(gpu.kernel<Update>("update"), grid(Gpu::kCount), x, Gpu::kCount)
            .executed_cleanly());
  CHECK(stream.sync().ok());
  gpu.control->hold();
  gpu.control->fault("cuMemcpyHtoDAsync_v2", 1, 2, sim::Effect::refuse);
  std::thread releases([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    gpu.control->release();
  });
  std::atomic<int> runs{0};
  const auto kept = std::make_shared<int>(7);
  CHECK(stream
            .host<InOut<float>>(
                {"late"}, [&runs, kept](std::span<float>) { ++runs; }, x)
            .failed());
  const int then = runs;
  CHECK(kept.use_count() == 1);  // nothing can run any more that would use it
  releases.join();
  CHECK(program.api.cuStreamSynchronize(program.stream) == CUDA_SUCCESS);
  CHECK(runs == then);
}

TEST_CASE("cuda: a fence that is refused is no reason to touch a stream that its owner captures") {
  const Gpu gpu;
  const Program program(gpu);
  Stream stream = gpu.device->adopt_stream(program.stream).value();
  const Buffer<float> x = gpu.filled(stream, "x", 1);
  const auto update = gpu.kernel<Update>("update");
  for (const char* const call : {"cuEventRecord", "cuEventSynchronize"}) {
    CAPTURE(call);
    gpu.control->fault(call, 1, 2, sim::Effect::refuse);
    CHECK(stream.launch(update, grid(Gpu::kCount), x, Gpu::kCount).executed_cleanly());
    REQUIRE(program.api.cuStreamBeginCapture_v2(program.stream, CU_STREAM_CAPTURE_MODE_GLOBAL) ==
            CUDA_SUCCESS);
    CHECK(stream.read(x).ok());
    CHECK(gpu.device->health().ok());
    CUgraph graph = nullptr;
    REQUIRE(program.api.cuStreamEndCapture(program.stream, &graph) == CUDA_SUCCESS);
    CHECK(program.api.cuGraphDestroy(graph) == CUDA_SUCCESS);
  }
  CHECK(stream.read(x).value() == all(3));
}

TEST_CASE("cuda: default streams, and streams of nobody, are not adopted") {
  const Gpu gpu;
  for (CUstream each : {CUstream(nullptr), CU_STREAM_LEGACY, CU_STREAM_PER_THREAD}) {
    CHECK(gpu.device->adopt_stream(each).error().kind() == ErrorKind::invalid_argument);
  }
}

TEST_CASE("M4: adopted memory is not freed, and its owner is let go of when its work has ended") {
  const Gpu gpu;
  const Program program(gpu);
  Stream stream = gpu.stream();
  const auto owner = std::make_shared<int>(1);
  const auto update = gpu.kernel<Update>("update");
  {
    const auto x =
        gpu.device->adopt<float>("x", program.memory, Gpu::kCount, Role::none, owner).value();
    stream.write(x, all(1));
    gpu.control->hold();
    CHECK(stream.launch(update, grid(Gpu::kCount), x, Gpu::kCount).executed_cleanly());
  }
  CHECK(owner.use_count() == 2);
  gpu.control->release();
  CHECK(stream.sync().ok());
  CHECK(owner.use_count() == 1);
  std::vector<float> bytes(Gpu::kCount);
  CHECK(program.api.cuMemcpyDtoH_v2(bytes.data(), program.memory, Program::kBytes) == CUDA_SUCCESS);
  CHECK(bytes == all(2));
}

TEST_CASE("M4: work that nobody asks about lets go of what it used when it has ended") {
  for (const bool adopted : {false, true}) {
    CAPTURE(adopted);
    const Gpu gpu;
    const Program program(gpu);
    Stream stream = adopted ? gpu.device->adopt_stream(program.stream).value() : gpu.stream();
    const Buffer<float> y = gpu.buffer("y");
    const auto owner = std::make_shared<int>(1);
    gpu.control->hold();
    {
      const auto x =
          gpu.device->adopt<float>("x", program.memory, Gpu::kCount, Role::none, owner).value();
      CHECK(stream.fill(x, 1.0F).executed_cleanly());
    }
    for (int piece = 0; piece < 5'000; ++piece) stream.fill(y, 1.0F);
    CHECK(owner.use_count() == 2);  // nothing has run
    CHECK(gpu.control->calls("cuEventSynchronize") == 0);
    gpu.control->release();
    for (int piece = 0; piece < 500'000 && owner.use_count() == 2; ++piece) stream.fill(y, 1.0F);
    CHECK(owner.use_count() == 1);
    CHECK(gpu.control->calls("cuEventSynchronize") == 0);
    CHECK(gpu.control->calls("cuStreamSynchronize") == 0);
  }
}

TEST_CASE("cuda: memory that is not the device's, too short or not aligned is not adopted") {
  const Gpu gpu;
  const Program program(gpu);
  const auto kind = [&](std::uint64_t address, std::uint64_t count, Role role = Role::none) {
    return gpu.device->adopt<float>("x", address, count, role).error().kind();
  };
  float own = 0;
  CHECK(kind(reinterpret_cast<std::uint64_t>(&own), 1) == ErrorKind::device_refused);
  CHECK(kind(program.memory, Gpu::kCount + 1) == ErrorKind::invalid_argument);
  CHECK(kind(program.memory + 4, Gpu::kCount) == ErrorKind::invalid_argument);
  CHECK(kind(program.memory + 1, 1) == ErrorKind::invalid_argument);
  CHECK(kind(0, 1) == ErrorKind::invalid_argument);
  CHECK(kind(program.memory, 1, Role::constant) == ErrorKind::invalid_argument);
  CHECK(gpu.device->adopt<float>("x", program.memory + 4, Gpu::kCount - 1).ok());
}

TEST_CASE("cuda: a device works in a context of the program's and leaves it to the program") {
  const Gpu gpu;
  const cuda::Driver driver = cuda::Driver::open({REFRAIN_SIMCUDA}).value();
  CUcontext context = nullptr;
  REQUIRE(driver.api().cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS);
  gpu.control->clear_journal();
  {
    const cuda::Device device =
        cuda::Device::open({.driver = {REFRAIN_SIMCUDA}, .context = context}).value();
    Stream stream = device.stream().value();
    const auto x = device.buffer<float>("x", 4).value();
    stream.fill(x, 3.0F);
    CHECK(stream.read(x).value() == std::vector<float>(4, 3));
  }
  CHECK(gpu.control->calls("cuDevicePrimaryCtxRetain") == 0);
  CHECK(gpu.control->calls("cuDevicePrimaryCtxRelease_v2") == 0);
  CHECK(driver.api().cuDevicePrimaryCtxRelease_v2(0) == CUDA_SUCCESS);
}

}  // namespace refrain::test
