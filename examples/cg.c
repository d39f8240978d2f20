/* cg: solves A x = b by conjugate gradients, for a symmetric positive definite A read from a Matrix Market file.
 *
 *     mpiexec -n 4 ./cg [--matrix FILE] [--tolerance T]
 *
 * Rank 0 reads the file and deals out blocks of rows. b is chosen so that x is known: x_i = 1 + i mod 7. At the end rank 0
 * collects x and computes the residual b - A x anew from the whole matrix, without MPI; the program fails if that, or the
 * distance from the known x, is too large. Without --matrix: poisson32.mtx beside the program or in the directory where it
 * runs. */
#include "matrix_market.h"
#include <math.h>
#include <mpi.h>

static void fail(const char *what, const char *detail)
{
    fprintf(stderr, "cg: %s: %s\n", what, detail);
    MPI_Abort(MPI_COMM_WORLD, 2);
    exit(2);
}

static void *room(size_t count, size_t each)
{
    void *p = calloc(count ? count : 1, each);
    if (!p) fail("out of memory", "vectors");
    return p;
}

static void load(const char *name, const char *program, struct matrix *m)
{
    char beside[4096];
    FILE *file = fopen(name ? name : "poisson32.mtx", "r");
    const char *slash = strrchr(program, '/');
    if (!file && !name && slash) {
        snprintf(beside, sizeof beside, "%.*s/poisson32.mtx", (int)(slash - program), program);
        file = fopen(beside, "r");
    }
    if (!file) fail(name ? name : "poisson32.mtx", "cannot be opened");
    long line;
    const char *wrong = matrix_read(file, m, &line);
    if (wrong) {
        fprintf(stderr, "cg: %s, line %ld\n", name ? name : "poisson32.mtx", line);
        fail("bad matrix", wrong);
    }
    if (m->rows != m->columns) fail("bad matrix", "not square");
    fclose(file);
}

/* y = A x for the rows of `a`; x is whole. */
static void multiply(const struct matrix *a, const double *x, double *y)
{
    for (int i = 0; i < a->rows; i++) {
        y[i] = 0;
        for (int k = a->start[i]; k < a->start[i + 1]; k++) y[i] += a->value[k] * x[a->column[k]];
    }
}

