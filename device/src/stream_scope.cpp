// Work of several parts: what it may claim, before its scope opens.
#include "arguments.hpp"
#include "issuing.hpp"
#include "refrain/base/text.hpp"
#include "refrain/device/stream.hpp"

namespace refrain {

Result<WriteSet> Stream::may_claim(std::string_view name, KernelId& kernel,
                                   std::span<const Bytes> writes, Where where) {
  return issuing(
      [&] {
        kernel = intern_kernel_name(name);
        return may_claim_now(kernel, writes, where);
      },
      [&](const Error& thrown) {
        WriteSet all = write_set();
        for (const Bytes& each : writes) {
          const Result<const Allocation*> to = core_->device->resolve(each.binding());
          if (to.ok() && writable(**to).ok()) all.add(each.binding());
        }
        fail_work(intern_kernel_name(name), std::move(all), thrown, where);
      });
}

Result<WriteSet> Stream::may_claim_now(KernelId kernel, std::span<const Bytes> writes,
                                       Where where) {
  REFRAIN_TRY(may("open a scope"));
  CheckedArguments checked(write_set());
  std::size_t at = 0;
  for (const Bytes& each : writes) {
    ++at;
    checked.check(*core_->device, each.binding(), Direction::out, [&] {
      return "While opening " + quote(kernel_name(kernel)) + text(where) + ", at write " +
             std::to_string(at) + " of " + std::to_string(writes.size()) + ".";
    });
  }
  Order& order = core_->device->order();
  if (!checked.refused && !order.trivial() && core_->device->checks() && capturing() == nullptr) {
    // E11: only its parts count as issued, and they may be on other streams (E9).
    const std::span<const BufferBinding> all = checked.writes.bindings();
    checked.refused =
        order.ask(Access{id(), 0, kernel, where}, TouchedBytes{{}, {all.begin(), all.end()}, {}});
  }
  if (checked.refused) {
    refuse_launch(kernel, {}, std::move(checked.writes), *checked.refused, where);
    return *std::move(checked.refused);
  }
  about_to_run(kernel, 0, {}, checked.writes.bindings(), where);
  return std::move(checked.writes);
}

}  // namespace refrain
