// ranks: 1 2 3
// says: correct
//
// What neighborhood collectives refuse, with the class of the error and a text that names the argument.
#include "check.h"

#define WORLD MPI_COMM_WORLD

static MPI_Comm ring;

/* The error is of this class, and its text has this word. */
static void is(int line, int code, int wanted, const char *word)
{
    int class = -1, length;
    char text[MPI_MAX_ERROR_STRING];
    MPI_Error_class(code, &class);
    MPI_Error_string(code, text, &length);
    CHECK(class == wanted, "line %d: class %d instead of %d: %s", line, class, wanted, text);
    CHECK(strstr(text, word), "line %d: no '%s' in: %s", line, word, text);
}

#define IS(call, class, word) is(__LINE__, call, class, word)

static void arguments(void)
{
    int out[8] = {0}, into[8], counts[] = {1, 1}, displs[] = {0, 1}, same[] = {1, 1};
    int two[] = {2, 1}, minus[] = {1, -1};
    MPI_Aint bytes[] = {0, 4}, near[] = {4, 2};
    MPI_Datatype ints[] = {MPI_INT, MPI_INT}, loose, mixed[] = {MPI_INT, MPI_DATATYPE_NULL};
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Type_contiguous(2, MPI_INT, &loose);
    IS(MPI_Neighbor_allgather(out, 1, MPI_INT, into, 1, MPI_INT, WORLD), MPI_ERR_TOPOLOGY,
       "MPI_Cart_create");
    IS(MPI_Ineighbor_alltoall(out, 1, MPI_INT, into, 1, MPI_INT, WORLD, &request),
       MPI_ERR_TOPOLOGY, "MPI_COMM_WORLD");
    IS(MPI_Neighbor_allgather(out, 1, MPI_INT, into, 1, MPI_INT, MPI_COMM_NULL), MPI_ERR_COMM,
       "comm");
    IS(MPI_Neighbor_allgather(MPI_IN_PLACE, 1, MPI_INT, into, 1, MPI_INT, ring), MPI_ERR_BUFFER,
       "sendbuf is MPI_IN_PLACE");
    IS(MPI_Neighbor_alltoallw(out, counts, bytes, ints, MPI_IN_PLACE, counts, bytes, ints, ring),
       MPI_ERR_BUFFER, "recvbuf is MPI_IN_PLACE");
    IS(MPI_Neighbor_allgather(out, -1, MPI_INT, into, 1, MPI_INT, ring), MPI_ERR_COUNT,
       "sendcount = -1");
    IS(MPI_Neighbor_alltoall_c(out, 1, MPI_INT, into, -7, MPI_INT, ring), MPI_ERR_COUNT,
       "recvcount = -7");
    IS(MPI_Neighbor_allgather(NULL, 1, MPI_INT, into, 1, MPI_INT, ring), MPI_ERR_BUFFER, "sendbuf");
    IS(MPI_Neighbor_alltoall(out, 1, MPI_INT, NULL, 1, MPI_INT, ring), MPI_ERR_BUFFER, "recvbuf");
    IS(MPI_Neighbor_alltoall(out, 1, loose, into, 2, MPI_INT, ring), MPI_ERR_TYPE, "committed");
    IS(MPI_Neighbor_allgatherv(out, 1, MPI_INT, into, minus, displs, MPI_INT, ring),
       MPI_ERR_COUNT, "recvcounts[1] = -1");
    IS(MPI_Neighbor_allgatherv(out, 1, MPI_INT, into, NULL, displs, MPI_INT, ring), MPI_ERR_ARG,
       "recvcounts");
    IS(MPI_Neighbor_alltoallv(out, counts, NULL, MPI_INT, into, counts, displs, MPI_INT, ring),
       MPI_ERR_ARG, "displacements");
    IS(MPI_Neighbor_alltoallw(out, counts, bytes, NULL, into, counts, bytes, ints, ring),
       MPI_ERR_ARG, "sendtype");
    IS(MPI_Neighbor_alltoallw(out, counts, bytes, ints, into, counts, bytes, mixed, ring),
       MPI_ERR_TYPE, "recvtype");
    /* Blocks of the receive buffer that overlap. */
    IS(MPI_Neighbor_allgatherv(out, 1, MPI_INT, into, counts, same, MPI_INT, ring), MPI_ERR_ARG,
       "displs: blocks 0 and 1 of recvbuf have 4 bytes in common");
    IS(MPI_Neighbor_alltoallv(out, counts, displs, MPI_INT, into, two, displs, MPI_INT, ring),
       MPI_ERR_ARG, "rdispls: blocks 0 and 1");
    IS(MPI_Neighbor_alltoallw(out, counts, bytes, ints, into, counts, near, ints, ring),
       MPI_ERR_ARG, "have 2 bytes in common");
    IS(MPI_Ineighbor_allgather(out, 1, MPI_INT, into, 1, MPI_INT, ring, NULL), MPI_ERR_ARG,
       "request");
    IS(MPI_Neighbor_allgather_init(out, 1, MPI_INT, into, 1, MPI_INT, ring, MPI_INFO_NULL, NULL),
       MPI_ERR_ARG, "request");
    MPI_Type_free(&loose);
    /* After all of them the communicator still works. */
    int got[2] = {-1, -1};
    out[0] = rank;
    CHECK(MPI_Neighbor_allgather(out, 1, MPI_INT, got, 1, MPI_INT, ring) == MPI_SUCCESS);
    CHECK(got[0] == (rank + size - 1) % size && got[1] == (rank + 1) % size);
}

