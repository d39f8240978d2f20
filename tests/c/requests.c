// ranks: 2
// env: | WEFT_PROGRESS=handover
// says: correct
//
// Looking at requests without ending them (MPI 5.0, section 3.7.6): of one, of all, of any, of some.
#include "check.h"

#define WORLD MPI_COMM_WORLD
enum { N = 4, NOTHING = -5 };

static int data[N], flag, index_, done, indices[N];
static MPI_Request requests[N];
static MPI_Status status, statuses[N];

static void post(void)
{
    for (int i = 0; i < N; i++) {
        data[i] = NOTHING;
        MPI_Irecv(&data[i], 1, MPI_INT, 1, i, WORLD, &requests[i]);
    }
}

/* Rank 1 sends the messages from `first` to `last`, and then that it has sent them. */
static void go(int first, int last)
{
    int range[2] = {first, last};
    MPI_Send(range, 2, MPI_INT, 1, 99, WORLD);
    MPI_Recv(NULL, 0, MPI_BYTE, 1, 100, WORLD, MPI_STATUS_IGNORE);
}

static void serve(int times)
{
    while (times--) {
        int range[2];
        MPI_Recv(range, 2, MPI_INT, 0, 99, WORLD, MPI_STATUS_IGNORE);
        for (int i = range[0]; i <= range[1]; i++) {
            int value = 10 * i;
            MPI_Send(&value, 1, MPI_INT, 0, i, WORLD);
        }
        MPI_Send(NULL, 0, MPI_BYTE, 0, 100, WORLD);
    }
}

/* The message i has come, by this status. */
static void is(int i, const MPI_Status *s)
{
    int count = NOTHING;
    MPI_Get_count(s, MPI_INT, &count);
    CHECK(s->MPI_SOURCE == 1 && s->MPI_TAG == i && count == 1, "message %d: from %d, tag %d, %d elements",
          i, s->MPI_SOURCE, s->MPI_TAG, count);
}

static void still_there(void)
{
    for (int i = 0; i < N; i++) CHECK(requests[i] != MPI_REQUEST_NULL, "request %d was freed", i);
}

static void end_all(void)
{
    MPI_Waitall(N, requests, statuses);
    for (int i = 0; i < N; i++) {
        is(i, &statuses[i]);
        CHECK(data[i] == 10 * i && requests[i] == MPI_REQUEST_NULL);
    }
}

static void of_all(void)
{
    post();
    flag = NOTHING;
    MPI_Request_get_status_all(N, requests, &flag, statuses);
    CHECK(flag == 0);
    go(0, 2);
    flag = NOTHING;
    MPI_Request_get_status_all(N, requests, &flag, MPI_STATUSES_IGNORE);
    CHECK(flag == 0);
    go(3, 3);
    for (int times = 0; times < 2; times++) {
        flag = 0;
        memset(statuses, 0x55, sizeof statuses);
        while (!flag) MPI_Request_get_status_all(N, requests, &flag, statuses);
        for (int i = 0; i < N; i++) is(i, &statuses[i]);
        still_there();
    }
    end_all();
    flag = 0;
    MPI_Request_get_status_all(N, requests, &flag, statuses);
    CHECK(flag == 1 && statuses[2].MPI_SOURCE == MPI_ANY_SOURCE && statuses[2].MPI_TAG == MPI_ANY_TAG);
}

static void of_any(void)
{
    post();
    flag = index_ = NOTHING;
    MPI_Request_get_status_any(N, requests, &index_, &flag, &status);
    CHECK(flag == 0 && index_ == MPI_UNDEFINED, "flag %d, index %d", flag, index_);
    go(2, 2);
    for (int times = 0; times < 2; times++) {
        flag = 0, index_ = NOTHING;
        while (!flag) MPI_Request_get_status_any(N, requests, &index_, &flag, &status);
        CHECK(index_ == 2, "index %d", index_);
        is(2, &status);
        still_there();
    }
    go(0, 1), go(3, 3);
    end_all();
    flag = 0, index_ = NOTHING;
    MPI_Request_get_status_any(N, requests, &index_, &flag, &status);
    CHECK(flag == 1 && index_ == MPI_UNDEFINED);
}

static void of_some(void)
{
    post();
    done = NOTHING;
    MPI_Request_get_status_some(N, requests, &done, indices, statuses);
    CHECK(done == 0, "%d are over", done);
    go(1, 2);
    for (int times = 0; times < 2; times++) {
        done = 0;
        while (done < 2) MPI_Request_get_status_some(N, requests, &done, indices, statuses);
        CHECK(done == 2 && indices[0] + indices[1] == 3, "%d are over", done);
        is(indices[0], &statuses[0]), is(indices[1], &statuses[1]);
        still_there();
    }
    go(0, 0), go(3, 3);
    end_all();
    done = NOTHING;
    MPI_Request_get_status_some(N, requests, &done, indices, statuses);
    CHECK(done == MPI_UNDEFINED, "%d are over", done);
}

static void of_one(void)
{
    post();
    flag = NOTHING;
    MPI_Request_get_status(requests[3], &flag, &status);
    CHECK(flag == 0);
    go(0, 3);
    for (flag = 0; !flag;) MPI_Request_get_status(requests[3], &flag, &status);
    is(3, &status);
    still_there();
    end_all();
    flag = 0;
    MPI_Request_get_status(MPI_REQUEST_NULL, &flag, &status);
    CHECK(flag == 1 && status.MPI_SOURCE == MPI_ANY_SOURCE);
}

static void mistakes(void)
{
    int class;
    MPI_Comm_set_errhandler(WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
#define REFUSED(call, wanted)                                                              \
    do {                                                                                   \
        MPI_Error_class(call, &class);                                                     \
        CHECK(class == wanted, "class %d, expected " #wanted, class);                      \
    } while (0)
    requests[0] = (MPI_Request)0xdeadbeef;
    REFUSED(MPI_Request_get_status(requests[0], &flag, &status), MPI_ERR_REQUEST);
    REFUSED(MPI_Request_get_status_all(1, requests, &flag, statuses), MPI_ERR_REQUEST);
    REFUSED(MPI_Request_get_status_any(1, requests, &index_, &flag, &status), MPI_ERR_REQUEST);
    REFUSED(MPI_Request_get_status_some(1, requests, &done, indices, statuses), MPI_ERR_REQUEST);
    requests[0] = MPI_REQUEST_NULL;
    REFUSED(MPI_Request_get_status_all(1, requests, NULL, statuses), MPI_ERR_ARG);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    if (rank == 0) of_all(), of_any(), of_some(), of_one();
    if (rank == 1) serve(2 + 3 + 3 + 1);
    mistakes();
    return end();
}
