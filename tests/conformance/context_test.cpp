// The primary context and which context is current: per thread, and counted.
#include <doctest/doctest.h>

#include <thread>

#include "fixture.hpp"

using namespace conformance;

namespace {

CUdevice first_device() {
  CUdevice device = 0;
  REQUIRE_OK(api().cuDeviceGet(&device, 0));
  return device;
}

bool primary_active(CUdevice device) {
  unsigned flags = 0;
  int active = -1;
  REQUIRE_OK(api().cuDevicePrimaryCtxGetState(device, &flags, &active));
  return active == 1;
}

CUcontext current() {
  CUcontext context = nullptr;
  REQUIRE_OK(api().cuCtxGetCurrent(&context));
  return context;
}

}  // namespace

TEST_CASE("CTX-01: the primary context is active from its first retain to its last release [H]") {
  const CUdevice device = first_device();
  CHECK(!primary_active(device));
  CUcontext first = nullptr;
  CUcontext second = nullptr;
  REQUIRE_OK(api().cuDevicePrimaryCtxRetain(&first, device));
  CHECK(primary_active(device));
  REQUIRE_OK(api().cuDevicePrimaryCtxRetain(&second, device));
  CHECK(first == second);
  REQUIRE_OK(api().cuDevicePrimaryCtxRelease_v2(device));
  CHECK(primary_active(device));
  REQUIRE_OK(api().cuDevicePrimaryCtxRelease_v2(device));
  CHECK(!primary_active(device));
}

TEST_CASE("CTX-02: a release without a retain is refused with 201 [H]") {
  CHECK_CODE(api().cuDevicePrimaryCtxRelease_v2(first_device()), CUDA_ERROR_INVALID_CONTEXT);
}

TEST_CASE("CTX-03: a retain makes nothing current [H]") {
  const CUdevice device = first_device();
  CUcontext context = nullptr;
  REQUIRE_OK(api().cuCtxSetCurrent(nullptr));
  REQUIRE_OK(api().cuDevicePrimaryCtxRetain(&context, device));
  CHECK(current() == nullptr);
  REQUIRE_OK(api().cuDevicePrimaryCtxRelease_v2(device));
}

TEST_CASE_FIXTURE(Primary, "CTX-04: push and pop work as a stack [H]") {
  CHECK(current() == context);
  REQUIRE_OK(api.cuCtxPushCurrent_v2(context));
  CUcontext popped = nullptr;
  REQUIRE_OK(api.cuCtxPopCurrent_v2(&popped));
  CHECK(popped == context);
  CHECK(current() == context);
  REQUIRE_OK(api.cuCtxPopCurrent_v2(&popped));
  CHECK(popped == context);
  CHECK(current() == nullptr);
}

TEST_CASE_FIXTURE(Primary, "CTX-05: a pop of an empty stack is refused with 201 [H]") {
  REQUIRE_OK(api.cuCtxSetCurrent(nullptr));
  CUcontext popped = nullptr;
  CHECK_CODE(api.cuCtxPopCurrent_v2(&popped), CUDA_ERROR_INVALID_CONTEXT);
}

TEST_CASE_FIXTURE(Primary, "CTX-06: setting no context takes the top of the stack away [H]") {
  REQUIRE_OK(api.cuCtxPushCurrent_v2(context));
  REQUIRE_OK(api.cuCtxSetCurrent(nullptr));
  CHECK(current() == context);
  REQUIRE_OK(api.cuCtxSetCurrent(nullptr));
  CHECK(current() == nullptr);
}

TEST_CASE_FIXTURE(Primary, "CTX-07: what is current belongs to one thread [G]") {
  CUcontext there = context;
  CUresult code = CUDA_SUCCESS;
  std::thread([&] { code = api.cuCtxGetCurrent(&there); }).join();
  CHECK(code == CUDA_SUCCESS);
  CHECK(there == nullptr);
  CHECK(current() == context);
}

