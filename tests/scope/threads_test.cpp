// One table, many threads: streams that open, settle, fail and nest, each on its own thread, while
// others check, report, find failures late and give out memory. Run under the thread sanitizer,
// this is what says that the pointer by which a scope is shown is enough.
#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "scope/scope_server.hpp"

namespace refrain {
namespace {

using namespace test;

constexpr int kStreams = 4;
constexpr int kRounds = 3000;
constexpr std::uint64_t kSize = 64;

/// Counts what goes wrong on any thread; doctest's own checks are slow there.
class Wrongs {
 public:
  void unless(bool right) noexcept {
    if (!right) count_.fetch_add(1, std::memory_order_relaxed);
  }
  [[nodiscard]] int count() const noexcept { return count_.load(); }

 private:
  std::atomic<int> count_{0};
};

struct Thrown {};

/// What one stream does, over and over, to buffers that nobody else writes.
class Worker {
 public:
  Worker(FailureTable& table, int number, Wrongs& wrongs)
      : table_(table), number_(number), wrongs_(wrongs) {
    for (const char* const name : {"x", "y", "z"}) {
      buffers.push_back(table.add(name, kSize, this, false));
    }
  }
  ~Worker() {
    for (const BufferId buffer : buffers) table_.remove(buffer);
  }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  void run() {
    ScopeServer stream(table_, StreamId(static_cast<std::uint64_t>(number_)));
    std::mt19937 random(static_cast<unsigned>(number_));
    const BufferBinding x = bytes(buffers[0], 0, kSize);
    const BufferBinding y = bytes(buffers[1], 0, kSize);
    const BufferBinding z = bytes(buffers[2], 16, 48);
    const std::string mine = "failed on stream " + std::to_string(number_);
    for (int round = 0; round < kRounds; ++round) {
      stream.log.clear();
      // Everything is good, whatever other threads do: all of it is this stream's.
      over(stream, {x, y, z}).execute(succeeds);
      wrongs_.unless(launching(stream, {x}, {y}).execute(succeeds).executed_cleanly());
      wrongs_.unless(!table_.check(y));
      switch (random() % 6) {
        case 0: {  // a failure, and a skip on it
          over(stream, {x}).execute(fails(mine));
          wrongs_.unless(launching(stream, {y, x}, {z}).execute(succeeds).skipped());
          const auto error = table_.check(z);
          wrongs_.unless(error.has_value() && error->message() == mine);
          break;
        }
        case 1: {
          try {
            over(stream, {y}).execute([](ScopeServer&) -> Result<void> { throw Thrown(); });
            wrongs_.unless(false);
          } catch (const Thrown&) {
          }
          const auto error = table_.check(y);
          wrongs_.unless(error.has_value() && error->kind() == ErrorKind::exception);
          break;
        }
        case 2: {  // scopes in scopes
          over(stream, {x, y}).execute([&](ScopeServer& inside) -> Result<void> {
            over(inside, {bytes(y.buffer, 8, 16)}).execute(fails(mine));
            over(inside, {x, z}).execute(succeeds);
            return {};
          });
          wrongs_.unless(!table_.check(x) && !table_.check(z));
          wrongs_.unless(table_.check(y).has_value());
          break;
        }
        case 3: {  // a body in which the table is looked at
          over(stream, {y}).execute([&](ScopeServer&) -> Result<void> {
            const auto error = table_.check(y);
            wrongs_.unless(error.has_value() && error->kind() == ErrorKind::torn_down);
            return {};
          });
          wrongs_.unless(!table_.check(y));
          break;
        }
        case 4: {  // memory that comes and goes
          const BufferId fresh = table_.add("fresh", kSize, this, true);
          wrongs_.unless(table_.owner_of(fresh) == this);
          wrongs_.unless(launching(stream, {bytes(fresh, 0, 8)}, {z}).execute(succeeds).skipped());
          over(stream, {bytes(fresh, 0, 8)}).execute(succeeds);
          wrongs_.unless(!table_.check(bytes(fresh, 0, 8)));
          table_.remove(fresh);
          wrongs_.unless(table_.owner_of(fresh) == nullptr);
          break;
        }
        default: break;  // nothing goes wrong this time
      }
    }
    over(stream, {x, y, z}).execute(succeeds);
    wrongs_.unless(stream.pool().idle() == stream.pool().total());
  }

  std::vector<BufferId> buffers;

