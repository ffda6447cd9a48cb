// A graph laid out for the host: one flat list of calls in sealed order, each with its parameter
// block and addresses in place. Private to device/host.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "refrain/device/backend.hpp"

namespace refrain::host {

/// Runs one node now. A kernel's or function's error is the answer; what it throws goes through.
Result<void> run_node(const BoundNode& node);

class HostExecutable final : public Executable {
 public:
  HostExecutable(const SealedGraph& graph, std::span<const std::shared_ptr<const KernelCode>> code,
                 std::span<const std::uint64_t> addresses);

  void rebind(std::uint32_t region, std::uint64_t address) noexcept;
  /// Runs all nodes in order; stops at the first that fails and names it. One that throws leaves as
  /// `NodeThrew`.
  Result<void> run() const;

 private:
  /// A place that holds an address inside a region.
  struct Patch {
    std::uint64_t* address = nullptr;  // of a copy, a fill, or a view or workspace of a function
    std::byte* place = nullptr;        // in a parameter block
    std::uint64_t offset = 0;
  };
  void apply(const Patch& patch, std::uint64_t base) noexcept;

  SealedGraph graph_;
  std::vector<std::shared_ptr<const KernelCode>> code_;
  std::vector<std::byte> blocks_;
  std::vector<std::uint64_t> view_bytes_;
  std::vector<DeviceMemory> function_views_;  // of host and native work
  std::vector<BoundNode> nodes_;
  std::vector<std::vector<Patch>> patches_;  // one list a region
};

}  // namespace refrain::host
