// Events in a capture: how streams join one, how dependencies travel, and which waits break it.
#include "graph_support.hpp"

using namespace conformance;

namespace {

CUresult wait(CUstream stream, CUevent event, unsigned flags = CU_EVENT_WAIT_DEFAULT) {
  return api().cuStreamWaitEvent(stream, event, flags);
}

/// Makes the next node of `stream` depend on `node` along an edge that may be passed before `node`
/// has ended.
CUresult depend_early(CUstream stream, CUgraphNode node) {
  CUgraphEdgeData data{};
  data.from_port = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC;
  data.type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
  return api().cuStreamUpdateCaptureDependencies_v2(stream, &node, &data, 1,
                                                    CU_STREAM_ADD_CAPTURE_DEPENDENCIES);
}

}  // namespace

TEST_CASE_FIXTURE(Primary, "CEV-01: recording an event in a capture adds no node [G]") {
  const Stream stream;
  const Event event;
  const Memory memory;
  begin(stream);
  REQUIRE_OK(fill(stream, memory, 1));
  const Nodes before = info(stream).dependencies;
  CHECK_CODE(api.cuEventRecord(event, stream), CUDA_SUCCESS);
  CHECK(info(stream).dependencies == before);
  const Graph graph(end(stream));
  CHECK(nodes_of(graph).size() == 1);
}

TEST_CASE_FIXTURE(Primary, "CEV-02: an idle stream that waits for a captured event joins [G]") {
  const Stream origin;
  const Stream member;
  const Event event;
  const Memory memory;
  begin(origin);
  REQUIRE_OK(fill(origin, memory, 1));
  follow(member, origin, event);
  CHECK(capturing(member));
  CHECK(info(member).dependencies == info(origin).dependencies);
  const Graph graph(end(origin));
  check_usable(member);
}

TEST_CASE_FIXTURE(Primary,
                  "CEV-03: an event stands for the dependencies when it was recorded [G]") {
  const Stream origin;
  const Stream member;
  const Event event;
  const Memory memory;
  begin(origin);
  REQUIRE_OK(fill(origin, memory, 1));
  const Nodes first = info(origin).dependencies;
  REQUIRE_OK(api.cuEventRecord(event, origin));
  REQUIRE_OK(fill(origin, memory, 2));
  REQUIRE_OK(wait(member, event));
  CHECK(info(member).dependencies == first);
  const Graph graph(end(origin));
}

TEST_CASE_FIXTURE(Primary, "CEV-04: fork and join become edges and replay in their order [G]") {
  const Stream origin;
  const Stream member;
  const Event forked;
  const Event joined;
  const Memory memory(3);
  begin(origin);
  REQUIRE_OK(fill(origin, memory, 4));
  follow(member, origin, forked);
  REQUIRE_OK(api.cuMemcpyDtoDAsync_v2(memory + 4, memory, sizeof(std::uint32_t), member));
  const CUgraphNode branch = info(member).dependencies.at(0);
  follow(origin, member, joined);
  REQUIRE_OK(api.cuMemcpyDtoDAsync_v2(memory + 8, memory + 4, sizeof(std::uint32_t), origin));
  const CUgraphNode last = info(origin).dependencies.at(0);
  const Graph graph(end(origin));
  CHECK(edges_of(graph).count({branch, last}) == 1);
  check_usable(member);
  run_once(graph, origin);
  CHECK(memory.words() == std::vector<std::uint32_t>{4, 4, 4});
}

TEST_CASE_FIXTURE(Primary, "CEV-05: a member that waits has both dependencies [G]") {
  const Stream origin;
  const Stream member;
  const Event forked;
  const Event joined;
  const Memory memory(2);
  begin(origin);
  follow(member, origin, forked);
  REQUIRE_OK(fill(origin, memory, 1));
  REQUIRE_OK(fill(member, memory + 4, 2));
  const CUgraphNode one = info(origin).dependencies.at(0);
  const CUgraphNode two = info(member).dependencies.at(0);
  CHECK(dependencies_of(two).empty());
  follow(origin, member, joined);
  const Nodes both = info(origin).dependencies;
  CHECK(std::set<CUgraphNode>(both.begin(), both.end()) == std::set<CUgraphNode>{one, two});
  const Graph graph(end(origin));
}

