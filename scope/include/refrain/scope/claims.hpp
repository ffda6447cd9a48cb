// Which bytes carry which failure. Only failures are kept: a clean byte has no record. Ranges of
// one failure that touch are one range (M1); a failure that no byte carries is gone (M2).
//
// Everything here is guarded by the mutex of the failure table that owns it, and nothing here
// allocates once room has been reserved: it runs on the way out of failed work.
#pragma once

#include <array>
#include <atomic>
#include <boost/intrusive/list.hpp>
#include <boost/intrusive/set.hpp>
#include <cstdint>
#include <deque>
#include <utility>

#include "refrain/base/byte_range.hpp"
#include "refrain/base/error.hpp"
#include "refrain/base/where.hpp"
#include "refrain/scope/buffer_binding.hpp"

namespace refrain {

/// Work that did not run because of a failure (K7).
struct Skip {
  KernelId kernel;
  StreamId stream;
  Where where;
  BufferBinding needed;       ///< The first input that carried the failure.
  BufferBinding would_write;  ///< The first of what it would have written.
  std::uint32_t would_write_count = 0;
};

/// The skips that a failure caused: the newest 16, and how many older ones were dropped (K7).
class SkipHistory {
 public:
  static constexpr std::size_t kKept = 16;

  void add(const Skip& skip) noexcept { skips_[count_++ % kKept] = skip; }
  void clear() noexcept { count_ = 0; }
  [[nodiscard]] std::size_t kept() const noexcept { return count_ < kKept ? count_ : kKept; }
  [[nodiscard]] std::uint64_t dropped() const noexcept { return count_ - kept(); }
  [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
  /// The `age`-th newest, 0 being the newest; `age` < kept().
  [[nodiscard]] const Skip& newest(std::size_t age) const noexcept {
    return skips_[(count_ - 1 - age) % kKept];
  }

 private:
  std::array<Skip, kKept> skips_{};
  std::uint64_t count_ = 0;
};

/// The windows that a failure doomed: the newest, and how many there were.
struct DoomedWindows {
  StreamId stream;
  Where opened;
  std::uint64_t count = 0;
};

/// One failure. Lives while something refers to it: a claim, or a failure that it caused.
struct FailureRecord : boost::intrusive::list_base_hook<> {
  FailureId id;
  std::uint64_t references = 0;
  Error error{ErrorKind::torn_down};
  FailureRecord* cause = nullptr;  ///< What the work met inside its body, when that is known.
  bool mark = false;               ///< Whether it is "recorded, not replayed" (C18).
  bool causes = false;             ///< Whether another failure may name this one as its cause.
  bool provisional = false;        ///< Whether its scope is still open.
  bool counts = false;             ///< Whether somebody should read of it before it goes.
  bool told = false;               ///< Whether somebody has.
  KernelId kernel;
  StreamId stream;
  Where where;
  SkipHistory skips;
  DoomedWindows doomed;

  /// Somebody read of this failure, and so of those that it stems from.
  void tell() noexcept {
    for (FailureRecord* at = this; at != nullptr; at = at->cause) at->told = true;
  }
};

/// The pool of failures of one table.
class FailureRecords {
 public:
  /// With `keeps_unread`, a failure that nobody has read of waits in `take_dead` when it goes.
  explicit FailureRecords(bool keeps_unread) noexcept : keeps_unread_(keeps_unread) {}
  ~FailureRecords();
  FailureRecords(const FailureRecords&) = delete;
  FailureRecords& operator=(const FailureRecords&) = delete;

  /// A new failure that nothing refers to yet; `settle` it once something had its chance to.
  FailureRecord& mint(const Error& error, KernelId kernel, StreamId stream, Where where) noexcept;

  /// Drops a failure that nothing took (E8).
  void settle(FailureRecord& record) noexcept {
    if (record.references == 0) release(retire(record));
  }

  void retain(FailureRecord* record) noexcept {
    if (record != nullptr) ++record->references;
  }
  void release(FailureRecord* record) noexcept {
    // A failure may be all that keeps its cause, and that one its own: chains grow long.
    while (record != nullptr && --record->references == 0) record = retire(*record);
  }

  /// Says that `record` stems from `error`, and from the failure that `error` names, if it lives.
  void set_error(FailureRecord& record, const Error& error) noexcept;

  [[nodiscard]] FailureRecord* find(FailureId id) noexcept;

  /// How many failures live. Readable without the mutex: zero means that every byte is clean.
  [[nodiscard]] std::uint64_t live() const noexcept {
    return live_.load(std::memory_order_seq_cst);
  }

  void reserve(std::size_t free_records);

  using List = boost::intrusive::list<FailureRecord>;

