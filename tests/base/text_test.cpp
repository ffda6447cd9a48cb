#include "refrain/base/text.hpp"

#include <doctest/doctest.h>

using namespace refrain;

TEST_CASE("text: a name is quoted, and what could steer a terminal is written out") {
  CHECK(quote("x") == "\"x\"");
  CHECK(quote("") == "\"\"");
  CHECK(quote("a\nb\x1b[2J\x7f") == "\"a\\x0ab\\x1b[2J\\x7f\"");
  CHECK(quote("\xC3\xA9") == "\"\xC3\xA9\"");  // UTF-8 stays
}

TEST_CASE("text: ranges and places") {
  CHECK(text(ByteRange{3, 9}) == "[3, 9)");
  CHECK(text(Where{"decode.cpp", 31}) == " (decode.cpp:31)");
  CHECK(text(Where{}).empty());
}
