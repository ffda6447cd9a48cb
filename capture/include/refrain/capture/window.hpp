// The window: the span in which a stream's work is recorded and not executed. It gathers what
// scopes that exited cleanly wrote, and is doomed by the first that failed or was skipped, because
// a graph that lacks work must never seal.
//
// Only scopes tell it anything (C7): `entered`, `record` and `fail` are called by ExecuteScope and
// by nobody else, so "recorded" and "in the graph" are one event. The bodies stage the nodes.
#pragma once

#include <atomic>
#include <boost/container/static_vector.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "refrain/base/result.hpp"
#include "refrain/capture/members.hpp"
#include "refrain/capture/sealed_graph.hpp"
#include "refrain/capture/warm_up.hpp"
#include "refrain/scope/overlay.hpp"

namespace refrain {

/// The life of a window (C1).
enum class WindowState : std::uint8_t { prepared, recording, doomed, sealed, abandoned, ended };

std::string_view name_of(WindowState state) noexcept;

/// One argument of work that is to be staged: where its address goes, and its bytes.
struct StagedArgument {
  std::uint32_t offset = 0;
  Direction direction = Direction::in;
  BufferBinding binding;
};

/// What a window needs to know of a buffer that a node touches, and what keeps it alive (C14).
struct PinnedBuffer {
  Region region;
  std::shared_ptr<const void> pin;
};

/// What sealing leaves: the graph, and which buffer each of its regions was.
struct SealedWindow {
  SealedGraph graph;
  std::vector<BufferId> buffers;                  ///< One a region.
  std::vector<std::shared_ptr<const void>> pins;  ///< One a region.
};

/// Says at sealing what a buffer is for, over what it was made with.
struct RoleAt {
  BufferId buffer;
  Role role = Role::none;
  std::string name;  ///< Empty keeps the buffer's own.
};

/// How a window is sealed.
struct SealOptions {
  std::string name = kUnnamedGraph;
  std::vector<RoleAt> roles{};
  bool allow_empty = false;  ///< Accept a window in which nothing was recorded (C17).
};

class Window;

/// Who lists the windows that are open.
class OpenWindows {
 public:
  virtual ~OpenWindows() = default;
  /// `window` is over. Nothing of the program's is called by this.
  virtual void closed(const Window& window) noexcept = 0;
  /// Its claims are settled: what waits for its end may go (C19).
  virtual void settled() noexcept = 0;

 protected:
  OpenWindows() = default;
  OpenWindows(const OpenWindows&) = default;
  OpenWindows& operator=(const OpenWindows&) = default;
};

/// For the thread that uses its streams. Whoever ends it owns it until that is done: what it kept
/// goes then, and may own whatever a program likes.
class Window {
 public:
  /// `list`, if any, outlives it.
  Window(FailureTable& table, StreamId stream, Where opened, OpenWindows* list = nullptr);
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;

  [[nodiscard]] WindowState state() const noexcept { return state_; }
  /// Recording, or doomed while it records on: work goes here and not to the device.
  [[nodiscard]] bool capturing() const noexcept {
    return state_ == WindowState::recording || state_ == WindowState::doomed;
  }
  /// Sealed, abandoned or ended: no work of any stream is recorded any more.
  [[nodiscard]] bool over() const noexcept { return state_ >= WindowState::sealed; }
  /// This thread uses it from now on.
  void used_here() noexcept { user_.store(std::this_thread::get_id(), std::memory_order_relaxed); }
  /// Whether this thread has used it last. For any thread.
  [[nodiscard]] bool is_used_here() const noexcept {
    return user_.load(std::memory_order_relaxed) == std::this_thread::get_id();
  }
  /// The stream that opened it.
  [[nodiscard]] StreamId stream() const noexcept { return stream_; }
  [[nodiscard]] Where opened() const noexcept { return opened_; }
  [[nodiscard]] Overlay& overlay() noexcept { return overlay_; }

  /// From prepared to recording.
  Result<void> begin();

  // For scopes.

  /// A scope entered; answers how much had been staged before.
  [[nodiscard]] std::size_t entered() const noexcept { return nodes_.size(); }
  /// A scope exited cleanly (C2). Dooms the window when what its body staged does not write
  /// exactly what the scope claims (C2), or when it staged nothing (C16).
  void record(const OpenScope& scope) noexcept;
  /// A scope failed or was skipped (C3, C4). The first doom wins, the rest are counted (C6).
  void fail(const OpenScope& scope, const Error& error) noexcept;
  /// The same of work that did not run, because of what one of its inputs carries (C4).
  void skipped(const OpenScope& scope, const FoundFailure& found) noexcept;

