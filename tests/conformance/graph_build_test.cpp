// Building graphs: what each kind of node does when the graph runs, seen in the bytes, and which
// nodes are refused.
#include "graph_support.hpp"

using namespace conformance;

using Words = std::vector<std::uint32_t>;

TEST_CASE_FIXTURE(Primary, "GRF-01: a graph takes no flags and answers 1 for any [H]") {
  CUgraph graph = nullptr;
  CHECK_CODE(api.cuGraphCreate(&graph, 1), CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE_FIXTURE(Primary,
                  "GRF-02: a memset node writes elements of one or two or four bytes [H]") {
  const Stream stream;
  const Memory memory(3);
  const Graph graph = Graph::make();
  for (const unsigned size : {1U, 2U, 4U}) {
    CUDA_MEMSET_NODE_PARAMS filled{};
    filled.dst = memory + 4 * (size / 2);
    filled.value = 0x12345678U >> (32 - 8 * size);
    filled.elementSize = size;
    filled.width = 4 / size;
    filled.height = 1;
    CUgraphNode node = nullptr;
    CHECK_CODE(api.cuGraphAddMemsetNode(&node, graph, nullptr, 0, &filled, context), CUDA_SUCCESS);
  }
  run_once(graph, stream);
  CHECK(memory.words() == Words{0x12121212, 0x12341234, 0x12345678});
}

TEST_CASE_FIXTURE(Primary,
                  "GRF-03: a memset node of elements of three bytes is refused with 1 [H]") {
  const Memory memory(3);
  const Graph graph = Graph::make();
  CUDA_MEMSET_NODE_PARAMS filled = fill_of(memory, 1);
  filled.elementSize = 3;
  CUgraphNode node = nullptr;
  CHECK_CODE(api.cuGraphAddMemsetNode(&node, graph, nullptr, 0, &filled, context),
             CUDA_ERROR_INVALID_VALUE);
  CHECK(nodes_of(graph).empty());
}

TEST_CASE_FIXTURE(Primary, "GRF-04: a memset node of rows leaves what is between them [H]") {
  const Stream stream;
  const Memory memory(6);
  const Graph graph = Graph::make();
  CUDA_MEMSET_NODE_PARAMS filled = fill_of(memory, 7, 2);
  filled.height = 2;
  filled.pitch = 3 * sizeof(std::uint32_t);
  CUgraphNode node = nullptr;
  REQUIRE_OK(api.cuGraphAddMemsetNode(&node, graph, nullptr, 0, &filled, context));
  run_once(graph, stream);
  CHECK(memory.words() == Words{7, 7, 0, 7, 7, 0});
}

TEST_CASE_FIXTURE(Primary, "GRF-05: memcpy nodes copy from and to host memory [H]") {
  const Stream stream;
  const Memory memory(2);
  const Pinned host(4);
  const Graph graph = Graph::make();
  CUDA_MEMCPY3D in = copy_of(0, memory, 2);
  in.srcMemoryType = CU_MEMORYTYPE_HOST;
  in.srcHost = host.get();
  CUDA_MEMCPY3D out = copy_of(memory, 0, 2);
  out.dstMemoryType = CU_MEMORYTYPE_HOST;
  out.dstHost = host.get() + 2;
  CUgraphNode first = nullptr;
  CUgraphNode second = nullptr;
  REQUIRE_OK(api.cuGraphAddMemcpyNode(&first, graph, nullptr, 0, &in, context));
  REQUIRE_OK(api.cuGraphAddMemcpyNode(&second, graph, &first, 1, &out, context));
  const Exec exec = Exec::of(graph);
  host.get()[0] = 5;  // read by the replay and not before
  host.get()[1] = 6;
  run(exec, stream);
  CHECK(memory.words() == Words{5, 6});
  CHECK(host.get()[2] == 5);
  CHECK(host.get()[3] == 6);
}

TEST_CASE_FIXTURE(Primary, "GRF-06: a memcpy node of a box copies the box only [H]") {
  const Stream stream;
  const Memory from(8);
  const Memory to(12);
  Words numbers{1, 2, 3, 4, 5, 6, 7, 8};  // two planes of two rows of two
  REQUIRE_OK(api.cuMemcpyHtoD_v2(from, numbers.data(), sizeof(std::uint32_t) * 8));
  const Graph graph = Graph::make();
  CUDA_MEMCPY3D copied = copy_of(from, to);
  copied.srcXInBytes = sizeof(std::uint32_t);
  copied.srcPitch = 2 * sizeof(std::uint32_t);
  copied.srcHeight = 2;
  copied.dstPitch = 3 * sizeof(std::uint32_t);
  copied.dstHeight = 2;
  copied.Height = 2;
  copied.Depth = 2;
  CUgraphNode node = nullptr;
  REQUIRE_OK(api.cuGraphAddMemcpyNode(&node, graph, nullptr, 0, &copied, context));
  run_once(graph, stream);
  CHECK(to.words() == Words{2, 0, 0, 4, 0, 0, 6, 0, 0, 8, 0, 0});
}

TEST_CASE_FIXTURE(Primary, "GRF-07: a kernel node keeps the values that it was made with [H]") {
  const Stream stream;
  const Memory memory;
  const Graph graph = Graph::make();
  CUdeviceptr where = memory;
  std::uint32_t value = 7;
  void* parameters[] = {&where, &value};
  const CUDA_KERNEL_NODE_PARAMS_v2 launched = launch_of(kernel("write_word"), parameters);
  CUgraphNode node = nullptr;
  REQUIRE_OK(api.cuGraphAddKernelNode_v2(&node, graph, nullptr, 0, &launched));
  where = 0;
  value = 8;
  run_once(graph, stream);
  CHECK(memory.word() == 7);
}

TEST_CASE_FIXTURE(Primary, "GRF-08: a kernel node takes its parameters as one packed buffer [H]") {
  const Stream stream;
  const Memory memory(kManyWords);
  const Graph graph = Graph::make();
  ManyParams packed;
  packed.c = -1;
  packed.d = 2.5;
  packed.s = -3;
  packed.block.words[0] = 4;
  packed.block.words[17] = 5;
  packed.out = memory;
  packed.three[0] = 6;
  packed.three[2] = 7;
  std::size_t size = sizeof packed;
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                   CU_LAUNCH_PARAM_END};
  CUDA_KERNEL_NODE_PARAMS_v2 launched = launch_of(kernel("many_params"), nullptr);
  launched.extra = extra;
  CUgraphNode node = nullptr;
  REQUIRE_OK(api.cuGraphAddKernelNode_v2(&node, graph, nullptr, 0, &launched));
  packed = {};
  run_once(graph, stream);
  CHECK(memory.words() == Words{0xffffffffU, 2, 0xfffffffdU, 4, 5, 0x70006, 0, 0});
}

TEST_CASE_FIXTURE(Primary,
                  "GRF-09: a kernel node with both forms of parameters is refused: 1 [H]") {
  const Memory memory;
  const Graph graph = Graph::make();
  CUdeviceptr where = memory;
  std::size_t size = sizeof where;
  void* parameters[] = {&where};
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &where, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                   CU_LAUNCH_PARAM_END};
  CUDA_KERNEL_NODE_PARAMS_v2 launched = launch_of(kernel("add_one"), parameters);
  launched.extra = extra;
  CUgraphNode node = nullptr;
  CHECK_CODE(api.cuGraphAddKernelNode_v2(&node, graph, nullptr, 0, &launched),
             CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE_FIXTURE(Primary, "GRF-10: a kernel node takes a kernel of a library too [H]") {
  const Stream stream;
  const Memory memory;
  CUlibrary library = nullptr;
  REQUIRE_OK(
      api.cuLibraryLoadData(&library, kernel_image(), nullptr, nullptr, 0, nullptr, nullptr, 0));
  CUkernel kernel = nullptr;
  REQUIRE_OK(api.cuLibraryGetKernel(&kernel, library, "add_one"));
  {
    const Graph graph = Graph::make();
    CUdeviceptr where = memory;
    void* parameters[] = {&where};
    CUDA_KERNEL_NODE_PARAMS_v2 launched = launch_of(nullptr, parameters);
    launched.kern = kernel;
    launched.blockDimX = 5;
    CUgraphNode node = nullptr;
    CHECK_CODE(api.cuGraphAddKernelNode_v2(&node, graph, nullptr, 0, &launched), CUDA_SUCCESS);
    run_once(graph, stream);
  }
  CHECK(memory.word() == 5);
  CHECK_CODE(api.cuLibraryUnload(library), CUDA_SUCCESS);
}

TEST_CASE_FIXTURE(Primary, "GRF-11: a host node is called once a replay in its order [H]") {
  const Stream stream;
  const Memory memory;
  const Pinned host;
  const Graph graph = Graph::make();
  int calls = 0;
  const CUgraphNode before = add_host(graph, {}, count_up, &calls);
  add_host(
      graph, {before}, [](void* data) { *static_cast<int*>(data) *= 10; }, &calls);
  const Exec exec = Exec::of(graph);
  CHECK(calls == 0);
  run(exec, stream);
  CHECK(calls == 10);
  run(exec, stream);
  CHECK(calls == 110);
}

TEST_CASE_FIXTURE(Primary, "GRF-12: an empty node carries order [H]") {
  const Stream stream;
  const Memory memory(4);
  const Graph graph = Graph::make();
  const CUgraphNode one = add_fill(graph, {}, memory, 1);
  const CUgraphNode two = add_fill(graph, {}, memory + 4, 2);
  const CUgraphNode gathered = add_empty(graph, {one, two});
  add_copy(graph, {gathered}, memory, memory + 8, 2);
  run_once(graph, stream);
  CHECK(memory.words() == Words{1, 2, 1, 2});
}

TEST_CASE_FIXTURE(Primary, "GRF-13: a child graph runs as one node and may be nested [H]") {
  const Stream stream;
  const Memory memory(3);
  const Graph inner = Graph::make();
  add_copy(inner, {}, memory, memory + 4);
  const Graph middle = Graph::make();
  add_child(middle, {}, inner);
  const Graph outer = Graph::make();
  const CUgraphNode first = add_fill(outer, {}, memory, 13);
  const CUgraphNode child = add_child(outer, {first}, middle);
  add_copy(outer, {child}, memory + 4, memory + 8);
  run_once(outer, stream);
  CHECK(memory.words() == Words{13, 13, 13});
}

TEST_CASE_FIXTURE(Primary, "GRF-14: a child graph is copied when its node is made [H]") {
  const Stream stream;
  const Memory memory(2);
  const Graph outer = Graph::make();
  {
    const Graph inner = Graph::make();
    add_fill(inner, {}, memory, 1);
    add_child(outer, {}, inner);
    add_fill(inner, {}, memory + 4, 2);
  }
  run_once(outer, stream);
  CHECK(memory.words() == Words{1, 0});
}

TEST_CASE_FIXTURE(Primary, "GRF-15: changing the graph inside a child node changes the node [H]") {
  const Stream stream;
  const Memory memory(2);
  const Graph inner = Graph::make();
  add_fill(inner, {}, memory, 1);
  const Graph outer = Graph::make();
  const CUgraphNode child = add_child(outer, {}, inner);
  CUgraph inside = nullptr;
  REQUIRE_OK(api.cuGraphChildGraphNodeGetGraph(child, &inside));
  CHECK(inside != inner);
  add_fill(inside, {}, memory + 4, 2);
  run_once(outer, stream);
  CHECK(memory.words() == Words{1, 2});
}

TEST_CASE_FIXTURE(Primary, "GRF-16: event nodes order replays of two graphs [H]") {
  const Stream one;
  const Stream two;
  const Event event;
  const Memory memory(2);
  const Graph writes = Graph::make();
  const CUgraphNode written = add_fill(writes, {}, memory, 16);
  CUgraphNode node = nullptr;
  REQUIRE_OK(api.cuGraphAddEventRecordNode(&node, writes, &written, 1, event));
  const Graph reads = Graph::make();
  CUgraphNode waited = nullptr;
  REQUIRE_OK(api.cuGraphAddEventWaitNode(&waited, reads, nullptr, 0, event));
  add_copy(reads, {waited}, memory, memory + 4);
  const Exec writer = Exec::of(writes);
  const Exec reader = Exec::of(reads);
  {
    const Busy busy(*this, one);
    REQUIRE_OK(api.cuGraphLaunch(writer, one));
    REQUIRE_OK(api.cuGraphLaunch(reader, two));
  }
  REQUIRE_OK(api.cuStreamSynchronize(two));
  CHECK(memory.words() == Words{16, 16});
}

TEST_CASE_FIXTURE(Primary, "GRF-17: the general call makes nodes of every ordinary type [H]") {
  const Stream stream;
  const Event event;
  const Memory memory(3);
  int calls = 0;
  const Graph graph = Graph::make();
  Nodes latest;
  const auto add = [&](CUgraphNodeParams& wanted) {
    CUgraphNode node = nullptr;
    REQUIRE_OK(api.cuGraphAddNode_v2(&node, graph, latest.data(), nullptr, latest.size(), &wanted));
    CHECK(type_of(node) == wanted.type);
    CHECK(dependencies_of(node) == latest);
    latest = {node};
  };
  CUgraphNodeParams filled = node_of(CU_GRAPH_NODE_TYPE_MEMSET);
  filled.memset.dst = memory;
  filled.memset.value = 16;
  filled.memset.elementSize = 4;
  filled.memset.width = 1;
  filled.memset.height = 1;
  filled.memset.ctx = context;
  add(filled);
  CUgraphNodeParams launched = node_of(CU_GRAPH_NODE_TYPE_KERNEL);
  CUdeviceptr where = memory;
  void* parameters[] = {&where};
  launched.kernel.func = kernel("add_one");
  launched.kernel.gridDimX = launched.kernel.gridDimY = launched.kernel.gridDimZ = 1;
  launched.kernel.blockDimX = launched.kernel.blockDimY = launched.kernel.blockDimZ = 1;
  launched.kernel.kernelParams = parameters;
  add(launched);
  CUgraphNodeParams copied = node_of(CU_GRAPH_NODE_TYPE_MEMCPY);
  copied.memcpy.copyCtx = context;
  copied.memcpy.copyParams = copy_of(memory, memory + 4);
  add(copied);
  CUgraphNodeParams called = node_of(CU_GRAPH_NODE_TYPE_HOST);
  called.host.fn = count_up;
  called.host.userData = &calls;
  add(called);
  CUgraphNodeParams empty = node_of(CU_GRAPH_NODE_TYPE_EMPTY);
  add(empty);
  const Graph inner = Graph::make();
  add_copy(inner, {}, memory + 4, memory + 8);
  CUgraphNodeParams child = node_of(CU_GRAPH_NODE_TYPE_GRAPH);
  child.graph.graph = inner;
  add(child);
  CUgraphNodeParams recorded = node_of(CU_GRAPH_NODE_TYPE_EVENT_RECORD);
  recorded.eventRecord.event = event;
  add(recorded);
  CUgraphNodeParams waited = node_of(CU_GRAPH_NODE_TYPE_WAIT_EVENT);
  waited.eventWait.event = event;
  add(waited);
  run_once(graph, stream);
  CHECK(memory.words() == Words{17, 17, 17});
  CHECK(calls == 1);
}

TEST_CASE_FIXTURE(Primary, "GRF-18: the general call with bytes that are not used [?]") {
  const Graph graph = Graph::make();
  CUgraphNode node = nullptr;
  CUgraphNodeParams reserved = node_of(CU_GRAPH_NODE_TYPE_EMPTY);
  reserved.reserved0[1] = 1;
  observe("a node with a reserved field that is not zero",
          api.cuGraphAddNode_v2(&node, graph, nullptr, nullptr, 0, &reserved));
  CUgraphNodeParams past = node_of(CU_GRAPH_NODE_TYPE_EMPTY);
  past.reserved1[20] = 1;
  observe("a node with bytes past its parameters that are not zero",
          api.cuGraphAddNode_v2(&node, graph, nullptr, nullptr, 0, &past));
}

TEST_CASE_FIXTURE(Primary, "GRF-19: branches join before what depends on both [H]") {
  const Stream stream;
  const Memory memory;
  const CUfunction kernel = this->kernel("add_one");
  const Graph graph = Graph::make();
  const CUgraphNode first = add_fill(graph, {}, memory, 0);
  Nodes branches;
  for (int i = 0; i < 8; ++i) {
    branches.push_back(add_kernel(graph, {first}, kernel, memory.get()));
  }
  const Memory result;
  add_copy(graph, branches, memory, result);
  const Exec exec = Exec::of(graph);
  for (int i = 0; i < 3; ++i) REQUIRE_OK(api.cuGraphLaunch(exec, stream));
  REQUIRE_OK(api.cuStreamSynchronize(stream));
  CHECK(result.word() == 8);
}
