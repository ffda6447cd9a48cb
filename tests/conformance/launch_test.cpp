// Launches: how parameters are handed over, what is refused, and functions of the host in a stream.
#include <doctest/doctest.h>

#include <atomic>
#include <cstring>
#include <vector>

#include "fixture.hpp"

using namespace conformance;

namespace {

ManyParams some_values(CUdeviceptr out) {
  ManyParams values;
  values.c = -3;
  values.d = 12345.75;
  values.s = -321;
  for (std::uint32_t i = 0; i < 18; ++i) values.block.words[i] = 1000 + i;
  values.out = out;
  values.three[0] = 1;
  values.three[1] = 2;
  values.three[2] = 3;
  values.four.values[0] = 1.0F;
  values.four.values[3] = -2.0F;
  return values;
}

const std::vector<std::uint32_t> kSomeWords = {0xFFFFFFFDU, 12345,  0xFFFFFEBFU, 1000,
                                               1017,        197121, 0x3F800000U, 0xC0000000U};

/// The arguments of write_word as they lie in its parameter block.
struct WriteWord {
  CUdeviceptr where;
  std::uint32_t value;
};

CUresult launch_shape(CUfunction function, CUdeviceptr where, unsigned grid, unsigned block,
                      unsigned shared = 0) {
  void* parameters[] = {&where, nullptr};
  return api().cuLaunchKernel(function, grid, 1, 1, block, 1, 1, shared, nullptr, parameters,
                              nullptr);
}

CUresult launch_buffer(CUfunction function, CUstream stream, void* bytes, std::size_t size) {
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, bytes, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                   CU_LAUNCH_PARAM_END};
  return api().cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, nullptr, extra);
}

CUlaunchConfig one_thread(CUstream stream) {
  CUlaunchConfig config{};
  config.gridDimX = config.gridDimY = config.gridDimZ = 1;
  config.blockDimX = config.blockDimY = config.blockDimZ = 1;
  config.hStream = stream;
  return config;
}

/// What host functions note when they run.
struct Notes {
  std::atomic<int> runs{0};
  std::uint32_t* watched = nullptr;
  std::uint32_t seen = 0;
  CUresult status = CUDA_ERROR_UNKNOWN;
};

void note(void* user) {
  auto* notes = static_cast<Notes*>(user);
  if (notes->watched != nullptr) notes->seen = *notes->watched;
  ++notes->runs;
}

void note_status(CUstream, CUresult status, void* user) {
  static_cast<Notes*>(user)->status = status;
  note(user);
}

}  // namespace

TEST_CASE_FIXTURE(Primary, "LNCH-01: parameters of every size reach the kernel by pointers [H]") {
  Memory out(kManyWords);
  ManyParams values = some_values(out);
  void* parameters[] = {&values.c,   &values.d,     &values.s,   &values.block,
                        &values.out, &values.three, &values.four};
  REQUIRE_OK(
      api.cuLaunchKernel(kernel("many_params"), 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr));
  CHECK(out.words() == kSomeWords);
}

TEST_CASE_FIXTURE(Primary, "LNCH-02: parameters packed in one buffer are the same [H]") {
  Memory out(kManyWords);
  ManyParams values = some_values(out);
  REQUIRE_OK(launch_buffer(kernel("many_params"), nullptr, &values, sizeof values));
  CHECK(out.words() == kSomeWords);
}

TEST_CASE_FIXTURE(Primary, "LNCH-03: pointers and a buffer at once are refused with 1 [H]") {
  Memory memory;
  WriteWord values{memory, 1};
  void* parameters[] = {&values.where, &values.value};
  std::size_t size = 12;
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &values, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                   CU_LAUNCH_PARAM_END};
  CHECK_CODE(
      api.cuLaunchKernel(kernel("write_word"), 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, extra),
      CUDA_ERROR_INVALID_VALUE);
  CHECK(memory.word() == 0);
}

TEST_CASE_FIXTURE(Primary,
                  "LNCH-04: parameters are copied by the call and may change after it [H]") {
  Stream stream;
  Memory memory;
  std::uint32_t value = 4;
  CUdeviceptr where = memory;
  void* parameters[] = {&where, &value};
  const CUfunction write = kernel("write_word");
  Busy busy(*this, stream);
  REQUIRE_OK(api.cuLaunchKernel(write, 1, 1, 1, 1, 1, 1, 0, stream, parameters, nullptr));
  value = 99;
  where = 0;
  busy.end();
  CHECK(memory.word_after(stream) == 4);
}

