// The simulated driver itself: what every exported function goes through, and what they share.
//
// A function is written as
//
//   CUresult CUDAAPI cuStreamDestroy_v2(CUstream handle) {
//     return call({__func__, handle}, [&](Driver& driver) -> CUresult { ... });
//   }
//
// `call` notes it in the journal, lets the fault plan answer in its place, refuses what comes too
// early or after a sticky error, and holds the driver's mutex while the function runs. Pointers
// that a function gets as outputs are written only when it succeeds.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "cuda_api.hpp"
#include "simcuda/control.hpp"
#include "simcuda/memory.hpp"
#include "simcuda/objects.hpp"
#include "simcuda/queue.hpp"

namespace sim {

/// What a situation answers that nobody has established for a real driver.
inline constexpr auto kUnsettled = static_cast<CUresult>(kUnspecified);

/// What must be so before a function is let in.
enum class Needs : std::uint8_t {
  nothing,      ///< Works before cuInit and after a sticky error.
  initialised,  ///< After cuInit; not concerned with contexts.
  context,      ///< And a context is current in this thread, without a sticky error.
};

struct Call {
  template <class Subject = std::nullptr_t>
  Call(const char* name, Subject subject_of = nullptr, Needs needs_of = Needs::context)
      : function(name), needs(needs_of) {
    if constexpr (std::is_pointer_v<Subject>) {
      subject = reinterpret_cast<std::uint64_t>(subject_of);
    } else if constexpr (!std::is_null_pointer_v<Subject>) {
      subject = static_cast<std::uint64_t>(subject_of);
    }
  }
  Call(const char* name, Needs needs_of) : function(name), needs(needs_of) {}

  const char* function;
  std::uint64_t subject = 0;
  Needs needs = Needs::context;
};

/// A planned fault that has come: what the call in progress in this thread does besides.
enum class Override : std::uint8_t { none, runs_now, no_node };

/// What belongs to a thread.
struct ThreadState {
  std::uint64_t number = 0;
  std::vector<Context*> contexts;  ///< The stack; its back is current.
  CUstreamCaptureMode capture_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  Override override_ = Override::none;
  bool in_host_function = false;
  const char* function = "";  ///< The call in progress.
};
ThreadState& this_thread();

class Driver {
 public:
  static Driver& get();

  /// Held by `call`. `changed` is notified whenever work ends.
  std::mutex mutex;
  std::condition_variable changed;

  const int version;      ///< 12020, 12040 or 13000.
  const std::string bug;  ///< SIM_BUG.
  bool initialised = false;

  Memory memory;
  Queue queue;

  Context* primary = nullptr;  ///< While it is active.
  unsigned primary_references = 0;
  unsigned primary_flags = 0;
  /// A context has ended after a sticky error: what works afterwards is not established.
  bool lost = false;
  Pool* default_pool = nullptr;
  Pool* current_pool = nullptr;
  std::vector<std::shared_ptr<Capture>> captures;  ///< That have not ended.
  std::map<std::string, KernelBody> bodies;
  std::uint64_t last_id = 0;  ///< Contexts, streams, captures and handles of conditions.

  /// The context that is current in this thread; `call` has made sure that there is one.
  [[nodiscard]] static Context& current() { return *this_thread().contexts.back(); }

  [[nodiscard]] bool has_bug(const char* name) const { return bug == name; }

  // The fault plan and the journal; used through Control.
  struct Fault {
    std::string function;
    unsigned nth = 0;
    CUresult code = CUDA_SUCCESS;
    Effect effect = Effect::refuse;
  };
  std::vector<Fault> faults;
  std::vector<Fault> kernel_faults;  ///< `function` is a kernel's name.
  std::vector<JournalEntry> journal;

  /// Counts a run of a kernel; the code that a planned fault gives it.
  CUresult kernel_runs(const std::string& name);

 private:
  Driver();
};

/// Everything before and after a function's own part; see above.
class CallScope {
 public:
  CallScope(Driver& driver, const Call& call);
  ~CallScope();
  CallScope(const CallScope&) = delete;
  CallScope& operator=(const CallScope&) = delete;

  /// What answers in the function's place, CUDA_SUCCESS: nothing does.
  [[nodiscard]] CUresult refused();
  CUresult answers(CUresult code);

 private:
  Driver& driver_;
  const Call& call_;
  CUresult result_ = CUDA_SUCCESS;
  std::unique_lock<std::mutex> lock_;
};

template <class Body>
CUresult call(const Call& call, Body body) {
  Driver& driver = Driver::get();
  CallScope scope(driver, call);
  if (const CUresult refused = scope.refused(); refused != CUDA_SUCCESS) {
    return scope.answers(refused);
  }
  return scope.answers(body(driver));
}

/// The stream behind a handle of a caller: the legacy stream for 0 and CU_STREAM_LEGACY. The
/// per-thread default stream is not simulated and ends the process.
Stream& stream_of(Driver& driver, CUstream handle);

/// Waits, letting go of the mutex, until `op` has ended; null: at once. Then answers the sticky
/// error of `context`, if there is one.
CUresult wait_for(Driver& driver, Context& context, std::shared_ptr<Op> op);
/// The same for all work of a context.
CUresult wait_for_all(Driver& driver, Context& context);

}  // namespace sim
