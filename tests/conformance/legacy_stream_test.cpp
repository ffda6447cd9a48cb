// The legacy stream beside a capture: it waits for every stream that was not made NON_BLOCKING, so
// using it, as every synchronous call does, conflicts with the capture of such a stream.
#include "graph_support.hpp"

using namespace conformance;

namespace {

constexpr CUresult kImplicit = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;

/// A capture of a blocking stream in that mode meets `call`, which answers 906 and breaks it.
template <class Call>
void check_conflicts(CUstreamCaptureMode mode, Call call) {
  const Stream blocking(CU_STREAM_DEFAULT);
  begin(blocking, mode);
  CHECK_CODE(call(), kImplicit);
  CHECK(invalidated(blocking));
  check_end_fails(blocking, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  check_usable(blocking);
}

/// The same in each mode.
template <class Call>
void check_conflicts(Call call) {
  for (const auto mode : {CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
                          CU_STREAM_CAPTURE_MODE_RELAXED}) {
    check_conflicts(mode, call);
  }
}

}  // namespace

TEST_CASE_FIXTURE(Primary, "LEG-01: a synchronous copy beside a blocking capture: 906 [G]") {
  const Memory memory;
  const std::uint32_t value = 1;
  check_conflicts([&] { return api.cuMemcpyHtoD_v2(memory, &value, sizeof value); });
  CHECK(memory.word() == 0);
}

TEST_CASE_FIXTURE(Primary, "LEG-02: a synchronous copy back beside a blocking capture: 906 [G]") {
  const Memory memory;
  std::uint32_t value = 1;
  check_conflicts([&] { return api.cuMemcpyDtoH_v2(&value, memory, sizeof value); });
  CHECK(value == 1);
}

TEST_CASE_FIXTURE(Primary, "LEG-03: a synchronous fill beside a blocking capture: 906 [G]") {
  const Memory memory;
  check_conflicts([&] { return api.cuMemsetD8_v2(memory, 1, sizeof(std::uint32_t)); });
  CHECK(memory.word() == 0);
}

TEST_CASE_FIXTURE(Primary,
                  "LEG-04: a fill on the legacy stream beside a blocking capture: 906 [G]") {
  const Memory memory;
  check_conflicts([&] { return fill(nullptr, memory, 1); });
  check_conflicts([&] { return fill(CU_STREAM_LEGACY, memory, 1); });
  CHECK(memory.word() == 0);
}

TEST_CASE_FIXTURE(Primary,
                  "LEG-05: a launch on the legacy stream beside a blocking capture: 906 [G]") {
  const Memory memory;
  const CUfunction kernel = this->kernel("add_one");
  check_conflicts([&] { return launch(kernel, nullptr, memory.get()); });
  CHECK(memory.word() == 0);
}

TEST_CASE_FIXTURE(Primary,
                  "LEG-06: a record on the legacy stream beside a blocking capture: 906 [G]") {
  const Event event;
  check_conflicts([&] { return api.cuEventRecord(event, nullptr); });
}

TEST_CASE_FIXTURE(Primary,
                  "LEG-07: another thread's legacy stream meets a blocking capture too: 906 [G]") {
  const Memory memory;
  check_conflicts([&] { return on_thread(context, [&] { return fill(nullptr, memory, 1); }); });
  CHECK(memory.word() == 0);
}

TEST_CASE_FIXTURE(Primary,
                  "LEG-08: whether the legacy stream captures: 906 and nothing broken [H]") {
  const Stream blocking(CU_STREAM_DEFAULT);
  begin(blocking);
  for (const CUstream legacy : {CUstream{nullptr}, CU_STREAM_LEGACY}) {
    auto found = CU_STREAM_CAPTURE_STATUS_NONE;
    CHECK_CODE(api.cuStreamIsCapturing(legacy, &found), kImplicit);
  }
  CHECK(capturing(blocking));
  const Graph graph(end(blocking));
  CHECK(status(nullptr) == CU_STREAM_CAPTURE_STATUS_NONE);
}

TEST_CASE_FIXTURE(Primary, "LEG-09: what the legacy stream captures: 906 and nothing broken [H]") {
  const Stream blocking(CU_STREAM_DEFAULT);
  begin(blocking);
  for (const CUstream legacy : {CUstream{nullptr}, CU_STREAM_LEGACY}) {
    auto found = CU_STREAM_CAPTURE_STATUS_NONE;
    CHECK_CODE(
        api.cuStreamGetCaptureInfo_v3(legacy, &found, nullptr, nullptr, nullptr, nullptr, nullptr),
        kImplicit);
  }
  CHECK(capturing(blocking));
  const Graph graph(end(blocking));
}

TEST_CASE_FIXTURE(Primary, "LEG-10: beside a NON_BLOCKING capture the legacy stream works [G]") {
  const Stream stream;
  const Memory memory(2);
  const std::uint32_t value = 10;
  begin(stream);
  CHECK_CODE(fill(nullptr, memory, 9), CUDA_SUCCESS);
  CHECK_CODE(api.cuMemcpyHtoD_v2(memory + 4, &value, sizeof value), CUDA_SUCCESS);
  CHECK(status(nullptr) == CU_STREAM_CAPTURE_STATUS_NONE);
  CHECK(capturing(stream));
  const Graph graph(end(stream));
  CHECK(nodes_of(graph).empty());
  CHECK(memory.words() == std::vector<std::uint32_t>{9, 10});
}

TEST_CASE_FIXTURE(Primary, "LEG-11: a blocking stream that joined a capture counts too: 906 [H]") {
  const Stream origin;
  const Stream blocking(CU_STREAM_DEFAULT);
  const Event event;
  begin(origin);
  CHECK(status(nullptr) == CU_STREAM_CAPTURE_STATUS_NONE);
  follow(blocking, origin, event);
  auto found = CU_STREAM_CAPTURE_STATUS_NONE;
  CHECK_CODE(api.cuStreamIsCapturing(nullptr, &found), kImplicit);
  CHECK(capturing(origin));
  const Graph graph(end(origin));
  CHECK(status(nullptr) == CU_STREAM_CAPTURE_STATUS_NONE);
}

TEST_CASE_FIXTURE(Primary, "LEG-12: after a blocking capture the legacy stream works again [G]") {
  const Stream blocking(CU_STREAM_DEFAULT);
  const Memory memory;
  begin(blocking);
  const Graph graph(end(blocking));
  CHECK_CODE(fill(nullptr, memory, 12), CUDA_SUCCESS);
  CHECK(memory.word() == 12);
}

TEST_CASE_FIXTURE(Primary,
                  "LEG-13: the legacy stream is waited for beside a blocking capture [?]") {
  const Stream blocking(CU_STREAM_DEFAULT);
  begin(blocking, CU_STREAM_CAPTURE_MODE_RELAXED);
  observe("a wait for the legacy stream", api.cuStreamSynchronize(nullptr));
  observe("the capture after that", status_text(blocking));
  end_and_drop(blocking);
  begin(blocking, CU_STREAM_CAPTURE_MODE_RELAXED);
  observe("a query of the legacy stream", api.cuStreamQuery(nullptr));
  observe("the capture after that query", status_text(blocking));
  end_and_drop(blocking);
  check_usable(blocking);
}
