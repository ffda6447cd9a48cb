// What the tests of the sample `vad` share: its files, its program, and a folder to work in.
#pragma once

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "program.hpp"
#include "support/temporary_folder.hpp"

namespace vad_test {

inline const std::string kWeights = VAD_DATA_DIR "/silero_vad_v6_16k.safetensors";
inline const std::string kSpeech = VAD_DATA_DIR "/goforward.raw";
inline const std::string kReference = VAD_DATA_DIR "/goforward.probabilities.txt";
inline const std::string kPicture =
    "................######################################################.................";

inline bool mentions(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

/// The numbers of a file that holds nothing else.
inline std::vector<double> numbers(const std::string& path) {
  std::ifstream file(path);
  REQUIRE(file.good());
  std::vector<double> values;
  for (double value = 0; file >> value;) values.push_back(value);
  CHECK(file.eof());
  return values;
}

/// Asserts that the file at `path` holds the 87 probabilities of the reference.
inline void check_reference(const std::string& path) {
  const std::vector<double> found = numbers(path);
  const std::vector<double> expected = numbers(kReference);
  REQUIRE(expected.size() == 87);
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    INFO("step " << i);
    CHECK(std::abs(found[i] - expected[i]) <= 1e-5);
  }
}

/// A folder, and the program run in it.
class Place {
 public:
  [[nodiscard]] std::string file(const std::string& name) const { return folder_.file(name); }
  [[nodiscard]] bool has(const std::string& name) const {
    return std::filesystem::exists(folder_.file(name));
  }
  /// How many files are in it.
  [[nodiscard]] std::size_t size() const { return folder_.size(); }

  [[nodiscard]] refrain::test::Ended vad(std::vector<std::string> arguments) const {
    return refrain::test::run(VAD_PROGRAM, std::move(arguments), folder_.path());
  }
  /// Runs it and asserts that it succeeds without a complaint.
  std::string done(std::vector<std::string> arguments) const {
    const refrain::test::Ended ended = vad(std::move(arguments));
    INFO(ended.out << ended.err);
    REQUIRE(ended.status == 0);
    CHECK(ended.err.empty());
    return ended.out;
  }
  /// Runs it and asserts that it exits 1 with a complaint that has all of `parts`, and leaves
  /// behind no file that was not there.
  void refused(std::vector<std::string> arguments, const std::vector<std::string>& parts) const {
    const std::size_t before = size();
    const refrain::test::Ended ended = vad(std::move(arguments));
    INFO(ended.out << ended.err);
    CHECK(ended.status == 1);
    for (const std::string& part : parts) {
      INFO(part);
      CHECK(mentions(ended.err, part));
    }
    CHECK(size() == before);
  }
  /// Records a step into `name`.
  [[nodiscard]] std::string recorded(const std::string& name = "step.refrain") const {
    done({"record", "--weights", kWeights, "--save", file(name)});
    return file(name);
  }

 private:
  refrain::test::TemporaryFolder folder_;
};

}  // namespace vad_test
