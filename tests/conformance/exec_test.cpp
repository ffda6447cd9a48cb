// Executables: instantiating, launching, uploading, disabling nodes, and how launches are ordered
// against their stream, each other and their own destruction.
#include <atomic>

#include "graph_support.hpp"

using namespace conformance;

using Words = std::vector<std::uint32_t>;

namespace {

CUresult instantiate(CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS& asked, Exec& exec) {
  return api().cuGraphInstantiateWithParams(exec.out(), graph, &asked);
}

/// An executable with those flags.
void instantiate(CUgraph graph, cuuint64_t flags, Exec& exec) {
  CUDA_GRAPH_INSTANTIATE_PARAMS asked{};
  asked.flags = flags;
  REQUIRE_OK(instantiate(graph, asked, exec));
}

/// What a replay that overlaps itself would show.
struct Inside {
  std::atomic<int> now{0};
  std::atomic<int> most{0};
};

void CUDA_CB enter(void* inside) {
  auto& seen = *static_cast<Inside*>(inside);
  const int now = ++seen.now;
  if (now > seen.most) seen.most = now;
}

void CUDA_CB leave(void* inside) { --static_cast<Inside*>(inside)->now; }

}  // namespace

TEST_CASE_FIXTURE(Primary, "EXE-01: instantiating says success and no node [H]") {
  const Memory memory;
  const Graph graph = Graph::make();
  const CUgraphNode node = add_fill(graph, {}, memory, 1);
  CUDA_GRAPH_INSTANTIATE_PARAMS asked{};
  asked.hErrNode_out = node;
  asked.result_out = CUDA_GRAPH_INSTANTIATE_ERROR;
  Exec exec;
  CHECK_CODE(instantiate(graph, asked, exec), CUDA_SUCCESS);
  CHECK(exec != nullptr);
  CHECK(asked.result_out == CUDA_GRAPH_INSTANTIATE_SUCCESS);
  CHECK(asked.hErrNode_out == nullptr);
}

TEST_CASE_FIXTURE(Primary, "EXE-02: instantiating a cycle says invalid structure and a node [H]") {
  const Graph graph = Graph::make();
  const CUgraphNode one = add_empty(graph, {});
  const CUgraphNode two = add_empty(graph, {one});
  const CUgraphNode three = add_empty(graph, {two});
  const CUresult closed = api.cuGraphAddDependencies_v2(graph, &three, &one, nullptr, 1);
  observe("the edge that closes a cycle", closed);
  if (closed != CUDA_SUCCESS) return;  // then there is no cycle to instantiate
  CUDA_GRAPH_INSTANTIATE_PARAMS asked{};
  Exec exec;
  CHECK(instantiate(graph, asked, exec) != CUDA_SUCCESS);
  CHECK(asked.result_out == CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE);
  CHECK(std::set<CUgraphNode>{one, two, three}.count(asked.hErrNode_out) == 1);
}

TEST_CASE_FIXTURE(Primary, "EXE-03: instantiating with unknown flags says error and no node [H]") {
  const Memory memory;
  const Graph graph = Graph::make();
  const CUgraphNode node = add_fill(graph, {}, memory, 1);
  CUDA_GRAPH_INSTANTIATE_PARAMS asked{};
  asked.flags = cuuint64_t{1} << 40U;
  asked.hErrNode_out = node;
  Exec exec;
  CHECK_CODE(instantiate(graph, asked, exec), CUDA_ERROR_INVALID_VALUE);
  CHECK(asked.result_out == CUDA_GRAPH_INSTANTIATE_ERROR);
  CHECK(asked.hErrNode_out == nullptr);
}

TEST_CASE_FIXTURE(Primary, "EXE-04: an executable outlives its graph [G]") {
  const Stream stream;
  const Memory memory;
  Exec exec;
  {
    const Graph graph = Graph::make();
    add_fill(graph, {}, memory, 4);
    instantiate(graph, 0, exec);
  }
  run(exec, stream);
  CHECK(memory.word() == 4);
}

TEST_CASE_FIXTURE(Primary, "EXE-05: an executable does not follow changes of its graph [G]") {
  const Stream stream;
  const Memory memory(2);
  const Graph graph = Graph::make();
  const CUgraphNode node = add_fill(graph, {}, memory, 5);
  const Exec exec = Exec::of(graph);
  const CUDA_MEMSET_NODE_PARAMS other = fill_of(memory, 6);
  REQUIRE_OK(api.cuGraphMemsetNodeSetParams(node, &other));
  add_fill(graph, {}, memory + 4, 7);
  run(exec, stream);
  CHECK(memory.words() == Words{5, 0});
}

