/* heat: the 2-D heat equation u_t = u_xx + u_yy on the unit square, with the edges held at zero.
 *
 *     mpiexec -n 4 ./heat [--points N] [--steps N]
 *
 * The square is cut into blocks on a cartesian grid of ranks. In each step a block sends its edge rows and columns to its
 * four neighbours (a column is a derived datatype) and then replaces every point by an explicit Euler step. Starting from
 * sin(pi x) sin(pi y), that scheme has an exact solution on the grid: every step multiplies every point by the same
 * number. The program compares all points with it, and fails if any is off by more than 1e-12. */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PI 3.14159265358979323846

/* A block of rows x columns points within a frame of one more on each side. */
struct block {
    int rows, columns;           /* own points */
    int first_row, first_column; /* place of the first own point in the whole grid, from 1 */
    int width;                   /* doubles from one row to the next */
    double *now, *next;
};

/* Neighbours, and what goes to them. */
struct halo {
    MPI_Comm grid;
    int up, down, left, right;
    MPI_Datatype row, column;
};

static double *at(const struct block *b, double *field, int row, int column) { return &field[row * b->width + column]; }

/* How many of `points` belong to part `i` of `parts`, and where they begin (from 1). */
static int share(int points, int parts, int i, int *first)
{
    int each = points / parts, more = points % parts;
    *first = 1 + i * each + (i < more ? i : more);
    return each + (i < more);
}

static void exchange(const struct block *b, const struct halo *h)
{
    double *u = b->now;
    MPI_Request r[8];
    MPI_Irecv(at(b, u, 0, 1), 1, h->row, h->up, 1, h->grid, &r[0]);
    MPI_Irecv(at(b, u, b->rows + 1, 1), 1, h->row, h->down, 2, h->grid, &r[1]);
    MPI_Irecv(at(b, u, 1, 0), 1, h->column, h->left, 3, h->grid, &r[2]);
    MPI_Irecv(at(b, u, 1, b->columns + 1), 1, h->column, h->right, 4, h->grid, &r[3]);
    MPI_Isend(at(b, u, b->rows, 1), 1, h->row, h->down, 1, h->grid, &r[4]);
    MPI_Isend(at(b, u, 1, 1), 1, h->row, h->up, 2, h->grid, &r[5]);
    MPI_Isend(at(b, u, 1, b->columns), 1, h->column, h->right, 3, h->grid, &r[6]);
    MPI_Isend(at(b, u, 1, 1), 1, h->column, h->left, 4, h->grid, &r[7]);
    MPI_Waitall(8, r, MPI_STATUSES_IGNORE);
}

static void step(struct block *b, double ratio)
{
    for (int i = 1; i <= b->rows; i++)
        for (int j = 1; j <= b->columns; j++) {
            const double *u = at(b, b->now, i, j);
            *at(b, b->next, i, j) = *u + ratio * (u[-1] + u[1] + u[-b->width] + u[b->width] - 4 * *u);
        }
    double *swap = b->now;
    b->now = b->next, b->next = swap;
}

static double initial(int points, int row, int column)
{
    return sin(PI * row / (points + 1)) * sin(PI * column / (points + 1));
}

int main(int argc, char **argv)
{
    int points = 200, steps = 500, ranks, rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int i = 1; i < argc; i += 2) {
        int value = i + 1 < argc ? atoi(argv[i + 1]) : 0;
        if (!strcmp(argv[i], "--points") && value > 0) points = value;
        else if (!strcmp(argv[i], "--steps") && value > 0) steps = value;
        else {
            fprintf(stderr, "heat: cannot use '%s'; usage: heat [--points N] [--steps N]\n", argv[i]);
            MPI_Abort(MPI_COMM_WORLD, 2);
        }
    }

    int dims[2] = {0, 0}, periods[2] = {0, 0}, place[2];
    struct halo h;
    struct block b;
    MPI_Dims_create(ranks, 2, dims);
    MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 1, &h.grid);
    MPI_Comm_rank(h.grid, &rank);
    MPI_Cart_coords(h.grid, rank, 2, place);
    MPI_Cart_shift(h.grid, 0, 1, &h.up, &h.down); /* MPI_PROC_NULL at the edges, where the frame stays zero */
    MPI_Cart_shift(h.grid, 1, 1, &h.left, &h.right);
    b.rows = share(points, dims[0], place[0], &b.first_row);
    b.columns = share(points, dims[1], place[1], &b.first_column);
    b.width = b.columns + 2;
    MPI_Type_contiguous(b.columns, MPI_DOUBLE, &h.row);
    MPI_Type_vector(b.rows, 1, b.width, MPI_DOUBLE, &h.column);
    MPI_Type_commit(&h.row);
    MPI_Type_commit(&h.column);

    size_t room = (size_t)(b.rows + 2) * (size_t)b.width;
    b.now = calloc(room, sizeof(double)), b.next = calloc(room, sizeof(double));
    if (!b.now || !b.next || b.rows == 0 || b.columns == 0) {
        fprintf(stderr, "heat: rank %d: no block of %d x %d points\n", rank, b.rows, b.columns);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    for (int i = 1; i <= b.rows; i++)
        for (int j = 1; j <= b.columns; j++)
            *at(&b, b.now, i, j) = initial(points, b.first_row + i - 1, b.first_column + j - 1);

    const double ratio = 0.2; /* time step over the square of the grid width; stable up to 0.25 */
    double begin = MPI_Wtime();
    for (int s = 0; s < steps; s++) {
        exchange(&b, &h);
        step(&b, ratio);
    }
    double seconds = MPI_Wtime() - begin;

    double decay = pow(1 - 4 * ratio * (1 - cos(PI / (points + 1))), steps);
    double mine[2] = {0, 0}, all[2]; /* largest error, largest value */
    for (int i = 1; i <= b.rows; i++)
        for (int j = 1; j <= b.columns; j++) {
            double u = *at(&b, b.now, i, j);
            double exact = decay * initial(points, b.first_row + i - 1, b.first_column + j - 1);
            mine[0] = fmax(mine[0], isnan(u) ? INFINITY : fabs(u - exact)); /* fmax would pass over NaN */
            mine[1] = fmax(mine[1], fabs(u));
        }
    MPI_Allreduce(mine, all, 2, MPI_DOUBLE, MPI_MAX, h.grid);
    int wrong = !(all[0] <= 1e-12);
    if (rank == 0) {
        printf("heat: %d x %d points on %d x %d ranks, %d steps in %.3f s\n", points, points, dims[0], dims[1], steps, seconds);
        printf("heat: largest value %.6f, largest error %.1e: %s\n", all[1], all[0], wrong ? "WRONG, more than 1e-12" : "correct");
    }
    MPI_Type_free(&h.row);
    MPI_Type_free(&h.column);
    MPI_Comm_free(&h.grid);
    free(b.now), free(b.next);
    MPI_Finalize();
    return wrong;
}
