#include "graph_writer.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "counts.hpp"
#include "manifest.pb.h"
#include "record.hpp"
#include "refrain/base/text.hpp"
#include "refrain/serialize/load_limits.hpp"

namespace refrain::format {
namespace {

/// The sections of one capture file as they grow. Everything is written in the order in which the
/// graph has it, so the same graph gives the same bytes.
class GraphWriter {
 public:
  explicit GraphWriter(const SealedGraph& graph) : graph_(graph) {}

  Result<void> write(ContainerWriter& file) {
    REFRAIN_TRY(check_portable());
    REFRAIN_TRY(check_name(graph_.name(), "Its name"));
    REFRAIN_TRY(add_kernels());
    REFRAIN_TRY(add_regions());
    REFRAIN_TRY(add_nodes());
    REFRAIN_TRY(check_within(counts_, LoadLimits{}, subject()));
    head_.set_regions(counts_.regions);
    head_.set_nodes(counts_.nodes);
    head_.set_arguments(counts_.arguments);
    head_.set_dependencies(counts_.dependencies);
    head_.set_parameter_bytes(counts_.parameter_bytes);

    v1::Manifest manifest;
    manifest.mutable_producer()->set_name("refrain " REFRAIN_VERSION);
    if (has_effects_) {
      manifest.mutable_requirements()->add_required_features(std::string(kEffectsFeature));
    }
    if (has_attributes_) {
      manifest.mutable_requirements()->add_required_features(std::string(kLaunchAttributesFeature));
    }
    manifest.set_symbols(kSymbols);
    const auto code_begins = kConstants + (constant_count_ != 0 ? 1U : 0U);
    for (std::size_t at = 0; at < code_.size(); ++at) {
      v1::CodeObject& stored = *manifest.add_code();
      stored.set_sha256(code_[at]->digest.data(), code_[at]->digest.size());
      stored.set_kind(static_cast<std::uint32_t>(code_[at]->kind));
      stored.set_section(code_begins + static_cast<std::uint32_t>(at));
    }
    v1::Capture& capture = *manifest.add_captures();
    capture.set_name(graph_.name());
    capture.set_capture(kCapture);
    capture.set_regions(kRegions);
    capture.set_nodes(kNodes);

    file.add(SectionKind::manifest, 1, manifest.SerializeAsString());
    file.add(SectionKind::symbols, symbol_count_, std::move(symbols_));
    file.add(SectionKind::capture, 1, head_.SerializeAsString());
    file.add(SectionKind::regions, counts_.regions, std::move(regions_));
    file.add(SectionKind::nodes, node_records_, std::move(nodes_));
    // Last, and only when there are any, because it begins on a page of its own.
    if (constant_count_ != 0) {
      file.add(SectionKind::constants, constant_count_, kPage, std::move(constants_));
    }
    for (const auto& each : code_) file.add_code(each->bytes.span());
    return {};
  }

 private:
  // Where each section stands in the table.
  static constexpr std::uint32_t kSymbols = 1;
  static constexpr std::uint32_t kCapture = 2;
  static constexpr std::uint32_t kRegions = 3;
  static constexpr std::uint32_t kNodes = 4;
  static constexpr std::uint32_t kConstants = 5;

  [[nodiscard]] std::string subject() const { return "The graph " + quote(graph_.name()); }
  [[nodiscard]] Error refuse(ErrorKind kind, const std::string& why) const {
    return Error(kind, subject() + " cannot be saved. " + why);
  }

  Result<void> check_portable() const {
    const std::vector<std::string> reasons = graph_.not_portable();
    if (reasons.empty()) return {};
    std::string all;
    for (const std::string& reason : reasons) all += (all.empty() ? "" : " ") + reason;
    return refuse(ErrorKind::not_portable, all);
  }

  Result<void> check_name(const std::string& name, const std::string& whose) const {
    constexpr std::uint32_t kMost = LoadLimits{}.name_bytes;
    if (name.size() > kMost) {
      return refuse(ErrorKind::file_limit, whose + " has " + std::to_string(name.size()) +
                                               " bytes, more than the limit of " +
                                               std::to_string(kMost) + ".");
    }
    if (!is_utf8(name)) return refuse(ErrorKind::not_portable, whose + " is not UTF-8.");
    return {};
  }

