#include "session.hpp"

#include <cstdio>
#include <cstdlib>
#include <optional>

#include "kernels.hpp"
#include "refrain/cuda/driver.hpp"

namespace conformance {
namespace {

struct Session {
  refrain::cuda::Driver driver;
  const sim::Control* control;
};

std::optional<Session>& session() {
  static std::optional<Session> opened;
  return opened;
}

bool nothing_to_run_over(refrain::ErrorKind kind) {
  using refrain::ErrorKind;
  return kind == ErrorKind::driver_missing || kind == ErrorKind::driver_stub ||
         kind == ErrorKind::driver_too_old || kind == ErrorKind::no_gpu;
}

}  // namespace

void open_session() {
  auto opened = refrain::cuda::Driver::open();
  if (!opened) {
    const bool skipped = nothing_to_run_over(opened.error().kind());
    std::printf("%s: %s\n", skipped ? "skipped" : "refused", opened.error().message().c_str());
    std::exit(skipped ? kNothingToRunOver : 1);
  }
  const std::string& library = opened->library();
  session().emplace(Session{*opened, sim::control(library.c_str())});
  if (simulated()) register_kernel_bodies(*control());
  std::printf("driver: %s (version %d), %s\n", library.c_str(), opened->version(),
              opened->device_name(0).value().c_str());
  std::fflush(stdout);
}

const refrain::cuda::DriverApi& api() { return session()->driver.api(); }

const sim::Control* control() { return session()->control; }

}  // namespace conformance
