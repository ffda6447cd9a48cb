#include "native_capture.hpp"

#include <algorithm>

#include "driver_error.hpp"
#include "refrain/base/text.hpp"

namespace refrain::cuda {
namespace {

/// For a block: what this thread may do while streams are captured.
class CaptureMode {
 public:
  CaptureMode(const DriverApi& api, CUstreamCaptureMode mode) noexcept
      : api_(api), mode_(mode), exchanged_(api_.cuThreadExchangeStreamCaptureMode(&mode_)) {}
  CaptureMode(const CaptureMode&) = delete;
  CaptureMode& operator=(const CaptureMode&) = delete;
  ~CaptureMode() {
    if (exchanged_ == CUDA_SUCCESS) api_.cuThreadExchangeStreamCaptureMode(&mode_);
  }
  [[nodiscard]] CUresult code() const noexcept { return exchanged_; }

 private:
  const DriverApi& api_;
  CUstreamCaptureMode mode_;
  CUresult exchanged_;
};

/// The body has broken its capture, as `ended` says.
Error broken(const BoundNative& native, const Error& ended) {
  return ended.with_context(
      "The capture of " + quote(native.function->signature.name) +
      " was broken by its body: it may not allocate, synchronise, use the default "
      "stream, or leave a stream that it forked. (NativeWork can be captured relaxed, "
      "for what another thread's capture would forbid.)");
}

std::string_view not_in_a_child(CUgraphNodeType type) noexcept {
  if (type == CU_GRAPH_NODE_TYPE_MEM_ALLOC) return "allocates memory";
  if (type == CU_GRAPH_NODE_TYPE_MEM_FREE) return "frees memory";
  if (type == CU_GRAPH_NODE_TYPE_CONDITIONAL) return "makes a conditional node";
  return {};
}

}  // namespace

bool end_capture(const Context& context, CUstream stream) noexcept {
  const Current here(context);
  const DriverApi& api = context.api();
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  if (api.cuStreamIsCapturing(stream, &status) != CUDA_SUCCESS) return false;
  if (status == CU_STREAM_CAPTURE_STATUS_NONE) return false;
  CUgraph graph = nullptr;
  api.cuStreamEndCapture(stream, &graph);
  if (graph != nullptr) api.cuGraphDestroy(graph);
  return true;
}

CapturedGraph::~CapturedGraph() {
  if (handle_ == nullptr) return;
  context_->destroy([handle = handle_](const DriverApi& api) { api.cuGraphDestroy(handle); });
}

Result<void> CapturedGraph::look() {
  const DriverApi& api = context_->api();
  std::size_t count = 0;
  REFRAIN_TRY(context_->check(api.cuGraphGetNodes(handle_, nullptr, &count), "cuGraphGetNodes"));
  std::vector<CUgraphNode> nodes(count);
  if (count != 0) {
    REFRAIN_TRY(
        context_->check(api.cuGraphGetNodes(handle_, nodes.data(), &count), "cuGraphGetNodes"));
  }
  std::vector<CUgraphNode> before(count);
  std::vector<CUgraphEdgeData> data(count);
  for (std::size_t at = 0; at < count; ++at) {
    CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
    REFRAIN_TRY(context_->check(api.cuGraphNodeGetType(nodes[at], &type), "cuGraphNodeGetType"));
    if (const std::string_view does = not_in_a_child(type); !does.empty()) {
      return Error(ErrorKind::device_refused,
                   "Its body " + std::string(does) +
                       " while it is captured, which no part of a graph can hold. (Ask for a "
                       "workspace.)");
    }
    shape_.nodes.push_back(type);
    // With the data of the edges, without which a driver does not tell of those that have some.
    std::size_t edges = count;
    REFRAIN_TRY(context_->check(
        api.cuGraphNodeGetDependencies_v2(nodes[at], before.data(), data.data(), &edges),
        "cuGraphNodeGetDependencies"));
    for (std::size_t edge = 0; edge < edges; ++edge) {
      const auto from = std::find(nodes.begin(), nodes.end(), before[edge]);
      shape_.edges.emplace_back(from - nodes.begin(), at);
    }
  }
  std::sort(shape_.edges.begin(), shape_.edges.end());
  return {};
}

/// A stream for one capture. Used again when that has ended well; else the capture is ended,
/// whatever it has come to, and the stream destroyed.
class NativeCaptures::OneStream {
 public:
  explicit OneStream(NativeCaptures& of) noexcept : of_(of) {}
  OneStream(const OneStream&) = delete;
  OneStream& operator=(const OneStream&) = delete;
  ~OneStream() {
    if (handle_ == nullptr || (clean_ && given_back())) return;
    if (!clean_ && !of_.context_->lost()) static_cast<void>(end_capture(*of_.context_, handle_));
    of_.context_->destroy(
        [handle = handle_](const DriverApi& api) { api.cuStreamDestroy_v2(handle); });
  }

  Result<void> open() {
    {
      const Lock lock(of_.mutex_);
      if (!of_.idle_.empty()) {
        handle_ = of_.idle_.back();
        of_.idle_.pop_back();
        return {};
      }
    }
    const Result<CUstream> made =
        of_.context_->create_stream(of_.checks_ ? CU_STREAM_DEFAULT : CU_STREAM_NON_BLOCKING);
    if (!made.ok()) return made.error();
    handle_ = *made;
    return {};
  }
  [[nodiscard]] CUstream handle() const noexcept { return handle_; }
  void is_clean() noexcept { clean_ = true; }

 private:
  [[nodiscard]] bool given_back() const noexcept {
    const Lock lock(of_.mutex_);
    if (of_.idle_.size() == kMostIdle) return false;  // destroyed
    of_.idle_.push_back(handle_);
    return true;
  }

  NativeCaptures& of_;
  CUstream handle_ = nullptr;
  bool clean_ = false;
};

NativeCaptures::~NativeCaptures() {
  for (CUstream stream : idle_) {
    context_->destroy([stream](const DriverApi& api) { api.cuStreamDestroy_v2(stream); });
  }
}

Result<CapturedGraph> NativeCaptures::capture(const BoundNative& native) {
  REFRAIN_TRY(context_->alive());
  OneStream stream(*this);
  REFRAIN_TRY(stream.open());
  const DriverApi& api = context_->api();
  const Current here(*context_);
  REFRAIN_TRY(context_->check(here.code(), "cuCtxPushCurrent"));
  const CUstreamCaptureMode wanted = native.function->relaxed ? CU_STREAM_CAPTURE_MODE_RELAXED
                                                              : CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
  // Whatever the thread was allowed around this call, the body is held to its own capture.
  const CaptureMode mode(api, wanted);
  REFRAIN_TRY(context_->check(mode.code(), "cuThreadExchangeStreamCaptureMode"));
  REFRAIN_TRY(context_->check(api.cuStreamBeginCapture_v2(stream.handle(), wanted),
                              "cuStreamBeginCapture"));
  REFRAIN_TRY(native.call(stream.handle()));  // else, or if it throws, `stream` ends the capture
  CUgraph graph = nullptr;
  const CUresult code = api.cuStreamEndCapture(stream.handle(), &graph);
  CapturedGraph captured(context_, graph);
  const Result<void> ended = context_->check(code, "cuStreamEndCapture");
  if (!ended.ok()) return broken(native, ended.error());
  stream.is_clean();
  REFRAIN_TRY(captured.look());
  return captured;
}

}  // namespace refrain::cuda