TEST_CASE_FIXTURE(Primary, "EXE-06: a launch runs after earlier and before later work [H]") {
  const Stream stream;
  const Memory memory(3);
  const Graph graph = Graph::make();
  add_copy(graph, {}, memory, memory + 4);
  const Exec exec = Exec::of(graph);
  {
    const Busy busy(*this, stream);  // so that all of it waits at the same time
    REQUIRE_OK(fill(stream, memory, 6));
    REQUIRE_OK(api.cuGraphLaunch(exec, stream));
    REQUIRE_OK(api.cuMemcpyDtoDAsync_v2(memory + 8, memory + 4, sizeof(std::uint32_t), stream));
    REQUIRE_OK(fill(stream, memory, 7));
    REQUIRE_OK(fill(stream, memory + 4, 8));
  }
  REQUIRE_OK(api.cuStreamSynchronize(stream));
  CHECK(memory.words() == Words{7, 8, 6});
}

TEST_CASE_FIXTURE(Primary, "EXE-07: launches in different streams keep their order [H]") {
  const Stream one;
  const Stream two;
  const Memory memory(4);
  const Graph graph = Graph::make();  // shifts a word through the memory: 1, then 1 1, then 1 1 1
  const CUgraphNode last = add_copy(graph, {}, memory + 8, memory + 12);
  const CUgraphNode middle = add_copy(graph, {last}, memory + 4, memory + 8);
  add_copy(graph, {middle}, memory, memory + 4);
  const Exec exec = Exec::of(graph);
  {
    const Busy busy(*this, one);
    REQUIRE_OK(fill(one, memory, 1));
    REQUIRE_OK(api.cuGraphLaunch(exec, one));
    REQUIRE_OK(api.cuGraphLaunch(exec, two));  // nothing else orders it behind the first
  }
  REQUIRE_OK(api.cuStreamSynchronize(two));
  CHECK(memory.words() == Words{1, 1, 1, 0});
}

TEST_CASE_FIXTURE(Primary, "EXE-08: an executable never runs twice at the same time [H]") {
  const Stream streams[3];
  Inside inside;
  const Graph graph = Graph::make();
  const CUgraphNode entered = add_host(graph, {}, enter, &inside);
  add_host(graph, {entered}, leave, &inside);
  const Exec exec = Exec::of(graph);
  {
    const Busy busy(*this, streams[0]);
    for (int i = 0; i < 10; ++i) {
      for (const Stream& stream : streams) REQUIRE_OK(api.cuGraphLaunch(exec, stream));
    }
  }
  for (const Stream& stream : streams) REQUIRE_OK(api.cuStreamSynchronize(stream));
  CHECK(inside.now == 0);
  CHECK(inside.most == 1);
}

TEST_CASE_FIXTURE(Primary, "EXE-09: an executable destroyed in flight runs to its end [H]") {
  const Stream stream;
  const Memory memory(2);
  Exec exec;
  {
    const Graph graph = Graph::make();
    const CUgraphNode node = add_fill(graph, {}, memory, 9);
    add_copy(graph, {node}, memory, memory + 4);
    instantiate(graph, 0, exec);
  }
  {
    const Busy busy(*this, stream);
    REQUIRE_OK(api.cuGraphLaunch(exec, stream));
    CHECK_CODE(api.cuGraphExecDestroy(exec.take()), CUDA_SUCCESS);
  }
  REQUIRE_OK(api.cuStreamSynchronize(stream));
  CHECK(memory.words() == Words{9, 9});
}

TEST_CASE_FIXTURE(Primary, "EXE-10: an upload executes nothing [H]") {
  const Stream stream;
  const Memory memory;
  const Graph graph = Graph::make();
  add_fill(graph, {}, memory, 10);
  const Exec exec = Exec::of(graph);
  CHECK_CODE(api.cuGraphUpload(exec, stream), CUDA_SUCCESS);
  REQUIRE_OK(api.cuStreamSynchronize(stream));
  CHECK(memory.word() == 0);
  run(exec, stream);
  CHECK(memory.word() == 10);
}

