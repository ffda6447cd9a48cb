// The bytes that a warm-up pass reads and then writes, as they were, so that a pass which runs for
// real advances no state (C20). Private to device/.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "refrain/base/byte_range.hpp"
#include "refrain/base/error.hpp"
#include "refrain/base/ids.hpp"
#include "refrain/scope/claims.hpp"

namespace refrain {

/// For one thread.
class Preserved {
 public:
  struct Saved {
    BufferBinding where;
    std::vector<std::byte> bytes;
  };

  /// Before work that reads and writes: the ranges that must be saved now, each once a pass. They
  /// are counted as saved.
  std::vector<BufferBinding> about_to_run(std::span<const BufferBinding> reads,
                                          std::span<const BufferBinding> writes);
  void save(const BufferBinding& where, std::vector<std::byte> bytes) {
    saved_.push_back({where, std::move(bytes)});
  }
  /// Some bytes could not be saved; the first reason is kept.
  void could_not_save(Error error) {
    if (!unsaved_) unsaved_ = std::move(error);
  }
  [[nodiscard]] const std::optional<Error>& unsaved() const noexcept { return unsaved_; }
  /// What was saved, and from here on a new pass.
  std::vector<Saved> take();

 private:
  struct History {
    ByteRangeSet written;     // since the pass began
    ByteRangeSet read_first;  // read before they were written
    ByteRangeSet saved;
  };
  std::map<BufferId, History> histories_;
  std::vector<Saved> saved_;
  std::optional<Error> unsaved_;
};

}  // namespace refrain
