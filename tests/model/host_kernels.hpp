// The kernels of random programs, for a host device.
#pragma once

#include <cstdint>

#include "model/kernels.hpp"
#include "model/turnstile.hpp"
#include "refrain/host/device.hpp"

namespace refrain::model {

using U8 = std::uint8_t;
using Make = refrain::Kernel<Out<U8>, std::uint32_t>;
using Map = refrain::Kernel<In<U8>, Out<U8>, std::uint32_t>;
using Update = refrain::Kernel<InOut<U8>, std::uint32_t>;
using Join = refrain::Kernel<In<U8>, In<U8>, Out<U8>, std::uint32_t>;
using Split = refrain::Kernel<In<U8>, Out<U8>, Out<U8>, std::uint32_t>;
using Look = refrain::Kernel<In<U8>, std::uint32_t>;
using Say = refrain::Kernel<std::uint32_t>;

/// Registers them. One that fails on a worker waits for its turn at `turnstile`.
void register_all(host::KernelRegistry& kernels, Turnstile& turnstile);

}  // namespace refrain::model
