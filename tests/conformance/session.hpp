// The one driver that a run of the suite talks to: the simulation, or a real libcuda, as
// REFRAIN_CUDA_DRIVER or the system says. It is opened when a run starts and not before, so that
// listing the cases needs no driver.
#pragma once

#include <cstdlib>

#include "driver_api.hpp"
#include "support/simcuda/control.hpp"

namespace conformance {

/// What CTest is told when there is nothing to run over.
inline constexpr int kNothingToRunOver = 77;

/// Opens the driver. Ends the process with 77 and a line "skipped: why" where there is none, a
/// stub, one too old, or no GPU, and with 1 where the driver refuses in another way.
void open_session();

/// The driver's functions.
const refrain::cuda::DriverApi& api();

/// The controls of the simulation; null over a real driver.
const sim::Control* control();

inline bool simulated() { return control() != nullptr; }

}  // namespace conformance
