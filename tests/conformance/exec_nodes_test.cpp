// Changing single nodes of an executable in place: what each kind takes, what it refuses, and that
// neither the graph nor launches under way notice.
#include "graph_support.hpp"

using namespace conformance;

using Words = std::vector<std::uint32_t>;

TEST_CASE_FIXTURE(Primary, "UPD-10: a kernel node takes other values and another kernel [H]") {
  const Stream stream;
  const Memory memory(2);
  const Graph graph = Graph::make();
  const CUgraphNode node =
      add_kernel(graph, {}, kernel("write_word"), memory.get(), std::uint32_t{1});
  const Exec exec = Exec::of(graph);
  CUdeviceptr where = memory + 4;
  std::uint32_t value = 10;
  void* parameters[] = {&where, &value};
  CUDA_KERNEL_NODE_PARAMS_v2 other = launch_of(kernel("write_word"), parameters);
  CHECK_CODE(api.cuGraphExecKernelNodeSetParams_v2(exec, node, &other), CUDA_SUCCESS);
  run(exec, stream);
  CHECK(memory.words() == Words{0, 10});
  other = launch_of(kernel("add_one"), parameters);
  other.gridDimX = 2;
  other.blockDimX = 3;
  CHECK_CODE(api.cuGraphExecKernelNodeSetParams_v2(exec, node, &other), CUDA_SUCCESS);
  run(exec, stream);
  CHECK(memory.words() == Words{0, 16});
}

TEST_CASE_FIXTURE(Primary, "UPD-11: a memset node takes another address and another value [H]") {
  const Stream stream;
  const Memory memory(2);
  const Graph graph = Graph::make();
  const CUgraphNode node = add_fill(graph, {}, memory, 1);
  const Exec exec = Exec::of(graph);
  const CUDA_MEMSET_NODE_PARAMS other = fill_of(memory + 4, 11);
  CHECK_CODE(api.cuGraphExecMemsetNodeSetParams(exec, node, &other, context), CUDA_SUCCESS);
  run(exec, stream);
  CHECK(memory.words() == Words{0, 11});
}

TEST_CASE_FIXTURE(Primary, "UPD-12: a memcpy node takes other addresses [H]") {
  const Stream stream;
  const Memory memory(4);
  REQUIRE_OK(fill(stream, memory + 4, 12));
  const Graph graph = Graph::make();
  const CUgraphNode node = add_copy(graph, {}, memory, memory + 8);
  const Exec exec = Exec::of(graph);
  const CUDA_MEMCPY3D other = copy_of(memory + 4, memory + 12);
  CHECK_CODE(api.cuGraphExecMemcpyNodeSetParams(exec, node, &other, context), CUDA_SUCCESS);
  run(exec, stream);
  CHECK(memory.words() == Words{0, 12, 0, 12});
}

TEST_CASE_FIXTURE(Primary, "UPD-13: a host node takes another function and other data [H]") {
  const Stream stream;
  int before = 0;
  int after = 5;
  const Graph graph = Graph::make();
  const CUgraphNode node = add_host(graph, {}, count_up, &before);
  const Exec exec = Exec::of(graph);
  const CUDA_HOST_NODE_PARAMS other{[](void* data) { *static_cast<int*>(data) *= 2; }, &after};
  CHECK_CODE(api.cuGraphExecHostNodeSetParams(exec, node, &other), CUDA_SUCCESS);
  run(exec, stream);
  CHECK(before == 0);
  CHECK(after == 10);
}

TEST_CASE_FIXTURE(Primary, "UPD-14: a child graph node takes a child of the same shape [H]") {
  const Stream stream;
  const Memory memory;
  const Graph inner = Graph::make();
  add_fill(inner, {}, memory, 1);
  const Graph outer = Graph::make();
  const CUgraphNode node = add_child(outer, {}, inner);
  const Exec exec = Exec::of(outer);
  const Graph other = Graph::make();
  add_fill(other, {}, memory, 14);
  CHECK_CODE(api.cuGraphExecChildGraphNodeSetParams(exec, node, other), CUDA_SUCCESS);
  run(exec, stream);
  CHECK(memory.word() == 14);
}

TEST_CASE_FIXTURE(Primary, "UPD-15: a child of another shape is refused [H]") {
  const Memory memory;
  const Graph inner = Graph::make();
  add_fill(inner, {}, memory, 1);
  const Graph outer = Graph::make();
  const CUgraphNode node = add_child(outer, {}, inner);
  const Exec exec = Exec::of(outer);
  add_fill(inner, {}, memory, 2);
  const CUresult refused = api.cuGraphExecChildGraphNodeSetParams(exec, node, inner);
  CHECK(refused != CUDA_SUCCESS);
  observe("a child of another shape", refused);
}

