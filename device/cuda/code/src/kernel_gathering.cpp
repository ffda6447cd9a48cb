#include "kernel_gathering.hpp"

#include <algorithm>
#include <limits>
#include <string>

#include "refrain/base/text.hpp"

namespace refrain::cuda {
namespace {

bool is_control(char each) noexcept {
  const auto byte = static_cast<unsigned char>(each);
  return byte < 0x20 || byte == 0x7F;
}

}  // namespace

Result<KernelImage> KernelGathering::begin(std::string_view name) const {
  const CodeImageLimits& limits = budget_.limits;
  if (name.size() > limits.name_bytes) {
    return Error(ErrorKind::file_limit, "A kernel has a name of " + std::to_string(name.size()) +
                                            " bytes, more than the limit of " +
                                            std::to_string(limits.name_bytes) + ".");
  }
  if (name.empty()) return damaged("A kernel has no name.");
  if (std::any_of(name.begin(), name.end(), is_control)) {
    return damaged("A kernel has control characters in its name " + quote(name) + ".");
  }
  KernelImage kernel;
  kernel.name = name;
  return kernel;
}

Result<void> KernelGathering::add(KernelImage kernel) {
  // Made only for an error: a long name copied for every parameter would make reading slow.
  const auto who = [&] { return "Kernel " + quote(kernel.name); };
  if (kernel.parameter_bytes > budget_.limits.parameter_bytes) {
    return Error(ErrorKind::file_limit, who() + " has " + std::to_string(kernel.parameter_bytes) +
                                            " bytes of parameters, more than the limit of " +
                                            std::to_string(budget_.limits.parameter_bytes) + ".");
  }
  std::uint64_t end = 0;
  for (std::size_t at = 0; at < kernel.parameters.size(); ++at) {
    const KernelParameter& parameter = kernel.parameters[at];
    const auto which = [&] { return who() + " has a parameter " + std::to_string(at); };
    if (parameter.size == 0) return damaged(which() + " of no bytes.");
    if (parameter.offset < end) {
      return damaged(which() + " at byte " + std::to_string(parameter.offset) +
                     ", and the one before it ends at byte " + std::to_string(end) + ".");
    }
    end = std::uint64_t{parameter.offset} + parameter.size;
  }
  if (end != kernel.parameter_bytes) {
    return damaged(who() + " says that it has " + std::to_string(kernel.parameter_bytes) +
                   " bytes of parameters, and its last one ends at byte " + std::to_string(end) +
                   ".");
  }
  if (budget_.kernels_left == 0) {
    return Error(ErrorKind::file_limit, "The image has more kernels than the limit of " +
                                            std::to_string(budget_.limits.kernels) + ".");
  }
  --budget_.kernels_left;
  kernels_.push_back(std::move(kernel));
  return {};
}

Result<std::vector<KernelImage>> KernelGathering::finish() && {
  std::vector<std::string_view> names;
  names.reserve(kernels_.size());
  for (const KernelImage& kernel : kernels_) names.push_back(kernel.name);
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end()) {
    return damaged("Kernel " + quote(*twice) + " is defined twice in one object.");
  }
  return std::move(kernels_);
}

std::optional<std::uint64_t> threads_of(const KernelImage::Extent& extent) noexcept {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint32_t>::max();
  const std::uint64_t plane = std::uint64_t{extent[0]} * extent[1];
  if (plane > kMost || plane * extent[2] > kMost) return std::nullopt;
  return plane * extent[2];
}

}  // namespace refrain::cuda
