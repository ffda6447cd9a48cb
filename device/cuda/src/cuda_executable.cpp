#include "cuda_executable.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "driver_error.hpp"
#include "refrain/device/node_error.hpp"

namespace refrain::cuda {
namespace {

constexpr char kPreparing[] = "preparing";

bool is_launch(const Node& node) noexcept { return std::holds_alternative<KernelCall>(node.call); }

/// Of one line. The library's own addresses are 64-bit numbers.
CUDA_MEMCPY3D line(std::uint64_t from, CUmemorytype from_type, std::uint64_t to,
                   CUmemorytype to_type, std::uint64_t bytes) noexcept {
  CUDA_MEMCPY3D copy{};
  copy.srcMemoryType = from_type;
  copy.dstMemoryType = to_type;
  if (from_type == CU_MEMORYTYPE_HOST) {
    copy.srcHost = reinterpret_cast<const void*>(from);
  } else {
    copy.srcDevice = from;
  }
  if (to_type == CU_MEMORYTYPE_HOST) {
    copy.dstHost = reinterpret_cast<void*>(to);
  } else {
    copy.dstDevice = to;
  }
  copy.WidthInBytes = bytes;
  copy.Height = 1;
  copy.Depth = 1;
  return copy;
}

}  // namespace

CudaExecutable::CudaExecutable(std::shared_ptr<Context> context,
                               std::shared_ptr<NativeCaptures> captures, CUstream upload,
                               SealedGraph graph,
                               std::span<const std::shared_ptr<const KernelCode>> code)
    : context_(std::move(context)),
      captures_(std::move(captures)),
      upload_(upload),
      graph_(std::move(graph)),
      code_(code.begin(), code.end()),
      patches_(graph_.regions().size()),
      bound_(graph_.regions().size()) {}

CudaExecutable::~CudaExecutable() { let_go(); }

void CudaExecutable::let_go() noexcept {
  context_->destroy([exec = std::exchange(exec_, nullptr),
                     graph = std::exchange(template_, nullptr)](const DriverApi& api) {
    if (exec != nullptr) api.cuGraphExecDestroy(exec);
    if (graph != nullptr) api.cuGraphDestroy(graph);
  });
}

Result<std::unique_ptr<CudaExecutable>> CudaExecutable::make(
    const std::shared_ptr<Context>& context, const std::shared_ptr<NativeCaptures>& captures,
    CUstream upload, const SealedGraph& graph,
    std::span<const std::shared_ptr<const KernelCode>> code,
    std::span<const std::uint64_t> addresses) {
  std::unique_ptr<CudaExecutable> made(new CudaExecutable(context, captures, upload, graph, code));
  const std::span<const Node> nodes = made->graph_.nodes();
  for (std::size_t at = 0; at < nodes.size(); ++at) {
    const Result<void> laid_out =
        std::visit([&](const auto& call) { return made->lay_out(at, call); }, nodes[at].call);
    if (!laid_out.ok()) return of_node(made->graph_, at, laid_out.error(), kPreparing);
  }
  for (std::size_t region = 0; region < addresses.size(); ++region) {
    if (addresses[region] != 0) made->place(region, addresses[region]);
  }
  REFRAIN_TRY(made->rebuild());
  return made;
}

Result<void> CudaExecutable::rebuild() {
  if (std::find(bound_.begin(), bound_.end(), false) != bound_.end()) return {};
  const Entered here(*context_);
  REFRAIN_TRY(here.check(*context_));
  let_go();
  REFRAIN_TRY(build());
  REFRAIN_TRY(instantiate());
  return upload();
}

// The first launch would do it else, and pay for it.
Result<void> CudaExecutable::upload() {
  return context_->check(context_->api().cuGraphUpload(exec_, upload_), "cuGraphUpload");
}

Piece& CudaExecutable::piece(std::size_t node) {
  Piece& made = pieces_.emplace_back();
  made.node = node;
  return made;
}

void CudaExecutable::patch(const Argument& argument, std::uint64_t* address) {
  patches_[argument.region].push_back(
      {pieces_.size() - 1, reinterpret_cast<std::byte*>(address), argument.range.begin});
}

Result<void> CudaExecutable::lay_out(std::size_t at, const KernelCall& call) {
  const auto& code = static_cast<const CudaKernel&>(*code_[call.kernel]);
  REFRAIN_TRY(code.takes(call.grid.shared_bytes));
  const Node& node = graph_.nodes()[at];
  auto& kernel = piece(at).what.emplace<KernelPiece>();
  const std::span<const std::byte> block = graph_.block(call);
  kernel.block.assign(block.begin(), block.end());
  for (const KernelParameter& each : code.layout()) {
    kernel.arguments.push_back(kernel.block.data() + each.offset);
  }
  CUDA_KERNEL_NODE_PARAMS& params = kernel.params;
  params.func = code.function();
  params.gridDimX = call.grid.blocks.x;
  params.gridDimY = call.grid.blocks.y;
  params.gridDimZ = call.grid.blocks.z;
  params.blockDimX = call.grid.threads.x;
  params.blockDimY = call.grid.threads.y;
  params.blockDimZ = call.grid.threads.z;
  params.sharedMemBytes = call.grid.shared_bytes;
  kernel.attributes = node_attributes(call.grid.attributes);
  params.kernelParams = kernel.arguments.data();
  for (const Argument& argument : graph_.arguments(node)) {
    patches_[argument.region].push_back(
        {pieces_.size() - 1, kernel.block.data() + argument.offset, argument.range.begin});
  }
  return {};
}

Result<void> CudaExecutable::lay_out(std::size_t at, const CopyCall&) {
  const std::span<const Argument> arguments = graph_.arguments(graph_.nodes()[at]);
  auto& copy = piece(at).what.emplace<CopyPiece>();
  copy.bytes = arguments[0].range.size();
  patch(arguments[0], &copy.from);
  patch(arguments[1], &copy.to);
  return {};
}

Result<void> CudaExecutable::lay_out(std::size_t at, const FillCall& call) {
  const std::span<const Argument> arguments = graph_.arguments(graph_.nodes()[at]);
  CUDA_MEMSET_NODE_PARAMS& params = piece(at).what.emplace<FillPiece>().params;
  params.elementSize = call.width;
  params.value = call.pattern;
  params.width = arguments[0].range.size() / call.width;
  params.height = 1;
  static_assert(sizeof(params.dst) == sizeof(std::uint64_t));
  patches_[arguments[0].region].push_back(
      {pieces_.size() - 1, reinterpret_cast<std::byte*>(&params.dst), arguments[0].range.begin});
  return {};
}

Result<void> CudaExecutable::lay_out(std::size_t at, const NativeFunctionCall& call) {
  std::span<const Argument> arguments = graph_.arguments(graph_.nodes()[at]);
  NativePiece& native = piece(at).what.emplace<NativePiece>();
  native.function = &graph_.function(call);
  if (const std::uint64_t bytes = native.function->workspace_bytes; bytes != 0) {
    native.workspace.bytes = bytes;
    patch(arguments.back(), &native.workspace.address);
    arguments = arguments.first(arguments.size() - 1);
  }
  for (const Argument& argument : arguments) native.views.push_back({0, argument.range.size()});
  for (std::size_t view = 0; view < arguments.size(); ++view) {
    patch(arguments[view], &native.views[view].address);
  }
  return {};
}

Result<void> CudaExecutable::lay_out(std::size_t at, const HostCall& call) {
  const std::span<const Argument> arguments = graph_.arguments(graph_.nodes()[at]);
  std::vector<DeviceMemory> views;
  for (const Argument& argument : arguments) views.push_back({0, argument.range.size()});
  auto staged = StagedCall::make(context_, BoundHost{&graph_.function(call), views});
  if (!staged.ok()) return std::move(staged).error();
  std::vector<StagedView>& all = (*staged)->views();
  const auto host = [&](std::size_t view) {
    return reinterpret_cast<std::uint64_t>((*staged)->pinned(all[view]));
  };
  for (std::size_t view = 0; view < all.size(); ++view) {
    if (!all[view].read) continue;
    auto& copy = piece(at).what.emplace<CopyPiece>();
    copy = {0, host(view), all[view].bytes, CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_HOST};
    patch(arguments[view], &copy.from);
  }
  HostPiece& function = piece(at).what.emplace<HostPiece>();
  function.context = context_;
  function.of = this;
  function.node = at;
  ++functions_;
  for (std::size_t view = 0; view < all.size(); ++view) {
    if (!all[view].written) continue;
    auto& copy = piece(at).what.emplace<CopyPiece>();
    copy = {host(view), 0, all[view].bytes, CU_MEMORYTYPE_HOST, CU_MEMORYTYPE_DEVICE};
    patch(arguments[view], &copy.to);
  }
  function.call = *std::move(staged);
  return {};
}

void CudaExecutable::place(std::size_t region, std::uint64_t address) noexcept {
  bound_[region] = true;
  for (const Patch& patch : patches_[region]) {
    const std::uint64_t at = address + patch.offset;
    std::memcpy(patch.place, &at, sizeof(at));
  }
}

Result<void> CudaExecutable::build() {
  REFRAIN_TRY(context_->check(context_->api().cuGraphCreate(&template_, 0), "cuGraphCreate"));
  // What a node's followers wait for: its last pieces.
  std::vector<std::vector<CUgraphNode>> ends(graph_.nodes().size());
  auto each = pieces_.begin();
  for (std::size_t at = 0; at < ends.size(); ++at) {
    const Node& node = graph_.nodes()[at];
    std::vector<CUgraphNode> before;
    std::vector<CUgraphNode> kernels;  // beside which it may start
    for (const std::uint32_t dependency : graph_.dependencies(node)) {
      const bool early = starts_early(node) && is_launch(graph_.nodes()[dependency]);
      std::vector<CUgraphNode>& among = early ? kernels : before;
      among.insert(among.end(), ends[dependency].begin(), ends[dependency].end());
    }
    // Copies to a function side by side, the function behind them, copies from it behind that.
    std::vector<CUgraphNode> made;
    for (; each != pieces_.end() && each->node == at; ++each) {
      const bool function = std::holds_alternative<HostPiece>(each->what);
      if (function && !made.empty()) before = std::exchange(made, {});
      Result<void> added = add(*each, before);
      if (added.ok()) added = add_early_edges(kernels, each->handle);
      if (!added.ok()) return of_node(graph_, at, added.error(), kPreparing);
      if (function) {
        before = {each->handle};
        made.clear();
      } else {
        made.push_back(each->handle);
      }
    }
    ends[at] = made.empty() ? before : made;
  }
  return {};
}

bool CudaExecutable::starts_early(const Node& node) const noexcept {
  const auto* const call = std::get_if<KernelCall>(&node.call);
  return call != nullptr && call->grid.attributes.programmatic && context_->can_start_early();
}

Result<void> CudaExecutable::add_early_edges(std::span<const CUgraphNode> from, CUgraphNode to) {
  CUgraphEdgeData data{};
  data.from_port = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC;
  data.type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
  for (CUgraphNode each : from) {
    REFRAIN_TRY(
        context_->check(context_->api().cuGraphAddDependencies_v2(template_, &each, &to, &data, 1),
                        "cuGraphAddDependencies"));
  }
  return {};
}

Result<void> CudaExecutable::add(Piece& piece, std::span<const CUgraphNode> after) {
  const DriverApi& api = context_->api();
  const CUgraphNode* const before = after.empty() ? nullptr : after.data();
  CUgraphNode& node = piece.handle;
  if (auto* const kernel = std::get_if<KernelPiece>(&piece.what)) {
    REFRAIN_TRY(context_->check(
        api.cuGraphAddKernelNode_v2(&node, template_, before, after.size(), &kernel->params),
        "cuGraphAddKernelNode"));
    for (const CUlaunchAttribute& each : kernel->attributes) {
      REFRAIN_TRY(context_->check(api.cuGraphKernelNodeSetAttribute(node, each.id, &each.value),
                                  "cuGraphKernelNodeSetAttribute"));
    }
    return {};
  }
  if (const auto* const copy = std::get_if<CopyPiece>(&piece.what)) {
    const CUDA_MEMCPY3D params =
        line(copy->from, copy->from_type, copy->to, copy->to_type, copy->bytes);
    return context_->check(api.cuGraphAddMemcpyNode(&node, template_, before, after.size(), &params,
                                                    context_->handle()),
                           "cuGraphAddMemcpyNode");
  }
  if (const auto* const fill = std::get_if<FillPiece>(&piece.what)) {
    return context_->check(api.cuGraphAddMemsetNode(&node, template_, before, after.size(),
                                                    &fill->params, context_->handle()),
                           "cuGraphAddMemsetNode");
  }
  if (std::holds_alternative<NativePiece>(piece.what)) {
    const Result<CapturedGraph> captured = capture(piece);
    if (!captured.ok()) return captured.error();
    return context_->check(
        api.cuGraphAddChildGraphNode(&node, template_, before, after.size(), captured->handle()),
        "cuGraphAddChildGraphNode");
  }
  const CUDA_HOST_NODE_PARAMS params{&call_host, &std::get<HostPiece>(piece.what)};
  return context_->check(api.cuGraphAddHostNode(&node, template_, before, after.size(), &params),
                         "cuGraphAddHostNode");
}

Result<CapturedGraph> CudaExecutable::capture(Piece& piece) {
  auto& native = std::get<NativePiece>(piece.what);
  Result<CapturedGraph> captured =
      captures_->capture({native.function, native.views, native.workspace});
  if (!captured.ok()) return captured;
  if (!native.shape) native.shape = captured->shape();
  if (*native.shape == captured->shape()) return captured;
  return Error(
      ErrorKind::invalid_argument,
      "Its body made other work than before: " + std::to_string(captured->shape().nodes.size()) +
          " nodes and " + std::to_string(captured->shape().edges.size()) + " edges, where it was " +
          std::to_string(native.shape->nodes.size()) + " and " +
          std::to_string(native.shape->edges.size()) +
          ", or of other kinds or otherwise joined. (It must make the same work on whatever "
          "addresses.)");
}

Result<void> CudaExecutable::instantiate() {
  CUDA_GRAPH_INSTANTIATE_PARAMS params{};
  Result<void> made =
      context_->check(context_->api().cuGraphInstantiateWithParams(&exec_, template_, &params),
                      "cuGraphInstantiateWithParams");
  if (made.ok()) return made;
  exec_ = nullptr;
  for (const Piece& each : pieces_) {
    if (each.handle == params.hErrNode_out && each.handle != nullptr) {
      return of_node(graph_, each.node, made.error(), kPreparing);
    }
  }
  return made.error().with_context("While preparing graph " + graph_.title() + ".");
}

Result<void> CudaExecutable::update(Piece& piece) {
  const DriverApi& api = context_->api();
  if (auto* const kernel = std::get_if<KernelPiece>(&piece.what)) {
    return context_->check(
        api.cuGraphExecKernelNodeSetParams_v2(exec_, piece.handle, &kernel->params),
        "cuGraphExecKernelNodeSetParams");
  }
  if (const auto* const copy = std::get_if<CopyPiece>(&piece.what)) {
    const CUDA_MEMCPY3D params =
        line(copy->from, copy->from_type, copy->to, copy->to_type, copy->bytes);
    return context_->check(
        api.cuGraphExecMemcpyNodeSetParams(exec_, piece.handle, &params, context_->handle()),
        "cuGraphExecMemcpyNodeSetParams");
  }
  if (const auto* const fill = std::get_if<FillPiece>(&piece.what)) {
    return context_->check(
        api.cuGraphExecMemsetNodeSetParams(exec_, piece.handle, &fill->params, context_->handle()),
        "cuGraphExecMemsetNodeSetParams");
  }
  return {};  // a function's own node has no address
}

Result<void> CudaExecutable::rebind(std::uint32_t region, std::uint64_t address) {
  const Entered here(*context_);
  REFRAIN_TRY(here.check(*context_));
  place(region, address);
  if (exec_ == nullptr) return rebuild();
  const std::vector<Patch>& patches = patches_[region];
  for (std::size_t at = 0; at < patches.size(); ++at) {
    // One call a node, also when it takes several views of the region.
    if (at + 1 < patches.size() && patches[at + 1].piece == patches[at].piece) continue;
    Piece& piece = pieces_[patches[at].piece];
    Result<void> updated;
    if (std::holds_alternative<NativePiece>(piece.what)) {
      const Result<CapturedGraph> captured = capture(piece);
      if (!captured.ok()) return of_node(graph_, piece.node, captured.error(), "binding");
      updated = context_->check(context_->api().cuGraphExecChildGraphNodeSetParams(
                                    exec_, piece.handle, captured->handle()),
                                "cuGraphExecChildGraphNodeSetParams");
    } else {
      updated = update(piece);
    }
    if (updated.ok()) continue;
    REFRAIN_TRY(context_->alive());
    return rebuild();  // once: a driver may refuse to change what it can make anew
  }
  return {};
}

Result<void> CudaExecutable::run(CudaStream& stream, Ticket ticket) {
  if (exec_ == nullptr) {
    return Error(ErrorKind::device_refused,
                 "Graph " + graph_.title() +
                     " has no executable, because it could not be made when it was last bound.");
  }
  if (functions_ != 0) {
    stream.keep(ticket, shared_pieces_);
    in_flight_.add({ticket, &stream.completion(), functions_});
  }
  Result<void> launched = context_->check(
      context_->attempt([&] { return context_->api().cuGraphLaunch(exec_, stream.handle()); }),
      "cuGraphLaunch");
  if (launched.ok()) {
    stream.given(ticket);
  } else if (functions_ != 0) {
    in_flight_.withdraw();
  }
  return launched;
}

void CudaExecutable::call_host(void* piece) {
  auto& host = *static_cast<HostPiece*>(piece);
  const InDriverCallback here(*host.context);
  if (here.may_run()) host.of->run_host(host);
}

void CudaExecutable::run_host(HostPiece& piece) noexcept {
  ReplaysInFlight::Replay& replay = in_flight_.of(piece.runs++);
  if (!in_flight_.failed(replay)) {
    const Result<void> ran = replay.completion->run(replay.ticket, [&]() -> Result<void> {
      try {
        const Result<void> called = piece.call->call();
        if (!called.ok()) return of_node(graph_, piece.node, called.error());
        return {};
      } catch (...) {
        rethrow_of_node(graph_, piece.node);
      }
    });
    if (!ran.ok()) in_flight_.fail(replay);
  }
  in_flight_.one_ran(replay);
}

}  // namespace refrain::cuda
