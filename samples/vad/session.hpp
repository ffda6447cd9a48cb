// Speech through the step, one step after the other, eagerly or replayed. What must stay true: an
// answer is one that its own step gave. So the output is poisoned before every step, and a step
// that ran nothing, or not to its end, cannot pass off the answer of an earlier one as its own.
//
// What cannot be done throws `refrain::BadResult`, as `Result::value()` does.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "refrain/refrain.hpp"
#include "vad/audio.hpp"
#include "vad/model.hpp"
#include "vad/step.hpp"

namespace vad {

/// What one step gave, and how long it took: without handing in the samples and reading the answer.
struct Answer {
  float probability;
  double microseconds;
};

/// One a step, in order.
using Answers = std::vector<Answer>;

std::vector<float> probabilities_of(const Answers& answers);

/// The median time of a step.
double median_microseconds(const Answers& answers);

/// Launches every step anew. For one thread.
class EagerSession {
 public:
  EagerSession(const refrain::Device& device, const std::shared_ptr<const Weights>& weights);

  Answer step(std::span<const float, kStepSamples> samples);
  void reset() { vad::reset(stream_, step_); }

  [[nodiscard]] const Step& memory() const { return step_; }
  refrain::Stream& stream() { return stream_; }

 private:
  refrain::Stream stream_;
  Step step_;
};

/// Replays a recorded step in memory of its own. Sessions of one plan may run on several threads
/// at once, each on one at a time.
class ReplaySession {
 public:
  /// A session in fresh memory, at its first step. Refuses a plan whose bindings are not those of a
  /// step of this model.
  static refrain::Result<ReplaySession> make(const refrain::Device& device,
                                             const refrain::Plan& plan);

  Answer step(std::span<const float, kStepSamples> samples);
  void reset();

  refrain::Stream& stream() { return stream_; }
  refrain::Instance& instance() { return instance_; }
  [[nodiscard]] refrain::View<float> samples() const { return samples_; }
  [[nodiscard]] refrain::View<float> probability() const { return probability_; }

 private:
  ReplaySession(refrain::Stream stream, refrain::Instance instance,
                const refrain::View<float>& samples, const refrain::View<float>& probability)
      : stream_(std::move(stream)),
        instance_(std::move(instance)),
        samples_(samples),
        probability_(probability) {}

  refrain::Stream stream_;
  refrain::Instance instance_;
  refrain::View<float> samples_;
  refrain::View<float> probability_;
};

/// All steps of `audio` through one session, from where the session stands.
template <class Session>
Answers run(Session& session, const Audio& audio) {
  Answers answers;
  answers.reserve(audio.steps());
  for (std::size_t i = 0; i < audio.steps(); ++i) {
    answers.push_back(session.step(audio.step(i)));
  }
  return answers;
}

inline constexpr std::size_t kStepsBehind = 7;  ///< By which a session starts after the one before.

/// `audio` through each of `sessions` instances of one plan, on `threads` threads that keep in
/// step. Session k starts 7k steps late, so that no two are ever in the same state.
std::vector<Answers> run_together(const refrain::Device& device, const refrain::Plan& plan,
                                  const Audio& audio, std::size_t sessions, std::size_t threads);

}  // namespace vad
