// A stream: where work is issued. It is what scopes open on (WriteScoped); launch, copy, fill,
// write, host and native are written once, here: each validates its arguments, opens a scope, and
// in the body either stages a node in the window or hands it to the backend.
//
// Outcomes of work may be dropped: what it failed to write carries the failure, and a read of that
// tells the story.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include "refrain/base/kernel_name.hpp"
#include "refrain/base/result.hpp"
#include "refrain/base/text.hpp"
#include "refrain/capture/window.hpp"
#include "refrain/device/buffer.hpp"
#include "refrain/device/calls_forbidden.hpp"
#include "refrain/device/device.hpp"
#include "refrain/device/event.hpp"
#include "refrain/device/host_work.hpp"
#include "refrain/device/kernel.hpp"
#include "refrain/device/native_work.hpp"
#include "refrain/device/recording.hpp"
#include "refrain/device/remarks.hpp"
#include "refrain/device/stream_core.hpp"
#include "refrain/device/warm_up_pass.hpp"
#include "refrain/scope/execute_scope.hpp"
#include "refrain/scope/failure_view.hpp"

namespace refrain {

class OpenWindow;
struct CheckedArguments;

/// What is said about work that may end after its call is back.
struct WorkTerms {
  /// Kept until it has ended.
  std::shared_ptr<const void> pins{};
  /// Becomes part of its error, now or late.
  Remarks remarks{};
  /// What its scope reads and writes, should somebody keep those lists already; it pins them then.
  std::shared_ptr<const TouchedBytes> bytes{};
  /// Whether a failure of what it reads holds it back. Whoever waits for its readers waits for it
  /// in any case (E11).
  bool held_back = true;
};

/// For one thread at a time. Move-only. Its events outlive it; a window that is open does not.
/// Work that runs on a worker's thread, nodes of a replay and listeners must not call it: calls
/// that wait or issue are refused there (`wrong_state`), and the work that made one fails (E6). Two
/// threads that work on the same bytes order themselves: of inline work that another thread is in
/// the midst of the library sees nothing (E11).
class Stream {
 public:
  Stream(Stream&&) noexcept = default;
  Stream& operator=(Stream&&) = delete;
  /// Waits for its work to end; while any other window of the device is open it does not, and the
  /// work goes on (C19). A window of its own that is still open is abandoned (C10).
  ~Stream();

  // Work.

  /// Launches `kernel`. Skips when a view that it reads carries a failure; a launch of no threads
  /// is no work (O11); a bad argument fails the launch and claims its other outputs (M6).
  template <class... P>
  ScopedOutcome<void> launch(
      const Kernel<P...>& kernel, const Grid& grid,
      const std::type_identity_t<typename detail::ParameterOf<P>::Argument>&... arguments) {
    const PackedArguments<P...> packed(arguments...);
    return launch_packed(kernel.loaded(), grid, packed.block(), packed.views());
  }

  /// A launch of a kernel that could not be had, because of `error`: what `K`, a `Kernel<...>`,
  /// declares as written is claimed and its inputs stay as they are (R4). Nothing reaches the
  /// device.
  template <class K, class... A>
  void failed_launch(std::string_view name, const Grid& grid, const Error& error,
                     const A&... arguments) {
    const typename K::Arguments packed(arguments...);
    fail_launch(name, grid, error, packed.views());
  }

  /// Launches with a grid that is read from `extent`: x, y and z of blocks, then of threads. The
  /// stream waits for it. It is an input like any other (O11), and is refused in a window.
  template <class... P>
  ScopedOutcome<void> launch(
      const Kernel<P...>& kernel, const View<std::uint32_t>& extent,
      const std::type_identity_t<typename detail::ParameterOf<P>::Argument>&... arguments) {
    const PackedArguments<P...> packed(arguments...);
    return launch_extent(kernel.loaded(), extent.binding(), packed.block(), packed.views(),
                         Where{});
  }

