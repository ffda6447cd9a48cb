#include "cubin.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "elf.hpp"
#include "refrain/base/text.hpp"

namespace refrain::cuda {
namespace {

constexpr std::string_view kInfo = ".nv.info";
constexpr std::string_view kKernelInfo = ".nv.info.";
constexpr std::string_view kShared = ".nv.shared.";
constexpr std::string_view kToolNote = ".note.nv.tkinfo";

constexpr std::uint8_t kKernelSymbol = 0x10;  // in a symbol's st_other

/// Set aside by the driver at the start of every block's shared memory from sm_90 on, and counted
/// in the section.
constexpr std::uint64_t kReservedShared = 1024;
constexpr std::uint32_t kReservesShared = 90;

// How a record holds its value: its length follows, or it has none of its own.
constexpr std::uint8_t kSmallestFormat = 1;
constexpr std::uint8_t kSized = 4;

// Records of a kernel, with the bytes that each has.
constexpr std::uint8_t kMaxThreads = 0x05;        // 12: x, y, z
constexpr std::uint8_t kParameterBank = 0x0A;     // 8: symbol, u16 offset, u16 bytes
constexpr std::uint8_t kRequiredBlock = 0x10;     // 12: x, y, z
constexpr std::uint8_t kParameter = 0x17;         // 12: index, u16 ordinal, u16 offset, packed
constexpr std::uint8_t kRegisters = 0x2F;         // 8: symbol, count; in the section for all
constexpr std::uint8_t kCluster = 0x3D;           // 12: x, y, z
constexpr std::uint8_t kMaxClusterBlocks = 0x3F;  // 4
constexpr std::uint8_t kLargeParameter = 0x45;    // 12: as kParameter, the size in the low half
constexpr std::uint32_t kPackedSizeShift = 18;
constexpr std::uint16_t kNotInBuffer = 0xFFFF;  // the offset of a texture, sampler or surface

struct InfoRecord {
  std::uint8_t attribute = 0;
  Bytes value;  // of a sized record
};

/// The records of one section, one after another.
class InfoRecords {
 public:
  explicit InfoRecords(const Section& section) noexcept : section_(section), left_(section.bytes) {}

  [[nodiscard]] bool done() const noexcept { return left_.empty(); }

  Result<InfoRecord> next() {
    if (left_.size() < 4) return damaged_here("ends within a record");
    const auto format = load<std::uint8_t>(left_, 0);
    const InfoRecord plain{load<std::uint8_t>(left_, 1), {}};
    const auto size = load<std::uint16_t>(left_, 2);
    if (format < kSmallestFormat || format > kSized) {
      return damaged_here("has a record of the unknown format " + std::to_string(format));
    }
    left_ = left_.subspan(4);
    if (format != kSized) return plain;
    if (size > left_.size()) {
      return damaged_here("has a record of " + std::to_string(size) + " bytes past its end");
    }
    const InfoRecord sized{plain.attribute, left_.first(size)};
    left_ = left_.subspan(size);
    return sized;
  }

  Error damaged_here(const std::string& what) const {
    return damaged("The section " + quote(section_.name) + " " + what + ", before its byte " +
                   std::to_string(section_.bytes.size() - left_.size()) + ".");
  }

 private:
  const Section& section_;
  Bytes left_;
};

/// How many bytes a record that is read has; 0 for the others.
std::size_t bytes_of(std::uint8_t attribute) noexcept {
  switch (attribute) {
    case kMaxThreads:
    case kRequiredBlock:
    case kParameter:
    case kCluster:
    case kLargeParameter: return 12;
    case kParameterBank: return 8;
    case kMaxClusterBlocks: return 4;
    default: return 0;
  }
}

KernelImage::Extent extent_of(Bytes value) noexcept {
  return {load<std::uint32_t>(value, 0), load<std::uint32_t>(value, 4),
          load<std::uint32_t>(value, 8)};
}

class CubinReader {
 public:
  CubinReader(Elf elf, Budget& budget) : elf_(std::move(elf)), budget_(budget), kernels_(budget) {}

