#include "refrain/scope/write_set.hpp"

#include "refrain/scope/failure_table.hpp"

namespace refrain {

WriteSetPool::~WriteSetPool() { table_.unreserve(reserved_); }

WriteSetPool::Storage* WriteSetPool::make() {
  auto made = std::make_unique<Storage>();
  grown(made->bindings.capacity());
  all_.push_back(std::move(made));
  return all_.back().get();
}

std::size_t WriteSetPool::idle() const noexcept {
  std::size_t count = 0;
  for (const Storage* each = idle_; each != nullptr; each = each->next_idle) ++count;
  return count;
}

void WriteSetPool::grown(std::size_t added) {
  table_.reserve(added);
  reserved_ += added;
}

}  // namespace refrain
