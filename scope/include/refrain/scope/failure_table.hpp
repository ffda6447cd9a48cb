// What is known to be bad on one device: claims per byte range, the failures they point at, and
// the scopes that are open. One per device, shared by its streams.
//
// What must stay true: where nothing is wrong with the bytes that it uses, opening and settling a
// scope touch one cache line of their own stream and, at most, a flag a buffer that nobody writes.
// An open scope is only *shown*, by a pointer; its provisional claim is put into the table when
// somebody looks, and never otherwise.
//
// A failure that is found late (E10) must not miss a launch that opens meanwhile. It counts itself
// before it looks at the pointers and again when it is done. A launch notes the count as it opens
// and compares it where its work is handed over and where it ends: a failure that looked before the
// pointer could be seen has moved the count by then, and the launch puts itself into the table.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "refrain/base/mutex.hpp"
#include "refrain/scope/claims.hpp"
#include "refrain/scope/unread_failure.hpp"

namespace refrain {

class FailureTable;
class Overlay;
class ScopeShow;

/// A scope that is open: lives on the stack of the thread that runs its body.
struct OpenScope {                       // NOLINT: some of it is left as it is, see below
  std::span<const BufferBinding> reads;  ///< What was looked at before it opened.
  std::span<const BufferBinding> writes;
  /// What is bad of `writes` when the work is held back before it has begun (E10), where that is
  /// not all: the states of a replay stay as they are (P2).
  const std::span<const BufferBinding>* replay_unrun_writes = nullptr;
  KernelId kernel;
  Where where;
  OpenScope* parent = nullptr;           ///< The scope in whose body this one was opened (E9).
  FailureRecord* provisional = nullptr;  ///< Set once the claim is in the table.
  std::size_t recorded_before = 0;       ///< What the window answered to `entered`.
  /// The number of a failure that reached its inputs after they were looked at (E10); 0 for none.
  std::atomic<std::uint64_t> poisoned{0};
  /// When its reads and writes were last seen to carry nothing (P5); none for most work.
  std::uint64_t seen_bare = 0;
  /// How often a failure had begun or ended to be followed when this opened (E10).
  std::uint64_t follows = 0;
  /// The first piece of asynchronous work that was issued in its body, as the device numbers them;
  /// 0 for none. Written under the mutex of that work's ledger, and read under those of all.
  std::uint64_t issued_from = 0;
  // Left as they are until they mean something, since each launch makes a scope.
  ScopeShow* show;      ///< Where it is shown, once it has been entered; null in a window.
  OpenScope* under;     ///< What its stream showed before, once its claim is in the table.
  FailureId failed_as;  ///< Once it has failed: what carries its error, none if nothing does.
  OpenScope* running;   ///< The scope whose body runs around this one's body in this thread.

  [[nodiscard]] std::span<const BufferBinding> unrun_writes() const noexcept {
    return replay_unrun_writes != nullptr ? *replay_unrun_writes : writes;
  }
};

/// While the body of a scope runs: work that this thread does meanwhile is inside of it, on
/// whatever stream of the device (E9).
class RunningBody {
 public:
  explicit RunningBody(OpenScope& scope) noexcept : around_(innermost_) {
    scope.running = around_;
    innermost_ = &scope;
  }
  RunningBody(const RunningBody&) = delete;
  RunningBody& operator=(const RunningBody&) = delete;
  ~RunningBody() { innermost_ = around_; }

 private:
  friend class FailureTable;

  OpenScope* around_;
  static inline thread_local constinit OpenScope* innermost_ = nullptr;
};

/// Where one stream shows the scope that it is in. For the stream's thread; others only look.
class alignas(64) ScopeShow {
 public:
  explicit ScopeShow(StreamId stream) noexcept : stream_(stream) {}
  ScopeShow(const ScopeShow&) = delete;
  ScopeShow& operator=(const ScopeShow&) = delete;

  [[nodiscard]] StreamId stream() const noexcept { return stream_; }
  /// Whether a body is running. For the stream's own thread.
  [[nodiscard]] bool inside() const noexcept {
    return current_.load(std::memory_order_relaxed) != 0;
  }

