// A host device with one stream of either kind and kernels that do as a test tells them. When the
// case ends its buffers have gone, and then the failure table must be empty (M2).
#pragma once

#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "refrain/device/stream_core.hpp"
#include "refrain/host/device.hpp"

namespace refrain::test {

/// Opens once, for whoever waits.
class Gate {
 public:
  void open() {
    {
      const std::lock_guard lock(mutex_);
      open_ = true;
    }
    changed_.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return open_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
};

/// What the kernels of one device do, by the tag that a launch gives them.
class Control {
 public:
  static constexpr std::uint32_t kTags = 16;

  /// Set before a launch with that tag. Without one a kernel does its work.
  std::array<std::function<Result<void>()>, kTags> does;

  [[nodiscard]] int runs(std::uint32_t tag) const { return runs_.at(tag).load(); }
  Result<void> run(std::uint32_t tag) {
    ++runs_.at(tag);
    if (does.at(tag)) return does.at(tag)();
    return {};
  }

 private:
  std::array<std::atomic<int>, kTags> runs_{};
};

using Make = Kernel<Out<float>, std::uint32_t>;                        ///< y = 10
using Map = Kernel<In<float>, Out<float>, std::uint32_t>;              ///< y = x + 1
using Update = Kernel<InOut<float>, std::uint32_t>;                    ///< y += 1
using Join = Kernel<In<float>, In<float>, Out<float>, std::uint32_t>;  ///< y = a + b
using Split = Kernel<In<float>, Out<float>, Out<float>, std::uint32_t>;
using Look = Kernel<In<float>, std::uint32_t>;

inline void register_on(host::KernelRegistry& kernels, Control& control) {
  kernels.add<Make>("make", [&](std::span<float> y, std::uint32_t tag) -> Result<void> {
    REFRAIN_TRY(control.run(tag));
    for (float& each : y) each = 10;
    return {};
  });
  kernels.add<Map>(
      "map", [&](std::span<const float> x, std::span<float> y, std::uint32_t tag) -> Result<void> {
        REFRAIN_TRY(control.run(tag));
        for (std::size_t i = 0; i < y.size(); ++i) y[i] = x[i % x.size()] + 1;
        return {};
      });
  kernels.add<Update>("update", [&](std::span<float> y, std::uint32_t tag) -> Result<void> {
    REFRAIN_TRY(control.run(tag));
    for (float& each : y) each += 1;
    return {};
  });
  kernels.add<Join>("join",
                    [&](std::span<const float> a, std::span<const float> b, std::span<float> y,
                        std::uint32_t tag) -> Result<void> {
                      REFRAIN_TRY(control.run(tag));
                      for (std::size_t i = 0; i < y.size(); ++i) y[i] = a[i] + b[i];
                      return {};
                    });
  kernels.add<Split>("split",
                     [&](std::span<const float> x, std::span<float> y, std::span<float> z,
                         std::uint32_t tag) -> Result<void> {
                       REFRAIN_TRY(control.run(tag));
                       for (float& each : y) each = x[0];
                       for (float& each : z) each = x[0];
                       return {};
                     });
  kernels.add<Look>("look", [&](std::span<const float>, std::uint32_t tag) -> Result<void> {
    return control.run(tag);
  });
}

inline Error broken(std::string message) {
  return Error(ErrorKind::kernel_failed, std::move(message));
}
inline std::function<Result<void>()> fails(std::string message) {
  return [message]() -> Result<void> { return broken(message); };
}
inline std::function<Result<void>()> throws(std::string message) {
  return [message]() -> Result<void> { throw std::runtime_error(message); };
}
/// Waits, for as long as that is closed.
inline std::function<Result<void>()> waits(Gate& gate) {
  return [&gate]() -> Result<void> {
    gate.wait();
    return {};
  };
}

struct Heard {
  StreamId stream;
  Error error;
};

class Rig {
 public:
  explicit Rig(StreamKind kind, bool checks = true)
      : device(DeviceOptions{checks,
                             [this](StreamId on, const Error& error) {
                               const std::lock_guard lock(mutex_);
                               heard_.push_back({on, error});
                             }}),
        kind_(kind),
        stream(another()) {
    heard_.reserve(64);  // a listener must not throw
    register_on(device.kernels(), control);
    make.emplace(device.kernel<Make>("make").value());
    map.emplace(device.kernel<Map>("map").value());
    update.emplace(device.kernel<Update>("update").value());
    join.emplace(device.kernel<Join>("join").value());
    split.emplace(device.kernel<Split>("split").value());
    look.emplace(device.kernel<Look>("look").value());
  }
  Rig(const Rig&) = delete;
  Rig& operator=(const Rig&) = delete;
  ~Rig() {
    static_cast<void>(stream.sync());
    CHECK_MESSAGE(device.live_failures() == 0, "a failure outlives every byte that carried it");
    const WriteSetPool& pool = stream.core().pool;
    CHECK_MESSAGE(pool.idle() == pool.total(), "a write set is still out");
  }

