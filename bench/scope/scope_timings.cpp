// What it costs to open and settle a scope, and to launch with one, each against a floor that runs
// in the same rounds (floor.hpp, row.hpp). Measurements with goals beside them, never assertions.
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "crowd.hpp"
#include "refrain/device/stream_core.hpp"
#include "row.hpp"

namespace refrain::bench {
namespace {

using Scope = ExecuteScope<Stream>;

constexpr std::size_t kLive = 4096;
constexpr std::size_t kClaimed = 1000;

enum class Opens { over, launching };

/// How a body ends.
enum class Ends { clean, failed, thrown };

struct Thrown {};

/// What a row's scopes are like.
struct Kind {
  Opens opens = Opens::over;
  Ends ends = Ends::clean;
  std::size_t buffers = 1;
  bool whole = true;
  bool broken_input = false;
};

/// One scope as the library's own calls make it: a write set of the stream's pool, and a body that
/// is the floor's call. `launching` reads what it writes.
void open_and_settle(Crowd& crowd, std::size_t thread, const Kind& kind,
                     std::span<const BufferBinding> bindings, const Error& error) {
  Stream& stream = crowd.stream(thread);
  WriteSet writes = stream.write_set();
  for (const BufferBinding& each : bindings) writes.add(each);
  const auto body = [&](Stream&) -> Result<void> {
    near_empty();
    if (kind.ends == Ends::failed) return error;
    if (kind.ends == Ends::thrown) throw Thrown{};
    return {};
  };
  if (kind.opens == Opens::over) {
    Scope::over(stream, crowd.name(), std::move(writes), Where::here()).execute(body);
    return;
  }
  const std::array broken{crowd.broken()};
  const std::span<const BufferBinding> reads = kind.broken_input ? broken : bindings;
  Scope::launching(stream, crowd.name(), reads, std::move(writes), Where::here()).execute(body);
}

Work floor_of(Crowd& crowd, const Extent& extent, std::size_t buffers) {
  return [&crowd, calls = extent.calls, buffers](std::size_t thread) {
    for (std::size_t call = 0; call < calls; ++call) {
      crowd.floor().call(crowd.words(thread, call, buffers));
    }
  };
}

Work scopes_of(Crowd& crowd, const Extent& extent, const Kind& kind) {
  const Error error(ErrorKind::kernel_failed, "It fails on purpose.");
  return [&crowd, calls = extent.calls, kind, error](std::size_t thread) {
    for (std::size_t call = 0; call < calls; ++call) {
      const auto bindings = crowd.bindings(thread, call, kind.buffers, kind.whole);
      try {
        open_and_settle(crowd, thread, kind, bindings, error);
      } catch (const Thrown&) {
        // what the row wants
      }
    }
  };
}

void add_clean_scopes(Crowd& crowd, bool claims, Crew& crew, const Extent& extent) {
  for (const std::size_t threads : {1U, 2U}) {
    for (const Opens opens : {Opens::over, Opens::launching}) {
      for (const std::size_t buffers : {1U, 2U, 4U}) {
        for (const bool whole : {true, false}) {
          const Kind kind{opens, Ends::clean, buffers, whole, false};
          Row row;
          row.name =
              fmt::format("{}/{}/{}/{}/{}", opens == Opens::over ? "over" : "launching", buffers,
                          whole ? "whole" : "slice", threads == 1 ? "one_thread" : "two_threads",
                          claims ? "claims" : "no_claim");
          row.calls = extent.calls;
          row.floor = {floor_of(crowd, extent, buffers), threads, {}};
          row.subject = {scopes_of(crowd, extent, kind), threads, {}};
          row.allocates_nothing = true;
          if (threads == 2) {
            row.base = Subject{row.subject.work};
            row.goal = 1.5;
          } else if (!claims && buffers != 2) {
            row.goal = buffers == 1 ? 1.5 : 1.0;
          }
          add(row, crew, extent);
        }
      }
    }
  }
}

void add_other_exits(Crowd& crowd, Crew& crew, const Extent& extent) {
  const auto row = [&](const char* name, Kind kind) {
    for (const std::size_t buffers : {1U, 4U}) {
      kind.buffers = buffers;
      Row added;
      added.name = fmt::format("{}/{}", name, buffers);
      added.calls = extent.calls;
      added.floor.work = floor_of(crowd, extent, buffers);
      added.subject = {scopes_of(crowd, extent, kind), 1, [&crowd] { crowd.mend(); }};
      added.allocates_nothing = true;
      add(added, crew, extent);
    }
  };
  row("failed", {Opens::over, Ends::failed});
  row("skipped", {Opens::launching, Ends::clean, 1, true, true});
  row("thrown", {Opens::over, Ends::thrown});
}

/// A launch made on the backend itself, with everything looked up before.
class DirectLaunch {
 public:
  DirectLaunch(Crowd& crowd, const View<float>& in, const View<float>& out) : crowd_(crowd) {
    const PackedArguments<In<float>, Out<float>, std::uint32_t> packed(in, out, 7U);
    block_.assign(packed.block().begin(), packed.block().end());
    for (const StagedArgument& argument : packed.views()) {
      const Allocation& of = *crowd.device().core()->resolve(argument.binding).value();
      const std::uint64_t address = of.address() + argument.binding.range.begin;
      std::memcpy(block_.data() + argument.offset, &address, sizeof(address));
      view_bytes_.push_back(argument.binding.range.size());
    }
  }

  void call() const {
    const BoundKernel node{crowd_.kernel().loaded().code.get(), grid(Crowd::kFloats), block_,
                           view_bytes_};
    BackendStream& stream = *crowd_.stream(0).core().backend;
    static_cast<void>(crowd_.device().core()->backend().issue(stream, node, 0));
  }

