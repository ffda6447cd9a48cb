#include "refrain/device/stream.hpp"

#include <array>
#include <atomic>
#include <boost/container/small_vector.hpp>
#include <exception>
#include <functional>
#include <utility>

#include "arguments.hpp"
#include "issuing.hpp"
#include "refrain/base/kernel_name.hpp"
#include "refrain/base/text.hpp"

namespace refrain {
namespace {

/// Pieces of work after which a stream whose work nobody asks about looks for itself.
constexpr Ticket kLookEvery = 1024;

KernelId copy_name() {
  static const KernelId name = intern_kernel_name("copy");
  return name;
}
KernelId fill_name() {
  static const KernelId name = intern_kernel_name("fill");
  return name;
}
KernelId write_name() {
  static const KernelId name = intern_kernel_name("write");
  return name;
}

StreamId next_stream() noexcept {
  static std::atomic<std::uint64_t> last{0};
  return StreamId(++last);
}

}  // namespace

Result<Stream> Device::stream(StreamKind kind) const {
  return stream_over(
      [&](Completion& completion) { return core_->backend().stream(kind, completion); });
}

Result<Stream> Device::stream_over(const MakeStream& make) const {
  return core_->wanted([&] { return stream_now(make); });
}

Result<Stream> Device::stream_now(const MakeStream& make) const {
  core_->destroy_put_off();
  auto made = std::make_shared<StreamCore>(core_, next_stream());
  Result<std::unique_ptr<BackendStream>> backend = make(*made->ledger);
  if (!backend.ok()) {
    core_->refused_by_device(backend.error());  // C17
    return std::move(backend).error();
  }
  made->backend = hold_for(core_, LiveStream(*core_, made->ledger, *std::move(backend)));
  if (made->backend->asynchronous()) made->handed_over = core_->attach(made->ledger);
  return Stream(std::move(made));
}

Stream::~Stream() {
  if (!core_) return;
  if (window() != nullptr) {
    const std::shared_ptr<Window> open = std::move(core_->window);
    open->gone(core_->member);  // C10, C21
  }
  core_->backend.reset();  // also when a window's handle keeps the rest; waits, if C19 lets it
}

Window* Stream::window_if_member() const noexcept {
  Window* const open = core_->window.get();
  open->used_here();
  const bool member = !open->over() && !open->members().at(core_->member).left;
  if (member) return open;
  core_->window.reset();
  return nullptr;
}

void Stream::end_window_if_left() noexcept {
  const std::shared_ptr<Window> open = core_->window;  // owned while it ends
  if (open != nullptr && open->to_be_ended()) open->end_as_left();
}

void Stream::on_failure(StreamId stream, const Error& error) noexcept {
  ++core_->failed;
  core_->device->heard(stream, error);
  WarmUpPass* const pass = WarmUpPass::hearing(*core_->device);
  if (pass != nullptr && capturing() == nullptr) pass->failed(stream, error);
}

Result<void> Stream::look(const char* call) const {
  return CallsForbidden::look(*core_->device, "Stream " + std::to_string(id().number), call);
}

void Stream::lacks(const Error& error) noexcept {
  if (Window* const window = capturing()) window->lacks(error);
}

Result<void> Stream::outside_window(const char* call) const {
  REFRAIN_TRY(may(call));
  const Window* const open = window();
  if (open == nullptr || !open->capturing()) return {};
  // C12: refused before the device sees it; the window goes on.
  return Error(ErrorKind::refused_in_window,
               "Stream " + std::to_string(id().number) + " cannot " + call + " while " +
                   (core_->member == Members::kOrigin
                        ? "its window"
                        : "the window of stream " + std::to_string(open->stream().number) +
                              ", which it has joined,") +
                   text(open->opened()) + " is " + std::string(name_of(open->state())) +
                   ": what is recorded has not run.");
}

void Stream::pin(Window& window, const Allocation& allocation) {
  if (window.touches(allocation.id())) return;
  window.pin(allocation.id(), PinnedBuffer{allocation.region(), allocation.shared()});
}

Result<void> Stream::after_recorded(KernelId kernel, std::span<const BufferBinding> reads,
                                    Where where) {
  if (capturing() != nullptr) return {};
  const std::optional<std::string> recorded = core_->device->recorded_write(reads);
  if (!recorded) return {};
  return Error(ErrorKind::unordered,
               quote(kernel_name(kernel)) + " on stream " + std::to_string(id().number) +
                   text(where) + " is not recorded and reads " + *recorded +
                   ": they are not what its graph will make of them. (Wait on an event of that "
                   "window first, which records this too; or seal it and replay.)");
}

Result<void> Stream::in_order(KernelId kernel, const std::shared_ptr<const TouchedBytes>& bytes,
                              Where where) {
  REFRAIN_TRY(after_recorded(kernel, bytes->reads, where));
  Order& order = core_->device->order();
  if (order.trivial() || !core_->device->checks() || capturing() != nullptr) return {};
  const Result<std::uint64_t> given = order.issue(Access{id(), 0, kernel, where}, bytes);  // E11
  if (!given.ok()) return given.error();
  core_->given = *given;
  return {};
}

Result<void> Stream::in_order(KernelId kernel, std::span<const BufferBinding> reads,
                              std::span<const BufferBinding> writes, Where where) {
  if (core_->device->order().trivial()) return after_recorded(kernel, reads, where);
  return in_order(kernel,
                  std::make_shared<const TouchedBytes>(TouchedBytes{
                      {reads.begin(), reads.end()}, {writes.begin(), writes.end()}, {}}),
                  where);
}

template <class Issue>
Result<void> Stream::hand_over(OpenScope& scope, WorkTerms terms, Issue&& issue) {
  if (!core_->backend->asynchronous()) {
    try {
      Result<void> ran = issue(Ticket{0});
      if (!ran.ok()) return terms.remarks.on(std::move(ran).error());
      return ran;
    } catch (NodeThrew& threw) {
      threw.tell([&](const Error& error) { return terms.remarks.on(error); });
      throw;
    }
  }
  Ledger::Work work;
  work.remarks = terms.remarks;
  work.held_back = terms.held_back;
  work.kernel = scope.kernel;
  work.where = scope.where;
  work.given = core_->given;
  work.bytes = std::move(terms.bytes);
  if (work.bytes == nullptr) {
    const std::span<const BufferBinding> unrun = scope.unrun_writes();
    work.bytes = std::make_shared<const TouchedBytes>(
        TouchedBytes{{scope.reads.begin(), scope.reads.end()},
                     {scope.writes.begin(), scope.writes.end()},
                     {unrun.begin(), unrun.end()}});
    for (const std::span<const BufferBinding> some : {scope.reads, scope.writes}) {
      for (const BufferBinding& binding : some) {
        const Result<const Allocation*> allocation = core_->device->resolve(binding);
        if (!allocation.ok()) return allocation.error();  // M6
        work.pins.push_back((*allocation)->memory());
      }
    }
  }
  work.pin = std::move(terms.pins);
  Result<Ticket> ticket = core_->ledger->enter(core_->show, scope, std::move(work));
  if (!ticket.ok()) {
    if (WarmUpPass* const pass = WarmUpPass::hearing(*core_->device)) {
      pass->failed(id(), ticket.error());
    }
    return std::move(ticket).error();
  }
  try {
    Result<void> issued = issue(*ticket);
    if (issued.ok()) {
      if (*ticket % kLookEvery == 0) core_->ledger->look();
      return issued;
    }
    core_->ledger->withdraw(*ticket);
    return terms.remarks.on(std::move(issued).error());
  } catch (...) {
    core_->ledger->withdraw(*ticket);  // nobody would ever say that it ended
    throw;
  }
}

Result<void> Stream::issue(const BoundNode& node, OpenScope& scope, WorkTerms terms) {
  return hand_over(scope, std::move(terms), [&](Ticket ticket) {
    return core_->device->backend().issue(*core_->backend, node, ticket);
  });
}

std::optional<Error> Stream::refused(KernelId kernel, CheckedArguments& checked, Where where) {
  if (!checked.refused) {
    Result<void> ordered =
        in_order(kernel, span_of(checked.reads), checked.writes.bindings(), where);
    if (ordered.ok()) return std::nullopt;
    checked.refused = std::move(ordered).error();
  }
  refuse_launch(kernel, span_of(checked.reads), std::move(checked.writes), *checked.refused, where);
  return std::move(checked.refused);
}

ScopedOutcome<void> Stream::launch_packed(const LoadedKernel& kernel, const Grid& grid,
                                          std::span<const std::byte> block,
                                          std::span<const StagedArgument> arguments) {
  return issuing([&] { return launch_now(kernel, grid, block, arguments); },
                 [&](const Error& thrown) {
                   fail_arguments(kernel.signature->name, grid, thrown, arguments);
                 });
}

ScopedOutcome<void> Stream::launch_now(const LoadedKernel& kernel, const Grid& grid,
                                       std::span<const std::byte> block,
                                       std::span<const StagedArgument> arguments) {
  if (grid.empty()) return ScopedOutcome<void>::executed();  // O11: no work, no scope
  if (Result<void> allowed = may("launch"); !allowed.ok()) return std::move(allowed).error();

  const IssuingCall call(*core_);
  CheckedArguments checked(write_set());
  if (kernel.device != core_->device->number()) {
    checked.refused = Error(ErrorKind::other_device, "Kernel " + quote(kernel.signature->name) +
                                                         " was loaded by another device.");
  }
  checked.check(*core_->device, *kernel.signature, block, arguments, "launching", grid.where);
  if (std::optional<Error> why = refused(kernel.id, checked, grid.where)) return *std::move(why);
  const std::span<const BufferBinding> reads = span_of(checked.reads);
  WriteSet& writes = checked.writes;

  about_to_run(kernel.id, kernel.signature->version, reads, writes.bindings(), grid.where);
  auto scope =
      ExecuteScope<Stream>::launching(*this, kernel.id, reads, std::move(writes), grid.where);
  OpenScope& shown = scope.shown();
  return std::move(scope).execute([&](Stream&) -> Result<void> {
    if (Window* const window = capturing()) {
      for (const Allocation* const allocation : checked.allocations) pin(*window, *allocation);
      window->stage_kernel(kernel.signature, grid, block, arguments, core_->member);
      return {};
    }
    boost::container::small_vector<std::byte, 256> bound(block.begin(), block.end());
    boost::container::small_vector<std::uint64_t, 8> view_bytes;
    for (std::size_t at = 0; at < arguments.size(); ++at) {
      const StagedArgument& argument = arguments[at];
      std::memcpy(bound.data() + argument.offset, &checked.addresses[at], sizeof(std::uint64_t));
      view_bytes.push_back(argument.binding.range.size());
    }
    const BoundKernel node{kernel.code.get(), grid,
                           std::span<const std::byte>(bound.data(), bound.size()),
                           std::span<const std::uint64_t>(view_bytes.data(), view_bytes.size())};
    return issue(node, shown, WorkTerms{kernel.code});
  });
}

void Stream::fail_work(KernelId kernel, WriteSet writes, const Error& error, Where where) {
  if (Window* const window = capturing()) window->overlay().make_room({}, writes.bindings());
  failed_writing(*this, kernel, std::move(writes), error, where);
}

void Stream::refuse_launch(KernelId kernel, std::span<const BufferBinding> reads, WriteSet writes,
                           const Error& error, Where where) {
  if (Window* const window = capturing()) window->overlay().make_room(reads, {});
  // State that it would have read first stays what it was, should its window refuse (C11), or its
  // warm-up end (C20).
  static_cast<void>(write_streams().read_failure(reads));
  fail_work(kernel, std::move(writes), error, where);
}

void Stream::fail_launch(std::string_view name, const Grid& grid, const Error& error,
                         std::span<const StagedArgument> arguments) {
  if (grid.empty() || !may("launch").ok()) return;  // O11, E6
  issuing([&] { fail_arguments(name, grid, error, arguments); },
          [&](const Error& thrown) { fail_arguments(name, grid, thrown, arguments); });
}

void Stream::fail_arguments(std::string_view name, const Grid& grid, const Error& error,
                            std::span<const StagedArgument> arguments) {
  Bindings reads;
  WriteSet writes = write_set();
  for (const StagedArgument& argument : arguments) {
    const Result<const Allocation*> allocation = core_->device->resolve(argument.binding);
    if (!allocation.ok()) continue;  // M6
    if (does_read(argument.direction)) reads.push_back(argument.binding);
    if (does_write(argument.direction) && writable(**allocation).ok()) {
      writes.add(argument.binding);
    }
  }
  refuse_launch(intern_kernel_name(name), span_of(reads), std::move(writes), error, grid.where);
}

ScopedOutcome<void> Stream::launch_extent(const LoadedKernel& kernel, const BufferBinding& extent,
                                          std::span<const std::byte> block,
                                          std::span<const StagedArgument> arguments, Where where) {
  return issuing([&] { return launch_extent_now(kernel, extent, block, arguments, where); },
                 [&](const Error& thrown) {
                   fail_arguments(kernel.signature->name, grid(1, where), thrown, arguments);
                 });
}

ScopedOutcome<void> Stream::launch_extent_now(const LoadedKernel& kernel,
                                              const BufferBinding& extent,
                                              std::span<const std::byte> block,
                                              std::span<const StagedArgument> arguments,
                                              Where where) {
  if (Result<void> allowed = may("launch"); !allowed.ok()) return std::move(allowed).error();
  const MemoryInUse in_use(*core_->device);
  WriteSet writes = write_set();
  for (const StagedArgument& argument : arguments) {
    const Result<const Allocation*> allocation = core_->device->resolve(argument.binding);
    if (does_write(argument.direction) && allocation.ok() && writable(**allocation).ok()) {
      writes.add(argument.binding);
    }
  }
  // O11: the device would read it at a replay, and the recording cannot know what it will find.
  // The launch does not run, so a window that wanted it lacks it.
  if (Result<void> outside = outside_window("read a grid from a buffer"); !outside.ok()) {
    fail_work(kernel.id, std::move(writes), outside.error(), where);
    return std::move(outside).error();
  }
  std::array<std::uint32_t, 6> read{};
  const Result<const Allocation*> allocation = core_->device->resolve(extent);
  Result<void> sound = allocation.ok() ? Result<void>() : allocation.error();
  if (sound.ok() && extent.range.size() != sizeof(read)) {
    sound = Error(ErrorKind::invalid_argument, "A grid is six u32, 24 bytes; a view of " +
                                                   std::to_string(extent.range.size()) +
                                                   " bytes was given.");
  }
  const std::array reads{extent};
  if (sound.ok()) sound = after_recorded(kernel.id, reads, where);
  if (!sound.ok()) {
    fail_work(kernel.id, std::move(writes), sound.error(), where);
    return std::move(sound).error();
  }
  const std::uint64_t address = (*allocation)->address() + extent.range.begin;
  // M4: what it waits for may own it, and last.
  const std::shared_ptr<const Allocation> kept = (*allocation)->shared();
  core_->device->wait_for(reads, false);
  if (write_streams().read_failure(reads)) {
    // The outputs carry what the extent carries, as those of any launch that lacks an input.
    return ExecuteScope<Stream>::launching(*this, kernel.id, reads, std::move(writes), where)
        .execute([](Stream&) -> Result<void> {
          // Its scope looked again, and found it mended; that was not in order with this launch.
          return Error(ErrorKind::unordered, "The grid was written while this launch read it.");
        });
  }
  const Result<void> got = core_->device->backend().read(
      *core_->backend, std::as_writable_bytes(std::span(read)), address);
  if (!got.ok()) {
    fail_work(kernel.id, std::move(writes), got.error(), where);
    return got.error();
  }
  return launch_packed(kernel,
                       Grid{{read[0], read[1], read[2]}, {read[3], read[4], read[5]}, 0, where, {}},
                       block, arguments);
}

ScopedOutcome<void> Stream::copy_bytes(const BufferBinding& destination,
                                       const BufferBinding& source, Where where) {
  return issuing([&] { return copy_now(destination, source, where); },
                 [&](const Error& thrown) { fail_one(copy_name(), destination, thrown, where); });
}

ScopedOutcome<void> Stream::copy_now(const BufferBinding& destination, const BufferBinding& source,
                                     Where where) {
  if (Result<void> allowed = may("copy"); !allowed.ok()) return std::move(allowed).error();
  const IssuingCall call(*core_);
  const Result<const Allocation*> from = core_->device->resolve(source);
  const Result<const Allocation*> to = core_->device->resolve(destination);
  Result<void> sound = to.ok() ? writable(**to) : Result<void>(to.error());
  WriteSet writes = write_set();
  if (sound.ok()) writes.add(destination);
  if (sound.ok() && !from.ok()) sound = from.error();
  if (sound.ok() && source.range.size() != destination.range.size()) {
    sound =
        Error(ErrorKind::invalid_argument,
              "A copy from " + quote((*from)->region().name) + " of " +
                  std::to_string(source.range.size()) + " bytes to " + quote((*to)->region().name) +
                  " of " + std::to_string(destination.range.size()) + " bytes has two sizes.");
  }
  if (sound.ok() && source.buffer == destination.buffer &&
      source.range.overlaps(destination.range)) {
    sound = Error(ErrorKind::invalid_argument, "A copy within " + quote((*from)->region().name) +
                                                   " from " + text(source.range) + " to " +
                                                   text(destination.range) + " overlaps itself.");
  }
  const std::array reads{source};
  if (sound.ok()) sound = in_order(copy_name(), reads, writes.bindings(), where);
  if (!sound.ok()) {
    const Error refused = sound.error().with_context("While copying" + text(where) + ".");
    fail_work(copy_name(), std::move(writes), refused, where);
    return refused;
  }
  if (source.range.empty()) return ScopedOutcome<void>::executed();
  const BoundCopy node{(*from)->address() + source.range.begin,
                       (*to)->address() + destination.range.begin, source.range.size()};

  about_to_run(copy_name(), 0, reads, writes.bindings(), where);
  // O2: a copy reads device memory, and over a broken source it would launder the failure.
  auto scope = ExecuteScope<Stream>::launching(*this, copy_name(), reads, std::move(writes), where);
  OpenScope& shown = scope.shown();
  return std::move(scope).execute([&](Stream&) -> Result<void> {
    if (Window* const window = capturing()) {
      pin(*window, **from);
      pin(*window, **to);
      window->stage_copy(source, destination, where, core_->member);
      return {};
    }
    return hand_over(shown, WorkTerms{}, [&](Ticket ticket) {
      return core_->device->backend().issue(*core_->backend, node, ticket);
    });
  });
}

ScopedOutcome<void> Stream::fill_bytes(const BufferBinding& destination, std::uint32_t pattern,
                                       std::uint32_t width, Where where) {
  return issuing([&] { return fill_now(destination, pattern, width, where); },
                 [&](const Error& thrown) { fail_one(fill_name(), destination, thrown, where); });
}

ScopedOutcome<void> Stream::fill_now(const BufferBinding& destination, std::uint32_t pattern,
                                     std::uint32_t width, Where where) {
  if (Result<void> allowed = may("fill"); !allowed.ok()) return std::move(allowed).error();
  const IssuingCall call(*core_);
  const Result<const Allocation*> to = core_->device->resolve(destination);
  Result<void> sound = to.ok() ? writable(**to) : Result<void>(to.error());
  WriteSet writes = write_set();
  if (sound.ok()) writes.add(destination);
  const bool known = width == 4 || ((width == 1 || width == 2) && pattern >> (8 * width) == 0);
  if (sound.ok() && (!known || destination.range.size() % width != 0)) {
    sound = Error(ErrorKind::invalid_argument,
                  "A fill of " + std::to_string(destination.range.size()) +
                      " bytes cannot repeat the pattern " + std::to_string(pattern) + " of " +
                      std::to_string(width) + " bytes.");
  }
  if (sound.ok()) sound = in_order(fill_name(), {}, writes.bindings(), where);
  if (!sound.ok()) {
    const Error refused = sound.error().with_context("While filling" + text(where) + ".");
    fail_work(fill_name(), std::move(writes), refused, where);
    return refused;
  }
  if (destination.range.empty()) return ScopedOutcome<void>::executed();
  const BoundFill node{(*to)->address() + destination.range.begin, destination.range.size(),
                       pattern, width};

  about_to_run(fill_name(), 0, {}, writes.bindings(), where);
  auto scope = ExecuteScope<Stream>::over(*this, fill_name(), std::move(writes), where);
  OpenScope& shown = scope.shown();
  return std::move(scope).execute([&](Stream&) -> Result<void> {
    if (Window* const window = capturing()) {
      pin(*window, **to);
      window->stage_fill(destination, pattern, width, where, core_->member);
      return {};
    }
    return hand_over(shown, WorkTerms{}, [&](Ticket ticket) {
      return core_->device->backend().issue(*core_->backend, node, ticket);
    });
  });
}

ScopedOutcome<void> Stream::write_bytes(const BufferBinding& destination,
                                        std::span<const std::byte> bytes, Where where) {
  std::shared_ptr<const Allocation> frozen;
  return write_one(destination, bytes, frozen, where);
}

ScopedOutcome<void> Stream::write_bytes_each(std::span<const BufferBinding> destinations,
                                             std::span<const std::byte> bytes, Where where) {
  std::shared_ptr<const Allocation> frozen;
  ScopedOutcome<void> first = ScopedOutcome<void>::executed();
  std::exception_ptr thrown;
  for (const BufferBinding& destination : destinations) {
    try {
      ScopedOutcome<void> written = write_one(destination, bytes, frozen, where);
      if (first.executed_cleanly()) first = std::move(written);
    } catch (...) {
      // E4: the caller's, once the others have been written.
      if (thrown == nullptr) thrown = std::current_exception();
    }
  }
  if (thrown != nullptr) std::rethrow_exception(thrown);
  return first;
}

ScopedOutcome<void> Stream::write_one(const BufferBinding& destination,
                                      std::span<const std::byte> bytes,
                                      std::shared_ptr<const Allocation>& frozen, Where where) {
  return issuing([&] { return write_now(destination, bytes, frozen, where); },
                 [&](const Error& thrown) { fail_one(write_name(), destination, thrown, where); });
}

ScopedOutcome<void> Stream::write_now(const BufferBinding& destination,
                                      std::span<const std::byte> bytes,
                                      std::shared_ptr<const Allocation>& frozen, Where where) {
  if (Result<void> allowed = may("write"); !allowed.ok()) return std::move(allowed).error();
  const MemoryInUse in_use(*core_->device);
  const Result<const Allocation*> to = core_->device->resolve(destination);
  Result<void> sound = to.ok() ? writable(**to) : Result<void>(to.error());
  WriteSet writes = write_set();
  if (sound.ok()) writes.add(destination);
  if (sound.ok() && bytes.size() != destination.range.size()) {
    sound = Error(ErrorKind::invalid_argument,
                  std::to_string(bytes.size()) + " bytes were given for " +
                      quote((*to)->region().name) + " " + text(destination.range) + ", which has " +
                      std::to_string(destination.range.size()) + ".");
  }
  if (!sound.ok()) {
    const Error refused = sound.error().with_context("While writing" + text(where) + ".");
    fail_work(write_name(), std::move(writes), refused, where);
    return refused;
  }
  if (bytes.empty()) return ScopedOutcome<void>::executed();

  // M4: what it waits for may own it, and last.
  const std::shared_ptr<const Allocation> kept = (*to)->shared();
  const std::uint64_t address = (*to)->address() + destination.range.begin;
  if (capturing() == nullptr) {
    const std::array written{destination};
    core_->device->wait_for(written, true);  // E11
  }
  about_to_run(write_name(), 0, {}, writes.bindings(), where);
  auto scope = ExecuteScope<Stream>::over(*this, write_name(), std::move(writes), where);
  return std::move(scope).execute([&](Stream&) -> Result<void> {
    Window* const window = capturing();
    if (window == nullptr) {
      return core_->device->backend().write(*core_->backend, address, bytes);
    }
    // C14: a private copy becomes a constant of the graph, and the write a copy from it.
    if (frozen == nullptr) {
      Region region;
      region.role = Role::constant;
      region.bytes = bytes.size();
      region.start = SharedBytes::copy_of(bytes);
      region.frozen = true;
      auto made = core_->device->allocate(core_->device, std::move(region), false);
      if (!made.ok()) return std::move(made).error();
      frozen = *std::move(made);
    }
    pin(*window, *frozen);
    pin(*window, **to);
    window->stage_copy(frozen->whole(), destination, where, core_->member);
    return {};
  });
}

void Stream::fail_bytes(const BufferBinding& destination, const Error& error, Where where) {
  if (!may("write").ok()) return;  // E6
  issuing(
      [&] {
        const std::array written{destination};
        const Result<const Allocation*> to = core_->device->resolve(destination);
        const bool claims = to.ok() && writable(**to).ok();
        if (claims && capturing() == nullptr) core_->device->wait_for(written, true);
        fail_one(write_name(), destination, error, where);
      },
      [&](const Error& thrown) { fail_one(write_name(), destination, thrown, where); });
}

void Stream::fail_one(KernelId kernel, const BufferBinding& destination, const Error& error,
                      Where where) {
  WriteSet writes = write_set();
  const Result<const Allocation*> to = core_->device->resolve(destination);
  // A constant stays what it is: nobody could ever write it to mend it.
  if (to.ok() && writable(**to).ok()) writes.add(destination);
  fail_work(kernel, std::move(writes), error, where);
}

void Stream::reuse(const BufferBinding& bytes) {
  if (Window* const window = capturing()) window->reuse(bytes);
}

Result<void> Stream::readable(const BufferBinding& source) const {
  REFRAIN_TRY(outside_window("read"));
  const Result<const Allocation*> from = core_->device->resolve(source);
  if (!from.ok()) return from.error();
  return {};
}

Result<void> Stream::read_bytes(const BufferBinding& source, std::span<std::byte> bytes) {
  REFRAIN_TRY(outside_window("read"));
  const MemoryInUse in_use(*core_->device);
  const Result<const Allocation*> from = core_->device->resolve(source);
  if (!from.ok()) return from.error();
  if (bytes.size() != source.range.size()) {
    return Error(ErrorKind::invalid_argument, "A read of " + quote((*from)->region().name) + " " +
                                                  text(source.range) + " was given room for " +
                                                  std::to_string(bytes.size()) + " bytes.");
  }
  const std::array reads{source};
  const std::uint64_t address = (*from)->address() + source.range.begin;
  // M4: what it waits for may own it, and last.
  const std::shared_ptr<const Allocation> kept = (*from)->shared();
  core_->device->wait_for(reads, false);
  // O6: also when no failure lives, since work that another thread runs right now shows no more
  // than its scope.
  if (std::optional<Error> carried = core_->device->table().report(reads)) {
    return *std::move(carried);
  }
  if (bytes.empty()) return {};
  return core_->device->backend().read(*core_->backend, bytes, address);
}

FoundFailure Stream::inputs_failure(std::span<const BufferBinding> reads,
                                    std::span<const BufferBinding> states, FailureId beneath,
                                    FailureTable::Version seen) noexcept {
  FailureTable& table = core_->device->table();
  if (!table.read_failure(core_->show, reads, beneath, seen)) return {};
  return table.read_for_replay(core_->show, reads, states, beneath);
}

Result<void> Stream::run(Executable& executable, OpenScope& scope, WorkTerms terms) {
  REFRAIN_TRY(outside_window("run an executable"));
  const ForbiddenPlace replay{ForbiddenPlace::Kind::replay, scope.kernel, id(), scope.where};
  return hand_over(scope, std::move(terms), [&](Ticket ticket) {
    const CallsForbidden forbidden(*core_->device, replay);  // E6: an inline stream runs it here
    Result<void> ran = core_->device->backend().run(*core_->backend, executable, ticket);
    if (ran.ok() && forbidden.refused()) return Result<void>(*forbidden.refused());
    return ran;
  });
}

Result<void> Stream::sync() {
  REFRAIN_TRY(outside_window("sync"));
  Result<void> synced = core_->device->backend().sync(*core_->backend);
  if (!synced.ok() || !core_->backend->asynchronous()) return synced;
  core_->ledger->wait_for_all();
  core_->device->order().ended(core_->device->order().point(id()));  // E11
  if (std::optional<Error> failed = core_->ledger->take_failure()) {
    core_->device->table().told(failed->failure());
    return *std::move(failed);
  }
  return {};
}

Result<Event> Stream::record_event() {
  REFRAIN_TRY(may("record an event"));
  if (capturing() != nullptr) {
    return issuing(
        [&]() -> Result<Event> {
          return Event(core_->window, core_->window->members().point(core_->member),
                       core_->device->number());
        },
        [&](const Error& thrown) { lacks(thrown); });
  }
  Result<std::shared_ptr<BackendEvent>> event = core_->device->backend().record(*core_->backend);
  if (!event.ok()) return std::move(event).error();
  return Event(core_->device, *std::move(event), core_->device->order().point(id()));
}

Result<void> Stream::wait(const Event& event, Where where) {
  REFRAIN_TRY(may("wait on an event"));
  if (event.event_ == nullptr) return wait_in_window(event, where);
  REFRAIN_TRY(outside_window(
      "wait on an event from outside (a stream joins by waiting on an event of a member first)"));
  if (event.device_ != core_->device->number()) {
    return Error(ErrorKind::other_device, "An event of another device was waited for.");
  }
  REFRAIN_TRY(core_->device->backend().wait(*core_->backend, event.event_));
  core_->device->order().wait(id(), event.before_);  // E11
  return {};
}

// C21.
Result<void> Stream::wait_in_window(const Event& event, Where where) {
  const auto refused = [this](ErrorKind kind, const std::string& why) {
    return Error(kind, "Stream " + std::to_string(id().number) +
                           " cannot wait on an event that was recorded in a window, because " +
                           why + ".");
  };
  if (event.device_ != core_->device->number()) {
    return refused(ErrorKind::other_device, "it is another device's");
  }
  const std::shared_ptr<Window> recorded_in = event.window_.lock();
  if (recorded_in == nullptr || recorded_in->over()) {
    return refused(ErrorKind::wrong_state, "that window has ended");
  }
  Window* const own = window();
  if (own == recorded_in.get()) {
    issuing([&] { own->wait(core_->member, event.point_); },
            [&](const Error& thrown) { lacks(thrown); });
    return {};
  }
  if (own != nullptr) {
    return refused(ErrorKind::refused_in_window,
                   "it is in another window itself" + text(own->opened()));
  }
  if (core_->show.inside()) {
    return refused(ErrorKind::wrong_state, "it is inside a piece of work");
  }
  core_->member = recorded_in->join(id(), event.point_, where);
  core_->window = recorded_in;
  return {};
}

Result<OpenWindow> Stream::open(Where where) {
  REFRAIN_TRY(may("open a window"));
  if (window() != nullptr) {  // C1
    const std::string which = core_->member == Members::kOrigin
                                  ? " has a window open already"
                                  : " is a member of the window of stream " +
                                        std::to_string(core_->window->stream().number);
    return Error(ErrorKind::wrong_state, "Stream " + std::to_string(id().number) + which +
                                             text(core_->window->opened()) + ".");
  }
  if (core_->show.inside()) {
    return Error(ErrorKind::wrong_state, "Stream " + std::to_string(id().number) +
                                             " cannot open a window inside a piece of work.");
  }
  auto opened = std::make_shared<Window>(core_->device->table(), id(), where, core_->device.get());
  core_->device->opened(*opened);
  core_->window = std::move(opened);
  core_->member = Members::kOrigin;
  return OpenWindow(core_, core_->window);
}

Result<OpenWindow> Stream::prepare(Where where) { return open(where); }

void Stream::about_to_run(KernelId kernel, std::uint32_t version,
                          std::span<const BufferBinding> reads,
                          std::span<const BufferBinding> writes, Where where) {
  WarmUpPass* const pass = WarmUpPass::hearing(*core_->device);
  Window* const own = core_->window == nullptr ? nullptr : window();
  if (own != nullptr) {
    own->runs({id(), kernel, version, where});  // recorded, or warmed up
    if (own->capturing()) own->overlay().make_room(reads, writes);
  } else if (pass != nullptr) {
    pass->window().runs({id(), kernel, version, where});
  }
}

void Stream::put_back(const BufferBinding& part, std::span<const std::byte> bytes, Where where) {
  issuing([&] { put_back_now(part, bytes, where); },
          [&](const Error& thrown) { fail_one(write_name(), part, thrown, where); });
}

void Stream::put_back_now(const BufferBinding& part, std::span<const std::byte> bytes,
                          Where where) {
  const MemoryInUse in_use(*core_->device);
  const Result<const Allocation*> memory = core_->device->resolve(part);
  if (!memory.ok()) return;  // freed by the pass
  const std::uint64_t address = (*memory)->address() + part.range.begin;
  // M4: what it waits for may own it, and last.
  const std::shared_ptr<const Allocation> kept = (*memory)->shared();
  core_->device->wait_for(std::span(&part, 1), true);
  WriteSet writes = write_set();
  writes.add(part);
  ExecuteScope<Stream>::over(*this, write_name(), std::move(writes), where)
      .execute([&](Stream&) -> Result<void> {
        return core_->device->backend().write(*core_->backend, address, bytes);
      });
}

Result<void> Stream::may_use_first(const std::string& what, Where where) {
  REFRAIN_TRY(may("do first-use work"));
  return core_->device->first_use(what, where);
}

Result<OpenWindow> Stream::warm_up(const std::function<Result<void>()>& body,
                                   std::uint32_t most_passes, Where where) {
  if (const WarmUpPass* const around = WarmUpPass::of_this_thread()) {
    const Window& of = around->window();
    return Error(ErrorKind::wrong_state,
                 "Stream " + std::to_string(id().number) +
                     " cannot be warmed up by the body of another warm-up, that of stream " +
                     std::to_string(of.stream().number) + text(of.opened()) + ".");
  }
  Result<OpenWindow> opened = open(where);
  if (!opened.ok()) return opened;
  Window& window = *core_->window;
  for (std::uint32_t number = 0; number < most_passes; ++number) {
    window.begin_pass();
    {
      WarmUpPass pass(*this, window, where);
      REFRAIN_TRY(body());
      if (std::optional<Error> failed = pass.end()) return *std::move(failed);
    }
    if (window.first_uses().empty()) return opened;
  }
  std::string all = "The warm-up did not settle in " + std::to_string(most_passes) +
                    " passes: each does work for the first time. The last did:";
  for (const std::string& each : window.first_uses()) all += " " + each + ".";
  return Error(ErrorKind::needs_warm_up, std::move(all));
}

Result<OpenWindow> Stream::record(Where where) {
  Result<OpenWindow> window = open(where);
  if (window.ok()) REFRAIN_TRY(window->begin());
  return window;
}

Result<void> OpenWindow::begin() {
  if (stream_->show.inside()) {
    // The scope around would exit into a window that it was not opened in.
    return Error(ErrorKind::wrong_state, "A window cannot begin to record inside a piece of work.");
  }
  return window_->begin();
}

OpenWindow::~OpenWindow() {
  if (!window_) return;
  if (window_->over()) return;
  if (window_->overlay().inside()) {
    window_->leave_later(Window::Leave::drop);
    return;
  }
  window_->drop();  // C11
}

void OpenWindow::abort() {
  if (window_->overlay().inside()) {
    window_->leave_later(Window::Leave::abort);
    return;
  }
  const std::shared_ptr<Window> window = window_;  // what it lets go may own this handle
  window->abort();
}

Result<Recording> OpenWindow::seal(const SealOptions& options, Where where) {
  const std::shared_ptr<StreamCore> stream = stream_;  // what is let go may own this handle
  const std::shared_ptr<Window> window = window_;
  std::shared_ptr<Recording::Body> body;
  const auto keep = [&](SealedWindow& sealed) {
    std::vector<std::shared_ptr<const Allocation>> memory;
    for (const auto& pin : sealed.pins) {
      memory.push_back(std::static_pointer_cast<const Allocation>(pin));
    }
    body = std::make_shared<Recording::Body>(std::move(sealed.graph), std::move(memory),
                                             stream->device);
    std::vector<BufferBinding> writes;
    for (const RegionBytes& written : body->graph.writes()) {
      writes.push_back({body->memory[written.region]->id(), written.range});
    }
    const Error mark(ErrorKind::not_replayed, "Graph " + body->graph.title() +
                                                  " was recorded and has not been replayed, so "
                                                  "what it writes is not there yet. (Replay it, or "
                                                  "write or reset these bytes.)");
    body->mark = stream->device->table().mark(writes, mark, stream->show.stream(), where);  // C18
  };
  const Result<SealedWindow> sealed = window->seal(options, where, std::cref(keep));
  if (!sealed.ok()) return sealed.error();
  return Recording(std::move(body));
}

}  // namespace refrain
