// Launches, copies, fills, writes and reads: rules K, M6, O11 and R.
#include <algorithm>

#include "model/model.hpp"

namespace refrain::model {

// Work.

Answer Model::issue(int s, Work work) {
  Window* const inside = capturing(s);
  const Spans unrun = work.unrun.value_or(work.writes);
  const bool asks = !work.at_once && !work.asked;
  if (asks && inside == nullptr && recorded_write(work.reads)) {  // C9
    if (work.name != "copy") pass_reads(work.reads);
    return fail(s, unrun, ErrorKind::unordered, "");
  }
  if (asks && !in_order(s, work.reads, work.writes)) {  // E11
    if (work.name != "copy") pass_reads(work.reads);
    return fail(s, unrun, ErrorKind::unordered, "no event and no sync puts one after the other");
  }
  if (work.heard) about_to_run(s, work);
  Answer answer;
  const std::unique_ptr<Scope> opened =
      open(s, work.reads, work.writes, work.looks, answer, on(s).worker && !work.at_once);
  if (opened == nullptr) {
    skipped(s);
    return answer;
  }
  Scope& scope = *opened;
  if (inside != nullptr) {
    work.stage(*inside);
    exit(scope, true);
    return {};
  }
  if (on(s).worker && !work.at_once) {
    Queued queued;
    queued.serial = ++serial_;
    queued.reads = work.reads;
    queued.writes = work.writes;
    queued.unrun = unrun;
    queued.run = std::move(work.run);
    for (Scope* const around : on(s).scopes) {
      if (!around->holds) around->first = queued.serial;
      around->holds = true;
    }
    on(s).queue.push_back(std::move(queued));
    issued_.back().position = ++on(s).given;
    exit(scope, true);
    return {};
  }
  const Ran ran = work.run();
  if (ran.how == Ran::How::clean) {
    exit(scope, true);
    return {};
  }
  const bool thrown = ran.how == Ran::How::exception;
  const ErrorKind kind = thrown ? ErrorKind::exception : ErrorKind::kernel_failed;
  failure(scope.provisional).kind = kind;
  failure(scope.provisional).says = ran.says;
  exit(scope, false);
  hear(s, kind, ran.says);
  return {thrown ? Answer::What::thrown : Answer::What::failed, kind, 0, ran.says};
}

Ran Model::run(const std::vector<std::pair<Use, Span>>& arguments, const Node& node) {
  if (node.what == Node::What::kernel) {
    std::vector<Values> all;
    for (const auto& [use, span] : arguments) all.push_back(values(span));
    Ran ran = run_kernel(node.kernel, node.tag, all);
    if (ran.how != Ran::How::clean) return ran;
    for (std::size_t at = 0; at < all.size(); ++at) {
      if (arguments[at].first != Use::in) put(arguments[at].second, all[at]);
    }
  } else if (node.what == Node::What::copy) {
    const Span& from = arguments[0].second;
    const Span& to = arguments[1].second;
    for (std::uint64_t byte = 0; byte < from.end - from.begin; ++byte) {
      at(to.buffer).bytes[to.begin + byte].value = at(from.buffer).bytes[from.begin + byte].value;
    }
  } else {
    const Span& to = arguments[0].second;
    put(to, Values(to.end - to.begin, static_cast<std::uint8_t>(node.tag)));
  }
  return {};
}

Answer Model::launch(int s, KernelKind kernel, std::uint32_t tag, const Spans& views,
                     bool no_threads) {
  if (no_threads) return {};  // O11
  const std::vector<Use> uses = uses_of(kernel);
  Work work;
  work.name = name_of(kernel);
  std::optional<ErrorKind> refuse;
  std::vector<std::pair<Use, Span>> arguments;
  for (std::size_t at = 0; at < uses.size(); ++at) {
    std::optional<ErrorKind> unsound = wrong(views[at]);
    if (!unsound && uses[at] != Use::in &&
        this->at(views[at].buffer).shape.role == Role::constant) {
      unsound = ErrorKind::constant_written;
    }
    if (unsound) {  // M6
      if (!refuse) refuse = unsound;
      continue;
    }
    arguments.emplace_back(uses[at], views[at]);
    if (uses[at] != Use::out) work.reads.push_back(views[at]);
    if (uses[at] != Use::in && !empty(views[at])) work.writes.push_back(views[at]);
  }
  if (refuse) {
    if (capturing(s) != nullptr) {
      static_cast<void>(first_failure(capturing(s), work.reads));
    } else {
      pass_reads(work.reads);
    }
    return fail(s, work.writes, *refuse, "");
  }
  Node node;
  node.kernel = kernel;
  node.tag = tag;
  work.run = [this, arguments, node] { return run(arguments, node); };
  work.stage = [this, s, arguments, node](Window& window) { stage(window, s, node, arguments); };
  return issue(s, std::move(work));
}

Answer Model::launch_extent(int s, KernelKind kernel, std::uint32_t tag, const Spans& views,
                            const Span& extent) {
  const std::vector<Use> uses = uses_of(kernel);
  Spans writes;
  for (std::size_t at = 0; at < uses.size(); ++at) {
    if (uses[at] == Use::in || wrong(views[at])) continue;
    if (this->at(views[at].buffer).shape.role == Role::constant || empty(views[at])) continue;
    writes.push_back(views[at]);
  }
  if (capturing(s) != nullptr) return fail(s, writes, ErrorKind::refused_in_window, "");  // O11
  std::optional<ErrorKind> unsound = wrong(extent);
  if (!unsound && extent.end - extent.begin != 24) unsound = ErrorKind::invalid_argument;
  if (unsound) {
    return fail(s, writes, *unsound, "");
  }
  if (recorded_write({extent})) return fail(s, writes, ErrorKind::unordered, "");
  host_waited({extent}, false);
  pass_reads({extent});
  Answer answer;
  if (!carried(extent).empty()) {
    open(s, {extent}, writes, true, answer);
    return answer;
  }
  bool no_threads = false;
  for (std::uint64_t word = extent.begin; word < extent.end; word += 4) {
    const Values four = values({extent.buffer, word, word + 4});
    no_threads = no_threads || four == Values(4, 0);
  }
  return launch(s, kernel, tag, views, no_threads);
}

Answer Model::copy(int s, const Span& to, const Span& from) {
  std::optional<ErrorKind> unsound = unwritable(to);
  Work work;
  work.name = "copy";
  if (!unsound && !empty(to)) work.writes = {to};
  if (!unsound) unsound = wrong(from);
  const bool fits = to.end - to.begin == from.end - from.begin && !overlap({to}, {from});
  if (!unsound && !fits) unsound = ErrorKind::invalid_argument;
  if (unsound) {
    return fail(s, work.writes, *unsound, "");
  }
  if (empty(from)) return {};
  work.reads = {from};
  const std::vector<std::pair<Use, Span>> arguments{{Use::in, from}, {Use::out, to}};
  Node node;
  node.what = Node::What::copy;
  work.run = [this, arguments, node] { return run(arguments, node); };
  work.stage = [this, s, arguments, node](Window& window) { stage(window, s, node, arguments); };
  return issue(s, std::move(work));
}

Answer Model::fill(int s, const Span& to, std::uint8_t value) {
  std::optional<ErrorKind> unsound = unwritable(to);
  Work work;
  work.name = "fill";
  work.looks = false;
  if (!unsound && !empty(to)) work.writes = {to};
  if (unsound) {
    return fail(s, work.writes, *unsound, "");
  }
  if (empty(to)) return {};
  const std::vector<std::pair<Use, Span>> arguments{{Use::out, to}};
  Node node;
  node.what = Node::What::fill;
  node.tag = value;
  work.run = [this, arguments, node] { return run(arguments, node); };
  work.stage = [this, s, arguments, node](Window& window) { stage(window, s, node, arguments); };
  return issue(s, std::move(work));
}

Answer Model::write(int s, const Span& to, const Values& values) {
  std::optional<ErrorKind> unsound = unwritable(to);
  Work work;
  work.name = "write";
  work.looks = false;
  work.at_once = true;
  if (!unsound && !empty(to)) work.writes = {to};
  if (!unsound && values.size() != to.end - to.begin) unsound = ErrorKind::invalid_argument;
  if (unsound) return fail(s, work.writes, *unsound, "");
  if (values.empty()) return {};
  if (capturing(s) == nullptr) host_waited(work.writes, true);
  work.run = [this, to, values]() -> Ran {
    put(to, values);
    return {};
  };
  work.stage = [this, s, to, values](Window& window) {  // C14
    Shape shape;
    shape.role = Role::constant;
    shape.size = values.size();
    shape.start = values;
    shape.frozen = true;
    int number = 0;
    const Owner owner = allocate(std::move(shape), false, number);
    Node node;
    node.what = Node::What::copy;
    stage(window, s, node, {{Use::in, {number, 0, values.size()}}, {Use::out, to}});
  };
  return issue(s, std::move(work));
}

void Model::failed_write(int s, const Span& to, const std::string& says) {
  Spans writes;
  if (!wrong(to) && at(to.buffer).shape.role != Role::constant && !empty(to)) writes = {to};
  if (capturing(s) == nullptr) host_waited(writes, true);
  static_cast<void>(fail(s, writes, ErrorKind::kernel_failed, says));  // R2
}

Answer Model::read(int s, const Span& from, Values& values, std::vector<int>& told) {
  if (capturing(s) != nullptr) return refused(ErrorKind::refused_in_window);
  if (const auto unsound = wrong(from)) return refused(*unsound);
  host_waited({from}, false);
  told = carried(from);
  if (told.empty()) {
    values = this->values(from);
    return {};
  }
  const bool unwritten = told.size() == 1 && failure(told[0]).kind == ErrorKind::unwritten;
  return {Answer::What::failed, unwritten ? ErrorKind::unwritten : ErrorKind::failed_input, told[0],
          failure(told[0]).says};
}

}  // namespace refrain::model
