// The audio reader: the two forms that it takes, and everything that looks like them and is not.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "vad/audio.hpp"

namespace {

using refrain::ErrorKind;
using Bytes = std::vector<std::byte>;

void append(Bytes& bytes, const std::string& text) {
  for (const char c : text) {
    bytes.push_back(static_cast<std::byte>(c));
  }
}

void append(Bytes& bytes, std::uint64_t value, std::size_t width) {
  for (std::size_t i = 0; i < width; ++i) {
    bytes.push_back(static_cast<std::byte>(value >> (8 * i)));
  }
}

/// What a WAV file says of itself.
struct Wav {
  std::uint16_t encoding = 1;  // PCM; 3 is floating point
  std::uint16_t channels = 1;
  std::uint32_t rate = 16000;
  std::uint16_t bits = 16;
  std::string before_data;  // chunks between the format and the samples
};

Bytes wav_file(const Wav& wav, const Bytes& data) {
  Bytes bytes;
  append(bytes, "RIFF");
  append(bytes, 36 + wav.before_data.size() + data.size(), 4);
  append(bytes, "WAVEfmt ");
  append(bytes, 16, 4);
  append(bytes, wav.encoding, 2);
  append(bytes, wav.channels, 2);
  append(bytes, wav.rate, 4);
  const std::uint64_t frame = wav.channels * wav.bits / 8U;
  append(bytes, wav.rate * frame, 4);
  append(bytes, frame, 2);
  append(bytes, wav.bits, 2);
  append(bytes, wav.before_data);
  append(bytes, "data");
  append(bytes, data.size(), 4);
  bytes.insert(bytes.end(), data.begin(), data.end());
  return bytes;
}

/// Two steps and a bit of samples that differ from each other, the extremes among them.
Bytes some_samples() {
  Bytes bytes;
  append(bytes, 0x8000, 2);
  append(bytes, 0x7fff, 2);
  for (std::uint64_t i = 2; i < 2 * vad::kStepSamples + 100; ++i) {
    append(bytes, i * 31, 2);
  }
  return bytes;
}

Bytes file_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  Bytes bytes;
  append(bytes, text);
  return bytes;
}

bool mentions(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

void check_refused(const Bytes& bytes, ErrorKind kind, const std::string& part) {
  const auto audio = vad::parse_audio(bytes, "some.wav");
  REQUIRE_FALSE(audio.ok());
  const std::string text = audio.error().text();
  INFO(text);
  CHECK(audio.error().kind() == kind);
  CHECK(mentions(text, "\"some.wav\""));
  CHECK(mentions(text, part));
}

void check_same(const vad::Audio& a, const vad::Audio& b) {
  REQUIRE(a.steps() == b.steps());
  for (std::size_t i = 0; i < a.steps(); ++i) {
    const auto left = a.step(i);
    const auto right = b.step(i);
    CHECK(std::equal(left.begin(), left.end(), right.begin(), right.end()));
  }
}

TEST_CASE("vad: headerless audio is read and the part after the last whole step is dropped") {
  const auto audio = vad::read_audio(VAD_DATA_DIR "/goforward.raw");
  REQUIRE(audio.ok());
  CHECK(audio->steps() == 87);  // 44580 samples: 87 steps and 36 samples
}

TEST_CASE("vad: samples are scaled to between -1 and 1") {
  const auto audio = vad::parse_audio(some_samples(), "some.raw");
  REQUIRE(audio.ok());
  CHECK(audio->steps() == 2);
  CHECK(audio->step(0)[0] == -1.0F);
  CHECK(audio->step(0)[1] == 32767.0F / 32768.0F);
  CHECK(audio->step(0)[2] == 62.0F / 32768.0F);
  CHECK(audio->step(1)[0] == 512.0F * 31.0F / 32768.0F);
}

TEST_CASE("vad: a WAV file gives the same samples as its headerless twin") {
  const Bytes samples = file_bytes(VAD_DATA_DIR "/goforward.raw");
  const auto raw = vad::parse_audio(samples, "some.raw");
  const auto wav = vad::parse_audio(wav_file({}, samples), "some.wav");
  REQUIRE(raw.ok());
  REQUIRE(wav.ok());
  check_same(*raw, *wav);
}

TEST_CASE("vad: a WAV file with other chunks before its samples is read") {
  Wav wav;
  wav.before_data = std::string("LIST\5\0\0\0notes\0", 14);  // an odd length, padded
  const auto plain = vad::parse_audio(wav_file({}, some_samples()), "some.wav");
  const auto noted = vad::parse_audio(wav_file(wav, some_samples()), "some.wav");
  REQUIRE(plain.ok());
  REQUIRE(noted.ok());
  check_same(*plain, *noted);
}

TEST_CASE("vad: a WAV file of another rate is refused with both rates") {
  for (const std::uint32_t rate : {8000U, 22050U, 44100U, 48000U}) {
    Wav wav;
    wav.rate = rate;
    check_refused(wav_file(wav, some_samples()), ErrorKind::invalid_argument,
                  "is Signed 16 bit PCM at " + std::to_string(rate) +
                      " Hz with 1 channel, and 16-bit PCM at 16000 Hz with 1 channel is needed");
  }
}

TEST_CASE("vad: a WAV file in stereo is refused") {
  Wav wav;
  wav.channels = 2;
  check_refused(wav_file(wav, some_samples()), ErrorKind::invalid_argument,
                "at 16000 Hz with 2 channels, and");
}

TEST_CASE("vad: a WAV file of another sample format is refused") {
  Wav wav;
  wav.bits = 8;
  check_refused(wav_file(wav, some_samples()), ErrorKind::invalid_argument,
                "is Unsigned 8 bit PCM at 16000 Hz");
  wav.bits = 24;
  check_refused(wav_file(wav, Bytes(1800)), ErrorKind::invalid_argument,
                "is Signed 24 bit PCM at 16000 Hz");
  wav.bits = 32;
  wav.encoding = 3;
  check_refused(wav_file(wav, Bytes(2400)), ErrorKind::invalid_argument,
                "is 32 bit float at 16000 Hz");
}

TEST_CASE("vad: a WAV file cut short anywhere is refused") {
  const Bytes whole = wav_file({}, some_samples());
  REQUIRE(vad::parse_audio(whole, "some.wav").ok());
  for (std::size_t length = 0; length < whole.size(); ++length) {
    // Fewer than four bytes are not known to be a WAV file; they are too few samples.
    INFO(length);
    const Bytes cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length));
    const auto audio = vad::parse_audio(cut, "some.wav");
    REQUIRE_FALSE(audio.ok());
    CHECK(mentions(audio.error().text(), "\"some.wav\""));
  }
  const Bytes cut(whole.begin(), whole.end() - 200);
  check_refused(cut, ErrorKind::file_damaged,
                "is cut short: it announces 2248 bytes of samples and holds 2048");
}