  /// Copies all of `source` to `destination`, which has the same size and does not overlap it.
  template <class T>
  ScopedOutcome<void> copy(const View<T>& destination, const View<T>& source,
                           Where where = Where::here()) {
    return copy_bytes(destination.binding(), source.binding(), where);
  }
  template <class T>
  ScopedOutcome<void> copy(const Buffer<T>& destination, const Buffer<T>& source,
                           Where where = Where::here()) {
    return copy(destination.view(), source.view(), where);
  }

  /// Sets every element of `destination`, of 1, 2 or 4 bytes, to `value`.
  template <class T>
  ScopedOutcome<void> fill(const View<T>& destination, std::type_identity_t<T> value,
                           Where where = Where::here()) {
    static_assert(sizeof(T) == 1 || sizeof(T) == 2 || sizeof(T) == 4,
                  "A fill repeats 1, 2 or 4 bytes.");
    std::uint32_t pattern = 0;
    std::memcpy(&pattern, &value, sizeof(T));
    return fill_bytes(destination.binding(), pattern, sizeof(T), where);
  }
  template <class T>
  ScopedOutcome<void> fill(const Buffer<T>& destination, std::type_identity_t<T> value,
                           Where where = Where::here()) {
    return fill(destination.view(), value, where);
  }

  /// Writes host bytes; waits for the work that uses `destination`. In a window a private copy is
  /// recorded, and every replay sends the same bytes (C14). Another size than the destination's
  /// fails and claims it: what was to come did not.
  template <class T>
  ScopedOutcome<void> write(const View<T>& destination,
                            std::span<const std::type_identity_t<T>> values,
                            Where where = Where::here()) {
    return write_bytes(destination.binding(), std::as_bytes(values), where);
  }
  template <class T>
  ScopedOutcome<void> write(const Buffer<T>& destination,
                            std::span<const std::type_identity_t<T>> values,
                            Where where = Where::here()) {
    return write(destination.view(), values, where);
  }
  /// Writes the same host bytes to several destinations, each as a `write` of its own: one that
  /// fails does not stop the others. Answers the first that failed, in their order (R3).
  template <class T>
  ScopedOutcome<void> write_each(std::span<const View<T>> destinations,
                                 std::span<const std::type_identity_t<T>> values,
                                 Where where = Where::here()) {
    std::vector<BufferBinding> bindings;
    try {
      for (const View<T>& each : destinations) bindings.push_back(each.binding());
    } catch (...) {
      const Error thrown = Error::thrown(std::current_exception());
      for (const View<T>& each : destinations) failed_write(each, thrown, where);
      throw;
    }
    return write_bytes_each(bindings, std::as_bytes(values), where);
  }
  template <class T>
  ScopedOutcome<void> write_each(std::initializer_list<View<T>> destinations,
                                 std::span<const std::type_identity_t<T>> values,
                                 Where where = Where::here()) {
    return write_each(std::span<const View<T>>(destinations.begin(), destinations.size()), values,
                      where);
  }
  /// What was to be written to `destination` cannot come, because of `error`: claims it (R2).
  template <class T>
  void failed_write(const View<T>& destination, const Error& error, Where where = Where::here()) {
    fail_bytes(destination.binding(), error, where);
  }
  template <class T>
  void failed_write(const Buffer<T>& destination, const Error& error, Where where = Where::here()) {
    failed_write(destination.view(), error, where);
  }

  /// Calls `body`, a function of the program's own, in the order of this stream, over views that it
  /// reads and writes as `P...` say (`In<T>`, `Out<T>`, `InOut<T>`): it takes `std::span<const T>`
  /// or `std::span<T>` for each, and answers nothing or a `Result<void>`; it may throw. It skips
  /// and fails as a launch does. An inline stream calls it now and a worker's thread later; in a
  /// window it is owned and recorded, each replay calls it in its place, on the thread that runs
  /// it, and its graph cannot be saved. It must not call the device, but on an inline stream
  /// outside of replays, where work that it issues is inside of it (E9): the call is refused, and
  /// the host work fails (E6). Its effects are opaque
  /// unless `work` says less: `{"sample", Effects::uses("rng")}`, or `Effects::none()` when its
  /// views are all.
  template <class... P, class Body>
  ScopedOutcome<void> host(
      const HostWork& work, Body&& body,
      const std::type_identity_t<typename detail::ParameterOf<P>::Argument>&... views) {
    const PackedArguments<P...> packed(views...);
    const auto function = owning(
        work, packed.views(), [&] { return host_function<P...>(work, std::forward<Body>(body)); });
    return host_packed(function, packed.block(), packed.views(), work.where);
  }

