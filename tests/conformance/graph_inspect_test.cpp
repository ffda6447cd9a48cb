// Looking at graphs: nodes and their parameters as they were said, changing them in the graph, and
// clones.
#include "graph_support.hpp"

using namespace conformance;

using Words = std::vector<std::uint32_t>;

TEST_CASE_FIXTURE(Primary, "GRF-50: the number of nodes is told without a place for them [H]") {
  const Graph graph = Graph::make();
  std::size_t count = 77;
  CHECK_CODE(api.cuGraphGetNodes(graph, nullptr, &count), CUDA_SUCCESS);
  CHECK(count == 0);
  add_empty(graph, {});
  CHECK_CODE(api.cuGraphGetNodes(graph, nullptr, &count), CUDA_SUCCESS);
  CHECK(count == 1);
}

TEST_CASE_FIXTURE(Primary, "GRF-51: room for more nodes than there are is filled with NULL [H]") {
  const Graph graph = Graph::make();
  const CUgraphNode node = add_empty(graph, {});
  CUgraphNode nodes[3] = {node, node, node};
  std::size_t count = 3;
  CHECK_CODE(api.cuGraphGetNodes(graph, nodes, &count), CUDA_SUCCESS);
  CHECK(count == 1);
  CHECK(nodes[0] == node);
  CHECK(nodes[1] == nullptr);
  CHECK(nodes[2] == nullptr);
}

TEST_CASE_FIXTURE(Primary, "GRF-52: the roots are the nodes without dependencies [H]") {
  const Graph graph = Graph::make();
  const CUgraphNode one = add_empty(graph, {});
  const CUgraphNode two = add_empty(graph, {});
  add_empty(graph, {one, two});
  CUgraphNode roots[3] = {};
  std::size_t count = 3;
  CHECK_CODE(api.cuGraphGetRootNodes(graph, roots, &count), CUDA_SUCCESS);
  REQUIRE(count == 2);
  CHECK(std::set<CUgraphNode>{roots[0], roots[1]} == std::set<CUgraphNode>{one, two});
  CHECK(roots[2] == nullptr);
}

TEST_CASE_FIXTURE(Primary, "GRF-53: a memset node tells its parameters [H]") {
  const Memory memory(2);
  const Graph graph = Graph::make();
  CUDA_MEMSET_NODE_PARAMS said = fill_of(memory, 53, 2);
  const CUgraphNode node = add_fill(graph, {}, memory, 53, 2);
  CUDA_MEMSET_NODE_PARAMS told{};
  CHECK_CODE(api.cuGraphMemsetNodeGetParams(node, &told), CUDA_SUCCESS);
  CHECK(told.dst == said.dst);
  CHECK(told.value == said.value);
  CHECK(told.elementSize == said.elementSize);
  CHECK(told.width == said.width);
  CHECK(told.height == said.height);
}

TEST_CASE_FIXTURE(Primary, "GRF-54: a memcpy node tells its parameters [H]") {
  const Memory memory(4);
  const Graph graph = Graph::make();
  const CUgraphNode node = add_copy(graph, {}, memory, memory + 8, 2);
  CUDA_MEMCPY3D told{};
  CHECK_CODE(api.cuGraphMemcpyNodeGetParams(node, &told), CUDA_SUCCESS);
  CHECK(told.srcDevice + told.srcXInBytes == memory);
  CHECK(told.dstDevice + told.dstXInBytes == memory + 8);
  CHECK(told.WidthInBytes == 2 * sizeof(std::uint32_t));
  CHECK(told.Height == 1);
  CHECK(told.Depth == 1);
}

TEST_CASE_FIXTURE(Primary, "GRF-55: a kernel node tells the values of its parameters [H]") {
  const Memory memory;
  const Graph graph = Graph::make();
  const CUfunction function = kernel("write_word");
  const CUgraphNode node = add_kernel(graph, {}, function, memory.get(), std::uint32_t{55});
  CUDA_KERNEL_NODE_PARAMS_v2 told{};
  REQUIRE_OK(api.cuGraphKernelNodeGetParams_v2(node, &told));
  CHECK(told.func == function);
  CHECK(told.gridDimX == 1);
  CHECK(told.blockDimX == 1);
  CHECK(told.sharedMemBytes == 0);
  REQUIRE(told.kernelParams != nullptr);
  CHECK(told.extra == nullptr);
  CHECK(*static_cast<const CUdeviceptr*>(told.kernelParams[0]) == memory);
  CHECK(*static_cast<const std::uint32_t*>(told.kernelParams[1]) == 55);
}

