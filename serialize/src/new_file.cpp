#include "new_file.hpp"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <system_error>
#include <utility>

#include "refusal.hpp"

namespace refrain::format {
namespace {

std::string text_of(int error) { return std::generic_category().message(error); }

std::filesystem::path folder_of(const std::filesystem::path& path) {
  return path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
}

/// Short and of its own, because the final name may be as long as names can be.
std::filesystem::path temporary_in(const std::filesystem::path& folder) {
  std::array<unsigned char, 8> random{};
  if (getrandom(random.data(), random.size(), 0) != static_cast<ssize_t>(random.size())) return {};
  std::string name = ".refrain-";
  for (const unsigned char byte : random) {
    name += "0123456789abcdef"[byte >> 4U];
    name += "0123456789abcdef"[byte & 0xFU];
  }
  return folder / (name + ".tmp");
}

}  // namespace

Result<NewFile> NewFile::beside(const std::filesystem::path& path) {
  const auto refuse_to_write = [&](const std::string& why) {
    return refuse_file(ErrorKind::file_io, path.string(), "cannot be written: " + why + ".");
  };
  // A rename would put a file in the place of a device or a socket.
  struct stat there {};
  if (::lstat(path.c_str(), &there) == 0 && !S_ISREG(there.st_mode) && !S_ISLNK(there.st_mode)) {
    return refuse_to_write("there is something that is no regular file");
  }
  constexpr int kAttempts = 16;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    std::filesystem::path temporary = temporary_in(folder_of(path));
    if (temporary.empty()) return refuse_to_write(text_of(errno));
    const int descriptor =
        ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (descriptor < 0 && errno == EEXIST) continue;
    if (descriptor < 0) return refuse_to_write(text_of(errno));
    std::FILE* const file = ::fdopen(descriptor, "wb");
    if (file == nullptr) {
      const int error = errno;
      ::close(descriptor);
      ::unlink(temporary.c_str());
      return refuse_to_write(text_of(error));
    }
    return NewFile(path, std::move(temporary), file);
  }
  return refuse_to_write("no name for a temporary file is free");
}

NewFile::NewFile(NewFile&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::exchange(other.temporary_, {})),
      file_(std::exchange(other.file_, nullptr)) {}

NewFile::~NewFile() {
  if (file_ != nullptr) std::fclose(file_);  // what it says no longer matters
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

Error NewFile::refuse(int error) const {
  return refuse_file(ErrorKind::file_io, path_.string(),
                     "cannot be written: " + text_of(error) + ".");
}

Result<void> NewFile::write(std::span<const std::byte> bytes) {
  if (std::fwrite(bytes.data(), 1, bytes.size(), file_) != bytes.size()) return refuse(errno);
  return {};
}

Result<void> NewFile::commit() && {
  if (std::fflush(file_) != 0 || ::fsync(::fileno(file_)) != 0) return refuse(errno);
  if (std::fclose(std::exchange(file_, nullptr)) != 0) return refuse(errno);
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) return refuse(errno);
  temporary_.clear();

  // The rename itself is only on disk when the folder is.
  const std::filesystem::path folder = folder_of(path_);
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  int error = descriptor < 0 ? errno : 0;
  if (descriptor >= 0) {
    if (::fsync(descriptor) != 0) error = errno;
    ::close(descriptor);
  }
  // Some file systems sync no folders, and a folder may be one that can be written and not read.
  if (error != 0 && error != EINVAL && error != EACCES) {
    return refuse_file(ErrorKind::file_io, path_.string(),
                       "is written, but its folder cannot be synced: " + text_of(error) +
                           "; after a power failure the old file may be back.");
  }
  return {};
}

}  // namespace refrain::format
