// How a function leaves the simulated driver's library: under C's name, and seen from outside,
// which nothing else of it is.
#pragma once

#define SIM_API extern "C" __attribute__((visibility("default")))
