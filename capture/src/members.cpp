#include "refrain/capture/members.hpp"

#include <algorithm>

namespace refrain {

void Members::learn(Member& member, const Clock& clock) {
  Clock next = member.epochs.back();
  next.resize(std::max(next.size(), clock.size()));
  for (Index each = 0; each < clock.size(); ++each) next[each] = std::max(next[each], clock[each]);
  if (next != member.epochs.back()) member.epochs.push_back(std::move(next));
}

Members::Index Members::join(StreamId stream, const Point& point, Where where) {
  const auto found = std::find_if(all_.begin(), all_.end(),
                                  [&](const Member& each) { return each.stream == stream; });
  const auto index = static_cast<Index>(found - all_.begin());
  if (found == all_.end()) all_.push_back(Member{stream, where, 0, 0, false, {Clock{}}});
  Member& member = all_[index];
  if (member.left) member.forked = where;
  member.left = false;
  learn(member, point.clock);
  return index;
}

void Members::wait(Index member, const Point& point, bool may_leave) {
  learn(all_[member], point.clock);
  Member& joined = all_[point.member];
  if (!may_leave || point.member == kOrigin || point.member == member) return;
  if (known(point.clock, point.member) == joined.nodes) joined.left = true;
}

Members::Point Members::point(Index member) const {
  Point point{member, all_[member].epochs.back()};
  point.clock.resize(std::max<std::size_t>(point.clock.size(), member + 1));
  point.clock[member] = all_[member].nodes;
  return point;
}

Members::Stamp Members::staged(Index member, std::uint32_t node) {
  Member& by = all_[member];
  by.last_node = node;
  return {member, by.nodes++, static_cast<std::uint32_t>(by.epochs.size() - 1)};
}

bool Members::ordered(const Stamp& first, const Stamp& second) const {
  if (first.member == second.member) return true;
  return known(all_[second.member].epochs[second.epoch], first.member) > first.number;
}

std::optional<Members::Index> Members::out() const {
  const Clock& origin = all_[kOrigin].epochs.back();
  for (Index each = 1; each < all_.size(); ++each) {
    if (known(origin, each) < all_[each].nodes) return each;
  }
  return std::nullopt;
}

}  // namespace refrain
