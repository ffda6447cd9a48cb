// A sealed graph made ready for a device: its kernels found and their parameters checked, its
// constants in place. Nothing of it changes afterwards, so threads share one and each makes
// instances of its own.
#pragma once

#include <memory>
#include <vector>

#include "refrain/base/result.hpp"
#include "refrain/device/device.hpp"
#include "refrain/replay/instance.hpp"

namespace refrain {

/// Immutable; safe to share; copying shares.
class Plan {
 public:
  /// Refuses when a kernel is missing or has other parameters (the error names both), or when the
  /// device has no memory for a constant. Runs nothing.
  static Result<Plan> prepare(const Device& device, SealedGraph graph);

  [[nodiscard]] const SealedGraph& graph() const noexcept;

  /// An instance with memory of its own for all but constants. Its states are at their starts; its
  /// inputs wait to be bound, or to be written through `Instance::view`.
  [[nodiscard]] Result<Instance> instance() const;

 private:
  explicit Plan(std::shared_ptr<const PlanBody> body) noexcept : body_(std::move(body)) {}

  std::shared_ptr<const PlanBody> body_;
};

}  // namespace refrain
