#include "refrain/scope/write_set.hpp"

#include "refrain/scope/failure_table.hpp"

namespace refrain {

WriteSetPool::~WriteSetPool() { table_.unreserve(reserved_); }

WriteSetPool::Storage* WriteSetPool::take() {
  if (idle_.empty()) {
    all_.push_back(std::make_unique<Storage>());
    idle_.reserve(all_.size());
    grown(all_.back()->capacity());
    return all_.back().get();
  }
  Storage* const storage = idle_.back();
  idle_.pop_back();
  return storage;
}

void WriteSetPool::give_back(Storage* storage) noexcept {
  storage->clear();
  idle_.push_back(storage);
}

void WriteSetPool::grown(std::size_t added) {
  reserved_ += added;
  table_.reserve(added);
}

void WriteSet::add(const BufferBinding& binding) {
  if (binding.range.empty()) return;
  const std::size_t before = storage_->capacity();
  storage_->push_back(binding);
  if (storage_->capacity() != before) pool_->grown(storage_->capacity() - before);
}

}  // namespace refrain
