// A launch of an executable graph: its pieces, queued with the dependencies that the graph gives
// them, behind the stream's work and the executable's earlier launches.
#include <algorithm>

#include "simcuda/exec.hpp"
#include "simcuda/graph_memory.hpp"
#include "simcuda/submit.hpp"
#include "simcuda/user_object.hpp"

namespace sim {
namespace {

using Indices = std::vector<std::size_t>;

void add_new(Indices& to, const Indices& from) {
  for (const std::size_t each : from) {
    if (std::find(to.begin(), to.end(), each) == to.end()) to.push_back(each);
  }
}

class Flattener {
 public:
  explicit Flattener(const Exec& exec) : exec_(exec) {}

  std::shared_ptr<const Program> program_of(const Graph& graph) const {
    auto program = std::make_shared<Program>();
    program->exits = add(graph, {}, *program);
    return program;
  }

 private:
  /// Adds the pieces of a graph, the first of which come after `before`; the last of them.
  Indices add(const Graph& graph, const Indices& before, Program& program) const {
    std::map<const Node*, std::vector<const Node*>> dependencies;
    std::set<const Node*> inner;
    for (const Edge& edge : graph.edges) {
      dependencies[edge.to].push_back(edge.from);
      inner.insert(edge.from);
    }
    std::map<const Node*, Indices> ends;
    Indices exits;
    for (const Node* node : in_order(graph)) {
      Indices after;
      for (const Node* each : dependencies[node]) add_new(after, ends.at(each));
      if (dependencies[node].empty()) after = before;
      ends[node] = add(*node, std::move(after), program);
      if (inner.count(node) == 0) add_new(exits, ends[node]);
    }
    return graph.nodes.empty() ? before : exits;
  }

  Indices add(const Node& node, Indices after, Program& program) const {
    if (const auto* child = std::get_if<ChildWork>(&node.work)) {
      return add(*child->graph, after, program);
    }
    Piece piece;
    piece.after = std::move(after);
    if (exec_.disabled.count(&node) == 0) piece.work = node.work;
    for (const Graph* body : graphs_in(piece.work)) piece.bodies.push_back(program_of(*body));
    program.pieces.push_back(std::move(piece));
    return {program.pieces.size() - 1};
  }

  const Exec& exec_;
};

CUresult run(Driver& driver, const Piece& piece);

CUresult run(Driver& driver, const Program& program) {
  for (const Piece& piece : program.pieces) {
    if (const CUresult code = run(driver, piece); code != CUDA_SUCCESS) return code;
  }
  return CUDA_SUCCESS;
}

unsigned value_of(Driver& driver, const Condition& condition) {
  const std::lock_guard lock(driver.mutex);
  return condition.value;
}

CUresult run(Driver& driver, const ConditionalWork& work, const Piece& piece) {
  const auto& bodies = piece.bodies;
  if (work.type == CU_GRAPH_COND_TYPE_WHILE) {
    while (value_of(driver, *work.condition) != 0) {
      if (const CUresult code = run(driver, *bodies[0]); code != CUDA_SUCCESS) return code;
    }
    return CUDA_SUCCESS;
  }
  std::size_t chosen = value_of(driver, *work.condition);
  if (work.type == CU_GRAPH_COND_TYPE_IF) chosen = chosen != 0 ? 0 : 1;
  return chosen < bodies.size() ? run(driver, *bodies[chosen]) : CUDA_SUCCESS;
}

/// On the device's thread, without the driver's mutex.
CUresult run(Driver& driver, const Piece& piece) {
  if (const auto* alloc = std::get_if<AllocWork>(&piece.work)) {
    return run_allocation(*alloc->allocation);
  }
  if (const auto* free = std::get_if<FreeWork>(&piece.work)) return run_free(*free->allocation);
  if (const auto* conditional = std::get_if<ConditionalWork>(&piece.work)) {
    return run(driver, *conditional, piece);
  }
  return perform(driver, piece.work);
}

/// What a launch does before anything of the graph.
struct Prologue {
  std::vector<std::shared_ptr<GraphAllocation>> frees;
  std::vector<std::shared_ptr<Condition>> resets;

  [[nodiscard]] bool empty() const { return frees.empty() && resets.empty(); }

