#include "refrain/device/order.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "refrain/base/kernel_name.hpp"
#include "refrain/base/text.hpp"

namespace refrain {
namespace {

/// More than this are sorted in, so that a stream which nobody waits for keeps what it touched and
/// not what it did.
constexpr std::size_t kMostLogged = 64;
/// As many instances as that on as many streams know of each other that they do not conflict.
constexpr std::size_t kMostHarmless = 4096;

void learn(Order::Clock& clock, const Order::Clock& other) {
  for (const auto& [stream, number] : other) {
    std::uint64_t& known = clock[stream];
    known = std::max(known, number);
  }
}

std::uint64_t known(const Order::Clock& clock, StreamId stream) noexcept {
  const auto found = clock.find(stream);
  return found != clock.end() ? found->second : 0;
}

std::string called(const Access& work) {
  return quote(kernel_name(work.kernel)) + " on stream " + std::to_string(work.stream.number) +
         text(work.where);
}

}  // namespace

// The analysis does not see that the mutex of a const `this` is the same.
Order::Line* Order::find(StreamId stream) noexcept REFRAIN_NO_THREAD_SAFETY_ANALYSIS {
  return const_cast<Line*>(std::as_const(*this).find(stream));
}

const Order::Line* Order::find(StreamId stream) const noexcept {
  const auto found = std::find_if(lines_.begin(), lines_.end(),
                                  [&](const Line& each) { return each.stream == stream; });
  return found != lines_.end() ? &*found : nullptr;
}

Order::HandedOver Order::attach(StreamId stream) {
  const Lock lock(mutex_);
  lines_.push_back(Line{stream});
  asynchronous_.store(lines_.size(), std::memory_order_relaxed);
  return lines_.back().handed_over;
}

void Order::detach(StreamId stream) noexcept {
  const Lock lock(mutex_);
  const Line* const gone = find(stream);
  if (gone == nullptr) return;
  has_ended(gone->clocks.back().second);  // also what it waited for and gave no work after
  std::erase_if(lines_, [&](const Line& each) { return each.stream == stream; });
  asynchronous_.store(lines_.size(), std::memory_order_relaxed);
  prune();
}

void Order::forget(BufferId buffer) {
  if (trivial()) return;
  const Lock lock(mutex_);
  accesses_.forget(buffer);
}

bool Order::before(const Access& earlier, const Line* line) const noexcept {
  if (line != nullptr && earlier.stream == line->stream) return true;
  const Line* const other = find(earlier.stream);
  if (other == nullptr || earlier.number <= other->ended) return true;
  return line != nullptr && earlier.number <= known(line->clocks.back().second, earlier.stream);
}

bool Order::after_everything(const Line* line) const noexcept {
  return std::all_of(lines_.begin(), lines_.end(), [&](const Line& other) REFRAIN_REQUIRES(mutex_) {
    return before(Access{other.stream, other.issued, {}, {}}, line);
  });
}

Error Order::unordered(const Access& work, bool writes, const Access& earlier, bool wrote,
                       const BufferBinding& bytes) const {
  const std::string theirs = std::to_string(earlier.stream.number);
  return Error(ErrorKind::unordered,
               "Bytes " + text(bytes.range) + " of " + quote(table_.name_of(bytes.buffer)) +
                   " are " + (writes ? "written" : "read") + " by " + called(work) + ", and " +
                   called(earlier) + ", which " + (wrote ? "writes" : "reads") +
                   " them, may still run: no event and no sync puts one after the other. (Record "
                   "an event on stream " +
                   theirs + " after its work, and let stream " +
                   std::to_string(work.stream.number) + " wait on that; or sync stream " + theirs +
                   ".)");
}

bool Order::harmless(const TouchedBytes& one, const TouchedBytes& other) {
  const bool kept = one.number != 0 && other.number != 0;
  const auto pair = std::minmax(one.number, other.number);
  if (kept && harmless_.contains(pair)) return true;
  if (conflict(one, other)) return false;
  if (!kept) return true;
  if (harmless_.size() == kMostHarmless) harmless_.clear();
  harmless_.insert(pair);
  return true;
}

std::optional<Error> Order::race(const Access& work, const TouchedBytes& bytes, const Line* line) {
  for (const Logged& each : log_) {
    if (before(each.work, line) || harmless(bytes, *each.bytes)) continue;
    const Conflict met = *conflict(bytes, *each.bytes);
    return unordered(work, met.first_writes, each.work, met.second_writes, met.bytes);
  }
  std::optional<Error> found;
  const auto look = [&](const BufferBinding& binding, bool writes) REFRAIN_REQUIRES(mutex_) {
    // Two that read the same bytes do not conflict.
    accesses_.each(binding, writes,
                   [&](ByteRange both, const Access& earlier, bool wrote)
                       REFRAIN_NO_THREAD_SAFETY_ANALYSIS {
                         if (before(earlier, line)) return false;
                         found = unordered(work, writes, earlier, wrote, {binding.buffer, both});
                         return true;
                       });
  };
  if (accesses_.empty()) return std::nullopt;
  for (const BufferBinding& read : bytes.reads) {
    if (!found) look(read, false);
  }
  for (const BufferBinding& write : bytes.writes) {
    if (!found) look(write, true);
  }
  return found;
}

std::optional<Error> Order::ask(const Access& work, const TouchedBytes& bytes) {
  const Lock lock(mutex_);
  const Line* const line = find(work.stream);
  return after_everything(line) ? std::nullopt : race(work, bytes, line);
}

Result<std::uint64_t> Order::issue(const Access& work,
                                   const std::shared_ptr<const TouchedBytes>& bytes) {
  const Lock lock(mutex_);
  Line* const line = find(work.stream);
  if (!after_everything(line)) {
    if (std::optional<Error> refused = race(work, *bytes, line)) return *std::move(refused);
  }
  if (line == nullptr) return std::uint64_t{0};  // it has ended when the call is back
  // The same lists again: whoever comes after this comes after the time before, too.
  const auto same = [&](const Logged& each) {
    return each.bytes == bytes && each.work.stream == work.stream;
  };
  if (log_.empty() || !same(log_.back())) {
    std::erase_if(log_, same);
    log_.push_back({work, bytes});
  } else {
    log_.back().work = work;
  }
  log_.back().work.number = ++line->issued;
  if (log_.size() > kMostLogged) sort_in();
  return line->issued;
}

Order::Clock Order::point() const {
  const Lock lock(mutex_);
  Clock point;
  // What one waits for is another's, and was handed over before its event was recorded.
  for (const Line& line : lines_) point[line.stream] = line.handed_over->load();
  return point;
}

Order::Clock Order::point(StreamId stream) const {
  const Lock lock(mutex_);
  const Line* const line = find(stream);
  if (line == nullptr) return {};
  Clock point = line->clocks.back().second;
  point[stream] = line->issued;
  return point;
}

void Order::wait(StreamId stream, const Clock& point) {
  const Lock lock(mutex_);
  Line* const line = find(stream);
  if (line == nullptr) {
    has_ended(point);
    prune();
    return;
  }
  Clock next = line->clocks.back().second;
  learn(next, point);
  if (next == line->clocks.back().second) return;
  for (auto each = next.begin(); each != next.end();) {
    each = find(each->first) == nullptr ? next.erase(each) : each + 1;
  }
  line->clocks.emplace_back(line->issued + 1, std::move(next));
}

void Order::raise(StreamId stream, std::uint64_t number) noexcept {
  Line* const line = find(stream);
  if (line == nullptr || number <= line->ended) return;
  line->ended = number;
  while (line->clocks.size() > 1 && line->clocks[1].first <= number) line->clocks.pop_front();
}

void Order::add(Clock& point, const Access& work) const {
  const Line* const line = find(work.stream);
  if (line == nullptr || work.number <= line->ended) return;
  if (work.number > line->handed_over->load()) return;
  Clock earlier;
  for (const auto& [from, clock] : line->clocks) {
    if (from <= work.number) earlier = clock;
  }
  learn(point, earlier);
  learn(point, {{work.stream, work.number}});
}

void Order::has_ended(const Clock& point) noexcept {
  // A point holds what came before all that it holds, so there is nothing to follow.
  for (const auto& [stream, number] : point) raise(stream, number);
}

void Order::ended(const Clock& point) {
  const Lock lock(mutex_);
  has_ended(point);
  prune();
}

Order::Clock Order::point(std::span<const BufferBinding> bindings, bool readers) const {
  Clock point;
  if (trivial()) return point;
  const Lock lock(mutex_);
  if (after_everything(nullptr)) return point;
  for (const BufferBinding& binding : bindings) {
    accesses_.each(binding, readers,
                   [&](ByteRange, const Access& access, bool) REFRAIN_NO_THREAD_SAFETY_ANALYSIS {
                     add(point, access);
                     return false;
                   });
  }
  for (const Logged& each : log_) {
    if (overlap(each.bytes->writes, bindings) ||
        (readers && overlap(each.bytes->reads, bindings))) {
      add(point, each.work);
    }
  }
  return point;
}

void Order::prune() noexcept {
  std::erase_if(log_, [&](const Logged& each)
                          REFRAIN_REQUIRES(mutex_) { return before(each.work, nullptr); });
  for (const auto& [stream, number] : sorted_in_) {
    if (!before(Access{stream, number, {}, {}}, nullptr)) return;
  }
  accesses_.clear();
  sorted_in_.clear();
}

void Order::sort_in() {
  prune();
  std::erase_if(log_, [&](const Logged& each) REFRAIN_REQUIRES(mutex_) {
    if (each.bytes->number != 0) return false;
    for (const BufferBinding& read : each.bytes->reads) {
      if (table_.owner_of(read.buffer) != nullptr) accesses_.read(read, each.work);
    }
    for (const BufferBinding& write : each.bytes->writes) {
      if (table_.owner_of(write.buffer) != nullptr) accesses_.write(write, each.work);
    }
    learn(sorted_in_, {{each.work.stream, each.work.number}});
    return true;
  });
}

}  // namespace refrain