TEST_CASE_FIXTURE(Primary, "GRF-56: a captured kernel tells the values of its parameters [H]") {
  const Stream stream;
  const Memory memory;
  const CUfunction function = kernel("write_word");
  begin(stream);
  REQUIRE_OK(launch(function, stream, memory.get(), std::uint32_t{56}));
  const Graph graph(end(stream));
  CUDA_KERNEL_NODE_PARAMS_v2 told{};
  REQUIRE_OK(api.cuGraphKernelNodeGetParams_v2(nodes_of(graph).at(0), &told));
  REQUIRE(told.kernelParams != nullptr);
  CHECK(*static_cast<const CUdeviceptr*>(told.kernelParams[0]) == memory);
  CHECK(*static_cast<const std::uint32_t*>(told.kernelParams[1]) == 56);
}

TEST_CASE_FIXTURE(Primary, "GRF-57: a kernel node tells the form that was set last [H]") {
  const Memory memory;
  const Graph graph = Graph::make();
  const CUgraphNode node = add_kernel(graph, {}, kernel("add_one"), memory.get());
  CUdeviceptr where = memory;
  std::size_t size = sizeof where;
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &where, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                   CU_LAUNCH_PARAM_END};
  CUDA_KERNEL_NODE_PARAMS_v2 packed = launch_of(kernel("add_one"), nullptr);
  packed.extra = extra;
  REQUIRE_OK(api.cuGraphKernelNodeSetParams_v2(node, &packed));
  CUDA_KERNEL_NODE_PARAMS_v2 told{};
  REQUIRE_OK(api.cuGraphKernelNodeGetParams_v2(node, &told));
  CHECK(told.kernelParams == nullptr);
  REQUIRE(told.extra != nullptr);
  void** const at = told.extra;
  const void* buffer = nullptr;
  for (int i = 0; at[i] != CU_LAUNCH_PARAM_END; i += 2) {
    if (at[i] == CU_LAUNCH_PARAM_BUFFER_POINTER) buffer = at[i + 1];
  }
  REQUIRE(buffer != nullptr);
  CHECK(buffer != &where);
  CHECK(*static_cast<const CUdeviceptr*>(buffer) == memory);
  void* parameters[] = {&where};
  const CUDA_KERNEL_NODE_PARAMS_v2 apart = launch_of(kernel("add_one"), parameters);
  REQUIRE_OK(api.cuGraphKernelNodeSetParams_v2(node, &apart));
  REQUIRE_OK(api.cuGraphKernelNodeGetParams_v2(node, &told));
  CHECK(told.kernelParams != nullptr);
  CHECK(told.extra == nullptr);
}

TEST_CASE_FIXTURE(Primary, "GRF-58: a host node tells its function and its data [H]") {
  const Graph graph = Graph::make();
  int calls = 0;
  const CUgraphNode node = add_host(graph, {}, count_up, &calls);
  CUDA_HOST_NODE_PARAMS told{};
  CHECK_CODE(api.cuGraphHostNodeGetParams(node, &told), CUDA_SUCCESS);
  CHECK((told.fn == count_up));
  CHECK(told.userData == &calls);
}