 private:
  friend class FailureTable;
  friend class Overlay;
  // The innermost open scope. The low bit says that its claim is in the table, so its owner must
  // settle there; whoever looks sets it, under the table's mutex.
  static constexpr std::uintptr_t kInTable = 1;
  static std::uintptr_t bits(const OpenScope* scope) noexcept {
    return reinterpret_cast<std::uintptr_t>(scope);
  }
  static OpenScope* scope(std::uintptr_t bits) noexcept {
    return reinterpret_cast<OpenScope*>(bits & ~kInTable);
  }

  std::atomic<std::uintptr_t> current_{0};
  StreamId stream_;
  const FailureTable* table_ = nullptr;
};

/// The work that a failure happened in, as far as it is known.
struct FailureOrigin {
  KernelId kernel{};
  StreamId stream{};
  Where where{};
};

/// A failure that an input carries, held so that it outlives its last claim. Move-only.
class FoundFailure {
 public:
  FoundFailure() = default;
  FoundFailure(FoundFailure&& other) noexcept
      : table_(std::exchange(other.table_, nullptr)),
        record_(std::exchange(other.record_, nullptr)),
        needed_(other.needed_),
        error_(std::move(other.error_)) {}
  FoundFailure& operator=(FoundFailure&&) = delete;
  ~FoundFailure() {
    if (record_ != nullptr) let_go();
  }

  explicit operator bool() const noexcept { return record_ != nullptr; }
  // Of one that there is.
  [[nodiscard]] FailureId id() const noexcept { return error_->failure(); }
  /// The input's own error (K5), naming its failure.
  [[nodiscard]] const Error& error() const noexcept { return *error_; }
  /// The first bytes, of the first input, that carry it.
  [[nodiscard]] const BufferBinding& needed() const noexcept { return needed_; }
  [[nodiscard]] FailureOrigin origin() const noexcept;

 private:
  friend class FailureTable;
  friend class Overlay;
  FoundFailure(FailureTable& table, FailureRecord& record, const BufferBinding& needed) noexcept;
  void let_go() noexcept;

  FailureTable* table_ = nullptr;
  FailureRecord* record_ = nullptr;
  BufferBinding needed_;
  std::optional<Error> error_;
};

/// The bytes that a failure found late makes bad, edited by a walk over what was issued later, in
/// issue order (E10).
class LateClaim {
 public:
  explicit LateClaim(FailureId failure) noexcept : failure_(failure) {}

  [[nodiscard]] FailureId failure() const noexcept { return failure_; }
  /// Later work: if it reads what is bad, it must not run, what it writes is bad too, and the
  /// answer is true; otherwise what it writes is good again.
  bool passes_on(const Skip& skip, std::span<const BufferBinding> reads,
                 std::span<const BufferBinding> writes) {
    return passes_on(skip, reads, writes, writes);
  }
  /// The same of work that, not run, leaves some of what it writes as it is: only `unrun_writes`
  /// are bad then.
  bool passes_on(const Skip& skip, std::span<const BufferBinding> reads,
                 std::span<const BufferBinding> writes,
                 std::span<const BufferBinding> unrun_writes);
  /// A scope that is open and in whose body the work was issued that failed, or to which the
  /// failure was passed on: its provisional gives way to the failure, so that its clean exit does
  /// not make good what is bad.
  void overrules(const OpenScope& scope) { overruled_.push_back(scope.provisional); }

 private:
  friend class FailureTable;
  void add(std::span<const BufferBinding> bindings);
  void remove(std::span<const BufferBinding> bindings);

  FailureId failure_;
  std::vector<std::pair<BufferId, ByteRangeSet>> bytes_;
  std::vector<Skip> skips_;
  std::vector<const FailureRecord*> overruled_;
};

/// Safe to share.
class FailureTable {
 public:
  /// `on_unread` may be empty.
  explicit FailureTable(std::uint32_t device, UnreadListener on_unread = {});
  ~FailureTable();
  FailureTable(const FailureTable&) = delete;
  FailureTable& operator=(const FailureTable&) = delete;

  // Allocations.

