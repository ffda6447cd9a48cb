// The driver as a library: how its functions are found, what it says of its codes, its devices.
#include <dlfcn.h>
#include <doctest/doctest.h>

#include <cstring>
#include <string>
#include <vector>

#include "driver_error.hpp"
#include "fixture.hpp"

using namespace conformance;

namespace {

struct Entry {
  const char* symbol;
  const char* name;
  int version;
};

constexpr Entry kEntries[] = {
#define REFRAIN_CUDA_ENTRY(need, symbol, name, version) {#symbol, #name, version},
#include "driver_entries.inc"
#undef REFRAIN_CUDA_ENTRY
};

/// The library that was opened, for what it exports.
void* exported(const char* symbol) {
  void* library = dlopen(api().library.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
  REQUIRE(library != nullptr);
  void* address = dlsym(library, symbol);
  dlclose(library);
  return address;
}

struct Address {
  CUresult code;
  void* function;
  CUdriverProcAddressQueryResult status;
};

Address ask(const char* name, int version, cuuint64_t flags = CU_GET_PROC_ADDRESS_LEGACY_STREAM) {
  const auto get = reinterpret_cast<PFN_cuGetProcAddress_v12000>(exported("cuGetProcAddress_v2"));
  const bool there = get != nullptr;
  REQUIRE(there);
  Address address{CUDA_SUCCESS, nullptr, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND};
  address.code = get(name, &address.function, version, flags, &address.status);
  return address;
}

constexpr int kSticky[] = {226, 700, 702, 714, 715, 716, 717, 718, 719};

}  // namespace

TEST_CASE("DRV-01: every pinned entry resolves to the symbol of its exact name [X]") {
  for (const Entry& entry : kEntries) {
    if (entry.version > api().driver_version) continue;
    CAPTURE(entry.symbol);
    const Address address = ask(entry.name, entry.version);
    CHECK(address.code == CUDA_SUCCESS);
    CHECK(address.status == CU_GET_PROC_ADDRESS_SUCCESS);
    CHECK(address.function != nullptr);
    CHECK(address.function == exported(entry.symbol));
  }
}

TEST_CASE("DRV-02: what the driver answers for an ABI that is newer than itself [?]") {
  int asked = 0;
  int answered = 0;
  for (const Entry& entry : kEntries) {
    if (entry.version <= api().driver_version) continue;
    ++asked;
    const Address address = ask(entry.name, entry.version);
    if (address.code != CUDA_SUCCESS || address.status != CU_GET_PROC_ADDRESS_SUCCESS) continue;
    ++answered;
    observe(std::string("success for the newer ") + entry.symbol,
            address.function == exported(entry.symbol) ? "that very symbol" : "an older one");
  }
  observe("names newer than the driver", asked);
  observe("answered with success all the same", answered);
  const Address beyond = ask("cuInit", api().driver_version + 1000);
  observe("code of cuInit at a version above the driver's", beyond.code);
}

TEST_CASE("DRV-03: a name that the driver does not have gives no address [H]") {
  const Address address = ask("cuThereIsNoSuchFunction", 12040);
  CHECK(address.status == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
  CHECK(address.function == nullptr);
  observe("code for a name that is not there", address.code);
}

TEST_CASE("DRV-04: cuInit takes no flags and answers 1 for any [X]") {
  CHECK_CODE(api().cuInit(1), CUDA_ERROR_INVALID_VALUE);
  CHECK_CODE(api().cuInit(0), CUDA_SUCCESS);
}

TEST_CASE("DRV-05: the driver's version needs no context and a place to go [H]") {
  int version = 0;
  CHECK_CODE(api().cuDriverGetVersion(&version), CUDA_SUCCESS);
  CHECK(version == api().driver_version);
  CHECK_CODE(api().cuDriverGetVersion(nullptr), CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("DRV-06: with the per-thread flag a name of before CUDA 7 has no address [X]") {
  const Address address =
      ask("cuMemcpyHtoDAsync", 3020, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
  CHECK(address.function == nullptr);
}

TEST_CASE("DRV-07: every code is named as in cuda.h [H]") {
#define REFRAIN_CUDA_CODE(number, name, meaning)                                    \
  if (const char* text = nullptr;                                                   \
      api().cuGetErrorName(static_cast<CUresult>(number), &text) == CUDA_SUCCESS) { \
    CHECK(std::string(text) == #name);                                              \
  } else {                                                                          \
    observe("not known to this driver", #name);                                     \
  }
#include "driver_codes.inc"
#undef REFRAIN_CUDA_CODE
  const char* text = nullptr;
  REQUIRE_OK(api().cuGetErrorName(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, &text));
  CHECK(std::string(text) == "CUDA_ERROR_STREAM_CAPTURE_UNJOINED");
}

TEST_CASE("DRV-08: a code that is none has neither name nor text and answers 1 [H]") {
  const auto none = static_cast<CUresult>(998);
  const char* text = "untouched";
  CHECK_CODE(api().cuGetErrorName(none, &text), CUDA_ERROR_INVALID_VALUE);
  CHECK(text == nullptr);
  text = "untouched";
  CHECK_CODE(api().cuGetErrorString(none, &text), CUDA_ERROR_INVALID_VALUE);
  CHECK(text == nullptr);
}

TEST_CASE("DRV-09: every sticky code has a text [H]") {
  for (const int code : kSticky) {
    CAPTURE(code);
    CHECK(refrain::cuda::is_sticky(static_cast<CUresult>(code)));
    const char* text = nullptr;
    CHECK_CODE(api().cuGetErrorString(static_cast<CUresult>(code), &text), CUDA_SUCCESS);
    CHECK(text != nullptr);
  }
}

TEST_CASE("DRV-10: a device that is not there is refused with 101 [H]") {
  int count = 0;
  REQUIRE_OK(api().cuDeviceGetCount(&count));
  REQUIRE(count >= 1);
  CUdevice device = -1;
  for (int i = 0; i < count; ++i) CHECK_CODE(api().cuDeviceGet(&device, i), CUDA_SUCCESS);
  CHECK_CODE(api().cuDeviceGet(&device, count), CUDA_ERROR_INVALID_DEVICE);
  CHECK_CODE(api().cuDeviceGet(&device, -1), CUDA_ERROR_INVALID_DEVICE);
}

TEST_CASE("DRV-11: a device's name ends inside the room that it is given [H]") {
  CUdevice device = 0;
  REQUIRE_OK(api().cuDeviceGet(&device, 0));
  char name[256];
  std::memset(name, 'x', sizeof name);
  REQUIRE_OK(api().cuDeviceGetName(name, sizeof name, device));
  const std::size_t length = strnlen(name, sizeof name);
  CHECK(length > 0);
  CHECK(length < sizeof name);
  observe("device", name);
}

TEST_CASE("DRV-12: a device has a uuid that stays the same and some memory [H]") {
  CUdevice device = 0;
  REQUIRE_OK(api().cuDeviceGet(&device, 0));
  CUuuid first{};
  CUuuid second{};
  REQUIRE_OK(api().cuDeviceGetUuid_v2(&first, device));
  REQUIRE_OK(api().cuDeviceGetUuid_v2(&second, device));
  CHECK(std::memcmp(&first, &second, sizeof first) == 0);
  std::size_t bytes = 0;
  REQUIRE_OK(api().cuDeviceTotalMem_v2(&bytes, device));
  CHECK(bytes >= std::size_t{1} << 20U);
}

TEST_CASE("DRV-13: a device's limits are those of the programming guide [G]") {
  CUdevice device = 0;
  REQUIRE_OK(api().cuDeviceGet(&device, 0));
  CHECK(device_attribute(device, CU_DEVICE_ATTRIBUTE_WARP_SIZE) == 32);
  CHECK(device_attribute(device, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK) == 1024);
  CHECK(device_attribute(device, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X) == 2147483647);
  CHECK(device_attribute(device, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y) == 65535);
  CHECK(device_attribute(device, CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING) == 1);
  observe(
      "compute capability",
      std::to_string(device_attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)) + "." +
          std::to_string(device_attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)));
}

TEST_CASE("DRV-14: an attribute that is none is refused with 1 [H]") {
  CUdevice device = 0;
  REQUIRE_OK(api().cuDeviceGet(&device, 0));
  int value = 0;
  CHECK_CODE(api().cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MAX, device),
             CUDA_ERROR_INVALID_VALUE);
  CHECK_CODE(api().cuDeviceGetAttribute(nullptr, CU_DEVICE_ATTRIBUTE_WARP_SIZE, device),
             CUDA_ERROR_INVALID_VALUE);
}
