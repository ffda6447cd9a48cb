// One scope around one unit of device work: it decides whether an input can be trusted, claims
// what the work writes, and settles that claim however the work ends.
//
// A scope is opened in one of two ways and is one or the other before it exists (O1): `over`
// enters whatever the write set carries, `launching` looks at the inputs and skips when one of
// them carries a failure. The body is a closure, so no early return can forget the exit (E3), and
// an exit neither throws nor allocates.
#pragma once

#include <concepts>
#include <exception>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>

#include "refrain/scope/failure_table.hpp"
#include "refrain/scope/outcome.hpp"
#include "refrain/scope/write_set.hpp"

namespace refrain {

/// What keeps the claims: the device's table, or the overlay of a window (C8).
template <class Store>
concept FailureStore = requires(Store store, std::span<const BufferBinding> bindings,
                                const FoundFailure& found, const Skip& skip, OpenScope& scope,
                                const Error* error) {
  { store.read_failure(bindings) }
  noexcept->std::same_as<FoundFailure>;
  { store.enter_write(scope) }
  noexcept;
  { store.propagate(found, skip, bindings) }
  noexcept;
  { store.exit_write(scope, error) }
  noexcept;
};

/// What a scope opens on. A stream is one: `write_streams()` is where claims go,
/// `capturing()` the window that records its work, or null (C5), `on_failure()` a listener that
/// hears each failure once, must not throw and may not call the device (E6).
template <class Server>
concept WriteScoped = requires(Server& server, const OpenScope& scope, const Error& error,
                               const FoundFailure& found, StreamId stream) {
  { server.write_streams() } -> FailureStore;
  { server.id() }
  noexcept->std::same_as<StreamId>;
  { server.on_failure(stream, error) }
  noexcept;
  { server.capturing() == nullptr }
  noexcept->std::convertible_to<bool>;
  { server.capturing()->entered() }
  noexcept->std::convertible_to<std::size_t>;
  { server.capturing()->record(scope) }
  noexcept;
  { server.capturing()->fail(scope, error) }
  noexcept;
  { server.capturing()->skipped(scope, found) }
  noexcept;
};

/// What a replay says of its scope, which what is pointed at outlives.
struct ReplayTerms {
  std::span<const BufferBinding> looked_at{};  ///< Its reads, which somebody has just looked at.
  /// Those of its writes that are bad should it be held back before it has begun; null for all.
  const std::span<const BufferBinding>* unrun_writes = nullptr;
  /// When its bytes were last seen to carry nothing (P5).
  FailureTable::Version seen_bare = 0;
};

namespace detail {
template <class T>
struct ValueOf;
template <class T>
struct ValueOf<Result<T>> {
  using Type = T;
};
/// What the `Result` of a body that is called with a `Server&` holds.
template <class Body, class Server>
using BodyValue = typename ValueOf<std::remove_cvref_t<std::invoke_result_t<Body, Server&>>>::Type;
}  // namespace detail

/// One scope. Made only by `over` and `launching`; neither copied nor moved; spent by `execute`.
/// What every launch passes through is inlined and the rest is kept out of its way: a write set
/// handed through a call costs as much as the rest of a scope that ends cleanly.
template <WriteScoped Server>
class [[nodiscard]] ExecuteScope {
 public:
  /// Around work that reads no device memory, or whose reads somebody has just looked at. Always
  /// enters (O2).
  [[gnu::always_inline]] static ExecuteScope over(Server& server, KernelId kernel, WriteSet writes,
                                                  Where where, const ReplayTerms& terms = {}) {
    return ExecuteScope(server, kernel, terms, std::move(writes), where);
  }

  /// Around work that reads device memory. Skips when one of `reads` carries a failure. `reads`
  /// outlive the scope.
  [[gnu::always_inline]] static ExecuteScope launching(Server& server, KernelId kernel,
                                                       std::span<const BufferBinding> reads,
                                                       WriteSet writes, Where where) {
    // O3: looked at before anything is claimed, or work in place would meet its own claim.
    const FoundFailure found = server.write_streams().read_failure(reads);
    if (found) [[unlikely]] {
      return ExecuteScope(server, kernel, found, reads, std::move(writes), where);
    }
    return ExecuteScope(server, kernel, ReplayTerms{reads}, std::move(writes), where);
  }

  ExecuteScope(const ExecuteScope&) = delete;
  ExecuteScope& operator=(const ExecuteScope&) = delete;

  ~ExecuteScope() {
    if (!entered_) return;
    // O10: only an exit releases, and a hole in a recording must be loud.
    settle(Error(ErrorKind::torn_down));
  }

  [[nodiscard]] bool skipped() const noexcept { return static_cast<bool>(skipped_); }
  /// What is shown of it, for work that is handed over to run later.
  [[nodiscard]] OpenScope& shown() noexcept { return scope_; }

