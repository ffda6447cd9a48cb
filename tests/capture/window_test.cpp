// The window: its states, what dooms it, what its bodies staged against what their scopes claim,
// and what its end leaves.
#include <doctest/doctest.h>

#include <string>

#include "capture/window_fixture.hpp"

namespace refrain {
namespace {

using namespace test;

}  // namespace

TEST_CASE_FIXTURE(Windows, "C1: a window is prepared, records, and is sealed") {
  const BufferId y = buffer("y", Role::output);
  Window& window = prepare();
  CHECK(window.state() == WindowState::prepared);
  CHECK_FALSE(window.capturing());
  REQUIRE(window.begin().ok());
  CHECK(window.state() == WindowState::recording);
  CHECK(window.capturing());
  fill(bytes(y, 0, 16));
  const Result<SealedWindow> sealed = window.seal({.name = "step"}, at_line(9));
  REQUIRE(sealed.ok());
  CHECK(window.state() == WindowState::sealed);
  CHECK_FALSE(window.capturing());
  CHECK(sealed->graph.name() == "step");
  CHECK(sealed->graph.nodes().size() == 1);
  CHECK(sealed->graph.nodes()[0].where.line == 2);
  CHECK(sealed->buffers == std::vector<BufferId>{y});
  CHECK(sealed->pins.size() == 1);
}

TEST_CASE_FIXTURE(Windows, "C1: a call out of order is refused and changes nothing") {
  const BufferId y = buffer("y", Role::output);
  Window& window = record();
  const Result<void> again = window.begin();
  REQUIRE_FALSE(again.ok());
  CHECK(again.error().kind() == ErrorKind::wrong_state);
  CHECK(says(again.error(), "recording"));
  CHECK(window.state() == WindowState::recording);
  fill(bytes(y, 0, 16));
  REQUIRE(window.seal({}, at_line(9)).ok());

  const Result<SealedWindow> twice = window.seal({}, at_line(10));
  REQUIRE_FALSE(twice.ok());
  CHECK(twice.error().kind() == ErrorKind::wrong_state);
  const Result<void> late = window.begin();
  REQUIRE_FALSE(late.ok());
  CHECK(late.error().kind() == ErrorKind::wrong_state);
  CHECK(window.state() == WindowState::sealed);
  CHECK(clean(bytes(y, 0, 16)));
}

TEST_CASE_FIXTURE(Windows, "C1: sealing one that is only prepared unwinds it and claims nothing") {
  const BufferId y = buffer("y");
  prepare();
  const Error error = refused();
  CHECK(error.kind() == ErrorKind::wrong_state);
  CHECK(says(error, "never began"));
  CHECK(clean(bytes(y, 0, 16)));
}

TEST_CASE_FIXTURE(Windows, "C1: abort ends a window from every state") {
  const BufferId y = buffer("y");
  prepare().abort();
  CHECK(stream.window->state() == WindowState::ended);
  record();
  fill(bytes(y, 0, 16));
  stream.window->abort();
  CHECK(stream.window->state() == WindowState::ended);
  record();
  fail({bytes(y, 0, 16)}, "broke");
  CHECK(stream.window->state() == WindowState::doomed);
  stream.window->abort();
  CHECK(stream.window->state() == WindowState::ended);
  CHECK(clean(bytes(y, 0, 16)));
}

TEST_CASE_FIXTURE(Windows, "C1: work that is being recorded cannot seal its window") {
  const BufferId y = buffer("y", Role::output);
  Window& window = record();
  static_cast<void>(over({bytes(y, 0, 16)}, "seals").execute([&](WindowServer&) -> Result<void> {
    const Result<SealedWindow> sealed = window.seal({}, at_line(9));
    REQUIRE_FALSE(sealed.ok());
    CHECK(sealed.error().kind() == ErrorKind::wrong_state);
    CHECK(window.state() == WindowState::recording);
    stage_fill(bytes(y, 0, 16));
    return {};
  }));
  CHECK(window.seal({}, at_line(10)).ok());
}

TEST_CASE_FIXTURE(Windows, "C2: what a clean scope staged is in the graph") {
  const BufferId x = buffer("x", Role::input);
  const BufferId y = buffer("y", Role::output);
  Window& window = record();
  REQUIRE(copy(bytes(x, 0, 16), bytes(y, 0, 16)).executed_cleanly());
  fill(bytes(x, 0, 4));
  const Result<SealedWindow> sealed = window.seal({}, at_line(9));
  REQUIRE(sealed.ok());
  REQUIRE(sealed->graph.nodes().size() == 2);
  CHECK(sealed->graph.node_name(sealed->graph.nodes()[0]) == "copy");
  CHECK(sealed->graph.node_name(sealed->graph.nodes()[1]) == "fill");
}

TEST_CASE_FIXTURE(Windows, "C2: several nodes may together write exactly what the scope claims") {
  const BufferId y = buffer("y", Role::output);
  const BufferId z = buffer("z", Role::output);
  Window& window = record();
  fill({bytes(y, 0, 16), bytes(z, 4, 8)},
       {bytes(z, 4, 8), bytes(y, 8, 16), bytes(y, 0, 10), bytes(y, 2, 4)});
  CHECK(window.seal({}, at_line(9)).ok());
}

TEST_CASE_FIXTURE(Windows, "C2: one node may write what several claims name") {
  const BufferId y = buffer("y", Role::output);
  Window& window = record();
  fill({bytes(y, 8, 16), bytes(y, 0, 8)}, {bytes(y, 0, 16)});
  CHECK(window.seal({}, at_line(9)).ok());
}

TEST_CASE_FIXTURE(Windows, "C2: a scope that staged a part of what it claims dooms the window") {
  const BufferId y = buffer("y");
  for (const ByteRange part : {ByteRange{0, 15}, ByteRange{1, 16}, ByteRange{4, 8}}) {
    CAPTURE(part.begin);
    Window& window = record();
    fill({bytes(y, 0, 16)}, {{y, part}}, "partial");
    CHECK(window.state() == WindowState::doomed);
    const Error error = refused();
    CHECK(error.kind() == ErrorKind::window_doomed);
    CHECK(says(error, "\"partial\""));
    CHECK(says(error, "\"y\""));
    CHECK(says(error, "[0, 16)"));
  }
}

TEST_CASE_FIXTURE(Windows, "C2: a hole between staged bytes dooms the window") {
  const BufferId y = buffer("y");
  Window& window = record();
  fill({bytes(y, 0, 16)}, {bytes(y, 0, 7), bytes(y, 8, 16)});
  CHECK(window.state() == WindowState::doomed);
  CHECK(says(refused(), "[0, 16)"));
}

TEST_CASE_FIXTURE(Windows, "C2: a scope that staged more than it claims dooms the window") {
  const BufferId y = buffer("y");
  const BufferId z = buffer("z");
  SUBCASE("more bytes") {
    record();
    fill({bytes(y, 0, 8)}, {bytes(y, 0, 9)}, "too much");
    CHECK(says(refused(), "[0, 9)"));
  }
  SUBCASE("another buffer") {
    record();
    fill({bytes(y, 0, 8)}, {bytes(y, 0, 8), bytes(z, 0, 8)}, "too much");
    CHECK(says(refused(), "\"z\""));
  }
  SUBCASE("without a claim at all") {
    record();
    fill({}, {bytes(z, 0, 8)}, "too much");
    CHECK(says(refused(), "\"z\""));
  }
}

TEST_CASE_FIXTURE(Windows, "C2: what an inner scope staged counts for the scope around it") {
  const BufferId y = buffer("y", Role::output);
  const BufferId scratch = buffer("scratch", Role::scratch);
  Window& window = record();
  static_cast<void>(over({bytes(y, 0, 16)}, "outer").execute([&](WindowServer&) -> Result<void> {
    fill(bytes(scratch, 0, 16));  // of its own: the outer scope claims none of it
    fill(bytes(y, 0, 8));
    stage_fill(bytes(y, 8, 16));
    return {};
  }));
  CHECK(window.state() == WindowState::recording);
  CHECK(window.seal({}, at_line(9)).ok());
}

TEST_CASE_FIXTURE(Windows,
                  "C2: an inner scope does not answer for what the outer staged before it") {
  const BufferId y = buffer("y", Role::output);
  record();
  static_cast<void>(over({bytes(y, 0, 16)}, "outer").execute([&](WindowServer&) -> Result<void> {
    stage_fill(bytes(y, 0, 16));
    fill({bytes(y, 0, 8)}, {}, "inner");
    return {};
  }));
  const Error error = refused();
  CHECK(says(error, "\"inner\""));
}

TEST_CASE_FIXTURE(Windows, "C3: a failed exit dooms the window, and it says who and why") {
  const BufferId y = buffer("y");
  Window& window = record();
  fail({bytes(y, 0, 16)}, "it broke", "breaks");
  CHECK(window.state() == WindowState::doomed);
  CHECK(window.capturing());  // work goes on being recorded and not run
  fill(bytes(y, 0, 16));
  const Error error = refused();
  CHECK(error.kind() == ErrorKind::window_doomed);
  CHECK(says(error, "\"breaks\""));
  CHECK(says(error, "model.cc:4"));
  CHECK(says(error, "it broke"));
  CHECK(says(error, "model.cc:1"));  // where the window was opened
}

TEST_CASE_FIXTURE(Windows, "C3: a failed exit that names no writes dooms the window too") {
  Window& window = record();
  fail({}, "it broke");
  CHECK(window.state() == WindowState::doomed);
  CHECK(says(refused(), "it broke"));
}

TEST_CASE_FIXTURE(Windows, "C4: a skip dooms the window with the input's error") {
  const BufferId x = buffer("x");
  const BufferId y = buffer("y");
  fail({bytes(x, 0, 4)}, "x never came");
  const FailureId root = carried(bytes(x, 0, 16)).failure();
  record();
  CHECK(copy(bytes(x, 0, 16), bytes(y, 0, 16)).skipped());
  const Error error = refused();
  CHECK(error.kind() == ErrorKind::window_doomed);
  CHECK(error.failure() == root);
  CHECK(says(error, "x never came"));
  CHECK(carried(bytes(y, 0, 16)).failure() == root);
}

TEST_CASE_FIXTURE(Windows, "C5: while it is only prepared a window neither records nor is doomed") {
  const BufferId y = buffer("y", Role::output);
  Window& window = prepare();
  fail({bytes(y, 0, 16)}, "warm-up broke");
  CHECK(window.state() == WindowState::prepared);
  CHECK(says(carried(bytes(y, 0, 16)), "warm-up broke"));  // it ran for real
  REQUIRE(window.begin().ok());
  fill(bytes(y, 0, 16));
  CHECK(window.seal({}, at_line(9)).ok());
}

TEST_CASE_FIXTURE(Windows, "C6: the first doom wins and those that follow are counted") {
  const BufferId y = buffer("y");
  SUBCASE("one") {
    record();
    fail({bytes(y, 0, 16)}, "first");
    const Error error = refused();
    CHECK(says(error, "first"));
    CHECK_FALSE(says(error, "more"));
  }
  SUBCASE("two") {
    record();
    fail({bytes(y, 0, 16)}, "first");
    fail({bytes(y, 0, 16)}, "second");
    const Error error = refused();
    CHECK(says(error, "first"));
    CHECK_FALSE(says(error, "second"));
    CHECK(says(error, "once more"));
  }
  SUBCASE("four, of which one is a skip and one a refusal of the device") {
    record();
    fail({bytes(y, 0, 16)}, "first");
    fail({}, "second");
    CHECK(copy(bytes(y, 0, 16), bytes(buffer("z"), 0, 16)).skipped());
    stream.window->device_refused(broken("third"));
    const Error error = refused();
    CHECK(says(error, "first"));
    CHECK(says(error, "3 times more"));
  }
}

TEST_CASE_FIXTURE(Windows,
                  "C8: inside a window work meets what the window wrote, outside nobody does") {
  const BufferId x = buffer("x", Role::input);
  const BufferId y = buffer("y", Role::output);
  fail({bytes(x, 0, 16)}, "x never came");
  record();
  fill(bytes(x, 0, 16));
  CHECK(copy(bytes(x, 0, 16), bytes(y, 0, 16)).executed_cleanly());
  CHECK(says(carried(bytes(x, 0, 16)), "x never came"));
  fail({bytes(y, 0, 16)}, "recorded and broken");
  CHECK(clean(bytes(y, 0, 16)));
  stream.window->abort();
}

TEST_CASE_FIXTURE(Windows, "C8: bytes that nobody wrote are no failure while recording") {
  const BufferId x = buffer("x", Role::input, true);
  const BufferId y = buffer("y", Role::output, true);
  Window& window = record();
  CHECK(copy(bytes(x, 0, 16), bytes(y, 0, 16)).executed_cleanly());
  CHECK(window.seal({}, at_line(9)).ok());
}

TEST_CASE_FIXTURE(Windows,
                  "C11: a refusal claims what was recorded and what failed, each with its own") {
  const BufferId a = buffer("a");
  const BufferId b = buffer("b");
  const BufferId c = buffer("c");
  record();
  fill(bytes(a, 0, 8));
  fail({bytes(b, 0, 8)}, "b broke");
  CHECK(copy(bytes(b, 0, 8), bytes(c, 0, 8)).skipped());
  const Error error = refused();
  CHECK(carried(bytes(a, 0, 8)).kind() == ErrorKind::window_doomed);
  CHECK(carried(bytes(b, 0, 8)).message() == "b broke");
  CHECK(carried(bytes(c, 0, 8)).failure() == carried(bytes(b, 0, 8)).failure());
  for (const BufferId each : {a, b, c}) CHECK(clean(bytes(each, 8, 16)));
}

TEST_CASE_FIXTURE(Windows, "C11: state that the window read first keeps what it carried") {
  const BufferId state = buffer("state", Role::state);
  const BufferId out = buffer("out");
  fail({bytes(state, 12, 16)}, "an old failure");
  const FailureId old = carried(bytes(state, 12, 16)).failure();
  record();
  CHECK(copy(bytes(state, 0, 8), bytes(out, 0, 8)).executed_cleanly());
  fill(bytes(state, 0, 12));  // 0 to 8 was read before, 8 to 12 was not
  fail({}, "broke");
  static_cast<void>(refused());
  CHECK(clean(bytes(state, 0, 8)));
  CHECK(carried(bytes(state, 8, 12)).kind() == ErrorKind::window_doomed);
  CHECK(carried(bytes(state, 12, 16)).failure() == old);
  CHECK(carried(bytes(out, 0, 8)).kind() == ErrorKind::window_doomed);
}

TEST_CASE_FIXTURE(Windows,
                  "C11: state of a skipped launch keeps what it carried, wherever it stands") {
  const BufferId bad = buffer("bad");
  const BufferId state = buffer("state", Role::state);
  const BufferId out = buffer("out");
  fail({bytes(bad, 0, 16)}, "bad never came");
  record();
  // In place on the state, but another input is looked at before it, and that one is bad.
  const Bindings reads{bytes(bad, 0, 16), bytes(state, 0, 16)};
  const auto outcome =
      Scope::launching(stream, intern_kernel_name("step"), reads,
                       stream.writes({bytes(state, 0, 16), bytes(out, 0, 16)}), at_line(6))
          .execute([](WindowServer&) -> Result<void> { return {}; });
  CHECK(outcome.skipped());
  static_cast<void>(refused());
  CHECK(clean(bytes(state, 0, 16)));
  CHECK(carried(bytes(out, 0, 16)).message() == "bad never came");
}

TEST_CASE_FIXTURE(Windows, "C11: a window that is dropped claims as a refusal does") {
  const BufferId y = buffer("y");
  SUBCASE("recording") {
    record();
    fill(bytes(y, 0, 8));
    stream.window->drop();
    const Error error = carried(bytes(y, 0, 8));
    CHECK(error.kind() == ErrorKind::window_doomed);
    CHECK(says(error, "dropped"));
  }
  SUBCASE("doomed") {
    record();
    fill(bytes(y, 0, 8));
    fail({bytes(y, 4, 8)}, "broke");
    stream.window->drop();
    const Error error = carried(bytes(y, 0, 4));
    CHECK(error.kind() == ErrorKind::window_doomed);
    CHECK(says(error, "broke"));
    CHECK(carried(bytes(y, 4, 8)).message() == "broke");
  }
  SUBCASE("prepared") {
    prepare().drop();
    CHECK(clean(bytes(y, 0, 16)));
  }
  CHECK(stream.window->state() == WindowState::ended);
  CHECK(clean(bytes(y, 8, 16)));
}

TEST_CASE_FIXTURE(Windows,
                  "C11: a window that is dropped by work inside it leaves that work claimed") {
  const BufferId y = buffer("y");
  record();
  static_cast<void>(over({bytes(y, 0, 16)}, "drops").execute([&](WindowServer&) -> Result<void> {
    stage_fill(bytes(y, 0, 16));
    stream.window->drop();
    return {};
  }));
  CHECK(carried(bytes(y, 0, 16)).kind() == ErrorKind::window_doomed);
}

TEST_CASE_FIXTURE(Windows, "C11: abort leaves all claims as they were before the window") {
  const BufferId x = buffer("x");
  const BufferId y = buffer("y");
  fail({bytes(x, 0, 8)}, "an old failure");
  const FailureId old = carried(bytes(x, 0, 8)).failure();
  record();
  fill(bytes(x, 0, 16));
  fill(bytes(y, 0, 16));
  fail({bytes(y, 0, 8)}, "broke");
  stream.window->abort();
  CHECK(carried(bytes(x, 0, 8)).failure() == old);
  CHECK(clean(bytes(x, 8, 16)));
  CHECK(clean(bytes(y, 0, 16)));
  CHECK(table.live_failures() == 1);
}

TEST_CASE_FIXTURE(Windows, "C11: a refusal of the graph itself claims as any other") {
  const BufferId one = buffer("same");
  const BufferId two = buffer("same");
  record();
  fill(bytes(one, 0, 16));
  fill(bytes(two, 0, 16));
  const Error error = refused();
  CHECK(says(error, "\"same\""));
  CHECK(carried(bytes(one, 0, 16)).kind() == ErrorKind::invalid_argument);
  CHECK(carried(bytes(two, 0, 16)).failure() == carried(bytes(one, 0, 16)).failure());
}

TEST_CASE_FIXTURE(Windows,
                  "C14: what a node touches is pinned until the window ends, or by what it seals") {
  const BufferId x = buffer("x", Role::input);
  const BufferId y = buffer("y", Role::output);
  SUBCASE("sealed") {
    record();
    REQUIRE(copy(bytes(x, 0, 16), bytes(y, 0, 16)).executed_cleanly());
    CHECK(pins.use_count() == 3);
    {
      const Result<SealedWindow> sealed = stream.window->seal({}, at_line(9));
      REQUIRE(sealed.ok());
      CHECK(pins.use_count() == 3);
    }
  }
  SUBCASE("refused") {
    record();
    REQUIRE(copy(bytes(x, 0, 16), bytes(y, 0, 16)).executed_cleanly());
    fail({}, "broke");
    static_cast<void>(refused());
  }
  SUBCASE("aborted") {
    record();
    REQUIRE(copy(bytes(x, 0, 16), bytes(y, 0, 16)).executed_cleanly());
    stream.window->abort();
  }
  SUBCASE("dropped") {
    record();
    REQUIRE(copy(bytes(x, 0, 16), bytes(y, 0, 16)).executed_cleanly());
    stream.window->drop();
  }
  // A window that has ended, and whose handle is still there, owns nothing (M4).
  CHECK(pins.use_count() == 1);
}

TEST_CASE_FIXTURE(Windows, "C16: a scope that claims bytes and stages nothing dooms the window") {
  const BufferId y = buffer("y");
  record();
  fill({bytes(y, 0, 16)}, {}, "cached");
  const Error error = refused();
  CHECK(error.kind() == ErrorKind::window_doomed);
  CHECK(says(error, "\"cached\""));
  CHECK(says(error, "\"y\""));
  CHECK(says(error, "recorded nothing"));
}

TEST_CASE_FIXTURE(Windows, "C16: a scope that names no writes may stage nothing") {
  const BufferId y = buffer("y", Role::output);
  record();
  fill({}, {}, "looks");
  fill(bytes(y, 0, 16));
  CHECK(stream.window->seal({}, at_line(9)).ok());
}

TEST_CASE_FIXTURE(Windows, "C16: a scope may say that it reuses what is there") {
  const BufferId y = buffer("y", Role::output);
  Window& window = record();
  static_cast<void>(over({bytes(y, 0, 16)}, "cached").execute([&](WindowServer&) -> Result<void> {
    window.reuse(bytes(y, 0, 8));
    stage_fill(bytes(y, 8, 16));
    return {};
  }));
  CHECK(window.seal({}, at_line(9)).ok());
}

TEST_CASE_FIXTURE(Windows, "C16: what one scope reuses excuses no other") {
  const BufferId y = buffer("y");
  SUBCASE("one that came before") {
    Window& window = record();
    static_cast<void>(over({bytes(y, 0, 16)}, "cached").execute([&](WindowServer&) -> Result<void> {
      window.reuse(bytes(y, 0, 16));
      return {};
    }));
    fill({bytes(y, 0, 16)}, {}, "forgets");
  }
  SUBCASE("a word said outside every scope") {
    record().reuse(bytes(y, 0, 16));
    fill({bytes(y, 0, 16)}, {}, "forgets");
  }
  SUBCASE("the one around it, said before it opened") {
    Window& window = record();
    static_cast<void>(over({bytes(y, 0, 16)}, "outer").execute([&](WindowServer&) -> Result<void> {
      window.reuse(bytes(y, 0, 16));
      fill({bytes(y, 0, 16)}, {}, "forgets");
      return {};
    }));
  }
  CHECK(says(refused(), "\"forgets\""));
}

TEST_CASE_FIXTURE(Windows, "C16: what an inner scope reuses counts for the scope around it") {
  const BufferId y = buffer("y", Role::output);
  const BufferId z = buffer("z", Role::output);
  Window& window = record();
  static_cast<void>(
      over({bytes(y, 0, 16), bytes(z, 0, 16)}, "outer").execute([&](WindowServer&) -> Result<void> {
        static_cast<void>(
            over({bytes(y, 0, 16)}, "inner").execute([&](WindowServer&) -> Result<void> {
              window.reuse(bytes(y, 0, 16));
              return {};
            }));
        stage_fill(bytes(z, 0, 16));
        return {};
      }));
  CHECK(window.seal({}, at_line(9)).ok());
}

TEST_CASE_FIXTURE(Windows, "C17: a call that the device refused dooms the window") {
  const BufferId y = buffer("y");
  Window& window = record();
  fill(bytes(y, 0, 16));
  window.device_refused(Error(ErrorKind::out_of_memory, "There is no memory left."));
  CHECK(window.state() == WindowState::doomed);
  const Error error = refused();
  CHECK(error.kind() == ErrorKind::window_doomed);
  CHECK(says(error, "the device refused a call"));
  CHECK(says(error, "no memory left"));
}

TEST_CASE_FIXTURE(Windows, "C17: an empty window is refused unless the caller allows it") {
  SUBCASE("refused") {
    record();
    const Error error = refused();
    CHECK(error.kind() == ErrorKind::recorded_nothing);
    CHECK(says(error, "allow_empty"));
  }
  SUBCASE("allowed") {
    record();
    const Result<SealedWindow> sealed = stream.window->seal({.allow_empty = true}, at_line(9));
    REQUIRE(sealed.ok());
    CHECK(sealed->graph.nodes().empty());
  }
  SUBCASE("allowed, and doomed all the same") {
    record();
    fail({}, "broke");
    CHECK(says(refused({.allow_empty = true}), "broke"));
  }
}

TEST_CASE_FIXTURE(Windows,
                  "roles: what is said at sealing goes over what the buffer was made with") {
  const BufferId x = buffer("x");
  const BufferId y = buffer("y", Role::output);
  Window& window = record();
  REQUIRE(copy(bytes(x, 0, 16), bytes(y, 0, 16)).executed_cleanly());
  const Result<SealedWindow> sealed = window.seal(
      {.name = "g", .roles = {{x, Role::state, "memory"}, {y, Role::input, ""}}}, at_line(9));
  REQUIRE(sealed.ok());
  const auto memory = sealed->graph.region("memory");
  REQUIRE(memory.has_value());
  CHECK(sealed->graph.regions()[*memory].role == Role::state);
  CHECK(std::holds_alternative<ZeroStart>(sealed->graph.regions()[*memory].start));
  const auto kept = sealed->graph.region("y");
  REQUIRE(kept.has_value());
  CHECK(sealed->graph.regions()[*kept].role == Role::input);
  CHECK(sealed->graph.not_portable().empty());
}

TEST_CASE_FIXTURE(Windows, "roles: a role for what nothing touches is refused by name") {
  const BufferId x = buffer("x");
  const BufferId y = buffer("y", Role::output);
  record();
  fill(bytes(y, 0, 16));
  const Error error = refused({.name = "g", .roles = {{x, Role::input, ""}}});
  CHECK(error.kind() == ErrorKind::invalid_argument);
  CHECK(says(error, "\"x\""));
}

TEST_CASE("the states of a window have names") {
  for (const WindowState state : {WindowState::prepared, WindowState::recording,
                                  WindowState::doomed, WindowState::sealed, WindowState::ended}) {
    CHECK(name_of(state) != "?");
  }
}

}  // namespace refrain
