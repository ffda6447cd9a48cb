#include "gpu.hpp"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

namespace refrain::test {
namespace {

constexpr std::string_view kImage = R"ptx(
.version 7.0
.target sm_70
.address_size 64
.visible .entry make(.param .u64 y, .param .u32 n, .param .f32 value) { ret; }
.visible .entry map(.param .u64 x, .param .u64 y, .param .u32 n) { ret; }
.visible .entry update(.param .u64 y, .param .u32 n) { ret; }
.visible .entry join(.param .u64 a, .param .u64 b, .param .u64 y, .param .u32 n) { ret; }
.visible .entry nothing() { ret; }
)ptx";

void make(const sim::Launch* launch) {
  const auto n = launch->argument<std::uint32_t>(1);
  float* const y = launch->array<float>(0, n);
  for (std::uint32_t i = 0; y != nullptr && i < n; ++i) y[i] = launch->argument<float>(2);
}
void map(const sim::Launch* launch) {
  const auto n = launch->argument<std::uint32_t>(2);
  const float* const x = launch->array<float>(0, n);
  float* const y = launch->array<float>(1, n);
  for (std::uint32_t i = 0; x != nullptr && y != nullptr && i < n; ++i) y[i] = x[i] + 1;
}
void update(const sim::Launch* launch) {
  const auto n = launch->argument<std::uint32_t>(1);
  float* const y = launch->array<float>(0, n);
  for (std::uint32_t i = 0; y != nullptr && i < n; ++i) y[i] += 1;
}
void join(const sim::Launch* launch) {
  const auto n = launch->argument<std::uint32_t>(3);
  const float* const a = launch->array<float>(0, n);
  const float* const b = launch->array<float>(1, n);
  float* const y = launch->array<float>(2, n);
  for (std::uint32_t i = 0; a != nullptr && b != nullptr && y != nullptr && i < n; ++i) {
    y[i] = a[i] + b[i];
  }
}
void nothing(const sim::Launch*) {}

}  // namespace

SharedBytes test_image() { return SharedBytes::copy_of(std::as_bytes(std::span(kImage))); }

Gpu::Gpu(DeviceOptions options) : before(in_driver()) {
  device.emplace(cuda::Device::open({.driver = {REFRAIN_SIMCUDA}}, std::move(options)).value());
  control = sim::control(REFRAIN_SIMCUDA);
  REQUIRE(control != nullptr);
  control->kernel_body("make", make);
  control->kernel_body("map", map);
  control->kernel_body("update", update);
  control->kernel_body("join", join);
  control->kernel_body("nothing", nothing);
  REQUIRE(device->add_image(test_image()).ok());
  control->clear_journal();
}

std::string Gpu::in_driver() {
  const sim::Control* const control = sim::control(REFRAIN_SIMCUDA);
  std::string all;
  for (const char* const kind : {"stream", "event", "library", "graph", "exec"}) {
    all += std::to_string(control != nullptr ? control->live(kind) : 0) + " " + kind + ", ";
  }
  return all + std::to_string(control != nullptr ? control->memory_in_use() : 0) + " bytes";
}

Gpu::~Gpu() {
  control->release();
  control->clear_faults();
  device.reset();
  if (!leaves_something) CHECK(in_driver() == before);
}

bool in_own_process() {
  constexpr const char* kMark = "REFRAIN_TEST_OWN_PROCESS";
  if (std::getenv(kMark) != nullptr) return true;  // NOLINT: nothing here sets it
  // A comma would end the filter; a question mark stands for one character.
  std::string filter =
      std::string("--test-case=") + doctest::getContextOptions()->currentTest->m_name;
  std::replace(filter.begin(), filter.end(), ',', '?');
  std::string program = "/proc/self/exe";
  std::string mark = std::string(kMark) + "=1";
  std::vector<char*> variables;
  for (char** entry = environ; *entry != nullptr; ++entry) variables.push_back(*entry);
  variables.push_back(mark.data());
  variables.push_back(nullptr);
  char* arguments[] = {program.data(), filter.data(), nullptr};
  pid_t child = 0;
  REQUIRE(posix_spawn(&child, program.c_str(), nullptr, nullptr, arguments, variables.data()) == 0);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  return false;
}

std::vector<std::string> Gpu::journal() const {
  std::vector<sim::JournalEntry> entries(control->journal(nullptr, 0));
  control->journal(entries.data(), entries.size());
  std::vector<std::string> names;
  for (const sim::JournalEntry& entry : entries) names.emplace_back(entry.function);
  return names;
}

}  // namespace refrain::test
