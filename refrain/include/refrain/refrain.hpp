// All of refrain: record work on a device, seal it, keep it, replay it.
#pragma once

#include "refrain/device/device.hpp"
#include "refrain/device/event.hpp"
#include "refrain/device/kernel.hpp"
#include "refrain/device/recording.hpp"
#include "refrain/device/stream.hpp"
#include "refrain/host/device.hpp"
#include "refrain/load.hpp"
#include "refrain/replay/compare.hpp"
#include "refrain/replay/instance.hpp"
#include "refrain/replay/plan.hpp"
#include "refrain/serialize/capture_file.hpp"
