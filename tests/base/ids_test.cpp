// Ids of different things do not mix, and none of them can be computed with.
#include "refrain/base/ids.hpp"

#include <doctest/doctest.h>

#include <type_traits>
#include <unordered_set>

namespace refrain {
namespace {

template <class A, class B>
concept Comparable = requires(A a, B b) {
  a == b;
};
template <class A>
concept Addable = requires(A a) {
  a + a;
};
template <class A>
concept AddableToOne = requires(A a) {
  a + 1;
};

static_assert(Comparable<StreamId, StreamId>);
static_assert(!Comparable<StreamId, FailureId>);
static_assert(!Comparable<StreamId, std::uint64_t>);
static_assert(!std::is_convertible_v<StreamId, FailureId>);
static_assert(!std::is_convertible_v<std::uint64_t, StreamId>);
static_assert(!std::is_convertible_v<StreamId, std::uint64_t>);
static_assert(!std::is_constructible_v<StreamId, FailureId>);
static_assert(!Addable<StreamId> && !AddableToOne<FailureId> && !AddableToOne<KernelId>);
static_assert(sizeof(FailureId) == 8 && sizeof(KernelId) == 4);

}  // namespace

TEST_CASE("ids: zero means none") {
  CHECK_FALSE(static_cast<bool>(StreamId{}));
  CHECK(static_cast<bool>(StreamId(1)));
  CHECK_FALSE(static_cast<bool>(BufferId{}));
  CHECK_FALSE(static_cast<bool>(BufferId{1, 2, 0}));
  CHECK(static_cast<bool>(BufferId{0, 0, 1}));
}

TEST_CASE("ids: a buffer's id differs by device, slot and generation, also hashed") {
  const BufferId id{1, 2, 3};
  CHECK(id == BufferId{1, 2, 3});
  std::unordered_set<BufferId> set{id, BufferId{2, 2, 3}, BufferId{1, 3, 3}, BufferId{1, 2, 4}};
  CHECK(set.size() == 4);
  CHECK(set.contains(BufferId{1, 2, 3}));
}

}  // namespace refrain
