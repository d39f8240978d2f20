/* Windows of nonblocking messages between pairs of ranks: what bandwidth, bidirectional and message_rate have in common.
 *
 * A pair is (r, r + ranks/2). An operation is one window: the receiver posts all its receives, the sender all its
 * sends, both wait, and the receiver returns an empty message, so that the sender's clock covers the arrival. As in the
 * benchmarks that people know, a window uses one buffer again and again; with --separate each message has its own, which
 * is what a program must do that reads what it received. */
#ifndef STREAM_H
#define STREAM_H
#include "bench.h"

struct stream {
    struct bench *b;
    int peer, sends, receives; /* what this rank does in a window */
    int window;
    size_t bytes, stride;      /* a message; from one message's buffer to the next (0: the same) */
    char *out, *in;
    MPI_Request *requests;
};

static inline void stream_windows(void *opaque, long iterations)
{
    struct stream *s = opaque;
    int count = (int)s->bytes;
    for (long i = 0; i < iterations; i++) {
        int posted = 0;
        if (s->receives)
            for (int w = 0; w < s->window; w++)
                MPI_Irecv(s->in + (size_t)w * s->stride, count, MPI_CHAR, s->peer, 1, MPI_COMM_WORLD, &s->requests[posted++]);
        if (s->sends)
            for (int w = 0; w < s->window; w++)
                MPI_Isend(s->out + (size_t)w * s->stride, count, MPI_CHAR, s->peer, 1, MPI_COMM_WORLD, &s->requests[posted++]);
        MPI_Waitall(posted, s->requests, MPI_STATUSES_IGNORE);
        if (s->sends && s->receives)
            MPI_Sendrecv(NULL, 0, MPI_CHAR, s->peer, 2, NULL, 0, MPI_CHAR, s->peer, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        else if (s->sends)
            MPI_Recv(NULL, 0, MPI_CHAR, s->peer, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        else
            MPI_Send(NULL, 0, MPI_CHAR, s->peer, 2, MPI_COMM_WORLD);
    }
}

/* The contents of message `w` as sent by `rank`; with one buffer for all, only message 0 exists. */
static inline unsigned stream_seed(unsigned round, int rank, int w) { return round * 1000 + (unsigned)rank * 100 + (unsigned)w; }

static inline void stream_check(struct stream *s, unsigned round)
{
    for (int w = 0; s->receives && w < (s->stride ? s->window : 1); w++)
        bench_check(s->b, s->in + (size_t)w * s->stride, s->bytes, stream_seed(round, s->peer, w));
}

/* One window into cleared buffers, with new contents. */
static inline void stream_verify(struct stream *s, unsigned round)
{
    for (int w = 0; w < (s->stride ? s->window : 1); w++) {
        if (s->out) bench_fill(s->out + (size_t)w * s->stride, s->bytes, stream_seed(round, s->b->rank, w));
        if (s->in) memset(s->in + (size_t)w * s->stride, 0, s->bytes);
    }
    stream_windows(s, 1);
    stream_check(s, round);
}

/* Times windows of `bytes`; `both` ways or from the lower half of the ranks to the upper. */
static inline struct timing stream_measure(struct bench *b, size_t bytes, int window, int both)
{
    int half = b->ranks / 2, lower = b->rank < half;
    struct stream s = {.b = b, .peer = lower ? b->rank + half : b->rank - half, .window = window, .bytes = bytes};
    s.sends = both || lower, s.receives = both || !lower;
    s.stride = b->separate ? (bytes + BENCH_PAGE - 1) / BENCH_PAGE * BENCH_PAGE : 0;
    size_t room = b->separate ? s.stride * (size_t)window : bytes;
    if (s.sends) s.out = bench_buffer(b, room);
    if (s.receives) s.in = bench_buffer(b, room);
    s.requests = bench_buffer(b, sizeof(MPI_Request) * 2 * (size_t)window);
    stream_verify(&s, 1);
    struct timing t = bench_measure(b, stream_windows, &s);
    stream_check(&s, 1);
    stream_verify(&s, 2);
    free(s.out), free(s.in), free(s.requests);
    return t;
}

#endif
