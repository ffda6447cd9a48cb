#include "vad/file_bytes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <system_error>

namespace vad {
namespace {

refrain::Error refused(const std::string& path, const char* what, int code) {
  return refrain::Error(refrain::ErrorKind::file_io,
                        fmt::format("The file \"{}\" cannot be {} ({}).", path, what,
                                    std::generic_category().message(code)));
}

struct Close {
  void operator()(std::FILE* file) const noexcept { std::fclose(file); }
};

}  // namespace

refrain::Result<std::vector<std::byte>> read_file(const std::string& path, std::size_t limit) {
  const std::unique_ptr<std::FILE, Close> file(std::fopen(path.c_str(), "rb"));
  if (!file) return refused(path, "opened", errno);

  // In pieces, because a pipe does not know its length and a length that is known can be wrong.
  constexpr std::size_t kPiece = std::size_t{1} << 20;
  std::vector<std::byte> bytes;
  std::size_t count = 0;
  for (;;) {
    bytes.resize(count + std::min(kPiece, limit + 1 - count));
    const std::size_t got = std::fread(bytes.data() + count, 1, bytes.size() - count, file.get());
    count += got;
    if (count > limit) {
      return refrain::Error(
          refrain::ErrorKind::file_limit,
          fmt::format("The file \"{}\" is longer than {} bytes, the most that is read.", path,
                      limit));
    }
    if (got == 0) break;
  }
  // A directory can be opened; reading it is what fails.
  if (std::ferror(file.get()) != 0) return refused(path, "read", errno);
  bytes.resize(count);
  return bytes;
}

}  // namespace vad
