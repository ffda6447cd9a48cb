// Whoever reads what went wrong finds the work that it began with, in one look: its name, its place
// and its number.
#include <doctest/doctest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "refrain/device/stream.hpp"
#include "refrain/host/device.hpp"

namespace refrain::test {
namespace {

using Scale = Kernel<In<float>, Out<float>, float>;

constexpr Where at(int line) { return Where{"decode.cpp", line}; }

/// A device with "scale", which fails by 13 and throws by 14, and four buffers, `x` written.
struct Desk {
  explicit Desk(StreamKind kind = StreamKind::inline_) : stream(device.stream(kind).value()) {
    stream.write(x, four(1));
    stream.fill(y, 0.0F);
    stream.fill(z, 0.0F);
  }
  static std::vector<float> four(float value) { return std::vector<float>(4, value); }
  static host::Device made() {
    host::Device device;
    device.kernels().add<Scale>(
        "scale", [](std::span<const float> in, std::span<float> out, float by) -> Result<void> {
          if (by == 13) return Error(ErrorKind::kernel_failed, "Thirteen is unlucky.");
          if (by == 14) throw std::runtime_error("it blew up");
          for (std::size_t i = 0; i < out.size(); ++i) out[i] = by * in[i];
          return {};
        });
    return device;
  }
  ScopedOutcome<void> launch(int line, const Buffer<float>& in, const Buffer<float>& out,
                             float by) {
    return stream.launch(scale, grid(4, at(line)), in, out, by);
  }
  template <class Body>
  ScopedOutcome<void> layer(int line, Body body) {
    return stream.scope(
        "layer", {y, z}, [&](Stream&) -> Result<void> { return body(); }, at(line));
  }
  [[nodiscard]] std::string on_stream() const {
    return " on stream " + std::to_string(stream.id().number);
  }
  std::string read(const Buffer<float>& buffer) {
    const auto values = stream.read(buffer);
    REQUIRE_FALSE(values.ok());
    return values.error().text();
  }

