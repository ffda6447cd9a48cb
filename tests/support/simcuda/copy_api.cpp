// Copies between host and device. What an asynchronous one promises depends on the host memory
// (driver API, "API synchronization behavior"): a pageable source has been read when the call
// returns, a pageable destination has been written, and pinned memory is used when the copy runs.
#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "simcuda/capture.hpp"
#include "simcuda/copy_side.hpp"
#include "simcuda/export.hpp"

namespace sim {
namespace {

CUDA_MEMCPY3D flat(std::size_t bytes) {
  CUDA_MEMCPY3D copy{};
  copy.WidthInBytes = bytes;
  copy.Height = 1;
  copy.Depth = 1;
  copy.srcPitch = copy.dstPitch = bytes;
  copy.srcHeight = copy.dstHeight = 1;
  return copy;
}

CUDA_MEMCPY3D from_host(CUdeviceptr to, const void* from, std::size_t bytes) {
  CUDA_MEMCPY3D copy = flat(bytes);
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = from;
  copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.dstDevice = to;
  return copy;
}

CUDA_MEMCPY3D to_host(void* to, CUdeviceptr from, std::size_t bytes) {
  CUDA_MEMCPY3D copy = flat(bytes);
  copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = from;
  copy.dstMemoryType = CU_MEMORYTYPE_HOST;
  copy.dstHost = to;
  return copy;
}

CUDA_MEMCPY3D between(CUmemorytype type, CUdeviceptr to, CUdeviceptr from, std::size_t bytes) {
  CUDA_MEMCPY3D copy = flat(bytes);
  copy.srcMemoryType = copy.dstMemoryType = type;
  copy.srcDevice = from;
  copy.dstDevice = to;
  return copy;
}

bool pageable(const Driver& driver, const CopySide& side) {
  return side.type != CU_MEMORYTYPE_DEVICE && !driver.memory.is_device(side.first) &&
         driver.memory.pinned(side.first) == nullptr;
}

/// Whether its last byte has an address at all.
bool wraps(const CUDA_MEMCPY3D& copy, std::size_t pitch, std::size_t height) {
  std::uint64_t rows = 0;
  std::uint64_t bytes = 0;
  return __builtin_mul_overflow(copy.Depth - 1, height, &rows) ||
         __builtin_add_overflow(rows, copy.Height - 1, &rows) ||
         __builtin_mul_overflow(rows, pitch, &bytes) ||
         __builtin_add_overflow(bytes, copy.WidthInBytes, &bytes) || bytes > Memory::kTotal;
}

/// Whether the driver can know that a side is not all there.
bool is_there(const Driver& driver, const CUDA_MEMCPY3D& copy, const CopySide& side) {
  const auto within = [&](const auto& range) {
    return side.bytes(copy) <= range.second.bytes - (side.first - range.first);
  };
  if (const auto* host = driver.memory.pinned(side.first)) return within(*host);
  if (side.type != CU_MEMORYTYPE_HOST && driver.memory.is_device(side.first)) {
    const auto* block = driver.memory.find(side.first);
    return block != nullptr && within(*block);
  }
  return side.type != CU_MEMORYTYPE_DEVICE && side.first != 0;
}

CUresult check(const Driver& driver, const CUDA_MEMCPY3D& copy) {
  const auto known = [](CUmemorytype type) {
    return type == CU_MEMORYTYPE_HOST || type == CU_MEMORYTYPE_DEVICE ||
           type == CU_MEMORYTYPE_UNIFIED;
  };
  if (copy.srcMemoryType == CU_MEMORYTYPE_ARRAY || copy.dstMemoryType == CU_MEMORYTYPE_ARRAY) {
    return kUnsettled;
  }
  if (!known(copy.srcMemoryType) || !known(copy.dstMemoryType)) return CUDA_ERROR_INVALID_VALUE;
  const bool rows = copy.Height > 1 || copy.Depth > 1;
  if (rows && (copy.srcPitch < copy.WidthInBytes || copy.dstPitch < copy.WidthInBytes)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const bool slices = copy.Depth > 1;
  if (slices && (copy.srcHeight < copy.Height || copy.dstHeight < copy.Height)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (wraps(copy, copy.srcPitch, copy.srcHeight) || wraps(copy, copy.dstPitch, copy.dstHeight)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const bool there =
      is_there(driver, copy, source_of(copy)) && is_there(driver, copy, destination_of(copy));
  return there ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/// A copy whose pageable source is read now.
void enqueue_staged(Driver& driver, Stream& stream, CUDA_MEMCPY3D copy) {
  const CopySide source = source_of(copy);
  const auto staged = std::make_shared<std::vector<std::byte>>(source.bytes(copy));
  std::memcpy(staged->data(), reinterpret_cast<const void*>(source.first),  // NOLINT
              staged->size());
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = staged->data();
  copy.srcXInBytes = copy.srcY = copy.srcZ = 0;
  enqueue(driver, stream, [&driver, staged, copy] { return run_copy(driver, copy); });
}

CUresult issue(Driver& driver, Stream& stream, const CUDA_MEMCPY3D& copy) {
  const bool nothing = copy.WidthInBytes == 0 || copy.Height == 0 || copy.Depth == 0;
  if (nothing && captures(stream)) return kUnsettled;
  if (nothing) return CUDA_SUCCESS;
  if (const CUresult code = check(driver, copy); code != CUDA_SUCCESS) return code;
  const bool planned = this_thread().override_ == Override::no_node;
  const bool staged = !captures(stream) && !planned && pageable(driver, source_of(copy)) &&
                      !driver.has_bug("pageable-copy-late");
  if (staged) {
    if (stream.legacy) {
      const CUresult code = enter_legacy(driver, *stream.context);
      if (code != CUDA_SUCCESS) return code;
    }
    enqueue_staged(driver, stream, copy);
  } else {
    if (driver.has_bug("pageable-copy-late") && !captures(stream)) {
      // Late enough to be seen: whoever overwrites its source does so in this time.
      enqueue(driver, stream, [] {
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
        return CUDA_SUCCESS;
      });
    }
    const CUresult code = submit(driver, stream, CopyWork{copy, &Driver::current()});
    if (code != CUDA_SUCCESS) return code;
  }
  if (captures(stream) || !pageable(driver, destination_of(copy))) return CUDA_SUCCESS;
  return wait_for(driver, *stream.context, stream.last);
}

/// On the legacy stream, back when it is done.
CUresult issue_and_wait(Driver& driver, const CUDA_MEMCPY3D& copy) {
  Stream& legacy = *Driver::current().legacy;
  if (const CUresult code = enter_legacy(driver, *legacy.context); code != CUDA_SUCCESS) {
    return code;
  }
  if (const CUresult code = issue(driver, legacy, copy); code != CUDA_SUCCESS) return code;
  return wait_for(driver, *legacy.context, legacy.last);
}

CUDA_MEMCPY3D widened(const CUDA_MEMCPY2D& from) {
  CUDA_MEMCPY3D copy{};
  copy.srcXInBytes = from.srcXInBytes;
  copy.srcY = from.srcY;
  copy.srcMemoryType = from.srcMemoryType;
  copy.srcHost = from.srcHost;
  copy.srcDevice = from.srcDevice;
  copy.srcArray = from.srcArray;
  copy.srcPitch = from.srcPitch != 0 ? from.srcPitch : from.WidthInBytes;
  copy.srcHeight = from.Height;
  copy.dstXInBytes = from.dstXInBytes;
  copy.dstY = from.dstY;
  copy.dstMemoryType = from.dstMemoryType;
  copy.dstHost = from.dstHost;
  copy.dstDevice = from.dstDevice;
  copy.dstArray = from.dstArray;
  copy.dstPitch = from.dstPitch != 0 ? from.dstPitch : from.WidthInBytes;
  copy.dstHeight = from.Height;
  copy.WidthInBytes = from.WidthInBytes;
  copy.Height = from.Height;
  copy.Depth = 1;
  return copy;
}

}  // namespace
}  // namespace sim

using namespace sim;

SIM_API CUresult CUDAAPI cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount) {
  return call({__func__, dst}, [&](Driver& driver) {
    return issue_and_wait(driver, between(CU_MEMORYTYPE_UNIFIED, dst, src, ByteCount));
  });
}

SIM_API CUresult CUDAAPI cuMemcpyHtoD_v2(CUdeviceptr dstDevice, const void* srcHost,
                                         size_t ByteCount) {
  return call({__func__, dstDevice}, [&](Driver& driver) {
    return issue_and_wait(driver, from_host(dstDevice, srcHost, ByteCount));
  });
}

SIM_API CUresult CUDAAPI cuMemcpyDtoH_v2(void* dstHost, CUdeviceptr srcDevice, size_t ByteCount) {
  return call({__func__, srcDevice}, [&](Driver& driver) {
    return issue_and_wait(driver, to_host(dstHost, srcDevice, ByteCount));
  });
}

SIM_API CUresult CUDAAPI cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount,
                                       CUstream hStream) {
  return call({__func__, hStream}, [&](Driver& driver) {
    return issue(driver, stream_of(driver, hStream),
                 between(CU_MEMORYTYPE_UNIFIED, dst, src, ByteCount));
  });
}

SIM_API CUresult CUDAAPI cuMemcpyHtoDAsync_v2(CUdeviceptr dstDevice, const void* srcHost,
                                              size_t ByteCount, CUstream hStream) {
  return call({__func__, hStream}, [&](Driver& driver) {
    return issue(driver, stream_of(driver, hStream), from_host(dstDevice, srcHost, ByteCount));
  });
}

SIM_API CUresult CUDAAPI cuMemcpyDtoHAsync_v2(void* dstHost, CUdeviceptr srcDevice,
                                              size_t ByteCount, CUstream hStream) {
  return call({__func__, hStream}, [&](Driver& driver) {
    return issue(driver, stream_of(driver, hStream), to_host(dstHost, srcDevice, ByteCount));
  });
}

SIM_API CUresult CUDAAPI cuMemcpyDtoDAsync_v2(CUdeviceptr dstDevice, CUdeviceptr srcDevice,
                                              size_t ByteCount, CUstream hStream) {
  return call({__func__, hStream}, [&](Driver& driver) {
    return issue(driver, stream_of(driver, hStream),
                 between(CU_MEMORYTYPE_DEVICE, dstDevice, srcDevice, ByteCount));
  });
}

SIM_API CUresult CUDAAPI cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D* pCopy, CUstream hStream) {
  return call({__func__, hStream}, [&](Driver& driver) -> CUresult {
    if (pCopy == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return issue(driver, stream_of(driver, hStream), widened(*pCopy));
  });
}

SIM_API CUresult CUDAAPI cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D* pCopy, CUstream hStream) {
  return call({__func__, hStream}, [&](Driver& driver) -> CUresult {
    if (pCopy == nullptr) return CUDA_ERROR_INVALID_VALUE;
    CUDA_MEMCPY3D copy = *pCopy;
    if (copy.srcPitch == 0) copy.srcPitch = copy.WidthInBytes;
    if (copy.dstPitch == 0) copy.dstPitch = copy.WidthInBytes;
    if (copy.srcHeight == 0) copy.srcHeight = copy.Height;
    if (copy.dstHeight == 0) copy.dstHeight = copy.Height;
    return issue(driver, stream_of(driver, hStream), copy);
  });
}

SIM_API CUresult CUDAAPI cuMemcpyPeerAsync(CUdeviceptr dstDevice, CUcontext dstContext,
                                           CUdeviceptr srcDevice, CUcontext srcContext,
                                           size_t ByteCount, CUstream hStream) {
  return call({__func__, hStream}, [&](Driver& driver) -> CUresult {
    static_cast<void>(find<Context>(dstContext, this_thread().function));
    static_cast<void>(find<Context>(srcContext, this_thread().function));
    Stream& stream = stream_of(driver, hStream);
    if (captures(stream)) return kUnsettled;
    return issue(driver, stream, between(CU_MEMORYTYPE_DEVICE, dstDevice, srcDevice, ByteCount));
  });
}
