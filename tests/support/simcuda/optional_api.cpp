// Functions that only newer drivers have, and of which nothing is simulated: checkpoints, logs and
// green contexts. They are here so that they can be found, and say that nothing may lean on them.
#include "simcuda/driver.hpp"
#include "simcuda/export.hpp"

using namespace sim;

namespace {

CUresult unsettled(const char* function) {
  return call({function, Needs::initialised}, [](Driver&) -> CUresult { return kUnsettled; });
}

}  // namespace

#if CUDA_VERSION >= 12050
SIM_API CUresult CUDAAPI cuGreenCtxStreamCreate(CUstream*, CUgreenCtx, unsigned, int) {
  return unsettled(__func__);
}
#endif

#if CUDA_VERSION >= 12080
SIM_API CUresult CUDAAPI cuCheckpointProcessGetState(int, CUprocessState*) {
  return unsettled(__func__);
}

SIM_API CUresult CUDAAPI cuCheckpointProcessLock(int, CUcheckpointLockArgs*) {
  return unsettled(__func__);
}

SIM_API CUresult CUDAAPI cuCheckpointProcessCheckpoint(int, CUcheckpointCheckpointArgs*) {
  return unsettled(__func__);
}

SIM_API CUresult CUDAAPI cuCheckpointProcessRestore(int, CUcheckpointRestoreArgs*) {
  return unsettled(__func__);
}

SIM_API CUresult CUDAAPI cuCheckpointProcessUnlock(int, CUcheckpointUnlockArgs*) {
  return unsettled(__func__);
}

SIM_API CUresult CUDAAPI cuCheckpointProcessGetRestoreThreadId(int, int*) {
  return unsettled(__func__);
}
#endif

#if CUDA_VERSION >= 12090
SIM_API CUresult CUDAAPI cuLogsRegisterCallback(CUlogsCallback, void*, CUlogsCallbackHandle*) {
  return unsettled(__func__);
}

SIM_API CUresult CUDAAPI cuLogsUnregisterCallback(CUlogsCallbackHandle) {
  return unsettled(__func__);
}

SIM_API CUresult CUDAAPI cuLogsCurrent(CUlogIterator*, unsigned) { return unsettled(__func__); }

SIM_API CUresult CUDAAPI cuLogsDumpToMemory(CUlogIterator*, char*, std::size_t*, unsigned) {
  return unsettled(__func__);
}
#endif
