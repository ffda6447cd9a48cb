#include "refrain/replay/instance.hpp"

#include <algorithm>
#include <exception>
#include <optional>
#include <utility>

#include "hold.hpp"
#include "instance_body.hpp"
#include "refrain/base/text.hpp"
#include "refrain/device/calls_forbidden.hpp"
#include "refrain/device/stream_core.hpp"

namespace refrain {
namespace {

Result<std::uint32_t> find(const SealedGraph& graph, std::string_view name, ElementType element) {
  const std::optional<std::uint32_t> found = graph.region(name);
  if (!found) {
    std::string names;
    for (const Region& region : graph.regions()) {
      const bool bindable = region.role != Role::constant && region.role != Role::scratch;
      if (bindable && !region.name.empty())
        names += (names.empty() ? "" : ", ") + quote(region.name);
    }
    return Error(ErrorKind::unbound, "Graph " + graph.title() + " has no binding called " +
                                         quote(name) + "; it has " +
                                         (names.empty() ? "none" : names) + ".");
  }
  const Region& region = graph.regions()[*found];
  if (region.role == Role::constant || region.role == Role::scratch) {
    return Error(ErrorKind::unbound, "Region " + quote(name) + " of graph " + graph.title() +
                                         " is " + std::string(name_of(region.role)) +
                                         " and is the graph's own.");
  }
  if (region.element != element) {
    return Error(ErrorKind::invalid_argument,
                 "Region " + quote(name) + " of graph " + graph.title() + " holds " +
                     std::string(name_of(region.element)) + ", and was asked for as " +
                     std::string(name_of(element)) + ".");
  }
  return *found;
}

}  // namespace

bool InstanceBody::written(std::uint32_t region) const noexcept {
  const std::span<const RegionBytes> all = plan->graph.writes();
  return std::any_of(all.begin(), all.end(),
                     [&](const RegionBytes& bytes) { return bytes.region == region; });
}

Result<void> InstanceBody::give_memory(std::uint32_t region) {
  const Region& described = plan->graph.regions()[region];
  // An input that nobody writes is refused even where other reads are not checked.
  const bool unwritten = plan->device->checks() || described.role == Role::input;
  auto made = plan->device->allocate(plan->device, described, unwritten);
  if (!made.ok()) return std::move(made).error();
  return place(region, {*std::move(made), 0});
}

Result<void> InstanceBody::place(std::uint32_t region, RegionMemory there) {
  touched.reset();
  needs.reset();
  if (executable) {
    memory[region].placed = false;  // a refusal may have changed some of the nodes
    Result<void> bound = with_bodies(*plan, [&] {
      return plan->device->backend().rebind(*executable, region, there.address());
    });
    if (!bound.ok()) {
      plan->device->refused_by_device(bound.error());  // C17
      return bound;
    }
  }
  memory[region] = std::move(there);
  return {};
}

Result<void> InstanceBody::complete() {
  const std::span<const Region> regions = plan->graph.regions();
  for (const RegionBytes& read : plan->graph.external_reads()) {
    if (memory[read.region].allocation) continue;
    return Error(ErrorKind::unbound, "Graph " + plan->graph.title() + " reads " +
                                         quote(regions[read.region].name) +
                                         ", and nothing was bound to it or written to its view.");
  }
  for (std::uint32_t at = 0; at < memory.size(); ++at) {
    if (!memory[at].allocation) {
      REFRAIN_TRY(give_memory(at));
    } else if (!memory[at].placed) {
      REFRAIN_TRY(place(at, {memory[at].allocation, memory[at].offset}));
    }
  }
  list_bindings();
  return {};
}

void InstanceBody::list_bindings() {
  TouchedBytes listed;
  const std::span<const Region> regions = plan->graph.regions();
  // P1: all regions but scratch. On recorded memory nothing is scratch: its buffers are the
  // caller's, and carry the mark until they are written (C18).
  const auto counts = [&](const RegionBytes& each) {
    return recording != nullptr || regions[each.region].role != Role::scratch;
  };
  states.clear();
  for (const RegionBytes& each : plan->graph.external_reads()) {
    listed.reads.push_back(binding(each));
    if (regions[each.region].role == Role::state) states.push_back(listed.reads.back());
  }
  for (const RegionBytes& each : plan->graph.writes()) {
    if (counts(each)) listed.writes.push_back(binding(each));
  }
  for (const RegionBytes& each : plan->graph.fresh_writes()) {
    if (counts(each)) listed.unrun_writes.push_back(binding(each));
  }
  plan->device->table().unreserve(std::exchange(reserved, listed.writes.size()));
  plan->device->table().reserve(reserved);
  plan->device->table().watch(listed.reads);
  plan->device->table().watch(listed.writes);
  seen_bare = 0;
  listed.will_come_again();
  ReplayNeeds needed{plan, {}, executable};
  for (const RegionMemory& each : memory) needed.memory.push_back(each.allocation->memory());
  needs = std::make_shared<const ReplayNeeds>(std::move(needed));
  touched = std::make_shared<const TouchedBytes>(std::move(listed));
}

const SealedGraph& Instance::graph() const noexcept { return body_->plan->graph; }

Result<void> Instance::bind(std::string_view name, const BufferBinding& binding,
                            ElementType element) {
  const Hold hold(body_);
  REFRAIN_TRY(hold.taken());
  InstanceBody& body = *hold.body();
  const SealedGraph& graph = body.plan->graph;
  REFRAIN_TRY(CallsForbidden::look(*body.plan->device, "An instance of graph " + graph.title(),
                                   "be bound"));  // E6: it may wait
  const Result<std::uint32_t> found = find(graph, name, element);
  if (!found.ok()) return found.error();
  const Region& region = graph.regions()[*found];
  const Result<const Allocation*> allocation = body.plan->device->resolve(binding);
  if (!allocation.ok()) {
    return allocation.error().with_context("While binding " + quote(name) + " of graph " +
                                           graph.title() + ".");
  }
  const auto refused = [&](const std::string& why) {
    return Error(ErrorKind::invalid_argument,
                 "Buffer " + quote((*allocation)->region().name) + " cannot be bound to " +
                     quote(name) + " of graph " + graph.title() + ", because " + why + ".");
  };
  if (binding.range.size() != region.bytes) {
    return refused("it has " + std::to_string(binding.range.size()) + " bytes and the region has " +
                   std::to_string(region.bytes));
  }
  if (binding.range.begin % size_of(region.element) != 0) {
    return refused("it begins inside an element, at byte " + std::to_string(binding.range.begin));
  }
  const bool written = body.written(*found);
  if (written && (*allocation)->region().role == Role::constant) {
    return refused("it is a constant and the graph writes it");
  }
  // The order of the nodes was derived for regions that do not share bytes.
  for (std::uint32_t other = 0; other < body.memory.size(); ++other) {
    if (other == *found || !body.memory[other].allocation) continue;
    const BufferBinding taken = body.whole(other);
    if (taken.buffer == binding.buffer && taken.range.overlaps(binding.range) &&
        (written || body.written(other))) {
      return refused("region " + quote(graph.regions()[other].name) +
                     " uses the same bytes and one of the two is written");
    }
  }
  const RegionMemory& memory = body.memory[*found];
  if (memory.allocation && memory.allocation->id() == binding.buffer &&
      memory.offset == binding.range.begin) {
    return {};  // the same address again costs nothing
  }
  // P6: what it waits for may be another owner, and the last.
  std::shared_ptr<const Allocation> kept = (*allocation)->shared();
  if (body.touched != nullptr) {
    body.plan->device->wait_for(body.touched->writes, true);
    body.plan->device->wait_for(body.touched->reads, true);
  }
  return body.place(*found, {std::move(kept), binding.range.begin});
}

Result<BufferBinding> Instance::locate(std::string_view name, ElementType element) {
  const Hold hold(body_);
  REFRAIN_TRY(hold.taken());
  InstanceBody& body = *hold.body();
  const Result<std::uint32_t> found = find(body.plan->graph, name, element);
  if (!found.ok()) return found.error();
  if (!body.memory[*found].allocation) REFRAIN_TRY(body.give_memory(*found));
  return body.whole(*found);
}

ScopedOutcome<Replayed> Instance::replay(Stream& stream, const ReplayOptions& options,
                                         Where where) {
  const Hold hold(body_);
  InstanceBody& body = *hold.body();
  if (Result<void> taken = hold.taken(); !taken.ok()) return std::move(taken).error();
  if (Result<void> same = of_same_device(body, stream); !same.ok()) return std::move(same).error();
  if (Result<void> outside = stream.outside_window("replay"); !outside.ok()) {
    return std::move(outside).error();
  }
  const IssuingCall call(stream.core());
  if (Result<void> ready = body.ready(); !ready.ok()) return std::move(ready).error();

  const std::shared_ptr<const TouchedBytes>& bytes = body.touched;  // which stays, held (P7)
  if (Result<void> ordered = stream.in_order(body.plan->name, bytes, where); !ordered.ok()) {
    // E11: as any refused work, but for the states, which are still those of the step before (P2).
    failed_writing(stream, body.plan->name, WriteSet::borrowed(bytes->unrun_writes),
                   ordered.error(), where);
    return std::move(ordered).error();
  }
  FailureTable& table = body.plan->device->table();
  if (!table.still_bare(body.seen_bare))
    body.seen_bare = table.seen_bare(bytes->reads, bytes->writes);
  std::span<const BufferBinding> looked_at;
  if (options.check_inputs) {
    looked_at = bytes->reads;
    const FailureId beneath = body.recording ? body.recording->mark : FailureId{};
    // P5: what carried nothing last time, and has not begun to, is not walked.
    if (const FoundFailure found =
            stream.inputs_failure(looked_at, body.states, beneath, body.seen_bare)) {
      // P2, K4: the listener, then the data; no scope opens. States keep what they carry.
      stream.on_failure(stream.id(), found.error());
      Skip skip{body.plan->name, stream.id(), where, found.needed(), {}, 0};
      skip.would_write_count = static_cast<std::uint32_t>(bytes->unrun_writes.size());
      if (!bytes->unrun_writes.empty()) skip.would_write = bytes->unrun_writes.front();
      stream.write_streams().propagate(found, skip, bytes->unrun_writes);
      return Skipped{found.id()};
    }
  }
  const std::span<const BufferBinding> unrun = bytes->unrun_writes;
  // P1: a failure to run claims all of it, a clean run releases all of it.
  auto scope =
      ExecuteScope<Stream>::over(stream, body.plan->name, WriteSet::borrowed(bytes->writes), where,
                                 ReplayTerms{looked_at, &unrun, body.seen_bare});
  OpenScope& shown = scope.shown();
  std::optional<Error> threw;
  auto outcome = std::move(scope).execute([&](Stream& on) -> Result<Replayed> {
    const std::uint64_t number = ++body.replays;
    // Held back only for what was looked at.
    WorkTerms terms{body.needs, {body.plan->advice, number}, bytes, options.check_inputs};
    try {
      REFRAIN_TRY(on.run(*body.executable, shown, std::move(terms)));
    } catch (const NodeThrew& node) {
      return threw.emplace(node.error);
    }
    return Replayed{number};
  });
  // E4: its bytes say which node it was, and the caller gets what that threw and nothing else.
  if (threw) std::rethrow_exception(threw->exception());
  return outcome;
}

Result<void> Instance::reset(Stream& stream, Where where) {
  const Hold hold(body_);
  REFRAIN_TRY(hold.taken());
  InstanceBody& body = *hold.body();
  REFRAIN_TRY(stream.outside_window("reset an instance"));
  DeviceCore& device = *body.plan->device;
  const std::span<const Region> regions = body.plan->graph.regions();
  for (std::uint32_t at = 0; at < regions.size(); ++at) {
    if (regions[at].role != Role::state) continue;
    const auto* const bytes = std::get_if<SharedBytes>(&regions[at].start);
    const BufferBinding state = body.whole(at);
    try {
      // E11: a write of the host's, also where it is a fill.
      if (bytes == nullptr) device.wait_for(std::span(&state, 1), true);
      auto written = bytes != nullptr ? stream.write_bytes(state, bytes->span(), where)
                                      : stream.fill_bytes(state, 0, 1, where);
      REFRAIN_TRY(std::move(written).into_result());
    } catch (...) {
      // What was not reset does not pass for it. (Thrown inside of a scope, it is claimed already.)
      if (!device.table().check(state, false)) {
        failed_writing(stream, body.plan->name, WriteSet::borrowed(std::span(&state, 1)),
                       Error::thrown(std::current_exception()), where);
      }
      throw;
    }
  }
  return {};
}

Result<Instance> instance(const Recording& recording) {
  Recording::Body& recorded = *recording.body();
  const Device device(recorded.device);
  Result<std::shared_ptr<PlanBody>> plan = find_kernels(device, recorded.graph);
  if (!plan.ok()) return std::move(plan).error();
  auto made = std::make_shared<InstanceBody>(*std::move(plan));
  if (recorded.in_use.exchange(true)) {
    return Error(ErrorKind::busy, "The memory that graph " + recorded.graph.title() +
                                      " was recorded on has an instance already.");
  }
  made->recording = recording.body();  // gives it back whatever happens from here on
  std::vector<std::uint64_t> addresses;
  for (std::size_t at = 0; at < recorded.memory.size(); ++at) {
    made->memory[at] = {recorded.memory[at], 0};
    addresses.push_back(recorded.memory[at]->address());
  }
  auto executable = make_executable(*made->plan, addresses);
  if (!executable.ok()) return std::move(executable).error();
  made->executable = *std::move(executable);
  return Instance(std::move(made));
}

}  // namespace refrain
