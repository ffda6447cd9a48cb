#include "native_capture.hpp"

#include <exception>
#include <optional>

#include "driver_error.hpp"
#include "refrain/base/text.hpp"

namespace refrain::cuda {
namespace {

/// For a block: what this thread may do while streams are captured.
class CaptureMode {
 public:
  CaptureMode(const DriverApi& api, CUstreamCaptureMode mode) noexcept : api_(api), mode_(mode) {
    exchanged_ = api_.cuThreadExchangeStreamCaptureMode(&mode_);
  }
  CaptureMode(const CaptureMode&) = delete;
  CaptureMode& operator=(const CaptureMode&) = delete;
  ~CaptureMode() {
    if (exchanged_ == CUDA_SUCCESS) api_.cuThreadExchangeStreamCaptureMode(&mode_);
  }
  [[nodiscard]] CUresult code() const noexcept { return exchanged_; }

 private:
  const DriverApi& api_;
  CUstreamCaptureMode mode_;
  CUresult exchanged_ = CUDA_SUCCESS;
};

std::string of(const BoundNative& native) { return quote(native.function->signature.name); }

/// Ends the capture of `stream`, if there is one; what it had captured is dropped. Answers whether
/// there was one.
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

/// The body has broken its capture, as `ended` says.
Error broken(const BoundNative& native, const Error& ended) {
  return ended.with_context(
      "The capture of " + of(native) +
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
  for (const CUgraphNode node : nodes) {
    CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
    REFRAIN_TRY(context_->check(api.cuGraphNodeGetType(node, &type), "cuGraphNodeGetType"));
    if (const std::string_view does = not_in_a_child(type); !does.empty()) {
      return Error(ErrorKind::device_refused,
                   "Its body " + std::string(does) +
                       " while it is captured, which no part of a graph can hold. (Ask for a "
                       "workspace.)");
    }
    // With the data of the edges, without which a driver does not tell of those that have some.
    std::size_t edges = count;
    REFRAIN_TRY(
        context_->check(api.cuGraphNodeGetDependencies_v2(node, before.data(), data.data(), &edges),
                        "cuGraphNodeGetDependencies"));
    shape_.nodes.push_back(type);
    shape_.edges += edges;
  }
  return {};
}

/// A stream for one capture; used again unless something went wrong with it.
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
      of_.idle_.reserve(4);  // as many as instances are usually made at once
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
    if (of_.idle_.size() == of_.idle_.capacity()) return false;
    of_.idle_.push_back(handle_);
    return true;
  }

  NativeCaptures& of_;
  CUstream handle_ = nullptr;
  bool clean_ = false;
};

NativeCaptures::~NativeCaptures() {
  for (const CUstream stream : idle_) {
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
  Result<void> called;
  std::exception_ptr thrown;
  try {
    called = native.call(stream.handle());
  } catch (...) {
    thrown = std::current_exception();
  }
  CUgraph graph = nullptr;
  const CUresult code = api.cuStreamEndCapture(stream.handle(), &graph);
  CapturedGraph captured(context_, graph);
  const Result<void> ended = context_->check(code, "cuStreamEndCapture");
  if (ended.ok()) stream.is_clean();
  if (thrown != nullptr) std::rethrow_exception(thrown);
  if (!called.ok()) return called.error();
  if (!ended.ok()) return broken(native, ended.error());
  REFRAIN_TRY(captured.look());
  return captured;
}

Result<void> not_left_capturing(const Context& context, CUstream stream,
                                const BoundNative& native) {
  if (!end_capture(context, stream)) return {};
  return Error(ErrorKind::wrong_state,
               "The body of " + of(native) +
                   " has left its stream in a capture, so its work would not run but become part "
                   "of a graph. That capture has been ended, and what it held is dropped.");
}

}  // namespace refrain::cuda
