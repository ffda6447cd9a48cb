// Gathers the kernels of one object, whatever its format, and refuses what no kernel can be: so
// that a layout that was read from a cubin and one read from PTX keep the same promises.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "refrain/base/result.hpp"
#include "refrain/cuda/code_image.hpp"

namespace refrain::cuda {

inline Error damaged(std::string what) { return Error(ErrorKind::file_damaged, std::move(what)); }

/// What is left of the limits while the objects of one image are read.
struct Budget {
  explicit Budget(const CodeImageLimits& of) noexcept : limits(of), kernels_left(of.kernels) {}

  CodeImageLimits limits;
  std::uint32_t kernels_left;
};

class KernelGathering {
 public:
  explicit KernelGathering(Budget& budget) noexcept : budget_(budget) {}

  /// Begins a kernel; refuses a name that is empty, too long or would upset a terminal.
  Result<KernelImage> begin(std::string_view name) const;

  /// Checks the kernel's parameters, in the order of their ordinals, and keeps it. They must end
  /// where `parameter_bytes` says.
  Result<void> add(KernelImage kernel);

  /// What was kept, in the order of adding; refuses two kernels of one name.
  Result<std::vector<KernelImage>> finish() &&;

 private:
  Budget& budget_;
  std::vector<KernelImage> kernels_;
};

/// x * y * z; none if that is beyond any block.
std::optional<std::uint64_t> threads_of(const KernelImage::Extent& extent) noexcept;

}  // namespace refrain::cuda
