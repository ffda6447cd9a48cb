// Allocation and free nodes: the memory of a graph, who may free it, and all that a graph with such
// nodes may not do.
#include "graph_support.hpp"

using namespace conformance;

namespace {

constexpr std::size_t kBytes = 64;

/// Adds an allocation of kBytes on the current device; answers the call's code.
CUresult try_alloc(CUgraph graph, const Nodes& after, CUgraphNode& node, CUdeviceptr& memory) {
  CUdevice device = 0;
  REQUIRE_OK(api().cuCtxGetDevice(&device));
  CUDA_MEM_ALLOC_NODE_PARAMS asked{};
  asked.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  asked.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
  asked.bytesize = kBytes;
  const CUresult added =
      api().cuGraphAddMemAllocNode(&node, graph, after.data(), after.size(), &asked);
  memory = asked.dptr;
  return added;
}

struct Allocation {
  CUgraphNode node = nullptr;
  CUdeviceptr memory = 0;
};

Allocation add_alloc(CUgraph graph) {
  Allocation out;
  REQUIRE_OK(try_alloc(graph, {}, out.node, out.memory));
  REQUIRE(out.memory != 0);
  return out;
}

CUresult try_free(CUgraph graph, const Nodes& after, CUdeviceptr memory) {
  CUgraphNode node = nullptr;
  return api().cuGraphAddMemFreeNode(&node, graph, after.data(), after.size(), memory);
}

/// A graph that allocates, writes a word, copies it out and frees: nothing stays behind.
void build_whole(CUgraph graph, CUdeviceptr result, std::uint32_t value) {
  const Allocation allocated = add_alloc(graph);
  const CUgraphNode filled = add_fill(graph, {allocated.node}, allocated.memory, value);
  const CUgraphNode copied = add_copy(graph, {filled}, allocated.memory, result);
  REQUIRE_OK(try_free(graph, {copied}, allocated.memory));
}

}  // namespace

TEST_CASE_FIXTURE(Primary, "ALC-01: memory of a graph is used between its two nodes [H]") {
  const Stream stream;
  const Memory result;
  const Graph graph = Graph::make();
  build_whole(graph, result, 1);
  const Exec exec = Exec::of(graph);
  run(exec, stream);
  CHECK(result.word() == 1);
  REQUIRE_OK(fill(stream, result, 0));
  run(exec, stream);
  CHECK(result.word() == 1);
}

TEST_CASE_FIXTURE(Primary, "ALC-02: the nodes tell size and address [H]") {
  const Graph graph = Graph::make();
  const Allocation allocated = add_alloc(graph);
  CUgraphNode freed = nullptr;
  REQUIRE_OK(api.cuGraphAddMemFreeNode(&freed, graph, &allocated.node, 1, allocated.memory));
  CHECK(type_of(allocated.node) == CU_GRAPH_NODE_TYPE_MEM_ALLOC);
  CHECK(type_of(freed) == CU_GRAPH_NODE_TYPE_MEM_FREE);
  CUDA_MEM_ALLOC_NODE_PARAMS told{};
  CHECK_CODE(api.cuGraphMemAllocNodeGetParams(allocated.node, &told), CUDA_SUCCESS);
  CHECK(told.bytesize == kBytes);
  CHECK(told.dptr == allocated.memory);
  CUdeviceptr address = 0;
  CHECK_CODE(api.cuGraphMemFreeNodeGetParams(freed, &address), CUDA_SUCCESS);
  CHECK(address == allocated.memory);
}

