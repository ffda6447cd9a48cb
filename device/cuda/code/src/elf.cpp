#include "elf.hpp"

#include <algorithm>
#include <cstring>
#include <set>
#include <string>
#include <string_view>

#include "kernel_gathering.hpp"
#include "refrain/base/text.hpp"

namespace refrain::cuda {
namespace {

constexpr std::uint64_t kHeaderBytes = 64;
constexpr std::uint64_t kSectionBytes = 64;
constexpr std::uint64_t kSymbolBytes = 24;
constexpr std::uint8_t kClass64 = 2;
constexpr std::uint8_t kLowestFirst = 1;
constexpr std::uint16_t kCudaMachine = 190;
constexpr std::uint16_t kReservedIndex = 0xFF00;
constexpr std::uint32_t kSymbolTable = 2;
constexpr std::uint32_t kStringTable = 3;
constexpr std::uint8_t kFunction = 2;

Error foreign(const std::string& what) { return Error(ErrorKind::file_foreign, what); }

/// Reads the strings of a table, and no more of them than an honest file has: many that end in the
/// same long tail would cost the square of the file.
class Strings {
 public:
  Strings(Bytes table, std::uint64_t most) noexcept : table_(table), left_(most) {}

  Result<std::string_view> at(std::uint64_t offset, std::string_view whose) {
    if (offset >= table_.size()) {
      return damaged("The name of a " + std::string(whose) + " stands at byte " +
                     std::to_string(offset) + " of a table of " + std::to_string(table_.size()) +
                     " bytes.");
    }
    const Bytes tail = table_.subspan(offset);
    const void* const end = std::memchr(tail.data(), 0, tail.size());
    if (end == nullptr) return damaged("The name of a " + std::string(whose) + " has no end.");
    const std::string_view name(reinterpret_cast<const char*>(tail.data()));
    if (name.size() > left_) {
      return damaged("The names of its " + std::string(whose) +
                     "s are longer than the file together.");
    }
    left_ -= name.size();
    return name;
  }

