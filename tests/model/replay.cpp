// Plans, instances and replays: rules P.
#include <algorithm>

#include "model/model.hpp"

namespace refrain::model {
namespace {

const Shape* region_of(const Graph& graph, const std::string& name, int& number) {
  for (std::size_t at = 0; at < graph.regions.size(); ++at) {
    if (graph.regions[at].name != name || name.empty()) continue;
    number = static_cast<int>(at);
    return &graph.regions[at];
  }
  return nullptr;
}

bool writes_region(const Graph& graph, int region) {
  return std::any_of(graph.writes.begin(), graph.writes.end(),
                     [&](const At& at) { return at.first == region; });
}

bool own(const Shape& shape) { return shape.role == Role::constant || shape.role == Role::scratch; }

}  // namespace

bool Model::not_portable(const Graph& graph) const {
  return std::any_of(graph.reads.begin(), graph.reads.end(), [&](const At& at) {
    const Role role = graph.regions[static_cast<std::size_t>(at.first)].role;
    return role != Role::input && role != Role::state;
  });
}

std::shared_ptr<Plan> Model::plan(const std::shared_ptr<const Graph>& graph) {
  auto made = std::make_shared<Plan>();
  made->graph = graph;
  for (const Shape& shape : graph->regions) {
    made->constants.push_back(-1);
    if (shape.role == Role::constant) {
      made->owners.push_back(allocate(shape, false, made->constants.back()));
    }
  }
  return made;
}

void Model::give(Instance& instance, int region) {
  const auto at = static_cast<std::size_t>(region);
  const Shape& shape = instance.graph->regions[at];
  const bool scratch = shape.role == Role::scratch;
  const bool unwritten = !scratch && (checks_ || shape.role == Role::input);
  instance.owners[at] = allocate(shape, unwritten, instance.memory[at]);
  instance.listed = false;
}

std::shared_ptr<Instance> Model::instance(const std::shared_ptr<Plan>& plan) {
  auto made = std::make_shared<Instance>();
  made->graph = plan->graph;
  made->plan = plan;
  made->memory = plan->constants;
  made->offset.resize(made->memory.size());
  made->owners.resize(made->memory.size());
  for (std::size_t at = 0; at < made->memory.size(); ++at) {
    const Role role = made->graph->regions[at].role;
    if (role == Role::state || role == Role::scratch) give(*made, static_cast<int>(at));
  }
  return made;
}

std::shared_ptr<Instance> Model::instance(const std::shared_ptr<Recording>& recording,
                                          Answer& answer) {
  if (recording->in_use) {  // P7
    answer = refused(ErrorKind::busy);
    return nullptr;
  }
  recording->in_use = true;
  auto made = std::make_shared<Instance>();
  made->graph = recording->graph;
  made->recording = recording;
  made->memory = recording->memory;
  made->offset.resize(made->memory.size());
  made->owners = recording->owners;
  return made;
}

Spans Model::spans_of(const Instance& instance, const std::set<At>& bytes, bool scratch) {
  Spans all;
  for (const auto& [region, byte] : bytes) {
    const auto at = static_cast<std::size_t>(region);
    if (!scratch && !instance.recording && instance.graph->regions[at].role == Role::scratch) {
      continue;
    }
    const std::uint64_t where = instance.offset[at] + byte;
    if (!all.empty() && all.back().buffer == instance.memory[at] && all.back().end == where) {
      ++all.back().end;
    } else {
      all.push_back({instance.memory[at], where, where + 1});
    }
  }
  return all;
}

void Model::list(Instance& instance) {
  const Graph& graph = *instance.graph;
  std::set<At> fresh;
  std::set_difference(graph.writes.begin(), graph.writes.end(), graph.reads.begin(),
                      graph.reads.end(), std::inserter(fresh, fresh.end()));
  instance.reads = spans_of(instance, graph.reads, true);
  instance.writes = spans_of(instance, graph.writes, false);  // P1
  instance.fresh = spans_of(instance, fresh, false);
  instance.listed = true;
}

Answer Model::complete(Instance& instance) {
  if (instance.listed) return {};
  for (const auto& [region, byte] : instance.graph->reads) {
    if (instance.memory[static_cast<std::size_t>(region)] < 0) return refused(ErrorKind::unbound);
  }
  for (std::size_t at = 0; at < instance.memory.size(); ++at) {
    if (instance.memory[at] < 0) give(instance, static_cast<int>(at));
  }
  list(instance);
  return {};
}

Answer Model::locate(Instance& instance, const std::string& name, Span& span) {
  int region = 0;
  const Shape* const shape = region_of(*instance.graph, name, region);
  if (shape == nullptr || own(*shape)) return refused(ErrorKind::unbound);
  const auto at = static_cast<std::size_t>(region);
  if (instance.memory[at] < 0) give(instance, region);
  span = {instance.memory[at], instance.offset[at], instance.offset[at] + shape->size};
  return {};
}

Answer Model::bind(Instance& instance, const std::string& name, const Span& span,
                   bool other_element) {
  int region = 0;
  const Shape* const shape = region_of(*instance.graph, name, region);
  if (shape == nullptr || own(*shape)) return refused(ErrorKind::unbound);
  if (other_element) return refused(ErrorKind::invalid_argument);
  if (const auto unsound = wrong(span)) return refused(*unsound);
  if (span.end - span.begin != shape->size) return refused(ErrorKind::invalid_argument);
  const bool written = writes_region(*instance.graph, region);
  if (written && at(span.buffer).shape.role == Role::constant) {
    return refused(ErrorKind::invalid_argument);
  }
  for (std::size_t other = 0; other < instance.memory.size(); ++other) {
    if (static_cast<int>(other) == region || instance.memory[other] < 0) continue;
    const Span taken{instance.memory[other], instance.offset[other],
                     instance.offset[other] + instance.graph->regions[other].size};
    const bool either = written || writes_region(*instance.graph, static_cast<int>(other));
    if (either && overlap({taken}, {span})) return refused(ErrorKind::invalid_argument);
  }
  const auto at = static_cast<std::size_t>(region);
  if (instance.memory[at] == span.buffer && instance.offset[at] == span.begin) return {};
  if (instance.listed) {
    host_waited(instance.reads, true);
    host_waited(instance.writes, true);
  }
  instance.memory[at] = span.buffer;
  instance.offset[at] = span.begin;
  instance.owners[at] = this->at(span.buffer).owner.lock();
  instance.listed = false;
  return {};
}

Answer Model::replay(int s, const std::shared_ptr<Instance>& instance, bool look) {
  if (capturing(s) != nullptr) return refused(ErrorKind::refused_in_window);
  if (Answer complete = this->complete(*instance); !complete.ok()) return complete;
  if (recorded_write(instance->reads)) {  // C9
    return fail(s, instance->fresh, ErrorKind::unordered, "");
  }
  if (!in_order(s, instance->reads, instance->writes)) {  // E11
    return fail(s, instance->fresh, ErrorKind::unordered, "");
  }
  if (look) {  // P2
    const int beneath = instance->recording ? instance->recording->mark : 0;
    std::set<At> states;
    for (const auto& [region, byte] : instance->graph->reads) {
      const auto at = static_cast<std::size_t>(region);
      if (instance->graph->regions[at].role != Role::state) continue;
      states.insert({instance->memory[at], instance->offset[at] + byte});
    }
    if (const int met = first_failure(nullptr, instance->reads, beneath, states); met != 0) {
      pass_writes(instance->fresh, on(s).worker);
      skipped(s);
      hear(s, failure(met).kind, failure(met).says, met);
      claim(nullptr, instance->fresh, met, failure(met).open);
      return {Answer::What::skipped, ErrorKind::skipped, met, ""};
    }
  }
  pass_reads(instance->reads);
  Work work;
  if (look) work.reads = instance->reads;
  work.writes = instance->writes;
  work.unrun = instance->fresh;
  work.asked = true;
  work.looks = work.heard = false;
  // M4: queued, it owns nothing of what it works on.
  work.run = [this, graph = instance->graph, memory = instance->memory,
              offsets = instance->offset]() -> Ran {
    for (const Node& node : graph->nodes) {
      std::vector<std::pair<Use, Span>> arguments;
      for (const NodeArgument& argument : node.arguments) {
        const auto at = static_cast<std::size_t>(argument.region);
        arguments.push_back(
            {argument.use, {memory[at], offsets[at] + argument.begin, offsets[at] + argument.end}});
      }
      Ran ran = run(arguments, node);
      if (ran.how != Ran::How::clean) return ran;
    }
    return {};
  };
  return issue(s, std::move(work));
}

Answer Model::reset(int s, Instance& instance) {
  if (capturing(s) != nullptr) return refused(ErrorKind::refused_in_window);
  for (std::size_t at = 0; at < instance.memory.size(); ++at) {
    const Shape& shape = instance.graph->regions[at];
    if (shape.role != Role::state) continue;
    const Span span{instance.memory[at], instance.offset[at], instance.offset[at] + shape.size};
    host_waited({span}, true);
    const Answer answer = shape.zero ? fill(s, span, 0) : write(s, span, *shape.start);
    if (!answer.ok()) return answer;
  }
  return {};
}

}  // namespace refrain::model
