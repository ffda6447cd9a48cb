#include "handmade_file.hpp"

#include <doctest/doctest.h>
#include <openssl/sha.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cstring>

#include "graphs.hpp"

namespace refrain::test {
namespace {

std::string little(std::uint64_t value, unsigned bytes) {
  std::string text;
  for (unsigned at = 0; at < bytes; ++at) text += static_cast<char>((value >> (8 * at)) & 0xFFU);
  return text;
}

std::string sha_256(std::string_view bytes) {
  std::string digest(32, '\0');
  SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(),
         reinterpret_cast<unsigned char*>(digest.data()));
  return digest;
}

std::string xxh3_128(std::string_view bytes) {
  XXH128_canonical_t canonical{};
  XXH128_canonicalFromHash(&canonical, XXH3_128bits(bytes.data(), bytes.size()));
  std::string digest(32, '\0');
  std::memcpy(digest.data(), canonical.digest, sizeof canonical.digest);
  return digest;
}

}  // namespace

std::string varint(std::uint64_t value) {
  std::string text;
  for (; value >= 0x80; value >>= 7U) text += static_cast<char>((value & 0x7FU) | 0x80U);
  return text + static_cast<char>(value);
}

Wire& Wire::number(unsigned field, std::uint64_t value) {
  if (value != 0) text_ += varint(field << 3U) + varint(value);
  return *this;
}

Wire& Wire::bytes(unsigned field, std::string_view value) {
  if (value.empty()) return *this;
  text_ += varint((field << 3U) | 2U) + varint(value.size());
  text_ += value;
  return *this;
}

Wire& Wire::message(unsigned field, const Wire& value) {
  text_ += varint((field << 3U) | 2U) + varint(value.text().size()) + value.text();
  return *this;
}

Wire& Wire::packed(unsigned field, const std::vector<std::uint64_t>& values) {
  std::string all;
  for (const std::uint64_t value : values) all += varint(value);
  return bytes(field, all);
}

std::string delimited(const std::vector<Wire>& records) {
  std::string all;
  for (const Wire& record : records) all += varint(record.text().size()) + record.text();
  return all;
}

std::vector<std::byte> HandmadeContainer::file() const {
  std::string table;
  std::string body;
  const std::uint64_t body_at = header_bytes + 96 * sections.size();
  for (const HandmadeSection& section : sections) {
    while ((body_at + body.size()) % section.alignment != 0) body += '\0';
    table += little(section.kind, 4) + little(section.flags, 4);
    table += little(body_at + body.size(), 8) + little(section.bytes.size(), 8);
    table += little(section.count, 8) + little(section.alignment, 4);
    table += little(section.digest_kind, 4);
    table += section.digest_kind == 2 ? sha_256(section.bytes) : xxh3_128(section.bytes);
    table += section.reserved;
    body += section.bytes;
  }
  std::string text("\x8CRFN\r\n\x1A\n", 8);
  text += little(major, 2) + little(minor, 2) + little(header_bytes, 4);
  text += little(body_at + body.size(), 8) + little(sections.size(), 4) + little(flags, 4);
  text += std::string(header_bytes - text.size(), '\0') + table + body;
  std::vector<std::byte> file(text.size());
  std::memcpy(file.data(), text.data(), text.size());
  seal_header(file);
  return file;
}

void seal_header(std::vector<std::byte>& file) {
  std::string text(file.size(), '\0');
  std::memcpy(text.data(), file.data(), file.size());
  const auto number = [&](std::size_t at) {
    std::uint64_t value = 0;
    for (std::size_t i = 4; i-- > 0;)
      value = value << 8U | static_cast<unsigned char>(text[at + i]);
    return value;
  };
  std::fill_n(text.begin() + 32, 32, '\0');
  const std::uint64_t covered = number(12) + 96 * number(24);
  REQUIRE(covered <= text.size());
  const std::string digest = sha_256(std::string_view(text).substr(0, covered));
  std::memcpy(file.data() + 32, digest.data(), digest.size());
}

