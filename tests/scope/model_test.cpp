// The table and the overlay against the plainest model of the rules: for every byte the number of
// the failure that it carries, and nothing clever. Random work runs on both, and after each step
// they must tell the same story. The model claims at once what a scope writes; the table only when
// somebody looks, so this also shows that nobody can tell the difference.
//
// Two streams run on one thread, scopes open in scopes and end in any order, buffers come and go
// while work runs, one stream records windows that are aborted or refused, and failures are found
// late. Work keeps off the bytes of the other stream's scopes that it is not inside of: they would
// be unordered (E11), and either story is right.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "scope/scope_server.hpp"

namespace refrain {
namespace {

using namespace test;

constexpr std::uint64_t kBytes = 24;  // of every buffer
constexpr std::size_t kBuffers = 5;

struct ModelFailure {
  ErrorKind kind = ErrorKind::torn_down;
  std::string text;
  int cause = 0;
  bool open = false;  // its scope has not ended
  FailureId id{};     // the table's number for it, once that has been seen
};

struct ModelByte {
  int failure = 0;
  int mark = 0;
  bool passed_on = false;   // by a skip, so not its scope's to release
  bool present = false;     // in a window: written there
  bool read_first = false;  // in a window: read before it was written there
  [[nodiscard]] int met() const { return mark != 0 ? mark : failure; }
};

struct ModelBuffer {
  BufferId id;
  bool alive = true;
  std::array<ModelByte, kBytes> bytes{};
  std::array<ModelByte, kBytes> window{};
};

struct ModelScope {
  std::size_t stream = 0;
  bool in_window = false;
  Bindings reads;
  Bindings writes;
  int provisional = 0;
  int parent = 0;    // the provisional of the scope that it is inside of
  int poisoned = 0;  // a failure that reached what it reads after that was looked at
  const OpenScope* shown = nullptr;
};

struct Settings {
  int fails = 0;      // in 100
  int throws = 0;     // in 100
  int skips_on = 50;  // in 100: work that reads at all
  int unwritten = 0;  // in 100 new buffers
  int windows = 0;    // in 100 steps at the top
};

struct Thrown {
  std::string text;
};

class Trial {
 public:
  Trial(std::uint64_t seed, const Settings& settings) : random_(seed), settings_(settings) {
    failures_.emplace_back();  // number 0 is "none"
    servers_.push_back(std::make_unique<ScopeServer>(table_, StreamId(1)));
    servers_.push_back(std::make_unique<ScopeServer>(table_, StreamId(2)));
    for (std::size_t i = 0; i < kBuffers; ++i) add();
  }

  /// Runs `steps`; answers what went wrong first, or nothing.
  std::string run(int steps) {
    for (int i = 0; i < steps && wrong_.empty(); ++i) {
      step(0);
      if (scopes_.empty() && !overlay_) same_count();
    }
    while (!held_.empty() && wrong_.empty()) end_held(held_.size() - 1);
    held_.clear();
    if (overlay_) end_window();
    same_everywhere();
    for (ModelBuffer& buffer : buffers_) {
      if (buffer.alive) remove(buffer);
    }
    if (wrong_.empty() && table_.live_failures() != 0) wrong_ = "failures outlive their bytes";
    for (const auto& server : servers_) {
      if (wrong_.empty() && server->pool().idle() != server->pool().total()) {
        wrong_ = "a write set is out";
      }
    }
    return wrong_;
  }
  [[nodiscard]] int done() const { return done_; }
  /// How often nothing was wrong anywhere.
  [[nodiscard]] int empty() const { return empty_; }

 private:
  // Chance.

  std::uint64_t below(std::uint64_t limit) { return random_() % limit; }
  bool in_100(int chance) { return static_cast<int>(below(100)) < chance; }
  ByteRange range() {
    if (below(6) == 0) return {0, kBytes};
    const std::uint64_t begin = below(kBytes);
    return {begin, std::min(kBytes, begin + below(10))};  // now and then empty
  }
  BufferBinding binding() { return {buffers_[below(buffers_.size())].id, range()}; }

