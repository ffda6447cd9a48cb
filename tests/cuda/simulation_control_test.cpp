// What a test tells the simulation through its controls, and what ends the process: everything that
// later tests lean on to make a driver fail.
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "simulated.hpp"
#include "support/temporary_folder.hpp"

namespace refrain::cuda {
namespace {

constexpr const char* kPtx =
    ".version 8.0\n.target sm_80\n.address_size 64\n"
    ".visible .entry store(.param .u64 to, .param .u32 value) { ret; }\\n";

void store(const sim::Launch* launch) {
  if (auto* to = launch->array<std::uint32_t>(0, 1)) *to = launch->argument<std::uint32_t>(1);
}

/// What stops a process that does this, and what it says; in a process of its own.
struct Death {
  int signal = 0;
  std::string said;
};

Death death_of(const std::function<void()>& misuse) {
  std::array<int, 2> pipes{};
  REQUIRE(pipe(pipes.data()) == 0);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    dup2(pipes[1], STDERR_FILENO);
    for (const int signal : {SIGABRT, SIGSEGV}) ::signal(signal, SIG_DFL);
    misuse();
    _exit(0);
  }
  close(pipes[1]);
  Death death;
  std::array<char, 256> part{};
  for (ssize_t got = 0; (got = read(pipes[0], part.data(), part.size())) > 0;) {
    death.said.append(part.data(), static_cast<std::size_t>(got));
  }
  close(pipes[0]);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  if (WIFSIGNALED(status)) death.signal = WTERMSIG(status);
  return death;
}

void check_ends(std::string_view said, const std::function<void()>& misuse) {
  const Death death = death_of(misuse);
  CHECK(death.signal == SIGABRT);
  CHECK_MESSAGE(death.said.find(said) != std::string::npos, death.said);
}

}  // namespace

TEST_CASE("simulation: the nth call of a function fails, once, and the others do not") {
  const Simulated it;
  it.control->fault("cuMemsetD8Async", 2, CUDA_ERROR_UNKNOWN, sim::Effect::refuse);
  CHECK(it.set(1) == CUDA_SUCCESS);
  CHECK(it.control->faults_left() == 1);
  CHECK(it.set(2) == CUDA_ERROR_UNKNOWN);
  CHECK(it.control->faults_left() == 0);
  CHECK(it.set(3) == CUDA_SUCCESS);
  CHECK(it.api.cuStreamSynchronize(it.stream) == CUDA_SUCCESS);
  CHECK(it.first() == 3);
}

