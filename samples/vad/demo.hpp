// The demonstration: everything that the sample promises, one promise after the other, on the real
// model, the failures made on purpose included.
#pragma once

#include <string>

namespace vad {

struct DemoFiles {
  std::string weights;
  std::string pcm;
  std::string expect;
};

/// Shows it, and says in plain words what is seen. False when anything is not as promised; how long
/// something took is shown and is no promise.
bool demo(const DemoFiles& files);

}  // namespace vad
