#include "simcuda/objects.hpp"

#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <unordered_map>

namespace sim {
namespace {

/// Every object that was ever made, by the address that is its handle.
struct Table {
  std::mutex mutex;
  std::unordered_map<const void*, std::unique_ptr<Object>> objects;
};

/// Never destroyed: threads of the program may call the driver until its very end.
Table& table() {
  static auto* const kTable = new Table;
  return *kTable;
}

}  // namespace

const char* name_of(Kind kind) noexcept {
  switch (kind) {
    case Kind::context: return "context";
    case Kind::stream: return "stream";
    case Kind::event: return "event";
    case Kind::module: return "module";
    case Kind::library: return "library";
    case Kind::function: return "function";
    case Kind::graph: return "graph";
    case Kind::node: return "node";
    case Kind::exec: return "exec";
    case Kind::pool: return "pool";
    case Kind::user_object: return "user object";
  }
  return "object";
}

Object* find_object(const void* handle, Kind kind, const char* function) {
  if (handle == nullptr) return nullptr;
  const std::lock_guard lock(table().mutex);
  const auto at = table().objects.find(handle);
  if (at == table().objects.end()) {
    give_up(function, std::string("was given a ") + name_of(kind) + " that this driver never made");
  }
  Object& object = *at->second;
  if (object.kind != kind) {
    give_up(function,
            std::string("was given a ") + name_of(object.kind) + " as a " + name_of(kind));
  }
  if (object.destroyed_by != nullptr) {
    give_up(function, std::string("was given a ") + name_of(kind) + " that " + object.destroyed_by +
                          " has destroyed");
  }
  return &object;
}

void keep(std::unique_ptr<Object> object) {
  const std::lock_guard lock(table().mutex);
  const void* handle = object.get();
  table().objects.emplace(handle, std::move(object));
}

void destroy(Object& object, const char* function) {
  const std::lock_guard lock(table().mutex);
  object.destroyed_by = function;
}

std::size_t live_objects(Kind kind) {
  const std::lock_guard lock(table().mutex);
  std::size_t count = 0;
  for (const auto& [handle, object] : table().objects) {
    if (object->kind == kind && object->destroyed_by == nullptr) ++count;
  }
  return count;
}

void give_up(const char* function, const std::string& what) {
  std::fprintf(stderr, "simcuda: %s %s.\n", function, what.c_str());
  std::abort();
}

}  // namespace sim
