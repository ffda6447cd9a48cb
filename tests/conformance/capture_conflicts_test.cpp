// Calls that conflict with a capture whatever its mode: looking at, or waiting for, work that was
// captured and therefore never runs.
#include "graph_support.hpp"

using namespace conformance;

namespace {

constexpr CUresult kUnsupported = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
constexpr CUresult kInvalidated = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
constexpr CUresult kCapturedEvent = CUDA_ERROR_CAPTURED_EVENT;

/// The capture is broken, ends so, and leaves the stream as good as new.
void check_broken(CUstream stream) {
  CHECK(invalidated(stream));
  check_end_fails(stream, kInvalidated);
  check_usable(stream);
}

void CUDA_CB stream_callback(CUstream, CUresult, void*) {}

}  // namespace

TEST_CASE_FIXTURE(Primary, "CEV-30: a query of a capturing stream: 900 and broken [G]") {
  const Stream stream;
  begin(stream, CU_STREAM_CAPTURE_MODE_RELAXED);
  CHECK_CODE(api.cuStreamQuery(stream), kUnsupported);
  check_broken(stream);
}

TEST_CASE_FIXTURE(Primary, "CEV-31: a wait for a capturing stream: 900 and broken [G]") {
  const Stream stream;
  begin(stream, CU_STREAM_CAPTURE_MODE_RELAXED);
  CHECK_CODE(api.cuStreamSynchronize(stream), kUnsupported);
  check_broken(stream);
}

TEST_CASE_FIXTURE(Primary, "CEV-32: a query of a member of a capture: 900 and all broken [G]") {
  const Stream origin;
  const Stream member;
  const Event event;
  begin(origin, CU_STREAM_CAPTURE_MODE_RELAXED);
  follow(member, origin, event);
  CHECK_CODE(api.cuStreamQuery(member), kUnsupported);
  CHECK(invalidated(member));
  check_broken(origin);
  check_usable(member);
}

TEST_CASE_FIXTURE(Primary,
                  "CEV-33: another thread's query of a capturing stream breaks it too [G]") {
  const Stream stream;
  begin(stream, CU_STREAM_CAPTURE_MODE_RELAXED);
  CHECK_CODE(on_thread(context, [&] { return api.cuStreamQuery(stream); }), kUnsupported);
  check_broken(stream);
}

TEST_CASE_FIXTURE(Primary,
                  "CEV-34: another thread's wait for a capturing stream breaks it too [G]") {
  const Stream stream;
  begin(stream, CU_STREAM_CAPTURE_MODE_RELAXED);
  CHECK_CODE(on_thread(context, [&] { return api.cuStreamSynchronize(stream); }), kUnsupported);
  check_broken(stream);
}

TEST_CASE_FIXTURE(Primary, "CEV-35: a query of a captured event: 907 and broken [G]") {
  const Stream stream;
  const Event event;
  begin(stream, CU_STREAM_CAPTURE_MODE_RELAXED);
  REQUIRE_OK(api.cuEventRecord(event, stream));
  CHECK_CODE(api.cuEventQuery(event), kCapturedEvent);
  check_broken(stream);
}

TEST_CASE_FIXTURE(Primary, "CEV-36: a wait for a captured event: 907 and broken [G]") {
  const Stream stream;
  const Event event;
  begin(stream, CU_STREAM_CAPTURE_MODE_RELAXED);
  REQUIRE_OK(api.cuEventRecord(event, stream));
  CHECK_CODE(api.cuEventSynchronize(event), kCapturedEvent);
  check_broken(stream);
}

TEST_CASE_FIXTURE(Primary, "CEV-37: another thread's query of a captured event breaks it too [G]") {
  const Stream stream;
  const Event event;
  begin(stream, CU_STREAM_CAPTURE_MODE_RELAXED);
  REQUIRE_OK(api.cuEventRecord(event, stream));
  CHECK_CODE(on_thread(context, [&] { return api.cuEventQuery(event); }), kCapturedEvent);
  check_broken(stream);
}

TEST_CASE_FIXTURE(Primary, "CEV-38: a wait for the context: 900 and every capture broken [P]") {
  const Stream one;
  const Stream two;
  begin(one, CU_STREAM_CAPTURE_MODE_RELAXED);
  begin(two, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  CHECK_CODE(api.cuCtxSynchronize(), kUnsupported);
  CHECK(invalidated(two));
  check_end_fails(two, kInvalidated);
  check_broken(one);
  check_usable(two);
}

TEST_CASE_FIXTURE(Primary,
                  "CEV-39: another thread's wait for the context breaks captures too [P]") {
  const Stream one;
  const Stream two;
  begin(one, CU_STREAM_CAPTURE_MODE_RELAXED);
  begin(two, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  CHECK_CODE(on_thread(context, [&] { return api.cuCtxSynchronize(); }), kUnsupported);
  CHECK(invalidated(two));
  check_end_fails(two, kInvalidated);
  check_broken(one);
  check_usable(two);
}

TEST_CASE_FIXTURE(Primary, "CEV-40: a callback into a capturing stream is refused with 900 [N]") {
  const Stream stream;
  begin(stream, CU_STREAM_CAPTURE_MODE_RELAXED);
  CHECK_CODE(api.cuStreamAddCallback(stream, stream_callback, nullptr, 0), kUnsupported);
  observe("the capture after that", status_text(stream));
  end_and_drop(stream);
  check_usable(stream);
}

TEST_CASE_FIXTURE(Primary, "CEV-41: the time between captured events is asked for [?]") {
  const Stream stream;
  const Event first(CU_EVENT_DEFAULT);
  const Event second(CU_EVENT_DEFAULT);
  begin(stream, CU_STREAM_CAPTURE_MODE_RELAXED);
  REQUIRE_OK(api.cuEventRecord(first, stream));
  REQUIRE_OK(api.cuEventRecord(second, stream));
  float milliseconds = 0;
  observe("the time between captured events", api.cuEventElapsedTime(&milliseconds, first, second));
  observe("the capture after that", status_text(stream));
  observe("its end", end_and_drop(stream));
}

TEST_CASE_FIXTURE(Primary, "CEV-42: a peer copy in a capture [?]") {
  const Stream stream;
  const Memory memory(2);
  begin(stream, CU_STREAM_CAPTURE_MODE_RELAXED);
  observe("a peer copy in a capture",
          api.cuMemcpyPeerAsync(memory + 4, context, memory, context, 4, stream));
  observe("the capture after that", status_text(stream));
  observe("its end", end_and_drop(stream));
}