  Result<CodeObject> read() {
    auto architecture = read_architecture();
    if (!architecture) return std::move(architecture).error();
    architecture_ = *architecture;
    REFRAIN_TRY(find_sections());
    REFRAIN_TRY(read_registers());
    for (const FunctionSymbol& function : elf_.functions) {
      if ((function.other & kKernelSymbol) != 0) REFRAIN_TRY(read_kernel(function));
    }
    auto kernels = std::move(kernels_).finish();
    if (!kernels) return std::move(kernels).error();
    CodeObject object;
    object.architecture = architecture_;
    object.kernels = *std::move(kernels);
    return object;
  }

 private:
  using Ordinal = std::pair<std::uint16_t, KernelParameter>;

  Result<Architecture> read_architecture() const;
  char noted_suffix(const std::string& architecture) const;
  Result<void> find_sections();
  Result<void> read_registers();
  Result<void> read_kernel(const FunctionSymbol& function);
  Result<void> read_records(const Section& section, KernelImage& kernel,
                            std::vector<Ordinal>& parameters) const;
  std::uint64_t static_shared_bytes(const std::string& kernel) const;

  Elf elf_;
  Budget& budget_;
  KernelGathering kernels_;
  Architecture architecture_;
  std::map<std::string_view, const Section*> sections_;  // those that are looked for by name
  std::map<std::uint32_t, std::uint32_t> registers_;     // by symbol
};

Result<Architecture> CubinReader::read_architecture() const {
  Architecture architecture;
  switch (elf_.abi) {
    case 7:  // CUDA 12
      architecture.number = elf_.flags & 0xFFU;
      if ((elf_.flags & 0x800U) != 0) architecture.suffix = 'a';
      break;
    case 8:  // CUDA 13, and 12 for sm_100 and later
      architecture.number = (elf_.flags >> 8U) & 0xFFU;
      architecture.suffix =
          (elf_.flags & 0x8U) != 0 ? 'a' : noted_suffix(text(architecture));  // 13 sets no flag
      break;
    default:
      return Error(ErrorKind::file_version, "The cubin is of the ELF ABI " +
                                                std::to_string(elf_.abi) +
                                                ", and this version of refrain reads 7 and 8.");
  }
  return architecture;
}

/// Where the header does not tell the suffix, the options of the assembler, in a note, do.
char CubinReader::noted_suffix(const std::string& architecture) const {
  const auto note = std::find_if(elf_.sections.begin(), elf_.sections.end(),
                                 [](const Section& each) { return each.name == kToolNote; });
  if (note == elf_.sections.end() || note->bytes.empty()) return 0;
  const std::string_view options(reinterpret_cast<const char*>(note->bytes.data()),
                                 note->bytes.size());
  const std::string option = "-arch " + architecture;
  const auto found = options.find(option);
  if (found == std::string_view::npos || found + option.size() == options.size()) return 0;
  const char suffix = options[found + option.size()];
  return suffix == 'a' || suffix == 'f' ? suffix : '\0';
}

Result<void> CubinReader::find_sections() {
  std::vector<const Section*> read;
  for (const Section& section : elf_.sections) {
    const bool is_info =
        section.name == kInfo || section.name.substr(0, kKernelInfo.size()) == kKernelInfo;
    const bool is_shared = section.name.substr(0, kShared.size()) == kShared;
    if (!is_info && !is_shared) continue;
    if (!sections_.emplace(section.name, &section).second) {
      return damaged("The cubin has two sections " + quote(section.name) + ".");
    }
    if (is_info) read.push_back(&section);
  }
  return refuse_overlap(std::move(read));
}

Result<void> CubinReader::read_registers() {
  const auto info = sections_.find(kInfo);
  if (info == sections_.end()) return {};
  InfoRecords records(*info->second);
  while (!records.done()) {
    const auto record = records.next();
    if (!record) return record.error();
    if (record->attribute != kRegisters) continue;
    if (record->value.size() != 8) {
      return records.damaged_here("has a record of the registers of a kernel that is not 8 bytes");
    }
    registers_[load<std::uint32_t>(record->value, 0)] = load<std::uint32_t>(record->value, 4);
  }
  return {};
}

Result<void> CubinReader::read_kernel(const FunctionSymbol& function) {
  auto begun = kernels_.begin(function.name);
  if (!begun) return std::move(begun).error();
  KernelImage& kernel = *begun;
  const auto section = sections_.find(std::string(kKernelInfo) + kernel.name);
  if (section == sections_.end()) {
    return damaged("Kernel " + quote(kernel.name) + " has no section " +
                   quote(std::string(kKernelInfo) + kernel.name) + ".");
  }
  std::vector<Ordinal> parameters;
  REFRAIN_TRY(read_records(*section->second, kernel, parameters));

  std::sort(parameters.begin(), parameters.end(),
            [](const Ordinal& a, const Ordinal& b) { return a.first < b.first; });
  for (const auto& [ordinal, parameter] : parameters) {
    if (ordinal != kernel.parameters.size()) {
      return damaged("Kernel " + quote(kernel.name) + " has " + std::to_string(parameters.size()) +
                     " parameters, and none or two of them are number " +
                     std::to_string(kernel.parameters.size()) + ".");
    }
    kernel.parameters.push_back(parameter);
  }
  if (const auto found = registers_.find(function.index); found != registers_.end()) {
    kernel.registers = found->second;
  }
  kernel.static_shared_bytes = static_shared_bytes(kernel.name);
  return kernels_.add(std::move(kernel));
}

Result<void> CubinReader::read_records(const Section& section, KernelImage& kernel,
                                       std::vector<Ordinal>& parameters) const {
  InfoRecords records(section);
  while (!records.done()) {
    const auto record = records.next();
    if (!record) return record.error();
    const Bytes value = record->value;
    const std::size_t expected = bytes_of(record->attribute);
    if (expected == 0) continue;
    if (value.size() != expected) {
      return records.damaged_here("has a record " + std::to_string(record->attribute) + " of " +
                                  std::to_string(value.size()) + " bytes in place of " +
                                  std::to_string(expected));
    }
    switch (record->attribute) {
      case kMaxThreads:
        kernel.max_threads = threads_of(extent_of(value));
        if (!kernel.max_threads) return records.damaged_here("allows more threads than can be");
        break;
      case kRequiredBlock: kernel.required_block = extent_of(value); break;
      case kCluster: kernel.cluster = extent_of(value); break;
      case kMaxClusterBlocks: kernel.max_cluster_blocks = load<std::uint32_t>(value, 0); break;
      case kParameterBank: kernel.parameter_bytes = load<std::uint16_t>(value, 6); break;
      default: {
        const auto offset = load<std::uint16_t>(value, 6);
        if (offset == kNotInBuffer) {
          return Error(ErrorKind::file_version, "Kernel " + quote(kernel.name) +
                                                    " has a texture, sampler or surface as a "
                                                    "parameter, which is not read.");
        }
        if (parameters.size() == budget_.limits.parameters) {
          return Error(ErrorKind::file_limit, "Kernel " + quote(kernel.name) +
                                                  " has more parameters than the limit of " +
                                                  std::to_string(budget_.limits.parameters) + ".");
        }
        const std::uint32_t size = record->attribute == kParameter
                                       ? load<std::uint32_t>(value, 8) >> kPackedSizeShift
                                       : load<std::uint16_t>(value, 8);
        parameters.emplace_back(load<std::uint16_t>(value, 4), KernelParameter{offset, size});
      }
    }
  }
  return {};
}

std::uint64_t CubinReader::static_shared_bytes(const std::string& kernel) const {
  const auto section = sections_.find(std::string(kShared) + kernel);
  if (section == sections_.end()) return 0;
  const std::uint64_t size = section->second->size;
  if (architecture_.number < kReservesShared || size < kReservedShared) return size;
  return size - kReservedShared;
}

}  // namespace

Result<CodeObject> read_cubin(Bytes bytes, Budget& budget) {
  auto elf = read_elf(bytes);
  if (!elf) return std::move(elf).error();
  return CubinReader(*std::move(elf), budget).read();
}

}  // namespace refrain::cuda
