// Random programs. What is made here keeps rough books only, of what was asked for and not of what
// came of it: an operation that names what is not there does nothing.
#include <algorithm>
#include <random>

#include "model/kernels.hpp"
#include "model/program.hpp"
#include "refrain/capture/region.hpp"

namespace refrain::model {
namespace {

class Generator {
 public:
  Generator(std::uint64_t seed, std::size_t size) : random_(seed), size_(size) {
    program_.checks = below(8) != 0;
    fails_ = pick({0, 0, 3, 8, 20});
    bad_ = pick({0, 0, 2, 6});
    unordered_ = pick({0, 5, 30});
    windows_ = pick({0, 20, 60});
    holds_ = pick({0, 3, 8});
    nests_ = pick({0, 2, 4});
  }

  Program make() {
    for (int s = below(3) + 1; s > 0; --s) add_stream();
    for (int b = below(4) + 2; b > 0; --b) add_buffer();
    while (program_.ops.size() < size_) step();
    while (depth_ > 0) end();
    return std::move(program_);
  }

 private:
  struct OneBuffer {
    int id = 0;
    int size = 0;
    int named = 0;  // whose region it is
    bool constant = false;
  };

  int below(int limit) {
    return limit <= 0 ? 0 : static_cast<int>(random_() % static_cast<std::uint64_t>(limit));
  }
  bool in_100(int chance) { return below(100) < chance; }
  int pick(std::initializer_list<int> some) {
    return *(some.begin() + below(static_cast<int>(some.size())));
  }
  template <class T>
  T any(const std::vector<T>& all) {
    return all.empty() ? T{} : all[static_cast<std::size_t>(below(static_cast<int>(all.size())))];
  }
  Op& add(OpKind kind) {
    Op op;
    op.kind = kind;
    op.s = focus_ >= 0 && below(5) != 0 ? focus_ : any(streams_);
    op.ordered = !in_100(unordered_);
    return program_.ops.emplace_back(op);
  }

  void add_stream() {
    const int id = ++last_;
    streams_.push_back(id);
    Op& op = add(OpKind::stream);
    op.id = id;
    op.n = below(2);
    if (op.n != 0) workers_.push_back(id);
  }
  void add_buffer() {
    const int id = ++last_;
    Op& op = add(OpKind::allocate);
    op.id = id;
    op.n = pick({1, 4, 8, 8, 8, 12, 24});
    op.m = static_cast<int>(any(std::vector<Role>{Role::none, Role::none, Role::input, Role::input,
                                                  Role::input, Role::output, Role::state,
                                                  Role::state, Role::constant, Role::scratch}));
    op.a = below(3) == 0 ? 0 : below(150);
    buffers_.push_back({id, op.n, id, op.m == static_cast<int>(Role::constant)});
    const OneBuffer made = buffers_.back();
    if (below(3) != 0 && op.m != static_cast<int>(Role::constant)) {
      Op& written = add(OpKind::write);
      written.views[0] = {made.id, 0, static_cast<std::uint32_t>(made.size)};
      written.n = below(200);
    }
  }
  ViewRef view(bool written = false) {
    if (in_100(bad_) && below(3) == 0) return {-1, 0, 0};
    OneBuffer of = any(buffers_);
    while (written && of.constant && !in_100(bad_ + 1)) of = any(buffers_);
    const auto size = static_cast<std::uint32_t>(of.size);
    if (below(2) == 0) return {of.id, 0, size};
    const auto begin = static_cast<std::uint32_t>(below(of.size));
    auto count = static_cast<std::uint32_t>(below(of.size - static_cast<int>(begin)) + 1);
    if (in_100(bad_)) count += size;
    if (below(40) == 0) count = 0;
    return {of.id, begin, count};
  }
  /// As long as `other` and of another buffer, if there is such a one.
  ViewRef like(const ViewRef& other) {
    ViewRef made = view();
    for (int tries = 0; tries < 6; ++tries) {
      const OneBuffer of = any(buffers_);
      if (of.id == other.buffer || static_cast<std::uint32_t>(of.size) < other.size) continue;
      const std::uint32_t room = static_cast<std::uint32_t>(of.size) - other.size;
      made = {of.id, static_cast<std::uint32_t>(below(static_cast<int>(room) + 1)), other.size};
      break;
    }
    return made;
  }
  int tag() {
    if (!in_100(fails_)) return below(100);
    return below(2) == 0 ? kFails : kThrows;
  }