  /// A new allocation of `size` bytes; `owner` is handed back by `owner_of`. With `unwritten`,
  /// its bytes carry that (M5) until they are written.
  BufferId add(std::string name, std::uint64_t size, void* owner, bool unwritten);
  /// The allocation is gone, and its claims with it, at once (M4).
  void remove(BufferId buffer) noexcept;
  /// The owner of a live allocation; null when the handle is stale (M6). Takes no lock.
  [[nodiscard]] void* owner_of(BufferId buffer) const noexcept;
  /// Its name, also of one that is gone as long as nothing has taken its place; else empty.
  [[nodiscard]] std::string name_of(BufferId buffer) const;

  // Streams.

  void attach(ScopeShow& show);
  void detach(ScopeShow& show) noexcept;
  /// Keeps room for `bindings` more claimed ranges, so that exits need not allocate.
  void reserve(std::size_t bindings);
  void unreserve(std::size_t bindings) noexcept;

  // The four of a FailureStore (see execute_scope.hpp), for a stream outside a window.

  /// The first failure among `reads`, in order (O4). A mark that is `beneath` is looked under.
  /// With `seen`, when they were last seen to carry nothing, they may not have to be walked (P5).
  FoundFailure read_failure(ScopeShow& show, std::span<const BufferBinding> reads,
                            FailureId beneath = {}, std::uint64_t seen = 0) noexcept {
    if (!inside(show) && (all_clean() || still_bare(seen) || bare(reads))) return {};
    return look_at(show, reads, beneath);
  }
  /// The same for a replay, of which `states` are some of the `reads`, in their order: any mark on
  /// those is looked under (C18).
  FoundFailure read_for_replay(ScopeShow& show, std::span<const BufferBinding> reads,
                               std::span<const BufferBinding> states, FailureId beneath) noexcept {
    return look_at(show, reads, beneath, states);
  }
  void enter_write(ScopeShow& show, OpenScope& scope) noexcept {
    scope.show = &show;
    if (inside(show) && enter_inside(show, scope)) return;
    show.current_.store(ScopeShow::bits(&scope), std::memory_order_release);
    scope.follows = follows_.load(std::memory_order_acquire);
    const bool clean =
        all_clean() || still_bare(scope.seen_bare) || (bare(scope.reads) && bare(scope.writes));
    const bool following = scope.follows % 2 != 0;
    if (clean && !following && !short_.load(std::memory_order_relaxed)) return;
    enter_looking(show, scope, clean && !following);
  }
  /// Work was skipped: `writes` carry what was found (K1). A mark is no failure of theirs, so where
  /// they lie under one already, it takes that one's place and what is beneath stays (C18).
  void propagate(const FoundFailure& found, const Skip& skip,
                 std::span<const BufferBinding> writes) noexcept;
  void exit_write(ScopeShow& show, OpenScope& scope, const Error* error) noexcept {
    std::uintptr_t shown = ScopeShow::bits(&scope);
    if (error == nullptr && show.current_.compare_exchange_strong(shown, 0)) {
      // E1: nobody looked, so there is nothing to release; unless a failure may have missed it.
      // (Not when its work was handed over: it met what there was then, and has been seen since. By
      // now it may even have failed itself, which must not be settled away.)
      if (!followed_since(scope) || scope.issued_from != 0) return;
      settle_missed(show, scope);
      return;
    }
    settle(show, scope, error);
  }

  /// Whether a failure may have been followed without meeting `scope`, which is open.
  [[nodiscard]] bool followed_since(const OpenScope& scope) const noexcept {
    return follows_.load(std::memory_order_seq_cst) != scope.follows;
  }
  /// Lets `scope`, which is the innermost of `show`, meet it.
  void meet(ScopeShow& show, OpenScope& scope) noexcept;

  // For those who use the same bytes again and again (P5).

  /// A moment at which nobody's watched bytes had begun to carry anything since the one before;
  /// zero is none.
  using Version = std::uint64_t;
  /// From now on a buffer of `bindings` that starts to carry something moves the version on.
  void watch(std::span<const BufferBinding> bindings);
  /// Now, if no buffer of these, all watched, carries anything; else none.
  [[nodiscard]] Version seen_bare(std::span<const BufferBinding> reads,
                                  std::span<const BufferBinding> writes) const noexcept;
  /// Whether they carry nothing still.
  [[nodiscard]] bool still_bare(Version seen) const noexcept {
    return seen != 0 && seen == watched_version_.load(std::memory_order_seq_cst);
  }

