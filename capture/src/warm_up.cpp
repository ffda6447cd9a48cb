#include "refrain/capture/warm_up.hpp"

#include "refrain/base/kernel_name.hpp"
#include "refrain/base/text.hpp"

namespace refrain {
namespace {

/// With its version, where that is the difference to `other`.
std::string called(const WarmUp::Work& work, const WarmUp::Work& other) {
  const bool same = work.kernel == other.kernel && work.version != other.version;
  return quote(kernel_name(work.kernel)) +
         (same ? " version " + std::to_string(work.version) : "") + text(work.where);
}
std::string called(const WarmUp::Work& work) { return called(work, {}); }

}  // namespace

std::string WarmUp::on(StreamId stream) const {
  return stream == origin_ ? "" : " on stream " + std::to_string(stream.number);
}

std::optional<std::string> WarmUp::differs(const Work& work) {
  if (streams_.empty()) return std::nullopt;                            // there was no warm-up
  if (!whole_ && !streams_.contains(work.stream)) return std::nullopt;  // nobody listened to it
  Sequence& sequence = streams_[work.stream];
  const std::size_t at = sequence.recorded++;
  const Work ran = at < sequence.ran.size() ? sequence.ran[at] : Work{};
  if (ran.kernel == work.kernel && ran.version == work.version) return std::nullopt;
  const std::string ended = "it had ended after " + std::to_string(sequence.ran.size());
  return "its work " + std::to_string(at + 1) + on(work.stream) + " is " + called(work, ran) +
         ", and its warm-up ran something else there: " +
         (at < sequence.ran.size() ? called(ran, work) : ended) +
         ".";  // NOLINT: the other way round
}

std::optional<std::string> WarmUp::ended_early() const {
  for (const auto& [stream, sequence] : streams_) {
    if (sequence.recorded >= sequence.ran.size()) continue;
    const Work& next = sequence.ran[sequence.recorded];
    if (stream != origin_ && sequence.recorded == 0) {
      return "the warm-up ran " + called(next) + on(stream) +
             ", which did not join the window. (Wait there on an event of the window first.)";
    }
    return "it ended after " + std::to_string(sequence.recorded) + on(stream) +
           ", and its warm-up went on with: " + called(next) + ".";
  }
  return std::nullopt;
}

}  // namespace refrain
