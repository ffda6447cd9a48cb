#include "refrain/device/device.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "refrain/base/text.hpp"
#include "refrain/device/calls_forbidden.hpp"
#include "refrain/device/ledger.hpp"

namespace refrain {
namespace {

std::uint32_t next_device() noexcept {
  static std::atomic<std::uint32_t> last{0};
  return ++last;
}

}  // namespace

Allocation::Allocation(std::shared_ptr<DeviceCore> core, Region region,
                       std::shared_ptr<MemoryBlock> memory, bool unwritten)
    : core_(std::move(core)),
      region_(std::move(region)),
      memory_(std::move(memory)),
      id_(core_->table().add(region_.name, region_.bytes, this, unwritten)) {}

Allocation::~Allocation() {
  core_->table().remove(id_);
  core_->order().forget(id_);
}

std::shared_ptr<const Allocation> Allocation::make(std::shared_ptr<DeviceCore> core, Region region,
                                                   std::shared_ptr<MemoryBlock> memory,
                                                   bool unwritten) {
  auto made = std::make_shared<Allocation>(std::move(core), std::move(region), std::move(memory),
                                           unwritten);
  made->self_ = made;
  return made;
}

DeviceCore::DeviceCore(std::shared_ptr<Backend> backend, DeviceOptions options)
    : backend_(std::move(backend)),
      options_(std::move(options)),
      number_(next_device()),
      table_(number_, options_.on_unread ? UnreadListener([this](const UnreadFailure& failure) {
               const CallsForbidden forbidden(*this, {ForbiddenPlace::Kind::on_unread});  // E6
               options_.on_unread(failure);
             })
                                         : UnreadListener()) {
  backend_->on_lost([this] { hear_of_ends(); });
}

void DeviceCore::heard(StreamId stream, const Error& error) const noexcept {
  if (!options_.on_failure) return;
  const CallsForbidden forbidden(*this, {ForbiddenPlace::Kind::on_failure});  // E6
  options_.on_failure(stream, error);
}

Result<const Allocation*> DeviceCore::resolve(const BufferBinding& binding) const {
  if (binding.buffer.device != number_) {
    if (!binding.buffer) {
      return Error(ErrorKind::stale_buffer, "A view that was never made from a buffer was used.");
    }
    return Error(ErrorKind::other_device, "A buffer of another device was used.");
  }
  const auto* const allocation = static_cast<const Allocation*>(table_.owner_of(binding.buffer));
  if (allocation == nullptr) {  // M6
    const std::string name = table_.name_of(binding.buffer);
    return Error(ErrorKind::stale_buffer,
                 (name.empty() ? "A buffer" : "Buffer " + quote(name)) +
                     " was used after it was freed (slot " + std::to_string(binding.buffer.slot) +
                     ", generation " + std::to_string(binding.buffer.generation) + ").");
  }
  if (binding.range.begin > binding.range.end || binding.range.end > allocation->region().bytes) {
    return Error(ErrorKind::invalid_argument,
                 "A view reaches outside buffer " + quote(allocation->region().name) +
                     ", which has " + std::to_string(allocation->region().bytes) + " bytes.");
  }
  return allocation;
}

Result<std::shared_ptr<const Allocation>> DeviceCore::allocate(
    const std::shared_ptr<DeviceCore>& self, Region region, bool unwritten) {
  const SharedBytes* const bytes = std::get_if<SharedBytes>(&region.start);
  const bool constant = region.role == Role::constant;
  if (constant && bytes == nullptr) {
    return Error(ErrorKind::invalid_argument, "Buffer " + quote(region.name) +
                                                  " is a constant and was given no bytes; "
                                                  "Device::constant takes them.");
  }
  const auto refused = [&](const Error& why) {
    Error told = why.with_context("While allocating buffer " + quote(region.name) + " of " +
                                  std::to_string(region.bytes) + " bytes.");
    refused_by_device(told);
    return told;
  };
  return wanted([&]() -> Result<std::shared_ptr<const Allocation>> {
    Result<DeviceMemory> memory =
        constant ? backend_->adopt(*bytes) : backend_->allocate(region.bytes, region.alignment);
    if (!memory.ok()) return refused(memory.error());
    std::shared_ptr<MemoryBlock> block(
        new MemoryBlock(backend_, *memory, constant ? *bytes : SharedBytes{}), FreeMemory{self});
    const bool started = !std::holds_alternative<NoStart>(region.start);
    if (started && !constant) {
      const Result<void> set = bytes != nullptr ? backend_->upload(memory->address, bytes->span())
                                                : backend_->zero(memory->address, region.bytes);
      if (!set.ok()) return refused(set.error());
    }
    return Allocation::make(self, std::move(region), std::move(block), !started && unwritten);
  });
}

Result<std::shared_ptr<MemoryBlock>> DeviceCore::allocate_block(
    const std::shared_ptr<DeviceCore>& self, std::uint64_t bytes, std::uint32_t alignment) {
  const Result<DeviceMemory> memory = backend_->allocate(bytes, alignment);
  if (!memory.ok()) return memory.error();
  return std::shared_ptr<MemoryBlock>(new MemoryBlock(backend_, *memory, SharedBytes{}),
                                      FreeMemory{self});
}

Result<std::shared_ptr<const Allocation>> DeviceCore::adopt(const std::shared_ptr<DeviceCore>& self,
                                                            Region region, std::uint64_t address,
                                                            std::shared_ptr<const void> owner) {
  return wanted([&]() -> Result<std::shared_ptr<const Allocation>> {
    const DeviceMemory memory{address, region.bytes};
    if (Result<void> usable = backend_->may_use(memory); !usable.ok()) {
      Error told = usable.error().with_context("While adopting buffer " + quote(region.name) +
                                               " of " + std::to_string(region.bytes) + " bytes.");
      refused_by_device(told);
      return told;
    }
    std::shared_ptr<MemoryBlock> block(new MemoryBlock(memory, std::move(owner)), FreeMemory{self});
    return Allocation::make(self, std::move(region), std::move(block), false);
  });
}

Order::HandedOver DeviceCore::attach(std::shared_ptr<Ledger> ledger) {
  Order::HandedOver handed_over = order_.attach(ledger->stream());
  const Lock lock(mutex_);
  ledgers_.push_back(std::move(ledger));
  return handed_over;
}

void DeviceCore::detach(const Ledger& ledger) noexcept {
  order_.detach(ledger.stream());
  const Lock lock(mutex_);
  std::erase_if(ledgers_, [&](const auto& each) { return each.get() == &ledger; });
}

std::vector<std::shared_ptr<Ledger>> DeviceCore::all_ledgers() {
  const Lock lock(mutex_);
  return ledgers_;
}

void DeviceCore::hear_of_ends() noexcept {
  for (const auto& ledger : all_ledgers()) ledger->settle(0);
}

void DeviceCore::wait_for(std::span<const BufferBinding> bindings, bool readers) {
  // Before the ledgers are listed: whatever stream it holds is among them, or has ended.
  const Order::Clock point = order_.point(bindings, readers);
  for (const auto& ledger : all_ledgers()) {
    const auto given = point.find(ledger->stream());
    ledger->wait_for(bindings, readers, given != point.end() ? given->second : 0);
  }
  order_.ended(point);
}

// Takes the mutexes of all ledgers at once, so that nothing is entered while the failure is
// followed; the analysis cannot follow a list of locks.
void DeviceCore::follow(LateClaim& late, std::span<const FailureTable::Open> open,
                        std::uint64_t order, const Error& error) REFRAIN_NO_THREAD_SAFETY_ANALYSIS {
  const Lock lock(mutex_);
  for (const auto& ledger : ledgers_) ledger->mutex_.lock();
  const Error told = error.with_failure(late.failure());
  // What came later, in the order in which it was issued. A scope that is open counts from its
  // opening, so before whatever was issued in it, which it did not read; others come last.
  struct Later {
    std::uint64_t order;
    const FailureTable::Open* open;  // or, when it is null, an entry
    Ledger::Entry* entry;
    Ledger* ledger;
  };
  std::vector<Later> later;
  for (const FailureTable::Open& each : open) {
    const std::uint64_t issued = each.scope->issued_from;
    later.push_back({issued != 0 ? issued : ~std::uint64_t{0}, &each, nullptr, nullptr});
  }
  for (const auto& ledger : ledgers_) {
    for (Ledger::Entry& entry : ledger->entries_) {
      if (entry.order == order) ledger->tell_pass(entry.ticket, told);
      if (entry.order > order) later.push_back({entry.order, nullptr, &entry, ledger.get()});
    }
  }
  std::stable_sort(later.begin(), later.end(),
                   [](const Later& a, const Later& b) { return a.order < b.order; });
  const auto follow_entry = [&](Ledger::Entry& entry,
                                Ledger& ledger) REFRAIN_NO_THREAD_SAFETY_ANALYSIS {
    const Ledger::Work& work = entry.work;
    const Skip skip{work.kernel, ledger.stream_, work.where, {}, {}, 0};
    // What has ended already did not wait for this work, so it counts as a writer only, and so does
    // what nothing holds back.
    const std::span<const BufferBinding> reads =
        entry.ended || !work.held_back ? std::span<const BufferBinding>{} : work.bytes->reads;
    if (late.passes_on(skip, reads, work.bytes->writes, work.bytes->unrun_writes)) {
      entry.poisoned = true;
      ledger.tell_pass(entry.ticket, told);
    }
  };
  const auto follow_scope = [&](OpenScope& scope, StreamId stream) {
    const bool around = scope.issued_from != 0 && scope.issued_from <= order;
    const Skip skip{scope.kernel, stream, scope.where, {}, {}, 0};
    if (around) {
      late.overrules(scope);
    } else if (late.passes_on(skip, scope.reads, scope.writes, scope.unrun_writes())) {
      scope.poisoned.store(late.failure().number, std::memory_order_relaxed);
      late.overrules(scope);
    }
  };
  for (const Later& each : later) {
    if (each.open != nullptr) {
      follow_scope(*each.open->scope, each.open->stream);
    } else {
      follow_entry(*each.entry, *each.ledger);
    }
  }
  for (const auto& ledger : ledgers_) ledger->mutex_.unlock();
}

Error DeviceCore::failed_late(Ledger& ledger, Ticket ticket, const Error& error) noexcept {
  Ledger::Work work;
  std::uint64_t order = 0;
  {
    const Lock lock(ledger.mutex_);
    const Ledger::Entry* const entry = ledger.find(ticket);
    if (entry == nullptr) return error;
    work = entry->work;
    order = entry->order;
  }
  Error told = work.remarks.on(error);
  const FailureId failure =
      table_.claim_late(told, work.kernel, ledger.stream(), work.where, work.bytes->writes,
                        [&](LateClaim& late, std::span<const FailureTable::Open> open) {
                          follow(late, open, order, told);
                        });
  told = told.with_failure(failure);
  heard(ledger.stream(), told);
  return told;
}

void DeviceCore::opened(Window& window) {
  const Lock lock(mutex_);
  windows_.push_back(&window);
  open_windows_.store(windows_.size(), std::memory_order_relaxed);
}

void DeviceCore::closed(const Window& window) noexcept {
  const Lock lock(mutex_);
  std::erase(windows_, &window);
  open_windows_.store(windows_.size(), std::memory_order_relaxed);
}

void DeviceCore::settled() noexcept {
  // C19. One at a time: when a window opens meanwhile, the rest wait for that one.
  while (next_held() != nullptr) {
  }
}

std::optional<std::string> DeviceCore::recorded_write(std::span<const BufferBinding> reads) {
  if (open_windows_.load(std::memory_order_relaxed) == 0) return std::nullopt;
  std::optional<BufferBinding> met;
  const Window* by = nullptr;
  {
    const Lock lock(mutex_);
    for (Window* const each : windows_) {
      if (!each->is_used_here() || !each->capturing()) continue;
      met = each->overlay().written(reads);
      by = each;
      if (met) break;
    }
  }
  if (!met) return std::nullopt;
  return "bytes " + text(met->range) + " of " + quote(table_.name_of(met->buffer)) +
         ", which the window of stream " + std::to_string(by->stream().number) +
         text(by->opened()) + ", recording in this thread, has recorded a write of";
}

std::unique_ptr<Held> DeviceCore::next_held() noexcept {
  const Lock lock(mutex_);
  return windows_.empty() ? held_.pop() : nullptr;
}

void DeviceCore::destroy_put_off() noexcept {
  for (;;) {
    std::unique_ptr<Held> thing;
    {
      const Lock lock(mutex_);
      if (put_off_.empty() || !put_off_.front()->may_go()) return;
      thing = put_off_.pop();
    }
    destroy(std::move(thing));
  }
}

void DeviceCore::destroy(std::unique_ptr<Held> thing) noexcept {
  {
    const Lock lock(mutex_);
    if (!windows_.empty() || !thing->may_go()) {
      (thing->may_go() ? held_ : put_off_).push(std::move(thing));
      return;
    }
  }
  thing.reset();
}

void DeviceCore::free(std::unique_ptr<Held> memory) noexcept {
  MemoryInUse* const call = MemoryInUse::of(*this);
  if (call == nullptr) return destroy(std::move(memory));
  call->keep(std::move(memory));
}

void FreeMemory::operator()(MemoryBlock* memory) const noexcept {
  device->free(std::unique_ptr<Held>(memory));
}

void MemoryInUse::free_all() noexcept {
  while (std::unique_ptr<Held> memory = freed_.pop()) device_.free(std::move(memory));
}

void DestroyHeld::operator()(const void*) const noexcept {
  device->destroy(std::unique_ptr<Held>(held));
}

Result<void> DeviceCore::sync() {
  REFRAIN_TRY(CallsForbidden::look(*this, "The device", "be synced"));
  const Order::Clock point = order_.point();  // as in `wait_for`
  std::vector<std::shared_ptr<Ledger>> ledgers;
  {
    const Lock lock(mutex_);
    if (!windows_.empty()) {
      const Window& open = *windows_.front();
      return Error(ErrorKind::refused_in_window,
                   "The device cannot be synced while a window is open: stream " +
                       std::to_string(open.stream().number) + " has one" + text(open.opened()) +
                       ", which " + (open.is_used_here() ? "this" : "another") + " thread uses.");
    }
    ledgers = ledgers_;
  }
  for (const auto& ledger : ledgers) ledger->wait_for_all();
  order_.ended(point);  // E11: not before all of it has
  destroy_put_off();
  for (const auto& ledger : ledgers) {
    if (std::optional<Error> failed = ledger->take_failure()) return *std::move(failed);
  }
  return {};
}

Result<void> DeviceCore::first_use(const std::string& what, Where where) {
  return wanted([&] { return first_use_now(what + text(where)); });
}

Result<void> DeviceCore::first_use_now(const std::string& what) {
  const Lock lock(mutex_);
  bool recording = false;
  for (Window* const each : windows_) {
    if (!each->is_used_here()) continue;
    each->first_use(what);
    recording = recording || each->capturing();
  }
  if (!recording) return {};
  return Error(ErrorKind::needs_warm_up,
               "What happens once cannot be recorded, and a window of this thread records: it "
               "needs warm-up: " +
                   what + ".");
}

DeviceCore::KernelKey DeviceCore::key_of(const KernelSignature& kernel) {
  const KernelSource& source = kernel.source;
  return {kernel.name, kernel.version, source.symbol,
          source.code != nullptr ? source.code->digest : PortableCode::Digest{}, source.own};
}

bool DeviceCore::has_loaded(const KernelSignature& kernel) {
  const Lock lock(mutex_);
  return loaded_.contains(key_of(kernel));
}

void DeviceCore::loaded(const KernelSignature& kernel) {
  const Lock lock(mutex_);
  loaded_.insert(key_of(kernel));
}

void DeviceCore::refused_by_device(const Error& error) noexcept {
  // C17: what wanted it cannot be recorded, even though nothing else went wrong. A window is used
  // by one thread at a time, so this thread may touch those that it used last.
  const Lock lock(mutex_);
  for (Window* const each : windows_) {
    if (each->is_used_here() && each->capturing()) each->device_refused(error);
  }
}

Result<void> Device::counted(const Region& region, std::uint64_t count,
                             std::uint64_t element_bytes) {
  if (count == 0 || count > ~std::uint64_t{0} / element_bytes ||
      region.bytes % element_bytes != 0) {
    return Error(ErrorKind::invalid_argument, "Buffer " + quote(region.name) + " cannot have " +
                                                  std::to_string(count) + " elements of " +
                                                  std::to_string(element_bytes) + " bytes (" +
                                                  std::to_string(region.bytes) + " bytes given).");
  }
  return {};
}

Result<std::shared_ptr<const Allocation>> Device::allocate(Region region, std::uint64_t count,
                                                           std::uint64_t element_bytes) const {
  REFRAIN_TRY(counted(region, count, element_bytes));
  return core_->allocate(core_, std::move(region), core_->checks());
}

Result<std::shared_ptr<const Allocation>> Device::adopt(Region region, std::uint64_t address,
                                                        std::uint64_t count,
                                                        std::uint64_t element_bytes,
                                                        std::shared_ptr<const void> owner) const {
  REFRAIN_TRY(counted(region, count, element_bytes));
  if (region.role == Role::constant) {
    return Error(ErrorKind::invalid_argument,
                 "Buffer " + quote(region.name) +
                     " cannot be adopted as a constant, whose bytes a graph owns; "
                     "Device::constant takes them.");
  }
  if (address == 0 || address % element_bytes != 0) {
    return Error(ErrorKind::invalid_argument,
                 "Buffer " + quote(region.name) + " cannot be adopted at address " +
                     std::to_string(address) + ", which is no multiple of its elements' " +
                     std::to_string(element_bytes) + " bytes, or null.");
  }
  // As aligned as it is, up to what memory of our own would be.
  const std::uint64_t aligned = address & (~address + 1);
  region.alignment = static_cast<std::uint32_t>(std::min<std::uint64_t>(region.alignment, aligned));
  if (region.role == Role::state) region.start = ZeroStart{};
  return core_->adopt(core_, std::move(region), address, std::move(owner));
}

Result<LoadedKernel> Device::load(KernelSignature signature, Where where) const {
  return core_->wanted([&] { return load_now(std::move(signature), where); });
}

Result<LoadedKernel> Device::load_now(KernelSignature signature, Where where) const {
  if (!core_->has_loaded(signature)) {
    // First, because to warm up for a kernel that there is not would be no use.
    if (Result<void> known = core_->backend().has(signature); !known.ok()) {
      core_->refused_by_device(known.error());
      return std::move(known).error();
    }
    REFRAIN_TRY(core_->first_use("loading kernel " + quote(signature.name), where));
  }
  Result<std::shared_ptr<const KernelCode>> code = core_->backend().kernel(signature);
  if (!code.ok()) {
    core_->refused_by_device(code.error());
    return std::move(code).error();
  }
  core_->loaded(signature);
  LoadedKernel loaded;
  loaded.id = intern_kernel_name(signature.name);
  signature.effects = (*code)->effects();
  signature.source = (*code)->source();
  core_->loaded(signature);  // a graph that carries this code will ask for it by its source
  loaded.signature = std::make_shared<const KernelSignature>(std::move(signature));
  loaded.code = hold_for(core_, *std::move(code));
  loaded.device = core_->number();
  return loaded;
}

std::optional<Error> Device::check(const BufferBinding& binding) const {
  const Result<const Allocation*> allocation = core_->resolve(binding);
  if (!allocation.ok()) return allocation.error();
  return core_->table().check(binding);
}

}  // namespace refrain
