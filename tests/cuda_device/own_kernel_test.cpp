// Kernels that the program has by itself, as those of the CUDA runtime are.
#include "own_library.hpp"
#include "temporary_folder.hpp"

namespace refrain::test {
namespace {

/// The graph of one launch of `map`.
SealedGraph record(Stream& stream, const Map& map, const Buffer<float>& x, const Buffer<float>& y) {
  OpenWindow window = stream.record().value();
  stream.launch(map, grid(Gpu::kCount), x, y, Gpu::kCount);
  return window.seal().value().graph();
}

}  // namespace

TEST_CASE("cuda: a kernel of the program's own runs at once and in graphs of this process") {
  const Gpu gpu;
  const OwnLibrary library(gpu);
  Stream stream = gpu.stream();
  const Buffer<float> x = gpu.filled(stream, "x", 1, Role::input);
  const Buffer<float> y = gpu.buffer("y", Role::output);
  const Map map = gpu.device->kernel_of<Map>(library.kernel("map"), "app.plus_one").value();
  CHECK(stream.launch(map, grid(Gpu::kCount), x, y, Gpu::kCount).executed_cleanly());
  CHECK(stream.read(y).value() == all(2));
  const SealedGraph graph = record(stream, map, x, y);
  gpu.control->clear_journal();
  Instance step = Plan::prepare(*gpu.device, graph).value().instance().value();
  CHECK(gpu.control->calls("cuLibraryLoadData") == 0);
  const Buffer<float> other = gpu.filled(stream, "other", 6);
  for (const Buffer<float>* const in : {&x, &other}) {
    REQUIRE(step.bind("x", *in).ok());
    CHECK(step.replay(stream).executed_cleanly());
  }
  CHECK(stream.read(step.view<float>("y").value()).value() == all(7));
}

TEST_CASE("cuda: a graph with a kernel of the program's own is saved once an image has that too") {
  const TemporaryFolder folder;
  const std::string path = folder.file("step.refrain").string();
  const Gpu gpu;
  const OwnLibrary library(gpu);
  Stream stream = gpu.stream();
  const Buffer<float> x = gpu.buffer("x", Role::input);
  const Buffer<float> y = gpu.buffer("y", Role::output);
  const auto saved = [&](const char* name, std::uint32_t version) {
    const Map map = gpu.device->kernel_of<Map>(library.kernel("map"), name, version).value();
    return save(record(stream, map, x, y), path);
  };
  for (const auto& [name, version] : {std::pair("app.plus_one", 1U),  // in no image
                                      std::pair("map", 2U),           // in none of that version
                                      std::pair("update", 1U)}) {     // with other parameters
    const Result<void> refused = saved(name, version);
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.error().kind() == ErrorKind::not_portable);
    const std::string text = refused.error().text();
    CHECK_MESSAGE(text.find("Node 0, \"" + std::string(name) + "\"") != std::string::npos, text);
  }
  REQUIRE(saved("map", 1).ok());  // as the image of the test has it
  const cuda::Device bare = cuda::Device::open({.driver = {REFRAIN_SIMCUDA}}).value();
  const Plan plan = load(bare, path).value();
  Instance step = plan.instance().value();
  Stream there = bare.stream().value();
  there.write(step.view<float>("x").value(), all(1));
  CHECK(step.replay(there).executed_cleanly());
  CHECK(there.read(step.view<float>("y").value()).value() == all(2));
}

TEST_CASE(
    "cuda: the program's own kernel is the one that its graph runs, also where one is saved") {
  const Gpu gpu;
  const OwnLibrary library(gpu);
  Stream stream = gpu.stream();
  const Buffer<float> x = gpu.buffer("x", Role::input);
  const Buffer<float> y = gpu.buffer("y", Role::output);
  gpu.control->clear_journal();
  const Map map = gpu.device->kernel_of<Map>(library.kernel("map"), "map").value();
  const SealedGraph graph = record(stream, map, x, y);
  CHECK(graph.kernels()[0].source.code != nullptr);
  const Instance step = Plan::prepare(*gpu.device, graph).value().instance().value();
  CHECK(gpu.control->calls("cuLibraryLoadData") == 0);
  // Elsewhere it is found by its name.
  const cuda::Device other = cuda::Device::open({.driver = {REFRAIN_SIMCUDA}}).value();
  CHECK(Plan::prepare(other, graph).ok());
  const Map mine = gpu.device->kernel_of<Map>(library.kernel("map"), "mine").value();
  CHECK(Plan::prepare(other, record(stream, mine, x, y)).error().kind() ==
        ErrorKind::kernel_missing);
}

