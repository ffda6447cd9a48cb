#include "refrain/base/kernel_name.hpp"

#include <deque>
#include <map>
#include <string>

#include "refrain/base/mutex.hpp"

namespace refrain {
namespace {

struct Names {
  Mutex mutex;
  std::deque<std::string> by_id REFRAIN_GUARDED_BY(mutex);  // a deque: views stay valid
  std::map<std::string_view, KernelId> ids REFRAIN_GUARDED_BY(mutex);
};

Names& names() {
  // Never destroyed: a failure may be read while the process ends.
  static auto* const table = new Names;
  return *table;
}

}  // namespace

KernelId intern_kernel_name(std::string_view name) {
  Names& table = names();
  const Lock lock(table.mutex);
  if (const auto found = table.ids.find(name); found != table.ids.end()) return found->second;
  const std::string& kept = table.by_id.emplace_back(name);
  const KernelId id(static_cast<std::uint32_t>(table.by_id.size()));
  table.ids.emplace(kept, id);
  return id;
}

std::string_view kernel_name(KernelId id) noexcept {
  Names& table = names();
  const Lock lock(table.mutex);
  if (!id || id.number > table.by_id.size()) return "?";
  return table.by_id[id.number - 1];
}

}  // namespace refrain