  CUresult run(Driver& driver) const {
    for (const auto& allocation : frees) run_free(*allocation);
    const std::lock_guard lock(driver.mutex);
    for (const auto& condition : resets) condition->value = condition->initial;
    return CUDA_SUCCESS;
  }
};

void add_resets(const Graph& graph, std::vector<std::shared_ptr<Condition>>& resets) {
  for (const auto& condition : graph.conditions) {
    if (condition->reset_at_launch) resets.push_back(condition);
  }
  for (const Node* node : graph.nodes) {
    for (const Graph* inner : graphs_in(node->work)) add_resets(*inner, resets);
  }
}

/// Goes through the allocations and frees of a launch as it will leave them.
CUresult plan_memory(const Exec& exec, const Program& program, Prologue& prologue) {
  const bool frees_first = (exec.flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH) != 0;
  std::map<const GraphAllocation*, bool> allocated;
  for (const Piece& piece : program.pieces) {
    if (const auto* alloc = std::get_if<AllocWork>(&piece.work)) {
      if (alloc->allocation->itself != nullptr) {
        if (!frees_first) return CUDA_ERROR_INVALID_VALUE;
        prologue.frees.push_back(alloc->allocation);
      }
      allocated[alloc->allocation.get()] = true;
    }
    if (const auto* free = std::get_if<FreeWork>(&piece.work)) {
      const auto at =
          allocated.emplace(free->allocation.get(), free->allocation->itself != nullptr);
      if (!at.first->second) return kUnsettled;  // a free of what is not allocated
      at.first->second = false;
    }
  }
  return CUDA_SUCCESS;
}

void must_live(const Object& object, const char* what) {
  if (object.destroyed_by == nullptr) return;
  give_up("cuGraphLaunch",
          std::string("runs ") + what + " that " + object.destroyed_by + " has destroyed");
}

void check_handles(const Program& program) {
  for (const Piece& piece : program.pieces) {
    if (const auto* kernel = std::get_if<KernelWork>(&piece.work)) {
      must_live(*kernel->function, "a kernel");
      must_live(*kernel->function->code, "a kernel of code");
    }
    if (const auto* record = std::get_if<RecordWork>(&piece.work)) {
      must_live(*record->event, "a record of an event");
    }
    if (const auto* wait = std::get_if<WaitWork>(&piece.work)) {
      must_live(*wait->event, "a wait for an event");
    }
    for (const auto& body : piece.bodies) check_handles(*body);
  }
}

/// What issuing a piece changes at once; what it waits for besides.
std::shared_ptr<Op> issue(const Work& work) {
  if (const auto* alloc = std::get_if<AllocWork>(&work)) issue_allocation(alloc->allocation);
  if (const auto* free = std::get_if<FreeWork>(&work)) issue_free(*free->allocation);
  const auto* wait = std::get_if<WaitWork>(&work);
  return wait == nullptr ? nullptr : wait->event->recorded;
}

void record(const Work& work, const std::shared_ptr<Op>& op) {
  const auto* record = std::get_if<RecordWork>(&work);
  if (record == nullptr) return;
  record->event->recorded = op;
  record->event->captured_in = nullptr;
  record->event->captured.clear();
}

/// Nothing to run: only an order to keep.
bool is_only_order(const Work& work) {
  return std::holds_alternative<EmptyWork>(work) || std::holds_alternative<RecordWork>(work) ||
         std::holds_alternative<WaitWork>(work);
}

/// Queues the pieces of a program after `starts`; the last of them.
std::vector<std::shared_ptr<Op>> queue_pieces(Driver& driver, Stream& stream,
                                              const std::shared_ptr<const Program>& program,
                                              const std::vector<std::shared_ptr<Op>>& starts) {
  std::vector<std::shared_ptr<Op>> ops;
  for (const Piece& piece : program->pieces) {
    std::vector<std::shared_ptr<Op>> after;
    for (const std::size_t each : piece.after) after.push_back(ops[each]);
    if (after.empty()) after = starts;
    if (auto also = issue(piece.work); also != nullptr && !also->done) {
      after.push_back(std::move(also));
    }
    std::function<CUresult()> work;
    if (!is_only_order(piece.work)) {
      // The program lives as long as any of its pieces may run.
      work = [&driver, program, &piece] { return run(driver, piece); };
    }
    ops.push_back(driver.queue.add(driver, *stream.context, std::move(after), std::move(work)));
    record(piece.work, ops.back());
  }
  std::vector<std::shared_ptr<Op>> last;
  for (const std::size_t each : program->exits) last.push_back(ops[each]);
  return last.empty() ? starts : last;
}

CUresult may_use(Driver& driver, const Stream& stream) {
  if (stream.capture != nullptr) {
    return stream.capture->invalid ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : kUnsettled;
  }
  return stream.legacy ? enter_legacy(driver, *stream.context) : CUDA_SUCCESS;
}

/// Behind the stream's work and the executable's own.
std::vector<std::shared_ptr<Op>> before(const Driver& driver, const Exec& exec, Stream& stream) {
  auto starts = predecessors(stream);
  const bool ordered = !driver.has_bug("exec-overlaps-itself");
  if (ordered && exec.last_launch != nullptr && !exec.last_launch->done) {
    starts.push_back(exec.last_launch);
  }
  return starts;
}

}  // namespace

CUresult launch(Driver& driver, Exec& exec, Stream& stream) {
  if (this_thread().override_ == Override::no_node) return CUDA_SUCCESS;
  if (const CUresult code = may_use(driver, stream); code != CUDA_SUCCESS) return code;
  if (exec.unsettled) return kUnsettled;
  if (exec.program == nullptr) exec.program = Flattener(exec).program_of(*exec.image);
  const std::shared_ptr<const Program> program = exec.program;
  check_handles(*program);
  Prologue prologue;
  if (const CUresult code = plan_memory(exec, *program, prologue); code != CUDA_SUCCESS) {
    return code;
  }
  add_resets(*exec.image, prologue.resets);

  std::vector<std::shared_ptr<Op>> starts = before(driver, exec, stream);
  if (!prologue.empty()) {
    for (const auto& allocation : prologue.frees) issue_free(*allocation);
    starts = {driver.queue.add(driver, *stream.context, std::move(starts),
                               [&driver, prologue] { return prologue.run(driver); })};
  }
  std::vector<std::shared_ptr<Op>> last = queue_pieces(driver, stream, program, starts);
  const bool holds = std::any_of(exec.references.begin(), exec.references.end(),
                                 [](const auto& each) { return !each.second->objects.empty(); });
  // One piece of work stands for the end; it holds the references of a launch until then.
  if (last.size() != 1 || holds || program->pieces.empty()) {
    last = {driver.queue.add(driver, *stream.context, std::move(last),
                             [references = exec.references] { return CUDA_SUCCESS; })};
  }
  stream.last = last.front();
  exec.last_launch = last.front();
  return CUDA_SUCCESS;
}

CUresult upload(Driver& driver, Exec& exec, Stream& stream) {
  if (const CUresult code = may_use(driver, stream); code != CUDA_SUCCESS) return code;
  exec.last_launch = enqueue(driver, stream, {}, before(driver, exec, stream));
  return CUDA_SUCCESS;
}

}  // namespace sim
