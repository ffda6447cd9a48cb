// Files that `vad` must not believe: captures that are damaged, foreign or of another program, and
// weights of another model. Each is refused with a sentence that names it, and nothing is written.
#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "refrain/refrain.hpp"
#include "vad/kernels.hpp"
#include "vad_fixture.hpp"

namespace {

using refrain::In;
using refrain::Out;
using refrain::Role;
using refrain::test::read_file;
using refrain::test::write_file;
using vad_test::kSpeech;
using vad_test::kWeights;
using vad_test::Place;

using Bytes = std::vector<std::byte>;

/// Asserts that a capture file of these bytes is refused.
void check_refused(const Place& place, const Bytes& bytes) {
  write_file(place.file("bad.refrain"), bytes);
  place.refused({"replay", "--load", place.file("bad.refrain"), "--pcm", kSpeech, "--out",
                 place.file("p.txt")},
                {"vad: ", "bad.refrain"});
}

TEST_CASE("vad: a capture file that is cut short or empty is refused") {
  const Place place;
  const Bytes whole = read_file(place.recorded());
  write_file(place.file("bad.refrain"), {});
  for (const std::size_t kept : {std::size_t{0}, std::size_t{1}, std::size_t{63}, std::size_t{64},
                                 whole.size() / 2, whole.size() - 1}) {
    INFO("the first " << kept << " bytes");
    check_refused(place, Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(kept)));
  }
}

TEST_CASE("vad: a capture file with a bit flipped anywhere is refused") {
  const Place place;
  const Bytes whole = read_file(place.recorded());
  write_file(place.file("bad.refrain"), {});
  constexpr std::size_t kFlips = 40;
  for (std::size_t i = 0; i < kFlips; ++i) {
    const std::size_t at = i * (whole.size() - 1) / (kFlips - 1);
    INFO("bit " << i % 8 << " of byte " << at);
    Bytes flipped = whole;
    flipped[at] ^= std::byte{1} << (i % 8);
    check_refused(place, flipped);
  }
}

TEST_CASE("vad: a file that is no capture is refused") {
  const Place place;
  for (const std::string& file : {kWeights, kSpeech}) {
    place.refused({"replay", "--load", file, "--pcm", kSpeech, "--out", place.file("p.txt")},
                  {file});
  }
}

/// Saves a recorded launch of a kernel of type `K` called `name`, from `input` to `output`, two
/// buffers of `count` elements.
template <class K, class T>
void save_one_launch(const std::string& path, const std::string& name, const std::string& input,
                     const std::string& output, std::uint64_t count) {
  refrain::host::Device device;
  device.kernels().add<K>(name, [](std::span<const T>, std::span<T>) {});
  auto stream = device.stream().value();
  const auto x = device.buffer<T>(input, count, Role::input).value();
  const auto y = device.buffer<T>(output, count, Role::output).value();
  const auto kernel = device.kernel<K>(name).value();
  auto window = stream.record().value();
  stream.launch(kernel, refrain::grid(count), x, y);
  const auto recording = window.seal({.name = "other"}).value();
  refrain::save(recording.graph(), path).value();
}

using Doubles = refrain::Kernel<In<double>, Out<double>>;

TEST_CASE("vad: a capture that needs a kernel which is missing is refused, naming it") {
  const Place place;
  const std::string path = place.file("other.refrain");
  save_one_launch<vad::Sigmoid, float>(path, "vad.gelu", "samples", "probability", 512);
  place.refused({"replay", "--load", path, "--pcm", kSpeech, "--out", place.file("p.txt")},
                {path, "vad.gelu/1", "not registered"});
}

TEST_CASE("vad: a capture whose kernel is registered with another signature is refused") {
  const Place place;
  const std::string path = place.file("other.refrain");
  save_one_launch<Doubles, double>(path, "vad.sigmoid", "samples", "probability", 512);
  place.refused({"replay", "--load", path, "--pcm", kSpeech, "--out", place.file("p.txt")},
                {path, "vad.sigmoid/1(in f64*, out f64*)", "vad.sigmoid/1(in f32*, out f32*)"});
}

TEST_CASE("vad: a capture of something else is refused, naming what it lacks") {
  const Place place;
  const std::string path = place.file("other.refrain");
  save_one_launch<vad::Sigmoid, float>(path, "vad.sigmoid", "x", "probability", 512);
  place.refused({"replay", "--load", path, "--pcm", kSpeech}, {path, "\"samples\"", "\"x\""});
  save_one_launch<vad::Sigmoid, float>(path, "vad.sigmoid", "samples", "probability", 256);
  place.refused({"replay", "--load", path, "--pcm", kSpeech}, {path, "\"samples\"", "256", "512"});
  save_one_launch<vad::Sigmoid, float>(path, "vad.sigmoid", "samples", "probability", 512);
  place.refused({"replay", "--load", path, "--pcm", kSpeech}, {path, "\"probability\"", "512"});
}

/// Writes the weights to `path`, with another header.
void write_with_header(const std::string& path,
                       const std::function<void(nlohmann::json&)>& change) {
  const Bytes whole = read_file(kWeights);
  const std::string_view text(reinterpret_cast<const char*>(whole.data()), whole.size());
  std::uint64_t length = 0;
  std::memcpy(&length, text.data(), sizeof(length));
  const std::size_t data = sizeof(length) + length;
  nlohmann::json header = nlohmann::json::parse(text.substr(sizeof(length), length));
  change(header);
  const std::string changed = header.dump();
  length = changed.size();
  std::string bytes(sizeof(length), '\0');
  std::memcpy(bytes.data(), &length, sizeof(length));
  bytes += changed;
  bytes += text.substr(data);
  write_file(path, std::as_bytes(std::span(bytes)));
}

TEST_CASE("vad: weights with a tensor missing or of another shape are refused") {
  const Place place;
  const std::string bad = place.file("bad.safetensors");
  const std::string kept = place.file("step.refrain");
  write_file(kept, {});
  const auto check = [&](const std::vector<std::string>& parts) {
    place.refused({"eager", "--weights", bad, "--pcm", kSpeech, "--out", place.file("p.txt")},
                  parts);
    place.refused({"record", "--weights", bad, "--save", kept}, parts);
    CHECK(read_file(kept).empty());
  };
  write_with_header(bad, [](nlohmann::json& header) {
    header["decoder.rnn.bias"] = header["decoder.rnn.bias_ih"];
    header.erase("decoder.rnn.bias_ih");
  });
  check({"bad.safetensors", "no tensor \"decoder.rnn.bias_ih\""});
  write_with_header(bad, [](nlohmann::json& header) {
    header["encoder.2.reparam_conv.weight"]["shape"] = {64, 192, 1};
  });
  check({"bad.safetensors", "encoder.2.reparam_conv.weight", "[64, 192, 1]", "[64, 64, 3]"});
  const Bytes whole = read_file(kWeights);
  write_file(bad, std::span(whole).first(whole.size() - 1));
  check({"bad.safetensors"});
}

}  // namespace
