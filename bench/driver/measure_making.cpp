// What an executable costs before its first replay and between replays: instantiating, uploading,
// the launch that follows, other parameters, device memory.
#include "measure.hpp"

namespace refrain::bench {
namespace {

using Clock = std::chrono::steady_clock;

/// The durations of one launch.
struct LaunchTimes {
  std::vector<Nanoseconds> enqueued;
  std::vector<Nanoseconds> ended;

  void take(const Rig& rig, const Executable& executable, bool counts) {
    const auto start = Clock::now();
    must(rig.cu().cuGraphLaunch(executable.get(), rig.stream()), "cuGraphLaunch");
    const auto returned = Clock::now();
    rig.synchronize(rig.stream());
    const auto end = Clock::now();
    if (!counts) return;
    enqueued.push_back(between(start, returned));
    ended.push_back(between(start, end));
  }

  void report_as(Report& report, const std::string& what, const std::string& shape) {
    report.add(what, shape, "idle", "enqueue", std::move(enqueued));
    report.add(what, shape, "idle", "enqueue and sync", std::move(ended));
  }
};

/// How much device memory is free.
std::int64_t free_memory(const Rig& rig) {
  std::size_t free = 0;
  std::size_t total = 0;
  must(rig.cu().cuMemGetInfo_v2(&free, &total), "cuMemGetInfo");
  return static_cast<std::int64_t>(free);
}

}  // namespace

void measure_making(const Rig& rig, const Shape& shape, const Effort& effort, Report& report) {
  const ShapedGraph graph = build(rig, shape, 0);
  std::vector<Nanoseconds> instantiated;
  std::vector<Nanoseconds> uploads;
  std::vector<Nanoseconds> uploaded;
  LaunchTimes cold;
  LaunchTimes warm;
  effort.spend([&](bool counts) {
    const auto start = Clock::now();
    const Executable without = instantiate(rig, graph.graph.get());
    if (counts) instantiated.push_back(between(start, Clock::now()));
    cold.take(rig, without, counts);

    const Executable with = instantiate(rig, graph.graph.get());
    const auto before = Clock::now();
    must(rig.cu().cuGraphUpload(with.get(), rig.stream()), "cuGraphUpload");
    const auto returned = Clock::now();
    rig.synchronize(rig.stream());
    const auto after = Clock::now();
    if (counts) {
      uploads.push_back(between(before, returned));
      uploaded.push_back(between(before, after));
    }
    warm.take(rig, with, counts);
  });
  const std::string name = shape.name();
  report.add("instantiate", name, "idle", "the call", std::move(instantiated));
  report.add("upload", name, "idle", "enqueue", std::move(uploads));
  report.add("upload", name, "idle", "enqueue and sync", std::move(uploaded));
  cold.report_as(report, "first launch, no upload", name);
  warm.report_as(report, "first launch, uploaded", name);
}

void measure_updates(const Rig& rig, const Shape& shape, const Effort& effort, Report& report) {
  const ShapedGraph graph = build(rig, shape, 0);
  const ShapedGraph other = build(rig, shape, 1);
  const Executable executable = instantiate(rig, graph.graph.get());
  const NodeParameters parameters[2] = {{rig, 0}, {rig, 1}};
  CUgraphNode middle = graph.nodes[graph.nodes.size() / 2];

  std::vector<Nanoseconds> node;
  LaunchTimes after_node;
  std::size_t round = 0;
  effort.spend([&](bool counts) {
    const auto start = Clock::now();
    must(rig.cu().cuGraphExecKernelNodeSetParams_v2(executable.get(), middle,
                                                    &parameters[++round % 2].get()),
         "cuGraphExecKernelNodeSetParams");
    if (counts) node.push_back(between(start, Clock::now()));
    after_node.take(rig, executable, counts);
  });

  std::vector<Nanoseconds> whole;
  LaunchTimes after_whole;
  effort.spend([&](bool counts) {
    CUgraph next = ++round % 2 == 0 ? graph.graph.get() : other.graph.get();
    CUgraphExecUpdateResultInfo result{};
    const auto start = Clock::now();
    must(rig.cu().cuGraphExecUpdate_v2(executable.get(), next, &result), "cuGraphExecUpdate");
    if (counts) whole.push_back(between(start, Clock::now()));
    after_whole.take(rig, executable, counts);
  });
  const std::string name = shape.name();
  report.add("update of one node", name, "idle", "the call", std::move(node));
  after_node.report_as(report, "launch after one node", name);
  report.add("update of the whole graph", name, "idle", "the call", std::move(whole));
  after_whole.report_as(report, "launch after the whole graph", name);
}

void measure_memory(const Rig& rig, const Shape& shape, Report& report) {
  // Several, because the driver takes memory from the device in large pieces.
  constexpr std::size_t kExecutables = 16;
  const ShapedGraph graph = build(rig, shape, 0);
  MemoryTaken taken{shape.name(), shape.nodes(), kExecutables};
  const std::int64_t before = free_memory(rig);
  {
    std::vector<Executable> executables;
    for (std::size_t index = 0; index < kExecutables; ++index) {
      executables.push_back(instantiate(rig, graph.graph.get()));
    }
    taken.instantiated = before - free_memory(rig);
    for (const Executable& executable : executables) {
      must(rig.cu().cuGraphUpload(executable.get(), rig.stream()), "cuGraphUpload");
    }
    rig.synchronize(rig.stream());
    taken.uploaded = before - free_memory(rig);
    for (const Executable& executable : executables) {
      must(rig.cu().cuGraphLaunch(executable.get(), rig.stream()), "cuGraphLaunch");
    }
    rig.synchronize(rig.stream());
    taken.launched = before - free_memory(rig);
  }
  taken.destroyed = before - free_memory(rig);
  report.add(std::move(taken));
}

}  // namespace refrain::bench