  // The model.

  int mint(ErrorKind kind, std::string text) {
    failures_.push_back({kind, std::move(text), 0, false, {}});
    return static_cast<int>(failures_.size()) - 1;
  }
  ModelFailure& failure(int number) { return failures_[static_cast<std::size_t>(number)]; }
  ModelBuffer* find(BufferId id) {
    for (ModelBuffer& buffer : buffers_) {
      if (buffer.id == id) return &buffer;
    }
    return nullptr;
  }
  /// Calls `act(byte, in the window)` for each byte that `bindings` name, in order.
  template <class Act>
  void each(const Bindings& bindings, bool in_window, Act act) {
    for (const BufferBinding& binding : bindings) {
      ModelBuffer* const buffer = find(binding.buffer);
      // A window keeps what it knows of a buffer that is gone; nobody can ask for it.
      if (buffer == nullptr || (!buffer->alive && !in_window)) continue;
      for (std::uint64_t at = binding.range.begin; at < binding.range.end; ++at) {
        act(in_window ? buffer->window[at] : buffer->bytes[at], *buffer, at);
      }
    }
  }
  static bool names(const Bindings& bindings, BufferId buffer, std::uint64_t at) {
    return std::any_of(bindings.begin(), bindings.end(), [&](const BufferBinding& each) {
      return each.buffer == buffer && each.range.begin <= at && at < each.range.end;
    });
  }
  static bool touch(const Bindings& bindings, const BufferBinding& binding) {
    return std::any_of(bindings.begin(), bindings.end(), [&](const BufferBinding& each) {
      return each.buffer == binding.buffer && each.range.overlaps(binding.range);
    });
  }
  const ModelScope* open_scope(int provisional) const {
    for (const ModelScope& scope : scopes_) {
      if (scope.provisional == provisional) return &scope;
    }
    return nullptr;
  }
  /// Whether the scope `outer` is `inner`, or is around it; 0 is none.
  bool is_around(int outer, int inner) const {
    for (; inner != 0; inner = open_scope(inner)->parent) {
      if (inner == outer) return true;
    }
    return false;
  }
  /// What work of `stream` that opens now is inside of: the newest scope of its stream, or the one
  /// whose body runs if that is inside of the other.
  int around(std::size_t stream, bool in_window) const {
    int shown = 0;
    int running = 0;
    for (const ModelScope& scope : scopes_) {
      if (scope.stream == stream && scope.in_window == in_window) shown = scope.provisional;
    }
    for (const int each : running_) {
      if (const ModelScope* const scope = open_scope(each); scope && !scope->in_window) {
        running = each;
      }
    }
    if (in_window || running == 0) return shown;
    return shown == 0 || is_around(shown, running) ? running : shown;
  }
  /// Whether work that reads, or `writes`, `binding` conflicts with an open scope of another stream
  /// or of the other side of a window that it is not inside of.
  bool unordered(std::size_t stream, bool in_window, const BufferBinding& binding, bool writes) {
    const int inside_of = around(stream, in_window);
    return std::any_of(scopes_.begin(), scopes_.end(), [&](const ModelScope& scope) {
      if (scope.stream == stream && scope.in_window == in_window) return false;
      if (is_around(scope.provisional, inside_of)) return false;
      return touch(scope.writes, binding) || (writes && touch(scope.reads, binding));
    });
  }
  Bindings some(std::size_t stream, bool in_window, std::uint64_t most, bool writes) {
    Bindings all;
    for (std::uint64_t i = below(most + 1); i != 0; --i) {
      const BufferBinding one = binding();
      if (!unordered(stream, in_window, one, writes)) all.push_back(one);
    }
    return all;
  }
  int first_failed(const Bindings& reads, bool in_window) {
    int met = 0;
    each(reads, in_window, [&](ModelByte& byte, const ModelBuffer& buffer, std::uint64_t at) {
      int here = byte.met();
      if (in_window) {
        here = byte.failure;
        if (!byte.present) {
          byte.read_first = true;
          here = buffer.alive ? buffer.bytes[at].failure : 0;
          if (failure(here).kind == ErrorKind::unwritten) here = 0;
        }
      }
      if (met == 0) met = here;
    });
    return met;
  }
  void set_cause(int number, int cause) {
    for (int at = cause; at != 0; at = failure(at).cause) {
      if (at == number) return;
    }
    failure(number).cause = cause;
  }
  /// Whether something carries `number`, or stems from it.
  bool lives(int number) {
    const auto stems = [&](int carried) {
      for (int at = carried; at != 0; at = failure(at).cause) {
        if (at == number) return true;
      }
      return false;
    };
    for (const ModelBuffer& buffer : buffers_) {
      for (std::uint64_t at = 0; at < kBytes; ++at) {
        const ModelByte& byte = buffer.bytes[at];
        if (stems(byte.failure) || stems(byte.mark) || stems(buffer.window[at].failure))
          return true;
      }
    }
    return false;
  }
  void settle(int provisional, bool clean) {
    const auto found = std::find_if(scopes_.begin(), scopes_.end(), [&](const ModelScope& each) {
      return each.provisional == provisional;
    });
    const ModelScope scope = *found;
    scopes_.erase(found);
    for (ModelScope& each : scopes_) {
      if (each.parent == provisional) each.parent = scope.parent;
    }
    failure(provisional).open = false;
    if (!clean) return;
    failure(provisional).kind = ErrorKind::skipped;  // for what a skip has passed on
    failure(provisional).text = scope.poisoned != 0 ? "The work did not run, because "
                                                    : "Work that needed what this was still";
    if (scope.poisoned != 0) {
      if (lives(scope.poisoned)) set_cause(provisional, scope.poisoned);
      return;
    }
    each(scope.writes, scope.in_window,
         [&](ModelByte& byte, const ModelBuffer& buffer, std::uint64_t at) {
           if (byte.failure != provisional || byte.passed_on) return;
           byte.failure = byte.mark = 0;
           // The nearest of the scopes around it that writes this byte.
           for (int outer = scope.parent; outer != 0; outer = open_scope(outer)->parent) {
             const ModelScope& around = *open_scope(outer);
             if (!names(around.writes, buffer.id, at)) continue;
             const bool bad = around.poisoned != 0 && lives(around.poisoned);
             byte.failure = bad ? around.poisoned : outer;
             break;
           }
         });
  }

