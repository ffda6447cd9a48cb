#include "refrain/scope/overlay.hpp"

namespace refrain {

// Every change of claims counts failures, which the table's mutex guards. Recording is not the
// path that serves, so the overlay simply holds that mutex; it is held for some tens of
// nanoseconds at a time.

Overlay::~Overlay() {
  const Lock lock(table_.mutex_);
  for (auto& [buffer, entry] : entries_) entry.claims.erase({0, ~std::uint64_t{0}}, context());
}

FoundFailure Overlay::read_failure(std::span<const BufferBinding> reads) noexcept {
  const Lock lock(table_.mutex_);
  for (const BufferBinding& read : reads) {  // O4
    FailureTable::Slot* const beneath = table_.slot(read.buffer);
    Entry& entry = entries_[read.buffer];
    FailureRecord* met = nullptr;
    BufferBinding needed = read;
    entry.claims.any_with_gaps(read.range, [&](ByteRange part, const Claim& claim, bool present) {
      if (present) {
        met = claim.failure;
        needed.range = part;
        return met != nullptr;
      }
      entry.read_first.add(part);
      if (beneath == nullptr) return false;
      return beneath->claims.any(part, [&](ByteRange at, const Claim& real) {
        // C8: what nobody has written yet, and what a recording has not replayed yet, is no
        // failure while recording: nothing runs now, and every replay asks again (P2).
        if (real.failure == nullptr || real.failure->error.kind() == ErrorKind::unwritten) {
          return false;
        }
        met = real.failure;
        needed.range = at;
        return true;
      });
    });
    if (met != nullptr) return FoundFailure(table_, *met, needed);
  }
  return {};
}

void Overlay::put_into_overlay(OpenScope& scope) noexcept {
  FailureRecord& record = table_.records_.mint(Error(ErrorKind::torn_down), scope.kernel, stream_,
                                               scope.where);
  table_.records_.retain(&record);
  scope.provisional = &record;
  for (const BufferBinding& binding : scope.writes) {
    entries_[binding.buffer].claims.put(binding.range, {&record, nullptr}, context());
  }
}

void Overlay::enter_write(OpenScope& scope) noexcept {
  scope.parent = current_;
  current_ = &scope;
  const Lock lock(table_.mutex_);
  table_.top_up();
  // Here and not at the exit, which allocates nothing.
  segments_.reserve(3 * scope.writes.size() + 8);
  put_into_overlay(scope);
}

void Overlay::propagate(const FoundFailure& found, const Skip& skip,
                        std::span<const BufferBinding> writes) noexcept {
  const Lock lock(table_.mutex_);
  FailureRecord& record = *found.record_;
  record.skips.add(skip);
  for (const BufferBinding& binding : writes) {
    entries_[binding.buffer].claims.put(binding.range, {&record, nullptr}, context());
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
  current_ = scope.parent;
  const Lock lock(table_.mutex_);
  FailureRecord* const provisional = scope.provisional;
  if (error != nullptr) {
    table_.records_.set_error(*provisional, *error);
  } else {
    for (const BufferBinding& binding : scope.writes) {
      ClaimRanges& claims = entries_[binding.buffer].claims;
      ByteRange rest = binding.range;
      ByteRange part;
      while (claims.any(rest, [&](ByteRange at, const Claim& claim) {
        part = at;
        return claim.failure == provisional;
      })) {
        claims.put(part, Claim{}, context());
        restore(scope.parent, binding.buffer, part);
        rest.begin = part.end;
      }
    }
  }
  scope.provisional = nullptr;
  table_.records_.release(provisional);
}

void Overlay::refuse(const Error& error, Where where) noexcept {
  const Lock lock(table_.mutex_);
  table_.top_up();
  FailureRecord& refused = table_.records_.mint(error, KernelId{}, stream_, where);
  for (auto& [buffer, entry] : entries_) {
    FailureTable::Slot* const target = table_.slot(buffer);
    if (target == nullptr) continue;
    const ByteRange everything{0, target->size};
    for (const ByteRange& fresh : entry.read_first.missing(everything)) {
      entry.claims.any(fresh, [&](ByteRange part, const Claim& claim) {
        FailureRecord* const carried = claim.failure != nullptr ? claim.failure : &refused;
        target->claims.put(part, {carried, nullptr}, {table_.segments_, table_.records_});
        return false;
      });
    }
  }
  table_.records_.settle(refused);
}

}  // namespace refrain
