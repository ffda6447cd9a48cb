// The plainest statement of docs/rules.md: for every byte its value and the number of the failure
// that it carries, for every piece of work a set of what is known to come before it. Nothing here
// is fast, lazy or clever, and nothing of it comes from the library but names of kinds and roles.
//
// What workers do is decided by `settle`, which runs what may run, one piece at a time; whoever
// compares lets the library's workers go no further than that.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "model/kernels.hpp"
#include "model/spans.hpp"
#include "refrain/base/error.hpp"
#include "refrain/capture/region.hpp"

namespace refrain::model {

/// What keeps an allocation alive (M4).
using Owner = std::shared_ptr<const void>;

struct Failure {
  ErrorKind kind = ErrorKind::torn_down;
  std::string says;
  int cause = 0;
  bool open = false;  ///< Its scope has not ended.
};

struct Byte {
  int value = -1;  ///< -1: nobody knows.
  int failure = 0;
  int mark = 0;
  bool passed_on = false;  ///< By a skip, so not its scope's to release (E9).
  [[nodiscard]] int met() const { return mark != 0 ? mark : failure; }
};

/// What an allocation is made with, and a region of a graph says.
struct Shape {
  std::string name;
  Role role = Role::none;
  std::uint64_t size = 0;
  std::optional<Values> start;  ///< Of a state or a constant.
  bool zero = false;            ///< It starts at zero, and nobody gave bytes.
  bool frozen = false;
};

struct Allocation {
  Shape shape;
  std::vector<Byte> bytes;
  std::weak_ptr<const void> owner;
  [[nodiscard]] bool alive() const { return !owner.expired(); }
};

/// How a call ended.
struct Answer {
  enum class What : std::uint8_t { ok, skipped, failed, thrown };
  What what = What::ok;
  ErrorKind kind{};
  int failure = 0;
  std::string says;
  [[nodiscard]] bool ok() const { return what == What::ok; }
};
inline Answer refused(ErrorKind kind) { return {Answer::What::failed, kind, 0, ""}; }

enum class WindowLife : std::uint8_t { prepared, recording, doomed, over };

/// Bytes of a region, and what a node does with them.
struct NodeArgument {
  Use use = Use::in;
  int region = 0;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};
struct Node {
  enum class What : std::uint8_t { kernel, copy, fill };
  What what = What::kernel;
  KernelKind kernel{};
  std::uint32_t tag = 0;  ///< Or the value of a fill.
  std::vector<NodeArgument> arguments;
  int member = 0;        ///< The stream that recorded it.
  std::set<int> before;  ///< Nodes that streams and events put before it.
};

struct Graph {
  std::vector<Shape> regions;
  std::vector<Node> nodes;
  std::set<At> reads;  ///< External ones; `first` is a region.
  std::set<At> writes;
};

struct Recording {
  std::shared_ptr<const Graph> graph;
  std::vector<int> memory;  ///< An allocation for each region.
  std::vector<Owner> owners;
  int mark = 0;
  bool in_use = false;
};

struct Plan {
  std::shared_ptr<const Graph> graph;
  std::vector<int> constants;  ///< -1 where there is none.
  std::vector<Owner> owners;
};

struct Instance {
  ~Instance() {
    if (recording) recording->in_use = false;
  }
  std::shared_ptr<const Graph> graph;
  std::shared_ptr<const Plan> plan;
  std::shared_ptr<Recording> recording;
  std::vector<int> memory;  ///< -1: nowhere yet.
  std::vector<std::uint64_t> offset;
  std::vector<Owner> owners;
  bool listed = false;
  Spans reads, writes, fresh;
};

struct Window;

/// A scope that is open.
struct Scope {
  int stream = 0;
  Window* window = nullptr;
  Spans reads, writes;
  int provisional = 0;
  int poisoned = 0;    ///< A failure that reached what it reads later (E10).
  int serial = 0;      ///< When it was opened.
  bool holds = false;  ///< Whether work was issued to a worker in its body.
  int first = 0;       ///< The first of that.
  std::size_t nodes_before = 0;
  Spans reused;
};

struct WindowByte {
  bool present = false;
  int failure = 0;
  bool passed_on = false;
  bool read_first = false;
};

struct Member {
  bool left = false;
  std::set<int> known;  ///< Nodes that come before what it records next.
  std::set<int> own;
};

struct Window {
  int origin = 0;
  WindowLife life = WindowLife::prepared;
  bool abandoned = false;
  bool doomed = false;
  int doom_failure = 0;
  std::string doom_says;
  std::map<At, WindowByte> bytes;
  std::vector<int> regions;  ///< Allocations that it touches, in that order.
  std::vector<Owner> owners;
  std::vector<Node> nodes;
  std::map<int, Member> members;
  std::vector<Scope*> scopes;
  std::map<int, std::vector<std::string>> warm_up;
  std::map<int, std::size_t> recorded;
  bool whole = false;
  int first_uses = 0;
  [[nodiscard]] bool capturing() const {
    return life == WindowLife::recording || life == WindowLife::doomed;
  }
};

struct Event {
  int stream = 0;
  std::size_t position = 0;  ///< How much had been queued there.
  std::set<int> known;       ///< Work that comes before it.
  std::weak_ptr<Window> window;
  bool in_window = false;
  std::set<int> nodes;
};

/// What a worker has been given and has not ended.
struct Queued {
  enum class What : std::uint8_t { work, gate, wait };
  What what = What::work;
  int serial = 0;
  Spans reads, writes, unrun;
  std::function<Ran()> run;
  std::shared_ptr<Event> event;
  bool open = false;  ///< Of a gate.
  bool poisoned = false;
};

struct Stream {
  bool worker = false;
  bool alive = true;
  std::deque<Queued> queue;
  std::size_t given = 0;
  std::size_t done = 0;
  int unsynced = 0;     ///< The first late failure since the last sync.
  std::set<int> known;  ///< Work of workers that comes before what is issued next.
  std::vector<Scope*> scopes;
  std::shared_ptr<Window> window;
};

/// Work of a worker, for E11.
struct Issued {
  int stream = 0;
  Spans reads, writes;
  std::set<int> before;      ///< With itself.
  std::size_t position = 0;  ///< How much must have ended for it to have.
};

/// A piece of work on its way to `Model::issue`.
struct Work {
  std::string name;
  Spans reads, writes;
  std::optional<Spans> unrun{};
  bool looks = true;     ///< Is skipped when something that it reads is bad.
  bool asked = false;    ///< Its order has been asked for.
  bool heard = true;     ///< By warm-ups.
  bool at_once = false;  ///< The host has waited, and does it before the call is back.
  std::function<Ran()> run{};
  std::function<void(Window&)> stage{};
};

/// What a failure listener hears.
struct Heard {
  int stream = 0;
  ErrorKind kind{};
};

class Model {
 public:
  explicit Model(bool checks) : checks_(checks) { failures_.emplace_back(); }
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  // Memory.