  /// Gives the device work that refrain does not launch itself, by a call into another library or a
  /// launch of the program's own: calls `body` with a `NativeCall` and, as `P...` say (`In<T>`,
  /// `Out<T>`, `InOut<T>`), a `DeviceSpan<const T>` or `DeviceSpan<T>` for each view. It uses the
  /// stream and the addresses of that call and nothing that it kept from an earlier one, makes the
  /// same work each time, and answers nothing or a `Result<void>`; it may throw. Its work skips and
  /// fails as a launch does. Outside windows it is called once; in a window it is owned and
  /// recorded, may be called there to prove that its work can be a node, and is called again where
  /// replays need it; its graph cannot be saved. It must not call the refrain device: the call is
  /// refused, and the native work fails (E6). `{"gemm", bytes}` asks for a workspace, which every
  /// node of every instance has to itself. Its effects are opaque unless `work` says less.
  template <class... P, class Body>
  ScopedOutcome<void> native(
      const NativeWork& work, Body&& body,
      const std::type_identity_t<typename detail::ParameterOf<P>::Argument>&... views) {
    const PackedArguments<P...> packed(views...);
    const auto function = owning(work, packed.views(), [&] {
      return native_function<P...>(work, std::forward<Body>(body));
    });
    return native_packed(function, packed.block(), packed.views(), work.where);
  }

  /// Work of several parts as one: runs `body(stream)`, which answers a `Result`, in a scope that
  /// claims `writes`, and whose name errors tell. Work that this thread does in it is inside of it,
  /// on whatever stream (E9): it may write `writes` too, and cannot read them before all is done. A
  /// body that fails or throws claims them all, whatever parts of it went well; one that ends
  /// cleanly is trusted to have written them, but in a window, where what is recorded is compared
  /// with what is claimed (C16). A bad view fails it, claims the others, and runs nothing (M6).
  template <class Body>
  auto scope(std::string_view name, std::initializer_list<Bytes> writes, Body&& body,
             Where where = Where::here()) -> ScopedOutcome<detail::BodyValue<Body, Stream>>;

  /// In a window, inside a scope of the caller's own: `bytes` stay as they are, on purpose (C16).
  template <class T>
  void reuses(const View<T>& bytes) {
    reuse(bytes.binding());
  }

  // Reading. Waits for the last writer, wherever it was issued, and then looks (E10).

  /// The elements, or the story of every failure that they carry (M7). Refused in a window (C12).
  template <class T>
  Result<std::vector<T>> read(const View<T>& source) {
    REFRAIN_TRY(readable(source.binding()));  // its size is what memory is taken for next
    std::vector<T> values(source.size());
    const Result<void> got =
        read_bytes(source.binding(), std::as_writable_bytes(std::span(values)));
    if (!got.ok()) return got.error();
    return values;
  }
  template <class T>
  Result<std::vector<T>> read(const Buffer<T>& source) {
    return read(source.view());
  }
  /// Into memory of the caller's, of exactly the same size; untouched after an error.
  template <class T>
  Result<void> read_into(const View<T>& source, std::span<std::type_identity_t<T>> values) {
    return read_bytes(source.binding(), std::as_writable_bytes(values));
  }
  template <class T>
  Result<void> read_into(const Buffer<T>& source, std::span<std::type_identity_t<T>> values) {
    return read_into(source.view(), values);
  }

  // Order.

