// What a window's warm-up ran. A recording that does something else than the run before it records
// something that nobody has tried, so it is told at the first difference (C15).
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "refrain/base/ids.hpp"
#include "refrain/base/where.hpp"

namespace refrain {

/// For the window's thread.
class WarmUp {
 public:
  /// A pass begins: what an earlier one ran is forgotten.
  void begin_pass() noexcept { ran_.clear(); }
  /// The warm-up ran this.
  void ran(KernelId kernel, Where where) { ran_.push_back({kernel, where}); }

  /// The window records this now. Answers a sentence when the warm-up ran something else here.
  std::optional<std::string> differs(KernelId kernel, Where where);
  /// Nothing more is recorded. Answers a sentence when the warm-up went on.
  [[nodiscard]] std::optional<std::string> ended_early() const;

 private:
  struct Work {
    KernelId kernel;
    Where where;
  };
  [[nodiscard]] static std::string called(const Work& work);

  std::vector<Work> ran_;
  std::size_t recorded_ = 0;
};

}  // namespace refrain