TEST_CASE_FIXTURE(Primary, "GRF-59: parameters of another type of node are refused with 1 [H]") {
  const Graph graph = Graph::make();
  const CUgraphNode node = add_empty(graph, {});
  CUDA_MEMSET_NODE_PARAMS filled{};
  CUDA_MEMCPY3D copied{};
  CUDA_HOST_NODE_PARAMS called{};
  CUDA_KERNEL_NODE_PARAMS_v2 launched{};
  CHECK_CODE(api.cuGraphMemsetNodeGetParams(node, &filled), CUDA_ERROR_INVALID_VALUE);
  CHECK_CODE(api.cuGraphMemcpyNodeGetParams(node, &copied), CUDA_ERROR_INVALID_VALUE);
  CHECK_CODE(api.cuGraphHostNodeGetParams(node, &called), CUDA_ERROR_INVALID_VALUE);
  CHECK_CODE(api.cuGraphKernelNodeGetParams_v2(node, &launched), CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE_FIXTURE(Primary, "GRF-60: changing a node changes what is instantiated next [H]") {
  const Stream stream;
  const Memory memory(2);
  int wrong = 0;
  int right = 0;
  const Graph graph = Graph::make();
  const CUgraphNode filled = add_fill(graph, {}, memory, 1);
  const CUgraphNode copied = add_copy(graph, {filled}, memory, memory);
  const CUgraphNode called = add_host(graph, {copied}, count_up, &wrong);
  const CUDA_MEMSET_NODE_PARAMS fill = fill_of(memory, 60);
  const CUDA_MEMCPY3D copy = copy_of(memory, memory + 4);
  const CUDA_HOST_NODE_PARAMS call{count_up, &right};
  CHECK_CODE(api.cuGraphMemsetNodeSetParams(filled, &fill), CUDA_SUCCESS);
  CHECK_CODE(api.cuGraphMemcpyNodeSetParams(copied, &copy), CUDA_SUCCESS);
  CHECK_CODE(api.cuGraphHostNodeSetParams(called, &call), CUDA_SUCCESS);
  run_once(graph, stream);
  CHECK(memory.words() == Words{60, 60});
  CHECK(wrong == 0);
  CHECK(right == 1);
}

TEST_CASE_FIXTURE(Primary, "GRF-61: the general call changes a node of the same type only [H]") {
  const Stream stream;
  const Memory memory;
  const Graph graph = Graph::make();
  const CUgraphNode node = add_fill(graph, {}, memory, 1);
  CUgraphNodeParams filled = node_of(CU_GRAPH_NODE_TYPE_MEMSET);
  filled.memset.dst = memory;
  filled.memset.value = 61;
  filled.memset.elementSize = 4;
  filled.memset.width = 1;
  filled.memset.height = 1;
  filled.memset.ctx = context;
  CHECK_CODE(api.cuGraphNodeSetParams(node, &filled), CUDA_SUCCESS);
  int calls = 0;
  CUgraphNodeParams called = node_of(CU_GRAPH_NODE_TYPE_HOST);
  called.host.fn = count_up;
  called.host.userData = &calls;
  CHECK_CODE(api.cuGraphNodeSetParams(node, &called), CUDA_ERROR_INVALID_VALUE);
  run_once(graph, stream);
  CHECK(memory.word() == 61);
}

TEST_CASE_FIXTURE(Primary, "GRF-62: a kernel node keeps its priority [H]") {
  int least = 0;
  int greatest = 0;
  REQUIRE_OK(api.cuCtxGetStreamPriorityRange(&least, &greatest));
  const Memory memory;
  const Graph graph = Graph::make();
  const CUgraphNode node = add_kernel(graph, {}, kernel("add_one"), memory.get());
  CUkernelNodeAttrValue said{};
  said.priority = greatest;
  CHECK_CODE(api.cuGraphKernelNodeSetAttribute(node, CU_LAUNCH_ATTRIBUTE_PRIORITY, &said),
             CUDA_SUCCESS);
  CUkernelNodeAttrValue told{};
  CHECK_CODE(api.cuGraphKernelNodeGetAttribute(node, CU_LAUNCH_ATTRIBUTE_PRIORITY, &told),
             CUDA_SUCCESS);
  CHECK(told.priority == greatest);
}

TEST_CASE_FIXTURE(Primary, "GRF-63: a captured kernel has its stream's priority [H]") {
  int least = 0;
  int greatest = 0;
  REQUIRE_OK(api.cuCtxGetStreamPriorityRange(&least, &greatest));
  Stream stream;
  REQUIRE_OK(api.cuStreamDestroy_v2(stream.take()));
  REQUIRE_OK(api.cuStreamCreateWithPriority(stream.out(), CU_STREAM_NON_BLOCKING, greatest));
  const Memory memory;
  const CUfunction function = kernel("add_one");
  begin(stream);
  REQUIRE_OK(launch(function, stream, memory.get()));
  const Graph graph(end(stream));
  CUkernelNodeAttrValue told{};
  CHECK_CODE(
      api.cuGraphKernelNodeGetAttribute(nodes_of(graph).at(0), CU_LAUNCH_ATTRIBUTE_PRIORITY, &told),
      CUDA_SUCCESS);
  CHECK(told.priority == greatest);
}

TEST_CASE_FIXTURE(Primary, "GRF-64: a clone keeps what the original was [H]") {
  const Stream stream;
  const Memory memory(2);
  Graph clone;
  {
    const Graph graph = Graph::make();
    const CUgraphNode node = add_fill(graph, {}, memory, 64);
    add_copy(graph, {node}, memory, memory + 4);
    CHECK_CODE(api.cuGraphClone(clone.out(), graph), CUDA_SUCCESS);
    const CUDA_MEMSET_NODE_PARAMS other = fill_of(memory, 1);
    REQUIRE_OK(api.cuGraphMemsetNodeSetParams(node, &other));
    add_fill(graph, {}, memory, 2);
  }
  CHECK(nodes_of(clone).size() == 2);
  CHECK(edges_of(clone).size() == 1);
  run_once(clone, stream);
  CHECK(memory.words() == Words{64, 64});
}

TEST_CASE_FIXTURE(Primary, "GRF-65: a node is found in the clone of its graph [H]") {
  const Memory memory;
  const Graph graph = Graph::make();
  const CUgraphNode first = add_fill(graph, {}, memory, 1);
  const CUgraphNode second = add_fill(graph, {first}, memory, 2);
  Graph clone;
  REQUIRE_OK(api.cuGraphClone(clone.out(), graph));
  CUgraphNode found_first = nullptr;
  CUgraphNode found_second = nullptr;
  CHECK_CODE(api.cuGraphNodeFindInClone(&found_first, first, clone), CUDA_SUCCESS);
  CHECK_CODE(api.cuGraphNodeFindInClone(&found_second, second, clone), CUDA_SUCCESS);
  CHECK(found_first != first);
  CHECK(edges_of(clone) == Edges{{found_first, found_second}});
}

TEST_CASE_FIXTURE(Primary, "GRF-66: a node that the clone does not have is not found: 1 [H]") {
  const Memory memory;
  const Graph graph = Graph::make();
  const CUgraphNode removed = add_fill(graph, {}, memory, 1);
  Graph clone;
  REQUIRE_OK(api.cuGraphClone(clone.out(), graph));
  const CUgraphNode later = add_fill(graph, {}, memory, 2);
  CUgraphNode found = nullptr;
  CHECK_CODE(api.cuGraphNodeFindInClone(&found, later, clone), CUDA_ERROR_INVALID_VALUE);
  REQUIRE_OK(api.cuGraphNodeFindInClone(&found, removed, clone));
  REQUIRE_OK(api.cuGraphDestroyNode(found));
  CHECK_CODE(api.cuGraphNodeFindInClone(&found, removed, clone), CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE_FIXTURE(Primary, "GRF-67: a graph that is no clone finds nothing: 1 [H]") {
  const Graph graph = Graph::make();
  const Graph other = Graph::make();
  const CUgraphNode node = add_empty(graph, {});
  CUgraphNode found = nullptr;
  CHECK_CODE(api.cuGraphNodeFindInClone(&found, node, other), CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE_FIXTURE(Primary, "GRF-68: child graphs are cloned with their parents [H]") {
  const Stream stream;
  const Memory memory;
  const Graph inner = Graph::make();
  add_fill(inner, {}, memory, 68);
  Graph clone;
  {
    const Graph outer = Graph::make();
    const CUgraphNode child = add_child(outer, {}, inner);
    REQUIRE_OK(api.cuGraphClone(clone.out(), outer));
    CUgraph inside = nullptr;
    REQUIRE_OK(api.cuGraphChildGraphNodeGetGraph(child, &inside));
    const CUDA_MEMSET_NODE_PARAMS other = fill_of(memory, 1);
    REQUIRE_OK(api.cuGraphMemsetNodeSetParams(nodes_of(inside).at(0), &other));
  }
  run_once(clone, stream);
  CHECK(memory.word() == 68);
}

TEST_CASE_FIXTURE(Primary, "GRF-69: a node of a graph is looked for in a child made of it [?]") {
  const Memory memory;
  const Graph inner = Graph::make();
  const CUgraphNode node = add_fill(inner, {}, memory, 1);
  const Graph outer = Graph::make();
  const CUgraphNode child = add_child(outer, {}, inner);
  CUgraph inside = nullptr;
  REQUIRE_OK(api.cuGraphChildGraphNodeGetGraph(child, &inside));
  CUgraphNode found = nullptr;
  observe("a node looked for in the graph of a child node",
          api.cuGraphNodeFindInClone(&found, node, inside));
}
