#include "refrain/scope/failure_table.hpp"

#include <algorithm>
#include <memory>

#include "refrain/base/kernel_name.hpp"
#include "refrain/base/text.hpp"

namespace refrain {
namespace {

std::string place(StreamId stream, Where where) {
  const std::string on = stream ? " on stream " + std::to_string(stream.number) : "";
  return on + text(where);
}

/// `"kernel" on stream 1 (file:line): `, as far as it is known.
std::string issued(const FailureRecord& record) {
  if (!record.kernel && !record.stream && !record.where.known()) return "";
  return (record.kernel ? quote(kernel_name(record.kernel)) : "recorded") +
         place(record.stream, record.where) + ": ";
}

/// How many scopes it is inside of.
std::size_t depth(const OpenScope& scope) noexcept {
  std::size_t around = 0;
  for (const OpenScope* each = scope.parent; each != nullptr; each = each->parent) ++around;
  return around;
}

/// The same with two spaces before every line but the first.
std::string indented(const std::string& lines) {
  std::string all;
  for (const char each : lines) {
    all += each;
    if (each == '\n') all += "  ";
  }
  return all;
}

}  // namespace

/// A text of which some parts are errors. They are asked for theirs once the table is unlocked: an
/// exception's `what` is the user's.
class FailureTable::Draft {
 public:
  void add(std::string_view words) { parts_.back().words += words; }
  void add(const Error& error) {
    parts_.back().error = error;
    parts_.emplace_back();
  }
  [[nodiscard]] std::string text() const {
    std::string all;
    for (const Part& part : parts_) {
      all += part.words;
      if (part.error) all += part.error->text();
    }
    return all;
  }