  void launch() {
    const bool extent = in_100(4);
    Op& op = add(extent ? OpKind::launch_extent : OpKind::launch);
    op.n = below(in_100(10) ? kKernels : 6);
    if (extent) op.n = below(3);
    op.m = tag();
    op.a = in_100(3) ? 1 : 0;
    const std::vector<Use> uses = uses_of(static_cast<KernelKind>(op.n));
    for (std::size_t at = 0; at < op.views.size(); ++at) {
      op.views[at] = view(at < uses.size() && uses[at] != Use::in);
    }
    if (extent && below(3) != 0) {
      for (const OneBuffer& buffer : buffers_) {
        if (buffer.size == 24) op.views[2] = {buffer.id, 0, 24};
      }
    }
  }
  void work() {
    switch (below(12)) {
      case 0:
      case 1: {
        Op& op = add(OpKind::copy);
        op.views[0] = view(true);
        op.views[1] = in_100(bad_) ? view() : like(op.views[0]);
        break;
      }
      case 2: {
        Op& op = add(OpKind::fill);
        op.views[0] = view(true);
        op.n = below(200);
        break;
      }
      case 3:
      case 4: {
        Op& op = add(OpKind::write);
        op.views[0] = view(true);
        op.n = in_100(fails_) ? tag() : below(200);
        op.m = in_100(bad_) ? 1 : 0;
        break;
      }
      case 5: {
        if (!in_100(3 * fails_)) break;
        Op& op = add(OpKind::failed_write);
        op.views[0] = view(true);
        op.n = ++last_;
        break;
      }
      default: launch();
    }
  }
  /// Good bytes everywhere.
  void mend() {
    for (const OneBuffer& each : std::vector<OneBuffer>(buffers_)) {
      if (each.constant) continue;
      Op& op = add(OpKind::write);
      op.views[0] = {each.id, 0, static_cast<std::uint32_t>(each.size)};
      op.n = below(190);
    }
  }
  /// Another stream joins the window of `s`.
  void fork(int s) {
    const int id = ++last_;
    Op& op = add(OpKind::record_event);
    op.s = s;
    op.id = id;
    add(OpKind::wait_event).a = id;
    program_.ops.back().s = any(streams_);
    members_.push_back(program_.ops.back().s);
  }
  void recorded(int s) {
    focus_ = members_.empty() || below(2) == 0 ? s : any(members_);
    if (in_100(12)) {
      fork(s);
    } else if (in_100(15)) {
      step();
    } else if (nests_ != 0 && in_100(15)) {
      nest();
    } else {
      work();
    }
    if (below(10) == 0) program_.ops.back().ordered = false;
  }
  void end() {
    add(OpKind::end);
    --depth_;
  }
  void nest() {
    if (depth_ >= 3) return;
    const int focus = focus_;
    Op& op = add(OpKind::nest);
    const int s = op.s;
    op.n = below(2);
    op.m = pick({0, 0, 0, in_100(fails_) ? 1 : 0, in_100(fails_) ? 2 : 0, in_100(fails_) ? 3 : 0});
    op.a = below(2);
    for (std::size_t at = 0; at < op.views.size(); ++at) op.views[at] = view(at == 0);
    const ViewRef writes = op.views[0];
    ++depth_;
    focus_ = s;
    for (int inside = below(5); inside > 0; --inside) step();
    if (below(2) == 0) {
      Op& whole = add(OpKind::launch);
      whole.s = s;
      whole.n = static_cast<int>(KernelKind::make);
      whole.views[0] = writes;
    } else if (below(3) == 0) {
      Op& whole = add(OpKind::reuses);
      whole.s = s;
      whole.views[0] = writes;
    }
    end();
    focus_ = focus;
  }
  void ask() {
    switch (below(6)) {
      case 0: add(OpKind::look); break;
      case 1: add(OpKind::sync); break;
      case 2: add(OpKind::check).views[0] = view(); break;
      default: add(OpKind::read).views[0] = view();
    }
  }
  void events() {
    switch (below(5)) {
      case 0:
      case 1: {
        Op& op = add(OpKind::record_event);
        op.id = ++last_;
        events_.push_back(op.id);
        if (below(2) == 0) {
          Op& wait = add(OpKind::wait_event);
          wait.s = any(streams_);
          wait.a = events_.back();
        }
        break;
      }
      case 2: add(OpKind::host_wait).a = any(events_); break;
      case 3: add(OpKind::reached).a = any(events_); break;
      default: add(OpKind::wait_event).a = any(events_);
    }
  }
  void hold() {
    Op& op = add(below(3) == 0 ? OpKind::release : OpKind::hold);
    op.s = any(workers_);
  }
  void window() {
    const int s = any(streams_);
    const int focus = focus_;
    focus_ = s;
    const int repeat = below(4);
    std::vector<Op> body;
    members_.clear();
    if (below(2) == 0) mend();
    focus_ = s;
    if (repeat <= 1) {  // a warm-up, by hand or with a body, and then the same again
      const std::size_t from = program_.ops.size() + 1;
      Op& op = add(repeat == 0 ? OpKind::prepare : OpKind::warm_up);
      op.s = s;
      op.n = below(3) + 1;
      if (in_100(fails_)) op.m = 1;
      if (repeat == 1) ++depth_;
      for (int inside = below(6) + 1; inside > 0; --inside) {
        in_100(4) ? first_use() : in_100(10) ? events() : work();
      }
      body.assign(program_.ops.begin() + static_cast<std::ptrdiff_t>(from), program_.ops.end());
      if (repeat == 1) end();
      add(OpKind::begin).s = s;
      if (in_100(10)) add(OpKind::begin).s = s;
    } else {
      add(OpKind::record).s = s;
    }
    if (in_100(70) && !body.empty()) {
      for (const Op& op : body) program_.ops.push_back(op);
    } else if (body.empty()) {
      for (int inside = below(9); inside > 0; --inside) recorded(s);
    }
    focus_ = focus;
    if (in_100(80)) end_window(s);
    open_.push_back(s);
  }
  void end_window(int s) {
    switch (below(10)) {
      case 0: add(OpKind::abort).s = s; return;
      case 1: add(OpKind::drop).s = s; return;
      default: break;
    }
    Op& op = add(OpKind::seal);
    op.s = s;
    op.id = ++last_;
    op.n = below(3) == 0 ? 1 : 0;
    if (in_100(20)) {
      op.m = pick({1, 2, 3, 4, 4, 5});
      op.views[0] = view();
    }
    recordings_.push_back(op.id);
    const int recording = op.id;
    if (below(3) != 0) make_instance(recording);
  }
  void first_use() {
    Op& op = add(below(2) == 0 ? OpKind::first_use : OpKind::load);
    op.n = op.kind == OpKind::load ? below(2) : (below(4) == 0 ? 1 : 0);
  }
  void make_instance(int recording) {
    const int id = ++last_;
    if (below(2) == 0) {
      Op& op = add(OpKind::instance);
      op.id = id;
      op.a = recording;
    } else {
      Op& plan = add(OpKind::plan);
      plan.id = ++last_;
      plan.a = recording;
      plan.n = in_100(4) ? 2 : below(2);
      plans_.push_back(plan.id);
      Op& op = add(OpKind::plan_instance);
      op.id = id;
      op.a = plans_.back();
      for (const OneBuffer& buffer : std::vector<OneBuffer>(buffers_)) give(id, buffer);
    }
    instances_.push_back(id);
    for (int more = below(7); more > 0; --more) below(3) == 0 ? step() : use(id);
  }
  /// Memory for one region of an instance: bound, or the instance's own.
  void give(int instance, const OneBuffer& region) {
    if (below(3) == 0) {
      Op& op = add(OpKind::locate);
      op.id = ++last_;
      op.a = instance;
      op.n = region.named;
      buffers_.push_back({op.id, region.size, region.named, region.constant});
      if (below(2) != 0) return;
      const int located = op.id;
      Op& write = add(OpKind::write);
      write.views[0] = {located, 0, static_cast<std::uint32_t>(region.size)};
      write.n = below(200);
      return;
    }
    Op& op = add(OpKind::bind);
    op.a = instance;
    op.n = region.named;
    op.m = in_100(bad_) ? 1 : 0;
    const ViewRef whole{region.id, 0, static_cast<std::uint32_t>(region.size)};
    op.views[0] = below(2) == 0 ? whole : in_100(bad_) ? view() : like(whole);
  }
  void use(int instance) {
    if (below(8) == 0) mend();
    if (in_100(2 * fails_)) {
      const OneBuffer of = any(buffers_);
      Op& op = add(OpKind::write);
      op.views[0] = {of.id, 0, static_cast<std::uint32_t>(of.size)};
      op.n = below(2) == 0 ? kFails : kThrows;
    }
    if (below(5) == 0) {
      add(OpKind::reset).a = instance;
    } else if (below(6) == 0) {
      give(instance, any(buffers_));
    } else {
      Op& op = add(OpKind::replay);
      op.a = instance;
      op.n = in_100(5) ? 1 : 0;
    }
  }
  void let_go() {
    switch (below(6)) {
      case 0: add(OpKind::drop_recording).a = any(recordings_); break;
      case 1: add(OpKind::drop_plan).a = any(plans_); break;
      case 2: add(OpKind::drop_instance).a = any(instances_); break;
      case 3: {
        if (below(3) != 0) break;
        const int s = any(streams_);
        add(OpKind::end_stream).s = s;
        if (streams_.size() > 1) std::erase(streams_, s);
        break;
      }
      default: {
        const int id = any(buffers_).id;
        add(OpKind::free).id = id;
        const bool kept = buffers_.size() < 3 || in_100(3 * bad_);
        if (!kept) std::erase_if(buffers_, [&](const OneBuffer& each) { return each.id == id; });
      }
    }
  }

