// How the reader says no: every refusal names the file.
#pragma once

#include <string>
#include <string_view>

#include "refrain/base/error.hpp"
#include "refrain/base/text.hpp"

namespace refrain::format {

/// `The file "x" <what>`.
inline Error refuse_file(ErrorKind kind, std::string_view file, std::string_view what) {
  return Error(kind, "The file " + quote(file) + " " + std::string(what));
}

/// `In the file "x", <what>`.
inline Error refuse_in_file(ErrorKind kind, std::string_view file, std::string_view what) {
  return Error(kind, "In the file " + quote(file) + ", " + std::string(what));
}

}  // namespace refrain::format
