// The host as a backend: see docs/decisions/0001 for what each call is.
#include <cstdlib>
#include <cstring>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

#include "host_executable.hpp"
#include "host_stream.hpp"
#include "refrain/host/device.hpp"

namespace refrain::host {
namespace {

/// A node that runs later, and so owns what a bound node borrows.
struct QueuedNode {
  explicit QueuedNode(const BoundNode& bound) : node(bound) {
    if (auto* const kernel = std::get_if<BoundKernel>(&node)) {
      block.assign(kernel->block.begin(), kernel->block.end());
      view_bytes.assign(kernel->view_bytes.begin(), kernel->view_bytes.end());
      kernel->block = block;
      kernel->view_bytes = view_bytes;
    } else if (auto* const host = std::get_if<BoundHost>(&node)) {
      views.assign(host->views.begin(), host->views.end());
      host->views = views;
    } else if (auto* const native = std::get_if<BoundNative>(&node)) {
      views.assign(native->views.begin(), native->views.end());
      native->views = views;
    }
  }
  QueuedNode(const QueuedNode&) = delete;
  QueuedNode& operator=(const QueuedNode&) = delete;

  BoundNode node;
  std::vector<std::byte> block;
  std::vector<std::uint64_t> view_bytes;
  std::vector<DeviceMemory> views;
};

class HostBackend final : public Backend {
 public:
  explicit HostBackend(std::shared_ptr<KernelRegistry> kernels) noexcept
      : kernels_(std::move(kernels)) {}

  [[nodiscard]] std::string_view name() const noexcept override { return "host"; }

  Result<DeviceMemory> allocate(std::uint64_t bytes, std::uint32_t alignment) override {
    const std::uint64_t rounded = bytes + (alignment - bytes % alignment) % alignment;
    void* const memory = rounded < bytes ? nullptr : std::aligned_alloc(alignment, rounded);
    if (memory == nullptr) {
      return Error(ErrorKind::out_of_memory,
                   "The host has no " + std::to_string(bytes) + " bytes of memory to give.");
    }
    return DeviceMemory{reinterpret_cast<std::uint64_t>(memory), rounded};
  }
  Result<DeviceMemory> adopt(const SharedBytes& bytes) override {
    return DeviceMemory{reinterpret_cast<std::uint64_t>(bytes.data()), 0};
  }
  void release(const DeviceMemory& memory) noexcept override {
    if (memory.bytes == 0) return;       // adopted: its owner is let go of with the block
    std::free(pointer(memory.address));  // NOLINT: of std::aligned_alloc
  }
  Result<void> may_use(const DeviceMemory&) override { return {}; }
  Result<void> upload(std::uint64_t address, std::span<const std::byte> bytes) override {
    std::memcpy(pointer(address), bytes.data(), bytes.size());
    return {};
  }
  Result<void> zero(std::uint64_t address, std::uint64_t bytes) override {
    std::memset(pointer(address), 0, bytes);
    return {};
  }

  Result<void> has(const KernelSignature& wanted) override {
    REFRAIN_TRY(kernels_->find(wanted));
    return {};
  }
  Result<std::shared_ptr<const KernelCode>> kernel(const KernelSignature& wanted) override {
    return kernels_->find(wanted);
  }

  Result<std::unique_ptr<BackendStream>> stream(StreamKind kind, Completion& completion) override {
    if (kind == StreamKind::inline_) return std::make_unique<InlineStream>();
    try {
      return std::make_unique<WorkerStream>(completion);
    } catch (const std::system_error& error) {  // std::thread tells it in no other way
      return Error(ErrorKind::device_refused,
                   std::string("The host cannot start a worker thread: ") + error.what() + ".");
    }
  }
  Result<void> sync(BackendStream& stream) override {
    if (stream.asynchronous()) worker(stream).drain();
    return {};
  }
  Result<std::shared_ptr<BackendEvent>> record(BackendStream& stream) override {
    auto event = std::make_shared<HostEvent>();
    if (stream.asynchronous()) {
      worker(stream).push([event] { event->reach(); });
    } else {
      event->reach();
    }
    return event;
  }
  Result<void> wait(BackendStream& stream, const std::shared_ptr<BackendEvent>& event) override {
    const auto shared = std::static_pointer_cast<HostEvent>(event);
    if (stream.asynchronous()) {
      worker(stream).push([shared] { shared->wait(); });
    } else {
      shared->wait();
    }
    return {};
  }
  Result<bool> reached(BackendEvent& event) override {
    return static_cast<HostEvent&>(event).reached();
  }
  Result<void> wait_on_host(BackendEvent& event) override {
    static_cast<HostEvent&>(event).wait();
    return {};
  }

  Result<void> issue(BackendStream& stream, const BoundNode& node, Ticket ticket) override {
    if (!stream.asynchronous()) return run_node(node);
    const auto queued = std::make_shared<QueuedNode>(node);
    worker(stream).push(ticket, [queued] { return run_node(queued->node); });
    return {};
  }
  Result<void> prove(BackendStream&, const BoundNative&) override {
    return {};  // a replay calls the body, so calling it here would run the work
  }
  Result<void> write(BackendStream&, std::uint64_t destination,
                     std::span<const std::byte> bytes) override {
    return upload(destination, bytes);
  }
  Result<void> read(BackendStream&, std::span<std::byte> bytes, std::uint64_t source) override {
    std::memcpy(bytes.data(), pointer(source), bytes.size());
    return {};
  }

  Result<std::unique_ptr<Executable>> prepare(
      const SealedGraph& graph, std::span<const std::shared_ptr<const KernelCode>> code,
      std::span<const std::uint64_t> addresses) override {
    return std::make_unique<HostExecutable>(graph, code, addresses);
  }
  Result<void> rebind(Executable& executable, std::uint32_t region,
                      std::uint64_t address) override {
    static_cast<HostExecutable&>(executable).rebind(region, address);
    return {};
  }
  Result<void> run(BackendStream& stream, Executable& executable, Ticket ticket) override {
    auto& host = static_cast<HostExecutable&>(executable);
    if (!stream.asynchronous()) return host.run();
    worker(stream).push(ticket, [&host] { return host.run(); });  // pinned by its ledger entry
    return {};
  }

 private:
  static void* pointer(std::uint64_t address) noexcept { return reinterpret_cast<void*>(address); }
  static WorkerStream& worker(BackendStream& stream) noexcept {
    return static_cast<WorkerStream&>(stream);
  }

  std::shared_ptr<KernelRegistry> kernels_;
};

}  // namespace

std::shared_ptr<Backend> make_backend(std::shared_ptr<KernelRegistry> kernels) {
  return std::make_shared<HostBackend>(std::move(kernels));
}

}  // namespace refrain::host
