// Conditional nodes: IF and WHILE as CUDA 12.4 has them, what their bodies may hold, and what a
// graph with one may not do. SWITCH and IF with an else need 12.8.
#include "graph_support.hpp"

using namespace conformance;

namespace {

// count_down(u32* left, u64 handle): takes one off what is left and makes it the condition's value.
// A driver resolves cudaGraphSetConditional itself when it compiles the text.
constexpr char kImage[] = R"ptx(
.version 7.0
.target sm_70
.address_size 64

.extern .func cudaGraphSetConditional(.param .b64 handle, .param .b32 value);

.visible .entry count_down(.param .u64 left, .param .u64 handle)
{
  .reg .b64 %rd<2>;
  .reg .b32 %r<2>;
  ld.param.u64 %rd0, [left];
  ld.param.u64 %rd1, [handle];
  ld.global.u32 %r0, [%rd0];
  sub.u32 %r1, %r0, 1;
  st.global.u32 [%rd0], %r1;
  {
    .param .b64 set_handle;
    .param .b32 set_value;
    st.param.b64 [set_handle], %rd1;
    st.param.b32 [set_value], %r1;
    call.uni cudaGraphSetConditional, (set_handle, set_value);
  }
  ret;
}
)ptx";

void count_down(const sim::Launch* launch) {
  auto* left = launch->array<std::uint32_t>(0, 1);
  if (left == nullptr) return;
  launch->set_condition(launch, launch->argument<std::uint64_t>(1), --*left);
}

/// The module of kImage.
class CountDown {
 public:
  CountDown() {
    if (simulated()) control()->kernel_body("count_down", count_down);
    REQUIRE_OK(api().cuModuleLoadData(&module_, kImage));
    REQUIRE_OK(api().cuModuleGetFunction(&function_, module_, "count_down"));
  }
  CountDown(const CountDown&) = delete;
  CountDown& operator=(const CountDown&) = delete;
  ~CountDown() {
    if (module_ != nullptr) api().cuModuleUnload(module_);
  }
  operator CUfunction() const noexcept { return function_; }  // NOLINT: reads as the kernel itself

 private:
  CUmodule module_ = nullptr;
  CUfunction function_ = nullptr;
};

constexpr int kElseAndSwitch = 12080;

struct Conditional {
  CUgraphConditionalHandle handle = 0;
  CUgraphNode node = nullptr;
  CUgraph body = nullptr;     ///< The first one.
  CUgraph* bodies = nullptr;  ///< The driver's array of all of them.
};

CUgraphConditionalHandle make_handle(CUgraph graph, unsigned initial,
                                     unsigned flags = CU_GRAPH_COND_ASSIGN_DEFAULT) {
  CUcontext context = nullptr;
  REQUIRE_OK(api().cuCtxGetCurrent(&context));
  CUgraphConditionalHandle handle = 0;
  REQUIRE_OK(api().cuGraphConditionalHandleCreate(&handle, graph, context, initial, flags));
  return handle;
}

CUresult try_conditional(CUgraph graph, const Nodes& after, CUgraphConditionalNodeType type,
                         unsigned size, Conditional& out) {
  CUgraphNodeParams asked = node_of(CU_GRAPH_NODE_TYPE_CONDITIONAL);
  asked.conditional.handle = out.handle;
  asked.conditional.type = type;
  asked.conditional.size = size;
  REQUIRE_OK(api().cuCtxGetCurrent(&asked.conditional.ctx));
  const CUresult added =
      api().cuGraphAddNode_v2(&out.node, graph, after.data(), nullptr, after.size(), &asked);
  if (added == CUDA_SUCCESS) {
    out.bodies = asked.conditional.phGraph_out;
    REQUIRE(out.bodies != nullptr);
    out.body = out.bodies[0];
    REQUIRE(out.body != nullptr);
  }
  return added;
}

/// A conditional node of one body whose condition begins each launch as `initial`.
Conditional add_conditional(CUgraph graph, const Nodes& after, CUgraphConditionalNodeType type,
                            unsigned initial) {
  Conditional out;
  out.handle = make_handle(graph, initial);
  REQUIRE_OK(try_conditional(graph, after, type, 1, out));
  return out;
}

}  // namespace

TEST_CASE_FIXTURE(Primary, "CND-01: an IF runs its body when the condition is not zero [H]") {
  const Stream stream;
  const Memory memory(2);
  const Graph graph = Graph::make();
  const CUgraphNode before = add_fill(graph, {}, memory, 1);
  const Conditional taken = add_conditional(graph, {before}, CU_GRAPH_COND_TYPE_IF, 1);
  CHECK(type_of(taken.node) == CU_GRAPH_NODE_TYPE_CONDITIONAL);
  add_fill(taken.body, {}, memory, 5);
  add_copy(graph, {taken.node}, memory, memory + 4);
  run_once(graph, stream);
  CHECK(memory.words() == std::vector<std::uint32_t>{5, 5});
}

