// No exit of a scope takes anything from the heap, and neither does opening one, once the pools
// have grown to what is in use.
#include <doctest/doctest.h>

#include <exception>
#include <string>
#include <vector>

#include "scope/scopes_fixture.hpp"
#include "support/allocations.hpp"

namespace refrain {
namespace {

using namespace test;

/// What a stream does at each exit, measured. Bodies are measured as well: they do nothing.
class Exits : public Scopes {
 public:
  /// `count` ranges over two buffers of `size` bytes: apart, so that each is a claim of its own.
  Bindings ranges(std::size_t count) {
    Bindings all;
    for (std::size_t i = 0; i < count; ++i) {
      all.push_back(bytes(i % 2 == 0 ? a : b, i * 8, i * 8 + 4));
    }
    return all;
  }
  /// How often `scope` allocated, from just before it opens to after it ended.
  template <class Body>
  std::uint64_t over_allocates(const Bindings& writes, const Body& body) {
    WriteSet set = stream.writes(writes);
    return allocations_in(
        [&] { Scope::over(stream, kernel, std::move(set), at_line(30)).execute(body); });
  }
  template <class Body>
  std::uint64_t launching_allocates(const Bindings& reads, const Bindings& writes,
                                    const Body& body) {
    WriteSet set = stream.writes(writes);
    return allocations_in([&] {
      Scope::launching(stream, kernel, reads, std::move(set), at_line(31)).execute(body);
    });
  }
  /// Claims every other two bytes of both buffers, each with a failure of its own, so that an exit
  /// finds claims that it must split, keep and replace.
  void claim_partly() {
    for (std::uint64_t at = 2; at + 4 < kSize; at += 8) {
      fail(bytes(a, at, at + 4), "earlier");
      fail(bytes(b, at + 3, at + 6), "earlier");
    }
  }