  Result<void> append(std::string& section, const google::protobuf::MessageLite& record,
                      const std::string& whose) const {
    if (append_record(section, record)) return {};
    return refuse(ErrorKind::file_limit, whose + " takes " + std::to_string(record.ByteSizeLong()) +
                                             " bytes in a file, more than the limit of " +
                                             std::to_string(kLargestRecord) + ".");
  }

  Result<void> add_kernels() {
    // Equal signatures have equal records.
    std::unordered_map<std::string, std::uint32_t> found;
    for (const KernelSignature& kernel : graph_.kernels()) {
      const std::string whose = "Kernel " + quote(kernel.name);
      REFRAIN_TRY(check_name(kernel.name, "The name of kernel " + quote(kernel.name)));
      v1::Kernel record;
      record.set_name(kernel.name);
      record.set_version(kernel.version);
      record.set_block_bytes(kernel.block_bytes);
      if (kernel.effects.kind() != Effects::Kind::none) {
        REFRAIN_TRY(
            check_name(kernel.effects.resource(), "What kernel " + quote(kernel.name) + " uses"));
        record.set_effects(static_cast<std::uint32_t>(kernel.effects.kind()));
        record.set_resource(kernel.effects.resource());
        has_effects_ = true;
      }
      for (const Parameter& parameter : kernel.parameters) {
        v1::Parameter& stored = *record.add_parameters();
        stored.set_offset(parameter.offset);
        stored.set_size(parameter.size);
        stored.set_alignment(parameter.alignment);
        stored.set_kind(static_cast<std::uint32_t>(parameter.kind));
        stored.set_direction(static_cast<std::uint32_t>(parameter.direction));
        stored.set_element(static_cast<std::uint32_t>(parameter.element));
      }
      if (kernel.source.code != nullptr) {
        REFRAIN_TRY(check_name(kernel.source.symbol, "The symbol of kernel " + quote(kernel.name)));
        record.set_code(number_of(kernel.source.code));
        record.set_symbol(kernel.source.symbol);
      }
      std::string bytes;
      REFRAIN_TRY(append(bytes, record, whose));
      const auto [symbol, is_new] = found.emplace(std::move(bytes), symbol_count_);
      if (is_new) {
        symbols_ += symbol->first;
        ++symbol_count_;
      }
      head_.add_kernels(symbol->second);
      ++counts_.kernels;
    }
    return {};
  }

  /// Which of the file's code images it is, from 1.
  std::uint32_t number_of(const std::shared_ptr<const PortableCode>& code) {
    const auto [at, is_new] =
        code_numbers_.emplace(code->digest, static_cast<std::uint32_t>(code_.size() + 1));
    if (is_new) code_.push_back(code);
    return at->second;
  }

  Result<void> add_regions() {
    for (const Region& region : graph_.regions()) {
      const std::string whose =
          "region " + (region.name.empty() ? std::to_string(counts_.regions) : quote(region.name));
      REFRAIN_TRY(check_name(region.name, "The name of " + whose));
      v1::Region record;
      record.set_name(region.name);
      record.set_role(static_cast<std::uint32_t>(region.role));
      record.set_element(static_cast<std::uint32_t>(region.element));
      record.set_bytes(region.bytes);
      record.set_alignment(region.alignment);
      record.set_frozen(region.frozen);
      if (std::holds_alternative<ZeroStart>(region.start)) {
        record.mutable_zero();
      } else if (const auto* const bytes = std::get_if<SharedBytes>(&region.start)) {
        constexpr std::uint32_t kMost = LoadLimits{}.alignment;
        if (region.alignment > kMost) {
          return refuse(ErrorKind::file_limit, "The " + whose + " starts with bytes aligned to " +
                                                   std::to_string(region.alignment) +
                                                   ", more than the limit of " +
                                                   std::to_string(kMost) + ".");
        }
        record.mutable_stored()->set_section(kConstants);
        record.mutable_stored()->set_offset(add_constant(bytes->span(), region.alignment));
      }
      REFRAIN_TRY(append(regions_, record, "The " + whose));
      ++counts_.regions;
    }
    return {};
  }

