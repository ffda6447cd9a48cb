#include "refrain/capture/warm_up.hpp"

#include "refrain/base/kernel_name.hpp"
#include "refrain/base/text.hpp"

namespace refrain {

std::string WarmUp::called(const Work& work) {
  return quote(kernel_name(work.kernel)) + text(work.where);
}

std::optional<std::string> WarmUp::differs(KernelId kernel, Where where) {
  if (ran_.empty()) return std::nullopt;  // there was no warm-up
  const std::size_t at = recorded_++;
  if (at < ran_.size() && ran_[at].kernel == kernel) return std::nullopt;
  const std::string ended = "it had ended after " + std::to_string(ran_.size());
  return "its work " + std::to_string(at + 1) + " is " + called({kernel, where}) +
         ", and its warm-up ran something else there: " +
         (at < ran_.size() ? called(ran_[at]) : ended) + ".";
}

std::optional<std::string> WarmUp::ended_early() const {
  if (recorded_ >= ran_.size()) return std::nullopt;
  return "it ended after " + std::to_string(recorded_) +
         ", and its warm-up went on with: " + called(ran_[recorded_]) + ".";
}

}  // namespace refrain
