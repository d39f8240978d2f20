/* stencil_overlap: steps of a five-point stencil on a periodic 2-D grid of ranks, whose halos are on their way while the
 * interior is computed; microseconds a step, and beside them what a step takes without overlap.
 *
 *   overlapped: post halos, interior, MPI_Waitall, border      without: post halos, MPI_Waitall, interior, border
 *
 * The size is that of an edge of a rank's tile in bytes (halo_grid.h). Numbers wrap around, and each neighbour has a factor of
 * its own, so that a strip on the wrong side is found. */
#include "halo_grid.h"
#include "waits.h"

/* The two kinds of step are timed in turns, and a figure is the median of so many. */
enum { ROUNDS = 5, PROVEN = 3 };

struct stencil {
    struct halo halo; /* its tile is the one that is read */
    uint64_t *next;
    int overlapped;
    struct waits waits;
};

static inline uint64_t point(uint64_t here, uint64_t up, uint64_t down, uint64_t left, uint64_t right)
{
    return 3 * here + 5 * up + 7 * down + 11 * left + 13 * right;
}

static void interior(struct stencil *s)
{
    size_t n = (size_t)s->halo.n;
    for (size_t y = 1; y + 1 < n; y++) {
        const uint64_t *t = s->halo.tile + y * n;
        for (size_t x = 1; x + 1 < n; x++) s->next[y * n + x] = point(t[x], t[x - n], t[x + n], t[x - 1], t[x + 1]);
    }
}

/* A point of the border, some of whose neighbours are in strips. */
static void border_point(struct stencil *s, size_t y, size_t x)
{
    size_t n = (size_t)s->halo.n;
    const uint64_t *t = s->halo.tile + y * n + x, *strips = s->halo.strips;
    uint64_t up = y > 0 ? *(t - n) : strips[halo_strip(&s->halo, UP) + x];
    uint64_t down = y + 1 < n ? t[n] : strips[halo_strip(&s->halo, DOWN) + x];
    uint64_t left = x > 0 ? t[-1] : strips[halo_strip(&s->halo, LEFT) + y];
    uint64_t right = x + 1 < n ? t[1] : strips[halo_strip(&s->halo, RIGHT) + y];
    s->next[y * n + x] = point(*t, up, down, left, right);
}

static void border(struct stencil *s)
{
    size_t n = (size_t)s->halo.n;
    for (size_t i = 0; i < n; i++) {
        border_point(s, 0, i), border_point(s, i, 0);
        border_point(s, n - 1, i), border_point(s, i, n - 1);
    }
}

static void steps(void *opaque, long iterations)
{
    struct stencil *s = opaque;
    MPI_Request requests[2 * SIDES];
    for (long i = 0; i < iterations; i++, s->halo.step++) {
        halo_post(&s->halo, requests);
        if (s->overlapped) interior(s);
        waits_all(&s->waits, 2 * SIDES, requests);
        if (!s->overlapped) interior(s);
        border(s);
        uint64_t *read = s->halo.tile;
        s->halo.tile = s->next, s->next = read;
    }
    waits_batch(&s->waits, iterations);
}

static inline uint64_t start(size_t y, size_t x, unsigned round) { return (y * 40503 + x) * 2654435761u + round; }

/* PROVEN steps of either kind from the beginning, compared with those of the whole grid by one process. */
static void verify(struct stencil *s, int overlapped, unsigned round)
{
    size_t n = (size_t)s->halo.n, columns = (size_t)s->halo.dims[1];
    size_t high = n * (size_t)s->halo.dims[0], wide = n * columns;
    size_t top = (size_t)s->halo.b->rank / columns * n, left = (size_t)s->halo.b->rank % columns * n;
    uint64_t *now = bench_buffer(s->halo.b, sizeof(uint64_t) * high * wide);
    uint64_t *then = bench_buffer(s->halo.b, sizeof(uint64_t) * high * wide);
    for (size_t i = 0; i < high * wide; i++) now[i] = start(i / wide, i % wide, round);
    for (size_t i = 0; i < n * n; i++) s->halo.tile[i] = start(top + i / n, left + i % n, round);
    for (int step = 0; step < PROVEN; step++) {
        for (size_t y = 0; y < high; y++) {
            const uint64_t *here = now + y * wide, *up = now + (y ? y - 1 : high - 1) * wide;
            const uint64_t *down = now + (y + 1 < high ? y + 1 : 0) * wide;
            for (size_t x = 0; x < wide; x++)
                then[y * wide + x] = point(here[x], up[x], down[x], here[x ? x - 1 : wide - 1], here[x + 1 < wide ? x + 1 : 0]);
        }
        uint64_t *swap = now;
        now = then, then = swap;
    }
    s->overlapped = overlapped;
    steps(s, PROVEN);
    for (size_t i = 0; i < n * n; i++)
        if (s->halo.tile[i] != now[(top + i / n) * wide + left + i % n])
            bench_fail(s->halo.b, "wrong number in the tile at", (long)i);
    free(now), free(then);
}

int main(int argc, char **argv)
{
    static struct stencil s;
    struct bench b;
    bench_begin(&b, "stencil_overlap", "512,4K,16K", &argc, &argv);
    b.seconds /= 2 * ROUNDS;
    for (int i = 0; i < b.size_count; i++) {
        s.halo = (struct halo){.b = &b, .n = (int)fmax(1, (double)(b.sizes[i] / 8))};
        size_t n = (size_t)s.halo.n;
        halo_open(&s.halo);
        s.halo.tile = bench_buffer(&b, sizeof(uint64_t) * n * n), s.next = bench_buffer(&b, sizeof(uint64_t) * n * n);
        s.halo.strips = bench_buffer(&b, sizeof(uint64_t) * 2 * SIDES * n);
        double us[2][ROUNDS], waited[2][ROUNDS]; /* without, with overlap */
        for (int r = 0; r < ROUNDS; r++)
            for (int overlapped = 0; overlapped < 2; overlapped++) {
                if (r == 0) verify(&s, overlapped, 1);
                s.overlapped = overlapped;
                waits_clear(&s.waits);
                us[overlapped][r] = 1e6 * bench_time(&b, bench_measure(&b, steps, &s));
                waited[overlapped][r] = waits_us(&b, &s.waits);
            }
        verify(&s, 0, 2), verify(&s, 1, 3);
        const char *times[] = {"us without overlap", "us"}, *waits[] = {"us waiting, without overlap", "us waiting"};
        for (int overlapped = 1; overlapped >= 0; overlapped--) {
            bench_figure(&b, n * 8, bench_median(us[overlapped], ROUNDS), times[overlapped]);
            bench_figure(&b, n * 8, bench_median(waited[overlapped], ROUNDS), waits[overlapped]);
        }
        free(s.halo.tile), free(s.next), free(s.halo.strips);
        halo_close(&s.halo);
    }
    MPI_Finalize();
    return 0;
}
