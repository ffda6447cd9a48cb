// What a run says beside passed and failed: what an unsettled rule was seen to do, and which cases
// could not run here. With REFRAIN_OBSERVATIONS every case appends one line of JSON to the file
// that it names.
#pragma once

#include <string>
#include <string_view>
#include <type_traits>

#include "cuda_api.hpp"

namespace conformance {

/// "CUDA_ERROR_INVALID_VALUE (1)"; the simulation's own code for what is not established too.
std::string code_text(CUresult code);

/// Notes what the driver does where no source says what it must: printed and recorded, never
/// judged.
void observe(std::string_view what, std::string_view value);
inline void observe(std::string_view what, const char* value) {
  observe(what, std::string_view(value));
}
inline void observe(std::string_view what, CUresult code) { observe(what, code_text(code)); }
inline void observe(std::string_view what, bool value) { observe(what, value ? "yes" : "no"); }
template <class Number, class = std::enable_if_t<std::is_arithmetic_v<Number>>>
void observe(std::string_view what, Number value) {
  observe(what, std::to_string(value));
}

/// Says that the running case cannot run here; SKIP_CASE, which also leaves it, is the way to call.
void note_skip(std::string_view why);

/// The whole name of the running case.
const std::string& running_case();

}  // namespace conformance

/// Leaves a case that cannot run over this driver or this device. It counts as skipped, not passed.
#define SKIP_CASE(why)           \
  do {                           \
    conformance::note_skip(why); \
    return;                      \
  } while (false)

#define CONFORMANCE_CODE(assertion, expression, expected)                                        \
  do {                                                                                           \
    const CUresult answered = (expression);                                                      \
    assertion(answered == (expected), #expression " answers ", conformance::code_text(answered), \
              ", not ", conformance::code_text(expected));                                       \
  } while (false)

/// The call answers that code; both are printed by name where it does not.
#define CHECK_CODE(expression, expected) CONFORMANCE_CODE(CHECK_MESSAGE, expression, expected)
/// The same, and the case ends where it does not.
#define REQUIRE_CODE(expression, expected) CONFORMANCE_CODE(REQUIRE_MESSAGE, expression, expected)
/// The call succeeds; the case ends where it does not.
#define REQUIRE_OK(expression) REQUIRE_CODE(expression, CUDA_SUCCESS)
