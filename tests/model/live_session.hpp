// A session: the library's handles beside the model's, under the numbers that a program gives them.
// See session.hpp for what it is about.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "model/host_kernels.hpp"
#include "model/model.hpp"
#include "model/session.hpp"
#include "model/turnstile.hpp"
#include "model/watchdog.hpp"
#include "refrain/device/stream_core.hpp"
#include "refrain/refrain.hpp"
#include "support/temporary_folder.hpp"

namespace refrain::model {

class LiveSession {
 public:
  explicit LiveSession(const Program& program);
  LiveSession(const LiveSession&) = delete;
  LiveSession& operator=(const LiveSession&) = delete;

  Verdict run();

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
  void wrong(const std::string& what);
  void same_number(int number, FailureId id);
  void same_text(const Error& error, const std::string& says);
  void count(const Answer& answer);
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
  void same_work(const Ended& got, const Answer& expected);
  void same_byte(const View<U8>& view, const Span& span);
  ErrorKind kind_of(int number) { return model_.failure(number).kind; }
  std::string text_of(const Span& span);
  void same_heard();
  void same_everything();

  // Waiting.

  void settle();
  /// It is the turn of the kernel that fails next on a worker.
  void fail(int s);
  /// Waits until the library's workers are where the model's are.
  void catch_up();
  /// Before a call that waits for these. Where no failure is in between, the gates open only while
  /// the call is on its way, so that one which does not wait is found out.
  void let_pass(const Model::Target& target);
  void let_all_pass();
  /// Before a call that waits for whoever writes these, or, with `readers`, uses them.
  void wait_for(const Spans& spans, bool readers);
  /// Puts events between this and what it conflicts with; false when that cannot be.
  bool order(const Op& op, const Spans& reads, const Spans& writes);
  /// Whether a scope that is open on another stream, or on the other side of a window, uses these.
  bool foreign(int s, const Spans& reads, const Spans& writes);

  /// Whether a scope that is open elsewhere uses what a window claims as it goes.
  bool used_by_others(const Window& window);

  // Finding what an operation names.

  OneStream* stream(int id);
  static OneView part(const OneBuffer& buffer, std::uint64_t begin, std::uint64_t size);
  std::optional<OneView> view(const ViewRef& ref);
  bool sound(const OneView& view) { return !model_.wrong(view.span); }
  template <class Map>
  static auto* find(Map& map, int id) {
    const auto found = map.find(id);
    return found != map.end() ? &found->second : nullptr;
  }

  // Running.

  void run_range(std::size_t from, std::size_t to);
  /// The `end` that belongs to the operation at `index`, or the end of the program.
  [[nodiscard]] std::size_t end_of(std::size_t index) const;
  std::size_t step(std::size_t index);

  bool act(const Op& op);

  // Memory and streams.

  bool allocate(const Op& op);
  /// Where nothing says that bytes are unwritten, nobody may read what happens to be there.
  void know(const OneBuffer& buffer);
  bool free_buffer(const Op& op);
  void add_stream(int id, bool worker);
  bool end_stream(const Op& op);

  // Work.

  std::optional<std::vector<OneView>> views(const Op& op, std::size_t count);
  Spans good(const std::vector<OneView>& all);
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
  bool launch(const Op& op);
  bool copy(const Op& op);
  bool fill(const Op& op);
  bool write(const Op& op);
  bool read(const Op& op);
  bool check(const Op& op);
  bool sync(const Op& op);

  // Held workers and order.

  bool hold(const Op& op);
  bool release(const Op& op);
  bool record_event(const Op& op);
  bool wait_event(const Op& op);
  bool host_wait(const Op& op);
  bool reached(const Op& op);

  // Scopes of the program's own.

  bool nest(const Op& op, std::size_t from, std::size_t to);
  bool reuses(const Op& op);

  // Windows.

  bool prepare(const Op& op);
  void keep(int s, OpenWindow opened, const OneStream& on);
  OneWindow* window(int s) { return warming_ ? nullptr : find(windows_, s); }
  bool begin(const Op& op);
  bool seal(const Op& op);
  /// The stream that opened a window waits for the members that are still out.
  void wait_for_members(Window& window);
  bool leave(const Op& op);
  bool warm_up(const Op& op, std::size_t from, std::size_t to);
  bool first_use(const Op& op);
  bool load(const Op& op);

  // Replay.

  bool instance(const Op& op);
  bool plan(const Op& op);
  bool keep_plan(const Op& op, Result<refrain::Plan> made, const OneRecording& of);
  bool plan_instance(const Op& op);
  static std::string name_of_region(const Op& op) { return "b" + std::to_string(op.n); }
  bool locate(const Op& op);
  bool bind(const Op& op);
  Spans all_of(const Instance& instance);
  bool replay(const Op& op);
  bool reset(const Op& op);

  // The end: everything is asked for once more, and then goes.

  void finish();

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

/// Values that no two operations share by chance; a failing one only where it is asked for.
Values values_from(int first, std::size_t count);

}  // namespace refrain::model
