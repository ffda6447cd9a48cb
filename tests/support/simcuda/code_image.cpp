// From an image to what the simulation keeps of it. The reader of refrain itself finds the kernels,
// so the simulation believes the same layouts that the library does; a real driver is what both are
// compared with on a GPU.
#include "refrain/cuda/code_image.hpp"

#include <algorithm>
#include <cstring>
#include <regex>
#include <span>
#include <string>

#include "simcuda/code.hpp"
#include "simcuda/device.hpp"

namespace sim {
namespace {

using refrain::cuda::CodeImage;
using refrain::cuda::CodeObject;
using refrain::cuda::ObjectKind;

// The first bytes of each kind that is no text; a text may be shorter than they are.
constexpr char kElf[] =
    "\x7f"
    "ELF";
constexpr char kFatbin[] = "\x50\xED\x55\xBA";
/// What nvcc puts around a fatbin: a pointer to it follows.
constexpr char kFatbinWrapper[] = "\xB1\x43\x62\x46";

bool begins_with(const void* image, const char* mark) {
  return std::strncmp(static_cast<const char*>(image), mark, 4) == 0;
}

template <class T>
T read_at(const void* image, std::size_t offset) {
  T value{};
  std::memcpy(&value, static_cast<const std::byte*>(image) + offset, sizeof value);
  return value;
}

/// Where the furthest part of an ELF file ends, as its section headers tell.
std::size_t elf_bytes(const void* image) {
  const auto headers = read_at<std::uint64_t>(image, 40);
  const std::size_t each = read_at<std::uint16_t>(image, 58);
  const std::size_t count = read_at<std::uint16_t>(image, 60);
  constexpr std::uint32_t kNoBytes = 8;  // a section that takes room in memory only
  std::size_t end = headers + each * count;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t at = headers + i * each;
    if (read_at<std::uint32_t>(image, at + 4) == kNoBytes) continue;
    const auto offset = read_at<std::uint64_t>(image, at + 24);
    const auto bytes = read_at<std::uint64_t>(image, at + 32);
    end = std::max<std::size_t>(end, offset + bytes);
  }
  return end;
}

std::span<const std::byte> bytes_of(const void* image) {
  std::size_t bytes = 0;
  if (begins_with(image, kElf)) {
    bytes = elf_bytes(image);
  } else if (begins_with(image, kFatbin)) {
    bytes = read_at<std::uint16_t>(image, 6) + read_at<std::uint64_t>(image, 8);
  } else {
    bytes = std::strlen(static_cast<const char*>(image));
  }
  return {static_cast<const std::byte*>(image), bytes};
}

/// The newest PTX that a driver compiles: 84 for CUDA 12.4, 90 for 13.0.
std::uint32_t newest_ptx(int driver_version) {
  return static_cast<std::uint32_t>((driver_version / 1000 - 4) * 10 + driver_version % 1000 / 10);
}

/// Whether a text has a statement of one bare word that is no instruction: all that is checked of
/// the bodies, which are not compiled.
bool has_nonsense(const std::string& text) {
  static const std::regex kBareWord(R"([;{}]\s*([A-Za-z_]\w*)\s*;)");
  static const std::regex kInstruction("ret|exit|trap|brkpt");
  for (std::sregex_iterator at(text.begin(), text.end(), kBareWord), end; at != end; ++at) {
    if (!std::regex_match((*at)[1].str(), kInstruction)) return true;
  }
  return false;
}

/// The variables of a PTX text that are integers, or arrays of them.
std::vector<Variable> variables_of(const std::string& text) {
  static const std::regex kVariable(
      R"(\.global\s+(?:\.align\s+\d+\s+)?\.[usbf](8|16|32|64)\s+(\w+)\s*(?:\[\s*(\d+)\s*\])?\s*(?:=([^;]*))?;)");
  static const std::regex kNumber(R"(-?(0[xX][0-9a-fA-F]+|\d+))");
  std::vector<Variable> variables;
  for (std::sregex_iterator at(text.begin(), text.end(), kVariable), end; at != end; ++at) {
    const std::smatch& match = *at;
    const std::size_t width = std::stoul(match[1].str()) / 8;
    const std::size_t count = match[3].matched ? std::stoul(match[3].str()) : 1;
    Variable variable{match[2].str(), std::vector<std::byte>(width * count), 0};
    const std::string values = match[4].str();
    std::size_t offset = 0;
    for (std::sregex_iterator each(values.begin(), values.end(), kNumber);
         each != end && offset < variable.initial.size(); ++each, offset += width) {
      const auto value = std::stoll(each->str(), nullptr, 0);
      std::memcpy(variable.initial.data() + offset, &value, width);  // little-endian
    }
    variables.push_back(std::move(variable));
  }
  return variables;
}

Entry entry_of(const refrain::cuda::KernelImage& kernel) {
  Entry entry;
  entry.name = kernel.name;
  for (const auto& each : kernel.parameters) entry.parameters.push_back({each.offset, each.size});
  entry.parameter_bytes = kernel.parameter_bytes;
  if (kernel.max_threads) {
    entry.max_threads = static_cast<int>(std::min<std::uint64_t>(*kernel.max_threads, 1024));
  }
  if (kernel.registers) entry.registers = static_cast<int>(*kernel.registers);
  entry.static_shared_bytes = static_cast<int>(kernel.static_shared_bytes.value_or(0));
  return entry;
}

/// Every kernel that the device would run, once.
void keep_kernels(const CodeImage& image, Code& to) {
  for (const CodeObject& object : image.objects) {
    for (const auto& kernel : object.kernels) {
      const bool known = std::any_of(to.entries.begin(), to.entries.end(),
                                     [&](const Entry& each) { return each.name == kernel.name; });
      if (known) continue;
      const auto found = find_kernel(image, kernel.name, kComputeCapability);
      if (found) to.entries.push_back(entry_of(**found));
    }
  }
}

CUresult check_ptx(const Driver& driver, const CodeObject& object, const std::string& text) {
  if (object.ptx_version > newest_ptx(driver.version)) return CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
  return has_nonsense(text) ? CUDA_ERROR_INVALID_PTX : CUDA_SUCCESS;
}

}  // namespace

