#include "refrain/replay/compare.hpp"

#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "refrain/base/text.hpp"
#include "refrain/device/node_error.hpp"

namespace refrain {
namespace {

using NodeBytes = std::vector<std::byte>;

/// One element, as a double.
template <class T>
double element_at(const std::byte* at) {
  T value{};
  std::memcpy(&value, at, sizeof(value));
  return static_cast<double>(value);
}

double element_at(ElementType type, const std::byte* at) {
  switch (type) {
    case ElementType::i8: return element_at<std::int8_t>(at);
    case ElementType::u16: return element_at<std::uint16_t>(at);
    case ElementType::i16: return element_at<std::int16_t>(at);
    case ElementType::u32: return element_at<std::uint32_t>(at);
    case ElementType::i32: return element_at<std::int32_t>(at);
    case ElementType::u64: return element_at<std::uint64_t>(at);
    case ElementType::i64: return element_at<std::int64_t>(at);
    case ElementType::f32: return element_at<float>(at);
    case ElementType::f64: return element_at<double>(at);
    case ElementType::bytes:
    case ElementType::u8:
    case ElementType::boolean: break;
  }
  return element_at<std::uint8_t>(at);
}

bool same(ElementType type, const std::byte* one, const std::byte* other,
          const CompareOptions& options) {
  if (std::memcmp(one, other, size_of(type)) == 0) return true;
  if (type != ElementType::f32 && type != ElementType::f64) return false;
  const double value = element_at(type, one);
  const double there = element_at(type, other);
  // A NaN is within no distance of anything.
  return std::abs(value - there) <= options.absolute + options.relative * std::abs(value);
}

/// What each node of a step wrote, in order.
using StepBytes = std::vector<std::vector<NodeBytes>>;

Result<std::vector<NodeBytes>> read_all(Stream& stream, std::span<const NodeWrite> writes) {
  std::vector<NodeBytes> all;
  for (const NodeWrite& each : writes) {
    all.emplace_back(each.binding.range.size());
    REFRAIN_TRY(stream.read_bytes(each.binding, all.back()));
  }
  return all;
}

/// Where what a node wrote differs from what it wrote the other time.
std::optional<NodeDifference> difference(const SealedGraph& graph, std::uint32_t node,
                                         std::span<const NodeWrite> writes,
                                         const std::vector<NodeBytes>& one,
                                         const std::vector<NodeBytes>& other,
                                         const CompareOptions& options) {
  for (std::size_t write = 0; write < writes.size(); ++write) {
    const Region& region = graph.regions()[writes[write].region];
    const std::size_t size = size_of(region.element);
    for (std::size_t at = 0; at + size <= one[write].size(); at += size) {
      const std::byte* const here = one[write].data() + at;
      const std::byte* const there = other[write].data() + at;
      if (same(region.element, here, there, options)) continue;
      return NodeDifference{node,
                            std::string(graph.node_name(graph.nodes()[node])),
                            region.name,
                            at / size,
                            element_at(region.element, here),
                            element_at(region.element, there)};
    }
  }
  return std::nullopt;
}

bool same_graph(const SealedGraph& one, const SealedGraph& other) {
  if (one.nodes().size() != other.nodes().size()) return false;
  for (std::size_t at = 0; at < one.nodes().size(); ++at) {
    const Node& node = one.nodes()[at];
    const Node& there = other.nodes()[at];
    if (one.node_name(node) != other.node_name(there)) return false;
    const auto arguments = one.arguments(node);
    const auto others = other.arguments(there);
    if (!std::equal(arguments.begin(), arguments.end(), others.begin(), others.end())) return false;
  }
  return true;
}

}  // namespace

std::string text(const NodeDifference& difference) {
  return "node " + std::to_string(difference.node) + ", " + quote(difference.name) + ", wrote " +
         std::to_string(difference.value) + " to " +
         (difference.region.empty() ? "scratch" : quote(difference.region)) + " [" +
         std::to_string(difference.element) + "], and " + std::to_string(difference.other) +
         " there";
}

Result<std::optional<NodeDifference>> compare(Instance& first, Stream& on, Instance& second,
                                              Stream& there, const CompareOptions& options) {
  const SealedGraph& graph = first.graph();
  if (!same_graph(graph, second.graph())) {
    return Error(ErrorKind::invalid_argument, "Graphs " + graph.title() + " and " +
                                                  second.graph().title() +
                                                  " are not the same, so there is no node to "
                                                  "compare.");
  }
  StepBytes written;
  REFRAIN_TRY(first.step_through(
      on, [&](std::uint32_t node, std::span<const NodeWrite> writes) -> Result<void> {
        Result<std::vector<NodeBytes>> read = read_all(on, writes);
        if (!read.ok()) return of_node(graph, node, read.error(), "stepping through");
        written.push_back(*std::move(read));
        return {};
      }));
  std::optional<NodeDifference> found;
  const Result<void> stepped = second.step_through(
      there, [&](std::uint32_t node, std::span<const NodeWrite> writes) -> Result<void> {
        const Result<std::vector<NodeBytes>> read = read_all(there, writes);
        if (!read.ok()) return of_node(graph, node, read.error(), "stepping through");
        found = difference(graph, node, writes, written[node], *read, options);
        if (found) return Error(ErrorKind::skipped);  // enough
        return {};
      });
  if (!found && !stepped.ok()) return stepped.error();
  return found;
}

}  // namespace refrain
