// Streams that join a window and leave it (C21), and the proof that what they recorded is ordered
// (C13).
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "rig.hpp"

namespace refrain::test {
namespace {

/// A window on the rig's stream, and a second stream that has joined it.
struct Forked {
  explicit Forked(Rig& on) : rig(on), other(rig.another()), window(rig.stream.record().value()) {
    fork(rig.stream, other);
  }

  static void fork(Stream& from, Stream& to) {
    const Result<Event> event = from.record_event();
    REQUIRE(event.ok());
    REQUIRE(to.wait(*event).ok());
  }
  void join() { fork(other, rig.stream); }

  Error refusal() {
    const Result<Recording> sealed = window.seal();
    REQUIRE_FALSE(sealed.ok());
    return sealed.error();
  }
  SealedGraph graph() {
    Result<Recording> sealed = window.seal();
    REQUIRE_MESSAGE(sealed.ok(), sealed.error().text());
    recording.emplace(*std::move(sealed));
    return recording->graph();
  }

  Rig& rig;
  Stream other;
  OpenWindow window;
  std::optional<Recording> recording;
};

std::string on(const Stream& stream) { return "on stream " + std::to_string(stream.id().number); }

}  // namespace

ON_BOTH_KINDS(
    "C21: a stream that waits on a member's event records until a member waits on its own") {
  const Buffer<float> x = rig.floats("x", 1);
  const Buffer<float> y = rig.floats("y", 2);
  const Buffer<float> z = rig.floats("z", 3);
  Forked it(rig);
  CHECK(it.other.launch(*rig.map, grid(4), x, y, 0U).executed_cleanly());
  CHECK(rig.stream.launch(*rig.map, grid(4), x, z, 0U).executed_cleanly());
  it.join();
  // It has left: what it does now happens.
  const Buffer<float> w = rig.unwritten("w");
  CHECK(it.other.fill(w, 7).executed_cleanly());
  static_cast<void>(it.other.sync());
  const SealedGraph graph = it.graph();
  CHECK(graph.nodes().size() == 2);
  CHECK(rig.values(w) == four(7));
  CHECK(rig.control.runs(0) == 0);
  rig.stream.fill(y, 0);
  rig.stream.fill(z, 0);
}

ON_BOTH_KINDS("C21: a member does not leave from inside a piece of work") {
  const Buffer<float> x = rig.floats("x", 1);
  const Buffer<float> y = rig.floats("y", 2);
  Forked it(rig);
  WriteSet writes = it.other.write_set();
  writes.add(y.view().binding());
  const auto outcome = ExecuteScope<Stream>::over(it.other, intern_kernel_name("block"),
                                                  std::move(writes), Where::here())
                           .execute([&](Stream& other) -> Result<void> {
                             other.launch(*rig.map, grid(4), x, y, 0U);
                             it.join();
                             return {};
                           });
  CHECK(outcome.executed_cleanly());
  CHECK(rig.control.runs(0) == 0);
  it.join();
  CHECK(it.graph().nodes().size() == 1);
  rig.stream.fill(y, 0);
}

ON_BOTH_KINDS(
    "C21: a member that still has work out refuses the seal, naming it and its last node") {
  const Buffer<float> y = rig.floats("y", 1);
  const Buffer<float> z = rig.floats("z", 1);
  Forked it(rig);
  it.other.launch(*rig.make, grid(4), y, 0U);
  it.other.fill(z, 3);
  rig.stream.launch(*rig.make, grid(4), rig.floats("w", 1), 0U);
  const Error error = it.refusal();
  CHECK(error.kind() == ErrorKind::window_doomed);
  CHECK(says(error, "stream " + std::to_string(it.other.id().number) + ", which joined it"));
  CHECK(says(error, "members_test.cpp"));
  CHECK(says(error, "its last is \"fill\" " + on(it.other)));
  CHECK(rig.carried(y).kind() == ErrorKind::window_doomed);
  CHECK(rig.carried(z).kind() == ErrorKind::window_doomed);
  // The window is over for both.
  CHECK(it.other.fill(y, 1).executed_cleanly());
  static_cast<void>(it.other.sync());
  CHECK(rig.values(y) == four(1));
  CHECK(it.other.record().ok());
}

ON_BOTH_KINDS("C21: work that is recorded after the event of a join is not joined") {
  const Buffer<float> y = rig.floats("y", 1);
  const Buffer<float> z = rig.floats("z", 1);
  Forked it(rig);
  it.other.fill(y, 1);
  const Event early = it.other.record_event().value();
  it.other.fill(z, 1);
  REQUIRE(rig.stream.wait(early).ok());
  CHECK_FALSE(it.other.sync().ok());  // it is a member still (C12)
  const Error error = it.refusal();
  CHECK(says(error, "has work that the window does not wait for"));
}

ON_BOTH_KINDS(
    "C21: a member that recorded nothing need not be joined, and a fork of a fork may join "
    "anywhere") {
  const Buffer<float> y = rig.floats("y", 1);
  const Buffer<float> z = rig.floats("z", 1);
  Forked it(rig);
  Stream third = rig.another();
  Stream idle = rig.another();
  Forked::fork(it.other, third);
  Forked::fork(third, idle);
  third.fill(y, 1);
  Forked::fork(third, it.other);
  it.other.fill(z, 1);
  it.join();
  CHECK(it.graph().nodes().size() == 2);
  CHECK(idle.sync().ok());  // outside again
  rig.stream.fill(y, 0);
  rig.stream.fill(z, 0);
}

ON_BOTH_KINDS("C21: a stream may leave and join again") {
  const Buffer<float> y = rig.floats("y", 1);
  Forked it(rig);
  it.other.fill(y, 1);
  it.join();
  CHECK(it.other.sync().ok());
  Forked::fork(rig.stream, it.other);
  CHECK_FALSE(it.other.sync().ok());
  it.other.launch(*rig.update, grid(4), y, 0U);
  it.join();
  CHECK(it.graph().nodes().size() == 2);
  rig.stream.fill(y, 0);
}

ON_BOTH_KINDS(
    "C21: waiting across windows, after a window and inside a body is refused and changes "
    "nothing") {
  const Buffer<float> y = rig.floats("y", 1);
  Stream other = rig.another();
  std::optional<Event> event;
  {
    OpenWindow window = rig.stream.record().value();
    rig.stream.fill(y, 1);
    event.emplace(rig.stream.record_event().value());
    CHECK(event->reached().error().kind() == ErrorKind::refused_in_window);
    CHECK(event->wait().error().kind() == ErrorKind::refused_in_window);

    OpenWindow own = other.record().value();
    const Result<void> across = other.wait(*event);
    REQUIRE_FALSE(across.ok());
    CHECK(across.error().kind() == ErrorKind::refused_in_window);
    CHECK(says(across.error(), "it is in another window itself"));
    CHECK(own.state() == WindowState::recording);
    CHECK(window.state() == WindowState::recording);
    own.abort();

    const Result<void> foreign = Rig(rig.kind()).stream.wait(*event);
    REQUIRE_FALSE(foreign.ok());
    CHECK(foreign.error().kind() == ErrorKind::other_device);
    window.abort();
  }
  const Result<void> late = other.wait(*event);
  REQUIRE_FALSE(late.ok());
  CHECK(late.error().kind() == ErrorKind::wrong_state);
  CHECK(says(late.error(), "that window has ended"));
  CHECK(other.fill(y, 2).executed_cleanly());
}

ON_BOTH_KINDS("C21: a member opens no window of its own") {
  Forked it(rig);
  const Result<OpenWindow> second = it.other.record();
  REQUIRE_FALSE(second.ok());
  CHECK(second.error().kind() == ErrorKind::wrong_state);
  CHECK(says(second.error(), "is a member of the window of stream "));
  CHECK(says(it.other.sync().error(), "which it has joined, ("));
  it.window.abort();
  CHECK(it.other.record().ok());
}

ON_BOTH_KINDS(
    "C21: what fails on a member dooms the window, and its reads see what the others recorded") {
  const Buffer<float> x = rig.bad("x", "x never came");
  const Buffer<float> y = rig.floats("y", 1);
  Forked it(rig);
  rig.stream.fill(x, 1);
  Forked::fork(rig.stream, it.other);
  CHECK(it.other.launch(*rig.map, grid(4), x, y, 0U).executed_cleanly());  // C8
  it.other.failed_write(y, broken("a frame was lost"));
  it.join();
  CHECK(says(it.refusal(), "a frame was lost"));
}

ON_BOTH_KINDS(
    "B07: a member that is destroyed with unjoined work dooms the window, and the others are free "
    "at once") {
  const Buffer<float> y = rig.floats("y", 1);
  const Buffer<float> z = rig.floats("z", 1);
  OpenWindow window = rig.stream.record().value();
  Stream third = rig.another();
  StreamId second;
  {
    Stream going = rig.another();
    second = going.id();
    Forked::fork(rig.stream, going);
    going.launch(*rig.make, grid(4), y, 0U);
    Forked::fork(going, third);
    third.fill(z, 1);
  }
  CHECK(window.state() == WindowState::doomed);
  const Result<Recording> sealed = window.seal();
  REQUIRE_FALSE(sealed.ok());
  CHECK(says(sealed.error(), "because stream " + std::to_string(second.number)));
  CHECK(says(sealed.error(), "was destroyed with work that nobody waits for: \"make\""));
  CHECK(rig.stream.record().ok());
  CHECK(third.record().ok());
}

ON_BOTH_KINDS("C21: a member that is destroyed after its join, or without work, does no harm") {
  const Buffer<float> y = rig.floats("y", 1);
  OpenWindow window = rig.stream.record().value();
  {
    Stream joined = rig.another();
    Stream idle = rig.another();
    Forked::fork(rig.stream, joined);
    Forked::fork(rig.stream, idle);
    joined.launch(*rig.make, grid(4), y, 0U);
    Forked::fork(joined, rig.stream);
  }
  CHECK(window.state() == WindowState::recording);
  CHECK(window.seal().ok());
  rig.stream.fill(y, 0);
}

ON_BOTH_KINDS(
    "B28: a window inside a window with a fork pending is refused at once, and the join still "
    "works") {
  const Buffer<float> y = rig.floats("y", 1);
  Forked it(rig);
  it.other.fill(y, 1);
  CHECK(rig.stream.record().error().kind() == ErrorKind::wrong_state);
  CHECK(rig.stream.prepare().error().kind() == ErrorKind::wrong_state);
  it.join();
  CHECK(it.graph().nodes().size() == 1);
  rig.stream.fill(y, 0);
}

ON_BOTH_KINDS(
    "C13: two nodes that write the same bytes unordered refuse the seal, both named with the "
    "bytes") {
  const Buffer<float> y = rig.floats("y", 1);
  Forked it(rig);
  it.other.launch(*rig.make, grid(4), y.view(0, 3), 0U);
  rig.stream.fill(y.view(2, 2), 1);
  it.join();
  const Error error = it.refusal();
  CHECK(error.kind() == ErrorKind::window_doomed);
  CHECK(says(error, "two of its nodes use bytes [8, 12) of \"y\" and no event orders them"));
  CHECK(says(error, "\"make\" " + on(it.other)));
  CHECK(says(error, "\"fill\" " + on(rig.stream)));
  CHECK(rig.carried(y).kind() == ErrorKind::window_doomed);
}

ON_BOTH_KINDS(
    "C13: a read beside an unordered write refuses the seal, whichever was recorded first") {
  const Buffer<float> x = rig.floats("x", 1);
  const Buffer<float> y = rig.floats("y", 1);
  for (const bool write_first : {true, false}) {
    CAPTURE(write_first);
    Forked it(rig);
    if (write_first) it.other.fill(x, 1);
    rig.stream.launch(*rig.map, grid(4), x, y, 0U);
    if (!write_first) it.other.fill(x, 1);
    it.join();
    CHECK(says(it.refusal(), "bytes [0, 16) of \"x\""));
    rig.stream.fill(x, 1);
    rig.stream.fill(y, 1);
  }
}

ON_BOTH_KINDS("C13: reads beside each other, other bytes, and what events order are no race") {
  const Buffer<float> x = rig.floats("x", 1);
  const Buffer<float> y = rig.floats("y", 1);
  const Buffer<float> z = rig.floats("z", 1);
  Forked it(rig);
  it.other.launch(*rig.map, grid(4), x, y.view(0, 2), 0U);
  rig.stream.launch(*rig.map, grid(4), x, y.view(2, 2), 0U);
  Forked::fork(it.other, rig.stream);
  rig.stream.launch(*rig.map, grid(4), y, z, 0U);
  Forked::fork(rig.stream, it.other);
  it.other.fill(y, 3);
  it.join();
  const SealedGraph graph = it.graph();
  REQUIRE(graph.nodes().size() == 4);
  CHECK(graph.dependencies(graph.nodes()[0]).empty());
  CHECK(graph.dependencies(graph.nodes()[1]).empty());
  CHECK(graph.dependencies(graph.nodes()[2]).size() == 2);
  for (const Buffer<float>* each : {&y, &z}) rig.stream.fill(*each, 0);
}

ON_BOTH_KINDS("C13: an order that goes through a third stream is an order") {
  const Buffer<float> y = rig.floats("y", 1);
  Forked it(rig);
  Stream third = rig.another();
  it.other.fill(y, 1);
  Forked::fork(it.other, third);
  Forked::fork(third, rig.stream);
  rig.stream.launch(*rig.update, grid(4), y, 0U);
  CHECK(it.graph().nodes().size() == 2);
  rig.stream.fill(y, 0);
}

ON_BOTH_KINDS("B31: a node that only writes, first on a pool's stream, is a root of the window") {
  const Buffer<float> y = rig.floats("y", 1);
  Forked it(rig);
  it.other.fill(y, 1);
  it.join();
  const SealedGraph graph = it.graph();
  REQUIRE(graph.nodes().size() == 1);
  CHECK(graph.dependencies(graph.nodes()[0]).empty());
  rig.stream.fill(y, 0);
}

}  // namespace refrain::test
