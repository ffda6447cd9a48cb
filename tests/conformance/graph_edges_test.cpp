// The edges of a graph: which are refused, how they are told, what they carry, and what the loss of
// a node does to them.
#include "graph_support.hpp"

using namespace conformance;

namespace {

CUresult connect(CUgraph graph, CUgraphNode from, CUgraphNode to) {
  return api().cuGraphAddDependencies_v2(graph, &from, &to, nullptr, 1);
}

CUresult disconnect(CUgraph graph, CUgraphNode from, CUgraphNode to) {
  return api().cuGraphRemoveDependencies_v2(graph, &from, &to, nullptr, 1);
}

/// An edge along which the second kernel may start before the first has ended.
CUgraphEdgeData programmatic() {
  CUgraphEdgeData data{};
  data.from_port = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC;
  data.type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
  return data;
}

/// Two kernel nodes without an edge.
struct Pair {
  explicit Pair(Primary& primary)
      : first(add_kernel(graph, {}, primary.kernel("add_one"), memory.get())),
        second(add_kernel(graph, {}, primary.kernel("add_one"), memory.get())) {}

  const Memory memory;
  const Graph graph = Graph::make();
  CUgraphNode first;
  CUgraphNode second;
};

}  // namespace

TEST_CASE_FIXTURE(Primary, "GRF-30: an added edge orders two nodes [H]") {
  const Stream stream;
  const Memory memory(2);
  const Graph graph = Graph::make();
  const CUgraphNode copied = add_copy(graph, {}, memory, memory + 4);
  const CUgraphNode filled = add_fill(graph, {}, memory, 30);
  CHECK_CODE(connect(graph, filled, copied), CUDA_SUCCESS);
  CHECK(dependencies_of(copied) == Nodes{filled});
  run_once(graph, stream);
  CHECK(memory.words() == std::vector<std::uint32_t>{30, 30});
}

TEST_CASE_FIXTURE(Primary, "GRF-31: an edge that is there already is refused [H]") {
  const Graph graph = Graph::make();
  const CUgraphNode one = add_empty(graph, {});
  const CUgraphNode two = add_empty(graph, {one});
  CHECK_CODE(connect(graph, one, two), CUDA_ERROR_INVALID_VALUE);
  CHECK(edges_of(graph) == Edges{{one, two}});
}

TEST_CASE_FIXTURE(Primary, "GRF-32: an edge that is not there cannot be removed [H]") {
  const Graph graph = Graph::make();
  const CUgraphNode one = add_empty(graph, {});
  const CUgraphNode two = add_empty(graph, {one});
  CHECK_CODE(disconnect(graph, two, one), CUDA_ERROR_INVALID_VALUE);
  CHECK(edges_of(graph) == Edges{{one, two}});
}

TEST_CASE_FIXTURE(Primary, "GRF-33: a removed edge is gone [H]") {
  const Graph graph = Graph::make();
  const CUgraphNode one = add_empty(graph, {});
  const CUgraphNode two = add_empty(graph, {one});
  CHECK_CODE(disconnect(graph, one, two), CUDA_SUCCESS);
  CHECK(edges_of(graph).empty());
  CHECK(dependencies_of(two).empty());
}

TEST_CASE_FIXTURE(Primary, "GRF-34: zero edges are added and removed without looking at them [H]") {
  const Graph graph = Graph::make();
  CHECK_CODE(api.cuGraphAddDependencies_v2(graph, nullptr, nullptr, nullptr, 0), CUDA_SUCCESS);
  CHECK_CODE(api.cuGraphRemoveDependencies_v2(graph, nullptr, nullptr, nullptr, 0), CUDA_SUCCESS);
}

TEST_CASE_FIXTURE(Primary, "GRF-35: an edge between graphs is refused [H]") {
  const Graph one = Graph::make();
  const Graph two = Graph::make();
  const CUgraphNode here = add_empty(one, {});
  const CUgraphNode there = add_empty(two, {});
  CHECK_CODE(connect(one, here, there), CUDA_ERROR_INVALID_VALUE);
  CHECK_CODE(connect(one, there, here), CUDA_ERROR_INVALID_VALUE);
  CHECK(edges_of(one).empty());
  CHECK(edges_of(two).empty());
}

