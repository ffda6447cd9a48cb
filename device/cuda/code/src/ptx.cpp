#include "ptx.hpp"

#include <algorithm>
#include <bit>
#include <charconv>
#include <string>
#include <utility>

#include "ptx_tokens.hpp"
#include "refrain/base/text.hpp"

namespace refrain::cuda {
namespace {

std::string_view as_text(Bytes bytes) noexcept {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// A number of at most 32 bits, as PTX writes it: decimal, 0x, 0b or 0 (octal), with or without U.
std::optional<std::uint32_t> number_of(std::string_view word) noexcept {
  if (!word.empty() && word.back() == 'U') word.remove_suffix(1);
  int base = 10;
  if (word.size() > 1 && word.front() == '0') {
    const bool hex = word[1] == 'x' || word[1] == 'X';
    const bool binary = word[1] == 'b' || word[1] == 'B';
    base = hex ? 16 : binary ? 2 : 8;
    word.remove_prefix(hex || binary ? 2 : 1);
  }
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number, base);
  if (error != std::errc() || end != word.data() + word.size()) return std::nullopt;
  return number;
}

/// Bytes of a fundamental type, as ".u32"; 0 for whatever else.
std::uint32_t bytes_of_type(std::string_view word) noexcept {
  if (word.size() < 3 || word.front() != '.') return 0;
  const char kind = word[1];
  if (kind != 'b' && kind != 'u' && kind != 's' && kind != 'f') return 0;
  const std::string_view bits = word.substr(2);
  if (bits == "8" && kind != 'f') return 1;
  if (bits == "16") return 2;
  if (bits == "32") return 4;
  if (bits == "64") return 8;
  if (bits == "128" && kind == 'b') return 16;
  return 0;
}

bool is_name(std::string_view word) noexcept {
  return !word.empty() && PtxTokens::is_word(word.front());
}

class PtxReader {
 public:
  PtxReader(std::string_view text, Budget& budget)
      : tokens_(text), budget_(budget), kernels_(budget) {}

  Result<CodeObject> read();

 private:
  Result<void> version();
  Result<void> target();
  Result<void> entry();
  Result<void> parameters(KernelImage& kernel);
  Result<void> parameter(KernelImage& kernel);
  Result<void> place(KernelImage& kernel, std::uint64_t bytes, std::uint64_t alignment) const;
  /// Up to the body or the end of a declaration; false for the latter.
  Result<bool> directives(KernelImage& kernel);
  Result<void> pragma();
  Result<void> body();
  Result<std::uint32_t> number(std::string_view what);
  Result<KernelImage::Extent> extent(std::string_view what);

  std::string_view advance() { return word_ = tokens_.next(); }
  /// Why this is no PTX, at the word where that shows.
  [[nodiscard]] Error wrong(const std::string& what) const;

