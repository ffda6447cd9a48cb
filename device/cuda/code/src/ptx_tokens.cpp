#include "ptx_tokens.hpp"

#include <algorithm>

namespace refrain::cuda {
namespace {

bool is_space(char each) noexcept {
  return each == ' ' || each == '\t' || each == '\n' || each == '\r' || each == '\v' ||
         each == '\f';
}

std::size_t lines_of(std::string_view text) noexcept {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

/// Where the string that `text` starts with ends, its quote included; npos if nowhere.
std::size_t string_end(std::string_view text) noexcept {
  for (std::size_t at = 1; at < text.size(); ++at) {
    if (text[at] == '\\') {
      ++at;
    } else if (text[at] == '"') {
      return at + 1;
    }
  }
  return std::string_view::npos;
}

}  // namespace

bool PtxTokens::is_word(char each) noexcept {
  return (each >= 'a' && each <= 'z') || (each >= 'A' && each <= 'Z') ||
         (each >= '0' && each <= '9') || each == '_' || each == '$' || each == '%';
}

std::string_view PtxTokens::next() {
  line_ += lines_in_word_;
  lines_in_word_ = 0;
  if (!skip_space_and_comments()) return give_up("a comment");
  if (text_.empty()) return {};
  if (text_.front() == '"') {
    const std::size_t end = string_end(text_);
    if (end == std::string_view::npos) return give_up("a string");
    lines_in_word_ = lines_of(text_.substr(0, end));
    return take(end);
  }
  const char first = text_.front();
  if (first != '.' && !is_word(first)) return take(1);
  const auto* const end = std::find_if_not(text_.begin() + 1, text_.end(), is_word);
  return take(static_cast<std::size_t>(end - text_.begin()));
}

/// False for a comment without an end.
bool PtxTokens::skip_space_and_comments() {
  while (!text_.empty()) {
    std::size_t end = 0;
    if (is_space(text_.front())) {
      end = 1;
    } else if (text_.substr(0, 2) == "//") {
      end = std::min(text_.find('\n'), text_.size());
    } else if (text_.substr(0, 2) == "/*") {
      end = text_.find("*/", 2);
      if (end == std::string_view::npos) return false;
      end += 2;
    } else {
      return true;
    }
    line_ += lines_of(take(end));
  }
  return true;
}

std::string_view PtxTokens::take(std::size_t size) {
  const std::string_view taken = text_.substr(0, size);
  text_.remove_prefix(size);
  return taken;
}

std::string_view PtxTokens::give_up(const char* what) {
  problem_ = std::string(what) + " that begins in line " + std::to_string(line_) + " has no end";
  text_ = {};
  return {};
}

}  // namespace refrain::cuda
