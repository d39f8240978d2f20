// ranks: 2
// says: correct
//
// Bad calls under MPI_ERRORS_RETURN: each returns its class, and MPI_Error_string then names the
// call, the communicator, the argument and its value. Afterwards everything still works.
#include "check.h"

static char text[MPI_MAX_ERROR_STRING];
static int class, length;

/* Does the code have this class, and does its text contain all words (separated by `|`)? */
static void expect(int line, int code, int expected, const char *words)
{
    char copy[256], *word;
    MPI_Error_class(code, &class);
    MPI_Error_string(code, text, &length);
    CHECK(class == expected, "line %d: class %d, expected %d: %s", line, class, expected, text);
    strcpy(copy, words);
    for (word = strtok(copy, "|"); word; word = strtok(NULL, "|"))
        CHECK(strstr(text, word), "line %d: no '%s' in: %s", line, word, text);
    CHECK((int)strlen(text) == length && length < MPI_MAX_ERROR_STRING);
}

#define BAD(expected, words, call) expect(__LINE__, call, MPI_ERR_##expected, words)

static void works(void)
{
    int right = (rank + 1) % size, left = (rank + size - 1) % size, got = -1, sum;
    MPI_Sendrecv(&rank, 1, MPI_INT, right, 1, &got, 1, MPI_INT, left, 1, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(got == left && sum == size * (size - 1) / 2);
}

/* Handles that never were, were freed, or are null. */
static uintptr_t rubbish(int i)
{
    static const uintptr_t all[] = {1, 7, 0x3ff, 0x7fffffff, 0xdeadbeef, UINTPTR_MAX, UINTPTR_MAX / 2};
    return all[i];
}
enum { RUBBISH = 7 };

static void messages(void)
{
    int data[8] = {0}, flag;
    MPI_Status status;
    MPI_Request request;
    MPI_Message message;
#define W MPI_COMM_WORLD
    BAD(RANK, "MPI_Send|MPI_COMM_WORLD|dest = -7", MPI_Send(data, 1, MPI_INT, -7, 0, W));
    BAD(RANK, "MPI_Send|MPI_COMM_WORLD|dest = 2|0 to 1", MPI_Send(data, 1, MPI_INT, size, 0, W));
    BAD(RANK, "MPI_Send|dest = -1", MPI_Send(data, 1, MPI_INT, MPI_ANY_SOURCE, 0, W));
    BAD(RANK, "MPI_Recv|MPI_COMM_WORLD|source = 2", MPI_Recv(data, 1, MPI_INT, 2, 0, W, &status));
    BAD(RANK, "MPI_Irecv|source = -9", MPI_Irecv(data, 1, MPI_INT, -9, 0, W, &request));
    BAD(RANK, "MPI_Ssend|dest = 99", MPI_Ssend(data, 1, MPI_INT, 99, 0, W));
    BAD(RANK, "MPI_Probe|source = 77", MPI_Probe(77, 0, W, &status));
    BAD(RANK, "MPI_Mprobe|source = 77", MPI_Mprobe(77, 0, W, &message, &status));
    BAD(RANK, "MPI_Iprobe|source = 77", MPI_Iprobe(77, 0, W, &flag, &status));
    BAD(TAG, "MPI_Send|MPI_COMM_WORLD|tag = -3", MPI_Send(data, 1, MPI_INT, 0, -3, W));
    BAD(TAG, "MPI_Isend|tag = -2", MPI_Isend(data, 1, MPI_INT, 0, MPI_ANY_TAG, W, &request));
    BAD(TAG, "MPI_Recv|tag = -33", MPI_Recv(data, 1, MPI_INT, 0, -33, W, &status));
    BAD(COUNT, "MPI_Send|MPI_COMM_WORLD|count = -1", MPI_Send(data, -1, MPI_INT, 0, 0, W));
    BAD(COUNT, "MPI_Recv|count = -5", MPI_Recv(data, -5, MPI_INT, 0, 0, W, &status));
    BAD(COUNT, "MPI_Sendrecv|recvcount = -3",
        MPI_Sendrecv(data, 1, MPI_INT, 0, 0, data, -3, MPI_INT, 0, 0, W, &status));
    BAD(BUFFER, "MPI_Send|MPI_COMM_WORLD|buf is NULL|count = 4", MPI_Send(NULL, 4, MPI_INT, 0, 0, W));
    BAD(BUFFER, "MPI_Recv|buf is NULL|count = 1", MPI_Recv(NULL, 1, MPI_INT, 0, 0, W, &status));
    BAD(BUFFER, "MPI_Bcast|buf", MPI_Bcast(NULL, 1, MPI_INT, 0, W));
    BAD(BUFFER, "MPI_Allreduce|sendbuf", MPI_Allreduce(NULL, data, 1, MPI_INT, MPI_SUM, W));
    BAD(TYPE, "MPI_Send|MPI_COMM_WORLD|datatype|null", MPI_Send(data, 1, MPI_DATATYPE_NULL, 0, 0, W));
    BAD(ROOT, "MPI_Bcast|MPI_COMM_WORLD|root = 5", MPI_Bcast(data, 1, MPI_INT, 5, W));
    BAD(ROOT, "MPI_Reduce|root = -1", MPI_Reduce(data, data, 1, MPI_INT, MPI_SUM, -1, W));
    BAD(OP, "MPI_Allreduce|op", MPI_Allreduce(data, data + 1, 1, MPI_INT, MPI_OP_NULL, W));
    BAD(ARG, "MPI_Comm_rank|rank|NULL", MPI_Comm_rank(W, NULL));
    BAD(ARG, "MPI_Isend|request", MPI_Isend(data, 1, MPI_INT, 0, 0, W, NULL));
}

static void handles(void)
{
    int data[8] = {0}, n;
    MPI_Datatype type, uncommitted;
    MPI_Comm comm;
    MPI_Request request, copy;
    MPI_Group group;
    for (int i = 0; i < RUBBISH; i++) {
        MPI_Comm c = (MPI_Comm)rubbish(i);
        MPI_Datatype t = (MPI_Datatype)rubbish(i);
        MPI_Request r = (MPI_Request)rubbish(i);
        BAD(COMM, "MPI_Send|comm = 0x", MPI_Send(data, 1, MPI_INT, 0, 0, c));
        BAD(COMM, "MPI_Barrier|comm = 0x", MPI_Barrier(c));
        BAD(COMM, "MPI_Comm_size|comm = 0x", MPI_Comm_size(c, &n));
        BAD(COMM, "MPI_Comm_free|comm = 0x", MPI_Comm_free(&c));
        BAD(TYPE, "MPI_Send|MPI_COMM_WORLD|datatype = 0x", MPI_Send(data, 1, t, 0, 0, W));
        BAD(TYPE, "MPI_Type_size|datatype = 0x", MPI_Type_size(t, &n));
        BAD(TYPE, "MPI_Bcast|datatype = 0x", MPI_Bcast(data, 1, t, 0, W));
        BAD(REQUEST, "MPI_Wait|request = 0x", MPI_Wait(&r, MPI_STATUS_IGNORE));
        BAD(REQUEST, "MPI_Request_free|request = 0x", MPI_Request_free(&r));
        BAD(REQUEST, "MPI_Waitall|array_of_requests[0]", MPI_Waitall(1, &r, MPI_STATUSES_IGNORE));
        BAD(REQUEST, "MPI_Start|request", MPI_Start(&r));
        BAD(OP, "MPI_Allreduce|op = 0x", MPI_Allreduce(data, data + 1, 1, MPI_INT, (MPI_Op)rubbish(i), W));
        BAD(GROUP, "MPI_Group_size|group = 0x", MPI_Group_size((MPI_Group)rubbish(i), &n));
    }
    BAD(COMM, "MPI_Send|comm|null", MPI_Send(data, 1, MPI_INT, 0, 0, MPI_COMM_NULL));

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm old = comm;
    MPI_Comm_free(&comm);
    BAD(COMM, "MPI_Send|comm = 0x|freed", MPI_Send(data, 1, MPI_INT, 0, 0, old));
    MPI_Comm_dup(MPI_COMM_WORLD, &comm); /* in the same place, perhaps */
    BAD(COMM, "MPI_Barrier|comm = 0x|freed", MPI_Barrier(old));
    MPI_Comm_set_name(comm, "the atmosphere");
    BAD(RANK, "MPI_Send|the atmosphere|dest = 9", MPI_Send(data, 1, MPI_INT, 9, 0, comm));
    MPI_Comm_free(&comm);

    MPI_Type_contiguous(2, MPI_INT, &uncommitted);
    BAD(TYPE, "MPI_Send|datatype|MPI_Type_commit", MPI_Send(data, 1, uncommitted, 0, 0, W));
    type = uncommitted;
    MPI_Type_free(&uncommitted);
    BAD(TYPE, "MPI_Send|datatype = 0x|freed", MPI_Send(data, 1, type, 0, 0, W));
    BAD(TYPE, "MPI_Type_free|datatype", MPI_Type_free(&type));
    type = MPI_INT;
    BAD(TYPE, "MPI_Type_free|datatype", MPI_Type_free(&type));

    MPI_Irecv(data, 1, MPI_INT, rank, 3, W, &request);
    copy = request;
    MPI_Send(data + 1, 1, MPI_INT, rank, 3, W);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    BAD(REQUEST, "MPI_Wait|request = 0x|freed", MPI_Wait(&copy, MPI_STATUS_IGNORE));
    BAD(REQUEST, "MPI_Test|request = 0x|freed", MPI_Test(&copy, &n, MPI_STATUS_IGNORE));
    BAD(REQUEST, "MPI_Cancel|request", MPI_Cancel(&copy));

    MPI_Comm_group(MPI_COMM_WORLD, &group);
    MPI_Group freed = group;
    MPI_Group_free(&group);
    BAD(GROUP, "MPI_Group_rank|group = 0x|freed", MPI_Group_rank(freed, &n));
}

/* A message longer than its receive: an error with a status, what fits arrives, the next is fine. */
static void truncated(void)
{
    static int out[10000], in[10000];
    for (int i = 0; i < 10000; i++) out[i] = i;
    for (int n = 10; n <= 10000; n *= 10) {
        for (int way = 0; way < 3; way++) {
            MPI_Status status = {0};
            MPI_Request request;
            int room = n / 2, got;
            if (rank == 0) {
                MPI_Send(out, n, MPI_INT, 1, 4, W);
                MPI_Send(out, n, MPI_INT, 1, 5, W);
                continue;
            }
            memset(in, 0xff, sizeof in);
            if (way == 0) {
                BAD(TRUNCATE, "MPI_Recv|MPI_COMM_WORLD|rank 0|tag 4",
                    MPI_Recv(in, room, MPI_INT, 0, 4, W, &status));
            } else if (way == 1) {
                MPI_Irecv(in, room, MPI_INT, MPI_ANY_SOURCE, 4, W, &request);
                BAD(TRUNCATE, "MPI_Wait|MPI_COMM_WORLD|rank 0|tag 4", MPI_Wait(&request, &status));
                CHECK(request == MPI_REQUEST_NULL);
            } else {
                MPI_Irecv(in, room, MPI_INT, 0, 4, W, &request);
                got = MPI_Waitall(1, &request, &status);
                CHECK(got == MPI_ERR_IN_STATUS, "%d", got);
                BAD(TRUNCATE, "MPI_Waitall on MPI_COMM_WORLD|array_of_requests[0]|tag 4",
                    status.MPI_ERROR);
            }
            CHECK(status.MPI_SOURCE == 0 && status.MPI_TAG == 4, "way %d, %d", way, status.MPI_TAG);
            for (int i = room; i < 10000; i++) CHECK(in[i] == -1, "written behind the buffer");
            MPI_Recv(in, n, MPI_INT, 0, MPI_ANY_TAG, W, &status);
            MPI_Get_count(&status, MPI_INT, &got);
            CHECK(got == n && in[n - 1] == n - 1 && status.MPI_TAG == 5, "the next message");
        }
    }
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    messages();
    works();
    handles();
    works();
    truncated();
    works();
    return end();
}