  PtxTokens tokens_;
  std::string_view word_;
  Budget& budget_;
  KernelGathering kernels_;
  CodeObject object_;
};

Error PtxReader::wrong(const std::string& what) const {
  if (!tokens_.problem().empty()) return damaged("In the PTX, " + tokens_.problem() + ".");
  if (word_.empty()) return damaged("The PTX ends where " + what + ".");
  constexpr std::size_t kShown = 64;
  return damaged("In line " + std::to_string(tokens_.line()) + " of the PTX stands " +
                 quote(word_.substr(0, kShown)) + " where " + what + ".");
}

Result<CodeObject> PtxReader::read() {
  object_.kind = ObjectKind::ptx;
  advance();
  REFRAIN_TRY(version());
  while (!word_.empty()) {
    if (word_ == ".target") {
      REFRAIN_TRY(target());
    } else if (word_ == ".entry") {
      REFRAIN_TRY(entry());
    } else if (word_ == "{") {
      REFRAIN_TRY(body());
    } else {
      advance();
    }
  }
  if (!tokens_.problem().empty()) return wrong("");
  if (object_.architecture.number == 0) return damaged("The PTX has no .target.");
  auto kernels = std::move(kernels_).finish();
  if (!kernels) return std::move(kernels).error();
  object_.kernels = *std::move(kernels);
  return std::move(object_);
}

Result<void> PtxReader::version() {
  constexpr std::string_view kWhat = "a version as 8.4 is to be";
  constexpr std::uint32_t kMost = 1'000;
  if (word_ != ".version") return wrong(".version is to be");
  const auto major = number_of(advance());
  if (!major || *major > kMost) return wrong(std::string(kWhat));
  advance();
  const auto minor = word_.size() == 2 && word_[0] == '.' ? number_of(word_.substr(1))
                                                          : std::optional<std::uint32_t>();
  if (!minor) return wrong(std::string(kWhat));
  object_.ptx_version = *major * 10 + *minor;
  advance();
  return {};
}

Result<void> PtxReader::target() {
  constexpr std::uint32_t kMost = 10'000;
  constexpr std::string_view kStart = "sm_";
  advance();
  const bool starts = word_.substr(0, kStart.size()) == kStart;
  std::string_view digits = starts ? word_.substr(kStart.size()) : std::string_view();
  Architecture architecture;
  if (!digits.empty() && (digits.back() == 'a' || digits.back() == 'f')) {
    architecture.suffix = digits.back();
    digits.remove_suffix(1);
  }
  const auto number = number_of(digits);
  if (!number || *number == 0 || *number > kMost) return wrong("an architecture as sm_90 is to be");
  architecture.number = *number;
  object_.architecture = architecture;
  advance();
  return {};
}

Result<void> PtxReader::entry() {
  if (!is_name(advance())) return wrong("the name of a kernel is to be");
  auto kernel = kernels_.begin(word_);
  if (!kernel) return std::move(kernel).error();
  if (advance() == "(") REFRAIN_TRY(parameters(*kernel));
  const auto has_body = directives(*kernel);
  if (!has_body) return has_body.error();
  if (!*has_body) return {};
  REFRAIN_TRY(body());
  return kernels_.add(*std::move(kernel));
}

Result<void> PtxReader::parameters(KernelImage& kernel) {
  if (advance() == ")") {
    advance();
    return {};
  }
  while (true) {
    REFRAIN_TRY(parameter(kernel));
    const bool last = word_ == ")";
    if (!last && word_ != ",") return wrong("a comma or the end of the parameters is to be");
    advance();
    if (last) return {};
  }
}

Result<void> PtxReader::parameter(KernelImage& kernel) {
  if (word_ != ".param") return wrong("a .param is to be");
  std::uint32_t type_bytes = 0;
  std::uint32_t alignment = 0;
  bool is_pointer = false;
  for (advance(); !word_.empty() && word_.front() == '.'; advance()) {
    if (word_ == ".ptr") {
      is_pointer = true;
    } else if (word_ == ".align") {
      const auto value = number("an alignment");
      if (!value) return value.error();
      if (!std::has_single_bit(*value))
        return wrong("an alignment that is a power of two is to be");
      if (!is_pointer) alignment = *value;  // behind .ptr it is that of what is pointed to
    } else if (const std::uint32_t bytes = bytes_of_type(word_); bytes != 0) {
      type_bytes = bytes;
    } else if (!is_pointer) {
      return Error(ErrorKind::file_version, "Kernel " + quote(kernel.name) + " has in line " +
                                                std::to_string(tokens_.line()) +
                                                " of the PTX a parameter of the type " +
                                                quote(word_) + ", which is not read.");
    }
  }
  if (type_bytes == 0) return wrong("the type of a parameter is to be");
  if (!is_name(word_)) return wrong("the name of a parameter is to be");
  std::uint64_t count = 1;
  if (advance() == "[") {
    const auto value = number("the length of an array");
    if (!value) return value.error();
    count = *value;
    if (advance() != "]") return wrong("the end of an array's length is to be");
    advance();
  }
  return place(kernel, type_bytes * count, alignment != 0 ? alignment : type_bytes);
}

Result<void> PtxReader::place(KernelImage& kernel, std::uint64_t bytes,
                              std::uint64_t alignment) const {
  const CodeImageLimits& limits = budget_.limits;
  // Neither is more than 36 bits long, so this does not overflow.
  const std::uint64_t offset = (kernel.parameter_bytes + alignment - 1) / alignment * alignment;
  if (kernel.parameters.size() == limits.parameters || offset + bytes > limits.parameter_bytes) {
    return Error(ErrorKind::file_limit, "Kernel " + quote(kernel.name) +
                                            " has more parameters than the limits of " +
                                            std::to_string(limits.parameters) + " and of " +
                                            std::to_string(limits.parameter_bytes) + " bytes.");
  }
  kernel.parameters.push_back(
      {static_cast<std::uint32_t>(offset), static_cast<std::uint32_t>(bytes)});
  kernel.parameter_bytes = static_cast<std::uint32_t>(offset + bytes);
  return {};
}

Result<bool> PtxReader::directives(KernelImage& kernel) {
  while (word_ != "{" && word_ != ";") {
    if (word_.empty()) return wrong("the body of kernel " + quote(kernel.name) + " is to be");
    if (word_ == ".pragma") {
      REFRAIN_TRY(pragma());
    } else if (word_ == ".maxntid") {
      const auto block = extent("a block");
      if (!block) return block.error();
      kernel.max_threads = threads_of(*block);
      if (!kernel.max_threads) return wrong("no block of more threads than can be is behind it");
    } else if (word_ == ".reqntid") {
      const auto block = extent("a block");
      if (!block) return block.error();
      kernel.required_block = *block;
    } else if (word_ == ".reqnctapercluster") {
      const auto cluster = extent("a cluster");
      if (!cluster) return cluster.error();
      kernel.cluster = *cluster;
    } else if (word_ == ".maxclusterrank" || word_ == ".minnctapersm") {
      auto& to = word_ == ".maxclusterrank" ? kernel.max_cluster_blocks
                                            : kernel.min_blocks_per_multiprocessor;
      const auto value = number("a number");
      if (!value) return value.error();
      to = *value;
      advance();
    } else {
      advance();
    }
  }
  return word_ == "{";
}

/// Passes over a list of strings and its semicolon, which does not end the declaration.
Result<void> PtxReader::pragma() {
  while (advance() != ";") {
    if (word_.empty() || (word_.front() != '"' && word_ != ",")) {
      return wrong("the strings of a .pragma are to be");
    }
  }
  advance();
  return {};
}

/// Passes over braces and what is between them.
Result<void> PtxReader::body() {
  const std::size_t line = tokens_.line();
  std::uint64_t depth = 0;
  do {
    if (word_ == "{") ++depth;
    if (word_ == "}") --depth;
    if (word_.empty()) {
      return wrong("the end of what begins in line " + std::to_string(line) + " is to be");
    }
    advance();
  } while (depth != 0);
  return {};
}

Result<std::uint32_t> PtxReader::number(std::string_view what) {
  const auto value = number_of(advance());
  if (!value) return wrong(std::string(what) + " is to be");
  return *value;
}

/// One to three numbers; those that are left out are 1.
Result<KernelImage::Extent> PtxReader::extent(std::string_view what) {
  KernelImage::Extent extent{1, 1, 1};
  for (std::uint32_t& each : extent) {
    const auto value = number("the size of " + std::string(what));
    if (!value) return value.error();
    each = *value;
    if (advance() != ",") break;
  }
  return extent;
}

}  // namespace

bool looks_like_ptx(Bytes bytes) { return PtxTokens(as_text(bytes)).next() == ".version"; }

Result<CodeObject> read_ptx(Bytes bytes, Budget& budget) {
  const std::string_view text = as_text(bytes);
  const std::size_t end = std::min(text.find('\0'), text.size());
  if (text.find_first_not_of('\0', end) != std::string_view::npos) {
    return damaged("The PTX goes on behind the zero at its byte " + std::to_string(end) + ".");
  }
  return PtxReader(text.substr(0, end), budget).read();
}

}  // namespace refrain::cuda
