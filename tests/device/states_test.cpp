// B119: every public call in every state of the window that it concerns is allowed, or is refused
// by a kind of error and has changed nothing. The table is data here and text in docs/states.md,
// and a test compares the two.
#include <fstream>
#include <functional>
#include <iterator>
#include <sstream>

#include "device/faulty.hpp"
#include "device/states_scene.hpp"

namespace refrain::test {
namespace {

/// What each cell says is `yes` or the kind of the refusal; then the window's state afterwards, if
/// the call leads there; `-` where the call's object cannot be.
struct Row {
  const char* call;
  std::array<const char*, kStates.size()> cells;
  Result<void> (*make)(Scene& scene);
};

constexpr const char* kRefused = "refused_in_window";
constexpr const char* kRefusedDoomed = "refused_in_window, doomed";
constexpr const char* kWarmDoomed = "needs_warm_up, doomed";
constexpr const char* kWrong = "wrong_state";

using Cells = std::array<const char*, kStates.size()>;
//                       idle   prep.  rec.   joined body   doomed sealed ended  abandoned
constexpr Cells kAlways{"yes", "yes", "yes", "yes", "yes", "yes", "yes", "yes", "yes"};
constexpr Cells kWithStream{"yes", "yes", "yes", "yes", "yes", "yes", "yes", "yes", "-"};
constexpr Cells kNotInWindow{"yes",    "yes", kRefused, kRefused, kRefused,
                             kRefused, "yes", "yes",    "-"};
constexpr Cells kDoomsIt{"yes",          "yes",          kRefusedDoomed,
                         kRefusedDoomed, kRefusedDoomed, kRefusedDoomed,
                         "yes",          "yes",          "-"};
constexpr Cells kOneWindow{"yes", kWrong, kWrong, kWrong, kWrong, kWrong, "yes", "yes", "-"};
constexpr Cells kFirstUse{"yes",       "yes", kWarmDoomed, kWarmDoomed, kWarmDoomed,
                          kWarmDoomed, "yes", "yes",       "yes"};
constexpr Cells kOfWindow{"-", "yes", "yes", "yes", "yes", "yes", "yes", "yes", "yes"};
constexpr Cells kEndsIt{"-",          "yes, ended", "yes, ended", "yes, ended", "yes, ended",
                        "yes, ended", "yes",        "yes",        "yes"};
constexpr Cells kEventOfWindow{"-",      "-",      kRefused, kRefused, kRefused,
                               kRefused, kRefused, kRefused, kRefused};

Result<void> done(ScopedOutcome<void> outcome) { return std::move(outcome).into_result(); }

template <class T>
Result<void> done(const Result<T>& result) {
  if (!result.ok()) return result.error();
  return {};
}

Result<void> seen(bool holds) {
  CHECK(holds);
  return {};
}

/// An executable under a scope, as an instance runs it.
Result<void> run_executable(Scene& scene) {
  const Recording::Body& recorded = *scene.recording->body();
  DeviceCore& device = *scene.rig.device.core();
  std::vector<std::shared_ptr<const KernelCode>> code;
  for (const KernelSignature& kernel : recorded.graph.kernels()) {
    code.push_back(device.backend().kernel(kernel).value());
  }
  std::vector<std::uint64_t> addresses;
  for (const auto& memory : recorded.memory) addresses.push_back(memory->address());
  const std::shared_ptr<Executable> executable =
      device.backend().prepare(recorded.graph, code, addresses).value();
  WriteSet writes = scene.stream().write_set();
  writes.add(scene.replayed_state.view().binding());
  auto scope = ExecuteScope<Stream>::over(scene.stream(), intern_kernel_name("run"),
                                          std::move(writes), Where::here());
  return done(std::move(scope).execute([&](Stream& on) {
    return on.run(*executable, scope.shown(), WorkTerms{.pins = executable});
  }));
}

/// A kernel that this device has and never loaded.
void add_unloaded(Scene& scene) {
  scene.rig.device.kernels().add<Make>(
      "unloaded", [](std::span<float>, std::uint32_t) -> Result<void> { return {}; });
}

/// A graph, from another device, of such a kernel.
SealedGraph foreign_graph() {
  const host::Device device;
  device.kernels().add<Make>("unloaded",
                             [](std::span<float>, std::uint32_t) -> Result<void> { return {}; });
  const auto unloaded = device.kernel<Make>("unloaded").value();
  const auto y = device.buffer<float>("y", 4, Role::output).value();
  Stream stream = device.stream().value();
  OpenWindow window = stream.record().value();
  stream.launch(unloaded, grid(4), y, 0U);
  return window.seal().value().graph();
}

Result<void> wait_for_another_window(Scene& scene) {
  Stream other = scene.rig.another();
  OpenWindow window = other.record().value();
  const Event event = other.record_event().value();
  Result<void> waited = scene.stream().wait(event);
  window.abort();
  return waited;
}

const std::array kTable{
    Row{"Stream::launch", kWithStream,
        [](Scene& s) { return done(s.stream().launch(*s.rig.map, grid(4), s.x, *s.spare, 0U)); }},
    Row{"Stream::launch, its grid in a buffer", kDoomsIt,
        [](Scene& s) { return done(s.stream().launch(*s.rig.make, s.extent, *s.spare, 0U)); }},
    Row{"Stream::host", kWithStream,
        [](Scene& s) {
          return done(s.stream().host<Out<float>>(
              "own", [](std::span<float>) {}, *s.spare));
        }},
    Row{"Stream::native", kWithStream,
        [](Scene& s) {
          return done(s.stream().native<Out<float>>(
              {"library", 64}, [](const NativeCall&, DeviceSpan<float>) {}, *s.spare));
        }},
    Row{"Stream::copy", kWithStream, [](Scene& s) { return done(s.stream().copy(*s.spare, s.x)); }},
    Row{"Stream::fill", kWithStream, [](Scene& s) { return done(s.stream().fill(*s.spare, 3)); }},
    Row{"Stream::write", kWithStream,
        [](Scene& s) { return done(s.stream().write(*s.spare, four(3))); }},
    Row{"Stream::failed_write",
        {"yes", "yes", "yes, doomed", "yes, doomed", "yes, doomed", "yes, doomed", "yes", "yes",
         "-"},
        [](Scene& s) -> Result<void> {
          s.stream().failed_write(*s.spare, broken("it never came"));
          return {};
        }},
    Row{"ExecuteScope on a stream", kWithStream,
        [](Scene& s) {
          return done(own_work(s.stream(), {*s.spare},
                               [&](Stream& on) { return done(on.fill(*s.spare, 3)); }));
        }},
    Row{"Stream::reuses", kWithStream,
        [](Scene& s) -> Result<void> {
          s.stream().reuses(s.y.view());
          return {};
        }},
    Row{"Stream::read", kNotInWindow, [](Scene& s) { return done(s.stream().read(s.x)); }},
    Row{"Stream::read_into", kNotInWindow,
        [](Scene& s) {
          std::vector<float> room(4, -1);
          Result<void> got = s.stream().read_into(s.x, room);
          CHECK(room == four(got.ok() ? 1 : -1));
          return got;
        }},
    Row{"Stream::sync", kNotInWindow, [](Scene& s) { return s.stream().sync(); }},
    Row{"Stream::record_event", kWithStream,
        [](Scene& s) { return done(s.stream().record_event()); }},
    Row{"Stream::wait, for an event from outside", kNotInWindow,
        [](Scene& s) { return s.stream().wait(*s.outside); }},
    Row{"Stream::wait, for an event of its window",
        {"-", "-", "yes", "yes", "yes", "yes", kWrong, kWrong, "-"},
        [](Scene& s) { return s.stream().wait(*s.inside); }},
    Row{"Stream::wait, for an event of another window",
        {"yes", kRefused, kRefused, kRefused, kRefused, kRefused, "yes", "yes", "-"},
        wait_for_another_window},
    Row{"Stream::record", kOneWindow, [](Scene& s) { return done(s.stream().record()); }},
    Row{"Stream::prepare", kOneWindow, [](Scene& s) { return done(s.stream().prepare()); }},
    Row{"Stream::prepare, with a body", kOneWindow,
        [](Scene& s) { return done(s.stream().prepare([&] { s.stream().fill(*s.spare, 3); })); }},
    Row{"Stream::first_use",
        {"yes", "yes", kWarmDoomed, kWarmDoomed, kWarmDoomed, kWarmDoomed, "yes", "yes", "-"},
        [](Scene& s) {
          bool used = false;
          const Result<void> may = s.stream().first_use("tuning", [&]() -> Result<void> {
            used = true;
            return {};
          });
          CHECK(used == may.ok());
          return may;
        }},
    Row{"Stream::run", kDoomsIt, run_executable},
    Row{"Stream::outside_window", kNotInWindow,
        [](Scene& s) { return s.stream().outside_window("ask"); }},
    Row{"Stream::id, device, capturing", kWithStream,
        [](Scene& s) {
          return seen(s.stream().id().number != 0 &&
                      &s.stream().device() == s.rig.device.core().get() &&
                      (s.stream().capturing() != nullptr) == records(s.state));
        }},
    Row{"Stream, moved",
        {"yes", "yes", "yes", "yes", "-", "yes", "yes", "yes", "-"},
        [](Scene& s) -> Result<void> {
          std::optional<Stream>& place = s.member ? s.member : s.origin;
          Stream moved = std::move(*place);
          place.emplace(std::move(moved));
          return {};
        }},
    Row{"Stream, destroyed",
        {"yes", "yes, abandoned", "yes, abandoned", "yes, doomed", "-", "yes, abandoned", "yes",
         "yes", "-"},
        [](Scene& s) -> Result<void> {
          (s.member ? s.member : s.origin).reset();
          return {};
        }},

    Row{"OpenWindow::state", kOfWindow,
        [](Scene& s) { return seen(s.window->state() == s.watched->state()); }},
    Row{"OpenWindow::begin",
        {"-", "yes, recording", kWrong, kWrong, kWrong, kWrong, kWrong, kWrong, kWrong},
        [](Scene& s) { return s.window->begin(); }},
    Row{"OpenWindow::seal",
        {"-", "wrong_state, ended", "yes, sealed", "window_doomed, ended", kWrong,
         "window_doomed, ended", kWrong, kWrong, "window_doomed"},
        [](Scene& s) { return done(s.window->seal()); }},
    Row{"OpenWindow::abort", kEndsIt,
        [](Scene& s) -> Result<void> {
          s.window->abort();
          return {};
        }},
    Row{"OpenWindow, moved", kOfWindow,
        [](Scene& s) -> Result<void> {
          OpenWindow moved = std::move(*s.window);
          s.window.emplace(std::move(moved));
          return {};
        }},
    Row{"OpenWindow, destroyed", kEndsIt,
        [](Scene& s) -> Result<void> {
          s.window.reset();
          return {};
        }},

    Row{"Device::stream", kAlways, [](Scene& s) { return done(s.rig.device.stream()); }},
    Row{"Device::buffer", kAlways,
        [](Scene& s) { return done(s.rig.device.buffer<float>("more", 4)); }},
    Row{"Device::state", kAlways,
        [](Scene& s) { return done(s.rig.device.state<float>("more", four(1))); }},
    Row{"Device::constant", kAlways,
        [](Scene& s) {
          const std::vector<float> values = four(1);
          return done(s.rig.device.constant<float>(
              "more", SharedBytes::copy_of(std::as_bytes(std::span(values)))));
        }},
    Row{"Device::kernel, loaded before", kAlways,
        [](Scene& s) { return done(s.rig.device.kernel<Make>("make")); }},
    Row{"Device::kernel, for the first time", kFirstUse,
        [](Scene& s) {
          add_unloaded(s);
          return done(s.rig.device.kernel<Make>("unloaded"));
        }},
    Row{"Device::load, for the first time", kFirstUse,
        [](Scene& s) {
          add_unloaded(s);
          return done(s.rig.device.load(Make::signature("unloaded", 1)));
        }},
    Row{"Device::check, story, live_failures", kAlways,
        [](Scene& s) {
          return seen(s.rig.clean(s.x) && !s.rig.device.story(FailureId(1)).empty() &&
                      s.rig.device.live_failures() < 100);
        }},

    Row{"Event::reached, of an event from outside", kAlways,
        [](Scene& s) { return done(s.outside->reached()); }},
    Row{"Event::wait, of an event from outside", kAlways,
        [](Scene& s) { return s.outside->wait(); }},
    Row{"Event::reached, of an event of the window", kEventOfWindow,
        [](Scene& s) { return done(s.inside->reached()); }},
    Row{"Event::wait, of an event of the window", kEventOfWindow,
        [](Scene& s) { return s.inside->wait(); }},

    Row{"Plan::prepare", kAlways,
        [](Scene& s) { return done(Plan::prepare(s.rig.device, s.recording->graph())); }},
    Row{"Plan::prepare, its kernels never loaded", kFirstUse,
        [](Scene& s) {
          add_unloaded(s);
          return done(Plan::prepare(s.rig.device, foreign_graph()));
        }},
    Row{"Plan::graph", kAlways, [](Scene& s) { return seen(s.plan->graph().name() == "earlier"); }},
    Row{"Plan::instance", kAlways, [](Scene& s) { return done(s.plan->instance()); }},
    Row{"instance(recording)", kAlways, [](Scene& s) { return done(instance(*s.recording)); }},
    Row{"Instance::graph", kAlways,
        [](Scene& s) { return seen(s.step->graph().name() == "earlier"); }},
    Row{"Instance::bind", kAlways, [](Scene& s) { return s.step->bind("replayed in", s.x); }},
    Row{"Instance::view", kAlways,
        [](Scene& s) { return done(s.step->view<float>("replayed state")); }},
    Row{"Instance::replay", kNotInWindow,
        [](Scene& s) { return done(s.step->replay(s.stream()).into_result()); }},
    Row{"Instance::step_through", kNotInWindow,
        [](Scene& s) {
          return s.step->step_through(
              s.stream(), [](std::uint32_t, std::span<const NodeWrite>) { return Result<void>(); });
        }},
    Row{"Instance::reset", kNotInWindow, [](Scene& s) { return s.step->reset(s.stream()); }},
    Row{"Instance, destroyed", kAlways,
        [](Scene& s) -> Result<void> {
          s.step.reset();
          return {};
        }},
    Row{"Recording::graph", kAlways,
        [](Scene& s) { return seen(s.recording->graph().nodes().size() == 1); }},
    Row{"Recording, destroyed", kAlways,
        [](Scene& s) -> Result<void> {
          s.recording.reset();
          return {};
        }},
    Row{"Buffer::size, name, id, view", kAlways,
        [](Scene& s) {
          return seen(s.x.size() == 4 && s.x.name() == "x" &&
                      s.x.id() == s.x.view().binding().buffer);
        }},
    Row{"Buffer, destroyed", kAlways,
        [](Scene& s) -> Result<void> {
          s.spare.reset();
          return {};
        }},
};

/// A cell: `yes` or a kind, and what the window is afterwards if that is another thing.
struct Cell {
  explicit Cell(const std::string& text)
      : answer(text.substr(0, text.find(','))),
        leads_to(text.find(',') == std::string::npos ? "" : text.substr(text.find(',') + 2)) {}
  std::string answer;
  std::string leads_to;
};

/// The stream works, and records and seals.
void serves(Scene& scene, Stream& stream) {
  CHECK(stream.fill(scene.z, 5).executed_cleanly());
  CHECK(stream.sync().ok());
  CHECK(stream.read(scene.z).value() == four(5));
  OpenWindow next = stream.record().value();
  CHECK(stream.fill(scene.z, 6).executed_cleanly());
  CHECK(next.seal().ok());
  CHECK(stream.fill(scene.z, 5).executed_cleanly());
  CHECK(stream.sync().ok());
}

/// What the window, as the call left it, can still do.
void goes_on(Scene& scene, const Cell& cell) {
  const bool refused = cell.answer != "yes";
  if (scene.window && !scene.watched->over()) {
    OpenWindow& window = *scene.window;
    if (scene.watched->state() == WindowState::prepared) {
      CHECK(window.begin().ok());
      if (!refused) {  // what ran would have to be recorded (C15)
        window.abort();
      } else {
        CHECK(scene.origin->fill(scene.y, 4).executed_cleanly());
        CHECK(window.seal().ok());
      }
    } else if (scene.watched->state() == WindowState::recording) {
      CHECK(scene.stream().fill(scene.z, 4).executed_cleanly());
      if (scene.member) {
        REQUIRE(scene.origin->wait(scene.member->record_event().value()).ok());
      }
      const Result<Recording> recorded = window.seal({.allow_empty = true});
      CHECK_MESSAGE(recorded.ok(), recorded.error().text());
    } else {
      CHECK(scene.stream().fill(scene.z, 4).executed_cleanly());
      const Result<Recording> never = window.seal();
      REQUIRE_FALSE(never.ok());
      CHECK(never.error().kind() == ErrorKind::window_doomed);
      if (scene.state == State::doomed) {
        CHECK(says(never.error(), "a frame was lost"));  // C6
        CHECK(says(never.error(), "once more") == (cell.leads_to == "doomed"));
      }
    }
    CHECK(scene.watched->over());
  }
  for (std::optional<Stream>* const each : {&scene.member, &scene.origin}) {
    if (*each && !(*each)->capturing()) serves(scene, **each);
  }
  serves(scene, scene.rig.stream);
}

void check_cell(StreamKind kind, const Row& row, std::size_t column) {
  const std::string cell_text = row.cells[column];
  CAPTURE(std::string(row.call));
  CAPTURE(std::string(kStates[column]));
  CAPTURE(cell_text);
  if (cell_text == "-") return;
  const Cell cell(cell_text);
  Scene scene(kind, static_cast<State>(column));
  const Snapshot before = scene.look();
  Result<void> answer;
  if (scene.state == State::inside) {
    const auto body = ExecuteScope<Stream>::over(*scene.origin, intern_kernel_name("around"),
                                                 WriteSet(), Where::here())
                          .execute([&](Stream&) -> Result<void> {
                            answer = row.make(scene);
                            return {};
                          });
    CHECK(body.executed_cleanly());
    static_cast<void>(scene.origin->capturing());  // a window that was left ends when it is asked
  } else {
    answer = row.make(scene);
  }
  const std::string told = answer.ok() ? "yes" : std::string(name_of(answer.error().kind()));
  CHECK_MESSAGE(told == cell.answer, (answer.ok() ? "" : answer.error().text()));
  Snapshot after = scene.look();
  if (scene.watched) {
    const std::string expected =
        cell.leads_to.empty() ? std::string(name_of(*before.window)) : cell.leads_to;
    CHECK(name_of(scene.watched->state()) == expected);
  }
  // C8: what is recorded changes nothing either.
  if ((!answer.ok() || records(scene.state)) && cell.leads_to.empty()) CHECK(after == before);
  if (cell.leads_to == "doomed") {
    after.window = before.window;
    after.heard = before.heard;
    after.live_failures = before.live_failures;  // the window knows of one more
    CHECK(after == before);
  }
  goes_on(scene, cell);
}

std::string rendered() {
  std::ostringstream text;
  text << "| call |";
  for (const char* const state : kStates) text << " " << state << " |";
  text << "\n|";
  for (std::size_t at = 0; at <= kStates.size(); ++at) text << " --- |";
  text << "\n";
  for (const Row& row : kTable) {
    text << "| " << row.call << " |";
    for (const char* const cell : row.cells) text << " " << cell << " |";
    text << "\n";
  }
  return text.str();
}

}  // namespace

TEST_CASE("B119: every call in every state is allowed, or is refused and has changed nothing") {
  for (const StreamKind kind : {StreamKind::inline_, StreamKind::worker}) {
    CAPTURE(static_cast<int>(kind));
    for (const Row& row : kTable) {
      for (std::size_t column = 0; column < kStates.size(); ++column) {
        check_cell(kind, row, column);
      }
    }
  }
}

TEST_CASE("B119: the table in docs/states.md is the one that is tested") {
  std::ifstream file(REFRAIN_STATES_DOCUMENT);
  REQUIRE(file.good());
  const std::string page((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const std::size_t begin = std::min(page.find("| call |"), page.size());
  const std::string table = page.substr(begin, page.find("\n\n", begin) + 1 - begin);
  CHECK_MESSAGE(table == rendered(), "The page has to have this table:\n", rendered());
}

TEST_CASE("B119: what a handle was moved from can be destroyed") {
  Scene scene(StreamKind::worker, State::recording);
  const Stream stream = std::move(*scene.origin);
  OpenWindow window = std::move(*scene.window);
  const Buffer<float> buffer = std::move(*scene.spare);
  const Instance step = std::move(*scene.step);
  const Recording recording = std::move(*scene.recording);
  const Plan plan = std::move(*scene.plan);
  scene.origin.reset();
  scene.window.reset();
  scene.spare.reset();
  scene.step.reset();
  scene.recording.reset();
  scene.plan.reset();
  CHECK(window.state() == WindowState::recording);
  window.abort();
}

}  // namespace refrain::test