TEST_CASE_FIXTURE(Primary, "UPD-16: the general call changes the ordinary nodes too [H]") {
  const Stream stream;
  const Memory memory(3);
  int before = 0;
  int after = 0;
  const Graph graph = Graph::make();
  const CUgraphNode first =
      add_kernel(graph, {}, kernel("write_word"), memory.get(), std::uint32_t{1});
  const CUgraphNode second = add_fill(graph, {first}, memory + 4, 2);
  const CUgraphNode third = add_copy(graph, {second}, memory, memory + 8);
  const CUgraphNode fourth = add_host(graph, {third}, count_up, &before);
  const Exec exec = Exec::of(graph);
  CUdeviceptr where = memory;
  std::uint32_t value = 16;
  void* parameters[] = {&where, &value};
  CUgraphNodeParams launched = node_of(CU_GRAPH_NODE_TYPE_KERNEL);
  launched.kernel.func = kernel("write_word");
  launched.kernel.gridDimX = launched.kernel.gridDimY = launched.kernel.gridDimZ = 1;
  launched.kernel.blockDimX = launched.kernel.blockDimY = launched.kernel.blockDimZ = 1;
  launched.kernel.kernelParams = parameters;
  CHECK_CODE(api.cuGraphExecNodeSetParams(exec, first, &launched), CUDA_SUCCESS);
  CUgraphNodeParams filled = node_of(CU_GRAPH_NODE_TYPE_MEMSET);
  filled.memset.dst = memory + 4;
  filled.memset.value = 17;
  filled.memset.elementSize = 4;
  filled.memset.width = 1;
  filled.memset.height = 1;
  filled.memset.ctx = context;
  CHECK_CODE(api.cuGraphExecNodeSetParams(exec, second, &filled), CUDA_SUCCESS);
  CUgraphNodeParams copied = node_of(CU_GRAPH_NODE_TYPE_MEMCPY);
  copied.memcpy.copyCtx = context;
  copied.memcpy.copyParams = copy_of(memory + 4, memory + 8);
  CHECK_CODE(api.cuGraphExecNodeSetParams(exec, third, &copied), CUDA_SUCCESS);
  CUgraphNodeParams called = node_of(CU_GRAPH_NODE_TYPE_HOST);
  called.host.fn = count_up;
  called.host.userData = &after;
  CHECK_CODE(api.cuGraphExecNodeSetParams(exec, fourth, &called), CUDA_SUCCESS);
  run(exec, stream);
  CHECK(memory.words() == Words{16, 17, 17});
  CHECK(before == 0);
  CHECK(after == 1);
}

TEST_CASE_FIXTURE(Primary, "UPD-17: event nodes take another event [H]") {
  const Stream stream;
  const Stream other;
  const Event unused;
  const Event used;
  const Memory memory(2);
  const Graph graph = Graph::make();
  const CUgraphNode filled = add_fill(graph, {}, memory, 17);
  CUgraphNode node = nullptr;
  REQUIRE_OK(api.cuGraphAddEventRecordNode(&node, graph, &filled, 1, unused));
  const Exec exec = Exec::of(graph);
  CUgraphNodeParams recorded = node_of(CU_GRAPH_NODE_TYPE_EVENT_RECORD);
  recorded.eventRecord.event = used;
  CHECK_CODE(api.cuGraphExecNodeSetParams(exec, node, &recorded), CUDA_SUCCESS);
  {
    const Busy busy(*this, stream);
    REQUIRE_OK(api.cuGraphLaunch(exec, stream));
    REQUIRE_OK(api.cuStreamWaitEvent(other, used, CU_EVENT_WAIT_DEFAULT));
    REQUIRE_OK(api.cuMemcpyDtoDAsync_v2(memory + 4, memory, sizeof(std::uint32_t), other));
  }
  REQUIRE_OK(api.cuStreamSynchronize(other));
  CHECK(memory.words() == Words{17, 17});
}

TEST_CASE_FIXTURE(Primary, "UPD-18: changing an executable leaves the graph's node alone [H]") {
  const Memory memory;
  const Graph graph = Graph::make();
  const CUgraphNode node = add_fill(graph, {}, memory, 1);
  const Exec exec = Exec::of(graph);
  const CUDA_MEMSET_NODE_PARAMS other = fill_of(memory, 18);
  REQUIRE_OK(api.cuGraphExecMemsetNodeSetParams(exec, node, &other, context));
  CUDA_MEMSET_NODE_PARAMS told{};
  CHECK_CODE(api.cuGraphMemsetNodeGetParams(node, &told), CUDA_SUCCESS);
  CHECK(told.value == 1);
}

