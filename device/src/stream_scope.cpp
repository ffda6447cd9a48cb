// Work of several parts: what it may claim, before its scope opens.
#include "arguments.hpp"
#include "refrain/base/text.hpp"
#include "refrain/device/stream.hpp"
#include "refrain/device/stream_core.hpp"

namespace refrain {

Result<WriteSet> Stream::may_claim(KernelId kernel, std::span<const Bytes> writes, Where where) {
  REFRAIN_TRY(may("open a scope"));
  const IssuingCall call(*core_);  // its parts are handed over by calls of their own
  CheckedArguments checked(write_set());
  std::size_t at = 0;
  for (const Bytes& each : writes) {
    ++at;
    checked.check(*core_->device, each.binding(), Direction::out, [&] {
      return "While opening " + quote(kernel_name(kernel)) + text(where) + ", at write " +
             std::to_string(at) + " of " + std::to_string(writes.size()) + ".";
    });
  }
  if (std::optional<Error> why = refused(kernel, checked, where)) return *std::move(why);
  about_to_run(kernel, 0, {}, checked.writes.bindings(), where);
  return std::move(checked.writes);
}

}  // namespace refrain
