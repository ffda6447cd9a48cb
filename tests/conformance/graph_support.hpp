// What the cases on capture and on graphs share: to begin, end and look at a capture, to build
// nodes of the usual kinds, to read a graph's shape, and to run an executable to its end.
//
// Everything here that a case does not test itself must succeed, and ends the case where it does
// not.
#pragma once

#include <doctest/doctest.h>

#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "fixture.hpp"

namespace conformance {

using Nodes = std::vector<CUgraphNode>;
using Edges = std::set<std::pair<CUgraphNode, CUgraphNode>>;

// --- Capture

/// Begins a capture; thread-local unless said otherwise, so that no other thread matters.
void begin(CUstream stream, CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
/// Ends a capture, which succeeds; the graph is the caller's.
CUgraph end(CUstream stream);
/// Ends a capture: it answers that code and gives no graph.
void check_end_fails(CUstream stream, CUresult code);
/// Ends a capture that is in a state that nobody knows, and drops its graph if there is one.
CUresult end_and_drop(CUstream stream);

CUstreamCaptureStatus status(CUstream stream);
inline bool capturing(CUstream stream) { return status(stream) == CU_STREAM_CAPTURE_STATUS_ACTIVE; }
inline bool invalidated(CUstream stream) {
  return status(stream) == CU_STREAM_CAPTURE_STATUS_INVALIDATED;
}
/// "none", "active" or "invalidated", or the code that the question was answered with: for an
/// observation.
std::string status_text(CUstream stream);

struct CaptureInfo {
  cuuint64_t id = 0;
  CUgraph graph = nullptr;
  Nodes dependencies;
};
/// Of a stream that captures.
CaptureInfo info(CUstream stream);

/// Breaks the capture of `stream` the way that is beyond doubt: a query of the capturing stream.
void invalidate(CUstream stream);

/// Records an event in `from` and lets `to` wait for it.
void follow(CUstream to, CUstream from, CUevent event);

/// Writes words on `stream`, or captures that.
CUresult fill(CUstream stream, CUdeviceptr where, std::uint32_t value, std::size_t words = 1);

/// The stream captures nothing, and work on it arrives.
void check_usable(CUstream stream);

/// What `call` answers on a thread of its own with that context; the thread has ended.
template <class Call>
auto on_thread(CUcontext context, Call call) {
  decltype(call()) answer{};
  std::thread([&] {
    api().cuCtxSetCurrent(context);
    answer = call();
  }).join();
  return answer;
}

// --- Nodes

CUDA_MEMSET_NODE_PARAMS fill_of(CUdeviceptr where, std::uint32_t value, std::size_t words = 1);
CUDA_MEMCPY3D copy_of(CUdeviceptr from, CUdeviceptr to, std::size_t words = 1);
/// One thread of `kernel`.
CUDA_KERNEL_NODE_PARAMS_v2 launch_of(CUfunction kernel, void** parameters);
/// A node of that type whose parameters are still to be said, everything else zero.
CUgraphNodeParams node_of(CUgraphNodeType type);

CUgraphNode add_fill(CUgraph graph, const Nodes& after, CUdeviceptr where, std::uint32_t value,
                     std::size_t words = 1);
CUgraphNode add_copy(CUgraph graph, const Nodes& after, CUdeviceptr from, CUdeviceptr to,
                     std::size_t words = 1);
CUgraphNode add_host(CUgraph graph, const Nodes& after, CUhostFn function, void* data);
CUgraphNode add_empty(CUgraph graph, const Nodes& after);
CUgraphNode add_child(CUgraph graph, const Nodes& after, CUgraph child);
/// One thread; the values' types must be the parameters'.
template <class... Values>
CUgraphNode add_kernel(CUgraph graph, const Nodes& after, CUfunction kernel, Values... values) {
  void* parameters[] = {&values...};
  const CUDA_KERNEL_NODE_PARAMS_v2 launched = launch_of(kernel, parameters);
  CUgraphNode node = nullptr;
  REQUIRE_OK(api().cuGraphAddKernelNode_v2(&node, graph, after.data(), after.size(), &launched));
  return node;
}

/// Adds one to the `int` that `counter` points to: a host node or function.
void CUDA_CB count_up(void* counter);

// --- The shape of a graph

Nodes nodes_of(CUgraph graph);
Edges edges_of(CUgraph graph);
Nodes dependencies_of(CUgraphNode node);
CUgraphNodeType type_of(CUgraphNode node);
/// The nodes of that type.
Nodes nodes_of(CUgraph graph, CUgraphNodeType type);

// --- Running

/// Launches and waits for the stream; both succeed.
void run(CUgraphExec exec, CUstream stream);
/// Instantiates, runs once and destroys.
void run_once(CUgraph graph, CUstream stream);

}  // namespace conformance
