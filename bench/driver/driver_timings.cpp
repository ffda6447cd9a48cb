// What the CUDA driver's own calls cost on this machine, without refrain between: the figures that
// refrain's replays are compared with. Measurements, never assertions.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <functional>

#include "measure.hpp"

namespace refrain::bench {
namespace {

/// How ctest and scripts know that there was nothing to measure on.
constexpr int kNoDevice = 77;

int attribute(const Rig& rig, CUdevice_attribute which) {
  int value = 0;
  must(rig.cu().cuDeviceGetAttribute(&value, which, rig.device()), "cuDeviceGetAttribute");
  return value;
}

nlohmann::json describe(const Rig& rig) {
  nlohmann::json subject;
  subject["device"] = rig.driver().device_name(0).value();
  subject["simulated"] = rig.simulated();
  subject["compute_capability"] =
      fmt::format("{}.{}", attribute(rig, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
                  attribute(rig, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR));
  subject["multiprocessors"] = attribute(rig, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  subject["driver_version"] = cuda::version_text(rig.driver().version());
  subject["headers_version"] = cuda::version_text(CUDA_VERSION);
  subject["library"] = rig.driver().library();
  return subject;
}

void measure_all(const Rig& rig, const Effort& effort, Report& report) {
  report.subject = describe(rig);
  measure_small_calls(rig, effort, report);
  measure_kernel_launch(rig, effort, report);
  for (const Shape& shape : shapes()) measure_graph_launch(rig, shape, effort, report);
  for (const Shape& shape : shapes()) {
    measure_making(rig, shape, effort, report);
    measure_updates(rig, shape, effort, report);
    measure_memory(rig, shape, report);
  }
}

int run(const std::string& json, const Effort& effort) {
  Result<cuda::Driver> driver = cuda::Driver::open();
  if (!driver.ok()) {
    fmt::print(stderr, "driver_timings: nothing to measure on: {}\n", driver.error().text());
    return kNoDevice;
  }
  Report report;
  try {
    const Rig rig(*std::move(driver));
    measure_all(rig, effort, report);
  } catch (const BadResult& refused) {
    // What was measured before is worth keeping.
    report.failed("what comes after the last row", refused.what());
  }
  report.print();
  if (!json.empty()) report.write(json);
  return report.complete() ? 0 : 1;
}

}  // namespace
}  // namespace refrain::bench

int main(int argc, char** argv) {
  CLI::App app("Times the CUDA driver's own calls.");
  std::string json;
  refrain::bench::Effort effort;
  app.add_option("--json", json, "write the figures to this file too");
  app.add_option("--samples", effort.samples, "how many samples each figure has at most")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--seconds", effort.seconds, "how long each figure may take")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  try {
    return refrain::bench::run(json, effort);
  } catch (const std::exception& error) {
    fmt::print(stderr, "driver_timings: {}\n", error.what());
    return 1;
  }
}