  /// The failures that are gone and of which a listener is to hear, or which still hold a user's
  /// exception. Either runs the user's code, so that is done without the mutex; then `give_back`
  /// takes the records, with it.
  [[nodiscard]] List take_dead() noexcept;
  void give_back(List& records) noexcept;

 private:
  /// Takes a failure out; answers its cause, with the reference that it held.
  FailureRecord* retire(FailureRecord& record) noexcept;

  std::deque<FailureRecord> storage_;
  List live_list_;
  List free_;
  List dead_;
  const bool keeps_unread_;
  std::atomic<std::uint64_t> live_{0};
  // Made here, because an exit makes no text.
  const Error needed_own_{
      ErrorKind::skipped,
      "Work in it needed bytes that it claims itself until it ends, so that work did not run."};
};

/// Every byte that an allocation can have, and those that a claim beyond its end may name.
inline constexpr ByteRange kAllBytes{0, ~std::uint64_t{0}};

/// What a byte carries. Both null: clean (kept only where a window needs to know that it wrote).
struct Claim {
  FailureRecord* failure = nullptr;
  FailureRecord* mark = nullptr;  ///< "Recorded, not replayed", lying over the failure (C18).
  /// Work that was to write this was skipped because of a scope that is still open. That scope's
  /// success is none for this byte (E9).
  bool passed_on = false;

  /// What a reader meets: the mark lies on top.
  [[nodiscard]] FailureRecord* met() const noexcept { return mark != nullptr ? mark : failure; }
  friend bool operator==(const Claim&, const Claim&) noexcept = default;
};

/// A range of bytes that carries one claim.
struct ClaimSegment : boost::intrusive::set_base_hook<boost::intrusive::optimize_size<true>> {
  ByteRange range;
  Claim claim;
  ClaimSegment* next_free = nullptr;
};

/// Where a claim's segments come from.
class SegmentPool {
 public:
  SegmentPool() = default;
  SegmentPool(const SegmentPool&) = delete;
  SegmentPool& operator=(const SegmentPool&) = delete;

  ClaimSegment& take() noexcept;
  void give_back(ClaimSegment& segment) noexcept;

  /// Makes sure that `count` segments lie free.
  void reserve(std::size_t count);

 private:
  std::deque<ClaimSegment> storage_;
  ClaimSegment* free_ = nullptr;
  std::size_t free_count_ = 0;
};

/// The claims of one allocation.
class ClaimRanges {
 public:
  /// What a change of claims needs: where segments come from and who counts the failures.
  struct Context {
    SegmentPool& segments;
    FailureRecords& records;
  };

  ClaimRanges() = default;
  ClaimRanges(ClaimRanges&&) noexcept = default;

  [[nodiscard]] bool empty() const noexcept { return segments_.empty(); }

  /// Replaces whatever `range` carried.
  void put(ByteRange range, Claim claim, Context context) noexcept;
  /// Takes away whatever `range` carried.
  void erase(ByteRange range, Context context) noexcept;

  /// Calls `visit(clipped range, claim)` for each claim on `range`, in order, until it answers
  /// true; answers whether it did.
  template <class Visit>
  bool any(ByteRange range, Visit visit) const {
    if (range.empty()) return false;
    for (auto at = first(range.begin); at != segments_.end() && at->range.begin < range.end; ++at) {
      if (visit(intersection(at->range, range), at->claim)) return true;
    }
    return false;
  }

  /// Like `any`, and also visits what carries no claim, as an empty claim and `present` false.
  template <class Visit>
  bool any_with_gaps(ByteRange range, Visit visit) const {
    std::uint64_t at = range.begin;
    const bool stopped = any(range, [&](ByteRange part, const Claim& claim) {
      if (at < part.begin && visit(ByteRange{at, part.begin}, Claim{}, false)) return true;
      at = part.end;
      return visit(part, claim, true);
    });
    if (stopped) return true;
    return at < range.end && visit(ByteRange{at, range.end}, Claim{}, false);
  }

 private:
  struct Before {
    bool operator()(const ClaimSegment& a, const ClaimSegment& b) const noexcept {
      return a.range.begin < b.range.begin;
    }
    bool operator()(const ClaimSegment& a, std::uint64_t b) const noexcept {
      return a.range.begin < b;
    }
    bool operator()(std::uint64_t a, const ClaimSegment& b) const noexcept {
      return a < b.range.begin;
    }
  };
  using Set = boost::intrusive::set<ClaimSegment, boost::intrusive::compare<Before>>;

  /// The first segment that ends after `at`.
  [[nodiscard]] Set::const_iterator first(std::uint64_t at) const noexcept;
  void split(std::uint64_t at, Context context) noexcept;

  Set segments_;
};

}  // namespace refrain
