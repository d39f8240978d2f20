/* latency_fresh: latency of messages that their sender has just written, as those of programs are. The other benchmarks send
 * the same bytes again, which a receiver that reads them in place has in its caches after the first time. */
#define NAME "latency_fresh"
#define BENCH_FRESH 1
#include "latency.c"