  /// Waits until all work of this stream has ended; answers the first that failed late since the
  /// last sync. Refused in a window (C12).
  Result<void> sync();
  /// A point after all work issued so far. In a window, a point in what is recorded.
  Result<Event> record_event();
  /// Work issued from now on starts after `event`. An event of a window makes this stream a member
  /// of that window: its work is recorded there until a member waits on an event that it recorded
  /// after all its work (C21). In a window, an event from outside is refused (C12).
  Result<void> wait(const Event& event, Where where = Where::here());

  // Recording.

  /// Opens a window that records from now on. Refused when one is open (C1).
  Result<OpenWindow> record(Where where = Where::here());
  /// Opens a window that does not record yet: work runs for real until `OpenWindow::begin` (C5).
  Result<OpenWindow> prepare(Where where = Where::here());
  /// The same after warming up: runs `body`, for real, until one pass does no first-use work (C20)
  /// and puts back, after each, the bytes that it read and then wrote, by whatever work of this
  /// thread. What `begin` and the same body record then must be the work of the last pass, on every
  /// stream that it used (C15). Waits for that work. Refuses, with the window ended:
  /// `needs_warm_up` naming what never settled in `most_passes`, the error of `body`, that of work
  /// in it which failed or was skipped, or `wrong_state` in the body of another warm-up.
  template <class Body>
  requires(std::is_invocable_v<Body&>) Result<OpenWindow> prepare(Body&& body,
                                                                  std::uint32_t most_passes = 8,
                                                                  Where where = Where::here());
  /// Runs `body`, work that happens once, like tuning or compiling. Refused while a window of this
  /// thread records, which it dooms: "needs warm-up: `what`" (C20).
  template <class Body>
  Result<void> first_use(const std::string& what, Body&& body, Where where = Where::here()) {
    REFRAIN_TRY(may_use_first(what, where));
    Result<void> done = std::forward<Body>(body)();
    if (done.ok()) return done;
    return done.error().with_context("While doing first-use work " + quote(what) + ".");
  }

  // Without types, for tools and for what is built on streams.

  ScopedOutcome<void> launch_packed(const LoadedKernel& kernel, const Grid& grid,
                                    std::span<const std::byte> block,
                                    std::span<const StagedArgument> arguments);
  ScopedOutcome<void> launch_extent(const LoadedKernel& kernel, const BufferBinding& extent,
                                    std::span<const std::byte> block,
                                    std::span<const StagedArgument> arguments, Where where);
  void fail_launch(std::string_view name, const Grid& grid, const Error& error,
                   std::span<const StagedArgument> arguments);
  ScopedOutcome<void> host_packed(const std::shared_ptr<const HostFunction>& function,
                                  std::span<const std::byte> block,
                                  std::span<const StagedArgument> views, Where where);
  ScopedOutcome<void> native_packed(const std::shared_ptr<const NativeFunction>& function,
                                    std::span<const std::byte> block,
                                    std::span<const StagedArgument> views, Where where);
  ScopedOutcome<void> copy_bytes(const BufferBinding& destination, const BufferBinding& source,
                                 Where where);
  ScopedOutcome<void> fill_bytes(const BufferBinding& destination, std::uint32_t pattern,
                                 std::uint32_t width, Where where);
  ScopedOutcome<void> write_bytes(const BufferBinding& destination,
                                  std::span<const std::byte> bytes, Where where);
  ScopedOutcome<void> write_bytes_each(std::span<const BufferBinding> destinations,
                                       std::span<const std::byte> bytes, Where where);
  void fail_bytes(const BufferBinding& destination, const Error& error, Where where);
  Result<void> read_bytes(const BufferBinding& source, std::span<std::byte> bytes);
  void reuse(const BufferBinding& bytes);
  /// Work that is about to be issued uses `bytes`. Refused (`unordered`), with checks on, when work
  /// of another stream uses them and nothing orders the two (E11); in a window nothing runs yet.
  /// Inside an `IssuingCall`, which ends when the work has been handed over, or never will be.
  Result<void> in_order(KernelId kernel, const std::shared_ptr<const TouchedBytes>& bytes,
                        Where where);
  /// Runs an executable as the body of `scope`, which is open. Refused in a window (C12). What a
  /// node throws comes out as `NodeThrew`.
  Result<void> run(Executable& executable, OpenScope& scope, WorkTerms terms);
  /// The first failure among the inputs of a replay (P2). A mark that is `beneath` is looked under,
  /// and any on `states`, which are some of `reads`, in their order (C18). They carried nothing
  /// when they were last `seen` so, if at all (P5).
  [[nodiscard]] FoundFailure inputs_failure(std::span<const BufferBinding> reads,
                                            std::span<const BufferBinding> states,
                                            FailureId beneath, FailureTable::Version seen) noexcept;
  /// Refuses with "`call` is refused in a window" while one is open (C12).
  [[nodiscard]] Result<void> outside_window(const char* call) const;

