// Work that throws before it has a scope. From its scope on, everything that is thrown is told
// (E4); before that a call still makes lists and texts, and when there is no memory for them the
// work is as lost as any. It must not be lost quietly: a window would seal without it, and what it
// was to write would read as good. Private to device/.
#pragma once

#include <exception>

#include "refrain/device/stream.hpp"

namespace refrain {

template <class Issue, class Fail>
auto Stream::issuing(Issue&& issue, Fail&& fail) -> decltype(issue()) {
  const std::uint64_t before = core_->failed;
  try {
    return issue();
  } catch (...) {
    // Once a scope of it has failed, all has been said.
    if (core_->failed == before) {
      const Error thrown = Error::thrown(std::current_exception());
      try {
        fail(thrown);
      } catch (...) {
        lacks(thrown);
      }
    }
    throw;
  }
}

}  // namespace refrain
