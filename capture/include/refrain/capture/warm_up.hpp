// What a window's warm-up ran. A recording that does something else than the run before it records
// something that nobody has tried, so it is told at the first difference (C15). Each stream is
// compared with itself. One that the warm-up heard and that never joins the window is a fork that
// was forgotten: the graph lacks its work.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "refrain/base/ids.hpp"
#include "refrain/base/where.hpp"

namespace refrain {

/// For the window's thread.
class WarmUp {
 public:
  struct Work {
    StreamId stream;
    KernelId kernel;
    std::uint32_t version = 0;  ///< Of a kernel; other work has none.
    Where where;
  };

  explicit WarmUp(StreamId origin) noexcept : origin_(origin) {}

  /// A pass of a whole body begins, in which every stream is heard: what an earlier one ran is
  /// forgotten. Without passes only the origin's work is.
  void begin_pass() noexcept {
    streams_.clear();
    whole_ = true;
  }
  /// The warm-up ran this.
  void ran(const Work& work) { streams_[work.stream].ran.push_back(work); }

  /// The window records this now. Answers a sentence when the warm-up ran something else here.
  std::optional<std::string> differs(const Work& work);
  /// Nothing more is recorded. Answers a sentence when the warm-up went on, on whatever stream.
  [[nodiscard]] std::optional<std::string> ended_early() const;

 private:
  struct Sequence {
    std::vector<Work> ran;
    std::size_t recorded = 0;
  };
  /// " on stream 4", or nothing for the origin.
  [[nodiscard]] std::string on(StreamId stream) const;

  StreamId origin_;
  std::map<StreamId, Sequence> streams_;
  bool whole_ = false;
};

}  // namespace refrain
