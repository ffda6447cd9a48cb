// The code of a CUDA device: images, each loaded when the first of its kernels is wanted, and the
// kernels that were found in them. Private to device/cuda.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "context.hpp"
#include "refrain/base/shared_bytes.hpp"
#include "refrain/cuda/code_image.hpp"
#include "refrain/device/backend.hpp"

namespace refrain::cuda {

/// Safe to share.
class CudaKernel final : public KernelCode {
 public:
  CudaKernel(std::shared_ptr<Context> context, CUfunction function,
             std::vector<KernelParameter> layout, KernelSource source) noexcept
      : context_(std::move(context)),
        function_(function),
        layout_(std::move(layout)),
        source_(std::move(source)) {}

  [[nodiscard]] KernelSource source() const override { return source_; }

  [[nodiscard]] CUfunction function() const noexcept { return function_; }
  /// Whether its parameters, as the driver has them, are those of `wanted`.
  [[nodiscard]] Result<void> fits(const KernelSignature& wanted) const;
  /// Where each parameter lies in a parameter block.
  [[nodiscard]] std::span<const KernelParameter> layout() const noexcept { return layout_; }
  /// Makes it take that much dynamic shared memory, which above 48 KiB a kernel must be told.
  Result<void> takes(std::uint32_t shared_bytes) const;

 private:
  std::shared_ptr<Context> context_;
  CUfunction function_;
  std::vector<KernelParameter> layout_;
  KernelSource source_;
  mutable Mutex mutex_;
  mutable std::uint32_t shared_bytes_ REFRAIN_GUARDED_BY(mutex_) = 48 * 1024;
};

/// Safe to share.
class KernelImages {
 public:
  explicit KernelImages(std::shared_ptr<Context> context) noexcept : context_(std::move(context)) {}
  ~KernelImages();
  KernelImages(const KernelImages&) = delete;
  KernelImages& operator=(const KernelImages&) = delete;

  /// Takes an image, whose kernels are of `version` from now on. Refuses bytes that are none, and a
  /// kernel that another image has in that version. Loads nothing.
  Result<void> add(SharedBytes bytes, std::uint32_t version);
  /// Whether some image has it, or the one that it names does; loads nothing.
  Result<void> has(const KernelSignature& wanted);
  /// What says that `kernel`, which the program has by itself, is wanted as `wanted`: with the
  /// image that was added, if one has such a kernel. Asks nothing of the driver.
  KernelSource own(CUkernel kernel, const KernelSignature& wanted);
  /// Loads it, and compares its parameters with those that are wanted.
  Result<std::shared_ptr<const KernelCode>> find(const KernelSignature& wanted);

 private:
  struct Image {
    std::shared_ptr<const PortableCode> code;
    bool is_text;  // PTX, whatever a file says that it is
    std::set<std::string> symbols;
    CUlibrary library = nullptr;
    std::map<std::string, std::shared_ptr<const CudaKernel>> loaded{};  // by symbol
  };
  /// Its address is what a graph's `KernelSource::own` is.
  struct Own {
    CUkernel kernel = nullptr;
  };
  /// A kernel's symbol and version.
  using Key = std::pair<std::string, std::uint32_t>;

  /// The image with these bytes, taken if it is new.
  Result<Image*> take(const std::shared_ptr<const PortableCode>& code) REFRAIN_REQUIRES(mutex_);
  /// The image that has it.
  Result<Image*> image_of(const KernelSignature& wanted) REFRAIN_REQUIRES(mutex_);
  Result<std::shared_ptr<const CudaKernel>> load(const std::string& symbol, Image& image)
      REFRAIN_REQUIRES(mutex_);
  /// The kernel of the program's that it names, if it is one of this device's.
  [[nodiscard]] const Own* own_of(const KernelSignature& wanted) const REFRAIN_REQUIRES(mutex_);
  /// For a thread that has entered.
  Result<std::shared_ptr<const CudaKernel>> load(CUkernel kernel, KernelSource source);
  /// What to say of a kernel that there is not.
  [[nodiscard]] Error missing(const KernelSignature& wanted) const REFRAIN_REQUIRES(mutex_);

  std::shared_ptr<Context> context_;
  mutable Mutex mutex_;
  std::map<PortableCode::Digest, Image> images_ REFRAIN_GUARDED_BY(mutex_);
  std::map<Key, Image*> entries_ REFRAIN_GUARDED_BY(mutex_);  // of those that were added
  std::map<CUkernel, std::shared_ptr<const Own>> own_ REFRAIN_GUARDED_BY(mutex_);
};

/// What a registered name is called in an image: `vad.conv1d` is `vad_conv1d`.
std::string symbol_of(std::string_view name);

}  // namespace refrain::cuda
