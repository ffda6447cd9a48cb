#include "refrain/device/accesses.hpp"

#include <algorithm>
#include <atomic>
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

void TouchedBytes::will_come_again() {
  static std::atomic<std::uint64_t> last{0};
  number = ++last;
  for (const BufferBinding& read : reads) by_buffer.push_back({read, false});
  for (const BufferBinding& write : writes) by_buffer.push_back({write, true});
  std::sort(by_buffer.begin(), by_buffer.end(), [](const Touch& one, const Touch& other) {
    return one.bytes.buffer < other.bytes.buffer;
  });
}

namespace {

/// What of `all` uses `bytes` and conflicts with it.
const TouchedBytes::Touch* meeting(const TouchedBytes& all, const BufferBinding& bytes,
                                   bool writes) {
  const auto meets = [&](const TouchedBytes::Touch& each) {
    return each.bytes.range.overlaps(bytes.range) && (writes || each.write);
  };
  auto at = std::lower_bound(
      all.by_buffer.begin(), all.by_buffer.end(), bytes.buffer,
      [](const TouchedBytes::Touch& each, BufferId buffer) { return each.bytes.buffer < buffer; });
  for (; at != all.by_buffer.end() && at->bytes.buffer == bytes.buffer; ++at) {
    if (meets(*at)) return &*at;
  }
  return nullptr;
}

std::optional<Conflict> plain_conflict(const TouchedBytes& first, const TouchedBytes& second) {
  const auto look = [](const auto& ones, const auto& others, bool first_writes,
                       bool second_writes) -> std::optional<Conflict> {
    for (const BufferBinding& one : ones) {
      for (const BufferBinding& other : others) {
        const ByteRange both = intersection(one.range, other.range);
        if (one.buffer != other.buffer || both.empty()) continue;
        return Conflict{{one.buffer, both}, first_writes, second_writes};
      }
    }
    return std::nullopt;
  };
  if (auto found = look(first.reads, second.writes, false, true)) return found;
  if (auto found = look(first.writes, second.writes, true, true)) return found;
  return look(first.writes, second.reads, true, false);
}

}  // namespace

std::optional<Conflict> conflict(const TouchedBytes& first, const TouchedBytes& second) {
  if (first.number == 0 && second.number == 0) return plain_conflict(first, second);
  const std::size_t one = first.reads.size() + first.writes.size();
  const std::size_t other = second.reads.size() + second.writes.size();
  const bool turned = first.number != 0 && (second.number == 0 || other < one);
  const TouchedBytes& walked = turned ? second : first;
  const TouchedBytes& asked = turned ? first : second;
  for (const bool writes : {false, true}) {
    for (const BufferBinding& bytes : writes ? walked.writes : walked.reads) {
      const TouchedBytes::Touch* const met = meeting(asked, bytes, writes);
      if (met == nullptr) continue;
      return Conflict{{bytes.buffer, intersection(bytes.range, met->bytes.range)},
                      turned ? met->write : writes,
                      turned ? writes : met->write};
    }
  }
  return std::nullopt;
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
