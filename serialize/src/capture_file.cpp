#include "refrain/serialize/capture_file.hpp"

#include <algorithm>
#include <utility>

#include "container.hpp"
#include "container_writer.hpp"
#include "file_bytes.hpp"
#include "graph_reader.hpp"
#include "graph_writer.hpp"
#include "manifest.hpp"
#include "new_file.hpp"
#include "refusal.hpp"

namespace refrain {

struct CaptureFile::Body {
  format::VerifiedContainer container;
  format::Contents contents;
  LoadLimits limits;
};

namespace {

/// The bytes of the file that holds `graph`; they live as long as both.
Result<std::vector<format::Piece>> lay_out(const SealedGraph& graph,
                                           format::ContainerWriter& writer) {
  REFRAIN_TRY(format::write_graph(graph, writer));
  std::vector<format::Piece> pieces = writer.finish();
  std::uint64_t bytes = 0;
  for (const format::Piece piece : pieces) bytes += piece.size();
  constexpr std::uint64_t kMost = LoadLimits{}.file_bytes;
  if (bytes > kMost) {
    return Error(ErrorKind::file_limit,
                 "The graph " + quote(graph.name()) + " takes " + std::to_string(bytes) +
                     " bytes in a file, more than the limit of " + std::to_string(kMost) + ".");
  }
  return pieces;
}

}  // namespace

Result<void> save(const SealedGraph& graph, const std::filesystem::path& path) {
  format::ContainerWriter writer;
  const Result<std::vector<format::Piece>> pieces = lay_out(graph, writer);
  if (!pieces.ok())
    return pieces.error().with_context("While saving " + quote(path.string()) + ".");
  Result<format::NewFile> file = format::NewFile::beside(path);
  if (!file.ok()) return std::move(file).error();
  for (const format::Piece piece : *pieces) REFRAIN_TRY(file->write(piece));
  return std::move(*file).commit();
}

Result<std::vector<std::byte>> encode(const SealedGraph& graph) {
  format::ContainerWriter writer;
  Result<std::vector<format::Piece>> pieces = lay_out(graph, writer);
  if (!pieces.ok()) return std::move(pieces).error();
  std::vector<std::byte> bytes;
  for (const format::Piece piece : *pieces) bytes.insert(bytes.end(), piece.begin(), piece.end());
  return bytes;
}

Result<CaptureFile> CaptureFile::open(const std::filesystem::path& path,
                                      const LoadOptions& options) {
  Result<SharedBytes> bytes = format::bytes_of(path, options.access, options.limits.file_bytes);
  if (!bytes.ok()) return std::move(bytes).error();
  return parse(std::move(*bytes), options.limits, path.string());
}

Result<CaptureFile> CaptureFile::parse(SharedBytes bytes, const LoadLimits& limits,
                                       std::string name) {
  Result<format::ParsedContainer> parsed =
      format::ParsedContainer::parse(std::move(bytes), std::move(name), limits);
  if (!parsed.ok()) return std::move(parsed).error();
  Result<format::VerifiedContainer> verified = std::move(*parsed).verify();
  if (!verified.ok()) return std::move(verified).error();
  Result<format::Contents> contents = format::read_manifest(*verified, limits);
  if (!contents.ok()) return std::move(contents).error();
  return CaptureFile(
      std::make_shared<const Body>(Body{std::move(*verified), std::move(*contents), limits}));
}

const std::string& CaptureFile::name() const noexcept { return body_->container.file(); }

const std::string& CaptureFile::producer() const noexcept { return body_->contents.producer; }

std::span<const std::string> CaptureFile::captures() const noexcept {
  return body_->contents.names;
}

Result<SealedGraph> CaptureFile::graph() const {
  const std::size_t count = captures().size();
  if (count != 1) {
    return format::refuse_file(
        ErrorKind::invalid_argument, name(),
        "holds " + std::to_string(count) + " captures, so which one must be said.");
  }
  return read(0);
}

Result<SealedGraph> CaptureFile::graph(std::string_view capture) const {
  const auto found = std::find(captures().begin(), captures().end(), capture);
  if (found == captures().end()) {
    return format::refuse_file(ErrorKind::invalid_argument, name(),
                               "holds no capture " + quote(capture) + ".");
  }
  return read(static_cast<std::size_t>(found - captures().begin()));
}

Result<SealedGraph> CaptureFile::read(std::size_t capture) const {
  return format::read_graph(body_->container, body_->contents, capture, body_->limits);
}

}  // namespace refrain
