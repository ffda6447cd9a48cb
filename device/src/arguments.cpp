#include "arguments.hpp"

#include "refrain/base/text.hpp"

namespace refrain {
namespace {

/// Says that a block and arguments are not those that `kernel` takes, or its views not of whole
/// elements.
std::optional<Error> mismatch(const KernelSignature& kernel, std::span<const std::byte> block,
                              std::span<const StagedArgument> arguments) {
  bool fits = block.size() == kernel.block_bytes;
  std::size_t used = 0;
  for (const Parameter& parameter : kernel.parameters) {
    if (!fits || parameter.kind != ParameterKind::view) continue;
    fits = used < arguments.size() && arguments[used].offset == parameter.offset &&
           arguments[used].direction == parameter.direction;
    if (!fits) break;
    const ByteRange range = arguments[used++].binding.range;
    const std::uint32_t element = size_of(parameter.element);
    if (range.begin % element != 0 || range.size() % element != 0) {
      return Error(ErrorKind::invalid_argument,
                   "Bytes " + text(range) + " were given as " +
                       argument_at(kernel, parameter.offset) + " of kernel " + text(kernel) +
                       ", and are not whole elements of " + std::to_string(element) + " bytes.");
    }
  }
  if (fits && used == arguments.size()) return std::nullopt;
  return Error(ErrorKind::invalid_argument, "A block of " + std::to_string(block.size()) +
                                                " bytes and " + std::to_string(arguments.size()) +
                                                " views is not what kernel " + text(kernel) +
                                                " takes.");
}

}  // namespace

Result<void> writable(const Allocation& allocation) {
  if (allocation.region().role != Role::constant) return {};
  return Error(ErrorKind::constant_written,
               "Buffer " + quote(allocation.region().name) + " is a constant and is not written.");
}

void CheckedArguments::check(const DeviceCore& device, const KernelSignature& signature,
                             std::span<const std::byte> block,
                             std::span<const StagedArgument> arguments, const char* doing,
                             Where where) {
  for (const StagedArgument& argument : arguments) {
    check(device, argument.binding, argument.direction, [&] {
      return "While " + std::string(doing) + " " + quote(signature.name) + text(where) + ", at " +
             argument_at(signature, argument.offset) + ".";
    });
  }
  if (!refused) refused = mismatch(signature, block, arguments);
}

}  // namespace refrain
