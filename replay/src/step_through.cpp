// A step of an instance, node by node.
#include <utility>
#include <vector>

#include "hold.hpp"
#include "instance_body.hpp"
#include "refrain/device/node_error.hpp"
#include "refrain/replay/instance.hpp"

namespace refrain {
namespace {

/// Issues the nodes of an instance to a stream.
class NodeIssuer {
 public:
  NodeIssuer(InstanceBody& body, Stream& stream, Where where) noexcept
      : body_(body), graph_(body.plan->graph), stream_(stream), where_(where) {}

  Result<void> issue(const Node& node) {
    return std::visit([&](const auto& call) { return issue(node, call); }, node.call);
  }
  [[nodiscard]] std::vector<NodeWrite> writes(const Node& node) const {
    std::vector<NodeWrite> all;
    for (const Argument& argument : graph_.arguments(node)) {
      if (does_write(argument.direction)) all.push_back({argument.region, bound(argument)});
    }
    return all;
  }

 private:
  [[nodiscard]] BufferBinding bound(const Argument& argument) const {
    return body_.binding({argument.region, argument.range});
  }
  [[nodiscard]] std::vector<StagedArgument> staged(const Node& node) const {
    std::vector<StagedArgument> all;
    for (const Argument& argument : graph_.arguments(node)) {
      all.push_back({argument.offset, argument.direction, bound(argument)});
    }
    return all;
  }

  Result<void> issue(const Node& node, const KernelCall& call) {
    const KernelSignature& signature = graph_.kernels()[call.kernel];
    LoadedKernel kernel;
    kernel.id = intern_kernel_name(signature.name);
    kernel.signature = std::make_shared<const KernelSignature>(signature);
    kernel.code = body_.plan->code[call.kernel];
    kernel.device = body_.plan->device->number();
    Grid grid = call.grid;
    grid.where = where_;
    return stream_.launch_packed(kernel, grid, graph_.block(call), staged(node)).into_result();
  }
  Result<void> issue(const Node& node, const CopyCall&) {
    const std::span<const Argument> arguments = graph_.arguments(node);
    return stream_.copy_bytes(bound(arguments[1]), bound(arguments[0]), where_).into_result();
  }
  Result<void> issue(const Node& node, const FillCall& call) {
    return stream_.fill_bytes(bound(graph_.arguments(node)[0]), call.pattern, call.width, where_)
        .into_result();
  }
  Result<void> issue(const Node& node, const HostCall& call) {
    const auto& function = graph_.shared_function(call);
    const std::vector<std::byte> block(function->signature.block_bytes);  // addresses only
    return stream_.host_packed(function, block, staged(node), where_).into_result();
  }

  Result<void> issue(const Node& node, const NativeFunctionCall& call) {
    const auto& function = graph_.shared_function(call);
    const std::vector<std::byte> block(function->signature.block_bytes);
    std::vector<StagedArgument> views = staged(node);
    if (function->workspace_bytes != 0) views.pop_back();  // it gets one of its own
    return stream_.native_packed(function, block, views, where_).into_result();
  }

  InstanceBody& body_;
  const SealedGraph& graph_;
  Stream& stream_;
  Where where_;
};

}  // namespace

Result<void> Instance::step_through(Stream& stream, const AfterNode& after, Where where) {
  const Hold hold(body_);
  REFRAIN_TRY(hold.taken());
  InstanceBody& body = *hold.body();
  const SealedGraph& graph = body.plan->graph;
  REFRAIN_TRY(of_same_device(body, stream));
  REFRAIN_TRY(stream.outside_window("step through a graph"));
  REFRAIN_TRY(body.ready());
  NodeIssuer nodes(body, stream, where);
  for (std::uint32_t at = 0; at < graph.nodes().size(); ++at) {
    const Node& node = graph.nodes()[at];
    if (Result<void> issued = nodes.issue(node); !issued.ok()) {
      return of_node(graph, at, issued.error(), "stepping through");
    }
    REFRAIN_TRY(after(at, nodes.writes(node)));
  }
  return {};
}

}  // namespace refrain
