// A device: its memory, its kernels, its streams, and one table of what is known to be bad. Handles
// keep what they need of it alive, so a device, its buffers and its streams may go in any order.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "refrain/base/mutex.hpp"
#include "refrain/capture/window.hpp"
#include "refrain/device/backend.hpp"
#include "refrain/device/buffer.hpp"
#include "refrain/device/held.hpp"
#include "refrain/device/kernel.hpp"
#include "refrain/device/order.hpp"
#include "refrain/scope/failure_table.hpp"

namespace refrain {

class Stream;
class Ledger;

/// Hears each failure where it happens (E6), and again each skip that it causes (K4): the stream
/// that the work was issued on, and what happened. Must not throw, and may not call the device.
using FailureListener = std::function<void(StreamId, const Error&)>;

struct DeviceOptions {
  /// Whether reading bytes that nobody wrote fails (M5), and work that conflicts with unordered
  /// work of another stream is refused (E11).
  bool checks = true;
  FailureListener on_failure{};
  /// Hears of each failure whose last byte goes, written again or freed, before anybody read of it:
  /// no read, check or story told it, nor a sync or a seal. Must not throw, and may not call the
  /// device.
  UnreadListener on_unread{};
};

/// What the handles of one device share. Safe to share.
class DeviceCore final : public OpenWindows {
 public:
  DeviceCore(std::shared_ptr<Backend> backend, DeviceOptions options);
  ~DeviceCore() override { backend_->on_lost({}); }
  DeviceCore(const DeviceCore&) = delete;
  DeviceCore& operator=(const DeviceCore&) = delete;

  [[nodiscard]] FailureTable& table() noexcept { return table_; }
  [[nodiscard]] Order& order() noexcept { return order_; }
  [[nodiscard]] Backend& backend() noexcept { return *backend_; }
  [[nodiscard]] const std::shared_ptr<Backend>& backend_owner() const noexcept { return backend_; }
  [[nodiscard]] std::uint32_t number() const noexcept { return number_; }
  [[nodiscard]] bool checks() const noexcept { return options_.checks; }
  void heard(StreamId stream, const Error& error) const noexcept;

  /// The allocation behind a binding: refuses a stale handle, one of another device, and bytes
  /// that it does not have.
  [[nodiscard]] Result<const Allocation*> resolve(const BufferBinding& binding) const;

  /// Fresh memory for `region`, which holds its start; without one it is `unwritten` (M5), or
  /// said to be written if the caller looks after that itself.
  Result<std::shared_ptr<const Allocation>> allocate(const std::shared_ptr<DeviceCore>& self,
                                                     Region region, bool unwritten);

  /// An allocation of memory of the program's, at `address`.
  Result<std::shared_ptr<const Allocation>> adopt(const std::shared_ptr<DeviceCore>& self,
                                                  Region region, std::uint64_t address,
                                                  std::shared_ptr<const void> owner);
  /// Fresh memory that no handle names and no claim is kept of. A refusal is the answer and no
  /// more: the call that wants it tells it (C9).
  Result<std::shared_ptr<MemoryBlock>> allocate_block(const std::shared_ptr<DeviceCore>& self,
                                                      std::uint64_t bytes, std::uint32_t alignment);

  // The ledgers of streams whose work may fail late.
  Order::HandedOver attach(std::shared_ptr<Ledger> ledger);
  void detach(const Ledger& ledger) noexcept;
  /// Waits for the last work in flight that writes `bindings`, or, with `readers`, touches them.
  /// What is issued from now on comes after it (E11).
  void wait_for(std::span<const BufferBinding> bindings, bool readers);
  /// Hears from silent streams what they know of their work, without waiting.
  void hear_of_ends() noexcept;
  /// Work of `ledger` failed after it was issued (E10). Answers the error as everybody is told it.
  Error failed_late(Ledger& ledger, Ticket ticket, const Error& error) noexcept;

  /// Work that happens once is wanted in this thread (C20). Refused while a window of this thread
  /// records, which it dooms; one that is only prepared notes it.
  Result<void> first_use(const std::string& what, Where where);
  /// Whether a kernel of that name and version, from that source, was loaded before.
  [[nodiscard]] bool has_loaded(const KernelSignature& kernel);
  void loaded(const KernelSignature& kernel);

  // Windows that are open, of all threads.
  void opened(Window& window);
  void closed(const Window& window) noexcept override;
  /// With the last one goes what was held back meanwhile (C19).
  void settled() noexcept override;