TEST_CASE("vad: a WAV file with any bit of its header flipped is refused or read whole") {
  Bytes bytes = wav_file({}, some_samples());
  for (std::size_t at = 0; at < 44; ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      INFO("byte " << at << ", bit " << bit);
      const std::byte before = bytes[at];
      bytes[at] ^= static_cast<std::byte>(1 << bit);
      const auto audio = vad::parse_audio(bytes, "some.wav");
      // A flip in the magic makes it headerless, 44 bytes longer; one in a number that nothing
      // depends on (the bytes a second) does no harm; a shorter length is as good as a shorter
      // file.
      if (audio.ok()) {
        CHECK(audio->steps() <= 2);
      } else {
        CHECK(mentions(audio.error().text(), "\"some.wav\""));
      }
      bytes[at] = before;
    }
  }
}

TEST_CASE("vad: a WAV file whose samples are not whole is refused") {
  Bytes samples = some_samples();
  samples.pop_back();
  check_refused(wav_file({}, samples), ErrorKind::file_damaged, "has 2247 bytes of samples");
}

TEST_CASE("vad: a WAV file without samples is refused") {
  check_refused(wav_file({}, {}), ErrorKind::invalid_argument,
                "has 0 samples, fewer than one step of 512");
  Bytes bytes = wav_file({}, {});
  bytes.resize(bytes.size() - 8);
  check_refused(bytes, ErrorKind::file_damaged, "is a WAV file without samples");
}

TEST_CASE("vad: headerless audio of an odd number of bytes is refused") {
  check_refused(Bytes(2049), ErrorKind::file_damaged, "has 2049 bytes, an odd number");
}

TEST_CASE("vad: empty audio and audio shorter than a step is refused") {
  check_refused({}, ErrorKind::file_damaged, "is empty");
  check_refused(Bytes(1022), ErrorKind::invalid_argument,
                "has 511 samples, fewer than one step of 512");
  CHECK(vad::parse_audio(Bytes(1024), "some.raw").ok());
}

TEST_CASE("vad: other kinds of audio file are refused by their kind") {
  for (const auto& [mark, kind] :
       std::vector<std::pair<std::string, std::string>>{{"RIFX", "is big-endian WAV"},
                                                        {"RF64", "is 64-bit WAV"},
                                                        {"FORM", "is AIFF"},
                                                        {".snd", "is AU"},
                                                        {"fLaC", "is FLAC"},
                                                        {"OggS", "is Ogg"},
                                                        {"RIFF\x04\x08\x01\x01"
                                                         "AVI ",
                                                         "is a RIFF file and not a WAV file"}}) {
    Bytes bytes;
    append(bytes, mark);
    bytes.resize(4096);
    check_refused(bytes, ErrorKind::file_foreign, kind);
  }
}

TEST_CASE("vad: an audio file that cannot be read is refused by its name") {
  const auto missing = vad::read_audio("no/such.raw");
  REQUIRE_FALSE(missing.ok());
  CHECK(missing.error().kind() == ErrorKind::file_io);
  CHECK(mentions(missing.error().text(), "\"no/such.raw\" cannot be opened (No such file"));

  const auto empty = vad::read_audio("/dev/null");
  REQUIRE_FALSE(empty.ok());
  CHECK(mentions(empty.error().text(), "\"/dev/null\" is empty"));
}

}  // namespace
