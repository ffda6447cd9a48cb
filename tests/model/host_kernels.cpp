#include "model/host_kernels.hpp"

#include <algorithm>
#include <span>
#include <stdexcept>
#include <vector>

namespace refrain::model {
namespace {

std::span<U8> mutable_span(std::span<const U8> span) {
  return {const_cast<U8*>(span.data()), span.size()};
}

Result<void> run_on_host(Turnstile& turnstile, KernelKind kernel, std::uint32_t tag,
                         const std::vector<std::span<U8>>& views) {
  std::vector<Values> arguments;
  for (const std::span<U8> view : views) arguments.emplace_back(view.begin(), view.end());
  const Ran ran = run_kernel(kernel, tag, arguments);
  if (ran.how != Ran::How::clean) turnstile.before_failing();
  if (ran.how == Ran::How::error) return Error(ErrorKind::kernel_failed, ran.says);
  if (ran.how == Ran::How::exception) throw std::runtime_error(ran.says);
  const std::vector<Use> uses = uses_of(kernel);
  for (std::size_t at = 0; at < views.size(); ++at) {
    if (uses[at] != Use::in)
      std::copy(arguments[at].begin(), arguments[at].end(), views[at].begin());
  }
  return {};
}

}  // namespace

void register_all(host::KernelRegistry& kernels, Turnstile& turnstile) {
  for (const KernelKind kind : {KernelKind::make, KernelKind::extra_0, KernelKind::extra_1}) {
    kernels.add<Make>(name_of(kind), [&turnstile, kind](std::span<U8> y, std::uint32_t tag) {
      return run_on_host(turnstile, kind, tag, {y});
    });
  }
  kernels.add<Map>("map", [&turnstile](std::span<const U8> x, std::span<U8> y, std::uint32_t tag) {
    return run_on_host(turnstile, KernelKind::map, tag, {mutable_span(x), y});
  });
  kernels.add<Update>("update", [&turnstile](std::span<U8> y, std::uint32_t tag) {
    return run_on_host(turnstile, KernelKind::update, tag, {y});
  });
  kernels.add<Join>("join", [&turnstile](std::span<const U8> a, std::span<const U8> b,
                                         std::span<U8> y, std::uint32_t tag) {
    return run_on_host(turnstile, KernelKind::join, tag, {mutable_span(a), mutable_span(b), y});
  });
  kernels.add<Split>("split", [&turnstile](std::span<const U8> x, std::span<U8> y, std::span<U8> z,
                                           std::uint32_t tag) {
    return run_on_host(turnstile, KernelKind::split, tag, {mutable_span(x), y, z});
  });
  kernels.add<Look>("look", [&turnstile](std::span<const U8> x, std::uint32_t tag) {
    return run_on_host(turnstile, KernelKind::look, tag, {mutable_span(x)});
  });
  kernels.add<Say>("gate", [&turnstile](std::uint32_t) { turnstile.pass_gate(); });
  kernels.add<Say>("here", [](std::uint32_t stream) { Turnstile::here(static_cast<int>(stream)); });
}

}  // namespace refrain::model
