// What work was given to read and write, looked at before any scope opens: every handle resolved,
// every constant left alone, every view one that the signature takes. Private to device/.
#pragma once

#include <boost/container/small_vector.hpp>
#include <optional>
#include <span>

#include "refrain/device/device.hpp"
#include "refrain/scope/write_set.hpp"

namespace refrain {

using Bindings = boost::container::small_vector<BufferBinding, 8>;

inline std::span<const BufferBinding> span_of(const Bindings& bindings) noexcept {
  return {bindings.data(), bindings.size()};
}

/// Refuses an argument that work may not write.
Result<void> writable(const Allocation& allocation);

/// The arguments of one piece of work; after a refusal those that are good (M6).
struct CheckedArguments {
  explicit CheckedArguments(WriteSet empty) : writes(std::move(empty)) {}

  /// Looks at each of `arguments` and at all of them against `signature`. `doing` begins the line
  /// that an error gets: "launching" gives `While launching "norm" (model.cpp:3), ...`.
  void check(const DeviceCore& device, const KernelSignature& signature,
             std::span<const std::byte> block, std::span<const StagedArgument> arguments,
             const char* doing, Where where);

  /// Looks at one of them. If it is the first that is bad, `refused` is why, with the line that
  /// `context()` answers.
  template <class Context>
  void check(const DeviceCore& device, const BufferBinding& binding, Direction direction,
             Context&& context) {
    const Result<const Allocation*> allocation = device.resolve(binding);
    Result<void> sound = allocation.ok() ? Result<void>() : allocation.error();
    if (sound.ok() && does_write(direction)) sound = writable(**allocation);
    if (!sound.ok()) {
      if (!refused) refused = sound.error().with_context(context());
      return;  // M6: it claims nothing of its own; the other outputs are claimed
    }
    allocations.push_back(*allocation);
    addresses.push_back((*allocation)->address() + binding.range.begin);
    if (does_read(direction)) reads.push_back(binding);
    if (does_write(direction)) writes.add(binding);
  }

  Bindings reads;
  WriteSet writes;
  // What runs uses the addresses: a listener that its scope calls may drop a buffer.
  boost::container::small_vector<const Allocation*, 8> allocations;
  boost::container::small_vector<std::uint64_t, 8> addresses;
  std::optional<Error> refused;
};

}  // namespace refrain
