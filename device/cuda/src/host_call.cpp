#include "host_call.hpp"

#include <cstring>

namespace refrain::cuda {

Result<std::unique_ptr<StagedCall>> StagedCall::make(const std::shared_ptr<Context>& context,
                                                     const BoundHost& host) {
  std::unique_ptr<StagedCall> made(new StagedCall());
  made->function_ = host.function;
  std::size_t bytes = 0;
  std::size_t at = 0;
  for (const Parameter& parameter : host.function->signature.parameters) {
    if (parameter.kind != ParameterKind::view) continue;
    const DeviceMemory& view = host.views[at++];
    made->views_.push_back({view.address, view.bytes, bytes, does_read(parameter.direction),
                            does_write(parameter.direction)});
    bytes += (view.bytes + 63U) / 64U * 64U;
  }
  if (bytes != 0) {
    auto memory = PinnedMemory::allocate(context, bytes);
    if (!memory.ok()) return std::move(memory).error();
    made->memory_ = *std::move(memory);
    std::memset(made->memory_->data(), 0, bytes);  // of what it writes nothing is copied to it
  }
  return made;
}

Result<void> StagedCall::call() const {
  std::vector<std::span<std::byte>> views;
  for (const StagedView& view : views_) views.emplace_back(pinned(view), view.bytes);
  return function_->body(views);
}

}  // namespace refrain::cuda
