// A file that appears whole or not at all: written under another name in the same folder, synced,
// and renamed over the final name.
#pragma once

#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <span>

#include "refrain/base/result.hpp"

namespace refrain::format {

/// A new file that nobody sees under its name until `commit`. Removed again unless that succeeded.
class NewFile {
 public:
  static Result<NewFile> beside(const std::filesystem::path& path);

  NewFile(NewFile&& other) noexcept;
  NewFile& operator=(NewFile&&) = delete;
  ~NewFile();

  Result<void> write(std::span<const std::byte> bytes);

  /// Makes it the file at its path, on disk.
  Result<void> commit() &&;

 private:
  NewFile(const std::filesystem::path& path, std::filesystem::path temporary, std::FILE* file)
      : path_(path), temporary_(std::move(temporary)), file_(file) {}
  [[nodiscard]] Error refuse(int error) const;

  std::filesystem::path path_;
  std::filesystem::path temporary_;  // empty when it is no longer there
  std::FILE* file_;
};

}  // namespace refrain::format
