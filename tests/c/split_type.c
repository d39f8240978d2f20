// ranks: 1 2 4 5
// says: correct
//
// MPI_Comm_split_type: by node (as WEFT_NODES=2 or =0,1,0 says, if it is set), by the parts of the machine that
// processes bind themselves to, and by process sets.
#define _GNU_SOURCE
#include "check.h"
#include <sched.h>

#define WORLD MPI_COMM_WORLD
#define TYPE "mpi_hw_resource_type"

static int processors, several_nodes;
static int node_of[64];

/* The node of each rank. */
static void read_nodes(void)
{
    const char *text = getenv("WEFT_NODES");
    if (!text || !*text) return;
    int each = strchr(text, ',') ? 0 : atoi(text);
    for (int r = 0; r < size && r < 64; r++) {
        node_of[r] = each ? r / each : atoi(text);
        if (!each && strchr(text, ',')) text = strchr(text, ',') + 1;
        several_nodes |= node_of[r] != node_of[0];
    }
}

/* The communicator has the ranks of the world, in order, for which `same` says so. */
static void has(MPI_Comm comm, int (*same)(int other), const char *what)
{
    int n = 0, found, result;
    CHECK(comm != MPI_COMM_NULL, "%s", what);
    MPI_Group world, group, expected;
    int *ranks = malloc(size * sizeof *ranks);
    for (int r = 0; r < size; r++)
        if (same(r)) ranks[n++] = r;
    MPI_Comm_group(WORLD, &world);
    MPI_Group_incl(world, n, ranks, &expected);
    MPI_Comm_group(comm, &group);
    MPI_Group_compare(group, expected, &result);
    MPI_Comm_size(comm, &found);
    CHECK(result == MPI_IDENT, "%s: %d ranks, expected %d", what, found, n);
    MPI_Group_free(&world);
    MPI_Group_free(&group);
    MPI_Group_free(&expected);
    free(ranks);
}

static int on_node(int other) { return node_of[other] == node_of[rank]; }
static int on_processor(int other) { return on_node(other) && other % processors == rank % processors; }
static int everybody(int other) { return other >= 0; }
static int myself(int other) { return other == rank; }
static int odd_or_even(int other) { return on_node(other) && other % 2 == rank % 2; }

static MPI_Info asking(const char *key, const char *value)
{
    MPI_Info info;
    MPI_Info_create(&info);
    if (key) MPI_Info_set(info, key, value);
    return info;
}

/* A split of the world by what an info object asks for. */
static MPI_Comm split(int type, const char *key, const char *value)
{
    MPI_Info info = asking(key, value);
    MPI_Comm comm = WORLD;
    MPI_Comm_split_type(WORLD, type, 0, info, &comm);
    MPI_Info_free(&info);
    return comm;
}

static void frees(MPI_Comm comm) { MPI_Comm_free(&comm); }

/* "true", "false" or "": whether the process is bound to one part of the kind. */
static const char *bound(const char *kind)
{
    static char value[8];
    int length = sizeof value, flag;
    MPI_Info info;
    MPI_Get_hw_resource_info(&info);
    MPI_Info_get_string(info, kind, &length, value, &flag);
    MPI_Info_free(&info);
    return flag ? value : "";
}