  // Questions.

  /// What `binding` is known to carry now: its error, naming its failure. Reads nothing, waits
  /// for nothing, takes nothing (M8). Without `tells` nobody has read of the failure by that.
  [[nodiscard]] std::optional<Error> check(const BufferBinding& binding,
                                           bool tells = true) noexcept;
  /// The story of every distinct failure that `bindings` carry (M7), or none when all are clean.
  [[nodiscard]] std::optional<Error> report(std::span<const BufferBinding> bindings);
  /// The story of one failure; a sentence that says so when it is gone.
  [[nodiscard]] std::string story(FailureId failure);
  /// The work that `failure` happened in; nothing when it is gone.
  [[nodiscard]] FailureOrigin origin(FailureId failure);
  /// Somebody was told of `failure` by other means.
  void told(FailureId failure) noexcept;
  /// How many failures live. Zero when everything is clean (M2).
  [[nodiscard]] std::uint64_t live_failures() const noexcept { return records_.live(); }

  // Claims that come from elsewhere than a scope's exit.

  /// Lays "recorded, not replayed" over what `writes` carry (C18); answers the mark.
  FailureId mark(std::span<const BufferBinding> writes, const Error& error, StreamId stream,
                 Where where);

  /// A scope that is open, and where.
  struct Open {
    OpenScope* scope = nullptr;
    StreamId stream;
  };
  /// Follows a failure through what was issued later, with the table locked so that no scope opens
  /// in between; `open` are the scopes that are open now, innermost first. Calls back `passes_on`
  /// for each piece of later work and each scope that is later, `overrules` where that is true
  /// and for scopes around the failed work.
  using LateWalk = std::function<void(LateClaim&, std::span<const Open> open)>;

  /// Work that was issued failed later (E10): follows the failure, then claims what is left and
  /// carries no failure yet.
  FailureId claim_late(const Error& error, KernelId kernel, StreamId stream, Where where,
                       std::span<const BufferBinding> writes, const LateWalk& walk);

 private:
  friend class FoundFailure;
  friend class LiftedMarks;
  friend class Overlay;

  /// Holds the mutex for a block in which failures may go. After it, tells the listener of those
  /// that nobody has read of, and destroys the exceptions that they held: both are the user's.
  class REFRAIN_THREAD_ANNOTATION(scoped_lockable) Hold {
   public:
    explicit Hold(FailureTable& table) REFRAIN_THREAD_ANNOTATION(acquire_capability(table.mutex_))
        : table_(table) {
      table.mutex_.lock();
    }
    ~Hold() REFRAIN_THREAD_ANNOTATION(release_capability());
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;

   private:
    FailureTable& table_;
  };

  struct alignas(64) Slot {
    std::atomic<std::uint64_t> generation{0};  // 0 while free
    std::atomic<void*> owner{nullptr};
    std::atomic<bool> carries{false};  // whether there are claims
    bool watched = false;
    std::uint64_t last_generation = 0;
    std::string name;
    ClaimRanges claims;  // changed by `put` and `erase` of the table alone
  };
  class Draft;

  /// Whether nothing on the device carries anything.
  [[nodiscard]] bool all_clean() const noexcept { return records_.live() == 0; }
  FoundFailure look_at(ScopeShow& show, std::span<const BufferBinding> reads, FailureId beneath,
                       std::span<const BufferBinding> states = {}) noexcept;
  /// Whether work of that stream may be inside of a scope.
  [[nodiscard]] static bool inside(const ScopeShow& show) noexcept {
    return (ScopeShow::bits(RunningBody::innermost_) |
            show.current_.load(std::memory_order_relaxed)) != 0;
  }
  /// The innermost scope of this device that work of that stream would be inside of, or null.
  [[nodiscard]] OpenScope* around(const ScopeShow& show) const noexcept;
  /// Enters a scope that is inside of another one; false when there is none.
  bool enter_inside(ScopeShow& show, OpenScope& scope) noexcept;
  /// Makes room for exits, and, unless it is `clean`, puts the scope into the table.
  void enter_looking(ScopeShow& show, OpenScope& scope, bool clean) noexcept;
  void settle(ScopeShow& show, OpenScope& scope, const Error* error) noexcept;
  /// A clean exit that was shown no more when a failure may have missed it.
  void settle_missed(ScopeShow& show, OpenScope& scope) noexcept;
  void release_provisional(OpenScope& scope, const Error* error) noexcept REFRAIN_REQUIRES(mutex_);
  static constexpr std::size_t kChunk = 1024;
  static constexpr std::size_t kChunks = 4096;

