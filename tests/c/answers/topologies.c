/* Grids, graphs, distributed graphs, and dimensions. Every rank makes all calls in the same order. */
#include "answers.h"

#define W MPI_COMM_WORLD
#define MOST 8

static void numbers(int *to, int count, int low, int high)
{
    for (int i = 0; i < count; i++)
        to[i] = between(low, high);
}

static void grid(int n)
{
    int d = between(1, 3), dims[3], periods[3], coords[3], found[3], wraps[3], keep[3], at = -7;
    MPI_Comm cart = MPI_COMM_NULL, part = MPI_COMM_NULL;
    for (int i = 0, room = size; i < d; i++) {
        dims[i] = between(below(8) ? 1 : 0, room);
        room /= dims[i] ? dims[i] : 1;
    }
    numbers(periods, d, 0, 1);
    numbers(keep, d, 0, 1);
    numbers(coords, d, -4, 6);
    int direction = below(d), by = between(-5, 5);
    char name[200];
    snprintf(name, sizeof name, "grid %d %s %s", n, list(dims, d), list(periods, d));
    int code = MPI_Cart_map(W, d, dims, periods, &at);
    say("%s map = %d %d", name, class_of(code), code ? 0 : at);
    code = MPI_Cart_create(W, d, dims, periods, 0, &cart);
    say("%s made = %d %d", name, class_of(code), code == MPI_SUCCESS && cart != MPI_COMM_NULL);
    if (code != MPI_SUCCESS || cart == MPI_COMM_NULL)
        return;
    int me, members, kind, count, source, to;
    MPI_Comm_rank(cart, &me);
    MPI_Comm_size(cart, &members);
    MPI_Topo_test(cart, &kind);
    MPI_Cartdim_get(cart, &count);
    MPI_Cart_get(cart, d, found, wraps, coords);
    say("%s is = %d of %d, %d %d %s %s %s", name, me, members, kind, count, list(found, d), list(wraps, d), list(coords, d));
    for (int r = 0; r < members; r++) {
        MPI_Cart_coords(cart, r, d, coords);
        say("%s coords %d = %s", name, r, list(coords, d));
        MPI_Cart_rank(cart, coords, &at);
        say("%s rank of %s = %d", name, list(coords, d), at);
        for (int i = 0; i < d; i++)
            if (periods[i])
                coords[i] += (r - 2) * dims[i];
        MPI_Cart_rank(cart, coords, &at);
        say("%s rank of %s = %d", name, list(coords, d), at);
    }
    for (int i = 0; i < 3; i++) {
        code = MPI_Cart_shift(cart, direction, by + i, &source, &to);
        say("%s shift %d by %d = %d %d %d", name, direction, by + i, class_of(code), source, to);
    }
    MPI_Cart_sub(cart, keep, &part);
    say("%s has part %s = %d", name, list(keep, d), part != MPI_COMM_NULL);
    if (part != MPI_COMM_NULL) {
        MPI_Comm_rank(part, &me);
        MPI_Comm_size(part, &members);
        MPI_Cartdim_get(part, &count);
        MPI_Cart_get(part, d, found, wraps, coords);
        say("%s part %s = %d of %d, %s %s %s", name, list(keep, d), me, members, list(found, count), list(wraps, count), list(coords, count));
        MPI_Comm_free(&part);
    }
    MPI_Comm_free(&cart);
}

static void graph(int n)
{
    int nodes = between(0, size), index[MOST], edges[4 * MOST], end = 0, at = -7;
    for (int i = 0; i < nodes; i++) {
        for (int more = below(4); more > 0; more--)
            edges[end++] = below(nodes);
        index[i] = end;
    }
    MPI_Comm made = MPI_COMM_NULL;
    char name[300];
    snprintf(name, sizeof name, "graph %d %s %s", n, list(index, nodes), list(edges, end));
    int code;
    if (nodes > 0) {
        code = MPI_Graph_map(W, nodes, index, edges, &at);
        say("%s map = %d %d", name, class_of(code), code ? 0 : at);
    }
    code = MPI_Graph_create(W, nodes, index, edges, 0, &made);
    say("%s made = %d %d", name, class_of(code), code == MPI_SUCCESS && made != MPI_COMM_NULL);
    if (code != MPI_SUCCESS || made == MPI_COMM_NULL)
        return;
    int me, members, kind, count, found[4 * MOST];
    MPI_Comm_rank(made, &me);
    MPI_Comm_size(made, &members);
    MPI_Topo_test(made, &kind);
    MPI_Graphdims_get(made, &nodes, &end);
    say("%s is = %d of %d, %d, %d %d", name, me, members, kind, nodes, end);
    MPI_Graph_get(made, nodes, end, index, edges);
    say("%s get = %s %s", name, list(index, nodes), list(edges, end));
    for (int r = 0; r < members; r++) {
        MPI_Graph_neighbors_count(made, r, &count);
        MPI_Graph_neighbors(made, r, count, found);
        say("%s neighbors %d = %s", name, r, list(found, count));
    }
    MPI_Comm_free(&made);
}

