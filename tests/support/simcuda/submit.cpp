#include "simcuda/submit.hpp"

namespace sim {
namespace {

CUresult run_host(const HostWork& work) {
  this_thread().in_host_function = true;
  work.function(work.user);
  this_thread().in_host_function = false;
  return CUDA_SUCCESS;
}

template <class... Each>
struct Overloaded : Each... {
  using Each::operator()...;
};
template <class... Each>
Overloaded(Each...) -> Overloaded<Each...>;

}  // namespace

std::vector<std::shared_ptr<Op>> predecessors(Stream& stream) {
  std::vector<std::shared_ptr<Op>> before;
  const auto add = [&](const Stream& other) {
    if (other.last != nullptr && !other.last->done) before.push_back(other.last);
  };
  add(stream);
  if (Driver::get().has_bug("legacy-order")) return before;
  if (stream.legacy) {
    for (const Stream* other : stream.context->streams) {
      if (other->blocking()) add(*other);
    }
  } else if (stream.blocking()) {
    add(*stream.context->legacy);
  }
  return before;
}

std::shared_ptr<Op> enqueue(Driver& driver, Stream& stream, std::function<CUresult()> run,
                            std::vector<std::shared_ptr<Op>> also_after, bool runs_after_errors) {
  auto after = predecessors(stream);
  for (auto& op : also_after) {
    if (op != nullptr && !op->done) after.push_back(std::move(op));
  }
  stream.last = driver.queue.add(driver, *stream.context, std::move(after), std::move(run),
                                 runs_after_errors);
  return stream.last;
}

CUresult submit(Driver& driver, Stream& stream, Work work) {
  const Override planned = this_thread().override_;
  if (planned == Override::no_node) return CUDA_SUCCESS;
  if (stream.capture != nullptr && planned != Override::runs_now) {
    return capture_work(driver, stream, std::move(work));
  }
  if (stream.legacy) {
    if (const CUresult code = enter_legacy(driver, *stream.context); code != CUDA_SUCCESS) {
      return code;
    }
  }
  enqueue(driver, stream, [&driver, kept = std::make_shared<const Work>(std::move(work))] {
    return perform(driver, *kept);
  });
  return CUDA_SUCCESS;
}

CUresult perform(Driver& driver, const Work& work) {
  return std::visit(Overloaded{
                        [&](const KernelWork& kernel) { return run_kernel(driver, kernel); },
                        [&](const CopyWork& copy) { return run_copy(driver, copy.copy); },
                        [&](const FillWork& fill) { return run_fill(driver, fill.fill); },
                        [&](const HostWork& host) { return run_host(host); },
                        [](const EmptyWork&) { return CUDA_SUCCESS; },
                        [](const auto&) -> CUresult {
                          give_up("simcuda",
                                  "was to perform work that only a graph's launch takes apart");
                        },
                    },
                    work);
}

CUresult enter_legacy(Driver& driver, Context& context, bool harmless) {
  CUresult answer = CUDA_SUCCESS;
  for (const auto& capture : driver.captures) {
    if (capture->origin->context != &context) continue;
    bool blocking = false;
    for (const Stream* member : capture->members) blocking = blocking || member->blocking();
    if (!blocking) continue;
    if (!harmless) invalidate(*capture);
    answer = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  }
  return answer;
}

}  // namespace sim