 private:
  struct Part {
    std::string words;
    std::optional<Error> error{};  // behind the words
  };
  std::vector<Part> parts_{1};
};

FoundFailure::FoundFailure(FailureTable& table, FailureRecord& record,
                           const BufferBinding& needed) noexcept
    : table_(&table),
      record_(&record),
      needed_(needed),
      error_(record.error.with_failure(record.id)) {
  table.records_.retain(&record);
}

FailureOrigin FoundFailure::origin() const noexcept {
  return {record_->kernel, record_->stream, record_->where};
}

void FoundFailure::let_go() noexcept { table_->release(record_); }

bool LateClaim::passes_on(const Skip& skip, std::span<const BufferBinding> reads,
                          std::span<const BufferBinding> writes,
                          std::span<const BufferBinding> unrun_writes) {
  for (const BufferBinding& read : reads) {
    for (const auto& [buffer, bytes] : bytes_) {
      if (buffer != read.buffer) continue;
      for (const ByteRange& bad : bytes.ranges()) {
        if (!bad.overlaps(read.range)) continue;
        Skip noted = skip;
        noted.needed = {buffer, intersection(bad, read.range)};
        noted.would_write_count = static_cast<std::uint32_t>(unrun_writes.size());
        if (!unrun_writes.empty()) noted.would_write = unrun_writes.front();
        skips_.push_back(noted);
        add(unrun_writes);
        return true;
      }
    }
  }
  remove(writes);
  return false;
}

void LateClaim::add(std::span<const BufferBinding> bindings) {
  for (const BufferBinding& binding : bindings) {
    auto found = std::find_if(bytes_.begin(), bytes_.end(),
                              [&](const auto& entry) { return entry.first == binding.buffer; });
    if (found == bytes_.end()) {
      found = bytes_.insert(bytes_.end(), {binding.buffer, ByteRangeSet{}});
    }
    found->second.add(binding.range);
  }
}

void LateClaim::remove(std::span<const BufferBinding> bindings) {
  for (const BufferBinding& binding : bindings) {
    for (auto& [buffer, bytes] : bytes_) {
      if (buffer == binding.buffer) bytes.remove(binding.range);
    }
  }
}

FailureTable::FailureTable(std::uint32_t device, UnreadListener on_unread)
    : device_(device), on_unread_(std::move(on_unread)), records_(static_cast<bool>(on_unread_)) {}

FailureTable::~FailureTable() {
  for (std::atomic<Slot*>& chunk : chunks_) delete[] chunk.load(std::memory_order_relaxed);
}

FailureTable::Hold::~Hold() {
  FailureRecords::List dead = table_.records_.take_dead();
  table_.mutex_.unlock();
  if (dead.empty()) return;
  for (FailureRecord& record : dead) {
    if (record.counts && !record.told && table_.on_unread_) {
      table_.on_unread_({record.error.with_failure(record.id), record.kernel, record.stream,
                         record.where, record.skips.count()});
    }
    record.error = Error(ErrorKind::torn_down);
  }
  const Lock lock(table_.mutex_);
  table_.records_.give_back(dead);
}

FailureTable::Slot* FailureTable::slot(BufferId buffer) const noexcept {
  if (buffer.device != device_ || !buffer || buffer.slot >= kChunk * kChunks) return nullptr;
  Slot* const chunk = chunks_[buffer.slot / kChunk].load(std::memory_order_acquire);
  if (chunk == nullptr) return nullptr;
  Slot& found = chunk[buffer.slot % kChunk];
  return found.generation.load(std::memory_order_acquire) == buffer.generation ? &found : nullptr;
}

BufferId FailureTable::add(std::string name, std::uint64_t size, void* owner, bool unwritten) {
  const Lock lock(mutex_);
  if (free_slots_.empty()) {
    const std::uint32_t chunk = used_slots_ / kChunk;
    if (used_slots_ % kChunk == 0) {
      free_slots_.reserve(used_slots_ + kChunk);  // so that giving one back cannot fail
      chunks_.at(chunk).store(new Slot[kChunk], std::memory_order_release);
    }
    free_slots_.push_back(used_slots_++);
  }
  const std::uint32_t number = free_slots_.back();
  free_slots_.pop_back();
  Slot& made = chunks_[number / kChunk].load(std::memory_order_relaxed)[number % kChunk];
  made.name = std::move(name);
  made.owner.store(owner, std::memory_order_release);
  made.generation.store(++made.last_generation, std::memory_order_release);
  if (unwritten && size != 0) {
    FailureRecord& record =
        records_.mint(Error(ErrorKind::unwritten), KernelId{}, StreamId{}, Where{});
    put(made, {0, size}, {&record});
    keep_room();  // what scopes that are open may need to end
  }
  return BufferId{device_, number, made.last_generation};
}

void FailureTable::remove(BufferId buffer) noexcept {
  const Hold hold(*this);
  Slot* const gone = slot(buffer);
  if (gone == nullptr) return;
  erase(*gone, kAllBytes);  // M4
  gone->generation.store(0, std::memory_order_release);
  gone->owner.store(nullptr, std::memory_order_release);
  gone->watched = false;
  free_slots_.push_back(buffer.slot);
}

void* FailureTable::owner_of(BufferId buffer) const noexcept {
  const Slot* const found = slot(buffer);
  if (found == nullptr) return nullptr;
  void* const owner = found->owner.load(std::memory_order_acquire);
  // Asked again: the slot may have been given to somebody else in between.
  return found->generation.load(std::memory_order_acquire) == buffer.generation ? owner : nullptr;
}

const std::string* FailureTable::name(BufferId buffer) const noexcept {
  if (buffer.device != device_ || !buffer || buffer.slot >= used_slots_) return nullptr;
  const Slot* const chunk = chunks_[buffer.slot / kChunk].load(std::memory_order_relaxed);
  const Slot& found = chunk[buffer.slot % kChunk];
  return found.last_generation == buffer.generation ? &found.name : nullptr;
}

std::string FailureTable::name_of(BufferId buffer) const {
  const Lock lock(mutex_);
  const std::string* const known = name(buffer);
  return known != nullptr ? *known : std::string();
}

void FailureTable::attach(ScopeShow& show) {
  const Lock lock(mutex_);
  show.table_ = this;
  shows_.push_back(&show);
  try {
    top_up();
  } catch (...) {
    shows_.pop_back();
    throw;
  }
}

void FailureTable::detach(ScopeShow& show) noexcept {
  const Lock lock(mutex_);
  std::erase(shows_, &show);
}

void FailureTable::reserve(std::size_t bindings) {
  const Lock lock(mutex_);
  reserved_bindings_ += bindings;
  try {
    top_up();
  } catch (...) {
    reserved_bindings_ -= bindings;
    throw;
  }
}

void FailureTable::unreserve(std::size_t bindings) noexcept {
  const Lock lock(mutex_);
  reserved_bindings_ -= bindings;
}

void FailureTable::put(Slot& target, ByteRange range, Claim claim) noexcept {
  target.claims.put(range, claim, context());
  if (target.carries.load(std::memory_order_relaxed) || target.claims.empty()) return;
  // In this order: whoever has read the new version finds the buffer's flag set.
  target.carries.store(true, std::memory_order_seq_cst);
  if (target.watched) watched_version_.fetch_add(1, std::memory_order_seq_cst);
}

void FailureTable::erase(Slot& target, ByteRange range) noexcept {
  target.claims.erase(range, context());
  if (target.claims.empty()) target.carries.store(false, std::memory_order_seq_cst);
}

bool FailureTable::bare(std::span<const BufferBinding> bindings) const noexcept {
  return std::none_of(bindings.begin(), bindings.end(), [this](const BufferBinding& binding) {
    const Slot* const found = slot(binding.buffer);
    return found != nullptr && found->carries.load(std::memory_order_seq_cst);
  });
}

void FailureTable::watch(std::span<const BufferBinding> bindings) {
  const Lock lock(mutex_);
  for (const BufferBinding& binding : bindings) {
    if (Slot* const found = slot(binding.buffer)) found->watched = true;
  }
}

FailureTable::Version FailureTable::seen_bare(
    std::span<const BufferBinding> reads, std::span<const BufferBinding> writes) const noexcept {
  const Version version(watched_version_.load(std::memory_order_seq_cst));  // before the flags
  return bare(reads) && bare(writes) ? version : Version{};
}

void FailureTable::keep_room() noexcept {
  try {
    top_up();
  } catch (...) {
    short_.store(true, std::memory_order_relaxed);  // what there is may do; the next one asks again
  }
}

void FailureTable::top_up() {
  short_.store(false, std::memory_order_relaxed);
  // Each claimed range can split one segment at either end and takes one itself. Failures: every
  // stream's innermost scope and some that nest; a nested one tops up again as it opens.
  segments_.reserve(3 * reserved_bindings_ + 8);
  records_.reserve(2 * shows_.size() + 16);
}

void FailureTable::put_into_table(ScopeShow& show, OpenScope& scope) noexcept {
  FailureRecord* const bad = reached(scope);
  if (bad != nullptr) scope.poisoned.store(bad->id.number, std::memory_order_relaxed);
  if (scope.writes.empty()) return;  // O7: mints nothing
  FailureRecord& record =
      records_.mint(Error(ErrorKind::torn_down), scope.kernel, show.stream_, scope.where);
  records_.retain(&record);  // the scope's own, until it settles
  short_.store(true, std::memory_order_relaxed);
  record.provisional = true;
  scope.provisional = &record;
  records_.retain(bad);  // what carries it may be just the bytes that are claimed now
  for (const BufferBinding& binding : scope.writes) {
    if (Slot* const found = slot(binding.buffer)) {
      put(*found, binding.range, {&record, nullptr});  // O6
    }
  }
  if (bad == nullptr) return;
  for (const BufferBinding& binding : scope.unrun_writes()) {
    if (Slot* const found = slot(binding.buffer)) {
      put(*found, binding.range, {bad, nullptr});
    }
  }
  records_.release(bad);
}

void FailureTable::release_what_stays(OpenScope& scope) noexcept {
  for (const BufferBinding& binding : scope.writes) {
    Slot* const target = slot(binding.buffer);
    if (target == nullptr) continue;
    ByteRange rest = binding.range;
    while (!rest.empty()) {
      // The next stretch from `rest.begin` that is wholly inside or wholly outside `unrun_writes`.
      ByteRange part = rest;
      bool unrun = false;
      for (const BufferBinding& each : scope.unrun_writes()) {
        if (each.buffer != binding.buffer || !each.range.overlaps(part)) continue;
        unrun = each.range.begin <= part.begin;
        part.end = unrun ? std::min(part.end, each.range.end) : each.range.begin;
        if (unrun) break;
      }
      rest.begin = part.end;
      ByteRange carried;
      while (!unrun && target->claims.any(part, [&](ByteRange at, const Claim& claim) {
        carried = at;
        return claim.failure == scope.provisional && !claim.passed_on;
      })) {
        erase(*target, carried);
        restore(scope.parent, binding.buffer, carried);
        part.begin = carried.end;
      }
    }
  }
}

void FailureTable::look(ScopeShow& show) noexcept {
  std::uintptr_t bits = show.current_.load(std::memory_order_seq_cst);
  while (bits != 0 && (bits & ScopeShow::kInTable) == 0) {
    if (show.current_.compare_exchange_weak(bits, bits | ScopeShow::kInTable,
                                            std::memory_order_seq_cst)) {
      // Its owner now cannot leave without the mutex, which this thread holds.
      OpenScope& scope = *ScopeShow::scope(bits);
      scope.under = nullptr;  // or it had been put in as it opened
      put_into_table(show, scope);
      return;
    }
  }
}

FoundFailure FailureTable::look_at(ScopeShow& show, std::span<const BufferBinding> reads,
                                   FailureId beneath,
                                   std::span<const BufferBinding> states) noexcept {
  const Hold hold(*this);
  // O6: nested work sees the provisional of the scope it is in.
  if (const OpenScope* const outer = around(show)) look(*outer->show);
  for (const BufferBinding& read : reads) {  // O4: in argument order
    const bool state = !states.empty() && states.front() == read;
    if (state) states = states.subspan(1);
    Slot* const found = slot(read.buffer);
    if (found == nullptr) continue;
    FailureRecord* met = nullptr;
    BufferBinding needed = read;
    found->claims.any(read.range, [&](ByteRange part, const Claim& claim) {
      // C18: the recording's own replay looks beneath the mark, and any replay does on its states.
      const bool under = state || (claim.mark != nullptr && claim.mark->id == beneath);
      met = under ? claim.failure : claim.met();
      needed.range = part;
      return met != nullptr;
    });
    if (met != nullptr) return FoundFailure(*this, *met, needed);
  }
  return {};
}

FailureRecord* FailureTable::reached(const OpenScope& scope) const noexcept {
  FailureRecord* met = nullptr;
  for (const BufferBinding& read : scope.reads) {
    const Slot* const found = slot(read.buffer);
    if (found == nullptr) continue;
    found->claims.any(read.range, [&](ByteRange, const Claim& claim) {
      FailureRecord* const failure = claim.failure;
      if (failure == nullptr || failure->provisional ||
          failure->error.kind() == ErrorKind::unwritten) {
        return false;
      }
      met = failure;
      return true;
    });
    if (met != nullptr) break;
  }
  return met;
}

void FailureTable::enter_looking(ScopeShow& show, OpenScope& scope, bool clean) noexcept {
  const Hold hold(*this);
  keep_room();
  if (clean) return;
  look(show);  // O6: replaces what the write set carried
  scope.follows = follows_.load(std::memory_order_relaxed);
}

OpenScope* FailureTable::around(const ScopeShow& show) const noexcept {
  OpenScope* const shown = ScopeShow::scope(show.current_.load(std::memory_order_relaxed));
  OpenScope* running = nullptr;
  for (OpenScope* each = RunningBody::innermost_; each != nullptr; each = each->running) {
    if (each->show == nullptr || each->show->table_ != this) continue;  // elsewhere, or in a window
    running = each;
    break;
  }
  if (shown == nullptr) return running;
  for (const OpenScope* each = running; each != nullptr; each = each->parent) {
    if (each == shown) return running;
  }
  return shown;
}

bool FailureTable::enter_inside(ScopeShow& show, OpenScope& scope) noexcept {
  scope.parent = around(show);
  if (scope.parent == nullptr) return false;
  const Hold hold(*this);
  keep_room();
  look(*scope.parent->show);  // the outer scope's claim lies beneath this one's
  scope.follows = follows_.load(std::memory_order_relaxed);
  scope.under = ScopeShow::scope(show.current_.load(std::memory_order_relaxed));
  put_into_table(show, scope);
  show.current_.store(ScopeShow::bits(&scope) | ScopeShow::kInTable, std::memory_order_seq_cst);
  return true;
}

void FailureTable::meet(ScopeShow& show, OpenScope& scope) noexcept {
  const Hold hold(*this);
  look(show);
  scope.follows = follows_.load(std::memory_order_relaxed);
}

void FailureTable::propagate(const FoundFailure& found, const Skip& skip,
                             std::span<const BufferBinding> writes) noexcept {
  const Hold hold(*this);
  keep_room();
  FailureRecord& record = *found.record_;
  record.skips.add(skip);  // K7
  const Claim claim{&record, nullptr, record.provisional};
  for (const BufferBinding& binding : writes) {
    Slot* const target = slot(binding.buffer);
    if (target == nullptr) continue;
    if (!record.mark) {
      put(*target, binding.range, claim);  // K1, K2
      continue;
    }
    for (ByteRange rest = binding.range; !rest.empty();) {
      auto [part, carried] = first_stretch(*target, rest);
      const bool marked = carried.mark != nullptr;
      carried.mark = &record;
      put(*target, part, marked ? carried : claim);  // C18: what lies beneath has not been run over
      rest.begin = part.end;
    }
  }
}

std::pair<ByteRange, Claim> FailureTable::first_stretch(const Slot& target,
                                                        ByteRange range) noexcept {
  std::pair<ByteRange, Claim> first;
  target.claims.any_with_gaps(range, [&](ByteRange at, const Claim& claim, bool) {
    first = {at, claim};
    return true;
  });
  return first;
}

void FailureTable::restore(OpenScope* scope, BufferId buffer, ByteRange part) noexcept {
  if (scope == nullptr) return;
  restore(scope->parent, buffer, part);  // the nearest scope goes last and so on top
  FailureRecord* claimed = scope->provisional;
  if (const std::uint64_t bad = scope->poisoned.load(std::memory_order_relaxed); bad != 0) {
    // E10: what it answers for is bad, however cleanly work inside it ended.
    if (FailureRecord* const found = records_.find(FailureId(bad))) claimed = found;
  }
  for (const BufferBinding& binding : scope->writes) {
    if (binding.buffer != buffer) continue;
    put(*slot(buffer), intersection(binding.range, part), {claimed, nullptr});
  }
}

void FailureTable::settle(ScopeShow& show, OpenScope& scope, const Error* error) noexcept {
  const Hold hold(*this);
  if (error != nullptr) look(show);  // what the body failed to write is claimed from here on
  release_provisional(scope, error);
  leave(show, scope);
}

void FailureTable::settle_missed(ScopeShow& show, OpenScope& scope) noexcept {
  const Hold hold(*this);
  put_into_table(show, scope);
  release_provisional(scope, nullptr);
}

void FailureTable::release_provisional(OpenScope& scope, const Error* error) noexcept {
  FailureRecord* const provisional = scope.provisional;
  if (provisional == nullptr) return;  // O7: it writes nothing
  if (error != nullptr) {
    // E2: whatever carried the provisional, wherever it is, now carries the real error.
    records_.set_error(*provisional, *error);
    provisional->counts = provisional->references > 1;
    if (provisional->counts) scope.failed_as = provisional->id;
  } else if (const std::uint64_t bad = scope.poisoned.load(std::memory_order_relaxed); bad != 0) {
    // P2: the states of a replay that was held back are what they were.
    release_what_stays(scope);
    // E10: what was put back on its other bytes after the failure itself had gone.
    records_.set_error(*provisional, Error(ErrorKind::skipped, FailureId(bad)));
  } else {
    for (const BufferBinding& binding : scope.writes) {
      Slot* const target = slot(binding.buffer);
      if (target == nullptr) continue;
      // E1: only bytes that still carry the provisional are released.
      ByteRange rest = binding.range;
      ByteRange part;
      while (target->claims.any(rest, [&](ByteRange at, const Claim& claim) {
        part = at;
        return claim.failure == provisional && !claim.passed_on;
      })) {
        erase(*target, part);
        restore(scope.parent, binding.buffer, part);  // E9
        rest.begin = part.end;
      }
    }
    if (provisional->references > 1) {
      // E9: what is left was passed on by a skip inside; this work itself has come back.
      records_.set_error(*provisional, skipped_inside_);
    }
  }
  provisional->provisional = false;
  scope.provisional = nullptr;
  records_.release(provisional);  // E8: gone, unless something carries it
}

void FailureTable::leave(ScopeShow& show, OpenScope& scope) noexcept {
  const OpenScope* const shown = ScopeShow::scope(show.current_.load(std::memory_order_relaxed));
  if (shown == &scope) {
    const std::uintptr_t outer =
        scope.under != nullptr ? ScopeShow::bits(scope.under) | ScopeShow::kInTable : 0;
    show.current_.store(outer, std::memory_order_seq_cst);
  }
  // Scopes that were opened later may still be open; those that are inside of this one, or over it,
  // are in the table. (Nothing shows one that was opened in a window which has ended since.)
  for (ScopeShow* const each : shows_) {
    const std::uintptr_t bits = each->current_.load(std::memory_order_seq_cst);
    if ((bits & ScopeShow::kInTable) == 0) continue;
    OpenScope* inner = ScopeShow::scope(bits);
    for (; inner != nullptr; inner = inner->under) {
      if (inner->parent == &scope) inner->parent = scope.parent;
      if (inner->under == &scope) inner->under = scope.under;
    }
  }
}

void FailureTable::release(FailureRecord* record) noexcept {
  const Hold hold(*this);
  records_.release(record);
}

std::optional<Error> FailureTable::check(const BufferBinding& binding, bool tells) noexcept {
  const Hold hold(*this);
  for (ScopeShow* const show : shows_) look(*show);
  const Slot* const found = slot(binding.buffer);
  if (found == nullptr) return Error(ErrorKind::stale_buffer);
  FailureRecord* met = nullptr;
  found->claims.any(binding.range, [&](ByteRange, const Claim& claim) {
    met = claim.met();
    return met != nullptr;
  });
  if (met == nullptr) return std::nullopt;
  if (tells) met->tell();
  return met->error.with_failure(met->id);
}

FailureId FailureTable::mark(std::span<const BufferBinding> writes, const Error& error,
                             StreamId stream, Where where) {
  const Hold hold(*this);
  FailureRecord& record = records_.mint(error, KernelId{}, stream, where);
  record.mark = true;
  for (const BufferBinding& binding : writes) {
    Slot* const target = slot(binding.buffer);
    if (target == nullptr) continue;
    ByteRange rest = binding.range;
    while (!rest.empty()) {
      // One stretch at a time: laying the mark changes the ranges that are walked.
      const auto [part, beneath] = first_stretch(*target, rest);
      put(*target, part, {beneath.failure, &record});  // C18
      rest.begin = part.end;
    }
  }
  const FailureId id = record.id;
  records_.settle(record);
  keep_room();
  return id;
}

FailureId FailureTable::claim_late(const Error& error, KernelId kernel, StreamId stream,
                                   Where where, std::span<const BufferBinding> writes,
                                   const LateWalk& walk) {
  const Hold hold(*this);
  keep_room();
  // Counted before anybody is looked at: see the head of the header.
  follows_.fetch_add(1, std::memory_order_seq_cst);
  FailureRecord& record = records_.mint(error, kernel, stream, where);
  records_.retain(&record);
  std::vector<Open> open;
  for (ScopeShow* const show : shows_) {
    look(*show);
    OpenScope* scope = ScopeShow::scope(show->current_.load(std::memory_order_seq_cst));
    for (; scope != nullptr; scope = scope->under) open.push_back({scope, show->stream_});
  }
  // Innermost first, across streams.
  std::stable_sort(open.begin(), open.end(),
                   [](const Open& a, const Open& b) { return depth(*a.scope) > depth(*b.scope); });
  LateClaim late(record.id);
  late.add(writes);
  walk(late, open);
  for (const Skip& skip : late.skips_) record.skips.add(skip);
  for (const auto& [buffer, bytes] : late.bytes_) {
    Slot* const target = slot(buffer);
    if (target == nullptr) continue;
    for (ByteRange rest : bytes.ranges()) {
      while (!rest.empty()) {
        const auto [part, claim] = first_stretch(*target, rest);
        // An unwritten byte stays unwritten no longer: work that was to write it failed.
        const bool free =
            claim.failure == nullptr || claim.failure->error.kind() == ErrorKind::unwritten ||
            std::count(late.overruled_.begin(), late.overruled_.end(), claim.failure) != 0;
        if (free) put(*target, part, {&record, claim.mark});
        rest.begin = part.end;
      }
    }
  }
  const FailureId id = record.id;
  record.counts = record.references > 1;
  records_.release(&record);
  follows_.fetch_add(1, std::memory_order_seq_cst);
  keep_room();
  return id;
}

FailureOrigin FailureTable::origin(FailureId failure) {
  const Lock lock(mutex_);
  const FailureRecord* const found = failure ? records_.find(failure) : nullptr;
  return found != nullptr ? FailureOrigin{found->kernel, found->stream, found->where}
                          : FailureOrigin{};
}

void FailureTable::told(FailureId failure) noexcept {
  const Hold hold(*this);
  if (FailureRecord* const found = failure ? records_.find(failure) : nullptr) found->tell();
}

std::string FailureTable::describe(const BufferBinding& binding) const {
  const std::string* const known = name(binding.buffer);
  const char* const still = slot(binding.buffer) != nullptr ? "" : " (gone by now)";
  return (known != nullptr ? quote(*known) : "a buffer") + " " + text(binding.range) + still;
}

std::string FailureTable::carriers(const FailureRecord& record, BufferId asked) const {
  constexpr std::size_t kNamed = 4;
  const auto carries = [&](const Slot& each) {
    return each.claims.any(kAllBytes, [&](ByteRange, const Claim& claim) {
      return claim.failure == &record || claim.mark == &record;
    });
  };
  std::size_t count = 0;
  std::size_t named = 0;
  std::string names;
  const auto add = [&](const Slot& each) {
    ++count;
    if (named == kNamed) return;
    names += (named++ == 0 ? ": " : ", ") + quote(each.name);
  };
  const Slot* const own = slot(asked);
  if (own != nullptr && carries(*own)) add(*own);  // whoever asks looks for it
  for (std::uint32_t number = 0; number < used_slots_; ++number) {
    const Slot& each = chunks_[number / kChunk].load(std::memory_order_relaxed)[number % kChunk];
    if (&each != own && carries(each)) add(each);
  }
  if (count > named) names += " and " + std::to_string(count - named) + " more";
  return std::to_string(count) + (count == 1 ? " buffer carries it" : " buffers carry it") + names +
         ".";
}

void FailureTable::describe(const FailureRecord& record, BufferId asked, Draft& draft) const {
  draft.add("failure " + std::to_string(record.id.number) + ": " + issued(record));
  draft.add(record.error);
  for (std::size_t age = 0; age < record.skips.kept(); ++age) {  // K7: newest first
    const Skip& skip = record.skips.newest(age);
    draft.add("\n  skipped: " + quote(kernel_name(skip.kernel)) + place(skip.stream, skip.where) +
              " needed " + describe(skip.needed));
    if (skip.would_write_count != 0) {
      draft.add(" and would have written " + describe(skip.would_write));
      if (skip.would_write_count > 1) {
        draft.add(" and " + std::to_string(skip.would_write_count - 1) + " more");
      }
    }
  }
  if (record.skips.dropped() != 0) {
    draft.add("\n  and " + std::to_string(record.skips.dropped()) + " earlier skips");
  }
  if (record.doomed.count != 0) {
    draft.add("\n  It doomed the window of stream " + std::to_string(record.doomed.stream.number) +
              text(record.doomed.opened));
    const std::uint64_t before = record.doomed.count - 1;
    if (before != 0) {
      draft.add(", and " + std::to_string(before) + (before == 1 ? " window" : " windows") +
                " before it");
    }
    draft.add(".");
  }
  describe_causes(record, draft);
  draft.add("\n  " + carriers(record, asked));
}

void FailureTable::describe_causes(const FailureRecord& record, Draft& draft) const {
  // The nearest ones and the root: between them a chain may be as long as the program ran.
  constexpr std::size_t kNearest = 3;
  std::size_t left = 0;
  for (const FailureRecord* at = record.cause; at != nullptr; at = at->cause) ++left;
  std::size_t told = 0;
  for (const FailureRecord* at = record.cause; at != nullptr; at = at->cause, --left) {
    if (told == kNearest && left > 1) {
      draft.add("\n  because of " + std::to_string(left - 1) +
                (left == 2 ? " more failure" : " more failures, each because of the next") +
                ", and at the root");
      while (at->cause != nullptr) at = at->cause;
    }
    draft.add("\n  because of failure " + std::to_string(at->id.number) + ": " + issued(*at));
    draft.add(at->error);
    ++told;
  }
}

std::string FailureTable::story(FailureId failure) {
  Draft draft;
  {
    const Lock lock(mutex_);
    FailureRecord* const found = records_.find(failure);
    if (found == nullptr) {
      return "Failure " + std::to_string(failure.number) + " is no longer carried by anything.";
    }
    found->tell();
    describe(*found, BufferId{}, draft);
  }
  return draft.text();
}

std::optional<Error> FailureTable::report(std::span<const BufferBinding> bindings) {
  Draft draft;
  ErrorKind kind = ErrorKind::failed_input;
  FailureId first_told;
  {
    const Hold hold(*this);
    for (ScopeShow* const show : shows_) look(*show);
    struct Told {
      FailureRecord* failure;
      const BufferBinding* first;  // of those that carry it
    };
    std::vector<Told> told;  // M7: each distinct failure once
    for (const BufferBinding& binding : bindings) {
      const Slot* const found = slot(binding.buffer);
      if (found == nullptr) continue;
      found->claims.any(binding.range, [&](ByteRange, const Claim& claim) {
        FailureRecord* const met = claim.met();
        const bool again = std::any_of(told.begin(), told.end(),
                                       [met](const Told& each) { return each.failure == met; });
        if (met != nullptr && !again) told.push_back({met, &binding});
        return false;
      });
    }
    if (told.empty()) return std::nullopt;
    const bool one = told.size() == 1;
    draft.add("Buffer " + describe(*told[0].first) + " cannot be read, because it carries " +
              (one ? "a failure." : std::to_string(told.size()) + " failures."));
    for (const Told& each : told) {
      each.failure->tell();
      draft.add("\n");
      describe(*each.failure, each.first->buffer, draft);
    }
    if (one && told[0].failure->error.kind() == ErrorKind::unwritten) kind = ErrorKind::unwritten;
    first_told = told[0].failure->id;
  }
  return Error(kind, indented(draft.text())).with_failure(first_told);
}

}  // namespace refrain
