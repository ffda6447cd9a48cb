#include "refrain/capture/sealed_graph.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <set>
#include <utility>

#include "byte_order.hpp"
#include "refrain/base/text.hpp"

namespace refrain {
namespace {

Error refused(std::string message) {
  return Error(ErrorKind::invalid_argument, std::move(message));
}

bool known(ElementType type) noexcept {
  return static_cast<std::uint8_t>(type) <= kLastElementType;
}
bool known(Direction direction) noexcept { return direction <= Direction::in_out; }
bool known(CodeKind kind) noexcept {
  return kind >= CodeKind::cubin && static_cast<std::uint8_t>(kind) <= kLastCodeKind;
}
bool known(ParameterKind kind) noexcept {
  return kind >= ParameterKind::view && kind <= ParameterKind::field;
}

bool fits(Slice slice, std::size_t size) noexcept {
  return slice.first <= size && slice.count <= size - slice.first;
}

/// Checks what one part says against the others, in the order in which they lean on each other.
class Checker {
 public:
  explicit Checker(const GraphParts& parts) : parts_(parts) {}

  Result<void> check() {
    if (parts_.nodes.size() > 0xFFFFFFFFU || parts_.regions.size() > 0xFFFFFFFFU) {
      return refused("A graph has at most 2^32 - 1 nodes and as many regions.");
    }
    for (const KernelSignature& kernel : parts_.kernels) REFRAIN_TRY(check(kernel));
    for (std::size_t at = 0; at < parts_.regions.size(); ++at) {
      REFRAIN_TRY(check(parts_.regions[at], at));
    }
    REFRAIN_TRY(check_functions(parts_.host_functions, "host"));
    REFRAIN_TRY(check_functions(parts_.native_functions, "native"));
    for (std::size_t at = 0; at < parts_.nodes.size(); ++at) {
      REFRAIN_TRY(check(parts_.nodes[at], at));
    }
    return check_stream_order();
  }

 private:
  template <class Function>
  Result<void> check_functions(const std::vector<std::shared_ptr<const Function>>& functions,
                               const char* kind) {
    for (const auto& function : functions) {
      if (function == nullptr || !function->body) {
        return refused("A " + std::string(kind) + " function has no body.");
      }
      REFRAIN_TRY(check(function->signature));
    }
    return {};
  }

  Result<void> check_stream_order() {
    std::uint32_t last = 0;
    for (const NodeOrder& order : parts_.stream_order) {
      const bool sound = order.before < order.after && order.after < parts_.nodes.size() &&
                         order.after >= last &&
                         effects_of(parts_, parts_.nodes[order.before])
                             .ordered_with(effects_of(parts_, parts_.nodes[order.after]));
      if (!sound) {
        return refused("Node " + std::to_string(order.after) + " is said to follow node " +
                       std::to_string(order.before) + ", and their effects do not ask for that.");
      }
      last = order.after;
    }
    return {};
  }

  Result<void> check(const KernelSignature& kernel) {
    const std::string name = "Kernel " + quote(kernel.name);
    if (kernel.name.empty()) return refused("A kernel has no name.");
    if ((kernel.source.code == nullptr) != kernel.source.symbol.empty()) {
      return refused(name + " has a code image without a symbol, or a symbol without an image.");
    }
    if (const PortableCode* const code = kernel.source.code.get();
        code != nullptr && (!known(code->kind) || code->bytes.size() == 0)) {
      return refused(name + " has a code image that is empty, or of a kind that there is not.");
    }
    std::uint64_t at = 0;
    std::uint64_t structure_end = 0;
    for (const Parameter& parameter : kernel.parameters) {
      if (!known(parameter.kind) || !known(parameter.direction) || !known(parameter.element)) {
        return refused(name + " has a parameter at offset " + std::to_string(parameter.offset) +
                       " of a kind, direction or element type that there is not.");
      }
      const std::uint64_t end = std::uint64_t{parameter.offset} + parameter.size;
      const bool field = parameter.kind == ParameterKind::field;
      const bool view = parameter.kind == ParameterKind::view;
      const std::uint64_t least = field ? at : std::max(at, structure_end);
      const bool sound = parameter.size != 0 && std::has_single_bit(parameter.alignment) &&
                         parameter.offset % parameter.alignment == 0 && parameter.offset >= least &&
                         end <= (field ? structure_end : kernel.block_bytes) &&
                         (!view || parameter.size == 8) &&
                         view == (parameter.direction != Direction::none);
      if (!sound) {
        return refused(name + " has a parameter at offset " + std::to_string(parameter.offset) +
                       " of " + std::to_string(parameter.size) +
                       " bytes that does not fit its block of " +
                       std::to_string(kernel.block_bytes) + " bytes.");
      }
      if (parameter.kind == ParameterKind::structure) {
        structure_end = end;
        at = parameter.offset;  // its fields lie within it
      } else {
        at = end;
      }
    }
    return {};
  }

