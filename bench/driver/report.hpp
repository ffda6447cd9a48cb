// What was measured, as a table for a reader and as JSON for a file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "distribution.hpp"

namespace refrain::bench {

/// One thing that was timed.
struct Timing {
  std::string what;   ///< "graph launch"
  std::string shape;  ///< "straight 100"; empty where there is no graph.
  std::string state;  ///< What else the GPU did: "idle", "own stream busy", ...
  std::string part;   ///< What the clock covers: "enqueue", "enqueue and sync", ...
  Distribution durations;
};

/// Device memory that `executables` of one graph take together, as the driver's free memory
/// shrinks.
struct MemoryTaken {
  std::string shape;
  std::size_t nodes = 0;
  std::size_t executables = 0;
  std::int64_t instantiated = 0;
  std::int64_t uploaded = 0;
  std::int64_t launched = 0;
  std::int64_t destroyed = 0;  ///< What is still gone when they are destroyed.
};

class Report {
 public:
  /// What was measured on: goes into the file as it is.
  nlohmann::json subject = nlohmann::json::object();

  void add(std::string what, std::string shape, std::string state, std::string part,
           std::vector<Nanoseconds> samples);
  void add(MemoryTaken taken) { memory_.push_back(std::move(taken)); }
  /// A part that could not be measured.
  void failed(std::string part, std::string why);

  [[nodiscard]] bool complete() const noexcept { return failures_.empty(); }
  void print() const;
  /// Throws `std::runtime_error` when it cannot be written.
  void write(const std::filesystem::path& path) const;

 private:
  struct Failure {
    std::string part;
    std::string why;
  };
  std::vector<Timing> timings_;
  std::vector<MemoryTaken> memory_;
  std::vector<Failure> failures_;
};

}  // namespace refrain::bench
