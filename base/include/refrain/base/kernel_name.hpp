// Names of kinds of work, interned so that a launch carries four bytes and a failure found later
// can still say what it was. Names are never forgotten: there are as many as a program has kernels.
#pragma once

#include <string_view>

#include "refrain/base/ids.hpp"

namespace refrain {

/// The id of `name`; the same name gives the same id. Takes a lock; not for a hot path.
/// Safe to share.
KernelId intern_kernel_name(std::string_view name);

/// The name behind an id, or "?" for none. The view lives as long as the process. Safe to share.
std::string_view kernel_name(KernelId id) noexcept;

}  // namespace refrain
