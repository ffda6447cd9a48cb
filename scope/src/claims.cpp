#include "refrain/scope/claims.hpp"

#include <algorithm>

namespace refrain {
namespace {

// One count for the process: a number means one failure, whichever device it is of (M3), so an
// error that travelled from one device to another cannot name an unrelated failure there.
std::atomic<std::uint64_t> last_failure{0};

}  // namespace

FailureRecords::~FailureRecords() {
  live_list_.clear();
  free_.clear();
  dead_.clear();
}

void FailureRecords::reserve(std::size_t free_records) {
  while (free_.size() < free_records) free_.push_back(storage_.emplace_back());
}

FailureRecord& FailureRecords::mint(const Error& error, KernelId kernel, StreamId stream,
                                    Where where) noexcept {
  if (free_.empty()) reserve(1);  // only when more work failed at once than was ever open
  FailureRecord& record = free_.front();
  free_.pop_front();
  live_list_.push_back(record);
  live_.fetch_add(1, std::memory_order_seq_cst);
  record.id = FailureId(last_failure.fetch_add(1, std::memory_order_relaxed) + 1);  // M3
  record.references = 0;
  record.mark = false;
  record.causes = false;
  record.provisional = false;
  record.counts = false;
  record.told = false;
  record.kernel = kernel;
  record.stream = stream;
  record.where = where;
  record.skips.clear();
  record.doomed = {};
  set_error(record, error);
  return record;
}

void FailureRecords::set_error(FailureRecord& record, const Error& error) noexcept {
  // Work in the body of a scope that needed what that scope claims, handed on by the body.
  const bool own = error.failure() == record.id && error.kind() == ErrorKind::skipped;
  record.error = own ? needed_own_ : error;
  FailureRecord* const cause = error.failure() ? find(error.failure()) : nullptr;
  if (cause == &record || cause == record.cause) return;
  if (record.causes) {
    // Two failures may name each other; a story that led back to itself would have no root.
    for (const FailureRecord* at = cause; at != nullptr; at = at->cause) {
      if (at == &record) return;
    }
  }
  if (cause != nullptr) cause->causes = true;
  retain(cause);
  release(std::exchange(record.cause, cause));
}

FailureRecord* FailureRecords::find(FailureId id) noexcept {
  // Newest first: what an error stems from is seldom old.
  const auto found = std::find_if(live_list_.rbegin(), live_list_.rend(),
                                  [id](const FailureRecord& record) { return record.id == id; });
  return found != live_list_.rend() ? &*found : nullptr;
}

FailureRecord* FailureRecords::retire(FailureRecord& record) noexcept {
  live_list_.erase(List::s_iterator_to(record));
  const bool unread = keeps_unread_ && record.counts && !record.told;
  if (unread || record.error.exception() != nullptr) {
    dead_.push_back(record);
  } else {
    record.error = Error(ErrorKind::torn_down);  // lets go of the error's body now
    free_.push_front(record);
  }
  live_.fetch_sub(1, std::memory_order_seq_cst);
  return std::exchange(record.cause, nullptr);
}

FailureRecords::List FailureRecords::take_dead() noexcept { return std::exchange(dead_, List()); }

void FailureRecords::give_back(List& records) noexcept { free_.splice(free_.begin(), records); }

ClaimSegment& SegmentPool::take() noexcept {
  if (free_ == nullptr) reserve(1);
  ClaimSegment& segment = *free_;  // NOLINT: there is one now
  free_ = segment.next_free;
  --free_count_;
  segment.claim = {};
  return segment;
}

void SegmentPool::give_back(ClaimSegment& segment) noexcept {
  segment.next_free = free_;
  free_ = &segment;
  ++free_count_;
}

void SegmentPool::reserve(std::size_t count) {
  while (free_count_ < count) give_back(storage_.emplace_back());
}

ClaimRanges::Set::const_iterator ClaimRanges::first(std::uint64_t at) const noexcept {
  auto next = segments_.upper_bound(at, Before{});
  if (next != segments_.begin()) {
    const auto previous = std::prev(next);
    if (previous->range.end > at) return previous;
  }
  return next;
}

void ClaimRanges::split(std::uint64_t at, Context context) noexcept {
  const auto found = first(at);
  if (found == segments_.end() || found->range.begin >= at) return;
  auto& left = const_cast<ClaimSegment&>(*found);
  ClaimSegment& right = context.segments.take();
  right.range = {at, left.range.end};
  right.claim = left.claim;
  context.records.retain(right.claim.failure);
  context.records.retain(right.claim.mark);
  left.range.end = at;
  segments_.insert(right);
}

void ClaimRanges::erase(ByteRange range, Context context) noexcept {
  if (range.empty()) return;
  split(range.begin, context);
  split(range.end, context);
  auto at = segments_.lower_bound(range.begin, Before{});
  while (at != segments_.end() && at->range.begin < range.end) {
    ClaimSegment& gone = *at;
    at = segments_.erase(at);
    const Claim claim = gone.claim;
    context.segments.give_back(gone);
    context.records.release(claim.failure);
    context.records.release(claim.mark);
  }
}

void ClaimRanges::put(ByteRange range, Claim claim, Context context) noexcept {
  if (range.empty()) return;
  // Taken first: the old claim may be all that keeps the new one's failure alive.
  context.records.retain(claim.failure);
  context.records.retain(claim.mark);
  erase(range, context);

  // M1: ranges of one failure that touch are one range.
  const auto next = segments_.lower_bound(range.end, Before{});
  if (next != segments_.begin()) {
    const auto previous = std::prev(next);
    if (previous->range.end == range.begin && previous->claim == claim) {
      range.begin = previous->range.begin;
      ClaimSegment& gone = *previous;
      segments_.erase(previous);
      context.segments.give_back(gone);
      context.records.release(claim.failure);
      context.records.release(claim.mark);
    }
  }
  if (next != segments_.end() && next->range.begin == range.end && next->claim == claim) {
    range.end = next->range.end;
    ClaimSegment& gone = *next;
    segments_.erase(next);
    context.segments.give_back(gone);
    context.records.release(claim.failure);
    context.records.release(claim.mark);
  }
  ClaimSegment& segment = context.segments.take();
  segment.range = range;
  segment.claim = claim;
  segments_.insert(segment);
}

}  // namespace refrain
