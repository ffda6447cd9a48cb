#include "simcuda/driver.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>

#include "simcuda/submit.hpp"

namespace sim {
namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

int version_to_be() {
  const std::string text = environment("SIM_DRIVER_VERSION");
  if (text.empty()) return 12040;
  if (text == "12020" || text == "12040" || text == "13000") return std::atoi(text.c_str());
  give_up("SIM_DRIVER_VERSION", "is " + text + ", and may be 12020, 12040 or 13000");
}

/// The deliberate errors that there are (docs/gpu/README.md): a test that asks for another would
/// pass for no reason.
std::string bug_to_be() {
  static constexpr std::array kKnown{
      "argument-error-invalidates", "end-ignores-unjoined",   "error-not-sticky",
      "event-query-never-recorded", "exec-overlaps-itself",   "invalid-capture-sticks",
      "isolation-ignored",          "legacy-order",           "pageable-copy-late",
      "update-ignores-topology",    "wait-sees-later-record", "wrong-thread-ends"};
  std::string text = environment("SIM_BUG");
  const bool known = text.empty() || std::find(kKnown.begin(), kKnown.end(), text) != kKnown.end();
  if (!known) give_up("SIM_BUG", "is " + text + ", and there is no such error");
  return text;
}

std::uint64_t seed_to_be() {
  const std::string text = environment("SIM_SEED");
  if (text.find_first_not_of("0123456789") != std::string::npos) {
    give_up("SIM_SEED", "is " + text + ", and must be a number");
  }
  return std::strtoull(text.c_str(), nullptr, 10);
}

/// The captures that a planned invalidation concerns: those of the stream that the call names, or
/// else those that this thread began.
void invalidate_concerned(Driver& driver, const Call& call) {
  bool found = false;
  for (const auto& capture : driver.captures) {
    const auto is_subject = [&](const Stream* stream) {
      return reinterpret_cast<std::uint64_t>(stream) == call.subject;
    };
    if (std::none_of(capture->members.begin(), capture->members.end(), is_subject)) continue;
    invalidate(*capture);
    found = true;
  }
  if (found) return;
  for (const auto& capture : driver.captures) {
    if (capture->thread == this_thread().number) invalidate(*capture);
  }
}

/// A context's sticky error, which stays unless a deliberate error forgets it.
CUresult error_of(const Driver& driver, Context& context) {
  const CUresult error = context.error;
  if (driver.has_bug("error-not-sticky")) context.error = CUDA_SUCCESS;
  return error;
}

/// The bodies of the object that SIM_KERNELS names, which stays loaded.
const NamedBody* named_bodies() {
  static constexpr NamedBody kNone{nullptr, nullptr};
  const std::string path = environment("SIM_KERNELS");
  if (path.empty()) return &kNone;
  void* const object = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  void* const symbol = object == nullptr ? nullptr : dlsym(object, "simKernels");
  if (symbol == nullptr) give_up("SIM_KERNELS", "is " + path + ", which exports no simKernels");
  return reinterpret_cast<const NamedBody* (*)()>(symbol)();
}

}  // namespace

ThreadState& this_thread() {
  static std::atomic<std::uint64_t> last{0};
  // Never destroyed: destructors of the program's own statics may call the driver. Kept where a
  // leak checker sees them.
  static auto* const kAll = new std::vector<std::unique_ptr<ThreadState>>;
  static auto* const kMutex = new std::mutex;
  thread_local ThreadState* state = nullptr;
  if (state == nullptr) {
    auto made = std::make_unique<ThreadState>();
    made->number = ++last;
    state = made.get();
    const std::lock_guard lock(*kMutex);
    kAll->push_back(std::move(made));
  }
  return *state;
}

Driver::Driver() : version(version_to_be()), bug(bug_to_be()), queue(seed_to_be(), !bug.empty()) {
  for (const NamedBody* each = named_bodies(); each->name != nullptr; ++each) {
    bodies[each->name] = each->body;
  }
}

Driver& Driver::get() {
  // Never destroyed: threads of the program may call the driver until its very end.
  static auto* const kDriver = new Driver;
  return *kDriver;
}

CUresult Driver::kernel_runs(const std::string& name) {
  for (auto at = kernel_faults.begin(); at != kernel_faults.end(); ++at) {
    if (at->function != name || --at->nth != 0) continue;
    const CUresult code = at->code;
    kernel_faults.erase(at);
    return code;
  }
  return CUDA_SUCCESS;
}

CallScope::CallScope(Driver& driver, const Call& call) : driver_(driver), call_(call) {
  ThreadState& thread = this_thread();
  if (thread.in_host_function) {
    give_up(call.function, "was called from a host function, which may not call the driver");
  }
  thread.function = call.function;
  thread.override_ = Override::none;
  lock_ = std::unique_lock(driver.mutex);
}

CallScope::~CallScope() {
  this_thread().override_ = Override::none;
  driver_.journal.push_back(
      JournalEntry{call_.function, result_, this_thread().number, call_.subject});
}

CUresult CallScope::answers(CUresult code) {
  if (code == CUDA_ERROR_INVALID_VALUE && driver_.has_bug("argument-error-invalidates")) {
    invalidate_concerned(driver_, call_);
  }
  return result_ = code;
}

CUresult CallScope::refused() {
  for (auto at = driver_.faults.begin(); at != driver_.faults.end(); ++at) {
    if (at->function != call_.function || --at->nth != 0) continue;
    const Driver::Fault fault = *at;
    driver_.faults.erase(at);
    if (fault.effect == Effect::runs_now) this_thread().override_ = Override::runs_now;
    if (fault.effect == Effect::no_node) this_thread().override_ = Override::no_node;
    if (fault.effect == Effect::invalidate) invalidate_concerned(driver_, call_);
    if (fault.effect == Effect::refuse || fault.effect == Effect::invalidate) return fault.code;
    break;
  }
  if (call_.needs == Needs::nothing) return CUDA_SUCCESS;
  if (!driver_.initialised) return CUDA_ERROR_NOT_INITIALIZED;
  if (call_.needs == Needs::initialised) return CUDA_SUCCESS;
  if (this_thread().contexts.empty() || this_thread().contexts.back() == nullptr) {
    return CUDA_ERROR_INVALID_CONTEXT;
  }
  Context& context = Driver::current();
  if (context.destroyed_by != nullptr) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  return error_of(driver_, context);
}

Stream& stream_of(Driver& driver, CUstream handle) {
  (void)driver;
  if (handle == nullptr || handle == CU_STREAM_LEGACY) return *Driver::current().legacy;
  const char* function = this_thread().function;
  if (handle == CU_STREAM_PER_THREAD) {
    give_up(function, "was given the per-thread default stream, which is not simulated");
  }
  return *find<Stream>(handle, function);
}

CUresult wait_for(Driver& driver, Context& context, std::shared_ptr<Op> op) {
  if (op != nullptr && !op->done) {
    std::unique_lock lock(driver.mutex, std::adopt_lock);  // `call` holds it
    driver.changed.wait(lock, [&] { return op->done; });
    lock.release();
  }
  return error_of(driver, context);
}

CUresult wait_for_all(Driver& driver, Context& context) {
  CUresult code = CUDA_SUCCESS;
  for (const auto& op : driver.queue.pending(context)) {
    if (const CUresult of = wait_for(driver, context, op); of != CUDA_SUCCESS) code = of;
  }
  return code != CUDA_SUCCESS ? code : error_of(driver, context);
}

}  // namespace sim