/* Rows first[r] .. first[r + 1] of rank 0's `whole` matrix go to rank r. */
static void deal(const struct matrix *whole, struct matrix *mine, int *first, int rank, int ranks)
{
    int n = rank == 0 ? whole->rows : 0;
    MPI_Bcast(&n, 1, MPI_INT, 0, MPI_COMM_WORLD);
    for (int r = 0; r <= ranks; r++) first[r] = (int)((long)n * r / ranks);
    int *entries = room((size_t)ranks, sizeof(int)), *from = room((size_t)ranks, sizeof(int)), *lengths = NULL;
    int *rows = room((size_t)ranks, sizeof(int));
    for (int r = 0; r < ranks; r++) {
        rows[r] = first[r + 1] - first[r];
        if (rank == 0) from[r] = whole->start[first[r]], entries[r] = whole->start[first[r + 1]] - from[r];
    }
    if (rank == 0) {
        lengths = room((size_t)n, sizeof(int));
        for (int i = 0; i < n; i++) lengths[i] = whole->start[i + 1] - whole->start[i];
    }
    mine->rows = rows[rank], mine->columns = n;
    mine->start = room((size_t)mine->rows + 1, sizeof(int));
    MPI_Scatterv(lengths, rows, first, MPI_INT, mine->start + 1, mine->rows, MPI_INT, 0, MPI_COMM_WORLD);
    for (int i = 0; i < mine->rows; i++) mine->start[i + 1] += mine->start[i];
    int count = mine->start[mine->rows];
    mine->column = room((size_t)count, sizeof(int)), mine->value = room((size_t)count, sizeof(double));
    MPI_Scatterv(whole->column, entries, from, MPI_INT, mine->column, count, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Scatterv(whole->value, entries, from, MPI_DOUBLE, mine->value, count, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    free(entries), free(from), free(lengths), free(rows);
}

static double dot(const double *x, const double *y, int n)
{
    double mine = 0, all;
    for (int i = 0; i < n; i++) mine += x[i] * y[i];
    MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return all;
}

static double known(int i) { return 1 + i % 7; }

int main(int argc, char **argv)
{
    int rank, ranks;
    const char *name = NULL;
    double tolerance = 1e-10;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int i = 1; i < argc; i += 2) {
        if (i + 1 < argc && !strcmp(argv[i], "--matrix")) name = argv[i + 1];
        else if (i + 1 < argc && !strcmp(argv[i], "--tolerance") && atof(argv[i + 1]) > 0) tolerance = atof(argv[i + 1]);
        else fail(argv[i], "cannot be used; usage: cg [--matrix FILE] [--tolerance T]");
    }

    struct matrix whole = {0}, a = {0};
    int *first = room((size_t)ranks + 1, sizeof(int)), *rows = room((size_t)ranks, sizeof(int));
    if (rank == 0) load(name, argv[0], &whole);
    deal(&whole, &a, first, rank, ranks);
    for (int r = 0; r < ranks; r++) rows[r] = first[r + 1] - first[r];
    int n = a.columns, m = a.rows;

    double *b = room((size_t)m, sizeof(double)), *x = room((size_t)m, sizeof(double)), *r = room((size_t)m, sizeof(double));
    double *p = room((size_t)m, sizeof(double)), *q = room((size_t)m, sizeof(double)), *all = room((size_t)n, sizeof(double));
    for (int i = 0; i < n; i++) all[i] = known(i);
    multiply(&a, all, b);
    memcpy(r, b, (size_t)m * sizeof(double));
    memcpy(p, b, (size_t)m * sizeof(double));
    double norm = sqrt(dot(b, b, m)), rho = norm * norm, begin = MPI_Wtime();
    int iterations = 0;
    while (sqrt(rho) > tolerance * norm && iterations < 10 * n) {
        MPI_Allgatherv(p, m, MPI_DOUBLE, all, rows, first, MPI_DOUBLE, MPI_COMM_WORLD);
        multiply(&a, all, q);
        double curvature = dot(p, q, m);
        if (!(curvature > 0)) fail("the matrix", "is not positive definite");
        double alpha = rho / curvature;
        for (int i = 0; i < m; i++) x[i] += alpha * p[i], r[i] -= alpha * q[i];
        double before = rho;
        rho = dot(r, r, m);
        for (int i = 0; i < m; i++) p[i] = r[i] + rho / before * p[i];
        iterations++;
    }
    double seconds = MPI_Wtime() - begin;

    int wrong = 0;
    MPI_Gatherv(x, m, MPI_DOUBLE, all, rows, first, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        double *target = room((size_t)n, sizeof(double)), *got = room((size_t)n, sizeof(double));
        double *exact = room((size_t)n, sizeof(double)), residual = 0, size = 0, error = 0;
        for (int i = 0; i < n; i++) exact[i] = known(i);
        multiply(&whole, exact, target);
        multiply(&whole, all, got);
        for (int i = 0; i < n; i++) {
            residual += (target[i] - got[i]) * (target[i] - got[i]), size += target[i] * target[i];
            error = fmax(error, isnan(all[i]) ? INFINITY : fabs(all[i] - exact[i])); /* fmax would pass over NaN */
        }
        residual = sqrt(residual / size);
        wrong = !(residual <= 10 * tolerance) || !(error <= 1e6 * tolerance);
        printf("cg: %d unknowns, %d entries on %d ranks: %d iterations in %.3f s\n", n, whole.start[n], ranks, iterations, seconds);
        printf("cg: residual %.1e, largest error %.1e: %s\n", residual, error, wrong ? "WRONG" : "correct");
        free(target), free(got), free(exact), matrix_free(&whole);
    }
    MPI_Bcast(&wrong, 1, MPI_INT, 0, MPI_COMM_WORLD);
    matrix_free(&a);
    free(first), free(rows), free(b), free(x), free(r), free(p), free(q), free(all);
    MPI_Finalize();
    return wrong;
}
