// What a device has made for its handles, and the list on which such things wait until no window is
// open before they are destroyed (C19): destroy calls are what breaks the recordings of others.
// Each thing brings its own place on the list, so that a destructor can always put it there.
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

namespace refrain {

class DeviceCore;

/// A thing of the backend's together with what it needs to be destroyed.
class Held {
 public:
  Held() = default;
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  virtual ~Held() = default;

  /// Whether this thread may destroy it.
  [[nodiscard]] virtual bool may_go() const noexcept { return true; }

 private:
  friend class HeldList;
  Held* next_ = nullptr;
};

/// Those that wait, in the order in which their last owners let go. For one thread at a time.
class HeldList {
 public:
  HeldList() = default;
  HeldList(const HeldList&) = delete;
  HeldList& operator=(const HeldList&) = delete;
  ~HeldList() {
    while (pop() != nullptr) {
    }
  }

  [[nodiscard]] bool empty() const noexcept { return first_ == nullptr; }
  /// The next that `pop` answers; null when it is empty.
  [[nodiscard]] const Held* front() const noexcept { return first_; }
  void push(std::unique_ptr<Held> held) noexcept {
    (last_ != nullptr ? last_->next_ : first_) = held.get();
    last_ = held.release();
  }
  /// The one that has waited longest, or null.
  [[nodiscard]] std::unique_ptr<Held> pop() noexcept {
    std::unique_ptr<Held> held(first_);  // NOLINT: what is in the list is nobody else's
    if (held == nullptr) return held;
    first_ = std::exchange(held->next_, nullptr);
    if (first_ == nullptr) last_ = nullptr;
    return held;
  }

 private:
  Held* first_ = nullptr;
  Held* last_ = nullptr;
};

/// Has `device` destroy `held` when the last owner lets go of it.
struct DestroyHeld {
  std::shared_ptr<DeviceCore> device;
  Held* held;
  void operator()(const void*) const noexcept;
};

/// Shares what `owner`, a smart pointer or anything with a `get()`, owns on `device`.
template <class Owner>
auto hold_for(std::shared_ptr<DeviceCore> device, Owner owner) {
  struct Owned final : Held {
    explicit Owned(Owner from) noexcept : owner(std::move(from)) {}
    [[nodiscard]] bool may_go() const noexcept override {
      if constexpr (requires { owner.may_go(); }) {
        return owner.may_go();
      } else {
        return true;
      }
    }
    Owner owner;
  };
  auto owned = std::make_unique<Owned>(std::move(owner));
  auto* const thing = owned->owner.get();
  return std::shared_ptr<std::remove_reference_t<decltype(*thing)>>(
      thing, DestroyHeld{std::move(device), owned.release()});
}

}  // namespace refrain
