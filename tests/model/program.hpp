// A random program over the public interface, as a value: it can be printed, run again and made
// smaller. Operations name what they use by numbers that other operations gave out; one that names
// what is not there does nothing, so a program stays a program whatever is taken out of it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace refrain::model {

enum class OpKind : std::uint8_t {
  // Memory and streams.
  allocate,    // id, n bytes, of role m; `a` seeds a start
  free,        // id
  stream,      // id, a worker when n
  end_stream,  // s
  // Work.
  launch,         // s, kernel n, tag m, views; no threads when a is 1
  launch_extent,  // the same with the grid in the last view
  copy,           // s, to the first view from the second
  fill,           // s, view, value n
  write,          // s, view, values from n on, m bytes too many
  failed_write,   // s, view
  read,           // s, view
  check,          // view
  sync,           // s
  look,           // everything that can be asked
  // Held workers and order.
  hold,          // s
  release,       // s
  record_event,  // s, id
  wait_event,    // s waits on a
  host_wait,     // a
  reached,       // a
  // Scopes of the program's own, up to `end`.
  nest,    // s, writes the first view, reads the others; looks first when n; ends as m says
  end,     //
  reuses,  // s, view
  // Windows.
  prepare,    // s
  warm_up,    // s, with the body up to `end`, n passes at most
  begin,      // s
  record,     // s
  seal,       // s, id; allows an empty one when n; says role m of the first view
  abort,      // s
  drop,       // s
  first_use,  // s, refused by its body when n
  load,       // kernel n, for the first time perhaps
  // Recordings, plans, instances.
  instance,        // id, of recording a
  plan,            // id, of recording a; through a file when n
  plan_instance,   // id, of plan a
  locate,          // id, of the region of buffer n of instance a
  bind,            // the region of buffer n of instance a to the view; as another element when m
  replay,          // instance a on s; does not look at inputs when n
  reset,           // instance a on s
  drop_recording,  // a
  drop_plan,       // a
  drop_instance,   // a
};

/// Bytes of a buffer. A negative number of a buffer is a view that was never made from one.
struct ViewRef {
  int buffer = 0;
  std::uint32_t begin = 0;
  std::uint32_t size = 0;
};

/// How a scope of the program's own ends.
enum class Ending : std::uint8_t { clean, error, exception, dropped };

struct Op {
  OpKind kind = OpKind::look;
  int s = 0;
  int id = 0;
  int a = 0;
  int n = 0;
  int m = 0;
  /// Whether events are put between this and what it conflicts with, where there are none.
  bool ordered = true;
  std::array<ViewRef, 3> views{};
};

struct Program {
  bool checks = true;
  std::vector<Op> ops;
};

const char* name_of(OpKind kind);

/// As lines of C++, more or less.
std::string text(const Program& program);

/// The program of `seed`; about `size` operations.
Program generate(std::uint64_t seed, std::size_t size);

}  // namespace refrain::model
