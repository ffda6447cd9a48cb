// Half-open byte ranges: the unit in which refrain knows what is good (M1).
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <vector>

namespace refrain {

/// The bytes [begin, end) of an allocation or a region. Empty when begin == end.
struct ByteRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;

  [[nodiscard]] constexpr std::uint64_t size() const noexcept { return end - begin; }
  [[nodiscard]] constexpr bool empty() const noexcept { return begin >= end; }
  [[nodiscard]] constexpr bool overlaps(ByteRange other) const noexcept {
    return std::max(begin, other.begin) < std::min(end, other.end);  // never, when one is empty
  }
  [[nodiscard]] constexpr bool contains(ByteRange other) const noexcept {
    return begin <= other.begin && other.end <= end;
  }
  friend constexpr auto operator<=>(const ByteRange&, const ByteRange&) noexcept = default;
};

/// The bytes that both have; empty when they have none in common.
constexpr ByteRange intersection(ByteRange a, ByteRange b) noexcept {
  const ByteRange both{std::max(a.begin, b.begin), std::min(a.end, b.end)};
  return both.empty() ? ByteRange{} : both;
}

/// A set of bytes kept as sorted ranges that neither overlap nor touch.
class ByteRangeSet {
 public:
  ByteRangeSet() = default;

  void add(ByteRange range);
  void remove(ByteRange range);

  /// The parts of `range` that are not in the set, in order.
  [[nodiscard]] std::vector<ByteRange> missing(ByteRange range) const;
  /// Calls `visit` with each of them. Allocates nothing.
  template <class Visit>
  void each_missing(ByteRange range, Visit visit) const {
    if (range.empty()) return;
    std::uint64_t at = range.begin;
    auto next = std::lower_bound(ranges_.begin(), ranges_.end(), range.begin,
                                 [](ByteRange r, std::uint64_t begin) { return r.end <= begin; });
    for (; next != ranges_.end() && next->begin < range.end; ++next) {
      if (at < next->begin) visit(ByteRange{at, next->begin});
      at = next->end;
    }
    if (at < range.end) visit(ByteRange{at, range.end});
  }
  /// Takes the memory that `more` calls of `add` need.
  void make_room(std::size_t more);

  [[nodiscard]] bool contains(ByteRange range) const { return missing(range).empty(); }
  [[nodiscard]] bool empty() const noexcept { return ranges_.empty(); }
  [[nodiscard]] const std::vector<ByteRange>& ranges() const noexcept { return ranges_; }

  friend bool operator==(const ByteRangeSet&, const ByteRangeSet&) = default;

 private:
  std::vector<ByteRange> ranges_;
};

}  // namespace refrain
