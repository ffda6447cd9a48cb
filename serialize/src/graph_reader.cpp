#include "graph_reader.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "counts.hpp"
#include "manifest.pb.h"
#include "record.hpp"
#include "refrain/base/text.hpp"
#include "refusal.hpp"

namespace refrain::format {
namespace {

/// A copy of `bytes` at a multiple of `alignment`.
SharedBytes aligned_copy(std::span<const std::byte> bytes, std::uint32_t alignment) {
  const std::align_val_t at{alignment};
  auto* const data = static_cast<std::byte*>(::operator new(bytes.size(), at));
  std::shared_ptr<const void> owner(data, [at](std::byte* p) { ::operator delete(p, at); });
  std::memcpy(data, bytes.data(), bytes.size());
  return SharedBytes(std::move(owner), {data, bytes.size()});
}

class GraphReader {
 public:
  GraphReader(const VerifiedContainer& container, const Contents& contents, std::size_t capture,
              const LoadLimits& limits)
      : container_(container),
        limits_(limits),
        name_(contents.names[capture]),
        sections_(contents.captures[capture]),
        symbols_(contents.symbols),
        code_(contents.code),
        code_objects_(contents.code.size()),
        owner_(std::make_shared<const SharedBytes>(container.whole())) {
    parts_.name = name_;
  }

  Result<SealedGraph> read() {
    REFRAIN_TRY(read_head());
    REFRAIN_TRY(read_kernels());
    REFRAIN_TRY(read_regions());
    REFRAIN_TRY(read_nodes());
    read_stream_order();
    Result<SealedGraph> graph = SealedGraph::make(std::move(parts_), limits_.order_steps);
    if (!graph.ok()) {
      if (graph.error().kind() == ErrorKind::file_limit) {
        return refuse(ErrorKind::file_limit, "is too entangled: " + graph.error().message());
      }
      return damaged("is no graph that can be: " + graph.error().message());
    }
    REFRAIN_TRY(check_dependencies(*graph));
    return graph;
  }

 private:
  /// `In the file "x", capture "step" <what>`.
  [[nodiscard]] Error refuse(ErrorKind kind, const std::string& what) const {
    return refuse_in_file(kind, container_.file(), "capture " + quote(name_) + " " + what);
  }
  [[nodiscard]] Error damaged(const std::string& what) const {
    return refuse(ErrorKind::file_damaged, what);
  }

  Result<void> read_head() {
    v1::CaptureHead head;
    REFRAIN_TRY(read_message(container_, sections_.capture, head));
    counts_ = {static_cast<std::uint64_t>(head.kernels_size()),
               head.regions(),
               head.nodes(),
               head.arguments(),
               head.dependencies(),
               head.parameter_bytes()};
    REFRAIN_TRY(check_within(
        counts_, limits_, "In the file " + quote(container_.file()) + ", capture " + quote(name_)));
    kernels_.assign(head.kernels().begin(), head.kernels().end());
    return check_plausible();
  }

  /// A few bytes that promise millions of nodes are not believed: each takes some of the section.
  Result<void> check_plausible() const {
    constexpr std::uint64_t kLeast = 4;  // no region, node or argument that can be is smaller
    const std::uint64_t nodes = container_.bytes(sections_.nodes).size();
    const std::uint64_t regions = container_.bytes(sections_.regions).size();
    if (counts_.regions > regions / kLeast || counts_.nodes > nodes / kLeast ||
        counts_.arguments > nodes / kLeast || counts_.dependencies > nodes ||
        counts_.parameter_bytes > nodes) {
      return damaged("has " + std::to_string(counts_.regions) + " regions in " +
                     std::to_string(regions) + " bytes and " + std::to_string(counts_.nodes) +
                     " nodes with " + std::to_string(counts_.arguments) + " arguments, " +
                     std::to_string(counts_.dependencies) + " dependencies and " +
                     std::to_string(counts_.parameter_bytes) + " bytes of parameters in " +
                     std::to_string(nodes) + " bytes, which cannot be.");
    }
    return {};
  }

