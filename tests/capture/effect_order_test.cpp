// The order that effects ask for, on parts that were put together by hand and against a model: all
// pairs of nodes that the streams of a drawn window order and whose effects ask for it.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "refrain/base/kernel_name.hpp"
#include "window_fixture.hpp"

namespace refrain::test {
namespace {

std::shared_ptr<const HostFunction> function(std::string name, Effects effects) {
  auto made = std::make_shared<HostFunction>();
  made->signature.name = std::move(name);
  made->signature.effects = std::move(effects);
  made->body = [](std::span<const std::span<std::byte>>) -> Result<void> { return {}; };
  return made;
}

/// A graph's parts: one call of a host function for each of `effects`.
GraphParts parts_of(const std::vector<Effects>& effects) {
  GraphParts parts;
  for (std::uint32_t at = 0; at < effects.size(); ++at) {
    parts.host_functions.push_back(function("f" + std::to_string(at), effects[at]));
    Node node;
    node.call = HostCall{at};
    parts.nodes.push_back(node);
  }
  return parts;
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

/// reaches[a][b]: b follows a, by one edge or several.
std::vector<std::vector<bool>> closure(const Edges& edges) {
  std::vector<std::vector<bool>> reaches(edges.size(), std::vector<bool>(edges.size()));
  for (std::size_t node = 0; node < edges.size(); ++node) {
    for (const std::uint32_t before : edges[node]) {
      reaches[before][node] = true;
      for (std::size_t each = 0; each < before; ++each) {
        if (reaches[each][before]) reaches[each][node] = true;
      }
    }
  }
  return reaches;
}

const std::array kEffects{Effects::none(), Effects::opaque(), Effects::opaque(), Effects::uses("a"),
                          Effects::uses("b")};

/// A window of some streams that fork and join as it is drawn, each recording host functions.
struct Drawn {
  explicit Drawn(std::mt19937& random) : window(windows.record()) {
    const auto below = [&](std::size_t count) {
      return std::uniform_int_distribution<std::size_t>(0, count - 1)(random);
    };
    streams = 1 + below(3);
    for (std::size_t each = 1; each < streams; ++each) {
      window.join(StreamId(3 + each), window.members().point(Members::kOrigin), at_line(1));
    }
    const std::size_t count = 2 + below(14);
    while (effects.size() < count) {
      const auto by = static_cast<Members::Index>(below(streams));
      if (const auto other = static_cast<Members::Index>(below(streams));
          below(3) == 0 && other != by) {
        window.wait(by, window.members().point(other));
        // It has left by that; it comes back knowing no more than it did.
        if (window.members().at(other).left) {
          window.join(StreamId(3 + other), window.members().point(other), at_line(1));
        }
        continue;
      }
      effects.push_back(kEffects[below(kEffects.size())]);
      stamps.push_back({by, window.members().at(by).nodes,
                        static_cast<std::uint32_t>(window.members().at(by).epochs.size() - 1)});
      window.stage_host(function("f" + std::to_string(effects.size() - 1), effects.back()), {},
                        at_line(2), by);
    }
    for (Members::Index each = 1; each < streams; ++each) {
      window.wait(Members::kOrigin, window.members().point(each));
    }
  }

  [[nodiscard]] bool ordered(std::size_t first, std::size_t second) const {
    return window.members().ordered(stamps[first], stamps[second]);
  }

  Windows windows;
  Window& window;
  std::size_t streams = 1;
  std::vector<Effects> effects;
  std::vector<Members::Stamp> stamps;
};

}  // namespace

TEST_CASE("effects: users of one resource follow one another, and nothing else is said by parts") {
  const Result<SealedGraph> graph =
      SealedGraph::make(parts_of({Effects::uses("a"), Effects::uses("b"), Effects::opaque(),
                                  Effects::uses("a"), Effects::none(), Effects::uses("a")}));
  REQUIRE(graph.ok());
  CHECK(edges_of(*graph) == Edges{{}, {}, {}, {0}, {}, {3}});
  CHECK(graph->effects(graph->nodes()[0]) == Effects::uses("a"));
  CHECK(graph->node_name(graph->nodes()[5]) == "f5");
}

TEST_CASE("effects: the order of the streams is part of a graph, beside that of its bytes") {
  GraphParts parts = parts_of({Effects::opaque(), Effects::uses("a"), Effects::opaque()});
  parts.stream_order = {{0, 1}, {0, 2}, {1, 2}};
  const Result<SealedGraph> graph = SealedGraph::make(std::move(parts));
  REQUIRE(graph.ok());
  CHECK(edges_of(*graph) == Edges{{}, {0}, {0, 1}});
}

TEST_CASE("effects: an order of nodes that effects do not ask for is refused") {
  const std::vector<Effects> effects{Effects::opaque(), Effects::none(), Effects::opaque(),
                                     Effects::uses("a"), Effects::uses("b")};
  const std::vector<std::vector<NodeOrder>> wrong{{{0, 1}}, {{2, 0}}, {{0, 0}},        {{0, 5}},
                                                  {{5, 6}}, {{3, 4}}, {{2, 3}, {0, 2}}};
  for (const std::vector<NodeOrder>& order : wrong) {
    GraphParts parts = parts_of(effects);
    parts.stream_order = order;
    const Result<SealedGraph> graph = SealedGraph::make(std::move(parts));
    REQUIRE_FALSE(graph.ok());
    CHECK(says(graph.error(), "and their effects do not ask for that"));
  }
}

TEST_CASE("effects: host functions that cannot be are refused") {
  GraphParts parts = parts_of({Effects::opaque()});
  SUBCASE("none") { parts.host_functions[0] = nullptr; }
  SUBCASE("one without a body") {
    auto empty = std::make_shared<HostFunction>(*parts.host_functions[0]);
    empty->body = nullptr;
    parts.host_functions[0] = empty;
  }
  SUBCASE("one that is not there") { parts.nodes[0].call = HostCall{1}; }
  SUBCASE("an argument too many") {
    Region region;
    region.bytes = 16;
    parts.regions.push_back(region);
    parts.arguments.push_back({0, Direction::in, 0, {0, 16}});
    parts.nodes[0].arguments = {0, 1};
  }
  const Result<SealedGraph> graph = SealedGraph::make(std::move(parts));
  REQUIRE_FALSE(graph.ok());
  CHECK(graph.error().kind() == ErrorKind::invalid_argument);
}

TEST_CASE("effects: host work says why its graph cannot be saved") {
  const Result<SealedGraph> graph =
      SealedGraph::make(parts_of({Effects::none(), Effects::opaque()}));
  REQUIRE(graph.ok());
  const std::vector<std::string> reasons = graph->not_portable();
  REQUIRE(reasons.size() == 2);
  CHECK(reasons[1].find("Node 1, \"f1\", is host work") == 0);
}

TEST_CASE("effects: long windows keep few orders") {
  Windows windows;
  Window& window = windows.record();
  for (int at = 0; at < 2'000; ++at) {
    window.stage_host(function("f", at % 100 == 0 ? Effects::opaque() : Effects::uses("a")), {},
                      at_line(2));
  }
  const Result<SealedWindow> sealed = window.seal({}, at_line(9));
  REQUIRE(sealed.ok());
  std::size_t all = 0;
  for (const auto& before : edges_of(sealed->graph)) all += before.size();
  CHECK(all < 2 * 2'000);
}

TEST_CASE("effects: in drawn windows what follows what is what streams and effects ask for") {
  const unsigned seed = std::random_device()();
  CAPTURE(seed);
  std::mt19937 random(seed);
  int sealed_windows = 0;
  int refused_windows = 0;
  for (int round = 0; round < 2'000; ++round) {
    CAPTURE(round);
    Drawn drawn(random);
    const std::size_t count = drawn.effects.size();
    Edges asked(count);
    bool race = false;
    for (std::uint32_t later = 0; later < count; ++later) {
      for (std::uint32_t earlier = 0; earlier < later; ++earlier) {
        if (!drawn.effects[earlier].ordered_with(drawn.effects[later])) continue;
        if (drawn.ordered(earlier, later)) {
          asked[later].push_back(earlier);
        } else if (drawn.effects[earlier].shares(drawn.effects[later])) {
          race = true;
        }
      }
    }
    const Result<SealedWindow> sealed = drawn.window.seal({}, at_line(9));
    REQUIRE(sealed.ok() == !race);
    if (race) {
      ++refused_windows;
      CHECK(says(sealed.error(), "and no event orders them"));
      continue;
    }
    ++sealed_windows;
    const Edges edges = edges_of(sealed->graph);
    CHECK(closure(edges) == closure(asked));
  }
  CHECK(sealed_windows > 100);
  CHECK(refused_windows > 100);
}

}  // namespace refrain::test
