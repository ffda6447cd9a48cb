// Cases that users of recorded graphs have met, inside the window: the recording silently lacks
// work, or something happens in it that cannot be recorded. A name begins with the case's number.
#include "device/faulty.hpp"
#include "refrain/replay/plan.hpp"

namespace refrain::test {
namespace {

/// The error of a seal that is refused.
Error refused(OpenWindow& window, const SealOptions& options = {}) {
  const Result<Recording> sealed = window.seal(options);
  REQUIRE_FALSE(sealed.ok());
  return sealed.error();
}

}  // namespace

ON_BOTH_KINDS(
    "B01: work that is refused in any way dooms the window, though all the work around it was "
    "recorded") {
  const Buffer<float> a = rig.floats("a", 1);
  const Buffer<float> b = rig.floats("b", 1);
  const Buffer<float> c = rig.floats("c", 1);
  const Buffer<float> bad = rig.bad("bad", "it never came");
  const std::vector<float> values = four(1);
  const auto constant =
      rig.device.constant<float>("constant", SharedBytes::copy_of(std::as_bytes(std::span(values))))
          .value();
  const auto extent = rig.device.buffer<std::uint32_t>("extent", 6).value();
  View<float> stale;
  {
    const Buffer<float> gone = rig.floats("gone", 1);
    stale = gone.view();
  }
  Rig elsewhere(rig.kind());
  const Buffer<float> foreign = elsewhere.floats("foreign", 1);
  Stream& stream = rig.stream;
  struct Refusal {
    const char* named;
    std::function<void()> work;
  };
  const std::vector<Refusal> all{
      {"\"map\"", [&] { stream.launch(*rig.map, grid(4), stale, c, 0U); }},
      {"\"map\"", [&] { stream.launch(*rig.map, grid(4), foreign, c, 0U); }},
      {"\"map\"", [&] { stream.launch(*rig.map, grid(4), a.view(3, 2), c, 0U); }},
      {"\"map\"", [&] { stream.launch(*rig.map, grid(4), View<float>(), c, 0U); }},
      {"\"map\"", [&] { stream.launch(*rig.map, grid(4), a, constant, 0U); }},
      {"\"map\"", [&] { stream.launch(*elsewhere.map, grid(4), a, c, 0U); }},
      {"\"map\"", [&] { stream.launch(*rig.map, grid(4), bad, c, 0U); }},
      {"\"map\"", [&] { stream.launch_packed(rig.map->loaded(), grid(4), {}, {}); }},
      {"\"make\"", [&] { stream.launch(*rig.make, extent, c, 0U); }},
      {"\"copy\"", [&] { stream.copy(c, bad); }},
      {"\"copy\"", [&] { stream.copy(c.view(), stale); }},
      {"\"copy\"", [&] { stream.copy(c.view(0, 2), b.view(0, 3)); }},
      {"\"copy\"", [&] { stream.copy(c.view(0, 2), c.view(1, 2)); }},
      {"\"copy\"", [&] { stream.copy(constant, b); }},
      {"\"fill\"", [&] { stream.fill(stale, 1); }},
      {"\"fill\"", [&] { stream.fill(constant, 1); }},
      {"\"fill\"", [&] { stream.fill_bytes(c.view().binding(), 256, 1, Where::here()); }},
      {"\"write\"", [&] { stream.write(c, std::vector<float>(3)); }},
      {"\"write\"", [&] { stream.write(stale, four(1)); }},
      {"\"write\"", [&] { stream.failed_write(c, broken("a frame was lost")); }},
      {"\"own work\"",
       [&] { own_work(stream, {c}, [](Stream&) -> Result<void> { return broken("own"); }); }},
      {"\"own work\"",
       [&] {
         CHECK_THROWS_AS(own_work(stream, {c}, [](Stream&) -> Result<void> { throw 1; }), int);
       }},
      {"\"own work\"",
       [&] {
         WriteSet set = stream.write_set();
         set.add(c.view().binding());
         static_cast<void>(ExecuteScope<Stream>::over(stream, intern_kernel_name("own work"),
                                                      std::move(set), Where::here()));
       }},
  };
  for (std::size_t at = 0; at < all.size(); ++at) {
    CAPTURE(at);
    OpenWindow window = stream.record().value();
    CHECK(stream.copy(b, a).executed_cleanly());
    all[at].work();
    CHECK(window.state() == WindowState::doomed);
    CHECK(stream.fill(a, 1).executed_cleanly());
    const Error error = refused(window);
    CHECK(error.kind() == ErrorKind::window_doomed);
    CHECK(says(error, std::string("because ") + all[at].named));
    CHECK(says(error, "cases_window_test.cpp"));
    CHECK(rig.carried(b).kind() == ErrorKind::window_doomed);
    for (const Buffer<float>* const each : {&a, &b, &c}) stream.fill(*each, 1);
    rig.settle();
    CHECK(rig.control.runs(0) == 0);
  }
}

TEST_CASE("B01: a graph that the device will not build is no instance, and nothing is claimed") {
  for (const StreamKind kind : kKinds) {
    Faulty it;
    Stream stream = it.device.stream(kind).value();
    const Buffer<float> x = it.floats("x", stream);
    const Buffer<float> y = it.floats("y", stream);
    OpenWindow window = stream.record().value();
    stream.copy(y, x);
    const Recording recording = window.seal().value();
    const Plan plan = Plan::prepare(it.device, recording.graph()).value();
    const std::string before = it.device.check(y)->text();
    for (const bool on_recording : {true, false}) {
      CAPTURE(on_recording);
      const auto make = [&] { return on_recording ? instance(recording) : plan.instance(); };
      it.backend->fail_next("prepare");
      const Result<Instance> none = make();
      REQUIRE_FALSE(none.ok());
      CHECK(none.error().kind() == ErrorKind::device_refused);
      CHECK(it.device.check(y)->text() == before);
      CHECK_FALSE(it.device.check(x).has_value());
      CHECK(make().ok());  // it does not count as one that is in use
    }
    Instance step = instance(recording).value();
    CHECK(step.replay(stream).executed_cleanly());
    CHECK(stream.read(y).value() == four(1));
  }
}

ON_BOTH_KINDS("B02: what runs instead of being recorded dooms the window, and its scope is named") {
  const Buffer<float> p = rig.floats("p", 1);
  const Buffer<float> q = rig.floats("q", 1);
  Stream apart = rig.another();
  struct Way {
    const char* says;
    std::function<void(Stream&)> body;
  };
  const std::vector<Way> ways{
      {"[0, 16) of \"p\"",
       [&](Stream&) {
         auto* const bytes = reinterpret_cast<float*>(p.allocation()->address());
         for (std::size_t at = 0; at < 4; ++at) bytes[at] = 5;
       }},
      {"[0, 16) of \"p\"", [&](Stream&) { static_cast<void>(apart.record_event()); }},
      {"[0, 16) of \"p\"", [&](Stream& on) { on.fill(p.view(0, 2), 5); }},
      {"[0, 16) of \"p\"", [&](Stream& on) { on.fill(q, 5); }},
      {"[0, 16) of \"p\"", [&](Stream& on) { on.reuses(q.view()); }},
      {"[0, 16) of \"p\"",
       [&](Stream& on) {
         on.launch(*rig.make, Grid{{0, 1, 1}, {1, 1, 1}, 0, {}, {}}, p, 0U);
       }},
  };
  for (std::size_t at = 0; at < ways.size(); ++at) {
    CAPTURE(at);
    OpenWindow window = rig.stream.record().value();
    CHECK(own_work(rig.stream, {p}, [&](Stream& on) -> Result<void> {
            ways[at].body(on);
            return {};
          }).executed_cleanly());
    const Error error = refused(window, {.allow_empty = true});
    CHECK(says(error, "because \"own work\""));
    CHECK(says(error, std::string("claimed bytes ") + ways[at].says));
    CHECK(rig.carried(p).kind() == ErrorKind::window_doomed);
    rig.stream.fill(p, 1);
    rig.stream.fill(q, 1);
    rig.settle();
  }
}

ON_BOTH_KINDS("B04: a window in which no work was recorded is refused unless that is allowed") {
  const Buffer<float> y = rig.floats("y", 1);
  const std::vector<std::function<void()>> nothings{
      [] {},
      [&] {
        rig.stream.launch(*rig.make, Grid{{0, 1, 1}, {1, 1, 1}, 0, {}, {}}, y, 0U);
      },
      [&] { rig.stream.copy(y.view(0, 0), y.view(2, 0)); },
      [&] { rig.stream.fill(y.view(0, 0), 1); },
      [&] { rig.stream.write(y.view(0, 0), std::span<const float>()); },
      [&] { rig.stream.reuses(y.view()); },
      [&] { static_cast<void>(rig.stream.record_event()); },
      [&] { own_work(rig.stream, {y.view(0, 0)}, [](Stream&) -> Result<void> { return {}; }); },
  };
  for (std::size_t at = 0; at < nothings.size(); ++at) {
    CAPTURE(at);
    OpenWindow window = rig.stream.record().value();
    nothings[at]();
    const Error error = refused(window);
    CHECK(error.kind() == ErrorKind::recorded_nothing);
    CHECK(says(error, "nothing was recorded in it"));
    OpenWindow allowed = rig.stream.record().value();
    nothings[at]();
    const Result<Recording> empty = allowed.seal({.allow_empty = true});
    REQUIRE(empty.ok());
    CHECK(empty->graph().nodes().empty());
    CHECK(rig.clean(y));
  }
}

TEST_CASE("B05: what a graph writes is bad from its seal to its first clean replay") {
  for (const StreamKind kind : kKinds) {
    CAPTURE(static_cast<int>(kind));
    Faulty it;
    Stream stream = it.device.stream(kind).value();
    const Buffer<float> y = it.floats("y", stream);
    const auto make = it.device.kernel<Make>("make").value();
    OpenWindow window = stream.record().value();
    stream.launch(make, grid(4), y, 0U);
    const Recording recording = window.seal({.name = "step"}).value();
    const auto read = [&] {
      const auto got = stream.read(y);
      REQUIRE_FALSE(got.ok());
      return got.error();
    };
    CHECK(says(read(), "was recorded and has not been replayed"));
    Instance step = instance(recording).value();
    CHECK(says(read(), "was recorded and has not been replayed"));
    it.backend->fail_next("run");
    static_cast<void>(step.replay(stream));  // nobody looks
    CHECK(says(read(), "\"graph step\""));
    CHECK(says(read(), "The device would not run."));
    it.backend->throw_next("run");
    CHECK_THROWS_AS(static_cast<void>(step.replay(stream)), std::bad_alloc);
    CHECK(says(read(), "std::bad_alloc"));
    it.control.does[0] = fails("the kernel broke");
    static_cast<void>(step.replay(stream));
    CHECK(says(read(), "the kernel broke"));
    it.control.does[0] = nullptr;
    CHECK(step.replay(stream).executed_cleanly());
    CHECK(stream.read(y).value() == four(10));
  }
}

ON_BOTH_KINDS(
    "B10: work that a cache leaves out dooms the window, or says what it reuses and that becomes "
    "an input") {
  const Buffer<float> x = rig.floats("x", 1);
  const Buffer<float> quantised = rig.floats("quantised", 0);
  const Buffer<float> y = rig.floats("y", 0);
  bool cached = false;
  bool honest = false;
  const auto op = [&] {
    own_work(
        rig.stream, {quantised},
        [&](Stream& on) -> Result<void> {
          if (cached && honest) on.reuses(quantised.view());
          if (cached) return {};
          cached = true;
          return on.launch(*rig.map, grid(4), x, quantised, 0U).into_result();
        },
        "quantise");
    rig.stream.launch(*rig.map, grid(4), quantised, y, 0U);
  };
  op();  // the warm-up fills the cache
  rig.settle();
  OpenWindow window = rig.stream.record().value();
  op();
  const Error error = refused(window);
  CHECK(says(error, "\"quantise\""));
  CHECK(says(error, "of \"quantised\" and recorded nothing."));
  cached = false;
  op();
  rig.settle();
  honest = true;
  OpenWindow again = rig.stream.record().value();
  op();
  const Result<Recording> sealed = again.seal();
  REQUIRE_MESSAGE(sealed.ok(), sealed.error().text());
  const SealedGraph& graph = sealed->graph();
  REQUIRE(graph.external_reads().size() == 1);
  CHECK(graph.external_reads()[0] == RegionBytes{*graph.region("quantised"), {0, 16}});
  // So it is looked at before each replay, as every input.
  Instance step = instance(*sealed).value();
  CHECK(step.replay(rig.stream).executed_cleanly());
  CHECK(rig.values(y) == four(3));
  rig.stream.failed_write(quantised, broken("the cache was lost"));
  CHECK(step.replay(rig.stream).skipped());
  CHECK(says(rig.unreadable(y), "the cache was lost"));
}

TEST_CASE(
    "B13: a refused call that a body tells as something else is the root, and its telling is "
    "kept") {
  for (const StreamKind kind : kKinds) {
    for (const bool around : {false, true}) {  // told by the scope around, or by the scope itself
      CAPTURE(around);
      Faulty it;
      Stream stream = it.device.stream(kind).value();
      const Buffer<float> y = it.floats("y", stream);
      const auto infer = [&](Stream& on) {
        return own_work(
            on, {y.view(0, 1)},
            [&](Stream&) -> Result<void> {
              const auto made = it.device.buffer<float>("workspace", 1024);
              REQUIRE_FALSE(made.ok());
              return around ? made.error() : broken("network down");
            },
            "infer");
      };
      OpenWindow window = stream.record().value();
      it.backend->fail_next("allocate");
      if (around) {
        own_work(stream, {y}, [&](Stream& on) -> Result<void> {
          CHECK(infer(on).failed());
          return broken("network down");
        });
      } else {
        CHECK(infer(stream).failed());
      }
      const Error error = refused(window);
      CHECK(says(error, "because the device refused a call in \"infer\" (" __FILE__));
      CHECK(says(error, "The device would not allocate."));
      CHECK(says(error, "While allocating buffer \"workspace\" of 4096 bytes."));
      CHECK(says(error, "The work around that told it as: network down"));
      CHECK(says(error, "more.") == around);  // the scope around failed too
    }
  }
}

ON_BOTH_KINDS("B13: first-use work that a body tells as something else is the root as well") {
  const Buffer<float> y = rig.floats("y", 1);
  OpenWindow window = rig.stream.record().value();
  CHECK(own_work(rig.stream, {y}, [&](Stream& on) -> Result<void> {
          if (!on.first_use("connecting", []() -> Result<void> { return {}; }).ok()) {
            return broken("network down");
          }
          return {};
        }).failed());
  const Error error = refused(window);
  CHECK(says(error, "it needs warm-up: connecting ("));
  CHECK(says(error, "The work around that told it as: network down"));
}

ON_BOTH_KINDS("B13: what a skip is told as is kept, and what has nothing to do with it is not") {
  const Buffer<float> x = rig.bad("x", "the token never came");
  const Buffer<float> y = rig.floats("y", 1);
  const Buffer<float> z = rig.floats("z", 1);
  OpenWindow window = rig.stream.record().value();
  own_work(rig.stream, {y}, [&](Stream& on) -> Result<void> {
    if (!on.launch(*rig.map, grid(4), x, y, 0U).executed_cleanly()) return broken("no logits");
    return {};
  });
  own_work(rig.stream, {z}, [&](Stream&) -> Result<void> { return broken("another thing"); });
  const Error error = refused(window);
  CHECK(says(error, "because \"map\""));
  CHECK(says(error, "the token never came"));
  CHECK(says(error, "The work around that told it as: no logits"));
  CHECK_FALSE(says(error, "another thing"));
  CHECK(says(error, "2 times more"));
}

TEST_CASE("B14: a body that throws dooms its window, and the stream's next work takes no blame") {
  for (const StreamKind kind : kKinds) {
    Faulty it;
    Stream stream = it.device.stream(kind).value();
    const Buffer<float> y = it.floats("y", stream);
    const auto throwing = [&] {
      OpenWindow window = stream.record().value();
      stream.fill(y.view(0, 2), 2);
      it.backend->throw_next("allocate");
      own_work(
          stream, {y.view(2, 2)},
          [&](Stream& on) -> Result<void> {
            const auto workspace = it.device.buffer<float>("workspace", 4);
            return on.fill(y.view(2, 2), 2).into_result();
          },
          "decode");
      static_cast<void>(window.seal());
    };
    CHECK_THROWS_AS(throwing(), std::bad_alloc);  // which drops the window as well
    CHECK(says(*it.device.check(y.view(2, 2)), "std::bad_alloc"));
    CHECK(says(*it.device.check(y.view(0, 2)), "\"decode\""));
    CHECK(says(*it.device.check(y.view(0, 2)), "std::bad_alloc"));
    CHECK(stream.fill(y, 3).executed_cleanly());
    CHECK(stream.read(y).value() == four(3));
    CHECK(stream.record().ok());
    CHECK(it.device.buffer<float>("workspace", 4).ok());
  }
}

TEST_CASE("B16: memory that cannot be had in a window frees nothing and dooms it with the size") {
  for (const bool throws : {false, true}) {
    CAPTURE(throws);
    Faulty it;
    Stream stream = it.device.stream().value();
    const Buffer<float> y = it.floats("y", stream);
    { const Buffer<float> freed = it.floats("freed", stream); }
    OpenWindow window = stream.record().value();
    stream.fill(y, 2);
    const std::int64_t held = it.backend->held();
    if (throws) {
      it.backend->throw_next("allocate");
      CHECK_THROWS_AS(static_cast<void>(it.device.buffer<float>("more", 1000)), std::bad_alloc);
    } else {
      it.backend->fail_next("allocate");
      CHECK_FALSE(it.device.buffer<float>("more", 1000).ok());
    }
    CHECK(it.backend->held() == held);
    CHECK(window.state() == WindowState::doomed);
    const Error error = refused(window);
    CHECK(says(error, throws ? "std::bad_alloc" : "buffer \"more\" of 4000 bytes"));
    CHECK(it.device.buffer<float>("more", 1000).ok());
  }
}

ON_BOTH_KINDS(
    "B17: a tracer that wants to read is refused in the window, which seals all the same") {
  const Buffer<float> x = rig.floats("x", 1);
  const Buffer<float> y = rig.floats("y", 1);
  Stream member = rig.another();
  OpenWindow window = rig.stream.record().value();
  std::vector<std::string> trace;
  const auto traced = [&](Stream& on, const Buffer<float>& buffer) {
    const auto got = on.read(buffer);
    REQUIRE_FALSE(got.ok());
    CHECK(got.error().kind() == ErrorKind::refused_in_window);
    CHECK(says(got.error(), "what is recorded has not run"));
    std::vector<float> room(4);
    CHECK_FALSE(on.read_into(buffer, room).ok());
    CHECK_FALSE(on.sync().ok());
    CHECK_FALSE(on.record_event().value().wait().ok());
    trace.push_back(buffer.name() + " of " + std::to_string(buffer.size()) +
                    (rig.device.check(buffer) ? ", bad" : ""));
  };
  rig.stream.launch(*rig.map, grid(4), x, y, 0U);
  traced(rig.stream, y);
  own_work(rig.stream, {y}, [&](Stream& on) -> Result<void> {
    on.launch(*rig.make, grid(4), y, 0U);
    traced(on, x);
    return {};
  });
  REQUIRE(member.wait(rig.stream.record_event().value()).ok());
  member.launch(*rig.update, grid(4), x, 0U);
  traced(member, x);
  REQUIRE(rig.stream.wait(member.record_event().value()).ok());
  CHECK(trace == std::vector<std::string>{"y of 4", "x of 4", "x of 4"});
  CHECK(rig.another().read(x).value() == four(1));  // whoever is outside sees what was before
  const Result<Recording> sealed = window.seal();
  REQUIRE_MESSAGE(sealed.ok(), sealed.error().text());
  CHECK(sealed->graph().nodes().size() == 3);
}

}  // namespace refrain::test
