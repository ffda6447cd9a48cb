// One random program on two devices, this one and the host's: every call must end in the same way
// on both, every read must answer the same, and the same bytes must carry something at the end. The
// host device is held to the rules by the reference model; here CUDA is held to the host device.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <optional>
#include <random>

#include "driver_api.hpp"
#include "gpu.hpp"
#include "refrain/host/device.hpp"

namespace refrain::test {
namespace {

constexpr std::size_t kBuffers = 6;
constexpr std::size_t kStreams = 3;
constexpr std::size_t kInstances = 3;
constexpr std::uint64_t kPart = 8;  // elements; views begin and end at multiples

/// How something ended, for comparing.
std::string ended(const Error& error) { return "failed: " + std::string(name_of(error.kind())); }
template <class T>
std::string ended(const Result<T>& result) {
  return result.ok() ? "ok" : ended(result.error());
}
template <class T>
std::string ended(const ScopedOutcome<T>& outcome) {
  if (outcome.executed_cleanly()) return "ok";
  return outcome.skipped() ? "skipped" : ended(outcome.error());
}
std::string ended(const Result<std::vector<float>>& read) {
  if (!read.ok()) return ended(read.error());
  std::string all;
  for (const float each : *read) all += std::to_string(each) + " ";
  return all;
}

struct Part {
  std::size_t buffer = 0;
  std::uint64_t begin = 0;
  std::uint64_t count = 0;
};

/// One device and what the program has on it.
class Side {
 public:
  Side(Device on, const cuda::DriverApi* api)
      : api_(api),
        device_(std::move(on)),
        make_(device_.kernel<Make>("make").value()),
        map_(device_.kernel<Map>("map").value()),
        update_(device_.kernel<Update>("update").value()),
        join_(device_.kernel<Join>("join").value()) {
    for (std::size_t each = 0; each < kStreams; ++each) {
      streams_.push_back(device_.stream(StreamKind::worker).value());
    }
    for (std::size_t each = 0; each < kBuffers; ++each) renew(each);
  }

  void renew(std::size_t at) {
    buffers_.at(at).emplace(device_.buffer<float>("b" + std::to_string(at), Gpu::kCount).value());
  }
  [[nodiscard]] View<float> view(const Part& part) const {
    return buffers_.at(part.buffer)->view(part.begin, part.count);
  }
  [[nodiscard]] Stream& stream(std::size_t at) { return streams_.at(at); }

  // Work. Each says how its call ended.

  std::string make(std::size_t on, const Part& y, float value) {
    return ended(stream(on).launch(make_, grid(y.count), view(y), count(y), value));
  }
  std::string map(std::size_t on, const Part& x, const Part& y) {
    return ended(stream(on).launch(map_, grid(y.count), view(x), view(y), count(y)));
  }
  std::string update(std::size_t on, const Part& y) {
    return ended(stream(on).launch(update_, grid(y.count), view(y), count(y)));
  }
  std::string join(std::size_t on, const Part& a, const Part& b, const Part& y) {
    return ended(stream(on).launch(join_, grid(y.count), view(a), view(b), view(y), count(y)));
  }
  std::string copy(std::size_t on, const Part& x, const Part& y) {
    return ended(stream(on).copy(view(y), view(x)));
  }
  std::string fill(std::size_t on, const Part& y, float value) {
    return ended(stream(on).fill(view(y), value));
  }
  std::string write(std::size_t on, const Part& y, float value) {
    return ended(stream(on).write(view(y), std::vector<float>(y.count, value)));
  }
  std::string failed_write(std::size_t on, const Part& y) {
    stream(on).failed_write(view(y), Error(ErrorKind::kernel_failed, "It never came."));
    return "";
  }
  /// y = 2 x, by the program; or it fails, and then is waited for, since only that is told alike.
  std::string host(std::size_t on, const Part& x, const Part& y, bool fails) {
    stream(on).host<In<float>, Out<float>>(
        "own",
        [fails](std::span<const float> from, std::span<float> to) -> Result<void> {
          for (std::size_t i = 0; i < to.size(); ++i) to[i] = 2 * from[i];
          if (fails) return Error(ErrorKind::kernel_failed, "It broke.");
          return {};
        },
        view(x), view(y));
    return fails ? ended(stream(on).sync()) : "";
  }
  /// y = 2, by a library.
  std::string native(std::size_t on, const Part& y) {
    return ended(stream(on).native<Out<float>>(
        "library",
        [api = api_](const NativeCall& call, DeviceSpan<float> all) -> Result<void> {
          if (api == nullptr) {
            std::fill(all.address, all.address + all.size, 2.0F);
            return {};
          }
          const CUresult code =
              api->cuMemsetD32Async(reinterpret_cast<CUdeviceptr>(all.address), 0x40000000,
                                    all.size, static_cast<CUstream>(call.stream));
          if (code == CUDA_SUCCESS) return {};
          return Error(ErrorKind::device_refused, "cuMemsetD32Async: " + std::to_string(code));
        },
        view(y)));
  }
  std::string read(std::size_t on, const Part& x) { return ended(stream(on).read(view(x))); }
  std::string follow(std::size_t on, std::size_t other) {
    const Result<Event> event = stream(other).record_event();
    return event.ok() ? ended(stream(on).wait(*event)) : ended(event);
  }
  std::string sync(std::size_t on) { return ended(stream(on).sync()); }