  /// Runs `body(server)`, which answers a `Result`, and settles. A skipped scope never runs it
  /// (K3). What the body throws goes on unchanged (E4). Work of the same device that this thread
  /// does in it is inside of this scope (E9); it must not leave this thread's stack in the middle,
  /// as fibers do.
  template <class Body>
  auto execute(Body&& body) && -> ScopedOutcome<detail::BodyValue<Body, Server>> {
    using Value = detail::BodyValue<Body, Server>;
    if (!entered_) return Skipped{skipped_};
    try {
      auto result = [&] {
        const RunningBody running(scope_);
        return std::forward<Body>(body)(server_);
      }();
      if (!result.ok() && held_back(result.error())) {
        // E10: a failure reached its input after it was looked at, and it was not begun. What it
        // would have written carries that failure already, and everybody has heard of it.
        settle_clean();
        return Skipped{result.error().failure()};
      }
      if (!result.ok()) return settle(result.error());  // E2, C3
      settle_clean();
      if constexpr (std::is_void_v<Value>) {
        return ScopedOutcome<Value>::executed();
      } else {
        return ScopedOutcome<Value>::executed(*std::move(result));
      }
    } catch (...) {
      // E4: a graph must not seal without that work, and a read should name the cause.
      if (entered_) settle(Error::thrown(std::current_exception()));
      throw;
    }
  }

 private:
  /// Enters. Inlined for every caller, who knows which of the lists there are: this is the path of
  /// each launch.
  [[gnu::always_inline]] ExecuteScope(Server& server, KernelId kernel, const ReplayTerms& terms,
                                      WriteSet writes, Where where)
      : server_(server), writes_(std::move(writes)) {
    describe(kernel, terms.looked_at, where);
    scope_.replay_unrun_writes = terms.unrun_writes;
    scope_.seen_bare = terms.seen_bare;
    if (auto* const window = server_.capturing()) scope_.recorded_before = window->entered();
    server_.write_streams().enter_write(scope_);
    entered_ = true;
  }

  /// Skips.
  [[gnu::noinline,
    gnu::cold]] ExecuteScope(Server& server, KernelId kernel, const FoundFailure& found,
                             std::span<const BufferBinding> reads, WriteSet writes, Where where)
      : server_(server), writes_(std::move(writes)) {
    describe(kernel, reads, where);
    // K4: the listener, the window, then the data; here, so also for a scope that never executes.
    server_.on_failure(server_.id(), found.error());  // K5: the input's own error
    if (auto* const window = server_.capturing()) window->skipped(scope_, found);  // C4
    Skip skip{kernel, server_.id(), where, found.needed(), {}, 0};
    skip.would_write_count = static_cast<std::uint32_t>(scope_.writes.size());
    if (!scope_.writes.empty()) skip.would_write = scope_.writes.front();
    server_.write_streams().propagate(found, skip, scope_.writes);
    skipped_ = found.id();
  }

  void describe(KernelId kernel, std::span<const BufferBinding> reads, Where where) noexcept {
    scope_.reads = reads;
    scope_.writes = writes_.bindings();
    scope_.kernel = kernel;
    scope_.where = where;
  }

  [[nodiscard]] bool held_back(const Error& error) const noexcept {
    const std::uint64_t bad = scope_.poisoned.load(std::memory_order_relaxed);
    return bad != 0 && error.kind() == ErrorKind::skipped && error.failure() == FailureId(bad);
  }

  void settle_clean() noexcept {
    entered_ = false;
    // E5: the window hears first. It may refuse what was staged (C2, C16), which dooms it there
    // and leaves the claim to its seal; the work itself was recorded cleanly.
    if (auto* const window = server_.capturing()) window->record(scope_);
    server_.write_streams().exit_write(scope_, nullptr);  // E1
  }

  /// Answers `error` as everybody is told it, with the number of what carries it.
  [[gnu::noinline, gnu::cold]] Error settle(const Error& error) noexcept {
    entered_ = false;
    scope_.failed_as = {};
    if (auto* const window = server_.capturing()) window->fail(scope_, error);  // C3
    server_.write_streams().exit_write(scope_, &error);
    Error told = scope_.failed_as ? error.with_failure(scope_.failed_as) : error;
    server_.on_failure(server_.id(), told);
    return told;
  }

  Server& server_;
  WriteSet writes_;
  OpenScope scope_;
  FailureId skipped_;
  bool entered_ = false;
};

/// Claims `writes` for `error` without running anything, as work whose body is the error (R2).
template <WriteScoped Server>
void failed_writing(Server& server, KernelId kernel, WriteSet writes, const Error& error,
                    Where where) {
  static_cast<void>(ExecuteScope<Server>::over(server, kernel, std::move(writes), where)
                        .execute([&](Server&) -> Result<void> { return error; }));
}

}  // namespace refrain
