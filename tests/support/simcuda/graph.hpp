// Graphs as the simulation keeps them: nodes and edges in the order in which they were added, and
// graphs within nodes. Everything here is guarded by the driver's mutex, but GraphUse, which
// catches what that mutex would hide: two threads in one graph at a time.
#pragma once

#include <cstring>
#include <optional>

#include "simcuda/driver.hpp"

namespace sim {

/// What a caller gave as an enumerator, which it need not be, as a number.
template <class Enum>
int raw(const Enum& given) {
  static_assert(sizeof(Enum) == sizeof(int));
  int number = 0;
  std::memcpy(&number, &given, sizeof number);
  return number;
}

inline bool same(const CUgraphEdgeData& a, const CUgraphEdgeData& b) {
  return a.from_port == b.from_port && a.to_port == b.to_port && a.type == b.type;
}
/// Whether an edge says more than that one node comes after the other.
inline bool annotated(const CUgraphEdgeData& data) { return !same(data, {}); }

/// Whether a graph is found by its handle, as what a caller made, or is the inside of an
/// executable, which nobody has a handle of.
enum class Handles : std::uint8_t { known, hidden };

Graph* make_graph(Handles handles = Handles::known);
/// A node that depends on others, in that order.
Node* add_node(Graph& graph, Work work, const std::vector<Dependency>& dependencies,
               Handles handles = Handles::known);
/// A copy with the graphs in it, whose `clone_of` leads from each node to its copy. Memory and
/// conditions are shared with the original; user objects get references of their own.
Graph* copy_graph(const Graph& original, Handles handles);
/// With its nodes, the graphs in them, and its references to user objects.
void destroy_graph(Graph& graph, const char* function);
void destroy_node(Node& node, const char* function);
/// Frees a graph that was made without handles.
void delete_hidden(Graph* graph);

/// The graphs that a node owns: a child, or the bodies of a conditional.
std::vector<Graph*> graphs_in(const Work& work);

/// Whether an edge with that data may go from one piece of work to another.
bool may_connect(const Work& from, const Work& to, const CUgraphEdgeData& data);
std::vector<Dependency> dependencies_of(const Node& node);
std::vector<Dependency> dependents_of(const Node& node);
bool has_edge(const Graph& graph, const Node* from, const Node* to);

/// Every node after those that it depends on, otherwise in the order of adding; fewer than all
/// nodes when some are on a cycle or behind one.
std::vector<Node*> in_order(const Graph& graph);
/// A node, here or in a graph within, that is on a cycle or behind one; null: there is none.
Node* first_cyclic(const Graph& graph);

/// Whether a node, here or in a graph within, holds that kind of work.
template <class Kind>
bool has(const Graph& graph) {
  for (const Node* node : graph.nodes) {
    if (std::holds_alternative<Kind>(node->work)) return true;
    for (const Graph* inner : graphs_in(node->work)) {
      if (has<Kind>(*inner)) return true;
    }
  }
  return false;
}
inline bool has_memory(const Graph& graph) { return has<AllocWork>(graph) || has<FreeWork>(graph); }

CUgraphNodeType type_of(const Work& work);

/// The value that a kernel sets with cudaGraphSetConditional. Takes the driver's mutex.
void set_condition(Driver& driver, std::uint64_t handle, unsigned value);
/// The condition of a handle that still belongs to a graph or an executable; null: none.
std::shared_ptr<Condition> condition_of(std::uint64_t handle);
std::shared_ptr<Condition> make_condition(Driver& driver, Graph& graph, unsigned initial,
                                          bool reset_at_launch);

/// Says that this thread is inside a call on a graph, for as long as it lives. Ends the process
/// when another thread is: a real driver does not lock graphs. Made before the driver's mutex is
/// taken; nothing for a null handle.
class GraphUse {
 public:
  GraphUse(CUgraph graph, const char* function)
      : GraphUse(find<Graph>(graph, function), function) {}
  GraphUse(CUgraphNode node, const char* function);
  ~GraphUse();
  GraphUse(const GraphUse&) = delete;
  GraphUse& operator=(const GraphUse&) = delete;

 private:
  GraphUse(Graph* graph, const char* function);

  Graph* graph_ = nullptr;
};

/// `call` for a function on a graph or on a node of one.
template <class Handle, class Body>
CUresult graph_call(const char* function, Handle handle, Body body) {
  const GraphUse use(handle, function);
  return call({function, handle}, body);
}

}  // namespace sim
