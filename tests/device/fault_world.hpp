// A device on which one thing goes wrong, once: a call that reaches the backend is refused or
// throws, or a piece of the user's code (a kernel, a body) fails or throws. A scenario is written
// once, as if nothing could go wrong, and says what it expects to read; the world checks that
// whatever is told of an error names the one that was planned, and that whoever is told of none
// gets the right values.
#pragma once

#include <exception>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "device/rig.hpp"
#include "support/faulty_backend.hpp"

namespace refrain::test {

enum class Fault : std::uint8_t { none, call_refused, call_throws, user_fails, user_throws };

class World {
 public:
  /// Ends a scenario that lacks what it needs to go on.
  struct Stop {};

  explicit World(StreamKind kind) : kind_(kind) {
    register_on(*kernels_, control);
    make.emplace(device.kernel<Make>("make").value());
    map.emplace(device.kernel<Map>("map").value());
    update.emplace(device.kernel<Update>("update").value());
    join.emplace(device.kernel<Join>("join").value());
    control.does[0] = [this] { return user(); };
    first_call_ = backend->calls();
  }
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  // The fault.

  void plan(Fault fault, std::int64_t nth) {
    fault_ = fault;
    if (fault == Fault::call_refused) backend->fail(static_cast<std::uint64_t>(nth));
    if (fault == Fault::call_throws) backend->throw_at(static_cast<std::uint64_t>(nth));
    if (fault == Fault::user_fails || fault == Fault::user_throws) user_left_ = nth;
  }
  /// No fault from here on, and nothing is hurt yet.
  void forget_fault() {
    backend->fail(0);
    user_left_ = 0;
    hurt_ = false;
    fault_ = Fault::none;
  }
  [[nodiscard]] std::int64_t calls() const {
    return static_cast<std::int64_t>(backend->calls() - first_call_);
  }
  [[nodiscard]] std::int64_t user_calls() const { return user_calls_; }
  /// Whether anybody was told of an error.
  [[nodiscard]] bool hurt() const { return hurt_; }

  /// A piece of the user's code; kernels that are launched with tag 0 begin with it.
  Result<void> user() {
    ++user_calls_;
    if (--user_left_ != 0) return {};
    if (fault_ == Fault::user_throws) throw std::runtime_error(kPlanned);
    return broken(kPlanned);
  }

  // For scenarios.

  [[nodiscard]] StreamKind kind() const { return kind_; }
  /// The stream and the buffer of that name, the same in every run.
  Stream& stream(std::size_t which) {
    while (streams_.size() <= which) {
      streams_.push_back(std::make_unique<Stream>(needs(device.stream(kind_))));
    }
    return *streams_[which];
  }
  Buffer<float>& buffer(const std::string& name, Role role = Role::none) {
    auto found = buffers_.find(name);
    if (found == buffers_.end()) {
      found = buffers_.emplace(name, needs(device.buffer<float>(name, 4, role))).first;
    }
    return found->second;
  }

  /// The value, or the end of the scenario.
  template <class T>
  T needs(Result<T> result) {
    if (result.ok()) return *std::move(result);
    met(result.error());
    throw Stop{};
  }
  void needs(const Result<void>& result) {
    if (result.ok()) return;
    met(result.error());
    throw Stop{};
  }
  /// Does something that may go wrong without harm to what follows; answers whether it went well.
  template <class Work>
  bool did(Work&& work) {
    try {
      const auto outcome = std::forward<Work>(work)();
      return answered(outcome);
    } catch (const std::exception& thrown) {
      met_thrown(thrown);
      return false;
    }
  }
  /// What `second` does from now on follows what `first` has done.
  void order(Stream& first, Stream& second) { needs(second.wait(needs(first.record_event()))); }
  /// A read answers `expected`, or why it cannot.
  void reads(Stream& stream, const View<float>& view, const std::vector<float>& expected) {
    did([&]() -> Result<void> {
      const Result<std::vector<float>> got = stream.read(view);
      if (!got.ok()) return got.error();
      CHECK(*got == expected);
      return {};
    });
  }

