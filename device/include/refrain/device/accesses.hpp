// Who touched which bytes last: for every stretch of a buffer the work that wrote it, and, since
// then, the newest work of each stream that read it. What is older comes before one of those.
#pragma once

#include <boost/container/small_vector.hpp>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "refrain/base/where.hpp"
#include "refrain/scope/buffer_binding.hpp"

namespace refrain {

/// A piece of work: the `number`-th of its stream, from 1.
struct Access {
  StreamId stream;
  std::uint64_t number = 0;
  KernelId kernel;
  Where where;
};

/// What a piece of work touches. Immutable once shared.
struct TouchedBytes {
  std::vector<BufferBinding> reads;
  std::vector<BufferBinding> writes;
  /// Those of `writes` that are bad when it is not run: all, but for the states of a replay (P2).
  std::vector<BufferBinding> unrun_writes;

  /// Lists that come again, like those of a replay, have a number of their own and are sorted once,
  /// so that asking about them does not walk them (P5). Called once, before they are shared.
  void will_come_again();
  std::uint64_t number = 0;  ///< 0 for those that do not.

  struct Touch {
    BufferBinding bytes;
    bool write = false;
  };
  std::vector<Touch> by_buffer{};  ///< All of them, sorted, when they come again.
};

/// Bytes that two pieces of work both use, one of them writing.
struct Conflict {
  BufferBinding bytes;
  bool first_writes = false;
  bool second_writes = false;
};
[[nodiscard]] std::optional<Conflict> conflict(const TouchedBytes& first,
                                               const TouchedBytes& second);

/// Whether two lists of bytes have one in common.
[[nodiscard]] bool overlap(std::span<const BufferBinding> some,
                           std::span<const BufferBinding> others) noexcept;

/// For one thread at a time.
class Accesses {
 public:
  /// `by` reads or writes `binding`, after all work that it conflicts with.
  void read(const BufferBinding& binding, const Access& by);
  void write(const BufferBinding& binding, const Access& by);
  void forget(BufferId buffer) { buffers_.erase(buffer); }
  void clear() noexcept { buffers_.clear(); }
  [[nodiscard]] bool empty() const noexcept { return buffers_.empty(); }

  /// Calls `visit(range, access, whether it writes)` for the last writer of each stretch of
  /// `binding`, and, with `readers`, for those that have read it since, until it answers true.
  template <class Visit>
  void each(const BufferBinding& binding, bool readers, Visit visit) const {
    const auto found = buffers_.find(binding.buffer);
    if (found == buffers_.end()) return;
    for (const Stretch& stretch : found->second) {
      const ByteRange both = intersection(stretch.range, binding.range);
      if (both.empty()) continue;
      if (stretch.writer && visit(both, *stretch.writer, true)) return;
      for (std::size_t at = 0; readers && at < stretch.readers.size(); ++at) {
        if (visit(both, stretch.readers[at], false)) return;
      }
    }
  }

 private:
  struct Stretch {
    ByteRange range;
    std::optional<Access> writer;
    boost::container::small_vector<Access, 1> readers;
  };
  using Stretches = std::vector<Stretch>;  // sorted, without overlaps

  /// Cuts so that stretches begin and end at the borders of `range`; answers the first inside.
  static std::size_t cut(Stretches& stretches, ByteRange range);

  std::map<BufferId, Stretches> buffers_;
};

}  // namespace refrain
