#include "refrain/capture/warm_up.hpp"

#include "refrain/base/kernel_name.hpp"
#include "refrain/base/text.hpp"

namespace refrain {
namespace {

std::string called(const WarmUp::Work& work) {
  return quote(kernel_name(work.kernel)) + text(work.where);
}

}  // namespace

std::string WarmUp::on(StreamId stream) const {
  return stream == origin_ ? "" : " on stream " + std::to_string(stream.number);
}

std::optional<std::string> WarmUp::differs(const Work& work) {
  if (streams_.empty()) return std::nullopt;                            // there was no warm-up
  if (!whole_ && !streams_.contains(work.stream)) return std::nullopt;  // nobody listened to it
  Sequence& sequence = streams_[work.stream];
  const std::size_t at = sequence.recorded++;
  if (at < sequence.ran.size() && sequence.ran[at].kernel == work.kernel) return std::nullopt;
  const std::string ended = "it had ended after " + std::to_string(sequence.ran.size());
  return "its work " + std::to_string(at + 1) + on(work.stream) + " is " + called(work) +
         ", and its warm-up ran something else there: " +
         (at < sequence.ran.size() ? called(sequence.ran[at]) : ended) + ".";
}

std::optional<std::string> WarmUp::ended_early() const {
  for (const auto& [stream, sequence] : streams_) {
    const bool compared = stream == origin_ || sequence.recorded != 0;
    if (!compared || sequence.recorded >= sequence.ran.size()) continue;
    return "it ended after " + std::to_string(sequence.recorded) + on(stream) +
           ", and its warm-up went on with: " + called(sequence.ran[sequence.recorded]) + ".";
  }
  return std::nullopt;
}

}  // namespace refrain
