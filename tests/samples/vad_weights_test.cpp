// The weights reader against files that are right, of another model, cut short, and damaged. Made
// in memory, so that each can be wrong in one thing only.
#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <span>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "vad/weights.hpp"

namespace {

using refrain::ErrorKind;

/// One entry of a header, as text, and how many bytes it takes.
struct Piece {
  std::string name;
  std::string type = "F32";
  std::string shape;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::string more;
};

std::vector<Piece> right_pieces() {
  std::vector<Piece> pieces;
  std::uint64_t at = 0;
  for (const vad::TensorShape& tensor : vad::kTensors) {
    Piece piece;
    piece.name = tensor.name;
    for (std::size_t i = 0; i < tensor.rank; ++i) {
      if (i > 0) piece.shape += ',';
      piece.shape += std::to_string(tensor.dims[i]);
    }
    piece.begin = at;
    at += tensor.count() * sizeof(float);
    piece.end = at;
    pieces.push_back(piece);
  }
  return pieces;
}

std::string header_of(const std::vector<Piece>& pieces) {
  std::ostringstream text;
  text << '{';
  const char* between = "";
  for (const Piece& piece : pieces) {
    text << between << '"' << piece.name << R"(":{"dtype":")" << piece.type << R"(","shape":[)"
         << piece.shape << R"(],"data_offsets":[)" << piece.begin << ',' << piece.end << ']'
         << piece.more << '}';
    between = ",";
  }
  text << '}';
  return text.str();
}

std::vector<std::byte> file_of(const std::string& header, std::size_t data_bytes) {
  std::vector<std::byte> bytes(8 + header.size() + data_bytes);
  for (std::size_t i = 0; i < 8; ++i) {
    bytes[i] = static_cast<std::byte>(header.size() >> (8 * i));
  }
  std::memcpy(bytes.data() + 8, header.data(), header.size());
  return bytes;
}

std::size_t data_bytes() { return right_pieces().back().end; }

std::vector<std::byte> right_file() { return file_of(header_of(right_pieces()), data_bytes()); }

bool mentions(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// Asserts that the file is refused, with all of `parts` in the text, and the file's name.
void check_refused(const std::vector<std::byte>& bytes, ErrorKind kind,
                   const std::vector<std::string>& parts) {
  const auto weights = vad::parse_weights(bytes, "some.safetensors");
  REQUIRE_FALSE(weights.ok());
  const std::string text = weights.error().text();
  INFO(text);
  CHECK(weights.error().kind() == kind);
  CHECK(mentions(text, "\"some.safetensors\""));
  for (const std::string& part : parts) {
    INFO(part);
    CHECK(mentions(text, part));
  }
}

void check_refused(const std::function<void(std::vector<Piece>&)>& change, ErrorKind kind,
                   const std::vector<std::string>& parts) {
  auto pieces = right_pieces();
  change(pieces);
  check_refused(file_of(header_of(pieces), data_bytes()), kind, parts);
}

TEST_CASE("vad: the weights of Silero VAD v6 are read") {
  const auto weights = vad::read_weights(VAD_DATA_DIR "/silero_vad_v6_16k.safetensors");
  REQUIRE(weights.ok());
  std::size_t count = 0;
  for (std::size_t i = 0; i < vad::kTensors.size(); ++i) {
    const auto tensor = static_cast<vad::Tensor>(i);
    CHECK((*weights)[tensor].size() == vad::shape_of(tensor).count());
    count += (*weights)[tensor].size();
  }
  CHECK(count == 309633);
}

TEST_CASE("vad: a weights file is read value by value") {
  auto bytes = right_file();
  const auto pieces = right_pieces();
  const std::size_t begin = bytes.size() - data_bytes();
  const std::vector<std::byte> one_and_a_half = {std::byte{0}, std::byte{0}, std::byte{0xc0},
                                                 std::byte{0x3f}};
  for (const Piece& piece : pieces) {  // the last value of every tensor
    std::memcpy(bytes.data() + begin + piece.end - 4, one_and_a_half.data(), 4);
  }
  const auto weights = vad::parse_weights(bytes, "some.safetensors");
  REQUIRE(weights.ok());
  for (std::size_t i = 0; i < vad::kTensors.size(); ++i) {
    const auto values = (*weights)[static_cast<vad::Tensor>(i)];
    CHECK(values.back() == 1.5F);
    if (values.size() > 1) CHECK(values.front() == 0.0F);
  }
}

TEST_CASE("vad: notes and further tensors in a weights file are allowed") {
  auto pieces = right_pieces();
  pieces.push_back({"extra", "I8", "3", data_bytes(), data_bytes() + 3, ""});
  std::string header = header_of(pieces);
  header.insert(1, R"("__metadata__":{"model":"some"},)");
  CHECK(vad::parse_weights(file_of(header, data_bytes() + 3), "some.safetensors").ok());
}

TEST_CASE("vad: weights with any one tensor missing are refused by its name") {
  for (std::size_t i = 0; i < vad::kTensors.size(); ++i) {
    const std::string name(vad::kTensors[i].name);
    INFO(name);
    check_refused([&](auto& pieces) { pieces[i].name = "other"; }, ErrorKind::invalid_argument,
                  {"has no tensor \"" + name + "\""});
  }
}

TEST_CASE("vad: weights with any one tensor of another shape are refused with both shapes") {
  for (std::size_t i = 0; i < vad::kTensors.size(); ++i) {
    const std::string name(vad::kTensors[i].name);
    INFO(name);
    check_refused([&](auto& pieces) { pieces[i].shape = "7,11"; }, ErrorKind::invalid_argument,
                  {"\"" + name + "\" of shape [7, 11]", "is needed"});
  }
  check_refused([](auto& pieces) { pieces[9].shape = "128,512"; }, ErrorKind::invalid_argument,
                {"\"decoder.rnn.weight_ih\" of shape [128, 512], and [512, 128] is needed"});
  check_refused([](auto& pieces) { pieces[9].shape = "512,128,1"; }, ErrorKind::invalid_argument,
                {"of shape [512, 128, 1], and [512, 128] is needed"});
  check_refused([](auto& pieces) { pieces[9].shape = ""; }, ErrorKind::invalid_argument,
                {"of shape [], and [512, 128] is needed"});
  check_refused([](auto& pieces) { pieces[9].shape = "18446744073709551615,18446744073709551615"; },
                ErrorKind::invalid_argument, {"of shape [18446744073709551615, "});
}

TEST_CASE("vad: weights of another type are refused with both types") {
  check_refused([](auto& pieces) { pieces[2].type = "F16"; }, ErrorKind::invalid_argument,
                {"\"encoder.0.reparam_conv.bias\" of type F16, and F32 is needed"});
}

TEST_CASE("vad: a tensor whose bytes do not suit its shape is refused") {
  check_refused(
      [](auto& pieces) {
        pieces[0].end -= 4;
        pieces[1].begin -= 4;
      },
      ErrorKind::file_damaged, {"\"stft.forward_basis_buffer\" in 264188 bytes", "needs 264192"});
}

TEST_CASE("vad: tensors outside the file or over each other or with gaps are refused") {
  constexpr auto kMost = std::numeric_limits<std::uint64_t>::max();
  check_refused([](auto& pieces) { pieces.back().end += 1; }, ErrorKind::file_damaged,
                {"\"decoder.decoder.2.bias\" as bytes", "cut short"});
  check_refused([&](auto& pieces) { pieces.back().end = kMost; }, ErrorKind::file_damaged,
                {"\"decoder.decoder.2.bias\" as bytes"});
  check_refused(
      [&](auto& pieces) {
        pieces[3].begin = kMost - 3;
        pieces[3].end = kMost;
      },
      ErrorKind::file_damaged, {"\"encoder.1.reparam_conv.weight\" as bytes"});
  check_refused([](auto& pieces) { std::swap(pieces[3].begin, pieces[3].end); },
                ErrorKind::file_damaged, {"\"encoder.1.reparam_conv.weight\" as bytes"});
  check_refused([](auto& pieces) { pieces[4].begin -= 4; }, ErrorKind::file_damaged,
                {"\"encoder.1.reparam_conv.bias\" begin at byte", "before byte"});
  check_refused([](auto& pieces) { pieces[4].begin += 4; }, ErrorKind::file_damaged,
                {"\"encoder.1.reparam_conv.bias\" begin at byte", "after byte"});
  check_refused(
      [](auto& pieces) {
        pieces[5].begin = pieces[4].begin;
        pieces[5].end = pieces[4].end;
      },
      ErrorKind::file_damaged, {"before byte"});
  check_refused(file_of(header_of(right_pieces()), data_bytes() + 4), ErrorKind::file_damaged,
                {"of which its header describes"});
}

TEST_CASE("vad: a header with the same key twice is refused") {
  check_refused([](auto& pieces) { pieces.push_back(pieces.front()); }, ErrorKind::file_damaged,
                {"two keys \"stft.forward_basis_buffer\""});
  check_refused([](auto& pieces) { pieces[0].more = ",\"shape\":[]"; }, ErrorKind::file_damaged,
                {"two keys \"shape\""});
}

TEST_CASE("vad: a header that is no JSON or not of the right kinds is refused") {
  const std::vector<std::string> headers = {
      "",
      "{",
      "[]",
      "7",
      "null",
      R"("text")",
      std::string(100000, '['),
      std::string(100000, '{'),
      R"({"a":7})",
      R"({"a":{}})",
      R"({"a":{"dtype":7,"shape":[1],"data_offsets":[0,4]}})",
      R"({"a":{"dtype":"F32","shape":1,"data_offsets":[0,4]}})",
      R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})",
      R"({"a":{"dtype":"F32","shape":[1.0],"data_offsets":[0,4]}})",
      R"({"a":{"dtype":"F32","shape":[1]}})",
      R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0]}})",
      R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4,8]}})",
      R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,"4"]}})",
      R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,99999999999999999999]}})",
      "{\"\x80\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}",
  };
  for (const std::string& header : headers) {
    INFO(header.substr(0, 80));
    const bool names_tensor = header.rfind("{\"a\"", 0) == 0;
    check_refused(file_of(header, 4), ErrorKind::file_damaged,
                  {names_tensor ? "describes tensor \"a\"" : "has a header"});
  }
}

