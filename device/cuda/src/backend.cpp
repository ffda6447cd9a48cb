// CUDA as a backend: see docs/decisions/0001 for what each call is.
#include <boost/container/small_vector.hpp>
#include <memory>
#include <utility>
#include <vector>

#include "context.hpp"
#include "cuda_executable.hpp"
#include "cuda_stream.hpp"
#include "driver_error.hpp"
#include "host_call.hpp"
#include "kernel_images.hpp"
#include "launch_attributes.hpp"
#include "make_backend.hpp"
#include "native_capture.hpp"
#include "refrain/base/text.hpp"
#include "transfers.hpp"

namespace refrain::cuda {
namespace {

/// What the driver gives at least; source: the CUDA C++ programming guide, "any address of a
/// variable ... returned by one of the memory allocation routines ... is always aligned to at least
/// 256 bytes".
constexpr std::uint32_t kAlignment = 256;

/// A function on a stream, by itself.
struct EagerCall {
  std::shared_ptr<Context> context;
  std::unique_ptr<StagedCall> call;
  Completion* completion = nullptr;
  Ticket ticket = 0;

  static void CUDA_CB run(void* eager) {
    auto& it = *static_cast<EagerCall*>(eager);
    const InDriverCallback here(*it.context);
    if (!here.may_run()) return;
    static_cast<void>(it.completion->run(it.ticket, [&] { return it.call->call(); }));
  }
};

/// The work that a body gives to a stream. It must not outlive the call that it belongs to, unless
/// that succeeds.
class GivenByBody {
 public:
  GivenByBody(const Context& context, CudaStream& stream) noexcept
      : context_(context), stream_(stream) {}
  GivenByBody(const GivenByBody&) = delete;
  GivenByBody& operator=(const GivenByBody&) = delete;
  ~GivenByBody() {
    if (kept_) return;
    end_capture(context_, stream_.handle());
    stream_.drain();
  }
  /// The call succeeds, unless the body has left its stream in a capture.
  Result<void> keep(const BoundNative& native) {
    if (end_capture(context_, stream_.handle())) {
      return Error(
          ErrorKind::wrong_state,
          "The body of " + quote(native.function->signature.name) +
              " has left its stream in a capture, so its work would not run but become "
              "part of a graph. That capture has been ended, and what it held is dropped.");
    }
    kept_ = true;
    return {};
  }

 private:
  const Context& context_;
  CudaStream& stream_;
  bool kept_ = false;
};

class CudaBackend final : public Backend {
 public:
  CudaBackend(std::shared_ptr<Context> context, std::unique_ptr<Transfers> transfers,
              std::shared_ptr<KernelImages> images, MemoryKind memory, bool checks)
      : context_(std::move(context)),
        transfers_(std::move(transfers)),
        images_(std::move(images)),
        captures_(std::make_shared<NativeCaptures>(context_, checks)),
        memory_(memory) {}

  [[nodiscard]] std::string_view name() const noexcept override { return "cuda"; }
  void on_lost(std::function<void()> listener) override { context_->on_lost(std::move(listener)); }

  Result<DeviceMemory> allocate(std::uint64_t bytes, std::uint32_t alignment) override {
    return context_->told(allocate_now(bytes, alignment));
  }
  Result<DeviceMemory> adopt(const SharedBytes& bytes) override {
    Result<DeviceMemory> memory = allocate(bytes.size(), kAlignment);
    if (!memory.ok()) return memory;
    const Result<void> uploaded = upload(memory->address, bytes.span());
    if (uploaded.ok()) return memory;
    release(*memory);
    return uploaded.error();
  }
  void release(const DeviceMemory& memory) noexcept override {
    if (memory_ == MemoryKind::pooled) {
      // Its work has ended, so any stream may take it back.
      context_->destroy([address = memory.address, stream = transfers_->stream()](
                            const DriverApi& api) { api.cuMemFreeAsync(address, stream); });
      return;
    }
    context_->destroy(
        [address = memory.address](const DriverApi& api) { api.cuMemFree_v2(address); });
  }
  Result<void> may_use(const DeviceMemory& memory) override {
    return context_->told(may_use_now(memory));
  }
  Result<void> upload(std::uint64_t address, std::span<const std::byte> bytes) override {
    return context_->told(
        transfers_->move("cuMemcpyHtoDAsync", [&](const DriverApi& api, CUstream stream) {
          return api.cuMemcpyHtoDAsync_v2(address, bytes.data(), bytes.size(), stream);
        }));
  }
  Result<void> zero(std::uint64_t address, std::uint64_t bytes) override {
    return context_->told(
        transfers_->move("cuMemsetD8Async", [&](const DriverApi& api, CUstream stream) {
          return api.cuMemsetD8Async(address, 0, bytes, stream);
        }));
  }

