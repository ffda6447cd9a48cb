// Protobuf messages in a section: one alone, or records, each behind its length. Records are read
// one by one into one message, so that a million of them need the memory of one.
#pragma once

#include <google/protobuf/message_lite.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "container.hpp"
#include "refrain/base/result.hpp"

namespace refrain::format {

/// Whether `text` is UTF-8 throughout.
bool is_utf8(std::string_view text) noexcept;

/// Refuses a name that is too long or not UTF-8; `whose` begins what is said of it.
Result<void> check_name(const VerifiedContainer& container, const LoadLimits& limits,
                        const std::string& name, const std::string& whose);

/// Appends `message` behind its length; false, and nothing appended, when it is larger than
/// `kLargestRecord`.
bool append_record(std::string& section, const google::protobuf::MessageLite& message);

/// Reads the one message of `section`, of at most `kLargestMessage` bytes.
Result<void> read_message(const VerifiedContainer& container, std::size_t section,
                          google::protobuf::MessageLite& message);

/// Walks the records of a section.
class RecordReader {
 public:
  RecordReader(const VerifiedContainer& container, std::size_t section) noexcept
      : container_(container), section_(section), bytes_(container.bytes(section)) {}

  [[nodiscard]] bool at_end() const noexcept { return at_ == bytes_.size(); }

  /// The next record. There is one: `at_end()` is false.
  Result<void> read(google::protobuf::MessageLite& message);

  /// Refuses a section whose table entry counts another number of records than were read.
  Result<void> check_count() const;

 private:
  const VerifiedContainer& container_;
  std::size_t section_;
  std::span<const std::byte> bytes_;
  std::size_t at_ = 0;
  std::uint64_t read_ = 0;
};

}  // namespace refrain::format