TEST_CASE("vad: a name out of a damaged file cannot write to the terminal") {
  const std::string name = "\\u001b[2J" + std::string(1000, 'x');
  const auto bytes = file_of("{\"" + name + "\":7}", 4);
  const auto weights = vad::parse_weights(bytes, "some.safetensors");
  REQUIRE_FALSE(weights.ok());
  CHECK_FALSE(mentions(weights.error().text(), "\x1b"));
  CHECK(weights.error().text().size() < 300);
}

TEST_CASE("vad: weights that are not finite are refused with their place") {
  auto bytes = right_file();
  const auto piece = right_pieces()[1];
  const std::size_t at = bytes.size() - data_bytes() + piece.begin + std::size_t{4} * 5;
  bytes[at + 2] = std::byte{0x80};
  bytes[at + 3] = std::byte{0x7f};
  check_refused(bytes, ErrorKind::file_damaged,
                {"\"encoder.0.reparam_conv.weight\" with inf at index 5"});
}

TEST_CASE("vad: a weights file cut short anywhere is refused") {
  const auto bytes = right_file();
  const std::size_t header_end = bytes.size() - data_bytes();
  const auto refused_at = [&](std::size_t length) {
    const auto weights = vad::parse_weights(std::span(bytes).first(length), "some.safetensors");
    REQUIRE_FALSE(weights.ok());
    CHECK(weights.error().kind() == ErrorKind::file_damaged);
    CHECK(mentions(weights.error().text(), "\"some.safetensors\""));
  };
  for (std::size_t length = 0; length <= header_end; ++length) {
    refused_at(length);
  }
  for (std::size_t length = header_end; length < bytes.size(); length += 4093) {
    refused_at(length);
  }
  refused_at(bytes.size() - 1);
}