  // What makes it WriteScoped.

  [[nodiscard]] StreamId id() const noexcept { return core_->show.stream(); }
  class Claims;
  [[nodiscard]] Claims write_streams() noexcept;
  /// The window that records this stream's work, or null (C5).
  [[nodiscard, gnu::always_inline]] Window* capturing() noexcept {
    Window* const open = window();
    return open != nullptr && open->capturing() ? open : nullptr;
  }
  void on_failure(StreamId stream, const Error& error) noexcept;
  /// An empty write set with storage of this stream's pool (O8).
  [[nodiscard]] WriteSet write_set() { return WriteSet(core_->pool); }

  [[nodiscard]] DeviceCore& device() const noexcept { return *core_->device; }
  [[nodiscard]] StreamCore& core() const noexcept { return *core_; }

 private:
  friend class Device;
  friend class WarmUpPass;
  explicit Stream(std::shared_ptr<StreamCore> core) noexcept : core_(std::move(core)) {}

  /// Refuses `call` where the program's code may not make it (E6).
  [[nodiscard]] Result<void> may(const char* call) const {
    if (!CallsForbidden::anywhere()) return {};
    return look(call);
  }
  [[nodiscard]] Result<void> look(const char* call) const;
  Result<void> in_order(KernelId kernel, std::span<const BufferBinding> reads,
                        std::span<const BufferBinding> writes, Where where);
  /// The function that `make` makes an owner of. When that throws there is no node, and a window
  /// must not seal without it.
  template <class Work, class Make>
  auto owning(const Work& work, std::span<const StagedArgument> views, Make&& make)
      -> decltype(make()) {
    try {
      return make();
    } catch (...) {
      fail_launch(work.name, grid(1, work.where), Error::thrown(std::current_exception()), views);
      throw;
    }
  }
  /// Issues work as `issue` does. When that throws before there is a scope, `fail` issues it as
  /// work that fails with the exception (E4), so that no window seals without it.
  template <class Issue, class Fail>
  auto issuing(Issue&& issue, Fail&& fail) -> decltype(issue());
  /// Not even that could be done: the window, if one records, lacks work because of `error`.
  void lacks(const Error& error) noexcept;
  ScopedOutcome<void> launch_now(const LoadedKernel& kernel, const Grid& grid,
                                 std::span<const std::byte> block,
                                 std::span<const StagedArgument> arguments);
  ScopedOutcome<void> launch_extent_now(const LoadedKernel& kernel, const BufferBinding& extent,
                                        std::span<const std::byte> block,
                                        std::span<const StagedArgument> arguments, Where where);
  struct FunctionWork;
  /// Host or native work, which is refused as `call` where the program's code may not make it. In a
  /// window `record(window, work)` stages its node, else `run(work)` issues it.
  template <class Function, class Record, class Run>
  ScopedOutcome<void> call_function(const std::shared_ptr<const Function>& function,
                                    const char* call, std::span<const std::byte> block,
                                    std::span<const StagedArgument> views, Where where,
                                    Record&& record, Run&& run);
  template <class Function, class Record, class Run>
  ScopedOutcome<void> call_function_now(const Function& function, const char* call,
                                        std::span<const std::byte> block,
                                        std::span<const StagedArgument> views, Where where,
                                        Record& record, Run& run);
  /// The workspace of a node that is about to be recorded; null where none is.
  Result<std::shared_ptr<const Allocation>> workspace_to_record(const KernelSignature& of,
                                                                std::uint64_t bytes);
  Result<void> run_native(const std::shared_ptr<const NativeFunction>& function,
                          const FunctionWork& work);
  /// Makes a call of the backend that may call the body of native work, which must not
  /// call the device (E6).
  template <class Call>
  Result<void> calling_body(const OpenScope& scope, Call&& call);
  ScopedOutcome<void> copy_now(const BufferBinding& destination, const BufferBinding& source,
                               Where where);
  ScopedOutcome<void> fill_now(const BufferBinding& destination, std::uint32_t pattern,
                               std::uint32_t width, Where where);
  /// Fails a launch of what the signature calls `name`.
  void fail_arguments(std::string_view name, const Grid& grid, const Error& error,
                      std::span<const StagedArgument> arguments);
  /// Fails work that writes `destination` and no more.
  void fail_one(KernelId kernel, const BufferBinding& destination, const Error& error, Where where);
  /// Refuses work that runs now and reads what a window of this thread has recorded a write of.
  Result<void> after_recorded(KernelId kernel, std::span<const BufferBinding> reads, Where where);
  template <class Issue>
  Result<void> hand_over(OpenScope& scope, WorkTerms terms, Issue&& issue);
  /// Work whose body is the error (R2).
  void fail_work(KernelId kernel, WriteSet writes, const Error& error, Where where);
  /// A launch that the device never sees (M6, R4).
  void refuse_launch(KernelId kernel, std::span<const BufferBinding> reads, WriteSet writes,
                     const Error& error, Where where);
  /// `frozen` is the window's copy of `bytes`, once there is one.
  ScopedOutcome<void> write_now(const BufferBinding& destination, std::span<const std::byte> bytes,
                                std::shared_ptr<const Allocation>& frozen, Where where);
  ScopedOutcome<void> write_one(const BufferBinding& destination, std::span<const std::byte> bytes,
                                std::shared_ptr<const Allocation>& frozen, Where where);
  Result<void> issue(const BoundNode& node, OpenScope& scope, WorkTerms terms);
  /// Why work may not be issued: its arguments, or its order (E11). Claims what it was to write.
  [[nodiscard]] std::optional<Error> refused(KernelId kernel, CheckedArguments& checked,
                                             Where where);
  /// What a scope of the caller's own claims; or why it may not, which claims the rest of it. Tells
  /// in `kernel` what `name` is.
  Result<WriteSet> may_claim(std::string_view name, KernelId& kernel, std::span<const Bytes> writes,
                             Where where);
  Result<WriteSet> may_claim_now(KernelId kernel, std::span<const Bytes> writes, Where where);
  [[nodiscard]] Result<void> readable(const BufferBinding& source) const;
  void pin(Window& window, const Allocation& allocation);
  Result<OpenWindow> warm_up(const std::function<Result<void>()>& body, std::uint32_t most_passes,
                             Where where);
  void put_back(const BufferBinding& part, std::span<const std::byte> bytes, Where where);
  void put_back_now(const BufferBinding& part, std::span<const std::byte> bytes, Where where);
  Result<void> may_use_first(const std::string& what, Where where);
  /// Before the scope of a kernel, copy, fill, write, host or native work: tells the window, which
  /// compares what it records with its warm-up (C15). Only kernels have a `version`.
  void about_to_run(KernelId kernel, std::uint32_t version, std::span<const BufferBinding> reads,
                    std::span<const BufferBinding> writes, Where where);
  Result<void> wait_in_window(const Event& event, Where where);
  /// The window that is open, or null.
  [[nodiscard]] Window* window() const noexcept {
    return core_->window == nullptr ? nullptr : window_if_member();
  }
  [[nodiscard]] Window* window_if_member() const noexcept;
  /// A body has come back. Ends a window that was left meanwhile, if that was the last in it.
  void end_window_if_left() noexcept;
  Result<OpenWindow> open(Where where);