TEST_CASE_FIXTURE(Primary, "CND-02: an IF skips its body when the condition is zero [H]") {
  const Stream stream;
  const Memory memory(2);
  const Graph graph = Graph::make();
  const CUgraphNode before = add_fill(graph, {}, memory, 1);
  const Conditional skipped = add_conditional(graph, {before}, CU_GRAPH_COND_TYPE_IF, 0);
  add_fill(skipped.body, {}, memory, 5);
  add_copy(graph, {skipped.node}, memory, memory + 4);
  run_once(graph, stream);
  CHECK(memory.words() == std::vector<std::uint32_t>{1, 1});
}

TEST_CASE_FIXTURE(Primary, "CND-03: a WHILE skips its body when the condition is zero [H]") {
  const Stream stream;
  const Memory memory;
  const Graph graph = Graph::make();
  const Conditional skipped = add_conditional(graph, {}, CU_GRAPH_COND_TYPE_WHILE, 0);
  add_fill(skipped.body, {}, memory, 3);
  run_once(graph, stream);
  CHECK(memory.word() == 0);
}

TEST_CASE_FIXTURE(Primary, "CND-04: the default is applied at each launch [H]") {
  const Stream stream;
  const Memory memory;
  const Graph graph = Graph::make();
  const Conditional taken = add_conditional(graph, {}, CU_GRAPH_COND_TYPE_IF, 1);
  add_kernel(taken.body, {}, kernel("add_one"), memory.get());
  const Exec exec = Exec::of(graph);
  for (int i = 0; i < 3; ++i) run(exec, stream);
  CHECK(memory.word() == 3);
}

TEST_CASE_FIXTURE(Primary, "CND-05: conditional nodes may be nested [H]") {
  const Stream stream;
  const Memory memory(2);
  const Graph graph = Graph::make();
  const Conditional outer = add_conditional(graph, {}, CU_GRAPH_COND_TYPE_IF, 1);
  Conditional taken;
  taken.handle = make_handle(graph, 1);
  REQUIRE_OK(try_conditional(outer.body, {}, CU_GRAPH_COND_TYPE_IF, 1, taken));
  add_fill(taken.body, {}, memory, 1);
  Conditional skipped;
  skipped.handle = make_handle(graph, 0);
  REQUIRE_OK(try_conditional(outer.body, {taken.node}, CU_GRAPH_COND_TYPE_IF, 1, skipped));
  add_fill(skipped.body, {}, memory + 4, 2);
  run_once(graph, stream);
  CHECK(memory.words() == std::vector<std::uint32_t>{1, 0});
}

TEST_CASE_FIXTURE(Primary,
                  "CND-06: a body may hold copies and fills and kernels and children [H]") {
  const Stream stream;
  const Memory memory(3);
  const Graph graph = Graph::make();
  const Conditional taken = add_conditional(graph, {}, CU_GRAPH_COND_TYPE_IF, 1);
  const CUgraphNode filled = add_fill(taken.body, {}, memory, 6);
  const CUgraphNode copied = add_copy(taken.body, {filled}, memory, memory + 4);
  const CUgraphNode empty = add_empty(taken.body, {copied});
  const CUgraphNode added =
      add_kernel(taken.body, {empty}, kernel("add_one"), CUdeviceptr{memory + 4});
  const Graph inner = Graph::make();
  add_copy(inner, {}, memory + 4, memory + 8);
  add_child(taken.body, {added}, inner);
  run_once(graph, stream);
  CHECK(memory.words() == std::vector<std::uint32_t>{6, 7, 7});
}