  // Work on both.

  struct Opened {
    ModelScope model;
    bool skipped = false;
    std::unique_ptr<Scope> scope{};  // last: it looks at what the model keeps for it
  };

  Opened open(std::size_t stream) {
    const bool in_window = overlay_ && stream == 0;
    const bool reads_something = in_100(settings_.skips_on);
    const Bindings reads = reads_something ? some(stream, in_window, 3, false) : Bindings{};
    Opened opened{{stream, in_window, reads, some(stream, in_window, 4, true)}};
    // Now and then everything is mended, so that the table is empty again.
    if (!reads_something && below(3) == 0) {
      opened.model.writes.clear();
      for (const ModelBuffer& buffer : buffers_) {
        const BufferBinding all{buffer.id, {0, kBytes}};
        if (!unordered(stream, in_window, all, true)) opened.model.writes.push_back(all);
      }
    }
    ScopeServer& server = *servers_[stream];
    const KernelId kernel = intern_kernel_name("model");
    WriteSet writes = server.writes(opened.model.writes);
    // A replay looks at its inputs itself, and may find them good just before they turn bad.
    const bool replay = reads_something && !in_window && below(8) == 0;
    const int met = replay ? 0 : first_failed(reads, in_window);
    if (replay) opened.model.poisoned = reached(reads);
    opened.scope = kept([&] {
      return reads_something && !replay ? Scope::launching(server, kernel, opened.model.reads,
                                                           std::move(writes), at_line(1))
                                        : Scope::over(server, kernel, std::move(writes), at_line(1),
                                                      ReplayTerms{opened.model.reads});
    });
    opened.model.shown = &opened.scope->shown();
    opened.skipped = met != 0;
    if (opened.scope->skipped() != opened.skipped) wrong("entered or skipped");
    if (met == 0) {
      opened.model.provisional = mint(ErrorKind::torn_down, "The work that was to write this");
      failure(opened.model.provisional).open = true;
      opened.model.parent = around(stream, in_window);
      scopes_.push_back(opened.model);
    }
    int carried = met != 0 ? met : opened.model.provisional;
    if (opened.model.poisoned != 0) carried = opened.model.poisoned;
    each(opened.model.writes, in_window, [&](ModelByte& byte, const ModelBuffer&, std::uint64_t) {
      if (!in_window && byte.mark != 0 && failure(carried).kind == ErrorKind::not_replayed) {
        byte.mark = carried;  // C18: a mark is no failure of what lies under one
        return;
      }
      byte.failure = carried;
      byte.mark = 0;
      byte.passed_on = met != 0 && failure(met).open;
      byte.present = true;
    });
    return opened;
  }

