// A sealed graph: nodes over regions, and the order that their bytes and effects ask for. It knows
// no device, no memory and no address, and never changes; it is what a file holds.
//
// What must stay true: there is no SealedGraph that breaks a rule of its structure. Sealing and
// loading both go through `make`, which checks everything and derives the order itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "refrain/base/result.hpp"
#include "refrain/capture/host_function.hpp"
#include "refrain/capture/kernel_signature.hpp"
#include "refrain/capture/native_function.hpp"
#include "refrain/capture/node.hpp"
#include "refrain/capture/region.hpp"

namespace refrain {

/// The name of a graph that was given none.
inline constexpr const char* kUnnamedGraph = "graph";

/// What a graph is made of, before anybody has checked it. Slices point into the flat tables.
struct GraphParts {
  std::string name;
  std::vector<KernelSignature> kernels;
  std::vector<Region> regions;
  std::vector<Node> nodes;  ///< `dependencies` is left empty; `make` derives it.
  std::vector<Argument> arguments;
  std::vector<std::byte> parameter_bytes;
  std::vector<std::shared_ptr<const HostFunction>> host_functions{};
  std::vector<std::shared_ptr<const NativeFunction>> native_functions{};
  /// The order of the streams, as far as bytes and resources do not tell it: between nodes one of
  /// which is opaque. Ascending by `after`.
  std::vector<NodeOrder> stream_order{};
  Where sealed{};  ///< Where it was sealed; not saved.
};

/// What `node` does besides its arguments; nothing where it names a kernel that is not there.
const Effects& effects_of(const GraphParts& parts, const Node& node) noexcept;

/// Immutable; safe to share; copying shares.
class SealedGraph {
 public:
  /// Checks `parts` and derives edges, external reads and write sets. A node follows those whose
  /// bytes it needs (see docs/format.md), the one before it that uses the same resource, and those
  /// that `stream_order` says. Refuses, naming the node or region: an index, range or slice out of
  /// bounds; a region without bytes or with a name twice; a start of the wrong size; a constant
  /// without bytes or written; a block or a set of arguments that is not its kernel's; a copy
  /// between sizes or onto itself; a pattern that does not fit; a host or native function without a
  /// body; a workspace that is not the size asked for; an order of nodes that effects do not ask
  /// for; scratch that is read before it is written. Deriving the order can take steps, and memory
  /// with them, that grow with the square of the nodes; past `most_steps` it is given up
  /// (`file_limit`), which is for parts that nobody trusts.
  static Result<SealedGraph> make(GraphParts parts, std::uint64_t most_steps = 0xFFFFFFFFU);

  [[nodiscard]] const std::string& name() const noexcept { return body_->parts.name; }
  /// What messages call it: its name in quotes or, of one that was given none in this process, the
  /// place where it was sealed.
  [[nodiscard]] std::string title() const;
  /// What its replays are called in the story of a failure.
  [[nodiscard]] std::string replay_name() const;
  [[nodiscard]] std::span<const KernelSignature> kernels() const noexcept {
    return body_->parts.kernels;
  }
  [[nodiscard]] std::span<const Region> regions() const noexcept { return body_->parts.regions; }
  [[nodiscard]] std::span<const Node> nodes() const noexcept { return body_->parts.nodes; }

  [[nodiscard]] std::span<const Argument> arguments(const Node& node) const noexcept {
    return std::span(body_->parts.arguments).subspan(node.arguments.first, node.arguments.count);
  }
  [[nodiscard]] std::span<const std::uint32_t> dependencies(const Node& node) const noexcept {
    return std::span(body_->dependencies).subspan(node.dependencies.first, node.dependencies.count);
  }
  [[nodiscard]] const Effects& effects(const Node& node) const noexcept {
    return effects_of(body_->parts, node);
  }
  [[nodiscard]] const HostFunction& function(const HostCall& call) const noexcept {
    return *body_->parts.host_functions[call.function];
  }
  [[nodiscard]] const std::shared_ptr<const HostFunction>& shared_function(
      const HostCall& call) const noexcept {
    return body_->parts.host_functions[call.function];
  }
  [[nodiscard]] const std::shared_ptr<const NativeFunction>& shared_function(
      const NativeFunctionCall& call) const noexcept {
    return body_->parts.native_functions[call.function];
  }
  [[nodiscard]] const NativeFunction& function(const NativeFunctionCall& call) const noexcept {
    return *body_->parts.native_functions[call.function];
  }
  /// The parameter block of a kernel node, addresses zero.
  [[nodiscard]] std::span<const std::byte> block(const KernelCall& call) const noexcept {
    return std::span(body_->parts.parameter_bytes).subspan(call.block.first, call.block.count);
  }

  /// What is read before any of the graph's own nodes has written it; constants left out.
  [[nodiscard]] std::span<const RegionBytes> external_reads() const noexcept {
    return body_->external_reads;
  }
  /// The union of what its nodes write, sorted by region.
  [[nodiscard]] std::span<const RegionBytes> writes() const noexcept { return body_->writes; }
  /// Those of `writes` that are not read first: what a refused replay may claim (P2).
  [[nodiscard]] std::span<const RegionBytes> fresh_writes() const noexcept {
    return body_->fresh_writes;
  }
  /// The regions of host bytes that the recording holds (C14).
  [[nodiscard]] std::vector<std::uint32_t> frozen() const;

  /// The region of that name.
  [[nodiscard]] std::optional<std::uint32_t> region(std::string_view name) const noexcept;

  /// What a node is called: the name of its kernel or function, "copy" or "fill".
  [[nodiscard]] std::string_view node_name(const Node& node) const noexcept;

  /// Why this graph cannot be saved: one sentence a region that nobody said the role of, and one a
  /// node that is host or native work, or whose kernel only this process has. Empty when it can.
  [[nodiscard]] std::vector<std::string> not_portable() const;

 private:
  struct Body {
    GraphParts parts;
    std::vector<std::uint32_t> dependencies;
    std::vector<RegionBytes> external_reads;
    std::vector<RegionBytes> writes;
    std::vector<RegionBytes> fresh_writes;
  };
  explicit SealedGraph(std::shared_ptr<const Body> body) noexcept : body_(std::move(body)) {}

  std::shared_ptr<const Body> body_;
};

}  // namespace refrain