  /// All bytes that a region starts with lie in CONST, short ones too: a reader then has one way
  /// to them, in place, and no message ever carries them. Answers the offset.
  std::uint64_t add_constant(Piece bytes, std::uint32_t alignment) {
    const std::uint32_t least = bytes.size() >= kPage ? kPage : kLine;
    const std::uint64_t at =
        align_up(constants_end_, std::clamp<std::uint32_t>(alignment, least, kPage));
    append_zeros(constants_, at - constants_end_);
    constants_.push_back(bytes);
    constants_end_ = at + bytes.size();
    ++constant_count_;
    return at;
  }

  Result<void> add_nodes() {
    v1::Node record;
    for (const Node& node : graph_.nodes()) {
      record.Clear();
      record.set_id(static_cast<std::uint32_t>(counts_.nodes));
      std::visit([&](const auto& call) { set(record, call); }, node.call);
      const bool relocates = record.has_kernel();
      for (const Argument& argument : graph_.arguments(node)) {
        v1::Argument& stored = *record.add_arguments();
        stored.set_relocation(
            static_cast<std::uint32_t>(relocates ? Relocation::address64 : Relocation::none));
        stored.set_offset(argument.offset);
        stored.set_direction(static_cast<std::uint32_t>(argument.direction));
        stored.set_region(argument.region);
        stored.set_begin(argument.range.begin);
        stored.set_size(argument.range.size());
        ++counts_.arguments;
      }
      std::span<const std::uint32_t> rest = graph_.dependencies(node);
      counts_.dependencies += rest.size();
      // At least one record, even without a dependency.
      do {
        const auto now = rest.first(std::min(rest.size(), kDependenciesPerRecord));
        record.mutable_dependencies()->Add(now.begin(), now.end());
        rest = rest.subspan(now.size());
        REFRAIN_TRY(append(nodes_, record, "Node " + std::to_string(counts_.nodes)));
        ++node_records_;
        record.clear_call();
        record.clear_arguments();
        record.clear_dependencies();
      } while (!rest.empty());
      ++counts_.nodes;
    }
    return {};
  }

  void set(v1::Node& record, const KernelCall& call) {
    v1::KernelCall& stored = *record.mutable_kernel();
    stored.set_kernel(call.kernel);
    stored.set_blocks_x(call.grid.blocks.x);
    stored.set_blocks_y(call.grid.blocks.y);
    stored.set_blocks_z(call.grid.blocks.z);
    stored.set_threads_x(call.grid.threads.x);
    stored.set_threads_y(call.grid.threads.y);
    stored.set_threads_z(call.grid.threads.z);
    stored.set_shared_bytes(call.grid.shared_bytes);
    if (const LaunchAttributes& asked = call.grid.attributes; asked != LaunchAttributes{}) {
      v1::LaunchAttributes& attributes = *stored.mutable_attributes();
      attributes.set_cluster_x(asked.cluster.x);
      attributes.set_cluster_y(asked.cluster.y);
      attributes.set_cluster_z(asked.cluster.z);
      attributes.set_cooperative(asked.cooperative);
      attributes.set_priority(asked.priority);
      attributes.set_programmatic(asked.programmatic);
      has_attributes_ = true;
    }
    const Piece block = graph_.block(call);
    stored.set_block(block.data(), block.size());
    counts_.parameter_bytes += block.size();
  }
  static void set(v1::Node&, const HostCall&) {}            // never portable
  static void set(v1::Node&, const NativeFunctionCall&) {}  // not portable yet
  static void set(v1::Node& record, const CopyCall&) { record.mutable_copy(); }
  static void set(v1::Node& record, const FillCall& call) {
    record.mutable_fill()->set_pattern(call.pattern);
    record.mutable_fill()->set_width(call.width);
  }

  const SealedGraph& graph_;
  Counts counts_;
  v1::CaptureHead head_;
  std::string symbols_;
  std::uint32_t symbol_count_ = 0;
  std::map<PortableCode::Digest, std::uint32_t> code_numbers_;
  std::vector<std::shared_ptr<const PortableCode>> code_;
  bool has_effects_ = false;
  bool has_attributes_ = false;
  std::string regions_;
  std::string nodes_;
  std::uint64_t node_records_ = 0;
  std::vector<Piece> constants_;
  std::uint64_t constants_end_ = 0;
  std::uint64_t constant_count_ = 0;
};

}  // namespace

Result<void> write_graph(const SealedGraph& graph, ContainerWriter& file) {
  return GraphWriter(graph).write(file);
}

}  // namespace refrain::format
