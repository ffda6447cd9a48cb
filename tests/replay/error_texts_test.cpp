// What docs/errors.md shows of errors is what the library says, word for word. Numbers of failures
// and streams count up through a process, so both sides have theirs counted from 1 in each text.
#include <doctest/doctest.h>

#include <fstream>
#include <map>
#include <regex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "refrain/base/kernel_name.hpp"
#include "refrain/device/stream.hpp"
#include "refrain/host/device.hpp"
#include "refrain/replay/instance.hpp"

namespace refrain::test {
namespace {

using Make = Kernel<Out<float>>;
using Map = Kernel<In<float>, Out<float>>;
using Step = Kernel<In<float>, InOut<float>, Out<float>>;

constexpr Where at(int line) { return Where{"decode.cpp", line}; }
constexpr Grid four(int line) { return grid(4, at(line)); }

/// `text` with the numbers after each of the two words counted from 1, in the order of appearance.
std::string renumbered(const std::string& text) {
  static const std::regex numbered("([Ff]ailure|stream) ([0-9]+)");
  std::map<std::string, std::map<std::string, std::size_t>> known;
  std::string all;
  auto rest = text.cbegin();
  for (std::sregex_iterator found(text.begin(), text.end(), numbered), end; found != end; ++found) {
    std::map<std::string, std::size_t>& of = known[found->str(1)];
    const std::size_t number = of.try_emplace(found->str(2), of.size() + 1).first->second;
    all.append(rest, (*found)[0].first);
    all += found->str(1) + " " + std::to_string(number);
    rest = (*found)[0].second;
  }
  return all.append(rest, text.cend());
}

/// The page has `text` as a block of its own.
void is_shown(const std::string& text) {
  static const std::string page = [] {
    std::stringstream all;
    all << std::ifstream(REFRAIN_ERRORS_PAGE).rdbuf();
    return all.str();
  }();
  REQUIRE_FALSE(page.empty());
  const std::string block = "\n```\n" + renumbered(text) + "\n```\n";
  CHECK_MESSAGE(page.find(block) != std::string::npos, "docs/errors.md does not show:", block);
}

/// A device, and kernels that fail when they are told to.
class Decoder {
 public:
  explicit Decoder(StreamKind kind = StreamKind::inline_)
      : device(DeviceOptions{
            .on_unread =
                [this](const UnreadFailure& failure) { unread.push_back(failure.text()); }}),
        stream(device.stream(kind).value()) {
    const auto map = [](std::span<const float> x, std::span<float> y) -> Result<void> {
      for (std::size_t i = 0; i < y.size(); ++i) y[i] = x[i];
      return {};
    };
    device.kernels().add<Make>("embed", [this](std::span<float>) { return embeds(); });
    device.kernels().add<Map>("norm", map);
    device.kernels().add<Map>("head", map);
    device.kernels().add<Step>("step", [this](std::span<const float>, std::span<float>,
                                              std::span<float>) { return steps(); });
    embed.emplace(device.kernel<Make>("embed").value());
    norm.emplace(device.kernel<Map>("norm").value());
    head.emplace(device.kernel<Map>("head").value());
    step.emplace(device.kernel<Step>("step").value());
  }

  Buffer<float> written(const char* name, Role role = Role::none) {
    Buffer<float> made = device.buffer<float>(name, 4, role).value();
    REQUIRE(stream.fill(made, 0).executed_cleanly());
    return made;
  }
  [[nodiscard]] std::string unreadable(const View<float>& view) {
    const Result<std::vector<float>> got = stream.read(view);
    REQUIRE_FALSE(got.ok());
    return got.error().text();
  }
  [[nodiscard]] static std::string refusal(OpenWindow& window) {
    const Result<Recording> sealed = window.seal({}, at(60));
    REQUIRE_FALSE(sealed.ok());
    return sealed.error().text();
  }

  /// A window with one step, sealed as "decode/8".
  Recording recorded(const View<float>& samples, const View<float>& memory,
                     const View<float>& answer) {
    OpenWindow window = stream.record(at(88)).value();
    stream.launch(*step, four(89), samples, memory, answer);
    SealOptions options;
    options.name = "decode/8";
    return window.seal(options, at(90)).value();
  }