  Result<void> read_kernels() {
    std::vector<KernelSignature> symbols;
    RecordReader records(container_, symbols_);
    v1::Kernel record;
    while (!records.at_end()) {
      REFRAIN_TRY(records.read(record));
      // All symbols are read, those of other captures too.
      if (symbols.size() == limits_.kernels) {
        return refuse_in_file(ErrorKind::file_limit, container_.file(),
                              container_.describe(symbols_) +
                                  " has more kernels than the limit of " +
                                  std::to_string(limits_.kernels) + ".");
      }
      KernelSignature& symbol = symbols.emplace_back();
      REFRAIN_TRY(read(record, "kernel " + std::to_string(symbols.size() - 1), symbol));
    }
    REFRAIN_TRY(records.check_count());
    parts_.kernels.reserve(kernels_.size());
    for (const std::uint32_t symbol : kernels_) {
      if (symbol >= symbols.size()) {
        return damaged("names symbol " + std::to_string(symbol) + " of " +
                       std::to_string(symbols.size()) + ".");
      }
      parts_.kernels.push_back(symbols[symbol]);
    }
    return {};
  }

  Result<void> read(const v1::Kernel& record, const std::string& whose, KernelSignature& symbol) {
    REFRAIN_TRY(check_name(container_, limits_, record.name(), whose));
    REFRAIN_TRY(check_name(container_, limits_, record.resource(), "what " + whose + " uses"));
    switch (record.effects()) {
      case static_cast<std::uint32_t>(Effects::Kind::none): break;
      case static_cast<std::uint32_t>(Effects::Kind::opaque):
        symbol.effects = Effects::opaque();
        break;
      case static_cast<std::uint32_t>(Effects::Kind::uses):
        symbol.effects = Effects::uses(record.resource());
        break;
      default:
        return refuse_in_file(ErrorKind::file_damaged, container_.file(),
                              whose + " has effects of kind " + std::to_string(record.effects()) +
                                  ", which cannot be.");
    }
    if (symbol.effects.resource() != record.resource()) {
      return refuse_in_file(
          ErrorKind::file_damaged, container_.file(),
          whose + " names " + quote(record.resource()) + " as what it uses, and uses nothing.");
    }
    REFRAIN_TRY(read_source(record, whose, symbol.source));
    symbol.name = record.name();
    symbol.version = record.version();
    symbol.block_bytes = record.block_bytes();
    symbol.parameters.reserve(static_cast<std::size_t>(record.parameters_size()));
    for (const v1::Parameter& parameter : record.parameters()) {
      if (parameter.kind() < static_cast<std::uint32_t>(ParameterKind::view) ||
          parameter.kind() > static_cast<std::uint32_t>(ParameterKind::field) ||
          parameter.direction() > static_cast<std::uint32_t>(Direction::in_out) ||
          parameter.element() > kLastElementType) {
        return refuse_in_file(ErrorKind::file_damaged, container_.file(),
                              whose + " (" + quote(symbol.name) + ") has a parameter of kind " +
                                  std::to_string(parameter.kind()) + ", direction " +
                                  std::to_string(parameter.direction()) + " and element type " +
                                  std::to_string(parameter.element()) + ", which cannot be.");
      }
      symbol.parameters.push_back({parameter.offset(), parameter.size(), parameter.alignment(),
                                   static_cast<ParameterKind>(parameter.kind()),
                                   static_cast<Direction>(parameter.direction()),
                                   static_cast<ElementType>(parameter.element())});
    }
    return {};
  }

  Result<void> read_source(const v1::Kernel& record, const std::string& whose,
                           KernelSource& source) {
    if (record.code() == 0 && record.symbol().empty()) return {};
    REFRAIN_TRY(check_name(container_, limits_, record.symbol(), "the symbol of " + whose));
    if (record.code() == 0 || record.code() > code_.size() || record.symbol().empty()) {
      return refuse_in_file(ErrorKind::file_damaged, container_.file(),
                            whose + " comes from code " + std::to_string(record.code()) + " of " +
                                std::to_string(code_.size()) + " as " + quote(record.symbol()) +
                                ", which cannot be.");
    }
    std::shared_ptr<const PortableCode>& code = code_objects_[record.code() - 1];
    if (code == nullptr) {
      const CodeSection& stored = code_[record.code() - 1];
      code = std::make_shared<const PortableCode>(
          PortableCode{stored.kind, SharedBytes(owner_, container_.bytes(stored.section)),
                       container_.sections()[stored.section].digest});
    }
    source = {code, record.symbol()};
    return {};
  }

