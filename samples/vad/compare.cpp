#include "vad/compare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <utility>
#include <vector>

#include "vad/session.hpp"

namespace vad {
namespace {

/// Of one step, in microseconds, one a pass.
struct Times {
  std::vector<double> eager;
  std::vector<double> replayed;
};

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Calls both `passes` times, each of them first in every other pass.
template <class Eager, class Replayed>
void take_turns(std::size_t passes, const Eager& eager, const Replayed& replayed) {
  for (std::size_t pass = 0; pass < passes; ++pass) {
    if (pass % 2 == 0) eager();
    replayed();
    if (pass % 2 != 0) eager();
  }
}

refrain::Plan plan_of(const refrain::Device& device, EagerSession& session) {
  const auto recording = record_step(session.stream(), session.memory()).value();
  return refrain::Plan::prepare(device, recording.graph()).value();
}

/// With the model's kernels, on the speech; `same` becomes false when two passes differ.
Times with_the_model(const refrain::Device& device, const std::shared_ptr<const Weights>& weights,
                     const Audio& audio, std::size_t passes, bool& same) {
  EagerSession eager(device, weights);
  ReplaySession replayed = ReplaySession::make(device, plan_of(device, eager)).value();
  Times times;
  std::vector<float> first;
  const auto pass = [&](auto& session, std::vector<double>& into) {
    session.reset();
    const Answers answers = run(session, audio);
    into.push_back(median_microseconds(answers));
    const std::vector<float> probabilities = probabilities_of(answers);
    if (first.empty()) first = probabilities;
    same = same && probabilities == first;
  };
  take_turns(
      passes, [&] { pass(eager, times.eager); }, [&] { pass(replayed, times.replayed); });
  return times;
}

/// With kernels that do nothing. A step is too short to be timed alone, so some are timed together,
/// and few enough of them that the machine rarely does something else meanwhile.
Times with_empty_kernels(const refrain::Device& device,
                         const std::shared_ptr<const Weights>& weights, const Audio& audio,
                         std::size_t passes) {
  constexpr int kTogether = 20;
  EagerSession eager(device, weights);
  ReplaySession replayed = ReplaySession::make(device, plan_of(device, eager)).value();
  // Recorded memory counts as unwritten until somebody writes it, and the samples always do.
  eager.reset();
  eager.stream().write(eager.memory().samples, audio.step(0));
  replayed.stream().write(replayed.samples(), audio.step(0));

  Times times;
  const auto pass = [&](std::vector<double>& into, const auto& issue) {
    std::vector<double> each;
    for (std::size_t step = 0; step < audio.steps(); ++step) {
      const auto begin = std::chrono::steady_clock::now();
      for (int i = 0; i < kTogether; ++i) issue();
      const auto end = std::chrono::steady_clock::now();
      each.push_back(std::chrono::duration<double, std::micro>(end - begin).count() / kTogether);
    }
    into.push_back(median(std::move(each)));
  };
  take_turns(
      passes, [&] { pass(times.eager, [&] { launch_step(eager.stream(), eager.memory()); }); },
      [&] {
        pass(times.replayed,
             [&] { replayed.instance().replay(replayed.stream()).into_result().value(); });
      });
  // Steps that were skipped would be quick for the wrong reason.
  eager.stream().read(eager.memory().probability).value();
  replayed.stream().read(replayed.probability()).value();
  return times;
}

void print(const char* what, const char* unit, double eager, double replayed) {
  fmt::print("{:<26}{:>10.3f} {}{:>10.3f} {}{:>10.3f} {}\n", what, eager, unit, replayed, unit,
             eager - replayed, unit);
}

}  // namespace

bool compare(const std::shared_ptr<const Weights>& weights, const Audio& audio,
             std::size_t passes) {
  const refrain::host::Device device;
  device.register_kernels(register_kernels).value();
  const refrain::host::Device idle;
  idle.register_kernels(register_empty_kernels).value();

  bool same = true;
  const Times model = with_the_model(device, weights, audio, passes, same);
  const Times empty = with_empty_kernels(idle, weights, audio, passes);
  const double eager = median(empty.eager);
  const double replayed = median(empty.replayed);
  constexpr double kNanosecondsALaunch = 1000.0 / static_cast<double>(kLaunchesPerStep);

  fmt::print(
      "{} steps of {} launches, medians over {} interleaved passes of each pass's median step, "
      "device checks {}\n\n",
      audio.steps(), kLaunchesPerStep, passes, device.core()->checks() ? "on" : "off");
  fmt::print("{:<26}{:>13}{:>13}{:>13}\n", "", "eager", "replayed", "difference");
  print("the model, a step", "us", median(model.eager), median(model.replayed));
  print("empty kernels, a step", "us", eager, replayed);
  print("empty kernels, a launch", "ns", eager * kNanosecondsALaunch,
        replayed * kNanosecondsALaunch);
  if (same) {
    fmt::print("\nAll {} passes gave the same probabilities, bit for bit.\n", 2 * passes);
  } else {
    fmt::print(stderr, "vad: Two passes over the same audio gave different probabilities.\n");
  }
  return same;
}

bool compare_nodes(const refrain::Device& device, const refrain::Device& twin,
                   const std::shared_ptr<const Weights>& weights, const Audio& audio,
                   double tolerance) {
  EagerSession recorder(device, weights);
  const refrain::SealedGraph graph =
      record_step(recorder.stream(), recorder.memory()).value().graph();
  ReplaySession here =
      ReplaySession::make(device, refrain::Plan::prepare(device, graph).value()).value();
  ReplaySession there =
      ReplaySession::make(twin, refrain::Plan::prepare(twin, graph).value()).value();
  for (std::size_t step = 0; step < audio.steps(); ++step) {
    here.stream().write(here.samples(), audio.step(step));
    there.stream().write(there.samples(), audio.step(step));
    const auto difference =
        refrain::compare(here.instance(), here.stream(), there.instance(), there.stream(),
                         {.absolute = tolerance, .relative = tolerance})
            .value();
    if (!difference) continue;
    fmt::print(stderr, "vad: In step {}, {}.\n", step, text(*difference));
    return false;
  }
  fmt::print("compared             {} steps of {} nodes: every result within {:.1e}\n",
             audio.steps(), graph.nodes().size(), tolerance);
  return true;
}

}  // namespace vad
