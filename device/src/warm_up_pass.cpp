#include "refrain/device/warm_up_pass.hpp"

#include <algorithm>
#include <exception>
#include <map>
#include <string>
#include <utility>

#include "refrain/base/kernel_name.hpp"
#include "refrain/base/text.hpp"
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
  const Lock lock(mutex_);
  if (failed_) {
    failed_->followed = true;
  } else {
    failed_.emplace(Failed{error, stream});
  }
}

void WarmUpPass::skipped(const Skip& skip) noexcept {
  const Lock lock(mutex_);
  if (failed_ && !failed_->followed) failed_->skip = skip;
}

void WarmUpPass::lacks(const Error& error) noexcept {
  const Lock lock(mutex_);
  if (!failed_) failed_.emplace(Failed{.error = error, .state_lost = true});
}

std::string WarmUpPass::described(const Failed& failed) const {
  if (failed.state_lost) return "a state may have advanced.";
  FailureTable& table = stream_.device().table();
  const auto work = [](KernelId kernel, StreamId stream, Where where) {
    return (kernel ? quote(kernel_name(kernel)) : std::string("work")) + " on stream " +
           std::to_string(stream.number) + text(where);
  };
  if (const std::optional<Skip>& skip = failed.skip) {
    return work(skip->kernel, skip->stream, skip->where) + " was skipped: it needed bytes " +
           text(skip->needed.range) + " of " + quote(table.name_of(skip->needed.buffer)) + ".";
  }
  const FailureOrigin origin = table.origin(failed.error.failure());
  const bool known = origin.stream == failed.on;  // else it is an input's, or nothing carries it
  return work(known ? origin.kernel : KernelId{}, failed.on, known ? origin.where : Where{}) +
         " did not end cleanly.";
}

std::optional<Error> WarmUpPass::end() {
  for (const auto& ledger : heard_) ledger->wait_for_all();
  std::optional<Failed> failed;
  {
    const Lock lock(mutex_);
    failed = failed_;
  }
  if (!failed) return std::nullopt;
  return failed->error.with_context("While warming up: " + described(*failed));
}

}  // namespace refrain
