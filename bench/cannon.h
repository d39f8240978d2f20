/* Cannon's matrix multiplication, C = A B, on a square of ranks, microseconds a multiplication: cannon and, compiled with
 * OpenMP, cannon_threads. The kernel of Kumar et al., 2008 (figures 9 to 12).
 *
 *   q by q ranks, each with a block of each matrix        step k of q, on rank (i, j):
 *   at first A's row i moves i to the left,                  C += A B
 *   and B's column j moves j up                              A moves to the left, B moves up
 *
 * The blocks of the next step move while those of this one are multiplied, into a second pair of buffers. The time in MPI_Waitall
 * for them is a second figure. The size is the dimension of the matrices, rounded up to whole blocks. */
#ifndef CANNON_H
#define CANNON_H
#include "square.h"
#include "waits.h"
#ifdef _OPENMP
#include <omp.h>
#endif

struct cannon {
    struct bench *b;
    struct square at;
    int n;                         /* of a block */
    double *a_home, *b_home, *c;   /* this rank's blocks, where they belong */
    double *moving_a[2], *moving_b[2];
    struct waits waits;            /* for blocks that move while others are multiplied */
};

/* c += a b. The middle loop's factor stays in a register, the inner loop goes along rows of b and c;
 * gcc makes vectors of it from O3 on, and without them its speed is a matter of how the loop happens to lie. */
__attribute__((optimize("O3"))) static void multiply(int n, const double *restrict a, const double *restrict b, double *restrict c)
{
#ifdef _OPENMP
#pragma omp parallel for schedule(static)
#endif
    for (int i = 0; i < n; i++)
        for (int k = 0; k < n; k++) {
            const double factor = a[(size_t)i * n + k], *restrict row = b + (size_t)k * n;
            double *restrict sum = c + (size_t)i * n;
            for (int j = 0; j < n; j++) sum[j] += factor * row[j];
        }
}

