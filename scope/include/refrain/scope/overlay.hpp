// The claims of a window (C8). What is recorded has not run, so nothing that happens in a window
// may touch what the rest of the program knows about its bytes. Inside, work sees what the window
// wrote first and the real claims beneath; outside, nobody sees any of it until the window ends.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <vector>

#include "refrain/scope/failure_table.hpp"

namespace refrain {

/// For the window's thread.
class Overlay {
 public:
  /// For a window of `stream` that was opened at `opened`.
  Overlay(FailureTable& table, StreamId stream, Where opened = {})
      : table_(table), stream_(stream), opened_(opened) {}
  /// Forgets everything, as `abort` promises: all claims are as they were (C11).
  ~Overlay();
  Overlay(const Overlay&) = delete;
  Overlay& operator=(const Overlay&) = delete;

  /// Whether a body is running in the window.
  [[nodiscard]] bool inside() const noexcept { return current_ != nullptr; }
  /// The innermost scope that is open in the window, or null.
  [[nodiscard]] const OpenScope* current() const noexcept { return current_; }

  /// Takes the memory that a scope needs which is opened next. Without this before, the scope takes
  /// it, and a process that has none left ends there.
  void make_room(std::span<const BufferBinding> reads, std::span<const BufferBinding> writes);
  /// The first bytes among `reads` that the window wrote, or was going to write.
  [[nodiscard]] std::optional<BufferBinding> written(std::span<const BufferBinding> reads) const;

  // The four of a FailureStore.
  FoundFailure read_failure(std::span<const BufferBinding> reads) noexcept;
  void enter_write(OpenScope& scope) noexcept;
  void propagate(const FoundFailure& found, const Skip& skip,
                 std::span<const BufferBinding> writes) noexcept;
  void exit_write(OpenScope& scope, const Error* error) noexcept;

  /// The window refuses to seal, or was dropped (C11): makes the claims real. What was recorded
  /// cleanly carries `error`; what failed or was skipped carries its own failure; bytes that the
  /// window read before it wrote them keep what they carried, because nothing has run. The failure
  /// that `error` names doomed the window. With `told`, somebody was given `error`. Answers the
  /// failure that it becomes.
  FailureId refuse(const Error& error, Where where, bool told = false) noexcept;
  /// Lets go of every claim and of every failure that only this window knew.
  void forget() noexcept;

 private:
  struct Entry {
    ClaimRanges claims;       // an empty claim says: written here, cleanly
    ByteRangeSet read_first;  // bytes that the window read before it wrote them
  };

  ClaimRanges::Context context() noexcept { return {segments_, table_.records_}; }
  void reserve_segments(std::size_t more);
  void put_into_overlay(OpenScope& scope) noexcept;
  void leave(OpenScope& scope) noexcept;
  void restore(OpenScope* scope, BufferId buffer, ByteRange part) noexcept;

  FailureTable& table_;
  StreamId stream_;
  Where opened_;
  SegmentPool segments_;
  std::map<BufferId, Entry> entries_;
  OpenScope* current_ = nullptr;
  std::size_t open_bindings_ = 0;  // what the open scopes write, for which `segments_` keeps room
};

}  // namespace refrain