static int rising(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

/* Makes a graph of which every rank names its own neighbors. */
static void adjacent(int n)
{
    int joins[MOST][MOST], from[MOST * 2], to[MOST * 2], in[MOST * 2], out[MOST * 2], i = 0, o = 0;
    for (int a = 0; a < size; a++)
        for (int b = 0; b < size; b++)
            joins[a][b] = below(3);
    int weighted = below(2);
    for (int other = 0; other < size; other++) {
        for (int k = 0; k < joins[other][rank]; k++, i++)
            from[i] = other, in[i] = 10 * other + rank + k;
        for (int k = 0; k < joins[rank][other]; k++, o++)
            to[o] = other, out[o] = 10 * rank + other + k;
    }
    char name[200];
    snprintf(name, sizeof name, "adjacent %d %d", n, weighted);
    MPI_Comm made = MPI_COMM_NULL;
    int code = MPI_Dist_graph_create_adjacent(W, i, from, weighted ? in : MPI_UNWEIGHTED, o, to,
                                              weighted ? out : MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &made);
    say("%s made = %d", name, class_of(code));
    if (code != MPI_SUCCESS)
        return;
    int a, b, has;
    MPI_Dist_graph_neighbors_count(made, &a, &b, &has);
    say("%s counts = %d %d %d", name, a, b, has != 0);
    memset(in, 0, sizeof in), memset(out, 0, sizeof out);
    MPI_Dist_graph_neighbors(made, a, from, weighted ? in : MPI_UNWEIGHTED, b, to, weighted ? out : MPI_UNWEIGHTED);
    say("%s neighbors = %s %s %s %s", name, list(from, a), list(to, b), weighted ? list(in, a) : "", weighted ? list(out, b) : "");
    MPI_Comm_free(&made);
}

/* Makes a graph of which any rank names any edge. The standard leaves the order of neighbors open. */
static void distributed(int n)
{
    int sources[MOST], degrees[MOST], to[4 * MOST], weights[4 * MOST], count = (n * 7 + rank) % (size + 1), end = 0;
    for (int i = 0; i < count; i++) {
        sources[i] = (rank + i) % size;
        degrees[i] = (n + i + rank) % 4;
        for (int k = 0; k < degrees[i]; k++, end++)
            to[end] = (n + k * rank + i) % size, weights[end] = end + 10 * rank;
    }
    char name[100];
    snprintf(name, sizeof name, "distributed %d", n);
    MPI_Comm made = MPI_COMM_NULL;
    int code = MPI_Dist_graph_create(W, count, sources, degrees, to, weights, MPI_INFO_NULL, 0, &made);
    say("%s made = %d", name, class_of(code));
    if (code != MPI_SUCCESS)
        return;
    int a = 0, b = 0, has = 0;
    static int from[200], into[200], in[200], out[200];
    MPI_Dist_graph_neighbors_count(made, &a, &b, &has);
    MPI_Dist_graph_neighbors(made, a, from, in, b, into, out);
    int *lists[] = {from, into, in, out};
    for (int i = 0; i < 4; i++)
        qsort(lists[i], (size_t)(i % 2 ? b : a), sizeof(int), rising);
    say("%s neighbors = %d %d %d %s %s %s %s", name, a, b, has != 0, list(from, a), list(into, b), list(in, a), list(out, b));
    MPI_Comm_free(&made);
}

static void dimensions(int n)
{
    int d = between(1, 4), dims[4], given[4], nodes = between(1, 60), product = 1, open = 0;
    for (int i = 0; i < d; i++) {
        given[i] = dims[i] = below(4) ? 0 : between(1, 4);
        nodes *= dims[i] ? dims[i] : 1;
        open |= dims[i] == 0;
    }
    if (!open)
        given[0] = dims[0] = 0;
    int code = MPI_Dims_create(nodes, d, dims);
    if (code != MPI_SUCCESS)
        memcpy(dims, given, sizeof dims);
    for (int i = 0; i < d; i++)
        product *= dims[i];
    say("dims %d of %d %s class = %d %d", n, nodes, list(given, d), class_of(code), product == nodes);
    say("dims %d of %d %s filled = %s", n, nodes, list(given, d), list(dims, d));
}

void topologies(int rounds)
{
    for (int n = 0; n < rounds; n++) {
        grid(n);
        graph(n);
        if (n % 3 == 0)
            adjacent(n);
        distributed(n);
        for (int i = 0; i < 5; i++)
            dimensions(5 * n + i);
    }
}
