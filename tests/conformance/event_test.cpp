// Events: what one stands for, who waits for it, and the time between two.
#include <doctest/doctest.h>

#include "fixture.hpp"

using namespace conformance;

namespace {

constexpr unsigned kTiming = CU_EVENT_DEFAULT;

CUresult copy_word(CUdeviceptr to, CUdeviceptr from, CUstream stream) {
  return api().cuMemcpyDtoDAsync_v2(to, from, sizeof(std::uint32_t), stream);
}

}  // namespace

TEST_CASE_FIXTURE(Primary, "EVT-01: an event that was never recorded is complete [H]") {
  Event event;
  CHECK_CODE(api.cuEventQuery(event), CUDA_SUCCESS);
  CHECK_CODE(api.cuEventSynchronize(event), CUDA_SUCCESS);
}

TEST_CASE_FIXTURE(Primary,
                  "EVT-02: waiting for an event that was never recorded waits for nothing [H]") {
  Stream stream;
  Event event;
  Memory memory;
  CHECK_CODE(api.cuStreamWaitEvent(stream, event, 0), CUDA_SUCCESS);
  REQUIRE_OK(launch(kernel("write_word"), stream, memory.get(), std::uint32_t{2}));
  CHECK(memory.word_after(stream) == 2);
}

TEST_CASE_FIXTURE(Primary,
                  "EVT-03: an event is complete when the work before it is and not earlier [H]") {
  Stream stream;
  Event event;
  Busy busy(*this, stream);
  REQUIRE_OK(api.cuEventRecord(event, stream));
  CHECK_CODE(api.cuEventQuery(event), CUDA_ERROR_NOT_READY);
  busy.end();
  CHECK_CODE(api.cuEventSynchronize(event), CUDA_SUCCESS);
  CHECK_CODE(api.cuEventQuery(event), CUDA_SUCCESS);
}

TEST_CASE_FIXTURE(Primary,
                  "EVT-04: work that comes after the record does not belong to the event [H]") {
  Stream stream;
  Event event;
  Memory memory;
  const CUfunction write = kernel("write_word");
  REQUIRE_OK(api.cuEventRecord(event, stream));
  REQUIRE_OK(api.cuEventSynchronize(event));
  Busy busy(*this, stream);
  REQUIRE_OK(launch(write, stream, memory.get(), std::uint32_t{1}));
  CHECK_CODE(api.cuEventQuery(event), CUDA_SUCCESS);
  busy.end();
}

TEST_CASE_FIXTURE(Primary,
                  "EVT-05: a stream that waits for an event runs after the work before it [H]") {
  Stream first;
  Stream second;
  Event event;
  Memory memory(2);
  const CUfunction write = kernel("write_word");
  Busy busy(*this, first);
  REQUIRE_OK(launch(write, first, memory.get(), std::uint32_t{5}));
  REQUIRE_OK(api.cuEventRecord(event, first));
  REQUIRE_OK(api.cuStreamWaitEvent(second, event, CU_EVENT_WAIT_DEFAULT));
  REQUIRE_OK(copy_word(memory.get() + 4, memory, second));
  CHECK_CODE(api.cuStreamQuery(second), CUDA_ERROR_NOT_READY);
  busy.end();
  REQUIRE_OK(api.cuStreamSynchronize(second));
  CHECK(memory.word(1) == 5);
}

TEST_CASE_FIXTURE(Primary,
                  "EVT-06: a wait means the record before it whatever is recorded later [H]") {
  Stream first;
  Stream second;
  Stream idle;
  Event event;
  Memory memory(2);
  const CUfunction write = kernel("write_word");
  Busy busy(*this, first);
  REQUIRE_OK(launch(write, first, memory.get(), std::uint32_t{6}));
  REQUIRE_OK(api.cuEventRecord(event, first));
  REQUIRE_OK(api.cuStreamWaitEvent(second, event, 0));
  REQUIRE_OK(api.cuEventRecord(event, idle));
  REQUIRE_OK(copy_word(memory.get() + 4, memory, second));
  busy.end();
  REQUIRE_OK(api.cuStreamSynchronize(second));
  CHECK(memory.word(1) == 6);
}

TEST_CASE_FIXTURE(Primary, "EVT-07: an event stands for its latest record [H]") {
  Stream stream;
  Event event;
  REQUIRE_OK(api.cuEventRecord(event, stream));
  REQUIRE_OK(api.cuEventSynchronize(event));
  Busy busy(*this, stream);
  REQUIRE_OK(api.cuEventRecord(event, stream));
  CHECK_CODE(api.cuEventQuery(event), CUDA_ERROR_NOT_READY);
  busy.end();
  CHECK_CODE(api.cuEventSynchronize(event), CUDA_SUCCESS);
}

TEST_CASE_FIXTURE(
    Primary, "EVT-08: time from or to an event that was never recorded is refused with 400 [H]") {
  Stream stream;
  Event recorded(kTiming);
  Event never(kTiming);
  REQUIRE_OK(api.cuEventRecord(recorded, stream));
  REQUIRE_OK(api.cuEventSynchronize(recorded));
  float milliseconds = 0;
  CHECK_CODE(api.cuEventElapsedTime(&milliseconds, recorded, never), CUDA_ERROR_INVALID_HANDLE);
  CHECK_CODE(api.cuEventElapsedTime(&milliseconds, never, recorded), CUDA_ERROR_INVALID_HANDLE);
}

