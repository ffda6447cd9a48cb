// Rule E11: outside windows nothing waits without being told to, and work that conflicts with work
// of another stream is refused before it is issued, unless something orders the two. At the end the
// clocks against the plainest model of "comes before": a path through a drawing of all work.
#include <atomic>
#include <chrono>
#include <functional>
#include <random>
#include <set>
#include <thread>

#include "device/rig.hpp"
#include "refrain/replay/instance.hpp"
#include "refrain/replay/plan.hpp"

namespace refrain {
namespace {

using namespace test;

/// Worker streams; the first is held at its first launch with tag 1 until the gate opens.
struct Two {
  Two() {
    rig.control.does[1] = [this]() -> Result<void> {
      gate.wait();
      return {};
    };
  }
  ~Two() { gate.open(); }
  Two(const Two&) = delete;
  Two& operator=(const Two&) = delete;

  Gate gate;  // first: the worker looks at it
  Rig rig{StreamKind::worker};
  std::optional<Stream> first{rig.another()};
  Stream other = rig.another();
};

}  // namespace

TEST_CASE("E11: work that conflicts with unordered work of another stream is refused, both named") {
  for (const StreamKind kind : {StreamKind::worker, StreamKind::inline_}) {
    CAPTURE(static_cast<int>(kind));
    Two two;
    Rig& rig = two.rig;
    Stream other = rig.device.stream(kind).value();
    const Buffer<float> x = rig.floats("x", 1);
    const Buffer<float> y = rig.floats("y", 1);
    const Buffer<float> z = rig.floats("z", 1);
    rig.stream.launch(*rig.map, grid(4), x, y, 1U);  // reads x, writes y

    const auto refused = other.launch(*rig.map, grid(4), y, z, 2U);
    REQUIRE(refused.failed());
    CHECK(refused.error().kind() == ErrorKind::unordered);
    const std::string text = refused.error().text();
    CAPTURE(text);
    const std::string us = std::to_string(other.id().number);
    const std::string them = std::to_string(rig.stream.id().number);
    CHECK(text.find("Bytes [0, 16) of \"y\" are read by \"map\" on stream " + us + " (") == 0);
    CHECK(text.find("order_test.cpp:") != std::string::npos);
    CHECK(text.find(", and \"map\" on stream " + them + " (") != std::string::npos);
    CHECK(text.find("), which writes them, may still run") != std::string::npos);
    CHECK(rig.carried(z).kind() == ErrorKind::unordered);  // R2: it did not come
    CHECK(rig.clean(y));
    const Heard heard = rig.only_heard();
    CHECK(heard.stream == other.id());

    // Every kind of work, each kind of conflict.
    CHECK(other.launch(*rig.make, grid(4), x, 2U).error().kind() == ErrorKind::unordered);
    CHECK(other.fill(y.view(3, 1), 3).error().kind() == ErrorKind::unordered);
    CHECK(other.copy(z.view(0, 1), y.view(2, 1)).error().kind() == ErrorKind::unordered);
    CHECK(other.copy(y.view(0, 1), z.view(2, 1)).error().kind() == ErrorKind::unordered);
    CHECK(rig.control.runs(2) == 0);
    CHECK(other.launch(*rig.look, grid(4), x, 3U).skipped());  // x itself was refused above
    two.gate.open();
    rig.settle();
    CHECK(rig.clean(y.view(1, 2)));
    CHECK(rig.carried(y.view(3, 1)).kind() == ErrorKind::unordered);
    CHECK(other.launch(*rig.make, grid(4), z, 0U).executed_cleanly());
    CHECK(other.sync().ok());
  }
}

TEST_CASE("E11: reading the same bytes, or other bytes, is no conflict") {
  Two two;
  Rig& rig = two.rig;
  const Buffer<float> x = rig.floats("x", 1);
  const Buffer<float> y = rig.floats("y", 1);
  const Buffer<float> z = rig.floats("z", 1);
  rig.stream.launch(*rig.map, grid(4), x, y.view(0, 2), 1U);
  CHECK(two.other.launch(*rig.map, grid(4), x, z, 2U).executed_cleanly());
  CHECK(two.other.launch(*rig.make, grid(4), y.view(2, 2), 2U).executed_cleanly());
  CHECK(two.other.sync().ok());
  CHECK(rig.control.runs(2) == 2);
}

TEST_CASE("E11: whatever shows the order lets it pass") {
  struct Way {
    const char* name;
    std::function<void(Two&, const Buffer<float>&)> order;
  };
  const Way ways[] = {
      {"an event that the stream waits on",
       [](Two& two, const Buffer<float>&) {
         CHECK(two.other.wait(two.first->record_event().value()).ok());
       }},
      {"events by way of a third stream",
       [](Two& two, const Buffer<float>&) {
         Stream third = two.rig.another();
         CHECK(third.wait(two.first->record_event().value()).ok());
         CHECK(two.other.wait(third.record_event().value()).ok());
         two.gate.open();  // the third stream waits for its work as it goes
       }},
      {"a sync",
       [](Two& two, const Buffer<float>&) {
         two.gate.open();
         CHECK(two.first->sync().ok());
       }},
      {"an event that the host waits on",
       [](Two& two, const Buffer<float>&) {
         const Event event = two.first->record_event().value();
         two.gate.open();
         CHECK(event.wait().ok());
       }},
      {"an event that was seen to be reached",
       [](Two& two, const Buffer<float>&) {
         const Event event = two.first->record_event().value();
         CHECK_FALSE(event.reached().value());
         two.gate.open();
         while (!event.reached().value()) std::this_thread::yield();
       }},
      {"a read of what it writes",
       [](Two& two, const Buffer<float>& y) {
         two.gate.open();
         CHECK(two.other.read(y.view(1, 1)).ok());
       }},
      {"a write by the host",
       [](Two& two, const Buffer<float>& y) {
         two.gate.open();
         CHECK(two.other.write(y, four(1)).executed_cleanly());
       }},
      {"its stream is gone",
       [](Two& two, const Buffer<float>&) {
         two.gate.open();
         two.first.reset();
       }},
  };
  for (const Way& way : ways) {
    CAPTURE(way.name);
    Two two;
    Rig& rig = two.rig;
    const Buffer<float> x = rig.floats("x", 1);
    const Buffer<float> y = rig.floats("y", 1);
    two.first->launch(*rig.map, grid(4), x, y, 1U);
    CHECK(two.other.fill(y.view(0, 1), 2).failed());
    way.order(two, y);
    CHECK(two.other.launch(*rig.update, grid(4), y.view(1, 3), 2U).executed_cleanly());
    CHECK(two.other.launch(*rig.make, grid(4), y, 0U).executed_cleanly());
    two.gate.open();
    CHECK(two.other.sync().ok());
    CHECK(rig.control.runs(2) == 1);
  }
}

TEST_CASE("E11: a stream that goes has waited for what it was told to, work of its own or none") {
  Two two;
  Rig& rig = two.rig;
  std::optional<Stream> waits{rig.another()};
  const Buffer<float> y = rig.floats("y", 1);
  rig.stream.launch(*rig.make, grid(4), y, 1U);
  CHECK(waits->wait(rig.stream.record_event().value()).ok());
  CHECK(two.other.fill(y, 2).failed());
  two.gate.open();
  waits.reset();
  CHECK(two.other.fill(y, 2).executed_cleanly());
}

TEST_CASE("E11: an event orders what came before it, and nothing after") {
  Two two;
  Rig& rig = two.rig;
  const Buffer<float> x = rig.floats("x", 1);
  const Buffer<float> y = rig.floats("y", 1);
  const Event early = rig.stream.record_event().value();
  rig.stream.launch(*rig.map, grid(4), x, y, 1U);
  CHECK(two.other.wait(early).ok());
  CHECK(two.other.fill(y, 2).failed());
}

TEST_CASE("E11: whether the other work has ended by now does not count") {
  Two two;
  Rig& rig = two.rig;
  two.gate.open();
  const Buffer<float> y = rig.floats("y", 1);
  rig.stream.launch(*rig.make, grid(4), y, 2U);
  while (rig.control.runs(2) == 0) std::this_thread::yield();
  rig.stream.core().ledger->wait_for_all();  // it has ended, and nobody was told
  CHECK(two.other.fill(y, 2).failed());
}

TEST_CASE("E11: who waits for work that was skipped has waited for what came before it") {
  for (const bool over_events : {false, true}) {
    CAPTURE(over_events);
    std::atomic<bool> made{false};
    Two two;
    Rig& rig = two.rig;
    rig.control.does[1] = [&]() -> Result<void> {
      two.gate.wait();
      made = true;
      return {};
    };
    const Buffer<float> bad = rig.bad("bad", "it is lost");
    const Buffer<float> y = rig.floats("y", 1);
    const Buffer<float> z = rig.floats("z", 1);
    rig.stream.launch(*rig.make, grid(4), y, 1U);
    Stream& last = over_events ? two.other : rig.stream;
    if (over_events) CHECK(last.wait(rig.stream.record_event().value()).ok());
    CHECK(last.launch(*rig.map, grid(4), bad, z, 0U).skipped());
    std::thread opener([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      two.gate.open();
    });
    CHECK(two.first->write(z, four(1)).executed_cleanly());
    CHECK(made);
    opener.join();
    CHECK(two.first->fill(y, 2).executed_cleanly());
    CHECK(two.first->sync().ok());
    CHECK(rig.values(y) == four(2));
  }
}

TEST_CASE("E11: a stream that is gone has ended, also while the handle of its window stays") {
  Two two;
  Rig& rig = two.rig;
  const Buffer<float> y = rig.floats("y", 1);
  const OpenWindow window = two.first->prepare().value();
  two.first->launch(*rig.make, grid(4), y, 0U);
  two.first.reset();
  CHECK(two.other.fill(y, 2).executed_cleanly());
  CHECK(two.other.sync().ok());
}

TEST_CASE("E11: without checks nothing is refused") {
  Gate gate;
  Rig rig(StreamKind::worker, false);
  rig.control.does[1] = waits(gate);
  Stream other = rig.another();
  const Buffer<float> x = rig.floats("x", 1);
  const Buffer<float> y = rig.floats("y", 1);
  rig.stream.launch(*rig.map, grid(4), x, y.view(0, 2), 1U);
  CHECK(other.launch(*rig.look, grid(4), y, 0U).executed_cleanly());
  CHECK(other.sync().ok());
  gate.open();
}

TEST_CASE("E11: a long way back is known as exactly as yesterday") {
  Two two;
  Rig& rig = two.rig;
  const auto many = rig.device.buffer<float>("many", 400).value();
  std::vector<Event> events;
  rig.stream.launch(*rig.make, grid(4), many.view(0, 1), 1U);
  for (std::uint64_t at = 1; at < 400; ++at) {
    rig.stream.launch(*rig.make, grid(4), many.view(at, 1), 0U);
    if (at == 200) events.push_back(rig.stream.record_event().value());
  }
  CHECK(two.other.wait(events[0]).ok());
  CHECK(two.other.fill(many.view(0, 201), 2).executed_cleanly());
  CHECK(two.other.fill(many.view(201, 1), 2).failed());
  CHECK(two.other.fill(many.view(399, 1), 2).failed());
}

TEST_CASE("B32: a window records a read of what is still being written, and only its replay asks") {
  Two two;
  Rig& rig = two.rig;
  Stream inline_stream = rig.device.stream().value();
  const Buffer<float> x = rig.floats("x", 1);
  const Buffer<float> y = rig.floats("y", 1);
  const Buffer<float> state = rig.floats("state", 5, Role::state);
  rig.stream.launch(*rig.make, grid(4), x, 1U);

  OpenWindow window = inline_stream.record().value();
  CHECK(inline_stream.launch(*rig.map, grid(4), x, y, 0U).executed_cleanly());
  CHECK(inline_stream.launch(*rig.update, grid(4), state, 0U).executed_cleanly());
  const Recording recording = window.seal({.name = "step"}).value();
  CHECK(rig.stream.fill(y, 1).executed_cleanly());  // the marks of C18 go
  Instance step = instance(recording).value();

  const auto refused = step.replay(inline_stream);
  REQUIRE(refused.failed());
  CHECK(refused.error().kind() == ErrorKind::unordered);
  CHECK(says(refused.error(), "\"graph step\" on stream"));
  CHECK(says(refused.error(), "\"make\" on stream"));
  CHECK(rig.carried(y).kind() == ErrorKind::unordered);  // P2: as a skip claims
  two.gate.open();
  CHECK(inline_stream.wait(rig.stream.record_event().value()).ok());
  CHECK(step.replay(inline_stream).executed_cleanly());
  CHECK(rig.values(y) == four(11));
  CHECK(rig.values(state) == four(6));  // the refused one left it alone
}

TEST_CASE("E11: replays on a worker stream are ordered like any work, however often they run") {
  Two two;
  Rig& rig = two.rig;
  const Buffer<float> x = rig.floats("x", 1, Role::input);
  const Buffer<float> y = rig.floats("y", 1, Role::output);
  OpenWindow window = rig.stream.record().value();
  rig.stream.launch(*rig.map, grid(4), x, y, 0U);
  const Recording recording = window.seal().value();
  Instance step = instance(recording).value();
  for (int round = 0; round < 3; ++round) CHECK(step.replay(rig.stream).executed_cleanly());
  CHECK(two.other.launch(*rig.look, grid(4), x, 0U).executed_cleanly());
  CHECK(two.other.launch(*rig.look, grid(4), y, 0U).failed());
  CHECK(two.other.wait(rig.stream.record_event().value()).ok());
  CHECK(two.other.launch(*rig.look, grid(4), y, 0U).executed_cleanly());
  CHECK(step.replay(rig.stream).failed());  // the other reads y
  CHECK(rig.stream.wait(two.other.record_event().value()).ok());
  CHECK(step.replay(rig.stream).executed_cleanly());
}

namespace {

/// All work that was ever issued, and an edge from each piece to whatever was said to follow.
class Drawing {
 public:
  struct Work {
    std::size_t stream = 0;
    bool inline_stream = false;
    std::vector<BufferBinding> reads;
    std::vector<BufferBinding> writes;
    std::set<std::size_t> before;  // closed: all that come before
  };

