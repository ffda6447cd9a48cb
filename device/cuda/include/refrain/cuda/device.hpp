// A GPU as a device. Its driver is opened when the program runs; everything else is as on the host
// device, but that work has not ended when its call is back, and that a kernel which fails takes
// the device with it: then everything of it fails with `device_poisoned` (P12).
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

#include "refrain/base/shared_bytes.hpp"
#include "refrain/cuda/driver.hpp"
#include "refrain/device/device.hpp"
#include "refrain/device/stream.hpp"

namespace refrain::cuda {

class Context;
class KernelImages;

/// Where a device's memory comes from.
enum class MemoryKind : std::uint8_t {
  plain,   ///< cuMemAlloc; freeing waits for the device.
  pooled,  ///< The device's stream-ordered pool, which keeps what is freed; nothing waits.
};

struct OpenOptions {
  DriverOptions driver{};
  int ordinal = 0;  ///< Which of the driver's devices; not used with a context.
  /// A CUcontext of the program's to work in, which outlives the device and all that is made of it.
  /// Null: the device's primary context, the one that the CUDA runtime uses.
  void* context = nullptr;
  MemoryKind memory = MemoryKind::plain;
};

/// Memory of the host's that the device copies from and to without a stop on the way. Zero at
/// first; freed with its last owner.
using PinnedBytes = std::shared_ptr<std::byte>;

/// Makes a device's context current in a thread, for a block.
class Entrance {
 public:
  explicit Entrance(std::shared_ptr<Context> context);
  Entrance(const Entrance&) = delete;
  Entrance& operator=(const Entrance&) = delete;
  ~Entrance();

 private:
  std::shared_ptr<Context> context_;
  bool entered_ = false;
};

/// A GPU with its primary context, which it retains. Safe to share; copies share.
class Device : public refrain::Device {
 public:
  /// Refuses as `Driver::open` does, and with `device_refused` for a device that there is not.
  static Result<Device> open(const OpenOptions& options = {}, DeviceOptions device = {});

  /// Takes the kernels of a cubin, fatbin or PTX text, as `version` of each. A kernel `vad.conv1d`
  /// is called `vad_conv1d` there. Loaded with the first kernel that is asked for. Refuses what is
  /// no image, an image without kernels that can be listed, and a kernel that was added before in
  /// that version; nothing is added then.
  Result<void> add_image(SharedBytes image, std::uint32_t version = 1) const;

  /// A kernel that the program has by itself, as one of the CUDA runtime's: `kernel` is a CUkernel,
  /// or the cudaKernel_t of `cudaGetKernel`, which stays loaded as long as anything of this device.
  /// It is called `name` here, and is otherwise as one of `Device::kernel`, which it does not
  /// become. A graph that launches it is prepared with it in this process; it can be saved if an
  /// image that was added before has a kernel of that name, version and parameters, which the file
  /// then carries.
  template <class K>
  Result<K> kernel_of(void* kernel, std::string_view name, std::uint32_t version = 1,
                      Where where = Where::here()) const {
    KernelSignature signature = core()->wanted([&] { return K::signature(name, version); });
    Result<LoadedKernel> loaded = load_own(kernel, std::move(signature), where);
    if (!loaded.ok()) return std::move(loaded).error();
    return K(*std::move(loaded));
  }

  /// Refuses (`device_poisoned`), with the cause, once the device is lost. Asks nobody: news of a
  /// loss comes with a call that waits, or with one that the driver answers so.
  [[nodiscard]] Result<void> health() const;

  /// `bytes` of pinned memory, for data that goes to the device and comes from it again and again.
  Result<PinnedBytes> pinned(std::uint64_t bytes) const;

  /// A stream over `stream`, a CUstream or cudaStream_t of the program's that outlives it and is
  /// never destroyed by it. The program may issue work of its own to it meanwhile, which refrain
  /// does not see. Refuses a default stream, one of another context and one that is being captured;
  /// work is refused (`wrong_state`) while somebody captures it.
  Result<Stream> adopt_stream(void* stream) const;

  /// Work is issued a little faster in a thread that has entered. Nothing depends on it.
  [[nodiscard]] Entrance enter() const { return Entrance(context_); }

 private:
  Device(std::shared_ptr<Backend> backend, DeviceOptions options, std::shared_ptr<Context> context,
         std::shared_ptr<KernelImages> images)
      : refrain::Device(std::move(backend), std::move(options)),
        context_(std::move(context)),
        images_(std::move(images)) {}

  Result<LoadedKernel> load_own(void* kernel, KernelSignature signature, Where where) const;

  std::shared_ptr<Context> context_;
  std::shared_ptr<KernelImages> images_;
};

}  // namespace refrain::cuda
