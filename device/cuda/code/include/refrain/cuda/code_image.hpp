// What is in a CUDA code image: which kernels, for which architectures, with which parameters. Read
// from the bytes alone, with no driver, no CUDA header and no toolkit, so that an image can be
// checked on any machine. The bytes are untrusted: whatever they are, the answer is an image or an
// error, and memory and time are bounded by their size.
//
// The format of cubins and fatbins is not documented by NVIDIA; docs/cuda.md says what was measured
// on which compilers. A real driver has the last word: compare with what it says of a kernel.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "refrain/base/result.hpp"

namespace refrain::cuda {

/// The most that an image may have; one that has more is refused (`file_limit`).
struct CodeImageLimits {
  std::uint64_t image_bytes = std::uint64_t{1} << 32U;
  std::uint32_t objects = 4'096;                    ///< In a fatbin.
  std::uint32_t kernels = std::uint32_t{1} << 20U;  ///< In all its objects together.
  std::uint32_t name_bytes = 65'536;                ///< Of one kernel's name.
  std::uint32_t parameters = 4'096;                 ///< Of one kernel.
  std::uint32_t parameter_bytes = 32'764;           ///< Of one kernel, as CUDA has it.
};

/// A compute capability, as 90 for 9.0, and the suffix of code that uses what is particular to it:
/// 'a' runs on that architecture only, 'f' on later ones of its family, 0 has none (or none that
/// the image tells).
struct Architecture {
  std::uint32_t number = 0;
  char suffix = 0;

  friend bool operator==(const Architecture&, const Architecture&) = default;
};

/// Where one parameter lies in the kernel's parameter buffer. Its ordinal is its place in the list.
struct KernelParameter {
  std::uint32_t offset = 0;
  std::uint32_t size = 0;

  friend bool operator==(const KernelParameter&, const KernelParameter&) = default;
};

/// One kernel in one object. What is absent is not asked for by the kernel or, where it says so,
/// not told by that kind of object.
struct KernelImage {
  using Extent = std::array<std::uint32_t, 3>;

  std::string name;  ///< As the driver knows it: mangled unless it is `extern "C"`.
  std::vector<KernelParameter> parameters;
  std::uint32_t parameter_bytes = 0;  ///< The end of the last parameter.

  std::optional<std::uint64_t> max_threads;  ///< In a block (`__launch_bounds__`).
  std::optional<Extent> required_block;      ///< The block size that a launch must have.
  std::optional<Extent> cluster;             ///< The cluster size that the kernel is made for.
  std::optional<std::uint32_t> max_cluster_blocks;
  std::optional<std::uint32_t> min_blocks_per_multiprocessor;  ///< PTX tells it, a cubin does not.
  std::optional<std::uint32_t> registers;                      ///< A cubin tells it, PTX does not.
  std::optional<std::uint64_t> static_shared_bytes;            ///< A cubin tells it, PTX does not.
};

enum class ObjectKind : std::uint8_t {
  cubin,  ///< Machine code.
  ptx,    ///< Text that a driver compiles.
  other,  ///< Something that only a linker reads (LTO code); its kernels are not listed.
};

/// One piece of code for one architecture.
struct CodeObject {
  ObjectKind kind = ObjectKind::cubin;
  Architecture architecture;
  /// Its kernels are not listed then: `nvcc --no-compress` leaves it plain.
  bool compressed = false;
  std::uint32_t ptx_version = 0;  ///< 84 for `.version 8.4`; 0 for all but plain PTX.
  std::size_t offset = 0;         ///< Of its bytes, as they are stored, in the image.
  std::size_t size = 0;
  std::vector<KernelImage> kernels;  ///< In the order of the object's own table.
};

enum class ImageKind : std::uint8_t { cubin, ptx, fatbin };

struct CodeImage {
  ImageKind kind = ImageKind::cubin;
  std::vector<CodeObject> objects;  ///< One, but for a fatbin.
};

/// Reads a cubin, a fatbin (also the one that nvcc embeds in a host object) or PTX text, which may
/// end with zeros. Refuses `file_foreign` (no code image), `file_version` (one with something that
/// is not read), `file_damaged` (a structure that cannot be), `file_limit`. Keeps nothing of
/// `bytes`.
Result<CodeImage> parse_code_image(std::span<const std::byte> bytes,
                                   const CodeImageLimits& limits = {});

/// The kernel of that name as a device of compute capability `sm` (90 for 9.0) would run it: from a
/// cubin for just that one, else from the newest cubin of an older minor version of the same major
/// one, else from the newest PTX that is not newer than the device. Code with a suffix is taken
/// only where it runs. Points into `image`. Refuses `kernel_missing`, saying what there is.
Result<const KernelImage*> find_kernel(const CodeImage& image, std::string_view name,
                                       std::uint32_t sm);

/// `sm_90a`.
std::string text(Architecture architecture);
/// `saxpy(8@0, 8@8, 4@16)`: the size and offset of each parameter.
std::string text(const KernelImage& kernel);
std::string_view name_of(ObjectKind kind) noexcept;

}  // namespace refrain::cuda
