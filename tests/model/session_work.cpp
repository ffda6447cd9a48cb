// Memory, streams and work.
#include "model/live_session.hpp"

namespace refrain::model {

Values values_from(int first, std::size_t count) {
  Values all;
  for (std::size_t at = 0; at < count; ++at) {
    all.push_back(static_cast<U8>((static_cast<std::size_t>(first) + at) % 199));
  }
  if (first >= kFails && !all.empty()) all[0] = static_cast<U8>(first);
  return all;
}

bool LiveSession::allocate(const Op& op) {
  if (buffers_.contains(op.id) || warming_ || op.n <= 0) return false;
  const auto count = static_cast<std::uint64_t>(op.n);
  Shape shape;
  shape.name = "b" + std::to_string(op.id);
  shape.role = static_cast<Role>(op.m);
  shape.size = count;
  const Values start = values_from(op.a + 1, count);
  const bool given = shape.role == Role::constant || (shape.role == Role::state && op.a != 0);
  if (given) shape.start = start;
  if (shape.role == Role::state && !given) {
    shape.start = Values(count, 0);
    shape.zero = true;
  }
  Result<Buffer<U8>> made =
      shape.role == Role::constant
          ? device_.constant<U8>(shape.name, SharedBytes::copy_of(std::as_bytes(std::span(start))))
      : given ? device_.state<U8>(shape.name, std::span<const U8>(start))
              : device_.buffer<U8>(shape.name, count, shape.role);
  if (!made.ok()) {
    wrong("no memory");
    return true;
  }
  OneBuffer buffer;
  buffer.whole = made->view().binding();
  buffer.owned = std::move(*made);
  buffer.span = {0, 0, count};
  buffer.owner = model_.allocate(std::move(shape), program_.checks, buffer.span.buffer);
  const auto placed = buffers_.emplace(op.id, std::move(buffer)).first;
  know(placed->second);
  return true;
}

void LiveSession::know(const OneBuffer& buffer) {
  for (std::uint64_t byte = 0; byte < buffer.whole.range.size(); ++byte) {
    const OneView one = part(buffer, byte, 1);
    if (!model_.unknown({one.span}) || !model_.carried(one.span).empty()) continue;
    wait_for({one.span}, true);
    const Values value(1, static_cast<U8>(byte));
    refrain::Stream& helper = *streams_.at(kHelper).stream;
    same_work(call_work([&] { return helper.write(one.view, std::span<const U8>(value)); }),
              model_.write(streams_.at(kHelper).model, one.span, value));
  }
}

bool LiveSession::free_buffer(const Op& op) {
  OneBuffer& buffer = buffers_.at(op.id);
  if (!buffer.owned || warming_) return false;
  buffer.owned.reset();
  buffer.owner.reset();
  return true;
}

void LiveSession::add_stream(int id, bool worker) {
  OneStream& made = streams_[id];
  made.worker = worker;
  made.model = model_.stream(worker);
  made.stream.emplace(device_.stream(worker ? StreamKind::worker : StreamKind::inline_).value());
  model_stream_[made.stream->id()] = made.model;
  if (!worker) return;
  made.stream->launch(*here_, grid(1), static_cast<std::uint32_t>(made.model));
  static_cast<void>(device_.core()->backend().sync(*made.stream->core().backend));
}

bool LiveSession::end_stream(const Op& op) {
  OneStream* const gone = stream(op.s);
  if (gone == nullptr || depth_ != 0 || warming_ || op.s == kHelper) return false;
  let_pass({{gone->model, model_.on(gone->model).given}});
  if (model_.window_open()) catch_up();  // C19: it may not wait
  gone->stream.reset();
  model_.end_stream(gone->model);
  return true;
}

std::optional<std::vector<LiveSession::OneView>> LiveSession::views(const Op& op,
                                                                    std::size_t count) {
  std::vector<OneView> all;
  for (std::size_t at = 0; at < count; ++at) {
    const std::optional<OneView> one = view(op.views[at]);
    if (!one) return std::nullopt;
    all.push_back(*one);
  }
  return all;
}

Spans LiveSession::good(const std::vector<OneView>& all) {
  Spans spans;
  for (const OneView& each : all) {
    if (sound(each)) spans.push_back(each.span);
  }
  return spans;
}

bool LiveSession::launch(const Op& op) {
  OneStream* const on = stream(op.s);
  const auto kernel = static_cast<KernelKind>(op.n);
  const std::vector<Use> uses = uses_of(kernel);
  const auto given = views(op, uses.size());
  if (on == nullptr || !given || !model_.loaded(op.n)) return false;
  if (op.n >= 6 && !extras_.contains(op.n)) return false;
  const bool extent = op.kind == OpKind::launch_extent;
  if (extent && uses.size() == 3) return false;
  const std::optional<OneView> threads = extent ? view(op.views[2]) : std::nullopt;
  if (extent && !threads) return false;
  Spans reads;
  Spans writes;
  Spans spans;
  for (std::size_t at = 0; at < uses.size(); ++at) {
    const OneView& each = (*given)[at];
    spans.push_back(each.span);
    if (!sound(each)) continue;
    if (uses[at] != Use::out) reads.push_back(each.span);
    if (uses[at] != Use::in) writes.push_back(each.span);
  }
  if (extent && sound(*threads)) reads.push_back(threads->span);
  if (foreign(on->model, reads, writes)) return false;
  if ((extent || op.a != 1) && !order(op, reads, writes)) return false;
  const auto tag = static_cast<std::uint32_t>(op.m);
  if (extent) {
    const bool fits = threads->span.end - threads->span.begin == 24;
    if (sound(*threads) && fits && model_.capturing(on->model) == nullptr) {
      wait_for({threads->span}, false);
    }
    same_work(call_work([&] {
                return launch_on(*on->stream, kernel, *given, tag,
                                 View<std::uint32_t>(threads->view.binding()));
              }),
              model_.launch_extent(on->model, kernel, tag, spans, threads->span));
    return true;
  }
  const bool none = op.a == 1;
  same_work(call_work([&] {
              return launch_on(*on->stream, kernel, *given, tag,
                               none ? Grid{{1, 0, 1}, {1, 1, 1}, 0, Where::here(), {}} : grid(4));
            }),
            model_.launch(on->model, kernel, tag, spans, none));
  return true;
}

bool LiveSession::copy(const Op& op) {
  OneStream* const on = stream(op.s);
  const auto given = views(op, 2);
  if (on == nullptr || !given) return false;
  const OneView& to = (*given)[0];
  const OneView& from = (*given)[1];
  const Spans writes = good({to});
  const Spans reads = good({from});
  if (foreign(on->model, reads, writes) || !order(op, reads, writes)) return false;
  same_work(call_work([&] { return on->stream->copy(to.view, from.view); }),
            model_.copy(on->model, to.span, from.span));
  return true;
}

bool LiveSession::fill(const Op& op) {
  OneStream* const on = stream(op.s);
  const std::optional<OneView> to = view(op.views[0]);
  if (on == nullptr || !to) return false;
  const Spans writes = good({*to});
  if (foreign(on->model, {}, writes) || !order(op, {}, writes)) return false;
  const auto value = static_cast<U8>(op.n);
  same_work(call_work([&] { return on->stream->fill(to->view, value); }),
            model_.fill(on->model, to->span, value));
  return true;
}

bool LiveSession::write(const Op& op) {
  OneStream* const on = stream(op.s);
  const std::optional<OneView> to = view(op.views[0]);
  if (on == nullptr || !to) return false;
  const Spans writes = good({*to});
  if (foreign(on->model, {}, writes)) return false;
  if (model_.capturing(on->model) != nullptr && !order(op, {}, writes)) return false;
  const std::uint64_t size = to->span.end - to->span.begin;
  const bool waits = sound(*to) && model_.at(to->span.buffer).shape.role != Role::constant &&
                     (op.m == 0 || op.kind == OpKind::failed_write);
  if (model_.capturing(on->model) == nullptr && waits) wait_for(writes, true);
  if (op.kind == OpKind::failed_write) {
    const std::string says = "what was to be written, number " + std::to_string(op.n);
    on->stream->failed_write(to->view, Error(ErrorKind::kernel_failed, says));
    model_.failed_write(on->model, to->span, says);
    return true;
  }
  const Values values = values_from(op.n, size + static_cast<std::uint64_t>(op.m));
  same_work(call_work([&] { return on->stream->write(to->view, std::span<const U8>(values)); }),
            model_.write(on->model, to->span, values));
  return true;
}

bool LiveSession::read(const Op& op) {
  OneStream* const on = stream(op.s);
  const std::optional<OneView> from = view(op.views[0]);
  if (on == nullptr || !from) return false;
  if (sound(*from) && model_.capturing(on->model) == nullptr) {
    wait_for({from->span}, false);
  }
  const Result<Values> got = on->stream->read(from->view);
  Values values;
  std::vector<int> told;
  const Answer expected = model_.read(on->model, from->span, values, told);
  same(got, expected);
  if (!right()) return true;
  if (got.ok() && *got != values) wrong("the values differ in " + text_of(from->span));
  if (got.ok() || told.empty()) return true;
  const std::string text = got.error().text();
  std::size_t stories = 0;
  for (std::size_t at = text.find("\n  failure "); at != std::string::npos;
       at = text.find("\n  failure ", at + 1)) {
    ++stories;
  }
  if (stories != told.size()) wrong("a read tells each failure once: " + text);
  for (const int number : told) same_text(got.error(), model_.failure(number).says);
  return true;
}

bool LiveSession::check(const Op& op) {
  const std::optional<OneView> of = view(op.views[0]);
  if (!of) return false;
  if (const auto unsound = model_.wrong(of->span)) {
    const std::optional<Error> error = device_.check(of->view);
    if (!error || error->kind() != *unsound) wrong("a check of a view that is none");
    return true;
  }
  if (of->span.begin != of->span.end) same_byte(of->view, of->span);
  return true;
}

bool LiveSession::sync(const Op& op) {
  OneStream* const on = stream(op.s);
  if (on == nullptr) return false;
  if (model_.capturing(on->model) == nullptr) {
    let_pass({{on->model, model_.on(on->model).given}});
  }
  same(on->stream->sync(), model_.sync(on->model));
  return true;
}

}  // namespace refrain::model
