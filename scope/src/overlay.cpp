#include "refrain/scope/overlay.hpp"

namespace refrain {
namespace {

/// Whether somebody should read of a failure that a refused window leaves. Until then it was the
/// window's own affair; bytes that nobody wrote, and work still running, are no failures.
bool counts(const FailureRecord& record) noexcept {
  const ErrorKind kind = record.error.kind();
  return !record.provisional && kind != ErrorKind::unwritten && kind != ErrorKind::not_replayed &&
         kind != ErrorKind::skipped;
}

}  // namespace

// Every change of claims counts failures, which the table's mutex guards. Recording is not the
// path that serves, so the overlay simply holds that mutex; it is held for some tens of
// nanoseconds at a time.

Overlay::~Overlay() { forget(); }

void Overlay::forget() noexcept {
  const FailureTable::Hold hold(table_);
  for (auto& [buffer, entry] : entries_) entry.claims.erase(kAllBytes, context());
  entries_.clear();
}

void Overlay::make_room(std::span<const BufferBinding> reads,
                        std::span<const BufferBinding> writes) {
  const FailureTable::Hold hold(table_);
  table_.top_up();
  reserve_segments(writes.size());
  for (const BufferBinding& write : writes) entries_[write.buffer];
  for (const BufferBinding& read : reads) {
    Entry& entry = entries_[read.buffer];
    std::size_t gaps = 0;
    entry.claims.any_with_gaps(read.range, [&](ByteRange, const Claim&, bool present) {
      if (!present) ++gaps;
      return false;
    });
    entry.read_first.make_room(gaps);
  }
}

void Overlay::reserve_segments(std::size_t more) {
  // Here and not at the exit, which allocates nothing. For the scopes around it as well: their
  // claims come back at its exit.
  segments_.reserve(3 * (open_bindings_ + more) + 8);
}

FoundFailure Overlay::read_failure(std::span<const BufferBinding> reads) noexcept {
  const FailureTable::Hold hold(table_);
  FailureRecord* met = nullptr;
  BufferBinding needed;
  for (const BufferBinding& read : reads) {
    FailureTable::Slot* const beneath = table_.slot(read.buffer);
    Entry& entry = entries_[read.buffer];
    const auto meets = [&](ByteRange at, FailureRecord* failure) {
      if (met != nullptr || failure == nullptr) return;  // O4: the first, in argument order
      met = failure;
      needed = {read.buffer, at};
    };
    // Walks on after the first failure: C11 asks what would have been read before it was written.
    entry.claims.any_with_gaps(read.range, [&](ByteRange part, const Claim& claim, bool present) {
      if (present) {
        meets(part, claim.failure);
        return false;
      }
      entry.read_first.add(part);
      if (beneath == nullptr) return false;
      beneath->claims.any(part, [&](ByteRange at, const Claim& real) {
        // C8: what nobody has written yet, and what a recording has not replayed yet, is no
        // failure while recording: nothing runs now, and every replay asks again (P2).
        if (real.failure != nullptr && real.failure->error.kind() != ErrorKind::unwritten) {
          meets(at, real.failure);
        }
        return met != nullptr;
      });
      return false;
    });
  }
  if (met == nullptr) return {};
  return FoundFailure(table_, *met, needed);
}

std::optional<BufferBinding> Overlay::written(std::span<const BufferBinding> reads) const {
  std::optional<BufferBinding> found;
  for (const BufferBinding& read : reads) {
    const auto entry = entries_.find(read.buffer);
    if (entry == entries_.end()) continue;
    const bool met = entry->second.claims.any(read.range, [&](ByteRange at, const Claim&) {
      found = {read.buffer, at};
      return true;
    });
    if (met) break;
  }
  return found;
}

void Overlay::put_into_overlay(OpenScope& scope) noexcept {
  if (scope.writes.empty()) return;  // O7
  FailureRecord& record =
      table_.records_.mint(Error(ErrorKind::torn_down), scope.kernel, stream_, scope.where);
  table_.records_.retain(&record);
  record.provisional = true;
  scope.provisional = &record;
  for (const BufferBinding& binding : scope.writes) {
    entries_[binding.buffer].claims.put(binding.range, {&record, nullptr}, context());
  }
}

void Overlay::enter_write(OpenScope& scope) noexcept {
  scope.show = nullptr;
  scope.parent = current_;
  current_ = &scope;
  const FailureTable::Hold hold(table_);
  table_.keep_room();
  reserve_segments(scope.writes.size());
  open_bindings_ += scope.writes.size();
  put_into_overlay(scope);
}

void Overlay::propagate(const FoundFailure& found, const Skip& skip,
                        std::span<const BufferBinding> writes) noexcept {
  const FailureTable::Hold hold(table_);
  reserve_segments(writes.size());
  FailureRecord& record = *found.record_;
  record.skips.add(skip);
  const Claim claim{&record, nullptr, record.provisional};
  for (const BufferBinding& binding : writes) {
    entries_[binding.buffer].claims.put(binding.range, claim, context());
  }
}

void Overlay::restore(OpenScope* scope, BufferId buffer, ByteRange part) noexcept {
  if (scope == nullptr) return;
  restore(scope->parent, buffer, part);
  for (const BufferBinding& binding : scope->writes) {
    if (binding.buffer != buffer) continue;
    entries_[buffer].claims.put(intersection(binding.range, part), {scope->provisional, nullptr},
                                context());
  }
}

void Overlay::exit_write(OpenScope& scope, const Error* error) noexcept {
  leave(scope);
  const FailureTable::Hold hold(table_);
  open_bindings_ -= scope.writes.size();
  FailureRecord* const provisional = scope.provisional;
  if (provisional == nullptr) return;  // O7
  if (error != nullptr) {
    table_.records_.set_error(*provisional, *error);
    if (provisional->references > 1) scope.failed_as = provisional->id;
  } else {
    for (const BufferBinding& binding : scope.writes) {
      ClaimRanges& claims = entries_[binding.buffer].claims;
      ByteRange rest = binding.range;
      ByteRange part;
      while (claims.any(rest, [&](ByteRange at, const Claim& claim) {
        part = at;
        return claim.failure == provisional && !claim.passed_on;
      })) {
        claims.put(part, Claim{}, context());
        restore(scope.parent, binding.buffer, part);
        rest.begin = part.end;
      }
    }
    if (provisional->references > 1) {
      table_.records_.set_error(*provisional, table_.skipped_inside_);  // E9
    }
  }
  provisional->provisional = false;
  scope.provisional = nullptr;
  table_.records_.release(provisional);
}

void Overlay::leave(OpenScope& scope) noexcept {
  if (current_ == &scope) {
    current_ = scope.parent;
    return;
  }
  for (OpenScope* inner = current_; inner != nullptr; inner = inner->parent) {
    if (inner->parent != &scope) continue;
    inner->parent = scope.parent;  // a scope that was opened later is still open
    return;
  }
}

FailureId Overlay::refuse(const Error& error, Where where, bool told) noexcept {
  const FailureTable::Hold hold(table_);
  table_.keep_room();
  FailureRecord& refused = table_.records_.mint(error, KernelId{}, stream_, where);
  // Work that is still open when its window goes was not recorded either, and its exit, outside
  // the window by then, must not make good what it never wrote.
  const auto open = [this](const FailureRecord* claimed) {
    for (const OpenScope* scope = current_; scope != nullptr; scope = scope->parent) {
      if (scope->provisional == claimed) return true;
    }
    return false;
  };
  for (auto& known : entries_) {
    Entry& entry = known.second;
    FailureTable::Slot* const target = table_.slot(known.first);
    if (target == nullptr) continue;
    entry.read_first.each_missing(kAllBytes, [&](ByteRange fresh) {
      entry.claims.any(fresh,
                       [&](ByteRange part, const Claim& claim) REFRAIN_NO_THREAD_SAFETY_ANALYSIS {
                         const bool own = claim.failure != nullptr && !open(claim.failure);
                         FailureRecord* const carried = own ? claim.failure : &refused;
                         carried->counts = carried->counts || counts(*carried);
                         table_.put(*target, part, {carried, nullptr});
                         return false;
                       });
    });
  }
  if (FailureRecord* const by = refused.cause) {
    by->doomed = {stream_, opened_, by->doomed.count + 1};
  }
  if (told) refused.tell();
  const FailureId id = refused.id;
  table_.records_.settle(refused);
  table_.keep_room();
  return id;
}

}  // namespace refrain
