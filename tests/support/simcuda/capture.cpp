#include "simcuda/capture.hpp"

#include <algorithm>

#include "simcuda/graph.hpp"
#include "simcuda/graph_memory.hpp"

namespace sim {
namespace {

/// What a kernel's launch attributes become in a capture: those that make sense for a node.
CUresult keep_node_attributes(const Stream& stream, KernelWork& kernel, bool& programmatic) {
  std::vector<CUlaunchAttribute> kept;
  bool has_priority = false;
  for (const CUlaunchAttribute& each : kernel.attributes) {
    switch (each.id) {
      case CU_LAUNCH_ATTRIBUTE_IGNORE: break;
      case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
        programmatic = each.value.programmaticStreamSerializationAllowed != 0;
        break;
      case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
      case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT: return kUnsettled;
      default:
        has_priority = has_priority || each.id == CU_LAUNCH_ATTRIBUTE_PRIORITY;
        kept.push_back(each);
    }
  }
  if (!has_priority) {
    CUlaunchAttribute priority{};
    priority.id = CU_LAUNCH_ATTRIBUTE_PRIORITY;
    priority.value.priority = stream.priority;
    kept.push_back(priority);
  }
  kernel.attributes = std::move(kept);
  return CUDA_SUCCESS;
}

void add_new(std::vector<Dependency>& to, const std::vector<Dependency>& from) {
  for (const Dependency& each : from) {
    const bool known = std::any_of(to.begin(), to.end(), [&](const Dependency& other) {
      return other.node == each.node && same(other.data, each.data);
    });
    if (!known) to.push_back(each);
  }
}

void join(Stream& stream, const std::shared_ptr<Capture>& capture) {
  stream.capture = capture;
  stream.dependencies.clear();
  capture->members.push_back(&stream);
}

CUresult wait_in_capture(Driver& driver, Stream& stream, Event& event, unsigned flags) {
  Capture& capture = *stream.capture;
  if (capture.invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if ((flags & CU_EVENT_WAIT_EXTERNAL) != 0) {
    return capture_work(driver, stream, WaitWork{&event});
  }
  if (event.captured_in == nullptr) {
    if (driver.has_bug("isolation-ignored")) return CUDA_SUCCESS;
    if (event.recorded == nullptr) {  // the rule was seen for events that had been recorded
      capture.unsettled = true;
      return kUnsettled;
    }
    invalidate(capture);
    return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
  }
  Capture& other = *event.captured_in;
  if (&other == &capture) {
    add_new(stream.dependencies, event.captured);
    return CUDA_SUCCESS;
  }
  if (other.ended || other.invalid) return kUnsettled;
  invalidate(capture);
  invalidate(other);
  return CUDA_ERROR_STREAM_CAPTURE_MERGE;
}

}  // namespace

std::optional<CUresult> capture_record(Driver& driver, Stream& stream, Event& event,
                                       unsigned flags) {
  const bool external = (flags & CU_EVENT_RECORD_EXTERNAL) != 0;
  if (stream.capture == nullptr) {
    if (external) return kUnsettled;
    event.captured_in = nullptr;
    event.captured.clear();
    return std::nullopt;
  }
  if (stream.capture->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (external) return capture_work(driver, stream, RecordWork{&event});
  event.captured_in = stream.capture;
  event.captured = stream.dependencies;
  return CUDA_SUCCESS;
}

std::optional<CUresult> capture_wait(Driver& driver, Stream& stream, Event& event, unsigned flags) {
  if (stream.capture != nullptr) return wait_in_capture(driver, stream, event, flags);
  if ((flags & CU_EVENT_WAIT_EXTERNAL) != 0) return kUnsettled;
  if (event.captured_in == nullptr) return std::nullopt;
  if (event.captured_in->ended || stream.legacy) return kUnsettled;
  if (event.captured_in->invalid) return CUDA_ERROR_INVALID_VALUE;
  join(stream, event.captured_in);
  stream.dependencies = event.captured;
  return CUDA_SUCCESS;
}

CUresult before_stream_sync(Driver& driver, Stream& stream) {
  if (stream.capture != nullptr) {
    if (stream.capture->invalid) return kUnsettled;
    invalidate(*stream.capture);
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  if (stream.legacy) {
    // Both 900 and 906 can be read out of the sources; that the captures break, out of either.
    if (enter_legacy(driver, *stream.context) != CUDA_SUCCESS) return kUnsettled;
  }
  return potentially_unsafe(driver);
}

CUresult before_event_sync(Driver& driver, Event& event) {
  if (event.captured_in == nullptr) return potentially_unsafe(driver);
  if (event.captured_in->ended || event.captured_in->invalid) return kUnsettled;
  invalidate(*event.captured_in);
  return CUDA_ERROR_CAPTURED_EVENT;
}

CUresult before_event_time(const Event& event) {
  return event.captured_in == nullptr ? CUDA_SUCCESS : kUnsettled;
}

CUresult before_stream_destroy(const Stream& stream) {
  return captures(stream) ? kUnsettled : CUDA_SUCCESS;
}

CUresult refuse_in_capture(Stream& stream) {
  if (stream.capture == nullptr) return CUDA_SUCCESS;
  if (stream.capture->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  invalidate(*stream.capture);
  return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

void leave_capture(Driver& driver, Capture& capture) {
  for (Stream* member : capture.members) {
    if (member->capture.get() != &capture) continue;
    member->dependencies.clear();
    member->shown_nodes.clear();
    member->shown_edges.clear();
  }
  capture.ended = true;
  if (capture.graph != nullptr) capture.graph->capture = nullptr;
  const auto is_it = [&](const auto& each) { return each.get() == &capture; };
  const auto at = std::find_if(driver.captures.begin(), driver.captures.end(), is_it);
  const std::shared_ptr<Capture> kept = *at;  // its streams may hold the last references
  driver.captures.erase(at);
  for (Stream* member : kept->members) {
    if (member->capture == kept) member->capture = nullptr;
  }
}

CUresult capture_work(Driver&, Stream& stream, Work work) {
  Capture& capture = *stream.capture;
  if (capture.invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  std::vector<Dependency> dependencies = stream.dependencies;
  if (auto* kernel = std::get_if<KernelWork>(&work)) {
    bool programmatic = false;
    const CUresult code = keep_node_attributes(stream, *kernel, programmatic);
    if (code != CUDA_SUCCESS) return code;
    for (Dependency& each : dependencies) {
      if (!programmatic || annotated(each.data)) continue;
      if (!std::holds_alternative<KernelWork>(each.node->work)) continue;
      each.data.from_port = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC;
      each.data.type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
    }
  }
  if (const CUresult code = join_graph(*capture.graph, work); code != CUDA_SUCCESS) return code;
  Node* node = add_node(*capture.graph, std::move(work), dependencies);
  capture.work.insert(node);
  stream.dependencies.assign(1, Dependency{node, {}});
  return CUDA_SUCCESS;
}

void invalidate(Capture& capture) { capture.invalid = true; }

bool prohibits_unsafe(const Capture& capture) {
  const ThreadState& thread = this_thread();
  if (thread.capture_mode == CU_STREAM_CAPTURE_MODE_RELAXED) return false;
  if (capture.thread == thread.number) return capture.mode != CU_STREAM_CAPTURE_MODE_RELAXED;
  return capture.mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
         thread.capture_mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
}

CUresult potentially_unsafe(Driver& driver) {
  CUresult answer = CUDA_SUCCESS;
  for (const auto& capture : driver.captures) {
    if (!prohibits_unsafe(*capture)) continue;
    invalidate(*capture);
    answer = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  return answer;
}

CUresult perhaps_unsafe(const Driver& driver) {
  const bool prohibited =
      std::any_of(driver.captures.begin(), driver.captures.end(),
                  [](const auto& capture) { return prohibits_unsafe(*capture); });
  return prohibited ? kUnsettled : CUDA_SUCCESS;
}

CUresult context_wide(Driver& driver, Context& context) {
  CUresult answer = CUDA_SUCCESS;
  for (const auto& capture : driver.captures) {
    const bool its = std::any_of(capture->members.begin(), capture->members.end(),
                                 [&](const Stream* member) { return member->context == &context; });
    if (!its) continue;
    invalidate(*capture);
    answer = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  return answer;
}

}  // namespace sim
