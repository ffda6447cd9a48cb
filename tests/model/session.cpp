#include "model/session.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>

#include "model/kernels.hpp"
#include "model/model.hpp"
#include "model/turnstile.hpp"
#include "refrain/device/stream_core.hpp"
#include "refrain/refrain.hpp"
#include "support/temporary_folder.hpp"

namespace refrain::model {
namespace {

using U8 = std::uint8_t;
using Make = refrain::Kernel<Out<U8>, std::uint32_t>;
using Map = refrain::Kernel<In<U8>, Out<U8>, std::uint32_t>;
using Update = refrain::Kernel<InOut<U8>, std::uint32_t>;
using Join = refrain::Kernel<In<U8>, In<U8>, Out<U8>, std::uint32_t>;
using Split = refrain::Kernel<In<U8>, Out<U8>, Out<U8>, std::uint32_t>;
using Look = refrain::Kernel<In<U8>, std::uint32_t>;
using Say = refrain::Kernel<std::uint32_t>;

std::span<U8> mutable_span(std::span<const U8> span) {
  return {const_cast<U8*>(span.data()), span.size()};
}

Result<void> run_on_host(Turnstile& turnstile, KernelKind kernel, std::uint32_t tag,
                         const std::vector<std::span<U8>>& views) {
  std::vector<Values> arguments;
  for (const std::span<U8> view : views) arguments.emplace_back(view.begin(), view.end());
  const Ran ran = run_kernel(kernel, tag, arguments);
  if (ran.how != Ran::How::clean) turnstile.before_failing();
  if (ran.how == Ran::How::error) return Error(ErrorKind::kernel_failed, ran.says);
  if (ran.how == Ran::How::exception) throw std::runtime_error(ran.says);
  const std::vector<Use> uses = uses_of(kernel);
  for (std::size_t at = 0; at < views.size(); ++at) {
    if (uses[at] != Use::in)
      std::copy(arguments[at].begin(), arguments[at].end(), views[at].begin());
  }
  return {};
}

void register_all(host::KernelRegistry& kernels, Turnstile& turnstile) {
  for (const KernelKind kind : {KernelKind::make, KernelKind::extra_0, KernelKind::extra_1}) {
    kernels.add<Make>(name_of(kind), [&turnstile, kind](std::span<U8> y, std::uint32_t tag) {
      return run_on_host(turnstile, kind, tag, {y});
    });
  }
  kernels.add<Map>("map", [&turnstile](std::span<const U8> x, std::span<U8> y, std::uint32_t tag) {
    return run_on_host(turnstile, KernelKind::map, tag, {mutable_span(x), y});
  });
  kernels.add<Update>("update", [&turnstile](std::span<U8> y, std::uint32_t tag) {
    return run_on_host(turnstile, KernelKind::update, tag, {y});
  });
  kernels.add<Join>("join", [&turnstile](std::span<const U8> a, std::span<const U8> b,
                                         std::span<U8> y, std::uint32_t tag) {
    return run_on_host(turnstile, KernelKind::join, tag, {mutable_span(a), mutable_span(b), y});
  });
  kernels.add<Split>("split", [&turnstile](std::span<const U8> x, std::span<U8> y, std::span<U8> z,
                                           std::uint32_t tag) {
    return run_on_host(turnstile, KernelKind::split, tag, {mutable_span(x), y, z});
  });
  kernels.add<Look>("look", [&turnstile](std::span<const U8> x, std::uint32_t tag) {
    return run_on_host(turnstile, KernelKind::look, tag, {mutable_span(x)});
  });
  kernels.add<Say>("gate", [&turnstile](std::uint32_t) { turnstile.pass_gate(); });
  kernels.add<Say>("here", [](std::uint32_t stream) { Turnstile::here(static_cast<int>(stream)); });
}

/// Values that no two operations share by chance, and of which none is a failing one.
Values values_from(int first, std::size_t count) {
  Values all;
  for (std::size_t at = 0; at < count; ++at) {
    all.push_back(static_cast<U8>((static_cast<std::size_t>(first) + at) % 199));
  }
  if (first >= kFails && !all.empty()) all[0] = static_cast<U8>(first);
  return all;
}

class Session {
 public:
  explicit Session(const Program& program)
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

