// What the driver's handles point to. Nothing here is ever freed: a handle that was destroyed stays
// recognisable, so that its use ends the process with a sentence instead of corrupting it.
//
// Everything is guarded by the driver's mutex (driver.hpp), except where it says otherwise.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cuda_api.hpp"
#include "simcuda/work.hpp"

namespace sim {

enum class Kind : std::uint8_t {
  context,
  stream,
  event,
  module,
  library,
  function,
  graph,
  node,
  exec,
  pool,
  user_object,
};

/// "stream", as `Control::live` takes it.
const char* name_of(Kind kind) noexcept;

struct Op;
struct Capture;
struct Stream;

struct Object {
  explicit Object(Kind kind_of) : kind(kind_of) {}
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;
  virtual ~Object() = default;

  const Kind kind;
  const char* destroyed_by = nullptr;  ///< The function that destroyed it, if one has.
  /// The thread that is inside a call on this object, 0: none. Not guarded by the mutex.
  std::atomic<std::uint64_t> user{0};
};

struct Context : Object {
  static constexpr Kind kKind = Kind::context;
  Context() : Object(kKind) {}

  std::uint64_t id = 0;
  unsigned flags = 0;
  /// A sticky error: what nearly every call answers from now on.
  CUresult error = CUDA_SUCCESS;
  bool ending = false;  ///< Its destruction waits for its work.
  Stream* legacy = nullptr;
  /// Without `legacy`: those that live, and those that were destroyed with work in flight.
  std::vector<Stream*> streams;
  std::vector<struct Code*> modules;
  std::vector<struct Event*> events;
  std::map<CUlimit, std::size_t> limits;
};

/// One capture in progress, or one that ended and whose events may still be looked at.
struct Capture {
  std::uint64_t id = 0;
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  std::uint64_t thread = 0;  ///< That began it.
  Stream* origin = nullptr;
  std::vector<Stream*> members;  ///< With the origin.
  struct Graph* graph = nullptr;
  bool graph_is_callers = false;  ///< BeginCaptureToGraph.
  bool invalid = false;
  bool ended = false;
  bool unsettled = false;       ///< Something happened after which its state is not established.
  std::set<struct Node*> work;  ///< The nodes that must be joined when it ends.
};

struct Dependency {
  struct Node* node = nullptr;
  CUgraphEdgeData data{};
};

struct Stream : Object {
  static constexpr Kind kKind = Kind::stream;
  Stream() : Object(kKind) {}

  Context* context = nullptr;
  unsigned flags = 0;
  int priority = 0;
  std::uint64_t id = 0;
  bool legacy = false;
  std::map<CUstreamAttrID, CUstreamAttrValue> attributes;  ///< Those that were set.
  [[nodiscard]] bool blocking() const { return (flags & CU_STREAM_NON_BLOCKING) == 0; }

  std::shared_ptr<Op> last;  ///< The last work issued to it.

  std::shared_ptr<Capture> capture;      ///< While it is a member of one.
  std::vector<Dependency> dependencies;  ///< What the next captured node depends on.
  // What cuStreamGetCaptureInfo last pointed to.
  std::vector<CUgraphNode> shown_nodes;
  std::vector<CUgraphEdgeData> shown_edges;
};

struct Event : Object {
  static constexpr Kind kKind = Kind::event;
  Event() : Object(kKind) {}