 private:
  Crowd& crowd_;
  std::vector<std::byte> block_;
  std::vector<std::uint64_t> view_bytes_;
};

/// A launch as a program makes it, against one without a scope.
void add_launch(Crowd& crowd, bool claims, Crew& crew, const Extent& extent) {
  const auto views = [&crowd](std::size_t call) {
    const auto two = crowd.bindings(0, call, 2, true);
    return std::pair(View<float>(two[0]), View<float>(two[1]));
  };
  Row row;
  row.name = fmt::format("launch/over_backend/{}", claims ? "claims" : "no_claim");
  row.calls = extent.calls;
  const auto [in, out] = views(0);
  row.floor.work = [direct = std::make_shared<DirectLaunch>(crowd, in, out),
                    calls = extent.calls](std::size_t) {
    for (std::size_t call = 0; call < calls; ++call) direct->call();
  };
  row.subject.work = [&crowd, views, calls = extent.calls](std::size_t) {
    for (std::size_t call = 0; call < calls; ++call) {
      const auto [from, to] = views(call);
      crowd.stream(0).launch(crowd.kernel(), grid(Crowd::kFloats), from, to, 7U);
    }
  };
  row.allocates_nothing = true;
  add(row, crew, extent);
}

/// The look at the inputs and the scope around a replay, as Instance::replay makes them, over as
/// many buffers as the graph would have.
class ReplayScope {
 public:
  ReplayScope(Crowd& crowd, std::size_t buffers) : crowd_(crowd) {
    for (std::size_t at = 0; at < buffers; ++at) {
      (at % 2 == 0 ? reads_ : writes_).push_back(crowd.buffers()[at].view().binding());
    }
    table().reserve(writes_.size());
    table().watch(reads_);
    table().watch(writes_);
  }

  void call() {
    Stream& stream = crowd_.stream(0);
    if (!table().still_bare(seen_bare_)) seen_bare_ = table().seen_bare(reads_, writes_);
    if (stream.inputs_failure(reads_, {}, FailureId{}, seen_bare_)) return;
    const std::span<const BufferBinding> unrun = writes_;
    Scope::over(stream, crowd_.name(), WriteSet::borrowed(writes_), Where::here(),
                ReplayTerms{reads_, &unrun, seen_bare_})
        .execute([](Stream&) -> Result<void> {
          near_empty();
          return {};
        });
  }

 private:
  [[nodiscard]] FailureTable& table() const { return crowd_.device().core()->table(); }

  Crowd& crowd_;
  std::vector<BufferBinding> reads_;
  std::vector<BufferBinding> writes_;
  FailureTable::Version seen_bare_ = 0;
};

void add_replay_scope(Crowd& crowd, bool claims, Crew& crew, const Extent& extent) {
  // Fewer calls, because where a goal is missed a call may take as many microseconds.
  const std::size_t calls = std::max<std::size_t>(extent.calls / 64, 1);
  const auto scopes = [&](std::size_t buffers) -> Work {
    return [scope = std::make_shared<ReplayScope>(crowd, buffers), calls](std::size_t) {
      for (std::size_t call = 0; call < calls; ++call) scope->call();
    };
  };
  const auto row = [&](std::size_t buffers) {
    Row made;
    made.name = fmt::format("replay_scope/{}/{}", buffers, claims ? "claims" : "no_claim");
    made.calls = calls;
    made.floor.work = [&crowd, calls](std::size_t) {
      for (std::size_t call = 0; call < calls; ++call) crowd.floor().call(crowd.words(0, call, 8));
    };
    made.subject.work = scopes(buffers);
    made.allocates_nothing = true;
    return made;
  };
  add(row(10), crew, extent);
  Row many = row(10'000);
  many.base = Subject{scopes(10)};
  many.goal = 1.5;  // P5: it does not grow; the rest is room for caches
  add(many, crew, extent);
}

int run(const Extent& extent) {
  Crew crew;
  Crowd clean(kLive, 0);
  Crowd claimed(kLive, kClaimed);
  Crowd one_claim(kLive, 1);  // for skips: the input that is broken, and nothing else
  Crowd wide(10'000 + 2, 0);
  Crowd wide_claimed(10'000 + kClaimed, kClaimed);
  add_clean_scopes(clean, false, crew, extent);
  add_clean_scopes(claimed, true, crew, extent);
  add_other_exits(one_claim, crew, extent);
  add_launch(clean, false, crew, extent);
  add_launch(claimed, true, crew, extent);
  add_replay_scope(wide, false, crew, extent);
  add_replay_scope(wide_claimed, true, crew, extent);
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}

}  // namespace
}  // namespace refrain::bench

int main(int argc, char** argv) {
  CLI::App app("Times scopes against floors. Takes Google Benchmark's options too.");
  app.allow_extras();
  refrain::bench::Extent extent;
  std::string json;
  app.add_option("--rounds", extent.rounds, "how many rounds a row has")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--calls", extent.calls, "how many calls each half of a round has")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--json", json, "write the figures to this file too");
  CLI11_PARSE(app, argc, argv);

  std::vector<std::string> words{argv[0], "--benchmark_counters_tabular=true"};
  if (!json.empty()) {
    words.push_back("--benchmark_out=" + json);
    words.emplace_back("--benchmark_out_format=json");
  }
  for (const std::string& word : app.remaining()) words.push_back(word);
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  int count = static_cast<int>(arguments.size());
  benchmark::Initialize(&count, arguments.data());
  if (benchmark::ReportUnrecognizedArguments(count, arguments.data())) return 2;
  try {
    return refrain::bench::run(extent);
  } catch (const std::exception& error) {
    fmt::print(stderr, "scope_timings: {}\n", error.what());
    return 1;
  }
}
