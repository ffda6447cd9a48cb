#include "refrain/capture/kernel_signature.hpp"

namespace refrain {

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
    switch (parameter.direction) {
      case Direction::none: break;
      case Direction::in: all += "in "; break;
      case Direction::out: all += "out "; break;
      case Direction::in_out: all += "in_out "; break;
    }
    if (parameter.kind == ParameterKind::structure) {
      all += "struct of " + std::to_string(parameter.size) + " bytes {";
      in_structure = true;
      continue;
    }
    all += name_of(parameter.element);
    if (parameter.kind == ParameterKind::view) all += "*";
  }
  if (in_structure) all += "}";
  return all + ")";
}

}  // namespace refrain
