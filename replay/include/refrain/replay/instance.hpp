// An instance of a plan: memory for every region, an executable on it, and its own state. Replays
// run under a fresh `over` scope, after the inputs have been looked at, so nobody ever reads the
// answer of an earlier step for the one that did not run.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include "refrain/base/result.hpp"
#include "refrain/device/buffer.hpp"
#include "refrain/device/recording.hpp"
#include "refrain/device/stream.hpp"
#include "refrain/scope/outcome.hpp"

namespace refrain {

struct PlanBody;
struct InstanceBody;

/// What a replay that ran answers.
struct Replayed {
  std::uint64_t number = 0;  ///< Of this instance, from 1; one that failed had a number too.
};

/// What a node has written, when an instance is stepped through.
struct NodeWrite {
  std::uint32_t region = 0;  ///< Of the graph.
  BufferBinding binding;     ///< The instance's bytes.
};

struct ReplayOptions {
  bool check_inputs = true;  ///< Look at the inputs first (P2). Off, a broken one is laundered.
};

/// For one thread at a time; a second one is refused (`busy`, P7). Move-only. Destroying it does
/// not disturb a replay in flight, also when the work of that replay is what destroys it (P6), but
/// what it owned is dead at once: a view of its memory is refused from then on (M4).
class Instance {
 public:
  Instance(Instance&&) noexcept = default;
  Instance& operator=(Instance&&) noexcept = default;

  [[nodiscard]] const SealedGraph& graph() const noexcept;

  /// Points the region called `name` at the caller's buffer: nothing is copied, and the buffer is
  /// kept. Waits for a replay in flight. Refused, with the old binding in place: no such region, a
  /// constant or scratch, another size or element type, a constant that the graph would write,
  /// memory that another region of this instance uses and one of the two is written.
  template <class T>
  Result<void> bind(std::string_view name, const View<T>& view) {
    return bind(name, view.binding(), element_type_of<T>());
  }
  template <class T>
  Result<void> bind(std::string_view name, const Buffer<T>& buffer) {
    return bind(name, buffer.view());
  }
  Result<void> bind(std::string_view name, const BufferBinding& binding, ElementType element);

  /// The memory of the region called `name`, bound or the instance's own; to write an input that
  /// is not bound, or to read an output. Refused for another element type, constants and scratch.
  template <class T>
  [[nodiscard]] Result<View<T>> view(std::string_view name) {
    Result<BufferBinding> binding = locate(name, element_type_of<T>());
    if (!binding.ok()) return std::move(binding).error();
    return View<T>(*binding);
  }
  [[nodiscard]] Result<BufferBinding> locate(std::string_view name, ElementType element);

  /// Replays the graph once. `Executed` with the replay's number; `Skipped` when an input carries
  /// a failure: nothing ran, what the graph writes without reading it first carries that failure,
  /// and states are as they were (P2), so the next replay with good inputs goes on; `Failed` when
  /// a node failed: everything that it writes carries the error, states too (P4), or when the
  /// replay was refused (busy, unbound, in a window), which claims nothing.
  [[nodiscard]] ScopedOutcome<Replayed> replay(Stream& stream, const ReplayOptions& options = {},
                                               Where where = Where::here());

  /// Issues the nodes one by one, in the order of the graph, as eager work, in place of a replay:
  /// each under a scope of its own, so that a failure is told of that node. After each calls
  /// `after(node, writes)`, whose error ends it. Refused as a replay; answers the first error, and
  /// leaves the rest of the step undone then.
  using AfterNode =
      std::function<Result<void>(std::uint32_t node, std::span<const NodeWrite> writes)>;
  Result<void> step_through(Stream& stream, const AfterNode& after, Where where = Where::here());

  /// Writes every state's start, each under a scope of its own; one that cannot be written carries
  /// why, and the rest are left as they are. Refused in a window.
  Result<void> reset(Stream& stream, Where where = Where::here());

 private:
  friend class Plan;
  friend Result<Instance> instance(const Recording& recording);
  explicit Instance(std::shared_ptr<InstanceBody> body) noexcept : body_(std::move(body)) {}

  std::shared_ptr<InstanceBody> body_;
};

/// An instance on the memory that was recorded, one at a time: refused (`busy`) while there is
/// another. Its states hold what that memory holds.
[[nodiscard]] Result<Instance> instance(const Recording& recording);

}  // namespace refrain