  Result<void> read_regions() {
    parts_.regions.reserve(counts_.regions);
    RecordReader records(container_, sections_.regions);
    v1::Region record;
    while (!records.at_end()) {
      REFRAIN_TRY(records.read(record));
      if (parts_.regions.size() == counts_.regions) {
        return damaged("has more regions than the " + std::to_string(counts_.regions) +
                       " that it speaks of.");
      }
      REFRAIN_TRY(read(record, parts_.regions.emplace_back()));
    }
    REFRAIN_TRY(records.check_count());
    if (parts_.regions.size() != counts_.regions) {
      return damaged("has " + std::to_string(parts_.regions.size()) + " regions, and speaks of " +
                     std::to_string(counts_.regions) + ".");
    }
    return {};
  }

  Result<void> read(const v1::Region& record, Region& region) {
    const std::string whose = "region " + std::to_string(parts_.regions.size() - 1);
    REFRAIN_TRY(check_name(container_, limits_, record.name(), whose));
    if (record.role() > kLastRole || record.element() > kLastElementType) {
      return damaged("has a " + whose + " (" + quote(record.name()) + ") of role " +
                     std::to_string(record.role()) + " and element type " +
                     std::to_string(record.element()) + ", which cannot be.");
    }
    region.name = record.name();
    region.role = static_cast<Role>(record.role());
    region.element = static_cast<ElementType>(record.element());
    region.bytes = record.bytes();
    region.alignment = record.alignment();
    region.frozen = record.frozen();
    switch (record.start_case()) {
      case v1::Region::kZero: region.start = ZeroStart{}; break;
      case v1::Region::kStored: return read(record.stored(), whose, region);
      case v1::Region::START_NOT_SET: break;
    }
    return {};
  }

  Result<void> read(const v1::StoredStart& stored, const std::string& whose, Region& region) {
    const std::uint32_t section = stored.section();
    if (section >= container_.sections().size() ||
        container_.sections()[section].kind != SectionKind::constants) {
      return damaged("has its " + whose + " start with bytes of section " +
                     std::to_string(section) + ", which holds no constants.");
    }
    const std::span<const std::byte> bytes = container_.bytes(section);
    // In order and apart, so that all that is copied for its alignment is no more than the file.
    const bool in_order =
        section > last_section_ || (section == last_section_ && stored.offset() >= last_end_);
    if (!in_order || stored.offset() > bytes.size() ||
        region.bytes > bytes.size() - stored.offset()) {
      return damaged("has its " + whose + " start with " + std::to_string(region.bytes) +
                     " bytes at " + std::to_string(stored.offset()) + " of " +
                     container_.describe(section) + ", which has " + std::to_string(bytes.size()) +
                     " and keeps them in order.");
    }
    last_section_ = section;
    last_end_ = stored.offset() + region.bytes;
    if (!std::has_single_bit(region.alignment)) {
      return damaged("has its " + whose + " at an alignment of " +
                     std::to_string(region.alignment) + ", which is no power of two.");
    }
    if (region.alignment > limits_.alignment) {
      return refuse(ErrorKind::file_limit,
                    "has its " + whose + " start with bytes at an alignment of " +
                        std::to_string(region.alignment) + ", more than the limit of " +
                        std::to_string(limits_.alignment) + ".");
    }
    const std::span<const std::byte> own = bytes.subspan(stored.offset(), region.bytes);
    if (reinterpret_cast<std::uintptr_t>(own.data()) % region.alignment == 0) {
      region.start = SharedBytes(owner_, own);
    } else {
      region.start = aligned_copy(own, region.alignment);
    }
    return {};
  }

  Result<void> read_nodes() {
    parts_.nodes.reserve(counts_.nodes);
    parts_.arguments.reserve(counts_.arguments);
    parts_.parameter_bytes.reserve(counts_.parameter_bytes);
    dependencies_.reserve(counts_.dependencies);
    dependencies_end_.reserve(counts_.nodes);
    RecordReader records(container_, sections_.nodes);
    v1::Node record;
    while (!records.at_end()) {
      REFRAIN_TRY(records.read(record));
      REFRAIN_TRY(read(record));
    }
    REFRAIN_TRY(records.check_count());
    if (parts_.nodes.size() != counts_.nodes || parts_.arguments.size() != counts_.arguments ||
        dependencies_.size() != counts_.dependencies ||
        parts_.parameter_bytes.size() != counts_.parameter_bytes) {
      return damaged("has fewer nodes, arguments, dependencies or parameters in " +
                     container_.describe(sections_.nodes) + " than it says.");
    }
    return {};
  }

