#include "refrain/capture/portable_code.hpp"

#include <openssl/evp.h>

#include <new>
#include <utility>

namespace refrain {

std::string_view name_of(CodeKind kind) noexcept {
  switch (kind) {
    case CodeKind::cubin: return "cubin";
    case CodeKind::fatbin: return "fatbin";
    case CodeKind::ptx: return "ptx";
  }
  return "?";
}

std::shared_ptr<const PortableCode> PortableCode::make(CodeKind kind, SharedBytes bytes) {
  PortableCode made{kind, std::move(bytes), {}};
  auto* const digest = reinterpret_cast<unsigned char*>(made.digest.data());
  // It cannot fail but for memory.
  if (EVP_Digest(made.bytes.data(), made.bytes.size(), digest, nullptr, EVP_sha256(), nullptr) !=
      1) {
    throw std::bad_alloc();
  }
  return std::make_shared<const PortableCode>(std::move(made));
}

}  // namespace refrain