  Owner allocate(Shape shape, bool unwritten, int& number);
  [[nodiscard]] Allocation& at(int number) {
    return allocations_[static_cast<std::size_t>(number)];
  }
  [[nodiscard]] Failure& failure(int number) { return failures_[static_cast<std::size_t>(number)]; }
  /// What is wrong with a view, if anything is.
  [[nodiscard]] std::optional<ErrorKind> wrong(const Span& span);
  [[nodiscard]] std::optional<ErrorKind> unwritable(const Span& span);
  [[nodiscard]] bool unknown(const Spans& spans);
  /// Failures that `span` carries, in order, each once.
  [[nodiscard]] std::vector<int> carried(const Span& span);
  /// Failures that something carries, or that such a failure stems from.
  [[nodiscard]] std::set<int> live();
  [[nodiscard]] bool checks() const { return checks_; }
  [[nodiscard]] const std::vector<Heard>& heard() const { return heard_; }

  // Streams and order.

  int stream(bool worker);
  [[nodiscard]] Stream& on(int number) { return streams_[static_cast<std::size_t>(number)]; }
  void end_stream(int s);
  Answer sync(int s);
  std::shared_ptr<Event> record_event(int s);
  Answer wait(int s, const std::shared_ptr<Event>& event);
  Answer host_wait(const Event& event);
  [[nodiscard]] bool reached(const Event& event) { return on(event.stream).done >= event.position; }
  void hold(int s);
  /// Workers whose work conflicts with this and is not known to come before it.
  [[nodiscard]] std::set<int> unordered(int s, const Spans& reads, const Spans& writes);
  /// The host waited for the last work that writes these bytes, or uses them.
  /// Not for the newest work, should its own call be what waits.
  void host_waited(const Spans& spans, bool readers, bool but_newest = false);

  /// What a window would claim, should it go.
  [[nodiscard]] static Spans of(const Window& window);

  /// How far each worker must have come before a call that waits for these can come back.
  using Target = std::map<int, std::size_t>;
  [[nodiscard]] Target users(const Spans& spans, bool readers);
  /// Opens the gates that stand before `target`; answers of which streams.
  std::vector<int> open_gates(Target target);
  /// Runs what may run. Calls `fails(stream)` before each failure.
  void settle(const std::function<void(int)>& fails);

  // Work.

  Answer issue(int s, Work work);
  Answer launch(int s, KernelKind kernel, std::uint32_t tag, const Spans& views, bool no_threads);
  Answer launch_extent(int s, KernelKind kernel, std::uint32_t tag, const Spans& views,
                       const Span& extent);
  Answer copy(int s, const Span& to, const Span& from);
  Answer fill(int s, const Span& to, std::uint8_t value);
  Answer write(int s, const Span& to, const Values& values);
  void failed_write(int s, const Span& to, const std::string& says);
  Answer read(int s, const Span& from, Values& values, std::vector<int>& told);

  // Scopes of the program's own.

