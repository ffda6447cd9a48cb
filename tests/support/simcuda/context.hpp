// The life of a context: it is made with its legacy stream, and takes everything that belongs to it
// along when it ends.
#pragma once

#include "simcuda/driver.hpp"

namespace sim {

Context* make_context(Driver& driver, unsigned flags);
/// Waits for its work, then destroys its streams, events and modules, and frees its memory. Threads
/// that have it current keep it so, and get 709.
void destroy_context(Driver& driver, Context& context);

}  // namespace sim