  // Graphs.

  std::string begin(std::size_t on) {
    Result<OpenWindow> window = stream(on).record();
    if (window.ok()) window_.emplace(*std::move(window));
    return ended(window);
  }
  std::string seal(std::size_t into, bool on_its_own_memory) {
    if (!window_) return "none";
    const Result<Recording> sealed = window_->seal({.name = "random"});
    window_.reset();
    instances_.at(into).reset();
    if (!sealed.ok()) return ended(sealed);
    const auto prepared = [&]() -> Result<Instance> {
      if (!on_its_own_memory) return instance(*sealed);
      const Result<Plan> plan = Plan::prepare(device_, sealed->graph());
      if (!plan.ok()) return plan.error();
      return plan->instance();
    };
    Result<Instance> made = prepared();
    if (made.ok()) instances_.at(into).emplace(*std::move(made));
    return ended(made);
  }
  std::string bind(std::size_t of, std::size_t name, std::size_t to) {
    if (!instances_.at(of)) return "none";
    return ended(instances_.at(of)->bind("b" + std::to_string(name), *buffers_.at(to)));
  }
  std::string replay(std::size_t of, std::size_t on) {
    if (!instances_.at(of)) return "none";
    return ended(instances_.at(of)->replay(stream(on)));
  }
  std::string read_of(std::size_t of, std::size_t name, std::size_t on) {
    if (!instances_.at(of)) return "none";
    const auto found = instances_.at(of)->view<float>("b" + std::to_string(name));
    return found.ok() ? ended(stream(on).read(*found)) : ended(found.error());
  }

  /// What every part of every buffer holds or carries.
  std::string everything() {
    std::string all;
    for (Stream& each : streams_) all += ended(each.sync()) + "; ";
    for (std::size_t at = 0; at < kBuffers; ++at) {
      for (std::uint64_t begin = 0; begin < Gpu::kCount; begin += kPart) {
        const Part part{at, begin, kPart};
        const std::optional<Error> carried = device_.check(view(part));
        all += "b" + std::to_string(at) + "+" + std::to_string(begin) + ": " +
               (carried ? ended(*carried) : read(0, part)) + "\n";
      }
    }
    return all;
  }
  void drop_all() {
    window_.reset();
    for (auto& each : instances_) each.reset();
    for (auto& each : buffers_) each.reset();
    streams_.clear();
    CHECK(device_.live_failures() == 0);
  }

 private:
  static std::uint32_t count(const Part& part) { return static_cast<std::uint32_t>(part.count); }

  const cuda::DriverApi* api_;
  Device device_;
  Make make_;
  Map map_;
  Update update_;
  Join join_;
  std::vector<Stream> streams_;
  std::array<std::optional<Buffer<float>>, kBuffers> buffers_;
  std::optional<OpenWindow> window_;
  std::array<std::optional<Instance>, kInstances> instances_;
};

host::Device host_twin() {
  host::Device device;
  device.kernels().add<Make>("make", [](std::span<float> y, std::uint32_t, float value) {
    std::fill(y.begin(), y.end(), value);
  });
  device.kernels().add<Map>("map", [](std::span<const float> x, std::span<float> y, std::uint32_t) {
    std::transform(x.begin(), x.end(), y.begin(), [](float each) { return each + 1; });
  });
  device.kernels().add<Update>("update", [](std::span<float> y, std::uint32_t) {
    for (float& each : y) each += 1;
  });
  device.kernels().add<Join>("join", [](std::span<const float> a, std::span<const float> b,
                                        std::span<float> y, std::uint32_t) {
    std::transform(a.begin(), a.end(), b.begin(), y.begin(), std::plus<>());
  });
  return device;
}

/// Draws the program and runs each call on both sides. Answers where they differ.
class Twins {
 public:
  Twins(Side& host, Side& gpu, const sim::Control& control, std::uint64_t seed)
      : host_(host), gpu_(gpu), control_(control), random_(seed) {}

