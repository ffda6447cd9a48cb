// Scopes of the program's own, windows and warm-ups.
#include "model/live_session.hpp"

namespace refrain::model {

bool LiveSession::nest(const Op& op, std::size_t from, std::size_t to) {
  OneStream* const on = stream(op.s);
  const auto given = views(op, 3);
  if (on == nullptr || !given || depth_ > 3) return false;
  Spans reads;
  Bindings read_bindings;
  for (std::size_t at = 1; at < 3 && op.n != 0; ++at) {
    if (!sound((*given)[at])) return false;
    reads.push_back((*given)[at].span);
    read_bindings.push_back((*given)[at].view.binding());
  }
  const OneView& to_write = (*given)[0];
  if (!sound(to_write)) return false;
  Spans writes;
  if (to_write.span.begin != to_write.span.end) writes = {to_write.span};
  // Such a scope says that bytes are good whatever is in them.
  if (model_.capturing(on->model) == nullptr && model_.unknown(writes)) return false;
  if (foreign(on->model, reads, writes)) return false;
  Op ordered = op;
  ordered.ordered = true;
  if (!order(ordered, reads, writes)) return false;

  refrain::Stream& stream = *on->stream;
  const KernelId kernel = intern_kernel_name("nest");
  WriteSet set = stream.write_set();
  set.add(to_write.view.binding());
  const auto scope = [&] {
    return op.n != 0
               ? ExecuteScope<refrain::Stream>::launching(stream, kernel, read_bindings,
                                                          std::move(set), Where::here())
               : ExecuteScope<refrain::Stream>::over(stream, kernel, std::move(set), Where::here());
  };
  Answer expected;
  std::unique_ptr<Scope> modelled;
  const auto entered = [&](bool skipped) {
    modelled = model_.open(on->model, reads, writes, op.n != 0, expected);
    if (skipped != (modelled == nullptr)) wrong("a scope entered or skipped");
    if (modelled) open_.push_back(modelled.get());
  };
  const auto left = [&](bool clean, ErrorKind kind, const std::string& says, int cause) {
    if (!modelled) return;
    std::erase(open_, modelled.get());
    expected = model_.close(std::move(modelled), clean, kind, says, cause);
  };
  ++depth_;
  const auto ending = static_cast<Ending>(op.m);
  const std::string says = "a scope of the program's own, number " + std::to_string(at_);
  if (ending == Ending::dropped) {
    {
      const auto dropped = scope();
      entered(dropped.skipped());
    }
    left(false, ErrorKind::torn_down, "", 0);
    if (!expected.ok()) count(expected);
    --depth_;
    return true;
  }
  ErrorKind kind = ending == Ending::exception ? ErrorKind::exception : ErrorKind::kernel_failed;
  int cause = 0;
  const Ended ended = call_work([&] {
    auto opened = scope();
    entered(opened.skipped());
    return std::move(opened).execute([&](refrain::Stream&) -> Result<void> {
      last_skip_ = {};
      run_range(from, to);
      if (ending == Ending::exception) throw std::runtime_error(says);
      if (ending != Ending::error) return {};
      if (op.a != 0 && last_skip_.first != 0) {  // it hands on what it met
        kind = ErrorKind::skipped;
        cause = last_skip_.first;
        return Error(ErrorKind::skipped, last_skip_.second);
      }
      return Error(ErrorKind::kernel_failed, says);
    });
  });
  left(ending == Ending::clean, kind, kind == ErrorKind::skipped ? "" : says, cause);
  --depth_;
  if (right()) same_work(ended, expected);
  return true;
}

bool LiveSession::reuses(const Op& op) {
  OneStream* const on = stream(op.s);
  const std::optional<OneView> of = view(op.views[0]);
  if (on == nullptr || !of || !sound(*of)) return false;
  on->stream->reuses(of->view);
  model_.reuses(on->model, of->span);
  return true;
}

bool LiveSession::prepare(const Op& op) {
  OneStream* const on = stream(op.s);
  if (on == nullptr || warming_) return false;
  const bool begins = op.kind == OpKind::record;
  Result<OpenWindow> opened = begins ? on->stream->record() : on->stream->prepare();
  const Answer expected = model_.prepare(on->model);
  same(opened, expected);
  if (!opened.ok() || !right()) return true;
  keep(op.s, *std::move(opened), *on);
  if (begins) static_cast<void>(model_.begin(*windows_.at(op.s).model));
  return true;
}

void LiveSession::keep(int s, OpenWindow opened, const OneStream& on) {
  windows_.erase(s);  // one that has ended
  windows_.emplace(s, OneWindow{std::move(opened), model_.on(on.model).window});
}

bool LiveSession::begin(const Op& op) {
  OneWindow* const opened = window(op.s);
  if (opened == nullptr) return false;
  same(opened->handle->begin(), model_.begin(*opened->model));
  return true;
}

bool LiveSession::seal(const Op& op) {
  OneWindow* const opened = window(op.s);
  if (opened == nullptr || recordings_.contains(op.id)) return false;
  if (used_by_others(*opened->model)) return false;
  if (op.ordered) wait_for_members(*opened->model);
  SealOptions options;
  options.allow_empty = op.n != 0;
  std::optional<std::pair<int, Role>> role;
  const std::optional<OneView> said = view(op.views[0]);
  if (op.m != 0 && said && sound(*said)) {
    role = {said->span.buffer, static_cast<Role>(op.m)};
    options.roles.push_back({said->view.binding().buffer, static_cast<Role>(op.m), ""});
  }
  Result<refrain::Recording> sealed = opened->handle->seal(options);
  Answer expected;
  std::shared_ptr<Recording> modelled =
      model_.seal(*opened->model, options.allow_empty, role, expected);
  same(sealed, expected);
  if (sealed.ok() && right()) {
    recordings_.emplace(op.id, OneRecording{*std::move(sealed), std::move(modelled)});
  }
  return true;
}

void LiveSession::wait_for_members(Window& window) {
  OneStream* origin = nullptr;
  for (auto& [id, each] : streams_) {
    if (each.stream && each.model == window.origin) origin = &each;
  }
  if (origin == nullptr || !window.capturing()) return;
  for (auto& [id, each] : streams_) {
    if (!each.stream || &each == origin || model_.capturing(each.model) != &window) continue;
    const refrain::Event event = each.stream->record_event().value();
    same(origin->stream->wait(event), model_.wait(window.origin, model_.record_event(each.model)));
  }
}

bool LiveSession::leave(const Op& op) {
  OneWindow* const opened = window(op.s);
  if (opened == nullptr || !opened->model->scopes.empty()) return false;
  if (used_by_others(*opened->model)) return false;
  if (op.kind == OpKind::abort) {
    opened->handle->abort();
    model_.abort(*opened->model);
    return true;
  }
  opened->handle.reset();
  model_.drop(*opened->model);
  windows_.erase(op.s);
  return true;
}

bool LiveSession::warm_up(const Op& op, std::size_t from, std::size_t to) {
  OneStream* const on = stream(op.s);
  if (on == nullptr || warming_ || depth_ != 0) return false;
  let_all_pass();
  const Answer opens = model_.prepare(on->model);
  const std::shared_ptr<Window> modelled = opens.ok() ? model_.on(on->model).window : nullptr;
  int passes = 0;
  const auto most = static_cast<std::uint32_t>(op.n);
  const auto body = [&]() -> Result<void> {
    if (!modelled) {
      wrong("a body ran without a window");
      return {};
    }
    if (passes != 0) {
      model_.end_pass(on->model);
      if (modelled->first_uses == 0) wrong("another pass for nothing");
      if (model_.pass_failed()) wrong("another pass after one that went wrong");
    }
    ++passes;
    model_.begin_pass(*modelled);
    warming_ = true;
    run_range(from, to);
    warming_ = false;
    if (op.m == static_cast<int>(Ending::error)) {
      return Error(ErrorKind::kernel_failed, "the body of a warm-up");
    }
    return {};
  };
  Result<OpenWindow> opened = on->stream->prepare(body, most);
  if (!right()) return true;
  if (!opens.ok()) {
    same(opened, opens);
    return true;
  }
  if (passes != 0) model_.end_pass(on->model);
  Answer expected;
  if (passes != 0 && op.m == static_cast<int>(Ending::error)) {
    expected = {Answer::What::failed, ErrorKind::kernel_failed, 0, "the body of a warm-up"};
  } else if (passes != 0 && model_.pass_failed()) {
    expected = *model_.pass_failed();  // C20
  } else if (modelled->first_uses != 0 || passes == 0) {
    expected = refused(ErrorKind::needs_warm_up);
    if (passes != op.n) wrong("the number of passes");
  }
  same(opened, expected);
  if (!right()) return true;
  if (opened.ok()) {
    keep(op.s, *std::move(opened), *on);
  } else {
    model_.abort(*modelled);
  }
  return true;
}

bool LiveSession::first_use(const Op& op) {
  OneStream* const on = stream(op.s);
  if (on == nullptr) return false;
  bool ran = false;
  const Result<void> got = on->stream->first_use("tuning", [&]() -> Result<void> {
    ran = true;
    if (op.n != 0) return Error(ErrorKind::kernel_failed, "tuning failed");
    return {};
  });
  Answer expected;
  const bool allowed = model_.first_use();
  if (!allowed) expected = refused(ErrorKind::needs_warm_up);
  if (allowed && op.n != 0) {
    expected = {Answer::What::failed, ErrorKind::kernel_failed, 0, "tuning failed"};
  }
  same(got, expected);
  if (ran != allowed) wrong("first-use work ran or not");
  return true;
}

bool LiveSession::load(const Op& op) {
  const int kernel = 6 + op.n % 2;
  const Result<Make> got = device_.kernel<Make>(name_of(static_cast<KernelKind>(kernel)));
  same(got, model_.load(kernel) ? Answer{} : refused(ErrorKind::needs_warm_up));
  if (got.ok()) extras_.insert_or_assign(kernel, *got);
  return true;
}

}  // namespace refrain::model
