// Executable graphs: a copy of a graph, and what a launch makes of it. A launch takes the copy
// apart into pieces of queued work, so that any order that the graph allows may come about; what it
// runs is a value of its own, that later changes of the executable do not reach.
#pragma once

#include "simcuda/driver.hpp"
#include "simcuda/graph.hpp"

namespace sim {

/// One piece of a launch: a node that is not a child's.
struct Piece {
  Work work;
  std::vector<std::size_t> after;  ///< Indices of pieces; empty: may start at once.
  /// What the bodies of a conditional run.
  std::vector<std::shared_ptr<const struct Program>> bodies;
};

struct Program {
  std::vector<Piece> pieces;       ///< Each after those that it depends on.
  std::vector<std::size_t> exits;  ///< The pieces that nothing depends on.
};

/// A new executable; its handle is the caller's. Everything that can be wrong with the graph has
/// been looked at by `check`.
Exec* instantiate(Graph& graph, std::uint64_t flags);

/// Whether a graph may be instantiated with those flags: what the driver answers, and the rest of
/// what it tells.
struct Verdict {
  CUresult code = CUDA_SUCCESS;
  CUgraphInstantiateResult result = CUDA_GRAPH_INSTANTIATE_SUCCESS;
  Node* node = nullptr;
};
Verdict check(const Driver& driver, const Graph& graph, std::uint64_t flags);

CUresult launch(Driver& driver, Exec& exec, Stream& stream);
CUresult upload(Driver& driver, Exec& exec, Stream& stream);
/// In flight it ends what it has begun.
void destroy_exec(Exec& exec, const char* function);

/// The references of a graph and of those within it, as an executable that is made or updated from
/// it holds them: under its own graphs.
void take_references(Exec& exec, const Graph& from, const Graph& image);

/// What an update met that it cannot change.
struct Mismatch {
  CUgraphExecUpdateResult result = CU_GRAPH_EXEC_UPDATE_ERROR;
  Node* node = nullptr;
  Node* from = nullptr;
};
/// Gives the nodes of an executable's graph the parameters of those of another, pairing them from
/// the last to the first by the order of their edges. Changes nothing on a mismatch.
std::optional<Mismatch> update(Exec& exec, const Graph& graph, Graph& image);

/// The first reason why a node of an executable cannot become that work; none: it can.
std::optional<CUgraphExecUpdateResult> cannot_become(const Driver& driver, const Exec& exec,
                                                     const Work& now, const Work& wanted);

}  // namespace sim
