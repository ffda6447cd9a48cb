// Every driver call of a program that uses most of the device fails once, each in a run of its own.
// Whatever fails, the first error names that call, what is left works, and nothing is left behind.
#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "driver_api.hpp"
#include "gpu.hpp"
#include "temporary_folder.hpp"

namespace refrain::test {
namespace {

/// The calls whose refusal leaves a thing behind that nobody can destroy.
const std::set<std::string> kDestroys{
    "cuMemFree_v2",      "cuMemFreeHost",      "cuEventDestroy_v2", "cuStreamDestroy_v2",
    "cuGraphDestroy",    "cuGraphExecDestroy", "cuLibraryUnload",   "cuDevicePrimaryCtxRelease_v2",
    "cuCtxPopCurrent_v2"};

/// What went wrong in one run, in order.
class Errors {
 public:
  template <class T>
  bool ok(const Result<T>& result) {
    if (!result.ok()) all_.push_back(result.error());
    return result.ok();
  }
  template <class T>
  bool ok(const ScopedOutcome<T>& outcome) {
    if (outcome.failed()) all_.push_back(outcome.error());
    return outcome.executed_cleanly();
  }
  [[nodiscard]] const std::vector<Error>& all() const { return all_; }

 private:
  std::vector<Error> all_;
};

/// Native work that leaves its view as it is, through its workspace.
auto library_work(const cuda::DriverApi& api) {
  return [&api](const NativeCall& call, DeviceSpan<float> all) -> Result<void> {
    const auto stream = static_cast<CUstream>(call.stream);
    const auto address = reinterpret_cast<CUdeviceptr>(all.address);
    const auto room = reinterpret_cast<CUdeviceptr>(call.workspace.address);
    CUresult code = api.cuMemcpyDtoDAsync_v2(room, address, call.workspace.size, stream);
    if (code == CUDA_SUCCESS) {
      code = api.cuMemcpyDtoDAsync_v2(address, room, call.workspace.size, stream);
    }
    if (code == CUDA_SUCCESS) return {};
    return Error(ErrorKind::kernel_failed, "cuMemcpyDtoDAsync: " + std::to_string(code) + ".");
  };
}

/// The program. What it cannot get it does without; answers what it read at the end, if it did.
std::optional<std::vector<float>> run(const cuda::Device& device, const cuda::DriverApi& api,
                                      const std::string& path, Errors& errors) {
  auto stream = device.stream();
  auto side = device.stream();
  auto x = device.buffer<float>("x", Gpu::kCount, Role::input);
  auto y = device.buffer<float>("y", Gpu::kCount, Role::output);
  auto state = device.buffer<float>("state", Gpu::kCount, Role::state);
  auto map = device.kernel<Map>("map");
  auto update = device.kernel<Update>("update");
  // All of them are asked for, whatever becomes of the first.
  const std::array<bool, 7> there{errors.ok(stream), errors.ok(side),  errors.ok(x),
                                  errors.ok(y),      errors.ok(state), errors.ok(map),
                                  errors.ok(update)};
  if (std::find(there.begin(), there.end(), false) != there.end()) return std::nullopt;

  // Eager work on two streams, with the program's own in between.
  errors.ok(stream->write(*x, all(1)));
  errors.ok(stream->launch(*map, grid(Gpu::kCount), *x, *y, Gpu::kCount));
  errors.ok(stream->host<InOut<float>>(
      {"own"}, [](std::span<float> all) { all[0] += 1; }, *y));
  errors.ok(stream->native<InOut<float>>({"library", 64}, library_work(api), *y));
  const Result<Event> event = stream->record_event();
  if (errors.ok(event) && errors.ok(side->wait(*event))) {
    errors.ok(side->launch(*update, grid(Gpu::kCount), *y, Gpu::kCount));
    const Result<Event> after = side->record_event();
    if (errors.ok(after)) errors.ok(after->wait());
  }
  errors.ok(stream->read(*y));

  // Native work, recorded, replayed and bound anew.
  Result<OpenWindow> calls = stream->record();
  if (!errors.ok(calls)) return std::nullopt;
  errors.ok(stream->native<InOut<float>>({"library", 64}, library_work(api), *y));
  const Result<Recording> called = calls->seal();
  if (!errors.ok(called)) return std::nullopt;
  {
    const Result<Plan> plan = Plan::prepare(device, called->graph());
    Result<Instance> step = errors.ok(plan) ? plan->instance() : plan.error();
    if (!errors.ok(step)) return std::nullopt;
    for (const Buffer<float>* const in : std::array<const Buffer<float>*, 2>{&*y, &*x}) {
      if (errors.ok(step->bind("y", *in))) errors.ok(step->replay(*stream));
    }
  }

  // Recorded, sealed, saved, loaded, bound, replayed, bound anew, reset.
  Result<OpenWindow> window = stream->record();
  if (!errors.ok(window)) return std::nullopt;
  errors.ok(stream->launch(*map, grid(Gpu::kCount), *x, *y, Gpu::kCount));
  errors.ok(stream->launch(*update, grid(Gpu::kCount), *state, Gpu::kCount));
  errors.ok(stream->fill(y->view(0, 4), 0.0F));
  errors.ok(stream->write(y->view(4, 4), std::vector<float>(4, 8)));
  const Result<Recording> recording = window->seal();
  if (!errors.ok(recording) || !errors.ok(save(recording->graph(), path))) return std::nullopt;
  const Result<Plan> plan = load(device, path);
  if (!errors.ok(plan)) return std::nullopt;
  Result<Instance> step = plan->instance();
  const Result<Buffer<float>> other = device.buffer<float>("other", Gpu::kCount);
  if (!errors.ok(step) || !errors.ok(other)) return std::nullopt;
  errors.ok(stream->write(*other, all(10)));
  for (const Buffer<float>* const in : std::array<const Buffer<float>*, 2>{&*x, &*other}) {
    if (!errors.ok(step->bind("x", *in))) continue;
    errors.ok(step->replay(*stream));
  }
  errors.ok(step->reset(*stream));
  errors.ok(step->bind("x", *other));
  errors.ok(step->replay(*stream));
  const auto view = step->view<float>("state");
  if (!errors.ok(view)) return std::nullopt;
  const Result<std::vector<float>> read = stream->read(*view);
  if (!errors.ok(read)) return std::nullopt;
  errors.ok(stream->sync());
  return *read;
}

struct Run {
  std::vector<Error> errors;
  std::optional<std::vector<float>> read;
  std::map<std::string, unsigned> calls;
};

/// One run, in which the `nth` call of `function` is refused.
Run run_with(const cuda::DriverApi& api, const std::string& path, const std::string& function,
             unsigned nth) {
  const sim::Control* const control = sim::control(REFRAIN_SIMCUDA);
  Run result;
  Errors errors;
  control->clear_journal();
  if (nth != 0) control->fault(function.c_str(), nth, 999, sim::Effect::refuse);
  {
    const Result<cuda::Device> device = cuda::Device::open({.driver = {REFRAIN_SIMCUDA}});
    if (errors.ok(device) && errors.ok(device->add_image(test_image()))) {
      result.read = run(*device, api, path, errors);
      const bool used_up = control->faults_left() == 0;
      // Nothing fails any more, so nothing is in the way of a second try.
      if (nth != 0 && used_up) {
        Errors again;
        const auto second = run(*device, api, path, again);
        for (const Error& error : again.all()) FAIL_CHECK(error.text());
        CHECK(second == all(1));
      }
    }
  }
  std::vector<sim::JournalEntry> entries(control->journal(nullptr, 0));
  control->journal(entries.data(), entries.size());
  for (const sim::JournalEntry& entry : entries) ++result.calls[entry.function];
  control->clear_faults();
  result.errors = errors.all();
  return result;
}

/// The name as errors tell it.
std::string told(std::string function) {
  const std::size_t version = function.rfind("_v");
  return version == std::string::npos ? function : function.substr(0, version);
}

}  // namespace

TEST_CASE(
    "B34 B35: each driver call failing once is told by name, mended by a second try, and leaves "
    "nothing") {
  const Gpu bodies;  // keeps the driver, and the kernels' bodies
  const cuda::Driver driver = cuda::Driver::open({REFRAIN_SIMCUDA}).value();
  const cuda::DriverApi& api = driver.api();
  const TemporaryFolder folder;
  const std::string path = folder.file("step.refrain").string();
  std::string before = Gpu::in_driver();
  const Run clean = run_with(api, path, "", 0);
  for (const Error& error : clean.errors) FAIL_CHECK(error.text());
  REQUIRE(clean.read == all(1));
  REQUIRE(Gpu::in_driver() == before);
  unsigned told_of = 0;
  unsigned runs = 0;
  for (const auto& each : clean.calls) {
    const std::string& function = each.first;
    const unsigned calls = each.second;
    if (function == "cuGetProcAddress_v2") continue;  // its error names what it did not find
    for (unsigned nth = 1; nth <= calls; ++nth) {
      CAPTURE(function);
      CAPTURE(nth);
      const Run broken = run_with(api, path, function, nth);
      ++runs;
      if (!broken.errors.empty()) {
        ++told_of;
        const std::string text = broken.errors.front().text();
        CHECK_MESSAGE(text.find(told(function)) != std::string::npos, text);
      } else {
        CHECK(broken.read == all(1));
      }
      if (!kDestroys.contains(function)) CHECK(Gpu::in_driver() == before);
      before = Gpu::in_driver();
    }
  }
  bodies.leaves_something =
      true;  // what could not be destroyed, because a destruction was refused, is still there
  MESSAGE(runs << " runs, " << told_of << " of them with an error");
  CHECK(told_of > 50);
}

}  // namespace refrain::test
