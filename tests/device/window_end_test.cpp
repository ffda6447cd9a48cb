// C11, C19: when a window ends, and what of the program's goes with it. A handle may leave its
// window inside a body; what host work captured, and what a body threw, may do anything as they go.
#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>

#include "device/rig.hpp"

namespace refrain {
namespace {

using namespace test;

/// Does something as it goes.
class Goes {
 public:
  explicit Goes(std::function<void()> does) : does_(std::move(does)) {}
  Goes(const Goes&) = delete;
  Goes& operator=(const Goes&) = delete;
  ~Goes() { does_(); }

 private:
  std::function<void()> does_;
};

struct Thrown : std::runtime_error {
  explicit Thrown(std::shared_ptr<Goes> what) : runtime_error("thrown"), held(std::move(what)) {}
  std::shared_ptr<Goes> held;
};

/// A scope on `stream` that writes `bytes`.
ExecuteScope<Stream> scope_over(Stream& stream, const Buffer<float>& bytes, const char* name) {
  WriteSet writes = stream.write_set();
  writes.add(bytes.view().binding());
  return ExecuteScope<Stream>::over(stream, intern_kernel_name(name), std::move(writes),
                                    Where::here());
}

enum class Leaves : std::uint8_t { clean, fails, throws, nested, unexecuted };
enum class Ends : std::uint8_t { abort, drop, seal, stream };

}  // namespace

ON_BOTH_KINDS("C11, C19: a window left inside a body ends when the outermost body has come back") {
  for (const bool dropped : {true, false}) {
    for (const bool by_member : {false, true}) {
      for (const Leaves way :
           {Leaves::clean, Leaves::fails, Leaves::throws, Leaves::nested, Leaves::unexecuted}) {
        CAPTURE(dropped);
        CAPTURE(by_member);
        CAPTURE(static_cast<int>(way));
        const Buffer<float> x = rig.floats("x", 1);
        std::optional<Buffer<float>> held = rig.floats("held", 1);
        Stream origin = rig.another();
        Stream member = rig.another();
        auto window = std::make_optional(origin.record().value());
        const std::shared_ptr<Window> watched = origin.core().window;
        REQUIRE(member.wait(origin.record_event().value()).ok());
        Stream& on = by_member ? member : origin;
        const auto leave = [&] {
          if (dropped) {
            window.reset();
          } else {
            window->abort();
          }
          CHECK_FALSE(watched->over());
          CHECK_FALSE(rig.device.sync().ok());
          held.reset();
        };
        const auto body = [&](Stream& inside) -> Result<void> {
          inside.fill(x, 2);
          if (way == Leaves::nested) {
            const auto inner = scope_over(inside, x, "inner").execute([&](Stream& within) {
              within.fill(x, 3);
              leave();
              return Result<void>();
            });
            CHECK(inner.executed_cleanly());
            CHECK_FALSE(watched->over());
          } else {
            leave();
          }
          if (way == Leaves::throws) throw std::runtime_error("thrown");
          if (way == Leaves::fails) return broken("the body failed");
          return {};
        };
        try {
          ExecuteScope<Stream> scope = scope_over(on, x, "outer");
          if (way == Leaves::unexecuted) {
            leave();
          } else {
            static_cast<void>(std::move(scope).execute(body));
          }
        } catch (const std::runtime_error&) {
          CHECK(way == Leaves::throws);
        }
        CHECK(watched->state() == WindowState::ended);
        CHECK(rig.device.sync().ok());
        CHECK(rig.clean(x) == !dropped);
        CHECK(rig.stream.read(x).ok() == !dropped);
        if (!dropped) CHECK(rig.values(x) == four(1));
        CHECK(origin.record().ok());
        CHECK(member.record().ok());
      }
    }
  }
}

ON_BOTH_KINDS("C14, C19: what goes with a window meets one that has ended, however it ended") {
  for (const Ends how : {Ends::abort, Ends::drop, Ends::seal, Ends::stream}) {
    for (const bool by_exception : {false, true}) {
      CAPTURE(static_cast<int>(how));
      CAPTURE(by_exception);
      const Buffer<float> x = rig.floats("x", 1);
      const Buffer<float> y = rig.floats("y", 1);
      auto origin = std::make_optional(rig.another());
      Stream other = rig.another();
      auto window = std::make_optional(origin->record().value());
      int gone = 0;
      auto goes = std::make_shared<Goes>([&] {
        ++gone;
        CHECK(rig.device.sync().ok());
        Stream& calls = how == Ends::stream ? other : *origin;
        CHECK(calls.capturing() == nullptr);
        CHECK(calls.fill(y, 5).executed_cleanly());
        CHECK(calls.sync().ok());
        OpenWindow next = calls.record().value();
        calls.fill(x, 7);
        next.abort();
      });
      if (by_exception) {
        CHECK_THROWS_AS(scope_over(*origin, x, "throws").execute([&](Stream&) -> Result<void> {
          throw Thrown(std::move(goes));
        }),
                        Thrown);
      } else {
        origin->host<Out<float>>(
            "host", [goes = std::move(goes)](std::span<float>) {}, x);
        if (how == Ends::seal) origin->failed_write(x.view(0, 1), broken("a frame was lost"));
      }
      CHECK(gone == 0);
      switch (how) {
        case Ends::abort: window->abort(); break;
        case Ends::drop: window.reset(); break;
        case Ends::seal: CHECK_FALSE(window->seal().ok()); break;
        case Ends::stream: origin.reset(); break;
      }
      window.reset();
      rig.forget_heard();
      if (origin) CHECK(origin->capturing() == nullptr);
      static_cast<void>(rig.stream.fill(x, 1));  // of an exception, the bytes own a part
      rig.settle();
      CHECK(gone == 1);
      CHECK(rig.device.sync().ok());
      CHECK(rig.values(y) == four(5));
    }
  }
}

ON_BOTH_KINDS("C14: a window may own the last handle of its stream, and its own") {
  for (const Ends how : {Ends::abort, Ends::drop, Ends::seal}) {
    for (const bool handle : {false, true}) {
      CAPTURE(static_cast<int>(how));
      CAPTURE(handle);
      const Buffer<float> x = rig.floats("x", 1);
      auto origin = std::make_shared<Stream>(rig.another());
      auto window = std::make_shared<OpenWindow>(origin->record().value());
      Stream* const stream = origin.get();
      OpenWindow* const open = window.get();
      stream->host<Out<float>>(
          "host", [origin](std::span<float>) {}, x);
      origin.reset();
      if (handle) {
        if (how == Ends::drop) continue;  // it would own itself for ever
        stream->host<Out<float>>(
            "host", [window](std::span<float>) {}, x);
        window.reset();
      }
      if (how == Ends::seal) stream->failed_write(x, broken("a frame was lost"));
      switch (how) {
        case Ends::abort: open->abort(); break;
        case Ends::drop: window.reset(); break;
        default: CHECK_FALSE(open->seal().ok());
      }
      CHECK(rig.device.sync().ok());
      CHECK(rig.clean(x) == (how == Ends::abort));
      CHECK(rig.stream.record().ok());
    }
  }
}

TEST_CASE("E10: work of a worker stream may be the last owner of that stream") {
  for (const bool device_too : {false, true}) {
    CAPTURE(device_too);
    const auto go = std::make_shared<Gate>();
    const auto ended = std::make_shared<Gate>();  // its own: it may still be notifying
    float after = 0;
    {
      auto device = std::make_optional<host::Device>();
      auto x = std::make_optional(device->buffer<float>("x", 4).value());
      auto stream = std::make_shared<Stream>(device->stream(StreamKind::worker).value());
      Stream& on = *stream;
      on.host<Out<float>>(
          "owns",
          [stream, go](std::span<float> y) {
            go->wait();
            for (float& each : y) each = 1;
          },
          *x);
      // Queued behind it: runs all the same.
      on.host<InOut<float>>(
          "behind", [&](std::span<float> y) { after = y[0] + 1; }, *x);
      const auto goes = std::make_shared<Goes>([ended] { ended->open(); });
      on.host<In<float>>(
          "last", [goes](std::span<const float>) {}, *x);
      stream.reset();
      x.reset();
      if (device_too) device.reset();
      go->open();
    }
    ended->wait();
    CHECK(after == 2);
  }
}

}  // namespace refrain
