// A small step with everything that a replay has to do with: an input, a state that counts, a
// constant, scratch, and an output.
//
//   scaled = x * weight        (scale: In x, In weight, Out scaled)
//   total += scaled            (accumulate: In scaled, InOut total)
//   y = total                  (copy)
#pragma once

#include <doctest/doctest.h>

#include <atomic>
#include <new>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "refrain/host/device.hpp"
#include "refrain/replay/plan.hpp"

namespace refrain::test {

using Scale = Kernel<In<float>, In<float>, Out<float>>;
using Accumulate = Kernel<In<float>, InOut<float>>;

constexpr std::uint64_t kCount = 16;

/// What the next runs of the kernels do; shared by all of a device.
struct Script {
  std::atomic<int> scale_runs{0};
  std::atomic<int> accumulate_runs{0};
  std::atomic<bool> accumulate_fails{false};
  std::atomic<bool> accumulate_throws{false};
};

inline std::vector<float> all(float value) { return std::vector<float>(kCount, value); }

inline SharedBytes bytes_of(const std::vector<float>& values) {
  return SharedBytes::copy_of(std::as_bytes(std::span(values)));
}

/// A device with the kernels, and everything of it gone and clean at the end.
class CounterDevice {
 public:
  CounterDevice() {
    Script& script = script_;
    device.kernels().add<Scale>("scale",
                                [&script](std::span<const float> x, std::span<const float> weight,
                                          std::span<float> scaled) {
                                  ++script.scale_runs;
                                  for (std::size_t i = 0; i < scaled.size(); ++i)
                                    scaled[i] = x[i] * weight[i];
                                });
    device.kernels().add<Accumulate>(
        "accumulate",
        [&script](std::span<const float> scaled, std::span<float> total) -> Result<void> {
          ++script.accumulate_runs;
          total[0] += scaled[0];
          if (script.accumulate_throws) throw std::runtime_error("The adder is on fire.");
          if (script.accumulate_fails) {
            return Error(ErrorKind::kernel_failed, "The adder lost count.");
          }
          for (std::size_t i = 1; i < total.size(); ++i) total[i] += scaled[i];
          return {};
        });
    scale.emplace(device.kernel<Scale>("scale").value());
    accumulate.emplace(device.kernel<Accumulate>("accumulate").value());
    REQUIRE(device.kernels().take_refusal().ok());
  }

  /// Records the step; its buffers live as long as the recording.
  Recording record(Stream& stream) const {
    const auto x = device.buffer<float>("x", kCount, Role::input).value();
    const auto weight = device.constant<float>("weight", bytes_of(all(2))).value();
    const auto scaled = device.buffer<float>("", kCount).value();
    const auto total = device.buffer<float>("total", kCount, Role::state).value();
    const auto y = device.buffer<float>("y", kCount, Role::output).value();
    auto window = stream.record().value();
    launch(stream, x, weight, scaled, total, y);
    return window.seal({.name = "counter"}).value();
  }
  void launch(Stream& stream, const Buffer<float>& x, const Buffer<float>& weight,
              const Buffer<float>& scaled, const Buffer<float>& total,
              const Buffer<float>& y) const {
    stream.launch(*scale, grid(kCount), x, weight, scaled);
    stream.launch(*accumulate, grid(kCount), scaled, total);
    stream.copy(y, total);
  }

  [[nodiscard]] Script& script() noexcept { return script_; }

 private:
  Script script_;

 public:
  std::vector<std::string> heard;  // what the listener was told
  host::Device device{
      DeviceOptions{.checks = true, .on_failure = [this](StreamId, const Error& error) {
                      try {
                        heard.push_back(error.text());
                      } catch (const std::bad_alloc&) {  // a listener must not throw
                      }
                    }}};
  std::optional<Scale> scale;
  std::optional<Accumulate> accumulate;
};

}  // namespace refrain::test