  void step() {
    const int choice = below(100);
    if (choice < 46) {
      work();
    } else if (choice < 58) {
      ask();
    } else if (choice < 64) {
      events();
    } else if (choice < 64 + nests_) {
      nest();
    } else if (choice < 68 + holds_ && !workers_.empty()) {
      hold();
    } else if (choice < 78) {
      if (in_100(windows_) && depth_ == 0) window();
    } else if (choice < 80) {
      if (!open_.empty()) end_window(any(open_));
    } else if (choice < 91) {
      if (!instances_.empty()) {
        use(any(instances_));
        if (below(2) == 0) use(any(instances_));
      } else {
        work();
      }
    } else if (choice < 93) {
      if (!recordings_.empty()) make_instance(any(recordings_));
    } else if (choice < 95) {
      if (buffers_.size() < 12) add_buffer();
    } else if (choice < 96) {
      if (streams_.size() < 4) add_stream();
    } else if (choice < 97) {
      first_use();
    } else {
      let_go();
    }
  }

  std::mt19937_64 random_;
  std::size_t size_;
  Program program_;
  int fails_ = 0, bad_ = 0, unordered_ = 0, windows_ = 0, holds_ = 0, nests_ = 0;
  int last_ = 0;
  int depth_ = 0;
  int focus_ = -1;
  std::vector<int> streams_, workers_, members_, events_, open_, recordings_, plans_, instances_;
  std::vector<OneBuffer> buffers_;
};

}  // namespace

Program generate(std::uint64_t seed, std::size_t size) { return Generator(seed, size).make(); }

}  // namespace refrain::model
