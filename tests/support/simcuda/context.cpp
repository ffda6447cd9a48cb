#include "simcuda/context.hpp"

#include "simcuda/capture.hpp"
#include "simcuda/code.hpp"

namespace sim {

Context* make_context(Driver& driver, unsigned flags) {
  auto* context = make<Context>();
  context->id = ++driver.last_id;
  context->flags = flags;
  context->legacy = make<Stream>();
  context->legacy->context = context;
  context->legacy->legacy = true;
  context->legacy->id = ++driver.last_id;
  return context;
}

void destroy_context(Driver& driver, Context& context) {
  const char* function = this_thread().function;
  wait_for_all(driver, context);
  driver.lost = driver.lost || context.error != CUDA_SUCCESS;
  const auto captures = driver.captures;  // leaving changes the list
  for (const auto& capture : captures) {
    if (capture->origin->context == &context) leave_capture(driver, *capture);
  }
  for (Stream* each : context.streams) {
    if (each->destroyed_by == nullptr) destroy(*each, function);
  }
  for (Event* each : context.events) {
    if (each->destroyed_by == nullptr) destroy(*each, function);
  }
  while (!context.modules.empty()) unload(driver, *context.modules.back(), function);
  driver.memory.release_all(context);
  destroy(*context.legacy, function);
  destroy(context, function);
}

}  // namespace sim
