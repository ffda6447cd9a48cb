// What a kind of device must be able to do, and nothing of how refrain keeps its promises: a
// backend opens no scope, sees no window and knows no claim. docs/decisions/0001 shows how each
// call maps onto the CUDA driver and onto the host.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <variant>

#include "refrain/base/result.hpp"
#include "refrain/capture/device_memory.hpp"
#include "refrain/capture/sealed_graph.hpp"

namespace refrain {

/// A kernel's code, loaded. Safe to share.
class KernelCode {
 public:
  virtual ~KernelCode() = default;
  /// What the kernel does besides its arguments, as whoever registered it has said.
  [[nodiscard]] virtual Effects effects() const { return Effects::none(); }
  /// The image that it was loaded from, if that can travel with a graph.
  [[nodiscard]] virtual KernelSource source() const { return {}; }
};

/// A point in a stream's work. Safe to share.
class BackendEvent {
 public:
  virtual ~BackendEvent() = default;
};

/// A graph made ready to run on one set of addresses. For one thread at a time.
class Executable {
 public:
  virtual ~Executable() = default;
};

/// What `Backend::run` throws when a node of the graph throws: an error that holds the exception
/// and says which node it was. Whoever opened the scope settles it with the error and throws the
/// exception itself on (E4).
struct NodeThrew {
  Error error;

  /// Puts `telling(error)` in the place of the error, unless there is no memory for the text: the
  /// exception has to get through in any case.
  template <class Telling>
  void tell(Telling&& telling) noexcept {
    try {
      error = std::forward<Telling>(telling)(error);
    } catch (...) {  // told with less
    }
  }
};

/// Names a piece of issued work on its stream, in issue order from 1; 0 where nobody follows it.
using Ticket = std::uint64_t;

/// Hears of asynchronous work; called from the backend's threads.
class Completion {
 public:
  virtual ~Completion() = default;
  /// Runs code of the program's that is (part of) the work, in this thread: not at all when what
  /// the work reads has failed meanwhile (E10). Answers its error, also for what it throws; that
  /// has been told then.
  virtual Result<void> run(Ticket ticket, const std::function<Result<void>()>& code) noexcept = 0;
  /// The work has ended, with an error if there is one, or was not run.
  virtual void ended(Ticket ticket, const Error* error) noexcept = 0;
};

/// What a silent stream knows of how its work ended.
struct Settled {
  Ticket through = 0;  ///< All work up to it has ended.
  /// What became of work after it, up to `lost_through`: the device was lost meanwhile.
  std::optional<Error> lost;
  Ticket lost_through = 0;
};

/// A stream as the backend has it. For one thread at a time.
class BackendStream {
 public:
  virtual ~BackendStream() = default;
  /// Whether work may still be running when `issue` or `run` has come back.
  [[nodiscard]] virtual bool asynchronous() const noexcept = 0;
  /// Whether nobody tells the `Completion` of an end: it has to be asked for.
  [[nodiscard]] virtual bool silent() const noexcept { return false; }
  /// Of a silent stream: waits until the work up to `ticket`, as far as the stream has been given
  /// it, has ended; it may wait for later work too. With ticket 0 it waits for nothing. For any
  /// thread.
  virtual Settled settle(Ticket ticket) noexcept {
    static_cast<void>(ticket);
    return {};
  }
  /// Of a silent stream: finds out how far it is, without waiting, for `settle` to say. The
  /// stream's thread calls it now and then, so that work which nobody asks about does not pile up.
  virtual void look() noexcept {}
  /// Of a silent stream: whether this thread may wait for its work, and so destroy it.
  [[nodiscard]] virtual bool may_wait() const noexcept { return true; }
};

/// A launch with its addresses in place. Borrows; a backend that runs it later copies, but for the
/// code and the function, which are kept until it has ended.
struct BoundKernel {
  const KernelCode* code = nullptr;
  Grid grid;
  std::span<const std::byte> block;           ///< The parameter block, addresses written in.
  std::span<const std::uint64_t> view_bytes;  ///< The size of each view, in parameter order.
};
struct BoundCopy {
  std::uint64_t source = 0;
  std::uint64_t destination = 0;
  std::uint64_t bytes = 0;
};
struct BoundFill {
  std::uint64_t destination = 0;
  std::uint64_t bytes = 0;
  std::uint32_t pattern = 0;
  std::uint32_t width = 1;
};
struct BoundHost {
  const HostFunction* function = nullptr;
  std::span<const DeviceMemory> views;
};
struct BoundNative {
  const NativeFunction* function = nullptr;
  std::span<const DeviceMemory> views;
  DeviceMemory workspace;  ///< Of the size that the function asks for; nothing where that is 0.

