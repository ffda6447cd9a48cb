// Typed kernels: their blocks and signatures, how one that is missing, or is another, is refused,
// and kernels that a shared object brings.
#include <cstring>
#include <filesystem>

#include "device/padded.hpp"
#include "device/rig.hpp"

namespace refrain {
namespace {

using namespace test;

using Scale = Kernel<InOut<float>, float>;

}  // namespace

TEST_CASE("kernels: equal launches have equal blocks, whatever lay in the padding") {
  Padded one;
  Padded two;
  std::memset(static_cast<void*>(&one), 0x00, sizeof(one));
  std::memset(static_cast<void*>(&two), 0xFF, sizeof(two));
  for (Padded* each : {&one, &two}) {
    each->small = 1;
    each->large = 2;
    each->mode = Mode::on;
  }
  const PackedArguments<std::uint8_t, Padded> a(7, one);
  const PackedArguments<std::uint8_t, Padded> b(7, two);
  CHECK(std::equal(a.block().begin(), a.block().end(), b.block().begin(), b.block().end()));
}

TEST_CASE("kernels: a signature lists its parameters, and the fields of a structure") {
  const KernelSignature signature = Kernel<In<double>, Padded, Mode>::signature("k", 3);
  CHECK(signature.version == 3);
  REQUIRE(signature.parameters.size() == 6);
  CHECK(signature.parameters[0].kind == ParameterKind::view);
  CHECK(signature.parameters[0].direction == Direction::in);
  CHECK(signature.parameters[0].element == ElementType::f64);
  CHECK(signature.parameters[1].kind == ParameterKind::structure);
  CHECK(signature.parameters[3].kind == ParameterKind::field);
  CHECK(signature.parameters[3].offset == 8 + offsetof(Padded, large));
  CHECK(signature.parameters[5].kind == ParameterKind::scalar);
  CHECK(signature.parameters[5].element == ElementType::u16);
  CHECK(text(signature) == "k/3(in f64*, struct of 24 bytes {u8, f64, u16}, u16)");
}

TEST_CASE("kernels: a body may take the grid first") {
  Rig rig(StreamKind::inline_);
  const Buffer<float> y = rig.floats("y", 1);
  Grid seen;
  rig.device.kernels().add<Scale>(
      "scale", [&](const Grid& grid_of, std::span<float>, float) { seen = grid_of; });
  const auto scale = rig.device.kernel<Scale>("scale").value();
  const Grid asked = grid(Dim3{2, 3, 4}, Dim3{5, 6, 7}, 8);
  CHECK(rig.stream.launch(scale, asked, y, 1.0F).executed_cleanly());
  CHECK(seen == asked);
}

TEST_CASE("kernels: one that is missing is named, and what there is instead") {
  Rig rig(StreamKind::inline_);
  const auto missing = rig.device.kernel<Scale>("scale");
  REQUIRE_FALSE(missing.ok());
  CHECK(missing.error().kind() == ErrorKind::kernel_missing);
  CHECK(says(missing.error(), "scale/1(in_out f32*, f32)"));
  CHECK(says(missing.error(), "No kernel of that name"));
  rig.device.kernels().add<Scale>(
      "scale", [](std::span<float>, float) {}, 2);
  const auto other = rig.device.kernel<Scale>("scale");
  REQUIRE_FALSE(other.ok());
  CHECK(other.error().kind() == ErrorKind::kernel_missing);
  CHECK(says(other.error(), "scale/2(in_out f32*, f32)"));
  CHECK(rig.device.kernel<Scale>("scale", 2).ok());
}

TEST_CASE("kernels: one of another signature is refused, and the error names both") {
  Rig rig(StreamKind::inline_);
  rig.device.kernels().add<Scale>("scale", [](std::span<float>, float) {});
  const auto other = rig.device.kernel<Kernel<InOut<float>, double>>("scale");
  REQUIRE_FALSE(other.ok());
  CHECK(other.error().kind() == ErrorKind::kernel_signature);
  CHECK(says(other.error(), "scale/1(in_out f32*, f32)"));
  CHECK(says(other.error(), "scale/1(in_out f32*, f64)"));
  CHECK_FALSE(rig.device.kernel<Kernel<Out<float>, float>>("scale").ok());
  CHECK_FALSE(rig.device.kernel<Kernel<InOut<float>>>("scale").ok());
  CHECK_FALSE(rig.device.kernel<Kernel<InOut<std::int32_t>, float>>("scale").ok());
}

TEST_CASE("kernels: a second one of the same name and version is refused, and the first stays") {
  Rig rig(StreamKind::inline_);
  CHECK(rig.device
            .register_kernels([](host::KernelRegistry& kernels) {
              kernels.add<Scale>("scale", [](std::span<float> y, float by) { y[0] *= by; });
            })
            .ok());
  const Result<void> again = rig.device.register_kernels([](host::KernelRegistry& kernels) {
    kernels.add<Kernel<Out<float>>>("scale", [](std::span<float>) {});
    kernels.add<Scale>(
        "scale", [](std::span<float>, float) {}, 2);
  });
  REQUIRE_FALSE(again.ok());
  CHECK(again.error().kind() == ErrorKind::invalid_argument);
  CHECK(says(again.error(), "scale/1(out f32*)"));
  CHECK(says(again.error(), "scale/1(in_out f32*, f32)"));
  const Buffer<float> y = rig.floats("y", 3);
  const auto scale = rig.device.kernel<Scale>("scale").value();
  CHECK(rig.stream.launch(scale, grid(4), y, 2.0F).executed_cleanly());
  CHECK(rig.values(y.view(0, 1)) == std::vector<float>{6});
  CHECK(rig.device.kernel<Scale>("scale", 2).ok());  // those beside the refused one stay
}

ON_BOTH_KINDS("kernels: a handle of the wrong type, or half an element, fails the launch") {
  const Buffer<float> y = rig.floats("y", 1);
  const auto types = Kernel<InOut<float>, double>(rig.update->loaded());
  const auto outcome = rig.stream.launch(types, grid(4), y, 1.0);
  REQUIRE(outcome.failed());
  CHECK(outcome.error().kind() == ErrorKind::invalid_argument);
  CHECK(says(outcome.error(), "update/1(in_out f32*, u32)"));
  CHECK(rig.carried(y).kind() == ErrorKind::invalid_argument);
  CHECK(rig.stream.fill(y, 1).executed_cleanly());
  CHECK(rig.stream.launch(Kernel<std::uint32_t, InOut<float>>(rig.update->loaded()), grid(4), 1U, y)
            .failed());
  CHECK(rig.stream.launch(Kernel<Out<float>, std::uint32_t>(rig.update->loaded()), grid(4), y, 1U)
            .failed());
  CHECK(rig.stream.fill(y, 1).executed_cleanly());
  const View<float> half(BufferBinding{y.id(), {2, 10}});
  const auto odd = rig.stream.launch(*rig.make, grid(4), half, 0U);
  REQUIRE(odd.failed());
  CHECK(says(odd.error(), "whole elements"));
  CHECK(rig.control.runs(0) == 0);
}

TEST_CASE("kernels: a shared object exports them through the one entry point") {
  Rig rig(StreamKind::inline_);
  const Result<void> loaded = rig.device.load_kernels(REFRAIN_TEST_KERNELS);
  REQUIRE_MESSAGE(loaded.ok(), loaded.error().text());
  const auto negate = rig.device.kernel<Kernel<InOut<float>>>("negate").value();
  const auto refuse = rig.device.kernel<Kernel<InOut<float>>>("refuse").value();
  const Buffer<float> y = rig.floats("y", 3);
  CHECK(rig.stream.launch(negate, grid(4), y).executed_cleanly());
  CHECK(rig.values(y) == four(-3));
  const auto refused = rig.stream.launch(refuse, grid(4), y);
  REQUIRE(refused.failed());
  CHECK(rig.carried(y).message() == "The object refuses.");

  const Result<void> twice = rig.device.load_kernels(REFRAIN_TEST_KERNELS);
  REQUIRE_FALSE(twice.ok());
  CHECK(twice.error().kind() == ErrorKind::invalid_argument);
  CHECK(says(twice.error(), REFRAIN_TEST_KERNELS));
}

TEST_CASE("kernels: an object that is missing, is none, or exports nothing is refused by name") {
  Rig rig(StreamKind::inline_);
  const auto refused = [&](const std::filesystem::path& path, ErrorKind kind) {
    const Result<void> loaded = rig.device.load_kernels(path);
    REQUIRE_FALSE(loaded.ok());
    CHECK(loaded.error().kind() == kind);
    CHECK(says(loaded.error(), path.filename().string()));
  };
  refused("/nowhere/kernels.so", ErrorKind::file_io);
  refused(__FILE__, ErrorKind::file_io);
  refused(REFRAIN_TEST_NO_KERNELS, ErrorKind::kernel_missing);
  refused("libm.so.6", ErrorKind::file_io);  // a bare name is a file here, not a system's library
}

}  // namespace refrain
