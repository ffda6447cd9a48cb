#include "kernel_images.hpp"

#include <algorithm>
#include <set>
#include <vector>

#include "driver_error.hpp"
#include "refrain/base/text.hpp"

namespace refrain::cuda {
namespace {

/// `8@0, 8@8, 4@16`: the size and offset of each parameter.
std::string layout_text(const std::vector<KernelParameter>& parameters) {
  std::string all;
  for (const KernelParameter& each : parameters) {
    all +=
        (all.empty() ? "" : ", ") + std::to_string(each.size) + "@" + std::to_string(each.offset);
  }
  return "(" + all + ")";
}

std::vector<KernelParameter> layout_of(const KernelSignature& signature) {
  std::vector<KernelParameter> layout;
  for (const Parameter& each : signature.parameters) {
    if (each.kind != ParameterKind::field) layout.push_back({each.offset, each.size});
  }
  return layout;
}

/// The parameters as the driver has them.
Result<std::vector<KernelParameter>> layout_of(Context& context, CUkernel kernel) {
  std::vector<KernelParameter> layout;
  for (;;) {
    std::size_t offset = 0;
    std::size_t size = 0;
    const CUresult code = context.api().cuKernelGetParamInfo(kernel, layout.size(), &offset, &size);
    if (code == CUDA_ERROR_INVALID_VALUE) return layout;  // that was the last
    REFRAIN_TRY(context.check(code, "cuKernelGetParamInfo"));
    layout.push_back({static_cast<std::uint32_t>(offset), static_cast<std::uint32_t>(size)});
  }
}

/// Whether the image has a kernel of that symbol with parameters of those sizes. Their offsets are
/// each architecture's own.
bool has_with(const PortableCode& code, const std::string& symbol, const KernelSignature& wanted) {
  const std::vector<KernelParameter> asked = layout_of(wanted);
  const auto same_size = [](const KernelParameter& a, const KernelParameter& b) {
    return a.size == b.size;
  };
  const Result<CodeImage> image = parse_code_image(code.bytes.span());
  if (!image.ok()) return false;
  bool found = false;
  for (const CodeObject& object : image->objects) {
    for (const KernelImage& kernel : object.kernels) {
      if (kernel.name != symbol) continue;
      if (!std::equal(kernel.parameters.begin(), kernel.parameters.end(), asked.begin(),
                      asked.end(), same_size)) {
        return false;
      }
      found = true;
    }
  }
  return found;
}

/// A driver finds the end of PTX by a zero.
SharedBytes ended_by_zero(const SharedBytes& text) {
  const std::span<const std::byte> bytes = text.span();
  if (!bytes.empty() && bytes.back() == std::byte{0}) return text;
  std::vector<std::byte> copy(bytes.begin(), bytes.end());
  copy.push_back(std::byte{0});
  return SharedBytes::copy_of(copy);
}

CodeKind kind_of(ImageKind kind) noexcept {
  switch (kind) {
    case ImageKind::cubin: return CodeKind::cubin;
    case ImageKind::fatbin: return CodeKind::fatbin;
    case ImageKind::ptx: break;
  }
  return CodeKind::ptx;
}

/// What an image calls its kernels; refuses one that lists none.
Result<std::set<std::string>> symbols_of(const CodeImage& image) {
  std::set<std::string> symbols;
  bool compressed = false;
  for (const cuda::CodeObject& object : image.objects) {
    compressed = compressed || object.compressed;
    for (const KernelImage& kernel : object.kernels) symbols.insert(kernel.name);
  }
  if (!symbols.empty()) return symbols;
  return Error(ErrorKind::kernel_missing,
               compressed ? "A code image lists no kernels, because its objects are compressed. "
                            "(nvcc --no-compress leaves them plain.)"
                          : "A code image has no kernels.");
}

}  // namespace

std::string symbol_of(std::string_view name) {
  std::string symbol(name);
  std::replace(symbol.begin(), symbol.end(), '.', '_');
  return symbol;
}

Result<void> CudaKernel::fits(const KernelSignature& wanted) const {
  const std::vector<KernelParameter> asked = layout_of(wanted);
  if (asked == layout_) return {};
  return Error(ErrorKind::kernel_signature,
               "Kernel " + text(wanted) + " has the parameters " + layout_text(asked) +
                   " (size@offset), and its code has " + layout_text(layout_) + ".");
}

Result<void> CudaKernel::takes(std::uint32_t shared_bytes) const {
  const Lock lock(mutex_);
  if (shared_bytes <= shared_bytes_) return {};
  const Entered here(*context_);
  REFRAIN_TRY(here.check(*context_));
  // The program may have asked for more, of a kernel that it has by itself.
  int most = 0;
  REFRAIN_TRY(
      context_->check(context_->api().cuFuncGetAttribute(
                          &most, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, function_),
                      "cuFuncGetAttribute"));
  if (static_cast<std::int64_t>(shared_bytes) > most) {
    REFRAIN_TRY(context_->check(context_->api().cuFuncSetAttribute(
                                    function_, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                    static_cast<int>(shared_bytes)),
                                "cuFuncSetAttribute"));
  }
  shared_bytes_ = shared_bytes;  // so much is not asked about again
  return {};
}

KernelImages::~KernelImages() {
  for (const auto& [digest, image] : images_) {
    if (image.library == nullptr) continue;
    context_->destroy(
        [library = image.library](const DriverApi& api) { api.cuLibraryUnload(library); });
  }
}

Result<KernelImages::Image*> KernelImages::take(const std::shared_ptr<const PortableCode>& code) {
  const auto found = images_.find(code->digest);
  if (found != images_.end()) return &found->second;
  const Result<CodeImage> image = parse_code_image(code->bytes.span());
  if (!image.ok()) return image.error();
  Result<std::set<std::string>> symbols = symbols_of(*image);
  if (!symbols.ok()) return std::move(symbols).error();
  return &images_
              .emplace(code->digest,
                       Image{code, image->kind == ImageKind::ptx, *std::move(symbols)})
              .first->second;
}

Result<void> KernelImages::add(SharedBytes bytes, std::uint32_t version) {
  const Result<CodeImage> parsed = parse_code_image(bytes.span());
  if (!parsed.ok()) return parsed.error().with_context("While adding a code image.");
  const auto code = PortableCode::make(kind_of(parsed->kind), std::move(bytes));
  const Lock lock(mutex_);
  const Result<Image*> image = take(code);
  if (!image.ok()) return image.error().with_context("While adding a code image.");
  for (const std::string& symbol : (*image)->symbols) {
    if (entries_.contains({symbol, version})) {
      return Error(ErrorKind::invalid_argument, "Kernel " + quote(symbol) + ", version " +
                                                    std::to_string(version) +
                                                    ", is in an image that was added before.");
    }
  }
  for (const std::string& symbol : (*image)->symbols) entries_[{symbol, version}] = *image;
  return {};
}

Result<KernelImages::Image*> KernelImages::image_of(const KernelSignature& wanted) {
  const KernelSource& source = wanted.source;
  if (source.code != nullptr) {
    Result<Image*> carried = take(source.code);
    if (!carried.ok()) {
      return carried.error().with_context(
          "While reading the code that a graph carries for kernel " + text(wanted) + ".");
    }
    if ((*carried)->symbols.contains(source.symbol)) return carried;
    return Error(ErrorKind::kernel_missing, "Kernel " + text(wanted) + " is not in the " +
                                                std::string(name_of(source.code->kind)) +
                                                " that its graph carries, where it would be "
                                                "called " +
                                                quote(source.symbol) + ".");
  }
  const auto found = entries_.find({symbol_of(wanted.name), wanted.version});
  if (found == entries_.end()) return missing(wanted);
  return found->second;
}

Error KernelImages::missing(const KernelSignature& wanted) const {
  const std::string symbol = symbol_of(wanted.name);
  std::string others;
  for (const auto& [key, image] : entries_) {
    if (key.first != symbol) continue;
    others += (others.empty() ? " There is version " : ", ") + std::to_string(key.second);
  }
  return Error(ErrorKind::kernel_missing,
               "Kernel " + text(wanted) +
                   " is in no code image of the CUDA device, where it would be called " +
                   quote(symbol) + "." + (others.empty() ? "" : others + "."));
}

KernelSource KernelImages::own(CUkernel kernel, const KernelSignature& wanted) {
  const Lock lock(mutex_);
  std::shared_ptr<const Own>& own = own_[kernel];
  if (own == nullptr) own = std::make_shared<const Own>(Own{kernel});
  const std::string symbol = symbol_of(wanted.name);
  const auto found = entries_.find({symbol, wanted.version});
  if (found == entries_.end() || !has_with(*found->second->code, symbol, wanted)) {
    return {nullptr, {}, own};
  }
  return {found->second->code, symbol, own};
}

const KernelImages::Own* KernelImages::own_of(const KernelSignature& wanted) const {
  for (const auto& [kernel, own] : own_) {
    if (own == wanted.source.own) return own.get();
  }
  return nullptr;
}

Result<void> KernelImages::has(const KernelSignature& wanted) {
  const Lock lock(mutex_);
  if (own_of(wanted) != nullptr) return {};
  REFRAIN_TRY(image_of(wanted));
  return {};
}

Result<std::shared_ptr<const KernelCode>> KernelImages::find(const KernelSignature& wanted) {
  const Lock lock(mutex_);
  if (const Own* const own = own_of(wanted); own != nullptr) {
    const auto loaded = [&]() -> Result<std::shared_ptr<const CudaKernel>> {
      const Entered here(*context_);
      REFRAIN_TRY(here.check(*context_));
      return load(own->kernel, wanted.source);
    }();
    if (!loaded.ok()) {
      return loaded.error().with_context("While looking at the program's own kernel " +
                                         quote(wanted.name) + ".");
    }
    REFRAIN_TRY((*loaded)->fits(wanted));
    return std::shared_ptr<const KernelCode>(*loaded);
  }
  const Result<Image*> image = image_of(wanted);
  if (!image.ok()) return image.error();
  const std::string symbol =
      wanted.source.code != nullptr ? wanted.source.symbol : symbol_of(wanted.name);
  std::shared_ptr<const CudaKernel>& kernel = (*image)->loaded[symbol];
  if (kernel == nullptr) {
    auto loaded = load(symbol, **image);
    if (!loaded.ok()) {
      return loaded.error().with_context("While loading kernel " + quote(wanted.name) + ".");
    }
    kernel = *std::move(loaded);
  }
  REFRAIN_TRY(kernel->fits(wanted));
  return std::shared_ptr<const KernelCode>(kernel);
}

Result<std::shared_ptr<const CudaKernel>> KernelImages::load(const std::string& symbol,
                                                             Image& image) {
  const Entered here(*context_);
  REFRAIN_TRY(here.check(*context_));
  const DriverApi& api = context_->api();
  if (image.library == nullptr) {
    const SharedBytes& code = image.code->bytes;
    const SharedBytes bytes = image.is_text ? ended_by_zero(code) : code;
    REFRAIN_TRY(context_->check(api.cuLibraryLoadData(&image.library, bytes.data(), nullptr,
                                                      nullptr, 0, nullptr, nullptr, 0),
                                "cuLibraryLoadData"));
  }
  CUkernel kernel = nullptr;
  REFRAIN_TRY(context_->check(api.cuLibraryGetKernel(&kernel, image.library, symbol.c_str()),
                              "cuLibraryGetKernel"));
  return load(kernel, {image.code, symbol});
}

Result<std::shared_ptr<const CudaKernel>> KernelImages::load(CUkernel kernel, KernelSource source) {
  const DriverApi& api = context_->api();
  Result<std::vector<KernelParameter>> layout = layout_of(*context_, kernel);
  if (!layout.ok()) return std::move(layout).error();
  CUfunction function = nullptr;
  REFRAIN_TRY(context_->check(api.cuKernelGetFunction(&function, kernel), "cuKernelGetFunction"));
  // Now, where the driver would else do it at the first launch.
  REFRAIN_TRY(context_->check(api.cuFuncLoad(function), "cuFuncLoad"));
  return std::make_shared<const CudaKernel>(context_, function, *std::move(layout),
                                            std::move(source));
}

}  // namespace refrain::cuda