  ClaimRanges::Context context() noexcept REFRAIN_REQUIRES(mutex_) { return {segments_, records_}; }
  [[nodiscard]] Slot* slot(BufferId buffer) const noexcept;
  void put(Slot& target, ByteRange range, Claim claim) noexcept REFRAIN_REQUIRES(mutex_);
  void erase(Slot& target, ByteRange range) noexcept REFRAIN_REQUIRES(mutex_);
  /// The first stretch of `range` that carries one thing, which may be nothing, and that.
  [[nodiscard]] static std::pair<ByteRange, Claim> first_stretch(const Slot& target,
                                                                 ByteRange range) noexcept;
  [[nodiscard]] bool bare(std::span<const BufferBinding> bindings) const noexcept;
  /// What `buffer` is called, as `name_of`.
  [[nodiscard]] const std::string* name(BufferId buffer) const noexcept REFRAIN_REQUIRES(mutex_);
  void top_up() REFRAIN_REQUIRES(mutex_);
  /// The same where nothing may be thrown.
  void keep_room() noexcept REFRAIN_REQUIRES(mutex_);
  /// Claims what `scope` writes: for a failure that has reached its inputs since they were looked
  /// at (E10), or else with its provisional.
  void put_into_table(ScopeShow& show, OpenScope& scope) noexcept REFRAIN_REQUIRES(mutex_);
  void look(ScopeShow& show) noexcept REFRAIN_REQUIRES(mutex_);
  [[nodiscard]] FailureRecord* reached(const OpenScope& scope) const noexcept
      REFRAIN_REQUIRES(mutex_);
  void release_what_stays(OpenScope& scope) noexcept REFRAIN_REQUIRES(mutex_);
  void restore(OpenScope* scope, BufferId buffer, ByteRange part) noexcept REFRAIN_REQUIRES(mutex_);
  void leave(ScopeShow& show, OpenScope& scope) noexcept REFRAIN_REQUIRES(mutex_);
  void release(FailureRecord* record) noexcept;
  [[nodiscard]] std::string describe(const BufferBinding& binding) const REFRAIN_REQUIRES(mutex_);
  /// The whole story; `asked` is the buffer for which somebody wants to know it, if any.
  void describe(const FailureRecord& record, BufferId asked, Draft& draft) const
      REFRAIN_REQUIRES(mutex_);
  void describe_causes(const FailureRecord& record, Draft& draft) const REFRAIN_REQUIRES(mutex_);
  [[nodiscard]] std::string carriers(const FailureRecord& record, BufferId asked) const
      REFRAIN_REQUIRES(mutex_);

  const std::uint32_t device_;
  const UnreadListener on_unread_;
  std::atomic<std::uint64_t> follows_{0};  // odd while a failure is being followed (E10)
  std::atomic<bool> short_{false};         // whether room that was kept for exits has been used
  std::atomic<Version> watched_version_{1};
  mutable Mutex mutex_;
  // Declared before the slots: their claims give segments and failures back.
  FailureRecords records_;
  SegmentPool segments_ REFRAIN_GUARDED_BY(mutex_);
  std::array<std::atomic<Slot*>, kChunks> chunks_{};
  std::uint32_t used_slots_ REFRAIN_GUARDED_BY(mutex_) = 0;
  std::vector<std::uint32_t> free_slots_ REFRAIN_GUARDED_BY(mutex_);
  std::vector<ScopeShow*> shows_ REFRAIN_GUARDED_BY(mutex_);
  std::size_t reserved_bindings_ REFRAIN_GUARDED_BY(mutex_) = 0;
  // Made here, because a clean exit makes no text.
  const Error skipped_inside_{
      ErrorKind::skipped,
      "Work that needed what this was still writing did not run. (What a scope claims can be read "
      "when it has ended.)"};
};

}  // namespace refrain
