#include "digest.hpp"

#include <openssl/evp.h>
#include <xxhash.h>

#include <cstring>
#include <new>
#include <variant>

namespace refrain::format {
namespace {

struct FreeContext {
  void operator()(EVP_MD_CTX* context) const noexcept { EVP_MD_CTX_free(context); }
};
using Sha256 = std::unique_ptr<EVP_MD_CTX, FreeContext>;

struct FreeState {
  void operator()(XXH3_state_t* state) const noexcept { XXH3_freeState(state); }
};
using Xxh3 = std::unique_ptr<XXH3_state_t, FreeState>;

Digest digest_from(XXH128_hash_t hash) {
  XXH128_canonical_t canonical{};
  XXH128_canonicalFromHash(&canonical, hash);
  Digest digest{};
  std::memcpy(digest.data(), canonical.digest, sizeof canonical.digest);
  return digest;
}

}  // namespace

struct Digester::State {
  std::variant<Xxh3, Sha256> of;
};

// Neither algorithm can fail but for memory; and without its digest nothing may be believed.
Digester::Digester(DigestKind kind) : state_(std::make_unique<State>()) {
  if (kind == DigestKind::sha_256) {
    Sha256 context(EVP_MD_CTX_new());
    if (!context || EVP_DigestInit_ex(context.get(), EVP_sha256(), nullptr) != 1) {
      throw std::bad_alloc();
    }
    state_->of = std::move(context);
  } else {
    Xxh3 xxh3(XXH3_createState());
    if (!xxh3 || XXH3_128bits_reset(xxh3.get()) != XXH_OK) throw std::bad_alloc();
    state_->of = std::move(xxh3);
  }
}

Digester::Digester(Digester&&) noexcept = default;
Digester& Digester::operator=(Digester&&) noexcept = default;
Digester::~Digester() = default;

void Digester::add(std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  if (auto* const sha = std::get_if<Sha256>(&state_->of)) {
    if (EVP_DigestUpdate(sha->get(), bytes.data(), bytes.size()) != 1) throw std::bad_alloc();
  } else {
    XXH3_128bits_update(std::get<Xxh3>(state_->of).get(), bytes.data(), bytes.size());
  }
}

Digest Digester::finish() {
  if (const auto* const xxh3 = std::get_if<Xxh3>(&state_->of)) {
    return digest_from(XXH3_128bits_digest(xxh3->get()));
  }
  Digest digest{};
  auto* const to = reinterpret_cast<unsigned char*>(digest.data());
  if (EVP_DigestFinal_ex(std::get<Sha256>(state_->of).get(), to, nullptr) != 1) {
    throw std::bad_alloc();
  }
  return digest;
}

Digest digest_of(DigestKind kind, std::span<const std::byte> bytes) {
  if (kind == DigestKind::xxh3_128) {
    return digest_from(XXH3_128bits(bytes.data(), bytes.size()));  // no state to set up
  }
  Digester digester(kind);
  digester.add(bytes);
  return digester.finish();
}

}  // namespace refrain::format
