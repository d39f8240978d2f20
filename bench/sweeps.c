/* sweeps: line sweeps through a cube along its three dimensions, forward and backward, microseconds a step; the traffic is
 * that of NAS SP's multi-partition solver.
 *
 *   a cube of q by q by q cells on q by q ranks: cell (x, y, z) belongs to rank (x - z, y - z) modulo q, so that each rank
 *   has one cell in every slab of every dimension, and works at every stage of every sweep
 *
 *        slab 0      slab 1      slab 2        along x for q = 3: at stage s all ranks are in slab s, and hand on
 *       [cell] ---> [cell] ---> [cell]         the face to the owner of the next cell, always the same rank
 *
 * A stage: post the receive of the face; compute on the cell; wait; substitute along its lines, from the face on; send the
 * last plane as the next cell's face. The time in MPI_Waitall is a second figure. A point has 5 numbers, as in SP; the size is
 * the points of an edge of a cell, and a face takes 40 bytes a point. Numbers wrap around, so that they can be compared. */
#include "square.h"
#include "waits.h"

enum { FIELDS = 5 };
enum { X, Y, Z, DIMENSIONS };

struct sweeps {
    struct bench *b;
    struct square at;
    size_t n;                  /* points of an edge */
    uint64_t *cells;           /* q of them; cell k is in slab k of dimension Z */
    uint64_t *face_in, *face_out;
    struct waits waits;
};

/* Whatever a solver computes from a point alone. */
static inline uint64_t mix(uint64_t u)
{
    u ^= u >> 29;
    return u * 0x9e3779b97f4a7c15u + 1;
}

/* What a point gets from the one before it in the sweep. */
static inline uint64_t carry(uint64_t u, uint64_t before, int backward) { return u + (backward ? 5 : 3) * before; }

/* Of an edge of n points: from a point to the next in a dimension, in numbers. */
static inline size_t stride(size_t n, int dimension)
{
    return FIELDS * (dimension == X ? 1 : dimension == Y ? n : n * n);
}

/* Goes through all planes of a cell; `before` holds the face, or is NULL in the first slab. The last plane goes to `after`. */
static void substitute(const struct sweeps *s, uint64_t *cell, int dimension, int backward, const uint64_t *before,
                       uint64_t *after)
{
    size_t n = s->n, along = stride(n, dimension);
    size_t outer = stride(n, dimension == Z ? Y : Z), inner = stride(n, dimension == X ? Y : X);
    for (size_t k = 0; k < n; k++) {
        uint64_t *plane = cell + (backward ? n - 1 - k : k) * along;
        for (size_t i = 0; i < n; i++)
            for (size_t j = 0; j < n; j++) {
                uint64_t *point = plane + i * outer + j * inner;
                const uint64_t *from = before ? before + (i * n + j) * FIELDS : NULL;
                if (k > 0) from = backward ? point + along : point - along;
                for (int f = 0; f < FIELDS && from; f++) point[f] = carry(point[f], from[f], backward);
                for (int f = 0; f < FIELDS && k == n - 1; f++) after[(i * n + j) * FIELDS + (size_t)f] = point[f];
            }
    }
}

/* The rank of the next cell in a dimension, or, with -1, of the one before. */
static int neighbor(const struct sweeps *s, int dimension, int way)
{
    if (dimension == Z) return square_rank(&s->at, -way, -way);
    return square_rank(&s->at, dimension == X ? way : 0, dimension == Y ? way : 0);
}

/* This rank's cell in a slab. */
static uint64_t *cell_in(const struct sweeps *s, int dimension, int slab)
{
    int q = s->at.q, k = dimension == X ? slab - s->at.row : dimension == Y ? slab - s->at.column : slab;
    return s->cells + (size_t)((k + q) % q) * s->n * s->n * s->n * FIELDS;
}

