// A host device whose backend refuses and throws as a test tells it, and work of a user's own.
#pragma once

#include <array>
#include <initializer_list>

#include "device/rig.hpp"
#include "support/faulty_backend.hpp"

namespace refrain::test {

inline constexpr std::array kKinds{StreamKind::inline_, StreamKind::worker};

/// A device that can refuse. The kernels are those of the rig.
struct Faulty {
  Faulty() { register_on(*kernels, control); }
  Faulty(const Faulty&) = delete;
  Faulty& operator=(const Faulty&) = delete;

  /// A buffer of 4 that holds 1.
  Buffer<float> floats(const char* name, Stream& stream) const {
    Buffer<float> made = device.buffer<float>(name, 4).value();
    REQUIRE(stream.fill(made, 1).executed_cleanly());
    REQUIRE(stream.sync().ok());
    return made;
  }

  std::shared_ptr<host::KernelRegistry> kernels = std::make_shared<host::KernelRegistry>();
  Control control;
  std::shared_ptr<FaultyBackend> backend =
      std::make_shared<FaultyBackend>(host::make_backend(kernels));
  Device device{backend, DeviceOptions{true, {}}};
};

/// Runs `body(stream)` as work of the user's own that writes `writes`.
template <class Body>
ScopedOutcome<void> own_work(Stream& stream, std::initializer_list<Bytes> writes, Body&& body,
                             const char* name = "own work", Where where = Where::here()) {
  return stream.scope(name, writes, std::forward<Body>(body), where);
}

}  // namespace refrain::test