TEST_CASE_FIXTURE(Primary, "CTX-08: one context may be current in two threads [G]") {
  Memory memory;
  const CUfunction write = kernel("write_word");
  CUresult code = CUDA_SUCCESS;
  std::thread([&] {
    code = api.cuCtxSetCurrent(context);
    if (code == CUDA_SUCCESS) code = launch(write, nullptr, memory.get(), std::uint32_t{8});
    if (code == CUDA_SUCCESS) code = api.cuCtxSynchronize();
  }).join();
  CHECK_CODE(code, CUDA_SUCCESS);
  CHECK(memory.word() == 8);
}

TEST_CASE_FIXTURE(Primary, "CTX-09: what needs a context is refused with 201 where none is [H]") {
  Memory memory;
  const CUfunction write = kernel("write_word");
  REQUIRE_OK(api.cuCtxSetCurrent(nullptr));
  CUdeviceptr address = 0;
  CHECK_CODE(api.cuMemAlloc_v2(&address, 4), CUDA_ERROR_INVALID_CONTEXT);
  CUstream stream = nullptr;
  CHECK_CODE(api.cuStreamCreate(&stream, 0), CUDA_ERROR_INVALID_CONTEXT);
  CUevent event = nullptr;
  CHECK_CODE(api.cuEventCreate(&event, 0), CUDA_ERROR_INVALID_CONTEXT);
  CHECK_CODE(api.cuCtxSynchronize(), CUDA_ERROR_INVALID_CONTEXT);
  CHECK_CODE(api.cuStreamSynchronize(nullptr), CUDA_ERROR_INVALID_CONTEXT);
  CUmodule loaded = nullptr;
  CHECK_CODE(api.cuModuleLoadData(&loaded, kernel_image()), CUDA_ERROR_INVALID_CONTEXT);
  CUdevice of_context = 0;
  CHECK_CODE(api.cuCtxGetDevice(&of_context), CUDA_ERROR_INVALID_CONTEXT);
  observe("a launch on the legacy stream without a context",
          launch(write, nullptr, memory.get(), std::uint32_t{1}));
  REQUIRE_OK(api.cuCtxSetCurrent(context));
}

TEST_CASE_FIXTURE(Primary, "CTX-10: what a stream of its own allows without a context [?]") {
  Memory memory;
  Stream stream;
  Event event;
  const CUfunction write = kernel("write_word");
  REQUIRE_OK(api.cuCtxSetCurrent(nullptr));
  observe("launch", launch(write, stream, memory.get(), std::uint32_t{1}));
  observe("event record", api.cuEventRecord(event, stream));
  observe("stream query", api.cuStreamQuery(stream));
  observe("stream synchronize", api.cuStreamSynchronize(stream));
  observe("free", api.cuMemFree_v2(0));
  REQUIRE_OK(api.cuCtxSetCurrent(context));
}

TEST_CASE_FIXTURE(Primary, "CTX-11: the context knows its device [H]") {
  CUdevice found = -1;
  CHECK_CODE(api.cuCtxGetDevice(&found), CUDA_SUCCESS);
  CHECK(found == device);
}

TEST_CASE_FIXTURE(Primary, "CTX-12: the context has one id and no context is the current one [H]") {
  unsigned long long by_handle = 0;
  unsigned long long by_current = 0;
  CHECK_CODE(api.cuCtxGetId(context, &by_handle), CUDA_SUCCESS);
  CHECK_CODE(api.cuCtxGetId(nullptr, &by_current), CUDA_SUCCESS);
  CHECK(by_handle == by_current);
}

TEST_CASE("CTX-13: the id of a context is not used again [H]") {
  unsigned long long ids[2] = {0, 0};
  for (auto& id : ids) {
    Primary primary;
    REQUIRE_OK(primary.api.cuCtxGetId(primary.context, &id));
  }
  CHECK(ids[0] != ids[1]);
}

