// The calls that a library might make beside a launch, with the GPU idle: what each of them adds.
#include "measure.hpp"

namespace refrain::bench {
namespace {

using Clock = std::chrono::steady_clock;

/// Many calls a sample, because one is shorter than the clock.
template <class Call>
void measure_call(const Effort& effort, Report& report, const std::string& what, Call call) {
  constexpr int kCalls = 64;
  std::vector<Nanoseconds> each;
  effort.spend([&](bool counts) {
    const auto start = Clock::now();
    for (int index = 0; index < kCalls; ++index) call();
    if (counts) each.push_back(between(start, Clock::now()) / kCalls);
  });
  report.add(what, "", "idle", "one of 64 calls", std::move(each));
}

}  // namespace

void measure_small_calls(const Rig& rig, const Effort& effort, Report& report) {
  const cuda::DriverApi& cu = rig.cu();
  rig.synchronize(rig.stream());
  measure_call(effort, report, "reading the clock",
               [] { [[maybe_unused]] auto now = Clock::now(); });
  measure_call(effort, report, "cuCtxGetCurrent", [&] {
    CUcontext context = nullptr;
    must(cu.cuCtxGetCurrent(&context), "cuCtxGetCurrent");
  });
  measure_call(effort, report, "cuThreadExchangeCaptureMode", [&] {
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
    must(cu.cuThreadExchangeStreamCaptureMode(&mode), "cuThreadExchangeStreamCaptureMode");
  });
  measure_call(effort, report, "cuStreamIsCapturing", [&] {
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    must(cu.cuStreamIsCapturing(rig.stream(), &status), "cuStreamIsCapturing");
  });
  measure_call(effort, report, "cuStreamQuery",
               [&] { must(cu.cuStreamQuery(rig.stream()), "cuStreamQuery"); });
  measure_call(effort, report, "cuStreamSynchronize", [&] { rig.synchronize(rig.stream()); });

  const Event event = rig.event();
  std::vector<Nanoseconds> recorded;
  effort.spend([&](bool counts) {
    const auto start = Clock::now();
    must(cu.cuEventRecord(event.get(), rig.stream()), "cuEventRecord");
    if (counts) recorded.push_back(between(start, Clock::now()));
    rig.synchronize(rig.stream());
  });
  report.add("cuEventRecord", "", "idle", "enqueue", std::move(recorded));
  measure_call(effort, report, "cuEventQuery",
               [&] { must(cu.cuEventQuery(event.get()), "cuEventQuery"); });
  measure_call(effort, report, "cuEventSynchronize",
               [&] { must(cu.cuEventSynchronize(event.get()), "cuEventSynchronize"); });
  measure_call(effort, report, "event created, destroyed", [&] { const Event made = rig.event(); });
}

}  // namespace refrain::bench
