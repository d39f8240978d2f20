/* latency_multiple: latency of a program that may call MPI from several threads, and has one. */
#define NAME "latency_multiple"
#define BENCH_THREAD_LEVEL MPI_THREAD_MULTIPLE
#include "latency.c"
