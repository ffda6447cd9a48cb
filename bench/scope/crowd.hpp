// A host device with thousands of live buffers, some of which may carry failures, two inline
// streams and the order in which each thread goes through buffers of its own.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "floor.hpp"
#include "refrain/device/stream.hpp"
#include "refrain/host/device.hpp"

namespace refrain::bench {

using Near = Kernel<In<float>, Out<float>, std::uint32_t>;

/// For two threads, each with its own number.
class Crowd {
 public:
  /// How many buffers each thread goes through; a power of two.
  static constexpr std::size_t kOwn = 1024;
  /// How many floats a buffer has.
  static constexpr std::uint64_t kFloats = 16;

  /// `live` buffers, written all; `claimed` of them, which no thread goes through, carry a failure
  /// each.
  Crowd(std::size_t live, std::size_t claimed);

  [[nodiscard]] host::Device& device() noexcept { return device_; }
  [[nodiscard]] Stream& stream(std::size_t thread) noexcept { return streams_.at(thread); }
  [[nodiscard]] Floor& floor() noexcept { return floor_; }
  [[nodiscard]] KernelId name() const noexcept { return kernel_->loaded().id; }
  [[nodiscard]] const Near& kernel() const noexcept { return *kernel_; }
  [[nodiscard]] std::span<const Buffer<float>> buffers() const noexcept { return buffers_; }

  /// The `count` buffers of call `call` of a thread, whole or a slice of each, and the words that
  /// the floor has for them. `count` is a power of two.
  [[nodiscard]] std::span<const BufferBinding> bindings(std::size_t thread, std::size_t call,
                                                        std::size_t count, bool whole) const {
    const std::span<const BufferBinding> all(whole ? whole_.at(thread) : slices_.at(thread));
    return all.subspan(call * count % kOwn, count);
  }
  [[nodiscard]] std::span<const std::uint32_t> words(std::size_t thread, std::size_t call,
                                                     std::size_t count) const {
    return std::span<const std::uint32_t>(order_.at(thread)).subspan(call * count % kOwn, count);
  }
  /// A buffer that no thread goes through and that carries a failure; only with `claimed`.
  [[nodiscard]] BufferBinding broken() const noexcept { return buffers_.back().view().binding(); }

  /// Writes the buffers of thread 0, so that they carry nothing.
  void mend();

 private:
  host::Device device_;
  std::optional<Near> kernel_;
  std::deque<Stream> streams_;
  std::vector<Buffer<float>> buffers_;
  Floor floor_;
  std::array<std::vector<std::uint32_t>, 2> order_;
  std::array<std::vector<BufferBinding>, 2> whole_;
  std::array<std::vector<BufferBinding>, 2> slices_;
};

}  // namespace refrain::bench
