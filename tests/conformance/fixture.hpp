// What a case stands on: the first device's primary context, current in this thread, the kernels,
// and owners of the driver's handles that give them back whatever the case has done to them.
//
// Every case has the primary context anew: the fixture retains it and lets it go, so nothing of one
// case reaches the next. Streams are non-blocking unless a case asks otherwise.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "kernels.hpp"
#include "own_process.hpp"
#include "report.hpp"
#include "session.hpp"

namespace conformance {

/// The fixture of most cases: `TEST_CASE_FIXTURE(Primary, "STR-01: ... [H]")`.
class Primary {
 public:
  Primary();
  Primary(const Primary&) = delete;
  Primary& operator=(const Primary&) = delete;
  ~Primary();

  /// A kernel of kernels.hpp, from a module that is loaded when first asked for: not while
  /// capturing.
  CUfunction kernel(const char* name);
  /// The module itself.
  CUmodule module();
  /// For when the case has destroyed the context itself: nothing of it is given back.
  void abandon() noexcept { context = nullptr; }

  const refrain::cuda::DriverApi& api = conformance::api();
  CUdevice device = 0;
  CUcontext context = nullptr;

 private:
  CUmodule module_ = nullptr;
};

/// An owner of one handle; `take` leaves it to the case.
template <class Handle>
class Owned {
 public:
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;

  operator Handle() const noexcept { return handle_; }  // NOLINT: reads as the handle itself
  [[nodiscard]] Handle get() const noexcept { return handle_; }
  /// Where a call puts a handle that is then owned.
  Handle* out() noexcept { return &handle_; }
  /// The handle, not owned any more.
  Handle take() noexcept { return std::exchange(handle_, Handle{}); }

 protected:
  explicit Owned(Handle handle = {}) noexcept : handle_(handle) {}
  ~Owned() = default;

  Handle handle_;
};

/// A stream. Ends a capture that the case left behind before it is destroyed.
class Stream : public Owned<CUstream> {
 public:
  explicit Stream(unsigned flags = CU_STREAM_NON_BLOCKING);
  ~Stream();
};

class Event : public Owned<CUevent> {
 public:
  explicit Event(unsigned flags = CU_EVENT_DISABLE_TIMING);
  ~Event();
};

/// Empty unless `Graph::make`, or a call that fills `out()`.
class Graph : public Owned<CUgraph> {
 public:
  explicit Graph(CUgraph graph = nullptr) : Owned(graph) {}
  ~Graph();
  /// A new graph without nodes.
  static Graph make();
};

class Exec : public Owned<CUgraphExec> {
 public:
  explicit Exec(CUgraphExec exec = nullptr) : Owned(exec) {}
  ~Exec();
  /// `graph`, instantiated without flags.
  static Exec of(CUgraph graph);
};

/// Device memory from cuMemAlloc, of as many words, set to zero.
class Memory : public Owned<CUdeviceptr> {
 public:
  explicit Memory(std::size_t words = 1);
  ~Memory();
  /// All words, or the one; waits for all work of the context.
  [[nodiscard]] std::vector<std::uint32_t> words() const;
  [[nodiscard]] std::uint32_t word(std::size_t index = 0) const;
  /// Waits for `stream` and nothing else: for when the legacy stream must not be touched.
  [[nodiscard]] std::uint32_t word_after(CUstream stream) const;

 private:
  std::size_t count_;
};

/// Page-locked host memory that the device reaches too, of as many words, set to zero.
class Pinned : public Owned<std::uint32_t*> {
 public:
  explicit Pinned(std::size_t words = 1);
  ~Pinned();
  /// Where the device finds it.
  [[nodiscard]] CUdeviceptr address() const;
};

/// Keeps `stream` busy from now until `end`, or two seconds on a GPU. The simulation is held
/// instead, all streams of it.
class Busy {
 public:
  Busy(Primary& primary, CUstream stream);
  Busy(const Busy&) = delete;
  Busy& operator=(const Busy&) = delete;
  ~Busy() { end(); }
  /// Lets the stream go on; does not wait.
  void end();

 private:
  volatile std::uint32_t* flag_ = nullptr;
  bool ended_ = false;
};

/// Launches one thread of `kernel`; the values' types must be the parameters'.
template <class... Values>
CUresult launch(CUfunction kernel, CUstream stream, Values... values) {
  void* parameters[sizeof...(Values) + 1] = {&values..., nullptr};
  return api().cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream, parameters, nullptr);
}

/// Whether the device has a capability, by one of its attributes.
int device_attribute(CUdevice device, CUdevice_attribute attribute);

}  // namespace conformance
