// Probabilities as people and other programs see them: a text file with one a line, and a picture.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "refrain/base/result.hpp"

namespace vad {

inline constexpr double kTolerance = 1e-5;  ///< Single precision in another order gives about 1e-6.

/// Reads a file of numbers, one a line. Fails with `file_io` as a file, and with `file_damaged`,
/// naming the line, where a line holds anything else.
refrain::Result<std::vector<double>> read_probabilities(const std::string& path);

/// Writes one a line, with nine decimals. Whatever happens, a file at `path` is the old one or the
/// whole new one.
refrain::Result<void> write_probabilities(const std::string& path,
                                          std::span<const float> probabilities);

/// The largest difference; the two have the same length.
double largest_difference(std::span<const float> found, std::span<const double> expected);

/// One character a step: `#` for speech, which is 0.5 and more, and `.` for none.
std::string picture(std::span<const float> probabilities);

}  // namespace vad