TEST_CASE_FIXTURE(Primary,
                  "CTX-14: the greatest priority is the least number and may be left out [H]") {
  int least = -1000;
  int greatest = 1000;
  CHECK_CODE(api.cuCtxGetStreamPriorityRange(&least, &greatest), CUDA_SUCCESS);
  CHECK(greatest <= least);
  CHECK_CODE(api.cuCtxGetStreamPriorityRange(nullptr, &greatest), CUDA_SUCCESS);
  CHECK_CODE(api.cuCtxGetStreamPriorityRange(&least, nullptr), CUDA_SUCCESS);
  observe("range", std::to_string(greatest) + " to " + std::to_string(least));
}

TEST_CASE("CTX-15: flags set on an inactive primary context are its own when it is retained [H]") {
  const CUdevice device = first_device();
  REQUIRE_OK(api().cuDevicePrimaryCtxSetFlags_v2(device, CU_CTX_SCHED_BLOCKING_SYNC));
  {
    Primary primary;
    unsigned flags = 0;
    int active = 0;
    REQUIRE_OK(api().cuDevicePrimaryCtxGetState(device, &flags, &active));
    CHECK((flags & CU_CTX_SCHED_MASK) == CU_CTX_SCHED_BLOCKING_SYNC);
    REQUIRE_OK(api().cuCtxGetFlags(&flags));
    CHECK((flags & CU_CTX_SCHED_MASK) == CU_CTX_SCHED_BLOCKING_SYNC);
  }
  REQUIRE_OK(api().cuDevicePrimaryCtxSetFlags_v2(device, CU_CTX_SCHED_AUTO));
}

TEST_CASE_FIXTURE(Primary, "CTX-16: synchronising the context waits for all its streams [H]") {
  Stream first;
  Stream second;
  Memory memory(2);
  const CUfunction write = kernel("write_word");
  REQUIRE_OK(launch(write, first, memory.get(), std::uint32_t{1}));
  REQUIRE_OK(launch(write, second, memory.get() + 4, std::uint32_t{2}));
  REQUIRE_OK(api.cuCtxSynchronize());
  CHECK_CODE(api.cuStreamQuery(first), CUDA_SUCCESS);
  CHECK_CODE(api.cuStreamQuery(second), CUDA_SUCCESS);
  CHECK(memory.words() == std::vector<std::uint32_t>{1, 2});
}

TEST_CASE_FIXTURE(Primary,
                  "CTX-17: a limit can be set and read and one that is none is refused [H]") {
  std::size_t bytes = 0;
  CHECK_CODE(api.cuCtxGetLimit(&bytes, CU_LIMIT_STACK_SIZE), CUDA_SUCCESS);
  CHECK(bytes > 0);
  CHECK_CODE(api.cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 4096), CUDA_SUCCESS);
  CHECK_CODE(api.cuCtxGetLimit(&bytes, CU_LIMIT_STACK_SIZE), CUDA_SUCCESS);
  CHECK(bytes >= 4096);
  const CUresult code = api.cuCtxGetLimit(&bytes, CU_LIMIT_MAX);
  const bool refused = code == CUDA_ERROR_UNSUPPORTED_LIMIT || code == CUDA_ERROR_INVALID_VALUE;
  CHECK(refused);
  observe("code for a limit that is none", code);
}

TEST_CASE("CTX-18: a reset of the context in use and what is left [?]") {
  OWN_PROCESS();
  Primary primary;
  Memory memory;
  observe("reset", api().cuDevicePrimaryCtxReset_v2(primary.device));
  CUcontext now = nullptr;
  observe("get current", api().cuCtxGetCurrent(&now));
  observe("the same context is current", now == primary.context);
  observe("synchronize", api().cuCtxSynchronize());
  observe("still active", primary_active(primary.device));
  memory.take();
  primary.abandon();
}
