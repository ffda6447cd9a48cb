#include "refrain/device/preserved.hpp"

namespace refrain {

std::vector<BufferBinding> Preserved::about_to_read(std::span<const BufferBinding> reads) {
  std::vector<BufferBinding> from_before;
  for (const BufferBinding& read : reads) {
    History& history = histories_[read.buffer];
    for (const ByteRange& part : history.written.missing(read.range)) {
      history.read_first.add(part);
      from_before.push_back({read.buffer, part});
    }
  }
  return from_before;
}

std::vector<BufferBinding> Preserved::about_to_write(std::span<const BufferBinding> writes) {
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

}  // namespace refrain
