// What a file holds and where: the MANIFEST section as plain values, its references checked.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "container.hpp"
#include "refrain/base/result.hpp"
#include "refrain/capture/portable_code.hpp"
#include "refrain/serialize/load_limits.hpp"

namespace refrain::format {

/// The sections of one capture, by their index in the table.
struct CaptureSections {
  std::uint32_t capture = 0;
  std::uint32_t regions = 0;
  std::uint32_t nodes = 0;
};

/// A code image, by its section in the table.
struct CodeSection {
  std::uint32_t section = 0;
  CodeKind kind = CodeKind::cubin;
};

struct Contents {
  std::string producer;
  std::uint32_t symbols = 0;
  std::vector<std::string> names;         ///< Of the captures, each once.
  std::vector<CaptureSections> captures;  ///< One a name.
  std::vector<CodeSection> code;
};

/// Reads the manifest; refuses a file that requires a feature that this version does not know, or
/// whose captures are none, share a name, or lie in sections of another kind.
Result<Contents> read_manifest(const VerifiedContainer& container, const LoadLimits& limits);

}  // namespace refrain::format
