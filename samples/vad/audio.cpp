#include "vad/audio.hpp"

#include <fmt/format.h>
#include <sndfile.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>

#include "vad/file_bytes.hpp"

namespace vad {
namespace {

constexpr std::size_t kMaxFileBytes = std::size_t{1} << 30;  // nine hours
constexpr std::string_view kNeeded = "16-bit PCM at 16000 Hz with 1 channel is needed";

refrain::Error error(refrain::ErrorKind kind, std::string_view name, std::string_view what) {
  return refrain::Error(kind, fmt::format("The audio file \"{}\" {}.", name, what));
}

std::uint32_t little_endian(std::span<const std::byte> bytes) {
  std::uint32_t value = 0;
  for (std::size_t i = bytes.size(); i > 0; --i) {
    value = value << 8 | std::to_integer<std::uint32_t>(bytes[i - 1]);
  }
  return value;
}

bool begins_with(std::span<const std::byte> bytes, std::string_view mark) {
  return bytes.size() >= mark.size() && std::memcmp(bytes.data(), mark.data(), mark.size()) == 0;
}

/// As the reference does it: the most negative sample becomes exactly -1.
float scaled(std::int16_t sample) { return static_cast<float>(sample) / 32768.0F; }

/// Files that people have at hand, of which headerless reading would make noise. Samples that
/// begin like one of these by chance are as good as impossible.
std::string_view foreign_kind(std::span<const std::byte> bytes) {
  struct Mark {
    std::string_view mark;
    std::string_view kind;
  };
  constexpr std::array<Mark, 6> kMarks = {{{"RIFX", "big-endian WAV"},
                                           {"RF64", "64-bit WAV"},
                                           {"FORM", "AIFF"},
                                           {".snd", "AU"},
                                           {"fLaC", "FLAC"},
                                           {"OggS", "Ogg"}}};
  for (const Mark& known : kMarks) {
    if (begins_with(bytes, known.mark)) return known.kind;
  }
  return {};
}

/// libsndfile opens a WAV file that is cut short and gives what is left, so the chunks are walked
/// here first. Returns the number of bytes of samples.
refrain::Result<std::size_t> check_chunks(std::span<const std::byte> bytes, std::string_view name) {
  constexpr std::size_t kRiffHeader = 12;
  constexpr std::size_t kChunkHeader = 8;
  if (bytes.size() < kRiffHeader) {
    return error(refrain::ErrorKind::file_damaged, name, "ends within the header of a WAV file");
  }
  if (!begins_with(bytes.subspan(8), "WAVE")) {
    return error(refrain::ErrorKind::file_foreign, name, "is a RIFF file and not a WAV file");
  }
  auto rest = bytes.subspan(kRiffHeader);
  while (rest.size() >= kChunkHeader) {
    const std::size_t length = little_endian(rest.subspan(4, 4));
    const bool is_data = begins_with(rest, "data");
    rest = rest.subspan(kChunkHeader);
    if (length > rest.size()) {
      return error(refrain::ErrorKind::file_damaged, name,
                   fmt::format("is cut short: it announces {} bytes {} and holds {}", length,
                               is_data ? "of samples" : "in a chunk before them", rest.size()));
    }
    if (is_data) return length;
    rest = rest.subspan(std::min(rest.size(), length + length % 2));  // chunks are padded to even
  }
  return error(refrain::ErrorKind::file_damaged, name, "is a WAV file without samples");
}

/// Bytes in memory, as libsndfile wants to see a file.
struct Source {
  std::span<const std::byte> bytes;
  std::size_t at = 0;
};

SF_VIRTUAL_IO source_calls() {
  SF_VIRTUAL_IO calls{};
  calls.get_filelen = [](void* user) -> sf_count_t {
    return static_cast<sf_count_t>(static_cast<Source*>(user)->bytes.size());
  };
  calls.seek = [](sf_count_t offset, int whence, void* user) -> sf_count_t {
    auto& source = *static_cast<Source*>(user);
    const auto size = static_cast<sf_count_t>(source.bytes.size());
    sf_count_t from = 0;
    if (whence == SEEK_CUR) from = static_cast<sf_count_t>(source.at);
    if (whence == SEEK_END) from = size;
    // `from` is within 1 GiB, so the limits of the offset can be worked out without overflow.
    source.at = static_cast<std::size_t>(from + std::clamp(offset, -from, size - from));
    return static_cast<sf_count_t>(source.at);
  };
  calls.read = [](void* to, sf_count_t count, void* user) -> sf_count_t {
    auto& source = *static_cast<Source*>(user);
    const auto left = static_cast<sf_count_t>(source.bytes.size() - source.at);
    const auto got = static_cast<std::size_t>(std::clamp<sf_count_t>(count, 0, left));
    if (got != 0) std::memcpy(to, source.bytes.data() + source.at, got);
    source.at += got;
    return static_cast<sf_count_t>(got);
  };
  calls.write = [](const void*, sf_count_t, void*) -> sf_count_t { return 0; };
  calls.tell = [](void* user) -> sf_count_t {
    return static_cast<sf_count_t>(static_cast<Source*>(user)->at);
  };
  return calls;
}

struct Close {
  void operator()(SNDFILE* file) const noexcept { sf_close(file); }
};

/// What libsndfile calls a sample format, such as "Unsigned 8 bit PCM".
std::string format_name(int format) {
  SF_FORMAT_INFO info{};
  info.format = format & SF_FORMAT_SUBMASK;
  if (sf_command(nullptr, SFC_GET_FORMAT_INFO, &info, sizeof(info)) != 0 || info.name == nullptr) {
    return fmt::format("format {:#x}", format);
  }
  return info.name;
}

refrain::Result<std::vector<float>> wav_samples(std::span<const std::byte> bytes,
                                                std::string_view name) {
  const auto data_bytes = check_chunks(bytes, name);
  if (!data_bytes) return data_bytes.error();
  Source source{bytes};
  SF_VIRTUAL_IO calls = source_calls();
  SF_INFO info{};
  const std::unique_ptr<SNDFILE, Close> file(sf_open_virtual(&calls, SFM_READ, &info, &source));
  if (!file) {
    return error(refrain::ErrorKind::file_damaged, name,
                 fmt::format("is no WAV file that can be read ({})", sf_strerror(nullptr)));
  }
  const int container = info.format & SF_FORMAT_TYPEMASK;
  const bool is_wav = container == SF_FORMAT_WAV || container == SF_FORMAT_WAVEX;
  const bool is_pcm16 = (info.format & SF_FORMAT_SUBMASK) == SF_FORMAT_PCM_16;
  if (!is_wav || !is_pcm16 || info.samplerate != kSampleRate || info.channels != 1) {
    return error(
        refrain::ErrorKind::invalid_argument, name,
        fmt::format("is {} at {} Hz with {} channel{}, and {}", format_name(info.format),
                    info.samplerate, info.channels, info.channels == 1 ? "" : "s", kNeeded));
  }
  // Before memory is taken for as many samples as somebody else counted.
  if (info.frames < 0 || static_cast<std::uint64_t>(info.frames) * 2 != *data_bytes) {
    return error(refrain::ErrorKind::file_damaged, name,
                 fmt::format("has {} bytes of samples, which is not {} of two bytes", *data_bytes,
                             info.frames));
  }
  std::vector<std::int16_t> frames(static_cast<std::size_t>(info.frames));
  if (sf_readf_short(file.get(), frames.data(), info.frames) != info.frames) {
    return error(refrain::ErrorKind::file_damaged, name, "ends before its last sample");
  }
  std::vector<float> samples(frames.size());
  std::transform(frames.begin(), frames.end(), samples.begin(), scaled);
  return samples;
}

refrain::Result<std::vector<float>> raw_samples(std::span<const std::byte> bytes,
                                                std::string_view name) {
  if (const auto kind = foreign_kind(bytes); !kind.empty()) {
    return error(refrain::ErrorKind::file_foreign, name,
                 fmt::format("is {}; {}, headerless or as WAV", kind, kNeeded));
  }
  if (bytes.size() % 2 != 0) {
    return error(
        refrain::ErrorKind::file_damaged, name,
        fmt::format("has {} bytes, an odd number, and a 16-bit sample has two", bytes.size()));
  }
  std::vector<float> samples(bytes.size() / 2);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    samples[i] = scaled(static_cast<std::int16_t>(little_endian(bytes.subspan(2 * i, 2))));
  }
  return samples;
}

}  // namespace

refrain::Result<Audio> read_audio(const std::string& path) {
  auto bytes = read_file(path, kMaxFileBytes);
  if (!bytes) return std::move(bytes).error();
  return parse_audio(*bytes, path);
}

refrain::Result<Audio> parse_audio(std::span<const std::byte> bytes, std::string_view name) {
  if (bytes.empty()) return error(refrain::ErrorKind::file_damaged, name, "is empty");
  auto samples = begins_with(bytes, "RIFF") ? wav_samples(bytes, name) : raw_samples(bytes, name);
  if (!samples) return std::move(samples).error();
  if (samples->size() < kStepSamples) {
    return error(
        refrain::ErrorKind::invalid_argument, name,
        fmt::format("has {} samples, fewer than one step of {}", samples->size(), kStepSamples));
  }
  return Audio(*std::move(samples));
}

}  // namespace vad
