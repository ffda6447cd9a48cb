// The model's weights, read from a safetensors file: 8 bytes that give the length of a JSON header,
// the header, which says of every tensor its type, shape and place, and then the tensors' bytes.
// The file is not trusted: every number in it is checked before it is used, and what comes out is
// all fifteen tensors in the right shapes, or an error that names the file and the tensor.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "refrain/base/result.hpp"
#include "vad/model.hpp"

namespace vad {

/// All tensors of `kTensors`, row-major. Made only by reading.
class Weights {
 public:
  [[nodiscard]] std::span<const float> operator[](Tensor tensor) const {
    return tensors_[index_of(tensor)];
  }

 private:
  Weights() = default;
  friend refrain::Result<Weights> parse_weights(std::span<const std::byte>, std::string_view);

  std::array<std::vector<float>, kTensors.size()> tensors_;
};

/// Reads the file at `path`. Fails with `file_io` or `file_limit` as a file, and otherwise as
/// `parse_weights` does.
refrain::Result<Weights> read_weights(const std::string& path);

/// Reads the bytes of a safetensors file; errors call it `name`. Fails with `file_damaged` when the
/// bytes cannot be such a file, and with `invalid_argument` when they are one of another model.
/// Tensors beside the fifteen are checked for their place and otherwise ignored.
refrain::Result<Weights> parse_weights(std::span<const std::byte> bytes, std::string_view name);

}  // namespace vad
