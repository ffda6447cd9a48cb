// Copies and fills: directions, shapes, pitches, widths, and what the host may rely on afterwards.
#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "fixture.hpp"

using namespace conformance;

namespace {

using Bytes = std::vector<unsigned char>;

/// 0, 1, 2 ...
Bytes counting(std::size_t size) {
  Bytes bytes(size);
  std::iota(bytes.begin(), bytes.end(), static_cast<unsigned char>(0));
  return bytes;
}

Bytes read(CUdeviceptr from, std::size_t size) {
  Bytes bytes(size, 0xEE);
  REQUIRE_OK(api().cuCtxSynchronize());
  REQUIRE_OK(api().cuMemcpyDtoH_v2(bytes.data(), from, size));
  return bytes;
}

/// Rows of `width` bytes from the host to the device.
CUDA_MEMCPY2D rows(const Bytes& from, std::size_t from_pitch, CUdeviceptr to, std::size_t to_pitch,
                   std::size_t width, std::size_t height) {
  CUDA_MEMCPY2D copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = from.data();
  copy.srcPitch = from_pitch;
  copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.dstDevice = to;
  copy.dstPitch = to_pitch;
  copy.WidthInBytes = width;
  copy.Height = height;
  return copy;
}

}  // namespace

TEST_CASE_FIXTURE(Primary, "MEM-30: bytes go to the device and from it unchanged [H]") {
  Memory memory(64);
  const Bytes sent = counting(256);
  CHECK_CODE(api.cuMemcpyHtoD_v2(memory, sent.data(), sent.size()), CUDA_SUCCESS);
  CHECK(read(memory, 256) == sent);
}

TEST_CASE_FIXTURE(Primary, "MEM-31: a copy within the device may begin and end anywhere [H]") {
  Memory from(64);
  Memory to(64);
  const Bytes sent = counting(256);
  REQUIRE_OK(api.cuMemcpyHtoD_v2(from, sent.data(), sent.size()));
  CHECK_CODE(api.cuMemcpyDtoDAsync_v2(to.get() + 3, from.get() + 5, 101, nullptr), CUDA_SUCCESS);
  Bytes expected(256, 0);
  std::copy_n(sent.begin() + 5, 101, expected.begin() + 3);
  CHECK(read(to, 256) == expected);
}

TEST_CASE_FIXTURE(Primary, "MEM-32: cuMemcpy finds out by itself where each pointer is [H]") {
  Memory memory;
  Pinned from;
  Pinned to;
  from[0] = 32;
  CHECK_CODE(api.cuMemcpy(memory, reinterpret_cast<CUdeviceptr>(from.get()), 4), CUDA_SUCCESS);
  CHECK_CODE(api.cuMemcpy(reinterpret_cast<CUdeviceptr>(to.get()), memory, 4), CUDA_SUCCESS);
  REQUIRE_OK(api.cuCtxSynchronize());
  CHECK(to[0] == 32);
}

TEST_CASE_FIXTURE(Primary, "MEM-33: cuMemcpyAsync is ordered with the work of its stream [H]") {
  Stream stream;
  Memory memory(2);
  REQUIRE_OK(launch(kernel("write_word"), stream, memory.get(), std::uint32_t{33}));
  CHECK_CODE(api.cuMemcpyAsync(memory.get() + 4, memory, 4, stream), CUDA_SUCCESS);
  REQUIRE_OK(api.cuStreamSynchronize(stream));
  CHECK(memory.word(1) == 33);
}

TEST_CASE_FIXTURE(
    Primary, "MEM-34: pageable memory may change when an asynchronous copy from it returns [G]") {
  Stream stream;
  Memory memory(64);
  const Bytes expected = counting(256);
  Bytes sent = expected;
  REQUIRE_OK(api.cuMemcpyHtoDAsync_v2(memory, sent.data(), sent.size(), stream));
  std::fill(sent.begin(), sent.end(), static_cast<unsigned char>(0));
  REQUIRE_OK(api.cuStreamSynchronize(stream));
  CHECK(read(memory, 256) == expected);
}

TEST_CASE_FIXTURE(
    Primary,
    "MEM-35: a copy to pageable memory is complete when the asynchronous call returns [G]") {
  Stream stream;
  Memory memory;
  std::uint32_t value = 0;
  REQUIRE_OK(launch(kernel("write_word"), stream, memory.get(), std::uint32_t{35}));
  REQUIRE_OK(api.cuMemcpyDtoHAsync_v2(&value, memory, 4, stream));
  CHECK(value == 35);
}

