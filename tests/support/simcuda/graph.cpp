#include "simcuda/graph.hpp"

#include <algorithm>

#include "simcuda/user_object.hpp"

namespace sim {
namespace {

template <class T>
T* made(Handles handles) {
  return handles == Handles::known ? make<T>() : new T;
}

/// Work that holds no graphs of its owner's any more, but copies of them.
Work copy_work(const Work& work, Node& owner, Handles handles) {
  Work copy = work;
  if (auto* child = std::get_if<ChildWork>(&copy)) {
    child->graph = copy_graph(*child->graph, handles);
    child->graph->owner = &owner;
  }
  if (auto* conditional = std::get_if<ConditionalWork>(&copy)) {
    for (CUgraph& body : conditional->bodies) {
      Graph* copied = copy_graph(*reinterpret_cast<Graph*>(body), handles);
      copied->owner = &owner;
      body = handle_of<CUgraph>(copied);
    }
  }
  return copy;
}

std::map<std::uint64_t, std::weak_ptr<Condition>>& conditions() {
  static auto* const kConditions = new std::map<std::uint64_t, std::weak_ptr<Condition>>;
  return *kConditions;
}

}  // namespace

Graph* make_graph(Handles handles) { return made<Graph>(handles); }

Node* add_node(Graph& graph, Work work, const std::vector<Dependency>& dependencies,
               Handles handles) {
  Node* node = made<Node>(handles);
  node->graph = &graph;
  node->work = std::move(work);
  for (Graph* inner : graphs_in(node->work)) inner->owner = node;
  graph.nodes.push_back(node);
  for (const Dependency& each : dependencies) graph.edges.push_back({each.node, node, each.data});
  return node;
}

Graph* copy_graph(const Graph& original, Handles handles) {
  Graph* copy = make_graph(handles);
  for (Node* node : original.nodes) {
    Node* copied = add_node(*copy, EmptyWork{}, {}, handles);
    copied->work = copy_work(node->work, *copied, handles);
    copy->clone_of[node] = copied;
  }
  for (const Edge& edge : original.edges) {
    copy->edges.push_back({copy->clone_of.at(edge.from), copy->clone_of.at(edge.to), edge.data});
  }
  // A hidden copy lives in an executable, which holds its references itself.
  if (handles == Handles::known) {
    copy->references = original.references;
    for (const auto& [object, count] : copy->references) retain(*object, count);
  }
  copy->conditions = original.conditions;
  return copy;
}

void destroy_node(Node& node, const char* function) {
  for (Graph* inner : graphs_in(node.work)) destroy_graph(*inner, function);
  if (auto* conditional = std::get_if<ConditionalWork>(&node.work)) {
    conditional->condition->used = false;
  }
  node.work = EmptyWork{};
  destroy(node, function);
}

void destroy_graph(Graph& graph, const char* function) {
  for (Node* node : graph.nodes) destroy_node(*node, function);
  for (const auto& [object, count] : graph.references) release(*object, count, function);
  graph.nodes.clear();
  graph.edges.clear();
  graph.references.clear();
  graph.clone_of.clear();
  graph.conditions.clear();
  destroy(graph, function);
}

void delete_hidden(Graph* graph) {
  for (Node* node : graph->nodes) {
    for (Graph* inner : graphs_in(node->work)) delete_hidden(inner);
    delete node;
  }
  delete graph;
}

std::vector<Graph*> graphs_in(const Work& work) {
  std::vector<Graph*> graphs;
  if (const auto* child = std::get_if<ChildWork>(&work)) graphs.push_back(child->graph);
  if (const auto* conditional = std::get_if<ConditionalWork>(&work)) {
    for (CUgraph body : conditional->bodies) graphs.push_back(reinterpret_cast<Graph*>(body));
  }
  return graphs;
}

bool may_connect(const Work& from, const Work& to, const CUgraphEdgeData& data) {
  for (const unsigned char each : data.reserved) {
    if (each != 0) return false;
  }
  if (data.to_port != 0 || data.from_port > CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER) return false;
  if (data.type == CU_GRAPH_DEPENDENCY_TYPE_DEFAULT) return data.from_port == 0;
  return data.type == CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC && data.from_port != 0 &&
         std::holds_alternative<KernelWork>(from) && std::holds_alternative<KernelWork>(to);
}

std::vector<Dependency> dependencies_of(const Node& node) {
  std::vector<Dependency> dependencies;
  for (const Edge& edge : node.graph->edges) {
    if (edge.to == &node) dependencies.push_back({edge.from, edge.data});
  }
  return dependencies;
}

std::vector<Dependency> dependents_of(const Node& node) {
  std::vector<Dependency> dependents;
  for (const Edge& edge : node.graph->edges) {
    if (edge.from == &node) dependents.push_back({edge.to, edge.data});
  }
  return dependents;
}

bool has_edge(const Graph& graph, const Node* from, const Node* to) {
  return std::any_of(graph.edges.begin(), graph.edges.end(),
                     [&](const Edge& edge) { return edge.from == from && edge.to == to; });
}

std::vector<Node*> in_order(const Graph& graph) {
  std::map<const Node*, std::size_t> missing;
  std::map<const Node*, std::vector<Node*>> dependents;
  for (const Edge& edge : graph.edges) {
    ++missing[edge.to];
    dependents[edge.from].push_back(edge.to);
  }
  std::vector<Node*> order;
  for (Node* node : graph.nodes) {
    if (missing[node] == 0) order.push_back(node);
  }
  for (std::size_t at = 0; at < order.size(); ++at) {
    for (Node* next : dependents[order[at]]) {
      if (--missing[next] == 0) order.push_back(next);
    }
  }
  return order;
}

Node* first_cyclic(const Graph& graph) {
  const std::vector<Node*> order = in_order(graph);
  for (Node* node : graph.nodes) {
    if (std::find(order.begin(), order.end(), node) == order.end()) return node;
    for (const Graph* inner : graphs_in(node->work)) {
      if (Node* cyclic = first_cyclic(*inner)) return cyclic;
    }
  }
  return nullptr;
}

CUgraphNodeType type_of(const Work& work) {
  struct Type {
    CUgraphNodeType operator()(const EmptyWork&) const { return CU_GRAPH_NODE_TYPE_EMPTY; }
    CUgraphNodeType operator()(const KernelWork&) const { return CU_GRAPH_NODE_TYPE_KERNEL; }
    CUgraphNodeType operator()(const CopyWork&) const { return CU_GRAPH_NODE_TYPE_MEMCPY; }
    CUgraphNodeType operator()(const FillWork&) const { return CU_GRAPH_NODE_TYPE_MEMSET; }
    CUgraphNodeType operator()(const HostWork&) const { return CU_GRAPH_NODE_TYPE_HOST; }
    CUgraphNodeType operator()(const ChildWork&) const { return CU_GRAPH_NODE_TYPE_GRAPH; }
    CUgraphNodeType operator()(const RecordWork&) const { return CU_GRAPH_NODE_TYPE_EVENT_RECORD; }
    CUgraphNodeType operator()(const WaitWork&) const { return CU_GRAPH_NODE_TYPE_WAIT_EVENT; }
    CUgraphNodeType operator()(const AllocWork&) const { return CU_GRAPH_NODE_TYPE_MEM_ALLOC; }
    CUgraphNodeType operator()(const FreeWork&) const { return CU_GRAPH_NODE_TYPE_MEM_FREE; }
    CUgraphNodeType operator()(const ConditionalWork&) const {
      return CU_GRAPH_NODE_TYPE_CONDITIONAL;
    }
  };
  return std::visit(Type{}, work);
}

std::shared_ptr<Condition> make_condition(Driver& driver, Graph& graph, unsigned initial,
                                          bool reset_at_launch) {
  auto condition = std::make_shared<Condition>();
  condition->handle = ++driver.last_id;
  condition->graph = &graph;
  condition->initial = initial;
  condition->reset_at_launch = reset_at_launch;
  conditions()[condition->handle] = condition;
  graph.conditions.push_back(condition);
  return condition;
}

std::shared_ptr<Condition> condition_of(std::uint64_t handle) {
  const auto at = conditions().find(handle);
  return at == conditions().end() ? nullptr : at->second.lock();
}

void set_condition(Driver& driver, std::uint64_t handle, unsigned value) {
  const std::lock_guard lock(driver.mutex);
  const auto condition = condition_of(handle);
  if (condition == nullptr)
    give_up("cudaGraphSetConditional", "was given no handle of a condition");
  condition->value = value;
}

GraphUse::GraphUse(CUgraphNode node, const char* function)
    : GraphUse(node == nullptr ? nullptr : find<Node>(node, function)->graph, function) {}

GraphUse::GraphUse(Graph* graph, const char* function) : graph_(graph) {
  if (graph_ == nullptr) return;
  std::uint64_t user = 0;
  if (graph_->user.compare_exchange_strong(user, this_thread().number)) return;
  graph_ = nullptr;  // the same graph twice among one call's arguments
  if (user != this_thread().number) {
    give_up(function,
            "was called on a graph that another thread is using: graphs are for one "
            "thread at a time");
  }
}

GraphUse::~GraphUse() {
  if (graph_ != nullptr) graph_->user.store(0);
}

}  // namespace sim
