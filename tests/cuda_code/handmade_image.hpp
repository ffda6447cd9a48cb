// Code images made by hand from docs/cuda.md, byte by byte and with none of the library's own code,
// so that tests need no compiler for CUDA and can break any one thing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "refrain/cuda/code_image.hpp"

namespace refrain::test {

/// `bytes` lowest bytes of `value`, lowest first.
std::string little_endian(std::uint64_t value, std::size_t bytes);
/// Writes such a number over what is there.
void put(std::string& image, std::size_t at, std::uint64_t value, std::size_t bytes);
std::uint64_t get(const std::string& image, std::size_t at, std::size_t bytes);

/// A record of `.nv.info` with a value.
std::string record(unsigned attribute, std::string_view value);
std::string parameter(unsigned ordinal, unsigned offset, unsigned size);
std::string large_parameter(unsigned ordinal, unsigned offset, unsigned size, unsigned high_half);
std::string parameter_bank(unsigned bytes);
std::string extent(unsigned attribute, unsigned x, unsigned y, unsigned z);

struct HandmadeSection {
  std::string name;
  std::uint32_t type = 0x70000000;
  std::string bytes;
  std::uint64_t size_without_bytes = 0;  // of a section without bytes in the file
};

struct HandmadeSymbol {
  std::string name;
  unsigned info = 0x12;
  unsigned other = 0x10;
  unsigned section = 1;
};

/// A cubin. Its section table is at its end: names of sections, names of symbols, symbols, and then
/// `sections`, which begin at index 4.
struct HandmadeCubin {
  std::uint8_t abi = 8;
  std::uint32_t flags = 90U << 8U;
  std::vector<HandmadeSection> sections;
  std::vector<HandmadeSymbol> symbols;

  HandmadeCubin& kernel(const std::string& name, const std::string& records);
  [[nodiscard]] std::string image() const;
};

/// Where the entry of a section begins in a cubin.
std::size_t section_entry(const std::string& cubin, std::size_t index);

/// saxpy(8@0, 8@8, 4@16) for sm_90, with a few attributes.
HandmadeCubin saxpy_cubin();
extern const std::string_view kSaxpyPtx;

struct HandmadeEntry {
  unsigned kind = 2;
  unsigned sm = 90;
  std::uint64_t flags = 0x11;
  std::string payload;
  unsigned header_bytes = 64;
};

std::string fatbin(const std::vector<HandmadeEntry>& entries);

Result<cuda::CodeImage> parse(std::string_view image, const cuda::CodeImageLimits& limits = {});

/// Whether everything that an image claims can be: what must hold for any bytes that are accepted.
bool is_sound(const cuda::CodeImage& image, std::size_t bytes);

}  // namespace refrain::test
