// ranks: 1 3 5
// says: correct
//
// Graph topologies (MPI 5.0, sections 8.5.3 to 8.5.5): what was given comes back, whoever gave it.
#include "check.h"

#define WORLD MPI_COMM_WORLD

/* Nodes in a line; node 0 also points at itself, twice. */
static void a_graph_comes_back(void)
{
    int index[16], edges[40], n = 0;
    for (int i = 0; i < size; i++) {
        if (i > 0) edges[n++] = i - 1;
        if (i + 1 < size) edges[n++] = i + 1;
        if (i == 0) edges[n++] = 0, edges[n++] = 0;
        index[i] = n;
    }
    MPI_Comm line, copy;
    MPI_Graph_create(WORLD, size, index, edges, 1, &line);
    MPI_Comm_dup(line, &copy);
    int kind, nodes, total, ends[16], all[40];
    MPI_Topo_test(copy, &kind);
    MPI_Graphdims_get(copy, &nodes, &total);
    CHECK(kind == MPI_GRAPH && nodes == size && total == n);
    MPI_Graph_get(copy, 16, 40, ends, all);
    CHECK(memcmp(ends, index, sizeof(int) * size) == 0 && memcmp(all, edges, sizeof(int) * n) == 0);
    for (int i = 0; i < size; i++) {
        int start = i == 0 ? 0 : index[i - 1], count, some[8];
        MPI_Graph_neighbors_count(line, i, &count);
        CHECK(count == index[i] - start);
        MPI_Graph_neighbors(line, i, 8, some);
        CHECK(memcmp(some, edges + start, sizeof(int) * count) == 0);
    }
    int place;
    MPI_Graph_map(WORLD, size, index, edges, &place);
    CHECK(place == rank);
    MPI_Comm_free(&copy);
    MPI_Comm_free(&line);
    /* The last rank is left out. */
    if (size > 1) {
        int ends[16] = {0}, none[1];
        MPI_Comm part;
        MPI_Graph_create(WORLD, size - 1, ends, none, 0, &part);
        CHECK((part == MPI_COMM_NULL) == (rank == size - 1));
        if (part != MPI_COMM_NULL) MPI_Comm_free(&part);
    }
}

static int sum_of(const int *list, int n)
{
    int sum = 0;
    for (int i = 0; i < n; i++) sum += list[i];
    return sum;
}

/* A ring, each rank naming its own edges. */
static void a_distributed_graph_comes_back(void)
{
    int left = (rank + size - 1) % size, right = (rank + 1) % size, weight = 10 + rank, back = 20;
    int in, out, weighted, kind, sources[4], destinations[4], w[4], v[4] = {-1};
    MPI_Comm ring;
    MPI_Dist_graph_create_adjacent(WORLD, 1, &left, &back, 1, &right, &weight, MPI_INFO_NULL, 0,
                                   &ring);
    MPI_Topo_test(ring, &kind);
    MPI_Dist_graph_neighbors_count(ring, &in, &out, &weighted);
    CHECK(kind == MPI_DIST_GRAPH && in == 1 && out == 1 && weighted);
    MPI_Dist_graph_neighbors(ring, 1, sources, w, 1, destinations, v);
    CHECK(sources[0] == left && w[0] == 20 && destinations[0] == right && v[0] == weight);
    MPI_Comm_free(&ring);
    MPI_Dist_graph_create_adjacent(WORLD, 0, NULL, MPI_WEIGHTS_EMPTY, 1, &right, MPI_UNWEIGHTED,
                                   MPI_INFO_NULL, 0, &ring);
    MPI_Comm_free(&ring);
    /* Rank 0 names all edges, from each rank to all ranks; the others name none. */
    int from[16], degrees[16], to[256], n = rank == 0 ? size : 0;
    for (int i = 0; i < n; i++) {
        from[i] = i, degrees[i] = size;
        for (int k = 0; k < size; k++) to[i * size + k] = k;
    }
    MPI_Comm full;
    MPI_Dist_graph_create(WORLD, n, from, degrees, to, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &full);
    MPI_Dist_graph_neighbors_count(full, &in, &out, &weighted);
    CHECK(in == size && out == size && !weighted);
    int s[16], d[16];
    v[0] = -1;
    MPI_Dist_graph_neighbors(full, 16, s, v, 16, d, MPI_UNWEIGHTED);
    CHECK(sum_of(s, size) == size * (size - 1) / 2 && sum_of(d, size) == size * (size - 1) / 2);
    CHECK(v[0] == -1);
    MPI_Comm_free(&full);
    /* Every rank names the edge of its right neighbour. */
    int one = 1, next = (right + 1) % size, heavy = 100 + right;
    MPI_Dist_graph_create(WORLD, 1, &right, &one, &next, &heavy, MPI_INFO_NULL, 0, &ring);
    MPI_Dist_graph_neighbors(ring, 1, sources, w, 1, destinations, v);
    CHECK(sources[0] == left && w[0] == 100 + left);
    CHECK(destinations[0] == right && v[0] == 100 + rank);
    MPI_Comm_free(&ring);
}

static void class_is(int line, int code, int wanted)
{
    int class = -1;
    MPI_Error_class(code, &class);
    CHECK(class == wanted, "line %d: class %d instead of %d", line, class, wanted);
}

static void mistakes_are_errors(void)
{
    int index[] = {2, 1}, edges[] = {0, 0, 0}, far = size, n;
    MPI_Comm made;
    MPI_Comm_set_errhandler(WORLD, MPI_ERRORS_RETURN);
    class_is(__LINE__, MPI_Graph_create(WORLD, size + 1, index, edges, 0, &made), MPI_ERR_ARG);
    if (size > 1)
        class_is(__LINE__, MPI_Graph_create(WORLD, 2, index, edges, 0, &made), MPI_ERR_ARG);
    class_is(__LINE__, MPI_Graphdims_get(WORLD, &n, &n), MPI_ERR_TOPOLOGY);
    class_is(__LINE__, MPI_Dist_graph_neighbors_count(WORLD, &n, &n, &n), MPI_ERR_TOPOLOGY);
    class_is(__LINE__,
             MPI_Dist_graph_create_adjacent(WORLD, 1, &far, MPI_UNWEIGHTED, 0, NULL, MPI_UNWEIGHTED,
                                            MPI_INFO_NULL, 0, &made),
             MPI_ERR_RANK);
    MPI_Comm_set_errhandler(WORLD, MPI_ERRORS_ARE_FATAL);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    a_graph_comes_back();
    a_distributed_graph_comes_back();
    mistakes_are_errors();
    return end();
}