TEST_CASE("vad: a weights file with any bit of its header flipped is refused") {
  auto bytes = right_file();
  const std::size_t header_end = bytes.size() - data_bytes();
  for (std::size_t at = 0; at < header_end; ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      const std::byte before = bytes[at];
      bytes[at] ^= static_cast<std::byte>(1 << bit);
      const auto weights = vad::parse_weights(bytes, "some.safetensors");
      INFO("byte " << at << ", bit " << bit);
      REQUIRE_FALSE(weights.ok());
      CHECK(mentions(weights.error().text(), "\"some.safetensors\""));
      bytes[at] = before;
    }
  }
}

TEST_CASE("vad: a weights file that cannot be read is refused by its name") {
  const auto missing = vad::read_weights("no/such.safetensors");
  REQUIRE_FALSE(missing.ok());
  CHECK(missing.error().kind() == ErrorKind::file_io);
  CHECK(mentions(missing.error().text(), "\"no/such.safetensors\" cannot be opened (No such file"));

  const auto folder = vad::read_weights(VAD_DATA_DIR);
  REQUIRE_FALSE(folder.ok());
  CHECK(folder.error().kind() == ErrorKind::file_io);
  CHECK(mentions(folder.error().text(), "\" cannot be read (Is a directory)"));

  const auto empty = vad::read_weights("/dev/null");
  REQUIRE_FALSE(empty.ok());
  CHECK(mentions(empty.error().text(), "\"/dev/null\" is empty"));

  const auto endless = vad::read_weights("/dev/zero");
  REQUIRE_FALSE(endless.ok());
  CHECK(endless.error().kind() == ErrorKind::file_limit);
}

}  // namespace
