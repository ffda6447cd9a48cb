// The list of what a piece of work writes. Launches come by the million, so its storage is pooled
// per stream and goes back on every exit (O8); a replay lends the list its instance keeps.
#pragma once

#include <boost/container/small_vector.hpp>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "refrain/scope/buffer_binding.hpp"

namespace refrain {

class FailureTable;

/// Storage for write sets of one stream; for one thread at a time. Outlives its write sets.
class WriteSetPool {
 public:
  struct Storage {
    boost::container::small_vector<BufferBinding, 8> bindings;
    Storage* next_idle = nullptr;
  };

  explicit WriteSetPool(FailureTable& table) noexcept : table_(table) {}
  ~WriteSetPool();
  WriteSetPool(const WriteSetPool&) = delete;
  WriteSetPool& operator=(const WriteSetPool&) = delete;

  /// How many storages lie unused; all of them do when no scope is open.
  [[nodiscard]] std::size_t idle() const noexcept;
  /// How many storages exist.
  [[nodiscard]] std::size_t total() const noexcept { return all_.size(); }

 private:
  friend class WriteSet;
  Storage* take() {
    if (idle_ == nullptr) return make();
    return std::exchange(idle_, idle_->next_idle);
  }
  void give_back(Storage* storage) noexcept {
    storage->bindings.clear();
    storage->next_idle = std::exchange(idle_, storage);
  }
  Storage* make();
  void grown(std::size_t added);

  FailureTable& table_;
  std::vector<std::unique_ptr<Storage>> all_;
  Storage* idle_ = nullptr;
  std::size_t reserved_ = 0;  // bindings for which the table keeps room
};

/// What a piece of work writes. Move-only; gives its storage back when destroyed.
class WriteSet {
 public:
  /// Names nothing: claims nothing (O7).
  WriteSet() = default;

  /// An empty set to fill, with storage of `pool`.
  explicit WriteSet(WriteSetPool& pool) : pool_(&pool), storage_(pool.take()) {}

  /// A set that somebody else keeps, unchanged, until the scope has ended. The lender must have
  /// reserved room for it in the table.
  static WriteSet borrowed(std::span<const BufferBinding> bindings) noexcept {
    WriteSet set;
    set.borrowed_ = bindings;
    return set;
  }

  WriteSet(WriteSet&& other) noexcept
      : pool_(std::exchange(other.pool_, nullptr)),
        storage_(std::exchange(other.storage_, nullptr)),
        borrowed_(std::exchange(other.borrowed_, {})) {}
  WriteSet& operator=(WriteSet&&) = delete;
  ~WriteSet() {
    if (storage_ != nullptr) pool_->give_back(storage_);
  }

  /// Adds `binding`; only for a set made with a pool. Empty ranges are left out.
  void add(const BufferBinding& binding) {
    if (binding.range.empty()) return;
    auto& bindings = storage_->bindings;
    const std::size_t before = bindings.capacity();
    bindings.push_back(binding);
    if (bindings.capacity() != before) pool_->grown(bindings.capacity() - before);
  }

  [[nodiscard]] std::span<const BufferBinding> bindings() const noexcept {
    if (storage_ != nullptr) return {storage_->bindings.data(), storage_->bindings.size()};
    return borrowed_;
  }

 private:
  WriteSetPool* pool_ = nullptr;
  WriteSetPool::Storage* storage_ = nullptr;
  std::span<const BufferBinding> borrowed_;
};

}  // namespace refrain