  Result<void> has(const KernelSignature& wanted) override { return images_->has(wanted); }
  Result<std::shared_ptr<const KernelCode>> kernel(const KernelSignature& wanted) override {
    REFRAIN_TRY(context_->alive());
    return context_->told(images_->find(wanted));
  }

  Result<std::unique_ptr<BackendStream>> stream(StreamKind, Completion& completion) override {
    REFRAIN_TRY(context_->alive());
    auto made = context_->told(CudaStream::create(context_, completion));
    if (!made.ok()) return std::move(made).error();
    return std::unique_ptr<BackendStream>(*std::move(made));
  }
  Result<void> sync(BackendStream&) override {
    // The ledger asks the stream.
    return context_->alive();
  }
  Result<std::shared_ptr<BackendEvent>> record(BackendStream& stream) override {
    REFRAIN_TRY(context_->alive());
    context_->sweep();
    REFRAIN_TRY(cuda(stream).ours());
    return context_->told(record_now(cuda(stream)));
  }
  Result<void> wait(BackendStream& stream, const std::shared_ptr<BackendEvent>& event) override {
    REFRAIN_TRY(context_->alive());
    REFRAIN_TRY(cuda(stream).ours());
    return context_->told(context_->check(context_->attempt([&] {
      return context_->api().cuStreamWaitEvent(cuda(stream).handle(), cuda(*event).handle(), 0);
    }),
                                          "cuStreamWaitEvent"));
  }
  Result<bool> reached(BackendEvent& event) override {
    REFRAIN_TRY(context_->alive());
    return context_->told(reached_now(cuda(event)));
  }
  Result<void> wait_on_host(BackendEvent& event) override {
    REFRAIN_TRY(context_->alive());
    return context_->told(wait_now(cuda(event)));
  }

  Result<void> issue(BackendStream& stream, const BoundNode& node, Ticket ticket) override {
    REFRAIN_TRY(context_->alive());
    REFRAIN_TRY(cuda(stream).ours());
    const Result<void> issued =
        std::visit([&](const auto& each) { return issue_one(cuda(stream), each, ticket); }, node);
    if (issued.ok()) cuda(stream).given(ticket);
    return context_->told(issued);
  }
  Result<void> prove(BackendStream&, const BoundNative& native) override {
    const auto captured = captures_->capture(native);
    return context_->told(captured.ok() ? Result<void>() : captured.error());
  }
  Result<void> write(BackendStream&, std::uint64_t destination,
                     std::span<const std::byte> bytes) override {
    return upload(destination, bytes);  // its users have ended, and those to come wait for the call
  }
  Result<void> read(BackendStream&, std::span<std::byte> bytes, std::uint64_t source) override {
    return context_->told(
        transfers_->move("cuMemcpyDtoHAsync", [&](const DriverApi& api, CUstream stream) {
          return api.cuMemcpyDtoHAsync_v2(bytes.data(), source, bytes.size(), stream);
        }));
  }

  Result<std::unique_ptr<Executable>> prepare(
      const SealedGraph& graph, std::span<const std::shared_ptr<const KernelCode>> code,
      std::span<const std::uint64_t> addresses) override {
    REFRAIN_TRY(context_->alive());
    auto made = context_->told(
        CudaExecutable::make(context_, captures_, transfers_->stream(), graph, code, addresses));
    if (!made.ok()) return std::move(made).error();
    return std::unique_ptr<Executable>(*std::move(made));
  }
  Result<void> rebind(Executable& executable, std::uint32_t region,
                      std::uint64_t address) override {
    REFRAIN_TRY(context_->alive());
    return context_->told(static_cast<CudaExecutable&>(executable).rebind(region, address));
  }
  Result<void> run(BackendStream& stream, Executable& executable, Ticket ticket) override {
    if (context_->lost()) return context_->alive();
    REFRAIN_TRY(cuda(stream).ours());
    return context_->told(static_cast<CudaExecutable&>(executable).run(cuda(stream), ticket));
  }

