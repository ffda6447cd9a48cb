// Names are interned once for the whole process, whichever thread comes first.
#include "refrain/base/kernel_name.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace refrain {

TEST_CASE("kernel names: the same name gives the same id, another name another") {
  const KernelId saxpy = intern_kernel_name("kernel_name_test/saxpy");
  CHECK(static_cast<bool>(saxpy));
  CHECK(intern_kernel_name(std::string("kernel_name_test/") + "saxpy") == saxpy);
  CHECK(intern_kernel_name("kernel_name_test/gemm") != saxpy);
  CHECK(kernel_name(saxpy) == "kernel_name_test/saxpy");
}

TEST_CASE("kernel names: no id and an id that nobody gave out have the name \"?\"") {
  CHECK(kernel_name(KernelId{}) == "?");
  CHECK(kernel_name(KernelId(0xffffffffU)) == "?");
}

TEST_CASE("kernel names: an empty name is a name") {
  const KernelId id = intern_kernel_name("");
  CHECK(static_cast<bool>(id));
  CHECK(kernel_name(id).empty());
}

TEST_CASE("kernel names: threads that intern the same names agree, and views stay valid") {
  constexpr int kThreads = 4;
  constexpr int kNames = 200;
  const std::string_view before = kernel_name(intern_kernel_name("kernel_name_test/first"));
  std::vector<std::vector<KernelId>> ids(kThreads, std::vector<KernelId>(kNames));
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      for (int i = 0; i < kNames; ++i) {
        const int which = (i * 7 + thread * 31) % kNames;  // each in another order
        const std::string name = "kernel_name_test/shared/" + std::to_string(which);
        const KernelId id = intern_kernel_name(name);
        if (kernel_name(id) != name) ++wrong;
        ids[static_cast<std::size_t>(thread)][static_cast<std::size_t>(which)] = id;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  for (const auto& seen : ids) CHECK(seen == ids.front());
  CHECK(std::set<KernelId>(ids.front().begin(), ids.front().end()).size() == kNames);
  CHECK(before == "kernel_name_test/first");
}

}  // namespace refrain
