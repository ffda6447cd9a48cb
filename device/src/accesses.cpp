#include "refrain/device/accesses.hpp"

#include <algorithm>
#include <utility>

namespace refrain {

bool overlap(std::span<const BufferBinding> some, std::span<const BufferBinding> others) noexcept {
  for (const BufferBinding& one : some) {
    for (const BufferBinding& other : others) {
      if (one.buffer == other.buffer && one.range.overlaps(other.range)) return true;
    }
  }
  return false;
}

std::size_t Accesses::cut(Stretches& stretches, ByteRange range) {
  for (const std::uint64_t border : {range.begin, range.end}) {
    const auto found = std::find_if(stretches.begin(), stretches.end(), [&](const Stretch& each) {
      return each.range.begin < border && border < each.range.end;
    });
    if (found == stretches.end()) continue;
    Stretch left = *found;
    left.range.end = border;
    found->range.begin = border;
    stretches.insert(found, std::move(left));
  }
  const auto first = std::find_if(stretches.begin(), stretches.end(), [&](const Stretch& each) {
    return each.range.begin >= range.begin;
  });
  return static_cast<std::size_t>(first - stretches.begin());
}

void Accesses::read(const BufferBinding& binding, const Access& by) {
  Stretches& stretches = buffers_[binding.buffer];
  std::size_t at = cut(stretches, binding.range);
  for (std::uint64_t next = binding.range.begin; next < binding.range.end; ++at) {
    if (at == stretches.size() || stretches[at].range.begin > next) {  // nobody has touched these
      const std::uint64_t end = at == stretches.size()
                                    ? binding.range.end
                                    : std::min(binding.range.end, stretches[at].range.begin);
      stretches.insert(stretches.begin() + static_cast<std::ptrdiff_t>(at),
                       Stretch{{next, end}, std::nullopt, {}});
    }
    Stretch& stretch = stretches[at];
    next = stretch.range.end;
    const auto known = std::find_if(stretch.readers.begin(), stretch.readers.end(),
                                    [&](const Access& each) { return each.stream == by.stream; });
    if (known != stretch.readers.end()) {
      *known = by;
    } else {
      stretch.readers.push_back(by);
    }
  }
}

void Accesses::write(const BufferBinding& binding, const Access& by) {
  if (binding.range.empty()) return;
  Stretches& stretches = buffers_[binding.buffer];
  const auto first = stretches.begin() + static_cast<std::ptrdiff_t>(cut(stretches, binding.range));
  const auto last = std::find_if(first, stretches.end(), [&](const Stretch& each) {
    return each.range.begin >= binding.range.end;
  });
  stretches.insert(stretches.erase(first, last), Stretch{binding.range, by, {}});
}

}  // namespace refrain
