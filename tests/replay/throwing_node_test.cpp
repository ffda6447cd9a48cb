// E4 and P4 for a node that throws in a replay: what the replay wrote carries the very exception
// and says which node it was, which replay, and what to do; the caller gets the exception alone.
#include <doctest/doctest.h>

#include <functional>
#include <stdexcept>
#include <string>

#include "counter_graph.hpp"

namespace refrain::test {
namespace {

struct OnFire : std::runtime_error {
  OnFire() : std::runtime_error("The second node is on fire.") {}
};

/// Three nodes over one state; the second does what a case says, as a kernel or as host work.
class ThreeNodes {
 public:
  ThreeNodes(StreamKind kind, bool host_work)
      : stream(device.stream(kind).value()),
        state(device.buffer<float>("state", 4, Role::state).value()) {
    using Update = Kernel<InOut<float>>;
    device.kernels().add<Update>("plain", [](std::span<float> all) { all[0] += 1; });
    device.kernels().add<Update>("wild", [this](std::span<float>) { return does(); });
    const auto plain = device.kernel<Update>("plain").value();
    const auto wild = device.kernel<Update>("wild").value();
    OpenWindow window = stream.record().value();
    stream.launch(plain, grid(4), state);
    if (host_work) {
      stream.host<InOut<float>>(
          {"wild", Effects::opaque(), Where{}}, [this](std::span<float>) { return does(); }, state);
    } else {
      stream.launch(wild, grid(4, Where{}), state);
    }
    stream.launch(plain, grid(4), state);
    step.emplace(instance(window.seal({.name = "three nodes"}).value()).value());
    REQUIRE(step->reset(stream).ok());
  }

  /// Everything that is to be said of the second node's failure in replay `number`.
  [[nodiscard]] static bool told(const std::string& text, const std::string& what, int number) {
    const std::string expected = what +
                                 "\n  - While replaying node 1, \"wild\", of graph \"three nodes\"."
                                 "\n  - It was replay " +
                                 std::to_string(number) + " of its instance.\n  - It";
    CAPTURE(text);
    CHECK(text.find(expected) == 0);
    return text.find("reset the instance") != std::string::npos;
  }

  std::vector<Error> heard;
  std::function<Result<void>()> does = [] { return Result<void>(); };
  host::Device device{DeviceOptions{
      .on_failure = [this](StreamId, const Error& error) { heard.push_back(error); }}};
  Stream stream;
  Buffer<float> state;
  std::optional<Instance> step;
};

template <class Case>
void on_each(Case&& each) {
  for (const StreamKind kind : {StreamKind::inline_, StreamKind::worker}) {
    for (const bool host_work : {false, true}) {
      CAPTURE(static_cast<int>(kind));
      CAPTURE(host_work);
      ThreeNodes it(kind, host_work);
      each(it, kind == StreamKind::worker);
      it.does = [] { return Result<void>(); };
      REQUIRE(it.step->reset(it.stream).ok());
      CHECK(it.step->replay(it.stream).executed_cleanly());
      CHECK(it.stream.sync().ok());
      CHECK(it.stream.read(it.state).value()[0] == 2);
    }
  }
}

}  // namespace

TEST_CASE("E4, P4: a node that throws in a replay is named, and its exception goes on untouched") {
  on_each([](ThreeNodes& it, bool worker) {
    CHECK(it.step->replay(it.stream).executed_cleanly());
    REQUIRE(it.stream.sync().ok());
    const OnFire* thrown = nullptr;
    it.does = [&]() -> Result<void> {
      try {
        throw OnFire();
      } catch (const OnFire& fire) {
        thrown = &fire;
        throw;
      }
    };
    const OnFire* caught = nullptr;
    try {
      static_cast<void>(it.step->replay(it.stream));
    } catch (const OnFire& fire) {
      caught = &fire;
    }
    const auto synced = it.stream.sync();
    REQUIRE(thrown != nullptr);
    CHECK(caught == (worker ? nullptr : thrown));
    CHECK(synced.ok() == !worker);

    const auto carried = it.device.check(it.state);
    REQUIRE(carried.has_value());
    CHECK(carried->kind() == ErrorKind::exception);
    const std::string what = "An exception was thrown: The second node is on fire.";
    CHECK(ThreeNodes::told(carried->text(), what, 2));
    REQUIRE(it.heard.size() == 1);
    CHECK(ThreeNodes::told(it.heard[0].text(), what, 2));
    try {
      std::rethrow_exception(carried->exception());
    } catch (const OnFire& fire) {
      CHECK(&fire == thrown);
    }
  });
}

TEST_CASE("E4: what is no std::exception goes through a replay too") {
  on_each([](ThreeNodes& it, bool worker) {
    it.does = []() -> Result<void> { throw 42; };
    int caught = 0;
    try {
      static_cast<void>(it.step->replay(it.stream));
    } catch (int number) {
      caught = number;
    }
    static_cast<void>(it.stream.sync());
    CHECK(caught == (worker ? 0 : 42));
    const auto carried = it.device.check(it.state);
    REQUIRE(carried.has_value());
    CHECK(
        ThreeNodes::told(carried->text(), "An exception was thrown that is no std::exception.", 1));
  });
}

TEST_CASE("E2, E4: an error that holds an exception and is returned is not thrown by a replay") {
  on_each([](ThreeNodes& it, bool worker) {
    it.does = []() -> Result<void> {
      try {
        throw OnFire();
      } catch (...) {
        return Error::thrown(std::current_exception());
      }
    };
    const auto outcome = it.step->replay(it.stream);
    CHECK(outcome.failed() == !worker);
    static_cast<void>(it.stream.sync());
    const auto carried = it.device.check(it.state);
    REQUIRE(carried.has_value());
    CHECK(ThreeNodes::told(carried->text(), "An exception was thrown: The second node is on fire.",
                           1));
  });
}

TEST_CASE("E4: a node that throws in a replay inside of other work leaves that work too") {
  ThreeNodes it(StreamKind::inline_, false);
  const auto y = it.device.buffer<float>("y", 4).value();
  it.does = []() -> Result<void> { throw OnFire(); };
  WriteSet writes = it.stream.write_set();
  writes.add(y.view().binding());
  CHECK_THROWS_AS(ExecuteScope<Stream>::over(it.stream, intern_kernel_name("outer"),
                                             std::move(writes), Where::here())
                      .execute([&](Stream& on) -> Result<void> {
                        return std::move(it.step->replay(on)).into_result().ok()
                                   ? Result<void>()
                                   : Error(ErrorKind::kernel_failed, "never");
                      }),
                  OnFire);
  for (const Buffer<float>& each : {std::cref(it.state), std::cref(y)}) {
    const auto carried = it.device.check(each);
    REQUIRE(carried.has_value());
    CHECK(carried->exception() != nullptr);
  }
  CHECK(ThreeNodes::told(it.device.check(it.state)->text(),
                         "An exception was thrown: The second node is on fire.", 1));
}

}  // namespace refrain::test