  std::vector<std::string> unread;
  std::function<Result<void>()> embeds = [] {
    return Error(ErrorKind::kernel_failed, "The table of tokens is full (512 of 512).");
  };
  std::function<Result<void>()> steps = [] { return Result<void>(); };
  host::Device device;
  std::optional<Make> embed;
  std::optional<Map> norm;
  std::optional<Map> head;
  std::optional<Step> step;
  Stream stream;  // last: its worker uses the others
};

}  // namespace

TEST_CASE("M7: what a kernel that failed leaves is told as docs/errors.md shows") {
  Decoder it;
  const Buffer<float> hidden = it.written("hidden");
  const Buffer<float> normed = it.written("normed");
  const Buffer<float> logits = it.written("logits");
  it.stream.launch(*it.embed, four(46), hidden);
  it.stream.launch(*it.norm, four(47), hidden, normed);
  it.stream.launch(*it.head, four(48), normed, logits);
  is_shown(it.unreadable(logits));
}

TEST_CASE("E4: what an exception leaves is told as docs/errors.md shows") {
  Decoder it;
  it.embeds = []() -> Result<void> { throw std::out_of_range("token 50257 is out of range"); };
  const Buffer<float> hidden = it.written("hidden");
  CHECK_THROWS_AS(it.stream.launch(*it.embed, four(46), hidden), std::out_of_range);
  is_shown(it.unreadable(hidden));
}

TEST_CASE("E10: a late failure is told as docs/errors.md shows") {
  Decoder it(StreamKind::worker);
  const Buffer<float> hidden = it.written("hidden");
  const Buffer<float> logits = it.written("logits");
  it.stream.launch(*it.embed, four(138), hidden);
  it.stream.launch(*it.head, four(140), hidden, logits);
  is_shown(it.unreadable(logits));
}

TEST_CASE("O2: a skip that went through a copy is told as docs/errors.md shows") {
  Decoder it;
  const Buffer<float> hidden = it.written("hidden");
  const Buffer<float> kept = it.written("kept");
  const Buffer<float> logits = it.written("logits");
  it.stream.launch(*it.embed, four(46), hidden.view(0, 2));
  it.stream.copy(kept.view(2, 2), hidden.view(0, 2), at(52));
  it.stream.launch(*it.head, four(53), kept, logits);
  is_shown(it.unreadable(logits));
}

TEST_CASE("M5: an input that nobody wrote is told as docs/errors.md shows") {
  Decoder it;
  const Buffer<float> hidden = it.device.buffer<float>("hidden", 4).value();
  const Buffer<float> normed = it.written("normed");
  it.stream.launch(*it.norm, four(47), hidden, normed);
  is_shown(it.unreadable(normed));
}

TEST_CASE("M6: an argument that was freed is told as docs/errors.md shows") {
  Decoder it;
  const Buffer<float> normed = it.written("normed");
  View<float> stale;
  {
    const Buffer<float> hidden = it.written("hidden");
    stale = hidden;
  }
  it.stream.launch(*it.norm, four(123), stale, normed);
  is_shown(it.unreadable(normed));
}

TEST_CASE("C3: a window that a launch doomed is told as docs/errors.md shows, on both sides") {
  Decoder it;
  const std::vector<float> values(4);
  const Buffer<float> weights =
      it.device.constant<float>("weights", SharedBytes::copy_of(std::as_bytes(std::span(values))))
          .value();
  const Buffer<float> hidden = it.written("hidden");
  const Buffer<float> normed = it.written("normed");
  const Buffer<float> logits = it.written("logits");
  OpenWindow window = it.stream.record(at(52)).value();
  it.stream.launch(*it.step, four(53), hidden, weights, normed);
  it.stream.launch(*it.head, four(54), normed, logits);
  is_shown(Decoder::refusal(window));
  is_shown(it.unreadable(logits));
}

TEST_CASE("C2: a scope that recorded something else is told as docs/errors.md shows") {
  Decoder it;
  const Buffer<float> normed = it.device.buffer<float>("normed", 8).value();
  const Buffer<float> gated = it.device.buffer<float>("gated", 8).value();
  it.device.kernels().add<Make>("gate", [](std::span<float>) {});
  const auto gate = it.device.kernel<Make>("gate").value();
  OpenWindow window = it.stream.record(at(52)).value();
  WriteSet writes = it.stream.write_set();
  writes.add(normed.view().binding());
  const auto block = ExecuteScope<Stream>::over(it.stream, intern_kernel_name("attention block"),
                                                std::move(writes), at(60))
                         .execute([&](Stream& on) {
                           return on.launch(gate, grid(8, at(61)), gated).into_result();
                         });
  REQUIRE(block.executed_cleanly());
  is_shown(Decoder::refusal(window));
}

TEST_CASE("C13: two streams that race in a window are told as docs/errors.md shows") {
  Decoder it;
  const Buffer<float> hidden = it.written("hidden");
  const Buffer<float> normed = it.written("normed");
  Stream other = it.device.stream().value();
  OpenWindow window = it.stream.record(at(52)).value();
  REQUIRE(other.wait(it.stream.record_event().value(), at(53)).ok());
  it.stream.launch(*it.embed, four(54), hidden);
  other.launch(*it.norm, four(55), hidden, normed);
  REQUIRE(it.stream.wait(other.record_event().value(), at(56)).ok());
  is_shown(Decoder::refusal(window));
}

TEST_CASE("C15: a recording that left its warm-up is told as docs/errors.md shows") {
  Decoder it;
  const Buffer<float> hidden = it.written("hidden");
  const Buffer<float> normed = it.written("normed");
  const Buffer<float> logits = it.written("logits");
  OpenWindow window = it.stream.prepare(at(30)).value();
  it.stream.launch(*it.norm, four(31), hidden, normed);
  it.stream.launch(*it.head, four(32), normed, logits);
  REQUIRE(window.begin().ok());
  it.stream.launch(*it.norm, four(41), hidden, normed);
  it.stream.copy(logits, normed, at(42));
  is_shown(Decoder::refusal(window));
}

TEST_CASE("C15: a fork that was forgotten is told as docs/errors.md shows") {
  Decoder it;
  const Buffer<float> hidden = it.written("hidden");
  const Buffer<float> logits = it.written("logits");
  Stream side = it.device.stream().value();
  const auto body = [&] {
    it.stream.fill(hidden, 1, at(32));
    side.fill(logits, 1, at(33));
  };
  OpenWindow window = it.stream.prepare(body, 8, at(30)).value();
  REQUIRE(window.begin().ok());
  body();
  is_shown(Decoder::refusal(window));
}

/// A decoder's step, recorded.
struct Decoded : Decoder {
  const Buffer<float> samples = written("samples", Role::input);
  const Buffer<float> memory = written("memory", Role::state);
  const Buffer<float> answer = written("answer", Role::output);
  const Recording recording = recorded(samples, memory, answer);
};

TEST_CASE("P4: a replay that a broken state skipped is told as docs/errors.md shows") {
  Decoded it;
  Instance decode = instance(it.recording).value();
  it.steps = [] { return Error(ErrorKind::kernel_failed, "The cache is full (512 of 512)."); };
  CHECK(decode.replay(it.stream, {}, at(97)).failed());
  CHECK(decode.replay(it.stream, {}, at(98)).skipped());
  is_shown(it.unreadable(it.answer));
}

TEST_CASE("E4: a kernel that threw in a replay is told as docs/errors.md shows") {
  Decoded it;
  Instance decode = instance(it.recording).value();
  it.steps = []() -> Result<void> { throw std::out_of_range("token 50257 is out of range"); };
  CHECK_THROWS_AS(static_cast<void>(decode.replay(it.stream, {}, at(97))), std::out_of_range);
  is_shown(it.unreadable(it.answer));
}

TEST_CASE("C18, P4: a graph that was given no name is told by the place where it was sealed") {
  Decoder it;
  const Buffer<float> memory = it.written("memory", Role::state);
  const Buffer<float> normed = it.written("normed");
  const Buffer<float> answer = it.written("answer", Role::output);
  const auto sealed = [&](int line) {
    OpenWindow window = it.stream.record(at(88)).value();
    it.stream.launch(*it.step, four(89), normed, memory, answer);
    return window.seal({}, at(line)).value();
  };
  const Recording first = sealed(90);
  CHECK(it.unreadable(answer).find("Graph (decode.cpp:90) was recorded and") != std::string::npos);
  const Recording second = sealed(91);
  CHECK(it.unreadable(answer).find("Graph (decode.cpp:91) was recorded and") != std::string::npos);
  Instance step = instance(second).value();
  it.steps = [] { return Error(ErrorKind::kernel_failed, "The cache is full (512 of 512)."); };
  CHECK(step.replay(it.stream, {}, at(97)).failed());
  const std::string text = it.unreadable(answer);
  CHECK(text.find("\"graph (decode.cpp:91)\" on stream ") != std::string::npos);
  CHECK(text.find("While replaying node 0, \"step\" (decode.cpp:89), of graph (decode.cpp:91).") !=
        std::string::npos);
  const auto other = step.view<float>("nothing");
  REQUIRE_FALSE(other.ok());
  CHECK(other.error().text().find("Graph (decode.cpp:91) has no binding called \"nothing\"") == 0);
  CHECK(second.graph().name() == "graph");  // which is what a file says
}

TEST_CASE("P2: a replay that an input skipped is told as docs/errors.md shows") {
  Decoded it;
  Instance decode = instance(it.recording).value();
  it.stream.failed_write(it.samples,
                         Error(ErrorKind::kernel_failed, "The microphone was unplugged."), at(101));
  CHECK(decode.replay(it.stream, {}, at(102)).skipped());
  is_shown(it.unreadable(it.answer));
}

TEST_CASE("C18: what is sealed and not replayed is told as docs/errors.md shows") {
  Decoded it;
  is_shown(it.unreadable(it.answer));
}

TEST_CASE("R1: a skip that other work hands on is told as docs/errors.md shows") {
  Decoder it;
  const Buffer<float> hidden = it.written("hidden");
  const Buffer<float> normed = it.written("normed");
  const Buffer<float> block = it.written("block");
  it.stream.launch(*it.embed, four(46), hidden);
  WriteSet writes = it.stream.write_set();
  writes.add(block.view().binding());
  ExecuteScope<Stream>::over(it.stream, intern_kernel_name("attention block"), std::move(writes),
                             at(151))
      .execute([&](Stream& on) -> Result<void> {
        const auto ran = on.launch(*it.norm, four(152), hidden, normed).into_result();
        REQUIRE_FALSE(ran.ok());
        return ran.error().with_context("While computing layer 3.");
      });
  is_shown(it.unreadable(block));
}

TEST_CASE("M2: a failure that nobody read of is told as docs/errors.md shows") {
  Decoder it;
  const Buffer<float> hidden = it.written("hidden");
  const Buffer<float> logits = it.written("logits");
  it.stream.launch(*it.embed, four(46), hidden);
  it.stream.launch(*it.head, four(48), hidden, logits);
  it.stream.fill(hidden, 0);
  it.stream.fill(logits, 0);
  REQUIRE(it.unread.size() == 1);
  is_shown(it.unread.front());
}

TEST_CASE("kernel signatures: a kernel of another one is told as docs/errors.md shows") {
  Decoder it;
  const Result<Map> loaded = it.device.kernel<Map>("step");
  REQUIRE_FALSE(loaded.ok());
  is_shown(loaded.error().text());
}

TEST_CASE("M7: a failure that doomed two windows names the newest and counts the other") {
  Decoder it;
  const Buffer<float> hidden = it.written("hidden");
  const Buffer<float> normed = it.written("normed");
  it.stream.launch(*it.embed, four(46), hidden);
  for (const int line : {61, 71}) {
    OpenWindow window = it.stream.record(at(line)).value();
    it.stream.launch(*it.norm, four(line + 1), hidden, normed);
    CHECK(Decoder::refusal(window).find("was skipped: it needed bytes") != std::string::npos);
    CHECK(it.unreadable(hidden).find(
              "It doomed the window of stream " + std::to_string(it.stream.id().number) +
              " (decode.cpp:" + std::to_string(line) + ")" +
              (line == 61 ? "." : ", and 1 window before it.")) != std::string::npos);
  }
}

TEST_CASE("C11: what was recorded in a window that failed leads to what failed") {
  Decoder it;
  const Buffer<float> hidden = it.written("hidden");
  const Buffer<float> normed = it.written("normed");
  OpenWindow window = it.stream.record(at(52)).value();
  it.stream.launch(*it.embed, four(53), hidden);
  it.stream.launch(*it.norm, four(54), hidden.view(2, 9), normed);
  const Result<Recording> sealed = window.seal();
  REQUIRE_FALSE(sealed.ok());
  CHECK(sealed.error().failure() == it.device.check(normed)->failure());
  const std::string story = it.unreadable(hidden);
  CHECK(story.find("because of failure " + std::to_string(sealed.error().failure().number) +
                   ": \"norm\"") != std::string::npos);
}

}  // namespace refrain::test
