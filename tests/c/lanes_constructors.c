// ranks: 1 2 3
// says: correct
// env: | WEFT_LANES=2 | WEFT_LANES=0
//
// Every call that makes a communicator, with each way in which the ranks give mpi_assert_no_any_tag: the tags of messages give their
// lanes if the call takes hints and all ranks promise. MPI_ANY_TAG is then an error, and MPI_Comm_get_info returns the promise.
#include "check.h"
#include <stdlib.h>
#include <string.h>

/* Makes a communicator of all ranks of `from`. */
typedef MPI_Comm maker(MPI_Comm from, MPI_Info info);

static MPI_Comm made_by_dup(MPI_Comm from, MPI_Info info)
{
    MPI_Comm new;
    MPI_Comm_dup_with_info(from, info, &new);
    return new;
}

static MPI_Comm made_by_idup(MPI_Comm from, MPI_Info info)
{
    /* Three at once, of which the second has the hints. */
    MPI_Comm new[3];
    MPI_Request requests[3];
    MPI_Comm_idup_with_info(from, MPI_INFO_NULL, &new[0], &requests[0]);
    MPI_Comm_idup_with_info(from, info, &new[1], &requests[1]);
    MPI_Comm_idup(from, &new[2], &requests[2]);
    MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
    MPI_Comm_free(&new[0]), MPI_Comm_free(&new[2]);
    return new[1];
}

static MPI_Comm made_by_type(MPI_Comm from, MPI_Info info)
{
    MPI_Comm new;
    MPI_Comm_split_type(from, MPI_COMM_TYPE_SHARED, -rank, info, &new);
    return new;
}

static MPI_Comm made_by_resource(MPI_Comm from, MPI_Info info)
{
    /* The type is a hint, too, so a rank that passes no info cannot use this type. */
    MPI_Comm new;
    if (info == MPI_INFO_NULL) return made_by_type(from, info);
    MPI_Info_set(info, "mpi_hw_resource_type", "mpi_shared_memory");
    MPI_Comm_split_type(from, MPI_COMM_TYPE_HW_GUIDED, 0, info, &new);
    return new;
}

static MPI_Comm made_by_group(MPI_Comm from, MPI_Info info)
{
    static int number;
    char name[20];
    MPI_Comm new;
    MPI_Group group;
    MPI_Comm_group(from, &group);
    snprintf(name, sizeof name, "made %d", number++);
    MPI_Comm_create_from_group(group, name, info, MPI_ERRORS_ARE_FATAL, &new);
    MPI_Group_free(&group);
    return new;
}

static MPI_Comm made_by_edges(MPI_Comm from, MPI_Info info)
{
    MPI_Comm new;
    int one = 1, next = (rank + 1) % size;
    MPI_Dist_graph_create(from, 1, &rank, &one, &next, MPI_UNWEIGHTED, info, 0, &new);
    return new;
}

static MPI_Comm made_by_neighbours(MPI_Comm from, MPI_Info info)
{
    MPI_Comm new;
    int last = (rank + size - 1) % size, next = (rank + 1) % size;
    MPI_Dist_graph_create_adjacent(from, 1, &last, MPI_UNWEIGHTED, 1, &next, MPI_UNWEIGHTED, info, 0, &new);
    return new;
}

static maker *const with_hints[] = {made_by_dup,   made_by_idup,  made_by_type,      made_by_resource,
                                    made_by_group, made_by_edges, made_by_neighbours};
enum { MAKERS = sizeof with_hints / sizeof *with_hints };

