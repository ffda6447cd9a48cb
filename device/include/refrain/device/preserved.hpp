// The bytes that a warm-up pass reads and then writes, as they were, so that a pass which runs for
// real advances no state (C20).
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "refrain/base/byte_range.hpp"
#include "refrain/base/ids.hpp"
#include "refrain/scope/claims.hpp"

namespace refrain {

/// For one thread and one pass.
class Preserved {
 public:
  struct Saved {
    BufferBinding where;
    std::vector<std::byte> bytes;
  };

  /// Before work that reads: what of that this pass has not written, and so came from before it.
  std::vector<BufferBinding> about_to_read(std::span<const BufferBinding> reads);
  /// Before work that writes, after what that reads was told: the ranges that must be saved now,
  /// each once a pass. They are counted as saved.
  std::vector<BufferBinding> about_to_write(std::span<const BufferBinding> writes);
  void save(const BufferBinding& where, std::vector<std::byte> bytes) {
    saved_.push_back({where, std::move(bytes)});
  }
  [[nodiscard]] std::span<const Saved> saved() const noexcept { return saved_; }

 private:
  struct History {
    ByteRangeSet written;     // since the pass began
    ByteRangeSet read_first;  // read before they were written
    ByteRangeSet saved;
  };
  std::map<BufferId, History> histories_;
  std::vector<Saved> saved_;
};

}  // namespace refrain
