// Streams, the order between them, and failures that are found late: rules E10 and E11.
#include <algorithm>

#include "model/model.hpp"

namespace refrain::model {

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
      if (left->capturing()) {
        const int number = mint(ErrorKind::window_doomed, "was abandoned");
        set_cause(number, left->doom_failure);
        refuse(*left, number);
      }
      end(*left);
    }
  }
  on(s).window.reset();
  on(s).alive = false;
  if (window_open()) {
    held_back_.push_back(s);  // C19: nobody has waited for it
  } else {
    static_cast<void>(sync(s));
  }
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

void Model::host_waited(const Spans& spans, bool readers, bool but_newest) {
  for (const Issued& each : issued_) {
    if (but_newest && &each == &issued_.back()) continue;
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
  hear(s, kind, says, number);
}

}  // namespace refrain::model
