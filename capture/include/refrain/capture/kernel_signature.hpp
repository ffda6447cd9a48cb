// What a kernel takes, as data: the layout of its parameter block, the direction of each view, and
// what it does besides.
// The typed side (`Kernel<In<float>, ...>`) makes one of these; a file keeps one; loading compares
// the two.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "refrain/capture/effects.hpp"
#include "refrain/capture/element.hpp"
#include "refrain/capture/portable_code.hpp"

namespace refrain {

/// What a kernel does with a view. Saved in files: never renumber.
enum class Direction : std::uint8_t {
  none = 0,    ///< Not a view.
  in = 1,      ///< Every byte may be read, none is written.
  out = 2,     ///< Every byte is written, none is read.
  in_out = 3,  ///< Any byte may be read, and any may be written.
};

constexpr bool does_read(Direction direction) noexcept {
  return direction == Direction::in || direction == Direction::in_out;
}
constexpr bool does_write(Direction direction) noexcept {
  return direction == Direction::out || direction == Direction::in_out;
}

/// Saved in files: never renumber.
enum class ParameterKind : std::uint8_t {
  view = 1,       ///< The 8-byte address of a view.
  scalar = 2,     ///< An arithmetic value or an enum.
  structure = 3,  ///< A struct that lists its fields, which follow as parameters of their own.
  field = 4,      ///< A field of the structure before it.
};

/// One entry of a parameter block; offsets and sizes in bytes.
struct Parameter {
  std::uint32_t offset = 0;
  std::uint32_t size = 0;
  std::uint32_t alignment = 0;
  ParameterKind kind = ParameterKind::scalar;
  Direction direction = Direction::none;
  ElementType element = ElementType::bytes;

  friend bool operator==(const Parameter&, const Parameter&) = default;
};

/// A kernel's name, version, parameters and effects, and where its code is.
struct KernelSignature {
  std::string name;
  std::uint32_t version = 1;
  std::uint32_t block_bytes = 0;  ///< Size of the whole parameter block.
  std::vector<Parameter> parameters;
  Effects effects{};      ///< As it was registered; the types of a kernel say nothing of them.
  KernelSource source{};  ///< Of the code that was loaded for it; built in, as far as types say.

  friend bool operator==(const KernelSignature&, const KernelSignature&) = default;
};

/// `name/version(in f32*, in_out f32*, f32) using "rng"`, for messages.
std::string text(const KernelSignature& signature);
/// `argument 2 (in f32*)`, counted from 1, for messages: the one at `offset` of the block.
std::string argument_at(const KernelSignature& signature, std::uint32_t offset);

}  // namespace refrain