TEST_CASE_FIXTURE(Primary, "LNCH-05: every thread of the grid runs once [G]") {
  Memory memory;
  REQUIRE_OK(launch_shape(kernel("add_one"), memory, 7, 96));
  CHECK(memory.word() == 672);
}

TEST_CASE_FIXTURE(Primary,
                  "LNCH-06: a block of more threads than the device has is refused with 1 [N]") {
  Memory memory;
  CHECK_CODE(launch_shape(kernel("add_one"), memory, 1, 2048), CUDA_ERROR_INVALID_VALUE);
  CHECK(memory.word() == 0);
}

TEST_CASE_FIXTURE(Primary, "LNCH-07: a grid or a block of nothing is refused with 1 [N]") {
  Memory memory;
  const CUfunction add = kernel("add_one");
  CHECK_CODE(launch_shape(add, memory, 0, 1), CUDA_ERROR_INVALID_VALUE);
  CHECK_CODE(launch_shape(add, memory, 1, 0), CUDA_ERROR_INVALID_VALUE);
  CHECK(memory.word() == 0);
}

TEST_CASE_FIXTURE(Primary, "LNCH-08: a refused launch leaves the context usable [H]") {
  Memory memory;
  const CUfunction add = kernel("add_one");
  REQUIRE_CODE(launch_shape(add, memory, 1, 2048), CUDA_ERROR_INVALID_VALUE);
  CHECK_CODE(api.cuCtxSynchronize(), CUDA_SUCCESS);
  CHECK_CODE(launch_shape(add, memory, 1, 1), CUDA_SUCCESS);
  CHECK(memory.word() == 1);
}

TEST_CASE_FIXTURE(Primary,
                  "LNCH-09: what too much shared memory and a large grid are answered with [?]") {
  Memory memory;
  const CUfunction add = kernel("add_one");
  observe("1 GiB of shared memory", launch_shape(add, memory, 1, 1, 1U << 30U));
  CUdeviceptr where = memory;
  void* parameters[] = {&where};
  observe("a grid of 65536 in y",
          api.cuLaunchKernel(add, 1, 65536, 1, 1, 1, 1, 0, nullptr, parameters, nullptr));
}

TEST_CASE_FIXTURE(Primary, "LNCH-10: which sizes of a parameter buffer are taken [?]") {
  Memory memory;
  const CUfunction write = kernel("write_word");
  WriteWord values{memory, 1};
  for (const std::size_t size : {std::size_t{12}, std::size_t{13}, sizeof values}) {
    observe("a buffer of " + std::to_string(size) + " for 12 bytes of parameters",
            launch_buffer(write, nullptr, &values, size));
  }
  observe("a buffer of 8 for 12 bytes of parameters", launch_buffer(write, nullptr, &values, 8));
}

TEST_CASE_FIXTURE(Primary,
                  "LNCH-11: a kernel of a library is launched in place of a function [H]") {
  CUlibrary library = nullptr;
  REQUIRE_OK(
      api.cuLibraryLoadData(&library, kernel_image(), nullptr, nullptr, 0, nullptr, nullptr, 0));
  CUkernel write = nullptr;
  REQUIRE_OK(api.cuLibraryGetKernel(&write, library, "write_word"));
  Stream stream;
  Memory memory;
  CHECK_CODE(launch(reinterpret_cast<CUfunction>(write), stream, memory.get(), std::uint32_t{11}),
             CUDA_SUCCESS);
  CHECK(memory.word_after(stream) == 11);
  CHECK_CODE(api.cuLibraryUnload(library), CUDA_SUCCESS);
}

TEST_CASE_FIXTURE(Primary, "LNCH-12: cuLaunchKernelEx without attributes is cuLaunchKernel [H]") {
  Stream stream;
  Memory memory;
  CUdeviceptr where = memory;
  std::uint32_t value = 12;
  void* parameters[] = {&where, &value};
  const CUlaunchConfig config = one_thread(stream);
  CHECK_CODE(api.cuLaunchKernelEx(&config, kernel("write_word"), parameters, nullptr),
             CUDA_SUCCESS);
  CHECK(memory.word_after(stream) == 12);
}