  /// What a scope that opens now over `reads` would have missed.
  int reached(const Bindings& reads) {
    int bad = 0;
    each(reads, false, [&](const ModelByte& byte, const ModelBuffer&, std::uint64_t) {
      const ModelFailure& carried = failure(byte.failure);
      if (bad != 0 || byte.failure == 0 || carried.open) return;
      if (carried.kind != ErrorKind::unwritten) bad = byte.failure;
    });
    return bad;
  }

  void end(Opened& opened, int depth) {
    const auto ran = [&](ScopeServer&) -> Result<void> {
      if (opened.skipped) wrong("a skipped body ran");
      running_.push_back(opened.model.provisional);
      if (depth < 4) {
        for (std::uint64_t i = below(4); i != 0 && wrong_.empty(); --i) step(depth + 1);
      }
      running_.pop_back();
      ModelFailure& own = failure(opened.model.provisional);
      const std::string text = "failure of the model, number " + std::to_string(++texts_);
      if (in_100(settings_.throws)) {
        own.kind = ErrorKind::exception;
        own.text = "An exception was thrown that is no std::exception.";
        settle(opened.model.provisional, false);
        throw Thrown{text};
      }
      if (in_100(settings_.fails)) {
        Error error = broken(text);
        if (below(2) == 0) {
          const BufferBinding met = binding();
          same(met);
          if (const std::optional<Error> other = table_.check(met)) {
            error = error.with_failure(other->failure());  // it stems from what it met
            set_cause(opened.model.provisional, number_of(other->failure()));
          }
        }
        own.kind = ErrorKind::kernel_failed;
        own.text = text;
        settle(opened.model.provisional, false);
        return error;
      }
      settle(opened.model.provisional, true);
      return {};
    };
    if (!opened.skipped && below(20) == 0) {  // dropped
      settle(opened.model.provisional, false);
      opened.scope.reset();
      return;
    }
    try {
      const auto outcome = std::move(*opened.scope).execute(ran);
      if (outcome.skipped() != opened.skipped) wrong("the outcome");
    } catch (const Thrown&) {
    }
    opened.scope.reset();
  }

  void end_held(std::size_t which) {
    Opened opened = std::move(held_[which]);
    held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(which));
    end(opened, 3);
  }

