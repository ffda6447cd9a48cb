// Memory, claims, scopes and work: rules O, K, E, M.
#include "model/model.hpp"

#include <algorithm>

namespace refrain::model {
namespace {

bool has(const Spans& spans, const At& at) {
  return std::any_of(spans.begin(), spans.end(), [&](const Span& span) {
    return span.buffer == at.first && span.begin <= at.second && at.second < span.end;
  });
}

template <class Act>
void each_byte(const Spans& spans, Act act) {
  for (const Span& span : spans) {
    for (std::uint64_t byte = span.begin; byte < span.end; ++byte) act(At{span.buffer, byte});
  }
}

bool empty(const Span& span) { return span.begin == span.end; }

}  // namespace

bool overlap(const Spans& some, const Spans& others) {
  bool met = false;
  each_byte(some, [&](const At& at) { met = met || has(others, at); });
  return met;
}

// Memory.

Owner Model::allocate(Shape shape, bool unwritten, int& number) {
  number = static_cast<int>(allocations_.size());
  Allocation& made = allocations_.emplace_back();
  made.bytes.resize(shape.size);
  if (shape.start) {
    for (std::uint64_t byte = 0; byte < shape.size; ++byte) {
      made.bytes[byte].value = (*shape.start)[byte];
    }
  } else if (unwritten) {  // M5
    const int none = mint(ErrorKind::unwritten, "Nobody has written these bytes.");
    for (Byte& byte : made.bytes) byte.failure = none;
  }
  made.shape = std::move(shape);
  Owner owner = std::make_shared<int>(number);
  made.owner = owner;
  return owner;
}

std::optional<ErrorKind> Model::wrong(const Span& span) {
  if (span.buffer < 0 || !at(span.buffer).alive()) return ErrorKind::stale_buffer;
  if (span.begin > span.end || span.end > at(span.buffer).shape.size) {
    return ErrorKind::invalid_argument;
  }
  return std::nullopt;
}

bool Model::unknown(const Spans& spans) {
  bool met = false;
  each_byte(spans,
            [&](const At& byte) { met = met || at(byte.first).bytes.at(byte.second).value < 0; });
  return met;
}

std::vector<int> Model::carried(const Span& span) {
  std::vector<int> all;
  for (std::uint64_t byte = span.begin; byte < span.end; ++byte) {
    const int met = at(span.buffer).bytes[byte].met();
    if (met != 0 && std::find(all.begin(), all.end(), met) == all.end()) all.push_back(met);
  }
  return all;
}

std::set<int> Model::live() {
  std::set<int> all;
  const auto add = [&](int number) {
    for (; number != 0; number = failure(number).cause) all.insert(number);
  };
  for (const Allocation& allocation : allocations_) {
    if (!allocation.alive()) continue;  // M4
    for (const Byte& byte : allocation.bytes) {
      add(byte.failure);
      add(byte.mark);
    }
  }
  for (const auto& window : windows_) {
    for (const auto& [at, byte] : window->bytes) add(byte.failure);
  }
  return all;
}

int Model::mint(ErrorKind kind, std::string says) {
  failures_.push_back({kind, std::move(says), 0, false});
  return static_cast<int>(failures_.size()) - 1;
}

void Model::set_cause(int number, int cause) {
  // What nothing carries any more can be nobody's cause (M2).
  if (!failure(cause).open && !live().contains(cause)) return;
  for (int step = cause; step != 0; step = failure(step).cause) {
    if (step == number) return;  // it would have no root
  }
  failure(number).cause = cause;
}

Values Model::values(const Span& span) {
  Values all;
  for (std::uint64_t byte = span.begin; byte < span.end; ++byte) {
    all.push_back(static_cast<std::uint8_t>(at(span.buffer).bytes[byte].value));
  }
  return all;
}

void Model::put(const Span& span, const Values& values) {
  for (std::uint64_t byte = span.begin; byte < span.end; ++byte) {
    at(span.buffer).bytes[byte].value = values[byte - span.begin];
  }
}

// Streams and order.

int Model::stream(bool worker) {
  streams_.emplace_back().worker = worker;
  return static_cast<int>(streams_.size()) - 1;
}

Answer Model::sync(int s) {
  if (capturing(s) != nullptr) return refused(ErrorKind::refused_in_window);  // C12
  for (const Issued& each : issued_) {
    if (each.stream == s) host_known_.insert(each.before.begin(), each.before.end());
  }
  host_known_.insert(on(s).known.begin(), on(s).known.end());
  const int failed = std::exchange(on(s).unsynced, 0);
  if (failed == 0) return {};
  return {Answer::What::failed, failure(failed).kind, 0, failure(failed).says};
}

void Model::end_stream(int s) {
  if (Window* const left = window(s)) {
    Member& member = left->members[s];
    if (s != left->origin) {  // C21
      if (!member.left && !member.own.empty()) doom(*left, 0, "");
    } else {  // C10
      left->abandoned = true;
      if (left->capturing()) refuse(*left, mint(ErrorKind::window_doomed, "was abandoned"));
      end(*left);
    }
  }
  on(s).window.reset();
  static_cast<void>(sync(s));
  on(s).alive = false;
}

void Model::hold(int s) {
  Queued gate;
  gate.what = Queued::What::gate;
  gate.serial = ++serial_;
  on(s).queue.push_back(std::move(gate));
  ++on(s).given;
}

std::shared_ptr<Event> Model::record_event(int s) {
  auto event = std::make_shared<Event>();
  event->stream = s;
  if (Window* const inside = capturing(s)) {
    const Member& member = inside->members[s];
    event->in_window = true;
    event->window = on(s).window;
    event->nodes = member.known;
    event->nodes.insert(member.own.begin(), member.own.end());
    return event;
  }
  event->position = on(s).given;
  event->known = on(s).known;
  return event;
}

Answer Model::wait(int s, const std::shared_ptr<Event>& event) {
  if (event->in_window) {  // C21
    const std::shared_ptr<Window> recorded_in = event->window.lock();
    if (recorded_in == nullptr || recorded_in->life == WindowLife::over) {
      return refused(ErrorKind::wrong_state);
    }
    Window* const own = window(s);
    if (own != nullptr && own != recorded_in.get()) return refused(ErrorKind::refused_in_window);
    if (own == nullptr && !on(s).scopes.empty()) return refused(ErrorKind::wrong_state);
    Member& member = recorded_in->members[s];
    member.known.insert(event->nodes.begin(), event->nodes.end());
    if (own == nullptr) {
      member.left = false;
      on(s).window = recorded_in;
      return {};
    }
    Member& other = recorded_in->members[event->stream];
    const bool all =
        std::includes(event->nodes.begin(), event->nodes.end(), other.own.begin(), other.own.end());
    const bool may = recorded_in->scopes.empty() && event->stream != recorded_in->origin;
    if (all && may && event->stream != s) other.left = true;
    return {};
  }
  if (capturing(s) != nullptr) return refused(ErrorKind::refused_in_window);  // C12
  on(s).known.insert(event->known.begin(), event->known.end());
  if (!on(s).worker) host_known_.insert(event->known.begin(), event->known.end());  // it has waited
  if (on(s).worker) {
    Queued step;
    step.what = Queued::What::wait;
    step.serial = ++serial_;
    step.event = event;
    on(s).queue.push_back(std::move(step));
    ++on(s).given;
  }
  return {};
}

Answer Model::host_wait(const Event& event) {
  if (event.in_window) return refused(ErrorKind::refused_in_window);
  host_known_.insert(event.known.begin(), event.known.end());
  return {};
}

std::set<int> Model::unordered(int s, const Spans& reads, const Spans& writes) {
  std::set<int> all;
  if (Window* const inside = capturing(s)) {
    for (std::size_t node = 0; node < inside->nodes.size(); ++node) {
      const Node& earlier = inside->nodes[node];
      const Member& me = inside->members[s];
      const int number = static_cast<int>(node);
      if (earlier.member == s || me.known.contains(number)) continue;
      for (const NodeArgument& argument : earlier.arguments) {
        const Spans used{{inside->regions[static_cast<std::size_t>(argument.region)],
                          argument.begin, argument.end}};
        const bool met = overlap(used, writes) || (argument.use != Use::in && overlap(used, reads));
        if (met && on(earlier.member).window.get() == inside) all.insert(earlier.member);
      }
    }
    return all;
  }
  for (std::size_t number = 0; number < issued_.size(); ++number) {
    const Issued& earlier = issued_[number];
    const int index = static_cast<int>(number);
    if (earlier.stream == s || on(s).known.contains(index) || host_known_.contains(index)) continue;
    const bool met = overlap(earlier.writes, writes) || overlap(earlier.writes, reads) ||
                     overlap(earlier.reads, writes);
    if (met) all.insert(earlier.stream);
  }
  return all;
}

bool Model::in_order(int s, const Spans& reads, const Spans& writes) {
  if (capturing(s) != nullptr) return true;
  if (checks_ && !unordered(s, reads, writes).empty()) return false;
  if (!on(s).worker) return true;  // it has ended when the call is back
  const int number = static_cast<int>(issued_.size());
  issued_.push_back({s, reads, writes, on(s).known, on(s).given});
  issued_.back().before.insert(number);
  on(s).known.insert(number);
  return true;
}

void Model::skipped(int s) {
  if (checks_ || capturing(s) != nullptr || !on(s).worker) return;
  on(s).known.erase(static_cast<int>(issued_.size()) - 1);
  issued_.pop_back();
}

void Model::host_waited(const Spans& spans, bool readers) {
  for (const Issued& each : issued_) {
    if (overlap(each.writes, spans) || (readers && overlap(each.reads, spans))) {
      host_known_.insert(each.before.begin(), each.before.end());
    }
  }
}

Model::Target Model::users(const Spans& spans, bool readers) {
  Target target;
  for (const Issued& each : issued_) {
    if (!overlap(each.writes, spans) && !(readers && overlap(each.reads, spans))) continue;
    for (const int number : each.before) {  // all of it has ended then
      const Issued& before = issued_[static_cast<std::size_t>(number)];
      std::size_t& position = target[before.stream];
      position = std::max(position, before.position);
    }
  }
  return target;
}

std::vector<int> Model::open_gates(Target target) {
  std::vector<int> opened;
  for (bool more = true; more;) {
    more = false;
    for (const auto& [s, until] : Target(target)) {
      std::size_t position = on(s).done;
      for (Queued& each : on(s).queue) {
        if (++position > until) break;
        if (each.what == Queued::What::gate && !each.open) {
          each.open = true;
          opened.push_back(s);
        }
        if (each.what != Queued::What::wait) continue;
        std::size_t& other = target[each.event->stream];
        if (other < each.event->position) {
          other = each.event->position;
          more = true;
        }
      }
    }
  }
  return opened;
}

void Model::settle(const std::function<void(int)>& fails) {
  for (bool more = true; more;) {
    more = false;
    for (std::size_t number = 0; number < streams_.size(); ++number) {
      Stream& stream = streams_[number];
      if (stream.queue.empty()) continue;
      const Queued& front = stream.queue.front();
      if (front.what == Queued::What::gate && !front.open) continue;
      if (front.what == Queued::What::wait && !reached(*front.event)) continue;
      const Queued next = std::move(stream.queue.front());
      stream.queue.pop_front();
      more = true;
      const int s = static_cast<int>(number);
      if (next.what == Queued::What::work && !next.poisoned) {
        const Ran ran = next.run();
        if (ran.how != Ran::How::clean) {
          late(s, next,
               ran.how == Ran::How::error ? ErrorKind::kernel_failed : ErrorKind::exception,
               ran.says);
          fails(s);
        }
      }
      ++stream.done;
      break;  // from the first stream on again
    }
  }
}

// Claims and scopes.

int Model::first_failure(Window* window, const Spans& reads, int beneath) {
  int met = 0;
  each_byte(reads, [&](const At& where) {
    const Allocation& allocation = at(where.first);
    const Byte none;
    const Byte& real = allocation.alive() ? allocation.bytes[where.second] : none;
    int here = beneath != 0 && real.mark == beneath ? real.failure : real.met();
    if (window != nullptr) {  // C8
      WindowByte& inside = window->bytes[where];
      if (inside.present) {
        here = inside.failure;
      } else {
        inside.read_first = true;
        here = failure(real.failure).kind == ErrorKind::unwritten ? 0 : real.failure;
      }
    }
    if (met == 0) met = here;  // O4
  });
  return met;
}

void Model::claim(Window* window, const Spans& writes, int failure, bool passed_on) {
  each_byte(writes, [&](const At& where) {
    if (window != nullptr) {
      WindowByte& byte = window->bytes[where];
      byte.present = true;
      byte.failure = failure;
      byte.passed_on = passed_on;
    } else if (at(where.first).alive()) {
      Byte& byte = at(where.first).bytes[where.second];
      byte.failure = failure;
      byte.mark = 0;
      byte.passed_on = passed_on;
    }
  });
}

void Model::enter(Scope& scope) {
  scope.serial = ++serial_;
  scope.provisional = mint(ErrorKind::torn_down, "The work that was to write this");
  failure(scope.provisional).open = true;
  if (scope.window != nullptr) scope.nodes_before = scope.window->nodes.size();
  claim(scope.window, scope.writes, scope.provisional, false);  // O6
  scopes(scope.stream, scope.window).push_back(&scope);
}

void Model::exit(Scope& scope, bool clean) {
  std::vector<Scope*>& around = scopes(scope.stream, scope.window);
  std::erase(around, &scope);
  failure(scope.provisional).open = false;
  if (!clean) return;  // E2: its kind and its words have been put in
  // E9: for what a skip inside has passed on.
  failure(scope.provisional).kind = ErrorKind::skipped;
  failure(scope.provisional).says = "The work did not run, because";
  if (scope.poisoned != 0) {
    set_cause(scope.provisional, scope.poisoned);
    return;
  }
  each_byte(scope.writes, [&](const At& where) {
    if (scope.window != nullptr) {
      WindowByte& byte = scope.window->bytes[where];
      if (byte.failure != scope.provisional || byte.passed_on) return;
      byte.failure = 0;
      for (const Scope* outer : around) {
        if (has(outer->writes, where)) byte.failure = outer->provisional;
      }
      return;
    }
    Byte& byte = at(where.first).bytes[where.second];
    if (byte.failure != scope.provisional || byte.passed_on) return;  // E1
    byte.failure = byte.mark = 0;
    for (const Scope* outer : around) {  // E9
      if (!has(outer->writes, where)) continue;
      const bool bad = outer->poisoned != 0 && live().contains(outer->poisoned);
      byte.failure = bad ? outer->poisoned : outer->provisional;
    }
  });
}

Answer Model::fail(int s, const Spans& writes, ErrorKind kind, const std::string& says) {
  Scope scope;
  scope.stream = s;
  scope.window = capturing(s);
  scope.writes = writes;
  enter(scope);
  failure(scope.provisional).kind = kind;
  failure(scope.provisional).says = says;
  if (scope.window != nullptr) doom(*scope.window, 0, says);  // C3
  exit(scope, false);
  hear(s, kind);
  return {Answer::What::failed, kind, 0, says};
}

std::unique_ptr<Scope> Model::open(int s, const Spans& reads, const Spans& writes, bool looks,
                                   Answer& answer) {
  Window* const inside = capturing(s);
  if (looks) {
    if (const int met = first_failure(inside, reads); met != 0) {
      hear(s, failure(met).kind);                                    // K4, K5
      if (inside != nullptr) doom(*inside, met, failure(met).says);  // C4
      claim(inside, writes, met, failure(met).open);                 // K1, K2
      answer = {Answer::What::skipped, ErrorKind::skipped, met, ""};
      return nullptr;
    }
  }
  auto scope = std::make_unique<Scope>();
  scope->stream = s;
  scope->window = inside;
  scope->reads = looks ? reads : Spans{};
  scope->writes = writes;
  enter(*scope);
  return scope;
}

Answer Model::close(std::unique_ptr<Scope> scope, bool clean, ErrorKind kind,
                    const std::string& says, int cause) {
  Window* const inside = scope->window;
  const bool held_back =
      !clean && kind == ErrorKind::skipped && cause != 0 && cause == scope->poisoned;
  if (clean || held_back) {
    if (inside != nullptr) {
      if (inside->life == WindowLife::recording) {  // C2, C16
        bool whole = true;
        each_byte(scope->writes, [&](const At& where) {
          bool staged = has(scope->reused, where);
          for (std::size_t node = scope->nodes_before; node < inside->nodes.size(); ++node) {
            for (const NodeArgument& argument : inside->nodes[node].arguments) {
              const Span span{inside->regions[static_cast<std::size_t>(argument.region)],
                              argument.begin, argument.end};
              staged = staged || (argument.use != Use::in && has({span}, where));
            }
          }
          whole = whole && staged;
        });
        if (!whole) doom(*inside, 0, "");
      }
      std::vector<Scope*>& around = inside->scopes;
      if (around.size() > 1) {
        Spans& outer = around[around.size() - 2]->reused;
        outer.insert(outer.end(), scope->reused.begin(), scope->reused.end());
      }
    }
    exit(*scope, true);
    if (held_back) return {Answer::What::skipped, ErrorKind::skipped, cause, ""};
    return {};
  }
  failure(scope->provisional).kind = kind;
  failure(scope->provisional).says = says;
  if (cause != 0) set_cause(scope->provisional, cause);
  if (inside != nullptr) doom(*inside, cause, says);
  exit(*scope, false);
  hear(scope->stream, kind);
  return {kind == ErrorKind::exception ? Answer::What::thrown : Answer::What::failed, kind, 0,
          says};
}

void Model::reuses(int s, const Span& span) {
  Window* const inside = capturing(s);
  if (inside != nullptr && !inside->scopes.empty()) inside->scopes.back()->reused.push_back(span);
}

// E10.
void Model::late(int s, const Queued& failed, ErrorKind kind, const std::string& says) {
  const int number = mint(kind, says);
  std::set<At> bad;
  each_byte(failed.writes, [&](const At& where) { bad.insert(where); });
  const auto reaches = [&](const Spans& reads) {
    bool met = false;
    each_byte(reads, [&](const At& where) { met = met || bad.contains(where); });
    return met;
  };
  // Everything issued later, in the order of issue: queued work, and scopes that are open.
  std::map<int, Queued*> queued;
  std::map<int, Scope*> open;
  for (Stream& stream : streams_) {
    for (Queued& each : stream.queue) {
      if (each.serial > failed.serial && each.what == Queued::What::work) {
        queued[each.serial] = &each;
      }
    }
    for (Scope* const scope : stream.scopes) open[scope->serial] = scope;
  }
  std::set<int> overruled;
  for (int serial = 0; serial <= serial_; ++serial) {
    if (queued.contains(serial)) {
      Queued& each = *queued[serial];
      const bool met = reaches(each.reads);
      if (met) each.poisoned = true;
      each_byte(met ? each.unrun : each.writes,
                [&](const At& where) { met ? void(bad.insert(where)) : void(bad.erase(where)); });
    }
    if (open.contains(serial)) {
      Scope& scope = *open[serial];
      if (scope.stream == s && scope.holds && scope.first <= failed.serial) {  // around it
        overruled.insert(scope.provisional);
        continue;
      }
      const bool met = reaches(scope.reads);
      if (met) {
        scope.poisoned = number;
        overruled.insert(scope.provisional);
      }
      each_byte(scope.writes,
                [&](const At& where) { met ? void(bad.insert(where)) : void(bad.erase(where)); });
    }
  }
  for (const At& where : bad) {
    if (!at(where.first).alive()) continue;
    Byte& byte = at(where.first).bytes[where.second];
    const bool free = byte.failure == 0 || failure(byte.failure).kind == ErrorKind::unwritten ||
                      overruled.contains(byte.failure);
    if (!free) continue;
    byte.failure = number;
    byte.passed_on = false;
  }
  if (on(s).unsynced == 0) on(s).unsynced = number;
  hear(s, kind);
}

// Work.

Answer Model::issue(int s, Work work) {
  Window* const inside = capturing(s);
  const Spans unrun = work.unrun.value_or(work.writes);
  if (!work.at_once && !work.asked && !in_order(s, work.reads, work.writes)) {  // E11
    return fail(s, unrun, ErrorKind::unordered, "no event and no sync puts one after the other");
  }
  if (work.heard) about_to_run(s, work);
  Answer answer;
  Scope scope;
  scope.stream = s;
  scope.window = inside;
  scope.writes = work.writes;
  if (work.looks) {
    // A skip and the scopes of the program's own are the same rules.
    if (open(s, work.reads, work.writes, true, answer) == nullptr) {
      skipped(s);
      return answer;
    }
    std::vector<Scope*>& opened = scopes(s, inside);
    scope.provisional = opened.back()->provisional;
    opened.back() = &scope;
    scope.serial = serial_;
    scope.reads = work.reads;
  } else {
    enter(scope);
  }
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
    queued.owners = std::move(work.owners);
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
  hear(s, kind);
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
  host_waited({extent}, false);
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
  std::optional<ErrorKind> unsound = wrong(to);
  if (!unsound && at(to.buffer).shape.role == Role::constant) {
    unsound = ErrorKind::constant_written;
  }
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
  std::optional<ErrorKind> unsound = wrong(to);
  if (!unsound && at(to.buffer).shape.role == Role::constant) {
    unsound = ErrorKind::constant_written;
  }
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
  std::optional<ErrorKind> unsound = wrong(to);
  if (!unsound && at(to.buffer).shape.role == Role::constant) {
    unsound = ErrorKind::constant_written;
  }
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