  /// Calls the body, which gives its work to `stream`.
  Result<void> call(void* stream) const {
    return function->body(
        {stream, {reinterpret_cast<std::byte*>(workspace.address), workspace.bytes}}, views);
  }
};
using BoundNode = std::variant<BoundKernel, BoundCopy, BoundFill, BoundHost, BoundNative>;

/// How a stream runs its work.
enum class StreamKind : std::uint8_t {
  inline_,  ///< On the host: the issuing thread runs it before the call returns.
  worker,   ///< A queue of its own; on the host a thread.
};

/// Safe to share; each call is for any thread, its stream or executable for one at a time.
class Backend {
 public:
  virtual ~Backend() = default;

  [[nodiscard]] virtual std::string_view name() const noexcept = 0;
  /// Calls `listener` once the device is found to be lost, inside the call that found out and with
  /// no lock held: from then on all calls fail, and no work in flight can be trusted. Set before
  /// any other call; an empty one takes it away.
  virtual void on_lost(std::function<void()>) {}  // NOLINT: who overrides it keeps it

  // Memory. Nothing here waits for a stream.

  virtual Result<DeviceMemory> allocate(std::uint64_t bytes, std::uint32_t alignment) = 0;
  /// Memory that holds `bytes` and never changes; the host uses them in place.
  virtual Result<DeviceMemory> adopt(const SharedBytes& bytes) = 0;
  /// Gives back what `allocate` or `adopt` gave.
  virtual void release(const DeviceMemory& memory) noexcept = 0;
  /// Whether `memory`, which belongs to the program, may be used as the device's; the error says
  /// why not. Keeps nothing.
  virtual Result<void> may_use(const DeviceMemory& memory) = 0;
  /// Sets memory that no stream uses: to `bytes`, or to zero.
  virtual Result<void> upload(std::uint64_t address, std::span<const std::byte> bytes) = 0;
  virtual Result<void> zero(std::uint64_t address, std::uint64_t bytes) = 0;

  // Code.

  /// Whether `kernel` would find that one; loads nothing.
  virtual Result<void> has(const KernelSignature& wanted) = 0;
  /// The kernel of that name and version, or that of the image which `wanted` names, where the
  /// device runs such images. Refuses (`kernel_missing`, `kernel_signature`) when there is none or
  /// its parameters are others.
  virtual Result<std::shared_ptr<const KernelCode>> kernel(const KernelSignature& wanted) = 0;

  // Streams and events.

  /// `completion` outlives the stream.
  virtual Result<std::unique_ptr<BackendStream>> stream(StreamKind kind,
                                                        Completion& completion) = 0;
  /// Waits until all of a stream's work has ended.
  virtual Result<void> sync(BackendStream& stream) = 0;
  virtual Result<std::shared_ptr<BackendEvent>> record(BackendStream& stream) = 0;
  /// Work issued to `stream` from now on starts after `event`. An inline stream waits here.
  virtual Result<void> wait(BackendStream& stream, const std::shared_ptr<BackendEvent>& event) = 0;
  [[nodiscard]] virtual Result<bool> reached(BackendEvent& event) = 0;
  virtual Result<void> wait_on_host(BackendEvent& event) = 0;

  // Work.

  /// On an inline stream runs the node: a kernel's error is the answer, and what a kernel throws
  /// goes through. On another it is handed over, and `Completion` hears of the rest.
  virtual Result<void> issue(BackendStream& stream, const BoundNode& node, Ticket ticket) = 0;
  /// Native work is about to be recorded: shows, in this call, that its body makes work which can
  /// be a node, and runs none of it. A device on which a replay calls the body itself has nothing
  /// to show. What the body throws goes through.
  virtual Result<void> prove(BackendStream& stream, const BoundNative& native) = 0;
  /// Host bytes to the device; `bytes` may be reused once the call is back.
  virtual Result<void> write(BackendStream& stream, std::uint64_t destination,
                             std::span<const std::byte> bytes) = 0;
  /// Device bytes to the host; back once they have arrived.
  virtual Result<void> read(BackendStream& stream, std::span<std::byte> bytes,
                            std::uint64_t source) = 0;

  // Graphs.

  /// Makes `graph` ready: one code a kernel of the graph, one address a region.
  virtual Result<std::unique_ptr<Executable>> prepare(
      const SealedGraph& graph, std::span<const std::shared_ptr<const KernelCode>> code,
      std::span<const std::uint64_t> addresses) = 0;
  /// Points the nodes that use `region` at another address; nothing is in flight.
  virtual Result<void> rebind(Executable& executable, std::uint32_t region,
                              std::uint64_t address) = 0;
  /// Runs the graph once, as `issue` runs a node, but for what a node throws, which goes through as
  /// `NodeThrew`. Stops at the first node that fails; the error names it.
  virtual Result<void> run(BackendStream& stream, Executable& executable, Ticket ticket) = 0;
};

}  // namespace refrain
