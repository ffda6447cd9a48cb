#include "file_bytes.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <new>
#include <string>
#include <system_error>
#include <utility>

#include "format.hpp"
#include "refusal.hpp"

namespace refrain::format {
namespace {

/// An open file.
class Descriptor {
 public:
  explicit Descriptor(int number) noexcept : number_(number) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  [[nodiscard]] int number() const noexcept { return number_; }

 private:
  int number_;
};

Error refuse(const std::string& name, int error) {
  return refuse_file(ErrorKind::file_io, name,
                     "cannot be read: " + std::generic_category().message(error) + ".");
}

Result<SharedBytes> map(const Descriptor& file, std::size_t size, const std::string& name) {
  void* const at = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.number(), 0);
  if (at == MAP_FAILED) return refuse(name, errno);
  std::shared_ptr<const void> owner(
      at, [size](const void* p) { ::munmap(const_cast<void*>(p), size); });
  return SharedBytes(std::move(owner), {static_cast<const std::byte*>(at), size});
}

Result<SharedBytes> copy(const Descriptor& file, std::size_t size, const std::string& name) {
  constexpr std::align_val_t kAlignment{kPage};
  auto* const data = static_cast<std::byte*>(::operator new(size, kAlignment, std::nothrow));
  if (data == nullptr) {
    return refuse_file(ErrorKind::out_of_memory, name,
                       "has " + std::to_string(size) + " bytes, for which there is no memory.");
  }
  std::shared_ptr<const void> owner(
      data, [](std::byte* p) { ::operator delete (p, std::align_val_t{kPage}); });
  constexpr std::size_t kAtOnce = std::size_t{1} << 30U;  // Linux reads less than 2 GiB a call
  std::size_t at = 0;
  while (at < size) {
    const ssize_t got = ::read(file.number(), data + at, std::min(size - at, kAtOnce));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return refuse(name, errno);
    if (got == 0) {
      return refuse_file(ErrorKind::file_io, name,
                         "was cut to " + std::to_string(at) + " bytes while it was read.");
    }
    at += static_cast<std::size_t>(got);
  }
  return SharedBytes(std::move(owner), {data, size});
}

}  // namespace

Result<SharedBytes> bytes_of(const std::filesystem::path& path, FileAccess access,
                             std::uint64_t most) {
  const std::string name = path.string();
  // Without O_NONBLOCK a pipe would wait for somebody to write to it.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.number() < 0) return refuse(name, errno);
  struct stat status {};
  if (::fstat(file.number(), &status) != 0) return refuse(name, errno);
  if (!S_ISREG(status.st_mode)) {
    return refuse_file(ErrorKind::file_io, name,
                       S_ISDIR(status.st_mode) ? "is a folder." : "is no regular file.");
  }
  const auto size = static_cast<std::uint64_t>(status.st_size);
  if (size > most) {
    return refuse_file(ErrorKind::file_limit, name,
                       "has " + std::to_string(size) + " bytes, more than the limit of " +
                           std::to_string(most) + ".");
  }
  if (size == 0) return SharedBytes();  // which cannot be mapped
  return access == FileAccess::mapped ? map(file, size, name) : copy(file, size, name);
}

}  // namespace refrain::format