  host::Device device = made();
  Scale scale = device.kernel<Scale>("scale").value();
  Stream stream;
  Buffer<float> x = device.buffer<float>("x", 4).value();
  Buffer<float> y = device.buffer<float>("y", 4).value();
  Buffer<float> z = device.buffer<float>("z", 4).value();
};

bool has(const std::string& text, const std::string& part) {
  if (text.find(part) != std::string::npos) return true;
  MESSAGE(text);
  return false;
}

}  // namespace

TEST_CASE("O6: a scope whose body needs what it claims says so, and is not its own cause") {
  Desk desk;
  CHECK(desk.layer(10,
                   [&]() -> Result<void> {
                     REFRAIN_TRY(desk.launch(11, desk.x, desk.y, 2).into_result());
                     return desk.launch(12, desk.y, desk.z, 1).into_result();
                   })
            .failed());
  const std::string story = desk.read(desk.z);
  CHECK(has(story, "\"layer\"" + desk.on_stream() +
                       " (decode.cpp:10): Work in it needed bytes that it claims"));
  CHECK(has(story, "\"scale\""));
  CHECK(has(story, "(decode.cpp:12)"));
  CHECK(story.find("an input carries a failure") == std::string::npos);
}

TEST_CASE("O6: a scope that drops such an outcome says so too") {
  Desk desk;
  desk.layer(10, [&]() -> Result<void> {
    desk.launch(12, desk.y, desk.z, 1);
    return {};
  });
  CHECK(has(desk.read(desk.z), "Work that needed what this was still writing did not run."));
}

TEST_CASE("C4: a refused window names the scope whose claim was needed in it") {
  Desk desk;
  OpenWindow window = desk.stream.record().value();
  desk.layer(10, [&]() -> Result<void> {
    REFRAIN_TRY(desk.launch(11, desk.x, desk.y, 2).into_result());
    return desk.launch(12, desk.y, desk.z, 1).into_result();
  });
  const std::string text = window.seal().error().text();
  CHECK(has(text,
            "because \"scale\" (decode.cpp:12) was skipped: it needed bytes [0, 16) of \"y\", "
            "which \"layer\"" +
                desk.on_stream() + " (decode.cpp:10) claims until it ends."));
}

TEST_CASE("C4: a window that refuses because of a skip names the skip, its input and the root") {
  Desk desk;
  const auto root = desk.launch(20, desk.x, desk.y, 13);
  REQUIRE(root.failed());
  const std::string number = std::to_string(root.error().failure().number);
  OpenWindow window = desk.stream.record().value();
  desk.launch(21, desk.y, desk.z, 1);
  CHECK(has(
      window.seal().error().text(),
      "because \"scale\" (decode.cpp:21) was skipped: it needed bytes [0, 16) of \"y\", which "
      "carry failure " +
          number + ", of \"scale\"" + desk.on_stream() + " (decode.cpp:20): Thirteen is unlucky."));
}

TEST_CASE("E2: an outcome and the listener have the number of what carries the error") {
  for (const float by : {13.0F, 14.0F}) {
    CAPTURE(by);
    FailureId heard;
    DeviceOptions options;
    options.on_failure = [&](StreamId, const Error& error) { heard = error.failure(); };
    const host::Device device(options);
    device.kernels().add<Scale>(
        "scale", [](std::span<const float>, std::span<float>, float with) -> Result<void> {
          if (with == 14) throw std::runtime_error("it blew up");
          return Error(ErrorKind::kernel_failed, "Thirteen is unlucky.");
        });
    Stream stream = device.stream().value();
    const auto x = device.buffer<float>("x", 4).value();
    const auto y = device.buffer<float>("y", 4).value();
    stream.fill(x, 1.0F);
    const auto scale = device.kernel<Scale>("scale").value();
    FailureId told;
    try {
      told = stream.launch(scale, grid(4), x, y, by).error().failure();
    } catch (const std::runtime_error&) {
      told = device.check(y)->failure();
    }
    CHECK(told);
    CHECK(heard == told);
    CHECK(device.check(y)->failure() == told);
    CHECK(has(device.story(told), "\"scale\""));
  }
}

TEST_CASE("E9: a failure that a body hands on is the cause of its scope's") {
  Desk desk;
  CHECK(desk.layer(10, [&] { return desk.launch(11, desk.x, desk.y, 13).into_result(); }).failed());
  const std::string story = desk.read(desk.z);
  CHECK(has(story, "\"layer\""));
  CHECK(has(story, "because of failure"));
  CHECK(has(story, "\"scale\"" + desk.on_stream() + " (decode.cpp:11): Thirteen is unlucky."));
}

TEST_CASE("C20: a warm-up that fails names the work, also when that was skipped") {
  for (const StreamKind kind : {StreamKind::inline_, StreamKind::worker}) {
    Desk desk(kind);
    const auto failed = desk.stream.prepare([&] {
      desk.launch(30, desk.x, desk.y, 1);
      desk.launch(31, desk.x, desk.z, 13);
    });
    CHECK(has(failed.error().text(), "- While warming up: \"scale\"" + desk.on_stream() +
                                         " (decode.cpp:31) did not end cleanly."));
    const auto followed = desk.stream.prepare([&] {
      desk.launch(33, desk.x, desk.y, 13);
      desk.launch(34, desk.y, desk.z, 1);
    });
    CHECK(has(followed.error().text(), "- While warming up: \"scale\"" + desk.on_stream() +
                                           " (decode.cpp:33) did not end cleanly."));
    desk.stream.fill(desk.y, 0.0F);
    const auto gone = desk.device.buffer<float>("gone", 4).value();
    const auto skipped = desk.stream.prepare([&] { desk.launch(32, gone, desk.y, 1); });
    CHECK(
        has(skipped.error().text(), "- While warming up: \"scale\"" + desk.on_stream() +
                                        " (decode.cpp:32) was skipped: it needed bytes [0, 16) of "
                                        "\"gone\"."));
  }
}

TEST_CASE("E10: a sync names the work that failed late") {
  Desk desk(StreamKind::worker);
  desk.launch(40, desk.x, desk.y, 13);
  CHECK(has(desk.stream.sync().error().text(),
            "- It was \"scale\"" + desk.on_stream() + " (decode.cpp:40)."));
}

TEST_CASE("C20: first-use work that fails is named") {
  Desk desk;
  const Result<void> failed = desk.stream.first_use("compile attention", []() -> Result<void> {
    return Error(ErrorKind::kernel_failed, "syntax");
  });
  CHECK(has(failed.error().text(), "- While doing first-use work \"compile attention\"."));
}

TEST_CASE("C6: what an exception says is a sentence of its own in a refusal") {
  Desk desk;
  OpenWindow window = desk.stream.record().value();
  CHECK_THROWS_AS(desk.layer(50, []() -> Result<void> { throw std::runtime_error("it blew up"); }),
                  std::runtime_error);
  desk.launch(51, desk.y, desk.x, 1);
  CHECK(has(window.seal().error().text(), "it blew up. Work in it failed or was skipped"));
}

}  // namespace refrain::test
