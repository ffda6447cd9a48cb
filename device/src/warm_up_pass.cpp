#include "refrain/device/warm_up_pass.hpp"

#include <algorithm>
#include <exception>
#include <map>
#include <string>
#include <utility>

#include "refrain/base/kernel_name.hpp"
#include "refrain/device/stream.hpp"

namespace refrain {

WarmUpPass::WarmUpPass(Stream& stream, Window& window, Where where) noexcept
    : stream_(stream),
      device_(stream.device()),
      window_(window),
      where_(where),
      lifted_(stream.device().table()) {
  current_ = this;
}

WarmUpPass::~WarmUpPass() {
  current_ = nullptr;  // putting back is no part of it
  for (const auto& ledger : heard_) ledger->tells(nullptr);
  for (const Preserved::Saved& each : preserved_.saved()) {
    try {
      stream_.put_back(each.where, each.bytes, where_);
    } catch (...) {  // E4: the bytes carry it, and this may run while another is thrown
    }
  }
  lifted_.lay_again();
}

void WarmUpPass::about_to_read(StreamCore& on, std::span<const BufferBinding> reads) noexcept {
  try {
    hear(on);
    lifted_.lift(preserved_.about_to_read(reads));  // C18
  } catch (...) {
    lacks(Error::thrown(std::current_exception()));
  }
}

void WarmUpPass::about_to_run(StreamCore& on, const OpenScope& scope) noexcept {
  about_to_read(on, scope.reads);
  try {
    if (scope.replay_unrun_writes != nullptr) {
      // A replay that was told not to look at its inputs reads its states all the same.
      std::map<BufferId, ByteRangeSet> fresh;
      std::vector<BufferBinding> states;
      for (const BufferBinding& each : scope.unrun_writes()) fresh[each.buffer].add(each.range);
      for (const BufferBinding& each : scope.writes) {
        for (const ByteRange& part : fresh[each.buffer].missing(each.range)) {
          states.push_back({each.buffer, part});
        }
      }
      about_to_read(on, states);
    }
  } catch (...) {
    lacks(Error::thrown(std::current_exception()));
  }
  about_to_write(on, scope.writes);
}

void WarmUpPass::about_to_write(StreamCore& on, std::span<const BufferBinding> writes) noexcept {
  try {
    hear(on);
    for (const BufferBinding& part : preserved_.about_to_write(writes)) save(on, part);
  } catch (...) {
    lacks(Error::thrown(std::current_exception()));
  }
}

void WarmUpPass::hear(StreamCore& on) {
  if (std::find(heard_.begin(), heard_.end(), on.ledger) != heard_.end()) return;
  heard_.push_back(on.ledger);
  on.ledger->tells(this);
}

void WarmUpPass::save(StreamCore& on, const BufferBinding& part) {
  const MemoryInUse in_use(*on.device);
  const Result<const Allocation*> memory = on.device->resolve(part);
  if (!memory.ok()) return;
  // M4: what it waits for may own it, and last.
  const std::shared_ptr<const Allocation> kept = (*memory)->shared();
  const std::uint64_t address = (*memory)->address();
  on.device->wait_for(std::span(&part, 1), false);
  BufferBinding rest = part;
  while (!rest.range.empty()) {
    // What carries a failure is not run over, and putting it back would heal it.
    const FoundFailure bad = on.device->table().read_failure(on.show, std::span(&rest, 1));
    const ByteRange good{rest.range.begin, bad ? bad.needed().range.begin : rest.range.end};
    rest.range.begin = bad ? bad.needed().range.end : rest.range.end;
    if (good.empty()) continue;
    std::vector<std::byte> bytes(good.size());
    const Result<void> got = on.device->backend().read(*on.backend, bytes, address + good.begin);
    if (got.ok()) {
      preserved_.save({part.buffer, good}, std::move(bytes));
    } else {
      lacks(got.error());
    }
  }
}

void WarmUpPass::failed(StreamId stream, const Error& error) noexcept {
  keep(error, [&] {
    return "While warming up: work on stream " + std::to_string(stream.number) +
           " did not end cleanly.";
  });
}

void WarmUpPass::lacks(const Error& error) noexcept {
  keep(error, [] { return std::string("While warming up: a state may have advanced."); });
}

template <class Context>
void WarmUpPass::keep(const Error& error, Context&& context) noexcept {
  const Lock lock(mutex_);
  if (failed_) return;
  failed_ = error;
  try {
    failed_ = error.with_context(context());
  } catch (...) {  // without that line
  }
}

std::optional<Error> WarmUpPass::end() {
  for (const auto& ledger : heard_) ledger->wait_for_all();
  const Lock lock(mutex_);
  return failed_;
}

}  // namespace refrain
