// Changing a whole executable in place by another graph of the same shape. A refusal is told by the
// code 910 alone; the detail beside it is only observed.
#include "graph_support.hpp"

using namespace conformance;

using Words = std::vector<std::uint32_t>;

namespace {

CUresult update(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo& told) {
  return api().cuGraphExecUpdate_v2(exec, graph, &told);
}

/// The update is refused, with 910; why is only observed.
void check_refused(CUgraphExec exec, CUgraph graph) {
  CUgraphExecUpdateResultInfo told{};
  CHECK_CODE(update(exec, graph, told), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
  CHECK(told.result != CU_GRAPH_EXEC_UPDATE_SUCCESS);
  observe("the update's result", unsigned{told.result});
  observe("the update names a node", told.errorNode != nullptr);
}

}  // namespace

TEST_CASE_FIXTURE(Primary, "UPD-01: a graph of the same shape gives an executable its values [H]") {
  const Stream stream;
  const Memory memory(3);
  int before = 0;
  int after = 0;
  const CUfunction function = kernel("write_word");
  const auto build = [&](CUgraph graph, CUdeviceptr where, std::uint32_t value, int* calls) {
    const CUgraphNode one = add_kernel(graph, {}, function, where, value);
    const CUgraphNode two = add_fill(graph, {one}, where + 4, value + 1);
    const CUgraphNode three = add_copy(graph, {two}, where, where + 4);
    add_host(graph, {three}, count_up, calls);
  };
  const Graph old = Graph::make();
  build(old, memory, 1, &before);
  const Graph renewed = Graph::make();
  build(renewed, memory + 4, 7, &after);
  const Exec exec = Exec::of(old);
  CUgraphExecUpdateResultInfo told{};
  told.result = CU_GRAPH_EXEC_UPDATE_ERROR;
  CHECK_CODE(update(exec, renewed, told), CUDA_SUCCESS);
  CHECK(told.result == CU_GRAPH_EXEC_UPDATE_SUCCESS);
  run(exec, stream);
  CHECK(memory.words() == Words{0, 7, 7});
  CHECK(before == 0);
  CHECK(after == 1);
}

TEST_CASE_FIXTURE(Primary, "UPD-02: an update reaches child graphs [H]") {
  const Stream stream;
  const Memory memory;
  const auto build = [&](CUgraph graph, std::uint32_t value) {
    const Graph inner = Graph::make();
    add_fill(inner, {}, memory, value);
    add_child(graph, {}, inner);
  };
  const Graph old = Graph::make();
  build(old, 1);
  const Graph renewed = Graph::make();
  build(renewed, 2);
  const Exec exec = Exec::of(old);
  CUgraphExecUpdateResultInfo told{};
  CHECK_CODE(update(exec, renewed, told), CUDA_SUCCESS);
  run(exec, stream);
  CHECK(memory.word() == 2);
}

TEST_CASE_FIXTURE(Primary, "UPD-03: another number of nodes is refused with 910 [H]") {
  const Memory memory;
  const Graph graph = Graph::make();
  add_fill(graph, {}, memory, 1);
  const Exec exec = Exec::of(graph);
  add_fill(graph, {}, memory, 2);
  check_refused(exec, graph);
}

TEST_CASE_FIXTURE(Primary, "UPD-04: another set of edges is refused with 910 [H]") {
  const Memory memory(3);
  const auto build = [&](CUgraph graph, bool chained) {
    const CUgraphNode one = add_fill(graph, {}, memory, 1);
    const CUgraphNode two = add_fill(graph, {one}, memory + 4, 2);
    add_fill(graph, {chained ? two : one}, memory + 8, 3);
  };
  const Graph chain = Graph::make();
  build(chain, true);
  const Graph fork = Graph::make();
  build(fork, false);
  const Exec exec = Exec::of(chain);
  check_refused(exec, fork);
}

TEST_CASE_FIXTURE(Primary, "UPD-05: another type of node is refused with 910 [H]") {
  const Memory memory(2);
  const Graph filled = Graph::make();
  add_fill(filled, {}, memory, 1);
  const Graph copied = Graph::make();
  add_copy(copied, {}, memory, memory + 4);
  const Exec exec = Exec::of(filled);
  check_refused(exec, copied);
}

TEST_CASE_FIXTURE(Primary, "UPD-06: an executable after a refused update [?]") {
  const Stream stream;
  const Memory memory(2);
  const Graph old = Graph::make();
  const CUgraphNode first = add_fill(old, {}, memory, 1);
  add_copy(old, {first}, memory, memory + 4);
  const Exec exec = Exec::of(old);
  const Graph other = Graph::make();
  const CUgraphNode changed = add_fill(other, {}, memory, 2);
  add_fill(other, {changed}, memory + 4, 3);
  CUgraphExecUpdateResultInfo told{};
  REQUIRE_CODE(update(exec, other, told), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
  observe("a launch after a refused update", api.cuGraphLaunch(exec, stream));
  observe("waiting for it", api.cuStreamSynchronize(stream));
  observe("it did the old work", memory.words() == Words{1, 1});
}

TEST_CASE_FIXTURE(Primary, "UPD-07: an update does not touch launches that are under way [H]") {
  const Stream stream;
  const Memory memory(2);
  const Graph old = Graph::make();
  add_fill(old, {}, memory, 1);
  const Graph renewed = Graph::make();
  add_fill(renewed, {}, memory + 4, 2);
  const Exec exec = Exec::of(old);
  {
    const Busy busy(*this, stream);
    REQUIRE_OK(api.cuGraphLaunch(exec, stream));
    CUgraphExecUpdateResultInfo told{};
    CHECK_CODE(update(exec, renewed, told), CUDA_SUCCESS);
  }
  REQUIRE_OK(api.cuStreamSynchronize(stream));
  CHECK(memory.words() == Words{1, 0});
  run(exec, stream);
  CHECK(memory.words() == Words{1, 2});
}

TEST_CASE_FIXTURE(Primary, "UPD-25: a captured graph updates what an earlier capture made [G]") {
  const Stream stream;
  const Memory memory(2);
  const auto capture = [&](std::uint32_t value) {
    begin(stream);
    REQUIRE_OK(fill(stream, memory, value));
    REQUIRE_OK(api.cuMemcpyDtoDAsync_v2(memory + 4, memory, sizeof(std::uint32_t), stream));
    return end(stream);
  };
  const Graph old(capture(1));
  const Graph renewed(capture(25));
  const Exec exec = Exec::of(old);
  CUgraphExecUpdateResultInfo told{};
  CHECK_CODE(update(exec, renewed, told), CUDA_SUCCESS);
  run(exec, stream);
  CHECK(memory.words() == Words{25, 25});
}