  [[nodiscard]] static std::string describe(const v1::Node& record) {
    return "node " + std::to_string(record.id());
  }

  Result<void> read(const v1::Node& record) {
    if (record.call_case() == v1::Node::CALL_NOT_SET) return read_more(record);
    if (record.id() != parts_.nodes.size()) {
      return damaged("has " + describe(record) + " where node " +
                     std::to_string(parts_.nodes.size()) + " belongs.");
    }
    if (parts_.nodes.size() == counts_.nodes) {
      return damaged("has more nodes than the " + std::to_string(counts_.nodes) +
                     " that it speaks of.");
    }
    Node& node = parts_.nodes.emplace_back();
    switch (record.call_case()) {
      case v1::Node::kKernel: REFRAIN_TRY(read(record, record.kernel(), node)); break;
      case v1::Node::kCopy: node.call = CopyCall{}; break;
      case v1::Node::kFill:
        node.call = FillCall{record.fill().pattern(), record.fill().width()};
        break;
      case v1::Node::CALL_NOT_SET: break;
    }
    REFRAIN_TRY(read_arguments(record, node));
    return read_dependencies(record);
  }

  Result<void> read(const v1::Node& record, const v1::KernelCall& stored, Node& node) {
    const std::string& block = stored.block();
    if (block.size() > counts_.parameter_bytes - parts_.parameter_bytes.size()) {
      return damaged("has more bytes of parameters than the " +
                     std::to_string(counts_.parameter_bytes) + " that it speaks of, at " +
                     describe(record) + ".");
    }
    KernelCall call;
    call.kernel = stored.kernel();
    call.grid.blocks = {stored.blocks_x(), stored.blocks_y(), stored.blocks_z()};
    call.grid.threads = {stored.threads_x(), stored.threads_y(), stored.threads_z()};
    call.grid.shared_bytes = stored.shared_bytes();
    const v1::LaunchAttributes& attributes = stored.attributes();
    call.grid.attributes = {
        {attributes.cluster_x(), attributes.cluster_y(), attributes.cluster_z()},
        attributes.cooperative(),
        attributes.priority(),
        attributes.programmatic()};
    call.block = {static_cast<std::uint32_t>(parts_.parameter_bytes.size()),
                  static_cast<std::uint32_t>(block.size())};
    const std::span<const std::byte> bytes = std::as_bytes(std::span(block));
    parts_.parameter_bytes.insert(parts_.parameter_bytes.end(), bytes.begin(), bytes.end());
    node.call = call;
    return {};
  }

  Result<void> read_arguments(const v1::Node& record, Node& node) {
    const auto count = static_cast<std::uint64_t>(record.arguments_size());
    if (count > counts_.arguments - parts_.arguments.size()) {
      return damaged("has more arguments than the " + std::to_string(counts_.arguments) +
                     " that it speaks of, at " + describe(record) + ".");
    }
    node.arguments = {static_cast<std::uint32_t>(parts_.arguments.size()),
                      static_cast<std::uint32_t>(count)};
    const Relocation expected = record.has_kernel() ? Relocation::address64 : Relocation::none;
    for (const v1::Argument& argument : record.arguments()) {
      if (argument.relocation() != static_cast<std::uint32_t>(expected)) {
        return refuse(ErrorKind::file_version,
                      "has a relocation of kind " + std::to_string(argument.relocation()) + " at " +
                          describe(record) +
                          ", which this version of refrain does not know there.");
      }
      if (argument.direction() > static_cast<std::uint32_t>(Direction::in_out)) {
        return damaged("has an argument of direction " + std::to_string(argument.direction()) +
                       " at " + describe(record) + ", which cannot be.");
      }
      if (argument.size() > ~std::uint64_t{0} - argument.begin()) {
        return damaged("has an argument of " + std::to_string(argument.size()) +
                       " bytes from byte " + std::to_string(argument.begin()) + " on at " +
                       describe(record) + ", past the last byte that can be.");
      }
      parts_.arguments.push_back({argument.offset(),
                                  static_cast<Direction>(argument.direction()),
                                  argument.region(),
                                  {argument.begin(), argument.begin() + argument.size()}});
    }
    return {};
  }

  /// The rest of the dependencies of the node before.
  Result<void> read_more(const v1::Node& record) {
    const bool goes_on = !parts_.nodes.empty() && record.id() == parts_.nodes.size() - 1 &&
                         last_was_full_ && !record.dependencies().empty() &&
                         record.arguments().empty();
    if (!goes_on) {
      return damaged("has a record of " + describe(record) +
                     " without a call, which does not go on from the one before it.");
    }
    dependencies_end_.pop_back();
    return read_dependencies(record);
  }

