#include "graph_support.hpp"

namespace conformance {

void begin(CUstream stream, CUstreamCaptureMode mode) {
  REQUIRE_OK(api().cuStreamBeginCapture_v2(stream, mode));
}

CUgraph end(CUstream stream) {
  CUgraph graph = nullptr;
  REQUIRE_OK(api().cuStreamEndCapture(stream, &graph));
  REQUIRE(graph != nullptr);
  return graph;
}

void check_end_fails(CUstream stream, CUresult code) {
  int place = 0;
  auto graph = reinterpret_cast<CUgraph>(&place);  // no graph, so that NULL is seen to be put there
  CHECK_CODE(api().cuStreamEndCapture(stream, &graph), code);
  CHECK(graph == nullptr);
}

CUresult end_and_drop(CUstream stream) {
  CUgraph graph = nullptr;
  const CUresult ended = api().cuStreamEndCapture(stream, &graph);
  if (ended == CUDA_SUCCESS && graph != nullptr) api().cuGraphDestroy(graph);
  return ended;
}

CUstreamCaptureStatus status(CUstream stream) {
  CUstreamCaptureStatus found = CU_STREAM_CAPTURE_STATUS_NONE;
  REQUIRE_OK(api().cuStreamIsCapturing(stream, &found));
  return found;
}

std::string status_text(CUstream stream) {
  CUstreamCaptureStatus found = CU_STREAM_CAPTURE_STATUS_NONE;
  const CUresult answered = api().cuStreamIsCapturing(stream, &found);
  if (answered != CUDA_SUCCESS) return code_text(answered);
  switch (found) {
    case CU_STREAM_CAPTURE_STATUS_NONE: return "none";
    case CU_STREAM_CAPTURE_STATUS_ACTIVE: return "active";
    case CU_STREAM_CAPTURE_STATUS_INVALIDATED: return "invalidated";
  }
  return "a status that cuda.h does not have";
}

CaptureInfo info(CUstream stream) {
  CaptureInfo out;
  CUstreamCaptureStatus found = CU_STREAM_CAPTURE_STATUS_NONE;
  const CUgraphNode* dependencies = nullptr;
  std::size_t count = 0;
  REQUIRE_OK(api().cuStreamGetCaptureInfo_v3(stream, &found, &out.id, &out.graph, &dependencies,
                                             nullptr, &count));
  REQUIRE(found == CU_STREAM_CAPTURE_STATUS_ACTIVE);
  out.dependencies.assign(dependencies, dependencies + count);
  return out;
}

void invalidate(CUstream stream) {
  REQUIRE_CODE(api().cuStreamQuery(stream), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  REQUIRE(invalidated(stream));
}

void follow(CUstream to, CUstream from, CUevent event) {
  REQUIRE_OK(api().cuEventRecord(event, from));
  REQUIRE_OK(api().cuStreamWaitEvent(to, event, CU_EVENT_WAIT_DEFAULT));
}

CUresult fill(CUstream stream, CUdeviceptr where, std::uint32_t value, std::size_t words) {
  return api().cuMemsetD32Async(where, value, words, stream);
}

void check_usable(CUstream stream) {
  CHECK(status(stream) == CU_STREAM_CAPTURE_STATUS_NONE);
  const Memory memory;
  CHECK_CODE(fill(stream, memory, 0xa11ce), CUDA_SUCCESS);
  CHECK(memory.word_after(stream) == 0xa11ce);
}

CUDA_MEMSET_NODE_PARAMS fill_of(CUdeviceptr where, std::uint32_t value, std::size_t words) {
  CUDA_MEMSET_NODE_PARAMS out{};
  out.dst = where;
  out.value = value;
  out.elementSize = sizeof(std::uint32_t);
  out.width = words;
  out.height = 1;
  return out;
}

CUDA_MEMCPY3D copy_of(CUdeviceptr from, CUdeviceptr to, std::size_t words) {
  CUDA_MEMCPY3D out{};
  out.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  out.srcDevice = from;
  out.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  out.dstDevice = to;
  out.WidthInBytes = words * sizeof(std::uint32_t);
  out.Height = 1;
  out.Depth = 1;
  return out;
}

CUDA_KERNEL_NODE_PARAMS_v2 launch_of(CUfunction kernel, void** parameters) {
  CUDA_KERNEL_NODE_PARAMS_v2 out{};
  out.func = kernel;
  out.gridDimX = out.gridDimY = out.gridDimZ = 1;
  out.blockDimX = out.blockDimY = out.blockDimZ = 1;
  out.kernelParams = parameters;
  return out;
}

CUgraphNodeParams node_of(CUgraphNodeType type) {
  CUgraphNodeParams out{};
  out.type = type;
  return out;
}

namespace {

CUcontext current_context() {
  CUcontext context = nullptr;
  REQUIRE_OK(api().cuCtxGetCurrent(&context));
  return context;
}

}  // namespace

CUgraphNode add_fill(CUgraph graph, const Nodes& after, CUdeviceptr where, std::uint32_t value,
                     std::size_t words) {
  const CUDA_MEMSET_NODE_PARAMS filled = fill_of(where, value, words);
  CUgraphNode node = nullptr;
  REQUIRE_OK(api().cuGraphAddMemsetNode(&node, graph, after.data(), after.size(), &filled,
                                        current_context()));
  return node;
}

CUgraphNode add_copy(CUgraph graph, const Nodes& after, CUdeviceptr from, CUdeviceptr to,
                     std::size_t words) {
  const CUDA_MEMCPY3D copied = copy_of(from, to, words);
  CUgraphNode node = nullptr;
  REQUIRE_OK(api().cuGraphAddMemcpyNode(&node, graph, after.data(), after.size(), &copied,
                                        current_context()));
  return node;
}

CUgraphNode add_host(CUgraph graph, const Nodes& after, CUhostFn function, void* data) {
  const CUDA_HOST_NODE_PARAMS called{function, data};
  CUgraphNode node = nullptr;
  REQUIRE_OK(api().cuGraphAddHostNode(&node, graph, after.data(), after.size(), &called));
  return node;
}

CUgraphNode add_empty(CUgraph graph, const Nodes& after) {
  CUgraphNode node = nullptr;
  REQUIRE_OK(api().cuGraphAddEmptyNode(&node, graph, after.data(), after.size()));
  return node;
}

CUgraphNode add_child(CUgraph graph, const Nodes& after, CUgraph child) {
  CUgraphNode node = nullptr;
  REQUIRE_OK(api().cuGraphAddChildGraphNode(&node, graph, after.data(), after.size(), child));
  return node;
}

void CUDA_CB count_up(void* counter) { ++*static_cast<int*>(counter); }

Nodes nodes_of(CUgraph graph) {
  std::size_t count = 0;
  REQUIRE_OK(api().cuGraphGetNodes(graph, nullptr, &count));
  Nodes nodes(count);
  if (count != 0) REQUIRE_OK(api().cuGraphGetNodes(graph, nodes.data(), &count));
  return nodes;
}

Edges edges_of(CUgraph graph) {
  std::size_t count = 0;
  REQUIRE_OK(api().cuGraphGetEdges_v2(graph, nullptr, nullptr, nullptr, &count));
  Nodes from(count);
  Nodes to(count);
  Edges edges;
  if (count == 0) return edges;
  REQUIRE_OK(api().cuGraphGetEdges_v2(graph, from.data(), to.data(), nullptr, &count));
  for (std::size_t i = 0; i < count; ++i) edges.emplace(from[i], to[i]);
  return edges;
}

Nodes dependencies_of(CUgraphNode node) {
  std::size_t count = 0;
  REQUIRE_OK(api().cuGraphNodeGetDependencies_v2(node, nullptr, nullptr, &count));
  Nodes nodes(count);
  if (count != 0) {
    REQUIRE_OK(api().cuGraphNodeGetDependencies_v2(node, nodes.data(), nullptr, &count));
  }
  return nodes;
}

CUgraphNodeType type_of(CUgraphNode node) {
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  REQUIRE_OK(api().cuGraphNodeGetType(node, &type));
  return type;
}

Nodes nodes_of(CUgraph graph, CUgraphNodeType type) {
  Nodes out;
  for (const CUgraphNode node : nodes_of(graph)) {
    if (type_of(node) == type) out.push_back(node);
  }
  return out;
}

void run(CUgraphExec exec, CUstream stream) {
  REQUIRE_OK(api().cuGraphLaunch(exec, stream));
  REQUIRE_OK(api().cuStreamSynchronize(stream));
}

void run_once(CUgraph graph, CUstream stream) {
  const Exec exec = Exec::of(graph);
  run(exec, stream);
}

}  // namespace conformance
