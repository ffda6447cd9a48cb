// Bytes, one by one: whatever the model asks about a range it asks about each byte of it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace refrain::model {

/// Bytes of an allocation, by its number; -1 is none.
struct Span {
  int buffer = -1;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};
using Spans = std::vector<Span>;
/// One byte of an allocation.
using At = std::pair<int, std::uint64_t>;

inline bool empty(const Span& span) { return span.begin == span.end; }

template <class Act>
void each_byte(const Spans& spans, Act act) {
  for (const Span& span : spans) {
    for (std::uint64_t byte = span.begin; byte < span.end; ++byte) act(At{span.buffer, byte});
  }
}

inline bool has(const Spans& spans, const At& at) {
  return std::any_of(spans.begin(), spans.end(), [&](const Span& span) {
    return span.buffer == at.first && span.begin <= at.second && at.second < span.end;
  });
}

/// Whether two lists have a byte in common.
inline bool overlap(const Spans& some, const Spans& others) {
  bool met = false;
  each_byte(some, [&](const At& at) { met = met || has(others, at); });
  return met;
}

}  // namespace refrain::model
