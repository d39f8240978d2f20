// ranks: 1 2 3
// says: correct
//
// Jobs with different models of copies, as if they were measured at different times: the ranks of a communicator with processes
// of both jobs must choose the same algorithms (MPI 5.0, chapter 11: the jobs are connected by MPI_Comm_spawn).
#include "check.h"
#include <unistd.h>

enum { MOST = 1 << 18, CHILDREN = 2 };

/* Collective operations of growing lengths on all processes of both jobs. */
static void operate(MPI_Comm all)
{
    static int own[MOST], result[8 * MOST];
    int size, me;
    MPI_Comm_size(all, &size);
    MPI_Comm_rank(all, &me);
    for (int count = 1; count <= MOST; count = 3 * count + 1) {
        for (int i = 0; i < count; i++)
            own[i] = i + me;
        int sum = size * (size - 1) / 2, wrong = 0;
        MPI_Allreduce(own, result, count, MPI_INT, MPI_SUM, all);
        for (int i = 0; i < count; i++)
            wrong += result[i] != i * size + sum;
        CHECK(wrong == 0, "allreduce: %d of %d", wrong, count);
        memset(result, 0, count * sizeof(int));
        MPI_Reduce(own, result, count, MPI_INT, MPI_SUM, size - 1, all);
        for (int i = 0; i < count && me == size - 1; i++)
            wrong += result[i] != i * size + sum;
        CHECK(wrong == 0, "reduce: %d of %d", wrong, count);
        if (me == 0)
            memcpy(result, own, count * sizeof(int));
        MPI_Bcast(result, count, MPI_INT, 0, all);
        for (int i = 0; i < count; i++)
            wrong += result[i] != i;
        CHECK(wrong == 0, "bcast: %d of %d", wrong, count);
        int each = count / size;
        MPI_Allgather(own, each, MPI_INT, result, each, MPI_INT, all);
        for (int i = 0; i < each * size; i++)
            wrong += result[i] != i % each + i / each;
        CHECK(wrong == 0, "allgather: %d of %d", wrong, each);
        MPI_Alltoall(own, each, MPI_INT, result, each, MPI_INT, all);
        for (int i = 0; i < each * size; i++)
            wrong += result[i] != me * each + i % each + i / each;
        CHECK(wrong == 0, "alltoall: %d of %d", wrong, each);
        MPI_Gather(own, each, MPI_INT, result, each, MPI_INT, 0, all);
        for (int i = 0; i < each * size && me == 0; i++)
            wrong += result[i] != i % each + i / each;
        CHECK(wrong == 0, "gather: %d of %d", wrong, each);
        MPI_Scatter(own, each, MPI_INT, result, each, MPI_INT, 0, all);
        for (int i = 0; i < each; i++)
            wrong += result[i] != me * each + i;
        CHECK(wrong == 0, "scatter: %d of %d", wrong, each);
        MPI_Reduce_scatter_block(own, result, each, MPI_INT, MPI_SUM, all);
        for (int i = 0; i < each; i++)
            wrong += result[i] != (me * each + i) * size + sum;
        CHECK(wrong == 0, "reduce_scatter_block: %d of %d", wrong, each);
        MPI_Scan(own, result, count, MPI_INT, MPI_SUM, all);
        for (int i = 0; i < count; i++)
            wrong += result[i] != i * (me + 1) + me * (me + 1) / 2;
        CHECK(wrong == 0, "scan: %d of %d", wrong, count);
    }
}

/* Models of copies that prefer other algorithms. Numbers that are not named are the usual ones (book: tuning). */
static const char *const models[] = {
    "[copies]\ncma_call = 100.0\ncma_page = 50.0\n",
    "[copies]\ncma_call = 0.001\ncma_page = 0.0001\n",
    "[copies.line]\nshared = 50.0\napart = 50.0\n",
    "[copies.line]\nshared = 0.001\napart = 0.001\n[copies.rewrite]\nshared = 5.0\napart = 5.0\n",
    "[copies]\nprivate = 16384.0\nreduce = 10.0\n",
};
enum { MODELS = sizeof models / sizeof *models };

/* Lets processes that are spawned from now on use a model. */
static void use_model(int number, char *path)
{
    sprintf(path, "/tmp/weft-unlike-copies-%ld-%d", (long)getpid(), number);
    FILE *file = fopen(path, "w");
    CHECK(file && fputs(models[number], file) >= 0 && fclose(file) == 0, "%s", path);
    setenv("WEFT_COPY_MODEL", path, 1);
}

int main(int argc, char **argv)
{
    MPI_Comm parent, inter, all, dup;
    char path[64];
    begin(&argc, &argv);
    MPI_Comm_get_parent(&parent);
    for (int i = 0; i < (parent == MPI_COMM_NULL ? MODELS : 1); i++) {
        if (parent == MPI_COMM_NULL) {
            if (rank == 0) use_model(i, path);
            MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, CHILDREN, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE);
            if (rank == 0) unlink(path);
        } else {
            inter = parent;
        }
        MPI_Intercomm_merge(inter, parent != MPI_COMM_NULL, &all);
        operate(all);
        MPI_Comm_dup(all, &dup);
        operate(dup);
        MPI_Comm_free(&dup);
        MPI_Comm_free(&all);
        MPI_Comm_disconnect(&inter);
    }
    if (parent == MPI_COMM_NULL) return end();
    MPI_Finalize();
    return 0;
}