  Result<void> read_dependencies(const v1::Node& record) {
    const auto count = static_cast<std::uint64_t>(record.dependencies_size());
    if (count > kDependenciesPerRecord) {
      return refuse(ErrorKind::file_limit, "has " + std::to_string(count) +
                                               " dependencies in one record of " +
                                               describe(record) + ", more than the limit of " +
                                               std::to_string(kDependenciesPerRecord) + ".");
    }
    if (count > counts_.dependencies - dependencies_.size()) {
      return damaged("has more dependencies than the " + std::to_string(counts_.dependencies) +
                     " that it speaks of, at " + describe(record) + ".");
    }
    dependencies_.insert(dependencies_.end(), record.dependencies().begin(),
                         record.dependencies().end());
    dependencies_end_.push_back(dependencies_.size());
    last_was_full_ = count == kDependenciesPerRecord;
    return {};
  }

  /// Between nodes one of which is opaque, the order is what the file states: it was that of the
  /// streams that recorded them, and nothing else tells it.
  void read_stream_order() {
    std::size_t begin = 0;
    for (std::uint32_t after = 0; after < parts_.nodes.size(); ++after) {
      const Effects& effects = effects_of(parts_, parts_.nodes[after]);
      for (; begin < dependencies_end_[after]; ++begin) {
        const std::uint32_t before = dependencies_[begin];
        if (effects.kind() == Effects::Kind::none || before >= after) continue;
        const Effects& others = effects_of(parts_, parts_.nodes[before]);
        if (effects.ordered_with(others) && !effects.shares(others)) {
          parts_.stream_order.push_back({before, after});
        }
      }
    }
  }

  /// The order that the file states must be the one that its bytes and effects ask for: a graph
  /// that was recorded has that one, and a file that leaves an edge out would race.
  Result<void> check_dependencies(const SealedGraph& graph) const {
    std::size_t begin = 0;
    for (std::size_t at = 0; at < graph.nodes().size(); ++at) {
      const std::span<const std::uint32_t> stated =
          std::span(dependencies_).subspan(begin, dependencies_end_[at] - begin);
      const std::span<const std::uint32_t> asked = graph.dependencies(graph.nodes()[at]);
      if (!std::equal(stated.begin(), stated.end(), asked.begin(), asked.end())) {
        return refuse_in_file(ErrorKind::file_damaged, container_.file(),
                              "node " + std::to_string(at) + " of capture " + quote(graph.name()) +
                                  " states " + list(stated) +
                                  " as what it follows, and its bytes and effects ask for " +
                                  list(asked) + ".");
      }
      begin = dependencies_end_[at];
    }
    return {};
  }

  static std::string list(std::span<const std::uint32_t> nodes) {
    constexpr std::size_t kMost = 8;
    std::string all = nodes.empty() ? "no node" : "nodes";
    for (std::size_t at = 0; at < std::min(nodes.size(), kMost); ++at) {
      all += (at == 0 ? " " : ", ") + std::to_string(nodes[at]);
    }
    if (nodes.size() > kMost) all += " and " + std::to_string(nodes.size() - kMost) + " more";
    return all;
  }

  const VerifiedContainer& container_;
  const LoadLimits& limits_;
  std::string name_;
  CaptureSections sections_;
  std::uint32_t symbols_;
  std::span<const CodeSection> code_;
  std::vector<std::shared_ptr<const PortableCode>> code_objects_;  // as they are asked for
  std::shared_ptr<const SharedBytes> owner_;                       // of what is used in place

  Counts counts_;
  GraphParts parts_;
  std::vector<std::uint32_t> kernels_;  // per kernel of the graph, its symbol
  std::uint32_t last_section_ = 0;      // of the bytes that the region before starts with
  std::uint64_t last_end_ = 0;
  std::vector<std::uint32_t> dependencies_;    // as the file states them
  std::vector<std::size_t> dependencies_end_;  // per node, where its own end
  bool last_was_full_ = false;
};

}  // namespace

Result<SealedGraph> read_graph(const VerifiedContainer& container, const Contents& contents,
                               std::size_t capture, const LoadLimits& limits) {
  return GraphReader(container, contents, capture, limits).read();
}

}  // namespace refrain::format
