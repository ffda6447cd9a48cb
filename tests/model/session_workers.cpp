// Where workers wait and what they wait for; the order that a program asks for.
#include "model/live_session.hpp"

namespace refrain::model {

void LiveSession::settle() {
  model_.settle([this](int s) { fail(s); });
  catch_up();
}

void LiveSession::fail(int s) {
  turnstile_.let_fail(s);
  ++tally_["a late failure"];
  std::unique_lock lock(heard_mutex_);
  const bool heard = heard_changed_.wait_for(
      lock, std::chrono::seconds(4), [this] { return heard_.size() >= model_.heard().size(); });
  lock.unlock();
  if (!heard) wrong("a late failure was never heard of");
}

void LiveSession::catch_up() {
  if (opener_.joinable()) opener_.join();
  for (auto& [id, each] : streams_) {
    if (!each.worker || !each.stream) continue;
    const Stream& on = model_.on(each.model);
    refrain::Stream& stream = *each.stream;
    Backend& backend = device_.core()->backend();
    if (each.marks.empty() ? on.given != 0 : each.marks.back().first < on.given) {
      each.marks.emplace_back(on.given, backend.record(*stream.core().backend).value());
    }
    std::shared_ptr<BackendEvent> last;
    for (const auto& [position, event] : each.marks) {
      if (position <= on.done) last = event;
    }
    if (last) static_cast<void>(backend.wait_on_host(*last));
  }
}

void LiveSession::let_pass(const Model::Target& target) {
  const std::vector<int> gates = model_.open_gates(target);
  bool opened = gates.empty();
  const auto open = [this, gates] {
    for (const int s : gates) turnstile_.open_gate(s);
  };
  model_.settle([&](int s) {
    if (!opened) open();
    opened = true;
    fail(s);
  });
  if (opened) return catch_up();
  ++tally_["a call that waits"];
  if (opener_.joinable()) opener_.join();
  opener_ = std::thread([open] {
    std::this_thread::sleep_for(std::chrono::microseconds(200));
    open();
  });
}

void LiveSession::wait_for(const Spans& spans, bool readers) {
  let_pass(model_.users(spans, readers));
}

void LiveSession::let_all_pass() {
  Model::Target all;
  for (const auto& [id, each] : streams_) all[each.model] = model_.on(each.model).given;
  let_pass(all);
  catch_up();
}

bool LiveSession::order(const Op& op, const Spans& reads, const Spans& writes) {
  if (program_.checks && !op.ordered) return true;
  OneStream& to = *stream(op.s);
  for (const int m : model_.unordered(to.model, reads, writes)) {
    OneStream* from = nullptr;
    for (auto& [id, each] : streams_) {
      if (each.model == m && each.stream) from = &each;
    }
    if (from == nullptr) return false;
    const bool inside = model_.capturing(m) != nullptr;
    if (inside != (model_.capturing(to.model) != nullptr)) return false;
    const refrain::Event event = from->stream->record_event().value();
    const std::shared_ptr<Event> modelled = model_.record_event(m);
    if (!inside && !to.worker) let_pass({{m, model_.on(m).given}});
    same(to.stream->wait(event), model_.wait(to.model, modelled));
    settle();
  }
  return true;
}

bool LiveSession::foreign(int s, const Spans& reads, const Spans& writes) {
  return std::any_of(open_.begin(), open_.end(), [&](const Scope* scope) {
    Window* const inside = model_.capturing(s);
    if (scope->window == inside && (inside != nullptr || scope->stream == s)) return false;
    return overlap(scope->writes, reads) || overlap(scope->writes, writes) ||
           overlap(scope->reads, writes);
  });
}

bool LiveSession::used_by_others(const Window& window) {
  const Spans all = Model::of(window);
  return std::any_of(open_.begin(), open_.end(), [&](const Scope* scope) {
    return scope->window != &window && (overlap(scope->writes, all) || overlap(scope->reads, all));
  });
}

LiveSession::OneStream* LiveSession::stream(int id) {
  const auto found = streams_.find(id);
  return found != streams_.end() && found->second.stream ? &found->second : nullptr;
}

LiveSession::OneView LiveSession::part(const OneBuffer& buffer, std::uint64_t begin,
                                       std::uint64_t size) {
  const std::uint64_t from = buffer.whole.range.begin + begin;
  return {View<U8>(BufferBinding{buffer.whole.buffer, {from, from + size}}),
          {buffer.span.buffer, buffer.span.begin + begin, buffer.span.begin + begin + size}};
}

std::optional<LiveSession::OneView> LiveSession::view(const ViewRef& ref) {
  if (ref.buffer < 0) return OneView{View<U8>(), Span{}};
  const auto found = buffers_.find(ref.buffer);
  if (found == buffers_.end()) return std::nullopt;
  return part(found->second, ref.begin, ref.size);
}

bool LiveSession::hold(const Op& op) {
  OneStream* const on = stream(op.s);
  if (on == nullptr || !on->worker || warming_ || model_.window(on->model) != nullptr) return false;
  on->stream->launch(*gate_, grid(1), 0U);
  model_.hold(on->model);
  return true;
}

bool LiveSession::release(const Op& op) {
  OneStream* const on = stream(op.s);
  if (on == nullptr || !on->worker) return false;
  let_pass({{on->model, model_.on(on->model).given}});
  return true;
}

bool LiveSession::record_event(const Op& op) {
  OneStream* const on = stream(op.s);
  if (on == nullptr || events_.contains(op.id)) return false;
  events_.emplace(op.id,
                  OneEvent{on->stream->record_event().value(), model_.record_event(on->model)});
  return true;
}

bool LiveSession::wait_event(const Op& op) {
  OneStream* const on = stream(op.s);
  OneEvent* const event = find(events_, op.a);
  if (on == nullptr || event == nullptr) return false;
  if (!event->model->in_window && !on->worker) {
    let_pass({{event->model->stream, event->model->position}});
  }
  same(on->stream->wait(event->event), model_.wait(on->model, event->model));
  return true;
}

bool LiveSession::host_wait(const Op& op) {
  OneEvent* const event = find(events_, op.a);
  if (event == nullptr) return false;
  if (!event->model->in_window) let_pass({{event->model->stream, event->model->position}});
  same(event->event.wait(), model_.host_wait(*event->model));
  return true;
}

bool LiveSession::reached(const Op& op) {
  OneEvent* const event = find(events_, op.a);
  if (event == nullptr) return false;
  const Result<bool> got = event->event.reached();
  if (event->model->in_window) {
    same(got, model_.host_wait(*event->model));
    return true;
  }
  // The event itself is reached a moment after the work before it has ended.
  if (model_.reached(*event->model)) {
    static_cast<void>(event->event.wait());
    same(event->event.reached(), model_.host_wait(*event->model));
  } else if (*got) {
    wrong("an event was reached before its work had ended");
  }
  return true;
}

}  // namespace refrain::model
