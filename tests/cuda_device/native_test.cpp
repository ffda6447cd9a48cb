// Native work on a CUDA device: bodies that call the driver themselves, on the stream and the
// addresses that they are given. Eager it goes to that stream; in a graph it is a child node, made
// of what a capture of the body alone has seen.
#include <algorithm>
#include <cstring>
#include <memory>
#include <thread>

#include "own_library.hpp"

namespace refrain::test {
namespace {

bool says(const Error& error, const std::string& words) {
  const bool found = error.text().find(words) != std::string::npos;
  CHECK_MESSAGE(found, error.text());
  return found;
}

CUstream stream_of(const NativeCall& call) { return static_cast<CUstream>(call.stream); }
CUdeviceptr address_of(const void* memory) { return reinterpret_cast<CUdeviceptr>(memory); }

Result<void> refused(CUresult code) {
  if (code == CUDA_SUCCESS) return {};
  return Error(ErrorKind::kernel_failed, "The library answered " + std::to_string(code) + ".");
}

/// A program that calls the driver by itself, beside the device.
struct Library {
  cuda::Driver driver = cuda::Driver::open({REFRAIN_SIMCUDA}).value();
  const cuda::DriverApi& api = driver.api();
  std::shared_ptr<int> calls = std::make_shared<int>(0);