  /// Null when it was skipped, with the answer.
  std::unique_ptr<Scope> open(int s, const Spans& reads, const Spans& writes, bool looks,
                              Answer& answer, bool counts = false);
  Answer close(std::unique_ptr<Scope> scope, bool clean, ErrorKind kind, const std::string& says,
               int cause);
  void reuses(int s, const Span& span);

  // Windows.

  Answer prepare(int s);
  Answer begin(Window& window);
  std::shared_ptr<Recording> seal(Window& window, bool allow_empty,
                                  const std::optional<std::pair<int, Role>>& role, Answer& answer);
  void abort(Window& window) { end(window); }
  void drop(Window& window);
  /// The window that a stream is a member of, or null.
  [[nodiscard]] Window* window(int s);
  [[nodiscard]] Window* capturing(int s);
  /// Whether any stream has one.
  [[nodiscard]] bool window_open() const { return !windows_.empty(); }
  /// First-use work; whether it is allowed.
  bool first_use();
  [[nodiscard]] bool loaded(int kernel) const { return loaded_.contains(kernel); }
  bool load(int kernel);

  // Warm-ups.

  void begin_pass(Window& window);
  /// Puts back what the pass read and then wrote.
  void end_pass(int s);
  /// What went wrong first in the last pass, if anything did.
  [[nodiscard]] const std::optional<Answer>& pass_failed() const { return pass_failed_; }
  /// The bytes that putting back waits for.
  [[nodiscard]] Spans saved() const;

  // Replay.

  std::shared_ptr<Plan> plan(const std::shared_ptr<const Graph>& graph);
  std::shared_ptr<Instance> instance(const std::shared_ptr<Plan>& plan);
  std::shared_ptr<Instance> instance(const std::shared_ptr<Recording>& recording, Answer& answer);
  Answer locate(Instance& instance, const std::string& name, Span& span);
  Answer bind(Instance& instance, const std::string& name, const Span& span, bool other_element);
  Answer replay(int s, const std::shared_ptr<Instance>& instance, bool look);
  Answer reset(int s, Instance& instance);
  /// Gives memory to whatever may have the instance's own.
  Answer complete(Instance& instance);
  [[nodiscard]] bool not_portable(const Graph& graph) const;

 private:
  friend struct Walk;
  int mint(ErrorKind kind, std::string says);
  void set_cause(int number, int cause);
  void hear(int s, ErrorKind kind, const std::string& says, int failure = 0);
  std::vector<Scope*>& scopes(int s, Window* window) {
    return window != nullptr ? window->scopes : on(s).scopes;
  }
  int first_failure(Window* window, const Spans& reads, int beneath = 0,
                    const std::set<At>& states = {});
  void claim(Window* window, const Spans& writes, int failure, bool passed_on);
  void enter(Scope& scope);
  void exit(Scope& scope, bool clean);
  /// Work whose body is an error (R2).
  Answer fail(int s, const Spans& writes, ErrorKind kind, const std::string& says);
  void doom(Window& window, int failure, const std::string& says);
  void about_to_run(int s, const Work& work);
  // What the warm-up that runs hears of every scope that runs now (C20).
  void pass_reads(const Spans& reads);
  /// With `counts`, the newest work is what is about to write, and is issued already.
  void pass_writes(const Spans& writes, bool counts = false);
  /// Whether a window that records has recorded a write of some of these.
  [[nodiscard]] bool recorded_write(const Spans& reads) const;
  void late(int s, const Queued& failed, ErrorKind kind, const std::string& says);
  /// Whether work may be issued as far as order goes; from then on it counts as issued (E11).
  bool in_order(int s, const Spans& reads, const Spans& writes);
  /// Work that was not handed to its worker. It counts as issued where order is looked at.
  void skipped(int s);
  void refuse(Window& window, int failure);
  void end(Window& window);
  int touch(Window& window, int buffer);
  void stage(Window& window, int s, Node node, const std::vector<std::pair<Use, Span>>& arguments);
  void run_checks(Window& window, int s, const std::string& name);
  Values values(const Span& span);
  void put(const Span& span, const Values& values);
  Ran run(const std::vector<std::pair<Use, Span>>& arguments, const Node& node);
  void list(Instance& instance);
  void give(Instance& instance, int region);
  Spans spans_of(const Instance& instance, const std::set<At>& bytes, bool scratch);

  bool checks_;
  std::deque<Allocation> allocations_;
  std::vector<Failure> failures_;
  std::deque<Stream> streams_;
  std::vector<Issued> issued_;
  std::set<int> host_known_;
  std::vector<Heard> heard_;
  std::set<std::shared_ptr<Window>> windows_;
  std::vector<int> held_back_;  ///< Streams that went while a window was open (C19).
  std::set<int> loaded_;
  int serial_ = 0;

  // Of the warm-up that runs.
  Window* pass_ = nullptr;
  std::set<At> pass_read_, pass_written_;
  std::map<At, int> pass_saved_;
  std::map<At, int> pass_marks_;       // that it looks beneath
  std::optional<Answer> pass_failed_;  // the first that went wrong
};

}  // namespace refrain::model