/* Makers without hints, of a communicator with hints. */
static MPI_Comm without_hints(int which, MPI_Comm from)
{
    MPI_Comm new, part;
    MPI_Group group;
    MPI_Request request;
    int dims = size, yes = 1, *index = malloc(2 * (size_t)size * sizeof *index), *edges = index + size;
    switch (which) {
    case 0: MPI_Comm_dup(from, &new); break;
    case 1:
        MPI_Comm_idup(from, &new, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        break;
    case 2: MPI_Comm_split(from, 0, rank, &new); break;
    case 3:
        MPI_Comm_group(from, &group);
        MPI_Comm_create(from, group, &new);
        MPI_Group_free(&group);
        break;
    case 4:
        MPI_Comm_group(from, &group);
        MPI_Comm_create_group(from, group, 3, &new);
        MPI_Group_free(&group);
        break;
    case 5: MPI_Cart_create(from, 1, &dims, &yes, 0, &new); break;
    case 6:
        MPI_Cart_create(from, 1, &dims, &yes, 0, &part);
        MPI_Cart_sub(part, &yes, &new);
        MPI_Comm_free(&part);
        break;
    default:
        for (int i = 0; i < size; i++) index[i] = i + 1, edges[i] = (i + 1) % size;
        MPI_Graph_create(from, size, index, edges, 0, &new);
    }
    free(index);
    return new;
}
enum { OTHERS = 8 };

/* Sends a message in a ring, and receives it by MPI_ANY_TAG. Returns 1 if that is an error, and 0 if it receives. */
static int refused(MPI_Comm comm)
{
    int me, ranks, out, in = -1;
    MPI_Request sent, receive;
    MPI_Status status;
    MPI_Comm_rank(comm, &me);
    MPI_Comm_size(comm, &ranks);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Isend(&me, 1, MPI_INT, (me + 1) % ranks, 3, comm, &sent);
    out = (me + ranks - 1) % ranks;
    int code = MPI_Irecv(&in, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &receive);
    if (code) {
        CHECK(class_of(code) == MPI_ERR_TAG);
        MPI_Recv(&in, 1, MPI_INT, out, 3, comm, &status);
    } else {
        MPI_Wait(&receive, &status);
    }
    MPI_Wait(&sent, MPI_STATUS_IGNORE);
    CHECK(in == out && status.MPI_TAG == 3 && status.MPI_SOURCE == out, "%d", in);
    return code != 0;
}

/* Returns true if MPI_Comm_get_info has the assertion as true. */
static int reports(MPI_Comm comm)
{
    MPI_Info info;
    char value[8] = "";
    int length = sizeof value, flag = 0;
    MPI_Comm_get_info(comm, &info);
    MPI_Info_get_string(info, "mpi_assert_no_any_tag", &length, value, &flag);
    MPI_Info_free(&info);
    CHECK(flag && (!strcmp(value, "true") || !strcmp(value, "false")), "%s", value);
    return !strcmp(value, "true");
}

/* Ways in which the ranks give the assertion. */
enum promise { TRUE_BY_ALL, FALSE_BY_ALL, NULL_BY_ALL, FALSE_BY_FIRST, NULL_BY_LAST, WRONG_BY_FIRST, PROMISES };

/* Returns the info of this rank. */
static MPI_Info of_promise(enum promise promise)
{
    MPI_Info info;
    const char *value = "true";
    if (promise == NULL_BY_ALL || (promise == NULL_BY_LAST && rank == size - 1)) return MPI_INFO_NULL;
    if (promise == FALSE_BY_ALL || (promise == FALSE_BY_FIRST && rank == 0)) value = "false";
    if (promise == WRONG_BY_FIRST && rank == 0) value = "yes";
    MPI_Info_create(&info);
    MPI_Info_set(info, "mpi_assert_no_any_tag", value);
    return info;
}

/* Two groups make an intercommunicator. Its messages have no lanes, so any tag may be received. */
static void between_groups(void)
{
    MPI_Group all, parts[2];
    MPI_Comm inter;
    MPI_Info info = of_promise(TRUE_BY_ALL);
    int first = 0, side = rank != 0, in = -1, other = side ? 0 : 1;
    MPI_Status status;
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_incl(all, 1, &first, &parts[0]);
    MPI_Group_excl(all, 1, &first, &parts[1]);
    MPI_Intercomm_create_from_groups(parts[side], 0, parts[!side], 0, "two sides", info, MPI_ERRORS_RETURN, &inter);
    CHECK(reports(inter));
    if (rank < 2) {
        MPI_Sendrecv(&rank, 1, MPI_INT, 0, 7, &in, 1, MPI_INT, 0, MPI_ANY_TAG, inter, &status);
        CHECK(in == other && status.MPI_TAG == 7);
    }
    MPI_Comm_free(&inter);
    MPI_Info_free(&info);
    for (int i = 0; i < 2; i++) MPI_Group_free(&parts[i]);
    MPI_Group_free(&all);
}

int main(int argc, char **argv)
{
    int level;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    CHECK(level == MPI_THREAD_MULTIPLE);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const char *lanes = getenv("WEFT_LANES");
    int exist = !lanes || strcmp(lanes, "0"), by_tag = 0;
    MPI_Comm parents[2] = {MPI_COMM_WORLD, MPI_COMM_NULL};
    MPI_Info info = of_promise(TRUE_BY_ALL);
    MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &parents[1]);
    MPI_Info_free(&info);
    for (int i = 0; i < 2 * MAKERS * PROMISES; i++) {
        int parent = i % 2, which = i / 2 % MAKERS;
        enum promise promise = i / 2 / MAKERS;
        if (which == 3 && (promise == NULL_BY_ALL || promise == NULL_BY_LAST)) continue;
        info = of_promise(promise);
        MPI_Comm comm = with_hints[which](parents[parent], info);
        int all = promise == TRUE_BY_ALL;
        int mine = promise == TRUE_BY_ALL || (promise == FALSE_BY_FIRST && rank != 0) ||
                   (promise == NULL_BY_LAST && rank != size - 1) || (promise == WRONG_BY_FIRST && rank != 0);
        CHECK(refused(comm) == (exist && all), "maker %d, promise %d", which, promise);
        CHECK(reports(comm) == mine, "maker %d, promise %d", which, promise);
        by_tag += exist && all;
        MPI_Comm_free(&comm);
        if (info != MPI_INFO_NULL) MPI_Info_free(&info);
    }
    CHECK(by_tag == (exist ? 2 * MAKERS : 0));
    for (int i = 0; i < OTHERS; i++) {
        MPI_Comm comm = without_hints(i, parents[1]);
        CHECK(!refused(comm) && !reports(comm), "maker %d without hints", i);
        MPI_Comm_free(&comm);
    }
    if (size > 1) between_groups();
    MPI_Comm_free(&parents[1]);
    return end();
}
