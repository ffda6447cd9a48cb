#include "refrain/cuda/code_image.hpp"

#include <utility>

#include "cubin.hpp"
#include "elf.hpp"
#include "fatbin.hpp"
#include "ptx.hpp"
#include "refrain/base/text.hpp"

namespace refrain::cuda {
namespace {

constexpr std::uint32_t kWrapperMagic = 0x466243B1;

/// The one object of an image that is no container.
Result<CodeImage> alone(ImageKind kind, Result<CodeObject> object, std::size_t size) {
  if (!object) return std::move(object).error();
  object->size = size;
  CodeImage image;
  image.kind = kind;
  image.objects.push_back(*std::move(object));
  return image;
}

Error no_image(Bytes bytes, std::uint32_t magic) {
  if (bytes.empty()) {
    return Error(ErrorKind::file_foreign, "There are no bytes, so there is no code image.");
  }
  if (magic == kWrapperMagic) {
    return Error(ErrorKind::file_foreign,
                 "This is what nvcc puts around a fatbin in a host object: it holds the address of "
                 "the fatbin and no code.");
  }
  return Error(ErrorKind::file_foreign,
               "This is no code image: neither a cubin, nor a fatbin, nor PTX, which starts with "
               ".version.");
}

const KernelImage* kernel_of(const CodeObject& object, std::string_view name) noexcept {
  for (const KernelImage& kernel : object.kernels) {
    if (kernel.name == name) return &kernel;
  }
  return nullptr;
}

/// Which of two objects a device takes: the larger one. 0: none that it runs.
std::uint32_t fitness(const CodeObject& object, std::uint32_t sm) noexcept {
  constexpr std::uint32_t kCubin = std::uint32_t{1} << 30U;
  const auto [number, suffix] = object.architecture;
  const bool same_major = number / 10 == sm / 10;
  if (object.kind == ObjectKind::other || number > sm) return 0;
  if (suffix == 'a' && number != sm) return 0;
  if (suffix == 'f' && !same_major) return 0;
  if (object.kind == ObjectKind::ptx) return number;
  return same_major ? kCubin + number : 0;
}

/// `"a", "b" and 3 more`.
std::string some_of(const std::vector<std::string>& all) {
  constexpr std::size_t kShown = 8;
  std::string listed;
  for (std::size_t at = 0; at < all.size() && at < kShown; ++at) {
    listed += (at == 0 ? "" : ", ") + all[at];
  }
  if (all.size() > kShown) listed += " and " + std::to_string(all.size() - kShown) + " more";
  return listed;
}

std::string label(const CodeObject& object) {
  return std::string(name_of(object.kind)) + " for " + text(object.architecture);
}

Error no_kernel(const CodeImage& image, std::string_view name, std::uint32_t sm) {
  std::vector<std::string> with_it;
  std::vector<std::string> compressed;
  std::vector<std::string> kernels;
  for (const CodeObject& object : image.objects) {
    if (object.compressed) compressed.push_back(label(object));
    if (kernel_of(object, name) != nullptr) with_it.push_back(label(object));
    for (const KernelImage& kernel : object.kernels) kernels.push_back(quote(kernel.name));
  }
  std::string message =
      "The image has no kernel " + quote(name) + " that runs on " + text(Architecture{sm, 0}) + ".";
  if (!with_it.empty()) {
    message += " It has it as " + some_of(with_it) + ".";
  } else if (!kernels.empty()) {
    message += " Its kernels are " + some_of(kernels) + ".";
  }
  if (!compressed.empty()) {
    message += " Compressed, and so not read: " + some_of(compressed) +
               "; nvcc leaves them plain with --no-compress.";
  }
  return Error(ErrorKind::kernel_missing, message);
}

}  // namespace

Result<CodeImage> parse_code_image(Bytes bytes, const CodeImageLimits& limits) {
  if (bytes.size() > limits.image_bytes) {
    return Error(ErrorKind::file_limit, "The image has " + std::to_string(bytes.size()) +
                                            " bytes, more than the limit of " +
                                            std::to_string(limits.image_bytes) + ".");
  }
  Budget budget(limits);
  const std::uint32_t magic = bytes.size() < 4 ? 0 : load<std::uint32_t>(bytes, 0);
  if (magic == kElfMagic) {
    return alone(ImageKind::cubin, read_cubin(bytes, budget), bytes.size());
  }
  if (magic == kFatbinMagic) {
    auto objects = read_fatbin(bytes, budget);
    if (!objects) return std::move(objects).error();
    return CodeImage{ImageKind::fatbin, *std::move(objects)};
  }
  if (!looks_like_ptx(bytes)) return no_image(bytes, magic);
  return alone(ImageKind::ptx, read_ptx(bytes, budget), bytes.size());
}

Result<const KernelImage*> find_kernel(const CodeImage& image, std::string_view name,
                                       std::uint32_t sm) {
  const KernelImage* best = nullptr;
  std::uint32_t best_fitness = 0;
  for (const CodeObject& object : image.objects) {
    const std::uint32_t here = fitness(object, sm);
    if (here <= best_fitness) continue;
    if (const KernelImage* const kernel = kernel_of(object, name); kernel != nullptr) {
      best = kernel;
      best_fitness = here;
    }
  }
  if (best == nullptr) return no_kernel(image, name, sm);
  for (const CodeObject& object : image.objects) {
    if (!object.compressed || fitness(object, sm) <= best_fitness) continue;
    // The device would take that one, and its parameters may lie elsewhere.
    return Error(ErrorKind::kernel_missing,
                 "What kernel " + quote(name) + " is on " + text(Architecture{sm, 0}) +
                     " cannot be said, because the " + label(object) +
                     " is compressed, and so not read; nvcc leaves it plain with --no-compress.");
  }
  return best;
}

std::string text(Architecture architecture) {
  std::string text = "sm_" + std::to_string(architecture.number);
  if (architecture.suffix != 0) text += architecture.suffix;
  return text;
}

std::string text(const KernelImage& kernel) {
  std::string text = kernel.name + "(";
  std::string_view between;
  for (const KernelParameter& parameter : kernel.parameters) {
    text += between;
    text += std::to_string(parameter.size) + "@" + std::to_string(parameter.offset);
    between = ", ";
  }
  return text + ")";
}

std::string_view name_of(ObjectKind kind) noexcept {
  switch (kind) {
    case ObjectKind::cubin: return "cubin";
    case ObjectKind::ptx: return "PTX";
    case ObjectKind::other: return "code for a linker";
  }
  return "unknown";
}

}  // namespace refrain::cuda
