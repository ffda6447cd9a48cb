// The order that bytes ask for: walks nodes in recorded order and finds, for each, the earlier
// nodes whose writes it reads or overwrites and whose reads it would spoil. Private to capture/.
#pragma once

#include <cstdint>
#include <vector>

#include "refrain/base/byte_range.hpp"

namespace refrain {

class ByteOrder {
 public:
  explicit ByteOrder(std::size_t regions) : regions_(regions) {}

  void begin_node(std::uint32_t node) {
    node_ = node;
    found_.clear();
  }
  /// This node follows `earlier`, whatever their bytes.
  void follow(std::uint32_t earlier) {
    ++steps_;
    depend(earlier);
  }
  void read(std::uint32_t region, ByteRange range);
  void write(std::uint32_t region, ByteRange range);
  /// Appends the nodes that this one must follow, ascending, each once.
  void end_node(std::vector<std::uint32_t>& dependencies);

  /// How much work this has been, and with it how much memory: stretches looked at, readers kept,
  /// and what had to make room for new ones.
  [[nodiscard]] std::uint64_t steps() const noexcept { return steps_; }

  /// Bytes that were read before any node had written them.
  [[nodiscard]] const ByteRangeSet& external(std::uint32_t region) const {
    return regions_[region].external;
  }
  [[nodiscard]] const ByteRangeSet& written(std::uint32_t region) const {
    return regions_[region].written;
  }

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  /// Bytes with one history: who wrote them last and who has read them since.
  struct Stretch {
    ByteRange range;
    std::uint32_t writer = kNone;
    std::vector<std::uint32_t> readers;
  };
  struct History {
    std::vector<Stretch> stretches;  // sorted, not overlapping
    ByteRangeSet external;
    ByteRangeSet written;
  };

  void depend(std::uint32_t node) {
    if (node != kNone && node != node_) found_.push_back(node);
  }
  void insert(std::vector<Stretch>& all, std::size_t at, Stretch stretch);
  /// Cuts stretches at `range`'s ends and fills its gaps; answers where it begins.
  std::size_t isolate(History& history, ByteRange range);

  std::vector<History> regions_;
  std::vector<std::uint32_t> found_;
  std::uint32_t node_ = 0;
  std::uint64_t steps_ = 0;
};

}  // namespace refrain
