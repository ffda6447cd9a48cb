#include "host_executable.hpp"

#include <boost/container/small_vector.hpp>
#include <cstring>
#include <utility>

#include "refrain/device/node_error.hpp"
#include "refrain/host/kernel_registry.hpp"

namespace refrain::host {
namespace {

std::byte* pointer(std::uint64_t address) noexcept { return reinterpret_cast<std::byte*>(address); }

Result<void> run_one(const BoundKernel& kernel) {
  const Call call{kernel.block.data(), kernel.view_bytes.data(), &kernel.grid};
  return static_cast<const HostKernel*>(kernel.code)->body(call);
}

Result<void> run_one(const BoundCopy& copy) {
  std::memcpy(pointer(copy.destination), pointer(copy.source), copy.bytes);
  return {};
}

Result<void> run_one(const BoundHost& host) {
  boost::container::small_vector<std::span<std::byte>, 8> views;
  for (const DeviceMemory& view : host.views) {
    views.emplace_back(pointer(view.address), view.bytes);
  }
  return host.function->body(std::span<const std::span<std::byte>>(views.data(), views.size()));
}

Result<void> run_one(const BoundNative& native) { return native.call(nullptr); }

Result<void> run_one(const BoundFill& fill) {
  std::byte* const to = pointer(fill.destination);
  if (fill.width == 1) {
    std::memset(to, static_cast<int>(fill.pattern), fill.bytes);
    return {};
  }
  for (std::uint64_t at = 0; at < fill.bytes; at += fill.width) {
    std::memcpy(to + at, &fill.pattern, fill.width);
  }
  return {};
}

}  // namespace

Result<void> run_node(const BoundNode& node) {
  return std::visit([](const auto& each) { return run_one(each); }, node);
}

HostExecutable::HostExecutable(const SealedGraph& graph,
                               std::span<const std::shared_ptr<const KernelCode>> code,
                               std::span<const std::uint64_t> addresses)
    : graph_(graph), code_(code.begin(), code.end()), patches_(graph.regions().size()) {
  // Sized first: nodes and patches point into these. A block begins at a multiple of 16, which is
  // the strictest alignment that a parameter has.
  std::size_t block_bytes = 0;
  std::size_t views = 0;
  std::size_t function_views = 0;
  for (const Node& node : graph_.nodes()) {
    if (const auto* const call = std::get_if<KernelCall>(&node.call)) {
      block_bytes += std::size_t{call->block.count + 15U} / 16U * 16U;
      views += node.arguments.count;
    } else if (std::holds_alternative<HostCall>(node.call) ||
               std::holds_alternative<NativeFunctionCall>(node.call)) {
      function_views += node.arguments.count;
    }
  }
  blocks_.resize(block_bytes);
  view_bytes_.resize(views);
  function_views_.resize(function_views);
  nodes_.reserve(graph_.nodes().size());

  std::byte* block = blocks_.data();
  std::uint64_t* sizes = view_bytes_.data();
  DeviceMemory* view = function_views_.data();
  const auto lay_out_views = [&](std::span<const Argument> arguments) {
    const std::span<const DeviceMemory> views_of_node(view, arguments.size());
    for (const Argument& argument : arguments) {
      view->bytes = argument.range.size();
      patches_[argument.region].push_back({&view->address, nullptr, argument.range.begin});
      ++view;
    }
    return views_of_node;
  };
  for (const Node& node : graph_.nodes()) {
    const std::span<const Argument> arguments = graph_.arguments(node);
    if (const auto* const call = std::get_if<KernelCall>(&node.call)) {
      const std::span<const std::byte> recorded = graph_.block(*call);
      if (!recorded.empty()) std::memcpy(block, recorded.data(), recorded.size());
      for (std::size_t at = 0; at < arguments.size(); ++at) {
        sizes[at] = arguments[at].range.size();
        patches_[arguments[at].region].push_back(
            {nullptr, block + arguments[at].offset, arguments[at].range.begin});
      }
      nodes_.emplace_back(BoundKernel{code_[call->kernel].get(),
                                      call->grid,
                                      {block, recorded.size()},
                                      {sizes, arguments.size()}});
      block += (recorded.size() + 15U) / 16U * 16U;
      sizes += arguments.size();
    } else if (const auto* const host = std::get_if<HostCall>(&node.call)) {
      nodes_.emplace_back(BoundHost{&graph_.function(*host), lay_out_views(arguments)});
    } else if (const auto* const native = std::get_if<NativeFunctionCall>(&node.call)) {
      const NativeFunction& function = graph_.function(*native);
      const bool has_workspace = function.workspace_bytes != 0;  // its last argument
      auto& bound = std::get<BoundNative>(nodes_.emplace_back(BoundNative{&function, {}, {}}));
      bound.views = lay_out_views(arguments.first(arguments.size() - (has_workspace ? 1 : 0)));
      if (has_workspace) {
        bound.workspace.bytes = function.workspace_bytes;
        patches_[arguments.back().region].push_back({&bound.workspace.address, nullptr, 0});
      }
    } else if (std::holds_alternative<CopyCall>(node.call)) {
      auto& copy =
          std::get<BoundCopy>(nodes_.emplace_back(BoundCopy{0, 0, arguments[0].range.size()}));
      patches_[arguments[0].region].push_back({&copy.source, nullptr, arguments[0].range.begin});
      patches_[arguments[1].region].push_back(
          {&copy.destination, nullptr, arguments[1].range.begin});
    } else {
      const auto& filled = std::get<FillCall>(node.call);
      auto& fill = std::get<BoundFill>(nodes_.emplace_back(
          BoundFill{0, arguments[0].range.size(), filled.pattern, filled.width}));
      patches_[arguments[0].region].push_back(
          {&fill.destination, nullptr, arguments[0].range.begin});
    }
  }
  for (std::uint32_t region = 0; region < addresses.size(); ++region) {
    rebind(region, addresses[region]);
  }
}

void HostExecutable::apply(const Patch& patch, std::uint64_t base) noexcept {
  const std::uint64_t address = base + patch.offset;
  if (patch.address != nullptr) {
    *patch.address = address;
  } else {
    std::memcpy(patch.place, &address, sizeof(address));
  }
}

void HostExecutable::rebind(std::uint32_t region, std::uint64_t address) noexcept {
  for (const Patch& patch : patches_[region]) apply(patch, address);
}

Result<void> HostExecutable::run() const {
  std::size_t at = 0;
  Result<void> ran;
  try {
    for (; at < nodes_.size() && ran.ok(); ++at) ran = run_node(nodes_[at]);
  } catch (...) {
    rethrow_of_node(graph_, at);
  }
  if (!ran.ok()) return of_node(graph_, at - 1, ran.error());
  return ran;
}

}  // namespace refrain::host
