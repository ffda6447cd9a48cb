#include "report.hpp"

#include <fmt/format.h>

#include <fstream>
#include <stdexcept>

namespace refrain::bench {

void Report::add(std::string what, std::string shape, std::string state, std::string part,
                 std::vector<Nanoseconds> samples) {
  timings_.push_back({std::move(what), std::move(shape), std::move(state), std::move(part),
                      distribution(std::move(samples))});
}

void Report::failed(std::string part, std::string why) {
  failures_.push_back({std::move(part), std::move(why)});
}

void Report::print() const {
  for (const auto& [key, value] : subject.items()) {
    fmt::print("{:20} {}\n", key, value.is_string() ? value.get<std::string>() : value.dump());
  }
  fmt::print("\n{:28} {:14} {:18} {:18} {:>10} {:>10} {:>10} {:>10} {:>7}\n", "microseconds",
             "graph", "GPU", "of", "p10", "median", "p90", "p99", "samples");
  for (const Timing& row : timings_) {
    const Distribution& of = row.durations;
    fmt::print("{:28} {:14} {:18} {:18} {:10.3f} {:10.3f} {:10.3f} {:10.3f} {:7}\n", row.what,
               row.shape, row.state, row.part, of.p10 * 1e-3, of.median * 1e-3, of.p90 * 1e-3,
               of.p99 * 1e-3, of.count);
  }
  fmt::print("\n{:28} {:>6} {:>12} {:>12} {:>12} {:>12} {:>12}\n", "bytes of device memory",
             "nodes", "executables", "instantiated", "uploaded", "launched", "destroyed");
  for (const MemoryTaken& row : memory_) {
    fmt::print("{:28} {:6} {:12} {:12} {:12} {:12} {:12}\n", row.shape, row.nodes, row.executables,
               row.instantiated, row.uploaded, row.launched, row.destroyed);
  }
  for (const Failure& failure : failures_) {
    fmt::print("\nnot measured: {}: {}\n", failure.part, failure.why);
  }
}

void Report::write(const std::filesystem::path& path) const {
  nlohmann::json all = subject;
  all["timings"] = nlohmann::json::array();
  for (const Timing& row : timings_) {
    const Distribution& of = row.durations;
    all["timings"].push_back({{"what", row.what},
                              {"shape", row.shape},
                              {"state", row.state},
                              {"part", row.part},
                              {"unit", "ns"},
                              {"samples", of.count},
                              {"min", of.least},
                              {"p10", of.p10},
                              {"median", of.median},
                              {"p90", of.p90},
                              {"p99", of.p99},
                              {"max", of.most}});
  }
  all["memory"] = nlohmann::json::array();
  for (const MemoryTaken& row : memory_) {
    all["memory"].push_back({{"shape", row.shape},
                             {"nodes", row.nodes},
                             {"executables", row.executables},
                             {"bytes_instantiated", row.instantiated},
                             {"bytes_uploaded", row.uploaded},
                             {"bytes_launched", row.launched},
                             {"bytes_destroyed", row.destroyed}});
  }
  all["not_measured"] = nlohmann::json::array();
  for (const Failure& failure : failures_) {
    all["not_measured"].push_back({{"part", failure.part}, {"why", failure.why}});
  }
  std::ofstream file(path);
  file << all.dump(1) << '\n';
  file.close();
  if (!file) throw std::runtime_error(fmt::format("cannot write ({})", path.string()));
}

}  // namespace refrain::bench