  void step(int depth) {
    ++done_;
    switch (below(13)) {
      default: {
        Opened opened = open(below(servers_.size()));
        // Most scopes end at once, as work does; some are kept, and end when it comes to them.
        if (below(12) == 0 && held_.size() < 3) {
          held_.push_back(std::move(opened));
        } else {
          end(opened, depth);
        }
        break;
      }
      case 0: same(binding()); break;
      case 1: same_report(); break;
      case 2: {
        ModelBuffer& buffer = buffers_[below(buffers_.size())];
        if (buffer.alive && below(2) == 0) {
          remove(buffer);
        } else if (!buffer.alive) {
          add();
        }
        break;
      }
      case 3: {
        if (!held_.empty()) end_held(below(held_.size()));
        break;
      }
      case 4: {
        if (!in_100(settings_.windows)) break;
        if (overlay_ && scopes_.empty()) {
          end_window();
        } else if (!overlay_ && none_open(0)) {
          overlay_ = std::make_unique<Overlay>(table_, StreamId(1));
          servers_[0]->open_window(overlay_.get());
        }
        break;
      }
      case 5: {
        if (below(4) == 0 && scopes_.empty()) mark();
        break;
      }
      case 6: {
        if (in_100(3 * settings_.fails)) fail_late();
        break;
      }
    }
    if (below(8) == 0) same(binding());
  }

  bool none_open(std::size_t stream) {
    return std::none_of(scopes_.begin(), scopes_.end(),
                        [&](const ModelScope& scope) { return scope.stream == stream; });
  }

  void add() {
    const bool unwritten = in_100(settings_.unwritten);
    ModelBuffer made{table_.add("b", kBytes, nullptr, unwritten)};
    if (unwritten) {
      const int number = mint(ErrorKind::unwritten, "Nobody has written these bytes.");
      for (ModelByte& byte : made.bytes) byte.failure = number;
    }
    // A few handles that are stale stay in use.
    if (buffers_.size() >= kBuffers + 3) {
      const auto gone = std::find_if(buffers_.begin(), buffers_.end(),
                                     [](const ModelBuffer& buffer) { return !buffer.alive; });
      if (gone != buffers_.end() && !overlay_) buffers_.erase(gone);
    }
    buffers_.push_back(made);
  }

  void remove(ModelBuffer& buffer) {
    table_.remove(buffer.id);
    buffer.alive = false;
    buffer.bytes = {};
  }

  void mark() {
    const Bindings bytes = some(0, false, 3, true);
    const int number = mint(ErrorKind::not_replayed, "mark");
    const FailureId id = table_.mark(bytes, Error(ErrorKind::not_replayed, "mark"), {}, {});
    same_number(number, id);
    each(bytes, false,
         [&](ModelByte& byte, const ModelBuffer&, std::uint64_t) { byte.mark = number; });
  }