TEST_CASE_FIXTURE(Primary, "EXE-11: an upload may be issued behind work that goes on [H]") {
  const Stream stream;
  const Event event;
  const Memory memory;
  const Graph graph = Graph::make();
  add_fill(graph, {}, memory, 11);
  const Exec exec = Exec::of(graph);
  {
    const Busy busy(*this, stream);
    CHECK_CODE(api.cuGraphUpload(exec, stream), CUDA_SUCCESS);
    REQUIRE_OK(api.cuEventRecord(event, stream));
    observe("an event behind an upload behind work that goes on", api.cuEventQuery(event));
  }
  REQUIRE_OK(api.cuEventSynchronize(event));
  run(exec, stream);
  CHECK(memory.word() == 11);
}

TEST_CASE_FIXTURE(Primary, "EXE-12: instantiating with UPLOAD uploads and is not told after [H]") {
  const Stream stream;
  const Memory memory;
  const Graph graph = Graph::make();
  add_fill(graph, {}, memory, 12);
  CUDA_GRAPH_INSTANTIATE_PARAMS asked{};
  asked.flags = CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD;
  asked.hUploadStream = stream;
  Exec exec;
  REQUIRE_OK(instantiate(graph, asked, exec));
  REQUIRE_OK(api.cuStreamSynchronize(stream));
  CHECK(memory.word() == 0);
  cuuint64_t flags = 77;
  CHECK_CODE(api.cuGraphExecGetFlags(exec, &flags), CUDA_SUCCESS);
  CHECK(flags == 0);
  run(exec, stream);
  CHECK(memory.word() == 12);
}

TEST_CASE_FIXTURE(Primary, "EXE-13: an executable tells the flags that it was made with [H]") {
  const Memory memory;
  const Graph graph = Graph::make();
  add_kernel(graph, {}, kernel("add_one"), memory.get());
  for (const cuuint64_t said :
       {cuuint64_t{0}, cuuint64_t{CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH},
        cuuint64_t{CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY}}) {
    Exec exec;
    instantiate(graph, said, exec);
    cuuint64_t told = 77;
    CHECK_CODE(api.cuGraphExecGetFlags(exec, &told), CUDA_SUCCESS);
    CHECK(told == said);
  }
}

TEST_CASE_FIXTURE(Primary, "EXE-14: a disabled node does nothing until it is enabled again [H]") {
  const Stream stream;
  const Memory memory(3);
  const Graph graph = Graph::make();
  const CUgraphNode first = add_fill(graph, {}, memory, 14);
  const CUgraphNode second = add_copy(graph, {first}, memory, memory + 4);
  const CUgraphNode third = add_kernel(graph, {second}, kernel("add_one"), CUdeviceptr{memory + 8});
  const Exec exec = Exec::of(graph);
  for (const CUgraphNode node : {first, second, third}) {
    unsigned enabled = 77;
    CHECK_CODE(api.cuGraphNodeGetEnabled(exec, node, &enabled), CUDA_SUCCESS);
    CHECK(enabled == 1);
    CHECK_CODE(api.cuGraphNodeSetEnabled(exec, node, 0), CUDA_SUCCESS);
    CHECK_CODE(api.cuGraphNodeGetEnabled(exec, node, &enabled), CUDA_SUCCESS);
    CHECK(enabled == 0);
  }
  run(exec, stream);
  CHECK(memory.words() == Words{0, 0, 0});
  for (const CUgraphNode node : {first, second, third}) {
    CHECK_CODE(api.cuGraphNodeSetEnabled(exec, node, 1), CUDA_SUCCESS);
  }
  run(exec, stream);
  CHECK(memory.words() == Words{14, 14, 1});
}

TEST_CASE_FIXTURE(Primary, "EXE-15: a disabled node still carries order [H]") {
  const Stream stream;
  const Memory memory(3);
  const Graph graph = Graph::make();
  const CUgraphNode first = add_fill(graph, {}, memory, 15);
  const CUgraphNode second = add_fill(graph, {first}, memory, 1);
  add_copy(graph, {second}, memory, memory + 4);
  const Exec exec = Exec::of(graph);
  REQUIRE_OK(api.cuGraphNodeSetEnabled(exec, second, 0));
  run(exec, stream);
  CHECK(memory.words() == Words{15, 15, 0});
}

