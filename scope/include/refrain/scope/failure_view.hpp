// Where a stream's scopes keep their claims: the device's table, or, while a window records, the
// window's overlay (C8). A FailureStore, passed by value.
#pragma once

#include <span>

#include "refrain/scope/failure_table.hpp"
#include "refrain/scope/overlay.hpp"

namespace refrain {

class FailureView {
 public:
  /// `overlay` is null outside a window.
  FailureView(FailureTable& table, ScopeShow& show, Overlay* overlay) noexcept
      : table_(table), show_(show), overlay_(overlay) {}

  FoundFailure read_failure(std::span<const BufferBinding> reads) noexcept {
    return overlay_ != nullptr ? overlay_->read_failure(reads) : table_.read_failure(show_, reads);
  }
  void enter_write(OpenScope& scope) noexcept {
    if (overlay_ != nullptr) {
      overlay_->enter_write(scope);
    } else {
      table_.enter_write(show_, scope);
    }
  }
  void propagate(const FoundFailure& found, const Skip& skip,
                 std::span<const BufferBinding> writes) noexcept {
    if (overlay_ != nullptr) {
      overlay_->propagate(found, skip, writes);
    } else {
      table_.propagate(found, skip, writes);
    }
  }
  void exit_write(OpenScope& scope, const Error* error) noexcept {
    if (overlay_ != nullptr) {
      overlay_->exit_write(scope, error);
    } else {
      table_.exit_write(show_, scope, error);
    }
  }

 private:
  FailureTable& table_;
  ScopeShow& show_;
  Overlay* overlay_;
};

}  // namespace refrain
