// What an asynchronous stream was given and has not been seen to end. When a piece of it fails, the
// failure is followed through everything that was issued later (E10): work that reads bad bytes is
// not run, work that writes them anew makes them good.
#pragma once

#include <boost/container/deque.hpp>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "refrain/base/mutex.hpp"
#include "refrain/device/accesses.hpp"
#include "refrain/device/backend.hpp"
#include "refrain/device/calls_forbidden.hpp"
#include "refrain/device/remarks.hpp"
#include "refrain/scope/failure_table.hpp"

namespace refrain {

class DeviceCore;
class WarmUpPass;

/// Safe to share.
class Ledger final : public Completion, public std::enable_shared_from_this<Ledger> {
 public:
  /// A piece of work as the ledger keeps it.
  struct Work {
    KernelId kernel;
    Where where;
    std::shared_ptr<const TouchedBytes> bytes;  ///< Never null.
    std::shared_ptr<const void> pin;            ///< Waits for it, as do `pins`.
    std::vector<std::shared_ptr<const void>> pins;
    std::uint64_t given = 0;  ///< Which of the stream's pieces it is, from 1 (E11).
    Remarks remarks;          ///< Added to its error.
    bool held_back = true;    ///< By a failure of what it reads (E10).
  };

  Ledger(DeviceCore& device, StreamId stream) : device_(device), stream_(stream) {}

  [[nodiscard]] StreamId stream() const noexcept { return stream_; }

  /// Asks `silent` how work ended, from now on until it is null.
  void asks(std::shared_ptr<BackendStream> silent) noexcept;
  /// Asks it for the work up to `ticket`, or with 0 for what it knows. A stream that tells by
  /// itself is not asked.
  void settle(Ticket ticket) noexcept;
  /// Lets go of what has ended of work that nobody asks about. By the stream's thread.
  void look() noexcept;

  /// Enters work of the scope that is open, the innermost of `show`. Refuses when a failure has
  /// reached the scope's inputs since they were looked at; nothing is entered then.
  Result<Ticket> enter(ScopeShow& show, OpenScope& scope, Work&& work);
  /// Takes back the newest entry, which the device would not take.
  void withdraw(Ticket ticket) noexcept;

  // Completion, from the backend's thread.
  Result<void> run(Ticket ticket, const std::function<Result<void>()>& code) noexcept override;
  void ended(Ticket ticket, const Error* error) noexcept override;

  /// Waits for the last entry that writes `bindings`, or, with `readers`, touches them, and for the
  /// first `given` pieces of work.
  void wait_for(std::span<const BufferBinding> bindings, bool readers, std::uint64_t given);
  /// Waits until everything entered so far has ended.
  void wait_for_all();
  /// From now on `pass` is told what fails, or is held back, of work that is entered; or nobody is.
  void tells(WarmUpPass* pass) noexcept;
  /// The first failure since this was last asked, as `sync` answers it.
  [[nodiscard]] std::optional<Error> take_failure() noexcept;

 private:
  friend class DeviceCore;
  struct Entry {
    Ticket ticket = 0;
    std::uint64_t order = 0;  // among all that the device was given
    Work work;
    bool poisoned = false;
    bool failed = false;  // and everybody has been told
    bool ended = false;
  };

  // Thousands of small pieces come and go: blocks that hold many.
  using Entries = boost::container::deque<
      Entry, void, boost::container::deque_options<boost::container::block_bytes<16384>>::type>;

  Result<Ticket> enter_now(OpenScope& scope, Work&& work) REFRAIN_REQUIRES(mutex_);
  [[nodiscard]] Entry* find(Ticket ticket) noexcept REFRAIN_REQUIRES(mutex_);
  /// The work has failed; only the first time counts.
  void failed(Ticket ticket, const Error& error) noexcept;
  [[nodiscard]] ForbiddenPlace place(const Entry& entry) const noexcept REFRAIN_REQUIRES(mutex_);
  /// Whether nothing up to `ticket` is in flight.
  [[nodiscard]] bool passed(Ticket ticket) const noexcept REFRAIN_REQUIRES(mutex_);
  void wait_through(Ticket ticket);
  void tell_pass(Ticket ticket, const Error& error) noexcept REFRAIN_REQUIRES(mutex_);

  DeviceCore& device_;
  StreamId stream_;
  Mutex mutex_;
  std::shared_ptr<BackendStream> silent_ REFRAIN_GUARDED_BY(mutex_);
  std::condition_variable_any ended_;
  Entries entries_ REFRAIN_GUARDED_BY(mutex_);  // in issue order; retires at the front
  Ticket last_ REFRAIN_GUARDED_BY(mutex_) = 0;
  std::optional<Error> failure_ REFRAIN_GUARDED_BY(mutex_);
  WarmUpPass* pass_ REFRAIN_GUARDED_BY(mutex_) = nullptr;
  Ticket of_pass_ REFRAIN_GUARDED_BY(mutex_) = 0;  // the first of which it is told
};

}  // namespace refrain