  Verdict run() {
    run_range(0, program_.ops.size());
    if (right()) finish();
    if (opener_.joinable()) opener_.join();
    if (!right() || watchdog_.barked()) turnstile_.open_all();
    return {wrong_, at_, done_, std::move(tally_)};
  }

 private:
  static constexpr int kHelper = -1;  // a stream of the session's own

  struct OneBuffer {
    std::optional<Buffer<U8>> owned;
    BufferBinding whole;
    Span span;
    Owner owner;
  };
  struct OneStream {
    std::optional<refrain::Stream> stream;
    int model = 0;
    bool worker = false;
    std::vector<std::pair<std::size_t, std::shared_ptr<BackendEvent>>> marks;
  };
  struct OneEvent {
    refrain::Event event;
    std::shared_ptr<Event> model;
  };
  struct OneWindow {
    std::optional<OpenWindow> handle;
    std::shared_ptr<Window> model;
  };
  struct OneRecording {
    refrain::Recording recording;
    std::shared_ptr<Recording> model;
  };
  struct OnePlan {
    refrain::Plan plan;
    std::shared_ptr<Plan> model;
  };
  struct OneInstance {
    refrain::Instance instance;
    std::shared_ptr<Instance> model;
  };
  struct OneView {
    View<U8> view;
    Span span;
  };

  // Saying what is wrong.