CUresult read_image(const Driver& driver, const void* image, Code& to) {
  if (image == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (begins_with(image, kFatbinWrapper)) image = read_at<const void*>(image, 8);
  const bool text = !begins_with(image, kElf) && !begins_with(image, kFatbin);
  const auto bytes = bytes_of(image);
  if (bytes.empty()) return CUDA_ERROR_INVALID_IMAGE;
  const auto parsed = refrain::cuda::parse_code_image(bytes);
  if (!parsed) return text ? CUDA_ERROR_INVALID_PTX : CUDA_ERROR_INVALID_IMAGE;
  if (parsed->kind == refrain::cuda::ImageKind::ptx) {
    const std::string source(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    const CUresult code = check_ptx(driver, parsed->objects.front(), source);
    if (code != CUDA_SUCCESS) return code;
    to.variables = variables_of(source);
  }
  keep_kernels(*parsed, to);
  to.ptx_version = static_cast<int>(newest_ptx(driver.version));
  to.binary_version = kComputeCapability;
  for (const CodeObject& object : parsed->objects) {
    if (object.ptx_version != 0) to.ptx_version = static_cast<int>(object.ptx_version);
  }
  const bool has_kernels =
      std::any_of(parsed->objects.begin(), parsed->objects.end(),
                  [](const CodeObject& each) { return !each.kernels.empty() || each.compressed; });
  return to.entries.empty() && has_kernels ? CUDA_ERROR_NO_BINARY_FOR_GPU : CUDA_SUCCESS;
}

}  // namespace sim
