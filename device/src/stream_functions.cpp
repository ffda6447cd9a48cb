// Host and native work on a stream: a function of the program's own instead of a kernel, in the
// same scope.
#include <boost/container/small_vector.hpp>
#include <utility>

#include "arguments.hpp"
#include "issuing.hpp"
#include "refrain/base/kernel_name.hpp"
#include "refrain/base/text.hpp"
#include "refrain/device/stream.hpp"
#include "refrain/device/stream_core.hpp"

namespace refrain {
namespace {

/// What native work that runs now needs until it has ended.
struct NativePins {
  std::shared_ptr<const NativeFunction> function;
  std::shared_ptr<MemoryBlock> workspace;
};

std::uint64_t workspace_bytes(const HostFunction&) noexcept { return 0; }
std::uint64_t workspace_bytes(const NativeFunction& function) noexcept {
  return function.workspace_bytes;
}

Error without_workspace(const Error& error, const KernelSignature& of, std::uint64_t bytes) {
  return error.with_context("While making a workspace of " + std::to_string(bytes) + " bytes for " +
                            quote(of.name) + ".");
}

}  // namespace

/// One piece of such work, checked.
struct Stream::FunctionWork {
  std::span<const StagedArgument> arguments;  ///< Its views, and the workspace of a node.
  std::span<const DeviceMemory> views;
  DeviceMemory workspace;  ///< Of a node.
  OpenScope& scope;
};

template <class Function, class Record, class Run>
ScopedOutcome<void> Stream::call_function(const std::shared_ptr<const Function>& function,
                                          const char* call, std::span<const std::byte> block,
                                          std::span<const StagedArgument> views, Where where,
                                          Record&& record, Run&& run) {
  return issuing(
      [&] { return call_function_now(*function, call, block, views, where, record, run); },
      [&](const Error& thrown) {
        fail_arguments(function->signature.name, grid(1, where), thrown, views);
      });
}

template <class Function, class Record, class Run>
ScopedOutcome<void> Stream::call_function_now(const Function& function, const char* call,
                                              std::span<const std::byte> block,
                                              std::span<const StagedArgument> views, Where where,
                                              Record& record, Run& run) {
  if (Result<void> allowed = may(call); !allowed.ok()) return std::move(allowed).error();
  const KernelSignature& signature = function.signature;
  const KernelId name = intern_kernel_name(signature.name);
  const IssuingCall in_use(*core_);
  CheckedArguments checked(write_set());
  checked.check(*core_->device, signature, block, views, "calling", where);
  boost::container::small_vector<StagedArgument, 8> arguments(views.begin(), views.end());
  std::shared_ptr<const Allocation> workspace;
  if (!checked.refused) {
    const std::uint64_t bytes = workspace_bytes(function);
    Result<std::shared_ptr<const Allocation>> made = workspace_to_record(signature, bytes);
    if (!made.ok()) checked.refused = without_workspace(made.error(), signature, bytes);
    if (made.ok()) workspace = *std::move(made);
  }
  if (workspace != nullptr) {
    arguments.push_back({signature.block_bytes, Direction::out, workspace->whole()});
    checked.writes.add(workspace->whole());
  }
  if (std::optional<Error> why = refused(name, checked, where)) return *std::move(why);
  const std::span<const BufferBinding> reads = span_of(checked.reads);

  about_to_run(name, 0, reads, checked.writes.bindings(), where);
  // O2: it reads device memory.
  auto scope =
      ExecuteScope<Stream>::launching(*this, name, reads, std::move(checked.writes), where);
  OpenScope& shown = scope.shown();
  return std::move(scope).execute([&](Stream&) -> Result<void> {
    boost::container::small_vector<DeviceMemory, 8> bound;
    for (std::size_t at = 0; at < views.size(); ++at) {
      bound.push_back({checked.addresses[at], views[at].binding.range.size()});
    }
    FunctionWork work{
        {arguments.data(), arguments.size()}, {bound.data(), bound.size()}, {}, shown};
    Window* const window = capturing();
    if (window == nullptr) return run(work);
    for (const Allocation* const allocation : checked.allocations) pin(*window, *allocation);
    if (workspace != nullptr) {
      Region unnamed = workspace->region();  // names are unique in a graph, and those of work not
      unnamed.name.clear();
      window->pin(workspace->id(), PinnedBuffer{std::move(unnamed), workspace});
      work.workspace = {workspace->address(), workspace->region().bytes};
    }
    return record(*window, work);
  });
}

ScopedOutcome<void> Stream::host_packed(const std::shared_ptr<const HostFunction>& function,
                                        std::span<const std::byte> block,
                                        std::span<const StagedArgument> views, Where where) {
  return call_function(
      function, "take host work", block, views, where,
      [&](Window& window, const FunctionWork& work) -> Result<void> {
        window.stage_host(function, work.arguments, where, core_->member);
        return {};
      },
      [&](const FunctionWork& work) {
        return issue(BoundHost{function.get(), work.views}, work.scope, WorkTerms{function});
      });
}

ScopedOutcome<void> Stream::native_packed(const std::shared_ptr<const NativeFunction>& function,
                                          std::span<const std::byte> block,
                                          std::span<const StagedArgument> views, Where where) {
  return call_function(
      function, "take native work", block, views, where,
      [&](Window& window, const FunctionWork& work) -> Result<void> {
        if (window.state() != WindowState::recording) return {};  // it will not seal
        const BoundNative native{function.get(), work.views, work.workspace};
        REFRAIN_TRY(calling_body(
            work.scope, [&] { return core_->device->backend().prove(*core_->backend, native); }));
        window.stage_native(function, work.arguments, where, core_->member);
        return {};
      },
      [&](const FunctionWork& work) { return run_native(function, work); });
}

Result<std::shared_ptr<const Allocation>> Stream::workspace_to_record(const KernelSignature& of,
                                                                      std::uint64_t bytes) {
  const Window* const window = bytes != 0 ? capturing() : nullptr;
  if (window == nullptr || window->state() != WindowState::recording) {
    return std::shared_ptr<const Allocation>();
  }
  Region region;
  region.name = of.name + " workspace";
  region.role = Role::scratch;
  region.bytes = bytes;
  region.alignment = kWorkspaceAlignment;
  return core_->device->allocate(core_->device, std::move(region), false);
}

Result<void> Stream::run_native(const std::shared_ptr<const NativeFunction>& function,
                                const FunctionWork& work) {
  const auto pins = std::make_shared<NativePins>(NativePins{function, nullptr});
  BoundNative native{function.get(), work.views, {}};
  if (const std::uint64_t bytes = function->workspace_bytes; bytes != 0) {
    // No buffer: what it holds is nobody's, so nobody is told that it is bad.
    Result<std::shared_ptr<MemoryBlock>> made =
        core_->device->allocate_block(core_->device, bytes, kWorkspaceAlignment);
    if (!made.ok()) return without_workspace(made.error(), function->signature, bytes);
    pins->workspace = *std::move(made);
    native.workspace = {pins->workspace->address(), bytes};
  }
  return calling_body(work.scope, [&] { return issue(native, work.scope, WorkTerms{pins}); });
}

template <class Call>
Result<void> Stream::calling_body(const OpenScope& scope, Call&& call) {
  const ForbiddenPlace native{ForbiddenPlace::Kind::native, scope.kernel, id(), scope.where};
  const CallsForbidden forbidden(*core_->device, native);  // E6: it may be called in this thread
  Result<void> called = call();
  if (called.ok() && forbidden.refused()) return *forbidden.refused();
  return called;
}

}  // namespace refrain
