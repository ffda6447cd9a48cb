#include "model/program.hpp"

#include "model/kernels.hpp"
#include "refrain/capture/region.hpp"

namespace refrain::model {
namespace {

std::string number(char what, int id) { return what + std::to_string(id); }

std::string text(const ViewRef& view) {
  if (view.buffer < 0) return "View<u8>()";
  return number('b', view.buffer) + ".view(" + std::to_string(view.begin) + ", " +
         std::to_string(view.size) + ")";
}

std::string tag_of(int tag) {
  if (tag == kFails) return "kFails";
  if (tag == kThrows) return "kThrows";
  return std::to_string(tag);
}

std::string role_of(int role) { return "Role::" + std::string(name_of(static_cast<Role>(role))); }

std::string text(const Op& op) {
  const std::string s = number('s', op.s);
  const std::string n = std::to_string(op.n);
  const std::string loose = op.ordered ? "" : "  // as it comes";
  switch (op.kind) {
    case OpKind::allocate:
      return "auto " + number('b', op.id) + " = device.buffer(" + n + ", " + role_of(op.m) +
             ", start " + std::to_string(op.a) + ");";
    case OpKind::free: return "free(" + number('b', op.id) + ");";
    case OpKind::stream:
      return "auto " + number('s', op.id) + " = device.stream(" +
             (op.n != 0 ? "worker" : "inline_") + ");";
    case OpKind::end_stream: return "destroy(" + s + ");";
    case OpKind::launch:
    case OpKind::launch_extent: {
      std::string all = s + ".launch(";
      all += name_of(static_cast<KernelKind>(op.n));
      if (op.kind == OpKind::launch_extent) all += ", grid in " + text(op.views[2]);
      if (op.a == 1 && op.kind == OpKind::launch) all += ", no threads";
      for (std::size_t at = 0; at < uses_of(static_cast<KernelKind>(op.n)).size(); ++at) {
        all += ", " + text(op.views[at]);
      }
      return all + ", tag " + tag_of(op.m) + ");" + loose;
    }
    case OpKind::copy:
      return s + ".copy(" + text(op.views[0]) + ", " + text(op.views[1]) + ");" + loose;
    case OpKind::fill: return s + ".fill(" + text(op.views[0]) + ", " + n + ");" + loose;
    case OpKind::write:
      return s + ".write(" + text(op.views[0]) + ", values from " + tag_of(op.n) +
             (op.m != 0 ? ", too many" : "") + ");";
    case OpKind::failed_write: return s + ".failed_write(" + text(op.views[0]) + ", " + n + ");";
    case OpKind::read: return s + ".read(" + text(op.views[0]) + ");";
    case OpKind::check: return "device.check(" + text(op.views[0]) + ");";
    case OpKind::sync: return s + ".sync();";
    case OpKind::look: return "look at everything;";
    case OpKind::hold: return "hold(" + s + ");";
    case OpKind::release: return "release(" + s + ");";
    case OpKind::record_event: return "auto " + number('e', op.id) + " = " + s + ".record_event();";
    case OpKind::wait_event: return s + ".wait(" + number('e', op.a) + ");";
    case OpKind::host_wait: return number('e', op.a) + ".wait();";
    case OpKind::reached: return number('e', op.a) + ".reached();";
    case OpKind::nest: {
      static constexpr const char* kEndings[] = {"well", "by an error", "by an exception",
                                                 "dropped"};
      std::string all = "ExecuteScope::";
      all += op.n != 0 ? "launching(" : "over(";
      all += s + ", writes " + text(op.views[0]);
      if (op.n != 0) all += ", reads " + text(op.views[1]) + " and " + text(op.views[2]);
      return all + "), which ends " + kEndings[op.m] +
             (op.m == 1 && op.a != 0 ? ", handing on a skip" : "") + " {";
    }
    case OpKind::end: return "}";
    case OpKind::reuses: return s + ".reuses(" + text(op.views[0]) + ");";
    case OpKind::prepare: return "auto w" + s + " = " + s + ".prepare();";
    case OpKind::warm_up:
      return "auto w" + s + " = " + s + ".prepare(at most " + n + " passes" +
             (op.m != 0 ? ", ends by an error" : "") + ") {";
    case OpKind::begin: return "w" + s + ".begin();";
    case OpKind::record: return "auto w" + s + " = " + s + ".record();";
    case OpKind::seal:
      return "auto " + number('r', op.id) + " = w" + s + ".seal(" +
             (op.n != 0 ? "allow_empty" : "") +
             (op.m != 0 ? ", " + role_of(op.m) + " for " + text(op.views[0]) : "") + ");" + loose;
    case OpKind::abort: return "w" + s + ".abort();";
    case OpKind::drop: return "drop(w" + s + ");";
    case OpKind::first_use:
      return s + ".first_use(\"tuning\", " + (op.n != 0 ? "fails" : "succeeds") + ");";
    case OpKind::load: return "device.kernel(extra_" + std::to_string(op.n % 2) + ");";
    case OpKind::instance:
      return "auto " + number('i', op.id) + " = instance(" + number('r', op.a) + ");";
    case OpKind::plan: {
      static constexpr const char* kHow[] = {"", ", through memory", ", through a file"};
      return "auto " + number('p', op.id) + " = Plan::prepare(" + number('r', op.a) + ".graph()" +
             kHow[op.n] + ");";
    }
    case OpKind::plan_instance:
      return "auto " + number('i', op.id) + " = " + number('p', op.a) + ".instance();";
    case OpKind::locate:
      return "auto " + number('b', op.id) + " = " + number('i', op.a) + ".view(\"b" + n + "\");";
    case OpKind::bind:
      return number('i', op.a) + ".bind(\"b" + n + "\", " + text(op.views[0]) +
             (op.m != 0 ? ", as f32" : "") + ");";
    case OpKind::replay:
      return number('i', op.a) + ".replay(" + s + (op.n != 0 ? ", unchecked" : "") + ");" + loose;
    case OpKind::reset: return number('i', op.a) + ".reset(" + s + ");" + loose;
    case OpKind::drop_recording: return "drop(" + number('r', op.a) + ");";
    case OpKind::drop_plan: return "drop(" + number('p', op.a) + ");";
    case OpKind::drop_instance: return "drop(" + number('i', op.a) + ");";
  }
  return "?";
}

}  // namespace

const char* name_of(OpKind kind) {
  switch (kind) {
    case OpKind::allocate: return "allocate";
    case OpKind::free: return "free";
    case OpKind::stream: return "stream";
    case OpKind::end_stream: return "end_stream";
    case OpKind::launch: return "launch";
    case OpKind::launch_extent: return "launch_extent";
    case OpKind::copy: return "copy";
    case OpKind::fill: return "fill";
    case OpKind::write: return "write";
    case OpKind::failed_write: return "failed_write";
    case OpKind::read: return "read";
    case OpKind::check: return "check";
    case OpKind::sync: return "sync";
    case OpKind::look: return "look";
    case OpKind::hold: return "hold";
    case OpKind::release: return "release";
    case OpKind::record_event: return "record_event";
    case OpKind::wait_event: return "wait_event";
    case OpKind::host_wait: return "host_wait";
    case OpKind::reached: return "reached";
    case OpKind::nest: return "nest";
    case OpKind::end: return "end";
    case OpKind::reuses: return "reuses";
    case OpKind::prepare: return "prepare";
    case OpKind::warm_up: return "warm_up";
    case OpKind::begin: return "begin";
    case OpKind::record: return "record";
    case OpKind::seal: return "seal";
    case OpKind::abort: return "abort";
    case OpKind::drop: return "drop";
    case OpKind::first_use: return "first_use";
    case OpKind::load: return "load";
    case OpKind::instance: return "instance";
    case OpKind::plan: return "plan";
    case OpKind::plan_instance: return "plan_instance";
    case OpKind::locate: return "locate";
    case OpKind::bind: return "bind";
    case OpKind::replay: return "replay";
    case OpKind::reset: return "reset";
    case OpKind::drop_recording: return "drop_recording";
    case OpKind::drop_plan: return "drop_plan";
    case OpKind::drop_instance: return "drop_instance";
  }
  return "?";
}

std::string text(const Program& program) {
  std::string all = program.checks ? "" : "checks = false;\n";
  std::size_t depth = 0;
  for (const Op& op : program.ops) {
    if (op.kind == OpKind::end && depth > 0) --depth;
    all += std::string(2 * depth, ' ') + text(op) + "\n";
    if (op.kind == OpKind::nest || op.kind == OpKind::warm_up) ++depth;
  }
  return all;
}

}  // namespace refrain::model
