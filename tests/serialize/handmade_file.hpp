// Capture files made by hand from docs/format.md, with none of the library's own code: their
// digests are right and everything else is what a test wants it to be.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace refrain::test {

/// A protobuf message as its bytes. As proto3 does, it leaves out a number that is zero and bytes
/// that are empty.
class Wire {
 public:
  Wire& number(unsigned field, std::uint64_t value);
  Wire& bytes(unsigned field, std::string_view value);
  /// A message in a message, which is there even when it is empty.
  Wire& message(unsigned field, const Wire& value);
  Wire& packed(unsigned field, const std::vector<std::uint64_t>& values);

  [[nodiscard]] const std::string& text() const noexcept { return text_; }

 private:
  std::string text_;
};

std::string varint(std::uint64_t value);

/// Each behind its length.
std::string delimited(const std::vector<Wire>& records);

// The numbers of docs/format.md.
inline constexpr std::uint32_t kManifestSection = 1;
inline constexpr std::uint32_t kCaptureSection = 2;
inline constexpr std::uint32_t kRegionsSection = 3;
inline constexpr std::uint32_t kNodesSection = 4;
inline constexpr std::uint32_t kSymbolsSection = 5;
inline constexpr std::uint32_t kConstSection = 6;
inline constexpr std::uint32_t kCodeSection = 7;

struct HandmadeSection {
  std::uint32_t kind = 0;
  std::uint64_t count = 1;
  std::string bytes;
  std::uint32_t flags = 1;
  std::uint32_t alignment = 8;
  std::uint32_t digest_kind = 1;
  std::string reserved = std::string(24, '\0');
};

struct HandmadeContainer {
  std::uint16_t major = 1;
  std::uint16_t minor = 0;
  std::uint32_t flags = 0;
  std::uint32_t header_bytes = 64;
  std::vector<HandmadeSection> sections;

  /// The file, its digests right.
  [[nodiscard]] std::vector<std::byte> file() const;
};

/// Writes the header's digest anew, after a test has changed header or table.
void seal_header(std::vector<std::byte>& file);

/// A file with one capture. As made, it holds `small_graph()`.
struct HandmadeCapture {
  HandmadeCapture();

  std::string producer = "by hand";
  std::vector<std::string> required_features;
  std::string name = "step";
  std::vector<Wire> kernels;
  std::vector<Wire> regions;
  std::vector<Wire> nodes;
  std::vector<std::uint64_t> used_kernels{0};
  std::uint64_t region_count = 5;
  std::uint64_t node_count = 3;
  std::uint64_t argument_count = 7;
  std::uint64_t dependency_count = 3;
  std::uint64_t parameter_bytes = 28;
  std::string constants;
  std::vector<std::string> code;  ///< Images; of kind 1, unless `manifest_code` says otherwise.
  std::vector<Wire> manifest_code;

  [[nodiscard]] HandmadeContainer container() const;
  [[nodiscard]] std::vector<std::byte> file() const { return container().file(); }
};

/// As the manifest tells of a code image in a section.
Wire code_object(std::string_view bytes, std::uint32_t kind, std::uint32_t section);
Wire parameter(std::uint32_t offset, std::uint32_t size, std::uint32_t alignment,
               std::uint32_t kind, std::uint32_t direction, std::uint32_t element);
Wire argument(std::uint32_t relocation, std::uint32_t offset, std::uint32_t direction,
              std::uint32_t region, std::uint64_t begin, std::uint64_t size);
Wire region(std::string_view name, std::uint32_t role, std::uint64_t bytes,
            std::uint32_t alignment = 64);

/// Fields of a node's call.
inline constexpr unsigned kKernelField = 2;
inline constexpr unsigned kCopyField = 3;
inline constexpr unsigned kFillField = 4;

Wire node(std::uint32_t id, unsigned call_field, const Wire& call,
          const std::vector<std::uint64_t>& dependencies, const std::vector<Wire>& arguments);
/// A launch of one thread.
Wire launch(std::uint32_t kernel, std::string_view block);
Wire fill(std::uint32_t pattern, std::uint32_t width);

}  // namespace refrain::test
