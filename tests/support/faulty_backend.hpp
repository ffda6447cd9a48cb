// A backend that passes everything on to another, counts the calls by name and the memory that is
// out, and fails a call when it is told to. Fail the n-th call, for every n, and see what is left.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <utility>

#include "refrain/device/backend.hpp"

namespace refrain::test {

/// Safe to share, as every backend.
class FaultyBackend final : public Backend {
 public:
  explicit FaultyBackend(std::shared_ptr<Backend> beneath) : beneath_(std::move(beneath)) {}

  /// The `nth` call from now on fails, counting from 1, or throws what running out of host memory
  /// throws; 0 for none.
  void fail(std::uint64_t nth) { plan(nth, false, false); }
  void throw_at(std::uint64_t nth) { plan(nth, true, false); }
  /// That call fails and every later one too.
  void fail_from(std::uint64_t nth) { plan(nth, false, true); }
  /// The next call of that name fails, or throws what running out of host memory throws.
  void fail_next(std::string call) {
    const std::lock_guard lock(mutex_);
    next_ = std::move(call);
  }
  void throw_next(std::string call) {
    const std::lock_guard lock(mutex_);
    throws_ = std::move(call);
  }
  /// How many calls have come so far, all of them and by name.
  [[nodiscard]] std::uint64_t calls() const { return calls_; }
  [[nodiscard]] std::uint64_t calls(const std::string& name) const {
    const std::lock_guard lock(mutex_);
    const auto found = counts_.find(name);
    return found != counts_.end() ? found->second : 0;
  }
  /// How many pieces of memory are out.
  [[nodiscard]] std::int64_t held() const { return held_; }
  /// The name of the call that was failed last.
  [[nodiscard]] std::string failed() const {
    const std::lock_guard lock(mutex_);
    return failed_;
  }

  [[nodiscard]] std::string_view name() const noexcept override { return beneath_->name(); }
  void on_lost(std::function<void()> listener) override { beneath_->on_lost(std::move(listener)); }
  Result<DeviceMemory> allocate(std::uint64_t bytes, std::uint32_t alignment) override {
    REFRAIN_TRY(let("allocate"));
    return counted(beneath_->allocate(bytes, alignment));
  }
  Result<DeviceMemory> adopt(const SharedBytes& bytes) override {
    REFRAIN_TRY(let("adopt"));
    return counted(beneath_->adopt(bytes));
  }
  void release(const DeviceMemory& memory) noexcept override {
    --held_;
    beneath_->release(memory);
  }
  Result<void> may_use(const DeviceMemory& memory) override {
    REFRAIN_TRY(let("may_use"));
    return beneath_->may_use(memory);
  }
  Result<void> upload(std::uint64_t address, std::span<const std::byte> bytes) override {
    REFRAIN_TRY(let("upload"));
    return beneath_->upload(address, bytes);
  }
  Result<void> zero(std::uint64_t address, std::uint64_t bytes) override {
    REFRAIN_TRY(let("zero"));
    return beneath_->zero(address, bytes);
  }
  Result<void> has(const KernelSignature& wanted) override { return beneath_->has(wanted); }
  Result<std::shared_ptr<const KernelCode>> kernel(const KernelSignature& wanted) override {
    REFRAIN_TRY(let("kernel"));
    return beneath_->kernel(wanted);
  }
  Result<std::unique_ptr<BackendStream>> stream(StreamKind kind, Completion& completion) override {
    REFRAIN_TRY(let("stream"));
    return beneath_->stream(kind, completion);
  }
  Result<void> sync(BackendStream& stream) override {
    REFRAIN_TRY(let("sync"));
    return beneath_->sync(stream);
  }
  Result<std::shared_ptr<BackendEvent>> record(BackendStream& stream) override {
    REFRAIN_TRY(let("record"));
    return beneath_->record(stream);
  }
  Result<void> wait(BackendStream& stream, const std::shared_ptr<BackendEvent>& event) override {
    REFRAIN_TRY(let("wait"));
    return beneath_->wait(stream, event);
  }
  Result<bool> reached(BackendEvent& event) override {
    REFRAIN_TRY(let("reached"));
    return beneath_->reached(event);
  }
  Result<void> wait_on_host(BackendEvent& event) override {
    REFRAIN_TRY(let("wait_on_host"));
    return beneath_->wait_on_host(event);
  }
  Result<void> issue(BackendStream& stream, const BoundNode& node, Ticket ticket) override {
    REFRAIN_TRY(let("issue"));
    return beneath_->issue(stream, node, ticket);
  }
  Result<void> prove(BackendStream& stream, const BoundNative& native) override {
    REFRAIN_TRY(let("prove"));
    return beneath_->prove(stream, native);
  }
  Result<void> write(BackendStream& stream, std::uint64_t destination,
                     std::span<const std::byte> bytes) override {
    REFRAIN_TRY(let("write"));
    return beneath_->write(stream, destination, bytes);
  }
  Result<void> read(BackendStream& stream, std::span<std::byte> bytes,
                    std::uint64_t source) override {
    REFRAIN_TRY(let("read"));
    return beneath_->read(stream, bytes, source);
  }
  Result<std::unique_ptr<Executable>> prepare(
      const SealedGraph& graph, std::span<const std::shared_ptr<const KernelCode>> code,
      std::span<const std::uint64_t> addresses) override {
    REFRAIN_TRY(let("prepare"));
    return beneath_->prepare(graph, code, addresses);
  }
  Result<void> rebind(Executable& executable, std::uint32_t region,
                      std::uint64_t address) override {
    REFRAIN_TRY(let("rebind"));
    return beneath_->rebind(executable, region, address);
  }
  Result<void> run(BackendStream& stream, Executable& executable, Ticket ticket) override {
    REFRAIN_TRY(let("run"));
    return beneath_->run(stream, executable, ticket);
  }

 private:
  void plan(std::uint64_t nth, bool throws, bool on) {
    const std::lock_guard lock(mutex_);
    left_ = nth;
    nth_throws_ = throws;
    goes_on_ = on;
  }
  Result<DeviceMemory> counted(Result<DeviceMemory> memory) {
    if (memory.ok()) ++held_;
    return memory;
  }
  Result<void> let(const char* call) {
    ++calls_;
    const std::lock_guard lock(mutex_);
    ++counts_[call];
    const bool now = left_ != 0 && --left_ == 0;
    if (now && goes_on_) left_ = 1;
    if (!now && next_ != call && throws_ != call) return {};
    failed_ = call;
    if (throws_ == call || (now && nth_throws_)) {
      throws_.clear();
      throw std::bad_alloc();
    }
    next_.clear();
    return Error(ErrorKind::device_refused, "The device would not " + failed_ + ".");
  }

  std::shared_ptr<Backend> beneath_;
  mutable std::mutex mutex_;
  std::atomic<std::uint64_t> calls_{0};
  std::atomic<std::int64_t> held_{0};
  std::uint64_t left_ = 0;
  bool nth_throws_ = false;
  bool goes_on_ = false;
  std::map<std::string, std::uint64_t> counts_;
  std::string next_;
  std::string throws_;
  std::string failed_;
};

}  // namespace refrain::test
