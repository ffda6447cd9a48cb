// A backend that passes everything on to another and writes down each thing that is destroyed: its
// memory, streams, events, executables and kernels.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "refrain/device/backend.hpp"

namespace refrain::test {

/// Safe to share, as every backend.
class WatchedBackend final : public Backend {
 public:
  explicit WatchedBackend(std::shared_ptr<Backend> beneath) : beneath_(std::move(beneath)) {}

  /// What has been destroyed since this was last asked, in order: "memory of 16", "stream", ...
  [[nodiscard]] std::vector<std::string> destroyed() {
    const std::lock_guard lock(log_->mutex);
    return std::exchange(log_->destroyed, {});
  }
  /// How many things are there that have not been destroyed.
  [[nodiscard]] int alive() const {
    const std::lock_guard lock(log_->mutex);
    return log_->alive;
  }
  /// Called with each thing that is destroyed, before it is.
  void on_destroy(std::function<void(const std::string&)> hook) { log_->hook = std::move(hook); }

  [[nodiscard]] std::string_view name() const noexcept override { return beneath_->name(); }
  void on_lost(std::function<void()> listener) override { beneath_->on_lost(std::move(listener)); }
  Result<DeviceMemory> allocate(std::uint64_t bytes, std::uint32_t alignment) override {
    return made(beneath_->allocate(bytes, alignment));
  }
  Result<DeviceMemory> adopt(const SharedBytes& bytes) override {
    return made(beneath_->adopt(bytes));
  }
  void release(const DeviceMemory& memory) noexcept override {
    log_->gone(memory.bytes == 0 ? "constant" : "memory of " + std::to_string(memory.bytes));
    beneath_->release(memory);
  }
  Result<void> may_use(const DeviceMemory& memory) override { return beneath_->may_use(memory); }
  Result<void> upload(std::uint64_t address, std::span<const std::byte> bytes) override {
    return beneath_->upload(address, bytes);
  }
  Result<void> zero(std::uint64_t address, std::uint64_t bytes) override {
    return beneath_->zero(address, bytes);
  }
  Result<void> has(const KernelSignature& wanted) override { return beneath_->has(wanted); }
  Result<std::shared_ptr<const KernelCode>> kernel(const KernelSignature& wanted) override {
    auto code = made(beneath_->kernel(wanted));
    if (!code.ok()) return code;
    return watched("kernel", *std::move(code));
  }
  Result<std::unique_ptr<BackendStream>> stream(StreamKind kind, Completion& completion) override {
    auto stream = made(beneath_->stream(kind, completion));
    if (!stream.ok()) return stream;
    return std::make_unique<WatchedStream>(log_, *std::move(stream));
  }
  Result<void> sync(BackendStream& stream) override { return beneath_->sync(real(stream)); }
  Result<std::shared_ptr<BackendEvent>> record(BackendStream& stream) override {
    auto event = made(beneath_->record(real(stream)));
    if (!event.ok()) return event;
    return watched("event", *std::move(event));
  }
  Result<void> wait(BackendStream& stream, const std::shared_ptr<BackendEvent>& event) override {
    return beneath_->wait(real(stream), event);
  }
  Result<bool> reached(BackendEvent& event) override { return beneath_->reached(event); }
  Result<void> wait_on_host(BackendEvent& event) override { return beneath_->wait_on_host(event); }
  Result<void> issue(BackendStream& stream, const BoundNode& node, Ticket ticket) override {
    return beneath_->issue(real(stream), node, ticket);
  }
  Result<void> prove(BackendStream& stream, const BoundNative& native) override {
    return beneath_->prove(real(stream), native);
  }
  Result<void> write(BackendStream& stream, std::uint64_t destination,
                     std::span<const std::byte> bytes) override {
    return beneath_->write(real(stream), destination, bytes);
  }
  Result<void> read(BackendStream& stream, std::span<std::byte> bytes,
                    std::uint64_t source) override {
    return beneath_->read(real(stream), bytes, source);
  }
  Result<std::unique_ptr<Executable>> prepare(
      const SealedGraph& graph, std::span<const std::shared_ptr<const KernelCode>> code,
      std::span<const std::uint64_t> addresses) override {
    auto executable = made(beneath_->prepare(graph, code, addresses));
    if (!executable.ok()) return executable;
    return std::make_unique<WatchedExecutable>(log_, *std::move(executable));
  }
  Result<void> rebind(Executable& executable, std::uint32_t region,
                      std::uint64_t address) override {
    return beneath_->rebind(real(executable), region, address);
  }
  Result<void> run(BackendStream& stream, Executable& executable, Ticket ticket) override {
    return beneath_->run(real(stream), real(executable), ticket);
  }

 private:
  struct Log {
    void gone(const std::string& what) {
      if (hook) hook(what);
      const std::lock_guard lock(mutex);
      destroyed.push_back(what);
      --alive;
    }
    std::mutex mutex;
    std::vector<std::string> destroyed;
    int alive = 0;
    std::function<void(const std::string&)> hook;
  };
  struct WatchedStream final : BackendStream {
    WatchedStream(std::shared_ptr<Log> to, std::unique_ptr<BackendStream> of)
        : log(std::move(to)), beneath(std::move(of)) {}
    ~WatchedStream() override { log->gone("stream"); }
    [[nodiscard]] bool asynchronous() const noexcept override { return beneath->asynchronous(); }
    [[nodiscard]] bool silent() const noexcept override { return beneath->silent(); }
    Settled settle(Ticket ticket) noexcept override { return beneath->settle(ticket); }
    std::shared_ptr<Log> log;
    std::unique_ptr<BackendStream> beneath;
  };
  struct WatchedExecutable final : Executable {
    WatchedExecutable(std::shared_ptr<Log> to, std::unique_ptr<Executable> of)
        : log(std::move(to)), beneath(std::move(of)) {}
    ~WatchedExecutable() override { log->gone("executable"); }
    std::shared_ptr<Log> log;
    std::unique_ptr<Executable> beneath;
  };
  static BackendStream& real(BackendStream& stream) {
    return *static_cast<WatchedStream&>(stream).beneath;
  }
  static Executable& real(Executable& executable) {
    return *static_cast<WatchedExecutable&>(executable).beneath;
  }

  template <class T>
  Result<T> made(Result<T> thing) {
    const std::lock_guard lock(log_->mutex);
    if (thing.ok()) ++log_->alive;
    return thing;
  }
  /// The same thing, with a last owner of its own.
  template <class T>
  std::shared_ptr<T> watched(std::string what, std::shared_ptr<T> thing) {
    T* const at = thing.get();
    return std::shared_ptr<T>(at, [log = log_, what = std::move(what),
                                   thing = std::move(thing)](T*) { log->gone(what); });
  }

  std::shared_ptr<Backend> beneath_;
  std::shared_ptr<Log> log_ = std::make_shared<Log>();
};

}  // namespace refrain::test
