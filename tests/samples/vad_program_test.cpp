// The program `vad` and what it promises, through its command line.
#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "refrain/base/shared_bytes.hpp"
#include "vad_fixture.hpp"

namespace {

using refrain::test::Ended;
using refrain::test::read_file;
using refrain::test::write_file;
using vad_test::check_reference;
using vad_test::kPicture;
using vad_test::kReference;
using vad_test::kSpeech;
using vad_test::kWeights;
using vad_test::mentions;
using vad_test::Place;

TEST_CASE("vad: an eager run gives the probabilities of the reference") {
  const Place place;
  const std::string out = place.done({"eager", "--weights", kWeights, "--pcm", kSpeech, "--out",
                                      place.file("p.txt"), "--expect", kReference});
  CHECK(mentions(out, "87 steps"));
  CHECK(mentions(out, "\n" + kPicture + "\n"));
  CHECK(mentions(out, "largest difference"));
  check_reference(place.file("p.txt"));
}

TEST_CASE("vad: a process without the weights replays what another one recorded") {
  const Place place;
  const std::string step = place.recorded();
  const std::string out = place.done({"replay", "--load", step, "--pcm", kSpeech, "--out",
                                      place.file("p.txt"), "--expect", kReference});
  CHECK(mentions(out, std::to_string(read_file(step).size()) + " bytes"));
  CHECK(mentions(out, "\n" + kPicture + "\n"));
  check_reference(place.file("p.txt"));

  place.done({"eager", "--weights", kWeights, "--pcm", kSpeech, "--out", place.file("eager.txt")});
  CHECK(read_file(place.file("p.txt")) == read_file(place.file("eager.txt")));
}

TEST_CASE("vad: saving twice gives the same bytes, over an old file too") {
  const Place place;
  const std::string first = place.recorded("first.refrain");
  const std::string second = place.file("second.refrain");
  write_file(second, std::vector<std::byte>(3'000'000, std::byte{7}));
  CHECK(place.recorded("second.refrain") == second);
  CHECK(read_file(first) == read_file(second));
  CHECK(place.size() == 2);
}

TEST_CASE("vad: eight sessions on four threads are each as one alone") {
  const Place place;
  const std::string step = place.recorded();
  const std::string out = place.done({"replay", "--load", step, "--pcm", kSpeech, "--sessions", "8",
                                      "--threads", "4", "--out", place.file("p.txt")});
  CHECK(mentions(out, "8 sessions on 4 threads"));
  CHECK(mentions(out, "each gave what one alone gives"));
  check_reference(place.file("p.txt"));

  // More threads than sessions, and a number of sessions that the threads do not share evenly.
  CHECK(mentions(place.done({"replay", "--load", step, "--pcm", kSpeech, "--sessions", "2",
                             "--threads", "64"}),
                 "2 sessions on 2 threads"));
  place.done({"replay", "--load", step, "--pcm", kSpeech, "--sessions", "3", "--threads", "2"});
}

/// A WAV file of the speech, said to have `rate`.
std::vector<std::byte> wav_of_speech(std::uint32_t rate) {
  const std::vector<std::byte> samples = read_file(kSpeech);
  std::vector<std::byte> wav;
  const auto text = [&](std::string_view letters) {
    for (const char letter : letters) wav.push_back(static_cast<std::byte>(letter));
  };
  const auto number = [&](std::size_t value, unsigned width) {
    for (unsigned i = 0; i < width; ++i) wav.push_back(static_cast<std::byte>(value >> (8 * i)));
  };
  text("RIFF");
  number(36 + samples.size(), 4);
  text("WAVEfmt ");
  number(16, 4);
  number(1, 2);
  number(1, 2);
  number(rate, 4);
  number(std::size_t{2} * rate, 4);
  number(2, 2);
  number(16, 2);
  text("data");
  number(samples.size(), 4);
  wav.insert(wav.end(), samples.begin(), samples.end());
  return wav;
}

TEST_CASE("vad: a WAV file is read, and one of another rate is refused") {
  const Place place;
  write_file(place.file("speech.wav"), wav_of_speech(16000));
  write_file(place.file("slow.wav"), wav_of_speech(8000));
  place.done(
      {"eager", "--weights", kWeights, "--pcm", place.file("speech.wav"), "--expect", kReference});
  place.refused({"eager", "--weights", kWeights, "--pcm", place.file("slow.wav"), "--out",
                 place.file("p.txt")},
                {"slow.wav", "8000 Hz", "16000 Hz"});
  const std::string step = place.recorded();
  place.refused(
      {"replay", "--load", step, "--pcm", place.file("slow.wav"), "--out", place.file("p.txt")},
      {"slow.wav", "8000 Hz"});
}

TEST_CASE("vad: compare times both and says whether the device checks") {
  const Place place;
  const std::string out =
      place.done({"compare", "--weights", kWeights, "--pcm", kSpeech, "--passes", "3"});
  CHECK(mentions(out, "87 steps of 19 launches"));
  CHECK(mentions(out, "3 interleaved passes"));
  CHECK(mentions(out, "device checks o"));
  CHECK(mentions(out, "the model, a step"));
  CHECK(mentions(out, "empty kernels, a launch"));
  CHECK(mentions(out, "All 6 passes gave the same probabilities"));
}

/// The reference with one step off by 1e-4, as a file in `place`.
std::string bent_reference(const Place& place) {
  const std::vector<double> reference = vad_test::numbers(kReference);
  std::string text;
  for (std::size_t i = 0; i < reference.size(); ++i) {
    text += std::to_string(reference[i] + (i == 60 ? 0.0001 : 0.0)) + "\n";
  }
  std::string path = place.file("bent.txt");
  write_file(path, std::as_bytes(std::span(text)));
  return path;
}

TEST_CASE("vad: the demo ends with an error when the reference is another") {
  const Place place;
  const Ended ended = place.vad(
      {"demo", "--weights", kWeights, "--pcm", kSpeech, "--expect", bent_reference(place)});
  CHECK(ended.status == 1);
  CHECK(mentions(ended.out, "NOT AS PROMISED"));
  CHECK(mentions(ended.out, "3 of 15 promises NOT kept"));
}

TEST_CASE("vad: probabilities that are not those expected are an error, and are written whole") {
  const Place place;
  const std::string text = "0.5\n0.25\n";
  write_file(place.file("two.txt"), std::as_bytes(std::span(text)));
  const std::string bent = bent_reference(place);
  const std::string out = place.file("p.txt");
  write_file(out, {});
  place.refused({"eager", "--weights", kWeights, "--pcm", kSpeech, "--out", out, "--expect",
                 place.file("two.txt")},
                {"two.txt", "holds 2 probabilities", "87 steps"});
  check_reference(out);
  write_file(out, {});
  place.refused({"eager", "--weights", kWeights, "--pcm", kSpeech, "--out", out, "--expect", bent},
                {"bent.txt", "differ", "1.0e-04"});
  check_reference(out);
}

TEST_CASE("vad: a file of expected probabilities that holds something else is refused") {
  const Place place;
  for (const std::string text : {"0.5\nhalf\n", "0.5\n\n0.25\n", "0.5\nnan\n", "0.5\n0.5 0.5\n"}) {
    INFO(text);
    write_file(place.file("odd.txt"), std::as_bytes(std::span(text)));
    place.refused({"eager", "--weights", kWeights, "--pcm", kSpeech, "--expect",
                   place.file("odd.txt"), "--out", place.file("p.txt")},
                  {"odd.txt", "line 2"});
  }
}

TEST_CASE("vad: what cannot be opened or written is named") {
  const Place place;
  const std::string step = place.recorded();
  const std::string nowhere = place.file("nowhere/file");
  place.refused({"eager", "--weights", nowhere, "--pcm", kSpeech}, {nowhere, "No such file"});
  place.refused({"eager", "--weights", kWeights, "--pcm", nowhere}, {nowhere, "No such file"});
  place.refused({"eager", "--weights", kWeights, "--pcm", kSpeech, "--expect", nowhere},
                {nowhere, "No such file"});
  place.refused({"eager", "--weights", kWeights, "--pcm", kSpeech, "--out", nowhere},
                {nowhere, "cannot be written", "No such file"});
  place.refused({"eager", "--weights", kWeights, "--pcm", kSpeech, "--out", "/dev/full"},
                {"/dev/full", "No space left"});
  place.refused({"record", "--weights", kWeights, "--save", nowhere}, {nowhere, "No such file"});
  place.refused({"replay", "--load", nowhere, "--pcm", kSpeech}, {nowhere, "No such file"});
  place.refused({"replay", "--load", step, "--pcm", nowhere}, {nowhere, "No such file"});
}

TEST_CASE("vad: a command line that is wrong explains itself") {
  const Place place;
  place.refused({}, {"subcommand", "--help"});
  place.refused({"listen"}, {"--help"});
  place.refused({"record", "--weights", kWeights}, {"--save", "required"});
  place.refused({"replay", "--pcm", kSpeech}, {"--load", "required"});
  place.refused({"replay", "--load", "f", "--pcm", kSpeech, "--threads", "0"},
                {"--threads", "range"});
  place.refused({"replay", "--load", "f", "--pcm", kSpeech, "--sessions", "many"}, {"--sessions"});
  place.refused({"replay", "--load", "f", "--pcm", kSpeech, "--weights", kWeights}, {"--weights"});
  for (const std::string command : {"eager", "record", "replay", "compare", "demo"}) {
    CHECK(mentions(place.done({command, "--help"}), "Usage: vad " + command));
  }
}

}  // namespace
