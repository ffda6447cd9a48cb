// Potentially unsafe calls beside a capture: when the capture's mode and the calling thread's mode
// prohibit them, which calls these are, and that a prohibited one breaks the capture.
#include <optional>

#include "graph_support.hpp"

using namespace conformance;

namespace {

constexpr CUresult kProhibited = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
constexpr auto kGlobal = CU_STREAM_CAPTURE_MODE_GLOBAL;
constexpr auto kThreadLocal = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
constexpr auto kRelaxed = CU_STREAM_CAPTURE_MODE_RELAXED;

/// Sets this thread's mode, answers the one before.
CUstreamCaptureMode exchange(CUstreamCaptureMode mode) {
  REQUIRE_OK(api().cuThreadExchangeStreamCaptureMode(&mode));
  return mode;
}

/// This thread has that mode for as long as this lives.
class ThreadMode {
 public:
  explicit ThreadMode(CUstreamCaptureMode mode) : before_(exchange(mode)) {}
  ThreadMode(const ThreadMode&) = delete;
  ThreadMode& operator=(const ThreadMode&) = delete;
  ~ThreadMode() { api().cuThreadExchangeStreamCaptureMode(&before_); }

 private:
  CUstreamCaptureMode before_;
};

/// The call that is potentially unsafe beyond doubt: an allocation, given back at once.
CUresult allocate() {
  CUdeviceptr memory = 0;
  const CUresult answered = api().cuMemAlloc_v2(&memory, 256);
  if (answered == CUDA_SUCCESS) api().cuMemFree_v2(memory);
  return answered;
}

/// The same on a thread of its own, in that mode of the thread.
CUresult allocate_elsewhere(CUcontext context, CUstreamCaptureMode mode) {
  return on_thread(context, [mode] {
    CUstreamCaptureMode asked = mode;
    const CUresult exchanged = api().cuThreadExchangeStreamCaptureMode(&asked);
    return exchanged == CUDA_SUCCESS ? allocate() : exchanged;
  });
}

/// The capture of `stream` is whole: it ends with the work it was given.
void check_whole(CUstream stream) {
  CHECK(capturing(stream));
  const Graph graph(end(stream));
  check_usable(stream);
}

void check_broken(CUstream stream) {
  CHECK(invalidated(stream));
  check_end_fails(stream, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  check_usable(stream);
}

/// `call` is prohibited beside a GLOBAL capture of the same thread and breaks it, and is allowed
/// beside a RELAXED one.
template <class Call>
void check_potentially_unsafe(Call call) {
  const Stream strict;
  begin(strict, kGlobal);
  CHECK_CODE(call(), kProhibited);
  check_broken(strict);
  const Stream relaxed;
  begin(relaxed, kRelaxed);
  CHECK_CODE(call(), CUDA_SUCCESS);
  check_whole(relaxed);
}

}  // namespace

TEST_CASE_FIXTURE(Primary, "MODE-01: a thread begins as GLOBAL [H]") {
  auto found = kRelaxed;
  REQUIRE_OK(on_thread(context, [&] { return api.cuThreadExchangeStreamCaptureMode(&found); }));
  CHECK(found == kGlobal);
}

TEST_CASE_FIXTURE(Primary, "MODE-02: exchange sets the mode and answers the one before [H]") {
  const CUstreamCaptureMode before = exchange(kRelaxed);
  CHECK(exchange(kThreadLocal) == kRelaxed);
  CHECK(exchange(before) == kThreadLocal);
}

TEST_CASE_FIXTURE(Primary, "MODE-03: the mode belongs to the thread and not to the process [H]") {
  const ThreadMode mode(kRelaxed);
  auto found = kRelaxed;
  REQUIRE_OK(on_thread(context, [&] { return api.cuThreadExchangeStreamCaptureMode(&found); }));
  CHECK(found == kGlobal);
}

TEST_CASE_FIXTURE(Primary, "MODE-04: a mode that does not exist is exchanged [?]") {
  const CUstreamCaptureMode before = exchange(kGlobal);
  auto none = static_cast<CUstreamCaptureMode>(3);
  observe("the exchange for a mode that does not exist",
          api.cuThreadExchangeStreamCaptureMode(&none));
  exchange(before);
}

TEST_CASE_FIXTURE(Primary, "MODE-05: beside a GLOBAL capture of this thread: 900 and broken [H]") {
  const Stream stream;
  begin(stream, kGlobal);
  CHECK_CODE(allocate(), kProhibited);
  check_broken(stream);
}

TEST_CASE_FIXTURE(Primary,
                  "MODE-06: beside a THREAD_LOCAL capture of this thread: 900 and broken [H]") {
  const Stream stream;
  begin(stream, kThreadLocal);
  CHECK_CODE(allocate(), kProhibited);
  check_broken(stream);
}

TEST_CASE_FIXTURE(Primary, "MODE-07: beside a RELAXED capture of this thread: allowed [H]") {
  const Stream stream;
  begin(stream, kRelaxed);
  CHECK_CODE(allocate(), CUDA_SUCCESS);
  check_whole(stream);
}

TEST_CASE_FIXTURE(Primary, "MODE-08: beside another thread's GLOBAL capture: 900 and broken [H]") {
  const Stream stream;
  begin(stream, kGlobal);
  CHECK_CODE(allocate_elsewhere(context, kGlobal), kProhibited);
  check_broken(stream);
}

TEST_CASE_FIXTURE(Primary, "MODE-09: beside another thread's THREAD_LOCAL capture: allowed [H]") {
  const Stream stream;
  begin(stream, kThreadLocal);
  CHECK_CODE(allocate_elsewhere(context, kGlobal), CUDA_SUCCESS);
  check_whole(stream);
}

TEST_CASE_FIXTURE(Primary, "MODE-10: beside another thread's RELAXED capture: allowed [H]") {
  const Stream stream;
  begin(stream, kRelaxed);
  CHECK_CODE(allocate_elsewhere(context, kGlobal), CUDA_SUCCESS);
  check_whole(stream);
}

TEST_CASE_FIXTURE(Primary, "MODE-11: a THREAD_LOCAL thread ignores other threads' captures [H]") {
  const Stream stream;
  begin(stream, kGlobal);
  CHECK_CODE(allocate_elsewhere(context, kThreadLocal), CUDA_SUCCESS);
  check_whole(stream);
}

TEST_CASE_FIXTURE(Primary, "MODE-12: a RELAXED thread ignores other threads' captures [H]") {
  const Stream stream;
  begin(stream, kGlobal);
  CHECK_CODE(allocate_elsewhere(context, kRelaxed), CUDA_SUCCESS);
  check_whole(stream);
}

TEST_CASE_FIXTURE(Primary, "MODE-13: a RELAXED thread ignores its own captures too [H]") {
  for (const CUstreamCaptureMode captured : {kGlobal, kThreadLocal}) {
    const Stream stream;
    begin(stream, captured);
    {
      const ThreadMode mode(kRelaxed);
      CHECK_CODE(allocate(), CUDA_SUCCESS);
    }
    check_whole(stream);
  }
}

TEST_CASE_FIXTURE(Primary, "MODE-14: a THREAD_LOCAL thread does not ignore its own captures [H]") {
  for (const CUstreamCaptureMode captured : {kGlobal, kThreadLocal}) {
    const Stream stream;
    begin(stream, captured);
    {
      const ThreadMode mode(kThreadLocal);
      CHECK_CODE(allocate(), kProhibited);
    }
    check_broken(stream);
  }
}

TEST_CASE_FIXTURE(Primary, "MODE-15: the mode of a capture is not its thread's mode [H]") {
  const Stream stream;
  {
    const ThreadMode mode(kRelaxed);
    begin(stream, kGlobal);
  }
  CHECK_CODE(allocate_elsewhere(context, kGlobal), kProhibited);
  check_broken(stream);
}

TEST_CASE_FIXTURE(Primary, "MODE-16: a RELAXED thread still meets what always conflicts [H]") {
  const ThreadMode mode(kRelaxed);
  const Stream stream;
  const Event event;
  begin(stream, kRelaxed);
  REQUIRE_OK(api.cuEventRecord(event, stream));
  CHECK_CODE(api.cuEventQuery(event), CUDA_ERROR_CAPTURED_EVENT);
  check_broken(stream);
}

TEST_CASE_FIXTURE(Primary, "MODE-17: after the end nothing is prohibited any more [H]") {
  const Stream stream;
  begin(stream, kGlobal);
  check_whole(stream);
  CHECK_CODE(allocate(), CUDA_SUCCESS);
  CHECK_CODE(allocate_elsewhere(context, kGlobal), CUDA_SUCCESS);
}

TEST_CASE_FIXTURE(Primary, "MODE-18: a prohibited call beside a capture that it may ignore [?]") {
  const Stream strict;
  const Stream relaxed;
  begin(strict, kGlobal);
  begin(relaxed, kRelaxed);
  CHECK_CODE(allocate(), kProhibited);
  CHECK(invalidated(strict));
  observe("the RELAXED capture beside the broken one", status_text(relaxed));
  end_and_drop(relaxed);
  check_end_fails(strict, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

TEST_CASE_FIXTURE(Primary, "MODE-20: freeing memory is potentially unsafe [N]") {
  CUdeviceptr memory = 0;
  REQUIRE_OK(api.cuMemAlloc_v2(&memory, 256));
  check_potentially_unsafe([&] { return api.cuMemFree_v2(memory); });
}

TEST_CASE_FIXTURE(Primary, "MODE-21: making a memory pool is potentially unsafe [N]") {
  CUmemPoolProps asked{};
  asked.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  asked.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
  CUmemoryPool pool = nullptr;
  check_potentially_unsafe([&] { return api.cuMemPoolCreate(&pool, &asked); });
  CHECK_CODE(api.cuMemPoolDestroy(pool), CUDA_SUCCESS);
}

TEST_CASE_FIXTURE(Primary, "MODE-22: destroying a memory pool is potentially unsafe [N]") {
  CUmemPoolProps asked{};
  asked.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  asked.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
  CUmemoryPool pool = nullptr;
  REQUIRE_OK(api.cuMemPoolCreate(&pool, &asked));
  check_potentially_unsafe([&] { return api.cuMemPoolDestroy(pool); });
}

TEST_CASE_FIXTURE(Primary, "MODE-23: setting the device's memory pool is potentially unsafe [N]") {
  CUmemoryPool pool = nullptr;
  REQUIRE_OK(api.cuDeviceGetDefaultMemPool(&pool, device));
  check_potentially_unsafe([&] { return api.cuDeviceSetMemPool(device, pool); });
}

TEST_CASE_FIXTURE(Primary, "MODE-24: loading a module is potentially unsafe [P]") {
  CUmodule module = nullptr;
  check_potentially_unsafe([&] { return api.cuModuleLoadData(&module, kernel_image()); });
  CHECK_CODE(api.cuModuleUnload(module), CUDA_SUCCESS);
}

TEST_CASE_FIXTURE(Primary, "MODE-25: unloading a module is potentially unsafe [P]") {
  CUmodule module = nullptr;
  REQUIRE_OK(api.cuModuleLoadData(&module, kernel_image()));
  check_potentially_unsafe([&] { return api.cuModuleUnload(module); });
}

TEST_CASE_FIXTURE(Primary, "MODE-26: waiting for an unrelated stream is potentially unsafe [N]") {
  const Stream unrelated;
  check_potentially_unsafe([&] { return api.cuStreamSynchronize(unrelated); });
}

TEST_CASE_FIXTURE(Primary, "MODE-27: querying an unrelated stream is potentially unsafe [N]") {
  const Stream unrelated;
  check_potentially_unsafe([&] { return api.cuStreamQuery(unrelated); });
}

TEST_CASE_FIXTURE(Primary, "MODE-28: waiting for an uncaptured event is potentially unsafe [N]") {
  const Stream unrelated;
  const Event event;
  REQUIRE_OK(api.cuEventRecord(event, unrelated));
  REQUIRE_OK(api.cuStreamSynchronize(unrelated));
  check_potentially_unsafe([&] { return api.cuEventSynchronize(event); });
}

TEST_CASE_FIXTURE(Primary, "MODE-29: querying an uncaptured event is potentially unsafe [N]") {
  const Stream unrelated;
  const Event event;
  REQUIRE_OK(api.cuEventRecord(event, unrelated));
  REQUIRE_OK(api.cuStreamSynchronize(unrelated));
  check_potentially_unsafe([&] { return api.cuEventQuery(event); });
}

TEST_CASE_FIXTURE(Primary,
                  "MODE-30: another thread's wait for an unrelated stream meets GLOBAL [N]") {
  const Stream unrelated;
  const auto elsewhere = [&] {
    return on_thread(context, [&] { return api.cuStreamSynchronize(unrelated); });
  };
  const Stream strict;
  begin(strict, kGlobal);
  CHECK_CODE(elsewhere(), kProhibited);
  check_broken(strict);
  for (const CUstreamCaptureMode harmless : {kThreadLocal, kRelaxed}) {
    const Stream stream;
    begin(stream, harmless);
    CHECK_CODE(elsewhere(), CUDA_SUCCESS);
    check_whole(stream);
  }
}

TEST_CASE_FIXTURE(Primary,
                  "MODE-31: another thread's query of an uncaptured event meets GLOBAL [N]") {
  const Stream unrelated;
  const Event event;
  REQUIRE_OK(api.cuEventRecord(event, unrelated));
  REQUIRE_OK(api.cuStreamSynchronize(unrelated));
  const auto elsewhere = [&] {
    return on_thread(context, [&] { return api.cuEventQuery(event); });
  };
  const Stream strict;
  begin(strict, kGlobal);
  CHECK_CODE(elsewhere(), kProhibited);
  check_broken(strict);
  for (const CUstreamCaptureMode harmless : {kThreadLocal, kRelaxed}) {
    const Stream stream;
    begin(stream, harmless);
    CHECK_CODE(elsewhere(), CUDA_SUCCESS);
    check_whole(stream);
  }
}

TEST_CASE_FIXTURE(Primary, "MODE-32: making an event and a stream beside a RELAXED capture [N]") {
  std::optional<Event> event;
  std::optional<Stream> another;
  const Stream stream;
  begin(stream, kRelaxed);
  event.emplace();
  another.emplace();
  check_whole(stream);
}

TEST_CASE_FIXTURE(Primary, "MODE-33: making an event and a stream beside a strict capture [?]") {
  CUevent event = nullptr;
  CUstream another = nullptr;
  const Stream stream;
  begin(stream, kGlobal);
  observe("cuEventCreate beside a GLOBAL capture", api.cuEventCreate(&event, 0));
  observe("the capture after that", status_text(stream));
  observe("cuStreamCreate beside a GLOBAL capture",
          api.cuStreamCreate(&another, CU_STREAM_NON_BLOCKING));
  observe("the capture after that too", status_text(stream));
  end_and_drop(stream);
  if (event != nullptr) api.cuEventDestroy_v2(event);
  if (another != nullptr) api.cuStreamDestroy_v2(another);
}

TEST_CASE_FIXTURE(Primary, "MODE-34: asking whether a stream captures is always allowed [H]") {
  const Stream unrelated;
  const Stream stream;
  begin(stream, kGlobal);
  CHECK(status(unrelated) == CU_STREAM_CAPTURE_STATUS_NONE);
  check_whole(stream);
}