 private:
  FailureTable& table_;
  int number_;
  Wrongs& wrongs_;
};

/// Runs `each(worker)` in a loop on the calling thread while the workers run on theirs.
template <class Each>
void while_working(std::vector<std::unique_ptr<Worker>>& workers, Each each) {
  std::atomic<int> running{static_cast<int>(workers.size())};
  std::vector<std::thread> threads;
  threads.reserve(workers.size());
  for (const auto& worker : workers) {
    threads.emplace_back([&running, &worker] {
      worker->run();
      running.fetch_sub(1);
    });
  }
  for (std::size_t next = 0; running.load() != 0; ++next) each(*workers[next % workers.size()]);
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

TEST_CASE("threads: streams settle their own bytes while another thread looks at all of them") {
  FailureTable table(1);
  Wrongs wrongs;
  {
    std::vector<std::unique_ptr<Worker>> workers;
    for (int i = 1; i <= kStreams; ++i) {
      workers.push_back(std::make_unique<Worker>(table, i, wrongs));
    }
    std::uint64_t seen = 0;
    while_working(workers, [&](const Worker& worker) {
      Bindings all;
      for (const BufferId buffer : worker.buffers) all.push_back(bytes(buffer, 0, kSize));
      if (const auto error = table.check(all[seen % 3])) {
        // Whatever is met is whole: a kind that these streams make, and a text.
        wrongs.unless(!error->text().empty() && static_cast<bool>(error->failure()));
        ++seen;
        static_cast<void>(table.story(error->failure()));
      }
      static_cast<void>(table.report(all));
      wrongs.unless(table.name_of(worker.buffers[1]) == "y");
      wrongs.unless(table.owner_of(worker.buffers[1]) == &worker);
      static_cast<void>(table.live_failures());
      std::this_thread::yield();
    });
  }
  CHECK(wrongs.count() == 0);
  CHECK(table.live_failures() == 0);
}

TEST_CASE("threads: a late failure and a launch never miss each other") {
  // E10: the failure counts itself and then looks at the streams, a launch shows itself and then
  // reads the count. So a launch in whose body the failure has been followed already, was either
  // seen by it or has seen it, wherever between looking at its inputs and closing it was.
  constexpr int kTries = 10'000;
  FailureTable table(1);
  const BufferId x = table.add("x", kSize, nullptr, false);
  const BufferId y = table.add("y", kSize, nullptr, false);
  std::atomic<int> turn{0};  // 2i + 1: try i runs; 2i + 2: the failure of try i is claimed
  std::atomic<bool> followed{false};
  const auto wait_for = [&](int value) {
    for (int spins = 0; turn.load() != value; ++spins) {
      if (spins > 200) std::this_thread::yield();
    }
  };
  std::thread finder([&] {
    for (int i = 0; i < kTries; ++i) {
      wait_for(2 * i + 1);
      for (int delay = i % 40; delay != 0; --delay) static_cast<void>(turn.load());
      table.claim_late(broken("late"), {}, StreamId(9), {}, Bindings{bytes(x, 0, kSize)},
                       [&](LateClaim& late, std::span<const FailureTable::Open> open) {
                         for (const FailureTable::Open& each : open) {
                           if (late.passes_on({}, each.scope->reads, each.scope->writes)) {
                             each.scope->poisoned = late.failure().number;
                             late.overrules(*each.scope);
                           }
                         }
                         followed.store(true);
                       });
      turn.store(2 * i + 2);
    }
  });
  int lost = 0;
  std::array<int, 3> outcomes{};  // skipped, bad although it ran, closed before the failure came
  {
    ScopeServer stream(table, StreamId(8));
    const KernelId kernel = intern_kernel_name("reader");
    const Bindings reads{bytes(x, 0, 8)};
    const Bindings writes{bytes(y, 0, 8)};
    for (int i = 0; i < kTries; ++i) {
      over(stream, {bytes(x, 0, kSize), bytes(y, 0, kSize)}).execute(succeeds);
      stream.log.clear();
      followed.store(false);
      WriteSet set = stream.writes(writes);
      bool in_time = false;
      turn.store(2 * i + 1);
      const auto outcome = Scope::launching(stream, kernel, reads, std::move(set), at_line(40))
                               .execute([&](ScopeServer&) -> Result<void> {
                                 // Closes at once, soon, or when the failure has come.
                                 for (int spins = 0; i % 3 != 0 && !in_time; ++spins) {
                                   in_time = followed.load();
                                   if (i % 3 == 1 && spins == 200) break;
                                   if (spins > 200) std::this_thread::yield();
                                 }
                                 in_time = followed.load();
                                 return {};
                               });
      wait_for(2 * i + 2);
      const bool bad = table.check(bytes(y, 0, 8)).has_value();
      if ((outcome.skipped() || in_time) && !bad) ++lost;
      ++outcomes[outcome.skipped() ? 0 : bad ? 1 : 2];
    }
    over(stream, {bytes(x, 0, kSize), bytes(y, 0, kSize)}).execute(succeeds);
  }
  finder.join();
  CHECK(lost == 0);
  MESSAGE(outcomes[0], " skipped, ", outcomes[1], " bad although they ran, ", outcomes[2],
          " closed before the failure came");
  table.remove(x);
  table.remove(y);
  CHECK(table.live_failures() == 0);
}

TEST_CASE("threads: late failures and new memory while streams work") {
  FailureTable table(1);
  Wrongs wrongs;
  const BufferId shared = table.add("shared", kSize, nullptr, false);
  {
    std::vector<std::unique_ptr<Worker>> workers;
    for (int i = 1; i <= kStreams; ++i) {
      workers.push_back(std::make_unique<Worker>(table, i, wrongs));
    }
    std::size_t open_seen = 0;
    while_working(workers, [&](const Worker&) {
      // Its bytes are nobody's in particular; the walk looks at every scope that is open.
      const FailureId id = table.claim_late(
          broken("late"), {}, StreamId(99), at_line(41), Bindings{bytes(shared, 0, 32)},
          [&](LateClaim& late, std::span<const FailureTable::Open> open) {
            for (const FailureTable::Open& each : open) {
              wrongs.unless(!late.passes_on({}, each.scope->reads, each.scope->writes));
              ++open_seen;
            }
          });
      const auto error = table.check(bytes(shared, 0, 1));
      wrongs.unless(error.has_value());
      static_cast<void>(table.story(id));
      const BufferId passing = table.add("passing", 8, nullptr, true);
      table.mark(Bindings{bytes(passing, 0, 4)}, broken("mark"), StreamId(99), {});
      table.remove(passing);
      std::this_thread::yield();
    });
    MESSAGE(open_seen, " open scopes were met");
  }
  table.remove(shared);
  CHECK(wrongs.count() == 0);
  CHECK(table.live_failures() == 0);
}

TEST_CASE("threads: asking for the owner of a handle that is being freed is safe") {
  FailureTable table(1);
  std::atomic<std::uint64_t> generation{0};
  std::atomic<bool> done{false};
  int owner = 0;
  Wrongs wrongs;
  const BufferId first = table.add("b", 8, &owner, false);
  table.remove(first);
  std::thread asker([&] {
    while (!done.load()) {
      const BufferId id{first.device, first.slot, generation.load()};
      void* const found = table.owner_of(id);
      // The owner that it had, or none; never that of the buffer that took its place.
      wrongs.unless(found == nullptr || found == &owner + id.generation % 2);
    }
  });
  for (int i = 0; i < 5'000; ++i) {
    const std::uint64_t next = first.generation + 1 + static_cast<std::uint64_t>(i);
    const BufferId id = table.add("b", 8, &owner + next % 2, false);
    wrongs.unless(id.slot == first.slot && id.generation == next);
    generation.store(next);
    if (i % 16 == 0) std::this_thread::yield();
    table.remove(id);
  }
  done.store(true);
  asker.join();
  CHECK(wrongs.count() == 0);
}

TEST_CASE("threads: windows of several streams keep to themselves") {
  FailureTable table(1);
  Wrongs wrongs;
  const auto record = [&](int number) {
    ScopeServer stream(table, StreamId(static_cast<std::uint64_t>(number)));
    const BufferId y = table.add("y", kSize, nullptr, false);
    const BufferBinding all = bytes(y, 0, kSize);
    for (int round = 0; round < kRounds; ++round) {
      Overlay overlay(table, stream.id());
      stream.open_window(&overlay);
      over(stream, {all}).execute(succeeds);
      over(stream, {bytes(y, 8, 16)}).execute(fails("inside"));
      wrongs.unless(!table.check(all));
      if (round % 2 == 0) {
        overlay.refuse(broken("refused"), {});
        const auto error = table.check(bytes(y, 8, 16));
        wrongs.unless(error.has_value() && error->message() == "inside");
      }
      stream.close_window();
      stream.log.clear();
      over(stream, {all}).execute(succeeds);
      wrongs.unless(!table.check(all));
    }
    table.remove(y);
  };
  std::vector<std::thread> threads;
  for (int i = 1; i <= kStreams; ++i) threads.emplace_back(record, i);
  for (std::thread& thread : threads) thread.join();
  CHECK(wrongs.count() == 0);
  CHECK(table.live_failures() == 0);
}

}  // namespace refrain
