// Windows and warm-ups: rules C.
#include <algorithm>

#include "model/model.hpp"

namespace refrain::model {
Window* Model::window(int s) {
  Window* const found = on(s).window.get();
  if (found == nullptr) return nullptr;
  if (found->life != WindowLife::over && !found->members[s].left) return found;
  on(s).window.reset();
  return nullptr;
}

Window* Model::capturing(int s) {
  Window* const found = window(s);
  return found != nullptr && found->capturing() ? found : nullptr;
}

Answer Model::prepare(int s) {
  if (window(s) != nullptr || !on(s).scopes.empty()) return refused(ErrorKind::wrong_state);  // C1
  auto made = std::make_shared<Window>();
  made->origin = s;
  made->members[s];
  on(s).window = made;
  windows_.insert(made);
  return {};
}

Answer Model::begin(Window& window) {
  if (window.life != WindowLife::prepared || !on(window.origin).scopes.empty()) {
    return refused(ErrorKind::wrong_state);
  }
  window.life = WindowLife::recording;
  return {};
}

void Model::doom(Window& window, int failure, const std::string& says) {
  if (window.doomed) return;  // C6
  window.doomed = true;
  window.doom_failure = failure;
  window.doom_says = says;
  window.life = WindowLife::doomed;
}

int Model::touch(Window& window, int buffer) {
  for (std::size_t at = 0; at < window.regions.size(); ++at) {
    if (window.regions[at] == buffer) return static_cast<int>(at);
  }
  window.regions.push_back(buffer);
  window.owners.push_back(at(buffer).owner.lock());  // C14
  return static_cast<int>(window.regions.size()) - 1;
}

void Model::stage(Window& window, int s, Node node,
                  const std::vector<std::pair<Use, Span>>& arguments) {
  for (const auto& [use, span] : arguments) {
    node.arguments.push_back({use, touch(window, span.buffer), span.begin, span.end});
  }
  if (window.life != WindowLife::recording) return;
  Member& member = window.members[s];
  node.member = s;
  node.before = member.known;
  node.before.insert(member.own.begin(), member.own.end());
  member.own.insert(static_cast<int>(window.nodes.size()));
  window.nodes.push_back(std::move(node));
}

// C11.
void Model::refuse(Window& window, int failure) {
  for (const auto& [where, inside] : window.bytes) {
    if (!inside.present || inside.read_first || !at(where.first).alive()) continue;
    Byte& byte = at(where.first).bytes[where.second];
    const bool own = inside.failure != 0 && !this->failure(inside.failure).open;
    byte.failure = own ? inside.failure : failure;
    byte.mark = 0;
    byte.passed_on = false;
  }
}

Spans Model::of(const Window& window) {
  Spans all;
  for (const auto& [where, inside] : window.bytes) {
    all.push_back({where.first, where.second, where.second + 1});
  }
  return all;
}

void Model::end(Window& window) {
  window.life = WindowLife::over;
  window.bytes.clear();
  window.owners.clear();
  std::erase_if(windows_, [&](const auto& each) { return each.get() == &window; });
  if (window_open()) return;
  for (const int s : std::exchange(held_back_, {})) static_cast<void>(sync(s));  // C19
}

void Model::drop(Window& window) {
  if (window.life == WindowLife::over) return;
  const auto kept = *std::find_if(windows_.begin(), windows_.end(),
                                  [&](const auto& each) { return each.get() == &window; });
  if (window.capturing()) {
    const int number = mint(ErrorKind::window_doomed, "");
    set_cause(number, window.doom_failure);
    refuse(window, number);
  }
  end(window);
}

std::shared_ptr<Recording> Model::seal(Window& window, bool allow_empty,
                                       const std::optional<std::pair<int, Role>>& role,
                                       Answer& answer) {
  const auto found = std::find_if(windows_.begin(), windows_.end(),
                                  [&](const auto& each) { return each.get() == &window; });
  const std::shared_ptr<Window> kept = found != windows_.end() ? *found : nullptr;
  if (window.life == WindowLife::prepared) {
    end(window);
    answer = refused(ErrorKind::wrong_state);
    return nullptr;
  }
  if (window.abandoned) {
    answer = refused(ErrorKind::window_doomed);
    return nullptr;
  }
  if (!window.capturing() || !window.scopes.empty()) {
    answer = refused(ErrorKind::wrong_state);
    return nullptr;
  }
  for (const auto& [stream, ran] : window.warm_up) {  // C15
    const std::size_t recorded = window.recorded[stream];
    if (recorded < ran.size()) doom(window, 0, "");
  }
  auto graph = std::make_shared<Graph>();
  const auto build = [&]() -> std::optional<ErrorKind> {
    if (window.doomed) return ErrorKind::window_doomed;
    if (window.nodes.empty() && !allow_empty) return ErrorKind::recorded_nothing;  // C17
    std::set<int> waited = window.members[window.origin].known;
    waited.insert(window.members[window.origin].own.begin(),
                  window.members[window.origin].own.end());
    if (waited.size() != window.nodes.size()) return ErrorKind::window_doomed;  // C21
    for (const int buffer : window.regions) graph->regions.push_back(at(buffer).shape);
    if (role) {
      const auto told = std::find(window.regions.begin(), window.regions.end(), role->first);
      if (told == window.regions.end()) return ErrorKind::invalid_argument;
      Shape& shape = graph->regions[static_cast<std::size_t>(told - window.regions.begin())];
      shape.role = role->second;
      if (shape.role == Role::state && !shape.start) {
        shape.start = Values(shape.size, 0);
        shape.zero = true;
      }
      if (shape.role != Role::state && shape.role != Role::constant) shape.start.reset();
    }
    std::set<std::string> names;
    for (const Shape& shape : graph->regions) {
      if (shape.frozen && shape.role != Role::constant) return ErrorKind::invalid_argument;
      if (!shape.name.empty() && !names.insert(shape.name).second) {
        return ErrorKind::invalid_argument;
      }
      if (shape.role == Role::constant && (!shape.start || shape.zero)) {
        return ErrorKind::invalid_argument;
      }
    }
    graph->nodes = window.nodes;
    for (const Node& node : graph->nodes) {
      for (const NodeArgument& argument : node.arguments) {
        const Shape& shape = graph->regions[static_cast<std::size_t>(argument.region)];
        if (argument.use != Use::in && shape.role == Role::constant) {
          return ErrorKind::constant_written;
        }
      }
      for (const NodeArgument& argument : node.arguments) {
        const Shape& shape = graph->regions[static_cast<std::size_t>(argument.region)];
        if (argument.use == Use::out || shape.role == Role::constant) continue;
        for (std::uint64_t byte = argument.begin; byte < argument.end; ++byte) {
          if (!graph->writes.contains({argument.region, byte})) {
            graph->reads.insert({argument.region, byte});
          }
        }
      }
      for (const NodeArgument& argument : node.arguments) {
        if (argument.use == Use::in) continue;
        for (std::uint64_t byte = argument.begin; byte < argument.end; ++byte) {
          graph->writes.insert({argument.region, byte});
        }
      }
    }
    for (std::size_t region = 0; region < graph->regions.size(); ++region) {
      const bool read = std::any_of(graph->reads.begin(), graph->reads.end(), [&](const At& at) {
        return at.first == static_cast<int>(region);
      });
      if (graph->regions[region].role == Role::scratch && read) return ErrorKind::invalid_argument;
    }
    for (std::size_t later = 0; later < window.nodes.size(); ++later) {  // C13
      for (std::size_t earlier = 0; earlier < later; ++earlier) {
        const Node& a = window.nodes[earlier];
        const Node& b = window.nodes[later];
        if (b.before.contains(static_cast<int>(earlier))) continue;
        for (const NodeArgument& one : a.arguments) {
          for (const NodeArgument& other : b.arguments) {
            const bool conflict = one.region == other.region &&
                                  std::max(one.begin, other.begin) < std::min(one.end, other.end) &&
                                  (one.use != Use::in || other.use != Use::in);
            if (conflict) return ErrorKind::window_doomed;
          }
        }
      }
    }
    return std::nullopt;
  };
  if (const std::optional<ErrorKind> kind = build()) {
    answer = {Answer::What::failed, *kind, window.doom_failure, window.doom_says};
    const int number = mint(*kind, "");
    if (window.doomed) set_cause(number, window.doom_failure);
    refuse(window, number);
    end(window);
    return nullptr;
  }
  auto recording = std::make_shared<Recording>();
  recording->graph = graph;
  recording->memory = window.regions;
  recording->owners = window.owners;
  recording->mark = mint(ErrorKind::not_replayed, "");
  end(window);
  for (const auto& [region, byte] : graph->writes) {  // C18
    at(recording->memory[static_cast<std::size_t>(region)]).bytes[byte].mark = recording->mark;
  }
  return recording;
}

bool Model::first_use() {
  bool allowed = true;
  for (const auto& window : std::set<std::shared_ptr<Window>>(windows_)) {
    if (window->life == WindowLife::prepared) {
      ++window->first_uses;
    } else {
      doom(*window, 0, "");
      allowed = false;
    }
  }
  return allowed;
}

bool Model::load(int kernel) {
  if (loaded_.contains(kernel)) return true;
  if (!first_use()) return false;
  loaded_.insert(kernel);
  return true;
}

// Warm-ups.

void Model::run_checks(Window& window, int s, const std::string& name) {
  if (window.life == WindowLife::prepared) {
    window.warm_up[s].push_back(name);
    return;
  }
  if (window.life != WindowLife::recording || window.warm_up.empty()) return;
  if (!window.whole && !window.warm_up.contains(s)) return;
  const std::vector<std::string>& ran = window.warm_up[s];
  const std::size_t at = window.recorded[s]++;
  if (at >= ran.size() || ran[at] != name) doom(window, 0, "");  // C15
}

void Model::about_to_run(int s, const Work& work) {
  if (Window* const mine = window(s)) {
    run_checks(*mine, s, work.name);
  } else if (pass_ != nullptr) {
    pass_->warm_up[s].push_back(work.name);
  }
}

bool Model::recorded_write(const Spans& reads) const {
  bool met = false;
  for (const auto& window : windows_) {
    if (!window->capturing()) continue;
    each_byte(reads, [&](const At& where) {
      const auto found = window->bytes.find(where);
      met = met || (found != window->bytes.end() && found->second.present);
    });
  }
  return met;
}

void Model::pass_reads(const Spans& reads) {
  if (pass_ == nullptr) return;
  each_byte(reads, [&](const At& where) {
    if (pass_written_.contains(where) || !at(where.first).alive()) return;
    pass_read_.insert(where);
    Byte& byte = at(where.first).bytes[where.second];
    if (byte.mark != 0) pass_marks_[where] = std::exchange(byte.mark, 0);  // C18
  });
}

void Model::pass_writes(const Spans& writes, bool counts) {
  if (pass_ == nullptr) return;
  each_byte(writes, [&](const At& where) {
    if (!at(where.first).alive()) return;
    const Byte& now = at(where.first).bytes[where.second];
    if (pass_read_.contains(where) && !pass_written_.contains(where)) {
      host_waited({{where.first, where.second, where.second + 1}}, false, counts);
      if (now.met() == 0) pass_saved_[where] = now.value;
    }
    pass_written_.insert(where);
  });
}

void Model::begin_pass(Window& window) {
  window.warm_up.clear();
  window.whole = true;
  window.first_uses = 0;
  pass_ = &window;
  pass_read_.clear();
  pass_written_.clear();
  pass_saved_.clear();
  pass_marks_.clear();
  pass_failed_.reset();
}

Spans Model::saved() const {
  Spans all;
  for (const auto& [where, value] : pass_saved_) {
    all.push_back({where.first, where.second, where.second + 1});
  }
  return all;
}

void Model::end_pass(int s) {
  pass_ = nullptr;
  host_waited(saved(), true);
  for (const auto& [where, value] : pass_saved_) {
    if (!at(where.first).alive()) continue;
    Work work;
    work.writes = {{where.first, where.second, where.second + 1}};
    work.looks = work.heard = false;
    work.at_once = true;
    work.run = [this, where = where, value = value]() -> Ran {
      at(where.first).bytes[where.second].value = value;
      return {};
    };
    static_cast<void>(issue(s, std::move(work)));
  }
  for (const auto& [where, mark] : pass_marks_) {
    if (!at(where.first).alive()) continue;
    Byte& byte = at(where.first).bytes[where.second];
    if (byte.mark == 0) byte.mark = mark;
  }
  pass_marks_.clear();
}

}  // namespace refrain::model
