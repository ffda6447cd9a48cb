// The step of `vad` in one process: eager, replayed on the memory that was recorded, and replayed
// in memory of its own.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "refrain/refrain.hpp"
#include "vad/audio.hpp"
#include "vad/probabilities.hpp"
#include "vad/session.hpp"
#include "vad/weights.hpp"
#include "vad_fixture.hpp"

namespace {

using Probabilities = std::vector<float>;

std::shared_ptr<const vad::Weights> weights() {
  static const auto read =
      std::make_shared<const vad::Weights>(vad::read_weights(vad_test::kWeights).value());
  return read;
}

vad::Audio speech() { return vad::read_audio(vad_test::kSpeech).value(); }

/// The speech without its first samples, half a step of them, so that every step is another.
vad::Audio shifted_speech() {
  const std::vector<std::byte> bytes = refrain::test::read_file(vad_test::kSpeech);
  return vad::parse_audio(std::span(bytes).subspan(vad::kStepSamples), "shifted").value();
}

refrain::host::Device device_with(refrain::host::RegisterKernels entry) {
  refrain::host::Device device;
  device.register_kernels(entry).value();
  return device;
}

void check_reference(const Probabilities& found) {
  const auto expected = vad::read_probabilities(vad_test::kReference).value();
  REQUIRE(found.size() == expected.size());
  CHECK(vad::largest_difference(found, expected) <= vad::kTolerance);
}

TEST_CASE("vad: eager, and replayed in the same process, give the same probabilities") {
  const auto device = device_with(vad::register_kernels);
  vad::EagerSession eager(device, weights());
  const Probabilities launched = vad::probabilities_of(vad::run(eager, speech()));
  check_reference(launched);

  const auto recording = vad::record_step(eager.stream(), eager.memory()).value();
  CHECK(recording.graph().nodes().size() == vad::kLaunchesPerStep);
  CHECK(recording.graph().not_portable().empty());
  const auto plan = refrain::Plan::prepare(device, recording.graph()).value();
  vad::ReplaySession replayed = vad::ReplaySession::make(device, plan).value();
  CHECK(vad::probabilities_of(vad::run(replayed, speech())) == launched);
  replayed.reset();
  CHECK(vad::probabilities_of(vad::run(replayed, speech())) == launched);

  // On the recorded memory, whose states hold what the eager run left.
  auto instance = refrain::instance(recording).value();
  refrain::Stream& stream = eager.stream();
  instance.reset(stream).value();
  const vad::Audio audio = speech();
  Probabilities found;
  for (std::size_t i = 0; i < audio.steps(); ++i) {
    stream.write(eager.memory().samples, audio.step(i));
    stream.fill(eager.memory().probability, -1.0F);
    REQUIRE(instance.replay(stream).executed_cleanly());
    found.push_back(stream.read(eager.memory().probability).value().at(0));
  }
  CHECK(found == launched);
  CHECK(device.live_failures() == 0);
}

TEST_CASE("vad: a loaded step answers for the samples that it is given, not for those recorded") {
  const vad_test::Place place;
  const std::string path = place.recorded();
  const auto device = device_with(vad::register_kernels);
  const auto plan = refrain::load(device, path).value();
  vad::ReplaySession replayed = vad::ReplaySession::make(device, plan).value();
  vad::EagerSession eager(device, weights());
  const Probabilities other = vad::probabilities_of(vad::run(replayed, shifted_speech()));
  CHECK(other == vad::probabilities_of(vad::run(eager, shifted_speech())));
  replayed.reset();
  const Probabilities speechs = vad::probabilities_of(vad::run(replayed, speech()));
  check_reference(speechs);
  CHECK_FALSE(std::equal(other.begin(), other.end(), speechs.begin()));
}

TEST_CASE("vad: a replay that computes nothing does not pass for one that did") {
  const vad_test::Place place;
  const std::string path = place.recorded();
  const auto device = device_with(vad::register_empty_kernels);
  vad::ReplaySession replayed =
      vad::ReplaySession::make(device, refrain::load(device, path).value()).value();
  CHECK_THROWS_WITH_AS(replayed.step(speech().step(0)), doctest::Contains("did not run to its end"),
                       refrain::BadResult);
  vad::EagerSession eager(device, weights());
  CHECK_THROWS_AS(eager.step(speech().step(0)), refrain::BadResult);
}

TEST_CASE("vad: a step whose samples did not arrive tells the story where its answer is read") {
  const auto device = device_with(vad::register_kernels);
  vad::EagerSession eager(device, weights());
  const refrain::Error unplugged(refrain::ErrorKind::file_io, "The microphone is unplugged.");
  eager.stream().failed_write(eager.memory().samples, unplugged);
  vad::launch_step(eager.stream(), eager.memory());
  const auto read = eager.stream().read(eager.memory().probability);
  REQUIRE_FALSE(read.ok());
  CHECK(vad_test::mentions(read.error().text(), "The microphone is unplugged."));
  // The newest skips are told; the first of this step have made room for them.
  CHECK(vad_test::mentions(read.error().text(), "\"vad.sigmoid\""));
  CHECK(vad_test::mentions(read.error().text(), "\"vad.stft\""));

  // Launched one by one, the step claimed its states too: they are written anew.
  eager.reset();
  check_reference(vad::probabilities_of(vad::run(eager, speech())));
  CHECK(device.live_failures() == 0);
}

TEST_CASE("vad: probabilities that are no numbers are as far away as can be") {
  const Probabilities found = {0.5F, std::numeric_limits<float>::quiet_NaN(), 0.5F};
  const std::vector<double> expected = {0.5, 0.5, 0.5};
  CHECK(vad::largest_difference(found, expected) > 1e9);
}

}  // namespace
