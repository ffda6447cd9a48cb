#include "refrain/base/byte_range.hpp"

namespace refrain {

void ByteRangeSet::add(ByteRange range) {
  if (range.empty()) return;
  // Ranges that touch fuse, so equality is equality of bytes.
  auto first = std::lower_bound(ranges_.begin(), ranges_.end(), range.begin,
                                [](ByteRange r, std::uint64_t at) { return r.end < at; });
  auto last = first;
  for (; last != ranges_.end() && last->begin <= range.end; ++last) {
    range.begin = std::min(range.begin, last->begin);
    range.end = std::max(range.end, last->end);
  }
  first = ranges_.erase(first, last);
  ranges_.insert(first, range);
}

void ByteRangeSet::remove(ByteRange range) {
  if (range.empty()) return;
  auto first = std::lower_bound(ranges_.begin(), ranges_.end(), range.begin,
                                [](ByteRange r, std::uint64_t at) { return r.end <= at; });
  auto last = first;
  ByteRange left{};
  ByteRange right{};
  for (; last != ranges_.end() && last->begin < range.end; ++last) {
    if (last->begin < range.begin) left = {last->begin, range.begin};
    if (last->end > range.end) right = {range.end, last->end};
  }
  first = ranges_.erase(first, last);
  if (!right.empty()) first = ranges_.insert(first, right);
  if (!left.empty()) ranges_.insert(first, left);
}

std::vector<ByteRange> ByteRangeSet::missing(ByteRange range) const {
  std::vector<ByteRange> gaps;
  each_missing(range, [&](ByteRange gap) { gaps.push_back(gap); });
  return gaps;
}

void ByteRangeSet::make_room(std::size_t more) {
  const std::size_t wanted = ranges_.size() + more;
  if (wanted > ranges_.capacity()) ranges_.reserve(std::max(wanted, 2 * ranges_.capacity()));
}

}  // namespace refrain