TEST_CASE_FIXTURE(Primary, "EVT-09: time of an event made without timing is refused with 400 [H]") {
  Stream stream;
  Event timed(kTiming);
  Event untimed(CU_EVENT_DISABLE_TIMING);
  REQUIRE_OK(api.cuEventRecord(timed, stream));
  REQUIRE_OK(api.cuEventRecord(untimed, stream));
  REQUIRE_OK(api.cuStreamSynchronize(stream));
  float milliseconds = 0;
  CHECK_CODE(api.cuEventElapsedTime(&milliseconds, timed, untimed), CUDA_ERROR_INVALID_HANDLE);
  CHECK_CODE(api.cuEventElapsedTime(&milliseconds, untimed, timed), CUDA_ERROR_INVALID_HANDLE);
}

TEST_CASE_FIXTURE(Primary, "EVT-10: time to an event that is not complete answers 600 [H]") {
  Stream stream;
  Event start(kTiming);
  Event end(kTiming);
  REQUIRE_OK(api.cuEventRecord(start, stream));
  REQUIRE_OK(api.cuEventSynchronize(start));
  Busy busy(*this, stream);
  REQUIRE_OK(api.cuEventRecord(end, stream));
  float milliseconds = 0;
  CHECK_CODE(api.cuEventElapsedTime(&milliseconds, start, end), CUDA_ERROR_NOT_READY);
  busy.end();
  REQUIRE_OK(api.cuEventSynchronize(end));
  CHECK_CODE(api.cuEventElapsedTime(&milliseconds, start, end), CUDA_SUCCESS);
  CHECK(milliseconds >= 0.0F);
}

TEST_CASE_FIXTURE(Primary, "EVT-11: an event may be destroyed before it is complete [H]") {
  Stream first;
  Stream second;
  Memory memory(2);
  const CUfunction write = kernel("write_word");
  Busy busy(*this, first);
  REQUIRE_OK(launch(write, first, memory.get(), std::uint32_t{11}));
  {
    Event event;
    REQUIRE_OK(api.cuEventRecord(event, first));
    REQUIRE_OK(api.cuStreamWaitEvent(second, event, 0));
    CHECK_CODE(api.cuEventDestroy_v2(event.take()), CUDA_SUCCESS);
  }
  REQUIRE_OK(copy_word(memory.get() + 4, memory, second));
  busy.end();
  REQUIRE_OK(api.cuStreamSynchronize(second));
  CHECK(memory.word(1) == 11);
}

TEST_CASE_FIXTURE(Primary,
                  "EVT-12: flags that are none and no place for the event are refused with 1 [H]") {
  CUevent event = nullptr;
  CHECK_CODE(api.cuEventCreate(&event, 0xF0), CUDA_ERROR_INVALID_VALUE);
  CHECK_CODE(api.cuEventCreate(nullptr, 0), CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE_FIXTURE(Primary, "EVT-13: a record with no flags is a plain record [H]") {
  Stream stream;
  Event event;
  Busy busy(*this, stream);
  CHECK_CODE(api.cuEventRecordWithFlags(event, stream, CU_EVENT_RECORD_DEFAULT), CUDA_SUCCESS);
  CHECK_CODE(api.cuEventQuery(event), CUDA_ERROR_NOT_READY);
  busy.end();
  CHECK_CODE(api.cuEventSynchronize(event), CUDA_SUCCESS);
}

TEST_CASE_FIXTURE(Primary,
                  "EVT-14: an event of the legacy stream covers the blocking streams [G]") {
  Stream blocking(CU_STREAM_DEFAULT);
  Stream other;
  Event event;
  Memory memory(2);
  const CUfunction write = kernel("write_word");
  Busy busy(*this, blocking);
  REQUIRE_OK(launch(write, blocking, memory.get(), std::uint32_t{14}));
  REQUIRE_OK(api.cuEventRecord(event, nullptr));
  REQUIRE_OK(api.cuStreamWaitEvent(other, event, 0));
  REQUIRE_OK(copy_word(memory.get() + 4, memory, other));
  busy.end();
  REQUIRE_OK(api.cuStreamSynchronize(other));
  CHECK(memory.word(1) == 14);
}

TEST_CASE_FIXTURE(Primary, "EVT-15: what a null event and odd flags are answered with [?]") {
  Stream stream;
  observe("record of null", api.cuEventRecord(nullptr, stream));
  observe("query of null", api.cuEventQuery(nullptr));
  observe("wait for null", api.cuStreamWaitEvent(stream, nullptr, 0));
  CUevent event = nullptr;
  const CUresult code = api.cuEventCreate(&event, CU_EVENT_INTERPROCESS);
  observe("interprocess with timing", code);
  if (code == CUDA_SUCCESS) api.cuEventDestroy_v2(event);
}