  void fail_late() {
    using Byte = std::pair<BufferId, std::uint64_t>;
    std::set<Byte> bad;
    std::set<int> overruled;
    const auto some_bytes = [&] { return Bindings{binding(), binding()}; };
    const auto every = [](const Bindings& bindings, const auto& act) {
      for (const BufferBinding& each : bindings) {
        for (std::uint64_t at = each.range.begin; at < each.range.end; ++at) act({each.buffer, at});
      }
    };
    const auto passes_on = [&](const Bindings& reads, const Bindings& writes) {
      bool met = false;
      every(reads, [&](const Byte& byte) { met = met || bad.contains(byte); });
      every(writes,
            [&](const Byte& byte) { met ? void(bad.insert(byte)) : void(bad.erase(byte)); });
      return met;
    };
    const int number = mint(ErrorKind::kernel_failed, "late " + std::to_string(++texts_));
    const Bindings writes = some_bytes();
    every(writes, [&](const Byte& byte) { bad.insert(byte); });
    const auto walk = [&](LateClaim& late, std::span<const FailureTable::Open> open) {
      for (std::uint64_t later = below(3); later != 0; --later) {
        const Bindings read = below(2) == 0 ? some_bytes() : Bindings{};
        const Bindings written = some_bytes();
        if (late.passes_on({}, read, written) != passes_on(read, written)) wrong("passes on");
      }
      std::size_t count = 0;
      for (const ModelScope& scope : scopes_) count += scope.in_window ? 0 : 1;
      if (open.size() != count) return wrong("how many scopes are open");
      for (const FailureTable::Open& each : open) {
        const auto scope = std::find_if(scopes_.begin(), scopes_.end(), [&](const ModelScope& one) {
          return one.shown == each.scope;
        });
        if (scope == scopes_.end()) return wrong("which scopes are open");
        if (below(4) == 0) {  // the work that failed was issued in it
          late.overrules(*each.scope);
          overruled.insert(scope->provisional);
          continue;
        }
        const bool met = late.passes_on({}, each.scope->reads, each.scope->writes);
        if (met != passes_on(scope->reads, scope->writes)) return wrong("passes on to a scope");
        if (!met) continue;
        each.scope->poisoned.store(late.failure().number);
        scope->poisoned = number;
        late.overrules(*each.scope);
        overruled.insert(scope->provisional);
      }
    };
    const FailureId id = table_.claim_late(broken(failure(number).text), {}, {}, {}, writes, walk);
    same_number(number, id);
    for (const auto& [buffer, at] : bad) {
      ModelBuffer* const found = find(buffer);
      if (found == nullptr || !found->alive) continue;
      ModelByte& byte = found->bytes[at];
      const bool free = byte.failure == 0 || failure(byte.failure).kind == ErrorKind::unwritten ||
                        overruled.contains(byte.failure);
      if (!free) continue;
      byte.failure = number;
      byte.passed_on = false;
    }
  }

  void end_window() {
    if (below(2) == 0) {
      const int number = mint(ErrorKind::window_doomed, "refused");
      overlay_->refuse(Error(ErrorKind::window_doomed, "refused"), {});
      for (ModelBuffer& buffer : buffers_) {
        for (std::uint64_t at = 0; buffer.alive && at < kBytes; ++at) {
          const ModelByte& inside = buffer.window[at];
          if (!inside.present || inside.read_first) continue;
          buffer.bytes[at] = {inside.failure != 0 ? inside.failure : number, 0, false, false,
                              false};
        }
      }
    }
    servers_[0]->close_window();
    overlay_.reset();
    for (ModelBuffer& buffer : buffers_) buffer.window = {};
  }

  // Comparing.

