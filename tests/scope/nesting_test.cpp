// Rule E9: scopes in scopes. The outer one answers for all it names, except for what an inner one
// broke and nobody mended.
#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <utility>

#include "scope/scopes_fixture.hpp"

namespace refrain {
namespace {

using namespace test;

/// Runs `inside` in the body of an outer scope over `writes`, which then ends as `outer` says.
template <class Inside>
void within(ScopeServer& stream, const Bindings& writes, Result<void> outer, Inside inside) {
  const auto outcome = over(stream, writes, "outer").execute([&](ScopeServer& server) {
    inside(server);
    return outer;
  });
  CHECK(outcome.executed_cleanly() == outer.ok());
}

}  // namespace

TEST_CASE_FIXTURE(Scopes, "E9: a clean inner exit puts the outer claim back where both write") {
  const BufferId y = buffer("y");
  within(stream, {bytes(y, 0, 8)}, {}, [&](ScopeServer& inside) {
    FailureId inner;
    CHECK(over(inside, {bytes(y, 4, 12)}, "inner")
              .execute([&](ScopeServer&) -> Result<void> {
                inner = carried(bytes(y, 4, 12)).failure();
                CHECK(carried(bytes(y, 0, 4)).failure() != inner);
                return {};
              })
              .executed_cleanly());
    CHECK(carried(bytes(y, 4, 8)).failure() == carried(bytes(y, 0, 4)).failure());
    CHECK(carried(bytes(y, 4, 8)).failure() != inner);
    CHECK(clean(bytes(y, 8, 12)));  // the inner one's alone
  });
  CHECK(clean(bytes(y, 0, 16)));
}

TEST_CASE_FIXTURE(Scopes, "E9: an outer failure after a clean inner exit claims what both wrote") {
  const BufferId y = buffer("y");
  within(stream, {bytes(y, 0, 8)}, broken("outer"), [&](ScopeServer& inside) {
    CHECK(over(inside, {bytes(y, 4, 12)}).execute(succeeds).executed_cleanly());
  });
  CHECK(carried(bytes(y, 0, 4)).message() == "outer");
  CHECK(carried(bytes(y, 4, 8)).message() == "outer");
  CHECK(clean(bytes(y, 8, 16)));
}

TEST_CASE_FIXTURE(Scopes, "E9: an inner failure stays under either outcome of the outer scope") {
  const BufferId y = buffer("y");
  const auto inner = [&](ScopeServer& inside) {
    CHECK(over(inside, {bytes(y, 4, 12)}).execute(fails("inner")).failed());
  };
  SUBCASE("success") {
    within(stream, {bytes(y, 0, 8)}, {}, inner);
    CHECK(clean(bytes(y, 0, 4)));
  }
  SUBCASE("failure") {
    within(stream, {bytes(y, 0, 8)}, broken("outer"), inner);
    CHECK(carried(bytes(y, 0, 4)).message() == "outer");
  }
  CHECK(carried(bytes(y, 4, 8)).message() == "inner");
  CHECK(carried(bytes(y, 8, 12)).message() == "inner");
  CHECK(clean(bytes(y, 12, 16)));
}

TEST_CASE_FIXTURE(Scopes,
                  "E9: an inner throw that the outer body catches stays as a failure does") {
  const BufferId y = buffer("y");
  within(stream, {bytes(y, 0, 8)}, {}, [&](ScopeServer& inside) {
    CHECK_THROWS_AS(
        over(inside, {bytes(y, 4, 8)}).execute([](ScopeServer&) -> Result<void> { throw 1; }), int);
  });
  CHECK(clean(bytes(y, 0, 4)));
  CHECK(carried(bytes(y, 4, 8)).kind() == ErrorKind::exception);
}

TEST_CASE_FIXTURE(Scopes, "E9: an inner scope that is dropped stays as a failure does") {
  const BufferId y = buffer("y");
  within(stream, {bytes(y, 0, 8)}, {},
         [&](ScopeServer& inside) { const Scope dropped = over(inside, {bytes(y, 4, 8)}); });
  CHECK(clean(bytes(y, 0, 4)));
  CHECK(carried(bytes(y, 4, 8)).kind() == ErrorKind::torn_down);
}

TEST_CASE_FIXTURE(Scopes, "E9: an inner skip stays under either outcome of the outer scope") {
  const BufferId x = buffer("x");
  const BufferId y = buffer("y");
  const FailureId root = fail(bytes(x, 0, 16), "root");
  const auto inner = [&](ScopeServer& inside) {
    CHECK(launching(inside, {bytes(x, 0, 16)}, {bytes(y, 4, 12)}).execute(succeeds).skipped());
  };
  SUBCASE("success") {
    within(stream, {bytes(y, 0, 8)}, {}, inner);
    CHECK(clean(bytes(y, 0, 4)));
  }
  SUBCASE("failure") {
    within(stream, {bytes(y, 0, 8)}, broken("outer"), inner);
    CHECK(carried(bytes(y, 0, 4)).message() == "outer");
  }
  CHECK(carried(bytes(y, 4, 8)).failure() == root);
  CHECK(carried(bytes(y, 8, 12)).failure() == root);
}

TEST_CASE_FIXTURE(Scopes,
                  "E9: an inner skip on what the outer scope writes is no success of the outer") {
  // The inner launch needs bytes that its own outer scope is still writing, so it does not run.
  // The outer scope's success says that its bytes are good, and says nothing about that output.
  const BufferId y = buffer("y");
  const BufferId z = buffer("z");
  const auto inner = [&](ScopeServer& inside) {
    CHECK(launching(inside, {bytes(y, 0, 4)}, {bytes(y, 8, 12), bytes(z, 0, 4)}, "victim")
              .execute(succeeds)
              .skipped());
  };
  SUBCASE("success") {
    within(stream, {bytes(y, 0, 16)}, {}, inner);
    CHECK(clean(bytes(y, 0, 8)));
    CHECK(clean(bytes(y, 12, 16)));
    const Error inside = carried(bytes(y, 8, 12));
    const Error outside = carried(bytes(z, 0, 4));
    CHECK(inside.failure() == outside.failure());
    // The outer work came back, so nothing may say that it did not.
    CHECK(inside.message().find("has not come back") == std::string::npos);
    const std::string story = table.story(inside.failure());
    CHECK(story.find("skipped: \"victim\"") != std::string::npos);
    CHECK(story.find("needed \"y\" [0, 4)") != std::string::npos);
    CHECK(over(stream, {bytes(y, 8, 12), bytes(z, 0, 4)}).execute(succeeds).executed_cleanly());
    CHECK(table.live_failures() == 0);
  }
  SUBCASE("failure") {
    within(stream, {bytes(y, 0, 16)}, broken("outer"), inner);
    CHECK(carried(bytes(y, 0, 8)).message() == "outer");
    CHECK(carried(bytes(y, 8, 12)).message() == "outer");
    CHECK(carried(bytes(z, 0, 4)).message() == "outer");
    CHECK(table.live_failures() == 1);
  }
}

TEST_CASE_FIXTURE(Scopes, "E9: a later clean inner scope mends what an earlier inner one broke") {
  const BufferId x = buffer("x");
  const BufferId y = buffer("y");
  fail(bytes(x, 0, 16), "root");
  const auto inner = [&](ScopeServer& inside) {
    CHECK(over(inside, {bytes(y, 0, 8)}).execute(fails("inner")).failed());
    CHECK(launching(inside, {bytes(x, 0, 16)}, {bytes(y, 8, 16)}).execute(succeeds).skipped());
    CHECK(over(inside, {bytes(y, 4, 12)}).execute(succeeds).executed_cleanly());
  };
  SUBCASE("success") {
    within(stream, {bytes(y, 0, 16)}, {}, inner);
    CHECK(clean(bytes(y, 4, 12)));
  }
  SUBCASE("failure") {
    within(stream, {bytes(y, 0, 16)}, broken("outer"), inner);
    CHECK(carried(bytes(y, 4, 12)).message() == "outer");  // it is the outer scope's again
  }
  CHECK(carried(bytes(y, 0, 4)).message() == "inner");
  CHECK(carried(bytes(y, 12, 16)).message() == "root");
}

TEST_CASE_FIXTURE(Scopes, "E9: a clean inner exit outside the outer write set releases as usual") {
  const BufferId y = buffer("y");
  const BufferId z = buffer("z");
  fail(bytes(z, 0, 16), "old");
  within(stream, {bytes(y, 0, 16)}, broken("outer"), [&](ScopeServer& inside) {
    CHECK(over(inside, {bytes(z, 0, 8)}).execute(succeeds).executed_cleanly());
  });
  CHECK(clean(bytes(z, 0, 8)));
  CHECK(carried(bytes(z, 8, 16)).message() == "old");
}

TEST_CASE_FIXTURE(Scopes,
                  "E9: three deep, each byte comes back to the nearest scope that writes it") {
  const BufferId y = buffer("y", 24);
  within(stream, {bytes(y, 0, 12)}, broken("outer"), [&](ScopeServer& a) {
    CHECK(over(a, {bytes(y, 8, 20)}, "middle")
              .execute([&](ScopeServer& b) -> Result<void> {
                // Over bytes of the outer alone, of both, of the middle alone, and of neither.
                CHECK(over(b, {bytes(y, 4, 24)}, "inner").execute(succeeds).executed_cleanly());
                CHECK(clean(bytes(y, 20, 24)));
                CHECK(carried(bytes(y, 4, 8)).failure() == carried(bytes(y, 0, 1)).failure());
                CHECK(carried(bytes(y, 8, 12)).failure() == carried(bytes(y, 12, 20)).failure());
                return broken("middle");
              })
              .failed());
  });
  CHECK(carried(bytes(y, 0, 8)).message() == "outer");
  CHECK(carried(bytes(y, 8, 20)).message() == "middle");
  CHECK(clean(bytes(y, 20, 24)));
}

TEST_CASE_FIXTURE(Scopes, "E9: a failure deep inside passes through every clean exit above it") {
  const BufferId y = buffer("y");
  within(stream, {bytes(y, 0, 16)}, {}, [&](ScopeServer& a) {
    CHECK(over(a, {bytes(y, 0, 12)})
              .execute([&](ScopeServer& b) -> Result<void> {
                CHECK(over(b, {bytes(y, 0, 8)}).execute(fails("deep")).failed());
                return {};
              })
              .executed_cleanly());
  });
  CHECK(carried(bytes(y, 0, 8)).message() == "deep");
  CHECK(clean(bytes(y, 8, 16)));
}

TEST_CASE_FIXTURE(Scopes,
                  "E9: an outer error that stems from an inner failure names it, and frees it") {
  const BufferId y = buffer("y");
  const BufferId z = buffer("z");
  CHECK(over(stream, {bytes(y, 0, 16)}, "outer")
            .execute([&](ScopeServer& inside) -> Result<void> {
              CHECK(over(inside, {bytes(z, 0, 16)}, "inner").execute(fails("the root")).failed());
              const Error cause = carried(bytes(z, 0, 16));
              return broken("the outer text").with_failure(cause.failure());
            })
            .failed());
  const FailureId inner = carried(bytes(z, 0, 16)).failure();
  // Nothing carries the inner failure any more, but the outer one still needs it for its story.
  CHECK(over(stream, {bytes(z, 0, 16)}).execute(succeeds).executed_cleanly());
  CHECK(table.live_failures() == 2);
  const auto report = table.report(Bindings{bytes(y, 0, 16)});
  REQUIRE(report.has_value());
  CHECK(report->message().find("the outer text") != std::string::npos);
  CHECK(report->message().find("because of failure " + std::to_string(inner.number)) !=
        std::string::npos);
  CHECK(report->message().find("the root") != std::string::npos);
  CHECK(over(stream, {bytes(y, 0, 16)}).execute(succeeds).executed_cleanly());
  CHECK(table.live_failures() == 0);
}

TEST_CASE_FIXTURE(Scopes,
                  "M7: of a long chain of causes the nearest three are told, and always the root") {
  const BufferId y = buffer("y", 128);
  FailureId last;
  const auto chain = [&](std::uint64_t length) {
    last = {};
    for (std::uint64_t at = 0; at < length; ++at) {
      const BufferBinding bytes_of{y, {8 * at, 8 * at + 4}};
      over(stream, {bytes_of}).execute([&](ScopeServer&) -> Result<void> {
        return broken("link " + std::to_string(at) + ".").with_failure(last);
      });
      last = carried(bytes_of).failure();
    }
    return table.story(last);
  };
  const auto has = [](const std::string& story, const std::string& what) {
    return story.find(what) != std::string::npos;
  };
  const std::string five = chain(5);
  for (int at = 0; at < 5; ++at) CHECK(has(five, "link " + std::to_string(at) + "."));
  CHECK_FALSE(has(five, "more failure"));
  CHECK(has(chain(6), "because of 1 more failure, and at the root\n  because of failure "));
  const std::string twelve = chain(12);
  for (int at = 0; at < 12; ++at) {
    CAPTURE(at);
    const bool told = at == 0 || at >= 8;
    CHECK(has(twelve, "link " + std::to_string(at) + ".") == told);
  }
  CHECK(has(twelve, "because of 7 more failures, each because of the next, and at the root\n"));
  CHECK(over(stream, {bytes(y, 0, 128)}).execute(succeeds).executed_cleanly());
}

TEST_CASE_FIXTURE(Scopes, "E9: two failures that each name the other go with their last byte") {
  // The inner work finds its input not yet written and says so, and the outer work finds the inner
  // output broken and says so. A story must still have a root, and an end.
  const BufferId y = buffer("y");
  const BufferId z = buffer("z");
  CHECK(over(stream, {bytes(y, 0, 16)}, "outer")
            .execute([&](ScopeServer& inside) -> Result<void> {
              CHECK(over(inside, {bytes(z, 0, 16)}, "inner")
                        .execute(
                            [&](ScopeServer&) -> Result<void> { return carried(bytes(y, 0, 16)); })
                        .failed());
              return carried(bytes(z, 0, 16));
            })
            .failed());
  const auto report = table.report(Bindings{bytes(y, 0, 16), bytes(z, 0, 16)});
  REQUIRE(report.has_value());
  CHECK(over(stream, {bytes(y, 0, 16), bytes(z, 0, 16)}).execute(succeeds).executed_cleanly());
  CHECK(table.live_failures() == 0);
}

TEST_CASE_FIXTURE(Scopes, "E9: a buffer that both write may go while the inner one runs") {
  const BufferId y = buffer("y");
  const BufferId z = buffer("z");
  within(stream, {bytes(y, 0, 16), bytes(z, 0, 16)}, broken("outer"), [&](ScopeServer& inside) {
    CHECK(over(inside, {bytes(y, 4, 8), bytes(z, 4, 8)})
              .execute([&](ScopeServer&) -> Result<void> {
                table.remove(y);
                return {};
              })
              .executed_cleanly());
  });
  CHECK(carried(bytes(z, 0, 16)).message() == "outer");
}

TEST_CASE_FIXTURE(Scopes,
                  "E9: scopes that end in another order than they began settle their own bytes") {
  // Nothing stops a program from keeping two scopes of one stream and ending the older one first.
  const BufferId a = buffer("a");
  const BufferId b = buffer("b");
  const BufferId c = buffer("c");
  auto first = kept([&] { return over(stream, {bytes(a, 0, 16), bytes(c, 0, 8)}); });
  auto second = kept([&] { return over(stream, {bytes(b, 0, 16), bytes(c, 4, 16)}); });
  SUBCASE("the older succeeds") {
    CHECK(std::move(*first).execute(succeeds).executed_cleanly());
    first.reset();
    CHECK(clean(bytes(a, 0, 16)));
    CHECK(carried(bytes(b, 0, 16)).kind() == ErrorKind::torn_down);
    CHECK(carried(bytes(c, 4, 16)).kind() == ErrorKind::torn_down);
    CHECK(clean(bytes(c, 0, 4)));
    CHECK(std::move(*second).execute(succeeds).executed_cleanly());
    CHECK(clean(bytes(c, 0, 16)));
  }
  SUBCASE("the older fails") {
    CHECK(std::move(*first).execute(fails("first")).failed());
    first.reset();
    CHECK(std::move(*second).execute(succeeds).executed_cleanly());
    CHECK(carried(bytes(a, 0, 16)).message() == "first");
    CHECK(carried(bytes(c, 0, 4)).message() == "first");
    CHECK(clean(bytes(c, 4, 16)));
  }
  SUBCASE("a third begins after the older ended") {
    CHECK(std::move(*first).execute(succeeds).executed_cleanly());
    first.reset();
    CHECK(over(stream, {bytes(a, 0, 16), bytes(c, 0, 16)}).execute(succeeds).executed_cleanly());
    CHECK(std::move(*second).execute(fails("second")).failed());
    CHECK(clean(bytes(a, 0, 16)));
    CHECK(clean(bytes(c, 0, 4)));
    CHECK(carried(bytes(c, 4, 16)).message() == "second");
  }
  second.reset();
  CHECK_FALSE(stream.show().inside());
}

TEST_CASE_FIXTURE(Scopes, "E9: the window and the listener hear of every scope, innermost first") {
  const BufferId y = buffer("y");
  stream.open_window();
  within(stream, {bytes(y, 0, 16)}, {}, [&](ScopeServer& inside) {
    CHECK(over(inside, {bytes(y, 0, 4)}).execute(fails("inner")).failed());
    CHECK(over(inside, {bytes(y, 4, 8)}).execute(succeeds).executed_cleanly());
  });
  CHECK(stream.log.order() ==
        std::vector<Heard>{Heard::store_entered,                             // outer
                           Heard::store_entered, Heard::window_failed,       // first inner
                           Heard::store_failed, Heard::listener,             //
                           Heard::store_entered, Heard::window_recorded,     // second inner
                           Heard::store_released,                            //
                           Heard::window_recorded, Heard::store_released});  // outer
}

}  // namespace refrain
