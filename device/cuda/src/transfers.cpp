#include "transfers.hpp"

#include "driver_error.hpp"

namespace refrain::cuda {

Result<std::unique_ptr<Transfers>> Transfers::create(const std::shared_ptr<Context>& context) {
  const Result<CUstream> stream = context->create_stream();
  if (!stream.ok()) return stream.error();
  return std::make_unique<Transfers>(context, *stream);
}

Result<void> Transfers::finish() {
  const auto wait = [this] {
    return context_->check(context_->api().cuStreamSynchronize(stream_), "cuStreamSynchronize");
  };
  Result<void> waited = wait();
  if (waited.ok() || context_->lost()) return waited;
  // The bytes may be on their way still, and nobody may have them back before they have arrived.
  Result<void> again = wait();
  if (again.ok() || context_->lost()) return again;
  return context_->lose(again.error());
}

}  // namespace refrain::cuda
