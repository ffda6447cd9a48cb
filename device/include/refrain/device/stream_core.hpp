// What a stream consists of; shared with its open window, which may outlive the handle.
#pragma once

#include <memory>

#include "refrain/capture/window.hpp"
#include "refrain/device/device.hpp"
#include "refrain/device/ledger.hpp"
#include "refrain/scope/failure_table.hpp"
#include "refrain/scope/write_set.hpp"

namespace refrain {

/// For one thread at a time.
struct StreamCore {
  StreamCore(std::shared_ptr<DeviceCore> on, StreamId id)
      : device(std::move(on)),
        show(id),
        pool(device->table()),
        ledger(std::make_shared<Ledger>(*device, id)) {
    device->table().attach(show);
  }
  ~StreamCore() {
    backend.reset();  // waits for its work, which still reports to the ledger
    device->detach(*ledger);
    device->table().detach(show);
  }
  StreamCore(const StreamCore&) = delete;
  StreamCore& operator=(const StreamCore&) = delete;

  std::shared_ptr<DeviceCore> device;
  ScopeShow show;
  WriteSetPool pool;
  std::shared_ptr<Ledger> ledger;
  std::unique_ptr<BackendStream> backend;
  std::shared_ptr<Window> window;  // the one that it is a member of, if any
  Members::Index member = Members::kOrigin;
};

}  // namespace refrain
