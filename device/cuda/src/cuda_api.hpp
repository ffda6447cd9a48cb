// The one place that includes CUDA's headers: in their internal view, where no macro gives a name
// of the driver another version's meaning.
#pragma once

#ifndef __CUDA_API_VERSION_INTERNAL
#define __CUDA_API_VERSION_INTERNAL 1
#endif
#include <cuda.h>
#include <cudaTypedefs.h>

#if CUDA_VERSION < 12040
#error "refrain needs the headers of CUDA 12.4 or newer"
#endif
