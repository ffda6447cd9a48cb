#include "refrain/replay/plan.hpp"

#include "instance_body.hpp"
#include "refrain/base/text.hpp"

namespace refrain {

Result<std::shared_ptr<PlanBody>> find_kernels(const Device& device, SealedGraph graph) {
  auto body = std::make_shared<PlanBody>(device.core(), std::move(graph));
  for (const KernelSignature& signature : body->graph.kernels()) {
    Result<LoadedKernel> loaded = device.load(signature);
    if (!loaded.ok()) {
      return loaded.error().with_context("While preparing graph " + body->graph.title() + ".");
    }
    // The order of the nodes follows from the effects that the kernel had when it was recorded.
    if (loaded->signature->effects != signature.effects) {
      return Error(ErrorKind::kernel_signature,
                   "Kernel " + quote(signature.name) + " is registered as " +
                       text(*loaded->signature) + " and is wanted as " + text(signature) + ".")
          .with_context("While preparing graph " + body->graph.title() + ".");
    }
    body->code.push_back(std::move(loaded->code));
  }
  return body;
}

Result<std::shared_ptr<Executable>> make_executable(const PlanBody& plan,
                                                    std::span<const std::uint64_t> addresses) {
  auto made = with_bodies(
      plan, [&] { return plan.device->backend().prepare(plan.graph, plan.code, addresses); });
  if (!made.ok()) {
    plan.device->refused_by_device(made.error());  // C17
    return std::move(made).error();
  }
  return hold_for(plan.device, *std::move(made));
}

Result<Plan> Plan::prepare(const Device& device, SealedGraph graph) {
  Result<std::shared_ptr<PlanBody>> found = find_kernels(device, std::move(graph));
  if (!found.ok()) return std::move(found).error();
  PlanBody& body = **found;
  for (const Region& region : body.graph.regions()) {
    if (region.role != Role::constant) {
      body.constants.push_back(nullptr);
      continue;
    }
    auto constant = body.device->allocate(body.device, region, false);
    if (!constant.ok()) return std::move(constant).error();
    body.constants.push_back(*std::move(constant));
  }
  return Plan(*std::move(found));
}

const SealedGraph& Plan::graph() const noexcept { return body_->graph; }

Result<Instance> Plan::instance() const {
  auto made = std::make_shared<InstanceBody>(body_);
  const std::span<const Region> regions = body_->graph.regions();

  // All scratch lies in one arena: nobody looks at it by name and it carries no claims.
  std::uint64_t arena_bytes = 0;
  std::uint32_t alignment = 1;
  for (std::uint32_t at = 0; at < regions.size(); ++at) {
    const Region& region = regions[at];
    if (region.role != Role::scratch) continue;
    arena_bytes += (region.alignment - arena_bytes % region.alignment) % region.alignment;
    made->memory[at].offset = arena_bytes;
    if (region.bytes > ~std::uint64_t{0} / 2 - arena_bytes) {
      return Error(ErrorKind::out_of_memory,
                   "The scratch of graph " + body_->graph.title() + " is larger than any memory.");
    }
    arena_bytes += region.bytes;
    alignment = std::max(alignment, region.alignment);
  }
  if (arena_bytes != 0) {
    Region arena;
    arena.name = body_->graph.name() + " scratch";
    arena.role = Role::scratch;
    arena.bytes = arena_bytes;
    arena.alignment = alignment;
    auto memory = body_->device->allocate(body_->device, std::move(arena), false);
    if (!memory.ok()) return std::move(memory).error();
    for (std::uint32_t at = 0; at < regions.size(); ++at) {
      if (regions[at].role == Role::scratch) made->memory[at].allocation = *memory;
    }
  }
  for (std::uint32_t at = 0; at < regions.size(); ++at) {
    if (regions[at].role == Role::constant) made->memory[at].allocation = body_->constants[at];
    if (regions[at].role == Role::state) REFRAIN_TRY(made->give_memory(at));
  }
  std::vector<std::uint64_t> addresses;
  for (const RegionMemory& memory : made->memory) addresses.push_back(memory.address());
  auto executable = make_executable(*body_, addresses);
  if (!executable.ok()) return std::move(executable).error();
  made->executable = *std::move(executable);
  return Instance(std::move(made));
}

}  // namespace refrain