  /// y = x, by way of the workspace; counts how often it is called.
  [[nodiscard]] auto copy_over() const {
    return [&api = api, calls = calls](const NativeCall& call, DeviceSpan<const float> x,
                                       DeviceSpan<float> y) -> Result<void> {
      ++*calls;
      const std::size_t bytes = x.size * sizeof(float);
      const CUdeviceptr room = address_of(call.workspace.address);
      REFRAIN_TRY(
          refused(api.cuMemcpyDtoDAsync_v2(room, address_of(x.address), bytes, stream_of(call))));
      return refused(api.cuMemcpyDtoDAsync_v2(address_of(y.address), room, bytes, stream_of(call)));
    };
  }
  /// y = 2.0 in all elements.
  [[nodiscard]] Result<void> set(const NativeCall& call, const DeviceSpan<float>& y) const {
    return refused(
        api.cuMemsetD32Async(address_of(y.address), 0x40000000, y.size, stream_of(call)));
  }
};

constexpr std::uint64_t kRoom = Gpu::kCount * sizeof(float);
const NativeWork kCopyOver{"copy over", kRoom, Effects::none()};

std::size_t count(const std::vector<std::string>& all, const std::string& name) {
  return static_cast<std::size_t>(std::count(all.begin(), all.end(), name));
}

/// The graph of native work that writes `y`.
template <class Body>
Recording recorded(Stream& on, const NativeWork& work, const Buffer<float>& y, Body&& body) {
  OpenWindow window = on.record().value();
  CHECK(on.native<Out<float>>(work, std::forward<Body>(body), y).executed_cleanly());
  return window.seal({.name = "decode"}).value();
}

/// Records `work(stream, y)` on `on`; answers why it does not seal.
template <class Work>
Error doomed(Stream& on, const Buffer<float>& y, Work&& work) {
  OpenWindow window = on.record().value();
  on.native<Out<float>>("gemm", work, y);
  const Result<Recording> sealed = window.seal();
  REQUIRE_FALSE(sealed.ok());
  CHECK(on.fill(y, 0.0F).executed_cleanly());
  return sealed.error();
}

}  // namespace

TEST_CASE("native work goes to the stream itself, with a workspace that outlives it") {
  const Gpu gpu;
  const Library library;
  Stream stream = gpu.stream();
  const Buffer<float> x = gpu.filled(stream, "x", 3);
  const Buffer<float> y = gpu.buffer("y");
  const std::uint64_t before = gpu.control->memory_in_use();
  gpu.control->hold();
  CHECK(stream.native<In<float>, Out<float>>(kCopyOver, library.copy_over(), x, y)
            .executed_cleanly());
  CHECK(*library.calls == 1);
  CHECK(gpu.control->memory_in_use() == before + kRoom);
  gpu.control->release();
  CHECK(stream.read(y).value() == all(3));
  CHECK(gpu.control->memory_in_use() == before);
}

TEST_CASE("native work in a graph is captured alone, and its replay is one driver call") {
  const Gpu gpu;
  const Library library;
  Stream stream = gpu.stream();
  const Buffer<float> x = gpu.filled(stream, "x", 3, Role::input);
  const Buffer<float> y = gpu.buffer("y", Role::output);
  const auto update = gpu.kernel<Update>("update");
  OpenWindow window = stream.record().value();
  CHECK(stream.native<In<float>, Out<float>>(kCopyOver, library.copy_over(), x, y)
            .executed_cleanly());
  CHECK(*library.calls == 1);  // proved
  stream.launch(update, grid(Gpu::kCount), y, Gpu::kCount);
  const Recording recording = window.seal({.name = "decode"}).value();
  Instance step = Plan::prepare(*gpu.device, recording.graph()).value().instance().value();
  const Buffer<float> other = gpu.filled(stream, "other", 7);
  const Buffer<float> result = gpu.buffer("result");
  REQUIRE(step.bind("x", x).ok());
  REQUIRE(step.bind("y", result).ok());
  CHECK(step.replay(stream).executed_cleanly());
  CHECK(stream.read(result).value() == all(4));
  const int made = *library.calls;

  const auto entered = gpu.device->enter();
  REQUIRE(stream.sync().ok());
  gpu.control->clear_journal();
  CHECK(step.replay(stream).executed_cleanly());
  CHECK(gpu.journal() == std::vector<std::string>{"cuGraphLaunch"});
  CHECK(*library.calls == made);

  // Bound anew: captured again, and nothing else changed.
  REQUIRE(stream.sync().ok());
  gpu.control->clear_journal();
  REQUIRE(step.bind("x", other).ok());
  CHECK(*library.calls == made + 1);
  CHECK(count(gpu.journal(), "cuGraphExecChildGraphNodeSetParams") == 1);
  CHECK(count(gpu.journal(), "cuGraphExecKernelNodeSetParams_v2") == 0);
  CHECK(count(gpu.journal(), "cuGraphInstantiateWithParams") == 0);
  CHECK(count(gpu.journal(), "cuStreamCreateWithPriority") == 0);  // the one of before
  CHECK(step.replay(stream).executed_cleanly());
  CHECK(stream.read(result).value() == all(8));
}

TEST_CASE("native work whose child node a driver will not change is made anew with its graph") {
  const Gpu gpu;
  const Library library;
  Stream stream = gpu.stream();
  const Buffer<float> x = gpu.filled(stream, "x", 3, Role::input);
  const Buffer<float> other = gpu.filled(stream, "other", 7);
  const Buffer<float> y = gpu.buffer("y", Role::output);
  OpenWindow window = stream.record().value();
  stream.native<In<float>, Out<float>>(kCopyOver, library.copy_over(), x, y);
  const Recording recording = window.seal().value();
  Instance step = Plan::prepare(*gpu.device, recording.graph()).value().instance().value();
  REQUIRE(step.bind("x", x).ok());
  CHECK(step.replay(stream).executed_cleanly());
  gpu.control->fault("cuGraphExecChildGraphNodeSetParams", 1, CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE,
                     sim::Effect::refuse);
  REQUIRE(step.bind("x", other).ok());
  CHECK(gpu.control->faults_left() == 0);
  CHECK(step.replay(stream).executed_cleanly());
  CHECK(stream.read(step.view<float>("y").value()).value() == all(7));
}

TEST_CASE("C3, E4: a body that fails or throws in a window dooms it, and its capture is ended") {
  const Gpu gpu;
  const Library library;
  Stream stream = gpu.stream();
  const Buffer<float> y = gpu.filled(stream, "y", 1);
  says(doomed(stream, y,
              [&](const NativeCall& call, DeviceSpan<float> all) -> Result<void> {
                REFRAIN_TRY(library.set(call, all));
                return Error(ErrorKind::kernel_failed, "The handle is gone.");
              }),
       "\"gemm\"");
  {
    OpenWindow window = stream.record().value();
    CHECK_THROWS_AS(stream.native<Out<float>>(
                        "gemm",
                        [&](const NativeCall& call, DeviceSpan<float> all) -> Result<void> {
                          REFRAIN_TRY(library.set(call, all));
                          throw std::runtime_error("no dice");
                        },
                        y),
                    std::runtime_error);
    CHECK(window.state() == WindowState::doomed);
  }
  CHECK(gpu.control->live("graph") == 0);
  stream.fill(y, 5.0F);
  CHECK(stream.read(y).value() == all(5));
}

TEST_CASE(
    "B13, B34: what a body may not do while it is captured is told as its doing, and ends with "
    "it") {
  const Gpu gpu;
  const Library library;
  const cuda::DriverApi& api = library.api;
  Stream stream = gpu.stream();
  const Buffer<float> y = gpu.filled(stream, "y", 1);
  CUdeviceptr memory = 0;
  CUstream forked = nullptr;
  CUevent event = nullptr;
  {
    const auto entered = gpu.device->enter();
    REQUIRE(api.cuStreamCreate(&forked, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
    REQUIRE(api.cuMemAlloc_v2(&memory, 16) == CUDA_SUCCESS);
    REQUIRE(api.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS);
  }
  using Body = std::function<void(const NativeCall&)>;
  const std::vector<std::pair<const char*, Body>> bodies{
      {"allocates",
       [&](const NativeCall&) {
         CUdeviceptr more = 0;
         CHECK(api.cuMemAlloc_v2(&more, 16) != CUDA_SUCCESS);
       }},
      {"waits", [&](const NativeCall& call) { api.cuStreamSynchronize(stream_of(call)); }},
      {"uses the default stream",
       [&](const NativeCall&) {
         CHECK(api.cuMemsetD8Async(memory, 0, 16, nullptr) != CUDA_SUCCESS);
       }},
      {"leaves a fork", [&](const NativeCall& call) {
         REQUIRE(api.cuEventRecord(event, stream_of(call)) == CUDA_SUCCESS);
         REQUIRE(api.cuStreamWaitEvent(forked, event, 0) == CUDA_SUCCESS);
         REQUIRE(api.cuMemsetD8Async(memory, 0, 16, forked) == CUDA_SUCCESS);
       }}};
  for (const auto& each : bodies) {
    CAPTURE(each.first);
    const Error error = doomed(
        stream, y,
        [&, body = &each.second](const NativeCall& call, DeviceSpan<float> all) -> Result<void> {
          REFRAIN_TRY(library.set(call, all));
          (*body)(call);
          return {};  // it has not noticed
        });
    says(error, "\"gemm\" (");
    says(error, "cuStreamEndCapture");
    says(error, "The capture of \"gemm\" was broken by its body");
    // The next one is whole again.
    OpenWindow window = stream.record().value();
    CHECK(stream
              .native<Out<float>>(
                  "gemm",
                  [&](const NativeCall& call, DeviceSpan<float> all) {
                    return library.set(call, all);
                  },
                  y)
              .executed_cleanly());
    CHECK(window.seal().ok());
    stream.fill(y, 0.0F);
  }
  const Error allocates =
      doomed(stream, y, [&](const NativeCall& call, DeviceSpan<float>) -> Result<void> {
        CUdeviceptr more = 0;
        return refused(api.cuMemAllocAsync(&more, 16, stream_of(call)));
      });
  says(allocates, "Its body allocates memory while it is captured");
  const auto entered = gpu.device->enter();
  CHECK(api.cuEventDestroy_v2(event) == CUDA_SUCCESS);
  CHECK(api.cuStreamDestroy_v2(forked) == CUDA_SUCCESS);
  CHECK(api.cuMemFree_v2(memory) == CUDA_SUCCESS);
}

TEST_CASE("B01: a call that is refused in a body dooms, though the capture stays whole") {
  const Gpu gpu;
  const Library library;
  Stream stream = gpu.stream();
  const Buffer<float> x = gpu.filled(stream, "x", 3);
  const Buffer<float> y = gpu.filled(stream, "y", 1);
  OpenWindow window = stream.record().value();
  gpu.control->fault("cuMemcpyDtoDAsync_v2", 2, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
                     sim::Effect::refuse);
  CHECK(stream.native<In<float>, Out<float>>(kCopyOver, library.copy_over(), x, y).failed());
  says(window.seal().error(), "The library answered 900.");
  stream.fill(y, 0.0F);
}

TEST_CASE("native work that is captured relaxed may do what a capture forbids") {
  const Gpu gpu;
  const Library library;
  Stream stream = gpu.stream();
  const Buffer<float> y = gpu.filled(stream, "y", 1, Role::output);
  const auto body = [&](const NativeCall& call, DeviceSpan<float> all) -> Result<void> {
    CUdeviceptr more = 0;
    REFRAIN_TRY(refused(library.api.cuMemAlloc_v2(&more, 16)));
    REFRAIN_TRY(refused(library.api.cuMemFree_v2(more)));
    return library.set(call, all);
  };
  Instance step = instance(recorded(stream, {"gemm", 0, Effects::none(), true}, y, body)).value();
  CHECK(step.replay(stream).executed_cleanly());
  CHECK(stream.read(y).value() == all(2));
}

TEST_CASE("B20: a body's capture breaks nobody's, and what others do meanwhile does not break it") {
  const Gpu gpu;
  const Library library;
  Stream stream = gpu.stream();
  const Buffer<float> y = gpu.filled(stream, "y", 1, Role::output);
  const auto body = [&](const NativeCall& call, DeviceSpan<float> all) -> Result<void> {
    std::thread([&] {
      const auto entered = gpu.device->enter();
      CUdeviceptr more = 0;
      CHECK(library.api.cuMemAlloc_v2(&more, 16) == CUDA_SUCCESS);
      CHECK(library.api.cuMemFree_v2(more) == CUDA_SUCCESS);
    }).join();
    return library.set(call, all);
  };
  Instance step = instance(recorded(stream, "gemm", y, body)).value();
  CHECK(step.replay(stream).executed_cleanly());
  CHECK(stream.read(y).value() == all(2));
}

TEST_CASE("native work may launch kernels, also such as start early") {
  const Gpu gpu;
  const OwnLibrary library(gpu);
  Stream stream = gpu.stream();
  const Buffer<float> y = gpu.filled(stream, "y", 1, Role::state);
  const CUkernel update = library.kernel("update");
  const auto body = [&api = library.api, update](const NativeCall& call,
                                                 DeviceSpan<float> all) -> Result<void> {
    CUdeviceptr address = address_of(all.address);
    std::uint32_t count = Gpu::kCount;
    void* arguments[] = {&address, &count};
    CUlaunchAttribute early{};
    early.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    early.value.programmaticStreamSerializationAllowed = 1;
    CUlaunchConfig config{};
    config.gridDimX = config.gridDimY = config.gridDimZ = 1;
    config.blockDimX = 64;
    config.blockDimY = config.blockDimZ = 1;
    config.hStream = stream_of(call);
    config.attrs = &early;
    config.numAttrs = 1;
    for (int each = 0; each < 2; ++each) {
      REFRAIN_TRY(refused(
          api.cuLaunchKernelEx(&config, reinterpret_cast<CUfunction>(update), arguments, nullptr)));
    }
    return {};
  };
  OpenWindow window = stream.record().value();
  const auto recorded = stream.native<InOut<float>>("two updates", body, y);
  CHECK(recorded.executed_cleanly());
  Instance step = instance(window.seal().value()).value();
  stream.write(y, all(1));
  for (int each = 0; each < 2; ++each) CHECK(step.replay(stream).executed_cleanly());
  CHECK(stream.read(y).value() == all(5));
}

TEST_CASE("native work that makes other work on other addresses is refused, and says so") {
  const Gpu gpu;
  const Library library;
  Stream stream = gpu.stream();
  const Buffer<float> y = gpu.filled(stream, "y", 1, Role::output);
  const Buffer<float> other = gpu.buffer("other");
  int more = 0;
  const auto body = [&](const NativeCall& call, DeviceSpan<float> all) -> Result<void> {
    for (int each = 0; each < more; ++each) REFRAIN_TRY(library.set(call, all));
    return library.set(call, all);
  };
  const Recording recording = recorded(stream, "gemm", y, body);
  Instance step = Plan::prepare(*gpu.device, recording.graph()).value().instance().value();
  REQUIRE(step.bind("y", y).ok());
  CHECK(step.replay(stream).executed_cleanly());
  more = 1;
  const Result<void> bound = step.bind("y", other);
  REQUIRE_FALSE(bound.ok());
  says(bound.error(), "made other work than before: 2 nodes and 1 edges, where it was 1 and 0");
  says(bound.error(), "While binding node 0, \"gemm\"");
  CHECK_FALSE(step.replay(stream).executed_cleanly());
  more = 0;
  REQUIRE(step.bind("y", other).ok());
  CHECK(step.replay(stream).executed_cleanly());
  CHECK(stream.read(other).value() == all(2));
}

TEST_CASE("native work that joins the same pieces in another way is other work") {
  const Gpu gpu;
  const Library library;
  const cuda::DriverApi& api = library.api;
  Stream stream = gpu.stream();
  const Buffer<float> y = gpu.filled(stream, "y", 1, Role::output);
  const Buffer<float> other = gpu.buffer("other");
  CUstream side = nullptr;
  CUevent event = nullptr;
  {
    const auto entered = gpu.device->enter();
    REQUIRE(api.cuStreamCreate(&side, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
    REQUIRE(api.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS);
  }
  // Four pieces with as many edges: one with two behind it and one behind those, or a chain with
  // one that skips.
  bool chain = false;
  const auto body = [&](const NativeCall& call, DeviceSpan<float> all) -> Result<void> {
    const CUstream main = stream_of(call);
    const auto set = [&](CUstream on) {
      return refused(api.cuMemsetD32Async(address_of(all.address), 0x40000000, 1, on));
    };
    const auto follow = [&](CUstream on, CUstream after) -> Result<void> {
      REFRAIN_TRY(refused(api.cuEventRecord(event, after)));
      return refused(api.cuStreamWaitEvent(on, event, 0));
    };
    REFRAIN_TRY(set(main));
    REFRAIN_TRY(follow(side, main));
    if (chain) {
      REFRAIN_TRY(set(main));
      REFRAIN_TRY(set(main));
    } else {
      REFRAIN_TRY(set(side));
      REFRAIN_TRY(set(main));
    }
    REFRAIN_TRY(follow(main, side));
    return set(main);
  };
  OpenWindow window = stream.record().value();
  stream.native<InOut<float>>("gemm", body, y);
  const Recording recording = window.seal({.roles = {{y.id(), Role::input, "y"}}}).value();
  Instance step = Plan::prepare(*gpu.device, recording.graph()).value().instance().value();
  REQUIRE(step.bind("y", y).ok());
  chain = true;
  const Result<void> bound = step.bind("y", other);
  REQUIRE_FALSE(bound.ok());
  says(bound.error(), "made other work than before: 4 nodes and 4 edges, where it was 4 and 4");
  const auto entered = gpu.device->enter();
  CHECK(api.cuEventDestroy_v2(event) == CUDA_SUCCESS);
  CHECK(api.cuStreamDestroy_v2(side) == CUDA_SUCCESS);
}

TEST_CASE("E4: a body that throws when its instance is bound leaves it on what it had") {
  const Gpu gpu;
  const Library library;
  Stream stream = gpu.stream();
  const Buffer<float> y = gpu.filled(stream, "y", 1, Role::output);
  const Buffer<float> other = gpu.buffer("other");
  bool throws = false;
  const auto body = [&](const NativeCall& call, DeviceSpan<float> all) -> Result<void> {
    if (throws) throw std::runtime_error("no dice");
    return library.set(call, all);
  };
  const Recording recording = recorded(stream, "gemm", y, body);
  Instance step = Plan::prepare(*gpu.device, recording.graph()).value().instance().value();
  REQUIRE(step.bind("y", y).ok());
  throws = true;
  CHECK_THROWS_AS(static_cast<void>(step.bind("y", other)), std::runtime_error);
  throws = false;
  stream.fill(other, 0.0F);
  CHECK(step.replay(stream).executed_cleanly());
  CHECK(stream.read(other).value() == all(0));
  CHECK(stream.read(y).value() == all(2));
  REQUIRE(step.bind("y", other).ok());
  CHECK(step.replay(stream).executed_cleanly());
  CHECK(stream.read(other).value() == all(2));
}

TEST_CASE("E2: native work that fails after it gave some is waited for before its workspace goes") {
  const Gpu gpu;
  const Library library;
  Stream stream = gpu.stream();
  const Buffer<float> y = gpu.filled(stream, "y", 1);
  gpu.control->clear_journal();
  const auto failed = stream.native<Out<float>>(
      {"gemm", kRoom},
      [&](const NativeCall& call, DeviceSpan<float> all) -> Result<void> {
        REFRAIN_TRY(library.set(call, all));
        return Error(ErrorKind::kernel_failed, "The handle is gone.");
      },
      y);
  REQUIRE(failed.failed());
  const std::vector<std::string> journal = gpu.journal();
  const auto waited = std::find(journal.begin(), journal.end(), "cuEventSynchronize");
  CHECK(std::find(journal.begin(), waited, "cuMemsetD32Async") != waited);
  CHECK(std::find(waited, journal.end(), "cuMemFree_v2") != journal.end());
  CHECK(std::find(journal.begin(), waited, "cuMemFree_v2") == waited);
  CHECK(gpu.device->check(y)->message() == "The handle is gone.");
  CHECK(stream.fill(y, 0.0F).executed_cleanly());
}

TEST_CASE("native work that leaves its stream in a capture fails, and the stream is usable") {
  const Gpu gpu;
  const Library library;
  Stream stream = gpu.stream();
  const Buffer<float> y = gpu.filled(stream, "y", 1);
  const auto left = stream.native<Out<float>>(
      "gemm",
      [&](const NativeCall& call, DeviceSpan<float> all) -> Result<void> {
        REFRAIN_TRY(refused(library.api.cuStreamBeginCapture_v2(
            stream_of(call), CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)));
        return library.set(call, all);
      },
      y);
  REQUIRE(left.failed());
  says(left.error(), "has left its stream in a capture");
  CHECK(stream.fill(y, 5.0F).executed_cleanly());
  CHECK(stream.read(y).value() == all(5));
  CHECK(gpu.control->live("graph") == 0);
}

TEST_CASE("P7: threads make, bind and replay instances of one plan with native work at once") {
  const Gpu gpu;
  const Library library;
  Stream stream = gpu.stream();
  const Buffer<float> y = gpu.buffer("y", Role::output);
  OpenWindow window = stream.record().value();
  stream.native<Out<float>>(
      {"gemm", 64},
      [&api = library.api](const NativeCall& call, DeviceSpan<float> all) {
        return refused(
            api.cuMemsetD32Async(address_of(all.address), 0x40000000, all.size, stream_of(call)));
      },
      y);
  const Plan plan = Plan::prepare(*gpu.device, window.seal().value().graph()).value();
  std::vector<std::thread> threads;
  for (int each = 0; each < 4; ++each) {
    threads.emplace_back([&] {
      Stream own = gpu.stream();
      const Buffer<float> result = gpu.buffer("result");
      for (int round = 0; round < 8; ++round) {
        Instance step = plan.instance().value();
        CHECK(step.bind("y", result).ok());
        CHECK(own.fill(result, 0.0F).executed_cleanly());
        CHECK(step.replay(own).executed_cleanly());
        CHECK(own.read(result).value() == all(2));
      }
    });
  }
  for (std::thread& each : threads) each.join();
}

TEST_CASE("a body may let go of memory, and native work may have no views and make no work") {
  const Gpu gpu;
  const Library library;
  std::optional<Stream> stream(gpu.stream());
  auto kept = std::make_shared<std::optional<Buffer<float>>>(gpu.filled(*stream, "kept", 1));
  const Buffer<float> y = gpu.filled(*stream, "y", 1);
  CHECK(stream
            ->native<Out<float>>(
                "gemm",
                [&](const NativeCall& call, DeviceSpan<float> all) {
                  kept->reset();
                  return library.set(call, all);
                },
                y)
            .executed_cleanly());
  CHECK_FALSE(kept->has_value());
  CHECK(stream->read(y).value() == all(2));
  // Without views and without work.
  CHECK(stream->native("nothing", [](const NativeCall&) {}).executed_cleanly());
  OpenWindow window = stream->record().value();
  CHECK(stream->native("nothing", [](const NativeCall&) {}).executed_cleanly());
  Instance step = instance(window.seal().value()).value();
  CHECK(step.replay(*stream).executed_cleanly());
  CHECK(stream->sync().ok());
}

TEST_CASE("E6: a body that calls its device while its graph is made ready is refused the call") {
  const Gpu gpu;
  const Library library;
  Stream stream = gpu.stream();
  Stream side = gpu.stream();
  const Buffer<float> x = gpu.filled(stream, "x", 1);
  const Buffer<float> y = gpu.filled(stream, "y", 1, Role::output);
  const auto calls = std::make_shared<bool>(false);
  const auto body = [&, calls](const NativeCall& call, DeviceSpan<float> all) -> Result<void> {
    if (*calls) CHECK(side.fill(x, 9.0F).failed());
    return library.set(call, all);
  };
  const Recording recording = recorded(stream, "gemm", y, body);
  *calls = true;
  const Result<Instance> made = instance(recording);
  REQUIRE_FALSE(made.ok());
  says(made.error(), "cannot fill inside \"graph decode\", whose native work is being made ready");
  *calls = false;
  CHECK(stream.read(x).value() == all(1));
  stream.fill(y, 0.0F);
}

}  // namespace refrain::test
