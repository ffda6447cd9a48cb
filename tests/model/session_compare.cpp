// What must be the same on both sides.
#include "model/live_session.hpp"

namespace refrain::model {

void LiveSession::wrong(const std::string& what) {
  if (wrong_.empty()) wrong_ = what;
}

void LiveSession::same_number(int number, FailureId id) {
  if (!id) return wrong("a failure without a number");
  const auto [known, fresh] = ids_.emplace(number, id);
  if (!fresh && known->second != id) return wrong("another failure than before");
  const auto [back, unused] = numbers_.emplace(id, number);
  if (back->second != number) wrong("one failure where there are two");
}

void LiveSession::same_text(const Error& error, const std::string& says) {
  if (error.text().find(says) == std::string::npos) {
    wrong("the text is \"" + error.text() + "\" and not \"" + says + "\"");
  }
}

void LiveSession::count(const Answer& answer) {
  static constexpr const char* kNames[] = {"well", "skipped", "failed", "threw"};
  const Op& op = program_.ops[at_ < program_.ops.size() ? at_ : 0];
  std::string how = kNames[static_cast<int>(answer.what)];
  if (answer.what == Answer::What::failed) how = name_of(answer.kind);
  std::string name = name_of(op.kind);
  if (const OneStream* const on = stream(op.s); on != nullptr && model_.capturing(on->model)) {
    name += " in a window";
  }
  ++tally_[name + ": " + how];
}

void LiveSession::same_work(const Ended& got, const Answer& expected) {
  count(expected);
  static constexpr const char* kNames[] = {"executed", "skipped", "failed", "threw"};
  if (got.what != expected.what) {
    return wrong(std::string("it ") + kNames[static_cast<int>(got.what)] +
                 (got.error ? " (" + got.error->text() + ")" : "") + ", and should have " +
                 kNames[static_cast<int>(expected.what)] +
                 (expected.ok() ? "" : " (" + std::string(name_of(expected.kind)) + ")"));
  }
  if (got.error && got.error->kind() != expected.kind) {
    return wrong("the kind is " + std::string(name_of(got.error->kind())) + ", not " +
                 std::string(name_of(expected.kind)) + ": " + got.error->text());
  }
  if (got.error) same_text(*got.error, expected.says);
  if (got.what == Answer::What::skipped) {
    same_number(expected.failure, got.failure);
    last_skip_ = {expected.failure, got.failure};
  }
  if (got.what == Answer::What::thrown && got.thrown != expected.says) {
    wrong("it threw \"" + got.thrown + "\"");
  }
}

void LiveSession::same_byte(const View<U8>& view, const Span& span) {
  const std::optional<Error> error = device_.check(view);
  const std::vector<int> carried = model_.carried(span);
  if (error.has_value() != !carried.empty()) {
    return wrong(text_of(span) + (error ? " carries " + error->text()
                                        : " is clean and should carry " +
                                              std::string(name_of(kind_of(carried[0])))));
  }
  if (!error) return;
  if (error->kind() != kind_of(carried[0])) {
    return wrong(text_of(span) + " carries " + error->text() + ", not " +
                 std::string(name_of(kind_of(carried[0]))));
  }
  same_number(carried[0], error->failure());
  same_text(*error, model_.failure(carried[0]).says);
  if (!right() && wrong_.find("byte") == std::string::npos) wrong_ += " at " + text_of(span);
}

std::string LiveSession::text_of(const Span& span) {
  return "bytes [" + std::to_string(span.begin) + ", " + std::to_string(span.end) + ") of " +
         model_.at(span.buffer).shape.name;
}

void LiveSession::same_heard() {
  const std::lock_guard lock(heard_mutex_);
  const std::vector<Heard>& expected = model_.heard();
  for (; compared_ < std::max(heard_.size(), expected.size()); ++compared_) {
    if (compared_ >= heard_.size()) {
      return wrong("the listener did not hear " + std::string(name_of(expected[compared_].kind)));
    }
    if (compared_ >= expected.size()) {
      return wrong("the listener heard " + std::string(name_of(heard_[compared_].kind)));
    }
    if (heard_[compared_].kind != expected[compared_].kind ||
        model_stream_[heard_[compared_].stream] != expected[compared_].stream) {
      return wrong("the listener heard " + std::string(name_of(heard_[compared_].kind)) +
                   " and not " + std::string(name_of(expected[compared_].kind)));
    }
  }
}

void LiveSession::same_everything() {
  for (auto& [id, buffer] : buffers_) {
    if (model_.wrong(buffer.span)) {
      const std::optional<Error> stale = device_.check(buffer.whole);
      if (!stale || stale->kind() != ErrorKind::stale_buffer) wrong("a stale buffer is none");
      continue;
    }
    for (std::uint64_t byte = 0; right() && byte < buffer.whole.range.size(); ++byte) {
      same_byte(part(buffer, byte, 1).view, part(buffer, byte, 1).span);
    }
  }
  if (depth_ != 0 || !right()) return;
  const std::size_t live = model_.live().size();
  if (device_.live_failures() != live) {
    wrong(std::to_string(device_.live_failures()) + " failures live, and should be " +
          std::to_string(live));
  }
}

}  // namespace refrain::model
