// Is there speech in these 32 ms? Runs the model eagerly, records one step of it, and replays the
// recorded step: in another process, which has the kernels and the file and nothing else.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "vad/compare.hpp"
#include "vad/demo.hpp"
#include "vad/device.hpp"
#include "vad/probabilities.hpp"
#include "vad/session.hpp"

namespace {

/// What the command line says.
struct Options {
  std::string weights;
  std::string pcm;
  std::string save;
  std::string load;
  std::string out;
  std::string expect;
  std::string device = "host";
  std::string twin;
  std::size_t sessions = 1;
  std::size_t threads = 1;
  std::size_t passes = 20;
};

std::shared_ptr<const vad::Weights> shared_weights(const std::string& path) {
  return std::make_shared<const vad::Weights>(vad::read_weights(path).value());
}

int refused(const std::string& why) {
  fmt::print(stderr, "vad: {}\n", why);
  return 1;
}

/// Shows what a run gave, writes it where `--out` says, and compares it with `--expect`. The
/// expected numbers have been read before the run, so that a run is not lost to a wrong name.
int report(const Options& options, const vad::Answers& answers,
           const std::vector<double>& expected) {
  const std::vector<float> probabilities = vad::probabilities_of(answers);
  fmt::print("{} steps of 32 ms; speech is #\n{}\n", probabilities.size(),
             vad::picture(probabilities));
  fmt::print("time a step          {:.1f} us (median)\n", vad::median_microseconds(answers));
  if (!options.out.empty()) vad::write_probabilities(options.out, probabilities).value();
  if (options.expect.empty()) return 0;

  if (expected.size() != probabilities.size()) {
    return refused(
        fmt::format("The file \"{}\" holds {} probabilities, and the audio has {} steps.",
                    options.expect, expected.size(), probabilities.size()));
  }
  const double difference = vad::largest_difference(probabilities, expected);
  fmt::print("largest difference   {:.1e} from {}\n", difference, options.expect);
  if (difference <= vad::kTolerance) return 0;
  return refused(
      fmt::format("The probabilities differ from those in \"{}\" by up to {:.1e}, and {} "
                  "is allowed.",
                  options.expect, difference, vad::kTolerance));
}

std::vector<double> expected_by(const Options& options) {
  if (options.expect.empty()) return {};
  return vad::read_probabilities(options.expect).value();
}

int eager(const Options& options) {
  const auto weights = shared_weights(options.weights);
  const vad::Audio audio = vad::read_audio(options.pcm).value();
  const std::vector<double> expected = expected_by(options);
  vad::EagerSession session(vad::open_device(options.device).value(), weights);
  return report(options, vad::run(session, audio), expected);
}

int record(const Options& options) {
  const auto weights = shared_weights(options.weights);
  const refrain::Device device = vad::open_device(options.device).value();
  refrain::Stream stream = device.stream().value();
  const vad::Step step = vad::make_step(device, weights);
  const refrain::Recording recording = vad::record_step(stream, step).value();
  refrain::save(recording.graph(), options.save).value();
  fmt::print("recorded             {} launches over {} regions\n", recording.graph().nodes().size(),
             recording.graph().regions().size());
  fmt::print("saved                {}, {} bytes, weights included\n", options.save,
             std::filesystem::file_size(options.save));
  return 0;
}

int replay(const Options& options) {
  const vad::Audio audio = vad::read_audio(options.pcm).value();
  const std::vector<double> expected = expected_by(options);
  const refrain::Device device = vad::open_device(options.device).value();
  const auto begin = std::chrono::steady_clock::now();
  const refrain::Plan plan = refrain::load(device, options.load).value();
  const auto end = std::chrono::steady_clock::now();
  fmt::print("loaded               {}, {} bytes, in {:.2f} ms\n", options.load,
             std::filesystem::file_size(options.load),
             std::chrono::duration<double, std::milli>(end - begin).count());

  auto session = vad::ReplaySession::make(device, plan);
  if (!session) {
    return refused(
        session.error().with_context(fmt::format("While opening \"{}\".", options.load)).text());
  }
  const vad::Answers alone = vad::run(*session, audio);
  if (options.sessions > 1) {
    const std::size_t threads = std::min(options.threads, options.sessions);
    const std::vector<float> wanted = vad::probabilities_of(alone);
    const auto together = vad::run_together(device, plan, audio, options.sessions, threads);
    for (std::size_t k = 0; k < together.size(); ++k) {
      if (vad::probabilities_of(together[k]) == wanted) continue;
      return refused(fmt::format("Session {} of {} gave other probabilities than one alone.", k,
                                 options.sessions));
    }
    fmt::print(
        "together             {} sessions on {} threads, each {} steps behind the one before; "
        "each gave what one alone gives\n",
        options.sessions, threads, vad::kStepsBehind);
  }
  return report(options, alone, expected);
}

int compare(const Options& options) {
  const auto weights = shared_weights(options.weights);
  const vad::Audio audio = vad::read_audio(options.pcm).value();
  if (options.twin.empty()) return vad::compare(weights, audio, options.passes) ? 0 : 1;
  const refrain::Device device = vad::open_device(options.device).value();
  const refrain::Device twin = vad::open_device(options.twin).value();
  return vad::compare_nodes(device, twin, weights, audio, vad::kTolerance) ? 0 : 1;
}

int demo(const Options& options) {
  return vad::demo({options.weights, options.pcm, options.expect}) ? 0 : 1;
}

int run(int argc, char** argv) {
  Options options;
  CLI::App app("Finds speech with Silero VAD, eagerly or by replaying a recorded step.", "vad");
  app.require_subcommand(1);

  const auto weights = [&](CLI::App* command) {
    command->add_option("--weights", options.weights, "the model, a safetensors file")->required();
  };
  const auto pcm = [&](CLI::App* command) {
    command->add_option("--pcm", options.pcm, "16-bit 16 kHz mono samples, headerless or WAV")
        ->required();
  };
  const auto results = [&](CLI::App* command) {
    command->add_option("--out", options.out, "writes the probabilities here, one a line");
    command->add_option("--expect", options.expect, "compares with the probabilities in this file");
  };
  const auto device = [&](CLI::App* command) {
    command->add_option("--device", options.device, "host, or cuda for the first GPU")
        ->check(CLI::IsMember({"host", "cuda"}));
  };
  auto* const eager_command = app.add_subcommand("eager", "launches every step anew");
  weights(eager_command);
  pcm(eager_command);
  results(eager_command);
  device(eager_command);

  auto* const record_command = app.add_subcommand("record", "records one step and saves it");
  weights(record_command);
  record_command->add_option("--save", options.save, "the capture file to write")->required();
  device(record_command);

  auto* const replay_command =
      app.add_subcommand("replay", "replays a saved step; needs no weights");
  replay_command->add_option("--load", options.load, "the capture file")->required();
  pcm(replay_command);
  results(replay_command);
  device(replay_command);
  replay_command
      ->add_option("--sessions", options.sessions,
                   "also runs that many at once, and checks that each is as alone")
      ->check(CLI::Range(1, 1024));
  replay_command->add_option("--threads", options.threads, "threads that share the sessions")
      ->check(CLI::Range(1, 256));

  auto* const compare_command =
      app.add_subcommand("compare",
                         "times eager and replayed steps on the host, taking turns; with --twin, "
                         "compares what each node gives on two devices");
  weights(compare_command);
  pcm(compare_command);
  compare_command->add_option("--passes", options.passes, "passes of each")
      ->check(CLI::Range(1, 100000));
  device(compare_command);
  compare_command->add_option("--twin", options.twin, "the other device: host or cuda")
      ->check(CLI::IsMember({"host", "cuda"}));

  auto* const demo_command =
      app.add_subcommand("demo", "shows it all, and what happens on failure");
  weights(demo_command);
  pcm(demo_command);
  demo_command->add_option("--expect", options.expect, "the reference probabilities")->required();

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 1;  // --help is a ParseError too
  }
  if (eager_command->parsed()) return eager(options);
  if (record_command->parsed()) return record(options);
  if (replay_command->parsed()) return replay(options);
  if (compare_command->parsed()) return compare(options);
  return demo(options);
}

}  // namespace

int main(int argc, char** argv) {
  // The library throws nothing of its own; what arrives here was thrown by `Result::value()`, with
  // the error's sentences, or by the standard library.
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    return refused(error.what());
  }
}