TEST_CASE_FIXTURE(Primary, "MEM-36: a copy to page-locked memory does not wait [G]") {
  Stream stream;
  Memory memory;
  Pinned pinned;
  const CUfunction write = kernel("write_word");
  Busy busy(*this, stream);
  REQUIRE_OK(launch(write, stream, memory.get(), std::uint32_t{36}));
  CHECK_CODE(api.cuMemcpyDtoHAsync_v2(pinned.get(), memory, 4, stream), CUDA_SUCCESS);
  CHECK_CODE(api.cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
  busy.end();
  REQUIRE_OK(api.cuStreamSynchronize(stream));
  CHECK(pinned[0] == 36);
}

TEST_CASE_FIXTURE(Primary,
                  "MEM-37: a copy in two dimensions keeps each side's pitch and offset [H]") {
  Stream stream;
  Memory memory(64);
  const Bytes sent = counting(100);
  CUDA_MEMCPY2D copy = rows(sent, 10, memory, 32, 4, 5);
  copy.srcXInBytes = 3;
  copy.srcY = 2;
  copy.dstXInBytes = 8;
  copy.dstY = 1;
  CHECK_CODE(api.cuMemcpy2DAsync_v2(&copy, stream), CUDA_SUCCESS);
  REQUIRE_OK(api.cuStreamSynchronize(stream));
  Bytes expected(256, 0);
  for (std::size_t row = 0; row < 5; ++row) {
    for (std::size_t i = 0; i < 4; ++i) {
      expected[(row + 1) * 32 + 8 + i] = sent[(row + 2) * 10 + 3 + i];
    }
  }
  CHECK(read(memory, 256) == expected);
}

TEST_CASE_FIXTURE(Primary, "MEM-38: a pitch shorter than its row is refused with 1 [H]") {
  Stream stream;
  Memory memory(64);
  const Bytes sent = counting(100);
  CUDA_MEMCPY2D copy = rows(sent, 10, memory, 32, 11, 2);
  CHECK_CODE(api.cuMemcpy2DAsync_v2(&copy, stream), CUDA_ERROR_INVALID_VALUE);
  copy = rows(sent, 20, memory, 10, 11, 2);
  CHECK_CODE(api.cuMemcpy2DAsync_v2(&copy, stream), CUDA_ERROR_INVALID_VALUE);
  CHECK_CODE(api.cuStreamSynchronize(stream), CUDA_SUCCESS);
}

TEST_CASE_FIXTURE(Primary,
                  "MEM-39: a copy in three dimensions goes row by row and slice by slice [H]") {
  Stream stream;
  Memory memory(64);
  const Bytes sent = counting(2 * 4 * 8);
  CUDA_MEMCPY3D copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = sent.data();
  copy.srcPitch = 8;
  copy.srcHeight = 4;
  copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.dstDevice = memory;
  copy.dstPitch = 16;
  copy.dstHeight = 5;
  copy.WidthInBytes = 6;
  copy.Height = 3;
  copy.Depth = 2;
  CHECK_CODE(api.cuMemcpy3DAsync_v2(&copy, stream), CUDA_SUCCESS);
  REQUIRE_OK(api.cuStreamSynchronize(stream));
  Bytes expected(256, 0);
  for (std::size_t z = 0; z < 2; ++z) {
    for (std::size_t y = 0; y < 3; ++y) {
      for (std::size_t x = 0; x < 6; ++x) {
        expected[(z * 5 + y) * 16 + x] = sent[(z * 4 + y) * 8 + x];
      }
    }
  }
  CHECK(read(memory, 256) == expected);
}

TEST_CASE_FIXTURE(Primary, "MEM-40: what copies and fills of nothing answer [?]") {
  Stream stream;
  Memory memory(8);
  const Bytes sent = counting(32);
  observe("host to device of 0 bytes", api.cuMemcpyHtoDAsync_v2(memory, sent.data(), 0, stream));
  observe("device to device of 0 bytes",
          api.cuMemcpyDtoDAsync_v2(memory, memory.get() + 16, 0, stream));
  observe("host to device of 0 bytes at null", api.cuMemcpyHtoDAsync_v2(0, nullptr, 0, stream));
  CUDA_MEMCPY2D flat = rows(sent, 8, memory, 8, 0, 2);
  observe("2D of width 0", api.cuMemcpy2DAsync_v2(&flat, stream));
  flat = rows(sent, 8, memory, 8, 4, 0);
  observe("2D of height 0", api.cuMemcpy2DAsync_v2(&flat, stream));
  CUDA_MEMCPY3D deep{};
  deep.srcMemoryType = deep.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  deep.srcDevice = deep.dstDevice = memory;
  deep.srcPitch = deep.dstPitch = deep.WidthInBytes = 4;
  deep.srcHeight = deep.dstHeight = deep.Height = 1;
  observe("3D of depth 0", api.cuMemcpy3DAsync_v2(&deep, stream));
  observe("fill of 0 words", api.cuMemsetD32Async(memory, 1, 0, stream));
  observe("2D fill of width 0", api.cuMemsetD2D32Async(memory, 16, 1, 0, 2, stream));
  observe("stream afterwards", api.cuStreamSynchronize(stream));
}

TEST_CASE_FIXTURE(Primary, "MEM-41: fills write values of one and two and four bytes [H]") {
  Stream stream;
  Memory memory(3);
  CHECK_CODE(api.cuMemsetD8Async(memory.get() + 1, 0xAB, 2, stream), CUDA_SUCCESS);
  CHECK_CODE(api.cuMemsetD16Async(memory.get() + 4, 0x1234, 1, stream), CUDA_SUCCESS);
  CHECK_CODE(api.cuMemsetD32Async(memory.get() + 8, 0xDEADBEEF, 1, stream), CUDA_SUCCESS);
  REQUIRE_OK(api.cuStreamSynchronize(stream));
  CHECK(memory.words() == std::vector<std::uint32_t>{0x00ABAB00, 0x1234, 0xDEADBEEF});
}

TEST_CASE_FIXTURE(Primary,
                  "MEM-42: a fill that is not aligned to its width is refused with 1 [H]") {
  Stream stream;
  Memory memory(4);
  CHECK_CODE(api.cuMemsetD16Async(memory.get() + 1, 1, 1, stream), CUDA_ERROR_INVALID_VALUE);
  CHECK_CODE(api.cuMemsetD32Async(memory.get() + 2, 1, 1, stream), CUDA_ERROR_INVALID_VALUE);
  CHECK_CODE(api.cuMemsetD2D32Async(memory.get() + 2, 8, 1, 1, 1, stream),
             CUDA_ERROR_INVALID_VALUE);
  REQUIRE_OK(api.cuStreamSynchronize(stream));
  CHECK(memory.words() == std::vector<std::uint32_t>(4, 0));
}

TEST_CASE_FIXTURE(Primary, "MEM-43: fills in two dimensions leave what lies between the rows [H]") {
  Stream stream;
  Memory memory(12);
  CHECK_CODE(api.cuMemsetD2D32Async(memory, 16, 7, 2, 3, stream), CUDA_SUCCESS);
  CHECK_CODE(api.cuMemsetD2D16Async(memory.get() + 8, 16, 3, 1, 2, stream), CUDA_SUCCESS);
  CHECK_CODE(api.cuMemsetD2D8Async(memory.get() + 12, 16, 1, 4, 1, stream), CUDA_SUCCESS);
  REQUIRE_OK(api.cuStreamSynchronize(stream));
  CHECK(memory.words() == std::vector<std::uint32_t>{7, 7, 3, 0x01010101, 7, 7, 3, 0, 7, 7, 0, 0});
}

TEST_CASE_FIXTURE(Primary, "MEM-44: a copy between devices works within one [H]") {
  Stream stream;
  Memory memory(2);
  REQUIRE_OK(api.cuMemsetD32Async(memory, 45, 1, stream));
  CHECK_CODE(api.cuMemcpyPeerAsync(memory.get() + 4, context, memory, context, 4, stream),
             CUDA_SUCCESS);
  REQUIRE_OK(api.cuStreamSynchronize(stream));
  CHECK(memory.word(1) == 45);
}

TEST_CASE_FIXTURE(Primary,
                  "MEM-45: a synchronous copy to the host waits for legacy and blocking work [G]") {
  Stream stream(CU_STREAM_DEFAULT);
  Memory memory;
  REQUIRE_OK(launch(kernel("write_word"), stream, memory.get(), std::uint32_t{46}));
  std::uint32_t value = 0;
  CHECK_CODE(api.cuMemcpyDtoH_v2(&value, memory, 4), CUDA_SUCCESS);
  CHECK(value == 46);
}
