// Streams: what they are made of, their order, and what the legacy stream orders.
#include <doctest/doctest.h>

#include "fixture.hpp"

using namespace conformance;

namespace {

struct Priorities {
  int least = 0;
  int greatest = 0;
  Priorities() { REQUIRE_OK(api().cuCtxGetStreamPriorityRange(&least, &greatest)); }
};

/// The priority that a stream made with `asked` has.
int priority_of(int asked) {
  CUstream stream = nullptr;
  REQUIRE_OK(api().cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, asked));
  int priority = -1000;
  REQUIRE_OK(api().cuStreamGetPriority(stream, &priority));
  REQUIRE_OK(api().cuStreamDestroy_v2(stream));
  return priority;
}

unsigned long long id_of(CUstream stream) {
  unsigned long long id = 0;
  REQUIRE_OK(api().cuStreamGetId(stream, &id));
  return id;
}

CUresult copy_word(CUdeviceptr to, CUdeviceptr from, CUstream stream) {
  return api().cuMemcpyDtoDAsync_v2(to, from, sizeof(std::uint32_t), stream);
}

}  // namespace

TEST_CASE_FIXTURE(Primary, "STR-01: a stream keeps the flags that it was made with [H]") {
  for (const unsigned asked : {CU_STREAM_DEFAULT, CU_STREAM_NON_BLOCKING}) {
    Stream stream(asked);
    unsigned flags = 99;
    CHECK_CODE(api.cuStreamGetFlags(stream, &flags), CUDA_SUCCESS);
    CHECK(flags == asked);
  }
}