 private:
  static CudaStream& cuda(BackendStream& stream) noexcept {
    return static_cast<CudaStream&>(stream);
  }
  static CudaEvent& cuda(BackendEvent& event) noexcept { return static_cast<CudaEvent&>(event); }

  Result<DeviceMemory> allocate_now(std::uint64_t bytes, std::uint32_t alignment) {
    REFRAIN_TRY(context_->alive());
    if (alignment > kAlignment) {
      return Error(ErrorKind::invalid_argument, "The CUDA device aligns memory to " +
                                                    std::to_string(kAlignment) + " bytes; " +
                                                    std::to_string(alignment) + " were asked for.");
    }
    CUdeviceptr address = 0;
    if (memory_ == MemoryKind::pooled) {
      // Waited for, so that every other stream may use it.
      REFRAIN_TRY(transfers_->move("cuMemAllocAsync", [&](const DriverApi& api, CUstream stream) {
        return api.cuMemAllocAsync(&address, bytes, stream);
      }));
      return DeviceMemory{address, bytes};
    }
    context_->sweep();
    const Entered here(*context_);
    REFRAIN_TRY(here.check(*context_));
    REFRAIN_TRY(context_->check(context_->api().cuMemAlloc_v2(&address, bytes), "cuMemAlloc"));
    return DeviceMemory{address, bytes};
  }

  Result<void> may_use_now(const DeviceMemory& memory) {
    REFRAIN_TRY(context_->alive());
    const Entered here(*context_);
    REFRAIN_TRY(here.check(*context_));
    CUdeviceptr base = 0;
    std::size_t bytes = 0;
    const Result<void> found =
        context_->check(context_->api().cuMemGetAddressRange_v2(&base, &bytes, memory.address),
                        "cuMemGetAddressRange");
    if (!found.ok()) {
      return found.error().with_context("The address may be in no memory of this CUDA device.");
    }
    const std::uint64_t before = memory.address - base;
    if (before <= bytes && memory.bytes <= bytes - before) return {};
    return Error(ErrorKind::invalid_argument,
                 "The memory there ends after " + std::to_string(bytes - before) + " bytes.");
  }

  Result<std::shared_ptr<BackendEvent>> record_now(CudaStream& stream) {
    auto event = CudaEvent::create(context_);
    if (!event.ok()) return std::move(event).error();
    REFRAIN_TRY(context_->check(context_->attempt([&] {
      return context_->api().cuEventRecord((*event)->handle(), stream.handle());
    }),
                                "cuEventRecord"));
    (*event)->stands_behind(stream.progress(), stream.progress()->given());
    return std::shared_ptr<BackendEvent>(*std::move(event));
  }
  Result<bool> reached_now(CudaEvent& event) {
    const Entered here(*context_);
    REFRAIN_TRY(here.check(*context_));
    const CUresult code = context_->api().cuEventQuery(event.handle());
    if (code == CUDA_ERROR_NOT_READY) return false;
    REFRAIN_TRY(context_->check(code, "cuEventQuery"));
    event.passed();
    return true;
  }
  Result<void> wait_now(CudaEvent& event) {
    const Entered here(*context_);
    REFRAIN_TRY(here.check(*context_));
    REFRAIN_TRY(
        context_->check(context_->api().cuEventSynchronize(event.handle()), "cuEventSynchronize"));
    event.passed();
    return {};
  }