  [[nodiscard]] StreamKind kind() const { return kind_; }
  [[nodiscard]] bool worker() const { return kind_ == StreamKind::worker; }
  [[nodiscard]] Stream another() const { return device.stream(kind_).value(); }

  /// A buffer of 4 that holds `value`.
  Buffer<float> floats(std::string name, float value, Role role = Role::none) {
    Buffer<float> made = device.buffer<float>(std::move(name), 4, role).value();
    REQUIRE(stream.fill(made, value).executed_cleanly());
    settle();
    return made;
  }
  /// A buffer of 4 that nobody has written.
  Buffer<float> unwritten(std::string name, Role role = Role::none) {
    return device.buffer<float>(std::move(name), 4, role).value();
  }
  /// A buffer of 4 that carries a failure with `message`.
  Buffer<float> bad(std::string name, std::string message) {
    Buffer<float> made = floats(std::move(name), -1);
    stream.failed_write(made, broken(std::move(message)));
    forget_heard();
    return made;
  }

  /// Until everything issued has ended, whatever came of it.
  void settle() { static_cast<void>(stream.sync()); }

  [[nodiscard]] std::vector<Heard> heard() {
    const std::lock_guard lock(mutex_);
    return heard_;
  }
  void forget_heard() {
    const std::lock_guard lock(mutex_);
    heard_.clear();
  }
  /// The only thing that was heard.
  [[nodiscard]] Heard only_heard() {
    const std::vector<Heard> all = heard();
    REQUIRE(all.size() == 1);
    return all.front();
  }

  template <class T>
  [[nodiscard]] bool clean(const T& buffer) const {
    return !device.check(buffer).has_value();
  }
  /// What `buffer` carries; that it carries something is asserted.
  template <class T>
  [[nodiscard]] Error carried(const T& buffer) const {
    std::optional<Error> error = device.check(buffer);
    REQUIRE(error.has_value());
    return *std::move(error);
  }
  [[nodiscard]] std::vector<float> values(const View<float>& view) {
    Result<std::vector<float>> got = stream.read(view);
    REQUIRE_MESSAGE(got.ok(), got.error().text());
    return *std::move(got);
  }
  /// The error of a read that is refused.
  [[nodiscard]] Error unreadable(const View<float>& view) {
    const Result<std::vector<float>> got = stream.read(view);
    REQUIRE_FALSE(got.ok());
    return got.error();
  }

 private:
  std::mutex mutex_;
  std::vector<Heard> heard_;

 public:
  Control control;
  host::Device device;

 private:
  StreamKind kind_;

 public:
  std::optional<Make> make;
  std::optional<Map> map;
  std::optional<Update> update;
  std::optional<Join> join;
  std::optional<Split> split;
  std::optional<Look> look;
  Stream stream;  // last: its worker uses the others
};

inline bool says(const Error& error, std::string_view what) {
  return error.text().find(what) != std::string::npos;
}

inline std::vector<float> four(float value) { return std::vector<float>(4, value); }

}  // namespace refrain::test

/// One test case for each kind of stream, with a `Rig& rig` on such a stream.
#define REFRAIN_ON_BOTH_KINDS(body, name)        \
  static void body(refrain::test::Rig& rig);     \
  TEST_CASE(name ", on an inline stream") {      \
    refrain::test::Rig rig(StreamKind::inline_); \
    body(rig);                                   \
  }                                              \
  TEST_CASE(name ", on a worker stream") {       \
    refrain::test::Rig rig(StreamKind::worker);  \
    body(rig);                                   \
  }                                              \
  static void body([[maybe_unused]] refrain::test::Rig& rig)
#define ON_BOTH_KINDS(name) REFRAIN_ON_BOTH_KINDS(DOCTEST_ANONYMOUS(refrain_on_both_kinds_), name)
