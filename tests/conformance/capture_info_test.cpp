// What a capture tells about itself, and how its dependencies and its graph may be changed while it
// goes on.
#include "graph_support.hpp"

using namespace conformance;

namespace {

CUresult update(CUstream stream, Nodes nodes, unsigned flags) {
  return api().cuStreamUpdateCaptureDependencies_v2(stream, nodes.data(), nullptr, nodes.size(),
                                                    flags);
}

}  // namespace

TEST_CASE_FIXTURE(Primary, "CAP-30: a stream that does not capture says none [H]") {
  const Stream stream;
  auto found = CU_STREAM_CAPTURE_STATUS_ACTIVE;
  CHECK_CODE(
      api.cuStreamGetCaptureInfo_v3(stream, &found, nullptr, nullptr, nullptr, nullptr, nullptr),
      CUDA_SUCCESS);
  CHECK(found == CU_STREAM_CAPTURE_STATUS_NONE);
}

TEST_CASE_FIXTURE(Primary, "CAP-31: an invalidated stream says so [H]") {
  const Stream stream;
  begin(stream);
  invalidate(stream);
  auto found = CU_STREAM_CAPTURE_STATUS_NONE;
  CHECK_CODE(
      api.cuStreamGetCaptureInfo_v3(stream, &found, nullptr, nullptr, nullptr, nullptr, nullptr),
      CUDA_SUCCESS);
  CHECK(found == CU_STREAM_CAPTURE_STATUS_INVALIDATED);
  check_end_fails(stream, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

TEST_CASE_FIXTURE(Primary, "CAP-32: an id is never used again [H]") {
  const Stream stream;
  std::set<cuuint64_t> ids;
  for (int i = 0; i < 5; ++i) {
    begin(stream);
    ids.insert(info(stream).id);
    const Graph graph(end(stream));
  }
  CHECK(ids.size() == 5);
}

TEST_CASE_FIXTURE(Primary, "CAP-33: all members of a capture have its id and its graph [H]") {
  const Stream origin;
  const Stream member;
  const Event event;
  begin(origin);
  follow(member, origin, event);
  CHECK(info(member).id == info(origin).id);
  CHECK(info(member).graph == info(origin).graph);
  const Graph graph(end(origin));
}

TEST_CASE_FIXTURE(Primary, "CAP-34: the graph of the capture is the graph that end returns [H]") {
  const Stream stream;
  begin(stream);
  const CUgraph during = info(stream).graph;
  const Graph graph(end(stream));
  CHECK(graph == during);
}

TEST_CASE_FIXTURE(Primary, "CAP-35: the capture's information needs a place for the status [H]") {
  const Stream stream;
  begin(stream);
  cuuint64_t id = 0;
  CHECK_CODE(
      api.cuStreamGetCaptureInfo_v3(stream, nullptr, &id, nullptr, nullptr, nullptr, nullptr),
      CUDA_ERROR_INVALID_VALUE);
  CHECK(capturing(stream));
  const Graph graph(end(stream));
}

TEST_CASE_FIXTURE(Primary, "CAP-36: edge data without dependencies may not be asked for [H]") {
  const Stream stream;
  begin(stream);
  auto found = CU_STREAM_CAPTURE_STATUS_NONE;
  const CUgraphEdgeData* data = nullptr;
  std::size_t count = 0;
  CHECK_CODE(
      api.cuStreamGetCaptureInfo_v3(stream, &found, nullptr, nullptr, nullptr, &data, &count),
      CUDA_ERROR_INVALID_VALUE);
  CHECK(capturing(stream));
  const Graph graph(end(stream));
}

TEST_CASE_FIXTURE(Primary, "CAP-37: the next node depends on the dependencies told [H]") {
  const Stream stream;
  const Memory memory;
  begin(stream);
  CHECK(info(stream).dependencies.empty());
  REQUIRE_OK(fill(stream, memory, 1));
  const Nodes first = info(stream).dependencies;
  REQUIRE(first.size() == 1);
  REQUIRE_OK(fill(stream, memory, 2));
  const Nodes second = info(stream).dependencies;
  REQUIRE(second.size() == 1);
  CHECK(dependencies_of(second[0]) == first);
  const Graph graph(end(stream));
  CHECK(edges_of(graph) == Edges{{first[0], second[0]}});
}

TEST_CASE_FIXTURE(Primary, "CAP-38: SET replaces the dependencies [H]") {
  const Stream stream;
  const Memory memory(2);
  begin(stream);
  REQUIRE_OK(fill(stream, memory, 1));
  const Nodes first = info(stream).dependencies;
  REQUIRE_OK(fill(stream, memory, 2));
  CHECK_CODE(update(stream, first, CU_STREAM_SET_CAPTURE_DEPENDENCIES), CUDA_SUCCESS);
  CHECK(info(stream).dependencies == first);
  REQUIRE_OK(fill(stream, memory + 4, 3));
  const Nodes third = info(stream).dependencies;
  REQUIRE(third.size() == 1);
  CHECK(dependencies_of(third[0]) == first);
  const Graph graph(end(stream));
  CHECK(nodes_of(graph).size() == 3);
}

TEST_CASE_FIXTURE(Primary, "CAP-39: nodes dropped with SET do not count as unjoined [H]") {
  const Stream stream;
  const Memory memory;
  begin(stream);
  REQUIRE_OK(fill(stream, memory, 39));
  CHECK_CODE(update(stream, {}, CU_STREAM_SET_CAPTURE_DEPENDENCIES), CUDA_SUCCESS);
  CHECK(info(stream).dependencies.empty());
  const Graph graph(end(stream));
  check_usable(stream);
  run_once(graph, stream);
  CHECK(memory.word() == 39);
}

TEST_CASE_FIXTURE(Primary, "CAP-40: ADD adds to the dependencies and is what flag 0 means [H]") {
  for (const unsigned flags : {0U, unsigned{CU_STREAM_ADD_CAPTURE_DEPENDENCIES}}) {
    const Stream stream;
    const Memory memory(2);
    begin(stream);
    REQUIRE_OK(fill(stream, memory, 1));
    const Nodes own = info(stream).dependencies;
    const CUgraphNode added = add_fill(info(stream).graph, {}, memory + 4, 2);
    CHECK_CODE(update(stream, {added}, flags), CUDA_SUCCESS);
    const Nodes both = info(stream).dependencies;
    CHECK(std::set<CUgraphNode>(both.begin(), both.end()) ==
          std::set<CUgraphNode>{own.at(0), added});
    REQUIRE_OK(api.cuMemcpyDtoDAsync_v2(memory, memory + 4, sizeof(std::uint32_t), stream));
    const Graph graph(end(stream));
    CHECK(edges_of(graph).size() == 2);
    run_once(graph, stream);
    CHECK(memory.words() == std::vector<std::uint32_t>{2, 2});
  }
}

TEST_CASE_FIXTURE(Primary, "CAP-41: nodes added to the capture's graph are not unjoined [H]") {
  const Stream stream;
  const Memory memory;
  begin(stream);
  add_fill(info(stream).graph, {}, memory, 41);
  CHECK(info(stream).dependencies.empty());
  const Graph graph(end(stream));
  run_once(graph, stream);
  CHECK(memory.word() == 41);
}

TEST_CASE_FIXTURE(Primary, "CAP-42: dependencies of a stream that does not capture are 401 [H]") {
  const Stream stream;
  CHECK_CODE(update(stream, {}, CU_STREAM_SET_CAPTURE_DEPENDENCIES), CUDA_ERROR_ILLEGAL_STATE);
  check_usable(stream);
}

TEST_CASE_FIXTURE(Primary, "CAP-43: an unknown flag for dependencies answers 1 [N]") {
  const Stream stream;
  begin(stream);
  CHECK_CODE(update(stream, {}, 2), CUDA_ERROR_INVALID_VALUE);
  CHECK(capturing(stream));
  const Graph graph(end(stream));
}

TEST_CASE_FIXTURE(Primary, "CAP-44: dependencies without their array answer 1 [N]") {
  const Stream stream;
  begin(stream);
  CHECK_CODE(api.cuStreamUpdateCaptureDependencies_v2(stream, nullptr, nullptr, 1,
                                                      CU_STREAM_SET_CAPTURE_DEPENDENCIES),
             CUDA_ERROR_INVALID_VALUE);
  CHECK(capturing(stream));
  const Graph graph(end(stream));
}

TEST_CASE_FIXTURE(Primary, "CAP-45: edge data that would be lost is an answer 402 [H]") {
  if (device_attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) < 9) {
    SKIP_CASE("programmatic edges need compute capability 9.0");
  }
  const Stream stream;
  const Memory memory;
  const CUfunction kernel = this->kernel("write_word");
  begin(stream);
  REQUIRE_OK(launch(kernel, stream, memory.get(), std::uint32_t{1}));
  CUgraphNode node = info(stream).dependencies.at(0);
  CUgraphEdgeData data{};
  data.from_port = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC;
  data.type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
  REQUIRE_OK(api.cuStreamUpdateCaptureDependencies_v2(stream, &node, &data, 1,
                                                      CU_STREAM_SET_CAPTURE_DEPENDENCIES));
  auto found = CU_STREAM_CAPTURE_STATUS_NONE;
  const CUgraphNode* nodes = nullptr;
  const CUgraphEdgeData* told = nullptr;
  std::size_t count = 0;
  CHECK_CODE(
      api.cuStreamGetCaptureInfo_v3(stream, &found, nullptr, nullptr, &nodes, nullptr, &count),
      CUDA_ERROR_LOSSY_QUERY);
  REQUIRE_OK(
      api.cuStreamGetCaptureInfo_v3(stream, &found, nullptr, nullptr, &nodes, &told, &count));
  REQUIRE(count == 1);
  CHECK(told[0].from_port == data.from_port);
  CHECK(told[0].type == data.type);
  REQUIRE_OK(launch(kernel, stream, memory.get(), std::uint32_t{2}));
  const Graph graph(end(stream));
}

TEST_CASE_FIXTURE(Primary, "CAP-46: a capture into a graph adds to what is in it [H]") {
  const Stream stream;
  const Memory memory(2);
  const Graph graph = Graph::make();
  const CUgraphNode first = add_fill(graph, {}, memory, 46);
  REQUIRE_OK(api.cuStreamBeginCaptureToGraph(stream, graph, &first, nullptr, 1,
                                             CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  CHECK(info(stream).graph == graph);
  CHECK(info(stream).dependencies == Nodes{first});
  REQUIRE_OK(api.cuMemcpyDtoDAsync_v2(memory + 4, memory, sizeof(std::uint32_t), stream));
  CUgraph ended = nullptr;
  REQUIRE_OK(api.cuStreamEndCapture(stream, &ended));
  CHECK(ended == graph);
  CHECK(nodes_of(graph).size() == 2);
  CHECK(edges_of(graph).size() == 1);
  check_usable(stream);
  run_once(graph, stream);
  CHECK(memory.words() == std::vector<std::uint32_t>{46, 46});
}

TEST_CASE_FIXTURE(Primary, "CAP-47: a capture into a graph may begin without dependencies [H]") {
  const Stream stream;
  const Memory memory(2);
  const Graph graph = Graph::make();
  add_fill(graph, {}, memory, 1);
  REQUIRE_OK(api.cuStreamBeginCaptureToGraph(stream, graph, nullptr, nullptr, 0,
                                             CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  REQUIRE_OK(fill(stream, memory + 4, 2));
  CUgraph ended = nullptr;
  REQUIRE_OK(api.cuStreamEndCapture(stream, &ended));
  CHECK(edges_of(graph).empty());
  run_once(graph, stream);
  CHECK(memory.words() == std::vector<std::uint32_t>{1, 2});
}

TEST_CASE_FIXTURE(Primary, "CAP-48: a capture into a graph may not begin on a stream in use [H]") {
  const Stream stream;
  const Graph graph = Graph::make();
  begin(stream);
  CHECK(api.cuStreamBeginCaptureToGraph(stream, graph, nullptr, nullptr, 0,
                                        CU_STREAM_CAPTURE_MODE_THREAD_LOCAL) != CUDA_SUCCESS);
  end_and_drop(stream);
  CHECK(api.cuStreamBeginCaptureToGraph(nullptr, graph, nullptr, nullptr, 0,
                                        CU_STREAM_CAPTURE_MODE_THREAD_LOCAL) != CUDA_SUCCESS);
  check_usable(stream);
}

TEST_CASE_FIXTURE(Primary, "CAP-49: a graph that is captured into cannot be instantiated yet [H]") {
  const Stream stream;
  const Memory memory;
  Graph graph = Graph::make();
  REQUIRE_OK(api.cuStreamBeginCaptureToGraph(stream, graph, nullptr, nullptr, 0,
                                             CU_STREAM_CAPTURE_MODE_RELAXED));
  REQUIRE_OK(fill(stream, memory, 49));
  Exec early;
  CUDA_GRAPH_INSTANTIATE_PARAMS asked{};
  CHECK(api.cuGraphInstantiateWithParams(early.out(), graph, &asked) != CUDA_SUCCESS);
  observe("the capture after that", status_text(stream));
  CUgraph ended = nullptr;
  const CUresult answered = api.cuStreamEndCapture(stream, &ended);
  observe("its end", answered);
  check_usable(stream);
  if (answered != CUDA_SUCCESS) {
    graph.take();  // who destroys it then is not established
    return;
  }
  run_once(graph, stream);
  CHECK(memory.word() == 49);
}
