#include "preserved.hpp"

#include <utility>

namespace refrain {

std::vector<BufferBinding> Preserved::about_to_run(std::span<const BufferBinding> reads,
                                                   std::span<const BufferBinding> writes) {
  for (const BufferBinding& read : reads) {
    History& history = histories_[read.buffer];
    for (const ByteRange& part : history.written.missing(read.range)) history.read_first.add(part);
  }
  std::vector<BufferBinding> now;
  for (const BufferBinding& write : writes) {
    History& history = histories_[write.buffer];
    for (const ByteRange& read : history.read_first.ranges()) {
      const ByteRange both = intersection(read, write.range);
      if (both.empty()) continue;
      for (const ByteRange& part : history.saved.missing(both)) now.push_back({write.buffer, part});
    }
    history.saved.add(write.range);
    history.written.add(write.range);
  }
  return now;
}

std::vector<Preserved::Saved> Preserved::take() {
  histories_.clear();
  return std::exchange(saved_, {});
}

}  // namespace refrain
