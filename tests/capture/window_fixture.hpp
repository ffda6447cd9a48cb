// A stream with a window and no device: what is launched on it is staged, and nothing ever runs.
// When the case ends every buffer goes, and then no failure may be left (M2).
#pragma once

#include <doctest/doctest.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "refrain/base/kernel_name.hpp"
#include "refrain/capture/window.hpp"
#include "refrain/scope/execute_scope.hpp"
#include "refrain/scope/failure_view.hpp"

namespace refrain::test {

using Bindings = std::vector<BufferBinding>;

inline BufferBinding bytes(BufferId buffer, std::uint64_t begin, std::uint64_t end) {
  return {buffer, {begin, end}};
}
inline Error broken(std::string message) {
  return Error(ErrorKind::kernel_failed, std::move(message));
}
inline constexpr Where at_line(int line) noexcept { return Where{"model.cc", line}; }

/// For one thread, as a stream is.
class WindowServer {
 public:
  explicit WindowServer(FailureTable& table) : table_(table), show_(StreamId(3)), pool_(table) {
    table_.attach(show_);
  }
  ~WindowServer() { table_.detach(show_); }
  WindowServer(const WindowServer&) = delete;
  WindowServer& operator=(const WindowServer&) = delete;

  [[nodiscard]] FailureView write_streams() noexcept {
    Window* const open = capturing();
    return {table_, show_, open != nullptr ? &open->overlay() : nullptr};
  }
  [[nodiscard]] StreamId id() const noexcept { return show_.stream(); }
  [[nodiscard]] Window* capturing() noexcept {
    return window && window->capturing() ? &*window : nullptr;
  }
  void on_failure(StreamId, const Error&) noexcept { ++heard; }

  [[nodiscard]] WriteSet writes(const Bindings& bindings) {
    WriteSet set(pool_);
    for (const BufferBinding& binding : bindings) set.add(binding);
    return set;
  }

  std::optional<Window> window;
  int heard = 0;

 private:
  FailureTable& table_;
  ScopeShow show_;
  WriteSetPool pool_;
};

static_assert(WriteScoped<WindowServer>);

class Windows {
 public:
  using Scope = ExecuteScope<WindowServer>;

  Windows() = default;
  Windows(const Windows&) = delete;
  Windows& operator=(const Windows&) = delete;
  ~Windows() {
    for (const BufferId buffer : buffers_) table.remove(buffer);
    // The window has ended and is still there: it may hold nothing.
    CHECK_MESSAGE(table.live_failures() == 0, "a failure outlives every byte that carried it");
  }

  BufferId buffer(std::string name, Role role = Role::none, bool unwritten = false) {
    const BufferId made = table.add(name, 16, this, unwritten);
    buffers_.push_back(made);
    described_.emplace_back(made, std::move(name), role);
    return made;
  }

  Window& prepare() { return stream.window.emplace(table, StreamId(3), at_line(1)); }
  Window& record() {
    Window& window = prepare();
    REQUIRE(window.begin().ok());
    return window;
  }

  void pin(BufferId id) {
    Window& window = *stream.window;
    if (window.touches(id)) return;
    for (const Described& each : described_) {
      if (each.id != id) continue;
      Region region;
      region.name = each.name;
      region.role = each.role;
      region.bytes = 16;
      if (each.role == Role::state) region.start = ZeroStart{};
      window.pin(id, {region, pins});
    }
  }
  /// Stages a fill of `written`, for the scope that is open.
  void stage_fill(const BufferBinding& written, Where where = at_line(2)) {
    pin(written.buffer);
    stream.window->stage_fill(written, 0, 1, where);
  }
  void stage_copy(const BufferBinding& source, const BufferBinding& destination) {
    pin(source.buffer);
    pin(destination.buffer);
    stream.window->stage_copy(source, destination, at_line(3));
  }
  /// Opens a scope that claims `writes`, stages a fill of each of `staged`, and exits cleanly.
  void fill(const Bindings& writes, const Bindings& staged, std::string_view name = "fill") {
    const auto outcome = over(writes, name).execute([&](WindowServer&) -> Result<void> {
      for (const BufferBinding& each : staged) stage_fill(each);
      return {};
    });
    REQUIRE(outcome.executed_cleanly());
  }
  void fill(const BufferBinding& written) { fill({written}, {written}); }
  ScopedOutcome<void> copy(const BufferBinding& source, const BufferBinding& destination) {
    const Bindings reads{source};
    return Scope::launching(stream, intern_kernel_name("copy"), reads, stream.writes({destination}),
                            at_line(3))
        .execute([&](WindowServer&) -> Result<void> {
          stage_copy(source, destination);
          return {};
        });
  }
  void fail(const Bindings& writes, std::string message, std::string_view name = "broken") {
    failed_writing(stream, intern_kernel_name(name), stream.writes(writes),
                   broken(std::move(message)), at_line(4));
  }
  Scope over(const Bindings& writes, std::string_view name) {
    return Scope::over(stream, intern_kernel_name(name), stream.writes(writes), at_line(5));
  }

  [[nodiscard]] bool clean(const BufferBinding& binding) { return !table.check(binding); }
  [[nodiscard]] Error carried(const BufferBinding& binding) {
    std::optional<Error> error = table.check(binding);
    REQUIRE(error.has_value());
    return *std::move(error);
  }
  /// The error of a seal that is refused.
  [[nodiscard]] Error refused(const SealOptions& options = {}) {
    const Result<SealedWindow> sealed = stream.window->seal(options, at_line(9));
    REQUIRE_FALSE(sealed.ok());
    CHECK(stream.window->state() == WindowState::ended);
    return sealed.error();
  }

  FailureTable table{1};
  WindowServer stream{table};
  std::shared_ptr<const int> pins = std::make_shared<const int>(0);  ///< Counts what is pinned.

 private:
  struct Described {
    Described(BufferId of, std::string called, Role is)
        : id(of), name(std::move(called)), role(is) {}
    BufferId id;
    std::string name;
    Role role;
  };
  std::vector<BufferId> buffers_;
  std::vector<Described> described_;
};

inline bool says(const Error& error, std::string_view what) {
  return error.text().find(what) != std::string::npos;
}

}  // namespace refrain::test