  Result<void> check(const Region& region, std::size_t at) {
    const std::string name =
        "Region " + (region.name.empty() ? std::to_string(at) : quote(region.name));
    if (region.bytes == 0) return refused(name + " has no bytes.");
    if (static_cast<std::uint8_t>(region.role) > kLastRole || !known(region.element)) {
      return refused(name + " has a role or an element type that there is not.");
    }
    if (region.frozen && region.role != Role::constant) {
      return refused(name + " holds frozen bytes and is no constant.");
    }
    if (!std::has_single_bit(region.alignment)) {
      return refused(name + " has an alignment of " + std::to_string(region.alignment) +
                     ", which is no power of two.");
    }
    if (!region.name.empty() && !names_.insert(region.name).second) {
      return refused("Two regions are called " + quote(region.name) + ".");
    }
    const SharedBytes* const bytes = std::get_if<SharedBytes>(&region.start);
    if (bytes != nullptr && bytes->size() != region.bytes) {
      return refused(name + " has " + std::to_string(region.bytes) + " bytes and starts with " +
                     std::to_string(bytes->size()) + ".");
    }
    if (region.role == Role::constant && bytes == nullptr) {
      return refused(name + " is a constant without bytes.");
    }
    return {};
  }

  Result<void> check(const Node& node, std::size_t at) {
    const std::string name = "Node " + std::to_string(at);
    if (!fits(node.arguments, parts_.arguments.size())) {
      return refused(name + " names arguments that are not there.");
    }
    const std::span<const Argument> arguments =
        std::span(parts_.arguments).subspan(node.arguments.first, node.arguments.count);
    for (const Argument& argument : arguments) REFRAIN_TRY(check(argument, name));
    return std::visit([&](const auto& call) { return check(call, arguments, name); }, node.call);
  }

  Result<void> check(const Argument& argument, const std::string& name) {
    if (argument.region >= parts_.regions.size()) {
      return refused(name + " names region " + std::to_string(argument.region) + " of " +
                     std::to_string(parts_.regions.size()) + ".");
    }
    const Region& region = parts_.regions[argument.region];
    if (argument.range.begin > argument.range.end || argument.range.end > region.bytes) {
      return refused(name + " names bytes " + text(argument.range) + " of region " +
                     quote(region.name) + ", which has " + std::to_string(region.bytes) + ".");
    }
    if (!does_read(argument.direction) && !does_write(argument.direction)) {
      return refused(name + " has an argument without a direction.");
    }
    if (region.role == Role::constant && does_write(argument.direction)) {
      return Error(ErrorKind::constant_written,
                   name + " writes " + quote(region.name) + ", which is a constant.");
    }
    return {};
  }

  Result<void> check(const KernelCall& call, std::span<const Argument> arguments,
                     const std::string& name) {
    if (call.kernel >= parts_.kernels.size()) {
      return refused(name + " names kernel " + std::to_string(call.kernel) + " of " +
                     std::to_string(parts_.kernels.size()) + ".");
    }
    const KernelSignature& kernel = parts_.kernels[call.kernel];
    if (call.grid.empty()) return refused(name + " has an empty grid.");
    if (!fits(call.block, parts_.parameter_bytes.size()) ||
        call.block.count != kernel.block_bytes) {
      return refused(name + " has a parameter block of " + std::to_string(call.block.count) +
                     " bytes, and its kernel " + text(kernel) + " takes " +
                     std::to_string(kernel.block_bytes) + ".");
    }
    REFRAIN_TRY(check_views(kernel, arguments, name));
    for (const Argument& argument : arguments) {
      // An address in a block would be one of another process.
      const std::byte* const place =
          parts_.parameter_bytes.data() + call.block.first + argument.offset;
      for (std::size_t byte = 0; byte < 8; ++byte) {
        if (place[byte] != std::byte{0}) {
          return refused(name + " holds an address at offset " + std::to_string(argument.offset) +
                         ".");
        }
      }
    }
    return {};
  }