  std::string run(int calls) {
    for (int call = 0; call < calls && wrong_.empty(); ++call) step();
    if (wrong_.empty()) both("at the end", [](Side& side) { return side.everything(); });
    return wrong_;
  }
  [[nodiscard]] int ended_well() const { return well_; }
  [[nodiscard]] int replayed() const { return replayed_; }

 private:
  std::size_t below(std::size_t most) {
    return std::uniform_int_distribution<std::size_t>(0, most - 1)(random_);
  }
  Part part(std::uint64_t count) {
    const std::uint64_t places = (Gpu::kCount - count) / kPart + 1;
    return {below(kBuffers), kPart * below(places), count};
  }
  /// Such that work on both is the same in whatever order its elements come.
  Part apart(std::uint64_t count, std::initializer_list<Part> others) {
    Part made = part(count);
    const auto shifted = [&](const Part& other) {
      return other.buffer == made.buffer && other.begin != made.begin &&
             other.begin < made.begin + count && made.begin < other.begin + count;
    };
    while (std::any_of(others.begin(), others.end(), shifted)) made = part(count);
    return made;
  }
  float value() { return static_cast<float>(below(100)); }

  /// Lets the driver run nothing for now, so that work piles up and its order is the driver's
  /// choice.
  void hold() {
    if (!held_) control_.hold();
    held_ = true;
  }
  void release_before(const std::string& what) {
    const auto word = what.substr(0, what.find(' '));
    constexpr std::array kWaitFree{"make", "map",  "update", "join",   "copy",
                                   "fill", "host", "native", "follow", "record"};
    if (!held_ || std::find(kWaitFree.begin(), kWaitFree.end(), word) != kWaitFree.end()) return;
    control_.release();
    held_ = false;
  }

  /// What the two sides say of one call must be the same.
  std::string both(const std::string& what, const std::function<std::string(Side&)>& call) {
    release_before(what);
    const std::string there = call(host_);
    const std::string here = call(gpu_);
    log_ += what + ": " + there.substr(0, 60) + "\n";
    if (there != here) {
      wrong_ = log_ + "The host device says\n" + there + "\nand this one\n" + here;
    }
    if (there == "ok") ++well_;
    return there;
  }

  void work(std::size_t on) {
    const std::uint64_t count = kPart * (below(2) == 0 ? Gpu::kCount / kPart : 1 + below(4));
    const Part a = part(count);
    const Part b = part(count);
    const Part y = apart(count, {a, b});
    const float v = value();
    const std::string s = " on " + std::to_string(on) + " to b" + std::to_string(y.buffer);
    switch (below(8)) {
      case 0: both("make" + s, [&](Side& it) { return it.make(on, y, v); }); break;
      case 1: both("map" + s, [&](Side& it) { return it.map(on, a, y); }); break;
      case 2: both("update" + s, [&](Side& it) { return it.update(on, y); }); break;
      case 3: both("join" + s, [&](Side& it) { return it.join(on, a, b, y); }); break;
      case 4: both("copy" + s, [&](Side& it) { return it.copy(on, a, y); }); break;
      case 5: both("fill" + s, [&](Side& it) { return it.fill(on, y, v); }); break;
      case 6: both("native" + s, [&](Side& it) { return it.native(on, y); }); break;
      default: both("host" + s, [&](Side& it) { return it.host(on, a, y, false); }); break;
    }
  }

  /// All streams are in order again, and all buffers hold something.
  void mend(std::size_t on) {
    const float v = value();
    for (std::size_t each = 0; each < kStreams; ++each) {
      both("sync", [&](Side& it) { return it.sync(each); });
    }
    for (std::size_t each = 0; each < kBuffers; ++each) {
      both("write", [&](Side& it) { return it.write(on, {each, 0, Gpu::kCount}, v); });
    }
  }

  /// Work that piles up on all streams, each piece after all before it by nothing but events.
  void relay() {
    hold();
    for (int left = 6; left != 0; --left) {
      const std::size_t on = below(kStreams);
      work(on);
      for (std::size_t each = 0; each < kStreams; ++each) {
        if (each != on) both("follow", [&](Side& it) { return it.follow(each, on); });
      }
    }
  }

