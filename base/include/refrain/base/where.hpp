// Where in the caller's source a piece of work was issued, so that a failure found much later can
// say which line it came from. Captured by default arguments; costs two words and no text.
#pragma once

namespace refrain {

/// A place in source code. The file name has static storage.
struct Where {
  const char* file = "";
  int line = 0;

  /// The place of the call that this default argument belongs to.
  static constexpr Where here(const char* file = __builtin_FILE(),
                              int line = __builtin_LINE()) noexcept {
    return Where{file, line};
  }

  [[nodiscard]] constexpr bool known() const noexcept { return line != 0; }
};

}  // namespace refrain
