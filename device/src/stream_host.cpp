// Host work on a stream: a function of the program's own instead of a kernel, in the same scope.
#include <boost/container/small_vector.hpp>
#include <utility>

#include "arguments.hpp"
#include "issuing.hpp"
#include "refrain/base/kernel_name.hpp"
#include "refrain/device/stream.hpp"
#include "refrain/device/stream_core.hpp"

namespace refrain {

ScopedOutcome<void> Stream::host_packed(const std::shared_ptr<const HostFunction>& function,
                                        std::span<const std::byte> block,
                                        std::span<const StagedArgument> views, Where where) {
  return issuing([&] { return host_now(function, block, views, where); },
                 [&](const Error& thrown) {
                   fail_arguments(function->signature.name, grid(1, where), thrown, views);
                 });
}

ScopedOutcome<void> Stream::host_now(const std::shared_ptr<const HostFunction>& function,
                                     std::span<const std::byte> block,
                                     std::span<const StagedArgument> views, Where where) {
  if (Result<void> allowed = may("take host work"); !allowed.ok())
    return std::move(allowed).error();
  const KernelSignature& signature = function->signature;
  const KernelId name = intern_kernel_name(signature.name);
  const IssuingCall call(*core_);
  CheckedArguments checked(write_set());
  checked.check(*core_->device, signature, block, views, "calling", where);
  if (std::optional<Error> why = refused(name, checked, where)) return *std::move(why);
  const std::span<const BufferBinding> reads = span_of(checked.reads);

  about_to_run(name, 0, reads, checked.writes.bindings(), where);
  // O2: it reads device memory.
  auto scope =
      ExecuteScope<Stream>::launching(*this, name, reads, std::move(checked.writes), where);
  OpenScope& shown = scope.shown();
  return std::move(scope).execute([&](Stream&) -> Result<void> {
    if (Window* const window = capturing()) {
      for (const Allocation* const allocation : checked.allocations) pin(*window, *allocation);
      window->stage_host(function, views, where, core_->member);
      return {};
    }
    boost::container::small_vector<DeviceMemory, 8> bound;
    for (std::size_t at = 0; at < views.size(); ++at) {
      bound.push_back({checked.addresses[at], views[at].binding.range.size()});
    }
    const BoundHost node{function.get(), std::span<const DeviceMemory>(bound.data(), bound.size())};
    return issue(node, shown, WorkTerms{function});
  });
}

}  // namespace refrain
