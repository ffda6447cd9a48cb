// What a stream consists of; shared with its open window, which may outlive the handle.
#pragma once

#include <cstdint>
#include <memory>

#include "refrain/capture/window.hpp"
#include "refrain/device/device.hpp"
#include "refrain/device/ledger.hpp"
#include "refrain/scope/failure_table.hpp"
#include "refrain/scope/write_set.hpp"

namespace refrain {

/// A stream of the backend's with the ledger that its work reports to.
class LiveStream {
 public:
  LiveStream(DeviceCore& device, std::shared_ptr<Ledger> ledger,
             std::unique_ptr<BackendStream> stream)
      : device_(&device), ledger_(std::move(ledger)), stream_(std::move(stream)) {
    if (stream_->silent()) ledger_->asks(stream_);
  }
  LiveStream(LiveStream&&) noexcept = default;
  LiveStream& operator=(LiveStream&&) = delete;
  ~LiveStream() {
    if (ledger_ == nullptr) return;  // moved from
    if (stream_->silent()) {
      ledger_->wait_for_all();
      ledger_->asks(nullptr);
    }
    stream_.reset();  // waits for its work
    device_->detach(*ledger_);
  }
  [[nodiscard]] BackendStream* get() const noexcept { return stream_.get(); }
  [[nodiscard]] bool may_go() const noexcept { return stream_ == nullptr || stream_->may_wait(); }

 private:
  DeviceCore* device_;
  std::shared_ptr<Ledger> ledger_;
  std::shared_ptr<BackendStream> stream_;  // of this alone, but for a thread that asks it
};

/// For one thread at a time.
struct StreamCore {  // NOLINT: its padding is that of a cache line
  StreamCore(std::shared_ptr<DeviceCore> on, StreamId id)
      : device(std::move(on)),
        show(id),
        pool(device->table()),
        ledger(std::make_shared<Ledger>(*device, id)) {
    device->table().attach(show);
  }
  ~StreamCore() { device->table().detach(show); }
  StreamCore(const StreamCore&) = delete;
  StreamCore& operator=(const StreamCore&) = delete;

  std::shared_ptr<DeviceCore> device;
  ScopeShow show;
  WriteSetPool pool;
  std::shared_ptr<Ledger> ledger;
  std::shared_ptr<BackendStream> backend;  // of a LiveStream; null once the handle is gone
  std::shared_ptr<Window> window;          // the one that it is a member of, if any
  Members::Index member = Members::kOrigin;
  std::uint64_t given = 0;  // which piece of work is being issued (E11), outside a call the last
  Order::HandedOver handed_over;  // null for an inline stream
  std::uint64_t failed = 0;       // scopes of this stream that failed or were skipped
};

/// Around a call that issues work, from before it asks for its order (E11).
class IssuingCall {
 public:
  explicit IssuingCall(StreamCore& core) noexcept : core_(core), in_use_(*core.device) {}
  IssuingCall(const IssuingCall&) = delete;
  IssuingCall& operator=(const IssuingCall&) = delete;
  ~IssuingCall() {
    if (core_.handed_over != nullptr) core_.handed_over->store(core_.given);
  }

 private:
  StreamCore& core_;
  MemoryInUse in_use_;
};

}  // namespace refrain
