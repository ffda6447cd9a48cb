// The streams of one window, and what each knows to have come before (C21). A window that has one
// stream is in order by itself; with several, only events say which work of one stream follows
// which of another, and sealing asks here whether two nodes are ordered (C13).
//
// Each member has a clock: for every member, how many of its nodes come before what this one
// records next (a vector clock: C. Fidge, F. Mattern, 1988). An event is a copy of such a clock.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "refrain/base/ids.hpp"
#include "refrain/base/where.hpp"

namespace refrain {

/// For the window's thread.
class Members {
 public:
  /// A place among the members; the stream that opened the window is 0.
  using Index = std::uint32_t;
  static constexpr Index kOrigin = 0;
  /// For each member, how many of its nodes come before; shorter than the members means zero.
  using Clock = std::vector<std::uint32_t>;

  /// A point in a member's work, as an event holds it.
  struct Point {
    Index member = kOrigin;
    Clock clock;
  };
  /// Where a node stands.
  struct Stamp {
    Index member = kOrigin;
    std::uint32_t number = 0;  ///< Among the member's nodes, from 0.
    std::uint32_t epoch = 0;   ///< Which of the member's clocks it was recorded under.
  };
  struct Member {
    StreamId stream;
    Where forked;                 ///< Where it joined the window.
    std::uint32_t nodes = 0;      ///< Recorded by it.
    std::uint32_t last_node = 0;  ///< The newest, as the window counts its nodes.
    bool left = false;            ///< Another member waits for everything that it recorded.
    std::vector<Clock> epochs;    ///< A new one each time that it learns of others' work.
  };

  explicit Members(StreamId origin) : all_{Member{origin, {}, 0, 0, false, {Clock{}}}} {}

  [[nodiscard]] const Member& at(Index member) const { return all_[member]; }
  /// Whether any stream but the first has ever been a member.
  [[nodiscard]] bool forked() const noexcept { return all_.size() > 1; }

  /// `stream` waits on an event of a member, and so becomes one, or is one again.
  Index join(StreamId stream, const Point& point, Where where);
  /// A member waits on an event of a member: what recorded it leaves, if it may and has recorded
  /// nothing since (but never the origin).
  void wait(Index member, const Point& point, bool may_leave);
  /// Everything that `member` has recorded, and what that follows.
  [[nodiscard]] Point point(Index member) const;
  /// `member` records the window's node number `node`.
  Stamp staged(Index member, std::uint32_t node);

  /// Whether the node at `first` has always ended when the one at `second` starts; `first` was
  /// recorded earlier.
  [[nodiscard]] bool ordered(const Stamp& first, const Stamp& second) const;
  /// A member with a node that the origin does not wait for.
  [[nodiscard]] std::optional<Index> out() const;

 private:
  static std::uint32_t known(const Clock& clock, Index member) noexcept {
    return member < clock.size() ? clock[member] : 0;
  }
  void learn(Member& member, const Clock& clock);

  std::vector<Member> all_;
};

}  // namespace refrain
