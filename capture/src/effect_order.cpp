#include "effect_order.hpp"

#include <algorithm>

namespace refrain {

void EffectOrder::candidates(const std::vector<Seen>& member, const Seen& next,
                             std::vector<Seen>& found) const {
  // What comes before is a first part of the member's nodes.
  auto at = std::partition_point(member.begin(), member.end(), [&](const Seen& each) {
    return members_.ordered(each.stamp, next.stamp);
  });
  while (at != member.begin()) {
    const Seen& earlier = *--at;
    // Users of one resource are a chain of their own, which leads to all that lies before.
    if (next.effects->shares(*earlier.effects)) return;
    if (!next.effects->ordered_with(*earlier.effects)) continue;
    found.push_back(earlier);
    if (earlier.effects->kind() == Effects::Kind::opaque) return;  // as it has followed the others
  }
}

void EffectOrder::add(std::uint32_t node, const Members::Stamp& stamp, const Effects& effects,
                      std::vector<NodeOrder>& orders) {
  const Seen next{node, stamp, &effects};
  std::vector<Seen> found;
  for (const std::vector<Seen>& member : by_member_) candidates(member, next, found);
  std::sort(found.begin(), found.end(),
            [](const Seen& a, const Seen& b) { return a.node > b.node; });
  std::vector<Seen> kept;
  for (const Seen& each : found) {
    const bool follows = std::any_of(kept.begin(), kept.end(), [&](const Seen& later) {
      return each.effects->ordered_with(*later.effects) &&
             members_.ordered(each.stamp, later.stamp);
    });
    if (!follows) kept.push_back(each);
  }
  std::for_each(kept.rbegin(), kept.rend(), [&](const auto& each) {
    orders.push_back({each.node, node});
  });
  if (by_member_.size() <= stamp.member) by_member_.resize(stamp.member + 1);
  by_member_[stamp.member].push_back(next);
}

}  // namespace refrain