TEST_CASE_FIXTURE(Primary, "ALC-03: memory may be freed once in a graph: 1 for the second [H]") {
  const Graph graph = Graph::make();
  const Allocation allocated = add_alloc(graph);
  REQUIRE_OK(try_free(graph, {allocated.node}, allocated.memory));
  CHECK_CODE(try_free(graph, {allocated.node}, allocated.memory), CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE_FIXTURE(Primary,
                  "ALC-04: a free node takes only memory of an allocation node: else 1 [H]") {
  const Memory memory;
  const Graph graph = Graph::make();
  CHECK_CODE(try_free(graph, {}, memory), CUDA_ERROR_INVALID_VALUE);
  CHECK_CODE(try_free(graph, {}, 0), CUDA_ERROR_INVALID_VALUE);
  CHECK(nodes_of(graph).empty());
}

TEST_CASE_FIXTURE(Primary, "ALC-05: memory freed in its graph has no free node elsewhere: 1 [H]") {
  const Graph graph = Graph::make();
  const Allocation allocated = add_alloc(graph);
  REQUIRE_OK(try_free(graph, {allocated.node}, allocated.memory));
  const Graph other = Graph::make();
  CHECK_CODE(try_free(other, {}, allocated.memory), CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE_FIXTURE(Primary, "ALC-06: a graph with allocations cannot be cloned [H]") {
  const Memory result;
  const Graph graph = Graph::make();
  build_whole(graph, result, 6);
  CUgraph clone = nullptr;
  CHECK(api.cuGraphClone(&clone, graph) != CUDA_SUCCESS);
}

TEST_CASE_FIXTURE(Primary, "ALC-07: a graph with allocations cannot be a child [H]") {
  const Memory result;
  const Graph graph = Graph::make();
  build_whole(graph, result, 7);
  const Graph outer = Graph::make();
  CUgraphNode node = nullptr;
  CHECK(api.cuGraphAddChildGraphNode(&node, outer, nullptr, 0, graph) != CUDA_SUCCESS);
  CHECK(nodes_of(outer).empty());
}

TEST_CASE_FIXTURE(Primary, "ALC-08: allocations cannot be added to the graph in a child node [H]") {
  const Graph inner = Graph::make();
  const Graph outer = Graph::make();
  const CUgraphNode child = add_child(outer, {}, inner);
  CUgraph inside = nullptr;
  REQUIRE_OK(api.cuGraphChildGraphNodeGetGraph(child, &inside));
  CUgraphNode node = nullptr;
  CUdeviceptr memory = 0;
  CHECK(try_alloc(inside, {}, node, memory) != CUDA_SUCCESS);
}

TEST_CASE_FIXTURE(Primary, "ALC-09: a graph with allocations keeps its nodes and its edges [H]") {
  const Memory memory;
  const Graph graph = Graph::make();
  const Allocation allocated = add_alloc(graph);
  const CUgraphNode filled = add_fill(graph, {allocated.node}, memory, 1);
  CHECK(api.cuGraphDestroyNode(filled) != CUDA_SUCCESS);
  CHECK(api.cuGraphRemoveDependencies_v2(graph, &allocated.node, &filled, nullptr, 1) !=
        CUDA_SUCCESS);
  CHECK(edges_of(graph) == Edges{{allocated.node, filled}});
}

TEST_CASE_FIXTURE(Primary, "ALC-10: a graph with allocations has one executable at a time [H]") {
  const Stream stream;
  const Memory result;
  const Graph graph = Graph::make();
  build_whole(graph, result, 10);
  Exec first;
  REQUIRE_OK(api.cuGraphInstantiateWithFlags(first.out(), graph, 0));
  CUgraphExec second = nullptr;
  CHECK(api.cuGraphInstantiateWithFlags(&second, graph, 0) != CUDA_SUCCESS);
  run(first, stream);
  REQUIRE_OK(api.cuGraphExecDestroy(first.take()));
  const Exec again = Exec::of(graph);
  run(again, stream);
  CHECK(result.word() == 10);
}

TEST_CASE_FIXTURE(Primary,
                  "ALC-11: memory that a graph leaves is for later work of the stream [H]") {
  const Stream stream;
  const Memory result;
  const Graph graph = Graph::make();
  const Allocation allocated = add_alloc(graph);
  add_fill(graph, {allocated.node}, allocated.memory, 11);
  const Exec exec = Exec::of(graph);
  REQUIRE_OK(api.cuGraphLaunch(exec, stream));
  CHECK_CODE(api.cuMemcpyDtoDAsync_v2(result, allocated.memory, sizeof(std::uint32_t), stream),
             CUDA_SUCCESS);
  CHECK_CODE(api.cuMemFreeAsync(allocated.memory, stream), CUDA_SUCCESS);
  REQUIRE_OK(api.cuStreamSynchronize(stream));
  CHECK(result.word() == 11);
}

TEST_CASE_FIXTURE(Primary,
                  "ALC-12: a launch with memory of the last one unfreed is refused: 1 [H]") {
  const Stream stream;
  const Graph graph = Graph::make();
  const Allocation allocated = add_alloc(graph);
  const Exec exec = Exec::of(graph);
  run(exec, stream);
  CHECK_CODE(api.cuGraphLaunch(exec, stream), CUDA_ERROR_INVALID_VALUE);
  REQUIRE_OK(api.cuMemFreeAsync(allocated.memory, stream));
  CHECK_CODE(api.cuGraphLaunch(exec, stream), CUDA_SUCCESS);
  REQUIRE_OK(api.cuMemFreeAsync(allocated.memory, stream));
  REQUIRE_OK(api.cuStreamSynchronize(stream));
}

TEST_CASE_FIXTURE(Primary, "ALC-13: AUTO_FREE frees what the last launch left [H]") {
  const Stream stream;
  const Memory result;
  const Graph graph = Graph::make();
  const Allocation allocated = add_alloc(graph);
  const CUgraphNode filled = add_fill(graph, {allocated.node}, allocated.memory, 13);
  add_copy(graph, {filled}, allocated.memory, result);
  Exec exec;
  REQUIRE_OK(api.cuGraphInstantiateWithFlags(exec.out(), graph,
                                             CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH));
  for (int i = 0; i < 3; ++i) CHECK_CODE(api.cuGraphLaunch(exec, stream), CUDA_SUCCESS);
  REQUIRE_OK(api.cuMemFreeAsync(allocated.memory, stream));
  REQUIRE_OK(api.cuStreamSynchronize(stream));
  CHECK(result.word() == 13);
}

TEST_CASE_FIXTURE(Primary, "ALC-14: another graph may free what a graph leaves [H]") {
  const Stream stream;
  const Memory result;
  const Graph makes = Graph::make();
  const Allocation allocated = add_alloc(makes);
  add_fill(makes, {allocated.node}, allocated.memory, 14);
  const Graph uses = Graph::make();
  const CUgraphNode copied = add_copy(uses, {}, allocated.memory, result);
  REQUIRE_OK(try_free(uses, {copied}, allocated.memory));
  CHECK_CODE(try_free(makes, {allocated.node}, allocated.memory), CUDA_ERROR_INVALID_VALUE);
  const Exec maker = Exec::of(makes);
  const Exec user = Exec::of(uses);
  for (int i = 0; i < 2; ++i) {
    CHECK_CODE(api.cuGraphLaunch(maker, stream), CUDA_SUCCESS);
    CHECK_CODE(api.cuGraphLaunch(user, stream), CUDA_SUCCESS);
  }
  REQUIRE_OK(api.cuStreamSynchronize(stream));
  CHECK(result.word() == 14);
}

TEST_CASE_FIXTURE(Primary, "ALC-15: device launch and AUTO_FREE exclude another [H]") {
  const Memory memory;
  const Graph graph = Graph::make();
  add_kernel(graph, {}, kernel("add_one"), memory.get());
  CUgraphExec exec = nullptr;
  CHECK(api.cuGraphInstantiateWithFlags(&exec, graph,
                                        CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH |
                                            CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH) !=
        CUDA_SUCCESS);
}

TEST_CASE_FIXTURE(Primary, "ALC-16: allocation nodes cannot be changed [H]") {
  const Graph graph = Graph::make();
  const Allocation allocated = add_alloc(graph);
  REQUIRE_OK(try_free(graph, {allocated.node}, allocated.memory));
  const Exec exec = Exec::of(graph);
  CUgraphNodeParams asked = node_of(CU_GRAPH_NODE_TYPE_MEM_ALLOC);
  asked.alloc.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  asked.alloc.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
  asked.alloc.bytesize = 2 * kBytes;
  CHECK(api.cuGraphNodeSetParams(allocated.node, &asked) != CUDA_SUCCESS);
  CHECK(api.cuGraphExecNodeSetParams(exec, allocated.node, &asked) != CUDA_SUCCESS);
}

TEST_CASE_FIXTURE(Primary, "ALC-17: memory allocated in a capture stays after a replay [H]") {
  const Stream stream;
  const Memory result;
  begin(stream);
  CUdeviceptr inner = 0;
  REQUIRE_OK(api.cuMemAllocAsync(&inner, kBytes, stream));
  REQUIRE_OK(fill(stream, inner, 17));
  const Graph graph(end(stream));
  const Exec exec = Exec::of(graph);
  REQUIRE_OK(api.cuGraphLaunch(exec, stream));
  CHECK_CODE(api.cuMemcpyDtoDAsync_v2(result, inner, sizeof(std::uint32_t), stream), CUDA_SUCCESS);
  CHECK_CODE(api.cuMemFreeAsync(inner, stream), CUDA_SUCCESS);
  REQUIRE_OK(api.cuStreamSynchronize(stream));
  CHECK(result.word() == 17);
}

TEST_CASE_FIXTURE(Primary, "ALC-18: the memory of graphs as the device counts it [?]") {
  const Stream stream;
  const Memory result;
  {
    const Graph graph = Graph::make();
    build_whole(graph, result, 18);
    const Exec exec = Exec::of(graph);
    run(exec, stream);
    cuuint64_t used = 0;
    observe(
        "asking for the memory of graphs",
        api.cuDeviceGetGraphMemAttribute(device, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &used));
    observe("bytes reserved for a graph of 64", used);
  }
  observe("giving it back", api.cuDeviceGraphMemTrim(device));
}
