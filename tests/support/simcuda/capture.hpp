// The rules of capture that functions on streams and events meet. A stream that captures answers
// what it is asked to do by adding to a graph, and what it is asked to tell by an error; most of
// the errors make the capture invalid as well. Those that issuing work meets are in submit.hpp.
//
// A function checks its arguments first (an argument's error, 1, never makes a capture invalid),
// then asks here, and goes on only with what it is told.
#pragma once

#include <optional>

#include "simcuda/submit.hpp"

namespace sim {

/// cuEventRecord and cuEventRecordWithFlags. No answer: the stream does not capture, and the event
/// has been made one that is not captured: record it as a piece of queued work. Else the answer:
/// 901 in an invalid capture, a record node for CU_EVENT_RECORD_EXTERNAL, and otherwise the event
/// now stands for the nodes that the stream is at.
std::optional<CUresult> capture_record(Driver& driver, Stream& stream, Event& event,
                                       unsigned flags);

/// cuStreamWaitEvent. No answer: neither of the two captures, so wait as queued work. Else the
/// answer: a stream may join the capture of the event, and isolation is kept (901, 902, 905).
std::optional<CUresult> capture_wait(Driver& driver, Stream& stream, Event& event, unsigned flags);

/// Before cuStreamQuery and cuStreamSynchronize: 900 for a stream that captures, kUnsettled for the
/// legacy stream beside a blocking one that does, 900 where the thread's mode prohibits it.
CUresult before_stream_sync(Driver& driver, Stream& stream);
/// Before cuEventQuery and cuEventSynchronize: 907 for an event that was captured, 900 where the
/// thread's mode prohibits it.
CUresult before_event_sync(Driver& driver, Event& event);
/// Before cuEventElapsedTime, of both events: what a captured event answers is not established.
CUresult before_event_time(const Event& event);
/// Before cuStreamDestroy: what destroying a stream that captures does is not established.
CUresult before_stream_destroy(const Stream& stream);
/// Before what cannot be captured at all (cuStreamAddCallback, cuMemcpyPeerAsync): 900 and the
/// capture made invalid for a stream that captures, 901 if it was so already.
CUresult refuse_in_capture(Stream& stream);

/// Whether a stream captures, invalid or not.
[[nodiscard]] inline bool captures(const Stream& stream) { return stream.capture != nullptr; }

/// Takes a destroyed or ended capture's members out of it; `driver.captures` forgets it.
void leave_capture(Driver& driver, Capture& capture);

}  // namespace sim