int main(int argc, char **argv)
{
    static const int guided[] = {MPI_COMM_TYPE_HW_GUIDED, MPI_COMM_TYPE_RESOURCE_GUIDED};
    cpu_set_t all, one;
    MPI_Comm comm;
    begin(&argc, &argv);
    read_nodes();

    MPI_Comm_split_type(WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &comm);
    has(comm, on_node, "shared memory");
    frees(comm);
    /* Some stay out; the others' order is that of the keys. */
    MPI_Comm_split_type(WORLD, rank % 2 ? MPI_COMM_TYPE_SHARED : MPI_UNDEFINED, -rank, MPI_INFO_NULL, &comm);
    CHECK((comm != MPI_COMM_NULL) == rank % 2);
    if (rank % 2) {
        int mine, there, lower = 0;
        MPI_Comm_rank(comm, &mine);
        MPI_Comm_size(comm, &there);
        for (int r = rank + 1; r < size; r++) lower += odd_or_even(r);
        CHECK(mine == lower, "%d of %d", mine, there);
        frees(comm);
    }

    for (int g = 0; g < 2; g++) {
        comm = split(guided[g], TYPE, "mpi_shared_memory");
        has(comm, on_node, "mpi_shared_memory");
        frees(comm);
        CHECK(split(guided[g], TYPE, "hwloc://Nonsense") == MPI_COMM_NULL);
        CHECK(split(guided[g], "other", "hwloc://PU") == MPI_COMM_NULL);
        MPI_Comm_split_type(WORLD, guided[g], 0, MPI_INFO_NULL, &comm);
        CHECK(comm == MPI_COMM_NULL);
    }
    CHECK(split(MPI_COMM_TYPE_HW_GUIDED, "mpi_pset_name", "mpi://WORLD") == MPI_COMM_NULL);
    CHECK(split(MPI_COMM_TYPE_RESOURCE_GUIDED, "mpi_pset_name", "mpi://NONE") == MPI_COMM_NULL);
    comm = split(MPI_COMM_TYPE_RESOURCE_GUIDED, "mpi_pset_name", "mpi://WORLD");
    has(comm, everybody, "mpi://WORLD");
    frees(comm);
    comm = split(MPI_COMM_TYPE_RESOURCE_GUIDED, "mpi_pset_name", "mpi://SELF");
    has(comm, myself, "mpi://SELF");
    frees(comm);

    /* Free to run anywhere, a process is within no processor, if there are several. mpiexec may have
     * bound each to one. */
    sched_getaffinity(0, sizeof all, &all);
    MPI_Allreduce(MPI_IN_PLACE, &all, sizeof all, MPI_BYTE, MPI_BOR, WORLD);
    processors = CPU_COUNT(&all);
    CHECK(sched_setaffinity(0, sizeof all, &all) == 0);
    if (processors > 1) {
        CHECK(!strcmp(bound("hwloc://PU"), "false"), "%s", bound("hwloc://PU"));
        CHECK(split(MPI_COMM_TYPE_HW_GUIDED, TYPE, "hwloc://PU") == MPI_COMM_NULL);
    }
    /* Bound to a processor, it is with those on the same one. */
    int which = rank % processors, cpu = 0;
    for (; !CPU_ISSET(cpu, &all) || which-- > 0; cpu++) {}
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    CHECK(sched_setaffinity(0, sizeof one, &one) == 0);
    MPI_Barrier(WORLD);
    CHECK(!strcmp(bound("hwloc://PU"), "true"), "%s", bound("hwloc://PU"));
    CHECK(!strcmp(bound("hwloc://Nonsense"), ""));
    for (int g = 0; g < 2; g++) {
        comm = split(guided[g], TYPE, "hwloc://PU");
        has(comm, on_processor, "hwloc://PU");
        frees(comm);
    }
    /* A process of an unguided split is with all on the same part, the part is named, and the last
     * communicator is that of those who share a processor. */
    MPI_Comm now = WORLD;
    for (int level = 0;; level++) {
        MPI_Info info = asking(NULL, NULL);
        int before, after, flag, length;
        char kind[64] = "", same[64];
        CHECK(level < 10);
        MPI_Comm_split_type(now, MPI_COMM_TYPE_HW_UNGUIDED, 0, info, &comm);
        length = sizeof kind;
        MPI_Info_get_string(info, TYPE, &length, kind, &flag);
        MPI_Info_free(&info);
        CHECK(flag == (comm != MPI_COMM_NULL), "%s", kind);
        if (comm == MPI_COMM_NULL) break;
        MPI_Comm_size(now, &before);
        MPI_Comm_size(comm, &after);
        CHECK(after < before, "%d of %d", after, before);
        strcpy(same, kind);
        MPI_Bcast(same, sizeof same, MPI_CHAR, 0, comm);
        CHECK(!strcmp(same, kind), "%s here, %s there", kind, same);
        if (level == 0 && several_nodes) CHECK(!strcmp(kind, "mpi_shared_memory"), "%s", kind);
        if (now != WORLD) frees(now);
        now = comm;
    }
    has(now, on_processor, "the smallest part");
    if (now != WORLD) frees(now);
    MPI_Comm_split_type(WORLD, MPI_COMM_TYPE_HW_UNGUIDED, 0, MPI_INFO_NULL, &comm);
    if (comm != MPI_COMM_NULL) frees(comm);

    MPI_Comm_set_errhandler(WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    CHECK(class_of(MPI_Comm_split_type(WORLD, 99, 0, MPI_INFO_NULL, &comm)) == MPI_ERR_ARG);
    CHECK(class_of(MPI_Comm_split_type(WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, NULL)) == MPI_ERR_ARG);
    CHECK(class_of(MPI_Comm_split_type(WORLD, MPI_COMM_TYPE_SHARED, 0, (MPI_Info)0x7000, &comm)) == MPI_ERR_INFO);
    MPI_Info both = asking(TYPE, "hwloc://PU");
    MPI_Info_set(both, "mpi_pset_name", "mpi://WORLD");
    CHECK(class_of(MPI_Comm_split_type(WORLD, MPI_COMM_TYPE_RESOURCE_GUIDED, 0, both, &comm)) == MPI_ERR_INFO);
    MPI_Info_free(&both);
    CHECK(class_of(MPI_Get_hw_resource_info(NULL)) == MPI_ERR_ARG);
    return end();
}
