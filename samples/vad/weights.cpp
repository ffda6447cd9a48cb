#include "vad/weights.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "vad/file_bytes.hpp"

namespace vad {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kLengthBytes = 8;
constexpr std::size_t kMaxFileBytes = std::size_t{64} << 20;   // the model needs 1.2 MiB
constexpr std::size_t kMaxHeaderBytes = std::size_t{1} << 20;  // of which 1.5 KiB are the header

/// One tensor as the header describes it. `begin` and `end` are places in the bytes after the
/// header, and lie in them.
struct Entry {
  std::string type;
  std::vector<std::uint64_t> shape;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};
using Entries = std::map<std::string, Entry, std::less<>>;

refrain::Error damaged(std::string_view name, std::string what) {
  return refrain::Error(refrain::ErrorKind::file_damaged,
                        fmt::format("The weights file \"{}\" {}.", name, what));
}

refrain::Error other_model(std::string_view name, std::string what) {
  return refrain::Error(refrain::ErrorKind::invalid_argument,
                        fmt::format("The weights file \"{}\" {}.", name, what));
}

std::uint64_t little_endian(std::span<const std::byte> bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i > 0; --i) {
    value = value << 8 | std::to_integer<std::uint64_t>(bytes[i - 1]);
  }
  return value;
}

/// What the file calls a thing, fit to be shown: a name out of a damaged file may be long, or hold
/// what a terminal obeys.
std::string shown(std::string_view text) {
  constexpr std::size_t kMost = 60;
  std::string safe(text.substr(0, kMost));
  std::replace_if(
      safe.begin(), safe.end(), [](char c) { return c < ' ' || c == '\x7f'; }, '?');
  return text.size() > kMost ? safe + "..." : safe;
}

/// Parses the header. The JSON library keeps the last of two equal keys; here the second one could
/// hide a tensor from the checks, so it is an error.
refrain::Result<Json> parse_header(std::string_view text, std::string_view name) {
  std::vector<std::set<std::string, std::less<>>> open;
  std::optional<std::string> twice;
  const auto watch = [&](int, Json::parse_event_t event, Json& parsed) {
    if (event == Json::parse_event_t::object_start) {
      open.emplace_back();
    } else if (event == Json::parse_event_t::object_end) {
      open.pop_back();
    } else if (event == Json::parse_event_t::key) {
      const auto& key = parsed.get_ref<const std::string&>();
      if (!open.back().insert(key).second && !twice) twice = key;
    }
    return true;
  };
  Json header = Json::parse(text.begin(), text.end(), watch, false);
  if (header.is_discarded()) return damaged(name, "has a header that is not JSON");
  if (twice) {
    return damaged(name, fmt::format("has a header with two keys \"{}\"", shown(*twice)));
  }
  if (!header.is_object()) return damaged(name, "has a header that is not a JSON object");
  return header;
}

/// Unsigned integers, as a shape and a pair of offsets are.
std::optional<std::vector<std::uint64_t>> numbers(const Json& entry, const char* key) {
  const auto found = entry.find(key);
  if (found == entry.end() || !found->is_array()) return std::nullopt;
  std::vector<std::uint64_t> values;
  for (const Json& value : *found) {
    if (!value.is_number_unsigned()) return std::nullopt;
    values.push_back(value.get<std::uint64_t>());
  }
  return values;
}

refrain::Result<Entry> parse_entry(const Json& json, std::string_view tensor,
                                   std::uint64_t data_bytes, std::string_view name) {
  const auto broken = [&](std::string what) {
    return damaged(name, fmt::format("describes tensor \"{}\" {}", shown(tensor), what));
  };
  if (!json.is_object()) return broken("with something that is not a JSON object");
  const auto type = json.find("dtype");
  if (type == json.end() || !type->is_string()) return broken("without a \"dtype\"");
  const auto shape = numbers(json, "shape");
  if (!shape) return broken("without a \"shape\" of whole numbers");
  const auto offsets = numbers(json, "data_offsets");
  if (!offsets || offsets->size() != 2) return broken("without two \"data_offsets\"");

  const std::uint64_t begin = offsets->front();
  const std::uint64_t end = offsets->back();
  if (begin > end || end > data_bytes) {
    return broken(fmt::format("as bytes {} to {}, and holds bytes 0 to {}; it may be cut short",
                              begin, end, data_bytes));
  }
  return Entry{type->get<std::string>(), *shape, begin, end};
}

/// The format lays its tensors end to end. A gap or an overlap means that some offset is wrong.
refrain::Result<void> check_tiling(const Entries& entries, std::uint64_t data_bytes,
                                   std::string_view name) {
  std::vector<const Entries::value_type*> order;
  for (const auto& entry : entries) {
    order.push_back(&entry);
  }
  std::sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
    return std::pair(a->second.begin, a->second.end) < std::pair(b->second.begin, b->second.end);
  });
  std::uint64_t at = 0;
  for (const auto* entry : order) {
    if (entry->second.begin != at) {
      return damaged(name, fmt::format("has tensor \"{}\" begin at byte {}, {} byte {}, where the "
                                       "tensor before it ends",
                                       shown(entry->first), entry->second.begin,
                                       entry->second.begin < at ? "before" : "after", at));
    }
    at = entry->second.end;
  }
  if (at != data_bytes) {
    return damaged(name, fmt::format("has {} bytes of tensors, of which its header describes {}",
                                     data_bytes, at));
  }
  return {};
}

