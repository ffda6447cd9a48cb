#include "byte_order.hpp"

#include <algorithm>
#include <iterator>

namespace refrain {

void ByteOrder::insert(std::vector<Stretch>& all, std::size_t at, Stretch stretch) {
  constexpr std::size_t kMovedInAStep = 16;
  steps_ += stretch.readers.size() + (all.size() - at) / kMovedInAStep;
  all.insert(all.begin() + static_cast<std::ptrdiff_t>(at), std::move(stretch));
}

std::size_t ByteOrder::isolate(History& history, ByteRange range) {
  std::vector<Stretch>& all = history.stretches;
  const auto first =
      std::lower_bound(all.begin(), all.end(), range.begin,
                       [](const Stretch& s, std::uint64_t at) { return s.range.end <= at; });
  std::size_t at = static_cast<std::size_t>(first - all.begin());
  if (at < all.size() && all[at].range.begin < range.begin) {
    Stretch left = all[at];
    left.range.end = range.begin;
    all[at].range.begin = range.begin;
    insert(all, at, std::move(left));
    ++at;
  }
  const std::size_t begin = at;
  std::uint64_t covered = range.begin;
  while (covered < range.end) {
    if (at == all.size() || all[at].range.begin > covered) {
      const std::uint64_t end =
          at == all.size() ? range.end : std::min(range.end, all[at].range.begin);
      insert(all, at, Stretch{{covered, end}, kNone, {}});
    } else if (all[at].range.end > range.end) {
      Stretch right = all[at];
      right.range.begin = range.end;
      all[at].range.end = range.end;
      insert(all, at + 1, std::move(right));
    }
    covered = all[at].range.end;
    ++at;
  }
  return begin;
}

void ByteOrder::read(std::uint32_t region, ByteRange range) {
  if (range.empty()) return;
  History& history = regions_[region];
  for (const ByteRange& outside : history.written.missing(range)) history.external.add(outside);
  std::vector<Stretch>& all = history.stretches;
  for (std::size_t at = isolate(history, range); at < all.size() && all[at].range.begin < range.end;
       ++at) {
    ++steps_;
    depend(all[at].writer);  // read after write
    std::vector<std::uint32_t>& readers = all[at].readers;
    if (readers.empty() || readers.back() != node_) readers.push_back(node_);
  }
}

void ByteOrder::write(std::uint32_t region, ByteRange range) {
  if (range.empty()) return;
  History& history = regions_[region];
  history.written.add(range);
  std::vector<Stretch>& all = history.stretches;
  const std::size_t begin = isolate(history, range);
  std::size_t end = begin;
  for (; end < all.size() && all[end].range.begin < range.end; ++end) {
    steps_ += 1 + all[end].readers.size();
    const bool read_by_others = std::any_of(all[end].readers.begin(), all[end].readers.end(),
                                            [&](std::uint32_t reader) { return reader != node_; });
    for (const std::uint32_t reader : all[end].readers) depend(reader);  // write after read
    // Write after write; what others have read since comes after that write already.
    if (!read_by_others) depend(all[end].writer);
  }
  all[begin] = Stretch{range, node_, {}};
  all.erase(all.begin() + static_cast<std::ptrdiff_t>(begin) + 1,
            all.begin() + static_cast<std::ptrdiff_t>(end));
}

void ByteOrder::end_node(std::vector<std::uint32_t>& dependencies) {
  std::sort(found_.begin(), found_.end());
  found_.erase(std::unique(found_.begin(), found_.end()), found_.end());
  dependencies.insert(dependencies.end(), found_.begin(), found_.end());
}

}  // namespace refrain
