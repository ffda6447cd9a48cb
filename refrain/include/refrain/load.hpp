// From a file to something that can be replayed, in one call.
#pragma once

#include <filesystem>
#include <utility>

#include "refrain/replay/plan.hpp"
#include "refrain/serialize/capture_file.hpp"

namespace refrain {

/// Opens the capture file at `path`, checks all of it, and prepares its only graph for `device`,
/// which must have its kernels. Runs nothing. Constants stay in the mapped file, which must not be
/// cut or overwritten while the plan lives (`LoadOptions::access` can copy instead).
inline Result<Plan> load(const Device& device, const std::filesystem::path& path,
                         const LoadOptions& options = {}) {
  const Result<CaptureFile> file = CaptureFile::open(path, options);
  if (!file.ok()) return file.error();
  Result<SealedGraph> graph = file->graph();
  if (!graph.ok()) return std::move(graph).error();
  Result<Plan> plan = Plan::prepare(device, *std::move(graph));
  if (plan.ok()) return plan;
  return plan.error().with_context("While loading \"" + path.string() + "\".");
}

}  // namespace refrain