TEST_CASE_FIXTURE(Primary, "GRF-36: a new node may not depend twice on the same node [H]") {
  const Graph graph = Graph::make();
  const CUgraphNode one = add_empty(graph, {});
  const CUgraphNode twice[] = {one, one};
  CUgraphNode node = nullptr;
  CHECK_CODE(api.cuGraphAddEmptyNode(&node, graph, twice, 2), CUDA_ERROR_INVALID_VALUE);
  CHECK(nodes_of(graph) == Nodes{one});
}

TEST_CASE_FIXTURE(Primary, "GRF-37: a node that is destroyed takes its edges along [H]") {
  const Stream stream;
  const Memory memory;
  const Graph graph = Graph::make();
  const CUgraphNode one = add_empty(graph, {});
  const CUgraphNode two = add_fill(graph, {one}, memory, 37);
  const CUgraphNode three = add_empty(graph, {two});
  CHECK_CODE(api.cuGraphDestroyNode(two), CUDA_SUCCESS);
  const Nodes left = nodes_of(graph);
  CHECK(std::set<CUgraphNode>(left.begin(), left.end()) == std::set<CUgraphNode>{one, three});
  CHECK(edges_of(graph).empty());
  run_once(graph, stream);
  CHECK(memory.word() == 0);
}

TEST_CASE_FIXTURE(Primary, "GRF-38: an edge of a node to itself [?]") {
  const Graph graph = Graph::make();
  const CUgraphNode node = add_empty(graph, {});
  observe("an edge of a node to itself", connect(graph, node, node));
}

TEST_CASE_FIXTURE(Primary, "GRF-39: the number of edges is told without a place for them [H]") {
  const Graph graph = Graph::make();
  const CUgraphNode one = add_empty(graph, {});
  add_empty(graph, {one});
  add_empty(graph, {one});
  std::size_t count = 77;
  CHECK_CODE(api.cuGraphGetEdges_v2(graph, nullptr, nullptr, nullptr, &count), CUDA_SUCCESS);
  CHECK(count == 2);
}

TEST_CASE_FIXTURE(Primary, "GRF-40: room for more edges than there are is filled with NULL [H]") {
  const Graph graph = Graph::make();
  const CUgraphNode one = add_empty(graph, {});
  const CUgraphNode two = add_empty(graph, {one});
  Nodes from(3, one);
  Nodes to(3, one);
  std::size_t count = 3;
  CHECK_CODE(api.cuGraphGetEdges_v2(graph, from.data(), to.data(), nullptr, &count), CUDA_SUCCESS);
  CHECK(count == 1);
  CHECK(from == Nodes{one, nullptr, nullptr});
  CHECK(to == Nodes{two, nullptr, nullptr});
}

TEST_CASE_FIXTURE(Primary,
                  "GRF-41: dependencies and dependents are the two ends of the edges [H]") {
  const Graph graph = Graph::make();
  const CUgraphNode one = add_empty(graph, {});
  const CUgraphNode two = add_empty(graph, {});
  const CUgraphNode three = add_empty(graph, {one, two});
  const Nodes before = dependencies_of(three);
  CHECK(std::set<CUgraphNode>(before.begin(), before.end()) == std::set<CUgraphNode>{one, two});
  CUgraphNode after[2] = {one, one};
  std::size_t count = 2;
  CHECK_CODE(api.cuGraphNodeGetDependentNodes_v2(one, after, nullptr, &count), CUDA_SUCCESS);
  CHECK(count == 1);
  CHECK(after[0] == three);
  CHECK(after[1] == nullptr);
}

