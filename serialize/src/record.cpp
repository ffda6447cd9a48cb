#include "record.hpp"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/stubs/common.h>

#include <algorithm>

#include "refusal.hpp"

namespace refrain::format {
namespace {

using google::protobuf::MessageLite;
using google::protobuf::io::CodedInputStream;
using google::protobuf::io::CodedOutputStream;

constexpr std::size_t kLongestLength = 5;  // 32 bits as a varint

/// `bytes` are few enough for an int.
bool parse(std::span<const std::byte> bytes, MessageLite& message) {
  const auto size = static_cast<int>(bytes.size());
  CodedInputStream input(reinterpret_cast<const std::uint8_t*>(bytes.data()), size);
  input.SetRecursionLimit(kDeepestMessage);
  input.SetTotalBytesLimit(size);
  return message.ParseFromCodedStream(&input) && input.ConsumedEntireMessage();
}

}  // namespace

bool is_utf8(std::string_view text) noexcept {
  return google::protobuf::internal::IsStructurallyValidUTF8(text.data(),
                                                             static_cast<int>(text.size()));
}

Result<void> check_name(const VerifiedContainer& container, const LoadLimits& limits,
                        const std::string& name, const std::string& whose) {
  if (name.size() > limits.name_bytes) {
    return refuse_in_file(ErrorKind::file_limit, container.file(),
                          whose + " has a name of " + std::to_string(name.size()) +
                              " bytes, more than the limit of " +
                              std::to_string(limits.name_bytes) + ".");
  }
  if (!is_utf8(name)) {
    return refuse_in_file(ErrorKind::file_damaged, container.file(),
                          whose + " has a name that is not UTF-8.");
  }
  return {};
}

bool append_record(std::string& section, const MessageLite& message) {
  const std::size_t size = message.ByteSizeLong();
  if (size > kLargestRecord) return false;
  std::uint8_t length[kLongestLength];
  const std::uint8_t* const end =
      CodedOutputStream::WriteVarint32ToArray(static_cast<std::uint32_t>(size), length);
  section.append(reinterpret_cast<const char*>(length), static_cast<std::size_t>(end - length));
  const std::size_t at = section.size();
  section.resize(at + size);
  message.SerializeWithCachedSizesToArray(reinterpret_cast<std::uint8_t*>(section.data() + at));
  return true;
}

Result<void> read_message(const VerifiedContainer& container, std::size_t section,
                          MessageLite& message) {
  const std::span<const std::byte> bytes = container.bytes(section);
  if (bytes.size() > kLargestMessage) {
    return refuse_in_file(ErrorKind::file_limit, container.file(),
                          container.describe(section) + " has " + std::to_string(bytes.size()) +
                              " bytes, more than the limit of " + std::to_string(kLargestMessage) +
                              ".");
  }
  if (!parse(bytes, message)) {
    return refuse_in_file(ErrorKind::file_damaged, container.file(),
                          container.describe(section) + " is no message of its kind.");
  }
  return {};
}

Result<void> RecordReader::read(MessageLite& message) {
  const std::span<const std::byte> rest = bytes_.subspan(at_);
  const auto refuse = [&](ErrorKind kind, const std::string& what) {
    return refuse_in_file(kind, container_.file(),
                          "record " + std::to_string(read_) + " of " +
                              container_.describe(section_) + ", at its byte " +
                              std::to_string(at_) + ", " + what);
  };
  std::uint32_t length = 0;
  std::size_t length_bytes = 0;
  {
    const auto first = static_cast<int>(std::min(rest.size(), kLongestLength));
    CodedInputStream input(reinterpret_cast<const std::uint8_t*>(rest.data()), first);
    if (!input.ReadVarint32(&length)) return refuse(ErrorKind::file_damaged, "has no length.");
    length_bytes = static_cast<std::size_t>(input.CurrentPosition());
  }
  if (length > kLargestRecord) {
    return refuse(ErrorKind::file_limit, "says that it has " + std::to_string(length) +
                                             " bytes, more than the limit of " +
                                             std::to_string(kLargestRecord) + ".");
  }
  if (length > rest.size() - length_bytes) {
    return refuse(ErrorKind::file_damaged,
                  "says that it has " + std::to_string(length) + " bytes, and the section ends " +
                      std::to_string(rest.size() - length_bytes) + " after its length.");
  }
  if (!parse(rest.subspan(length_bytes, length), message)) {
    return refuse(ErrorKind::file_damaged, "is no message of its kind.");
  }
  at_ += length_bytes + length;
  ++read_;
  return {};
}

Result<void> RecordReader::check_count() const {
  const std::uint64_t said = container_.sections()[section_].count;
  if (said == read_) return {};
  return refuse_in_file(ErrorKind::file_damaged, container_.file(),
                        container_.describe(section_) + " holds " + std::to_string(read_) +
                            " records, and the table says " + std::to_string(said) + ".");
}

}  // namespace refrain::format