TEST_CASE_FIXTURE(Primary, "CEV-06: end with unjoined work answers 904 and no graph [H]") {
  const Stream origin;
  const Stream member;
  const Event event;
  const Memory memory;
  begin(origin);
  follow(member, origin, event);
  REQUIRE_OK(fill(member, memory, 1));
  check_end_fails(origin, CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
  check_usable(origin);
  check_usable(member);
  CHECK(memory.word() == 0);
}

TEST_CASE_FIXTURE(Primary, "CEV-07: work after the join is unjoined again [N]") {
  const Stream origin;
  const Stream member;
  const Event forked;
  const Event joined;
  const Memory memory;
  begin(origin);
  follow(member, origin, forked);
  REQUIRE_OK(fill(member, memory, 1));
  follow(origin, member, joined);
  REQUIRE_OK(fill(member, memory, 2));
  check_end_fails(origin, CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
  check_usable(origin);
  check_usable(member);
}

TEST_CASE_FIXTURE(Primary, "CEV-08: a fork that got no work need not be joined [N]") {
  const Stream origin;
  const Stream member;
  const Event event;
  const Memory memory;
  begin(origin);
  REQUIRE_OK(fill(origin, memory, 8));
  follow(member, origin, event);
  const Graph graph(end(origin));
  check_usable(member);
  run_once(graph, origin);
  CHECK(memory.word() == 8);
}

TEST_CASE_FIXTURE(Primary, "CEV-09: a join through another member is a join [G]") {
  const Stream origin;
  const Stream member;
  const Stream deeper;
  const Event event;
  const Memory memory(2);
  begin(origin);
  follow(member, origin, event);
  follow(deeper, member, event);
  REQUIRE_OK(fill(deeper, memory, 9));
  follow(member, deeper, event);
  REQUIRE_OK(api.cuMemcpyDtoDAsync_v2(memory + 4, memory, sizeof(std::uint32_t), member));
  follow(origin, member, event);
  const Graph graph(end(origin));
  check_usable(deeper);
  run_once(graph, origin);
  CHECK(memory.words() == std::vector<std::uint32_t>{9, 9});
}

TEST_CASE_FIXTURE(Primary,
                  "CEV-10: a member stays one until the end whatever it is joined to [P]") {
  const Stream origin;
  const Stream member;
  const Event event;
  begin(origin);
  follow(member, origin, event);
  follow(origin, member, event);
  CHECK(capturing(member));
  const Graph graph(end(origin));
  check_usable(member);
}

TEST_CASE_FIXTURE(Primary, "CEV-11: a capturing stream may not wait for work outside: 905 [G]") {
  const Stream outside;
  const Stream stream;
  const Event event;
  REQUIRE_OK(api.cuEventRecord(event, outside));
  REQUIRE_OK(api.cuStreamSynchronize(outside));  // completed, which changes nothing
  begin(stream);
  CHECK_CODE(wait(stream, event), CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
  CHECK(invalidated(stream));
  check_end_fails(stream, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  check_usable(stream);
}

TEST_CASE_FIXTURE(Primary, "CEV-12: a capturing stream waits for an event that never was [?]") {
  const Stream stream;
  const Event event;
  begin(stream);
  observe("a wait for an event never recorded", wait(stream, event));
  observe("the capture after that", status_text(stream));
  observe("its end", end_and_drop(stream));
}

TEST_CASE_FIXTURE(Primary, "CEV-13: a wait with EXTERNAL becomes a wait node [G]") {
  const Stream outside;
  const Stream stream;
  const Event event;
  REQUIRE_OK(api.cuEventRecord(event, outside));
  begin(stream);
  CHECK_CODE(wait(stream, event, CU_EVENT_WAIT_EXTERNAL), CUDA_SUCCESS);
  CHECK(capturing(stream));
  const Graph graph(end(stream));
  const Nodes waits = nodes_of(graph, CU_GRAPH_NODE_TYPE_WAIT_EVENT);
  REQUIRE(waits.size() == 1);
  CUevent found = nullptr;
  CHECK_CODE(api.cuGraphEventWaitNodeGetEvent(waits[0], &found), CUDA_SUCCESS);
  CHECK(found == event);
}

TEST_CASE_FIXTURE(Primary, "CEV-14: a replayed wait node waits for the event's work [G]") {
  const Stream outside;
  const Stream stream;
  const Event event;
  const Memory memory(2);
  begin(stream);
  REQUIRE_OK(wait(stream, event, CU_EVENT_WAIT_EXTERNAL));
  REQUIRE_OK(api.cuMemcpyDtoDAsync_v2(memory + 4, memory, sizeof(std::uint32_t), stream));
  const Graph graph(end(stream));
  const Exec exec = Exec::of(graph);
  {
    const Busy busy(*this, outside);
    REQUIRE_OK(fill(outside, memory, 14));
    REQUIRE_OK(api.cuEventRecord(event, outside));
    REQUIRE_OK(api.cuGraphLaunch(exec, stream));
  }
  REQUIRE_OK(api.cuStreamSynchronize(stream));
  CHECK(memory.words() == std::vector<std::uint32_t>{14, 14});
}

TEST_CASE_FIXTURE(Primary, "CEV-15: a record with EXTERNAL becomes a record node [G]") {
  const Stream stream;
  const Event event;
  begin(stream);
  CHECK_CODE(api.cuEventRecordWithFlags(event, stream, CU_EVENT_RECORD_EXTERNAL), CUDA_SUCCESS);
  const Graph graph(end(stream));
  const Nodes records = nodes_of(graph, CU_GRAPH_NODE_TYPE_EVENT_RECORD);
  REQUIRE(records.size() == 1);
  CUevent found = nullptr;
  CHECK_CODE(api.cuGraphEventRecordNodeGetEvent(records[0], &found), CUDA_SUCCESS);
  CHECK(found == event);
}

TEST_CASE_FIXTURE(Primary, "CEV-16: a replayed record node lets others wait for the graph [G]") {
  const Stream stream;
  const Stream other;
  const Event event;
  const Memory memory(2);
  begin(stream);
  REQUIRE_OK(fill(stream, memory, 16));
  REQUIRE_OK(api.cuEventRecordWithFlags(event, stream, CU_EVENT_RECORD_EXTERNAL));
  const Graph graph(end(stream));
  const Exec exec = Exec::of(graph);
  {
    const Busy busy(*this, stream);
    REQUIRE_OK(api.cuGraphLaunch(exec, stream));
    REQUIRE_OK(wait(other, event));
    REQUIRE_OK(api.cuMemcpyDtoDAsync_v2(memory + 4, memory, sizeof(std::uint32_t), other));
  }
  REQUIRE_OK(api.cuStreamSynchronize(other));
  CHECK(memory.words() == std::vector<std::uint32_t>{16, 16});
}

TEST_CASE_FIXTURE(Primary, "CEV-17: a wait for another capture's event breaks both: 902 [G]") {
  const Stream one;
  const Stream two;
  const Event event;
  begin(one);
  begin(two);
  REQUIRE_OK(api.cuEventRecord(event, one));
  CHECK_CODE(wait(two, event), CUDA_ERROR_STREAM_CAPTURE_MERGE);
  CHECK(invalidated(one));
  CHECK(invalidated(two));
  check_end_fails(one, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  check_end_fails(two, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  check_usable(one);
  check_usable(two);
}

TEST_CASE_FIXTURE(Primary, "CEV-18: an idle stream waits for an invalidated capture: 1 [P]") {
  const Stream stream;
  const Stream idle;
  const Event event;
  begin(stream);
  REQUIRE_OK(api.cuEventRecord(event, stream));
  invalidate(stream);
  CHECK_CODE(wait(idle, event), CUDA_ERROR_INVALID_VALUE);
  check_end_fails(stream, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  check_usable(stream);
  check_usable(idle);
}

TEST_CASE_FIXTURE(Primary, "CEV-19: an invalidated stream may not wait: 901 [P]") {
  const Stream stream;
  const Event event;
  begin(stream);
  REQUIRE_OK(api.cuEventRecord(event, stream));
  invalidate(stream);
  CHECK_CODE(wait(stream, event), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  check_end_fails(stream, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  check_usable(stream);
}

TEST_CASE_FIXTURE(Primary, "CEV-20: the event of a capture that has ended is waited for [?]") {
  const Stream stream;
  const Stream idle;
  const Event event;
  begin(stream);
  REQUIRE_OK(api.cuEventRecord(event, stream));
  const Graph graph(end(stream));
  observe("a wait for the event of an ended capture", wait(idle, event));
  observe("the waiting stream after that", status_text(idle));
}

TEST_CASE_FIXTURE(Primary, "CEV-21: the event of a capture that has ended is queried [?]") {
  const Stream stream;
  const Event event;
  begin(stream);
  REQUIRE_OK(api.cuEventRecord(event, stream));
  const Graph graph(end(stream));
  observe("a query of the event of an ended capture", api.cuEventQuery(event));
}

TEST_CASE_FIXTURE(Primary, "CEV-22: an event recorded outside again is an ordinary one again [H]") {
  const Stream stream;
  const Event event;
  const Memory memory;
  begin(stream);
  REQUIRE_OK(api.cuEventRecord(event, stream));
  const Graph graph(end(stream));
  REQUIRE_OK(fill(stream, memory, 22));
  CHECK_CODE(api.cuEventRecord(event, stream), CUDA_SUCCESS);
  CHECK_CODE(api.cuEventSynchronize(event), CUDA_SUCCESS);
  CHECK_CODE(api.cuEventQuery(event), CUDA_SUCCESS);
  CHECK(memory.word() == 22);
}

TEST_CASE_FIXTURE(Primary, "CEV-23: an event recorded with EXTERNAL outside a capture [?]") {
  const Stream stream;
  const Event event;
  observe("a record with EXTERNAL outside a capture",
          api.cuEventRecordWithFlags(event, stream, CU_EVENT_RECORD_EXTERNAL));
}

TEST_CASE_FIXTURE(Primary, "CEV-24: a wait with EXTERNAL outside a capture [?]") {
  const Stream stream;
  const Event event;
  REQUIRE_OK(api.cuEventRecord(event, stream));
  observe("a wait with EXTERNAL outside a capture", wait(stream, event, CU_EVENT_WAIT_EXTERNAL));
}

TEST_CASE_FIXTURE(Primary, "CEV-25: a member broken by isolation breaks the whole capture [G]") {
  const Stream outside;
  const Stream origin;
  const Stream member;
  const Event before;
  const Event event;
  REQUIRE_OK(api.cuEventRecord(before, outside));
  begin(origin);
  follow(member, origin, event);
  CHECK_CODE(wait(member, before), CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
  CHECK(invalidated(member));
  CHECK(invalidated(origin));
  check_end_fails(origin, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  check_usable(origin);
  check_usable(member);
}

TEST_CASE_FIXTURE(Primary, "CEV-26: a programmatic edge does not join a stream: 904 [G]") {
  if (device_attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) < 9) {
    SKIP_CASE("programmatic edges need compute capability 9.0");
  }
  const Stream origin;
  const Stream member;
  const Event event;
  const Memory memory;
  const CUfunction kernel = this->kernel("add_one");
  begin(origin);
  follow(member, origin, event);
  REQUIRE_OK(launch(kernel, member, memory.get()));
  REQUIRE_OK(depend_early(origin, info(member).dependencies.at(0)));
  REQUIRE_OK(launch(kernel, origin, memory.get()));
  check_end_fails(origin, CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
  check_usable(origin);
  check_usable(member);
}

TEST_CASE_FIXTURE(Primary, "CEV-27: a capture ends with a programmatic dependency unused [?]") {
  if (device_attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) < 9) {
    SKIP_CASE("programmatic edges need compute capability 9.0");
  }
  const Stream stream;
  const Memory memory;
  const CUfunction kernel = this->kernel("add_one");
  begin(stream);
  REQUIRE_OK(launch(kernel, stream, memory.get()));
  CUgraphNode node = info(stream).dependencies.at(0);
  REQUIRE_OK(api.cuStreamUpdateCaptureDependencies_v2(stream, nullptr, nullptr, 0,
                                                      CU_STREAM_SET_CAPTURE_DEPENDENCIES));
  observe("a programmatic dependency", depend_early(stream, node));
  observe("the end with it unused", end_and_drop(stream));
}