TEST_CASE_FIXTURE(
    Primary, "STR-02: flags that are none and no place for the stream are refused with 1 [H]") {
  CUstream stream = nullptr;
  CHECK_CODE(api.cuStreamCreate(&stream, 0x80), CUDA_ERROR_INVALID_VALUE);
  CHECK_CODE(api.cuStreamCreate(nullptr, 0), CUDA_ERROR_INVALID_VALUE);
  CHECK_CODE(api.cuStreamCreateWithPriority(&stream, 0x80, 0), CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE_FIXTURE(Primary,
                  "STR-03: a stream is not ready while its work runs and ready after it [H]") {
  Stream stream;
  Memory memory;
  const CUfunction write = kernel("write_word");
  CHECK_CODE(api.cuStreamQuery(stream), CUDA_SUCCESS);
  Busy busy(*this, stream);
  REQUIRE_OK(launch(write, stream, memory.get(), std::uint32_t{1}));
  CHECK_CODE(api.cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
  busy.end();
  CHECK_CODE(api.cuStreamSynchronize(stream), CUDA_SUCCESS);
  CHECK_CODE(api.cuStreamQuery(stream), CUDA_SUCCESS);
}

TEST_CASE_FIXTURE(Primary, "STR-04: a query that is not ready is no error of the stream [H]") {
  Stream stream;
  Memory memory;
  const CUfunction write = kernel("write_word");
  const CUfunction add = kernel("add_one");
  Busy busy(*this, stream);
  REQUIRE_OK(launch(write, stream, memory.get(), std::uint32_t{3}));
  CHECK_CODE(api.cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
  CHECK_CODE(launch(add, stream, memory.get()), CUDA_SUCCESS);
  busy.end();
  CHECK(memory.word_after(stream) == 4);
}

TEST_CASE_FIXTURE(Primary, "STR-05: after a synchronise all work of the stream has ended [H]") {
  Stream stream;
  Memory memory;
  Pinned copy;
  const CUfunction write = kernel("write_word");
  Busy busy(*this, stream);
  REQUIRE_OK(launch(write, stream, memory.get(), std::uint32_t{5}));
  REQUIRE_OK(api.cuMemcpyDtoHAsync_v2(copy.get(), memory, 4, stream));
  busy.end();
  REQUIRE_OK(api.cuStreamSynchronize(stream));
  CHECK(copy[0] == 5);
}

TEST_CASE_FIXTURE(Primary,
                  "STR-06: work of one stream runs in the order that it was issued in [G]") {
  Stream stream;
  Memory memory(2);
  const CUfunction write = kernel("write_word");
  const CUfunction add = kernel("add_one");
  for (std::uint32_t i = 0; i < 16; ++i) {
    REQUIRE_OK(launch(write, stream, memory.get(), i));
    REQUIRE_OK(launch(add, stream, memory.get()));
  }
  REQUIRE_OK(copy_word(memory.get() + 4, memory, stream));
  REQUIRE_OK(api.cuMemsetD32Async(memory, 99, 1, stream));
  REQUIRE_OK(api.cuStreamSynchronize(stream));
  CHECK(memory.words() == std::vector<std::uint32_t>{99, 16});
}

TEST_CASE_FIXTURE(Primary, "STR-07: a priority outside the range is moved to its end [H]") {
  const Priorities range;
  CHECK(priority_of(range.greatest - 100) == range.greatest);
  CHECK(priority_of(range.least + 100) == range.least);
  for (int asked = range.greatest; asked <= range.least; ++asked) {
    CHECK(priority_of(asked) == asked);
  }
}

TEST_CASE_FIXTURE(Primary, "STR-08: a stream's priority is 0 unless another is asked for [H]") {
  Stream stream;
  int priority = 99;
  CHECK_CODE(api.cuStreamGetPriority(stream, &priority), CUDA_SUCCESS);
  CHECK(priority == 0);
}

TEST_CASE_FIXTURE(Primary, "STR-09: a stream's id is its own for the life of the program [H]") {
  unsigned long long gone = 0;
  {
    Stream stream;
    gone = id_of(stream);
    CHECK(id_of(stream) == gone);
  }
  Stream first;
  Stream second;
  CHECK(id_of(first) != id_of(second));
  CHECK(id_of(first) != gone);
  CHECK(id_of(second) != gone);
  CHECK(id_of(first) != id_of(nullptr));
}

TEST_CASE_FIXTURE(Primary,
                  "STR-10: a stream knows its context and the legacy stream the current one [H]") {
  Stream stream;
  CUcontext of_stream = nullptr;
  CHECK_CODE(api.cuStreamGetCtx(stream, &of_stream), CUDA_SUCCESS);
  CHECK(of_stream == context);
  of_stream = nullptr;
  CHECK_CODE(api.cuStreamGetCtx(nullptr, &of_stream), CUDA_SUCCESS);
  CHECK(of_stream == context);
}

TEST_CASE_FIXTURE(Primary,
                  "STR-11: legacy work waits for the earlier work of a blocking stream [G]") {
  Stream stream(CU_STREAM_DEFAULT);
  Memory memory(2);
  const CUfunction write = kernel("write_word");
  Busy busy(*this, stream);
  REQUIRE_OK(launch(write, stream, memory.get(), std::uint32_t{7}));
  REQUIRE_OK(copy_word(memory.get() + 4, memory, nullptr));
  busy.end();
  CHECK(memory.word(1) == 7);
}

TEST_CASE_FIXTURE(Primary,
                  "STR-12: a blocking stream's work waits for the earlier legacy work [G]") {
  Stream stream(CU_STREAM_DEFAULT);
  Memory memory(2);
  const CUfunction write = kernel("write_word");
  Busy busy(*this, nullptr);
  REQUIRE_OK(launch(write, nullptr, memory.get(), std::uint32_t{9}));
  REQUIRE_OK(copy_word(memory.get() + 4, memory, stream));
  busy.end();
  CHECK(memory.word(1) == 9);
}

TEST_CASE_FIXTURE(Primary,
                  "STR-13: two blocking streams are ordered by legacy work between them [G]") {
  Stream first(CU_STREAM_DEFAULT);
  Stream second(CU_STREAM_DEFAULT);
  Memory memory(2);
  const CUfunction write = kernel("write_word");
  const CUfunction add = kernel("add_one");
  Busy busy(*this, first);
  REQUIRE_OK(launch(write, first, memory.get(), std::uint32_t{11}));
  REQUIRE_OK(launch(add, nullptr, memory.get()));
  REQUIRE_OK(copy_word(memory.get() + 4, memory, second));
  busy.end();
  CHECK(memory.word(1) == 12);
}

TEST_CASE_FIXTURE(Primary, "STR-14: a non-blocking stream does not wait for legacy work [G]") {
  if (simulated()) SKIP_CASE("the simulation is held whole, so no stream of it overtakes another");
  Stream stream;
  Memory memory;
  const CUfunction write = kernel("write_word");
  Busy busy(*this, nullptr);
  REQUIRE_OK(launch(write, stream, memory.get(), std::uint32_t{1}));
  CHECK_CODE(api.cuStreamSynchronize(stream), CUDA_SUCCESS);
  CHECK_CODE(api.cuStreamQuery(nullptr), CUDA_ERROR_NOT_READY);
  busy.end();
}

TEST_CASE_FIXTURE(Primary, "STR-15: legacy work does not wait for a non-blocking stream [G]") {
  if (simulated()) SKIP_CASE("the simulation is held whole, so no stream of it overtakes another");
  Stream stream;
  Memory memory;
  const CUfunction write = kernel("write_word");
  Busy busy(*this, stream);
  REQUIRE_OK(launch(write, nullptr, memory.get(), std::uint32_t{1}));
  CHECK_CODE(api.cuStreamSynchronize(nullptr), CUDA_SUCCESS);
  CHECK_CODE(api.cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
  busy.end();
}

TEST_CASE_FIXTURE(Primary, "STR-16: a stream may be destroyed before its work has ended [H]") {
  Memory memory;
  const CUfunction write = kernel("write_word");
  Stream stream;
  Busy busy(*this, stream);
  REQUIRE_OK(launch(write, stream, memory.get(), std::uint32_t{13}));
  CHECK_CODE(api.cuStreamDestroy_v2(stream.take()), CUDA_SUCCESS);
  busy.end();
  CHECK(memory.word() == 13);
}

TEST_CASE_FIXTURE(Primary, "STR-17: CU_STREAM_LEGACY is the stream that null names [H]") {
  Memory memory(2);
  const CUfunction write = kernel("write_word");
  Busy busy(*this, CU_STREAM_LEGACY);
  REQUIRE_OK(launch(write, CU_STREAM_LEGACY, memory.get(), std::uint32_t{17}));
  REQUIRE_OK(copy_word(memory.get() + 4, memory, nullptr));
  CHECK_CODE(api.cuStreamQuery(nullptr), CUDA_ERROR_NOT_READY);
  busy.end();
  REQUIRE_OK(api.cuStreamSynchronize(nullptr));
  CHECK(memory.word(1) == 17);
  observe("both have the same id", id_of(nullptr) == id_of(CU_STREAM_LEGACY));
}

TEST_CASE_FIXTURE(Primary, "STR-18: a stream's attribute is what was set and can be copied [H]") {
  Stream first;
  Stream second;
  CUstreamAttrValue value{};
  value.syncPolicy = CU_SYNC_POLICY_YIELD;
  CHECK_CODE(api.cuStreamSetAttribute(first, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value),
             CUDA_SUCCESS);
  CHECK_CODE(api.cuStreamCopyAttributes(second, first), CUDA_SUCCESS);
  for (const CUstream stream : {first.get(), second.get()}) {
    CUstreamAttrValue found{};
    CHECK_CODE(api.cuStreamGetAttribute(stream, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY, &found),
               CUDA_SUCCESS);
    CHECK(found.syncPolicy == CU_SYNC_POLICY_YIELD);
  }
}

TEST_CASE_FIXTURE(Primary, "STR-19: what destroying the legacy stream answers [?]") {
  observe("destroy of null", api.cuStreamDestroy_v2(nullptr));
  observe("destroy of CU_STREAM_LEGACY", api.cuStreamDestroy_v2(CU_STREAM_LEGACY));
}

TEST_CASE_FIXTURE(Primary,
                  "STR-20: whether an empty blocking stream is ready while legacy work runs [?]") {
  Stream stream(CU_STREAM_DEFAULT);
  Memory memory;
  const CUfunction write = kernel("write_word");
  Busy busy(*this, nullptr);
  REQUIRE_OK(launch(write, nullptr, memory.get(), std::uint32_t{1}));
  observe("query", api.cuStreamQuery(stream));
  busy.end();
}