TEST_CASE_FIXTURE(Primary, "GRF-42: edge data is kept and told [H]") {
  if (device_attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) < 9) {
    SKIP_CASE("programmatic edges need compute capability 9.0");
  }
  const Pair pair(*this);
  const CUgraphEdgeData data = programmatic();
  REQUIRE_OK(api.cuGraphAddDependencies_v2(pair.graph, &pair.first, &pair.second, &data, 1));
  CUgraphNode from = nullptr;
  CUgraphNode to = nullptr;
  CUgraphEdgeData told{};
  std::size_t count = 1;
  CHECK_CODE(api.cuGraphGetEdges_v2(pair.graph, &from, &to, &told, &count), CUDA_SUCCESS);
  CHECK(count == 1);
  CHECK(from == pair.first);
  CHECK(to == pair.second);
  CHECK(told.from_port == data.from_port);
  CHECK(told.to_port == 0);
  CHECK(told.type == data.type);
}

TEST_CASE_FIXTURE(Primary, "GRF-43: edge data that would be lost is an answer 402 [H]") {
  if (device_attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) < 9) {
    SKIP_CASE("programmatic edges need compute capability 9.0");
  }
  const Pair pair(*this);
  const CUgraphEdgeData data = programmatic();
  REQUIRE_OK(api.cuGraphAddDependencies_v2(pair.graph, &pair.first, &pair.second, &data, 1));
  CUgraphNode from = nullptr;
  CUgraphNode to = nullptr;
  std::size_t count = 1;
  CHECK_CODE(api.cuGraphGetEdges_v2(pair.graph, &from, &to, nullptr, &count),
             CUDA_ERROR_LOSSY_QUERY);
  count = 1;
  CHECK_CODE(api.cuGraphNodeGetDependencies_v2(pair.second, &from, nullptr, &count),
             CUDA_ERROR_LOSSY_QUERY);
  count = 1;
  CHECK_CODE(api.cuGraphNodeGetDependentNodes_v2(pair.first, &to, nullptr, &count),
             CUDA_ERROR_LOSSY_QUERY);
}

TEST_CASE_FIXTURE(Primary, "GRF-44: an edge is removed only with the data that it has [H]") {
  if (device_attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) < 9) {
    SKIP_CASE("programmatic edges need compute capability 9.0");
  }
  const Pair pair(*this);
  const CUgraphEdgeData data = programmatic();
  REQUIRE_OK(api.cuGraphAddDependencies_v2(pair.graph, &pair.first, &pair.second, &data, 1));
  CHECK_CODE(disconnect(pair.graph, pair.first, pair.second), CUDA_ERROR_INVALID_VALUE);
  CHECK_CODE(api.cuGraphRemoveDependencies_v2(pair.graph, &pair.first, &pair.second, &data, 1),
             CUDA_SUCCESS);
  CHECK(edges_of(pair.graph).empty());
}

TEST_CASE_FIXTURE(Primary, "GRF-45: a graph with a programmatic edge runs both kernels [H]") {
  if (device_attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) < 9) {
    SKIP_CASE("programmatic edges need compute capability 9.0");
  }
  const Stream stream;
  const Pair pair(*this);
  const CUgraphEdgeData data = programmatic();
  REQUIRE_OK(api.cuGraphAddDependencies_v2(pair.graph, &pair.first, &pair.second, &data, 1));
  run_once(pair.graph, stream);
  CHECK(pair.memory.word() == 2);
}

TEST_CASE_FIXTURE(Primary, "GRF-46: edge data that no edge may have [?]") {
  const Pair pair(*this);
  CUgraphEdgeData data{};
  data.to_port = 1;
  observe("an edge into a port that does not exist",
          api.cuGraphAddDependencies_v2(pair.graph, &pair.first, &pair.second, &data, 1));
  const CUgraphNode one = add_empty(pair.graph, {});
  const CUgraphNode two = add_empty(pair.graph, {});
  data = programmatic();
  observe("a programmatic edge between empty nodes",
          api.cuGraphAddDependencies_v2(pair.graph, &one, &two, &data, 1));
}