  /// A window of this thread that records has recorded a write of some of `reads`: they are not yet
  /// what its graph will make of them. Answers a sentence that says so.
  [[nodiscard]] std::optional<std::string> recorded_write(std::span<const BufferBinding> reads);

  /// Destroys `thing`: now, or, while any window is open, when the last of them has closed (C19).
  /// (A window that opens while it is destroyed does not wait for that.)
  void destroy(std::unique_ptr<Held> thing) noexcept;
  /// What could not be destroyed where its last owner let go of it: `sync`, and who makes a stream,
  /// see to that.
  void destroy_put_off() noexcept;
  /// The same of memory, which also waits for the call of this thread that uses some.
  void free(std::unique_ptr<Held> memory) noexcept;
  /// The backend refused a call that belongs to no stream: dooms every window that this thread uses
  /// and that records (C17).
  void refused_by_device(const Error& error) noexcept;
  /// Makes with `make` what belongs to no stream. When that throws, it was wanted and is not there,
  /// as when the backend refuses it (C17).
  template <class Make>
  auto wanted(Make&& make) -> decltype(make()) {
    try {
      return make();
    } catch (...) {
      refused_by_device(Error::thrown(std::current_exception()));
      throw;
    }
  }
  /// The next number for work that is handed over: all that it depends on has a lower one.
  std::uint64_t number_issued() noexcept {
    return issued_.fetch_add(1, std::memory_order_relaxed) + 1;
  }
  /// See Device::sync.
  Result<void> sync();

 private:
  /// Name, version, and where the code is: the symbol and the image's digest, or the process's own.
  using KernelKey = std::tuple<std::string, std::uint32_t, std::string, PortableCode::Digest,
                               std::shared_ptr<const void>>;
  static KernelKey key_of(const KernelSignature& kernel);

  Result<void> first_use_now(const std::string& what);
  /// What waits longest, unless a window is open.
  [[nodiscard]] std::unique_ptr<Held> next_held() noexcept;
  [[nodiscard]] std::vector<std::shared_ptr<Ledger>> all_ledgers();
  void follow(LateClaim& late, std::span<const FailureTable::Open> open, std::uint64_t order,
              const Error& error);

  std::shared_ptr<Backend> backend_;
  DeviceOptions options_;
  std::uint32_t number_;
  FailureTable table_;
  Order order_{table_};
  std::atomic<std::uint64_t> issued_{0};
  Mutex mutex_;
  std::vector<std::shared_ptr<Ledger>> ledgers_ REFRAIN_GUARDED_BY(mutex_);
  std::vector<Window*> windows_ REFRAIN_GUARDED_BY(mutex_);
  std::atomic<std::size_t> open_windows_{0};  // how many those are
  std::set<KernelKey> loaded_ REFRAIN_GUARDED_BY(mutex_);
  // Last: what they destroy uses the others.
  HeldList put_off_ REFRAIN_GUARDED_BY(mutex_);  // until a thread comes that may destroy it
  HeldList held_ REFRAIN_GUARDED_BY(mutex_);     // until no window is open (C19)
};

/// A device. Safe to share; copying shares.
class Device {
 public:
  Device(std::shared_ptr<Backend> backend, DeviceOptions options)
      : core_(std::make_shared<DeviceCore>(std::move(backend), std::move(options))) {}
  /// Another handle of a device.
  explicit Device(std::shared_ptr<DeviceCore> core) noexcept : core_(std::move(core)) {}

  /// A stream of work. An inline stream runs work before the call returns.
  Result<Stream> stream(StreamKind kind = StreamKind::inline_) const;

  /// Memory for `count` elements. A state starts at zero; anything else is unwritten.
  template <class T>
  Result<Buffer<T>> buffer(std::string name, std::uint64_t count, Role role = Role::none) const {
    Region region = described<T>(std::move(name), count, role);
    if (role == Role::state) region.start = ZeroStart{};
    return owned<T>(std::move(region), count);
  }
  /// A state that starts, and is reset, to `start`.
  template <class T>
  Result<Buffer<T>> state(std::string name, std::span<const T> start) const {
    Region region = described<T>(std::move(name), start.size(), Role::state);
    region.start = SharedBytes::copy_of(std::as_bytes(start));
    return owned<T>(std::move(region), start.size());
  }
  /// Bytes that never change, used in place where the device can; writing them is refused.
  template <class T>
  Result<Buffer<T>> constant(std::string name, SharedBytes bytes) const {
    const std::uint64_t count = bytes.size() / sizeof(T);
    Region region = described<T>(std::move(name), count, Role::constant);
    region.bytes = bytes.size();
    region.start = std::move(bytes);
    return owned<T>(std::move(region), count);
  }

