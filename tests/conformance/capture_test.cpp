// The state machine of a capture: where it may begin and end, what it turns work into, and what it
// tells about itself. Forks and joins are in capture_events_test.cpp, calls that conflict with a
// capture in capture_conflicts_test.cpp and capture_modes_test.cpp.
#include "graph_support.hpp"

using namespace conformance;

TEST_CASE_FIXTURE(Primary, "CAP-01: begin on the legacy stream is refused with 900 [N]") {
  const auto mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  CHECK_CODE(api.cuStreamBeginCapture_v2(nullptr, mode), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  CHECK_CODE(api.cuStreamBeginCapture_v2(CU_STREAM_LEGACY, mode),
             CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

TEST_CASE_FIXTURE(Primary, "CAP-02: begin with a mode that does not exist answers 1 [N]") {
  const Stream stream;
  CHECK_CODE(api.cuStreamBeginCapture_v2(stream, static_cast<CUstreamCaptureMode>(3)),
             CUDA_ERROR_INVALID_VALUE);
  check_usable(stream);
}

TEST_CASE_FIXTURE(Primary, "CAP-03: begin on a stream that captures already answers 401 [N]") {
  const Stream stream;
  begin(stream);
  CHECK_CODE(api.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
             CUDA_ERROR_ILLEGAL_STATE);
  observe("the capture after a second begin", status_text(stream));
  end_and_drop(stream);
  check_usable(stream);
}

TEST_CASE_FIXTURE(Primary, "CAP-04: begin on a stream that an event pulled in answers 401 [N]") {
  const Stream origin;
  const Stream member;
  const Event event;
  begin(origin);
  follow(member, origin, event);
  CHECK_CODE(api.cuStreamBeginCapture_v2(member, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
             CUDA_ERROR_ILLEGAL_STATE);
  end_and_drop(origin);
  check_usable(origin);
  check_usable(member);
}

TEST_CASE_FIXTURE(Primary, "CAP-05: begin on an invalidated stream is rejected [P]") {
  const Stream stream;
  begin(stream);
  invalidate(stream);
  const CUresult answered =
      api.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  CHECK(answered != CUDA_SUCCESS);
  observe("begin on an invalidated stream", answered);
  check_end_fails(stream, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  check_usable(stream);
}

TEST_CASE_FIXTURE(Primary, "CAP-06: end of a stream that does not capture answers 401 [N]") {
  const Stream stream;
  CUgraph graph = nullptr;
  CHECK_CODE(api.cuStreamEndCapture(stream, &graph), CUDA_ERROR_ILLEGAL_STATE);
  check_usable(stream);
}

TEST_CASE_FIXTURE(Primary, "CAP-07: end of the legacy stream answers 401 [N]") {
  CUgraph graph = nullptr;
  CHECK_CODE(api.cuStreamEndCapture(nullptr, &graph), CUDA_ERROR_ILLEGAL_STATE);
  CHECK_CODE(api.cuStreamEndCapture(CU_STREAM_LEGACY, &graph), CUDA_ERROR_ILLEGAL_STATE);
}

TEST_CASE_FIXTURE(Primary, "CAP-08: end on a member that is not the origin answers 903 [N]") {
  const Stream origin;
  const Stream member;
  const Event forked;
  const Event joined;
  begin(origin);
  follow(member, origin, forked);
  follow(origin, member, joined);
  CUgraph graph = nullptr;
  CHECK_CODE(api.cuStreamEndCapture(member, &graph), CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
  observe("the capture after an end on a member", status_text(origin));
  observe("the end on the origin after that", end_and_drop(origin));
}

TEST_CASE_FIXTURE(Primary, "CAP-09: end of a GLOBAL capture on another thread answers 908 [H]") {
  const Stream stream;
  begin(stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
  CHECK_CODE(on_thread(context, [&] { return end_and_drop(stream); }),
             CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
  observe("the capture after an end on the wrong thread", status_text(stream));
  observe("the end on the right thread after that", end_and_drop(stream));
}

TEST_CASE_FIXTURE(Primary,
                  "CAP-10: end of a THREAD_LOCAL capture on another thread answers 908 [H]") {
  const Stream stream;
  begin(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  CHECK_CODE(on_thread(context, [&] { return end_and_drop(stream); }),
             CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
  observe("the capture after an end on the wrong thread", status_text(stream));
  observe("the end on the right thread after that", end_and_drop(stream));
}

TEST_CASE_FIXTURE(Primary, "CAP-11: a RELAXED capture may end on any thread [H]") {
  const Stream stream;
  const Memory memory;
  begin(stream, CU_STREAM_CAPTURE_MODE_RELAXED);
  REQUIRE_OK(fill(stream, memory, 11));
  Graph graph;
  REQUIRE_OK(on_thread(context, [&] { return api.cuStreamEndCapture(stream, graph.out()); }));
  check_usable(stream);
  run_once(graph, stream);
  CHECK(memory.word() == 11);
}

TEST_CASE_FIXTURE(Primary, "CAP-12: end of an invalidated capture answers 901 and no graph [G]") {
  const Stream stream;
  const Memory memory;
  begin(stream);
  REQUIRE_OK(fill(stream, memory, 1));
  invalidate(stream);
  check_end_fails(stream, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  check_usable(stream);
  CHECK(memory.word() == 0);
}

TEST_CASE_FIXTURE(Primary, "CAP-13: end of an invalidated capture frees all its members [P]") {
  const Stream origin;
  const Stream member;
  const Stream another;
  const Event event;
  const Memory memory;
  begin(origin);
  follow(member, origin, event);
  follow(another, member, event);
  REQUIRE_OK(fill(member, memory, 1));
  invalidate(origin);
  CHECK(invalidated(member));
  CHECK(invalidated(another));
  check_end_fails(origin, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  check_usable(origin);
  check_usable(member);
  check_usable(another);
}

TEST_CASE_FIXTURE(Primary, "CAP-14: work is captured and not executed [H]") {
  const Stream stream;
  const Memory memory;
  begin(stream);
  REQUIRE_OK(fill(stream, memory, 14));
  const Graph graph(end(stream));
  check_usable(stream);
  CHECK(memory.word() == 0);
  run_once(graph, stream);
  CHECK(memory.word() == 14);
}

TEST_CASE_FIXTURE(Primary, "CAP-15: the status is none then active then none again [H]") {
  const Stream stream;
  CHECK(status(stream) == CU_STREAM_CAPTURE_STATUS_NONE);
  begin(stream);
  CHECK(status(stream) == CU_STREAM_CAPTURE_STATUS_ACTIVE);
  const Graph graph(end(stream));
  CHECK(status(stream) == CU_STREAM_CAPTURE_STATUS_NONE);
  CHECK(nodes_of(graph).empty());
}

TEST_CASE_FIXTURE(Primary, "CAP-16: work on an invalidated stream is refused with 901 [N]") {
  const Stream stream;
  const Memory memory;
  const Event event;
  int calls = 0;
  const CUfunction kernel = this->kernel("write_word");
  const Graph graph = Graph::make();
  add_fill(graph, {}, memory, 1);
  const Exec exec = Exec::of(graph);
  begin(stream);
  invalidate(stream);
  const CUresult refused = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  CHECK_CODE(fill(stream, memory, 1), refused);
  CHECK_CODE(launch(kernel, stream, memory.get(), std::uint32_t{1}), refused);
  CHECK_CODE(api.cuMemcpyDtoDAsync_v2(memory, memory, sizeof(std::uint32_t), stream), refused);
  CHECK_CODE(api.cuLaunchHostFunc(stream, count_up, &calls), refused);
  CHECK_CODE(api.cuGraphLaunch(exec, stream), refused);
  CHECK_CODE(api.cuEventRecord(event, stream), refused);
  check_end_fails(stream, refused);
  check_usable(stream);
  CHECK(memory.word() == 0);
  CHECK(calls == 0);
}

TEST_CASE_FIXTURE(Primary, "CAP-17: each kind of work becomes a node of its kind [H]") {
  const Stream stream;
  const Memory memory(2);
  int calls = 0;
  const CUfunction kernel = this->kernel("add_one");
  begin(stream);
  Nodes latest;
  const auto captured = [&](CUresult result, CUgraphNodeType type) {
    CHECK_CODE(result, CUDA_SUCCESS);
    const Nodes before = std::exchange(latest, info(stream).dependencies);
    REQUIRE(latest.size() == 1);
    CHECK(type_of(latest[0]) == type);
    CHECK(dependencies_of(latest[0]) == before);
  };
  captured(fill(stream, memory, 4), CU_GRAPH_NODE_TYPE_MEMSET);
  captured(launch(kernel, stream, memory.get()), CU_GRAPH_NODE_TYPE_KERNEL);
  captured(api.cuMemcpyDtoDAsync_v2(memory + 4, memory, 4, stream), CU_GRAPH_NODE_TYPE_MEMCPY);
  captured(api.cuLaunchHostFunc(stream, count_up, &calls), CU_GRAPH_NODE_TYPE_HOST);
  const Graph graph(end(stream));
  CHECK(nodes_of(graph).size() == 4);
  const Exec exec = Exec::of(graph);
  run(exec, stream);
  run(exec, stream);
  CHECK(memory.words() == std::vector<std::uint32_t>{5, 5});
  CHECK(calls == 2);
}

TEST_CASE_FIXTURE(Primary, "CAP-18: allocating and freeing in a stream become nodes [H]") {
  const Stream stream;
  const Memory result;
  begin(stream);
  CUdeviceptr inner = 0;
  CHECK_CODE(api.cuMemAllocAsync(&inner, sizeof(std::uint32_t), stream), CUDA_SUCCESS);
  CHECK(inner != 0);
  REQUIRE_OK(fill(stream, inner, 18));
  REQUIRE_OK(api.cuMemcpyDtoDAsync_v2(result, inner, sizeof(std::uint32_t), stream));
  CHECK_CODE(api.cuMemFreeAsync(inner, stream), CUDA_SUCCESS);
  const Graph graph(end(stream));
  CHECK(nodes_of(graph, CU_GRAPH_NODE_TYPE_MEM_ALLOC).size() == 1);
  CHECK(nodes_of(graph, CU_GRAPH_NODE_TYPE_MEM_FREE).size() == 1);
  run_once(graph, stream);
  CHECK(result.word() == 18);
}

TEST_CASE_FIXTURE(Primary, "CAP-19: a graph launched into a capture becomes what it becomes [?]") {
  const Stream stream;
  const Memory memory;
  const Graph inner = Graph::make();
  add_fill(inner, {}, memory, 19);
  const Exec exec = Exec::of(inner);
  begin(stream);
  const CUresult answered = api.cuGraphLaunch(exec, stream);
  observe("a graph launch in a capture", answered);
  CUgraph graph = nullptr;
  const CUresult ended = api.cuStreamEndCapture(stream, &graph);
  observe("the end of that capture", ended);
  if (ended != CUDA_SUCCESS) return;
  const Graph owned(graph);
  observe("the nodes of that capture", nodes_of(graph).size());
  observe("of them child graphs", nodes_of(graph, CU_GRAPH_NODE_TYPE_GRAPH).size());
}

TEST_CASE_FIXTURE(Primary, "CAP-20: arguments that are wrong do not invalidate a capture [P]") {
  const Stream stream;
  const Memory memory;
  begin(stream);
  CHECK(api.cuMemcpyDtoDAsync_v2(0, memory, sizeof(std::uint32_t), stream) != CUDA_SUCCESS);
  CHECK_CODE(
      api.cuStreamGetCaptureInfo_v3(stream, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr),
      CUDA_ERROR_INVALID_VALUE);
  CHECK(capturing(stream));
  REQUIRE_OK(fill(stream, memory, 20));
  const Graph graph(end(stream));
  run_once(graph, stream);
  CHECK(memory.word() == 20);
}

TEST_CASE_FIXTURE(Primary, "CAP-21: two captures at a time have two graphs and two ids [H]") {
  const Stream one;
  const Stream two;
  const Memory memory(2);
  begin(one);
  begin(two);
  CHECK(info(one).id != info(two).id);
  CHECK(info(one).graph != info(two).graph);
  REQUIRE_OK(fill(one, memory, 1));
  REQUIRE_OK(fill(two, memory + 4, 2));
  const Graph first(end(one));
  CHECK(capturing(two));
  const Graph second(end(two));
  run_once(second, one);
  CHECK(memory.words() == std::vector<std::uint32_t>{0, 2});
  run_once(first, one);
  CHECK(memory.words() == std::vector<std::uint32_t>{1, 2});
}

TEST_CASE_FIXTURE(Primary, "CAP-22: captures of two threads do not mix [H]") {
  const Stream mine;
  const Stream theirs;
  const Memory memory(2);
  Graph other;
  begin(mine);
  const auto their_capture = [&] {
    CUresult answered = api.cuStreamBeginCapture_v2(theirs, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    if (answered == CUDA_SUCCESS) answered = fill(theirs, memory + 4, 2);
    if (answered == CUDA_SUCCESS) answered = api.cuStreamEndCapture(theirs, other.out());
    return answered;
  };
  REQUIRE_OK(on_thread(context, their_capture));
  CHECK(capturing(mine));
  REQUIRE_OK(fill(mine, memory, 1));
  const Graph graph(end(mine));
  CHECK(nodes_of(graph).size() == 1);
  CHECK(nodes_of(other).size() == 1);
  run_once(other, mine);
  CHECK(memory.words() == std::vector<std::uint32_t>{0, 2});
}

TEST_CASE_FIXTURE(Primary, "CAP-23: a thread may capture into a stream that another captures [?]") {
  const Stream stream;
  const Memory memory;
  begin(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  observe("work from another thread into a THREAD_LOCAL capture",
          on_thread(context, [&] { return fill(stream, memory, 23); }));
  observe("the capture after that", status_text(stream));
  observe("its end", end_and_drop(stream));
}

TEST_CASE_FIXTURE(Primary, "CAP-24: fills of each width and of rows replay as they were said [H]") {
  const Stream stream;
  const Memory memory(9);
  begin(stream);
  REQUIRE_OK(api.cuMemsetD8Async(memory, 0x12, 4, stream));
  REQUIRE_OK(api.cuMemsetD16Async(memory + 4, 0x1234, 2, stream));
  REQUIRE_OK(api.cuMemsetD32Async(memory + 8, 0x12345678, 1, stream));
  REQUIRE_OK(api.cuMemsetD2D32Async(memory + 12, 3 * sizeof(std::uint32_t), 7, 2, 2, stream));
  const Graph graph(end(stream));
  CHECK(nodes_of(graph, CU_GRAPH_NODE_TYPE_MEMSET).size() == 4);
  run_once(graph, stream);
  CHECK(memory.words() ==
        std::vector<std::uint32_t>{0x12121212, 0x12341234, 0x12345678, 7, 7, 0, 7, 7, 0});
}

TEST_CASE_FIXTURE(Primary, "CAP-25: copies of each kind and of rows replay as they were said [H]") {
  const Stream stream;
  const Memory memory(9);
  const Pinned host(2);
  host.get()[0] = 25;
  begin(stream);
  REQUIRE_OK(api.cuMemcpyHtoDAsync_v2(memory, host.get(), sizeof(std::uint32_t), stream));
  REQUIRE_OK(api.cuMemcpyDtoDAsync_v2(memory + 4, memory, sizeof(std::uint32_t), stream));
  REQUIRE_OK(api.cuMemcpyAsync(memory + 8, memory + 4, sizeof(std::uint32_t), stream));
  CUDA_MEMCPY2D rows{};
  rows.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  rows.srcDevice = memory;
  rows.srcPitch = sizeof(std::uint32_t);
  rows.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  rows.dstDevice = memory + 12;
  rows.dstPitch = 2 * sizeof(std::uint32_t);
  rows.WidthInBytes = sizeof(std::uint32_t);
  rows.Height = 3;
  REQUIRE_OK(api.cuMemcpy2DAsync_v2(&rows, stream));
  REQUIRE_OK(api.cuMemcpyDtoHAsync_v2(host.get() + 1, memory + 28, sizeof(std::uint32_t), stream));
  const Graph graph(end(stream));
  CHECK(nodes_of(graph, CU_GRAPH_NODE_TYPE_MEMCPY).size() == 5);
  run_once(graph, stream);
  CHECK(memory.words() == std::vector<std::uint32_t>{25, 25, 25, 25, 0, 25, 0, 25, 0});
  CHECK(host.get()[1] == 25);
}
