#include "handmade_image.hpp"

namespace refrain::test {

std::string little_endian(std::uint64_t value, std::size_t bytes) {
  std::string text;
  for (std::size_t at = 0; at < bytes; ++at) {
    text += static_cast<char>((value >> (8 * at)) & 0xFFU);
  }
  return text;
}

void put(std::string& image, std::size_t at, std::uint64_t value, std::size_t bytes) {
  image.replace(at, bytes, little_endian(value, bytes));
}

std::uint64_t get(const std::string& image, std::size_t at, std::size_t bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes; i > 0; --i) {
    value = value << 8U | static_cast<unsigned char>(image.at(at + i - 1));
  }
  return value;
}

std::string record(unsigned attribute, std::string_view value) {
  return '\4' + little_endian(attribute, 1) + little_endian(value.size(), 2) + std::string(value);
}

std::string parameter(unsigned ordinal, unsigned offset, unsigned size) {
  return record(0x17, little_endian(0, 4) + little_endian(ordinal, 2) + little_endian(offset, 2) +
                          little_endian(size << 18U | 0x1F000U, 4));
}

std::string large_parameter(unsigned ordinal, unsigned offset, unsigned size, unsigned high_half) {
  return record(0x45, little_endian(0, 4) + little_endian(ordinal, 2) + little_endian(offset, 2) +
                          little_endian(size, 2) + little_endian(high_half, 2));
}

std::string parameter_bank(unsigned bytes) {
  return record(0x0A, little_endian(7, 4) + little_endian(0x210, 2) + little_endian(bytes, 2));
}

std::string extent(unsigned attribute, unsigned x, unsigned y, unsigned z) {
  return record(attribute, little_endian(x, 4) + little_endian(y, 4) + little_endian(z, 4));
}

HandmadeCubin& HandmadeCubin::kernel(const std::string& name, const std::string& records) {
  symbols.push_back({name});
  sections.push_back({".nv.info." + name, 0x70000000, records});
  return *this;
}

std::string HandmadeCubin::image() const {
  std::string symbol_names(1, '\0');
  std::string table(24, '\0');
  for (const HandmadeSymbol& symbol : symbols) {
    table += little_endian(symbol_names.size(), 4) + little_endian(symbol.info, 1) +
             little_endian(symbol.other, 1) + little_endian(symbol.section, 2) +
             std::string(16, '\0');
    symbol_names += symbol.name + '\0';
  }
  std::vector<HandmadeSection> all{
      {".shstrtab", 3, ""}, {".strtab", 3, symbol_names}, {".symtab", 2, table}};
  all.insert(all.end(), sections.begin(), sections.end());
  std::string names(1, '\0');
  std::vector<std::size_t> names_at;
  for (const HandmadeSection& section : all) {
    names_at.push_back(names.size());
    names += section.name + '\0';
  }
  all.front().bytes = names;

  std::string bytes(64, '\0');
  std::string entries(64, '\0');
  for (std::size_t at = 0; at < all.size(); ++at) {
    const HandmadeSection& section = all[at];
    const bool has_bytes = section.type != 8;
    entries += little_endian(names_at[at], 4) + little_endian(section.type, 4) +
               std::string(16, '\0') + little_endian(bytes.size(), 8) +
               little_endian(has_bytes ? section.bytes.size() : section.size_without_bytes, 8) +
               little_endian(section.type == 2 ? 2 : 0, 4) + std::string(20, '\0');
    bytes += section.bytes;
  }
  bytes.replace(0, 4,
                "\x7F"
                "ELF");
  put(bytes, 4, 2, 1);
  put(bytes, 5, 1, 1);
  put(bytes, 6, 1, 1);
  put(bytes, 8, abi, 1);
  put(bytes, 16, 2, 2);
  put(bytes, 18, 190, 2);
  put(bytes, 40, bytes.size(), 8);
  put(bytes, 48, flags, 4);
  put(bytes, 58, 64, 2);
  put(bytes, 60, all.size() + 1, 2);
  put(bytes, 62, 1, 2);
  return bytes + entries;
}

std::size_t section_entry(const std::string& cubin, std::size_t index) {
  return get(cubin, 40, 8) + 64 * index;
}

HandmadeCubin saxpy_cubin() {
  HandmadeCubin cubin;
  cubin.kernel("saxpy", parameter(2, 16, 4) + parameter(1, 8, 8) + parameter(0, 0, 8) +
                            extent(0x05, 128, 2, 1) + parameter_bank(20));
  cubin.sections.push_back(
      {".nv.info", 0x70000000, record(0x2F, little_endian(1, 4) + little_endian(24, 4))});
  cubin.sections.push_back({".nv.shared.saxpy", 8, "", 1024 + 512});
  return cubin;
}

const std::string_view kSaxpyPtx = R"(
.version 8.4
.target sm_90
.address_size 64
.visible .entry saxpy(
	.param .u64 saxpy_param_0,
	.param .u64 .ptr .global .align 1 saxpy_param_1,
	.param .f32 saxpy_param_2
)
.maxntid 128, 2
{
	ret;
}
)";

std::string fatbin(const std::vector<HandmadeEntry>& entries) {
  std::string all;
  for (const HandmadeEntry& entry : entries) {
    std::string header(entry.header_bytes, '\0');
    put(header, 0, entry.kind, 2);
    put(header, 2, 0x0101, 2);
    put(header, 4, entry.header_bytes, 4);
    put(header, 8, entry.payload.size(), 8);
    put(header, 28, entry.sm, 4);
    put(header, 40, entry.flags, 8);
    all += header + entry.payload;
  }
  return little_endian(0xBA55ED50, 4) + little_endian(1, 2) + little_endian(16, 2) +
         little_endian(all.size(), 8) + all;
}

Result<cuda::CodeImage> parse(std::string_view image, const cuda::CodeImageLimits& limits) {
  return cuda::parse_code_image(std::as_bytes(std::span(image)), limits);
}

bool is_sound(const cuda::CodeImage& image, std::size_t bytes) {
  for (const cuda::CodeObject& object : image.objects) {
    if (object.offset > bytes || object.size > bytes - object.offset) return false;
    for (const cuda::KernelImage& kernel : object.kernels) {
      std::uint64_t end = 0;
      for (const cuda::KernelParameter& parameter : kernel.parameters) {
        if (parameter.size == 0 || parameter.offset < end) return false;
        end = std::uint64_t{parameter.offset} + parameter.size;
      }
      if (kernel.name.empty() || end != kernel.parameter_bytes || end > 32'764) return false;
    }
  }
  return true;
}

}  // namespace refrain::test
