// Failures that nobody reads of (M2): a listener hears of each when its last byte goes, once, and
// of nothing else.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "rig.hpp"
#include "support/allocations.hpp"

namespace refrain::test {
namespace {

/// A host device whose unread failures are kept.
class Listening {
 public:
  explicit Listening(StreamKind kind = StreamKind::inline_)
      : device(DeviceOptions{.on_unread =
                                 [this](const UnreadFailure& failure) {
                                   ++heard_;
                                   if (keeps) gone.push_back(failure);
                                   // Would never come back if the table were locked.
                                   if (keeps) static_cast<void>(device.story(FailureId(1)));
                                 }}),
        stream(device.stream(kind).value()) {
    register_on(device.kernels(), control);
    make.emplace(device.kernel<Make>("make").value());
    map.emplace(device.kernel<Map>("map").value());
    control.does[1] = fails("no luck");
  }

  Buffer<float> floats(std::string name) {
    Buffer<float> made = device.buffer<float>(std::move(name), 4).value();
    REQUIRE(stream.fill(made, 1).executed_cleanly());
    return made;
  }
  /// A buffer that a launch failed to write.
  Buffer<float> bad(std::string name) {
    Buffer<float> made = floats(std::move(name));
    stream.launch(*make, grid(4), made, 1U);
    return made;
  }
  void heal(const Buffer<float>& buffer) {
    REQUIRE(stream.fill(buffer, 1).executed_cleanly());
    static_cast<void>(stream.read(buffer));  // until it has happened
  }
  [[nodiscard]] int heard() const { return heard_; }

  bool keeps = true;
  std::vector<UnreadFailure> gone;
  Control control;
  host::Device device;
  std::optional<Make> make;
  std::optional<Map> map;
  Stream stream;

 private:
  int heard_ = 0;
};

}  // namespace

TEST_CASE("M2: a failure that is written over before anybody reads of it is told once") {
  Listening it;
  const Buffer<float> x = it.floats("x");
  const Buffer<float> y = it.floats("y");
  const auto failed = it.stream.launch(*it.make, grid(4, Where{"decode.cpp", 46}), x, 1U);
  REQUIRE(failed.failed());  // an outcome may be dropped, so having it is no reading
  const auto skipped = it.stream.launch(*it.map, grid(4), x, y, 0U);
  REQUIRE(skipped.skipped());
  it.heal(x);
  CHECK(it.gone.empty());  // y still carries it
  it.heal(y);
  REQUIRE(it.gone.size() == 1);
  const UnreadFailure& gone = it.gone.front();
  CHECK(gone.error.failure() == skipped.failure());
  CHECK(gone.stream == it.stream.id());
  CHECK(gone.skips == 1);
  CHECK(gone.text() == "Failure " + std::to_string(skipped.failure().number) +
                           " is gone and nobody has read of it: \"make\" on stream " +
                           std::to_string(it.stream.id().number) +
                           " (decode.cpp:46): no luck\n  - 1 piece of work was skipped because "
                           "of it.");
}

TEST_CASE("M2: a failure that goes with its buffer is told") {
  Listening it;
  { const Buffer<float> x = it.bad("x"); }
  CHECK(it.heard() == 1);
}

TEST_CASE("M2: a failure that somebody read of is not told when it goes") {
  Listening it;
  const Buffer<float> x = it.bad("x");
  SUBCASE("by a read") { REQUIRE_FALSE(it.stream.read(x).ok()); }
  SUBCASE("by a check") { REQUIRE(it.device.check(x)); }
  SUBCASE("by its story") {
    const Buffer<float> y = it.floats("y");
    const auto skipped = it.stream.launch(*it.map, grid(4), x, y, 0U);
    CHECK(it.device.story(skipped.failure()).find("no luck") != std::string::npos);
    it.heal(y);
  }
  SUBCASE("by a seal that it made refuse") {
    const Buffer<float> y = it.floats("y");
    OpenWindow window = it.stream.record().value();
    it.stream.launch(*it.map, grid(4), x, y, 0U);
    REQUIRE_FALSE(window.seal().ok());
    it.heal(y);
  }
  it.heal(x);
  CHECK(it.heard() == 0);
}

TEST_CASE("M2: bytes that nobody wrote, and marks, are nothing unread") {
  Listening it;
  {
    const Buffer<float> unwritten = it.device.buffer<float>("unwritten", 4).value();
    const Buffer<float> y = it.floats("y");
    it.stream.launch(*it.map, grid(4), unwritten, y, 0U);
    it.heal(unwritten);
  }
  {
    const Buffer<float> x = it.floats("x");
    OpenWindow window = it.stream.record().value();
    it.stream.launch(*it.make, grid(4), x, 0U);
    REQUIRE(window.seal().ok());
  }
  CHECK(it.device.live_failures() == 0);
  CHECK(it.heard() == 0);
}

TEST_CASE(
    "M2: of what failed in a window, what its seal did not name is told, and after an abort "
    "nothing") {
  Listening it;
  const Buffer<float> x = it.floats("x");
  const Buffer<float> y = it.floats("y");
  const Buffer<float> z = it.floats("z");
  const View<float> outside = x.view(2, 9);
  int expected = 0;
  OpenWindow window = it.stream.record().value();
  it.stream.launch(*it.map, grid(4), outside, y, 0U);  // fails: it dooms
  it.stream.launch(*it.map, grid(4), outside, z, 0U);  // so does this one, which is only counted
  SUBCASE("sealed") {
    REQUIRE_FALSE(window.seal().ok());
    expected = 1;
  }
  SUBCASE("dropped") {
    { const OpenWindow dropped = std::move(window); }
    expected = 2;
  }
  SUBCASE("aborted") { window.abort(); }
  it.heal(y);
  it.heal(z);
  CHECK(it.heard() == expected);
  CHECK(it.device.live_failures() == 0);
}

TEST_CASE("M2: a late failure is told unless a sync has answered it") {
  Listening it(StreamKind::worker);
  const Buffer<float> x = it.floats("x");
  const Buffer<float> y = it.floats("y");
  it.stream.launch(*it.make, grid(4), x, 1U);
  const Result<void> synced = it.stream.sync();
  REQUIRE_FALSE(synced.ok());
  REQUIRE(synced.error().failure());  // whose story can be asked for
  it.heal(x);
  CHECK(it.heard() == 0);
  it.stream.launch(*it.make, grid(4), x, 1U);
  it.stream.launch(*it.make, grid(4), y, 1U);
  REQUIRE_FALSE(it.stream.sync().ok());  // the first of the two
  it.heal(x);
  CHECK(it.heard() == 0);
  it.heal(y);
  CHECK(it.heard() == 1);
}

TEST_CASE("M2: an exit that tells of an unread failure allocates nothing itself") {
  Listening it;
  it.keeps = false;
  const Buffer<float> x = it.bad("x");
  it.heal(x);
  REQUIRE(it.heard() == 1);
  it.stream.launch(*it.make, grid(4), x, 1U);
  CHECK(allocations_in([&] { it.stream.launch(*it.make, grid(4), x, 0U); }) == 0);
  CHECK(it.heard() == 2);
}

}  // namespace refrain::test