  std::vector<Work> works;
  std::set<std::size_t> ended;
  std::vector<std::set<std::size_t>> next;  // of each stream: what comes before what it does next

  static bool meet(const std::vector<BufferBinding>& some,
                   const std::vector<BufferBinding>& others) {
    for (const BufferBinding& one : some) {
      for (const BufferBinding& other : others) {
        for (std::uint64_t byte = one.range.begin; byte < one.range.end; ++byte) {
          const bool there = other.range.begin <= byte && byte < other.range.end;
          if (one.buffer == other.buffer && there) return true;
        }
      }
    }
    return false;
  }
  static bool conflict(const Work& one, const Work& other) {
    return meet(one.writes, other.writes) || meet(one.reads, other.writes) ||
           meet(one.writes, other.reads);
  }
  /// Whether `work` would race.
  [[nodiscard]] bool races(const Work& work) const {
    for (std::size_t at = 0; at < works.size(); ++at) {
      const bool known = next[work.stream].contains(at) || ended.contains(at);
      if (!known && works[at].stream != work.stream && conflict(works[at], work)) return true;
    }
    return false;
  }
  void issue(Work work) {
    work.before = next[work.stream];
    const std::size_t at = works.size();
    next[work.stream].insert(at);
    if (work.inline_stream) ended.insert(at);
    works.push_back(std::move(work));
  }
  void end(const std::set<std::size_t>& some) {
    for (const std::size_t at : some) {
      ended.insert(at);
      ended.insert(works[at].before.begin(), works[at].before.end());
    }
  }
};

}  // namespace

TEST_CASE("E11: the clocks agree with a drawing of all work, whatever is issued and waited for") {
  const std::uint64_t seed = std::random_device{}();
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  const auto pick = [&](std::size_t count) { return static_cast<std::size_t>(random() % count); };
  int refusals = 0;
  int orderly = 0;
  for (int trial = 0; trial < 60; ++trial) {
    FailureTable table(7);
    Order order(table);
    int owner = 0;
    std::vector<BufferId> buffers;
    for (int at = 0; at < 3; ++at) buffers.push_back(table.add("b", 8, &owner, false));
    constexpr std::size_t kStreams = 4;  // the last is inline
    Drawing drawing;
    drawing.next.resize(kStreams);
    std::vector<Order::HandedOver> handed_over(kStreams);  // none of the inline stream
    for (std::size_t at = 0; at + 1 < kStreams; ++at) {
      handed_over[at] = order.attach(StreamId(at + 1));
    }
    std::vector<std::pair<Order::Clock, std::set<std::size_t>>> events;
    std::vector<std::shared_ptr<const TouchedBytes>> again;

    const auto some = [&]() {
      std::vector<BufferBinding> list;
      for (std::size_t count = pick(3); count != 0; --count) {
        const std::uint64_t begin = pick(8);
        list.push_back({buffers[pick(3)], {begin, begin + 1 + pick(8 - begin)}});
      }
      return list;
    };
    for (int step = 0; step < 120; ++step) {
      const std::size_t stream = pick(kStreams);
      const StreamId id(stream + 1);
      const bool inline_stream = stream + 1 == kStreams;
      const std::size_t what = pick(100);
      if (what < 70) {
        std::shared_ptr<const TouchedBytes> bytes;
        if (!again.empty() && pick(3) == 0) bytes = again[pick(again.size())];
        if (bytes == nullptr) {
          TouchedBytes made{some(), some(), {}};
          const bool comes_again = pick(4) == 0;
          if (comes_again) made.will_come_again();
          bytes = std::make_shared<const TouchedBytes>(std::move(made));
          if (comes_again) again.push_back(bytes);
        }
        Drawing::Work work{stream, inline_stream, bytes->reads, bytes->writes, {}};
        const bool races = drawing.races(work);
        const auto given = order.issue(Access{id, 0, KernelId{}, Where{}}, bytes);
        if (given.ok() && handed_over[stream] != nullptr) handed_over[stream]->store(*given);
        REQUIRE(given.ok() != races);
        if (races) {
          ++refusals;
        } else {
          ++orderly;
          drawing.issue(std::move(work));
        }
      } else if (what < 80) {
        events.emplace_back(order.point(id), drawing.next[stream]);
      } else if (what < 92 && !events.empty()) {
        const auto& [clock, before] = events[pick(events.size())];
        if (pick(3) == 0) {
          order.ended(clock);
          drawing.end(before);
        } else {
          order.wait(id, clock);
          if (inline_stream) {
            drawing.end(before);
          } else {
            for (const std::size_t at : before) {
              drawing.next[stream].insert(at);
              drawing.next[stream].insert(drawing.works[at].before.begin(),
                                          drawing.works[at].before.end());
            }
          }
        }
      } else if (what < 95) {
        order.ended(order.point(id));
        drawing.end(drawing.next[stream]);
      } else {
        // The host waits for those that use these bytes; with them for all that they follow.
        const std::vector<BufferBinding> list = some();
        const bool readers = pick(2) == 0;
        order.ended(order.point(list, readers));
        std::set<std::size_t> waited;
        for (std::size_t at = 0; at < drawing.works.size(); ++at) {
          const Drawing::Work& work = drawing.works[at];
          if (Drawing::meet(work.writes, list) || (readers && Drawing::meet(work.reads, list))) {
            waited.insert(at);
          }
        }
        drawing.end(waited);
      }
    }
    for (const BufferId& buffer : buffers) table.remove(buffer);
  }
  CHECK(refusals > 500);
  CHECK(orderly > 500);
}

}  // namespace refrain
