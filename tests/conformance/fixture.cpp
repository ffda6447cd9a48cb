#include "fixture.hpp"

#include <doctest/doctest.h>

namespace conformance {
namespace {

constexpr std::uint64_t kBusyNanoseconds = 2'000'000'000;

}  // namespace

Primary::Primary() {
  REQUIRE_OK(api.cuDeviceGet(&device, 0));
  REQUIRE_OK(api.cuDevicePrimaryCtxRetain(&context, device));
  REQUIRE_OK(api.cuCtxSetCurrent(context));
}

// What a case left behind goes with the context, so the answers do not matter here.
Primary::~Primary() {
  if (context == nullptr) return;
  api.cuCtxSetCurrent(context);
  if (module_ != nullptr) api.cuModuleUnload(module_);
  api.cuCtxSetCurrent(nullptr);
  api.cuDevicePrimaryCtxRelease_v2(device);
}

CUmodule Primary::module() {
  if (module_ == nullptr) REQUIRE_OK(api.cuModuleLoadData(&module_, kernel_image()));
  return module_;
}

CUfunction Primary::kernel(const char* name) {
  CUfunction function = nullptr;
  REQUIRE_OK(api.cuModuleGetFunction(&function, module(), name));
  return function;
}

Stream::Stream(unsigned flags) { REQUIRE_OK(api().cuStreamCreate(&handle_, flags)); }

Stream::~Stream() {
  if (handle_ == nullptr) return;
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  if (api().cuStreamIsCapturing(handle_, &status) == CUDA_SUCCESS &&
      status != CU_STREAM_CAPTURE_STATUS_NONE) {
    CUgraph graph = nullptr;
    api().cuStreamEndCapture(handle_, &graph);
    if (graph != nullptr) api().cuGraphDestroy(graph);
  }
  api().cuStreamDestroy_v2(handle_);
}

Event::Event(unsigned flags) { REQUIRE_OK(api().cuEventCreate(&handle_, flags)); }

Event::~Event() {
  if (handle_ != nullptr) api().cuEventDestroy_v2(handle_);
}

Graph::~Graph() {
  if (handle_ != nullptr) api().cuGraphDestroy(handle_);
}

Graph Graph::make() {
  CUgraph graph = nullptr;
  REQUIRE_OK(api().cuGraphCreate(&graph, 0));
  return Graph(graph);
}

Exec::~Exec() {
  if (handle_ != nullptr) api().cuGraphExecDestroy(handle_);
}

Exec Exec::of(CUgraph graph) {
  CUgraphExec exec = nullptr;
  REQUIRE_OK(api().cuGraphInstantiateWithFlags(&exec, graph, 0));
  return Exec(exec);
}

Memory::Memory(std::size_t words) : count_(words) {
  REQUIRE_OK(api().cuMemAlloc_v2(&handle_, words * sizeof(std::uint32_t)));
  REQUIRE_OK(api().cuMemsetD8_v2(handle_, 0, words * sizeof(std::uint32_t)));
  REQUIRE_OK(api().cuCtxSynchronize());
}

Memory::~Memory() {
  if (handle_ != 0) api().cuMemFree_v2(handle_);
}

std::vector<std::uint32_t> Memory::words() const {
  std::vector<std::uint32_t> values(count_);
  REQUIRE_OK(api().cuCtxSynchronize());
  REQUIRE_OK(api().cuMemcpyDtoH_v2(values.data(), handle_, values.size() * sizeof(std::uint32_t)));
  return values;
}

std::uint32_t Memory::word(std::size_t index) const { return words().at(index); }

std::uint32_t Memory::word_after(CUstream stream) const {
  std::uint32_t value = 0;
  REQUIRE_OK(api().cuMemcpyDtoHAsync_v2(&value, handle_, sizeof value, stream));
  REQUIRE_OK(api().cuStreamSynchronize(stream));
  return value;
}

Pinned::Pinned(std::size_t words) {
  void* memory = nullptr;
  REQUIRE_OK(api().cuMemHostAlloc(&memory, words * sizeof(std::uint32_t),
                                  CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP));
  handle_ = static_cast<std::uint32_t*>(memory);
  for (std::size_t i = 0; i < words; ++i) handle_[i] = 0;
}

Pinned::~Pinned() {
  if (handle_ != nullptr) api().cuMemFreeHost(handle_);
}

CUdeviceptr Pinned::address() const {
  CUdeviceptr address = 0;
  REQUIRE_OK(api().cuMemHostGetDevicePointer_v2(&address, handle_, 0));
  return address;
}

// The flag is left to the context: it may be freed only when the kernel has seen it, and nothing
// here may wait for that.
Busy::Busy(Primary& primary, CUstream stream) {
  if (simulated()) {
    control()->hold();
    return;
  }
  Pinned flag;
  REQUIRE_OK(launch(primary.kernel("spin"), stream, flag.address(), kBusyNanoseconds));
  flag_ = flag.take();
}

void Busy::end() {
  if (std::exchange(ended_, true)) return;
  if (simulated()) {
    control()->release();
  } else {
    *flag_ = 1;
  }
}

int device_attribute(CUdevice device, CUdevice_attribute attribute) {
  int value = 0;
  REQUIRE_OK(api().cuDeviceGetAttribute(&value, attribute, device));
  return value;
}

}  // namespace conformance
