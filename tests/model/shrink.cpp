// Delta debugging (A. Zeller, 1999), as plain as it goes: whole stretches are left out, then single
// operations, then numbers become smaller, until nothing of that keeps the program wrong.
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <string>

#include "model/session.hpp"

namespace refrain::model {
namespace {

/// What depends on how threads meet is given some chances.
constexpr int kTries = 3;

bool still_wrong(const Program& program) {
  for (int tries = 0; tries < kTries; ++tries) {
    if (!run_apart(program).right()) return true;
  }
  return false;
}

bool drop_stretches(Program& program) {
  bool smaller = false;
  for (std::size_t length = program.ops.size() / 2; length != 0; length /= 2) {
    for (std::size_t from = 0; from < program.ops.size();) {
      Program tried = program;
      const auto begin = tried.ops.begin() + static_cast<std::ptrdiff_t>(from);
      const std::size_t rest = tried.ops.size() - from;
      tried.ops.erase(begin, begin + static_cast<std::ptrdiff_t>(length < rest ? length : rest));
      if (still_wrong(tried)) {
        program = std::move(tried);
        smaller = true;
      } else {
        from += length;
      }
    }
  }
  return smaller;
}

template <class Change>
bool try_change(Program& program, std::size_t at, Change change) {
  Program tried = program;
  change(tried.ops[at]);
  if (!still_wrong(tried)) return false;
  program = std::move(tried);
  return true;
}

bool simplify(Program& program) {
  bool simpler = false;
  for (std::size_t at = 0; at < program.ops.size(); ++at) {
    const Op op = program.ops[at];
    const bool work = op.kind == OpKind::launch || op.kind == OpKind::write ||
                      op.kind == OpKind::fill || op.kind == OpKind::allocate;
    if (!op.ordered) simpler |= try_change(program, at, [](Op& one) { one.ordered = true; });
    if (op.kind == OpKind::stream && op.n != 0) {
      simpler |= try_change(program, at, [](Op& one) { one.n = 0; });
    }
    if (op.kind == OpKind::nest && op.n != 0) {
      simpler |= try_change(program, at, [](Op& one) { one.n = 0; });
    }
    if (op.kind == OpKind::nest && op.m != 0) {
      simpler |= try_change(program, at, [](Op& one) { one.m = 0; });
    }
    if (work && op.kind != OpKind::allocate && op.m != 0) {
      simpler |= try_change(program, at, [](Op& one) { one.m = 0; });
    }
    if (op.kind == OpKind::allocate && op.n > 1) {
      simpler |= try_change(program, at, [](Op& one) { one.n /= 2; });
    }
    for (std::size_t view = 0; view < op.views.size(); ++view) {
      if (op.views[view].begin != 0) {
        simpler |= try_change(program, at, [&](Op& one) { one.views[view].begin = 0; });
      }
      if (op.views[view].size > 1) {
        simpler |= try_change(program, at, [&](Op& one) { one.views[view].size = 1; });
      }
    }
  }
  return simpler;
}

}  // namespace

Verdict run_apart(const Program& program) {
  int ends[2];
  if (pipe(ends) != 0) return {"no pipe"};
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    signal(SIGSEGV, SIG_DFL);  // and not doctest's handler
    signal(SIGABRT, SIG_DFL);
    const Verdict verdict = run(program);
    const std::string told =
        std::to_string(verdict.at) + " " + std::to_string(verdict.done) + " " + verdict.wrong;
    const bool written = write(ends[1], told.data(), told.size()) >= 0;
    _exit(written && verdict.right() ? 0 : 1);
  }
  close(ends[1]);
  std::string told;
  char part[4096];
  for (ssize_t got = 0; (got = read(ends[0], part, sizeof(part))) > 0;) {
    told.append(part, static_cast<std::size_t>(got));
  }
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  Verdict verdict;
  if (WIFSIGNALED(status)) {
    verdict.wrong = "the process was ended by signal " + std::to_string(WTERMSIG(status));
    verdict.at = program.ops.size();
    return verdict;
  }
  char* rest = told.data();
  verdict.at = std::strtoull(rest, &rest, 10);
  verdict.done = std::strtoull(rest, &rest, 10);
  if (WEXITSTATUS(status) != 0) verdict.wrong = *rest != 0 ? rest + 1 : "the process failed";
  return verdict;
}

Program shrink(Program program) {
  const Verdict verdict = run_apart(program);
  if (verdict.at + 1 < program.ops.size()) {
    Program tried = program;
    tried.ops.resize(verdict.at + 1);
    if (still_wrong(tried)) program = std::move(tried);
  }
  for (int round = 0; round < 6; ++round) {
    const bool smaller = drop_stretches(program);
    const bool simpler = simplify(program);
    if (!smaller && !simpler) break;
  }
  return program;
}

}  // namespace refrain::model