TEST_CASE_FIXTURE(Primary, "EXE-16: disabling does not touch launches that are under way [H]") {
  const Stream stream;
  const Memory memory;
  const Graph graph = Graph::make();
  const CUgraphNode node = add_fill(graph, {}, memory, 16);
  const Exec exec = Exec::of(graph);
  {
    const Busy busy(*this, stream);
    REQUIRE_OK(api.cuGraphLaunch(exec, stream));
    REQUIRE_OK(api.cuGraphNodeSetEnabled(exec, node, 0));
  }
  REQUIRE_OK(api.cuStreamSynchronize(stream));
  CHECK(memory.word() == 16);
}

TEST_CASE_FIXTURE(Primary, "EXE-17: only kernels and copies and fills can be disabled [H]") {
  int calls = 0;
  const Stream stream;
  const Graph graph = Graph::make();
  const CUgraphNode node = add_host(graph, {}, count_up, &calls);
  const Exec exec = Exec::of(graph);
  CHECK(api.cuGraphNodeSetEnabled(exec, node, 0) != CUDA_SUCCESS);
  run(exec, stream);
  CHECK(calls == 1);
}

TEST_CASE_FIXTURE(Primary,
                  "EXE-18: a graph may have two executables that know nothing of another [G]") {
  const Stream stream;
  const Memory memory;
  const Graph graph = Graph::make();
  const CUgraphNode node = add_kernel(graph, {}, kernel("add_one"), memory.get());
  const Exec one = Exec::of(graph);
  const Exec two = Exec::of(graph);
  REQUIRE_OK(api.cuGraphNodeSetEnabled(one, node, 0));
  run(one, stream);
  CHECK(memory.word() == 0);
  run(two, stream);
  CHECK(memory.word() == 1);
}

TEST_CASE_FIXTURE(Primary, "EXE-19: a replay does the work again each time [G]") {
  const Stream stream;
  const Memory memory;
  const CUfunction function = kernel("add_one");
  begin(stream);
  REQUIRE_OK(launch(function, stream, memory.get()));
  const Graph graph(end(stream));
  const Exec exec = Exec::of(graph);
  for (int i = 0; i < 100; ++i) REQUIRE_OK(api.cuGraphLaunch(exec, stream));
  REQUIRE_OK(api.cuStreamSynchronize(stream));
  CHECK(memory.word() == 100);
}

TEST_CASE_FIXTURE(Primary, "EXE-20: a graph without nodes is launched [?]") {
  const Stream stream;
  const Graph graph = Graph::make();
  Exec exec;
  CUDA_GRAPH_INSTANTIATE_PARAMS asked{};
  const CUresult made = instantiate(graph, asked, exec);
  observe("instantiating a graph without nodes", made);
  if (made != CUDA_SUCCESS) return;
  observe("launching it", api.cuGraphLaunch(exec, stream));
}

TEST_CASE_FIXTURE(Primary, "EXE-21: a launch on the legacy stream waits for blocking streams [H]") {
  const Stream blocking(CU_STREAM_DEFAULT);
  const Memory memory(2);
  const Graph graph = Graph::make();
  add_copy(graph, {}, memory, memory + 4);
  const Exec exec = Exec::of(graph);
  {
    const Busy busy(*this, blocking);
    REQUIRE_OK(fill(blocking, memory, 21));
    CHECK_CODE(api.cuGraphLaunch(exec, nullptr), CUDA_SUCCESS);
  }
  REQUIRE_OK(api.cuStreamSynchronize(nullptr));
  CHECK(memory.words() == Words{21, 21});
}

TEST_CASE_FIXTURE(Primary, "EXE-22: a host node is what device launch does not support [H]") {
  const Memory memory;
  int calls = 0;
  const Graph graph = Graph::make();
  const CUgraphNode filled = add_fill(graph, {}, memory, 1);
  const CUgraphNode called = add_host(graph, {filled}, count_up, &calls);
  CUDA_GRAPH_INSTANTIATE_PARAMS asked{};
  asked.flags = CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH;
  Exec exec;
  CHECK(instantiate(graph, asked, exec) != CUDA_SUCCESS);
  CHECK(asked.result_out == CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED);
  CHECK(asked.hErrNode_out == called);
}

TEST_CASE_FIXTURE(Primary, "EXE-23: UPLOAD without a place to say the stream is refused [H]") {
  const Memory memory;
  const Graph graph = Graph::make();
  add_fill(graph, {}, memory, 1);
  Exec exec;
  CHECK(api.cuGraphInstantiateWithFlags(exec.out(), graph, CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD) !=
        CUDA_SUCCESS);
}
