// The order that bytes ask for, on the cases that have a name and against a model that goes byte
// by byte.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "refrain/capture/sealed_graph.hpp"

namespace refrain {
namespace {

struct Touch {
  std::uint32_t region;
  ByteRange range;
  Direction direction;
};
using Touches = std::vector<Touch>;

constexpr std::uint64_t kBytes = 16;

/// A graph of one node for each of `nodes`: a kernel with a byte view for each touch, or a copy or
/// fill where the touches are those of one and `mixed` says so.
SealedGraph graph_of(const std::vector<Touches>& nodes, std::uint32_t regions,
                     std::uint32_t constants = 0, bool mixed = false) {
  GraphParts parts;
  for (std::uint32_t at = 0; at < regions; ++at) {
    Region region;
    region.name = "r" + std::to_string(at);
    region.bytes = kBytes;
    if (at < constants) {
      region.role = Role::constant;
      region.start = SharedBytes::copy_of(std::vector<std::byte>(kBytes));
    }
    parts.regions.push_back(region);
  }
  for (const Touches& touches : nodes) {
    Node node;
    node.arguments = {static_cast<std::uint32_t>(parts.arguments.size()),
                      static_cast<std::uint32_t>(touches.size())};
    const bool fill = mixed && touches.size() == 1 && touches[0].direction == Direction::out;
    const bool copy =
        mixed && touches.size() == 2 && touches[0].direction == Direction::in &&
        touches[1].direction == Direction::out &&
        touches[0].range.size() == touches[1].range.size() &&
        (touches[0].region != touches[1].region || !touches[0].range.overlaps(touches[1].range));
    KernelSignature kernel{"k" + std::to_string(parts.kernels.size()), 1, 0, {}};
    for (const Touch& touch : touches) {
      parts.arguments.push_back({kernel.block_bytes, touch.direction, touch.region, touch.range});
      kernel.parameters.push_back(
          {kernel.block_bytes, 8, 8, ParameterKind::view, touch.direction, ElementType::u8});
      kernel.block_bytes += 8;
    }
    if (fill) {
      node.call = FillCall{};
    } else if (copy) {
      node.call = CopyCall{};
    } else {
      node.call = KernelCall{
          static_cast<std::uint32_t>(parts.kernels.size()),
          grid(1),
          {static_cast<std::uint32_t>(parts.parameter_bytes.size()), kernel.block_bytes}};
      parts.parameter_bytes.resize(parts.parameter_bytes.size() + kernel.block_bytes);
      parts.kernels.push_back(std::move(kernel));
    }
    parts.nodes.push_back(node);
  }
  Result<SealedGraph> made = SealedGraph::make(std::move(parts));
  REQUIRE_MESSAGE(made.ok(), made.error().text());
  return *std::move(made);
}

using Edges = std::vector<std::vector<std::uint32_t>>;

Edges edges_of(const SealedGraph& graph) {
  Edges edges;
  for (const Node& node : graph.nodes()) {
    const auto found = graph.dependencies(node);
    edges.emplace_back(found.begin(), found.end());
  }
  return edges;
}

Touch reads(std::uint32_t region, std::uint64_t begin = 0, std::uint64_t end = kBytes) {
  return {region, {begin, end}, Direction::in};
}
Touch writes(std::uint32_t region, std::uint64_t begin = 0, std::uint64_t end = kBytes) {
  return {region, {begin, end}, Direction::out};
}
Touch updates(std::uint32_t region, std::uint64_t begin = 0, std::uint64_t end = kBytes) {
  return {region, {begin, end}, Direction::in_out};
}

}  // namespace

TEST_CASE("order: a read follows the write of its bytes") {
  CHECK(edges_of(graph_of({{writes(0)}, {reads(0)}}, 1)) == Edges{{}, {0}});
}

TEST_CASE("order: a write follows the reads that it would spoil, and those alone") {
  CHECK(edges_of(graph_of({{writes(0)}, {reads(0)}, {reads(0)}, {writes(0)}}, 1)) ==
        Edges{{}, {0}, {0}, {1, 2}});
}

TEST_CASE("order: a write follows the write that it replaces") {
  CHECK(edges_of(graph_of({{writes(0)}, {writes(0)}}, 1)) == Edges{{}, {0}});
}

TEST_CASE("order: reads of the same bytes are not ordered") {
  CHECK(edges_of(graph_of({{reads(0)}, {reads(0)}}, 1)) == Edges{{}, {}});
}

TEST_CASE("order: work in place follows the work in place before it") {
  CHECK(edges_of(graph_of({{updates(0)}, {updates(0)}, {updates(0)}}, 1)) == Edges{{}, {0}, {1}});
}

TEST_CASE("order: ranges that touch do not conflict and ranges that overlap by a byte do") {
  CHECK(edges_of(graph_of({{writes(0, 0, 8)}, {writes(0, 8, 16)}}, 1)) == Edges{{}, {}});
  CHECK(edges_of(graph_of({{writes(0, 0, 9)}, {writes(0, 8, 16)}}, 1)) == Edges{{}, {0}});
}

TEST_CASE("order: a read that spans two writes follows both") {
  CHECK(edges_of(graph_of({{writes(0, 0, 8)}, {writes(0, 8, 16)}, {reads(0, 4, 12)}}, 1)) ==
        Edges{{}, {}, {0, 1}});
}

TEST_CASE("order: constants order nothing and come from nowhere") {
  const SealedGraph graph = graph_of({{reads(0), writes(1)}, {reads(0), writes(2)}}, 3, 1);
  CHECK(edges_of(graph) == Edges{{}, {}});
  CHECK(graph.external_reads().empty());
}

TEST_CASE("order: copies and fills are ordered by what they read and write") {
  const SealedGraph graph = graph_of(
      {{writes(0)}, {reads(0), writes(1)}, {writes(0)}, {reads(1), writes(0)}}, 2, 0, true);
  CHECK(graph.node_name(graph.nodes()[0]) == "fill");
  CHECK(graph.node_name(graph.nodes()[1]) == "copy");
  CHECK(edges_of(graph) == Edges{{}, {0}, {1}, {1, 2}});
}

TEST_CASE("order: an empty range touches nothing") {
  const SealedGraph graph = graph_of({{writes(0)}, {reads(0, 4, 4), writes(1)}}, 2);
  CHECK(edges_of(graph) == Edges{{}, {}});
  CHECK(graph.external_reads().empty());
}

TEST_CASE("external reads: what is read before it is written, byte by byte") {
  const SealedGraph graph = graph_of({{writes(0, 4, 8)}, {updates(0, 0, 12)}}, 1);
  const std::vector<RegionBytes> external(graph.external_reads().begin(),
                                          graph.external_reads().end());
  CHECK(external == std::vector<RegionBytes>{{0, {0, 4}}, {0, {8, 12}}});
  const std::vector<RegionBytes> written(graph.writes().begin(), graph.writes().end());
  CHECK(written == std::vector<RegionBytes>{{0, {0, 12}}});
  const std::vector<RegionBytes> fresh(graph.fresh_writes().begin(), graph.fresh_writes().end());
  CHECK(fresh == std::vector<RegionBytes>{{0, {4, 8}}});
}

namespace {

constexpr std::uint32_t kRegions = 4;  // the first is a constant
using Bytes = std::array<std::array<bool, kBytes>, kRegions>;

struct Model {
  Bytes read{};
  Bytes written{};
};

Model model_of(const Touches& touches) {
  Model model;
  for (const Touch& touch : touches) {
    for (std::uint64_t at = touch.range.begin; at < touch.range.end; ++at) {
      if (touch.region != 0 && does_read(touch.direction)) model.read[touch.region][at] = true;
      if (does_write(touch.direction)) model.written[touch.region][at] = true;
    }
  }
  return model;
}

bool conflict(const Model& a, const Model& b) {
  for (std::uint32_t region = 0; region < kRegions; ++region) {
    for (std::uint64_t at = 0; at < kBytes; ++at) {
      const bool written = a.written[region][at] || b.written[region][at];
      const bool a_touches = a.read[region][at] || a.written[region][at];
      const bool b_touches = b.read[region][at] || b.written[region][at];
      if (written && a_touches && b_touches) return true;
    }
  }
  return false;
}

Bytes bytes_of(std::span<const RegionBytes> ranges) {
  Bytes bytes{};
  for (const RegionBytes& each : ranges) {
    for (std::uint64_t at = each.range.begin; at < each.range.end; ++at) {
      CHECK_FALSE(bytes[each.region][at]);  // named once
      bytes[each.region][at] = true;
    }
  }
  return bytes;
}

Touches random_touches(std::mt19937_64& random) {
  const auto below = [&](std::uint64_t end) { return random() % end; };
  Touches touches;
  const std::uint64_t count = 1 + below(4);
  for (std::uint64_t i = 0; i < count; ++i) {
    Touch touch{};
    touch.region = static_cast<std::uint32_t>(below(kRegions));
    touch.direction = touch.region == 0 ? Direction::in : static_cast<Direction>(1 + below(3));
    touch.range.begin = below(kBytes);
    touch.range.end = touch.range.begin + below(kBytes - touch.range.begin + 1);
    touches.push_back(touch);
  }
  return touches;
}

void compare_with_model(std::uint64_t seed) {
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  std::vector<Touches> nodes(1 + random() % 14);
  for (Touches& touches : nodes) touches = random_touches(random);
  const SealedGraph graph = graph_of(nodes, kRegions, 1, random() % 2 == 0);

  std::vector<Model> models;
  for (const Touches& touches : nodes) models.push_back(model_of(touches));
  const Edges edges = edges_of(graph);
  std::vector<std::vector<bool>> before(nodes.size(), std::vector<bool>(nodes.size()));
  for (std::uint32_t node = 0; node < nodes.size(); ++node) {
    CHECK(std::is_sorted(edges[node].begin(), edges[node].end()));
    for (const std::uint32_t dependency : edges[node]) {
      REQUIRE(dependency < node);
      CHECK(conflict(models[dependency], models[node]));
      before[node][dependency] = true;
      for (std::uint32_t at = 0; at < dependency; ++at) {
        if (before[dependency][at]) before[node][at] = true;
      }
    }
    for (std::uint32_t earlier = 0; earlier < node; ++earlier) {
      CAPTURE(earlier);
      CAPTURE(node);
      if (conflict(models[earlier], models[node])) CHECK(before[node][earlier]);
    }
  }

  Bytes external{};
  Bytes written{};
  for (const Model& model : models) {
    for (std::uint32_t region = 0; region < kRegions; ++region) {
      for (std::uint64_t at = 0; at < kBytes; ++at) {
        if (model.read[region][at] && !written[region][at]) external[region][at] = true;
      }
    }
    for (std::uint32_t region = 0; region < kRegions; ++region) {
      for (std::uint64_t at = 0; at < kBytes; ++at) {
        if (model.written[region][at]) written[region][at] = true;
      }
    }
  }
  Bytes fresh = written;
  for (std::uint32_t region = 0; region < kRegions; ++region) {
    for (std::uint64_t at = 0; at < kBytes; ++at) {
      if (external[region][at]) fresh[region][at] = false;
    }
  }
  CHECK(bytes_of(graph.external_reads()) == external);
  CHECK(bytes_of(graph.writes()) == written);
  CHECK(bytes_of(graph.fresh_writes()) == fresh);
}

}  // namespace

TEST_CASE("order: random graphs agree with a model that goes byte by byte") {
  const std::uint64_t first = std::random_device{}();
  for (std::uint64_t seed = first; seed < first + 400; ++seed) compare_with_model(seed);
}

}  // namespace refrain
