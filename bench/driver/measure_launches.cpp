// Launches as a replay makes them. The GPU is in one of three states: nothing to do; earlier work
// in the same stream; work in another stream. Busy means a kernel that spins: a sample counts only
// if it still ran afterwards.
#include "measure.hpp"

namespace refrain::bench {
namespace {

using Clock = std::chrono::steady_clock;

template <class Launch>
void measure_idle(const Rig& rig, const Effort& effort, Report& report, const std::string& what,
                  const std::string& shape, Launch launch) {
  std::vector<Nanoseconds> enqueued;
  std::vector<Nanoseconds> ended;
  effort.spend([&](bool counts) {
    const auto start = Clock::now();
    launch();
    const auto returned = Clock::now();
    rig.synchronize(rig.stream());
    const auto end = Clock::now();
    if (!counts) return;
    enqueued.push_back(between(start, returned));
    ended.push_back(between(start, end));
  });
  report.add(what, shape, "idle", "enqueue", std::move(enqueued));
  report.add(what, shape, "idle", "enqueue and sync", std::move(ended));
}

template <class Launch>
void measure_busy(const Rig& rig, const Effort& effort, Report& report, const std::string& what,
                  const std::string& shape, CUstream busy, const std::string& state,
                  Launch launch) {
  constexpr std::chrono::microseconds kSpin{2000};
  constexpr std::size_t kBurst = 16;
  const Event spun = rig.event();
  std::vector<Nanoseconds> enqueued;
  Effort bursts = effort;
  bursts.samples = effort.samples / kBurst + 1;
  bursts.spend([&](bool counts) {
    rig.launch_spin(busy, kSpin);
    must(rig.cu().cuEventRecord(spun.get(), busy), "cuEventRecord");
    std::vector<Nanoseconds> burst;
    const auto first = Clock::now();
    while (burst.size() < kBurst && Clock::now() - first < kSpin / 2) {
      const auto start = Clock::now();
      launch();
      burst.push_back(between(start, Clock::now()));
    }
    const CUresult spinning = rig.cu().cuEventQuery(spun.get());
    if (spinning != CUDA_ERROR_NOT_READY) must(spinning, "cuEventQuery");
    rig.synchronize(busy);
    rig.synchronize(rig.stream());
    if (counts && spinning == CUDA_ERROR_NOT_READY) {
      enqueued.insert(enqueued.end(), burst.begin(), burst.end());
    }
  });
  report.add(what, shape, state, "enqueue", std::move(enqueued));
}

/// Many launches behind each other, so that what the GPU itself takes shows.
template <class Launch>
void measure_back_to_back(const Rig& rig, const Effort& effort, Report& report,
                          const std::string& what, const std::string& shape, Launch launch) {
  constexpr int kLaunches = 32;
  std::vector<Nanoseconds> each;
  effort.spend([&](bool counts) {
    const auto start = Clock::now();
    for (int index = 0; index < kLaunches; ++index) launch();
    rig.synchronize(rig.stream());
    if (counts) each.push_back(between(start, Clock::now()) / kLaunches);
  });
  report.add(what, shape, "32 back to back", "one of them", std::move(each));
}

template <class Launch>
void measure_launch(const Rig& rig, const Effort& effort, Report& report, const std::string& what,
                    const std::string& shape, Launch launch) {
  rig.synchronize(rig.stream());
  measure_idle(rig, effort, report, what, shape, launch);
  measure_busy(rig, effort, report, what, shape, rig.stream(), "own stream busy", launch);
  measure_busy(rig, effort, report, what, shape, rig.other_stream(), "other stream busy", launch);
  measure_back_to_back(rig, effort, report, what, shape, launch);
}

}  // namespace

void measure_kernel_launch(const Rig& rig, const Effort& effort, Report& report) {
  measure_launch(rig, effort, report, "kernel launch", "", [&] { rig.launch_empty(rig.stream()); });
}

void measure_graph_launch(const Rig& rig, const Shape& shape, const Effort& effort,
                          Report& report) {
  const ShapedGraph graph = build(rig, shape, 0);
  const Executable executable = instantiate(rig, graph.graph.get());
  must(rig.cu().cuGraphUpload(executable.get(), rig.stream()), "cuGraphUpload");
  measure_launch(rig, effort, report, "graph launch", shape.name(), [&] {
    must(rig.cu().cuGraphLaunch(executable.get(), rig.stream()), "cuGraphLaunch");
  });
}

}  // namespace refrain::bench
