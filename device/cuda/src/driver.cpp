#include "refrain/cuda/driver.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "driver_api.hpp"
#include "driver_error.hpp"
#include "refrain/base/text.hpp"

namespace refrain::cuda {
namespace {

/// What to open, and who asked for it.
struct Choice {
  std::string library;
  std::string_view asked_by;
};

Choice chosen(const DriverOptions& options) {
  if (!options.library.empty()) return {options.library.string(), "as the options ask"};
  const char* named = std::getenv("REFRAIN_CUDA_DRIVER");  // NOLINT: nothing here sets it
  if (named != nullptr && *named != '\0') return {named, "as REFRAIN_CUDA_DRIVER asks"};
  return {"libcuda.so.1", "as the system finds it"};
}

/// A library, closed again unless it is kept.
class Library {
 public:
  explicit Library(const std::string& name)
      : handle_(dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) {}
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  ~Library() {
    if (handle_ != nullptr) dlclose(handle_);
  }

  explicit operator bool() const noexcept { return handle_ != nullptr; }
  /// A driver that was initialised has threads and exit handlers: it is never unloaded.
  void keep() noexcept { handle_ = nullptr; }

  template <class Function>
  Function find(const char* symbol) const noexcept {
    return reinterpret_cast<Function>(dlsym(handle_, symbol));
  }

 private:
  void* handle_;
};

}  // namespace

/// Fills a DriverApi from a library whose version is known.
struct EntryLoader {
  PFN_cuGetProcAddress_v12000 get_address;
  int driver_version;
  std::vector<std::string> missing;

  /// Null unless the driver has exactly that ABI. A driver that is older than `version` is not
  /// asked: some answer CUDA_SUCCESS and an older ABI (12.2 does so for ten of the names here).
  void* find(const char* name, int version) const {
    if (version > driver_version) return nullptr;
    void* address = nullptr;
    auto status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    const CUresult code =
        get_address(name, &address, version, CU_GET_PROC_ADDRESS_LEGACY_STREAM, &status);
    return code == CUDA_SUCCESS && status == CU_GET_PROC_ADDRESS_SUCCESS ? address : nullptr;
  }

  template <class Function>
  void load(Function& entry, const char* symbol, const char* name, int version) {
    entry = reinterpret_cast<Function>(find(name, version));
    if (entry == nullptr) missing.emplace_back(symbol);
  }

  template <class Function>
  void load(OptionalEntry<Function>& entry, const char* symbol, const char* name, int version) {
    entry.function_ = reinterpret_cast<Function>(find(name, version));
    entry.symbol_ = symbol;
    entry.needs_ = version;
    entry.driver_version_ = driver_version;
  }

  void load_all(DriverApi& api) {
#define REFRAIN_CUDA_ENTRY(need, symbol, name, version) load(api.symbol, #symbol, #name, version);
#include "driver_entries.inc"
#undef REFRAIN_CUDA_ENTRY
  }
};

std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

Error entry_missing(std::string_view symbol, int needs, int driver_version) {
  return Error(ErrorKind::driver_too_old,
               "The CUDA driver (version " + version_text(driver_version) + ") has no " +
                   std::string(symbol) + ", which came with CUDA " + version_text(needs) + ".");
}

Result<Driver> Driver::open(const DriverOptions& options) {
  const Choice choice = chosen(options);
  const std::string what = quote(choice.library) + ", " + std::string(choice.asked_by);

  Library library(choice.library);
  if (!library) {
    const char* reason = dlerror();  // NOLINT: of this thread, with glibc
    return Error(ErrorKind::driver_missing,
                 "There is no CUDA driver: the library (" + what + ") cannot be opened (" +
                     quote(reason != nullptr ? reason : "no reason given") + ").");
  }

  // Works before cuInit, and on a driver of any age.
  const auto get_version = library.find<PFN_cuDriverGetVersion_v2020>("cuDriverGetVersion");
  if (get_version == nullptr) {
    return Error(ErrorKind::driver_missing, "The library (" + what +
                                                ") is no CUDA driver: it exports no "
                                                "cuDriverGetVersion.");
  }
  int version = 0;  // a stub leaves it so
  const CUresult answer = get_version(&version);
  if (answer == CUDA_ERROR_STUB_LIBRARY) {
    return Error(ErrorKind::driver_stub, "The library (" + what +
                                             ") is the toolkit's stub, made to link against and "
                                             "not to run: install the driver itself.");
  }
  if (answer != CUDA_SUCCESS) {
    return driver_error(answer, "cuDriverGetVersion").with_context("While opening " + what + ".");
  }
  if (version < kOldestDriver) {
    return Error(ErrorKind::driver_too_old, "The CUDA driver (" + what + ") is of version " +
                                                version_text(version) + "; refrain needs " +
                                                version_text(kOldestDriver) + " or newer.");
  }

  auto api = std::make_shared<DriverApi>();
  api->library = choice.library;
  api->driver_version = version;
  EntryLoader entries{
      library.find<PFN_cuGetProcAddress_v12000>("cuGetProcAddress_v2"), version, {}};
  if (entries.get_address == nullptr) {
    entries.missing.emplace_back("cuGetProcAddress_v2");
  } else {
    entries.load_all(*api);
  }
  if (!entries.missing.empty()) {
    std::string names;
    for (const std::string& symbol : entries.missing) names += (names.empty() ? "" : ", ") + symbol;
    return Error(ErrorKind::driver_missing, "The library (" + what + ") says that it is version " +
                                                version_text(version) +
                                                " of the CUDA driver, yet lacks " + names + ".");
  }

  library.keep();
  const CUresult initialised = api->cuInit(0);
  // Kept as its own kind, since every later call of such a driver only says "not initialised".
  const Error no_gpu(ErrorKind::no_gpu, "The CUDA driver (" + what + ", version " +
                                            version_text(version) + ") finds no GPU.");
  if (initialised == CUDA_ERROR_NO_DEVICE) return no_gpu;
  const std::string opening = "While opening the CUDA driver (" + what + ").";
  if (initialised != CUDA_SUCCESS) return driver_error(initialised, "cuInit").with_context(opening);
  int count = 0;
  const CUresult counting = api->cuDeviceGetCount(&count);
  if (counting == CUDA_ERROR_NO_DEVICE) return no_gpu;
  if (auto counted = check(counting, "cuDeviceGetCount"); !counted) {
    return std::move(counted).error().with_context(opening);
  }
  if (count <= 0) return no_gpu;
  return Driver(std::move(api), count);
}

const std::string& Driver::library() const noexcept { return api_->library; }

int Driver::version() const noexcept { return api_->driver_version; }

Result<std::string> Driver::device_name(int ordinal) const {
  CUdevice device = 0;
  REFRAIN_TRY(check(api_->cuDeviceGet(&device, ordinal),
                    "cuDeviceGet for device " + std::to_string(ordinal)));
  std::string name(257, '\0');  // ends with a zero, whatever the driver writes
  REFRAIN_TRY(check(api_->cuDeviceGetName(name.data(), static_cast<int>(name.size() - 1), device),
                    "cuDeviceGetName"));
  name.resize(name.find('\0'));
  return name;
}

}  // namespace refrain::cuda