  /// Runs a scenario, which may end early.
  void run(void (*scenario)(World&)) {
    try {
      scenario(*this);
    } catch (const Stop&) {
    } catch (const std::exception& thrown) {
      met_thrown(thrown);
    }
  }

  /// Looks at everything that a scenario used. The streams must be idle and free, and what carries
  /// a failure must name the fault, or be what a scenario that ended early leaves.
  void look() {
    for (const auto& stream : streams_) {
      const Result<void> synced = stream->sync();
      if (!synced.ok()) met(synced.error());
      CHECK(stream->sync().ok());
      const WriteSetPool& pool = stream->core().pool;
      CHECK(pool.idle() == pool.total());
    }
    for (const auto& known : buffers_) {
      CAPTURE(known.first);
      const std::optional<Error> carried = device.check(known.second);
      if (carried)
        CHECK_MESSAGE((hurt_ && (left_early(*carried) || rooted(*carried))), carried->text());
    }
    for (const auto& stream : streams_) {
      const auto probe = device.buffer<float>("probe", 4).value();
      OpenWindow window = stream->record().value();
      CHECK(stream->fill(probe, 1).executed_cleanly());
      CHECK(window.seal().ok());
    }
  }
  /// Lets go of everything; nothing may be left.
  void empty() {
    streams_.clear();
    buffers_.clear();
    CHECK(device.live_failures() == 0);
    CHECK(backend->held() == 0);
  }

 private:
  static constexpr const char* kPlanned = "This is the planned fault.";

  /// Whether an error, or the failure that it stems from, is the planned one.
  [[nodiscard]] bool rooted(const Error& error) const {
    std::string all = error.text();
    if (error.failure()) all += device.story(error.failure());
    switch (fault_) {
      case Fault::none: return false;
      case Fault::call_refused: return all.find("The device would not") != std::string::npos;
      case Fault::call_throws: return all.find("std::bad_alloc") != std::string::npos;
      default: return all.find(kPlanned) != std::string::npos;
    }
  }
  static bool left_early(const Error& error) {
    return error.kind() == ErrorKind::unwritten || error.kind() == ErrorKind::not_replayed ||
           says(error, "was dropped without being sealed") || says(error, "was abandoned");
  }
  void met(const Error& error) {
    hurt_ = true;
    CHECK_MESSAGE(rooted(error), error.text(), "\n",
                  error.failure() ? device.story(error.failure()) : "");
  }
  void met_thrown(const std::exception& thrown) {
    hurt_ = true;
    const std::string what = thrown.what();
    CHECK_MESSAGE(((fault_ == Fault::user_throws && what == kPlanned) ||
                   (fault_ == Fault::call_throws && what == "std::bad_alloc")),
                  what);
  }
  template <class T>
  bool answered(const ScopedOutcome<T>& outcome) {
    if (outcome.failed()) met(outcome.error());
    if (outcome.skipped()) met(Error(ErrorKind::skipped, outcome.failure()));
    return outcome.executed_cleanly();
  }
  template <class T>
  bool answered(const Result<T>& result) {
    if (!result.ok()) met(result.error());
    return result.ok();
  }

  StreamKind kind_;
  std::shared_ptr<host::KernelRegistry> kernels_ = std::make_shared<host::KernelRegistry>();
  Fault fault_ = Fault::none;
  std::uint64_t first_call_ = 0;
  std::atomic<std::int64_t> user_calls_{0};
  std::atomic<std::int64_t> user_left_{0};  // below zero once it is over
  bool hurt_ = false;

 public:
  Control control;
  std::shared_ptr<FaultyBackend> backend =
      std::make_shared<FaultyBackend>(host::make_backend(kernels_));
  Device device{backend, DeviceOptions{true, {}}};
  std::optional<Make> make;
  std::optional<Map> map;
  std::optional<Update> update;
  std::optional<Join> join;

 private:
  std::map<std::string, Buffer<float>> buffers_;
  std::vector<std::unique_ptr<Stream>> streams_;
};

/// Runs `scenario` without a fault and counts, then once for each thing that can go wrong in it.
/// After each fault the same buffers and streams serve a run without one.
void sweep(void (*scenario)(World&));

}  // namespace refrain::test
