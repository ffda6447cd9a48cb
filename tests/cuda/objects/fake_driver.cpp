// Libraries that call themselves the CUDA driver and are none that can be used. One source, built
// once for each way to be so:
//
//   FAKE_VERSION_ANSWER   what cuDriverGetVersion answers
//   FAKE_VERSION          and writes, when it answers 0
//   FAKE_ANSWER           what every other function answers
//   FAKE_LACKS            a name that cuGetProcAddress does not find
#include <cstdint>
#include <cstring>

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

int answer() { return FAKE_ANSWER; }

}  // namespace

EXPORT int cuDriverGetVersion(int* version) {
  if (FAKE_VERSION_ANSWER == 0) *version = FAKE_VERSION;
  return FAKE_VERSION_ANSWER;
}

EXPORT int cuGetProcAddress_v2(const char* name, void** function, int /*version*/,
                               std::uint64_t /*flags*/, int* status) {
  const bool lacks = std::strcmp(name, FAKE_LACKS) == 0;
  *function = lacks ? nullptr : reinterpret_cast<void*>(answer);
  *status = lacks ? 1 : 0;
  return 0;
}
