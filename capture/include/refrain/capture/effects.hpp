// What work does besides reading and writing the bytes that it declares. Nobody can see that from
// outside, so it is said: by whoever registers a kernel, and by whoever issues host work. The order
// of a graph's nodes follows from it as it follows from their bytes.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

namespace refrain {

/// Nothing unless something is said. Two pieces of opaque work keep the order of their stream, and
/// so does one with work that uses a resource; users of one resource are ordered like writers of
/// the same bytes; users of two resources, and work without effects, are independent.
class Effects {
 public:
  /// Saved in files: never renumber.
  enum class Kind : std::uint8_t {
    none = 0,    ///< All that it does is in its arguments.
    opaque = 1,  ///< It does more, and nobody says what.
    uses = 2,    ///< It does more, to one resource that has a name.
  };

  Effects() = default;
  static Effects none() { return {}; }
  static Effects opaque() { return Effects(Kind::opaque, {}); }
  static Effects uses(std::string resource) { return Effects(Kind::uses, std::move(resource)); }

  [[nodiscard]] Kind kind() const noexcept { return kind_; }
  /// What is used; empty for the other kinds.
  [[nodiscard]] const std::string& resource() const noexcept { return resource_; }

  /// Whether both use one resource.
  [[nodiscard]] bool shares(const Effects& other) const noexcept {
    return kind_ == Kind::uses && *this == other;
  }
  /// Whether work that does this keeps its order toward work that does `other`.
  [[nodiscard]] bool ordered_with(const Effects& other) const noexcept {
    if (kind_ == Kind::none || other.kind_ == Kind::none) return false;
    return kind_ == Kind::opaque || other.kind_ == Kind::opaque || shares(other);
  }

  friend bool operator==(const Effects&, const Effects&) = default;

 private:
  Effects(Kind kind, std::string resource) : kind_(kind), resource_(std::move(resource)) {}

  Kind kind_ = Kind::none;
  std::string resource_;
};

inline constexpr std::uint8_t kLastEffectsKind = 2;

}  // namespace refrain
