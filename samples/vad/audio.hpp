// Speech for the model: 16-bit, 16 kHz, one channel, either headerless or in a WAV file. Anything
// else is refused by name, because a wrong rate or format gives plausible numbers that mean
// nothing.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "refrain/base/result.hpp"
#include "vad/model.hpp"

namespace vad {

inline constexpr int kSampleRate = 16000;

/// At least one step of samples between -1 and 1. Made only by reading.
class Audio {
 public:
  /// Whole steps. The samples after the last of them, fewer than `kStepSamples`, are dropped: the
  /// model has no answer for part of a step, and padding with zeros would invent silence.
  [[nodiscard]] std::size_t steps() const { return samples_.size() / kStepSamples; }

  /// The samples of step `index`, which is less than `steps()`.
  [[nodiscard]] std::span<const float, kStepSamples> step(std::size_t index) const {
    return std::span(samples_).subspan(index * kStepSamples).first<kStepSamples>();
  }

 private:
  explicit Audio(std::vector<float> samples) : samples_(std::move(samples)) {}
  friend refrain::Result<Audio> parse_audio(std::span<const std::byte>, std::string_view);

  std::vector<float> samples_;
};

/// Reads the file at `path`. Fails with `file_io` or `file_limit` as a file, and otherwise as
/// `parse_audio` does.
refrain::Result<Audio> read_audio(const std::string& path);

/// Reads the bytes of a WAV file, which is known by its first four, or else signed 16-bit
/// little-endian samples; errors call it `name`. Fails with `file_damaged` when the bytes end too
/// early, with `file_foreign` when they are another kind of file, and with `invalid_argument` when
/// the rate, the channels or the sample format are others, or there is no whole step.
refrain::Result<Audio> parse_audio(std::span<const std::byte> bytes, std::string_view name);

}  // namespace vad