HandmadeCapture::HandmadeCapture() {
  // ParameterKind: 1 view, 2 scalar. Direction: 1 in, 2 out, 3 in and out. ElementType: 9 f32.
  kernels = {Wire()
                 .bytes(1, "mix")
                 .number(2, 3)
                 .number(3, 28)
                 .message(4, parameter(0, 8, 8, 1, 1, 9))
                 .message(4, parameter(8, 8, 8, 1, 3, 9))
                 .message(4, parameter(16, 8, 8, 1, 2, 9))
                 .message(4, parameter(24, 4, 4, 2, 0, 9))};
  // Role: 1 input, 2 output, 3 state, 4 constant, 5 scratch.
  regions = {region("x", 1, 64), region("y", 2, 64), region("h", 3, 64).message(7, Wire()),
             region("", 5, 64), region("w", 4, 32).message(8, Wire().number(1, 5).number(2, 0))};
  std::string block(28, '\0');
  block[24] = '\x80';
  block[27] = '\x3F';
  nodes = {
      node(0, kCopyField, Wire(), {}, {argument(0, 0, 1, 0, 0, 64), argument(0, 0, 2, 3, 0, 64)}),
      node(1, kCopyField, Wire(), {0}, {argument(0, 0, 1, 4, 0, 32), argument(0, 0, 2, 3, 0, 32)}),
      node(2, kKernelField, launch(0, block), {0, 1},
           {argument(1, 0, 1, 3, 0, 64), argument(1, 8, 3, 2, 0, 64),
            argument(1, 16, 2, 1, 0, 64)})};
  const SharedBytes bytes = pattern(32);
  constants.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

HandmadeContainer HandmadeCapture::container() const {
  Wire requirements;
  for (const std::string& feature : required_features) requirements.bytes(1, feature);
  Wire manifest;
  manifest.message(1, Wire().bytes(1, producer));
  if (!required_features.empty()) manifest.message(2, requirements);
  manifest.message(3, Wire().bytes(1, name).number(2, 2).number(3, 3).number(4, 4));
  manifest.number(4, 1);
  const std::size_t first_code = constants.empty() ? 5 : 6;
  for (std::size_t at = 0; manifest_code.empty() && at < code.size(); ++at) {
    manifest.message(5, code_object(code[at], 1, static_cast<std::uint32_t>(first_code + at)));
  }
  for (const Wire& each : manifest_code) manifest.message(5, each);
  Wire head;
  head.packed(1, used_kernels)
      .number(2, region_count)
      .number(3, node_count)
      .number(4, argument_count)
      .number(5, dependency_count)
      .number(6, parameter_bytes);
  HandmadeContainer container;
  container.sections = {
      {kManifestSection, 1, manifest.text()},
      {kSymbolsSection, kernels.size(), delimited(kernels)},
      {kCaptureSection, 1, head.text()},
      {kRegionsSection, regions.size(), delimited(regions)},
      {kNodesSection, nodes.size(), delimited(nodes)},
  };
  if (!constants.empty()) {
    container.sections.push_back({kConstSection, 1, constants, 1, 4096});
  }
  for (const std::string& each : code) {
    container.sections.push_back({kCodeSection, 1, each, 0, 4096, 2});
  }
  return container;
}

Wire code_object(std::string_view bytes, std::uint32_t kind, std::uint32_t section) {
  return Wire().bytes(1, sha_256(bytes)).number(2, kind).number(3, section);
}

Wire parameter(std::uint32_t offset, std::uint32_t size, std::uint32_t alignment,
               std::uint32_t kind, std::uint32_t direction, std::uint32_t element) {
  return Wire()
      .number(1, offset)
      .number(2, size)
      .number(3, alignment)
      .number(4, kind)
      .number(5, direction)
      .number(6, element);
}

Wire argument(std::uint32_t relocation, std::uint32_t offset, std::uint32_t direction,
              std::uint32_t region, std::uint64_t begin, std::uint64_t size) {
  return Wire()
      .number(1, relocation)
      .number(2, offset)
      .number(3, direction)
      .number(4, region)
      .number(5, begin)
      .number(6, size);
}

Wire region(std::string_view name, std::uint32_t role, std::uint64_t bytes,
            std::uint32_t alignment) {
  return Wire().bytes(1, name).number(2, role).number(4, bytes).number(5, alignment);
}

Wire node(std::uint32_t id, unsigned call_field, const Wire& call,
          const std::vector<std::uint64_t>& dependencies, const std::vector<Wire>& arguments) {
  Wire wire;
  wire.number(1, id);
  if (call_field != 0) wire.message(call_field, call);
  wire.packed(5, dependencies);
  for (const Wire& each : arguments) wire.message(6, each);
  return wire;
}

Wire launch(std::uint32_t kernel, std::string_view block) {
  Wire call;
  call.number(1, kernel);
  for (unsigned field = 2; field <= 7; ++field) call.number(field, 1);
  return call.bytes(9, block);
}

Wire fill(std::uint32_t pattern, std::uint32_t width) {
  return Wire().number(1, pattern).number(2, width);
}

}  // namespace refrain::test
