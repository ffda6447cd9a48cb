#include "vad/probabilities.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <sstream>
#include <string_view>
#include <system_error>
#include <utility>

#include "vad/file_bytes.hpp"

namespace vad {
namespace {

constexpr std::size_t kMaxFileBytes = std::size_t{64} << 20U;  // more lines than nine hours have
constexpr float kSpeech = 0.5F;

std::string_view trimmed(std::string_view line) {
  constexpr std::string_view kBlank = " \t\r";
  const std::size_t first = line.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return line.substr(first, line.find_last_not_of(kBlank) - first + 1);
}

refrain::Error cannot_write(const std::string& path, int code) {
  return refrain::Error(refrain::ErrorKind::file_io,
                        fmt::format("The file \"{}\" cannot be written ({}).", path,
                                    std::generic_category().message(code)));
}

/// The error number of what failed, or 0.
int write_all(const std::string& path, const char* mode, std::string_view text) {
  std::FILE* const file = std::fopen(path.c_str(), mode);
  if (file == nullptr) return errno;
  int failed = 0;
  if (std::fwrite(text.data(), 1, text.size(), file) != text.size()) failed = errno;
  if (std::fclose(file) != 0 && failed == 0) failed = errno;
  return failed;
}

}  // namespace

refrain::Result<std::vector<double>> read_probabilities(const std::string& path) {
  const auto bytes = read_file(path, kMaxFileBytes);
  if (!bytes) return bytes.error();
  std::string text(bytes->size(), '\0');
  std::transform(bytes->begin(), bytes->end(), text.begin(),
                 [](std::byte b) { return std::to_integer<char>(b); });

  std::vector<double> values;
  std::istringstream lines(text);
  for (std::string whole; std::getline(lines, whole);) {
    const std::string_view line = trimmed(whole);
    double value = 0;
    const auto [end, code] = std::from_chars(line.data(), line.data() + line.size(), value);
    if (code != std::errc() || end != line.data() + line.size() || !std::isfinite(value)) {
      return refrain::Error(
          refrain::ErrorKind::file_damaged,
          fmt::format("The file \"{}\" holds no number in line {}.", path, values.size() + 1));
    }
    values.push_back(value);
  }
  return values;
}

refrain::Result<void> write_probabilities(const std::string& path,
                                          std::span<const float> probabilities) {
  std::string text;
  for (const float probability : probabilities) {
    text += fmt::format("{:.9f}\n", probability);
  }
  // A pipe or a terminal is written to; a file is put in the place of the old one.
  std::error_code ignored;
  const auto there = std::filesystem::status(path, ignored);
  if (std::filesystem::exists(there) && !std::filesystem::is_regular_file(there)) {
    const int failed = write_all(path, "wb", text);
    if (failed != 0) return cannot_write(path, failed);
    return {};
  }
  const std::string beside = fmt::format("{}.{}.new", path, ::getpid());
  int failed = write_all(beside, "wbx", text);
  if (failed == EEXIST) return cannot_write(beside, failed);
  if (failed == 0 && std::rename(beside.c_str(), path.c_str()) != 0) failed = errno;
  if (failed == 0) return {};
  std::remove(beside.c_str());
  return cannot_write(path, failed);
}

double largest_difference(std::span<const float> found, std::span<const double> expected) {
  double largest = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const double difference = std::abs(static_cast<double>(found[i]) - expected[i]);
    // std::max would drop a NaN.
    largest = difference <= largest ? largest : difference;
    if (std::isnan(difference)) return std::numeric_limits<double>::infinity();
  }
  return largest;
}

std::string picture(std::span<const float> probabilities) {
  std::string drawn(probabilities.size(), '.');
  std::transform(probabilities.begin(), probabilities.end(), drawn.begin(),
                 [](float probability) { return probability >= kSpeech ? '#' : '.'; });
  return drawn;
}

}  // namespace vad
