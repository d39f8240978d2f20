#include "check.h"
#include <limits.h>

int main(void) {
    begin();
    MPI_Comm grid, part, point;
    int kind, n, rank, from, to;
    int dims[2] = {1, 1}, periods[2] = {1, 0}, coords[2] = {9, 9}, keep[2] = {1, 0};
    MPI_Topo_test(MPI_COMM_WORLD, &kind);
    CHECK(kind == MPI_UNDEFINED);
    CHECK(MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &grid) == MPI_SUCCESS);
    MPI_Topo_test(grid, &kind);
    CHECK(kind == MPI_CART);
    MPI_Cartdim_get(grid, &n);
    CHECK(n == 2);
    dims[0] = periods[0] = 9;
    MPI_Cart_get(grid, 2, dims, periods, coords);
    CHECK(dims[0] == 1 && dims[1] == 1 && periods[0] == 1 && periods[1] == 0);
    CHECK(coords[0] == 0 && coords[1] == 0);
    /* The first dimension goes round. */
    coords[0] = -4;
    MPI_Cart_rank(grid, coords, &rank);
    CHECK(rank == 0);
    MPI_Cart_shift(grid, 0, 1, &from, &to);
    CHECK(from == 0 && to == 0);
    MPI_Cart_shift(grid, 1, 1, &from, &to);
    CHECK(from == MPI_PROC_NULL && to == MPI_PROC_NULL);
    coords[0] = 7;
    MPI_Cart_coords(grid, 0, 2, coords);
    CHECK(coords[0] == 0 && coords[1] == 0);
    rank = -1;
    MPI_Cart_map(MPI_COMM_WORLD, 2, dims, periods, &rank);
    CHECK(rank == 0);

    MPI_Cart_sub(grid, keep, &part);
    MPI_Cartdim_get(part, &n);
    CHECK(n == 1);
    MPI_Cart_get(part, 1, dims, periods, coords);
    CHECK(dims[0] == 1 && periods[0] == 1);
    MPI_Cart_create(MPI_COMM_WORLD, 0, NULL, NULL, 0, &point);
    MPI_Cartdim_get(point, &n);
    CHECK(n == 0);
    MPI_Comm copy;
    MPI_Comm_dup(grid, &copy);
    MPI_Topo_test(copy, &kind);
    CHECK(kind == MPI_CART);

    int free_dims[3] = {0, 0, 0}, fixed[3] = {0, 3, 0}, wrong[2] = {5, 0}, negative[1] = {-1};
    MPI_Dims_create(24, 3, free_dims);
    CHECK(free_dims[0] == 4 && free_dims[1] == 3 && free_dims[2] == 2);
    MPI_Dims_create(6, 3, fixed);
    CHECK(fixed[0] == 2 && fixed[1] == 3 && fixed[2] == 1);
    int close[3] = {0, 0, 0};
    MPI_Dims_create(5850, 3, close);
    CHECK(close[0] == 26 && close[1] == 15 && close[2] == 15);
    CHECK(MPI_Dims_create(1, 0, NULL) == MPI_SUCCESS);
    REFUSED(MPI_Dims_create(6, 2, wrong), MPI_ERR_DIMS, "cannot be filled to 6 processes");
    REFUSED(MPI_Dims_create(6, 1, negative), MPI_ERR_DIMS, "dims[0] = -1");
    REFUSED(MPI_Dims_create(0, 1, free_dims), MPI_ERR_ARG, "nnodes = 0");

    MPI_Comm none;
    int large[2] = {2, 3};
    REFUSED(MPI_Cart_create(MPI_COMM_WORLD, 2, large, periods, 0, &none), MPI_ERR_DIMS,
            "a grid of 2 x 3, but the communicator has 1 ranks");
    REFUSED(MPI_Cart_create(MPI_COMM_WORLD, 1, negative, periods, 0, &none), MPI_ERR_DIMS,
            "dims[0] = -1");
    REFUSED(MPI_Cart_map(MPI_COMM_WORLD, 1, negative, periods, &rank), MPI_ERR_DIMS, "dims[0] = -1");
    /* A grid without points holds no rank, whatever its other dimensions are. */
    int empty[3][3] = {{0, 1, 1}, {2, 0, 2}, {INT_MAX, INT_MAX, 0}};
    for (int i = 0; i < 3; i++) {
        int wraps[3] = {1, 0, 1};
        none = MPI_COMM_WORLD;
        CHECK(MPI_Cart_create(MPI_COMM_WORLD, 3, empty[i], wraps, 0, &none) == MPI_SUCCESS);
        CHECK(none == MPI_COMM_NULL);
        rank = 7;
        CHECK(MPI_Cart_map(MPI_COMM_WORLD, 3, empty[i], wraps, &rank) == MPI_SUCCESS);
        CHECK(rank == MPI_UNDEFINED);
    }
    none = MPI_COMM_WORLD;
    CHECK(MPI_Graph_create(MPI_COMM_WORLD, 0, NULL, NULL, 0, &none) == MPI_SUCCESS);
    CHECK(none == MPI_COMM_NULL);
    rank = 7;
    CHECK(MPI_Graph_map(MPI_COMM_WORLD, 0, NULL, NULL, &rank) == MPI_SUCCESS);
    CHECK(rank == MPI_UNDEFINED);
    REFUSED(MPI_Cart_create(MPI_COMM_WORLD, 1, NULL, periods, 0, &none), MPI_ERR_ARG,
            "argument dims is NULL");
    REFUSED(MPI_Cartdim_get(MPI_COMM_WORLD, &n), MPI_ERR_TOPOLOGY,
            "argument comm has no cartesian topology");
    REFUSED(MPI_Cart_get(grid, 1, dims, periods, coords), MPI_ERR_ARG, "maxdims = 1");
    REFUSED(MPI_Cart_coords(grid, 1, 2, coords), MPI_ERR_RANK, "rank = 1");
    REFUSED(MPI_Cart_shift(grid, 2, 1, &from, &to), MPI_ERR_ARG, "direction = 2");
    coords[0] = 0;
    coords[1] = 1;
    REFUSED(MPI_Cart_rank(grid, coords, &rank), MPI_ERR_ARG, "coords[1] = 1");
    MPI_Comm_free(&copy);
    MPI_Comm_free(&point);
    MPI_Comm_free(&part);
    MPI_Comm_free(&grid);
    return end();
}
