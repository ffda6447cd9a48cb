// What plans and instances consist of. Private to replay/.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <vector>

#include "refrain/device/calls_forbidden.hpp"
#include "refrain/device/device.hpp"
#include "refrain/device/recording.hpp"

namespace refrain {

/// A plan: immutable.
struct PlanBody {
  PlanBody(std::shared_ptr<DeviceCore> on, SealedGraph sealed)
      : device(std::move(on)),
        graph(std::move(sealed)),
        name(intern_kernel_name(graph.replay_name())) {
    for (const Region& region : graph.regions()) {
      if (region.role != Role::state) continue;
      // True whenever it is read, also once that has been done.
      advice =
          "It broke its states as well: reset the instance, or write them, between it and the next "
          "replay.";
    }
  }

  std::shared_ptr<DeviceCore> device;
  SealedGraph graph;
  KernelId name;                 // what a replay is called in the story of a failure
  const char* advice = nullptr;  // what a replay that failed asks of the user (P4)
  std::vector<std::shared_ptr<const KernelCode>> code;       // one a kernel
  std::vector<std::shared_ptr<const Allocation>> constants;  // one a region, or null
};

/// Calls the backend as `call()`, which may call the bodies of the graph's native work (E6).
template <class Call>
auto with_bodies(const PlanBody& plan, Call&& call) -> decltype(call()) {
  const CallsForbidden forbidden(*plan.device,
                                 {ForbiddenPlace::Kind::preparing, plan.name, {}, {}});
  auto done = call();
  if (done.ok() && forbidden.refused()) return *forbidden.refused();
  return done;
}

/// Finds the kernels of `graph` on `device`, without memory for its constants.
Result<std::shared_ptr<PlanBody>> find_kernels(const Device& device, SealedGraph graph);

/// An executable of `plan` on these addresses, one a region.
Result<std::shared_ptr<Executable>> make_executable(const PlanBody& plan,
                                                    std::span<const std::uint64_t> addresses);

/// Where a region of an instance lies. Nowhere yet, while `allocation` is null.
struct RegionMemory {
  std::shared_ptr<const Allocation> allocation;
  std::uint64_t offset = 0;
  bool placed = true;  // whether the executable has its address

  [[nodiscard]] std::uint64_t address() const noexcept {
    return allocation ? allocation->address() + offset : 0;
  }
};

/// What a replay needs until it has ended (P6). No owner of what views name: an instance that goes
/// takes its claims along at once, and only the memory waits (M4).
struct ReplayNeeds {
  std::shared_ptr<const PlanBody> plan;
  std::vector<std::shared_ptr<MemoryBlock>> memory;
  std::shared_ptr<Executable> executable;
};

/// An instance. Goes with its handle, or with the call of this thread that is inside of it.
struct InstanceBody {
  explicit InstanceBody(std::shared_ptr<const PlanBody> of) : plan(std::move(of)) {
    memory.resize(plan->graph.regions().size());
  }
  ~InstanceBody() {
    plan->device->table().unreserve(reserved);
    if (recording) recording->in_use.store(false);
  }
  InstanceBody(const InstanceBody&) = delete;
  InstanceBody& operator=(const InstanceBody&) = delete;

  [[nodiscard]] BufferBinding binding(const RegionBytes& bytes) const noexcept {
    const RegionMemory& where = memory[bytes.region];
    return {where.allocation->id(),
            {where.offset + bytes.range.begin, where.offset + bytes.range.end}};
  }
  [[nodiscard]] BufferBinding whole(std::uint32_t region) const noexcept {
    return binding({region, {0, plan->graph.regions()[region].bytes}});
  }
  [[nodiscard]] bool written(std::uint32_t region) const noexcept;
  /// Memory of the instance's own for a region that has none.
  Result<void> give_memory(std::uint32_t region);
  /// Makes it ready to run: refuses inputs that nobody gave.
  Result<void> ready() { return touched != nullptr ? Result<void>() : complete(); }
  /// Points everything that uses `region` at `there`. Refused, it lies where it lay.
  Result<void> place(std::uint32_t region, RegionMemory there);
  /// Gives memory to whatever may have the instance's own, and places what a refusal left; refuses
  /// inputs that nobody gave.
  Result<void> complete();
  /// Builds the lists that replays look at; every region has memory.
  void list_bindings();

  std::shared_ptr<const PlanBody> plan;
  std::vector<RegionMemory> memory;             // one a region
  std::shared_ptr<Executable> executable;       // held for the device (C19)
  std::shared_ptr<const TouchedBytes> touched;  // of the memory above; null while not listed
  std::shared_ptr<const ReplayNeeds> needs;     // listed with it
  std::vector<BufferBinding> states;            // those of its reads that are states
  FailureTable::Version seen_bare = 0;  // when the bytes of `touched` last carried nothing (P5)
  std::size_t reserved = 0;             // bindings for which the table keeps room
  std::uint64_t replays = 0;
  std::shared_ptr<Recording::Body> recording;  // whose memory this is, if it is
  std::atomic<bool> busy{false};
};

}  // namespace refrain