TEST_CASE_FIXTURE(Primary,
                  "LNCH-13: cuLaunchKernelEx takes a priority and an ignored attribute [H]") {
  Stream stream;
  Memory memory;
  CUdeviceptr where = memory;
  std::uint32_t value = 13;
  void* parameters[] = {&where, &value};
  CUlaunchAttribute attributes[2]{};
  attributes[0].id = CU_LAUNCH_ATTRIBUTE_PRIORITY;
  REQUIRE_OK(api.cuCtxGetStreamPriorityRange(nullptr, &attributes[0].value.priority));
  attributes[1].id = CU_LAUNCH_ATTRIBUTE_IGNORE;
  CUlaunchConfig config = one_thread(stream);
  config.attrs = attributes;
  config.numAttrs = 2;
  CHECK_CODE(api.cuLaunchKernelEx(&config, kernel("write_word"), parameters, nullptr),
             CUDA_SUCCESS);
  CHECK(memory.word_after(stream) == 13);
}

TEST_CASE_FIXTURE(Primary, "LNCH-14: a host function runs once after the work before it [H]") {
  Stream stream;
  Memory memory;
  Pinned copy;
  Notes notes;
  notes.watched = copy;
  const CUfunction write = kernel("write_word");
  Busy busy(*this, stream);
  REQUIRE_OK(launch(write, stream, memory.get(), std::uint32_t{14}));
  REQUIRE_OK(api.cuMemcpyDtoHAsync_v2(copy.get(), memory, 4, stream));
  REQUIRE_OK(api.cuLaunchHostFunc(stream, note, &notes));
  CHECK(notes.runs == 0);
  busy.end();
  REQUIRE_OK(api.cuStreamSynchronize(stream));
  CHECK(notes.runs == 1);
  CHECK(notes.seen == 14);
}

TEST_CASE_FIXTURE(Primary, "LNCH-15: work after a host function waits for it [H]") {
  Stream stream;
  Pinned word;
  Memory memory;
  REQUIRE_OK(api.cuLaunchHostFunc(
      stream, [](void* user) { *static_cast<std::uint32_t*>(user) = 15; }, word.get()));
  REQUIRE_OK(api.cuMemcpyHtoDAsync_v2(memory, word.get(), 4, stream));
  CHECK(memory.word_after(stream) == 15);
}

TEST_CASE_FIXTURE(Primary,
                  "LNCH-16: a callback runs once with success after the work before it [H]") {
  Stream stream;
  Memory memory;
  Pinned copy;
  Notes notes;
  notes.watched = copy;
  REQUIRE_OK(launch(kernel("write_word"), stream, memory.get(), std::uint32_t{16}));
  REQUIRE_OK(api.cuMemcpyDtoHAsync_v2(copy.get(), memory, 4, stream));
  REQUIRE_OK(api.cuStreamAddCallback(stream, note_status, &notes, 0));
  REQUIRE_OK(api.cuStreamSynchronize(stream));
  CHECK(notes.runs == 1);
  CHECK(notes.status == CUDA_SUCCESS);
  CHECK(notes.seen == 16);
}

TEST_CASE_FIXTURE(Primary,
                  "LNCH-17: a callback takes no flags and a host function must be there [N]") {
  Stream stream;
  Notes notes;
  CHECK_CODE(api.cuStreamAddCallback(stream, note_status, &notes, 1), CUDA_ERROR_INVALID_VALUE);
  CHECK_CODE(api.cuLaunchHostFunc(stream, nullptr, &notes), CUDA_ERROR_INVALID_VALUE);
  REQUIRE_OK(api.cuStreamSynchronize(stream));
  CHECK(notes.runs == 0);
}

TEST_CASE_FIXTURE(Primary, "LNCH-18: host functions of a stream run in their order [H]") {
  Stream stream;
  std::vector<int> order;
  struct Step {
    std::vector<int>* order;
    int number;
  };
  std::vector<Step> steps;
  for (int i = 0; i < 8; ++i) steps.push_back({&order, i});
  const auto run = [](void* user) {
    auto* step = static_cast<Step*>(user);
    step->order->push_back(step->number);
  };
  for (Step& step : steps) REQUIRE_OK(api.cuLaunchHostFunc(stream, run, &step));
  REQUIRE_OK(api.cuStreamSynchronize(stream));
  CHECK(order == std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7});
}

TEST_CASE_FIXTURE(Primary, "LNCH-19: a cooperative launch runs every thread of its grid [H]") {
  if (device_attribute(device, CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH) == 0) {
    SKIP_CASE("the device has no cooperative launch");
  }
  Stream stream;
  Memory memory;
  CUdeviceptr where = memory;
  void* parameters[] = {&where};
  CHECK_CODE(
      api.cuLaunchCooperativeKernel(kernel("add_one"), 2, 1, 1, 32, 1, 1, 0, stream, parameters),
      CUDA_SUCCESS);
  CHECK(memory.word_after(stream) == 64);
}
