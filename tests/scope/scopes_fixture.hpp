// A table with one stream, for a test case to derive from. When the case ends every buffer goes,
// and then nothing may be left: no failure (M2), and no write set out of its pool (O8).
#pragma once

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "scope/scope_server.hpp"

namespace refrain::test {

// NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding): it holds a stream
class Scopes {
 public:
  Scopes() = default;
  Scopes(const Scopes&) = delete;
  Scopes& operator=(const Scopes&) = delete;
  ~Scopes() {
    for (const BufferId buffer : buffers_) table.remove(buffer);
    CHECK_MESSAGE(table.live_failures() == 0, "a failure outlives every byte that carried it");
    CHECK_MESSAGE(stream.pool().idle() == stream.pool().total(), "a write set is still out");
  }

  BufferId buffer(std::string name, std::uint64_t size = 16, bool unwritten = false) {
    buffers_.push_back(table.add(std::move(name), size, this, unwritten));
    return buffers_.back();
  }

  /// Whether `binding` is known to carry nothing.
  [[nodiscard]] bool clean(const BufferBinding& binding) { return !table.check(binding); }
  /// What `binding` carries; that it carries something is asserted.
  [[nodiscard]] Error carried(const BufferBinding& binding) {
    std::optional<Error> error = table.check(binding);
    REQUIRE(error.has_value());
    return *std::move(error);
  }
  /// Makes `binding` carry a failure with `message`, as failed work does.
  FailureId fail(const BufferBinding& binding, std::string message,
                 std::string_view kernel = "broken") {
    static_cast<void>(over(stream, {binding}, kernel).execute(fails(std::move(message))));
    stream.log.clear();
    return carried(binding).failure();
  }

  FailureTable table{1};
  ScopeServer stream{table, StreamId(7)};

 private:
  std::vector<BufferId> buffers_;
};

/// The entries of `log` of one kind, of which there must be exactly one.
inline LogEntry only(const Log& log, Heard what) {
  const std::vector<LogEntry> all = log.of(what);
  REQUIRE(all.size() == 1);
  return all.front();
}

}  // namespace refrain::test
