#include "context.hpp"

#include "driver_error.hpp"

namespace refrain::cuda {

Result<std::shared_ptr<Context>> Context::primary(const Driver& driver, int ordinal) {
  const DriverApi& api = driver.api();
  CUdevice device = 0;
  REFRAIN_TRY(cuda::check(api.cuDeviceGet(&device, ordinal),
                          "cuDeviceGet for device " + std::to_string(ordinal)));
  CUcontext retained = nullptr;
  REFRAIN_TRY(cuda::check(api.cuDevicePrimaryCtxRetain(&retained, device),
                          "cuDevicePrimaryCtxRetain for device " + std::to_string(ordinal)));
  auto made = std::make_shared<Context>(driver, device, retained, true);
  REFRAIN_TRY(made->ask_capability());
  return made;
}

Result<std::shared_ptr<Context>> Context::adopt(const Driver& driver, CUcontext context) {
  const DriverApi& api = driver.api();
  REFRAIN_TRY(cuda::check(api.cuCtxPushCurrent_v2(context), "cuCtxPushCurrent"));
  CUdevice device = 0;
  const Result<void> asked = cuda::check(api.cuCtxGetDevice(&device), "cuCtxGetDevice");
  CUcontext popped = nullptr;
  REFRAIN_TRY(cuda::check(api.cuCtxPopCurrent_v2(&popped), "cuCtxPopCurrent"));
  REFRAIN_TRY(asked);
  auto made = std::make_shared<Context>(driver, device, context, false);
  REFRAIN_TRY(made->ask_capability());
  return made;
}

Result<void> Context::ask_capability() {
  return check(api().cuDeviceGetAttribute(&compute_major_,
                                          CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device_),
               "cuDeviceGetAttribute");
}

Context::~Context() {
  sweep();
  if (retained_ && !lost()) api().cuDevicePrimaryCtxRelease_v2(device_);
}

Result<CUstream> Context::create_stream(unsigned flags) {
  const Entered here(*this);
  REFRAIN_TRY(here.check(*this));
  CUstream stream = nullptr;
  REFRAIN_TRY(
      check(api().cuStreamCreateWithPriority(&stream, flags, 0), "cuStreamCreateWithPriority"));
  return stream;
}

Result<void> Context::check(CUresult code, const char* call) noexcept {
  if (code == CUDA_SUCCESS) return {};
  const Error error = driver_error(code, call);
  return is_sticky(code) ? lose(error) : error;
}

Error Context::lose(const Error& cause) noexcept {
  Error told(ErrorKind::device_poisoned,
             "The CUDA device is lost, and with it all its memory, because work that was issued to "
             "it has failed. The first call to hear of it came later: " +
                 cause.message() + " (End the process: nothing brings this context back.)");
  const Lock lock(mutex_);
  if (!cause_) cause_ = told;
  lost_.store(true);
  return *cause_;
}

Result<void> Context::alive() const {
  if (!lost()) return {};
  const Lock lock(mutex_);
  return *cause_;
}

Error Context::lost_in_flight() const {
  const Lock lock(mutex_);
  return Error(ErrorKind::device_poisoned,
               "This work was in flight when its device was lost: it is the cause, or has not run, "
               "or its results are gone. " +
                   (cause_ ? cause_->message() : std::string()));
}

void Context::on_lost(std::function<void()> listener) {
  const Lock lock(mutex_);
  listener_ = std::move(listener);
}

void Context::tell() noexcept {
  if (!lost() || told_.exchange(true)) return;
  std::function<void()> listener;
  {
    const Lock lock(mutex_);
    listener = listener_;
  }
  if (listener) listener();
}

Error Entered::in_callback() noexcept {
  return Error(
      ErrorKind::wrong_state,
      "The CUDA device cannot be called inside work of the program's that its driver runs. "
      "(Call it where that work was issued, before or after it.)");
}

bool Context::current() const noexcept {
  CUcontext now = nullptr;
  return api().cuCtxGetCurrent(&now) == CUDA_SUCCESS && now == handle_;
}

void Context::destroy(std::function<void(const DriverApi&)> destroy) noexcept {
  if (lost()) return;  // the books are closed without the driver
  if (!InDriverCallback::here()) {
    const Entered entered(*this);
    if (entered.check(*this).ok()) return destroy(api());
  }
  const Lock lock(mutex_);
  put_off_.push_back(std::move(destroy));
  put_off_any_.store(true, std::memory_order_release);
}

void Context::sweep() noexcept {
  if (!put_off_any_.load(std::memory_order_acquire) || InDriverCallback::here()) return;
  std::vector<std::function<void(const DriverApi&)>> all;
  {
    const Lock lock(mutex_);
    all.swap(put_off_);
    put_off_any_.store(false, std::memory_order_release);
  }
  for (auto& each : all) destroy(std::move(each));
}

}  // namespace refrain::cuda