  Result<void> issue_one(CudaStream& stream, const BoundKernel& kernel, Ticket) {
    const auto& code = static_cast<const CudaKernel&>(*kernel.code);
    const Grid& grid = kernel.grid;
    REFRAIN_TRY(code.takes(grid.shared_bytes));
    CUlaunchConfig config{};
    config.gridDimX = grid.blocks.x;
    config.gridDimY = grid.blocks.y;
    config.gridDimZ = grid.blocks.z;
    config.blockDimX = grid.threads.x;
    config.blockDimY = grid.threads.y;
    config.blockDimZ = grid.threads.z;
    config.sharedMemBytes = grid.shared_bytes;
    config.hStream = stream.handle();
    DriverAttributes attributes = stream_attributes(grid.attributes, context_->can_start_early());
    config.attrs = attributes.data();
    config.numAttrs = static_cast<unsigned>(attributes.size());
    boost::container::small_vector<void*, 16> arguments;
    for (const KernelParameter& each : code.layout()) {
      // Which the driver only reads.
      arguments.push_back(const_cast<std::byte*>(kernel.block.data()) + each.offset);
    }
    return context_->check(context_->attempt([&] {
      return context_->api().cuLaunchKernelEx(&config, code.function(), arguments.data(), nullptr);
    }),
                           "cuLaunchKernelEx");
  }
  Result<void> issue_one(CudaStream& stream, const BoundCopy& copy, Ticket) {
    return context_->check(context_->attempt([&] {
      return context_->api().cuMemcpyDtoDAsync_v2(copy.destination, copy.source, copy.bytes,
                                                  stream.handle());
    }),
                           "cuMemcpyDtoDAsync");
  }
  Result<void> issue_one(CudaStream& stream, const BoundFill& fill, Ticket) {
    const DriverApi& api = context_->api();
    const std::uint64_t count = fill.bytes / fill.width;
    if (fill.width == 1) {
      const auto pattern = static_cast<unsigned char>(fill.pattern);
      return context_->check(context_->attempt([&] {
        return api.cuMemsetD8Async(fill.destination, pattern, count, stream.handle());
      }),
                             "cuMemsetD8Async");
    }
    if (fill.width == 2) {
      const auto pattern = static_cast<unsigned short>(fill.pattern);
      return context_->check(context_->attempt([&] {
        return api.cuMemsetD16Async(fill.destination, pattern, count, stream.handle());
      }),
                             "cuMemsetD16Async");
    }
    return context_->check(context_->attempt([&] {
      return api.cuMemsetD32Async(fill.destination, fill.pattern, count, stream.handle());
    }),
                           "cuMemsetD32Async");
  }
  Result<void> issue_one(CudaStream& stream, const BoundNative& native, Ticket) {
    const Current here(*context_);
    REFRAIN_TRY(context_->check(here.code(), "cuCtxPushCurrent"));
    GivenByBody given(*context_, stream);
    REFRAIN_TRY(native.call(stream.handle()));
    return given.keep(native);
  }
  Result<void> issue_one(CudaStream& stream, const BoundHost& host, Ticket ticket) {
    context_->sweep();
    auto staged = StagedCall::make(context_, host);
    if (!staged.ok()) return std::move(staged).error();
    const auto eager = std::make_shared<EagerCall>(
        EagerCall{context_, *std::move(staged), &stream.completion(), ticket});
    stream.keep(ticket, eager);
    Result<void> queued = queue(stream, *eager);
    // Some of it may be under way, and it must not outlive this call, which is refused.
    if (!queued.ok()) stream.drain();
    return queued;
  }
  Result<void> queue(CudaStream& stream, EagerCall& eager) {
    const Entered here(*context_);
    REFRAIN_TRY(here.check(*context_));
    const DriverApi& api = context_->api();
    for (const StagedView& view : eager.call->views()) {
      if (!view.read) continue;
      REFRAIN_TRY(context_->check(api.cuMemcpyDtoHAsync_v2(eager.call->pinned(view), view.address,
                                                           view.bytes, stream.handle()),
                                  "cuMemcpyDtoHAsync"));
    }
    REFRAIN_TRY(context_->check(api.cuLaunchHostFunc(stream.handle(), &EagerCall::run, &eager),
                                "cuLaunchHostFunc"));
    for (const StagedView& view : eager.call->views()) {
      if (!view.written) continue;
      REFRAIN_TRY(context_->check(api.cuMemcpyHtoDAsync_v2(view.address, eager.call->pinned(view),
                                                           view.bytes, stream.handle()),
                                  "cuMemcpyHtoDAsync"));
    }
    return {};
  }

  std::shared_ptr<Context> context_;
  std::unique_ptr<Transfers> transfers_;
  std::shared_ptr<KernelImages> images_;
  std::shared_ptr<NativeCaptures> captures_;
  MemoryKind memory_;
};

}  // namespace

Result<Parts> make_parts(std::shared_ptr<Context> context, MemoryKind memory, bool checks) {
  auto transfers = Transfers::create(context);
  if (!transfers.ok()) return std::move(transfers).error();
  auto images = std::make_shared<KernelImages>(context);
  auto backend =
      std::make_shared<CudaBackend>(context, *std::move(transfers), images, memory, checks);
  return Parts{std::move(context), std::move(images), std::move(backend)};
}

}  // namespace refrain::cuda
