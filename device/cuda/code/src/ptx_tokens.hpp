// PTX text as words: what a kernel's declaration is made of. Comments and space are left out, a
// word that starts with a point ends before the next point, and whatever is no word is one
// character. Strings are words that start with a quote.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace refrain::cuda {

class PtxTokens {
 public:
  explicit PtxTokens(std::string_view text) noexcept : text_(text) {}

  /// Whether names and numbers are made of such characters.
  static bool is_word(char each) noexcept;

  /// The next word; empty at the end, and from a comment or string on that has no end.
  std::string_view next();

  /// The line of the last word, from 1.
  [[nodiscard]] std::size_t line() const noexcept { return line_; }

  /// What ended the text before its end; empty if nothing did.
  [[nodiscard]] const std::string& problem() const noexcept { return problem_; }

 private:
  bool skip_space_and_comments();
  std::string_view take(std::size_t size);
  std::string_view give_up(const char* what);

  std::string_view text_;
  std::size_t line_ = 1;
  std::size_t lines_in_word_ = 0;  // of a string
  std::string problem_;
};

}  // namespace refrain::cuda