  // For warm-ups.

  /// The warm-up runs this, or a member records it. A recording that does another thing than the
  /// warm-up did is doomed (C15).
  void runs(const WarmUp::Work& work);
  /// A pass of the warm-up begins.
  void begin_pass() noexcept {
    warm_up_.begin_pass();
    first_uses_.clear();
  }
  /// Work that happens once was wanted (C20). While it is prepared that is noted; while it records
  /// it dooms.
  void first_use(const std::string& what);
  /// What happened for the first time in this pass.
  [[nodiscard]] std::span<const std::string> first_uses() const noexcept { return first_uses_; }

  // For the streams that record in it (C21).

  [[nodiscard]] const Members& members() const noexcept { return members_; }
  /// A stream waits on an event that a member recorded, and so becomes a member.
  Members::Index join(StreamId stream, const Members::Point& point, Where where) {
    return members_.join(stream, point, where);
  }
  /// A member waits on an event that a member recorded. Nobody leaves from inside a piece of work,
  /// which ends in the window that it began in.
  void wait(Members::Index member, const Members::Point& point) {
    members_.wait(member, point, !overlay_.inside());
  }
  /// A member is destroyed. The origin's going abandons the window (C10); another's dooms it, when
  /// work that it recorded is waited for by nobody.
  void gone(Members::Index member) noexcept;

  // For bodies; `by` is the member that stages.

  /// Whether `buffer` has been touched already, so that `pin` need not be called.
  [[nodiscard]] bool touches(BufferId buffer) const noexcept { return regions_.contains(buffer); }
  void pin(BufferId buffer, PinnedBuffer pinned);
  void stage_kernel(const std::shared_ptr<const KernelSignature>& kernel, const Grid& grid,
                    std::span<const std::byte> block, std::span<const StagedArgument> arguments,
                    Members::Index by = Members::kOrigin);
  void stage_copy(const BufferBinding& source, const BufferBinding& destination, Where where,
                  Members::Index by = Members::kOrigin);
  void stage_fill(const BufferBinding& destination, std::uint32_t pattern, std::uint32_t width,
                  Where where, Members::Index by = Members::kOrigin);
  /// Keeps `function`, and then stages the node that calls it.
  void stage_host(const std::shared_ptr<const HostFunction>& function,
                  std::span<const StagedArgument> arguments, Where where,
                  Members::Index by = Members::kOrigin);
  /// The same; the last argument is the workspace, where the function asks for one.
  void stage_native(const std::shared_ptr<const NativeFunction>& function,
                    std::span<const StagedArgument> arguments, Where where,
                    Members::Index by = Members::kOrigin);
  /// The scope that is open leaves `bytes` as they are, on purpose (C16): they become something
  /// that the graph needs from outside. Outside every scope it says nothing.
  void reuse(const BufferBinding& bytes);

  /// Work was wanted for which there is not even a scope, because of `error`.
  void lacks(const Error& error) noexcept;
  /// The device refused a call that was made for this window's work (C17).
  void device_refused(const Error& error) noexcept;

  // The end.

  /// A graph, or why there is none; the window has ended either way. A refusal has claimed what
  /// its scopes wrote or would have written (C11). `keep` is given the graph while the window can
  /// still refuse: what it throws is a refusal as well, and goes on to the caller.
  Result<SealedWindow> seal(const SealOptions& options, Where where,
                            const std::function<void(SealedWindow&)>& keep = {});
  /// Ends without a graph and without a claim: all is as before the window (C11). One that is over
  /// stays what it is.
  void abort() noexcept {
    if (!over()) end(WindowState::ended);
  }
  /// Ends because its handle was dropped: claims as a refusal does (C11).
  void drop() noexcept;

  /// How a handle left a window from inside a piece of its work.
  enum class Leave : std::uint8_t { no, abort, drop };
  /// Its handle is gone while a body runs in it. It records on, so that the body's scope ends
  /// where it began, and will not seal.
  void leave_later(Leave how) noexcept {
    if (leaving_ == Leave::no) leaving_ = how;
  }
  /// Whether it was left and the last body has come back, so that it must end now.
  [[nodiscard]] bool to_be_ended() const noexcept {
    return leaving_ != Leave::no && !overlay_.inside() && !over();
  }
  /// Ends it as it was left.
  void end_as_left() noexcept;

