// Errors that a context does not survive: which work brings them, who hears of them, what still
// answers. Every case that makes one runs in a process of its own.
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "driver_error.hpp"
#include "fixture.hpp"

using namespace conformance;
using refrain::cuda::is_sticky;

namespace {

/// An address that no allocation has, aligned.
constexpr CUdeviceptr kNowhere = 64;

CUresult write_nowhere(Primary& primary, CUstream stream) {
  return launch(primary.kernel("write_word"), stream, kNowhere, std::uint32_t{1});
}

/// A context that an illegal address has just cost, and its reporting.
struct Lost : Primary {
  Stream stream;
  CUfunction write = kernel("write_word");
  Lost() {
    REQUIRE_OK(write_nowhere(*this, stream));
    REQUIRE_CODE(api.cuStreamSynchronize(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
  }
};

/// What the process can still do with a primary context that is retained now.
void observe_revival(CUdevice device) {
  CUcontext context = nullptr;
  CUdeviceptr address = 0;
  observe("retain", api().cuDevicePrimaryCtxRetain(&context, device));
  observe("set current", api().cuCtxSetCurrent(context));
  observe("cuMemAlloc", api().cuMemAlloc_v2(&address, 4));
}

}  // namespace

TEST_CASE(
    "ERR-01: a kernel that writes to an illegal address is reported as 700 by the next synchronise "
    "[H]") {
  OWN_PROCESS();
  Primary primary;
  Stream stream;
  CHECK_CODE(write_nowhere(primary, stream), CUDA_SUCCESS);
  CHECK_CODE(api().cuStreamSynchronize(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_CASE("ERR-02: a kernel that writes to a misaligned address is reported as 716 [H]") {
  OWN_PROCESS();
  Primary primary;
  Stream stream;
  Memory memory(2);
  REQUIRE_OK(launch(primary.kernel("write_word"), stream, memory.get() + 1, std::uint32_t{1}));
  CHECK_CODE(api().cuStreamSynchronize(stream), CUDA_ERROR_MISALIGNED_ADDRESS);
}

TEST_CASE("ERR-03: a device assertion that fails is reported as 710 [H]") {
  OWN_PROCESS();
  Primary primary;
  Stream stream;
  REQUIRE_OK(launch(primary.kernel("assert_fail"), stream));
  CHECK_CODE(api().cuStreamSynchronize(stream), CUDA_ERROR_ASSERT);
}

TEST_CASE("ERR-04: which code a trap brings [?]") {
  OWN_PROCESS();
  Primary primary;
  Stream stream;
  REQUIRE_OK(launch(primary.kernel("trap"), stream));
  const CUresult code = api().cuStreamSynchronize(stream);
  observe("code", code);
  CHECK(is_sticky(code));
}

TEST_CASE("ERR-05: every later piece of work is refused with the same code [H]") {
  OWN_PROCESS();
  Lost lost;
  CUdeviceptr address = 0;
  CHECK_CODE(lost.api.cuMemAlloc_v2(&address, 4), CUDA_ERROR_ILLEGAL_ADDRESS);
  CHECK_CODE(launch(lost.write, lost.stream, CUdeviceptr{0}, std::uint32_t{1}),
             CUDA_ERROR_ILLEGAL_ADDRESS);
  CHECK_CODE(lost.api.cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
  CHECK_CODE(lost.api.cuStreamSynchronize(lost.stream), CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_CASE("ERR-06: freeing null tells that the context is lost [P]") {
  OWN_PROCESS();
  Lost lost;
  CHECK_CODE(lost.api.cuMemFree_v2(0), CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_CASE("ERR-07: the memory of a lost context cannot be read [H]") {
  OWN_PROCESS();
  Primary primary;
  Memory memory;
  Stream stream;
  REQUIRE_OK(write_nowhere(primary, stream));
  REQUIRE_CODE(api().cuStreamSynchronize(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
  std::uint32_t value = 0;
  CHECK_CODE(api().cuMemcpyDtoH_v2(&value, memory, 4), CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_CASE("ERR-08: all streams of the context and all threads hear of it [H]") {
  OWN_PROCESS();
  Primary primary;
  Stream stream;
  Stream other;
  REQUIRE_OK(write_nowhere(primary, stream));
  REQUIRE_CODE(api().cuStreamSynchronize(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
  CHECK_CODE(api().cuStreamSynchronize(other), CUDA_ERROR_ILLEGAL_ADDRESS);
  CUresult there = CUDA_SUCCESS;
  std::thread([&] {
    api().cuCtxSetCurrent(primary.context);
    there = api().cuCtxSynchronize();
  }).join();
  CHECK_CODE(there, CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_CASE("ERR-09: a query tells it as a synchronise does [H]") {
  OWN_PROCESS();
  Primary primary;
  Stream stream;
  REQUIRE_OK(write_nowhere(primary, stream));
  CUresult code = CUDA_ERROR_NOT_READY;
  while (code == CUDA_ERROR_NOT_READY) code = api().cuStreamQuery(stream);
  CHECK_CODE(code, CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_CASE("ERR-10: an event behind the failed work tells it [H]") {
  OWN_PROCESS();
  Primary primary;
  Stream stream;
  Event event;
  REQUIRE_OK(write_nowhere(primary, stream));
  // On a GPU the fault may come before the record, which then brings the news.
  const CUresult recorded = api().cuEventRecord(event, stream);
  if (recorded != CUDA_SUCCESS) {
    CHECK_CODE(recorded, CUDA_ERROR_ILLEGAL_ADDRESS);
    return;
  }
  CHECK_CODE(api().cuEventSynchronize(event), CUDA_ERROR_ILLEGAL_ADDRESS);
  CHECK_CODE(api().cuEventQuery(event), CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_CASE(
    "ERR-11: a host function behind failed work does not run and a callback does with the error "
    "[H]") {
  OWN_PROCESS();
  struct Seen {
    std::atomic<int> functions{0};
    std::atomic<int> callbacks{0};
    std::atomic<CUresult> status{CUDA_SUCCESS};
  };
  Primary primary;
  Stream stream;
  Seen seen;
  primary.kernel("write_word");
  Busy busy(primary, stream);
  REQUIRE_OK(write_nowhere(primary, stream));
  REQUIRE_OK(api().cuLaunchHostFunc(
      stream, [](void* user) { ++static_cast<Seen*>(user)->functions; }, &seen));
  REQUIRE_OK(api().cuStreamAddCallback(
      stream,
      [](CUstream, CUresult status, void* user) {
        static_cast<Seen*>(user)->status = status;
        ++static_cast<Seen*>(user)->callbacks;
      },
      &seen, 0));
  busy.end();
  CHECK_CODE(api().cuStreamSynchronize(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
  // The callback has a thread of its own, and the error may be told before it has run.
  for (int i = 0; i < 500 && seen.callbacks == 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  CHECK(seen.functions == 0);
  CHECK(seen.callbacks == 1);
  CHECK_CODE(seen.status.load(), CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_CASE("ERR-12: the version and the names of codes can still be asked [H]") {
  OWN_PROCESS();
  Lost lost;
  int version = 0;
  CHECK_CODE(lost.api.cuDriverGetVersion(&version), CUDA_SUCCESS);
  const char* text = nullptr;
  CHECK_CODE(lost.api.cuGetErrorName(CUDA_ERROR_ILLEGAL_ADDRESS, &text), CUDA_SUCCESS);
  CHECK_CODE(lost.api.cuGetErrorString(CUDA_ERROR_ILLEGAL_ADDRESS, &text), CUDA_SUCCESS);
}

TEST_CASE("ERR-13: a fault inside a graph is told by the synchronise after its launch [H]") {
  OWN_PROCESS();
  Primary primary;
  Stream stream;
  primary.kernel("write_word");
  REQUIRE_OK(api().cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  REQUIRE_OK(write_nowhere(primary, stream));
  Graph graph;
  REQUIRE_OK(api().cuStreamEndCapture(stream, graph.out()));
  Exec exec = Exec::of(graph);
  CHECK_CODE(api().cuGraphLaunch(exec, stream), CUDA_SUCCESS);
  CHECK_CODE(api().cuStreamSynchronize(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
  CHECK_CODE(api().cuGraphLaunch(exec, stream), CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_CASE("ERR-14: what destroying things of a lost context answers [?]") {
  OWN_PROCESS();
  Primary primary;
  Stream stream;
  Stream other;
  Event event;
  Memory memory;
  Pinned pinned;
  Graph graph = Graph::make();
  Exec exec = Exec::of(graph);
  CUmodule module = nullptr;
  REQUIRE_OK(api().cuModuleLoadData(&module, kernel_image()));
  REQUIRE_OK(write_nowhere(primary, stream));
  REQUIRE_CODE(api().cuStreamSynchronize(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
  observe("cuGraphExecDestroy", api().cuGraphExecDestroy(exec.take()));
  observe("cuGraphDestroy", api().cuGraphDestroy(graph.take()));
  observe("cuEventDestroy", api().cuEventDestroy_v2(event.take()));
  observe("cuStreamDestroy", api().cuStreamDestroy_v2(other.take()));
  observe("cuMemFree", api().cuMemFree_v2(memory.take()));
  observe("cuMemFreeHost", api().cuMemFreeHost(pinned.take()));
  observe("cuModuleUnload", api().cuModuleUnload(module));
}

TEST_CASE("ERR-15: what calls that need no work done answer in a lost context [?]") {
  OWN_PROCESS();
  Lost lost;
  CUcontext current = nullptr;
  CUstream stream = nullptr;
  CUevent event = nullptr;
  CUgraph graph = nullptr;
  CUmodule module = nullptr;
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  std::size_t free = 0;
  std::size_t total = 0;
  observe("cuCtxGetCurrent", lost.api.cuCtxGetCurrent(&current));
  observe("cuMemGetInfo", lost.api.cuMemGetInfo_v2(&free, &total));
  observe("cuStreamCreate", lost.api.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  observe("cuEventCreate", lost.api.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  observe("cuGraphCreate", lost.api.cuGraphCreate(&graph, 0));
  observe("cuModuleLoadData", lost.api.cuModuleLoadData(&module, kernel_image()));
  observe("cuStreamIsCapturing", lost.api.cuStreamIsCapturing(lost.stream, &status));
  observe("cuStreamBeginCapture",
          lost.api.cuStreamBeginCapture_v2(lost.stream, CU_STREAM_CAPTURE_MODE_RELAXED));
}

TEST_CASE("ERR-16: whether letting the primary context go and taking it again revives it [?]") {
  OWN_PROCESS();
  Lost lost;
  lost.stream.take();
  observe("release", lost.api.cuDevicePrimaryCtxRelease_v2(lost.device));
  lost.abandon();
  observe_revival(lost.device);
}

TEST_CASE("ERR-17: whether a reset of the primary context revives the process [?]") {
  OWN_PROCESS();
  Lost lost;
  lost.stream.take();
  observe("reset", lost.api.cuDevicePrimaryCtxReset_v2(lost.device));
  lost.abandon();
  CUdeviceptr address = 0;
  observe("cuMemAlloc after the reset", lost.api.cuMemAlloc_v2(&address, 4));
  observe_revival(lost.device);
}

TEST_CASE_FIXTURE(Primary, "ERR-18: a call refused for its arguments leaves no error behind [H]") {
  Stream stream;
  CUdeviceptr address = 0;
  REQUIRE_CODE(api.cuMemAlloc_v2(&address, 0), CUDA_ERROR_INVALID_VALUE);
  CUfunction function = nullptr;
  REQUIRE_CODE(api.cuModuleGetFunction(&function, module(), "none"), CUDA_ERROR_NOT_FOUND);
  CHECK_CODE(api.cuStreamSynchronize(stream), CUDA_SUCCESS);
  CHECK_CODE(api.cuStreamQuery(stream), CUDA_SUCCESS);
  CHECK_CODE(api.cuCtxSynchronize(), CUDA_SUCCESS);
}
