#include "refrain/capture/window.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "effect_order.hpp"
#include "refrain/base/kernel_name.hpp"
#include "refrain/base/text.hpp"

namespace refrain {
namespace {

std::string times(std::uint64_t count) {
  return count == 1 ? "once more" : std::to_string(count) + " times more";
}

}  // namespace

std::string_view name_of(WindowState state) noexcept {
  switch (state) {
    case WindowState::prepared: return "prepared";
    case WindowState::recording: return "recording";
    case WindowState::doomed: return "doomed";
    case WindowState::sealed: return "sealed";
    case WindowState::abandoned: return "abandoned";
    case WindowState::ended: return "ended";
  }
  return "?";
}

Window::Window(FailureTable& table, StreamId stream, Where opened, OpenWindows* list)
    : table_(table),
      list_(list),
      stream_(stream),
      opened_(opened),
      overlay_(table, stream, opened),
      members_(stream),
      warm_up_(stream) {}

Result<void> Window::begin() {
  if (state_ != WindowState::prepared) {
    return Error(ErrorKind::wrong_state, "The window of stream " + std::to_string(stream_.number) +
                                             " cannot begin to record: it is " +
                                             std::string(name_of(state_)) + ".");
  }
  used_here();
  state_ = WindowState::recording;
  return {};
}

void Window::doom(Doom doom, const OpenScope* around) noexcept {
  if (doom_) {
    ++later_dooms_;  // C6
    return;
  }
  doom_.emplace(std::move(doom));
  around_doom_ = around;
  state_ = WindowState::doomed;
}

void Window::fail(const OpenScope& scope, const Error& error) noexcept {
  // What fails has its failure already, as what it writes shows; a skip's error names its input's.
  const bool own = scope.provisional != nullptr;
  fail(scope, error,
       Doom{own ? error.with_failure(scope.provisional->id) : error, scope.kernel, scope.where});
}

void Window::skipped(const OpenScope& scope, const FoundFailure& found) noexcept {
  Doom how{found.error(), scope.kernel, scope.where};
  how.needed = found.needed();
  how.origin = found.origin();
  fail(scope, found.error(), std::move(how));
}

void Window::fail(const OpenScope& scope, const Error& wording, Doom how) noexcept {
  if (around_doom_ == &scope && doom_->wordings.size() < doom_->wordings.capacity()) {  // NOLINT
    doom_->wordings.push_back(wording);
  }
  const OpenScope* const around = overlay_.current() == &scope ? scope.parent : overlay_.current();
  if (around_doom_ == &scope) around_doom_ = around;
  if (refused_in_ == &scope) {
    refused_in_ = nullptr;
    return;  // C6: it is one with the call that was refused
  }
  doom(std::move(how), around);
}

void Window::lacks(const Error& error) noexcept {
  doom(Doom{error}, overlay_.current());
  refused_in_ = overlay_.current();
}

void Window::device_refused(const Error& error) noexcept {
  const OpenScope* const in = overlay_.current();
  Doom refused{error};
  refused.refused = true;
  if (in != nullptr) {
    refused.kernel = in->kernel;
    refused.where = in->where;
  }
  doom(std::move(refused), in);  // C17
  refused_in_ = in;
}

void Window::runs(const WarmUp::Work& work) {
  if (state_ == WindowState::prepared) {
    warm_up_.ran(work);
  } else if (state_ == WindowState::recording) {
    std::optional<std::string> drift = warm_up_.differs(work);  // C15
    if (!drift) return;
    doom(Doom{.error = Error(ErrorKind::window_doomed), .reason = *std::move(drift)},
         overlay_.current());
  }
}

void Window::first_use(const std::string& what) {
  if (state_ == WindowState::prepared) {
    first_uses_.push_back(what);
  } else if (capturing()) {
    doom(Doom{.error = Error(ErrorKind::needs_warm_up),
              .reason = "it needs warm-up: " + what +
                        ". (Stream::prepare runs a step until it needs none.)"},
         overlay_.current());
    refused_in_ = overlay_.current();
  }
}

bool Window::staged_exactly(const OpenScope& scope, Doom& hole) const noexcept {
  // Walks instead of building sets: this is an exit, which allocates nothing.
  const std::span<const Staged> staged = std::span(nodes_).subspan(scope.recorded_before);
  const auto arguments_of = [&](const Staged& each) {
    return std::span(arguments_).subspan(each.node.arguments.first, each.node.arguments.count);
  };
  // Whatever this body itself staged writes nothing that the scope does not claim; what a scope
  // within it staged, that one has claimed.
  for (const Staged& each : staged) {
    if (each.settled) continue;
    for (const Argument& argument : arguments_of(each)) {
      if (!does_write(argument.direction)) continue;
      std::uint64_t at = argument.range.begin;
      bool moved = true;
      while (at < argument.range.end && moved) {
        moved = false;
        for (const BufferBinding& claimed : scope.writes) {
          if (claimed.buffer == buffers_[argument.region] && claimed.range.begin <= at &&
              at < claimed.range.end) {
            at = claimed.range.end;
            moved = true;
          }
        }
      }
      if (at < argument.range.end) {
        hole.differs = {buffers_[argument.region], argument.range};
        hole.unclaimed = true;
        return false;
      }
    }
  }
  for (const BufferBinding& claimed : scope.writes) {
    std::uint64_t at = claimed.range.begin;
    const auto cover = [&](BufferId buffer, ByteRange range) {
      if (buffer != claimed.buffer || range.begin > at || at >= range.end) return false;
      at = range.end;
      return true;
    };
    bool moved = true;
    while (at < claimed.range.end && moved) {
      moved = false;
      for (const Staged& each : staged) {
        for (const Argument& argument : arguments_of(each)) {
          if (does_write(argument.direction) && cover(buffers_[argument.region], argument.range)) {
            moved = true;
          }
        }
      }
      for (const Reused& reused : reused_) {
        if (reused.scope == &scope && cover(reused.bytes.buffer, reused.bytes.range)) moved = true;
      }
    }
    if (at < claimed.range.end) {
      hole.differs = claimed;
      return false;
    }
  }
  return true;
}

void Window::record(const OpenScope& scope) noexcept {
  if (state_ == WindowState::recording) {
    Doom hole{Error(ErrorKind::recorded_nothing), scope.kernel, scope.where};
    if (!staged_exactly(scope, hole)) {  // C2, C16
      hole.first_node = scope.recorded_before;
      hole.end_node = nodes_.size();
      doom(std::move(hole), scope.parent);
    }
  }
  if (around_doom_ == &scope) around_doom_ = scope.parent;
  if (refused_in_ == &scope) refused_in_ = nullptr;
  for (std::size_t at = scope.recorded_before; at < nodes_.size(); ++at) nodes_[at].settled = true;
  // As with what is staged: what an inner scope says counts for those around it, not for others.
  for (Reused& reused : reused_) {
    if (reused.scope == &scope) reused.scope = scope.parent;
  }
  if (scope.parent == nullptr) reused_.clear();
}

void Window::pin(BufferId buffer, PinnedBuffer pinned) {
  const auto index = static_cast<std::uint32_t>(buffers_.size());
  buffers_.push_back(buffer);
  pinned_.push_back(std::move(pinned));
  regions_.emplace(buffer, index);
}

void Window::add(Call call, std::span<const StagedArgument> arguments, Where where,
                 Members::Index by) {
  if (state_ != WindowState::recording) return;  // doomed: it will not seal, so keep nothing
  Staged staged;
  staged.stamp = members_.staged(by, static_cast<std::uint32_t>(nodes_.size()));
  staged.node.call = call;
  staged.node.where = where;
  staged.node.arguments = {static_cast<std::uint32_t>(arguments_.size()),
                           static_cast<std::uint32_t>(arguments.size())};
  for (const StagedArgument& argument : arguments) {
    arguments_.push_back({argument.offset, argument.direction, regions_.at(argument.binding.buffer),
                          argument.binding.range});
  }
  nodes_.push_back(staged);
}

void Window::stage_kernel(const std::shared_ptr<const KernelSignature>& kernel, const Grid& grid,
                          std::span<const std::byte> block,
                          std::span<const StagedArgument> arguments, Members::Index by) {
  auto found = std::find(kernels_.begin(), kernels_.end(), kernel);
  if (found == kernels_.end()) found = kernels_.insert(kernels_.end(), kernel);
  KernelCall call;
  call.kernel = static_cast<std::uint32_t>(found - kernels_.begin());
  call.grid = grid;
  call.block = {static_cast<std::uint32_t>(parameter_bytes_.size()),
                static_cast<std::uint32_t>(block.size())};
  if (state_ == WindowState::recording) {
    parameter_bytes_.insert(parameter_bytes_.end(), block.begin(), block.end());
  }
  add(call, arguments, grid.where, by);
}

void Window::stage_copy(const BufferBinding& source, const BufferBinding& destination, Where where,
                        Members::Index by) {
  const std::array arguments{StagedArgument{0, Direction::in, source},
                             StagedArgument{0, Direction::out, destination}};
  add(CopyCall{}, arguments, where, by);
}

void Window::stage_fill(const BufferBinding& destination, std::uint32_t pattern,
                        std::uint32_t width, Where where, Members::Index by) {
  const std::array arguments{StagedArgument{0, Direction::out, destination}};
  add(FillCall{pattern, width}, arguments, where, by);
}

template <class FunctionCall, class Function>
void Window::stage_function(std::vector<std::shared_ptr<const Function>>& functions,
                            const std::shared_ptr<const Function>& function,
                            std::span<const StagedArgument> arguments, Where where,
                            Members::Index by) {
  if (state_ != WindowState::recording) return;  // as `add`: keep nothing
  const FunctionCall call{static_cast<std::uint32_t>(functions.size())};
  functions.push_back(function);
  add(call, arguments, where, by);
}

void Window::stage_host(const std::shared_ptr<const HostFunction>& function,
                        std::span<const StagedArgument> arguments, Where where, Members::Index by) {
  stage_function<HostCall>(host_functions_, function, arguments, where, by);
}

void Window::stage_native(const std::shared_ptr<const NativeFunction>& function,
                          std::span<const StagedArgument> arguments, Where where,
                          Members::Index by) {
  stage_function<NativeFunctionCall>(native_functions_, function, arguments, where, by);
}

void Window::reuse(const BufferBinding& bytes) {
  if (overlay_.inside()) reused_.push_back({bytes, overlay_.current()});
}

std::string Window::called() const {
  return "The window of stream " + std::to_string(stream_.number) + text(opened_);
}

std::string Window::called(const Staged& staged) const {
  std::string name = "fill";
  if (const auto* kernel = std::get_if<KernelCall>(&staged.node.call)) {
    name = kernels_[kernel->kernel]->name;
  } else if (std::holds_alternative<CopyCall>(staged.node.call)) {
    name = "copy";
  } else if (const auto* host = std::get_if<HostCall>(&staged.node.call)) {
    name = host_functions_[host->function]->signature.name;
  } else if (const auto* native = std::get_if<NativeFunctionCall>(&staged.node.call)) {
    name = native_functions_[native->function]->signature.name;
  }
  return quote(name) + " on stream " +
         std::to_string(members_.at(staged.stamp.member).stream.number) + text(staged.node.where);
}

std::string Window::recorded_instead(const Doom& doom) const {
  constexpr std::size_t kTold = 2;
  const std::span<const Staged> nodes =
      std::span(nodes_).subspan(doom.first_node, doom.end_node - doom.first_node);
  std::string all;
  for (const Staged& each : nodes.first(std::min(kTold, nodes.size()))) {
    std::string writes;
    for (const Argument& argument :
         std::span(arguments_).subspan(each.node.arguments.first, each.node.arguments.count)) {
      if (!does_write(argument.direction)) continue;
      writes += (writes.empty() ? ", which writes bytes " : " and ") + text(argument.range) +
                " of " + quote(pinned_[argument.region].region.name);
    }
    all += (all.empty() ? "" : ", and ") + called(each) +
           (writes.empty() ? ", which writes nothing" : writes);
  }
  if (nodes.size() > kTold) all += ", and " + std::to_string(nodes.size() - kTold) + " more";
  return all;
}

std::string Window::skipped_because() const {
  const FailureOrigin& from = doom_->origin;
  const std::string work = quote(kernel_name(from.kernel)) + " on stream " +
                           std::to_string(from.stream.number) + text(from.where);
  const std::string failure = "carry failure " + std::to_string(doom_->error.failure().number) +
                              (from.kernel ? ", of " + work : "");
  return quote(kernel_name(doom_->kernel)) + text(doom_->where) + " was skipped: it needed bytes " +
         text(doom_->needed.range) + " of " + quote(table_.name_of(doom_->needed.buffer)) +
         ", which " +
         (doom_->error.kind() == ErrorKind::torn_down ? work + " claims until it ends"  // O6
                                                      : failure);
}

Error Window::doom_text() const {
  std::string all = called() + " refuses to seal";
  std::string context;
  // What doomed it, in its own words and without its number, which `failure` tells.
  const auto because_of = [&](const std::string& what) {
    const Error error = doom_->error.with_failure({});
    const std::string message = error.message();
    all += ", because " + what + ": " + message;
    context = error.text().substr(message.size());
  };
  const auto because = [&](const std::string& what) {
    const FailureId failure = doom_->error.failure();
    because_of(what + (failure ? " (failure " + std::to_string(failure.number) + ")" : ""));
  };
  if (doom_->differs.buffer) {
    const std::string bytes = "bytes " + text(doom_->differs.range) + " of " +
                              quote(table_.name_of(doom_->differs.buffer));
    const std::string instead = recorded_instead(*doom_);
    all +=
        ", because " + quote(kernel_name(doom_->kernel)) + text(doom_->where) +
        (doom_->unclaimed ? " writes " + bytes + " and does not claim them: it recorded " + instead
         : instead.empty()
             ? " claimed " + bytes + " and recorded nothing"
             : " claimed " + bytes + " and does not write all of them: it recorded " + instead) +
        ".";
  } else if (doom_->gone) {
    const Members::Member& member = members_.at(*doom_->gone);
    all += ", because stream " + std::to_string(member.stream.number) + ", which joined it" +
           text(member.forked) +
           ", was destroyed with work that nobody waits for: " + called(nodes_[member.last_node]) +
           ".";
  } else if (doom_->needed.buffer) {
    if (doom_->error.kind() == ErrorKind::torn_down) {
      all += ", because " + skipped_because() + ".";
    } else {
      because_of(skipped_because());
    }
  } else if (!doom_->reason.empty()) {
    all += ", because " + doom_->reason;
  } else if (doom_->refused) {
    because("the device refused a call" +
            (doom_->kernel ? " in " + quote(kernel_name(doom_->kernel)) + text(doom_->where) : ""));
  } else {
    because(doom_->kernel
                ? quote(kernel_name(doom_->kernel)) + text(doom_->where) + " did not end cleanly"
                : "work for it could not be issued");
  }
  const auto full_stop = [&all] {  // an exception's own words may lack it
    if (std::string_view(".!?)").find(all.back()) == std::string_view::npos) all += '.';
  };
  full_stop();
  std::string told = doom_->error.text();
  for (const Error& wording : doom_->wordings) {
    if (wording.text() == told) continue;  // handed on as it was
    told = wording.text();
    all += " The work around that told it as: " + told;
    full_stop();
  }
  if (later_dooms_ != 0) {
    all += " Work in it failed or was skipped " + times(later_dooms_) + ".";
  }
  return Error(ErrorKind::window_doomed, all + context).with_failure(doom_->error.failure());
}

void Window::gone(Members::Index member) noexcept {
  if (over()) return;
  const Members::Member& going = members_.at(member);
  if (member != Members::kOrigin) {
    if (!going.left && going.nodes != 0) {
      doom(Doom{.error = Error(ErrorKind::window_doomed), .gone = member}, nullptr);
    }
    return;
  }
  // C10: nothing seals, and its handle, should somebody still hold it, is told whose it was.
  abandoned_ = at_best([&] {
    std::string all = called() + " was abandoned: its stream was destroyed while it was " +
                      std::string(name_of(state_)) + ".";
    if (doom_) all += " " + doom_text().message();
    return Error(ErrorKind::window_doomed, std::move(all))
        .with_failure(doom_ ? doom_->error.failure() : FailureId{});
  });
  if (capturing()) {
    abandonment_ = refuse(WindowState::abandoned, *abandoned_, opened_, false);
  } else {
    end(WindowState::abandoned);
  }
}

Error Window::still_out(Members::Index member) const {
  const Members::Member& out = members_.at(member);
  return Error(ErrorKind::window_doomed,
               called() + " refuses to seal, because stream " + std::to_string(out.stream.number) +
                   ", which joined it" + text(out.forked) +
                   ", has work that the window does not wait for: its last is " +
                   called(nodes_[out.last_node]) +
                   ". (Record an event on that stream after it, and wait on it in the window.)");
}

std::optional<Error> Window::race(const SealedGraph& graph) const {
  if (!members_.forked()) return std::nullopt;
  // The graph's order comes from conflicting bytes, and from resources that nodes share, taken in
  // the order of recording. Each of its edges must be one that the streams and events keep as well;
  // all other conflicts follow.
  for (std::size_t later = 0; later < nodes_.size(); ++later) {
    for (const std::uint32_t earlier : graph.dependencies(graph.nodes()[later])) {
      if (members_.ordered(nodes_[earlier].stamp, nodes_[later].stamp)) continue;
      const auto refusal = [&](const std::string& what) {
        return Error(ErrorKind::window_doomed,
                     called() + " refuses to seal, because two of its nodes use " + what +
                         " and no event orders them: " + called(nodes_[earlier]) + " and " +
                         called(nodes_[later]) +
                         ". (Record an event after the one, and wait on it before the other.)");
      };
      for (const Argument& one : graph.arguments(graph.nodes()[earlier])) {
        for (const Argument& other : graph.arguments(graph.nodes()[later])) {
          const bool conflict = one.region == other.region && one.range.overlaps(other.range) &&
                                (does_write(one.direction) || does_write(other.direction));
          if (!conflict) continue;
          return refusal("bytes " + text(intersection(one.range, other.range)) + " of " +
                         quote(graph.regions()[one.region].name));
        }
      }
      // Not for their bytes, and not for what the streams order: they use one resource.
      return refusal(quote(graph.effects(graph.nodes()[later]).resource()));
    }
  }
  return std::nullopt;
}

FailureId Window::refuse(WindowState state, const Error& error, Where where, bool told) noexcept {
  close(state);
  const FailureId claimed = overlay_.refuse(error, where, told);  // C11
  let_go();
  return claimed;
}

void Window::end(WindowState state) noexcept {
  close(state);
  let_go();
}

// Before any claim goes: with the last byte of a failure the program hears of it, and destroys the
// exception that it held. Neither may meet a window that is half ended.
void Window::close(WindowState state) noexcept {
  state_ = state;
  if (list_ != nullptr) list_->closed(*this);
}

void Window::let_go() noexcept {
  // Out of the window first, because what the functions captured is the program's and may do
  // anything as it goes, also with this window's streams.
  const auto pinned = std::exchange(pinned_, {});
  const auto kernels = std::exchange(kernels_, {});
  const auto host_functions = std::exchange(host_functions_, {});
  const auto native_functions = std::exchange(native_functions_, {});
  overlay_.forget();
  if (list_ != nullptr) list_->settled();
}

void Window::drop() noexcept {
  if (!capturing()) {
    end(WindowState::ended);
    return;
  }
  const Error error = at_best([&] {
    if (doom_) return doom_text();
    return Error(ErrorKind::window_doomed,
                 called() + " was dropped without being sealed or aborted.");
  });
  refuse(WindowState::ended, error, opened_, false);
}

void Window::end_as_left() noexcept {
  if (leaving_ == Leave::abort) {
    abort();
  } else {
    drop();
  }
}

Result<SealedWindow> Window::seal(const SealOptions& options, Where where,
                                  const std::function<void(SealedWindow&)>& keep) {
  if (state_ == WindowState::prepared) {
    Error error(ErrorKind::wrong_state, called() + " was prepared and never began to record.");
    end(WindowState::ended);  // C1: ending one that is only prepared unwinds it
    return error;
  }
  if (abandoned_) {
    table_.told(abandonment_);
    return *abandoned_;
  }
  if (!capturing()) return Error(ErrorKind::wrong_state, called() + " has ended already.");
  if (overlay_.inside()) {
    return Error(ErrorKind::wrong_state,
                 "A window cannot be sealed by work that is being recorded in it.");
  }
  try {
    if (!doom_) {
      if (std::optional<std::string> early = warm_up_.ended_early()) {  // C15
        doom(Doom{.error = Error(ErrorKind::window_doomed), .reason = *std::move(early)}, nullptr);
      }
    }
    Result<SealedWindow> sealed = doom_ ? Result<SealedWindow>(doom_text()) : build(options, where);
    if (sealed.ok() && keep) keep(*sealed);
    if (sealed.ok()) {
      end(WindowState::sealed);
    } else {
      refuse(WindowState::ended, sealed.error(), where, true);
    }
    return sealed;
  } catch (...) {
    // There is no graph, so the bytes must not read as they did before (C11).
    if (!over()) {
      refuse(WindowState::ended, Error::thrown(std::current_exception()), where, true);
    }
    throw;
  }
}

Result<SealedWindow> Window::build(const SealOptions& options, Where where) {
  if (nodes_.empty() && !options.allow_empty) {  // C17
    return Error(ErrorKind::recorded_nothing,
                 called() +
                     " refuses to seal, because nothing was recorded in it. "
                     "(SealOptions::allow_empty accepts that.)");
  }
  if (const auto out = members_.out()) return still_out(*out);  // C21
  GraphParts parts;
  parts.name = options.name;
  parts.sealed = where;
  parts.kernels.reserve(kernels_.size());
  for (const auto& kernel : kernels_) parts.kernels.push_back(*kernel);
  for (const PinnedBuffer& each : pinned_) parts.regions.push_back(each.region);
  for (const RoleAt& said : options.roles) {
    const auto found = regions_.find(said.buffer);
    if (found == regions_.end()) {
      return Error(ErrorKind::invalid_argument, called() + " was told a role for " +
                                                    quote(table_.name_of(said.buffer)) +
                                                    ", which nothing in it touches.");
    }
    Region& region = parts.regions[found->second];
    region.role = said.role;
    if (!said.name.empty()) region.name = said.name;
    if (said.role == Role::state && std::holds_alternative<NoStart>(region.start)) {
      region.start = ZeroStart{};
    }
    // A start is a state's or a constant's; an input with one would never count as unwritten.
    if (said.role != Role::state && said.role != Role::constant) region.start = NoStart{};
  }
  for (const Staged& each : nodes_) parts.nodes.push_back(each.node);
  parts.arguments = arguments_;
  parts.parameter_bytes = parameter_bytes_;
  parts.host_functions = host_functions_;
  parts.native_functions = native_functions_;
  EffectOrder order(members_);
  for (std::uint32_t at = 0; at < parts.nodes.size(); ++at) {
    const Effects& effects = effects_of(parts, parts.nodes[at]);
    if (effects.kind() == Effects::Kind::none) continue;
    order.add(at, nodes_[at].stamp, effects, parts.stream_order);
  }
  Result<SealedGraph> graph = SealedGraph::make(std::move(parts));
  if (!graph.ok()) return graph.error();
  if (std::optional<Error> racing = race(*graph)) return *std::move(racing);  // C13
  SealedWindow sealed{*std::move(graph), buffers_, {}};
  for (const PinnedBuffer& each : pinned_) sealed.pins.push_back(each.pin);
  return sealed;
}

}  // namespace refrain
