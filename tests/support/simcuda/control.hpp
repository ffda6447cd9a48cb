// What a test may tell the simulated driver beyond the driver's own functions, and ask of it. The
// library exports one symbol, `simControl`, that answers with a table of functions; a real driver
// exports none, and then `sim::control` answers null.
//
// The environment, read when the library is loaded:
//   SIM_DRIVER_VERSION   12020, 12040 (default) or 13000: the driver that it answers as
//   SIM_SEED             0 (default): work runs in the order it was issued; else a seed for a
//   random
//                        legal order
//   SIM_KERNELS          a shared object that exports `simKernels`: bodies for the kernels of a
//                        program that knows nothing of the simulation
//   SIM_BUG              the name of one deliberate error (docs/gpu/README.md lists them), for
//                        testing tests
#pragma once

#include <dlfcn.h>

#include <cstddef>
#include <cstdint>

namespace sim {

/// Answered by functions, and for situations, whose real behaviour is not established: outside
/// CUDA's own numbers (the last is 999), so that nobody comes to lean on a guess, and still a value
/// that its enumeration can hold.
inline constexpr int kUnspecified = 1013;

/// One run of a kernel, as its host body sees it. Valid until the body returns.
struct Launch {
  unsigned grid[3];
  unsigned block[3];
  unsigned shared_bytes;
  /// One pointer a parameter, each to a copy of its bytes as laid out in the image.
  const void* const* arguments;
  std::size_t argument_count;
  /// The bytes behind a device address, or null when they are not all allocated: then the launch
  /// has failed with 700, and the body must return.
  void* (*memory)(const Launch*, std::uint64_t address, std::size_t bytes);
  /// Ends the launch with a code, as a trap (719) or an assertion (710) would.
  void (*fail)(const Launch*, int code);
  /// What cudaGraphSetConditional does in a kernel.
  void (*set_condition)(const Launch*, std::uint64_t handle, unsigned value);

  /// The argument of that index as a T, which its parameter must be.
  template <class T>
  const T& argument(std::size_t index) const {
    return *static_cast<const T*>(arguments[index]);
  }
  /// A device array that an argument points to; null as `memory`.
  template <class T>
  T* array(std::size_t index, std::size_t count) const {
    return static_cast<T*>(memory(this, argument<std::uint64_t>(index), count * sizeof(T)));
  }
};

/// Runs on the simulation's own thread, once a launch for its whole grid.
using KernelBody = void (*)(const Launch*);

/// One of those that `const NamedBody* simKernels()` answers, the last with a null name.
struct NamedBody {
  const char* name;
  KernelBody body;
};

/// What else a planned fault does, beside making the call answer its code.
enum class Effect : int {
  refuse,      ///< Nothing happens; as a driver that refuses a call (a capture stays valid).
  invalidate,  ///< The captures that the call concerns become invalid too.
  runs_now,    ///< The call succeeds, but its work runs at once and is not captured.
  no_node,     ///< The call succeeds, and neither runs nor captures anything.
};

/// One call that was made.
struct JournalEntry {
  const char* function;  ///< The exported name, as "cuLaunchKernel".
  int result;
  std::uint64_t thread;   ///< A small number for each thread.
  std::uint64_t subject;  ///< The first handle or address among the arguments, or 0.
};

/// Each function is safe to call from any thread.
struct Control {
  /// Gives every kernel of that name a body. A launch of one without fails when it runs, with 719
  /// and a line on stderr. Null takes the body away.
  void (*kernel_body)(const char* name, KernelBody body);

  /// The nth call (from 1, counted from now) of an exported function answers `code`.
  void (*fault)(const char* function, unsigned nth, int code, Effect effect);
  /// The nth run (from 1, counted from now) of a kernel, eager or in a graph, fails with `code`.
  void (*kernel_fault)(const char* kernel, unsigned nth, int code);
  void (*clear_faults)();
  /// How many planned faults have not come yet.
  unsigned (*faults_left)();

  /// No more device memory than that, all allocations together; 0: the device's own.
  void (*limit_memory)(std::uint64_t bytes);
  /// Bytes of device memory that are allocated.
  std::uint64_t (*memory_in_use)();
  /// Handles of that kind that live: "context", "stream", "event", "module", "library", "graph",
  /// "exec", "pool", "user object".
  std::size_t (*live)(const char* kind);

  /// Nothing more runs until `release`.
  void (*hold)();
  /// While held: lets that many pieces of work run, and returns when they have, or when none is
  /// ready. Answers how many ran.
  unsigned (*step)(unsigned pieces);
  void (*release)();

  /// Calls of a function since the last `clear_journal`; null: all.
  std::size_t (*calls)(const char* function);
  /// Copies up to `capacity` entries, oldest first; answers how many there are.
  std::size_t (*journal)(JournalEntry* entries, std::size_t capacity);
  void (*clear_journal)();
};

/// The controls of the simulation that was opened from `library`; null if that is no simulation.
inline const Control* control(const char* library) {
  void* handle = dlopen(library, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
  if (handle == nullptr) return nullptr;
  const auto entry = reinterpret_cast<const Control* (*)()>(dlsym(handle, "simControl"));
  dlclose(handle);  // the driver that was opened keeps it
  return entry == nullptr ? nullptr : entry();
}

}  // namespace sim
