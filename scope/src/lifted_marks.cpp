#include "refrain/scope/lifted_marks.hpp"

namespace refrain {

void LiftedMarks::lift(std::span<const BufferBinding> bytes) {
  const FailureTable::Hold hold(table_);
  table_.keep_room();
  for (const BufferBinding& binding : bytes) {
    FailureTable::Slot* const target = table_.slot(binding.buffer);
    if (target == nullptr) continue;
    for (ByteRange rest = binding.range; !rest.empty();) {
      auto [part, carried] = FailureTable::first_stretch(*target, rest);
      rest.begin = part.end;
      if (carried.mark == nullptr) continue;
      lifted_.push_back({{binding.buffer, part}, carried.mark});
      table_.records_.retain(carried.mark);
      carried.mark = nullptr;
      if (carried.failure != nullptr) {
        table_.put(*target, part, carried);
      } else {
        table_.erase(*target, part);
      }
    }
  }
  table_.keep_room();
}

void LiftedMarks::lay_again() noexcept {
  if (lifted_.empty()) return;
  const FailureTable::Hold hold(table_);
  table_.keep_room();
  for (const Lifted& each : lifted_) {
    FailureTable::Slot* const target = table_.slot(each.bytes.buffer);
    for (ByteRange rest = each.bytes.range; target != nullptr && !rest.empty();) {
      auto [part, carried] = FailureTable::first_stretch(*target, rest);
      rest.begin = part.end;
      if (carried.mark != nullptr) continue;
      carried.mark = each.mark;
      table_.put(*target, part, carried);
    }
    table_.records_.release(each.mark);
  }
  lifted_.clear();
  table_.keep_room();
}

}  // namespace refrain