  void wrong(const std::string& what) {
    if (wrong_.empty()) wrong_ = what + " at step " + std::to_string(done_);
  }
  int number_of(FailureId id) {
    const auto found = numbers_.find(id);
    return found != numbers_.end() ? found->second : 0;
  }
  /// The table's failure `id` must be the model's `number`, now and always (M3).
  void same_number(int number, FailureId id) {
    ModelFailure& known = failure(number);
    if (!known.id) {
      known.id = id;
      if (!numbers_.emplace(id, number).second) wrong("a failure's number is used twice");
    } else if (known.id != id) {
      wrong("carries another failure");
    }
  }
  void same(const BufferBinding& asked) {
    const ModelBuffer* const buffer = find(asked.buffer);
    const std::optional<Error> error = table_.check(asked);
    if (buffer == nullptr || !buffer->alive) {
      if (!error || error->kind() != ErrorKind::stale_buffer) wrong("a stale handle");
      return;
    }
    int number = 0;
    for (std::uint64_t at = asked.range.begin; at < asked.range.end && number == 0; ++at) {
      number = buffer->bytes[at].met();
    }
    if (error.has_value() != (number != 0)) return wrong("clean or not");
    if (!error) return;
    if (error->kind() != failure(number).kind) wrong("the kind");
    if (error->message().rfind(failure(number).text, 0) != 0) wrong("the text");
    same_number(number, error->failure());
  }
  void same_report() {
    const Bindings asked{binding(), binding(), binding()};
    std::vector<int> numbers;
    each(asked, false, [&](const ModelByte& byte, const ModelBuffer&, std::uint64_t) {
      if (byte.met() == 0) return;
      if (std::find(numbers.begin(), numbers.end(), byte.met()) == numbers.end()) {
        numbers.push_back(byte.met());
      }
    });
    for (const BufferBinding& one : asked) same(one);
    const std::optional<Error> report = table_.report(asked);
    if (report.has_value() != !numbers.empty()) return wrong("a report or none");
    if (!report) return;
    same_number(numbers.front(), report->failure());
    const std::string text = report->message();
    std::size_t told = 0;
    for (std::size_t at = text.find("\n  failure "); at != std::string::npos;
         at = text.find("\n  failure ", at + 1)) {
      ++told;
    }
    if (told != numbers.size()) wrong("each failure once");
    for (const int number : numbers) {
      const std::string head = "\n  failure " + std::to_string(failure(number).id.number) + ": ";
      if (failure(number).id && text.find(head) == std::string::npos) wrong("a failure is missing");
    }
  }
  void same_everywhere() {
    for (const ModelBuffer& buffer : buffers_) {
      for (std::uint64_t at = 0; at < kBytes; ++at) same({buffer.id, {at, at + 1}});
    }
  }
  /// With nothing open, exactly what bytes carry lives, and what that stems from.
  void same_count() {
    std::set<int> live;
    for (const ModelBuffer& buffer : buffers_) {
      for (const ModelByte& byte : buffer.bytes) {
        for (const int carried : {byte.failure, byte.mark}) {
          for (int at = carried; at != 0; at = failure(at).cause) live.insert(at);
        }
      }
    }
    if (table_.live_failures() != live.size()) {
      wrong("how many failures live (" + std::to_string(table_.live_failures()) + ", not " +
            std::to_string(live.size()) + ")");
    }
    if (live.empty()) ++empty_;
  }

  FailureTable table_{1};
  std::mt19937_64 random_;
  Settings settings_;
  std::vector<std::unique_ptr<ScopeServer>> servers_;
  std::unique_ptr<Overlay> overlay_;
  std::vector<ModelFailure> failures_;
  std::vector<ModelBuffer> buffers_;
  std::vector<ModelScope> scopes_;  // open, oldest first
  std::vector<int> running_;        // whose bodies run, the innermost last
  std::vector<Opened> held_;
  std::map<FailureId, int> numbers_;
  std::string wrong_;
  int done_ = 0;
  int texts_ = 0;
  int empty_ = 0;
};

}  // namespace

TEST_CASE("model: the table tells the same story as one number a byte, whatever runs") {
  const char* const given = std::getenv("REFRAIN_MODEL_SEED");  // NOLINT: one thread
  const std::uint64_t seed =
      given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}();
  MESSAGE("seed ", seed, " (set REFRAIN_MODEL_SEED to run it again)");
  const std::array<Settings, 5> all{{
      {0, 0, 50, 0, 0},     // nothing ever fails: claims are put in only when somebody looks
      {5, 1, 60, 0, 0},     //
      {25, 10, 70, 10, 0},  //
      {10, 5, 50, 50, 40},  // fresh memory and windows
      {30, 5, 60, 0, 60},   //
  }};
  int done = 0;
  int empty = 0;
  for (std::uint64_t round = 0; round < 100; ++round) {
    const std::uint64_t own = given != nullptr ? seed : seed + round;
    for (const Settings& settings : all) {
      Trial trial(own, settings);
      const std::string wrong = trial.run(40);
      done += trial.done();
      empty += trial.empty();
      INFO("round ", round, ", seed ", own, ", fails ", settings.fails);
      REQUIRE_MESSAGE(wrong.empty(), wrong);
    }
    if (given != nullptr) break;
  }
  MESSAGE(done, " steps, nothing wrong anywhere after ", empty, " of them");
}

}  // namespace refrain
