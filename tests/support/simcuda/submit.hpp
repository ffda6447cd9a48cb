// Where work goes: into the capture that its stream is in, or to the device.
#pragma once

#include "simcuda/driver.hpp"

namespace sim {

/// Issues one piece of work to a stream, as the stream's state asks: a node of its capture, or an
/// Op. Refuses as a capture or the legacy stream's rules refuse (901, 906).
CUresult submit(Driver& driver, Stream& stream, Work work);

/// The Op that `work` is, after everything that `stream` orders it behind; becomes its last.
/// `run` replaces what the work itself would do.
std::shared_ptr<Op> enqueue(Driver& driver, Stream& stream, std::function<CUresult()> run,
                            std::vector<std::shared_ptr<Op>> also_after = {},
                            bool runs_after_errors = false);

/// What must end before new work of `stream` may start: its last, and the legacy stream's rules.
std::vector<std::shared_ptr<Op>> predecessors(Stream& stream);

/// Does one piece of work, on the device's thread and without the driver's mutex: for everything
/// but children, conditionals, records and waits, which the graph's launch takes apart itself.
CUresult perform(Driver& driver, const Work& work);

// The parts of `perform`, each without the mutex.

/// Runs the host body that stands for a kernel (kernel_run.cpp).
CUresult run_kernel(Driver& driver, const KernelWork& work);
/// 700 when a row of it is not within one allocation.
CUresult run_copy(Driver& driver, const CUDA_MEMCPY3D& copy);
CUresult run_fill(Driver& driver, const CUDA_MEMSET_NODE_PARAMS& fill);

/// Before anything that involves the legacy stream of a context: 906, with those captures made
/// invalid unless `harmless`, while a blocking stream of it captures; else CUDA_SUCCESS.
CUresult enter_legacy(Driver& driver, Context& context, bool harmless = false);

// The rules of capture that other calls meet (capture.cpp).

/// A node of the stream's capture, depending on what the stream was at; the stream goes on from it.
/// 901 in an invalid capture.
CUresult capture_work(Driver& driver, Stream& stream, Work work);
/// Makes a capture invalid.
void invalidate(Capture& capture);
/// Before a potentially unsafe call (facts 2.2, class 3): 900, with the captures in question made
/// invalid, when the thread's mode prohibits it; else CUDA_SUCCESS.
CUresult potentially_unsafe(Driver& driver);
/// Whether the thread's mode would prohibit a potentially unsafe call beside this capture.
bool prohibits_unsafe(const Capture& capture);
/// Before a call of which nobody has established whether it is potentially unsafe: kUnsettled where
/// that would matter, with nothing made invalid; else CUDA_SUCCESS.
CUresult perhaps_unsafe(const Driver& driver);
/// Before a sync of a whole context: 900, with every capture of it made invalid, if there are any.
CUresult context_wide(Driver& driver, Context& context);

}  // namespace sim