  /// `count` elements of the program's own memory at `address`, as the device names it (a pointer
  /// on the host, a CUdeviceptr on CUDA): used in place and never freed. `owner`, which may be
  /// null, is let go of when nothing needs the memory any more, work in flight included. What is
  /// there counts as written; nobody but this device may write it while the buffer lives. Refuses
  /// an address that is not aligned for `T`, and memory that the device cannot use.
  template <class T>
  Result<Buffer<T>> adopt(std::string name, std::uint64_t address, std::uint64_t count,
                          Role role = Role::none, std::shared_ptr<const void> owner = {}) const {
    auto made = adopt(described<T>(std::move(name), count, role), address, count, sizeof(T),
                      std::move(owner));
    if (!made.ok()) return std::move(made).error();
    return Buffer<T>(*std::move(made));
  }

  /// A kernel that takes the parameters of `K`, a `Kernel<...>`; loads its code now. For the first
  /// time that is refused while a window of this thread records, which it dooms (C20).
  template <class K>
  Result<K> kernel(std::string_view name, std::uint32_t version = 1,
                   Where where = Where::here()) const {
    KernelSignature signature = core_->wanted([&] { return K::signature(name, version); });
    Result<LoadedKernel> loaded = load(std::move(signature), where);
    if (!loaded.ok()) return std::move(loaded).error();
    return K(*std::move(loaded));
  }
  /// The same without types, for a signature that was read from a file. The effects of what is
  /// loaded are those that it is registered with, whatever `signature` says of them.
  Result<LoadedKernel> load(KernelSignature signature, Where where = {}) const;

  /// Waits until all work that was issued to any stream has ended. Answers the first late failure
  /// of the oldest stream that has one which neither this nor its own `sync` has told; ask again
  /// for those of others. Refused while a window is open in any thread (C12, C19).
  Result<void> sync() const { return core_->sync(); }

  /// What `view` is known to carry now: nothing, or its error with the failure's number and
  /// without its story. Reads nothing and waits for nothing (M8).
  template <class T>
  [[nodiscard]] std::optional<Error> check(const View<T>& view) const {
    return check(view.binding());
  }
  template <class T>
  [[nodiscard]] std::optional<Error> check(const Buffer<T>& buffer) const {
    return check(buffer.view().binding());
  }
  [[nodiscard]] std::optional<Error> check(const BufferBinding& binding) const;

  /// The story of a failure by its number.
  [[nodiscard]] std::string story(FailureId failure) const { return core_->table().story(failure); }
  /// How many failures some byte carries. Zero when everything is clean.
  [[nodiscard]] std::uint64_t live_failures() const noexcept {
    return core_->table().live_failures();
  }

  [[nodiscard]] const std::shared_ptr<DeviceCore>& core() const noexcept { return core_; }

 protected:
  using MakeStream = std::function<Result<std::unique_ptr<BackendStream>>(Completion&)>;
  /// A stream over what `make` answers.
  Result<Stream> stream_over(const MakeStream& make) const;

 private:
  template <class T>
  static Region described(std::string name, std::uint64_t count, Role role) {
    Region region;
    region.name = std::move(name);
    region.role = role;
    region.element = element_type_of<T>();
    region.bytes = count * sizeof(T);
    return region;
  }
  template <class T>
  Result<Buffer<T>> owned(Region region, std::uint64_t count) const {
    auto made = allocate(std::move(region), count, sizeof(T));
    if (!made.ok()) return std::move(made).error();
    return Buffer<T>(*std::move(made));
  }
  /// Refuses elements that are no whole number, or too many.
  static Result<void> counted(const Region& region, std::uint64_t count,
                              std::uint64_t element_bytes);
  Result<std::shared_ptr<const Allocation>> allocate(Region region, std::uint64_t count,
                                                     std::uint64_t element_bytes) const;
  Result<std::shared_ptr<const Allocation>> adopt(Region region, std::uint64_t address,
                                                  std::uint64_t count, std::uint64_t element_bytes,
                                                  std::shared_ptr<const void> owner) const;
  Result<Stream> stream_now(const MakeStream& make) const;
  Result<LoadedKernel> load_now(KernelSignature signature, Where where) const;

  std::shared_ptr<DeviceCore> core_;
};

}  // namespace refrain
