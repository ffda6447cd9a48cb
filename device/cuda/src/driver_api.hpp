// The driver's functions as pointers, each pinned to one ABI version. A pointer that may be missing
// has another type than one that is always there, so that nobody calls what an old driver lacks.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "cuda_api.hpp"
#include "refrain/base/result.hpp"

namespace refrain::cuda {

/// The oldest driver that is opened: CUDA 12.4 (R550).
inline constexpr int kOldestDriver = 12040;

/// "12.4" for 12040.
std::string version_text(int version);

/// The error for an optional entry that `driver_version` does not have.
Error entry_missing(std::string_view symbol, int needs, int driver_version);

/// An entry point that only newer drivers have.
template <class Function>
class OptionalEntry {
 public:
  /// The function; refuses with `driver_too_old`, naming it, where the driver has none.
  [[nodiscard]] Result<Function> get() const {
    if (function_ == nullptr) return entry_missing(symbol_, needs_, driver_version_);
    return function_;
  }
  [[nodiscard]] bool there() const noexcept { return function_ != nullptr; }

 private:
  friend struct EntryLoader;
  Function function_ = nullptr;
  const char* symbol_ = "";
  int needs_ = 0;
  int driver_version_ = 0;
};

/// Every entry of driver_entries.inc under its exported name. Immutable once loaded; safe to share.
struct DriverApi {
  std::string library;     ///< What was opened.
  int driver_version = 0;  ///< 12040 for 12.4.

#define REFRAIN_CUDA_FIELD_required(symbol, type) type symbol = nullptr;
#define REFRAIN_CUDA_FIELD_optional(symbol, type) OptionalEntry<type> symbol;
#define REFRAIN_CUDA_ENTRY(need, symbol, name, version) \
  REFRAIN_CUDA_FIELD_##need(symbol, PFN_##name##_v##version)
#include "driver_entries.inc"
#undef REFRAIN_CUDA_ENTRY
#undef REFRAIN_CUDA_FIELD_required
#undef REFRAIN_CUDA_FIELD_optional
};

}  // namespace refrain::cuda