 private:
  /// What is said about the first doom; its text is built when the window is sealed.
  struct Doom {
    Error error;
    KernelId kernel{};
    Where where{};
    /// For a scope whose nodes, these, do not write exactly what it claims: the first bytes, and
    /// whether they are written without a claim.
    BufferBinding differs{};
    bool unclaimed = false;
    std::size_t first_node = 0;
    std::size_t end_node = 0;
    /// For work that was skipped: the first bytes that carry `error`, and where that comes from.
    BufferBinding needed{};
    FailureOrigin origin{};
    std::optional<Members::Index> gone{};  ///< For a member that was destroyed.
    bool refused = false;                  ///< For a call that the device refused, in `kernel`.
    std::string reason{};                  ///< For everything that has its own sentence.
    /// What the work around it made of it, innermost first; no more are kept.
    boost::container::static_vector<Error, 4> wordings{};
  };
  struct Staged {
    Node node;  // argument regions are indexes into buffers_
    Members::Stamp stamp;
    bool settled = false;
  };
  struct Reused {
    BufferBinding bytes;
    const OpenScope* scope = nullptr;  // who said it; once that one has exited, the scope around it
  };

  void fail(const OpenScope& scope, const Error& wording, Doom how) noexcept;
  void doom(Doom doom, const OpenScope* around) noexcept;
  void add(Call call, std::span<const StagedArgument> arguments, Where where, Members::Index by);
  template <class FunctionCall, class Function>
  void stage_function(std::vector<std::shared_ptr<const Function>>& functions,
                      const std::shared_ptr<const Function>& function,
                      std::span<const StagedArgument> arguments, Where where, Members::Index by);
  /// Tells in `hole` where not.
  [[nodiscard]] bool staged_exactly(const OpenScope& scope, Doom& hole) const noexcept;
  [[nodiscard]] std::string skipped_because() const;
  [[nodiscard]] Error doom_text() const;
  /// What `make` answers; a mere kind when there is no memory for more.
  template <class Make>
  [[nodiscard]] Error at_best(Make&& make) const noexcept {
    try {
      return make();
    } catch (...) {
      return Error(ErrorKind::window_doomed, doom_ ? doom_->error.failure() : FailureId{});
    }
  }
  /// "The window of stream 3 (file:line)".
  [[nodiscard]] std::string called() const;
  /// `"kernel" on stream 3 (file:line)`.
  [[nodiscard]] std::string called(const Staged& staged) const;
  /// What the nodes of `doom` write instead, the first two.
  [[nodiscard]] std::string recorded_instead(const Doom& doom) const;
  [[nodiscard]] Error still_out(Members::Index member) const;
  /// Two nodes of a graph made from what was staged that conflict without an order (C13).
  [[nodiscard]] std::optional<Error> race(const SealedGraph& graph) const;
  /// Ends as `state`, claiming for `error`; `told` says whether somebody is given it. Answers the
  /// failure that it becomes.
  FailureId refuse(WindowState state, const Error& error, Where where, bool told) noexcept;
  void end(WindowState state) noexcept;
  /// It is over, and counts as open no more.
  void close(WindowState state) noexcept;
  /// A window that has ended owns nothing, however long its handle stays (M2, M4).
  void let_go() noexcept;
  Result<SealedWindow> build(const SealOptions& options, Where where);

  FailureTable& table_;
  OpenWindows* list_;
  StreamId stream_;
  Where opened_;
  std::atomic<std::thread::id> user_{std::this_thread::get_id()};
  WindowState state_ = WindowState::prepared;
  Overlay overlay_;
  Members members_;
  WarmUp warm_up_;
  std::vector<std::string> first_uses_;
  std::optional<Error> abandoned_;  // what its handle is told
  FailureId abandonment_;           // what that became
  std::optional<Doom> doom_;
  std::uint64_t later_dooms_ = 0;
  const OpenScope* around_doom_ = nullptr;  // is open, and may tell the doom in its own words
  const OpenScope* refused_in_ = nullptr;   // is open, and its failure is a call's, counted already
  Leave leaving_ = Leave::no;

  std::map<BufferId, std::uint32_t> regions_;
  std::vector<BufferId> buffers_;
  std::vector<PinnedBuffer> pinned_;
  std::vector<std::shared_ptr<const KernelSignature>> kernels_;
  std::vector<std::shared_ptr<const HostFunction>> host_functions_;
  std::vector<std::shared_ptr<const NativeFunction>> native_functions_;
  std::vector<Staged> nodes_;
  std::vector<Argument> arguments_;
  std::vector<std::byte> parameter_bytes_;
  std::vector<Reused> reused_;  // of the scopes that are open
};

}  // namespace refrain