static void sweep(struct sweeps *s, int dimension, int backward)
{
    int q = s->at.q, way = backward ? -1 : 1, count = (int)(s->n * s->n * FIELDS);
    MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL}; /* receive, send */
    for (int stage = 0; stage < q; stage++) {
        uint64_t *cell = cell_in(s, dimension, backward ? q - 1 - stage : stage);
        if (stage > 0)
            MPI_Irecv(s->face_in, count, MPI_UINT64_T, neighbor(s, dimension, -way), dimension, MPI_COMM_WORLD, &requests[0]);
        for (size_t i = 0; i < s->n * s->n * s->n * FIELDS; i++) cell[i] = mix(cell[i]);
        if (stage > 0) waits_all(&s->waits, 2, requests); /* the face that was sent is free, too */
        substitute(s, cell, dimension, backward, stage > 0 ? s->face_in : NULL, s->face_out);
        if (stage < q - 1)
            MPI_Isend(s->face_out, count, MPI_UINT64_T, neighbor(s, dimension, way), dimension, MPI_COMM_WORLD, &requests[1]);
    }
}

static void steps(void *opaque, long iterations)
{
    struct sweeps *s = opaque;
    for (long i = 0; i < iterations; i++)
        for (int dimension = X; dimension < DIMENSIONS; dimension++)
            for (int backward = 0; backward < 2; backward++) sweep(s, dimension, backward);
    waits_batch(&s->waits, iterations);
}

static inline uint64_t start(size_t x, size_t y, size_t z, size_t field, unsigned round)
{
    return ((x * 1009 + y) * 2003 + z) * FIELDS + field + round * 12345u;
}

/* A step of the whole cube by one process: its edge has q n points, and lines go from end to end. */
static void step_by_hand(uint64_t *cube, size_t edge)
{
    size_t points = edge * edge * edge;
    for (int dimension = X; dimension < DIMENSIONS; dimension++) {
        size_t along = stride(edge, dimension);
        for (size_t i = 0; i < points * FIELDS; i++) {
            cube[i] = mix(cube[i]);
            if (i / along % edge > 0) cube[i] = carry(cube[i], cube[i - along], 0);
        }
        for (size_t i = points * FIELDS; i-- > 0;) {
            cube[i] = mix(cube[i]);
            if (i / along % edge < edge - 1) cube[i] = carry(cube[i], cube[i + along], 1);
        }
    }
}

/* Two steps from the beginning, compared with those by hand, number by number. */
static void verify(struct sweeps *s, unsigned round)
{
    size_t n = s->n, q = (size_t)s->at.q, edge = q * n;
    uint64_t *cube = bench_buffer(s->b, sizeof(uint64_t) * edge * edge * edge * FIELDS);
    for (int after = 0; after < 2; after++) {
        if (after) step_by_hand(cube, edge), step_by_hand(cube, edge), steps(s, 2);
        for (size_t i = 0; i < edge * edge * edge * FIELDS; i++) {
            size_t f = i % FIELDS, x = i / FIELDS % edge, y = i / FIELDS / edge % edge, z = i / FIELDS / edge / edge;
            if (!after) cube[i] = start(x, y, z, f, round);
            size_t row = (x / n + q - z / n) % q, column = (y / n + q - z / n) % q;
            if (row * q + column != (size_t)s->b->rank) continue;
            uint64_t *here = s->cells + ((z * n + y % n) * n + x % n) * FIELDS + f;
            if (!after) *here = cube[i];
            else if (*here != cube[i]) bench_fail(s->b, "wrong number in the cube at", (long)i);
        }
    }
    free(cube);
}

int main(int argc, char **argv)
{
    static struct sweeps s;
    struct bench b;
    bench_begin(&b, "sweeps", "16,32,64", &argc, &argv);
    s.b = &b, s.at = square_open(&b);
    for (int i = 0; i < b.size_count; i++) {
        s.n = b.sizes[i] < 1 ? 1 : b.sizes[i] > 1024 ? 1024 : b.sizes[i];
        size_t face = sizeof(uint64_t) * s.n * s.n * FIELDS;
        s.cells = bench_buffer(&b, face * s.n * (size_t)s.at.q);
        s.face_in = bench_buffer(&b, face), s.face_out = bench_buffer(&b, face);
        verify(&s, 1);
        waits_clear(&s.waits);
        struct timing t = bench_measure(&b, steps, &s);
        double waited = waits_us(&b, &s.waits);
        verify(&s, 2);
        bench_report(&b, s.n, t, 1e6, "us");
        bench_figure(&b, s.n, waited, "us waiting");
        free(s.cells), free(s.face_in), free(s.face_out);
    }
    MPI_Finalize();
    return 0;
}
