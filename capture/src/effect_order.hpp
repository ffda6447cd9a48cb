// The order that effects ask for where bytes and resources cannot tell it: an opaque node follows
// whatever has effects and came before it on its stream, or by events, and is followed likewise.
// Only what does not follow from the rest is kept, so long windows stay small. Private to capture/.
#pragma once

#include <cstdint>
#include <vector>

#include "refrain/capture/effects.hpp"
#include "refrain/capture/members.hpp"
#include "refrain/capture/node.hpp"

namespace refrain {

class EffectOrder {
 public:
  explicit EffectOrder(const Members& members) noexcept : members_(members) {}

  /// The next node that has effects, which stay where they are. Appends what it must follow.
  void add(std::uint32_t node, const Members::Stamp& stamp, const Effects& effects,
           std::vector<NodeOrder>& orders);

 private:
  struct Seen {
    std::uint32_t node = 0;
    Members::Stamp stamp;
    const Effects* effects = nullptr;
  };

  /// Appends those of one member that `next` follows and that need not follow from one another.
  void candidates(const std::vector<Seen>& member, const Seen& next,
                  std::vector<Seen>& found) const;

  const Members& members_;
  std::vector<std::vector<Seen>> by_member_;
};

}  // namespace refrain
