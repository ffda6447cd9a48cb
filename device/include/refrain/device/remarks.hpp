// What is added to the error of a piece of work, whether it fails at once or late.
#pragma once

#include <cstdint>
#include <string>

#include "refrain/base/error.hpp"

namespace refrain {

struct Remarks {
  const char* advice = nullptr;  ///< What its failure asks of the user. Of static storage.
  std::uint64_t replay = 0;      ///< Which replay of its instance it is; 0 for other work.

  [[nodiscard]] Error on(Error error) const {
    if (replay != 0) {
      error = error.with_context("It was replay " + std::to_string(replay) + " of its instance.");
    }
    return advice != nullptr ? error.with_context(advice) : error;
  }
};

}  // namespace refrain
