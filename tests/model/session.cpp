// How a program runs: one operation after the other, bodies inside scopes, and the end of it all.
#include "model/live_session.hpp"

namespace refrain::model {

LiveSession::LiveSession(const Program& program)
    : program_(program),
      model_(program.checks),
      device_(DeviceOptions{program.checks,
                            [this](StreamId on, const Error& error) {
                              const std::lock_guard lock(heard_mutex_);
                              heard_.push_back({on, error.kind()});
                              heard_changed_.notify_all();
                            }}),
      watchdog_([this] { turnstile_.open_all(); }) {
  register_all(device_.kernels(), turnstile_);
  make_.emplace(device_.kernel<Make>("make").value());
  map_.emplace(device_.kernel<Map>("map").value());
  update_.emplace(device_.kernel<Update>("update").value());
  join_.emplace(device_.kernel<Join>("join").value());
  split_.emplace(device_.kernel<Split>("split").value());
  look_.emplace(device_.kernel<Look>("look").value());
  gate_.emplace(device_.kernel<Say>("gate").value());
  here_.emplace(device_.kernel<Say>("here").value());
  for (int kernel = 0; kernel < 6; ++kernel) model_.load(kernel);
  add_stream(kHelper, false);
}

Verdict LiveSession::run() {
  run_range(0, program_.ops.size());
  if (right()) finish();
  if (opener_.joinable()) opener_.join();
  if (!right() || watchdog_.barked()) turnstile_.open_all();
  return {wrong_, at_, done_, std::move(tally_)};
}

void LiveSession::run_range(std::size_t from, std::size_t to) {
  const std::size_t around = at_;
  while (from < to && right()) {
    at_ = from;
    watchdog_.pat();
    from = step(from);
    settle();
    same_heard();
    if (watchdog_.barked()) {
      wrong_.clear();
      wrong("it waits for what it need not wait for, or for ever");
    }
  }
  if (right()) at_ = around;
}

std::size_t LiveSession::end_of(std::size_t index) const {
  int depth = 0;
  for (std::size_t at = index; at < program_.ops.size(); ++at) {
    const OpKind kind = program_.ops[at].kind;
    if (kind == OpKind::nest || kind == OpKind::warm_up) ++depth;
    if (kind == OpKind::end && --depth == 0) return at;
  }
  return program_.ops.size();
}

std::size_t LiveSession::step(std::size_t index) {
  const Op& op = program_.ops[index];
  if (op.kind == OpKind::nest || op.kind == OpKind::warm_up) {
    const std::size_t end = end_of(index);
    if (op.kind == OpKind::nest ? nest(op, index + 1, end) : warm_up(op, index + 1, end)) {
      ++done_;
    }
    return end + 1;
  }
  if (act(op)) ++done_;
  return index + 1;
}

bool LiveSession::act(const Op& op) {
  switch (op.kind) {
    case OpKind::allocate: return allocate(op);
    case OpKind::free: return buffers_.contains(op.id) && free_buffer(op);
    case OpKind::stream:
      if (streams_.contains(op.id) || warming_) return false;
      add_stream(op.id, op.n != 0);
      return true;
    case OpKind::end_stream: return end_stream(op);
    case OpKind::launch:
    case OpKind::launch_extent: return launch(op);
    case OpKind::copy: return copy(op);
    case OpKind::fill: return fill(op);
    case OpKind::write:
    case OpKind::failed_write: return write(op);
    case OpKind::read: return read(op);
    case OpKind::check: return check(op);
    case OpKind::sync: return sync(op);
    case OpKind::look: same_everything(); return true;
    case OpKind::hold: return hold(op);
    case OpKind::release: return release(op);
    case OpKind::record_event: return record_event(op);
    case OpKind::wait_event: return wait_event(op);
    case OpKind::host_wait: return host_wait(op);
    case OpKind::reached: return reached(op);
    case OpKind::reuses: return reuses(op);
    case OpKind::prepare:
    case OpKind::record: return prepare(op);
    case OpKind::begin: return begin(op);
    case OpKind::seal: return seal(op);
    case OpKind::abort:
    case OpKind::drop: return leave(op);
    case OpKind::first_use: return first_use(op);
    case OpKind::load: return load(op);
    case OpKind::instance: return instance(op);
    case OpKind::plan: return plan(op);
    case OpKind::plan_instance: return plan_instance(op);
    case OpKind::locate: return locate(op);
    case OpKind::bind: return bind(op);
    case OpKind::replay: return replay(op);
    case OpKind::reset: return reset(op);
    case OpKind::drop_recording: return !warming_ && recordings_.erase(op.a) != 0;
    case OpKind::drop_plan: return !warming_ && plans_.erase(op.a) != 0;
    case OpKind::drop_instance: return !warming_ && instances_.erase(op.a) != 0;
    default: return false;
  }
}

void LiveSession::finish() {
  at_ = program_.ops.size();
  let_all_pass();
  same_heard();
  same_everything();
  refrain::Stream& helper = *streams_.at(kHelper).stream;
  for (const auto& [id, buffer] : buffers_) {
    for (std::uint64_t byte = 0; right() && byte < buffer.whole.range.size(); ++byte) {
      const OneView one = part(buffer, byte, 1);
      if (!sound(one) || !model_.carried(one.span).empty()) continue;
      const Result<Values> got = helper.read(one.view);
      const int value = model_.at(one.span.buffer).bytes[one.span.begin].value;
      if (!got.ok()) return wrong(text_of(one.span) + " cannot be read: " + got.error().text());
      if (value >= 0 && (*got)[0] != value) {
        return wrong("the value of " + text_of(one.span) + " is " + std::to_string((*got)[0]) +
                     " and not " + std::to_string(value));
      }
    }
  }
  windows_.clear();
  instances_.clear();
  plans_.clear();
  recordings_.clear();
  buffers_.clear();
  if (right() && device_.live_failures() != 0) wrong("failures outlive every handle");
  for (const auto& [id, each] : streams_) {
    if (!each.stream) continue;
    const WriteSetPool& pool = each.stream->core().pool;
    if (right() && pool.idle() != pool.total()) wrong("a write set is still out");
  }
}

Verdict run(const Program& program) {
  LiveSession session(program);
  return session.run();
}

}  // namespace refrain::model
