// Rule E10: work that fails after it was issued. The table keeps no list of what was issued;
// whoever does walks it for the table, as the small ledger here does.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "scope/scopes_fixture.hpp"

namespace refrain {
namespace {

using namespace test;

struct Issued {
  Bindings reads;
  Bindings writes;
  bool poisoned = false;  // it has not begun, and must not
};

/// What a device keeps of the work that it was given, in issue order.
struct Ledger {
  std::vector<Issued> all;

  /// Runs `work` in a scope, which exits cleanly, and notes it.
  void issue(ScopeServer& stream, Issued work) {
    const auto outcome = launching(stream, work.reads, work.writes).execute(succeeds);
    REQUIRE(outcome.executed_cleanly());
    all.push_back(std::move(work));
  }
  /// Work number `which` turns out to have failed.
  FailureId fails_late(FailureTable& table, std::size_t which, std::string message) {
    return table.claim_late(
        broken(std::move(message)), intern_kernel_name("late"), StreamId(7), at_line(9),
        all[which].writes, [&](LateClaim& late, std::span<const FailureTable::Open> open) {
          const Skip skip{intern_kernel_name("later"), StreamId(7), at_line(11), {}, {}, 0};
          for (std::size_t later = which + 1; later < all.size(); ++later) {
            if (late.passes_on(skip, all[later].reads, all[later].writes)) {
              all[later].poisoned = true;
            }
          }
          for (const FailureTable::Open& each : open) {
            if (late.passes_on(skip, each.scope->reads, each.scope->writes)) {
              each.scope->poisoned = late.failure().number;
              late.overrules(*each.scope);
            }
          }
        });
  }
};

}  // namespace

TEST_CASE_FIXTURE(Scopes, "E10: work that fails late claims what it wrote") {
  const BufferId y = buffer("y");
  Ledger ledger;
  ledger.issue(stream, {{}, {bytes(y, 0, 4), bytes(y, 8, 12)}});
  CHECK(clean(bytes(y, 0, 16)));
  const FailureId id = ledger.fails_late(table, 0, "late");
  CHECK(carried(bytes(y, 0, 4)).message() == "late");
  CHECK(carried(bytes(y, 8, 12)).failure() == id);
  CHECK(clean(bytes(y, 4, 8)));
  CHECK(table.story(id).find("\"late\" on stream 7 (model.cc:9): late") != std::string::npos);
}

TEST_CASE_FIXTURE(Scopes, "E10: bytes that later work has written are left alone") {
  const BufferId y = buffer("y");
  Ledger ledger;
  ledger.issue(stream, {{}, {bytes(y, 0, 16)}});
  ledger.issue(stream, {{}, {bytes(y, 4, 8)}});
  ledger.fails_late(table, 0, "late");
  CHECK(carried(bytes(y, 0, 4)).message() == "late");
  CHECK(clean(bytes(y, 4, 8)));
  CHECK(carried(bytes(y, 8, 16)).message() == "late");
}

TEST_CASE_FIXTURE(Scopes, "E10: what later work made of claimed bytes carries the same root") {
  const BufferId x = buffer("x");
  const BufferId y = buffer("y");
  const BufferId z = buffer("z");
  const BufferId free = buffer("free");
  Ledger ledger;
  ledger.issue(stream, {{}, {bytes(x, 0, 16)}});
  ledger.issue(stream, {{bytes(x, 3, 4)}, {bytes(y, 0, 8)}});
  ledger.issue(stream, {{bytes(y, 0, 16)}, {bytes(z, 0, 16)}});
  ledger.issue(stream, {{}, {bytes(y, 4, 8)}});  // mends a part of y after z was made
  ledger.issue(stream, {{bytes(y, 4, 8)}, {bytes(free, 0, 16)}});
  const FailureId root = ledger.fails_late(table, 0, "late");
  for (const BufferBinding& bad : {bytes(x, 0, 16), bytes(y, 0, 4), bytes(z, 0, 16)}) {
    CHECK(carried(bad).failure() == root);
  }
  CHECK(clean(bytes(y, 4, 16)));
  CHECK(clean(bytes(free, 0, 16)));
  // Who holds work back learns which of it must not run.
  CHECK(ledger.all[1].poisoned);
  CHECK(ledger.all[2].poisoned);
  CHECK_FALSE(ledger.all[3].poisoned);
  CHECK_FALSE(ledger.all[4].poisoned);
}

TEST_CASE_FIXTURE(Scopes, "E10: bytes that carry a failure already keep it") {
  const BufferId y = buffer("y");
  Ledger ledger;
  ledger.issue(stream, {{}, {bytes(y, 0, 16)}});
  fail(bytes(y, 4, 8), "earlier");
  ledger.fails_late(table, 0, "late");
  CHECK(carried(bytes(y, 0, 4)).message() == "late");
  CHECK(carried(bytes(y, 4, 8)).message() == "earlier");
  CHECK(carried(bytes(y, 8, 16)).message() == "late");
  CHECK(table.live_failures() == 2);
}

TEST_CASE_FIXTURE(Scopes, "E10: a failure that finds no byte to claim is gone") {
  const BufferId y = buffer("y");
  Ledger ledger;
  ledger.issue(stream, {{}, {bytes(y, 0, 16)}});
  ledger.issue(stream, {{}, {bytes(y, 0, 16)}});
  const FailureId id = ledger.fails_late(table, 0, "late");
  CHECK(static_cast<bool>(id));  // it still has a number for the log
  CHECK(clean(bytes(y, 0, 16)));
  CHECK(table.live_failures() == 0);
}

TEST_CASE_FIXTURE(Scopes, "E10: a later scope counts from its opening") {
  const BufferId y = buffer("y");
  Ledger ledger;
  ledger.issue(stream, {{}, {bytes(y, 0, 16)}});
  SUBCASE("and then succeeds") {
    over(stream, {bytes(y, 4, 8)}).execute([&](ScopeServer&) -> Result<void> {
      ledger.fails_late(table, 0, "late");
      CHECK(carried(bytes(y, 4, 8)).kind() == ErrorKind::torn_down);
      return {};
    });
    CHECK(clean(bytes(y, 4, 8)));
  }
  SUBCASE("and then fails") {
    over(stream, {bytes(y, 4, 8)}).execute([&](ScopeServer&) -> Result<void> {
      ledger.fails_late(table, 0, "late");
      return broken("later");
    });
    CHECK(carried(bytes(y, 4, 8)).message() == "later");
  }
  SUBCASE("also on another stream, and with a scope inside it") {
    ScopeServer other(table, StreamId(8));
    over(other, {bytes(y, 4, 6)}).execute([&](ScopeServer& inside) -> Result<void> {
      over(inside, {bytes(y, 6, 8)}).execute([&](ScopeServer&) -> Result<void> {
        ledger.fails_late(table, 0, "late");
        return {};
      });
      return {};
    });
    CHECK(clean(bytes(y, 4, 8)));
  }
  SUBCASE("also when it skipped") {
    const BufferId x = buffer("x");
    fail(bytes(x, 0, 16), "root");
    CHECK(launching(stream, {bytes(x, 0, 16)}, {bytes(y, 4, 8)}).execute(succeeds).skipped());
    ledger.fails_late(table, 0, "late");
    CHECK(carried(bytes(y, 4, 8)).message() == "root");
  }
  CHECK(carried(bytes(y, 0, 4)).message() == "late");
  CHECK(carried(bytes(y, 8, 16)).message() == "late");
}

TEST_CASE_FIXTURE(Scopes,
                  "E10: bytes that nobody wrote are claimed by the work that was to write them") {
  // What later work was to make of the failed bytes may never have been written at all.
  const BufferId x = buffer("x");
  const BufferId y = buffer("y", 16, true);
  table.claim_late(broken("late"), {}, StreamId(7), {}, Bindings{bytes(x, 0, 16)},
                   [&](LateClaim& late, std::span<const FailureTable::Open>) {
                     CHECK(late.passes_on({}, Bindings{bytes(x, 0, 1)}, Bindings{bytes(y, 0, 8)}));
                   });
  CHECK(carried(bytes(y, 0, 8)).message() == "late");
  CHECK(carried(bytes(y, 8, 16)).kind() == ErrorKind::unwritten);
}

TEST_CASE_FIXTURE(Scopes,
                  "E10: the walk learns the failure's number, and its claim grows and shrinks") {
  const BufferId x = buffer("x");
  const BufferId y = buffer("y");
  FailureId told;
  const auto passes = [](LateClaim& late, const Bindings& reads, const Bindings& writes) {
    return late.passes_on({}, reads, writes);
  };
  const FailureId id =
      table.claim_late(broken("late"), {}, StreamId(7), {}, Bindings{bytes(x, 0, 8)},
                       [&](LateClaim& late, std::span<const FailureTable::Open> open) {
                         told = late.failure();
                         CHECK(open.empty());
                         CHECK(passes(late, {bytes(y, 0, 16), bytes(x, 7, 8)}, {}));
                         CHECK_FALSE(passes(late, {bytes(y, 0, 16), bytes(x, 8, 16)}, {}));
                         CHECK_FALSE(passes(late, {}, {}));
                         CHECK(passes(late, {bytes(x, 0, 1)}, {bytes(y, 0, 16)}));
                         CHECK(passes(late, {bytes(y, 9, 10)}, {}));
                         CHECK_FALSE(passes(late, {}, {bytes(x, 0, 8), bytes(y, 0, 8)}));
                         CHECK_FALSE(passes(late, {bytes(x, 0, 16), bytes(y, 0, 8)}, {}));
                       });
  CHECK(told == id);
  CHECK(clean(bytes(x, 0, 16)));
  CHECK(clean(bytes(y, 0, 8)));
  CHECK(carried(bytes(y, 8, 16)).failure() == id);
}

TEST_CASE_FIXTURE(Scopes,
                  "E10: the path of a late failure can be read back, as that of a skip can") {
  const BufferId x = buffer("x");
  const BufferId y = buffer("y");
  Ledger ledger;
  ledger.issue(stream, {{}, {bytes(x, 0, 16)}});
  ledger.issue(stream, {{bytes(x, 3, 5)}, {bytes(y, 0, 4), bytes(y, 8, 12)}});
  ledger.fails_late(table, 0, "late");
  const auto report = table.report(Bindings{bytes(y, 0, 16)});
  REQUIRE(report.has_value());
  INFO(report->message());
  CHECK(report->message().find("skipped: \"later\" on stream 7 (model.cc:11) needed \"x\" [3, 5) "
                               "and would have written \"y\" [0, 4) and 1 more") !=
        std::string::npos);
}

TEST_CASE_FIXTURE(Scopes, "E10: an open scope that reads claimed bytes does not exit cleanly") {
  const BufferId x = buffer("x");
  const BufferId y = buffer("y");
  const BufferId free = buffer("free");
  Ledger ledger;
  ledger.issue(stream, {{}, {bytes(x, 0, 16)}});
  FailureId root;
  const auto body = [&](ScopeServer&) -> Result<void> {
    root = ledger.fails_late(table, 0, "late");
    return {};
  };
  SUBCASE("when it succeeds, what it wrote carries the late failure") {
    launching(stream, {bytes(free, 0, 1), bytes(x, 5, 6)}, {bytes(y, 0, 8)}).execute(body);
    CHECK(carried(bytes(y, 0, 8)).failure() == root);
  }
  SUBCASE("when it fails too, the late failure came first") {
    launching(stream, {bytes(x, 5, 6)}, {bytes(y, 0, 8)})
        .execute([&](ScopeServer& inside) -> Result<void> {
          REFRAIN_TRY(body(inside));
          return broken("its own");
        });
    CHECK(carried(bytes(y, 0, 8)).failure() == root);
  }
  SUBCASE("when it writes nothing there is nothing to claim") {
    launching(stream, {bytes(x, 5, 6)}, {}).execute(body);
    CHECK(clean(bytes(y, 0, 8)));
  }
  SUBCASE("one that reads other bytes exits as it would have") {
    launching(stream, {bytes(free, 0, 16)}, {bytes(y, 0, 8)}).execute(body);
    CHECK(clean(bytes(y, 0, 8)));
  }
  CHECK(clean(bytes(y, 8, 16)));
  CHECK(carried(bytes(x, 0, 16)).failure() == root);
}

TEST_CASE_FIXTURE(Scopes, "E10: a failure between looking at the inputs and opening is not lost") {
  const BufferId x = buffer("x");
  const BufferId y = buffer("y");
  Ledger ledger;
  ledger.issue(stream, {{}, {bytes(x, 0, 16)}});
  const Bindings reads{bytes(x, 8, 16)};
  REQUIRE_FALSE(static_cast<bool>(table.read_failure(stream.show(), reads)));
  FailureId root;
  SUBCASE("outermost") {
    root = ledger.fails_late(table, 0, "late");
    Scope::over(stream, intern_kernel_name("replay"), stream.writes(Bindings{bytes(y, 0, 16)}),
                at_line(12), ReplayTerms{reads})
        .execute(succeeds);
  }
  SUBCASE("in another scope's body") {
    over(stream, {bytes(y, 8, 16)}).execute([&](ScopeServer& inside) -> Result<void> {
      root = ledger.fails_late(table, 0, "late");
      Scope::over(inside, intern_kernel_name("replay"), stream.writes(Bindings{bytes(y, 0, 16)}),
                  at_line(12), ReplayTerms{reads})
          .execute(succeeds);
      return {};
    });
  }
  CHECK(carried(bytes(x, 0, 16)).failure() == root);
  CHECK(carried(bytes(y, 0, 16)).failure() == root);
}

// What another core has not seen yet cannot be had by waiting for it. A stream that is not attached
// while the failure looks stands for that: its scope is open, and nobody meets it.
TEST_CASE_FIXTURE(Scopes,
                  "E10: a failure that could not see an open scope is met where that ends") {
  const BufferId x = buffer("x");
  const BufferId y = buffer("y");
  Ledger ledger;
  ledger.issue(stream, {{}, {bytes(x, 0, 16)}});
  FailureId root;
  const auto fails_unseen = [&] {
    table.detach(stream.show());
    root = ledger.fails_late(table, 0, "late");
    table.attach(stream.show());
  };
  SUBCASE("it reads what is bad") {
    const auto outcome = launching(stream, {bytes(x, 8, 16)}, {bytes(y, 0, 16)})
                             .execute([&](ScopeServer&) -> Result<void> {
                               fails_unseen();
                               return {};
                             });
    CHECK(outcome.executed_cleanly());  // it ran, over bytes that were bad
    CHECK(carried(bytes(y, 0, 16)).failure() == root);
    CHECK(carried(bytes(x, 0, 16)).failure() == root);
  }
  SUBCASE("it writes what is bad anew") {
    const auto outcome =
        over(stream, {bytes(x, 0, 8), bytes(y, 0, 16)}).execute([&](ScopeServer&) -> Result<void> {
          fails_unseen();
          return {};
        });
    CHECK(outcome.executed_cleanly());
    CHECK(clean(bytes(x, 0, 8)));
    CHECK(carried(bytes(x, 8, 16)).failure() == root);
    CHECK(clean(bytes(y, 0, 16)));
  }
  SUBCASE("it hands its work over") {
    auto opened = launching(stream, {bytes(x, 8, 16)}, {bytes(y, 0, 16)});
    OpenScope& scope = opened.shown();
    const auto outcome = std::move(opened).execute([&](ScopeServer&) -> Result<void> {
      fails_unseen();
      REQUIRE(table.followed_since(scope));
      table.meet(stream.show(), scope);
      CHECK_FALSE(table.followed_since(scope));
      CHECK(scope.poisoned.load() == root.number);
      return Error(ErrorKind::skipped, root);  // as a ledger answers
    });
    CHECK(outcome.skipped());
    CHECK(carried(bytes(y, 0, 16)).failure() == root);
  }
  SUBCASE("it is its own, of work that was handed over") {
    auto opened = over(stream, {bytes(y, 0, 16)});
    OpenScope& scope = opened.shown();
    ledger.all.push_back({{}, {bytes(y, 0, 8)}});
    const auto outcome = std::move(opened).execute([&](ScopeServer&) -> Result<void> {
      scope.issued_from = 1;
      table.detach(stream.show());
      root = ledger.fails_late(table, 1, "its own");
      table.attach(stream.show());
      REQUIRE(table.followed_since(scope));
      return {};
    });
    CHECK(outcome.executed_cleanly());  // it was issued, and that is all that the scope knows
    CHECK(carried(bytes(y, 0, 8)).failure() == root);
    CHECK(clean(bytes(y, 8, 16)));
  }
}

TEST_CASE_FIXTURE(
    Scopes, "E10: work that fails while the scope that issued it is open is not healed by it") {
  const BufferId y = buffer("y");
  FailureId root;
  const auto outcome = over(stream, {bytes(y, 0, 16)}).execute([&](ScopeServer&) -> Result<void> {
    root = table.claim_late(broken("late"), {}, StreamId(7), {}, Bindings{bytes(y, 0, 8)},
                            [](LateClaim& late, std::span<const FailureTable::Open> open) {
                              REQUIRE(open.size() == 1);
                              late.overrules(*open[0].scope);
                            });
    return {};
  });
  CHECK(outcome.executed_cleanly());  // it was issued, and that is all that the scope knows
  CHECK(carried(bytes(y, 0, 8)).failure() == root);
  CHECK(clean(bytes(y, 8, 16)));
}

TEST_CASE_FIXTURE(Scopes,
                  "E10: a clean scope inside one that read claimed bytes does not mend it") {
  // E9 gives the bytes that both write back to the outer scope, which is bad by then.
  const BufferId x = buffer("x");
  const BufferId y = buffer("y");
  Ledger ledger;
  ledger.issue(stream, {{}, {bytes(x, 0, 16)}});
  FailureId root;
  launching(stream, {bytes(x, 5, 6)}, {bytes(y, 0, 12)})
      .execute([&](ScopeServer& inside) -> Result<void> {
        SUBCASE("it was open when the failure was found") {
          over(inside, {bytes(y, 4, 16)}).execute([&](ScopeServer&) -> Result<void> {
            root = ledger.fails_late(table, 0, "late");
            return {};
          });
        }
        SUBCASE("it was opened afterwards") {
          root = ledger.fails_late(table, 0, "late");
          over(inside, {bytes(y, 4, 16)}).execute(succeeds);
        }
        return {};
      });
  CHECK(carried(bytes(y, 0, 4)).failure() == root);
  CHECK(carried(bytes(y, 4, 12)).failure() == root);
  CHECK(clean(bytes(y, 12, 16)));
}

TEST_CASE_FIXTURE(Scopes,
                  "E10: a scope that read claimed bytes stays bad when the failure has gone") {
  const BufferId x = buffer("x");
  const BufferId y = buffer("y");
  Ledger ledger;
  ledger.issue(stream, {{}, {bytes(x, 0, 16)}});
  launching(stream, {bytes(x, 5, 6)}, {bytes(y, 0, 8)})
      .execute([&](ScopeServer& inside) -> Result<void> {
        ledger.fails_late(table, 0, "late");
        // The last bytes that carried it are mended before anything is put back.
        over(inside, {bytes(x, 0, 16), bytes(y, 0, 8)}).execute(succeeds);
        return {};
      });
  CHECK(clean(bytes(x, 0, 16)));
  CHECK_FALSE(clean(bytes(y, 0, 8)));
}

TEST_CASE_FIXTURE(Scopes, "E10, P2: a replay that is held back leaves its states alone") {
  const BufferId x = buffer("x");
  const BufferId y = buffer("y");
  const Bindings reads{bytes(x, 0, 4)};
  const Bindings fresh_list{bytes(y, 0, 4), bytes(y, 8, 12)};  // the rest of y is state
  const std::span<const BufferBinding> fresh = fresh_list;
  FailureId root;
  const auto fails = [&] {
    root = table.claim_late(broken("late"), {}, StreamId(7), {}, Bindings{bytes(x, 0, 16)},
                            [](LateClaim& late, std::span<const FailureTable::Open> open) {
                              for (const FailureTable::Open& each : open) {
                                if (late.passes_on({}, each.scope->reads, each.scope->writes,
                                                   each.scope->unrun_writes())) {
                                  each.scope->poisoned = late.failure().number;
                                  late.overrules(*each.scope);
                                }
                              }
                            });
  };
  const auto replay = [&](auto body) {
    return Scope::over(stream, intern_kernel_name("replay"),
                       stream.writes(Bindings{bytes(y, 0, 16)}), at_line(12),
                       ReplayTerms{reads, &fresh})
        .execute(body);
  };
  std::size_t told = 0;
  SUBCASE("found before it is shown, and it is not taken") {
    fails();
    told = stream.log.of(Heard::listener).size();
    const auto outcome =
        replay([&](ScopeServer&) -> Result<void> { return Error(ErrorKind::skipped, root); });
    REQUIRE(outcome.skipped());
    CHECK(outcome.failure() == root);
  }
  SUBCASE("found while it is open, and it is not taken") {
    told = stream.log.of(Heard::listener).size();
    const auto outcome = replay([&](ScopeServer&) -> Result<void> {
      fails();
      return Error(ErrorKind::skipped, root);
    });
    REQUIRE(outcome.skipped());
    CHECK(outcome.failure() == root);
  }
  SUBCASE("found while it is open, after it was taken") {
    told = stream.log.of(Heard::listener).size();
    const auto outcome = replay([&](ScopeServer&) -> Result<void> {
      fails();
      return {};
    });
    CHECK(outcome.executed_cleanly());
  }
  CHECK(stream.log.of(Heard::listener).size() == told);
  CHECK(carried(bytes(y, 0, 4)).failure() == root);
  CHECK(carried(bytes(y, 8, 12)).failure() == root);
  CHECK(clean(bytes(y, 4, 8)));
  CHECK(clean(bytes(y, 12, 16)));
}

TEST_CASE_FIXTURE(Scopes, "E10: a buffer that is gone is no longer there to be claimed") {
  const BufferId y = buffer("y");
  Ledger ledger;
  ledger.issue(stream, {{}, {bytes(y, 0, 16)}});
  table.remove(y);
  ledger.fails_late(table, 0, "late");
  CHECK(table.live_failures() == 0);
}

TEST_CASE_FIXTURE(Scopes,
                  "E10: a late failure lies beneath a mark, and a replay of that graph meets it") {
  const BufferId y = buffer("y");
  Ledger ledger;
  ledger.issue(stream, {{}, {bytes(y, 0, 16)}});
  const FailureId mark =
      table.mark(Bindings{bytes(y, 0, 8)}, Error(ErrorKind::not_replayed, "recorded, not replayed"),
                 StreamId(7), at_line(10));
  const FailureId late = ledger.fails_late(table, 0, "late");
  CHECK(carried(bytes(y, 8, 16)).failure() == late);
  CHECK(carried(bytes(y, 0, 8)).failure() == mark);  // C18: every reader meets the mark
  const auto beneath = table.read_failure(stream.show(), Bindings{bytes(y, 0, 8)}, mark);
  REQUIRE(static_cast<bool>(beneath));
  CHECK(beneath.id() == late);
}

}  // namespace refrain
