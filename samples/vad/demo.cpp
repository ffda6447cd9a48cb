#include "vad/demo.hpp"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

#include "vad/probabilities.hpp"
#include "vad/session.hpp"

namespace vad {
namespace {

/// Counts promises, and those that were not kept.
class Promises {
 public:
  void check(bool kept, const std::string& promise) {
    fmt::print("  {} {}\n", kept ? "[ok]" : "[NOT AS PROMISED]", promise);
    ++made_;
    if (!kept) ++broken_;
  }
  [[nodiscard]] int made() const { return made_; }
  [[nodiscard]] int broken() const { return broken_; }

 private:
  int made_ = 0;
  int broken_ = 0;
};

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string path = (std::filesystem::temp_directory_path() / "vad-demo-XXXXXX").string();
    if (::mkdtemp(path.data()) == nullptr) {
      throw std::system_error(errno, std::generic_category(), "A temporary folder cannot be made");
    }
    path_ = path;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  [[nodiscard]] std::string file(const char* name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

/// Runs this program with other arguments, in a new process; its exit status, or -1.
int run_again(std::vector<std::string> arguments) {
  fmt::print("  $ vad");
  for (const std::string& argument : arguments) fmt::print(" {}", argument);
  fmt::print("\n");
  std::fflush(stdout);  // what this process printed comes before what the other one prints

  std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
  std::vector<char*> words = {program.data()};
  for (std::string& argument : arguments) words.push_back(argument.data());
  words.push_back(nullptr);
  pid_t child = 0;
  if (::posix_spawn(&child, program.c_str(), nullptr, nullptr, words.data(), environ) != 0) {
    return -1;
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return -1;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/// Prints a text of several lines as something that was said.
void quote(const std::string& text) {
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    fmt::print("  | {}\n", rest.substr(0, end));
    rest.remove_prefix(std::min(rest.size(), end + 1));
  }
}

bool mentions(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

bool agrees(const std::vector<float>& found, const std::vector<double>& expected) {
  return found.size() == expected.size() && largest_difference(found, expected) <= kTolerance;
}

/// What everything below works with.
struct Scene {
  refrain::host::Device device;
  std::shared_ptr<const Weights> weights;
  Audio audio;
  std::vector<double> expected;
  std::string capture;
};

void show_replay(const DemoFiles& files, const Scene& scene, const TemporaryFolder& folder,
                 Promises& promises) {
  fmt::print("1. One step of the model is recorded, saved, and replayed in a new process.\n");
  refrain::Stream stream = scene.device.stream().value();
  const Step step = make_step(scene.device, scene.weights);
  const refrain::Recording recording = record_step(stream, step).value();
  promises.check(recording.graph().nodes().size() == kLaunchesPerStep,
                 fmt::format("all {} launches of the step are in the recording", kLaunchesPerStep));
  refrain::save(recording.graph(), scene.capture).value();
  const std::string out = folder.file("probabilities.txt");
  const int status = run_again({"replay", "--load", scene.capture, "--pcm", files.pcm, "--out", out,
                                "--expect", files.expect});
  promises.check(status == 0, "the new process, which has no weights file, ran to its end");
  const auto replayed = read_probabilities(out);
  const std::vector<double> none;
  const std::vector<double>& values = replayed.ok() ? *replayed : none;
  promises.check(agrees(std::vector<float>(values.begin(), values.end()), scene.expected),
                 fmt::format("its {} probabilities are those of the reference to {}", values.size(),
                             kTolerance));
}

void show_refused_recording(const Scene& scene, Promises& promises) {
  fmt::print(
      "\n2. A step in which one launch fails is recorded. Layer 1 of the encoder is given "
      "memory of another device.\n");
  refrain::Stream stream = scene.device.stream().value();
  Step step = make_step(scene.device, scene.weights);
  const refrain::host::Device other;
  auto good = std::exchange(step.encoded[1],
                            other.buffer<float>("encoded.1", kEncoder[1].out_count()).value());
  const auto refused = record_step(stream, step);
  promises.check(!refused.ok(), "there is no recording");
  if (refused.ok()) return;
  quote(refused.error().text());
  promises.check(mentions(refused.error().text(), "buffer of another device") &&
                     mentions(refused.error().text(), "vad.conv1d"),
                 "the refusal says which launch failed, and why");
  const auto read = stream.read(step.probability);
  promises.check(!read.ok(), "nobody reads a probability that no launch computed");

  // What the recording was to write carries its failure, and a step reads its states.
  step.encoded[1] = std::move(good);
  reset(stream, step);
  promises.check(record_step(stream, step).ok(),
                 "with the right memory and its states written, the same stream records the step");
}

/// The bytes of a session's states.
std::vector<float> states_of(ReplaySession& session) {
  std::vector<float> all;
  for (const char* const name : {"tail", "c", "h"}) {
    const auto view = session.instance().view<float>(name).value();
    const auto values = session.stream().read(view).value();
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

void show_missing_input(const Scene& scene, Promises& promises) {
  const std::size_t missing = scene.audio.steps() / 2;
  fmt::print("\n3. The samples of step {} do not arrive, and the step is replayed all the same.\n",
             missing);
  const refrain::Plan plan = refrain::load(scene.device, scene.capture).value();
  ReplaySession session = ReplaySession::make(scene.device, plan).value();
  std::vector<float> found;
  for (std::size_t i = 0; i < missing; ++i) {
    found.push_back(session.step(scene.audio.step(i)).probability);
  }
  const std::vector<float> before = states_of(session);

  const std::string root = fmt::format("The microphone gave no samples for step {}.", missing);
  session.stream().failed_write(session.samples(),
                                refrain::Error(refrain::ErrorKind::file_io, root));
  const auto outcome = session.instance().replay(session.stream());
  promises.check(outcome.skipped(), "the replay is skipped");
  const auto read = session.stream().read(session.probability());
  promises.check(!read.ok(), "the probability cannot be read; nobody takes the last one for it");
  if (!read.ok()) {
    const std::string text = read.error().text();
    quote(text);
    promises.check(mentions(text, root), "the refusal names the root, samples that did not come");
    promises.check(mentions(text, kGraphName) && mentions(text, kSamples),
                   "and the path from there: the graph that needed them");
  }
  promises.check(states_of(session) == before, "the state is as it was, to the bit");

  for (std::size_t i = missing; i < scene.audio.steps(); ++i) {
    found.push_back(session.step(scene.audio.step(i)).probability);
  }
  ReplaySession undisturbed = ReplaySession::make(scene.device, plan).value();
  promises.check(found == probabilities_of(run(undisturbed, scene.audio)),
                 "with good samples it goes on as if nothing had been, to the bit");
  promises.check(agrees(found, scene.expected), "and gives the probabilities of the reference");
  promises.check(
      !scene.device.check(session.samples()) && !scene.device.check(session.probability()),
      "nothing of the failure is left on its memory");
}

}  // namespace

bool demo(const DemoFiles& files) {
  const TemporaryFolder folder;
  Scene scene{refrain::host::Device(refrain::DeviceOptions{.checks = true}),
              std::make_shared<const Weights>(read_weights(files.weights).value()),
              read_audio(files.pcm).value(), read_probabilities(files.expect).value(),
              folder.file("step.refrain")};
  scene.device.register_kernels(register_kernels).value();

  Promises promises;
  show_replay(files, scene, folder, promises);
  show_refused_recording(scene, promises);
  show_missing_input(scene, promises);
  if (promises.broken() == 0) {
    fmt::print("\nvad demo: all {} promises kept\n", promises.made());
  } else {
    fmt::print("\nvad demo: {} of {} promises NOT kept\n", promises.broken(), promises.made());
  }
  return promises.broken() == 0;
}

}  // namespace vad
