// Rules O: how a scope is opened, and that it is one or the other before it exists.
#include <doctest/doctest.h>

#include <optional>
#include <type_traits>
#include <utility>

#include "scope/scopes_fixture.hpp"

namespace refrain {
namespace {

using namespace test;

// O1: only `over` and `launching` make one.
static_assert(!std::is_default_constructible_v<Scope>);
static_assert(
    !std::is_constructible_v<Scope, ScopeServer&, KernelId, FoundFailure, WriteSet, Where>);

// O9: not copied, not moved, not assigned.
static_assert(!std::is_copy_constructible_v<Scope>);
static_assert(!std::is_move_constructible_v<Scope>);
static_assert(!std::is_copy_assignable_v<Scope>);
static_assert(!std::is_move_assignable_v<Scope>);

// O9: spent by use, so it cannot be executed twice without saying so.
using Succeeds = decltype(succeeds);
template <class S>
concept Executes = requires(S scope, Succeeds body) {
  std::forward<S>(scope).execute(body);
};
static_assert(Executes<Scope&&>);
static_assert(!Executes<Scope&>);

static_assert(!Executes<const Scope&>);
static_assert(!Executes<const Scope&&>);

// A body answers a Result, or it is no body.
struct AnswersInt {
  int operator()(ScopeServer&) const { return 1; }
};
template <class Body>
concept IsBody = requires(Scope scope, Body body) {
  std::move(scope).execute(body);
};
static_assert(IsBody<Succeeds>);
static_assert(!IsBody<AnswersInt>);

// What a scope cannot be opened on: a listener or a window that may throw.
struct ThrowingListener : ScopeServer {
  using ScopeServer::ScopeServer;
  void on_failure(StreamId, const Error&) {}
};
static_assert(!WriteScoped<ThrowingListener>);

// Write sets move and do not copy, and neither does a failure that was found.
static_assert(!std::is_copy_constructible_v<WriteSet>);
static_assert(std::is_nothrow_move_constructible_v<WriteSet>);
static_assert(!std::is_copy_constructible_v<FoundFailure>);
static_assert(std::is_nothrow_move_constructible_v<FoundFailure>);
static_assert(!std::is_copy_constructible_v<FailureTable>);
static_assert(!std::is_move_constructible_v<ScopeShow>);

}  // namespace

TEST_CASE_FIXTURE(Scopes, "O9: a scope holds its own stream, and the table is shared") {
  const BufferId x = buffer("x");
  const BufferId y = buffer("y");
  ScopeServer other(table, StreamId(8));
  const auto outcome = over(stream, {bytes(x, 0, 8)}).execute([&](ScopeServer&) -> Result<void> {
    // Not nested: the other stream knows nothing of this one's scope and settles by itself.
    const auto inner = over(other, {bytes(y, 0, 8)}).execute([&](ScopeServer&) -> Result<void> {
      CHECK_FALSE(clean(bytes(x, 0, 8)));
      CHECK_FALSE(clean(bytes(y, 0, 8)));
      return broken("the other's");
    });
    CHECK(inner.failed());
    CHECK_FALSE(clean(bytes(x, 0, 8)));
    return {};
  });
  CHECK(outcome.executed_cleanly());
  CHECK(clean(bytes(x, 0, 8)));
  CHECK(carried(bytes(y, 0, 8)).message() == "the other's");
}

TEST_CASE_FIXTURE(Scopes, "O1: a scope has entered or skipped once it is made, and stays so") {
  const BufferId x = buffer("x");
  const BufferId y = buffer("y");
  fail(bytes(x, 0, 16), "boom");
  {
    Scope skipped = launching(stream, {bytes(x, 0, 16)}, {bytes(y, 0, 16)});
    REQUIRE(skipped.skipped());
    // Mending the input afterwards does not make a scope enter that has skipped.
    CHECK(over(stream, {bytes(x, 0, 16)}).execute(succeeds).executed_cleanly());
    CHECK(skipped.skipped());
    bool ran = false;
    CHECK(std::move(skipped)
              .execute([&](ScopeServer&) -> Result<void> {
                ran = true;
                return {};
              })
              .skipped());
    CHECK_FALSE(ran);
  }
  {
    Scope entered = launching(stream, {bytes(x, 0, 16)}, {bytes(y, 0, 16)});
    REQUIRE_FALSE(entered.skipped());
    fail(bytes(x, 0, 16), "too late");
    CHECK_FALSE(entered.skipped());
    CHECK(std::move(entered).execute(succeeds).executed_cleanly());
  }
  CHECK(clean(bytes(y, 0, 16)));
}

TEST_CASE_FIXTURE(Scopes, "O2: over enters whatever its write set carries, and mends it") {
  const BufferId y = buffer("y");
  fail(bytes(y, 0, 16), "boom");
  CHECK(carried(bytes(y, 0, 16)).message() == "boom");
  bool ran = false;
  const auto outcome = over(stream, {bytes(y, 0, 16)}).execute([&](ScopeServer&) -> Result<void> {
    ran = true;
    return {};
  });
  CHECK(ran);
  CHECK(outcome.executed_cleanly());
  CHECK(clean(bytes(y, 0, 16)));
}

TEST_CASE_FIXTURE(Scopes, "O3: an in-place launch does not meet its own claim") {
  const BufferId y = buffer("y");
  const BufferId other = buffer("other");
  fail(bytes(other, 0, 16), "elsewhere");  // so that the claim is in the table, and could be met
  const auto outcome = launching(stream, {bytes(y, 0, 16)}, {bytes(y, 0, 16)}).execute(succeeds);
  CHECK(outcome.executed_cleanly());
  CHECK(clean(bytes(y, 0, 16)));
}

TEST_CASE_FIXTURE(Scopes,
                  "O3: an in-place launch over failed bytes skips and keeps their failure") {
  const BufferId y = buffer("y");
  const FailureId root = fail(bytes(y, 0, 16), "boom");
  const auto outcome = launching(stream, {bytes(y, 0, 16)}, {bytes(y, 0, 16)}).execute(succeeds);
  REQUIRE(outcome.skipped());
  CHECK(outcome.failure() == root);
  CHECK(carried(bytes(y, 0, 16)).message() == "boom");
  CHECK(carried(bytes(y, 0, 16)).failure() == root);
}

TEST_CASE_FIXTURE(Scopes, "O4: the first failed read in argument order is the one carried on") {
  const BufferId a = buffer("a");
  const BufferId b = buffer("b");
  const BufferId c = buffer("c");
  const BufferId y = buffer("y");
  const FailureId of_c = fail(bytes(c, 0, 16), "c broke");  // the oldest, in the last slot
  const FailureId of_b = fail(bytes(b, 0, 16), "b broke");
  SUBCASE("c before b") {
    const auto outcome =
        launching(stream, {bytes(a, 0, 16), bytes(c, 0, 16), bytes(b, 0, 16)}, {bytes(y, 0, 16)})
            .execute(succeeds);
    REQUIRE(outcome.skipped());
    CHECK(outcome.failure() == of_c);
    CHECK(carried(bytes(y, 0, 16)).message() == "c broke");
  }
  SUBCASE("b before c") {
    const auto outcome =
        launching(stream, {bytes(a, 0, 16), bytes(b, 0, 16), bytes(c, 0, 16)}, {bytes(y, 0, 16)})
            .execute(succeeds);
    REQUIRE(outcome.skipped());
    CHECK(outcome.failure() == of_b);
    CHECK(carried(bytes(y, 0, 16)).message() == "b broke");
  }
}

TEST_CASE_FIXTURE(Scopes, "O4: within one read the first byte that carries a failure decides") {
  const BufferId x = buffer("x");
  const BufferId y = buffer("y");
  fail(bytes(x, 12, 16), "behind");
  fail(bytes(x, 4, 8), "in front");
  fail(bytes(x, 0, 2), "not read");
  const auto found = table.read_failure(stream.show(), Bindings{bytes(x, 3, 16)});
  REQUIRE(static_cast<bool>(found));
  CHECK(found.error().message() == "in front");
  CHECK(found.needed() == bytes(x, 4, 8));
  CHECK(
      launching(stream, {bytes(x, 8, 12)}, {bytes(y, 0, 16)}).execute(succeeds).executed_cleanly());
}

TEST_CASE_FIXTURE(Scopes, "O5: a failed buffer that is only written causes no skip") {
  const BufferId x = buffer("x");
  const BufferId y = buffer("y");
  fail(bytes(y, 0, 16), "boom");
  const auto outcome = launching(stream, {bytes(x, 0, 16)}, {bytes(y, 0, 16)}).execute(succeeds);
  CHECK(outcome.executed_cleanly());
  CHECK(clean(bytes(y, 0, 16)));
}

TEST_CASE_FIXTURE(Scopes, "O6: entering replaces what the write set carried on exactly its bytes") {
  const BufferId y = buffer("y");
  fail(bytes(y, 0, 16), "old");
  const auto body = [&](ScopeServer&) -> Result<void> {
    CHECK(carried(bytes(y, 4, 8)).kind() == ErrorKind::torn_down);
    CHECK(carried(bytes(y, 0, 4)).message() == "old");
    CHECK(carried(bytes(y, 8, 16)).message() == "old");
    return {};
  };
  CHECK(over(stream, {bytes(y, 4, 8)}).execute(body).executed_cleanly());
  CHECK(clean(bytes(y, 4, 8)));
  CHECK(carried(bytes(y, 3, 5)).message() == "old");
  CHECK(carried(bytes(y, 7, 9)).message() == "old");
}

TEST_CASE_FIXTURE(Scopes, "O6: a check, a read and nested work see the provisional claim") {
  const BufferId y = buffer("y");
  const BufferId z = buffer("z");
  const auto body = [&](ScopeServer& inside) -> Result<void> {
    SUBCASE("a check") { CHECK(carried(bytes(y, 0, 16)).kind() == ErrorKind::torn_down); }
    SUBCASE("a read") {
      const auto report = table.report(Bindings{bytes(y, 0, 16)});
      REQUIRE(report.has_value());
      CHECK(report->message().find("begun and has not come back") != std::string::npos);
    }
    SUBCASE("nested work") {
      const auto nested = launching(inside, {bytes(y, 0, 16)}, {bytes(z, 0, 16)}).execute(succeeds);
      CHECK(nested.skipped());
    }
    SUBCASE("a check on another thread's stream") {
      ScopeServer other(table, StreamId(8));
      CHECK(carried(bytes(y, 15, 16)).kind() == ErrorKind::torn_down);
    }
    return {};
  };
  CHECK(over(stream, {bytes(y, 0, 16)}).execute(body).executed_cleanly());
  CHECK(clean(bytes(y, 0, 16)));
}

TEST_CASE_FIXTURE(Scopes, "O7: an empty write set claims nothing and mints nothing") {
  const BufferId other = buffer("other");
  const FailureId before = fail(bytes(other, 0, 1), "before");
  const std::uint64_t live = table.live_failures();
  const auto body = [&](ScopeServer& inside) -> Result<void> {
    CHECK(clean(bytes(other, 1, 16)));  // a check looks at what is open
    CHECK(table.live_failures() == live);
    CHECK(over(inside, {}).execute(succeeds).executed_cleanly());
    CHECK(over(inside, {}).execute(fails("inner")).failed());
    CHECK(table.live_failures() == live);
    return {};
  };
  CHECK(over(stream, {}).execute(body).executed_cleanly());
  CHECK(over(stream, {}).execute(fails("nothing to carry it")).failed());
  CHECK(table.live_failures() == live);
  const FailureId after = fail(bytes(other, 1, 2), "after");
  CHECK(after == FailureId(before.number + 1));
}

TEST_CASE_FIXTURE(Scopes,
                  "O7: with an empty write set failing, skipping and dooming still happen") {
  const BufferId x = buffer("x");
  const FailureId root = fail(bytes(x, 0, 16), "root");
  stream.open_window();
  SUBCASE("failing") {
    CHECK(over(stream, {}).execute(fails("boom")).failed());
    CHECK(only(stream.log, Heard::window_failed).error.message() == "boom");
    CHECK(only(stream.log, Heard::listener).error.message() == "boom");
  }
  SUBCASE("skipping") {
    const auto outcome = launching(stream, {bytes(x, 0, 16)}, {}, "no output").execute(succeeds);
    REQUIRE(outcome.skipped());
    CHECK(outcome.failure() == root);
    CHECK(only(stream.log, Heard::window_failed).error.message() == "root");
    CHECK(only(stream.log, Heard::listener).error.message() == "root");
    CHECK(table.story(root).find("no output") != std::string::npos);
  }
  SUBCASE("throwing") {
    CHECK_THROWS_AS(over(stream, {}).execute([](ScopeServer&) -> Result<void> { throw 1; }), int);
    CHECK(only(stream.log, Heard::window_failed).error.kind() == ErrorKind::exception);
  }
  SUBCASE("never executed") {
    { const Scope dropped = over(stream, {}); }
    CHECK(only(stream.log, Heard::window_failed).error.kind() == ErrorKind::torn_down);
  }
}

TEST_CASE_FIXTURE(Scopes, "O7: an empty range names nothing") {
  const BufferId y = buffer("y");
  CHECK(over(stream, {bytes(y, 4, 4), bytes(y, 9, 3)}).execute(fails("boom")).failed());
  CHECK(clean(bytes(y, 0, 16)));
  CHECK(only(stream.log, Heard::store_failed).writes == 0);
}

TEST_CASE_FIXTURE(Scopes, "O8: the write set goes back to its pool on every exit") {
  const BufferId x = buffer("x");
  const BufferId y = buffer("y");
  const BufferId z = buffer("z");
  fail(bytes(x, 0, 16), "boom");
  const auto all_back = [&] { return stream.pool().idle() == stream.pool().total(); };
  const std::size_t total = stream.pool().total();
  REQUIRE(all_back());

  CHECK(over(stream, {bytes(y, 0, 16)}).execute(succeeds).executed_cleanly());
  CHECK(all_back());
  CHECK(over(stream, {bytes(y, 0, 16)}).execute(fails("boom")).failed());
  CHECK(all_back());
  CHECK(launching(stream, {bytes(x, 0, 16)}, {bytes(y, 0, 16)}).execute(succeeds).skipped());
  CHECK(all_back());
  CHECK_THROWS(
      over(stream, {bytes(y, 0, 16)}).execute([](ScopeServer&) -> Result<void> { throw 1; }));
  CHECK(all_back());
  { const Scope dropped = over(stream, {bytes(z, 0, 16)}); }
  CHECK(all_back());
  CHECK(stream.pool().total() == total);  // one storage served them all
}

TEST_CASE_FIXTURE(Scopes, "O8: scopes in scopes take storage each, and it is used again") {
  const BufferId y = buffer("y");
  const auto nest = [&] {
    static_cast<void>(over(stream, {bytes(y, 0, 16)}).execute([&](ScopeServer& a) -> Result<void> {
      CHECK(stream.pool().idle() == stream.pool().total() - 1);
      static_cast<void>(over(a, {bytes(y, 0, 8)}).execute([&](ScopeServer& b) -> Result<void> {
        static_cast<void>(over(b, {bytes(y, 0, 4)}).execute(succeeds));
        return {};
      }));
      return {};
    }));
  };
  nest();
  CHECK(stream.pool().total() == 3);
  CHECK(stream.pool().idle() == 3);
  nest();
  CHECK(stream.pool().total() == 3);
}

TEST_CASE_FIXTURE(Scopes,
                  "O8: a moved write set has one owner, and a borrowed one goes to no pool") {
  const BufferId y = buffer("y");
  {
    WriteSet first = stream.writes(Bindings{bytes(y, 0, 16)});
    const WriteSet second = std::move(first);
    CHECK(first.bindings().empty());  // NOLINT: that it is empty is what is tested
    REQUIRE(second.bindings().size() == 1);
    CHECK(stream.pool().idle() == stream.pool().total() - 1);
  }
  CHECK(stream.pool().idle() == stream.pool().total());

  const Bindings kept{bytes(y, 0, 4), bytes(y, 8, 12)};
  table.reserve(kept.size());
  CHECK(Scope::over(stream, intern_kernel_name("replay"), WriteSet::borrowed(kept), at_line(3))
            .execute(fails("boom"))
            .failed());
  CHECK(carried(bytes(y, 0, 4)).message() == "boom");
  CHECK(carried(bytes(y, 8, 12)).message() == "boom");
  CHECK(clean(bytes(y, 4, 8)));
  table.unreserve(kept.size());
}

TEST_CASE_FIXTURE(Scopes, "O10: a scope that entered and is dropped leaves its write set claimed") {
  const BufferId y = buffer("y");
  { const Scope dropped = over(stream, {bytes(y, 0, 8)}); }
  CHECK(carried(bytes(y, 0, 8)).kind() == ErrorKind::torn_down);
  CHECK(clean(bytes(y, 8, 16)));
}

TEST_CASE_FIXTURE(Scopes, "O10: a dropped scope dooms its window and tells the listener, once") {
  const BufferId y = buffer("y");
  stream.open_window();
  { const Scope dropped = over(stream, {bytes(y, 0, 8)}); }
  CHECK(stream.log.order() == std::vector<Heard>{Heard::store_entered, Heard::window_failed,
                                                 Heard::store_failed, Heard::listener});
  CHECK(only(stream.log, Heard::window_failed).error.kind() == ErrorKind::torn_down);
}

TEST_CASE_FIXTURE(Scopes, "O10: an exception between opening and executing drops the scope") {
  const BufferId y = buffer("y");
  try {
    const Scope never = over(stream, {bytes(y, 0, 16)});
    CHECK_FALSE(never.skipped());
    throw 1;
  } catch (int) {
  }
  CHECK(carried(bytes(y, 0, 16)).kind() == ErrorKind::torn_down);
}

TEST_CASE_FIXTURE(Scopes, "O10: a skipped scope may be dropped and owes nothing") {
  const BufferId x = buffer("x");
  const BufferId y = buffer("y");
  const FailureId root = fail(bytes(x, 0, 16), "boom");
  stream.open_window();
  { const Scope dropped = launching(stream, {bytes(x, 0, 16)}, {bytes(y, 0, 16)}); }
  CHECK(stream.log.order() ==
        std::vector<Heard>{Heard::listener, Heard::window_failed, Heard::store_propagated});
  CHECK(carried(bytes(y, 0, 16)).failure() == root);
}

TEST_CASE_FIXTURE(Scopes, "O10: a scope that was executed is not dropped a second time") {
  const BufferId y = buffer("y");
  {
    Scope scope = over(stream, {bytes(y, 0, 16)});
    CHECK(std::move(scope).execute(succeeds).executed_cleanly());
  }
  CHECK(clean(bytes(y, 0, 16)));
  CHECK(stream.log.of(Heard::listener).empty());
}

}  // namespace refrain
