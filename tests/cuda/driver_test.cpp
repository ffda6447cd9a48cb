// Opening the driver: each way in which there is none is its own error, and an entry is never taken
// for an ABI that it is not.
#include "refrain/cuda/driver.hpp"

#include <dlfcn.h>
#include <doctest/doctest.h>

#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "driver_api.hpp"
#include "simcuda/control.hpp"
#include "support/temporary_folder.hpp"

namespace refrain::cuda {
namespace {

/// An environment variable, for as long as this lives.
class Environment {
 public:
  Environment(const char* name, const std::string& value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    setenv(name, value.c_str(), 1);
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;
  ~Environment() {
    if (before_) {
      setenv(name_, before_->c_str(), 1);
    } else {
      unsetenv(name_);
    }
  }

 private:
  const char* name_;
  std::optional<std::string> before_;
};

/// A simulated driver of its own that answers as `version`: a library is loaded once for each path,
/// and reads its environment then.
struct Simulation {
  explicit Simulation(const std::string& version)
      : answers_as("SIM_DRIVER_VERSION", version),
        library(folder.file("simcuda-" + version + ".so").string()) {
    std::filesystem::copy_file(REFRAIN_SIMCUDA, library);
    opened.emplace(Driver::open({library}));
  }

  Environment answers_as;
  test::TemporaryFolder folder;
  std::string library;
  std::optional<Result<Driver>> opened;
};

Error refusal(const std::string& library) {
  const auto opened = Driver::open({library});
  REQUIRE_FALSE(opened.ok());
  return opened.error();
}

bool says(const Error& error, std::string_view part) {
  const bool found = error.text().find(part) != std::string::npos;
  CHECK_MESSAGE(found, "(", std::string(part), ") is not in: ", error.text());
  return found;
}

/// What the driver itself answers, without the gate.
struct RawAnswer {
  CUresult code = CUDA_SUCCESS;
  void* function = nullptr;
  CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
};

RawAnswer raw_address(const std::string& library, const char* name, int version) {
  void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  REQUIRE(handle != nullptr);
  const auto get =
      reinterpret_cast<PFN_cuGetProcAddress_v12000>(dlsym(handle, "cuGetProcAddress_v2"));
  REQUIRE(static_cast<bool>(get));
  RawAnswer answer;
  answer.code =
      get(name, &answer.function, version, CU_GET_PROC_ADDRESS_LEGACY_STREAM, &answer.status);
  return answer;
}

/// A row of driver_entries.inc, and what a driver has there.
struct Entry {
  const char* symbol;
  const char* name;
  int version;
  void* address;
};

template <class Function>
void* address_of(Function entry) {
  return reinterpret_cast<void*>(entry);
}
template <class Function>
void* address_of(const OptionalEntry<Function>& entry) {
  const auto function = entry.get();
  return function ? reinterpret_cast<void*>(*function) : nullptr;
}

std::vector<Entry> entries_of(const DriverApi& api) {
  return {
#define REFRAIN_CUDA_ENTRY(need, symbol, name, version) \
  {#symbol, #name, version, address_of(api.symbol)},
#include "driver_entries.inc"
#undef REFRAIN_CUDA_ENTRY
  };
}

/// The names whose pinned version is newer than `driver_version`, yet for which the driver answers
/// CUDA_SUCCESS and a function: that of an older ABI.
std::vector<std::string> silently_older(const std::string& library, int driver_version) {
  std::vector<std::string> names;
  for (const Entry& entry : entries_of(DriverApi{})) {
    if (entry.version <= driver_version) continue;
    const RawAnswer raw = raw_address(library, entry.name, entry.version);
    if (raw.code == CUDA_SUCCESS && raw.function != nullptr &&
        raw.status == CU_GET_PROC_ADDRESS_SUCCESS) {
      names.emplace_back(entry.name);
    }
  }
  return names;
}

}  // namespace

TEST_CASE(
    "Driver: a library that is not there is driver_missing and named, with who asked for it") {
  const Error by_option = refusal("/nowhere/libcuda.so.1");
  CHECK(by_option.kind() == ErrorKind::driver_missing);
  says(by_option, R"("/nowhere/libcuda.so.1", as the options ask)");

  const Environment named("REFRAIN_CUDA_DRIVER", "/elsewhere/libcuda.so.1");
  const Error by_environment = refusal("");
  CHECK(by_environment.kind() == ErrorKind::driver_missing);
  says(by_environment, R"("/elsewhere/libcuda.so.1", as REFRAIN_CUDA_DRIVER asks)");

  const Error option_first = refusal("/nowhere/libcuda.so.1");
  says(option_first, "as the options ask");
}

TEST_CASE("Driver: an empty REFRAIN_CUDA_DRIVER is none") {
  const Environment named("REFRAIN_CUDA_DRIVER", "");
  const auto opened = Driver::open();
  // Whatever the system has, it was not asked for an empty name.
  if (!opened) says(opened.error(), R"("libcuda.so.1", as the system finds it)");
  if (opened) CHECK(opened->library() == "libcuda.so.1");
}

TEST_CASE("Driver: a library that is no driver is driver_missing, and so is a file that is none") {
  const Error other_library = refusal(REFRAIN_NO_DRIVER);
  CHECK(other_library.kind() == ErrorKind::driver_missing);
  says(other_library, "is no CUDA driver: it exports no cuDriverGetVersion");

  const test::TemporaryFolder folder;
  const std::string text = "not an ELF file";
  test::write_file(folder.file("libcuda.so.1"), std::as_bytes(std::span(text)));
  const Error no_library = refusal(folder.file("libcuda.so.1").string());
  CHECK(no_library.kind() == ErrorKind::driver_missing);
  says(no_library, "libcuda.so.1");
}

TEST_CASE("Driver: the toolkit's stub is driver_stub") {
  const Error error = refusal(REFRAIN_FAKE_STUB);
  CHECK(error.kind() == ErrorKind::driver_stub);
  says(error, "made to link against and not to run");
}

TEST_CASE("Driver: a driver without a device is no_gpu, whether cuInit or the count says so") {
  const Error by_init = refusal(REFRAIN_FAKE_NO_GPU);
  CHECK(by_init.kind() == ErrorKind::no_gpu);
  says(by_init, "finds no GPU");
  CHECK(refusal(REFRAIN_FAKE_NO_GPU).kind() == ErrorKind::no_gpu);  // and the second time

  const Error by_count = refusal(REFRAIN_FAKE_NONE_COUNTED);
  CHECK(by_count.kind() == ErrorKind::no_gpu);
}

TEST_CASE("Driver: one that will not initialise is refused with its code") {
  const Error error = refusal(REFRAIN_FAKE_NOT_READY);
  CHECK(error.kind() == ErrorKind::device_refused);
  says(error, "answered cuInit with 802 (CUDA_ERROR_SYSTEM_NOT_READY: the system is not ready)");
  says(error, "While opening the CUDA driver");
}

TEST_CASE(
    "Driver: one that lacks what its version must have is driver_missing and the names are told") {
  const Error error = refusal(REFRAIN_FAKE_INCOMPLETE);
  CHECK(error.kind() == ErrorKind::driver_missing);
  says(error, "yet lacks cuGraphLaunch.");
}

TEST_CASE("Driver: one older than 12.4 is driver_too_old with both versions") {
  const Simulation old("12020");
  REQUIRE_FALSE(old.opened->ok());
  CHECK(old.opened->error().kind() == ErrorKind::driver_too_old);
  says(old.opened->error(), "is of version 12.2; refrain needs 12.4 or newer");

  // What refusing it avoids: the older ABI of these is what it would have given.
  CHECK(silently_older(old.library, 12020) ==
        std::vector<std::string>{"cuStreamGetCaptureInfo", "cuStreamUpdateCaptureDependencies",
                                 "cuGraphGetEdges", "cuGraphNodeGetDependencies",
                                 "cuGraphNodeGetDependentNodes", "cuGraphAddDependencies",
                                 "cuGraphRemoveDependencies", "cuGraphAddNode", "cuCtxCreate"});
}

TEST_CASE(
    "Driver: 12.4 opens, and what is newer is missing even where the driver answers success") {
  const Simulation sim("12040");
  REQUIRE_MESSAGE(sim.opened->ok(), sim.opened->error().text());
  const Driver& driver = **sim.opened;
  CHECK(driver.version() == 12040);
  CHECK(driver.device_count() == 1);

  CHECK(silently_older(sim.library, 12040) == std::vector<std::string>{"cuCtxCreate"});
  CHECK_FALSE(driver.api().cuCtxCreate_v4.there());
  const auto create = driver.api().cuCtxCreate_v4.get();
  REQUIRE_FALSE(create.ok());
  CHECK(create.error().kind() == ErrorKind::driver_too_old);
  CHECK(create.error().text() ==
        "The CUDA driver (version 12.4) has no cuCtxCreate_v4, which came with CUDA 12.5.");
  CHECK_FALSE(driver.api().cuLogsRegisterCallback.there());
}

TEST_CASE("Driver: 13.0 opens with every entry, and is not asked for newer ones") {
  const Simulation sim("13000");
  REQUIRE_MESSAGE(sim.opened->ok(), sim.opened->error().text());
  const DriverApi& api = (*sim.opened)->api();
  CHECK((*sim.opened)->version() == 13000);
  for (const Entry& entry : entries_of(api)) CHECK_MESSAGE(entry.address != nullptr, entry.symbol);

  const RawAnswer newer = raw_address(sim.library, "cuMemAlloc", 13010);
  CHECK(newer.code == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("Driver: every entry is the function of its exact name in the library") {
  const Simulation sim("13000");
  REQUIRE_MESSAGE(sim.opened->ok(), sim.opened->error().text());
  const DriverApi& api = (*sim.opened)->api();
  void* handle = dlopen(sim.library.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
  REQUIRE(handle != nullptr);
  for (const Entry& entry : entries_of(api)) {
    CHECK_MESSAGE(entry.address == dlsym(handle, entry.symbol), entry.symbol);
  }
  dlclose(handle);
}

TEST_CASE("Driver: a simulation is asked for by name and says in its device's name what it is") {
  const Environment named("REFRAIN_CUDA_DRIVER", REFRAIN_SIMCUDA);
  const auto driver = Driver::open();
  REQUIRE_MESSAGE(driver.ok(), driver.error().text());
  CHECK(driver->library() == REFRAIN_SIMCUDA);
  const auto name = driver->device_name(0);
  REQUIRE(name.ok());
  CHECK(name->find("imulat") != std::string::npos);

  const auto none = driver->device_name(1);
  REQUIRE_FALSE(none.ok());
  CHECK(none.error().kind() == ErrorKind::device_refused);
  says(none.error(), "cuDeviceGet for device 1");
  says(none.error(), "CUDA_ERROR_INVALID_DEVICE");
}

TEST_CASE("Driver: threads may open it at once, and handles outlive each other") {
  std::vector<std::optional<Driver>> opened(4);
  {
    std::vector<std::thread> threads;
    for (auto& each : opened) {
      threads.emplace_back([&each] {
        auto driver = Driver::open({REFRAIN_SIMCUDA});
        if (driver) each = *driver;
      });
    }
    for (auto& thread : threads) thread.join();
  }
  for (auto& each : opened) {
    REQUIRE(each.has_value());
    const Driver copy = *each;
    each.reset();
    CHECK(copy.device_name(0).ok());
  }
}

TEST_CASE(
    "Driver: each of its first calls failing is told with the call's name and the next opening "
    "works") {
  const Simulation sim("12040");
  REQUIRE_MESSAGE(sim.opened->ok(), sim.opened->error().text());
  const sim::Control* control = sim::control(sim.library.c_str());
  REQUIRE(control != nullptr);
  for (const char* call : {"cuDriverGetVersion", "cuInit", "cuDeviceGetCount"}) {
    CAPTURE(call);
    control->fault(call, 1, 999, sim::Effect::refuse);
    const Error error = refusal(sim.library);
    CHECK(error.kind() == ErrorKind::device_refused);
    says(error, std::string("answered ") + call + " with 999 (CUDA_ERROR_UNKNOWN");
    CHECK(control->faults_left() == 0);
    CHECK(Driver::open({sim.library}).ok());
  }
  control->fault("cuGetProcAddress_v2", 3, 1, sim::Effect::refuse);
  const Error error = refusal(sim.library);
  CHECK(error.kind() == ErrorKind::driver_missing);
  says(error, "yet lacks");
  CHECK(Driver::open({sim.library}).ok());
}

}  // namespace refrain::cuda
