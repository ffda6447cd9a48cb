// Sets of bytes, against the plainest model there is: one flag a byte.
#include "refrain/base/byte_range.hpp"

#include <doctest/doctest.h>

#include <bitset>
#include <random>

namespace refrain {
namespace {

constexpr std::size_t kBytes = 96;
using Flags = std::bitset<kBytes>;

Flags flags(ByteRange range) {
  Flags set;
  for (std::uint64_t at = range.begin; at < range.end; ++at) set.set(at);
  return set;
}

Flags flags(const std::vector<ByteRange>& ranges) {
  Flags set;
  for (const ByteRange& range : ranges) set |= flags(range);
  return set;
}

/// Sorted, not empty, neither overlapping nor touching.
bool normal(const std::vector<ByteRange>& ranges) {
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    if (ranges[i].empty()) return false;
    if (i != 0 && ranges[i - 1].end >= ranges[i].begin) return false;
  }
  return true;
}

static_assert(ByteRange{}.empty());
static_assert(ByteRange{3, 3}.empty());
static_assert(ByteRange{5, 3}.empty(), "a range that ends before it begins has no bytes");
static_assert(ByteRange{2, 5}.size() == 3);
static_assert(ByteRange{0, 4}.overlaps({3, 9}));
static_assert(!ByteRange{0, 4}.overlaps({4, 9}), "ranges that touch share no byte");
static_assert(!ByteRange{0, 9}.overlaps({4, 4}), "no bytes are nobody's");
static_assert(!ByteRange{4, 4}.overlaps({0, 9}));
static_assert(!ByteRange{0, 9}.overlaps({6, 3}));
static_assert(ByteRange{0, 9}.contains({0, 9}));
static_assert(!ByteRange{1, 9}.contains({0, 9}));
static_assert(intersection({0, 6}, {4, 9}) == ByteRange{4, 6});
static_assert(intersection({0, 4}, {4, 9}) == ByteRange{});
static_assert(intersection({7, 9}, {0, 2}).empty());

}  // namespace

TEST_CASE("ByteRangeSet: ranges that overlap or touch are one range") {
  ByteRangeSet set;
  set.add({0, 4});
  set.add({8, 12});
  CHECK(set.ranges() == std::vector<ByteRange>{{0, 4}, {8, 12}});
  set.add({4, 8});
  CHECK(set.ranges() == std::vector<ByteRange>{{0, 12}});
  set.add({5, 6});
  CHECK(set.ranges() == std::vector<ByteRange>{{0, 12}});
  CHECK(set.contains({0, 12}));
  CHECK_FALSE(set.contains({0, 13}));
}

TEST_CASE("ByteRangeSet: taking away the middle leaves both ends") {
  ByteRangeSet set;
  set.add({0, 12});
  set.remove({4, 8});
  CHECK(set.ranges() == std::vector<ByteRange>{{0, 4}, {8, 12}});
  CHECK(set.missing({2, 10}) == std::vector<ByteRange>{{4, 8}});
  set.remove({0, 100});
  CHECK(set.empty());
  CHECK(set.missing({2, 10}) == std::vector<ByteRange>{{2, 10}});
}

TEST_CASE("ByteRangeSet: an empty range changes nothing and is never missing") {
  ByteRangeSet set;
  set.add({4, 4});
  set.add({5, 2});
  CHECK(set.empty());
  set.add({0, 8});
  set.remove({4, 4});
  set.remove({6, 2});
  CHECK(set.ranges() == std::vector<ByteRange>{{0, 8}});
  CHECK(set.missing({9, 9}).empty());
  CHECK(set.contains({100, 100}));
}

TEST_CASE("ByteRangeSet: reaches to the last number there is") {
  constexpr std::uint64_t last = ~std::uint64_t{0};
  ByteRangeSet set;
  set.add({0, last});
  set.remove({1, last - 1});
  CHECK(set.ranges() == std::vector<ByteRange>{{0, 1}, {last - 1, last}});
}

TEST_CASE("ByteRangeSet: agrees with one flag a byte over random operations") {
  const auto seed = std::random_device{}();
  INFO("seed " << seed);
  std::mt19937 random(seed);
  const auto range = [&] {
    const std::uint64_t a = random() % kBytes;
    const std::uint64_t longest = random() % 4 == 0 ? kBytes : 8;
    return ByteRange{a, std::min<std::uint64_t>(kBytes, a + random() % longest)};
  };
  ByteRangeSet set;
  Flags model;
  for (int step = 0; step < 50'000; ++step) {
    const ByteRange r = range();
    if (random() % 2 == 0) {
      set.add(r);
      model |= flags(r);
    } else {
      set.remove(r);
      model &= ~flags(r);
    }
    const ByteRange asked = range();
    const auto gaps = set.missing(asked);
    const bool agrees = normal(set.ranges()) && flags(set.ranges()) == model && normal(gaps) &&
                        flags(gaps) == (flags(asked) & ~model) &&
                        set.contains(asked) == (flags(asked) & ~model).none() &&
                        set.empty() == model.none();
    if (!agrees) {
      INFO("step " << step << ", range [" << r.begin << ", " << r.end << ")");
      REQUIRE(agrees);
    }
  }
  ByteRangeSet same;  // equality is equality of bytes, however they were added
  for (std::size_t at = kBytes; at-- != 0;) {
    if (model.test(at)) same.add({at, at + 1});
  }
  CHECK(same == set);
}

}  // namespace refrain