  Result<void> check(const HostCall& call, std::span<const Argument> arguments,
                     const std::string& name) {
    if (call.function >= parts_.host_functions.size()) {
      return refused(name + " names host function " + std::to_string(call.function) + " of " +
                     std::to_string(parts_.host_functions.size()) + ".");
    }
    return check_views(parts_.host_functions[call.function]->signature, arguments, name);
  }

  Result<void> check(const NativeFunctionCall& call, std::span<const Argument> arguments,
                     const std::string& name) {
    if (call.function >= parts_.native_functions.size()) {
      return refused(name + " names native function " + std::to_string(call.function) + " of " +
                     std::to_string(parts_.native_functions.size()) + ".");
    }
    const NativeFunction& function = *parts_.native_functions[call.function];
    if (function.workspace_bytes != 0) {
      if (arguments.empty() || !is_workspace(arguments.back(), function)) {
        return refused(name + " has no workspace of " + std::to_string(function.workspace_bytes) +
                       " bytes for " + quote(function.signature.name) + ".");
      }
      arguments = arguments.first(arguments.size() - 1);
    }
    return check_views(function.signature, arguments, name);
  }

  [[nodiscard]] bool is_workspace(const Argument& argument, const NativeFunction& function) const {
    const Region& region = parts_.regions[argument.region];
    return argument.direction == Direction::out &&
           argument.offset == function.signature.block_bytes &&
           argument.range == ByteRange{0, function.workspace_bytes} &&
           region.bytes == function.workspace_bytes && region.alignment >= kWorkspaceAlignment;
  }

  Result<void> check_views(const KernelSignature& kernel, std::span<const Argument> arguments,
                           const std::string& name) {
    std::size_t used = 0;
    for (const Parameter& parameter : kernel.parameters) {
      if (parameter.kind != ParameterKind::view) continue;
      if (used == arguments.size()) {
        return refused(name + " has too few arguments for " + text(kernel) + ".");
      }
      const Argument& argument = arguments[used++];
      if (argument.offset != parameter.offset || argument.direction != parameter.direction) {
        return refused(name + " has an argument at offset " + std::to_string(argument.offset) +
                       " that is not the one its kernel " + text(kernel) + " takes at " +
                       std::to_string(parameter.offset) + ".");
      }
      const std::uint32_t element = size_of(parameter.element);
      if (argument.range.begin % element != 0 || argument.range.size() % element != 0) {
        return refused(name + " gives bytes " + text(argument.range) + " to " + text(kernel) +
                       " that are not whole elements of " + std::to_string(element) + " bytes.");
      }
    }
    if (used != arguments.size()) {
      return refused(name + " has too many arguments for " + text(kernel) + ".");
    }
    return {};
  }

  Result<void> check(const CopyCall&, std::span<const Argument> arguments,
                     const std::string& name) {
    if (arguments.size() != 2 || arguments[0].direction != Direction::in ||
        arguments[1].direction != Direction::out) {
      return refused(name + " is a copy and takes a source and a destination.");
    }
    if (arguments[0].range.size() != arguments[1].range.size()) {
      return refused(name + " copies " + std::to_string(arguments[0].range.size()) + " bytes to " +
                     std::to_string(arguments[1].range.size()) + ".");
    }
    if (arguments[0].region == arguments[1].region &&
        arguments[0].range.overlaps(arguments[1].range)) {
      return refused(name + " copies bytes " + text(arguments[0].range) + " onto themselves, to " +
                     text(arguments[1].range) + ".");
    }
    return {};
  }

  Result<void> check(const FillCall& call, std::span<const Argument> arguments,
                     const std::string& name) {
    if (arguments.size() != 1 || arguments[0].direction != Direction::out) {
      return refused(name + " is a fill and takes a destination.");
    }
    const bool known = call.width == 1 || call.width == 2 || call.width == 4;
    if (!known || arguments[0].range.size() % call.width != 0 ||
        (call.width < 4 && call.pattern >> (8 * call.width) != 0)) {
      return refused(name + " fills " + std::to_string(arguments[0].range.size()) +
                     " bytes with a pattern of " + std::to_string(call.width) +
                     " bytes that does not fit.");
    }
    return {};
  }

