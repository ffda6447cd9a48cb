// What tells a whole file from a damaged one. XXH3-128 for sections: fast enough for gigabytes of
// weights, and it finds damage, not malice. SHA-256 for header and table, over which a signature
// can be made.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>

#include "format.hpp"

namespace refrain::format {

/// 32 bytes; those that a digest does not need are zero.
using Digest = std::array<std::byte, 32>;

/// Takes bytes piece by piece.
class Digester {
 public:
  explicit Digester(DigestKind kind);
  Digester(Digester&&) noexcept;
  Digester& operator=(Digester&&) noexcept;
  ~Digester();

  void add(std::span<const std::byte> bytes);
  [[nodiscard]] Digest finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

Digest digest_of(DigestKind kind, std::span<const std::byte> bytes);

}  // namespace refrain::format