  std::shared_ptr<StreamCore> core_;
};

/// Where the claims of a stream's scopes go.
class Stream::Claims : public FailureView {
 public:
  Claims(Stream& stream, Window* recording) noexcept
      : FailureView(stream.core_->device->table(), stream.core_->show,
                    recording != nullptr ? &recording->overlay() : nullptr),
        stream_(stream),
        records_(recording != nullptr) {}

  // C20: all work of the thread goes through these, so a warm-up hears of all of it.
  FoundFailure read_failure(std::span<const BufferBinding> reads) noexcept {
    if (WarmUpPass* const pass = warming_up()) pass->about_to_read(*stream_.core_, reads);
    return FailureView::read_failure(reads);
  }
  void enter_write(OpenScope& scope) noexcept {
    if (WarmUpPass* const pass = warming_up()) pass->about_to_run(*stream_.core_, scope);
    FailureView::enter_write(scope);
  }
  void propagate(const FoundFailure& found, const Skip& skip,
                 std::span<const BufferBinding> writes) noexcept {
    if (WarmUpPass* const pass = warming_up()) {
      pass->skipped(skip);
      pass->about_to_write(*stream_.core_, writes);
    }
    FailureView::propagate(found, skip, writes);
  }
  void exit_write(OpenScope& scope, const Error* error) noexcept {
    FailureView::exit_write(scope, error);
    if (records_) stream_.end_window_if_left();
  }

