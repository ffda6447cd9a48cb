// What is left when memory runs out: the n-th call of operator new that a call makes throws, for
// every n. Work that was lost so must not be missing from a graph, nor may its bytes read as good.
#include <functional>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include "device/rig.hpp"
#include "refrain/replay/plan.hpp"
#include "support/allocations.hpp"

namespace refrain {
namespace {

using namespace test;

struct World {
  explicit World(StreamKind kind) : rig(kind) {}

  Rig rig;
  Buffer<float> x = rig.floats("x", 1);
  Buffer<float> y = rig.floats("y", 1);
  Buffer<float> z = rig.floats("z", 1);
  Buffer<std::uint32_t> extent = rig.device.buffer<std::uint32_t>("extent", 6).value();
  std::vector<float> values = four(3);
  Error error = broken("made before");
  std::optional<Stream> origin = rig.another();
  Stream member = rig.another();
  std::optional<OpenWindow> window;
  bool advanced = false;  // a state, as an error says
};

struct Step {
  std::string name;
  std::function<void(World&, Stream&)> work;
  bool fails = false;     // without running out of memory, too
  bool in_place = false;  // reads y before it writes it, which a refused window leaves as it is
};

/// Work that writes y.
const std::vector<Step>& works() {
  static const std::vector<Step> all{
      {"launch", [](World& w, Stream& on) { on.launch(*w.rig.map, grid(4), w.x, w.y, 0U); }},
      {"launch in place", [](World& w, Stream& on) { on.launch(*w.rig.update, grid(4), w.y, 0U); },
       false, true},
      {"copy", [](World& w, Stream& on) { on.copy(w.y, w.x); }},
      {"fill", [](World& w, Stream& on) { on.fill(w.y, 2); }},
      {"write", [](World& w, Stream& on) { on.write(w.y, w.values); }},
      {"write_each",
       [](World& w, Stream& on) {
         on.write_each({w.y.view(0, 2), w.y.view(2, 2)}, std::span<const float>(w.values).first(2));
       }},
      {"host",
       [](World& w, Stream& on) {
         on.host<In<float>, Out<float>>(
             "h", [](std::span<const float> x, std::span<float> y) { y[0] = x[0]; }, w.x, w.y);
       }},
      {"scope",
       [](World& w, Stream& on) {
         on.scope("a scope", {w.y},
                  [&](Stream& inside) { return inside.fill(w.y, 2).into_result(); });
       }},
      {"failed_write", [](World& w, Stream& on) { on.failed_write(w.y, w.error); }, true},
      {"failed_launch",
       [](World& w, Stream& on) { on.failed_launch<Map>("map", grid(4), w.error, w.x, w.y, 0U); },
       true},
      {"a copy of two sizes", [](World& w, Stream& on) { on.copy(w.y.view(), w.x.view(0, 2)); },
       true},
      {"a launch over a view of another device",
       [](World& w, Stream& on) { on.launch(*w.rig.map, grid(4), View<float>(), w.y, 0U); }, true},
      {"a launch with its grid in a buffer",
       [](World& w, Stream& on) { on.launch(*w.rig.make, w.extent, w.y, 0U); }, true},
  };
  return all;
}

/// Does `work` with its n-th allocation failing; answers whether one has.
template <class Work>
bool starved(std::uint64_t n, Work&& work, bool& thrown) {
  thrown = false;
  fail_allocation(n);
  try {
    work();
  } catch (const std::bad_alloc&) {
    thrown = true;
  }
  return stop_failing();
}

/// For each n and each kind of stream, until nothing fails any more: `body(world, n)`, which
/// answers whether an allocation has failed.
template <class Body>
void sweep(Body&& body) {
  if (!kCountsAllocations) return;
  for (const StreamKind kind : {StreamKind::inline_, StreamKind::worker}) {
    CAPTURE(static_cast<int>(kind));
    bool more = true;
    for (std::uint64_t n = 0; more; ++n) {
      CAPTURE(n);
      REQUIRE(n < 1000);
      World world(kind);
      more = body(world, n);
    }
  }
}

/// The device works as ever.
void goes_on(World& w) {
  CHECK(w.rig.device.sync().ok());
  for (Stream* const on : {&*w.origin, &w.member, &w.rig.stream}) {
    OpenWindow next = on->record().value();
    on->fill(w.y, 4);
    CHECK(next.seal().ok());
  }
  for (const Buffer<float>* const each : {&w.x, &w.y, &w.z}) {
    CHECK(w.rig.stream.fill(*each, 1).executed_cleanly());
  }
  CHECK(w.rig.values(w.y) == four(1));
}

}  // namespace

TEST_CASE("C3: work in a window for which memory runs out dooms it") {
  for (const Step& call : works()) {
    CAPTURE(call.name);
    sweep([&](World& w, std::uint64_t n) {
      w.window.emplace(w.origin->record().value());
      w.origin->fill(w.z, 5);
      bool thrown = false;
      const bool more = starved(
          n, [&] { call.work(w, *w.origin); }, thrown);
      CHECK((!thrown || w.window->state() == WindowState::doomed));
      const Result<Recording> sealed = w.window->seal();
      CHECK((sealed.ok() || more || call.fails));
      if (sealed.ok()) CHECK(sealed->graph().nodes().size() >= 2);
      if (!call.in_place || sealed.ok()) CHECK_FALSE(w.rig.clean(w.y));
      CHECK_FALSE(w.rig.clean(w.z));
      goes_on(w);
      return more;
    });
  }
}

TEST_CASE("E4: work for which memory runs out before its scope opens claims what it was to write") {
  for (const Step& call : works()) {
    CAPTURE(call.name);
    sweep([&](World& w, std::uint64_t n) {
      bool thrown = false;
      const bool more = starved(
          n, [&] { call.work(w, w.rig.stream); }, thrown);
      w.rig.settle();
      if (thrown) CHECK_FALSE(w.rig.clean(w.y));
      goes_on(w);
      return more;
    });
  }
}

TEST_CASE("C1, C11: the end of a window for which memory runs out leaves no lie and no window") {
  const std::vector<Step> calls{
      {"seal", [](World& w, Stream&) { static_cast<void>(w.window->seal()); }},
      {"abort", [](World& w, Stream&) { w.window->abort(); }},
      {"drop", [](World& w, Stream&) { w.window.reset(); }},
      {"its stream goes", [](World& w, Stream&) { w.origin.reset(); }},
  };
  for (const Step& call : calls) {
    for (const bool doomed : {false, true}) {
      CAPTURE(call.name);
      CAPTURE(doomed);
      sweep([&](World& w, std::uint64_t n) {
        w.window.emplace(w.origin->record().value());
        w.origin->launch(*w.rig.map, grid(4), w.x, w.y, 0U);
        if (doomed) w.origin->failed_write(w.z, w.error);
        const std::shared_ptr<Window> watched = w.origin->core().window;
        bool thrown = false;
        const bool more = starved(
            n, [&] { call.work(w, *w.origin); }, thrown);
        CHECK(watched->over());
        CHECK(w.rig.clean(w.y) == (call.name == "abort"));
        if (!w.origin) w.origin.emplace(w.rig.another());
        goes_on(w);
        return more;
      });
    }
  }
}

TEST_CASE("C17: what a window wants and memory runs out for dooms it") {
  const std::vector<Step> calls{
      {"wait",
       [](World& w, Stream&) {
         const Result<Event> event = w.member.record_event();
         if (event.ok()) static_cast<void>(w.origin->wait(*event));
       }},
      {"buffer", [](World& w, Stream&) { static_cast<void>(w.rig.device.buffer<float>("b", 4)); }},
      {"stream", [](World& w, Stream&) { static_cast<void>(w.rig.another()); }},
      {"kernel", [](World& w, Stream&) { static_cast<void>(w.rig.device.kernel<Map>("map")); }},
      {"no kernel",
       [](World& w, Stream&) { static_cast<void>(w.rig.device.kernel<Map>("nowhere")); }, true},
      {"first use",
       [](World&, Stream& on) {
         static_cast<void>(on.first_use("tuning", [] { return Result<void>(); }));
       },
       true},
  };
  for (const Step& call : calls) {
    CAPTURE(call.name);
    sweep([&](World& w, std::uint64_t n) {
      w.window.emplace(w.origin->record().value());
      w.origin->fill(w.z, 5);
      REQUIRE(w.member.wait(w.origin->record_event().value()).ok());
      w.member.fill(w.y, 5);
      bool thrown = false;
      const bool more = starved(
          n, [&] { call.work(w, *w.origin); }, thrown);
      CHECK((!thrown || w.window->state() == WindowState::doomed));
      if (call.fails) CHECK(w.window->state() == WindowState::doomed);
      w.window->abort();
      goes_on(w);
      return more;
    });
  }
}

TEST_CASE("C1: a window that memory runs out for as it opens is not open") {
  const std::vector<Step> calls{
      {"record", [](World& w, Stream& on) { w.window.emplace(on.record().value()); }},
      {"prepare", [](World& w, Stream& on) { w.window.emplace(on.prepare().value()); }},
      {"prepare with a body",
       [](World& w, Stream& on) {
         auto opened = on.prepare([&] { on.launch(*w.rig.update, grid(4), w.y, 0U); });
         // What the pass itself lacks room for is told as work of its body.
         if (!opened.ok()) {
           w.advanced = says(opened.error(), "a state may have advanced");
           std::rethrow_exception(opened.error().exception());
         }
         w.window.emplace(*std::move(opened));
       }},
  };
  for (const Step& call : calls) {
    CAPTURE(call.name);
    sweep([&](World& w, std::uint64_t n) {
      bool thrown = false;
      const bool more = starved(
          n, [&] { call.work(w, w.rig.stream); }, thrown);
      CHECK(thrown == !w.window.has_value());
      if (w.window) w.window->abort();
      // C20: its pass advanced no state, or it says so.
      if (!w.advanced && w.rig.clean(w.y)) CHECK(w.rig.values(w.y) == four(1));
      goes_on(w);
      return more;
    });
  }
}

}  // namespace refrain
