#include "manifest.hpp"

#include <set>
#include <string_view>
#include <utility>

#include "manifest.pb.h"
#include "record.hpp"
#include "refrain/base/text.hpp"
#include "refusal.hpp"

namespace refrain::format {
namespace {

class ManifestReader {
 public:
  ManifestReader(const VerifiedContainer& container, const LoadLimits& limits) noexcept
      : container_(container), limits_(limits) {}

  Result<Contents> read() {
    std::size_t at = 0;
    REFRAIN_TRY(find(at));
    v1::Manifest manifest;
    REFRAIN_TRY(read_message(container_, at, manifest));
    for (const std::string& feature : manifest.requirements().required_features()) {
      if (feature == kEffectsFeature || feature == kLaunchAttributesFeature) continue;
      return refuse_file(ErrorKind::file_version, container_.file(),
                         "requires " + quote(feature.substr(0, limits_.name_bytes)) +
                             ", which this version of refrain does not know.");
    }
    Contents contents;
    REFRAIN_TRY(check_name(container_, limits_, manifest.producer().name(), "the producer"));
    contents.producer = manifest.producer().name();
    contents.symbols = manifest.symbols();
    REFRAIN_TRY(check(manifest.symbols(), SectionKind::symbols));

    REFRAIN_TRY(read_code(manifest, contents));

    if (manifest.captures().empty()) {
      return refuse_file(ErrorKind::file_damaged, container_.file(), "holds no capture.");
    }
    const auto count = static_cast<std::uint64_t>(manifest.captures_size());
    if (count > limits_.captures) {
      return refuse_file(ErrorKind::file_limit, container_.file(),
                         "holds " + std::to_string(count) + " captures, more than the limit of " +
                             std::to_string(limits_.captures) + ".");
    }
    std::set<std::string_view> names;
    for (const v1::Capture& capture : manifest.captures()) {
      REFRAIN_TRY(check_name(container_, limits_, capture.name(), "a capture"));
      if (!names.insert(capture.name()).second) {
        return refuse_in_file(ErrorKind::file_damaged, container_.file(),
                              "two captures are called " + quote(capture.name()) + ".");
      }
      REFRAIN_TRY(check(capture.capture(), SectionKind::capture));
      REFRAIN_TRY(check(capture.regions(), SectionKind::regions));
      REFRAIN_TRY(check(capture.nodes(), SectionKind::nodes));
      contents.names.push_back(capture.name());
      contents.captures.push_back({capture.capture(), capture.regions(), capture.nodes()});
    }
    return contents;
  }

 private:
  Result<void> read_code(const v1::Manifest& manifest, Contents& contents) const {
    for (const v1::CodeObject& code : manifest.code()) {
      REFRAIN_TRY(check(code.section(), SectionKind::code));
      const std::string whose = container_.describe(code.section());
      if (code.kind() == 0 || code.kind() > kLastCodeKind) {
        return refuse_in_file(
            ErrorKind::file_damaged, container_.file(),
            whose + " holds code of kind " + std::to_string(code.kind()) + ", which cannot be.");
      }
      // Its identity, which must be what the table has checked.
      const Section& section = container_.sections()[code.section()];
      const std::string_view digest(reinterpret_cast<const char*>(section.digest.data()),
                                    section.digest.size());
      if (section.digest_kind != DigestKind::sha_256 || code.sha256() != digest) {
        return refuse_in_file(ErrorKind::file_damaged, container_.file(),
                              whose + " is not the code that the manifest names.");
      }
      contents.code.push_back({code.section(), static_cast<CodeKind>(code.kind())});
    }
    return {};
  }

  /// Finds the one manifest.
  Result<void> find(std::size_t& found) const {
    std::size_t count = 0;
    for (std::size_t at = 0; at < container_.sections().size(); ++at) {
      if (container_.sections()[at].kind != SectionKind::manifest) continue;
      found = at;
      ++count;
    }
    if (count == 1) return {};
    return refuse_file(ErrorKind::file_damaged, container_.file(),
                       "has " + std::to_string(count) + " manifests, and there must be one.");
  }

  Result<void> check(std::uint32_t section, SectionKind kind) const {
    if (section < container_.sections().size() && container_.sections()[section].kind == kind) {
      return {};
    }
    return refuse_in_file(ErrorKind::file_damaged, container_.file(),
                          "the manifest looks for " + std::string(name_of(kind)) + " in section " +
                              std::to_string(section) + ", which is none.");
  }

  const VerifiedContainer& container_;
  const LoadLimits& limits_;
};

}  // namespace

Result<Contents> read_manifest(const VerifiedContainer& container, const LoadLimits& limits) {
  return ManifestReader(container, limits).read();
}

}  // namespace refrain::format
