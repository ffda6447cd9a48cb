// Shared bytes are a private, aligned copy, or a view that keeps its owner alive.
#include "refrain/base/shared_bytes.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

namespace refrain {
namespace {

std::vector<std::byte> counted(std::size_t size) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 37 + 1);
  return bytes;
}

}  // namespace

TEST_CASE("SharedBytes: a copy of any size is exact and aligned to 64 bytes") {
  for (const std::size_t size : {0U, 1U, 3U, 63U, 64U, 65U, 127U, 128U, 1000U, 4097U}) {
    CAPTURE(size);
    const std::vector<std::byte> bytes = counted(size);
    const SharedBytes copy = SharedBytes::copy_of(bytes);
    REQUIRE(copy.size() == size);
    CHECK(reinterpret_cast<std::uintptr_t>(copy.data()) % 64 == 0);
    CHECK(std::equal(bytes.begin(), bytes.end(), copy.span().begin()));
  }
}

TEST_CASE("SharedBytes: a copy does not follow its source, and lives as long as any handle") {
  std::vector<std::byte> bytes = counted(100);
  SharedBytes last;
  {
    const SharedBytes first = SharedBytes::copy_of(bytes);
    last = first;
    CHECK(last.data() == first.data());
  }
  bytes.assign(bytes.size(), std::byte{0});
  CHECK(std::equal(last.span().begin(), last.span().end(), counted(100).begin()));
}

TEST_CASE("SharedBytes: a view keeps its owner, and nothing longer than the last handle") {
  auto owner = std::make_shared<std::vector<std::byte>>(counted(10));
  const std::weak_ptr<void> watch = owner;
  const std::byte* const data = owner->data();
  {
    const SharedBytes view(owner, std::span<const std::byte>(*owner).subspan(2, 5));
    owner.reset();
    CHECK_FALSE(watch.expired());
    CHECK(view.data() == data + 2);
    CHECK(view.size() == 5);
    CHECK(view.span()[0] == counted(10)[2]);
  }
  CHECK(watch.expired());
}

TEST_CASE("SharedBytes: one that was never filled has no bytes") {
  const SharedBytes none;
  CHECK(none.size() == 0);
  CHECK(none.span().empty());
}

}  // namespace refrain
