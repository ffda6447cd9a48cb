// What goes wrong in a node of a graph, said to be that node's.
#pragma once

#include <cstddef>
#include <exception>
#include <string>
#include <utility>

#include "refrain/base/text.hpp"
#include "refrain/capture/sealed_graph.hpp"
#include "refrain/device/backend.hpp"

namespace refrain {

/// `error`, said to have happened while `doing`, as in "replaying", node `at` of `graph`, and where
/// that was recorded, if it was in this process.
inline Error of_node(const SealedGraph& graph, std::size_t at, const Error& error,
                     const char* doing = "replaying") {
  const Node& node = graph.nodes()[at];
  return error.with_context(std::string("While ") + doing + " node " + std::to_string(at) + ", " +
                            quote(graph.node_name(node)) + text(node.where) + ", of graph " +
                            graph.title() + ".");
}

/// Inside a handler: throws what is being handled on, as what node `at` threw.
[[noreturn]] inline void rethrow_of_node(const SealedGraph& graph, std::size_t at) {
  const std::exception_ptr thrown = std::current_exception();
  if (thrown == nullptr) throw;  // a thread that is being ended, or another language's
  NodeThrew threw{Error::thrown(thrown)};
  threw.tell([&](const Error& error) { return of_node(graph, at, error); });
  throw threw;  // NOLINT: it has been told more than it was made with
}

}  // namespace refrain