 private:
  [[nodiscard]] WarmUpPass* warming_up() const noexcept {
    return records_ ? nullptr : WarmUpPass::hearing(*stream_.core_->device);
  }

  Stream& stream_;
  bool records_;
};

inline Stream::Claims Stream::write_streams() noexcept { return Claims(*this, capturing()); }

/// A window that is open on a stream. Ended by `seal` or `abort`; dropped without either, it
/// refuses (C11). For the thread that uses its stream. Move-only.
class OpenWindow {
 public:
  OpenWindow(OpenWindow&&) noexcept = default;
  OpenWindow& operator=(OpenWindow&&) = delete;
  ~OpenWindow();

  [[nodiscard]] WindowState state() const noexcept { return window_->state(); }

  /// From prepared to recording. Refused inside a piece of work.
  Result<void> begin();
  /// The recording, or why there is none. The window has ended either way and this handle is
  /// spent; a refusal has claimed what its work wrote or would have written (C11).
  Result<Recording> seal(const SealOptions& options = {}, Where where = Where::here());
  /// Ends without a recording; all claims are as they were before (C11). Does nothing once the
  /// window is over.
  void abort();

 private:
  friend class Stream;
  OpenWindow(std::shared_ptr<StreamCore> stream, std::shared_ptr<Window> window) noexcept
      : stream_(std::move(stream)), window_(std::move(window)) {}

  std::shared_ptr<StreamCore> stream_;
  std::shared_ptr<Window> window_;
};

template <class Body>
auto Stream::scope(std::string_view name, std::initializer_list<Bytes> writes, Body&& body,
                   Where where) -> ScopedOutcome<detail::BodyValue<Body, Stream>> {
  KernelId kernel;
  Result<WriteSet> claimed =
      may_claim(name, kernel, std::span(writes.begin(), writes.size()), where);
  if (!claimed.ok()) return std::move(claimed).error();
  return ExecuteScope<Stream>::over(*this, kernel, *std::move(claimed), where)
      .execute(std::forward<Body>(body));
}

template <class Body>
requires(std::is_invocable_v<Body&>) Result<OpenWindow> Stream::prepare(Body&& body,
                                                                        std::uint32_t most_passes,
                                                                        Where where) {
  return warm_up(
      [&]() -> Result<void> {
        if constexpr (std::is_void_v<std::invoke_result_t<Body&>>) {
          body();
          return {};
        } else {
          return body();
        }
      },
      most_passes, where);
}

static_assert(WriteScoped<Stream>);

}  // namespace refrain
