#include "refrain/capture/kernel_signature.hpp"

#include "refrain/base/text.hpp"

namespace refrain {
namespace {

/// `in f32*`, `u32`, `struct of 8 bytes`.
std::string type_of(const Parameter& parameter) {
  std::string all;
  switch (parameter.direction) {
    case Direction::none: break;
    case Direction::in: all += "in "; break;
    case Direction::out: all += "out "; break;
    case Direction::in_out: all += "in_out "; break;
  }
  if (parameter.kind == ParameterKind::structure) {
    return all + "struct of " + std::to_string(parameter.size) + " bytes";
  }
  all += name_of(parameter.element);
  if (parameter.kind == ParameterKind::view) all += "*";
  return all;
}

}  // namespace

std::string_view name_of(ElementType type) noexcept {
  switch (type) {
    case ElementType::bytes: return "bytes";
    case ElementType::u8: return "u8";
    case ElementType::i8: return "i8";
    case ElementType::u16: return "u16";
    case ElementType::i16: return "i16";
    case ElementType::u32: return "u32";
    case ElementType::i32: return "i32";
    case ElementType::u64: return "u64";
    case ElementType::i64: return "i64";
    case ElementType::f32: return "f32";
    case ElementType::f64: return "f64";
    case ElementType::boolean: return "bool";
  }
  return "?";
}

std::string text(const KernelSignature& signature) {
  std::string all = signature.name + "/" + std::to_string(signature.version) + "(";
  bool first = true;
  bool in_structure = false;
  for (const Parameter& parameter : signature.parameters) {
    if (parameter.kind != ParameterKind::field && in_structure) {
      all += "}";
      in_structure = false;
    }
    if (!first && !all.ends_with('{')) all += ", ";
    first = false;
    all += type_of(parameter);
    if (parameter.kind == ParameterKind::structure) {
      all += " {";
      in_structure = true;
    }
  }
  if (in_structure) all += "}";
  all += ")";
  switch (signature.effects.kind()) {
    case Effects::Kind::none: break;
    case Effects::Kind::opaque: all += " opaque"; break;
    case Effects::Kind::uses: all += " using " + quote(signature.effects.resource()); break;
  }
  return all;
}

std::string argument_at(const KernelSignature& signature, std::uint32_t offset) {
  std::size_t position = 0;
  for (const Parameter& parameter : signature.parameters) {
    if (parameter.kind == ParameterKind::field) continue;
    ++position;
    if (parameter.offset != offset) continue;
    return "argument " + std::to_string(position) + " (" + type_of(parameter) + ")";
  }
  return "an argument that it does not have";
}

}  // namespace refrain