TEST_CASE_FIXTURE(Primary, "CND-07: a body may be captured [H]") {
  const Stream stream;
  const Memory memory(2);
  const Graph graph = Graph::make();
  const Conditional taken = add_conditional(graph, {}, CU_GRAPH_COND_TYPE_IF, 1);
  REQUIRE_OK(api.cuStreamBeginCaptureToGraph(stream, taken.body, nullptr, nullptr, 0,
                                             CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  REQUIRE_OK(fill(stream, memory, 7));
  REQUIRE_OK(api.cuMemcpyDtoDAsync_v2(memory + 4, memory, sizeof(std::uint32_t), stream));
  CUgraph ended = nullptr;
  CHECK_CODE(api.cuStreamEndCapture(stream, &ended), CUDA_SUCCESS);
  CHECK(ended == taken.body);
  run_once(graph, stream);
  CHECK(memory.words() == std::vector<std::uint32_t>{7, 7});
}

TEST_CASE_FIXTURE(Primary,
                  "CND-08: a body with a host node is refused by instantiation at last [H]") {
  int calls = 0;
  const Graph graph = Graph::make();
  const Conditional taken = add_conditional(graph, {}, CU_GRAPH_COND_TYPE_IF, 1);
  const CUDA_HOST_NODE_PARAMS called{count_up, &calls};
  CUgraphNode node = nullptr;
  const CUresult added = api.cuGraphAddHostNode(&node, taken.body, nullptr, 0, &called);
  observe("a host node in a body", added);
  if (added != CUDA_SUCCESS) return;
  CUgraphExec exec = nullptr;
  const CUresult made = api.cuGraphInstantiateWithFlags(&exec, graph, 0);
  CHECK(made != CUDA_SUCCESS);
  observe("instantiating it", made);
}

TEST_CASE_FIXTURE(Primary, "CND-09: a WHILE has exactly one body [H]") {
  const Graph graph = Graph::make();
  for (const unsigned size : {0U, 2U}) {
    Conditional refused;
    refused.handle = make_handle(graph, 0);
    CHECK(try_conditional(graph, {}, CU_GRAPH_COND_TYPE_WHILE, size, refused) != CUDA_SUCCESS);
  }
  CHECK(nodes_of(graph).empty());
}

TEST_CASE_FIXTURE(Primary, "CND-10: a graph with a conditional node cannot be a child [H]") {
  const Memory memory;
  const Graph graph = Graph::make();
  const Conditional taken = add_conditional(graph, {}, CU_GRAPH_COND_TYPE_IF, 1);
  add_fill(taken.body, {}, memory, 1);
  const Graph outer = Graph::make();
  CUgraphNode node = nullptr;
  CHECK(api.cuGraphAddChildGraphNode(&node, outer, nullptr, 0, graph) != CUDA_SUCCESS);
}

TEST_CASE_FIXTURE(Primary, "CND-11: a graph with a conditional node cannot be cloned [H]") {
  const Memory memory;
  const Graph graph = Graph::make();
  const Conditional taken = add_conditional(graph, {}, CU_GRAPH_COND_TYPE_IF, 1);
  add_fill(taken.body, {}, memory, 1);
  CUgraph clone = nullptr;
  CHECK(api.cuGraphClone(&clone, graph) != CUDA_SUCCESS);
}

TEST_CASE_FIXTURE(Primary, "CND-12: a graph with a conditional has one executable at a time [H]") {
  const Stream stream;
  const Memory memory;
  const Graph graph = Graph::make();
  const Conditional taken = add_conditional(graph, {}, CU_GRAPH_COND_TYPE_IF, 1);
  add_fill(taken.body, {}, memory, 12);
  Exec first;
  REQUIRE_OK(api.cuGraphInstantiateWithFlags(first.out(), graph, 0));
  CUgraphExec second = nullptr;
  CHECK(api.cuGraphInstantiateWithFlags(&second, graph, 0) != CUDA_SUCCESS);
  REQUIRE_OK(api.cuGraphExecDestroy(first.take()));
  run_once(graph, stream);
  CHECK(memory.word() == 12);
}

TEST_CASE_FIXTURE(Primary, "CND-13: a handle without a node [?]") {
  const Memory memory;
  const Graph graph = Graph::make();
  add_fill(graph, {}, memory, 1);
  make_handle(graph, 1);
  CUDA_GRAPH_INSTANTIATE_PARAMS asked{};
  Exec exec;
  observe("instantiating with a handle that no node uses",
          api.cuGraphInstantiateWithParams(exec.out(), graph, &asked));
  observe("its result", unsigned{asked.result_out});
}

TEST_CASE_FIXTURE(Primary, "CND-14: a handle takes no other flag than ASSIGN_DEFAULT [H]") {
  const Graph graph = Graph::make();
  CUgraphConditionalHandle handle = 0;
  CHECK_CODE(api.cuGraphConditionalHandleCreate(&handle, graph, context, 0, 2),
             CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE_FIXTURE(Primary, "CND-15: an update changes values in a body [H]") {
  const Stream stream;
  const Memory memory;
  const auto build = [&](CUgraph graph, std::uint32_t value) {
    const Conditional taken = add_conditional(graph, {}, CU_GRAPH_COND_TYPE_IF, 1);
    add_fill(taken.body, {}, memory, value);
  };
  const Graph old = Graph::make();
  build(old, 1);
  const Graph renewed = Graph::make();
  build(renewed, 15);
  const Exec exec = Exec::of(old);
  CUgraphExecUpdateResultInfo told{};
  CHECK_CODE(api.cuGraphExecUpdate_v2(exec, renewed, &told), CUDA_SUCCESS);
  run(exec, stream);
  CHECK(memory.word() == 15);
}

TEST_CASE_FIXTURE(Primary, "CND-16: an update changes a condition's default [H]") {
  const Stream stream;
  const Memory memory;
  const auto build = [&](CUgraph graph, unsigned initial) {
    const Conditional node = add_conditional(graph, {}, CU_GRAPH_COND_TYPE_IF, initial);
    add_fill(node.body, {}, memory, 16);
  };
  const Graph skips = Graph::make();
  build(skips, 0);
  const Graph takes = Graph::make();
  build(takes, 1);
  const Exec exec = Exec::of(skips);
  run(exec, stream);
  CHECK(memory.word() == 0);
  CUgraphExecUpdateResultInfo told{};
  CHECK_CODE(api.cuGraphExecUpdate_v2(exec, takes, &told), CUDA_SUCCESS);
  run(exec, stream);
  CHECK(memory.word() == 16);
}

TEST_CASE_FIXTURE(Primary, "CND-17: an IF with an else runs the one or the other [H]") {
  if (api.driver_version < kElseAndSwitch) SKIP_CASE("IF with an else needs CUDA 12.8");
  const Stream stream;
  const Memory memory(2);
  for (const unsigned initial : {0U, 1U}) {
    const Graph graph = Graph::make();
    Conditional node;
    node.handle = make_handle(graph, initial);
    REQUIRE_OK(try_conditional(graph, {}, CU_GRAPH_COND_TYPE_IF, 2, node));
    add_fill(node.bodies[0], {}, memory + 4 * initial, 1);
    add_fill(node.bodies[1], {}, memory + 4 * initial, 2);
    run_once(graph, stream);
  }
  CHECK(memory.words() == std::vector<std::uint32_t>{2, 1});
}

#if CUDA_VERSION >= 12080
TEST_CASE_FIXTURE(Primary, "CND-18: a SWITCH runs the body of its condition or none [H]") {
  if (api.driver_version < kElseAndSwitch) SKIP_CASE("SWITCH needs CUDA 12.8");
  const Stream stream;
  const Memory memory(4);
  for (unsigned initial = 0; initial < 4; ++initial) {
    const Graph graph = Graph::make();
    Conditional node;
    node.handle = make_handle(graph, initial);
    REQUIRE_OK(try_conditional(graph, {}, CU_GRAPH_COND_TYPE_SWITCH, 3, node));
    for (unsigned i = 0; i < 3; ++i) add_fill(node.bodies[i], {}, memory + 4 * initial, 10 + i);
    run_once(graph, stream);
  }
  CHECK(memory.words() == std::vector<std::uint32_t>{10, 11, 12, 0});
}
#endif

TEST_CASE_FIXTURE(Primary, "CND-20: a WHILE runs its body until a kernel makes it zero [H]") {
  const Stream stream;
  const Memory memory(2);
  const CountDown count_down;
  const Graph graph = Graph::make();
  const CUgraphNode left = add_fill(graph, {}, memory, 5);
  const Conditional loop = add_conditional(graph, {left}, CU_GRAPH_COND_TYPE_WHILE, 1);
  const CUgraphNode counted = add_kernel(loop.body, {}, kernel("add_one"), CUdeviceptr{memory + 4});
  add_kernel(loop.body, {counted}, count_down, memory.get(), std::uint64_t{loop.handle});
  const Exec exec = Exec::of(graph);
  run(exec, stream);
  CHECK(memory.words() == std::vector<std::uint32_t>{0, 5});
  run(exec, stream);
  CHECK(memory.words() == std::vector<std::uint32_t>{0, 10});
}

TEST_CASE_FIXTURE(Primary, "CND-21: an IF follows what a kernel before it has set [H]") {
  const Stream stream;
  const Memory memory(2);
  const CountDown count_down;
  const Graph graph = Graph::make();
  Conditional node;
  node.handle = make_handle(graph, 1);
  const CUgraphNode set =
      add_kernel(graph, {}, count_down, memory.get(), std::uint64_t{node.handle});
  REQUIRE_OK(try_conditional(graph, {set}, CU_GRAPH_COND_TYPE_IF, 1, node));
  add_fill(node.body, {}, memory + 4, 21);
  const Exec exec = Exec::of(graph);
  REQUIRE_OK(fill(stream, memory, 1));  // sets zero
  run(exec, stream);
  CHECK(memory.words() == std::vector<std::uint32_t>{0, 0});
  REQUIRE_OK(fill(stream, memory, 3));  // sets two
  run(exec, stream);
  CHECK(memory.words() == std::vector<std::uint32_t>{2, 21});
}
