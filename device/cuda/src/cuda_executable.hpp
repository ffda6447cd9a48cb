// A sealed graph as the driver's own: one node for each of ours, with the edges that were derived,
// and around a function of the program's the copies of its views. Private to device/cuda.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "cuda_stream.hpp"
#include "host_call.hpp"
#include "kernel_images.hpp"
#include "launch_attributes.hpp"
#include "native_capture.hpp"

namespace refrain::cuda {

/// The replays whose functions have not all run yet. The driver calls a function with nothing that
/// says for which replay, but one executable never runs twice at once, so it is counted.
class ReplaysInFlight {
 public:
  struct Replay {
    Ticket ticket = 0;
    Completion* completion = nullptr;
    std::size_t left = 0;  // functions that have not run
    bool failed = false;   // one has: the others do not run
  };
  void add(Replay replay) {
    const Lock lock(mutex_);
    replays_.push_back(std::move(replay));
  }
  /// Takes back the newest, which the driver would not take.
  void withdraw() noexcept {
    const Lock lock(mutex_);
    replays_.pop_back();
  }
  /// The replay of the `nth` run of a function, from 0.
  Replay& of(std::uint64_t nth) noexcept {
    const Lock lock(mutex_);
    return replays_[nth - gone_];
  }
  [[nodiscard]] bool failed(const Replay& replay) noexcept {
    const Lock lock(mutex_);
    return replay.failed;
  }
  void fail(Replay& replay) noexcept {
    const Lock lock(mutex_);
    replay.failed = true;
  }
  void one_ran(Replay& replay) noexcept {
    const Lock lock(mutex_);
    --replay.left;
    while (!replays_.empty() && replays_.front().left == 0) {
      replays_.pop_front();
      ++gone_;
    }
  }

 private:
  Mutex mutex_;
  std::deque<Replay> replays_ REFRAIN_GUARDED_BY(mutex_);
  std::uint64_t gone_ REFRAIN_GUARDED_BY(mutex_) = 0;
};

/// A kernel's parameters, where the driver looks for them when a node is made or changed.
struct KernelPiece {
  CUDA_KERNEL_NODE_PARAMS params{};
  std::vector<std::byte> block;
  std::vector<void*>
      arguments;  // into the block; one buffer would do, but not for cooperative ones
  DriverAttributes attributes{};
};
/// A copy; of the two addresses at most one is the host's.
struct CopyPiece {
  std::uint64_t from = 0;
  std::uint64_t to = 0;
  std::uint64_t bytes = 0;
  CUmemorytype from_type = CU_MEMORYTYPE_DEVICE;
  CUmemorytype to_type = CU_MEMORYTYPE_DEVICE;
};
struct FillPiece {
  CUDA_MEMSET_NODE_PARAMS params{};
};
/// What the body of native work gave, in a child node.
struct NativePiece {
  const NativeFunction* function = nullptr;
  std::vector<DeviceMemory> views;
  DeviceMemory workspace;
  std::optional<NativeShape> shape;  ///< Of its first capture, which the others must have too.
};
class CudaExecutable;

struct HostPiece {
  std::shared_ptr<Context> context;
  CudaExecutable* of = nullptr;  // there while functions may run
  std::size_t node = 0;          // of the sealed graph
  std::unique_ptr<StagedCall> call;
  std::uint64_t runs = 0;  // for the driver's thread
};
/// One node of the driver's.
struct Piece {
  std::size_t node = 0;  // of the sealed graph
  CUgraphNode handle = nullptr;
  std::variant<KernelPiece, CopyPiece, FillPiece, HostPiece, NativePiece> what;
};
/// A place that holds an address inside a region.
struct Patch {
  std::size_t piece = 0;
  std::byte* place = nullptr;  // eight bytes
  std::uint64_t offset = 0;
};

/// For one thread at a time.
class CudaExecutable final : public Executable {
 public:
  /// Instantiates, and uploads by way of `upload`, a stream that outlives it. A driver refuses a
  /// copy or fill without an address, so while a region has none that is left to the `rebind` which
  /// gives the last one.
  static Result<std::unique_ptr<CudaExecutable>> make(
      const std::shared_ptr<Context>& context, const std::shared_ptr<NativeCaptures>& captures,
      CUstream upload, const SealedGraph& graph,
      std::span<const std::shared_ptr<const KernelCode>> code,
      std::span<const std::uint64_t> addresses);
  ~CudaExecutable() override;
  CudaExecutable(const CudaExecutable&) = delete;
  CudaExecutable& operator=(const CudaExecutable&) = delete;

  Result<void> rebind(std::uint32_t region, std::uint64_t address);
  /// One driver call.
  Result<void> run(CudaStream& stream, Ticket ticket);

 private:
  CudaExecutable(std::shared_ptr<Context> context, std::shared_ptr<NativeCaptures> captures,
                 CUstream upload, SealedGraph graph,
                 std::span<const std::shared_ptr<const KernelCode>> code);

  // The pieces of a node, unbound.
  Result<void> lay_out(std::size_t at, const KernelCall& call);
  Result<void> lay_out(std::size_t at, const CopyCall& call);
  Result<void> lay_out(std::size_t at, const FillCall& call);
  Result<void> lay_out(std::size_t at, const HostCall& call);
  Result<void> lay_out(std::size_t at, const NativeFunctionCall& call);
  Piece& piece(std::size_t node);
  void patch(const Argument& argument, std::uint64_t* address);

  Result<void> build();
  /// Makes the driver's graph, anew if there is one, on the addresses as they are.
  Result<void> rebuild();
  void place(std::size_t region, std::uint64_t address) noexcept;
  void let_go() noexcept;
  Result<void> add(Piece& piece, std::span<const CUgraphNode> after);
  /// Whether it may start beside the kernels that it follows, and edges that say so.
  [[nodiscard]] bool starts_early(const Node& node) const noexcept;
  Result<void> add_early_edges(std::span<const CUgraphNode> from, CUgraphNode to);
  Result<void> instantiate();
  Result<void> upload();
  Result<void> update(Piece& piece);
  /// The work of native work on its addresses, the same as ever.
  Result<CapturedGraph> capture(Piece& piece);
  static void CUDA_CB call_host(void* piece);
  void run_host(HostPiece& piece) noexcept;

  std::shared_ptr<Context> context_;
  std::shared_ptr<NativeCaptures> captures_;
  CUstream upload_;
  SealedGraph graph_;
  std::vector<std::shared_ptr<const KernelCode>> code_;
  /// In the order of their nodes. Shared with the streams that replay functions of it.
  std::shared_ptr<std::deque<Piece>> shared_pieces_ = std::make_shared<std::deque<Piece>>();
  std::deque<Piece>& pieces_ = *shared_pieces_;
  std::vector<std::vector<Patch>> patches_;  // one list a region
  std::vector<bool> bound_;                  // whether a region has an address
  std::size_t functions_ = 0;
  ReplaysInFlight in_flight_;
  CUgraph template_ = nullptr;  // kept: its nodes name those of the executable
  CUgraphExec exec_ = nullptr;
};

}  // namespace refrain::cuda
