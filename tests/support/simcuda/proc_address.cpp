// cuGetProcAddress, with the trap that drivers up to 12.x set: asked for a version that is newer
// than they are, they answer CUDA_SUCCESS and an older ABI of the same name. (Measured on
// 535.261.03 and 550.163.01; the header of 13.0 promises CUDA_ERROR_INVALID_VALUE.)
#include <cstring>

#include "simcuda/driver.hpp"
#include "simcuda/export.hpp"

namespace sim {
namespace {

struct Address {
  const char* name;
  int version;
  void* function;
};

/// Stands for every ABI that is older than the one in the table.
void older_abi() {
  give_up("an entry point",
          "of an older ABI was called: cuGetProcAddress answered with it, because "
          "the driver has nothing newer of that name");
}

/// Names that have an older ABI than the one that is pinned.
const Address kOlder[] = {
    {"cuStreamGetCaptureInfo", 11030, reinterpret_cast<void*>(older_abi)},
    {"cuStreamUpdateCaptureDependencies", 11030, reinterpret_cast<void*>(older_abi)},
    {"cuGraphGetEdges", 10000, reinterpret_cast<void*>(older_abi)},
    {"cuGraphNodeGetDependencies", 10000, reinterpret_cast<void*>(older_abi)},
    {"cuGraphNodeGetDependentNodes", 10000, reinterpret_cast<void*>(older_abi)},
    {"cuGraphAddDependencies", 10000, reinterpret_cast<void*>(older_abi)},
    {"cuGraphRemoveDependencies", 10000, reinterpret_cast<void*>(older_abi)},
    {"cuGraphAddNode", 12020, reinterpret_cast<void*>(older_abi)},
    {"cuCtxCreate", 11040, reinterpret_cast<void*>(older_abi)},
};

const Address kPinned[] = {
#define REFRAIN_CUDA_ENTRY(need, symbol, name, version) \
  {#name, version, reinterpret_cast<void*>(&symbol)},
#include "driver_entries.inc"
#undef REFRAIN_CUDA_ENTRY
};

struct Answer {
  void* function = nullptr;
  CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
};

/// The newest ABI of a name that neither the request nor the driver is older than.
Answer look_up(const char* name, int version, int driver_version) {
  Answer answer;
  int best = 0;
  const auto consider = [&](const Address& each) {
    if (std::strcmp(each.name, name) != 0 || each.version > driver_version) return;
    if (each.version > version) {
      if (answer.function == nullptr) answer.status = CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
      return;
    }
    if (each.version <= best) return;
    best = each.version;
    answer = {each.function, CU_GET_PROC_ADDRESS_SUCCESS};
  };
  for (const Address& each : kPinned) consider(each);
  for (const Address& each : kOlder) consider(each);
  return answer;
}

}  // namespace
}  // namespace sim

SIM_API CUresult CUDAAPI cuGetProcAddress_v2(const char* symbol, void** pfn, int cudaVersion,
                                             cuuint64_t flags,
                                             CUdriverProcAddressQueryResult* symbolStatus) {
  using namespace sim;
  return call({__func__, Needs::nothing}, [&](Driver& driver) -> CUresult {
    if (symbol == nullptr || pfn == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (flags == CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) return kUnsettled;
    if (cudaVersion > driver.version && driver.version >= 13000) return CUDA_ERROR_INVALID_VALUE;
    const Answer answer = look_up(symbol, cudaVersion, driver.version);
    *pfn = answer.function;
    if (symbolStatus != nullptr) *symbolStatus = answer.status;
    return CUDA_SUCCESS;
  });
}
