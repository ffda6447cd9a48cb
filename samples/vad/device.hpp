// The device that the model runs on, by its name on a command line.
#pragma once

#include <string>

#include "refrain/refrain.hpp"

namespace vad {

/// "host", or "cuda" for the first GPU, with the kernels of the model. Refuses another name, and a
/// GPU where there is none or the program was built without one.
refrain::Result<refrain::Device> open_device(const std::string& name);

}  // namespace vad
