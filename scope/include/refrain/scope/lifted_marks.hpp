// Marks that are taken off for a while. A mark says that what was recorded has not run, and the
// bytes beneath are what they were (C18); a warm-up runs over those bytes and puts them back, so it
// looks beneath as recording does, and the marks are there again when it is done.
#pragma once

#include <span>
#include <vector>

#include "refrain/scope/failure_table.hpp"

namespace refrain {

/// For one thread.
class LiftedMarks {
 public:
  explicit LiftedMarks(FailureTable& table) noexcept : table_(table) {}
  ~LiftedMarks() { lay_again(); }
  LiftedMarks(const LiftedMarks&) = delete;
  LiftedMarks& operator=(const LiftedMarks&) = delete;

  /// Takes off the marks that `bytes` lie under.
  void lift(std::span<const BufferBinding> bytes);
  /// Lays them over whatever the bytes carry by now; where another mark lies, that one stays.
  void lay_again() noexcept;

 private:
  struct Lifted {
    BufferBinding bytes;
    FailureRecord* mark = nullptr;  // held
  };

  FailureTable& table_;
  std::vector<Lifted> lifted_;
};

}  // namespace refrain
