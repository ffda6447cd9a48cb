// What sealing a window gives: the graph, and beside it the memory that its regions were.
#pragma once

#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "refrain/capture/sealed_graph.hpp"
#include "refrain/device/buffer.hpp"

namespace refrain {

/// A sealed graph with the memory it was recorded over, which it keeps alive (C14). Its bytes
/// carry "recorded, not replayed" until something writes them (C18). Safe to share; copying shares.
class Recording {
 public:
  struct Body {
    Body(SealedGraph sealed, std::vector<std::shared_ptr<const Allocation>> over,
         std::shared_ptr<DeviceCore> on) noexcept
        : graph(std::move(sealed)), memory(std::move(over)), device(std::move(on)) {}

    SealedGraph graph;
    std::vector<std::shared_ptr<const Allocation>> memory;  ///< One a region.
    std::shared_ptr<DeviceCore> device;
    FailureId mark;  ///< "Recorded, not replayed", which its own replay looks beneath.
    std::atomic<bool> in_use{false};  ///< Whether an instance runs on this memory.
  };

  explicit Recording(std::shared_ptr<Body> body) noexcept : body_(std::move(body)) {}

  [[nodiscard]] const SealedGraph& graph() const noexcept { return body_->graph; }
  [[nodiscard]] const std::shared_ptr<Body>& body() const noexcept { return body_; }

 private:
  std::shared_ptr<Body> body_;
};

}  // namespace refrain
