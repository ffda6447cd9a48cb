// Capture files: a sealed graph with everything that it needs but kernels of the host, on disk.
// Another process, with another address layout, opens the file and has the same graph.
// docs/format.md says what the bytes mean.
//
// What must stay true: a file is untrusted input. A `CaptureFile` exists only when header, table
// and every digest have been checked, and a `SealedGraph` comes out of it only when the whole of
// its structure has; nothing in between can be left out. A digest says that a file is whole, not
// who made it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "refrain/base/result.hpp"
#include "refrain/base/shared_bytes.hpp"
#include "refrain/capture/sealed_graph.hpp"
#include "refrain/serialize/load_limits.hpp"

namespace refrain {

/// Writes `graph` to `path`, replacing what is there. The bytes go into a new file beside `path`,
/// which is synced and then renamed: whatever happens, `path` is the old file or the new one, and
/// after an error the old one (unless only the sync of the folder failed, which the error says).
/// The same graph gives the same bytes. Refuses a graph that is not portable, with the reasons.
Result<void> save(const SealedGraph& graph, const std::filesystem::path& path);

/// The bytes that `save` would write.
Result<std::vector<std::byte>> encode(const SealedGraph& graph);

/// How the bytes of a file come into memory.
enum class FileAccess : std::uint8_t {
  /// Mapped, so that constants are used where they lie. A file that somebody cuts or overwrites
  /// while it is mapped ends the process or changes its constants; `save` does neither.
  mapped,
  copied,  ///< Read into memory; what happens to the file later does not matter.
};

struct LoadOptions {
  LoadLimits limits{};
  FileAccess access = FileAccess::mapped;
};

/// A capture file that is whole. Immutable; safe to share; copying shares.
class CaptureFile {
 public:
  /// Opens the file at `path`, a regular file, and checks all of it against its digests.
  static Result<CaptureFile> open(const std::filesystem::path& path,
                                  const LoadOptions& options = {});

  /// The same of bytes in memory, which are shared and not copied. Errors call them `name`.
  static Result<CaptureFile> parse(SharedBytes bytes, const LoadLimits& limits = {},
                                   std::string name = "memory");

  /// What errors call it: the path that it was opened by.
  [[nodiscard]] const std::string& name() const noexcept;
  /// The program that wrote it, such as "refrain 0.1.0".
  [[nodiscard]] const std::string& producer() const noexcept;
  /// The names of the graphs that it holds, each once, at least one.
  [[nodiscard]] std::span<const std::string> captures() const noexcept;

  /// Reads the only graph of a file that holds one, checking the whole of its structure. Constants
  /// and starts are shared with the file's bytes, which stay alive as long as the graph; they are
  /// copied only where they do not lie at their region's alignment.
  [[nodiscard]] Result<SealedGraph> graph() const;
  /// Reads the graph of that name.
  [[nodiscard]] Result<SealedGraph> graph(std::string_view capture) const;

 private:
  struct Body;
  explicit CaptureFile(std::shared_ptr<const Body> body) noexcept : body_(std::move(body)) {}
  [[nodiscard]] Result<SealedGraph> read(std::size_t capture) const;

  std::shared_ptr<const Body> body_;
};

}  // namespace refrain