/// The bytes of a tensor of the model, whose description suits it.
refrain::Result<std::span<const std::byte>> bytes_of(const TensorShape& wanted,
                                                     const Entries& entries,
                                                     std::span<const std::byte> data,
                                                     std::string_view name) {
  const auto found = entries.find(wanted.name);
  if (found == entries.end()) {
    return other_model(name, fmt::format("has no tensor \"{}\"", wanted.name));
  }
  const Entry& entry = found->second;
  if (entry.type != "F32") {
    return other_model(name, fmt::format("has tensor \"{}\" of type {}, and F32 is needed",
                                         wanted.name, shown(entry.type)));
  }
  const std::span<const std::size_t> dims(wanted.dims.data(), wanted.rank);
  if (!std::equal(dims.begin(), dims.end(), entry.shape.begin(), entry.shape.end())) {
    return other_model(
        name, fmt::format("has tensor \"{}\" of shape [{}], and [{}] is needed", wanted.name,
                          fmt::join(entry.shape, ", "), fmt::join(dims, ", ")));
  }
  const std::uint64_t bytes = entry.end - entry.begin;
  if (bytes != wanted.count() * sizeof(float)) {
    return damaged(name, fmt::format("has tensor \"{}\" in {} bytes, and its shape needs {}",
                                     wanted.name, bytes, wanted.count() * sizeof(float)));
  }
  return data.subspan(entry.begin, bytes);
}

refrain::Result<std::vector<float>> floats(std::span<const std::byte> bytes,
                                           std::string_view tensor, std::string_view name) {
  std::vector<float> values(bytes.size() / sizeof(float));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto four = bytes.subspan(i * sizeof(float), sizeof(float));
    values[i] = std::bit_cast<float>(static_cast<std::uint32_t>(little_endian(four)));
    if (!std::isfinite(values[i])) {
      return damaged(name, fmt::format("has tensor \"{}\" with {} at index {}, and weights are "
                                       "finite numbers",
                                       tensor, values[i], i));
    }
  }
  return values;
}

}  // namespace

refrain::Result<Weights> read_weights(const std::string& path) {
  auto bytes = read_file(path, kMaxFileBytes);
  if (!bytes) return std::move(bytes).error();
  return parse_weights(*bytes, path);
}

refrain::Result<Weights> parse_weights(std::span<const std::byte> bytes, std::string_view name) {
  if (bytes.empty()) return damaged(name, "is empty");
  if (bytes.size() < kLengthBytes) {
    return damaged(
        name, fmt::format("ends after {} bytes, within the length of its header", bytes.size()));
  }
  const std::uint64_t header_bytes = little_endian(bytes.first(kLengthBytes));
  const auto rest = bytes.subspan(kLengthBytes);
  if (header_bytes > kMaxHeaderBytes) {
    return damaged(name, fmt::format("is no safetensors file: it begins with a header length of "
                                     "{} bytes, and at most {} are read",
                                     header_bytes, kMaxHeaderBytes));
  }
  if (header_bytes > rest.size()) {
    return damaged(name, fmt::format("ends within its header, which has {} bytes, after {} of them",
                                     header_bytes, rest.size()));
  }
  const auto data = rest.subspan(header_bytes);
  std::string text(header_bytes, '\0');
  std::transform(rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(header_bytes),
                 text.begin(), [](std::byte b) { return std::to_integer<char>(b); });

  auto header = parse_header(text, name);
  if (!header) return std::move(header).error();
  Entries entries;
  for (const auto& [tensor, json] : header->items()) {
    // Holds notes about the file, and no tensor.
    if (tensor == "__metadata__") continue;
    auto entry = parse_entry(json, tensor, data.size(), name);
    if (!entry) return std::move(entry).error();
    entries.emplace(tensor, *std::move(entry));
  }
  REFRAIN_TRY(check_tiling(entries, data.size(), name));

  // All descriptions before the first value, so that a file of another model is refused early.
  std::array<std::span<const std::byte>, kTensors.size()> places;
  for (std::size_t i = 0; i < kTensors.size(); ++i) {
    const auto place = bytes_of(kTensors[i], entries, data, name);
    if (!place) return place.error();
    places[i] = *place;
  }
  Weights weights;
  for (std::size_t i = 0; i < kTensors.size(); ++i) {
    auto values = floats(places[i], kTensors[i].name, name);
    if (!values) return std::move(values).error();
    weights.tensors_[i] = *std::move(values);
  }
  return weights;
}

}  // namespace vad