  const GraphParts& parts_;
  std::set<std::string_view> names_;
};

/// What `node` runs; null for copies and fills, and where it names a kernel that is not there.
const KernelSignature* signature_in(const GraphParts& parts, const Node& node) noexcept {
  if (const auto* const kernel = std::get_if<KernelCall>(&node.call)) {
    return kernel->kernel < parts.kernels.size() ? &parts.kernels[kernel->kernel] : nullptr;
  }
  if (const auto* const host = std::get_if<HostCall>(&node.call)) {
    return &parts.host_functions[host->function]->signature;
  }
  if (const auto* const native = std::get_if<NativeFunctionCall>(&node.call)) {
    return &parts.native_functions[native->function]->signature;
  }
  return nullptr;
}

std::string_view name_in(const GraphParts& parts, const Node& node) noexcept {
  if (const KernelSignature* const signature = signature_in(parts, node)) return signature->name;
  return std::holds_alternative<CopyCall>(node.call) ? "copy" : "fill";
}

/// Why `region` cannot be scratch, when `read` of it comes from outside.
Error scratch_read_first(const GraphParts& parts, std::uint32_t region, const ByteRangeSet& read) {
  const std::string& name = parts.regions[region].name;
  std::string by;
  for (std::size_t at = 0; by.empty() && at < parts.nodes.size(); ++at) {
    const Slice arguments = parts.nodes[at].arguments;
    for (const Argument& argument :
         std::span(parts.arguments).subspan(arguments.first, arguments.count)) {
      // The first to read such a byte is the one that did so before anybody wrote it.
      const bool reads =
          argument.region == region && does_read(argument.direction) &&
          std::any_of(read.ranges().begin(), read.ranges().end(),
                      [&](const ByteRange& r) { return r.overlaps(argument.range); });
      if (reads) by = std::to_string(at) + ", " + quote(name_in(parts, parts.nodes[at]));
    }
  }
  return refused("Scratch " + (name.empty() ? std::to_string(region) : quote(name)) +
                 " is read by node " + by + ", before anything in the graph writes it.");
}

}  // namespace

const Effects& effects_of(const GraphParts& parts, const Node& node) noexcept {
  static const Effects none;
  const KernelSignature* const signature = signature_in(parts, node);
  return signature != nullptr ? signature->effects : none;
}

Result<SealedGraph> SealedGraph::make(GraphParts parts, std::uint64_t most_steps) {
  REFRAIN_TRY(Checker(parts).check());

  auto body = std::make_shared<Body>();
  body->parts = std::move(parts);
  GraphParts& kept = body->parts;
  ByteOrder order(kept.regions.size());
  auto streams = kept.stream_order.begin();
  std::map<std::string_view, std::uint32_t> last_users;  // of each resource
  // Every dependency is a step, so no more than 32 bits can count are ever kept.
  most_steps = std::min<std::uint64_t>(most_steps, 0xFFFFFFFFU);
  for (std::uint32_t at = 0; at < kept.nodes.size(); ++at) {
    Node& node = kept.nodes[at];
    const std::span<const Argument> arguments =
        std::span(kept.arguments).subspan(node.arguments.first, node.arguments.count);
    order.begin_node(at);
    const auto too_much = [&] {
      return Error(ErrorKind::file_limit,
                   "The order of its nodes takes more than " + std::to_string(most_steps) +
                       " steps to find, at node " + std::to_string(at) + ".");
    };
    for (; streams != kept.stream_order.end() && streams->after == at; ++streams) {
      order.follow(streams->before);
    }
    if (const Effects& effects = effects_of(kept, node); effects.kind() == Effects::Kind::uses) {
      const auto [last, first_use] = last_users.try_emplace(effects.resource(), at);
      if (!first_use) order.follow(std::exchange(last->second, at));
    }
    if (order.steps() > most_steps) return too_much();
    // Reads first: a node that works in place reads what earlier nodes left.
    for (const Argument& argument : arguments) {
      // Constants are never written, so they order nothing and nobody brings them.
      if (does_read(argument.direction) && kept.regions[argument.region].role != Role::constant) {
        order.read(argument.region, argument.range);
        if (order.steps() > most_steps) return too_much();
      }
    }
    for (const Argument& argument : arguments) {
      if (!does_write(argument.direction)) continue;
      order.write(argument.region, argument.range);
      if (order.steps() > most_steps) return too_much();
    }
    node.dependencies.first = static_cast<std::uint32_t>(body->dependencies.size());
    order.end_node(body->dependencies);
    node.dependencies.count =
        static_cast<std::uint32_t>(body->dependencies.size()) - node.dependencies.first;
  }
  for (std::uint32_t region = 0; region < kept.regions.size(); ++region) {
    const ByteRangeSet& read = order.external(region);
    Region& described = kept.regions[region];
    if (described.role == Role::none && described.name.empty() && read.empty()) {
      described.role = Role::scratch;
    }
    if (described.role == Role::scratch && !read.empty()) {
      return scratch_read_first(kept, region, read);
    }
    for (const ByteRange& range : read.ranges()) body->external_reads.push_back({region, range});
    for (const ByteRange& range : order.written(region).ranges()) {
      body->writes.push_back({region, range});
      for (const ByteRange& fresh : read.missing(range)) {
        body->fresh_writes.push_back({region, fresh});
      }
    }
  }
  return SealedGraph(std::move(body));
}

std::vector<std::uint32_t> SealedGraph::frozen() const {
  std::vector<std::uint32_t> found;
  for (std::uint32_t at = 0; at < regions().size(); ++at) {
    if (regions()[at].frozen) found.push_back(at);
  }
  return found;
}

std::optional<std::uint32_t> SealedGraph::region(std::string_view name) const noexcept {
  if (name.empty()) return std::nullopt;
  for (std::uint32_t at = 0; at < regions().size(); ++at) {
    if (regions()[at].name == name) return at;
  }
  return std::nullopt;
}

std::string SealedGraph::title() const {
  const std::string place = name() == kUnnamedGraph ? text(body_->parts.sealed) : "";
  return place.empty() ? quote(name()) : place.substr(1);
}

std::string SealedGraph::replay_name() const {
  return name() == kUnnamedGraph ? kUnnamedGraph + text(body_->parts.sealed) : "graph " + name();
}

std::string_view SealedGraph::node_name(const Node& node) const noexcept {
  return name_in(body_->parts, node);
}

std::vector<std::string> SealedGraph::not_portable() const {
  std::vector<std::string> reasons;
  std::uint32_t last = ~std::uint32_t{0};
  for (const RegionBytes& read : external_reads()) {
    const Region& region = regions()[read.region];
    if (read.region == last || region.role == Role::input || region.role == Role::state) continue;
    last = read.region;
    reasons.push_back("Region " +
                      (region.name.empty() ? std::to_string(read.region) : quote(region.name)) +
                      " is read before the graph writes it, and its role is " +
                      std::string(refrain::name_of(region.role)) +
                      "; declare it as an input, a state or a constant.");
  }
  for (std::size_t at = 0; at < nodes().size(); ++at) {
    const Node& node = nodes()[at];
    const std::string name = "Node " + std::to_string(at) + ", " + quote(node_name(node));
    if (std::holds_alternative<HostCall>(node.call)) {
      reasons.push_back(name +
                        ", is host work, whose function is this process's own; register it as a "
                        "kernel.");
    } else if (std::holds_alternative<NativeFunctionCall>(node.call)) {
      reasons.push_back(name +
                        ", is native work, whose body is this process's own; no file can hold it "
                        "yet.");
    }
    const auto* const launch = std::get_if<KernelCall>(&node.call);
    if (launch == nullptr) continue;
    const KernelSignature& kernel = kernels()[launch->kernel];
    if (kernel.source.own == nullptr || kernel.source.code != nullptr) continue;
    reasons.push_back(name +
                      ", launches a kernel that this process has by itself; add a code image that "
                      "has it as " +
                      text(kernel) + " before it is asked for.");
  }
  return reasons;
}

std::string_view name_of(Role role) noexcept {
  switch (role) {
    case Role::none: return "none";
    case Role::input: return "input";
    case Role::output: return "output";
    case Role::state: return "state";
    case Role::constant: return "constant";
    case Role::scratch: return "scratch";
  }
  return "?";
}

}  // namespace refrain
