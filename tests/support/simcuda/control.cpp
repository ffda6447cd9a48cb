#include "simcuda/control.hpp"

#include <algorithm>
#include <cstring>

#include "simcuda/driver.hpp"
#include "simcuda/export.hpp"

namespace sim {
namespace {

/// The driver, and its mutex held.
struct Locked {
  Driver& driver = Driver::get();
  std::unique_lock<std::mutex> lock{driver.mutex};
  Driver* operator->() const { return &driver; }
};

void kernel_body(const char* name, KernelBody body) {
  const Locked driver;
  if (body != nullptr) {
    driver->bodies[name] = body;
  } else {
    driver->bodies.erase(name);
  }
}

void fault(const char* function, unsigned nth, int code, Effect effect) {
  const Locked driver;
  driver->faults.push_back({function, nth, static_cast<CUresult>(code), effect});
}

void kernel_fault(const char* kernel, unsigned nth, int code) {
  const Locked driver;
  driver->kernel_faults.push_back({kernel, nth, static_cast<CUresult>(code), Effect::refuse});
}

void clear_faults() {
  const Locked driver;
  driver->faults.clear();
  driver->kernel_faults.clear();
}

unsigned faults_left() {
  const Locked driver;
  return static_cast<unsigned>(driver->faults.size() + driver->kernel_faults.size());
}

void limit_memory(std::uint64_t bytes) { Locked()->memory.limit(bytes); }

std::uint64_t memory_in_use() { return Locked()->memory.in_use(); }

std::size_t live(const char* kind) {
  for (auto each = Kind::context; each <= Kind::user_object;
       each = static_cast<Kind>(static_cast<int>(each) + 1)) {
    if (std::strcmp(name_of(each), kind) == 0) return live_objects(each);
  }
  give_up("Control::live", std::string("knows no kind of handle called ") + kind);
}

void hold() { Locked()->queue.hold(); }

unsigned step(unsigned pieces) {
  Locked driver;
  return driver->queue.step(driver.driver, driver.lock, pieces);
}

void release() {
  const Locked driver;
  driver->queue.release();
  driver->changed.notify_all();
}

std::size_t calls(const char* function) {
  const Locked driver;
  if (function == nullptr) return driver->journal.size();
  return static_cast<std::size_t>(std::count_if(
      driver->journal.begin(), driver->journal.end(),
      [&](const JournalEntry& each) { return std::strcmp(each.function, function) == 0; }));
}

std::size_t journal(JournalEntry* entries, std::size_t capacity) {
  const Locked driver;
  std::copy_n(driver->journal.begin(), std::min(capacity, driver->journal.size()), entries);
  return driver->journal.size();
}

void clear_journal() { Locked()->journal.clear(); }

constexpr Control kControl{
    .kernel_body = kernel_body,
    .fault = fault,
    .kernel_fault = kernel_fault,
    .clear_faults = clear_faults,
    .faults_left = faults_left,
    .limit_memory = limit_memory,
    .memory_in_use = memory_in_use,
    .live = live,
    .hold = hold,
    .step = step,
    .release = release,
    .calls = calls,
    .journal = journal,
    .clear_journal = clear_journal,
};

}  // namespace
}  // namespace sim

SIM_API const sim::Control* simControl() { return &sim::kControl; }