/* Ranks that disagree about a length: the error is at the receiver, and all that was under way is
   over: nothing comes later into its memory. */
static void too_much(void)
{
    int out[] = {1, 2, 3, 4}, into[] = {-1, -1, -1, -1}, later[2] = {-1, -1};
    int two[] = {2, 1}, ones[] = {1, 1}, displs[] = {0, 2};
    IS(MPI_Neighbor_alltoallv(out, two, displs, MPI_INT, into, ones, displs, MPI_INT, ring),
       MPI_ERR_TRUNCATE, "8 bytes");
    CHECK(into[0] == 3 && into[1] == -1 && into[2] == 1 && into[3] == -1);
    memset(into, 0xff, sizeof into);
    MPI_Neighbor_allgather(&rank, 1, MPI_INT, later, 1, MPI_INT, ring);
    CHECK(into[0] == -1 && into[2] == -1);
    CHECK(later[0] == (rank + size - 1) % size && later[1] == (rank + 1) % size);
    /* Less than there is room for: the rest is left alone, in types with gaps, too. */
    MPI_Datatype apart;
    int wide[12];
    memset(wide, 0xff, sizeof wide);
    MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &apart);
    MPI_Type_commit(&apart);
    CHECK(MPI_Neighbor_alltoall(out, 2, MPI_INT, wide, 3, apart, ring) == MPI_SUCCESS);
    const int wanted[] = {3, -1, 4, -1, -1, -1, 1, -1, 2, -1, -1, -1};
    CHECK(memcmp(wide, wanted, sizeof wide) == 0);
    MPI_Type_free(&apart);
}

/* An edge without its counterpart: all ranks hear of it, none waits. */
static void a_graph_of_one_direction(void)
{
    if (size < 2) return;
    int index[] = {1, 1, 1}, edges[] = {1}, out = 0, into[1];
    MPI_Comm one_way;
    MPI_Graph_create(WORLD, size, index, edges, 0, &one_way);
    MPI_Comm_set_errhandler(one_way, MPI_ERRORS_RETURN);
    IS(MPI_Neighbor_allgather(&out, 1, MPI_INT, into, 1, MPI_INT, one_way), MPI_ERR_TOPOLOGY,
       "more edges from rank 0 to rank 1 than back");
    MPI_Comm_free(&one_way);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    MPI_Comm_set_errhandler(WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Cart_create(WORLD, 1, &size, (int[]){1}, 0, &ring);
    MPI_Comm_set_errhandler(ring, MPI_ERRORS_RETURN);
    arguments();
    too_much();
    a_graph_of_one_direction();
    MPI_Comm_free(&ring);
    return end();
}