  [[nodiscard]] bool right() const { return wrong_.empty(); }
  void wrong(const std::string& what) {
    if (wrong_.empty()) wrong_ = what;
  }
  void same_number(int number, FailureId id) {
    if (!id) return wrong("a failure without a number");
    const auto [known, fresh] = ids_.emplace(number, id);
    if (!fresh && known->second != id) return wrong("another failure than before");
    const auto [back, unused] = numbers_.emplace(id, number);
    if (back->second != number) wrong("one failure where there are two");
  }
  void same_text(const Error& error, const std::string& says) {
    if (error.text().find(says) == std::string::npos) {
      wrong("the text is \"" + error.text() + "\" and not \"" + says + "\"");
    }
  }
  void count(const Answer& answer) {
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
  template <class T>
  void same(const Result<T>& got, const Answer& expected) {
    count(expected);
    if (got.ok() != expected.ok()) {
      return wrong(got.ok() ? "it went well and should be " + std::string(name_of(expected.kind))
                            : "it failed: " + got.error().text());
    }
    if (got.ok()) return;
    if (got.error().kind() != expected.kind) {
      return wrong("the kind is " + std::string(name_of(got.error().kind())) + ", not " +
                   std::string(name_of(expected.kind)) + ": " + got.error().text());
    }
    if (expected.failure != 0) same_number(expected.failure, got.error().failure());
    same_text(got.error(), expected.says);
  }
  /// How work ended on the library.
  struct Ended {
    Answer::What what = Answer::What::ok;
    std::optional<Error> error;
    FailureId failure;
    std::string thrown;
  };
  template <class Call>
  static Ended call_work(Call&& call) {
    try {
      const auto outcome = call();
      if (outcome.executed_cleanly()) return {};
      if (outcome.skipped()) return {Answer::What::skipped, {}, outcome.failure(), ""};
      return {Answer::What::failed, outcome.error(), {}, ""};
    } catch (const std::runtime_error& error) {
      return {Answer::What::thrown, {}, {}, error.what()};
    }
  }
  void same_work(const Ended& got, const Answer& expected) {
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
  void same_byte(const View<U8>& view, const Span& span) {
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
  ErrorKind kind_of(int number) { return model_.failure(number).kind; }
  std::string text_of(const Span& span) {
    return "bytes [" + std::to_string(span.begin) + ", " + std::to_string(span.end) + ") of " +
           model_.at(span.buffer).shape.name;
  }
  void same_heard() {
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
  void same_everything() {
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

  // Waiting.

  void settle() {
    model_.settle([this](int s) { fail(s); });
    catch_up();
  }
  /// It is the turn of the kernel that fails next on a worker.
  void fail(int s) {
    turnstile_.let_fail(s);
    ++tally_["a late failure"];
    std::unique_lock lock(heard_mutex_);
    const bool heard = heard_changed_.wait_for(
        lock, std::chrono::seconds(4), [this] { return heard_.size() >= model_.heard().size(); });
    lock.unlock();
    if (!heard) wrong("a late failure was never heard of");
  }
  /// Waits until the library's workers are where the model's are.
  void catch_up() {
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
  /// Before a call that waits for these. Where no failure is in between, the gates open only while
  /// the call is on its way, so that one which does not wait is found out.
  void let_pass(const Model::Target& target) {
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
  void let_all_pass() {
    Model::Target all;
    for (const auto& [id, each] : streams_) all[each.model] = model_.on(each.model).given;
    let_pass(all);
    catch_up();
  }
  /// Puts events between this and what it conflicts with; false when that cannot be.
  bool order(const Op& op, const Spans& reads, const Spans& writes) {
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
  /// Whether a scope that is open on another stream, or on the other side of a window, uses these.
  bool foreign(int s, const Spans& reads, const Spans& writes) {
    return std::any_of(open_.begin(), open_.end(), [&](const Scope* scope) {
      Window* const inside = model_.capturing(s);
      if (scope->window == inside && (inside != nullptr || scope->stream == s)) return false;
      return overlap(scope->writes, reads) || overlap(scope->writes, writes) ||
             overlap(scope->reads, writes);
    });
  }

  /// Whether a scope that is open elsewhere uses what a window claims as it goes.
  bool used_by_others(const Window& window) {
    const Spans all = Model::of(window);
    return std::any_of(open_.begin(), open_.end(), [&](const Scope* scope) {
      return scope->window != &window &&
             (overlap(scope->writes, all) || overlap(scope->reads, all));
    });
  }

  // Finding what an operation names.

  OneStream* stream(int id) {
    const auto found = streams_.find(id);
    return found != streams_.end() && found->second.stream ? &found->second : nullptr;
  }
  static OneView part(const OneBuffer& buffer, std::uint64_t begin, std::uint64_t size) {
    const std::uint64_t from = buffer.whole.range.begin + begin;
    return {View<U8>(BufferBinding{buffer.whole.buffer, {from, from + size}}),
            {buffer.span.buffer, buffer.span.begin + begin, buffer.span.begin + begin + size}};
  }
  std::optional<OneView> view(const ViewRef& ref) {
    if (ref.buffer < 0) return OneView{View<U8>(), Span{}};
    const auto found = buffers_.find(ref.buffer);
    if (found == buffers_.end()) return std::nullopt;
    return part(found->second, ref.begin, ref.size);
  }
  bool sound(const OneView& view) { return !model_.wrong(view.span); }
  template <class Map>
  static auto* find(Map& map, int id) {
    const auto found = map.find(id);
    return found != map.end() ? &found->second : nullptr;
  }

  // Running.

  void run_range(std::size_t from, std::size_t to) {
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
  /// The `end` that belongs to the operation at `index`, or the end of the program.
  [[nodiscard]] std::size_t end_of(std::size_t index) const {
    int depth = 0;
    for (std::size_t at = index; at < program_.ops.size(); ++at) {
      const OpKind kind = program_.ops[at].kind;
      if (kind == OpKind::nest || kind == OpKind::warm_up) ++depth;
      if (kind == OpKind::end && --depth == 0) return at;
    }
    return program_.ops.size();
  }
  std::size_t step(std::size_t index) {
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

  bool act(const Op& op) {
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

  // Memory and streams.

  bool allocate(const Op& op) {
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
            ? device_.constant<U8>(shape.name,
                                   SharedBytes::copy_of(std::as_bytes(std::span(start))))
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
  /// Where nothing says that bytes are unwritten, nobody may read what happens to be there.
  void know(const OneBuffer& buffer) {
    for (std::uint64_t byte = 0; byte < buffer.whole.range.size(); ++byte) {
      const OneView one = part(buffer, byte, 1);
      if (!model_.unknown({one.span}) || !model_.carried(one.span).empty()) continue;
      let_pass(model_.users({one.span}, true));
      const Values value(1, static_cast<U8>(byte));
      refrain::Stream& helper = *streams_.at(kHelper).stream;
      same_work(call_work([&] { return helper.write(one.view, std::span<const U8>(value)); }),
                model_.write(streams_.at(kHelper).model, one.span, value));
    }
  }
  bool free_buffer(const Op& op) {
    OneBuffer& buffer = buffers_.at(op.id);
    if (!buffer.owned || warming_) return false;
    buffer.owned.reset();
    buffer.owner.reset();
    return true;
  }
  void add_stream(int id, bool worker) {
    OneStream& made = streams_[id];
    made.worker = worker;
    made.model = model_.stream(worker);
    made.stream.emplace(device_.stream(worker ? StreamKind::worker : StreamKind::inline_).value());
    model_stream_[made.stream->id()] = made.model;
    if (!worker) return;
    made.stream->launch(*here_, grid(1), static_cast<std::uint32_t>(made.model));
    static_cast<void>(device_.core()->backend().sync(*made.stream->core().backend));
  }
  bool end_stream(const Op& op) {
    OneStream* const gone = stream(op.s);
    if (gone == nullptr || depth_ != 0 || warming_ || op.s == kHelper) return false;
    let_pass({{gone->model, model_.on(gone->model).given}});
    gone->stream.reset();
    model_.end_stream(gone->model);
    return true;
  }

  // Work.

  std::optional<std::vector<OneView>> views(const Op& op, std::size_t count) {
    std::vector<OneView> all;
    for (std::size_t at = 0; at < count; ++at) {
      const std::optional<OneView> one = view(op.views[at]);
      if (!one) return std::nullopt;
      all.push_back(*one);
    }
    return all;
  }
  Spans good(const std::vector<OneView>& all) {
    Spans spans;
    for (const OneView& each : all) {
      if (sound(each)) spans.push_back(each.span);
    }
    return spans;
  }
  template <class... Extent>
  ScopedOutcome<void> launch_on(refrain::Stream& on, KernelKind kernel,
                                const std::vector<OneView>& v, std::uint32_t tag,
                                const Extent&... extent) {
    switch (kernel) {
      case KernelKind::make: return on.launch(*make_, extent..., v[0].view, tag);
      case KernelKind::map: return on.launch(*map_, extent..., v[0].view, v[1].view, tag);
      case KernelKind::update: return on.launch(*update_, extent..., v[0].view, tag);
      case KernelKind::join:
        return on.launch(*join_, extent..., v[0].view, v[1].view, v[2].view, tag);
      case KernelKind::split:
        return on.launch(*split_, extent..., v[0].view, v[1].view, v[2].view, tag);
      case KernelKind::look: return on.launch(*look_, extent..., v[0].view, tag);
      default: return on.launch(extras_.at(static_cast<int>(kernel)), extent..., v[0].view, tag);
    }
  }
  bool launch(const Op& op) {
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
      if (sound(*threads) && model_.capturing(on->model) == nullptr) {
        let_pass(model_.users({threads->span}, false));
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
                                 none ? Grid{{1, 0, 1}, {1, 1, 1}, 0, Where::here()} : grid(4));
              }),
              model_.launch(on->model, kernel, tag, spans, none));
    return true;
  }
  bool copy(const Op& op) {
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
  bool fill(const Op& op) {
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
  bool write(const Op& op) {
    OneStream* const on = stream(op.s);
    const std::optional<OneView> to = view(op.views[0]);
    if (on == nullptr || !to) return false;
    const Spans writes = good({*to});
    if (foreign(on->model, {}, writes)) return false;
    if (model_.capturing(on->model) != nullptr && !order(op, {}, writes)) return false;
    if (model_.capturing(on->model) == nullptr) let_pass(model_.users(writes, true));
    if (op.kind == OpKind::failed_write) {
      const std::string says = "what was to be written, number " + std::to_string(op.n);
      on->stream->failed_write(to->view, Error(ErrorKind::kernel_failed, says));
      model_.failed_write(on->model, to->span, says);
      return true;
    }
    const std::uint64_t size = to->span.end - to->span.begin;
    const Values values = values_from(op.n, size + static_cast<std::uint64_t>(op.m));
    same_work(call_work([&] { return on->stream->write(to->view, std::span<const U8>(values)); }),
              model_.write(on->model, to->span, values));
    return true;
  }
  bool read(const Op& op) {
    OneStream* const on = stream(op.s);
    const std::optional<OneView> from = view(op.views[0]);
    if (on == nullptr || !from) return false;
    if (sound(*from) && model_.capturing(on->model) == nullptr) {
      let_pass(model_.users({from->span}, false));
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
  bool check(const Op& op) {
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
  bool sync(const Op& op) {
    OneStream* const on = stream(op.s);
    if (on == nullptr) return false;
    if (model_.capturing(on->model) == nullptr) {
      let_pass({{on->model, model_.on(on->model).given}});
    }
    same(on->stream->sync(), model_.sync(on->model));
    return true;
  }

  // Held workers and order.

  bool hold(const Op& op) {
    OneStream* const on = stream(op.s);
    if (on == nullptr || !on->worker || warming_ || model_.window(on->model) != nullptr)
      return false;
    on->stream->launch(*gate_, grid(1), 0U);
    model_.hold(on->model);
    return true;
  }
  bool release(const Op& op) {
    OneStream* const on = stream(op.s);
    if (on == nullptr || !on->worker) return false;
    let_pass({{on->model, model_.on(on->model).given}});
    return true;
  }
  bool record_event(const Op& op) {
    OneStream* const on = stream(op.s);
    if (on == nullptr || events_.contains(op.id)) return false;
    events_.emplace(op.id,
                    OneEvent{on->stream->record_event().value(), model_.record_event(on->model)});
    return true;
  }
  bool wait_event(const Op& op) {
    OneStream* const on = stream(op.s);
    OneEvent* const event = find(events_, op.a);
    if (on == nullptr || event == nullptr) return false;
    if (!event->model->in_window && !on->worker) {
      let_pass({{event->model->stream, event->model->position}});
    }
    same(on->stream->wait(event->event), model_.wait(on->model, event->model));
    return true;
  }
  bool host_wait(const Op& op) {
    OneEvent* const event = find(events_, op.a);
    if (event == nullptr) return false;
    if (!event->model->in_window) let_pass({{event->model->stream, event->model->position}});
    same(event->event.wait(), model_.host_wait(*event->model));
    return true;
  }
  bool reached(const Op& op) {
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

  // Scopes of the program's own.

  bool nest(const Op& op, std::size_t from, std::size_t to) {
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
      return op.n != 0 ? ExecuteScope<refrain::Stream>::launching(stream, kernel, read_bindings,
                                                                  std::move(set), Where::here())
                       : ExecuteScope<refrain::Stream>::over(stream, kernel, std::move(set),
                                                             Where::here());
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
  bool reuses(const Op& op) {
    OneStream* const on = stream(op.s);
    const std::optional<OneView> of = view(op.views[0]);
    if (on == nullptr || !of || !sound(*of)) return false;
    on->stream->reuses(of->view);
    model_.reuses(on->model, of->span);
    return true;
  }

  // Windows.

  bool prepare(const Op& op) {
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
  void keep(int s, OpenWindow opened, const OneStream& on) {
    windows_.erase(s);  // one that has ended
    windows_.emplace(s, OneWindow{std::move(opened), model_.on(on.model).window});
  }
  OneWindow* window(int s) { return warming_ ? nullptr : find(windows_, s); }
  bool begin(const Op& op) {
    OneWindow* const opened = window(op.s);
    if (opened == nullptr) return false;
    same(opened->handle->begin(), model_.begin(*opened->model));
    return true;
  }
  bool seal(const Op& op) {
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
  /// The stream that opened a window waits for the members that are still out.
  void wait_for_members(Window& window) {
    OneStream* origin = nullptr;
    for (auto& [id, each] : streams_) {
      if (each.stream && each.model == window.origin) origin = &each;
    }
    if (origin == nullptr || !window.capturing()) return;
    for (auto& [id, each] : streams_) {
      if (!each.stream || &each == origin || model_.capturing(each.model) != &window) continue;
      const refrain::Event event = each.stream->record_event().value();
      same(origin->stream->wait(event),
           model_.wait(window.origin, model_.record_event(each.model)));
    }
  }
  bool leave(const Op& op) {
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
  bool warm_up(const Op& op, std::size_t from, std::size_t to) {
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
  bool first_use(const Op& op) {
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
  bool load(const Op& op) {
    const int kernel = 6 + op.n % 2;
    const Result<Make> got = device_.kernel<Make>(name_of(static_cast<KernelKind>(kernel)));
    same(got, model_.load(kernel) ? Answer{} : refused(ErrorKind::needs_warm_up));
    if (got.ok()) extras_.insert_or_assign(kernel, *got);
    return true;
  }

  // Replay.

  bool instance(const Op& op) {
    OneRecording* const of = find(recordings_, op.a);
    if (of == nullptr || instances_.contains(op.id) || warming_) return false;
    Result<refrain::Instance> made = refrain::instance(of->recording);
    Answer expected;
    std::shared_ptr<Instance> modelled = model_.instance(of->model, expected);
    same(made, expected);
    if (made.ok() && right()) {
      instances_.emplace(op.id, OneInstance{*std::move(made), std::move(modelled)});
    }
    return true;
  }
  bool plan(const Op& op) {
    OneRecording* const of = find(recordings_, op.a);
    if (of == nullptr || plans_.contains(op.id) || warming_) return false;
    const SealedGraph& graph = of->recording.graph();
    if (op.n == 0) return keep_plan(op, refrain::Plan::prepare(device_, graph), *of);
    Answer expected;
    if (model_.not_portable(*of->model->graph)) expected = refused(ErrorKind::not_portable);
    if (op.n == 1) {
      const Result<std::vector<std::byte>> bytes = encode(graph);
      same(bytes, expected);
      if (!bytes.ok()) return true;
      const Result<CaptureFile> file = CaptureFile::parse(SharedBytes::copy_of(*bytes));
      if (!file.ok()) {
        wrong("a file that was just made does not open: " + file.error().text());
        return true;
      }
      Result<SealedGraph> loaded = file->graph();
      if (!loaded.ok()) {
        wrong("a graph that was just saved does not load: " + loaded.error().text());
        return true;
      }
      return keep_plan(op, refrain::Plan::prepare(device_, *std::move(loaded)), *of);
    }
    if (!folder_) folder_.emplace();
    const std::filesystem::path path = folder_->file("graph.refrain");
    const Result<void> saved = save(graph, path);
    same(saved, expected);
    if (!saved.ok()) return true;
    return keep_plan(op, refrain::load(device_, path), *of);
  }
  bool keep_plan(const Op& op, Result<refrain::Plan> made, const OneRecording& of) {
    if (!made.ok()) {
      wrong("no plan: " + made.error().text());
      return true;
    }
    plans_.emplace(op.id, OnePlan{*std::move(made), model_.plan(of.model->graph)});
    return true;
  }
  bool plan_instance(const Op& op) {
    OnePlan* const of = find(plans_, op.a);
    if (of == nullptr || instances_.contains(op.id) || warming_) return false;
    Result<refrain::Instance> made = of->plan.instance();
    if (!made.ok()) {
      wrong("no instance: " + made.error().text());
      return true;
    }
    instances_.emplace(op.id, OneInstance{*std::move(made), model_.instance(of->model)});
    return true;
  }
  static std::string name_of_region(const Op& op) { return "b" + std::to_string(op.n); }
  bool locate(const Op& op) {
    OneInstance* const of = find(instances_, op.a);
    if (of == nullptr || buffers_.contains(op.id) || warming_) return false;
    const Result<View<U8>> got = of->instance.view<U8>(name_of_region(op));
    OneBuffer buffer;
    same(got, model_.locate(*of->model, name_of_region(op), buffer.span));
    if (!got.ok() || !right()) return true;
    buffer.whole = got->binding();
    know(buffers_.emplace(op.id, std::move(buffer)).first->second);
    return true;
  }
  bool bind(const Op& op) {
    OneInstance* const of = find(instances_, op.a);
    const std::optional<OneView> to = view(op.views[0]);
    if (of == nullptr || !to || warming_) return false;
    let_pass(model_.users(all_of(*of->model), true));
    same(of->instance.bind(name_of_region(op), to->view.binding(),
                           op.m != 0 ? ElementType::f32 : ElementType::u8),
         model_.bind(*of->model, name_of_region(op), to->span, op.m != 0));
    return true;
  }
  Spans all_of(const Instance& instance) {
    Spans all;
    for (std::size_t at = 0; at < instance.memory.size(); ++at) {
      if (instance.memory[at] < 0) continue;
      all.push_back({instance.memory[at], instance.offset[at],
                     instance.offset[at] + instance.graph->regions[at].size});
    }
    return all;
  }
  bool replay(const Op& op) {
    OneStream* const on = stream(op.s);
    OneInstance* const of = find(instances_, op.a);
    if (on == nullptr || of == nullptr || warming_) return false;
    const bool look = op.n == 0;
    if (foreign(on->model, all_of(*of->model), all_of(*of->model))) return false;
    if (of->model->listed) {
      if (!look && model_.unknown(of->model->reads)) return false;
      if (model_.capturing(on->model) == nullptr &&
          !order(op, of->model->reads, of->model->writes)) {
        return false;
      }
    } else {
      // Gives memory first, so that what it uses is known.
      if (!look) return false;
      Op ordered = op;
      ordered.ordered = true;
      if (model_.capturing(on->model) == nullptr &&
          !order(ordered, all_of(*of->model), all_of(*of->model))) {
        return false;
      }
    }
    ReplayOptions options;
    options.check_inputs = look;
    same_work(call_work([&] { return of->instance.replay(*on->stream, options); }),
              model_.replay(on->model, of->model, look));
    return true;
  }
  bool reset(const Op& op) {
    OneStream* const on = stream(op.s);
    OneInstance* const of = find(instances_, op.a);
    if (on == nullptr || of == nullptr || warming_) return false;
    Spans states;
    for (std::size_t at = 0; at < of->model->memory.size(); ++at) {
      if (of->model->graph->regions[at].role != Role::state) continue;
      states.push_back({of->model->memory[at], of->model->offset[at],
                        of->model->offset[at] + of->model->graph->regions[at].size});
    }
    if (foreign(on->model, {}, states)) return false;
    if (model_.capturing(on->model) == nullptr) {
      if (!order(op, {}, states)) return false;
      let_pass(model_.users(states, true));
    }
    same(of->instance.reset(*on->stream), model_.reset(on->model, *of->model));
    return true;
  }

  // The end: everything is asked for once more, and then goes.

  void finish() {
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

  using Bindings = std::vector<BufferBinding>;

  const Program& program_;
  std::string wrong_;
  std::size_t at_ = 0;
  std::size_t done_ = 0;
  std::map<std::string, std::uint64_t> tally_;
  int depth_ = 0;
  bool warming_ = false;

  struct HeardHere {
    StreamId stream;
    ErrorKind kind;
  };
  std::mutex heard_mutex_;
  std::condition_variable heard_changed_;
  std::vector<HeardHere> heard_;
  std::size_t compared_ = 0;

  std::map<int, FailureId> ids_;
  std::map<FailureId, int> numbers_;
  std::map<StreamId, int> model_stream_;
  std::pair<int, FailureId> last_skip_;
  std::vector<Scope*> open_;

  Model model_;
  Turnstile turnstile_;
  std::optional<test::TemporaryFolder> folder_;
  host::Device device_;
  Watchdog watchdog_;
  std::thread opener_;
  std::optional<Make> make_;
  std::optional<Map> map_;
  std::optional<Update> update_;
  std::optional<Join> join_;
  std::optional<Split> split_;
  std::optional<Look> look_;
  std::optional<Say> gate_;
  std::optional<Say> here_;
  std::map<int, Make> extras_;

  std::map<int, OneEvent> events_;
  std::map<int, OneBuffer> buffers_;
  std::map<int, OneStream> streams_;
  std::map<int, OneWindow> windows_;
  std::map<int, OneRecording> recordings_;
  std::map<int, OnePlan> plans_;
  std::map<int, OneInstance> instances_;
};

}  // namespace

Verdict run(const Program& program) {
  Session session(program);
  return session.run();
}

}  // namespace refrain::model