  void record(std::size_t on) {
    if (below(4) != 0) mend(on);
    both("record", [&](Side& it) { return it.begin(on); });
    for (std::size_t left = 1 + below(6); left != 0; --left) work(on);
    const std::size_t into = below(kInstances);
    const bool own = below(2) == 0;
    both("seal", [&](Side& it) { return it.seal(into, own); });
    if (!own) return;
    for (std::size_t each = 0; each < kBuffers; ++each) {
      const std::size_t to = below(kBuffers);
      both("bind", [&](Side& it) { return it.bind(into, each, to); });
    }
  }

  void step() {
    const std::size_t on = below(kStreams);
    const std::size_t other = below(kStreams);
    const std::size_t which = below(kInstances);
    const std::size_t name = below(kBuffers);
    const std::size_t to = below(kBuffers);
    const Part y = part(kPart * (1 + below(Gpu::kCount / kPart)));
    const float v = value();
    const std::size_t draw = below(100);
    if (draw < 3) return hold();
    if (draw < 6) return relay();
    if (draw < 37) return work(on);
    if (draw < 40) return mend(on);
    if (draw < 55) {
      both("follow", [&](Side& it) { return it.follow(on, other); });
    } else if (draw < 62) {
      both("write", [&](Side& it) { return it.write(on, y, v); });
    } else if (draw < 64) {
      both("failed write", [&](Side& it) { return it.failed_write(on, y); });
    } else if (draw < 66) {
      const Part x = apart(y.count, {y});
      both("failing host work", [&](Side& it) { return it.host(on, x, y, true); });
    } else if (draw < 72) {
      both("read", [&](Side& it) { return it.read(on, y); });
    } else if (draw < 75) {
      both("sync", [&](Side& it) { return it.sync(on); });
    } else if (draw < 78) {
      both("renew", [&](Side& it) {
        it.renew(to);
        return std::string();
      });
    } else if (draw < 84) {
      record(on);
    } else if (draw < 88) {
      both("bind", [&](Side& it) { return it.bind(which, name, to); });
    } else if (draw < 97) {
      if (below(3) != 0) {
        for (std::size_t each = 0; each < kStreams; ++each) {
          both("sync", [&](Side& it) { return it.sync(each); });
        }
      }
      if (both("replay", [&](Side& it) { return it.replay(which, on); }) == "ok") ++replayed_;
    } else {
      both("read of instance", [&](Side& it) { return it.read_of(which, name, on); });
    }
  }

  Side& host_;
  Side& gpu_;
  const sim::Control& control_;
  bool held_ = false;
  std::mt19937_64 random_;
  std::string log_;
  std::string wrong_;
  int well_ = 0;
  int replayed_ = 0;
};

}  // namespace

/// What the environment says, or nothing.
std::optional<std::uint64_t> number_in(const char* variable) {
  const char* const text = std::getenv(variable);  // NOLINT: nothing here sets it
  if (text == nullptr) return std::nullopt;
  return std::strtoull(text, nullptr, 10);
}

TEST_CASE("twin: a random program ends on CUDA as it does on the host device, call by call") {
  constexpr int kPrograms = 60;
  constexpr int kCalls = 150;
  const std::uint64_t first = number_in("REFRAIN_SEED").value_or(std::random_device{}());
  const auto seconds = number_in("REFRAIN_SOAK_SECONDS");
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds.value_or(0));
  MESSAGE("REFRAIN_SEED=" << first);
  const cuda::Driver driver = cuda::Driver::open({REFRAIN_SIMCUDA}).value();
  const Gpu gpu;
  int well = 0;
  int replayed = 0;
  int programs = 0;
  const auto more = [&] {
    return seconds ? std::chrono::steady_clock::now() < end : programs < kPrograms;
  };
  for (; more(); ++programs) {
    const std::uint64_t seed = first + static_cast<std::uint64_t>(programs);
    CAPTURE(seed);
    Side there(host_twin(), nullptr);
    Side here(*gpu.device, &driver.api());
    Twins twins(there, here, *gpu.control, seed);
    const std::string wrong = twins.run(kCalls);
    gpu.control->release();
    REQUIRE_MESSAGE(wrong.empty(), wrong);
    there.drop_all();
    here.drop_all();
    gpu.control->clear_journal();
    well += twins.ended_well();
    replayed += twins.replayed();
  }
  CHECK(well > 20 * programs);
  CHECK(replayed > programs);
  MESSAGE(programs << " programs; " << well << " calls went well, " << replayed
                   << " of them replays");
}

}  // namespace refrain::test
