#include "vad/session.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <future>
#include <limits>
#include <utility>

namespace vad {
namespace {

/// One step around `issue`, which runs it on `stream`.
template <class Issue>
Answer answer(refrain::Stream& stream, const refrain::View<float>& samples,
              const refrain::View<float>& probability, std::span<const float, kStepSamples> values,
              const Issue& issue) {
  stream.write(samples, values);
  stream.fill(probability, std::numeric_limits<float>::quiet_NaN());

  const auto begin = std::chrono::steady_clock::now();
  issue();
  const auto end = std::chrono::steady_clock::now();

  float read = 0;
  stream.read_into(probability, std::span(&read, 1)).value();
  if (!(read >= 0 && read <= 1)) {  // a NaN is neither
    throw refrain::BadResult(refrain::Error(
        refrain::ErrorKind::kernel_failed,
        fmt::format("A step gave {} where a probability was to come: it did not run to its end.",
                    read)));
  }
  return {read, std::chrono::duration<double, std::micro>(end - begin).count()};
}

refrain::Result<refrain::View<float>> find(refrain::Instance& instance, const char* name,
                                           std::size_t count) {
  const std::string context =
      fmt::format("Graph \"{}\" is not a step of this model.", instance.graph().name());
  auto view = instance.view<float>(name);
  if (!view) return view.error().with_context(context);
  if (view->size() == count) return view;
  return refrain::Error(refrain::ErrorKind::invalid_argument,
                        fmt::format("Binding \"{}\" has {} values, and the model's has {}.", name,
                                    view->size(), count))
      .with_context(context);
}

}  // namespace

std::vector<float> probabilities_of(const Answers& answers) {
  std::vector<float> probabilities(answers.size());
  std::transform(answers.begin(), answers.end(), probabilities.begin(),
                 [](const Answer& each) { return each.probability; });
  return probabilities;
}

double median_microseconds(const Answers& answers) {
  std::vector<double> times(answers.size());
  std::transform(answers.begin(), answers.end(), times.begin(),
                 [](const Answer& each) { return each.microseconds; });
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

EagerSession::EagerSession(const refrain::Device& device,
                           const std::shared_ptr<const Weights>& weights)
    : stream_(device.stream().value()), step_(make_step(device, weights)) {}

Answer EagerSession::step(std::span<const float, kStepSamples> samples) {
  return answer(stream_, step_.samples, step_.probability, samples,
                [&] { launch_step(stream_, step_); });
}

refrain::Result<ReplaySession> ReplaySession::make(const refrain::Device& device,
                                                   const refrain::Plan& plan) {
  auto stream = device.stream();
  if (!stream) return std::move(stream).error();
  auto instance = plan.instance();
  if (!instance) return std::move(instance).error();
  const auto samples = find(*instance, kSamples, kStepSamples);
  if (!samples) return samples.error();
  const auto probability = find(*instance, kProbability, 1);
  if (!probability) return probability.error();
  return ReplaySession(*std::move(stream), *std::move(instance), *samples, *probability);
}

Answer ReplaySession::step(std::span<const float, kStepSamples> samples) {
  return answer(stream_, samples_, probability_, samples, [&] {
    const auto outcome = instance_.replay(stream_);
    // One that was skipped is told by the read of the probability, with the story of its input.
    if (outcome.failed()) throw refrain::BadResult(outcome.error());
  });
}

void ReplaySession::reset() { instance_.reset(stream_).value(); }

std::vector<Answers> run_together(const refrain::Device& device, const refrain::Plan& plan,
                                  const Audio& audio, std::size_t sessions, std::size_t threads) {
  std::vector<Answers> all(sessions);
  std::barrier round_ended(static_cast<std::ptrdiff_t>(threads));

  // Thread t has sessions t, t + threads, and so on.
  const auto work = [&](std::size_t thread) {
    std::vector<std::pair<std::size_t, ReplaySession>> mine;
    for (std::size_t k = thread; k < sessions; k += threads) {
      mine.emplace_back(k, ReplaySession::make(device, plan).value());
    }
    const std::size_t rounds = audio.steps() + kStepsBehind * (sessions - 1);
    for (std::size_t round = 0; round < rounds; ++round) {
      for (auto& [k, session] : mine) {
        const std::size_t start = kStepsBehind * k;
        if (round < start || round - start >= audio.steps()) continue;
        all[k].push_back(session.step(audio.step(round - start)));
      }
      round_ended.arrive_and_wait();
    }
  };

  std::vector<std::future<void>> running;
  for (std::size_t thread = 0; thread < threads; ++thread) {
    try {
      running.push_back(std::async(std::launch::async, [&, thread] {
        try {
          work(thread);
        } catch (...) {
          round_ended.arrive_and_drop();  // or the others would wait for it forever
          throw;
        }
      }));
    } catch (...) {
      for (; thread < threads; ++thread) round_ended.arrive_and_drop();
      throw;
    }
  }
  for (auto& each : running) each.get();
  return all;
}

}  // namespace vad
