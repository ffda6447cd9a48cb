// The smallest thing that a scope can be opened on: a stream over a failure table, with a window
// and a listener that only write down what they hear. One log for all of them, so that a test can
// ask who heard first (K4, E5).
#pragma once

#include <boost/container/static_vector.hpp>
#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "refrain/base/kernel_name.hpp"
#include "refrain/scope/execute_scope.hpp"
#include "refrain/scope/failure_view.hpp"

namespace refrain::test {

using Bindings = std::vector<BufferBinding>;

/// Who heard what.
enum class Heard {
  store_entered,     // claims: the write set was claimed
  store_propagated,  // claims: the write set was pointed at a failure
  store_released,    // claims: a clean exit
  store_failed,      // claims: a failed exit
  window_recorded,
  window_failed,
  listener,
};

struct LogEntry {
  Heard what;
  StreamId stream;
  Error error{ErrorKind::torn_down};
  std::size_t writes = 0;           // how many ranges the scope named
  std::size_t recorded_before = 0;  // what the window had answered to `entered`
};

/// What everybody heard, in order. Adding to it allocates nothing.
class Log {
 public:
  void add(const LogEntry& entry) noexcept {
    if (entries_.size() < kKept) entries_.push_back(entry);
  }
  void clear() noexcept { entries_.clear(); }
  [[nodiscard]] std::vector<Heard> order() const {
    std::vector<Heard> all;
    for (const LogEntry& entry : entries_) all.push_back(entry.what);
    return all;
  }
  [[nodiscard]] std::vector<LogEntry> of(Heard what) const {
    std::vector<LogEntry> some;
    for (const LogEntry& entry : entries_) {
      if (entry.what == what) some.push_back(entry);
    }
    return some;
  }

 private:
  static constexpr std::size_t kKept = 256;

  boost::container::static_vector<LogEntry, kKept> entries_;
};

/// A window that records nothing and refuses nothing.
struct FakeWindow {
  Log& log;
  Overlay* overlay = nullptr;  // null: claims go to the table, as outside a window
  std::size_t staged = 0;

  [[nodiscard]] std::size_t entered() const noexcept { return staged; }
  void record(const OpenScope& scope) noexcept {
    log.add({Heard::window_recorded,
             {},
             Error(ErrorKind::torn_down),
             scope.writes.size(),
             scope.recorded_before});
  }
  void skipped(const OpenScope& scope, const FoundFailure& found) noexcept {
    fail(scope, found.error());
  }
  void fail(const OpenScope& scope, const Error& error) noexcept {
    log.add({Heard::window_failed, {}, error, scope.writes.size(), scope.recorded_before});
  }
};

/// A FailureView that writes down what passes through it.
class LoggedView {
 public:
  LoggedView(FailureView view, Log& log) noexcept : view_(view), log_(log) {}

  FoundFailure read_failure(std::span<const BufferBinding> reads) noexcept {
    return view_.read_failure(reads);
  }
  void enter_write(OpenScope& scope) noexcept {
    view_.enter_write(scope);
    log_.add({Heard::store_entered, {}, Error(ErrorKind::torn_down), scope.writes.size(), 0});
  }
  void propagate(const FoundFailure& found, const Skip& skip,
                 std::span<const BufferBinding> writes) noexcept {
    view_.propagate(found, skip, writes);
    log_.add({Heard::store_propagated, {}, found.error(), writes.size(), 0});
  }
  void exit_write(OpenScope& scope, const Error* error) noexcept {
    view_.exit_write(scope, error);
    log_.add({error != nullptr ? Heard::store_failed : Heard::store_released,
              {},
              error != nullptr ? *error : Error(ErrorKind::torn_down),
              scope.writes.size(),
              0});
  }

 private:
  FailureView view_;
  Log& log_;
};

/// One stream. For one thread, as a stream is.
// NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding): a show has a cache line of its own
class ScopeServer {
 public:
  ScopeServer(FailureTable& table, StreamId id) : table_(table), show_(id), pool_(table) {
    table_.attach(show_);
  }
  ~ScopeServer() { table_.detach(show_); }
  ScopeServer(const ScopeServer&) = delete;
  ScopeServer& operator=(const ScopeServer&) = delete;

  // What a scope asks.

  [[nodiscard]] LoggedView write_streams() noexcept {
    return {FailureView(table_, show_, window_ ? window_->overlay : nullptr), log};
  }
  [[nodiscard]] StreamId id() const noexcept { return show_.stream(); }
  [[nodiscard]] FakeWindow* capturing() noexcept { return window_ ? &*window_ : nullptr; }
  void on_failure(StreamId stream, const Error& error) noexcept {
    log.add({Heard::listener, stream, error, 0, 0});
  }

  // What a test asks.

  [[nodiscard]] FailureTable& table() noexcept { return table_; }
  [[nodiscard]] ScopeShow& show() noexcept { return show_; }
  [[nodiscard]] WriteSetPool& pool() noexcept { return pool_; }
  FakeWindow& open_window(Overlay* overlay = nullptr) {
    return window_.emplace(FakeWindow{log, overlay});
  }
  void close_window() noexcept { window_.reset(); }

  /// What work names as written, in storage of the pool.
  [[nodiscard]] WriteSet writes(std::span<const BufferBinding> bindings) {
    WriteSet set(pool_);
    for (const BufferBinding& binding : bindings) set.add(binding);
    return set;
  }

  /// What a scope reads must outlive it, which a test's list of braces does not.
  [[nodiscard]] const Bindings& keep(const Bindings& reads) { return kept_.emplace_back(reads); }

  Log log;

 private:
  FailureTable& table_;
  ScopeShow show_;
  WriteSetPool pool_;
  std::optional<FakeWindow> window_;
  std::deque<Bindings> kept_;
};

static_assert(FailureStore<FailureView>);
static_assert(FailureStore<LoggedView>);
static_assert(WriteScoped<ScopeServer>);

using Scope = ExecuteScope<ScopeServer>;
inline BufferBinding bytes(BufferId buffer, std::uint64_t begin, std::uint64_t end) {
  return {buffer, {begin, end}};
}

inline Error broken(std::string message) {
  return Error(ErrorKind::kernel_failed, std::move(message));
}

/// The bodies that most tests need.
inline Result<void> succeeds(ScopeServer&) { return {}; }
inline auto fails(std::string message) {
  return [message = std::move(message)](ScopeServer&) -> Result<void> { return broken(message); };
}

/// Where pretended work was issued.
inline constexpr Where at_line(int line) noexcept { return Where{"model.cc", line}; }

/// A scope that outlives the block it was opened in.
template <class Open>
std::unique_ptr<Scope> kept(const Open& open) {
  return std::unique_ptr<Scope>(new Scope(open()));  // NOLINT: a scope is never moved
}

/// Opens a scope on `server`. The names are the rules' own.
inline Scope over(ScopeServer& server, const Bindings& writes, std::string_view kernel = "work") {
  return Scope::over(server, intern_kernel_name(kernel), server.writes(writes), at_line(1));
}
inline Scope launching(ScopeServer& server, const Bindings& reads, const Bindings& writes,
                       std::string_view kernel = "work") {
  return Scope::launching(server, intern_kernel_name(kernel), server.keep(reads),
                          server.writes(writes), at_line(2));
}

}  // namespace refrain::test