TEST_CASE("simulation: a refused call keeps the capture, and one that invalidates does not") {
  const Simulated it;
  it.begin();
  it.control->fault("cuMemsetD8Async", 1, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
                    sim::Effect::refuse);
  CHECK(it.set(1) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  CHECK(it.set(2) == CUDA_SUCCESS);
  CHECK(it.end() == 1);  // valid, and incomplete

  it.begin();
  it.control->fault("cuMemsetD8Async", 1, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
                    sim::Effect::invalidate);
  CHECK(it.set(1) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  CHECK(it.set(2) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  CUgraph graph = nullptr;
  CHECK(it.api.cuStreamEndCapture(it.stream, &graph) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  CHECK(graph == nullptr);
}

TEST_CASE("simulation: work may run at once instead of being captured, or be lost") {
  const Simulated it;
  REQUIRE(it.set(1) == CUDA_SUCCESS);
  it.begin();
  it.control->fault("cuMemsetD8Async", 1, CUDA_SUCCESS, sim::Effect::runs_now);
  CHECK(it.set(7) == CUDA_SUCCESS);
  CHECK(it.end() == 0);
  REQUIRE(it.api.cuStreamSynchronize(it.stream) == CUDA_SUCCESS);
  CHECK(it.first() == 7);

  it.begin();
  it.control->fault("cuMemsetD8Async", 1, CUDA_SUCCESS, sim::Effect::no_node);
  CHECK(it.set(9) == CUDA_SUCCESS);
  CHECK(it.end() == 0);
  REQUIRE(it.api.cuStreamSynchronize(it.stream) == CUDA_SUCCESS);
  CHECK(it.first() == 7);
}

TEST_CASE("simulation: nothing runs while it is held, and then as many pieces as it is told") {
  const Simulated it;
  it.control->hold();
  for (int each = 1; each <= 3; ++each) {
    REQUIRE(it.set(static_cast<unsigned char>(each)) == CUDA_SUCCESS);
  }
  CHECK(it.api.cuStreamQuery(it.stream) == CUDA_ERROR_NOT_READY);
  CHECK(it.control->step(2) == 2);
  CHECK(it.api.cuStreamQuery(it.stream) == CUDA_ERROR_NOT_READY);
  CHECK(it.control->step(5) == 1);
  CHECK(it.api.cuStreamQuery(it.stream) == CUDA_SUCCESS);
  CHECK(it.control->step(1) == 0);
  it.control->release();
  CHECK(it.first() == 3);
}

TEST_CASE("simulation: the journal has each call, its answer, its thread and what it was about") {
  const Simulated it;
  REQUIRE(it.set(1) == CUDA_SUCCESS);
  CHECK(it.api.cuMemFree_v2(it.memory + 1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(it.control->calls(nullptr) == 2);
  CHECK(it.control->calls("cuMemFree_v2") == 1);
  std::array<sim::JournalEntry, 4> entries{};
  REQUIRE(it.control->journal(entries.data(), entries.size()) == 2);
  CHECK(std::string(entries[0].function) == "cuMemsetD8Async");
  CHECK(entries[0].result == CUDA_SUCCESS);
  CHECK(entries[0].subject == reinterpret_cast<std::uint64_t>(it.stream));
  CHECK(entries[1].result == CUDA_ERROR_INVALID_VALUE);
  CHECK(entries[1].thread == entries[0].thread);
  it.control->clear_journal();
  CHECK(it.control->calls(nullptr) == 0);
}

TEST_CASE("simulation: memory is as short as it is told, and is counted") {
  const Simulated it;
  const std::uint64_t before = it.control->memory_in_use();
  it.control->limit_memory(before + 4096);
  CUdeviceptr more = 0;
  CHECK(it.api.cuMemAlloc_v2(&more, 4097) == CUDA_ERROR_OUT_OF_MEMORY);
  REQUIRE(it.api.cuMemAlloc_v2(&more, 4096) == CUDA_SUCCESS);
  CHECK(it.control->memory_in_use() == before + 4096);
  CHECK(it.api.cuMemFree_v2(more) == CUDA_SUCCESS);
  CHECK(it.control->memory_in_use() == before);
  it.control->limit_memory(0);
}

TEST_CASE("simulation: what lives is counted by kind") {
  const Simulated it;
  const std::size_t before = it.control->live("event");
  CUevent event = nullptr;
  REQUIRE(it.api.cuEventCreate(&event, 0) == CUDA_SUCCESS);
  CHECK(it.control->live("event") == before + 1);
  REQUIRE(it.api.cuEventDestroy_v2(event) == CUDA_SUCCESS);
  CHECK(it.control->live("event") == before);
}

TEST_CASE(
    "simulation: a kernel is its body, fails in the run that it is told to, and needs a body") {
  struct Case {
    bool body;
    unsigned fails_at;
    std::uint32_t runs_well;
    CUresult then;
  };
  for (const Case& each :
       {Case{true, 0, 3, CUDA_SUCCESS}, Case{true, 2, 1, CUDA_ERROR_ILLEGAL_ADDRESS},
        Case{false, 0, 0, CUDA_ERROR_LAUNCH_FAILED}}) {
    CAPTURE(each.fails_at);
    CAPTURE(each.body);
    // A library of its own, since a lost context cannot be brought back.
    const test::TemporaryFolder folder;
    const std::string library = folder.file("simcuda.so").string();
    std::filesystem::copy_file(REFRAIN_SIMCUDA, library);
    const Driver driver = Driver::open({library}).value();
    const DriverApi& api = driver.api();
    const sim::Control* control = sim::control(library.c_str());
    REQUIRE(control != nullptr);

    CUcontext context = nullptr;
    CUdeviceptr to = 0;
    CUmodule module = nullptr;
    CUfunction kernel = nullptr;
    REQUIRE(api.cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS);
    REQUIRE(api.cuCtxPushCurrent_v2(context) == CUDA_SUCCESS);
    REQUIRE(api.cuMemAlloc_v2(&to, 4) == CUDA_SUCCESS);
    REQUIRE(api.cuModuleLoadData(&module, kPtx) == CUDA_SUCCESS);
    REQUIRE(api.cuModuleGetFunction(&kernel, module, "store") == CUDA_SUCCESS);
    if (each.body) control->kernel_body("store", store);
    if (each.fails_at != 0) control->kernel_fault("store", each.fails_at, each.then);
    CUresult last = CUDA_SUCCESS;
    std::uint32_t runs = 0;
    for (std::uint32_t value = 1; value <= 3; ++value) {
      std::array<void*, 2> arguments{&to, &value};
      REQUIRE(api.cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, CU_STREAM_LEGACY, arguments.data(),
                                 nullptr) == CUDA_SUCCESS);
      last = api.cuCtxSynchronize();
      if (last != CUDA_SUCCESS) break;
      std::uint32_t got = 0;
      REQUIRE(api.cuMemcpyDtoH_v2(&got, to, 4) == CUDA_SUCCESS);
      CHECK(got == value);
      ++runs;
    }
    CHECK(last == each.then);
    CHECK(runs == each.runs_well);
    CHECK(api.cuCtxSynchronize() == each.then);  // for good
  }
}

TEST_CASE("simulation: the host cannot touch the device's memory") {
  const Simulated it;
  const Death death = death_of([&] {
    *reinterpret_cast<volatile unsigned char*>(it.memory) = 1;  // NOLINT: that is the point
  });
  CHECK(death.signal == SIGSEGV);
}

TEST_CASE(
    "simulation: misuse that a real driver answers with a crash or silence ends the process") {
  const Simulated it;
  CUevent event = nullptr;
  REQUIRE(it.api.cuEventCreate(&event, 0) == CUDA_SUCCESS);
  REQUIRE(it.api.cuEventDestroy_v2(event) == CUDA_SUCCESS);
  check_ends("cuEventQuery was given a event that cuEventDestroy_v2 has destroyed",
             [&] { it.api.cuEventQuery(event); });
  check_ends("cuEventDestroy_v2 was given a event that cuEventDestroy_v2 has destroyed",
             [&] { it.api.cuEventDestroy_v2(event); });
  int mine = 0;
  check_ends("that this driver never made",
             [&] { it.api.cuEventQuery(reinterpret_cast<CUevent>(&mine)); });
  check_ends("was given a stream as a event",
             [&] { it.api.cuEventQuery(reinterpret_cast<CUevent>(it.stream)); });
}

}  // namespace refrain::cuda
