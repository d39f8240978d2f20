/* cg: conjugate gradients for Poisson's equation on a square grid, microseconds an iteration.
 *
 *   each rank has whole rows of the grid; an iteration exchanges a row with the rank above and the rank below
 *   (MPI_Sendrecv), applies the five-point stencil, and adds up two scalar products (MPI_Allreduce)
 *   the size is the number of points on an edge of the grid
 *
 * The solution is known: the right side is the stencil of it. After RESTART iterations the solver begins anew, so that it
 * never computes with a residual of 0.
 *
 * With --document: the program of the figures kini-6.1, microseconds a solution, until the residual is a millionth. The right
 * side is 1, and rows go to both neighbours at once. */
#include "bench.h"

enum { RESTART = 40 };

/* Operations for each point, in the product with the matrix and in the rest of an iteration. */
enum { PRODUCT_OPERATIONS = 6, REST_OPERATIONS = 10 };

struct solver {
    const struct bench *of;
    int rank, ranks, n, rows;
    double *x, *r, *p, *q, *b; /* p has a row of the neighbour on each side */
    double rho;
    long iteration;
};

static double sum_of_all(double mine)
{
    double all;
    MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return all;
}

static double product(const struct solver *s, const double *a, const double *b)
{
    double sum = 0;
    for (int i = 0; i < s->rows * s->n; i++) sum += a[i] * b[i];
    return sum_of_all(sum);
}

/* The stencil, once the rows of the neighbours are there. */
static void five_points(struct solver *s)
{
    int n = s->n;
    for (int y = 0; y < s->rows; y++) {
        const double *row = s->p + y * n;
        for (int x = 0; x < n; x++) {
            double around = row[x - n] + row[x + n] + (x ? row[x - 1] : 0) + (x + 1 < n ? row[x + 1] : 0);
            s->q[y * n + x] = 4 * row[x] - around;
        }
    }
    bench_operations(s->of, (double)PRODUCT_OPERATIONS * s->rows * n);
}

/* q = A p; points beyond the edge of the grid are 0. */
static void apply(struct solver *s)
{
    int n = s->n, above = s->rank ? s->rank - 1 : MPI_PROC_NULL;
    int below = s->rank + 1 < s->ranks ? s->rank + 1 : MPI_PROC_NULL;
    double *first = s->p, *last = s->p + (s->rows - 1) * n;
    if (s->of->document) {
        MPI_Request requests[4];
        MPI_Irecv(first - n, n, MPI_DOUBLE, above, 0, MPI_COMM_WORLD, &requests[0]);
        MPI_Isend(first, n, MPI_DOUBLE, above, 0, MPI_COMM_WORLD, &requests[1]);
        MPI_Irecv(last + n, n, MPI_DOUBLE, below, 0, MPI_COMM_WORLD, &requests[2]);
        MPI_Isend(last, n, MPI_DOUBLE, below, 0, MPI_COMM_WORLD, &requests[3]);
        MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
        five_points(s);
        return;
    }
    MPI_Sendrecv(first, n, MPI_DOUBLE, above, 0, last + n, n, MPI_DOUBLE, below, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Sendrecv(last, n, MPI_DOUBLE, below, 0, first - n, n, MPI_DOUBLE, above, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    five_points(s);
}

static void begin(struct solver *s)
{
    size_t bytes = sizeof(double) * (size_t)(s->rows * s->n);
    memset(s->x, 0, bytes);
    memcpy(s->r, s->b, bytes), memcpy(s->p, s->b, bytes);
    s->rho = product(s, s->r, s->r);
}

static void iterate(struct solver *s)
{
    apply(s);
    double alpha = s->rho / product(s, s->p, s->q);
    for (int k = 0; k < s->rows * s->n; k++) s->x[k] += alpha * s->p[k], s->r[k] -= alpha * s->q[k];
    double rho = product(s, s->r, s->r), beta = rho / s->rho;
    s->rho = rho;
    for (int k = 0; k < s->rows * s->n; k++) s->p[k] = s->r[k] + beta * s->p[k];
    bench_operations(s->of, (double)REST_OPERATIONS * s->rows * s->n);
}

static void iterations(void *opaque, long count)
{
    struct solver *s = opaque;
    for (long i = 0; i < count; i++) {
        if (s->iteration++ % RESTART == 0) begin(s);
        iterate(s);
    }
}

static void solutions(void *opaque, long count)
{
    struct solver *s = opaque;
    for (long i = 0; i < count; i++) {
        begin(s);
        for (double enough = 1e-12 * s->rho; s->rho > enough;) iterate(s);
    }
}

/* The residual as the solver knows it is the residual that x has. */
static void verify(struct bench *b, struct solver *s)
{
    s->iteration = 0;
    if (b->document) solutions(s, 1);
    else iterations(s, RESTART / 2);
    size_t points = (size_t)(s->rows * s->n);
    double known = s->rho;
    memcpy(s->p, s->x, sizeof(double) * points);
    apply(s);
    double sum = 0, whole = product(s, s->b, s->b);
    for (size_t k = 0; k < points; k++) sum += (s->b[k] - s->q[k]) * (s->b[k] - s->q[k]);
    double found = sum_of_all(sum);
    if (!(known < whole) || !(fabs(found - known) <= 1e-9 * whole)) bench_fail(b, "wrong residual, parts in 1e12", (long)(1e12 * fabs(found - known) / whole));
    s->iteration = 0;
}

int main(int argc, char **argv)
{
    struct bench b;
    bench_begin(&b, "cg", "64,256,512", &argc, &argv);
    for (int i = 0; i < b.size_count; i++) {
        int n = (int)b.sizes[i];
        bench_need_ranks(&b, n > 0 && n % b.ranks == 0, "a number of ranks that divides the edge");
        struct solver s = {.of = &b, .rank = b.rank, .ranks = b.ranks, .n = n, .rows = n / b.ranks};
        size_t bytes = sizeof(double) * (size_t)(s.rows * n), row = (size_t)n;
        double *ghosted = bench_buffer(&b, bytes + 2 * sizeof(double) * row);
        memset(ghosted, 0, bytes + 2 * sizeof(double) * row);
        s.p = ghosted + row;
        s.x = bench_buffer(&b, bytes), s.r = bench_buffer(&b, bytes), s.q = bench_buffer(&b, bytes), s.b = bench_buffer(&b, bytes);
        for (int k = 0; k < s.rows * n; k++) s.p[k] = (double)((k * 7 + b.rank * 3) % 11) - 5;
        apply(&s);
        memcpy(s.b, s.q, bytes);
        for (int k = 0; b.document && k < s.rows * n; k++) s.b[k] = 1;
        verify(&b, &s);
        struct timing t = bench_measure(&b, b.document ? solutions : iterations, &s);
        verify(&b, &s);
        bench_report(&b, row, t, 1e6, "us");
        free(ghosted), free(s.x), free(s.r), free(s.q), free(s.b);
    }
    MPI_Finalize();
    return 0;
}
