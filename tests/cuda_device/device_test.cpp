// What the CUDA device does with work that goes well.
#include "refrain/host/device.hpp"

#include <cstring>
#include <filesystem>
#include <thread>

#include "gpu.hpp"
#include "temporary_folder.hpp"

namespace refrain::test {

TEST_CASE("cuda: bytes go to the device and come back, and states start at zero") {
  const Gpu gpu;
  Stream stream = gpu.stream();
  const Buffer<float> x = gpu.filled(stream, "x", 3);
  CHECK(stream.read(x).value() == all(3));
  const Buffer<float> state = gpu.buffer("state", Role::state);
  CHECK(stream.read(state).value() == all(0));
  const std::vector<float> bytes = all(7);
  const auto constant =
      gpu.device->constant<float>("c", SharedBytes::copy_of(std::as_bytes(std::span(bytes))));
  CHECK(stream.read(constant.value()).value() == all(7));
  CHECK(stream.read(gpu.buffer("y")).error().kind() == ErrorKind::unwritten);  // M5
}

TEST_CASE("cuda: kernels, copies and fills of each width run in the order of their stream") {
  const Gpu gpu;
  Stream stream = gpu.stream();
  const Buffer<float> x = gpu.buffer("x");
  const Buffer<float> y = gpu.buffer("y");
  const Buffer<float> z = gpu.buffer("z");
  stream.launch(gpu.kernel<Make>("make"), grid(Gpu::kCount), x, Gpu::kCount, 5.0F);
  stream.launch(gpu.kernel<Map>("map"), grid(Gpu::kCount), x, y, Gpu::kCount);
  stream.copy(z, y);
  stream.launch(gpu.kernel<Update>("update"), grid(Gpu::kCount), y, Gpu::kCount);
  stream.launch(gpu.kernel<Join>("join"), grid(Gpu::kCount), z, y, x, Gpu::kCount);
  CHECK(stream.read(x).value() == all(13));

  const auto bytes = gpu.device->buffer<std::uint8_t>("u8", 8).value();
  const auto words = gpu.device->buffer<std::uint16_t>("u16", 8).value();
  const auto longs = gpu.device->buffer<std::uint32_t>("u32", 8).value();
  stream.fill(bytes, std::uint8_t{0xAB});
  stream.fill(words, std::uint16_t{0xABCD});
  stream.fill(longs, 0xABCDEF01U);
  CHECK(stream.read(bytes).value() == std::vector<std::uint8_t>(8, 0xAB));
  CHECK(stream.read(words).value() == std::vector<std::uint16_t>(8, 0xABCD));
  CHECK(stream.read(longs).value() == std::vector<std::uint32_t>(8, 0xABCDEF01U));
}

TEST_CASE("cuda: an event orders two streams, and the host waits for one") {
  const Gpu gpu;
  Stream one = gpu.stream();
  Stream other = gpu.stream();
  const Buffer<float> x = gpu.buffer("x");
  const Buffer<float> y = gpu.buffer("y");
  const auto make = gpu.kernel<Make>("make");
  const auto map = gpu.kernel<Map>("map");
  gpu.control->hold();
  one.launch(make, grid(Gpu::kCount), x, Gpu::kCount, 1.0F);
  const Event made = one.record_event().value();
  CHECK_FALSE(made.reached().value());
  REQUIRE(other.wait(made).ok());
  other.launch(map, grid(Gpu::kCount), x, y, Gpu::kCount);
  gpu.control->release();
  REQUIRE(made.wait().ok());
  CHECK(made.reached().value());
  CHECK(other.read(y).value() == all(2));
}

TEST_CASE("cuda: a thread that never heard of CUDA, or works in another context, issues work too") {
  const Gpu gpu;
  Stream stream = gpu.stream();
  const Buffer<float> x = gpu.buffer("x");
  const auto make = gpu.kernel<Make>("make");
  std::thread([&] {
    CHECK(stream.launch(make, grid(Gpu::kCount), x, Gpu::kCount, 1.0F).executed_cleanly());
    CHECK(stream.read(x).value() == all(1));
  }).join();
  const cuda::Entrance entered = gpu.device->enter();
  gpu.control->clear_journal();
  CHECK(stream.launch(make, grid(Gpu::kCount), x, Gpu::kCount, 2.0F).executed_cleanly());
  CHECK(gpu.journal() == std::vector<std::string>{"cuLaunchKernelEx"});
  CHECK(stream.read(x).value() == all(2));
}

TEST_CASE("cuda: a recording replays with one driver call, whatever its size") {
  for (const int nodes : {1, 10, 200}) {
    const Gpu gpu;
    Stream stream = gpu.stream();
    const Buffer<float> x = gpu.filled(stream, "x", 0, Role::input);
    const Buffer<float> y = gpu.filled(stream, "y", 0);
    const auto map = gpu.kernel<Map>("map");
    const auto update = gpu.kernel<Update>("update");
    gpu.control->clear_journal();
    OpenWindow window = stream.record().value();
    stream.launch(map, grid(Gpu::kCount), x, y, Gpu::kCount);
    for (int i = 1; i < nodes; ++i) stream.launch(update, grid(Gpu::kCount), y, Gpu::kCount);
    CHECK(gpu.journal().empty());  // what is recorded calls no driver
    const Recording recording = window.seal().value();
    Instance step = instance(recording).value();
    const cuda::Entrance entered = gpu.device->enter();
    for (const float start : {1.0F, 5.0F}) {
      stream.write(x, all(start));
      gpu.control->clear_journal();
      CHECK(step.replay(stream).executed_cleanly());
      CHECK(gpu.journal() == std::vector<std::string>{"cuGraphLaunch"});
      CHECK(stream.read(y).value() == all(start + static_cast<float>(nodes)));
    }
  }
}

TEST_CASE("cuda: independent nodes have no edge, and the derived ones hold in any legal order") {
  const Gpu gpu;
  Stream stream = gpu.stream();
  const Buffer<float> a = gpu.buffer("a");
  const Buffer<float> b = gpu.buffer("b");
  const Buffer<float> y = gpu.buffer("y");
  const auto make = gpu.kernel<Make>("make");
  const auto join = gpu.kernel<Join>("join");
  OpenWindow window = stream.record().value();
  stream.launch(make, grid(Gpu::kCount), a, Gpu::kCount, 1.0F);
  stream.launch(make, grid(Gpu::kCount), b, Gpu::kCount, 2.0F);
  stream.launch(join, grid(Gpu::kCount), a, b, y, Gpu::kCount);
  const Recording recording = window.seal().value();
  gpu.control->clear_journal();
  Instance step = instance(recording).value();
  CHECK(gpu.control->calls("cuGraphAddKernelNode_v2") == 3);
  CHECK(gpu.control->calls("cuGraphInstantiateWithParams") == 1);
  CHECK(gpu.control->calls("cuGraphUpload") == 1);
  CHECK(step.replay(stream).executed_cleanly());
  CHECK(stream.read(y).value() == all(3));
}

TEST_CASE("cuda: binding a buffer changes the nodes that use it, and the same one nothing") {
  const Gpu gpu;
  Stream stream = gpu.stream();
  const Buffer<float> x = gpu.filled(stream, "x", 1, Role::input);
  const Buffer<float> y = gpu.buffer("y", Role::output);
  const Buffer<float> z = gpu.buffer("z", Role::output);
  const auto map = gpu.kernel<Map>("map");
  OpenWindow window = stream.record().value();
  stream.launch(map, grid(Gpu::kCount), x, y, Gpu::kCount);
  stream.copy(z, y);
  stream.fill(y.view(0, 4), 9.0F);
  const Recording recording = window.seal().value();
  const Plan plan = Plan::prepare(*gpu.device, recording.graph()).value();
  Instance step = plan.instance().value();
  REQUIRE(step.bind("x", x).ok());
  CHECK(step.replay(stream).executed_cleanly());

  const Buffer<float> other = gpu.filled(stream, "other", 5);
  gpu.control->clear_journal();
  REQUIRE(step.bind("x", other).ok());
  CHECK(gpu.control->calls("cuGraphExecKernelNodeSetParams_v2") == 1);
  CHECK(gpu.control->calls("cuGraphExecMemcpyNodeSetParams") == 0);
  CHECK(gpu.control->calls("cuGraphExecMemsetNodeSetParams") == 0);
  gpu.control->clear_journal();
  REQUIRE(step.bind("x", other).ok());
  CHECK(gpu.journal().empty());
  CHECK(step.replay(stream).executed_cleanly());
  CHECK(stream.read(step.view<float>("z").value()).value() == all(6));

  gpu.control->clear_journal();
  const Buffer<float> out = gpu.buffer("out");
  REQUIRE(step.bind("y", out).ok());
  CHECK(gpu.control->calls("cuGraphExecKernelNodeSetParams_v2") == 1);
  CHECK(gpu.control->calls("cuGraphExecMemcpyNodeSetParams") == 1);
  CHECK(gpu.control->calls("cuGraphExecMemsetNodeSetParams") == 1);
  CHECK(step.replay(stream).executed_cleanly());
  CHECK(stream.read(out.view(0, 4)).value() == std::vector<float>(4, 9));
  CHECK(stream.read(out.view(4, 4)).value() == std::vector<float>(4, 6));
}

TEST_CASE("cuda: host work sees its views and writes them back, by itself and in a replay") {
  const Gpu gpu;
  Stream stream = gpu.stream();
  const Buffer<float> x = gpu.filled(stream, "x", 2, Role::input);
  const Buffer<float> y = gpu.buffer("y");
  const Buffer<float> z = gpu.filled(stream, "z", 10, Role::state);
  int calls = 0;
  const auto work = [&] {
    return stream.host<In<float>, Out<float>, InOut<float>>(
        {"add"},
        [&calls](std::span<const float> in, std::span<float> out, std::span<float> sum) {
          ++calls;
          for (std::size_t i = 0; i < in.size(); ++i) {
            out[i] = in[i] * 2;
            sum[i] += in[i];
          }
        },
        x, y, z);
  };
  CHECK(work().executed_cleanly());
  CHECK(stream.read(y).value() == all(4));
  CHECK(stream.read(z).value() == all(12));

  const auto update = gpu.kernel<Update>("update");
  OpenWindow window = stream.record().value();
  work();
  stream.launch(update, grid(Gpu::kCount), y, Gpu::kCount);
  const Recording recording = window.seal().value();
  Instance step = instance(recording).value();
  for (const float in : {3.0F, 4.0F, 5.0F}) {
    stream.write(x, all(in));
    CHECK(step.replay(stream).executed_cleanly());
  }
  CHECK(stream.read(y).value() == all(11));
  CHECK(stream.read(z).value() == all(24));
  CHECK(calls == 4);
}

TEST_CASE("cuda: memory comes from the device's pool when that is wanted, and goes back to it") {
  const Gpu gpu;
  const cuda::Device device =
      cuda::Device::open({.driver = {REFRAIN_SIMCUDA}, .memory = cuda::MemoryKind::pooled}).value();
  REQUIRE(device.add_image(test_image()).ok());
  gpu.control->clear_journal();
  {
    Stream stream = device.stream().value();
    const auto x = device.buffer<float>("x", Gpu::kCount, Role::state).value();
    const auto update = device.kernel<Update>("update").value();
    stream.launch(update, grid(Gpu::kCount), x, Gpu::kCount);
    CHECK(stream.read(x).value() == all(1));
  }
  CHECK(gpu.control->calls("cuMemAllocAsync") == 1);
  CHECK(gpu.control->calls("cuMemFreeAsync") == 1);
  CHECK(gpu.control->calls("cuMemAlloc_v2") == 0);
  CHECK(gpu.control->calls("cuMemFree_v2") == 0);
}

TEST_CASE("cuda: pinned memory outlives its device's handle, and takes part in reads and writes") {
  cuda::PinnedBytes pinned;
  {
    const Gpu gpu;
    gpu.leaves_something = true;  // the memory is still there when it goes
    Stream stream = gpu.stream();
    pinned = gpu.device->pinned(Gpu::kCount * sizeof(float)).value();
    const std::span<float> values(reinterpret_cast<float*>(pinned.get()), Gpu::kCount);
    CHECK(values[0] == 0);
    values[0] = 4;
    const Buffer<float> x = gpu.buffer("x");
    stream.write(x, values);
    values[0] = 5;  // the call is back, so the bytes may be used again
    CHECK(stream.read(x).value()[0] == 4);
    CHECK(stream.read_into(x, values).ok());
    CHECK(gpu.device->health().ok());
  }
  CHECK(pinned.get()[3] == std::byte{0x40});  // 4.0F
  pinned.reset();
}

TEST_CASE("cuda: a graph goes through a file from the host to the device and back") {
  const TemporaryFolder folder;
  const std::string path = (folder.path() / "step.refrain").string();
  const auto record = [](const Device& device) {
    Stream stream = device.stream().value();
    const auto x = device.buffer<float>("x", Gpu::kCount, Role::input).value();
    const auto y = device.buffer<float>("y", Gpu::kCount, Role::output).value();
    const auto map = device.kernel<Map>("map").value();
    OpenWindow window = stream.record().value();
    stream.launch(map, grid(Gpu::kCount), x, y, Gpu::kCount);
    return window.seal().value().graph();
  };
  const auto replay = [&](const Device& device) {
    Stream stream = device.stream().value();
    const Plan plan = load(device, path).value();
    Instance step = plan.instance().value();
    stream.write(step.view<float>("x").value(), all(41));
    CHECK(step.replay(stream).executed_cleanly());
    CHECK(stream.read(step.view<float>("y").value()).value() == all(42));
  };
  const Gpu gpu;
  const host::Device host;
  host.kernels().add<Map>("map", [](std::span<const float> x, std::span<float> y, std::uint32_t n) {
    for (std::uint32_t i = 0; i < n; ++i) y[i] = x[i] + 1;
  });
  for (const Device& device :
       {static_cast<const Device&>(host), static_cast<const Device&>(*gpu.device)}) {
    REQUIRE(save(record(device), path).ok());
    replay(host);
    replay(*gpu.device);
  }
}

TEST_CASE("cuda: a file carries its kernels' code, so a device that was given none replays it") {
  const TemporaryFolder folder;
  const std::string path = folder.file("step.refrain").string();
  {
    const Gpu gpu;
    Stream stream = gpu.stream();
    const Buffer<float> x = gpu.buffer("x", Role::input);
    const Buffer<float> y = gpu.buffer("y", Role::output);
    const auto map = gpu.kernel<Map>("map");
    const auto update = gpu.kernel<Update>("update");
    OpenWindow window = stream.record().value();
    stream.launch(map, grid(Gpu::kCount), x, y, Gpu::kCount);
    stream.launch(update, grid(Gpu::kCount), y, Gpu::kCount);
    REQUIRE(save(window.seal().value().graph(), path).ok());
  }
  const Gpu gpu;
  const cuda::Device bare = cuda::Device::open({.driver = {REFRAIN_SIMCUDA}}).value();
  CHECK_FALSE(bare.kernel<Map>("map").ok());
  gpu.control->clear_journal();
  const Plan plan = load(bare, path).value();
  CHECK(gpu.control->calls("cuLibraryLoadData") == 1);  // one image, two kernels
  Instance step = plan.instance().value();
  Stream stream = bare.stream().value();
  stream.write(step.view<float>("x").value(), all(1));
  CHECK(step.replay(stream).executed_cleanly());
  CHECK(stream.read(step.view<float>("y").value()).value() == all(3));
  // Loaded and saved again it is the same file.
  CHECK(encode(plan.graph()).value() ==
        encode(CaptureFile::open(path).value().graph().value()).value());
}

TEST_CASE(
    "cuda: a graph whose image lacks its kernel, or has it with other parameters, is refused") {
  const Gpu gpu;
  Stream stream = gpu.stream();
  const Buffer<float> y = gpu.buffer("y", Role::output);
  const auto make = gpu.kernel<Make>("make");
  OpenWindow window = stream.record().value();
  stream.launch(make, grid(Gpu::kCount), y, Gpu::kCount, 1.0F);
  const SealedGraph graph = window.seal().value().graph();
  const KernelSource source = graph.kernels()[0].source;
  REQUIRE(source.code != nullptr);
  KernelSignature wanted = graph.kernels()[0];
  for (const char* const symbol : {"missing", "map"}) {
    wanted.source = {source.code, symbol};
    const Result<LoadedKernel> loaded = gpu.device->load(wanted);
    REQUIRE_FALSE(loaded.ok());
    CHECK(loaded.error().kind() ==
          (symbol == std::string("map") ? ErrorKind::kernel_signature : ErrorKind::kernel_missing));
  }
  wanted.source = {PortableCode::make(CodeKind::cubin,
                                      SharedBytes::copy_of(std::as_bytes(std::span("no image")))),
                   "make"};
  const Error damaged = gpu.device->load(wanted).error();
  CHECK(damaged.kind() == ErrorKind::file_foreign);
  CHECK(damaged.text().find("carries for kernel make/1") != std::string::npos);
}

/// The image of `Gpu` as a file has it: no zero ends it, and other bytes follow.
SharedBytes image_amid_others(const std::string& also) {
  const SharedBytes image = test_image();
  const auto* const text = reinterpret_cast<const char*>(image.data());
  const std::string carried = also + std::string(text, strnlen(text, image.size()));
  const auto whole = std::make_shared<const std::string>(carried + "{ nonsense; }");
  return {whole, std::as_bytes(std::span(*whole)).first(carried.size())};
}

TEST_CASE("cuda: of carried PTX the driver sees what its section has, and nothing that follows") {
  const Gpu gpu;
  const auto make = gpu.kernel<Make>("make");
  KernelSignature wanted = *make.loaded().signature;
  for (const CodeKind kind : {CodeKind::ptx, CodeKind::cubin}) {
    const std::string also = "// as " + std::string(name_of(kind)) + "\n";
    wanted.source = {PortableCode::make(kind, image_amid_others(also)), "make"};
    const auto loaded = gpu.device->load(wanted);
    CHECK_MESSAGE(loaded.ok(), loaded.error().text());
  }
}

TEST_CASE("C20: a kernel of another image, of the same name, was never loaded") {
  const Gpu gpu;
  Stream stream = gpu.stream();
  const auto make = gpu.kernel<Make>("make");
  KernelSignature wanted = *make.loaded().signature;
  OpenWindow window = stream.record().value();
  CHECK(gpu.device->load(wanted).ok());  // the graph of a window asks so for what it recorded
  wanted.source = {PortableCode::make(CodeKind::ptx, image_amid_others("// newer\n")), "make"};
  CHECK(gpu.device->load(wanted).error().kind() == ErrorKind::needs_warm_up);
  CHECK_FALSE(window.seal().ok());
}

TEST_CASE("cuda: a launch keeps its attributes, at once and in a graph, also when it is rebound") {
  const Gpu gpu;
  Stream stream = gpu.stream();
  const Buffer<float> x = gpu.filled(stream, "x", 1, Role::input);
  const Buffer<float> y = gpu.buffer("y", Role::output);
  const auto map = gpu.kernel<Map>("map");
  const LaunchAttributes asked{.cluster = {2, 1, 1}, .cooperative = true, .priority = -1};
  const auto launch = [&] {
    return stream.launch(map, grid({2, 1, 1}, {64, 1, 1}).with(asked), x, y, Gpu::kCount);
  };
  CHECK(launch().executed_cleanly());
  CHECK(stream.read(y).value() == all(2));
  OpenWindow window = stream.record().value();
  launch();
  const Recording recording = window.seal().value();
  gpu.control->clear_journal();
  Instance step = Plan::prepare(*gpu.device, recording.graph()).value().instance().value();
  REQUIRE(step.bind("x", x).ok());
  const auto replayed = step.replay(stream).into_result();
  CHECK_MESSAGE(replayed.ok(), replayed.error().text());
  CHECK(gpu.control->calls("cuGraphKernelNodeSetAttribute") == 3);
  // A grid that is no multiple of its cluster is the driver's to refuse.
  CHECK(stream.launch(map, grid({3, 1, 1}, {64, 1, 1}).with(asked), x, y, Gpu::kCount).failed());
}

TEST_CASE(
    "cuda: a kernel that waits by itself starts beside the kernels that it follows, no others") {
  const Gpu gpu;
  Stream stream = gpu.stream();
  const Buffer<float> x = gpu.filled(stream, "x", 1, Role::input);
  const Buffer<float> y = gpu.buffer("y", Role::scratch);
  const Buffer<float> z = gpu.buffer("z", Role::scratch);
  const Buffer<float> out = gpu.buffer("out", Role::output);
  const auto map = gpu.kernel<Map>("map");
  const auto join = gpu.kernel<Join>("join");
  const Grid early = grid(Gpu::kCount).with({.programmatic = true});
  const auto launch = [&] {
    stream.launch(map, grid(Gpu::kCount), x, y, Gpu::kCount);
    stream.copy(z, x);
    stream.launch(join, early, y, z, out, Gpu::kCount);
  };
  launch();
  CHECK(stream.read(out).value() == all(3));
  OpenWindow window = stream.record().value();
  launch();
  const Recording recording = window.seal().value();
  gpu.control->clear_journal();
  Instance step = instance(recording).value();
  CHECK(gpu.control->calls("cuGraphAddDependencies_v2") == 1);  // from `map`, and not from the copy
  stream.write(x, all(4));
  CHECK(step.replay(stream).executed_cleanly());
  CHECK(stream.read(out).value() == all(9));
}

}  // namespace refrain::test