/* Moves a block of A so far to the left, one of B so far up. */
static void move(struct cannon *s, const double *a, double *a_to, int left, const double *b, double *b_to, int up,
                 MPI_Request *requests)
{
    int count = s->n * s->n;
    MPI_Irecv(a_to, count, MPI_DOUBLE, square_rank(&s->at, 0, left), 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(b_to, count, MPI_DOUBLE, square_rank(&s->at, up, 0), 2, MPI_COMM_WORLD, &requests[1]);
    MPI_Isend(a, count, MPI_DOUBLE, square_rank(&s->at, 0, -left), 1, MPI_COMM_WORLD, &requests[2]);
    MPI_Isend(b, count, MPI_DOUBLE, square_rank(&s->at, -up, 0), 2, MPI_COMM_WORLD, &requests[3]);
}

/* The product of the present blocks; with --flops it takes the time of so many operations, shared by the threads. */
static void product(struct cannon *s, int now)
{
    double operations = 2.0 * s->n * s->n * s->n;
#ifdef _OPENMP
    operations /= omp_get_max_threads();
#endif
    multiply(s->n, s->moving_a[now], s->moving_b[now], s->c);
    bench_operations(s->b, operations);
}

/* Moves one block to a rank, another one here; its waiting counts, as that of the steps does. */
static void shift(struct cannon *s, const double *from, double *to, int target, int source)
{
    int count = s->n * s->n;
    MPI_Request requests[2];
    if (target == s->b->rank) {
        memcpy(to, from, sizeof(double) * (size_t)count);
        return;
    }
    MPI_Irecv(to, count, MPI_DOUBLE, source, 3, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(from, count, MPI_DOUBLE, target, 3, MPI_COMM_WORLD, &requests[1]);
    waits_all(&s->waits, 2, requests);
}

/* With --document: the program of Kumar, Grama, Gupta and Karypis, Introduction to Parallel Computing. Blocks move in the last step, too,
 * and are sent back where they belong. */
static void book(struct cannon *s)
{
    MPI_Request requests[4];
    const struct square *at = &s->at;
    int count = s->n * s->n, now = 0;
    int left = square_rank(at, 0, -at->row), right = square_rank(at, 0, at->row);
    int up = square_rank(at, -at->column, 0), down = square_rank(at, at->column, 0);
    shift(s, s->a_home, s->moving_a[0], left, right);
    shift(s, s->b_home, s->moving_b[0], up, down);
    for (int step = 0; step < at->q; step++, now = !now) {
        MPI_Isend(s->moving_a[now], count, MPI_DOUBLE, square_rank(at, 0, -1), 1, MPI_COMM_WORLD, &requests[0]);
        MPI_Isend(s->moving_b[now], count, MPI_DOUBLE, square_rank(at, -1, 0), 2, MPI_COMM_WORLD, &requests[1]);
        MPI_Irecv(s->moving_a[!now], count, MPI_DOUBLE, square_rank(at, 0, 1), 1, MPI_COMM_WORLD, &requests[2]);
        MPI_Irecv(s->moving_b[!now], count, MPI_DOUBLE, square_rank(at, 1, 0), 2, MPI_COMM_WORLD, &requests[3]);
        product(s, now);
        waits_all(&s->waits, 4, requests);
    }
    shift(s, s->moving_a[now], s->a_home, right, left);
    shift(s, s->moving_b[now], s->b_home, down, up);
}

static void multiplications(void *opaque, long iterations)
{
    struct cannon *s = opaque;
    MPI_Request requests[4];
    for (long i = 0; i < iterations; i++) {
        memset(s->c, 0, sizeof(double) * (size_t)s->n * (size_t)s->n);
        if (s->b->document) {
            book(s);
            continue;
        }
        move(s, s->a_home, s->moving_a[0], s->at.row, s->b_home, s->moving_b[0], s->at.column, requests);
        MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
        for (int step = 0, now = 0; step < s->at.q; step++, now = !now) {
            int last = step == s->at.q - 1;
            if (!last) move(s, s->moving_a[now], s->moving_a[!now], 1, s->moving_b[now], s->moving_b[!now], 1, requests);
            product(s, now);
            if (!last) waits_all(&s->waits, 4, requests);
        }
    }
    waits_batch(&s->waits, iterations);
}

/* Small integers, so that products are exact in any order. */
static double number_a(size_t row, size_t column, unsigned round) { return (double)((row * 7 + column * 3 + round) % 17) - 8; }
static double number_b(size_t row, size_t column, unsigned round) { return (double)((row * 5 + column * 11 + round) % 13) - 6; }

static void check(struct cannon *s, unsigned round)
{
    size_t n = (size_t)s->n, all = n * (size_t)s->at.q;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++) {
            size_t row = (size_t)s->at.row * n + i, column = (size_t)s->at.column * n + j;
            double sum = 0;
            for (size_t k = 0; k < all; k++) sum += number_a(row, k, round) * number_b(k, column, round);
            if (s->c[i * n + j] != sum) bench_fail(s->b, "wrong number in the product at", (long)(i * n + j));
        }
}

/* One multiplication of new matrices, in buffers without any. */
static void verify(struct cannon *s, unsigned round)
{
    size_t n = (size_t)s->n;
    for (size_t i = 0; i < n * n; i++) {
        size_t row = (size_t)s->at.row * n + i / n, column = (size_t)s->at.column * n + i % n;
        s->a_home[i] = number_a(row, column, round), s->b_home[i] = number_b(row, column, round);
        for (int k = 0; k < 2; k++) s->moving_a[k][i] = s->moving_b[k][i] = 0;
    }
    multiplications(s, 1);
    check(s, round);
}

static int cannon_main(const char *name, int argc, char **argv)
{
    static struct cannon s;
    struct bench b;
    bench_begin(&b, name, "128,256,512", &argc, &argv);
    s.b = &b, s.at = square_open(&b);
    for (int i = 0; i < b.size_count; i++) {
        s.n = (int)fmin(16384, fmax(1, ceil((double)b.sizes[i] / s.at.q)));
        double **blocks[] = {&s.a_home, &s.b_home, &s.c, &s.moving_a[0], &s.moving_a[1], &s.moving_b[0], &s.moving_b[1]};
        for (int k = 0; k < 7; k++) *blocks[k] = bench_buffer(&b, sizeof(double) * (size_t)s.n * (size_t)s.n);
        verify(&s, 1);
        waits_clear(&s.waits);
        struct timing t = bench_measure(&b, multiplications, &s);
        check(&s, 1);
        double waited = waits_us(&b, &s.waits);
        verify(&s, 2);
        size_t dimension = (size_t)s.n * (size_t)s.at.q;
        bench_report(&b, dimension, t, 1e6, "us");
        bench_figure(&b, dimension, waited, "us waiting");
        for (int k = 0; k < 7; k++) free(*blocks[k]);
    }
    MPI_Finalize();
    return 0;
}

#endif