  Context* context = nullptr;
  unsigned flags = 0;
  std::shared_ptr<Op> recorded;          ///< Where it was recorded outside a capture; null: never.
  std::shared_ptr<Capture> captured_in;  ///< Set: it was last recorded in that capture.
  std::vector<Dependency> captured;
  std::vector<std::shared_ptr<Op>> waits;  ///< For one of the deliberate errors only.
};

/// One kernel of an image.
struct Entry {
  std::string name;
  struct Parameter {
    std::size_t offset = 0;
    std::size_t size = 0;
  };
  std::vector<Parameter> parameters;
  std::size_t parameter_bytes = 0;
  int max_threads = 1024;
  int registers = 32;
  int static_shared_bytes = 0;
};

/// One variable of an image.
struct Variable {
  std::string name;
  std::vector<std::byte> initial;  ///< As many bytes as it has.
  std::uint64_t address = 0;       ///< In a module: where it is.
};

/// A loaded image: a CUmodule or a CUlibrary.
struct Code : Object {
  explicit Code(Kind kind_of) : Object(kind_of) {}
  Context* context = nullptr;
  std::deque<Entry> entries;
  /// None: they are not read from this kind of image.
  std::optional<std::vector<Variable>> variables;
  std::vector<struct Function*> functions;  ///< One an entry; made with the image.
  Code* module = nullptr;                   ///< A library's module, made on demand.
  int ptx_version = 0;
  int binary_version = 0;
};

/// A CUfunction or a CUkernel: the driver takes one for the other in launches.
struct Function : Object {
  static constexpr Kind kKind = Kind::function;
  Function() : Object(kKind) {}
  Code* code = nullptr;
  const Entry* entry = nullptr;
  bool is_kernel = false;    ///< A CUkernel.
  Function* twin = nullptr;  ///< A CUkernel's CUfunction.
  std::map<CUfunction_attribute, int> attributes;
};

struct Pool : Object {
  static constexpr Kind kKind = Kind::pool;
  Pool() : Object(kKind) {}
  std::uint64_t release_threshold = 0;
  std::uint64_t in_use = 0;
  std::uint64_t in_use_high = 0;
  std::map<CUmemPool_attribute, int> switches;
};

struct UserObject : Object {
  static constexpr Kind kKind = Kind::user_object;
  UserObject() : Object(kKind) {}
  CUhostFn destroy = nullptr;
  void* value = nullptr;
  unsigned references = 0;
};

struct Node : Object {
  static constexpr Kind kKind = Kind::node;
  Node() : Object(kKind) {}

  struct Graph* graph = nullptr;
  Work work;
  // What the Get functions last pointed to.
  std::vector<void*> shown_arguments;
  std::vector<void*> shown_extra;
  std::vector<std::byte> shown_block;
  std::size_t shown_block_bytes = 0;
};

struct Edge {
  Node* from = nullptr;
  Node* to = nullptr;
  CUgraphEdgeData data{};
};

struct Graph : Object {
  static constexpr Kind kKind = Kind::graph;
  Graph() : Object(kKind) {}

  std::vector<Node*> nodes;  ///< In the order in which they were added.
  std::vector<Edge> edges;   ///< Likewise.
  std::map<UserObject*, unsigned> references;
  Node* owner = nullptr;  ///< The child or conditional node that it is the body of.
  Graph* cloned_from = nullptr;
  std::map<Node*, Node*> clone_of;  ///< In a clone: the original's node -> its own.
  unsigned executables = 0;         ///< That live.
  Capture* capture = nullptr;       ///< While one adds to it.
  std::vector<std::shared_ptr<struct Condition>> conditions;
};

struct Exec : Object {
  static constexpr Kind kKind = Kind::exec;
  Exec() : Object(kKind) {}

  Graph* source = nullptr;
  std::uint64_t flags = 0;
  /// Its own copy of the graph; `image->clone_of` leads from the original's nodes to its own.
  Graph* image = nullptr;
  bool unsettled = false;  ///< An update was refused, perhaps after it had changed something.
  std::set<const Node*> disabled;  ///< Of the image's nodes.
  /// Of each of the image's graphs; held by each launch too, so that they go when the last ends.
  std::map<const Graph*, std::shared_ptr<struct HeldReferences>> references;
  std::shared_ptr<const struct Program> program;  ///< What a launch runs; null: to be made anew.
  std::shared_ptr<Op> last_launch;                ///< Or upload.
};

/// The object behind a handle: null for a null handle. Ends the process, naming `function`, when
/// the handle was never made here, is of another kind, or was destroyed. Takes its own lock.
Object* find_object(const void* handle, Kind kind, const char* function);
/// `Code` may be a module or a library; this names which.
template <class T, class Handle>
T* find(Handle handle, const char* function, Kind kind) {
  return static_cast<T*>(find_object(handle, kind, function));
}
template <class T, class Handle>
T* find(Handle handle, const char* function) {
  return static_cast<T*>(find_object(handle, T::kKind, function));
}

/// Lets `find` know an object, which lives on until the process ends.
void keep(std::unique_ptr<Object> object);

/// Makes an object that `find` knows.
template <class T, class... Arguments>
T* make(Arguments&&... arguments) {
  auto object = std::make_unique<T>(std::forward<Arguments>(arguments)...);
  T* made = object.get();
  keep(std::move(object));
  return made;
}

/// From now on `find` refuses it. Its contents may be let go of by the caller.
void destroy(Object& object, const char* function);

/// Objects of that kind that live.
std::size_t live_objects(Kind kind);

template <class Handle>
Handle handle_of(Object* object) {
  return reinterpret_cast<Handle>(object);
}

/// Ends the process with a sentence: the caller has done what a real driver answers with a crash,
/// silence or corrupted memory.
[[noreturn]] void give_up(const char* function, const std::string& what);

}  // namespace sim
