// The kernels of random programs, as plain functions: the device registers them and the model
// calls them. Whether one fails follows from its tag and its input alone, so that a replay fails
// because of what was written, on whichever thread it runs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace refrain::model {

enum class KernelKind : std::uint8_t { make, map, update, join, split, look, extra_0, extra_1 };
inline constexpr int kKernels = 8;

enum class Use : std::uint8_t { in, out, in_out };

inline const char* name_of(KernelKind kernel) {
  static constexpr const char* kNames[kKernels] = {"make",  "map",  "update",  "join",
                                                   "split", "look", "extra_0", "extra_1"};
  return kNames[static_cast<std::size_t>(kernel)];
}

inline std::vector<Use> uses_of(KernelKind kernel) {
  switch (kernel) {
    case KernelKind::map: return {Use::in, Use::out};
    case KernelKind::update: return {Use::in_out};
    case KernelKind::join: return {Use::in, Use::in, Use::out};
    case KernelKind::split: return {Use::in, Use::out, Use::out};
    case KernelKind::look: return {Use::in};
    default: return {Use::out};
  }
}

/// A kernel with this tag, or with this as the first byte that it reads, answers an error.
inline constexpr std::uint8_t kFails = 0xEE;
/// The same with an exception.
inline constexpr std::uint8_t kThrows = 0xEF;

/// How work ended: well when `how` is clean.
struct Ran {
  enum class How : std::uint8_t { clean, error, exception };
  How how = How::clean;
  std::string says;
};

using Values = std::vector<std::uint8_t>;

/// Runs a kernel: `arguments` holds what its views hold, in order, and then what they are to hold.
inline Ran run_kernel(KernelKind kernel, std::uint32_t tag, std::vector<Values>& arguments) {
  const std::vector<Use> uses = uses_of(kernel);
  std::uint8_t said = static_cast<std::uint8_t>(tag);
  if (uses[0] != Use::out && !arguments[0].empty() && said != kFails && said != kThrows) {
    said = arguments[0][0];
  }
  const std::string who =
      std::string("Kernel ") + name_of(kernel) + " of tag " + std::to_string(tag) + " was told to";
  if (said == kFails) return {Ran::How::error, who + " fail."};
  if (said == kThrows) return {Ran::How::exception, who + " throw."};
  const std::vector<Values> old = arguments;
  for (std::size_t at = 0; at < uses.size(); ++at) {
    if (uses[at] == Use::in) continue;
    for (std::size_t byte = 0; byte < arguments[at].size(); ++byte) {
      std::size_t sum = tag + 7 * at + byte;
      for (std::size_t from = 0; from < uses.size(); ++from) {
        if (uses[from] == Use::out || old[from].empty()) continue;
        sum += 3 * std::size_t{old[from][byte % old[from].size()]} + from;
      }
      // Small numbers, so that nothing fails that was not told to.
      arguments[at][byte] = static_cast<std::uint8_t>(sum % 199);
    }
  }
  return {};
}

}  // namespace refrain::model