TEST_CASE("cuda: a kernel that is null, no kernel, or has other parameters is refused by name") {
  const Gpu gpu;
  const OwnLibrary library(gpu);
  const Error null = gpu.device->kernel_of<Map>(nullptr, "app.map").error();
  CHECK(null.kind() == ErrorKind::invalid_argument);
  CHECK(null.text().find("\"app.map\"") != std::string::npos);

  const Error other = gpu.device->kernel_of<Map>(library.kernel("join"), "app.map").error();
  CHECK(other.kind() == ErrorKind::kernel_signature);
  CHECK_MESSAGE(other.text().find("(8@0, 8@8, 4@16)") != std::string::npos, other.text());
  CHECK_MESSAGE(other.text().find("(8@0, 8@8, 8@16, 4@24)") != std::string::npos, other.text());

  const cuda::Entrance entered = gpu.device->enter();
  CUfunction function = nullptr;
  REQUIRE(library.api.cuKernelGetFunction(&function, library.kernel("map")) == CUDA_SUCCESS);
  const Error no_kernel = gpu.device->kernel_of<Map>(function, "app.map").error();
  CHECK(no_kernel.kind() == ErrorKind::device_refused);
  CHECK_MESSAGE(no_kernel.text().find("\"app.map\"") != std::string::npos, no_kernel.text());
}

TEST_CASE("C20: a kernel of the program's own is asked for the first time outside of recordings") {
  const Gpu gpu;
  const OwnLibrary library(gpu);
  Stream stream = gpu.stream();
  {
    OpenWindow window = stream.record().value();
    CHECK(gpu.device->kernel_of<Map>(library.kernel("map"), "app.map").error().kind() ==
          ErrorKind::needs_warm_up);
    CHECK_FALSE(window.seal().ok());
  }
  {
    OpenWindow window = stream.record().value();
    CHECK_FALSE(gpu.device->kernel_of<Map>(nullptr, "app.map").ok());
    CHECK_FALSE(window.seal().ok());  // C17
  }
  REQUIRE(gpu.device->kernel_of<Map>(library.kernel("map"), "app.map").ok());
  const Buffer<float> y = gpu.buffer("y");
  OpenWindow window = stream.record().value();
  CHECK(gpu.device->kernel_of<Map>(library.kernel("map"), "app.map").ok());
  stream.fill(y, 1.0F);
  CHECK(window.seal().ok());
}

TEST_CASE("cuda: a limit of shared memory that the program has set for its kernel is not lowered") {
  const Gpu gpu;
  const OwnLibrary library(gpu);
  Stream stream = gpu.stream();
  const Buffer<float> x = gpu.filled(stream, "x", 1);
  {
    const cuda::Entrance entered = gpu.device->enter();
    CUfunction function = nullptr;
    REQUIRE(library.api.cuKernelGetFunction(&function, library.kernel("update")) == CUDA_SUCCESS);
    REQUIRE(library.api.cuFuncSetAttribute(function,
                                           CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                           80 * 1024) == CUDA_SUCCESS);
  }
  const Update update =
      gpu.device->kernel_of<Update>(library.kernel("update"), "app.update").value();
  gpu.control->clear_journal();
  for (const std::uint32_t bytes : {60U * 1024U, 60U * 1024U, 80U * 1024U, 90U * 1024U}) {
    CHECK(stream.launch(update, grid({1, 1, 1}, {64, 1, 1}, bytes), x, Gpu::kCount)
              .executed_cleanly());
  }
  CHECK(gpu.control->calls("cuFuncSetAttribute") == 1);
  CHECK(gpu.control->calls("cuFuncGetAttribute") == 3);  // once for as much
  CHECK(stream.read(x).value() == all(5));
}

TEST_CASE("B34: each driver call of taking the program's own kernel failing once is told by name") {
  const Gpu gpu;
  const OwnLibrary library(gpu);
  const auto take = [&] { return gpu.device->kernel_of<Map>(library.kernel("map"), "app.map"); };
  unsigned refused = 0;
  for (const char* const call :
       {"cuCtxPushCurrent_v2", "cuKernelGetParamInfo", "cuKernelGetFunction", "cuFuncLoad"}) {
    CAPTURE(call);
    gpu.control->fault(call, 1, 999, sim::Effect::refuse);
    const Result<Map> taken = take();
    REQUIRE_FALSE(taken.ok());
    CHECK_MESSAGE(taken.error().text().find("app.map") != std::string::npos, taken.error().text());
    CHECK(take().ok());
    ++refused;
  }
  CHECK(refused == 4);
}

}  // namespace refrain::test
