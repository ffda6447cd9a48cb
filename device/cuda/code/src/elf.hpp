// The parts of a 64-bit ELF file that a cubin's kernels stand in: sections with names, and symbols.
// Nothing is believed before it is checked, and no range is read that another one shares, so that
// reading costs no more than the file is long.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "image_bytes.hpp"
#include "refrain/base/result.hpp"

namespace refrain::cuda {

struct Section {
  std::string_view name;
  std::uint32_t type = 0;
  std::uint32_t link = 0;
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
  Bytes bytes;  ///< Nothing for one that has no bytes in the file.
};

/// A function of the symbol table.
struct FunctionSymbol {
  std::string_view name;
  std::uint32_t index = 0;  ///< In the symbol table.
  std::uint8_t other = 0;
};

struct Elf {
  std::uint8_t abi = 0;
  std::uint32_t flags = 0;
  std::vector<Section> sections;
  std::vector<FunctionSymbol> functions;  ///< Those that are defined here.
};

inline constexpr std::uint32_t kElfMagic = 0x464C457F;
inline constexpr std::uint32_t kNoBitsSection = 8;

/// Refuses what is no 64-bit ELF file for CUDA (`file_foreign`) and one that is damaged.
Result<Elf> read_elf(Bytes bytes);

/// Refuses sections of `read` that share bytes of the file.
Result<void> refuse_overlap(std::vector<const Section*> read);

}  // namespace refrain::cuda
