// What is known of the order between the streams of a device (E11). Work of two streams that uses
// the same bytes, one of them writing, is refused before it is issued unless an event, a sync or a
// wait of the host puts one after the other: a race that is refused is better than one that is
// found. Whether the earlier work happens to have ended does not count, so that a program is
// refused every time or never.
//
// Each asynchronous stream has a clock: how many pieces of every stream's work come before what it
// is given next (a vector clock: C. Fidge, F. Mattern, 1988). An event is a copy of such a clock.
// Work of an inline stream has ended when its call is back, so it comes before all that follows.
#pragma once

#include <atomic>
#include <boost/container/flat_map.hpp>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "refrain/base/error.hpp"
#include "refrain/base/mutex.hpp"
#include "refrain/base/result.hpp"
#include "refrain/base/where.hpp"
#include "refrain/device/accesses.hpp"
#include "refrain/scope/buffer_binding.hpp"
#include "refrain/scope/failure_table.hpp"

namespace refrain {

/// Safe to share.
class Order {
 public:
  /// For each stream, how many pieces of its work come before; a stream that is left out has none.
  using Clock = boost::container::flat_map<StreamId, std::uint64_t>;

  explicit Order(const FailureTable& table) noexcept : table_(table) {}

  /// Whether there is no stream whose work could be unordered.
  [[nodiscard]] bool trivial() const noexcept {
    return asynchronous_.load(std::memory_order_relaxed) == 0;
  }

  /// How much of a stream's work the device has, or never will have.
  using HandedOver = std::shared_ptr<std::atomic<std::uint64_t>>;

  /// A stream whose work may go on when its call is back. What it answers is raised to the number
  /// of each piece of work once the call that issued it is over: before that nobody can wait for
  /// it, so no wait of another thread ends it.
  HandedOver attach(StreamId stream);
  /// It is gone, and all its work has ended.
  void detach(StreamId stream) noexcept;
  /// The buffer is gone.
  void forget(BufferId buffer);

  /// `work` is about to be issued. Answers which piece of its stream's it is, from 1, or 0 for an
  /// inline stream's. Refuses (`unordered`), naming both, when it conflicts with work
  /// that it is not ordered after; it does not count as issued then. `bytes` are kept for as long
  /// as they matter; lists that come again, as those of a replay do, cost nothing to keep.
  [[nodiscard]] Result<std::uint64_t> issue(const Access& work,
                                            const std::shared_ptr<const TouchedBytes>& bytes);
  /// The refusal of `issue`, for a scope around work that counts by itself.
  [[nodiscard]] std::optional<Error> ask(const Access& work, const TouchedBytes& bytes);
  /// A point after all that every stream was given.
  [[nodiscard]] Clock point() const;
  /// A point after all that `stream` was given; for its thread.
  [[nodiscard]] Clock point(StreamId stream) const;
  /// What `stream` is given next comes after `point`. An inline stream has waited for it.
  void wait(StreamId stream, const Clock& point);

  /// A point after all that writes `bindings`, or, with `readers`, touches them. What was skipped
  /// counts: whoever waits for it waits for what comes before it.
  [[nodiscard]] Clock point(std::span<const BufferBinding> bindings, bool readers) const;

  /// The host has seen `point` come, so everything issued from now on comes after it. All that the
  /// point holds must have ended: also what a stream waits for and has been given no work after.
  void ended(const Clock& point);

 private:
  /// An asynchronous stream.
  struct Line {
    StreamId stream;
    std::uint64_t issued = 0;
    HandedOver handed_over = std::make_shared<std::atomic<std::uint64_t>>(0);
    std::uint64_t ended = 0;
    /// Its clock from each number on, oldest first; never empty. What has ended needs none.
    std::deque<std::pair<std::uint64_t, Clock>> clocks{{0, Clock{}}};
  };
  struct Logged {
    Access work;
    std::shared_ptr<const TouchedBytes> bytes;
  };

  [[nodiscard]] Line* find(StreamId stream) noexcept REFRAIN_REQUIRES(mutex_);
  [[nodiscard]] const Line* find(StreamId stream) const noexcept REFRAIN_REQUIRES(mutex_);
  /// Whether `earlier` comes before what `line`, null for an inline stream, is given next.
  [[nodiscard]] bool before(const Access& earlier, const Line* line) const noexcept
      REFRAIN_REQUIRES(mutex_);
  [[nodiscard]] bool after_everything(const Line* line) const noexcept REFRAIN_REQUIRES(mutex_);
  /// Work that uses the same bytes and that `line` is not ordered after, as an error.
  [[nodiscard]] std::optional<Error> race(const Access& work, const TouchedBytes& bytes,
                                          const Line* line) REFRAIN_REQUIRES(mutex_);
  [[nodiscard]] bool harmless(const TouchedBytes& one, const TouchedBytes& other)
      REFRAIN_REQUIRES(mutex_);
  [[nodiscard]] Error unordered(const Access& work, bool writes, const Access& earlier, bool wrote,
                                const BufferBinding& bytes) const;
  void raise(StreamId stream, std::uint64_t number) noexcept REFRAIN_REQUIRES(mutex_);
  /// Takes `work`, and all that comes before it, into `point`.
  void add(Clock& point, const Access& work) const REFRAIN_REQUIRES(mutex_);
  void has_ended(const Clock& point) noexcept REFRAIN_REQUIRES(mutex_);
  /// Forgets what no check can meet any more.
  void prune() noexcept REFRAIN_REQUIRES(mutex_);
  /// Enters what is logged, but for lists that come again, into `accesses_`.
  void sort_in() REFRAIN_REQUIRES(mutex_);

  const FailureTable& table_;
  std::atomic<std::size_t> asynchronous_{0};
  mutable Mutex mutex_;
  std::vector<Line> lines_ REFRAIN_GUARDED_BY(mutex_);
  // In the order of issue, without what `accesses_` has. With one stream, or streams that events
  // order, nobody ever asks for the bytes one by one.
  std::deque<Logged> log_ REFRAIN_GUARDED_BY(mutex_);
  Accesses accesses_ REFRAIN_GUARDED_BY(mutex_);
  Clock sorted_in_ REFRAIN_GUARDED_BY(mutex_);  // the newest work of each stream in `accesses_`
  // Pairs of lists that come again and do not conflict.
  std::set<std::pair<std::uint64_t, std::uint64_t>> harmless_ REFRAIN_GUARDED_BY(mutex_);
};

}  // namespace refrain
