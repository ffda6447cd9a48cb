// The functions that begin, end and ask about captures: every row of the rules on capture, each
// with the code that was observed or documented.
#include <algorithm>

#include "simcuda/capture.hpp"
#include "simcuda/export.hpp"
#include "simcuda/graph.hpp"

namespace sim {
namespace {

bool is_mode(const CUstreamCaptureMode& mode) {
  const int given = raw(mode);
  return given >= CU_STREAM_CAPTURE_MODE_GLOBAL && given <= CU_STREAM_CAPTURE_MODE_RELAXED;
}

CUresult may_begin(const Stream& stream) {
  if (stream.legacy) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  if (stream.capture == nullptr) return CUDA_SUCCESS;
  return stream.capture->invalid ? kUnsettled : CUDA_ERROR_ILLEGAL_STATE;
}

void begin(Driver& driver, Stream& stream, CUstreamCaptureMode mode, Graph& graph,
           bool graph_is_callers) {
  auto capture = std::make_shared<Capture>();
  capture->id = ++driver.last_id;
  capture->mode = mode;
  capture->thread = this_thread().number;
  capture->origin = &stream;
  capture->members = {&stream};
  capture->graph = &graph;
  capture->graph_is_callers = graph_is_callers;
  graph.capture = capture.get();
  stream.capture = capture;
  stream.dependencies.clear();
  driver.captures.push_back(std::move(capture));
}

/// The dependencies that a caller gives as arrays; no value: one is not a node of the graph.
std::optional<std::vector<Dependency>> given(const Graph& graph, const CUgraphNode* nodes,
                                             const CUgraphEdgeData* data, std::size_t count) {
  std::vector<Dependency> dependencies;
  for (std::size_t i = 0; i < count; ++i) {
    auto* node = find<Node>(nodes[i], this_thread().function);
    if (node == nullptr || node->graph != &graph) return std::nullopt;
    dependencies.push_back({node, data == nullptr ? CUgraphEdgeData{} : data[i]});
  }
  return dependencies;
}

bool names(const std::vector<Dependency>& dependencies, const Node* node) {
  return std::any_of(dependencies.begin(), dependencies.end(),
                     [&](const Dependency& each) { return each.node == node; });
}

/// Everything that ends before the stream's next work would start.
std::set<const Node*> joined_to(const Stream& stream, const Graph& graph) {
  std::set<const Node*> joined;
  std::vector<const Node*> open;
  for (const Dependency& each : stream.dependencies) open.push_back(each.node);
  while (!open.empty()) {
    const Node* node = open.back();
    open.pop_back();
    if (!joined.insert(node).second) continue;
    for (const Edge& edge : graph.edges) {
      // A programmatic edge does not say that the node before it has ended.
      if (edge.to == node && edge.data.type != CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC) {
        open.push_back(edge.from);
      }
    }
  }
  return joined;
}

bool has_unjoined(const Capture& capture) {
  const std::set<const Node*> joined = joined_to(*capture.origin, *capture.graph);
  for (const Stream* member : capture.members) {
    for (const Dependency& each : member->dependencies) {
      if (capture.work.count(each.node) != 0 && joined.count(each.node) == 0) return true;
    }
  }
  return false;
}

/// An annotated edge to work that never came; it may not be dropped, but how that shows is open.
bool has_dangling_edge(const Capture& capture) {
  return std::any_of(capture.members.begin(), capture.members.end(), [](const Stream* member) {
    return std::any_of(member->dependencies.begin(), member->dependencies.end(),
                       [](const Dependency& each) { return annotated(each.data); });
  });
}

/// What the end of a capture answers, which it comes to in any case.
CUresult outcome(const Driver& driver, const Capture& capture) {
  if (capture.unsettled) return kUnsettled;
  if (capture.invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (has_unjoined(capture) && !driver.has_bug("end-ignores-unjoined")) {
    return CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
  }
  return has_dangling_edge(capture) ? kUnsettled : CUDA_SUCCESS;
}

CUresult end(Driver& driver, Stream& stream, CUgraph* graph) {
  if (stream.capture == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  Capture& capture = *stream.capture;
  if (capture.origin != &stream) {
    capture.unsettled = true;
    return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
  }
  if (capture.mode != CU_STREAM_CAPTURE_MODE_RELAXED && capture.thread != this_thread().number &&
      !driver.has_bug("wrong-thread-ends")) {
    capture.unsettled = true;
    return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
  }
  const CUresult code = outcome(driver, capture);
  *graph = nullptr;
  if (capture.invalid && driver.has_bug("invalid-capture-sticks")) return code;
  Graph& captured = *capture.graph;
  const bool callers = capture.graph_is_callers;
  leave_capture(driver, capture);  // may be the end of `capture`
  if (code == CUDA_SUCCESS) {
    *graph = handle_of<CUgraph>(&captured);
  } else if (!callers) {
    destroy_graph(captured, this_thread().function);
  }
  return code;
}

CUresult status_of(Driver& driver, const Stream& stream, CUstreamCaptureStatus& status) {
  if (stream.legacy) {
    const CUresult code = enter_legacy(driver, *stream.context, true);
    if (code != CUDA_SUCCESS) return code;
  }
  status = CU_STREAM_CAPTURE_STATUS_NONE;
  if (stream.capture == nullptr) return CUDA_SUCCESS;
  if (stream.capture->unsettled) return kUnsettled;
  status = stream.capture->invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                   : CU_STREAM_CAPTURE_STATUS_ACTIVE;
  return CUDA_SUCCESS;
}

}  // namespace
}  // namespace sim

using namespace sim;

SIM_API CUresult CUDAAPI cuStreamBeginCapture_v2(CUstream handle, CUstreamCaptureMode mode) {
  return call({__func__, handle}, [&](Driver& driver) -> CUresult {
    if (!is_mode(mode)) return CUDA_ERROR_INVALID_VALUE;
    Stream& stream = stream_of(driver, handle);
    if (const CUresult code = may_begin(stream); code != CUDA_SUCCESS) return code;
    begin(driver, stream, mode, *make_graph(), false);
    return CUDA_SUCCESS;
  });
}

SIM_API CUresult CUDAAPI cuStreamBeginCaptureToGraph(CUstream handle, CUgraph graph_handle,
                                                     const CUgraphNode* nodes,
                                                     const CUgraphEdgeData* data, std::size_t count,
                                                     CUstreamCaptureMode mode) {
  const GraphUse use(graph_handle, __func__);
  return call({__func__, handle}, [&](Driver& driver) -> CUresult {
    auto* graph = find<Graph>(graph_handle, this_thread().function);
    if (graph == nullptr || !is_mode(mode)) return CUDA_ERROR_INVALID_VALUE;
    if (count != 0 && nodes == nullptr) return CUDA_ERROR_INVALID_VALUE;
    auto dependencies = given(*graph, nodes, data, count);
    if (!dependencies) return CUDA_ERROR_INVALID_VALUE;
    Stream& stream = stream_of(driver, handle);
    if (const CUresult code = may_begin(stream); code != CUDA_SUCCESS) return code;
    if (graph->capture != nullptr) return kUnsettled;
    begin(driver, stream, mode, *graph, true);
    stream.dependencies = std::move(*dependencies);
    return CUDA_SUCCESS;
  });
}

SIM_API CUresult CUDAAPI cuStreamEndCapture(CUstream handle, CUgraph* graph) {
  return call({__func__, handle}, [&](Driver& driver) -> CUresult {
    if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return end(driver, stream_of(driver, handle), graph);
  });
}

SIM_API CUresult CUDAAPI cuStreamIsCapturing(CUstream handle, CUstreamCaptureStatus* status) {
  return call({__func__, handle}, [&](Driver& driver) -> CUresult {
    if (status == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return status_of(driver, stream_of(driver, handle), *status);
  });
}

SIM_API CUresult CUDAAPI cuStreamGetCaptureInfo_v3(CUstream handle, CUstreamCaptureStatus* status,
                                                   cuuint64_t* id, CUgraph* graph,
                                                   const CUgraphNode** nodes,
                                                   const CUgraphEdgeData** edges,
                                                   std::size_t* count) {
  return call({__func__, handle}, [&](Driver& driver) -> CUresult {
    if (status == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (edges != nullptr && nodes == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Stream& stream = stream_of(driver, handle);
    CUstreamCaptureStatus found{};
    const CUresult code = status_of(driver, stream, found);
    if (code != CUDA_SUCCESS) return code;
    if (found != CU_STREAM_CAPTURE_STATUS_ACTIVE) {
      *status = found;
      return CUDA_SUCCESS;
    }
    const bool lossy = std::any_of(stream.dependencies.begin(), stream.dependencies.end(),
                                   [](const Dependency& each) { return annotated(each.data); });
    if (lossy && nodes != nullptr && edges == nullptr) return CUDA_ERROR_LOSSY_QUERY;
    stream.shown_nodes.clear();
    stream.shown_edges.clear();
    for (const Dependency& each : stream.dependencies) {
      stream.shown_nodes.push_back(handle_of<CUgraphNode>(each.node));
      stream.shown_edges.push_back(each.data);
    }
    *status = found;
    if (id != nullptr) *id = stream.capture->id;
    if (graph != nullptr) *graph = handle_of<CUgraph>(stream.capture->graph);
    if (nodes != nullptr) *nodes = stream.shown_nodes.data();
    if (edges != nullptr) *edges = stream.shown_edges.data();
    if (count != nullptr) *count = stream.shown_nodes.size();
    return CUDA_SUCCESS;
  });
}

SIM_API CUresult CUDAAPI cuStreamUpdateCaptureDependencies_v2(CUstream handle, CUgraphNode* nodes,
                                                              const CUgraphEdgeData* data,
                                                              std::size_t count, unsigned flags) {
  return call({__func__, handle}, [&](Driver& driver) -> CUresult {
    if (flags > CU_STREAM_SET_CAPTURE_DEPENDENCIES) return CUDA_ERROR_INVALID_VALUE;
    if (count != 0 && nodes == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Stream& stream = stream_of(driver, handle);
    if (stream.capture == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
    Capture& capture = *stream.capture;
    if (capture.invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    const auto dependencies = given(*capture.graph, nodes, data, count);
    if (!dependencies) return CUDA_ERROR_INVALID_VALUE;
    if (flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES) {
      for (const Dependency& each : stream.dependencies) {
        if (!names(*dependencies, each.node)) capture.work.erase(each.node);
      }
      stream.dependencies.clear();
    }
    for (const Dependency& each : *dependencies) {
      if (!names(stream.dependencies, each.node)) stream.dependencies.push_back(each);
    }
    return CUDA_SUCCESS;
  });
}

SIM_API CUresult CUDAAPI cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  return call({__func__, Needs::initialised}, [&](Driver&) -> CUresult {
    if (mode == nullptr || !is_mode(*mode)) return CUDA_ERROR_INVALID_VALUE;
    std::swap(*mode, this_thread().capture_mode);
    return CUDA_SUCCESS;
  });
}