TEST_CASE_FIXTURE(Primary,
                  "UPD-19: changing a node does not touch launches that are under way [H]") {
  const Stream stream;
  const Memory memory(2);
  const CUfunction function = kernel("write_word");
  const Graph graph = Graph::make();
  const CUgraphNode one = add_kernel(graph, {}, function, memory.get(), std::uint32_t{1});
  const CUgraphNode two = add_fill(graph, {one}, memory + 4, 2);
  const Exec exec = Exec::of(graph);
  CUdeviceptr where = memory;
  std::uint32_t value = 8;
  void* parameters[] = {&where, &value};
  const CUDA_KERNEL_NODE_PARAMS_v2 launched = launch_of(function, parameters);
  const CUDA_MEMSET_NODE_PARAMS filled = fill_of(memory + 4, 9);
  {
    const Busy busy(*this, stream);
    REQUIRE_OK(api.cuGraphLaunch(exec, stream));
    CHECK_CODE(api.cuGraphExecKernelNodeSetParams_v2(exec, one, &launched), CUDA_SUCCESS);
    CHECK_CODE(api.cuGraphExecMemsetNodeSetParams(exec, two, &filled, context), CUDA_SUCCESS);
  }
  REQUIRE_OK(api.cuStreamSynchronize(stream));
  CHECK(memory.words() == Words{1, 2});
  run(exec, stream);
  CHECK(memory.words() == Words{8, 9});
}

TEST_CASE_FIXTURE(Primary, "UPD-20: a node of another graph is no node of the executable [H]") {
  const Memory memory;
  const Graph graph = Graph::make();
  add_fill(graph, {}, memory, 1);
  const Graph other = Graph::make();
  const CUgraphNode foreign = add_fill(other, {}, memory, 2);
  const Exec exec = Exec::of(graph);
  const CUDA_MEMSET_NODE_PARAMS filled = fill_of(memory, 3);
  CHECK(api.cuGraphExecMemsetNodeSetParams(exec, foreign, &filled, context) != CUDA_SUCCESS);
}

TEST_CASE_FIXTURE(Primary, "UPD-21: a copy of rows cannot be changed in place: 1 [H]") {
  const Memory memory(8);
  const Graph graph = Graph::make();
  CUDA_MEMCPY3D rows = copy_of(memory, memory + 16);
  rows.Height = 2;
  rows.srcPitch = rows.dstPitch = 2 * sizeof(std::uint32_t);
  CUgraphNode box = nullptr;
  REQUIRE_OK(api.cuGraphAddMemcpyNode(&box, graph, nullptr, 0, &rows, context));
  const CUgraphNode line = add_copy(graph, {box}, memory, memory + 16);
  const Exec exec = Exec::of(graph);
  const CUDA_MEMCPY3D other = copy_of(memory + 4, memory + 20);
  CHECK_CODE(api.cuGraphExecMemcpyNodeSetParams(exec, box, &other, context),
             CUDA_ERROR_INVALID_VALUE);
  CHECK_CODE(api.cuGraphExecMemcpyNodeSetParams(exec, line, &rows, context),
             CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE_FIXTURE(Primary, "UPD-22: a memset's rows cannot be changed in place [H]") {
  const Memory memory(8);
  const Graph graph = Graph::make();
  CUDA_MEMSET_NODE_PARAMS rows = fill_of(memory, 1);
  rows.height = 2;
  rows.pitch = 2 * sizeof(std::uint32_t);
  CUgraphNode box = nullptr;
  REQUIRE_OK(api.cuGraphAddMemsetNode(&box, graph, nullptr, 0, &rows, context));
  const CUgraphNode line = add_fill(graph, {box}, memory, 2);
  const Exec exec = Exec::of(graph);
  CUDA_MEMSET_NODE_PARAMS more = rows;
  more.height = 3;
  CHECK(api.cuGraphExecMemsetNodeSetParams(exec, box, &more, context) != CUDA_SUCCESS);
  CHECK(api.cuGraphExecMemsetNodeSetParams(exec, line, &rows, context) != CUDA_SUCCESS);
}

TEST_CASE_FIXTURE(Primary, "UPD-23: zero bytes cannot be put in place of a copy or a fill [H]") {
  const Memory memory(2);
  const Graph graph = Graph::make();
  const CUgraphNode copied = add_copy(graph, {}, memory, memory + 4);
  const CUgraphNode filled = add_fill(graph, {copied}, memory, 1);
  const Exec exec = Exec::of(graph);
  const CUDA_MEMCPY3D no_copy = copy_of(memory, memory + 4, 0);
  const CUDA_MEMSET_NODE_PARAMS no_fill = fill_of(memory, 2, 0);
  CHECK(api.cuGraphExecMemcpyNodeSetParams(exec, copied, &no_copy, context) != CUDA_SUCCESS);
  CHECK(api.cuGraphExecMemsetNodeSetParams(exec, filled, &no_fill, context) != CUDA_SUCCESS);
}

TEST_CASE_FIXTURE(Primary, "UPD-24: a copy cannot change its kind of memory in place: 1 [H]") {
  const Memory memory(2);
  const Pinned host;
  const Graph graph = Graph::make();
  const CUgraphNode node = add_copy(graph, {}, memory, memory + 4);
  const Exec exec = Exec::of(graph);
  CUDA_MEMCPY3D other = copy_of(0, memory + 4);
  other.srcMemoryType = CU_MEMORYTYPE_HOST;
  other.srcHost = host.get();
  CHECK_CODE(api.cuGraphExecMemcpyNodeSetParams(exec, node, &other, context),
             CUDA_ERROR_INVALID_VALUE);
}
