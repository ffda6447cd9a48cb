#include "row.hpp"

#include <fmt/format.h>

#include <vector>

#include "support/allocations.hpp"

namespace refrain::bench {
namespace {

constexpr double kQuiet = 0.10;

class Rounds {
 public:
  Rounds(const Row& row, Crew& crew) : row_(row), crew_(crew) {}

  /// Answers how long one call of the subject took.
  Nanoseconds one(bool floor_first) {
    Nanoseconds floor = floor_first ? half(row_.floor) : 0;
    const Nanoseconds subject = half(row_.subject);
    const Nanoseconds base = row_.base ? half(*row_.base) : 0;
    if (!floor_first) floor = half(row_.floor);
    floors_.push_back(floor);
    subjects_.push_back(subject);
    ratios_.push_back(subject / floor);
    if (row_.base) over_base_.push_back(subject / base);
    return subject;
  }

  void tell(benchmark::State& state) const {
    const Distribution floor = distribution(floors_);
    const double ratio = distribution(ratios_).median;
    const double spread = (floor.p90 - floor.p10) / floor.median;
    state.counters["floor_ns"] = floor.median;
    state.counters["ns"] = distribution(subjects_).median;
    state.counters["ratio"] = ratio;
    state.counters["spread"] = spread;
    state.counters["allocations"] = allocations_;
    double judged = ratio;
    if (row_.base) {
      judged = distribution(over_base_).median;
      state.counters["over_base"] = judged;
    }
    std::string label = spread > kQuiet ? "noisy" : "";
    const auto say = [&](const std::string& words) {
      label += (label.empty() ? "" : "; ") + words;
    };
    if (row_.goal != 0 && label.empty()) {
      say(fmt::format("goal {:.1f}x {} ({:.2f}x)", row_.goal,
                      judged <= row_.goal ? "met" : "missed", judged));
    }
    if (row_.allocates_nothing && allocations_ != 0) say("allocates");
    state.SetLabel(label);
  }

  void count_allocations() {
    const std::uint64_t taken = test::allocations_in([&] { row_.subject.work(0); });
    if (row_.subject.mend) row_.subject.mend();
    allocations_ = static_cast<double>(taken) / static_cast<double>(row_.calls);
  }

 private:
  Nanoseconds half(const Subject& subject) {
    Nanoseconds all = 0;
    for (int pass = 0; pass < 2; ++pass) {
      all = crew_.time(subject.threads, subject.work);
      if (subject.mend) subject.mend();
    }
    return all / static_cast<double>(row_.calls);
  }

  const Row& row_;
  Crew& crew_;
  std::vector<double> floors_;
  std::vector<double> subjects_;
  std::vector<double> ratios_;
  std::vector<double> over_base_;
  double allocations_ = 0;
};

void measure(benchmark::State& state, const Row& row, Crew& crew) {
  static_cast<void>(Rounds(row, crew).one(true));  // pools grow, caches fill
  Rounds rounds(row, crew);
  rounds.count_allocations();
  bool floor_first = true;
  for ([[maybe_unused]] auto round : state) {
    state.SetIterationTime(rounds.one(floor_first) * 1e-9);
    floor_first = !floor_first;
  }
  rounds.tell(state);
}

}  // namespace

void add(const Row& row, Crew& crew, const Extent& extent) {
  benchmark::RegisterBenchmark(row.name.c_str(),
                               [row, &crew](benchmark::State& state) { measure(state, row, crew); })
      ->Iterations(static_cast<benchmark::IterationCount>(extent.rounds))
      ->UseManualTime()
      ->Unit(benchmark::kNanosecond);
}

}  // namespace refrain::bench
