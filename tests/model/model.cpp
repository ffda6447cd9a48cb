// Memory, claims and scopes: rules O, E1 to E9 and M.
#include "model/model.hpp"

#include <algorithm>

namespace refrain::model {

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

std::optional<ErrorKind> Model::unwritable(const Span& span) {
  if (std::optional<ErrorKind> unsound = wrong(span)) return unsound;
  if (at(span.buffer).shape.role == Role::constant) return ErrorKind::constant_written;
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
  for (const auto& [at, mark] : pass_marks_) add(mark);
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
// Claims and scopes.

void Model::hear(int s, ErrorKind kind, const std::string& says, int failure) {
  heard_.push_back({s, kind});
  if (pass_ == nullptr || pass_failed_ || capturing(s) != nullptr) return;
  pass_failed_ = Answer{Answer::What::failed, kind, failure, says};
}

int Model::first_failure(Window* window, const Spans& reads, int beneath,
                         const std::set<At>& states) {
  int met = 0;
  each_byte(reads, [&](const At& where) {
    const Allocation& allocation = at(where.first);
    const Byte none;
    const Byte& real = allocation.alive() ? allocation.bytes[where.second] : none;
    const bool under = states.contains(where) || (beneath != 0 && real.mark == beneath);  // C18
    int here = under ? real.failure : real.met();
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
      if (byte.mark != 0 && this->failure(failure).kind == ErrorKind::not_replayed) {
        byte.mark = failure;  // C18: a mark is no failure of what lies under one
        return;
      }
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
  failure(scope.provisional).says = scope.poisoned != 0 ? "The work did not run, because"
                                                        : "Work that needed what this was still";
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
  if (scope.window == nullptr) pass_writes(writes);
  enter(scope);
  failure(scope.provisional).kind = kind;
  failure(scope.provisional).says = says;
  if (scope.window != nullptr) {  // C3
    doom(*scope.window, writes.empty() ? 0 : scope.provisional, says);
  }
  exit(scope, false);
  hear(s, kind, says);
  return {Answer::What::failed, kind, 0, says};
}

std::unique_ptr<Scope> Model::open(int s, const Spans& reads, const Spans& writes, bool looks,
                                   Answer& answer, bool counts) {
  Window* const inside = capturing(s);
  if (inside == nullptr) {
    if (looks) pass_reads(reads);
    pass_writes(writes, counts);
  }
  if (looks) {
    if (const int met = first_failure(inside, reads); met != 0) {
      hear(s, failure(met).kind, failure(met).says, met);  // K4, K5
      // C4; of a scope that is open it is told what that claims (O6).
      const Failure& of = failure(met);
      if (inside != nullptr) doom(*inside, met, of.open ? "claims until it ends" : of.says);
      claim(inside, writes, met, failure(met).open);  // K1, K2
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
  if (inside != nullptr) doom(*inside, scope->writes.empty() ? cause : scope->provisional, says);
  exit(*scope, false);
  hear(scope->stream, kind, says, cause);
  return {kind == ErrorKind::exception ? Answer::What::thrown : Answer::What::failed, kind, 0,
          says};
}

void Model::reuses(int s, const Span& span) {
  Window* const inside = capturing(s);
  if (inside != nullptr && !inside->scopes.empty()) inside->scopes.back()->reused.push_back(span);
}

}  // namespace refrain::model