  static constexpr std::uint64_t kSize = 1024;
  const BufferId a = buffer("a", kSize);
  const BufferId b = buffer("b", kSize);
  const BufferId x = buffer("x");
  const KernelId kernel = intern_kernel_name("measured");
  const Error premade = broken("an error that was made before, too long for any small string");
};

}  // namespace

TEST_CASE("allocations: the counter counts") {
  const std::uint64_t one = test::kCountsAllocations ? 1 : 0;
  CHECK(test::allocations_in([] { const std::vector<int> some(100); }) == one);
  CHECK(test::allocations_in([] {}) == 0);
}

TEST_CASE_FIXTURE(Exits, "E1: opening and settling a clean scope allocates nothing once warm") {
  for (const std::size_t count : {0U, 1U, 2U, 8U, 9U, 64U}) {
    CAPTURE(count);
    static_cast<void>(over_allocates(ranges(count), succeeds));  // the pool grows here
    const Bindings all = ranges(count);
    CHECK(allocations_in([&] {
            for (int i = 0; i < 100; ++i) {
              WriteSet set(stream.pool());
              for (const BufferBinding& each : all) set.add(each);
              Scope::launching(stream, kernel, all, std::move(set), at_line(32)).execute(succeeds);
            }
          }) == 0);
  }
  CHECK(clean(bytes(a, 0, kSize)));
}

TEST_CASE_FIXTURE(Exits, "E2: no exit allocates, for 1 to 64 ranges over clean and claimed bytes") {
  const auto fails_premade = [&](ScopeServer&) -> Result<void> { return premade; };
  const auto looked_at = [&](ScopeServer&) -> Result<void> {
    static_cast<void>(table.check(bytes(a, 0, 1)));
    return {};
  };
  struct Thrown {};
  for (const bool claimed : {false, true}) {
    for (std::size_t count = 1; count <= 64; count += count < 10 || count > 60 ? 1 : 5) {
      CAPTURE(count);
      CAPTURE(claimed);
      fail(bytes(x, 0, 16), "root");
      const auto prepare = [&] {
        over(stream, {bytes(a, 0, kSize), bytes(b, 0, kSize)}).execute(succeeds);
        if (claimed) claim_partly();
      };
      const Bindings all = ranges(count);
      for (int warm = 0; warm < 2; ++warm) {
        prepare();
        static_cast<void>(over_allocates(all, succeeds));  // the pools grow here
      }
      prepare();
      CHECK(over_allocates(all, succeeds) == 0);
      prepare();
      CHECK(over_allocates(all, looked_at) == 0);
      prepare();
      CHECK(over_allocates(all, fails_premade) == 0);
      prepare();
      CHECK(launching_allocates({bytes(x, 0, 16)}, all, succeeds) == 0);
      prepare();
      WriteSet set = stream.writes(all);
      CHECK(allocations_in([&] {
              const Scope dropped = Scope::over(stream, kernel, std::move(set), at_line(33));
            }) == 0);
      prepare();
      // The exception itself is the body's: made outside of what is measured.
      WriteSet thrown_set = stream.writes(all);
      const std::exception_ptr exception = std::make_exception_ptr(Thrown{});
      CHECK(allocations_in([&] {
              try {
                Scope::over(stream, kernel, std::move(thrown_set), at_line(34))
                    .execute(
                        [&](ScopeServer&) -> Result<void> { std::rethrow_exception(exception); });
              } catch (const Thrown&) {
              }
            }) == 0);
      prepare();
      over(stream, {bytes(x, 0, 16)}).execute(succeeds);
      if (claimed) {
        over(stream, {bytes(a, 0, kSize), bytes(b, 0, kSize)}).execute(succeeds);
      }
      REQUIRE(table.live_failures() == 0);
      // With nothing wrong anywhere the claim was never in the table before the exit.
      CHECK(over_allocates(all, fails_premade) == 0);
    }
  }
}

TEST_CASE_FIXTURE(Exits, "E2: an exit allocates nothing, whatever its body has made meanwhile") {
  // What a body does may use up what the table had ready when the scope opened.
  const auto body_then_fail = [&](const auto& body) {
    const Bindings all = ranges(64);
    over(stream, {bytes(a, 0, kSize), bytes(b, 0, kSize)}).execute(succeeds);
    WriteSet set = stream.writes(all);
    std::uint64_t at_exit = 0;
    Scope::over(stream, kernel, std::move(set), at_line(35))
        .execute([&](ScopeServer&) -> Result<void> {
          body();
          at_exit = allocations();
          return premade;
        });
    return allocations() - at_exit;
  };
  SUBCASE("new buffers that nobody wrote") {
    CHECK(body_then_fail([&] {
            for (int i = 0; i < 300; ++i) buffer("new", 16, true);
          }) == 0);
  }
  SUBCASE("marks") {
    CHECK(body_then_fail([&] {
            for (std::uint64_t i = 0; i < 300; ++i) {
              table.mark(Bindings{bytes(a, 3 * i, 3 * i + 1)}, premade, StreamId(8), {});
            }
          }) == 0);
  }
  SUBCASE("late failures") {
    CHECK(body_then_fail([&] {
            const BufferId many = buffer("many", 1024);
            for (std::uint64_t i = 0; i < 300; ++i) {
              table.claim_late(premade, kernel, StreamId(8), {},
                               Bindings{bytes(many, 3 * i, 3 * i + 1)},
                               [](LateClaim&, std::span<const FailureTable::Open>) {});
            }
          }) == 0);
  }
  SUBCASE("one late failure of many ranges") {
    CHECK(body_then_fail([&] {
            const BufferId many = buffer("many", 4096);
            Bindings ranges_of_it;
            for (std::uint64_t i = 0; i < 900; ++i) {
              ranges_of_it.push_back(bytes(many, 3 * i, 3 * i + 1));
            }
            table.claim_late(premade, kernel, StreamId(8), {}, ranges_of_it,
                             [](LateClaim&, std::span<const FailureTable::Open>) {});
          }) == 0);
  }
  SUBCASE("a window that is refused") {
    CHECK(body_then_fail([&] {
            Overlay overlay(table, StreamId(8));
            ScopeServer other(table, StreamId(8));
            other.open_window(&overlay);
            const BufferId many = buffer("many", 1024);
            for (std::uint64_t i = 0; i < 300; ++i) {
              const Bindings one{bytes(many, 3 * i, 3 * i + 1)};
              if (i % 2 == 0) {
                over(other, one).execute(succeeds);
              } else {
                over(other, one).execute([&](ScopeServer&) -> Result<void> { return premade; });
              }
            }
            other.close_window();
            overlay.refuse(premade, {});
          }) == 0);
  }
  SUBCASE("failures of another stream") {
    ScopeServer other(table, StreamId(8));
    CHECK(
        body_then_fail([&] {
          const BufferId many = buffer("many", 1024);
          for (std::uint64_t i = 0; i < 300; ++i) {
            over(other, {bytes(many, 3 * i, 3 * i + 1)}).execute([&](ScopeServer&) -> Result<void> {
              return premade;
            });
          }
        }) == 0);
  }
  SUBCASE("scopes in it that failed") {
    CHECK(body_then_fail([&] {
            for (std::uint64_t i = 0; i < 300; ++i) {
              over(stream, {bytes(a, 3 * i, 3 * i + 1)}).execute([&](ScopeServer&) -> Result<void> {
                return premade;
              });
            }
          }) == 0);
  }
}

TEST_CASE_FIXTURE(Exits, "E9: exits of scopes in scopes allocate nothing") {
  // The inner scope's one range lies over 64 of the outer one's, which all come back at its exit.
  const Bindings all = ranges(64);
  const Bindings everything{bytes(a, 0, kSize), bytes(b, 0, kSize)};
  const auto nest = [&](bool good) {
    std::uint64_t inner_exit = 0;
    std::uint64_t outer_exit = 0;
    std::uint64_t used = 0;
    WriteSet set = stream.writes(all);
    Scope::over(stream, kernel, std::move(set), at_line(36))
        .execute([&](ScopeServer&) -> Result<void> {
          WriteSet inner = stream.writes(everything);
          Scope::over(stream, kernel, std::move(inner), at_line(37))
              .execute([&](ScopeServer&) -> Result<void> {
                inner_exit = allocations();
                if (!good) return premade;
                return {};
              });
          used += allocations() - inner_exit;
          outer_exit = allocations();
          return {};
        });
    return used + (allocations() - outer_exit);
  };
  static_cast<void>(nest(true));
  for (int i = 0; i < 10; ++i) {
    CHECK(nest(true) == 0);
    CHECK(nest(false) == 0);
  }
}

TEST_CASE_FIXTURE(Exits, "C8: exits in a window allocate nothing") {
  const Bindings all = ranges(64);
  const Bindings everything{bytes(a, 0, kSize), bytes(b, 0, kSize)};
  const BufferId many = buffer("many", 4096);
  Overlay overlay(table, StreamId(7));
  stream.open_window(&overlay);
  std::uint64_t used = 0;
  const auto measured = [&](const Bindings& writes, const auto& body) {
    std::uint64_t at_exit = 0;
    over(stream, writes).execute([&](ScopeServer& inside) {
      Result<void> result = body(inside);
      at_exit = allocations();
      return result;
    });
    used += allocations() - at_exit;
  };
  const auto fails_premade = [&](ScopeServer&) -> Result<void> { return premade; };
  for (int round = 0; round < 3; ++round) {
    measured(all, succeeds);
    measured(all, fails_premade);
    measured(everything, succeeds);
    measured(all, [&](ScopeServer&) -> Result<void> {
      measured(everything, [&](ScopeServer&) -> Result<void> {
        // Other work takes what the outer scope's claims gave back.
        for (std::uint64_t i = 0; i < 300; ++i) measured({bytes(many, 3 * i, 3 * i + 1)}, succeeds);
        return {};
      });
      return {};
    });
    CHECK(used == 0);
    used = 0;
  }
  stream.close_window();
}

TEST_CASE_FIXTURE(Exits,
                  "K1: a skip in a window allocates nothing on bytes that the window has met") {
  const Bindings all = ranges(64);
  fail(bytes(x, 0, 16), "root");
  Overlay overlay(table, StreamId(7));
  stream.open_window(&overlay);
  CHECK(over_allocates(all, succeeds) < 300);
  static_cast<void>(launching_allocates({bytes(x, 0, 16)}, all, succeeds));
  CHECK(launching_allocates({bytes(x, 0, 16)}, all, succeeds) == 0);
  stream.close_window();
}

}  // namespace refrain
