#include "refrain/host/kernel_registry.hpp"

#include "refrain/base/text.hpp"

namespace refrain::host {

void KernelRegistry::add(std::shared_ptr<const HostKernel> kernel) {  // NOLINT: it is kept
  const Lock lock(mutex_);
  const KernelSignature& signature = kernel->signature;
  std::string shown = text(signature);
  const auto [at, fresh] =
      kernels_.try_emplace({signature.name, signature.version}, std::move(kernel));
  if (!fresh && !refusal_) {
    refusal_ = Error(ErrorKind::invalid_argument,
                     "Kernel " + shown + " cannot be registered, because " +
                         text(at->second->signature) + " is registered already.");
  }
}

Result<void> KernelRegistry::take_refusal() {
  const Lock lock(mutex_);
  if (std::optional<Error> refusal = std::exchange(refusal_, std::nullopt)) {
    return *std::move(refusal);
  }
  return {};
}

Result<std::shared_ptr<const KernelCode>> KernelRegistry::find(
    const KernelSignature& wanted) const {
  const Lock lock(mutex_);
  const auto found = kernels_.find({wanted.name, wanted.version});
  if (found == kernels_.end()) {
    std::string others;
    for (const auto& [key, kernel] : kernels_) {
      const bool same_name = key.first == wanted.name;
      if (same_name) others += (others.empty() ? " There is " : ", ") + text(kernel->signature);
    }
    return Error(ErrorKind::kernel_missing,
                 "Kernel " + text(wanted) + " is not registered with the host device." +
                     (others.empty() ? " No kernel of that name is." : others + "."));
  }
  const KernelSignature& registered = found->second->signature;
  if (registered.parameters != wanted.parameters || registered.block_bytes != wanted.block_bytes) {
    return Error(ErrorKind::kernel_signature, "Kernel " + quote(wanted.name) +
                                                  " is registered as " + text(registered) +
                                                  " and is wanted as " + text(wanted) + ".");
  }
  return std::shared_ptr<const KernelCode>(found->second);
}

}  // namespace refrain::host
