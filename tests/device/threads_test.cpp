// One device used by many threads: each with a stream and buffers of its own, while another asks
// all the time. What matters most about it is that the thread sanitizer has nothing to say.
#include <atomic>
#include <thread>
#include <vector>

#include "device/rig.hpp"

namespace refrain {
namespace {

using namespace test;

}  // namespace

ON_BOTH_KINDS("threads: streams of one device fail and heal apart, while others look") {
  constexpr int kThreads = 4;
  constexpr int kRounds = 60;
  rig.control.does[1] = fails("it broke");
  rig.control.does[2] = throws("it threw");
  std::atomic<bool> done{false};
  std::atomic<int> wrong{0};
  std::vector<Buffer<float>> all;
  for (int i = 0; i < 2 * kThreads; ++i) all.push_back(rig.floats("b" + std::to_string(i), 1));

  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      Stream stream = rig.another();
      const Buffer<float>& x = all[static_cast<std::size_t>(2 * i)];
      const Buffer<float>& y = all[static_cast<std::size_t>(2 * i + 1)];
      for (int round = 0; round < kRounds; ++round) {
        const auto expect = [&](bool held) {
          if (!held) ++wrong;
        };
        stream.fill(x, 1);
        stream.launch(*rig.map, grid(4), x, y, 0U);
        const auto good = stream.read(y);
        expect(good.ok() && *good == four(2));
        try {
          stream.launch(*rig.make, grid(4), x, round % 2 == 0 ? 1U : 2U);
        } catch (const std::runtime_error&) {
          expect(round % 2 == 1);
        }
        stream.launch(*rig.map, grid(4), x, y, 0U);
        const auto bad = stream.read(y);
        expect(!bad.ok() && says(bad.error(), round % 2 == 0 ? "it broke" : "it threw"));
        static_cast<void>(stream.sync());
        Buffer<float> passing = rig.unwritten("passing");
        stream.copy(passing, y);
      }
      stream.fill(x, 1);
      stream.fill(y, 1);
      static_cast<void>(stream.sync());
    });
  }
  std::thread looker([&] {
    while (!done) {
      for (const Buffer<float>& each : all) {
        if (const auto error = rig.device.check(each)) {
          static_cast<void>(rig.device.story(error->failure()));
          static_cast<void>(error->text());
        }
      }
      static_cast<void>(rig.device.live_failures());
    }
  });
  for (std::thread& thread : threads) thread.join();
  done = true;
  looker.join();
  CHECK(wrong == 0);
  CHECK(rig.device.live_failures() == 0);
}

ON_BOTH_KINDS("threads: windows record on their threads while other streams fail") {
  rig.control.does[1] = fails("it broke");
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&, i] {
      Stream stream = rig.another();
      for (int round = 0; round < 40; ++round) {
        const Buffer<float> x = rig.unwritten("x", Role::input);
        const Buffer<float> y = rig.unwritten("y", Role::output);
        if (i == 0) {
          stream.launch(*rig.make, grid(4), x, 1U);
          stream.launch(*rig.map, grid(4), x, y, 0U);
          static_cast<void>(stream.sync());
          if (!rig.device.check(y)) ++wrong;
          continue;
        }
        OpenWindow window = stream.record().value();
        stream.launch(*rig.map, grid(4), x, y, 0U);
        if (round % 3 == 0) stream.failed_write(x, broken("lost"));
        const auto sealed = window.seal();
        if (sealed.ok() != (round % 3 != 0)) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}

}  // namespace refrain
