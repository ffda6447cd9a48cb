#include "report.hpp"

#include <doctest/doctest.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <utility>
#include <vector>

#include "driver_error.hpp"
#include "own_process.hpp"
#include "session.hpp"

namespace conformance {
namespace {

// A case that takes longer has found a driver that hangs. The child of a case ends first.
constexpr unsigned kSecondsForACase = 60;
constexpr unsigned kSecondsForAChild = 45;

struct Record {
  std::string name;
  std::vector<std::pair<std::string, std::string>> observations;
  std::string skipped;
};

Record& record() {
  static Record of_running_case;
  return of_running_case;
}

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) >= 0x20) out += c;
  }
  return out + '"';
}

/// "CAP-01" of "CAP-01: begin on ... [N]".
std::string id_of(const std::string& name) { return name.substr(0, name.find(':')); }

/// "[N]" of the same.
std::string source_of(const std::string& name) {
  const std::size_t tag = name.rfind('[');
  return tag == std::string::npos ? "" : name.substr(tag);
}

std::string json_line(const Record& of, const char* outcome, double seconds) {
  std::string observations;
  for (const auto& [what, value] : of.observations) {
    if (!observations.empty()) observations += ',';
    observations += "{\"what\":" + quoted(what) + ",\"value\":" + quoted(value) + "}";
  }
  std::string line = "{\"case\":" + quoted(id_of(of.name)) + ",\"name\":" + quoted(of.name) +
                     ",\"source\":" + quoted(source_of(of.name)) + ",\"outcome\":\"" + outcome +
                     "\",\"observations\":[" + observations + "]";
  if (!of.skipped.empty()) line += ",\"skipped\":" + quoted(of.skipped);
  return line + ",\"seconds\":" + std::to_string(seconds) + "}\n";
}

void out_of_time(int) {
  constexpr char kText[] = "the case takes too long: the driver seems to hang\n";
  [[maybe_unused]] const auto written = write(STDOUT_FILENO, kText, sizeof kText - 1);
  std::abort();  // doctest then reports the case as crashed
}

/// Opens the driver when a run starts, watches the clock, and writes the observation file.
class Listener final : public doctest::IReporter {
 public:
  explicit Listener(const doctest::ContextOptions&) {}

  void test_run_start() override {
    open_session();
    std::signal(SIGALRM, out_of_time);
  }
  void test_case_start(const doctest::TestCaseData& started) override {
    record() = {started.m_name, {}, {}};
    alarm(in_own_process() ? kSecondsForAChild : kSecondsForACase);
  }
  void test_case_end(const doctest::CurrentTestCaseStats& stats) override {
    alarm(0);
    const bool skipped = !record().skipped.empty();
    if (skipped) ++skipped_;
    const char* outcome = !stats.testCaseSuccess ? "failed" : skipped ? "skipped" : "passed";
    const char* file = std::getenv("REFRAIN_OBSERVATIONS");
    if (file == nullptr || *file == '\0') return;
    std::ofstream(file, std::ios::app) << json_line(record(), outcome, stats.seconds);
  }
  void test_run_end(const doctest::TestRunStats&) override {
    if (skipped_ != 0) std::printf("cases that could not run here: %u\n", skipped_);
  }

  void report_query(const doctest::QueryData&) override {}
  void test_case_reenter(const doctest::TestCaseData&) override {}
  void test_case_exception(const doctest::TestCaseException&) override {}
  void subcase_start(const doctest::SubcaseSignature&) override {}
  void subcase_end() override {}
  void log_assert(const doctest::AssertData&) override {}
  void log_message(const doctest::MessageData&) override {}
  void test_case_skipped(const doctest::TestCaseData&) override {}

 private:
  unsigned skipped_ = 0;
};

REGISTER_LISTENER("observations", 1, Listener);

}  // namespace

std::string code_text(CUresult code) {
  const int number = code;
  if (number == sim::kUnspecified) return "unspecified (the simulation does not know)";
  return std::string(refrain::cuda::code_name(code)) + " (" + std::to_string(number) + ")";
}

void observe(std::string_view what, std::string_view value) {
  record().observations.emplace_back(what, value);
  std::printf("%s%.*s = %.*s\n", kObserved, static_cast<int>(what.size()), what.data(),
              static_cast<int>(value.size()), value.data());
}

void note_skip(std::string_view why) {
  record().skipped = why;
  std::printf("%s%.*s\n", kCaseSkipped, static_cast<int>(why.size()), why.data());
}

const std::string& running_case() { return record().name; }

}  // namespace conformance
