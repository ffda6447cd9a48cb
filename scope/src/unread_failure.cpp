#include "refrain/scope/unread_failure.hpp"

#include "refrain/base/kernel_name.hpp"
#include "refrain/base/text.hpp"

namespace refrain {

std::string UnreadFailure::text() const {
  std::string all =
      "Failure " + std::to_string(error.failure().number) + " is gone and nobody has read of it: ";
  if (kernel) {
    all += quote(kernel_name(kernel)) + " on stream " + std::to_string(stream.number) +
           refrain::text(where) + ": ";
  }
  all += error.with_failure({}).text();
  if (skips != 0) {
    all += "\n  - " + std::to_string(skips) +
           (skips == 1 ? " piece of work was" : " pieces of work were") + " skipped because of it.";
  }
  return all;
}

}  // namespace refrain
