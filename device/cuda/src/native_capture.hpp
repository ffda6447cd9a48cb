// Native work captured: a body gives its work to a private stream while that is captured, and what
// comes of it is a graph that nobody runs, for a child node of an executable. The capture is always
// ended, whatever the body did. Private to device/cuda.
#pragma once

#include <boost/container/static_vector.hpp>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "context.hpp"
#include "refrain/device/backend.hpp"

namespace refrain::cuda {

/// What a body made: the kinds of its nodes in the order in which it made them, and their edges by
/// the places of both, sorted.
struct NativeShape {
  std::vector<CUgraphNodeType> nodes;
  std::vector<std::pair<std::ptrdiff_t, std::size_t>> edges;

  friend bool operator==(const NativeShape&, const NativeShape&) = default;
};

class CapturedGraph {
 public:
  CapturedGraph(std::shared_ptr<Context> context, CUgraph handle) noexcept
      : context_(std::move(context)), handle_(handle) {}
  CapturedGraph(CapturedGraph&& other) noexcept
      : context_(std::move(other.context_)),
        handle_(std::exchange(other.handle_, nullptr)),
        shape_(std::move(other.shape_)) {}
  CapturedGraph& operator=(CapturedGraph&&) = delete;
  ~CapturedGraph();

  [[nodiscard]] CUgraph handle() const noexcept { return handle_; }
  [[nodiscard]] const NativeShape& shape() const noexcept { return shape_; }

 private:
  friend class NativeCaptures;
  /// Looks at what was captured. Refuses what no child node may hold.
  Result<void> look();

  std::shared_ptr<Context> context_;
  CUgraph handle_;
  NativeShape shape_;
};

/// Safe to share.
class NativeCaptures {
 public:
  /// With `checks` its streams wait for the default stream, so that work which strays there breaks
  /// the capture instead of being missing from it.
  NativeCaptures(std::shared_ptr<Context> context, bool checks) noexcept
      : context_(std::move(context)), checks_(checks) {}
  NativeCaptures(const NativeCaptures&) = delete;
  NativeCaptures& operator=(const NativeCaptures&) = delete;
  ~NativeCaptures();

  /// What the body of `native` gives its stream. Answers the body's own error first, then what it
  /// has done to its capture; what it throws goes through. It has not run any of that work.
  Result<CapturedGraph> capture(const BoundNative& native);

 private:
  class OneStream;
  static constexpr std::size_t kMostIdle = 4;  // as many as instances are usually made at once

  std::shared_ptr<Context> context_;
  bool checks_;
  Mutex mutex_;
  boost::container::static_vector<CUstream, kMostIdle> idle_ REFRAIN_GUARDED_BY(mutex_);
};

/// Ends the capture of `stream`, if there is one; what it had captured is dropped. Answers whether
/// there was one.
bool end_capture(const Context& context, CUstream stream) noexcept;

}  // namespace refrain::cuda
