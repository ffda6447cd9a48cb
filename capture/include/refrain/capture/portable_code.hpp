// The code that a kernel comes from, where that is an image that can travel: a cubin, a fatbin, PTX
// text. A graph that was recorded on a CUDA device carries the images of its kernels, so that a
// file of it needs nothing else. A kernel of the host, which is a function of the program's, has
// none.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "refrain/base/shared_bytes.hpp"

namespace refrain {

/// Saved in files: never renumber.
enum class CodeKind : std::uint8_t { cubin = 1, fatbin = 2, ptx = 3 };

inline constexpr std::uint8_t kLastCodeKind = 3;

std::string_view name_of(CodeKind kind) noexcept;

/// One image. Its identity is the SHA-256 of its bytes. Immutable; safe to share.
struct PortableCode {
  using Digest = std::array<std::byte, 32>;

  CodeKind kind = CodeKind::cubin;
  SharedBytes bytes;
  Digest digest{};

  /// With the digest of `bytes`.
  static std::shared_ptr<const PortableCode> make(CodeKind kind, SharedBytes bytes);
};

/// Where a kernel's code is.
struct KernelSource {
  std::shared_ptr<const PortableCode> code{};  ///< Null for a kernel that is built in.
  std::string symbol{};                        ///< What the kernel is called in it.
  /// By what its device knows a kernel that this process has by itself, and takes it before any
  /// other; null for all others. No file has it, and without `code` its graph cannot be saved.
  std::shared_ptr<const void> own{};

  /// Of the same bytes, wherever they lie.
  friend bool operator==(const KernelSource& a, const KernelSource& b) noexcept {
    if (a.own != b.own) return false;
    if (a.code == nullptr || b.code == nullptr) return a.code == b.code;
    return a.code->digest == b.code->digest && a.symbol == b.symbol;
  }
};

}  // namespace refrain