 private:
  Bytes table_;
  std::uint64_t left_;
};

Result<void> check_header(Bytes bytes) {
  if (bytes.size() < kHeaderBytes) {
    return damaged("The cubin ends at byte " + std::to_string(bytes.size()) +
                   ", within its header.");
  }
  if (load<std::uint32_t>(bytes, 0) != kElfMagic) return damaged("The cubin is no ELF file.");
  if (load<std::uint8_t>(bytes, 4) != kClass64 || load<std::uint8_t>(bytes, 5) != kLowestFirst) {
    return foreign("This is an ELF file, but not one of 64 bits with the lowest byte first.");
  }
  if (const auto machine = load<std::uint16_t>(bytes, 18); machine != kCudaMachine) {
    return foreign("This is an ELF file for machine " + std::to_string(machine) + ", and CUDA is " +
                   std::to_string(kCudaMachine) + ".");
  }
  return {};
}

Result<Section> read_section(Bytes bytes, Bytes entry, std::uint64_t index) {
  Section section;
  section.type = load<std::uint32_t>(entry, 4);
  section.offset = load<std::uint64_t>(entry, 24);
  section.size = load<std::uint64_t>(entry, 32);
  section.link = load<std::uint32_t>(entry, 40);
  if (section.type == kNoBitsSection || index == 0) return section;
  const auto inside = slice(bytes, section.offset, section.size);
  if (!inside) {
    return damaged("Section " + std::to_string(index) + " has " + std::to_string(section.size) +
                   " bytes from byte " + std::to_string(section.offset) +
                   " on, past the end of the cubin at " + std::to_string(bytes.size()) + ".");
  }
  section.bytes = *inside;
  return section;
}

Result<std::vector<Section>> read_sections(Bytes bytes) {
  const auto table_at = load<std::uint64_t>(bytes, 40);
  const auto entry_bytes = load<std::uint16_t>(bytes, 58);
  const auto count = load<std::uint16_t>(bytes, 60);
  const auto names_index = load<std::uint16_t>(bytes, 62);
  if (count >= kReservedIndex || (count == 0 && table_at != 0)) {
    return Error(ErrorKind::file_limit,
                 "The cubin has more than " + std::to_string(kReservedIndex - 1) + " sections.");
  }
  if (entry_bytes != kSectionBytes) {
    return damaged("The cubin says that an entry of its section table has " +
                   std::to_string(entry_bytes) + " bytes, which cannot be.");
  }
  const auto table = slice(bytes, table_at, count * kSectionBytes);
  if (!table) {
    return damaged("The table of " + std::to_string(count) + " sections at byte " +
                   std::to_string(table_at) + " is past the end of the cubin at " +
                   std::to_string(bytes.size()) + ".");
  }
  std::vector<Section> sections;
  sections.reserve(count);
  for (std::uint64_t at = 0; at < count; ++at) {
    auto section = read_section(bytes, table->subspan(at * kSectionBytes, kSectionBytes), at);
    if (!section) return std::move(section).error();
    sections.push_back(*section);
  }
  if (names_index >= count || sections[names_index].type != kStringTable) {
    return damaged("The names of its sections are to be in section " + std::to_string(names_index) +
                   ", which is no table of strings.");
  }
  Strings names(sections[names_index].bytes, 2 * std::uint64_t{bytes.size()});
  for (std::uint64_t at = 1; at < count; ++at) {
    auto name = names.at(load<std::uint32_t>(*table, at * kSectionBytes), "section");
    if (!name) return std::move(name).error();
    sections[at].name = *name;
  }
  return sections;
}

Result<std::vector<FunctionSymbol>> read_functions(const std::vector<Section>& sections,
                                                   std::uint64_t file_bytes) {
  const auto is_table = [](const Section& each) { return each.type == kSymbolTable; };
  // Section 0 stands for "none": whatever it says of itself, its bytes were not looked at.
  const auto first = sections.empty() ? sections.begin() : sections.begin() + 1;
  const auto table = std::find_if(first, sections.end(), is_table);
  std::vector<FunctionSymbol> functions;
  if (table == sections.end()) return functions;
  if (std::find_if(table + 1, sections.end(), is_table) != sections.end()) {
    return damaged("The cubin has two symbol tables.");
  }
  if (table->size % kSymbolBytes != 0) {
    return damaged("The symbol table has " + std::to_string(table->size) +
                   " bytes, which is no number of whole symbols.");
  }
  if (table->link == 0 || table->link >= sections.size() ||
      sections[table->link].type != kStringTable) {
    return damaged("The names of its symbols are to be in section " + std::to_string(table->link) +
                   ", which is no table of strings.");
  }
  const Section& strings = sections[table->link];
  REFRAIN_TRY(refuse_overlap({&*table, &strings}));
  Strings names(strings.bytes, file_bytes);
  std::set<std::string_view> seen;
  for (std::uint64_t at = 0; at < table->size; at += kSymbolBytes) {
    const Bytes symbol = table->bytes.subspan(at, kSymbolBytes);
    const bool is_function = (load<std::uint8_t>(symbol, 4) & 0xFU) == kFunction;
    const bool is_defined = load<std::uint16_t>(symbol, 6) != 0;
    if (!is_function || !is_defined) continue;
    auto name = names.at(load<std::uint32_t>(symbol, 0), "symbol");
    if (!name) return std::move(name).error();
    // Refused here, before anybody reads the records of one kernel once for each of its symbols.
    const bool is_kernel = (load<std::uint8_t>(symbol, 5) & 0x10U) != 0;
    if (is_kernel && !seen.insert(*name).second) {
      return damaged("Kernel " + quote(*name) + " is defined twice in one object.");
    }
    functions.push_back(
        {*name, static_cast<std::uint32_t>(at / kSymbolBytes), load<std::uint8_t>(symbol, 5)});
  }
  return functions;
}

}  // namespace

Result<Elf> read_elf(Bytes bytes) {
  REFRAIN_TRY(check_header(bytes));
  auto sections = read_sections(bytes);
  if (!sections) return std::move(sections).error();
  auto functions = read_functions(*sections, bytes.size());
  if (!functions) return std::move(functions).error();

  Elf elf;
  elf.abi = load<std::uint8_t>(bytes, 8);
  elf.flags = load<std::uint32_t>(bytes, 48);
  elf.sections = *std::move(sections);
  elf.functions = *std::move(functions);
  return elf;
}

Result<void> refuse_overlap(std::vector<const Section*> read) {
  std::sort(read.begin(), read.end(),
            [](const Section* a, const Section* b) { return a->offset < b->offset; });
  const Section* before = nullptr;
  for (const Section* const section : read) {
    if (section->bytes.empty()) continue;
    if (before != nullptr && section->offset < before->offset + before->size) {
      return damaged("The sections " + quote(before->name) + " and " + quote(section->name) +
                     " share bytes of the cubin, from byte " + std::to_string(section->offset) +
                     " on.");
    }
    before = section;
  }
  return {};
}

}  // namespace refrain::cuda
