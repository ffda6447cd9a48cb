// The seeds of the fuzzer as an ordinary test: each is read, and gives an error or an image that
// can be. What the fuzzer finds comes to lie beside them.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "handmade_image.hpp"

using namespace refrain;

TEST_CASE("corpus: every seed of the fuzzer is read, or refused for what it is") {
  std::size_t read = 0;
  std::size_t refused = 0;
  for (const auto& entry : std::filesystem::directory_iterator(REFRAIN_CODE_IMAGE_CORPUS)) {
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(file)), {});
    CAPTURE(entry.path().string());
    const auto parsed = test::parse(bytes);
    if (parsed.ok()) {
      ++read;
      CHECK(test::is_sound(*parsed, bytes.size()));
    } else {
      ++refused;
      CHECK_FALSE(parsed.error().message().empty());
    }
  }
  CHECK(read >= 4);
  CHECK(refused >= 4);
}
