// ranks: 1
// says: correct
// env: | WEFT_LANES=0 | WEFT_LANES=1
//
// Handles that name no request, beside requests of all kinds, in every call that takes requests. Each call finds the error, with lanes and
// without them, and a call that ends one request at a time ends none. MPI_Waitany over requests of several lanes allocates no memory.
#include "check.h"

static long allocations;
extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
void *malloc(size_t n) { return allocations++, __libc_malloc(n); }
void *calloc(size_t n, size_t m) { return allocations++, __libc_calloc(n, m); }
void *realloc(void *p, size_t n) { return allocations++, __libc_realloc(p, n); }

enum { COMMS = 4, LONG = 70 };

static MPI_Comm comms[COMMS];
static int in, out = 7;

/* A handle whose request has ended. */
static MPI_Request stale(MPI_Comm comm)
{
    MPI_Request both[2], copy;
    MPI_Irecv(&in, 1, MPI_INT, 0, 1, comm, &both[0]);
    copy = both[0];
    MPI_Isend(&out, 1, MPI_INT, 0, 1, comm, &both[1]);
    MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
    return copy;
}

enum { STALE_FIRST, STALE_SECOND, STALE_WORLD, NO_LANE, NO_INDEX, SMALL, INVALID_KINDS };

static MPI_Request invalid(int kind)
{
    switch (kind) {
    case STALE_FIRST: return stale(comms[0]);
    case STALE_SECOND: return stale(comms[1]);
    case STALE_WORLD: return stale(MPI_COMM_WORLD);
    case NO_LANE: return (MPI_Request)0xe000001000001007;
    case NO_INDEX: return (MPI_Request)((uintptr_t)stale(comms[0]) | 0xfffff000);
    default: return (MPI_Request)0x9;
    }
}

enum { COMPLETE_FIRST, COMPLETE_SECOND, COMPLETE_WORLD, SENT, STARTED, OPEN, INACTIVE, NONE, GOOD_KINDS };

/* A request of a kind. Its message has arrived, unless the request is open or inactive. */
static MPI_Request good(int kind)
{
    static const int of[] = {0, 1, -1};
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Comm comm = kind <= COMPLETE_WORLD && of[kind] < 0 ? MPI_COMM_WORLD : comms[kind == COMPLETE_SECOND];
    int flag = 0;
    in = -1;
    switch (kind) {
    case SENT: MPI_Isend(&out, 1, MPI_INT, 0, 2, comm, &request); break;
    case STARTED:
    case INACTIVE:
        MPI_Recv_init(&in, 1, MPI_INT, 0, 2, comm, &request);
        if (kind == STARTED) MPI_Start(&request);
        break;
    case NONE: return request;
    default: MPI_Irecv(&in, 1, MPI_INT, 0, 2, comm, &request);
    }
    if (kind <= STARTED && kind != SENT) {
        MPI_Send(&out, 1, MPI_INT, 0, 2, comm);
        while (!flag) MPI_Request_get_status(request, &flag, MPI_STATUS_IGNORE);
    }
    return request;
}

/* Ends what `good` has made. The request may have ended already, if the call ends requests before it finds an error. */
static void end_good(int kind, MPI_Request request, int may_end, const char *call)
{
    if (kind == NONE) return;
    if (request == MPI_REQUEST_NULL) {
        CHECK(may_end, "%s has ended request %d", call, kind);
    } else {
        if (kind == OPEN) MPI_Send(&out, 1, MPI_INT, 0, 2, comms[0]);
        CHECK(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS, "%s, request %d", call, kind);
        if (kind == STARTED || kind == INACTIVE) {
            CHECK(request != MPI_REQUEST_NULL);
            MPI_Request_free(&request);
        }
    }
    if (kind == SENT) MPI_Recv(&in, 1, MPI_INT, 0, 2, comms[0], MPI_STATUS_IGNORE);
    CHECK(kind == INACTIVE || in == out, "%s, request %d: %d", call, kind, in);
}

enum { WAITALL, TESTALL, WAITANY, TESTANY, WAITSOME, TESTSOME, STATUS_ALL, STATUS_ANY, STATUS_SOME, STARTALL, CALLS };

static const char *names[] = {"Waitall", "Testall", "Waitany", "Testany", "Waitsome", "Testsome",
                              "Request_get_status_all", "Request_get_status_any", "Request_get_status_some", "Startall"};

static int called(int call, int n, MPI_Request *array)
{
    static int flag, index, indices[LONG];
    static MPI_Status statuses[LONG];
    switch (call) {
    case WAITALL: return MPI_Waitall(n, array, statuses);
    case TESTALL: return MPI_Testall(n, array, &flag, statuses);
    case WAITANY: return MPI_Waitany(n, array, &index, statuses);
    case TESTANY: return MPI_Testany(n, array, &index, &flag, statuses);
    case WAITSOME: return MPI_Waitsome(n, array, &index, indices, statuses);
    case TESTSOME: return MPI_Testsome(n, array, &index, indices, statuses);
    case STATUS_ALL: return MPI_Request_get_status_all(n, array, &flag, statuses);
    case STATUS_ANY: return MPI_Request_get_status_any(n, array, &index, &flag, statuses);
    case STATUS_SOME: return MPI_Request_get_status_some(n, array, &index, indices, statuses);
    default: return MPI_Startall(n, array);
    }
}

/* An invalid handle before or behind a good request, and null requests around both in a long array. */
static void arrays(void)
{
    for (int call = 0; call < CALLS; call++)
        for (int wrong = 0; wrong < INVALID_KINDS; wrong++)
            for (int kind = 0; kind < GOOD_KINDS; kind++)
                for (int shape = 0; shape < 4; shape++) {
                    /* A start of any other request is an error by itself. */
                    if (call == STARTALL && (kind != INACTIVE || shape >= 2)) continue;
                    int n = shape < 2 ? 2 : LONG, first = shape % 2, at = n == 2 ? 0 : 5, other = n == 2 ? 1 : LONG - 3;
                    MPI_Request array[LONG], handle = invalid(wrong);
                    for (int i = 0; i < LONG; i++) array[i] = MPI_REQUEST_NULL;
                    MPI_Request *own = &array[first ? at : other];
                    *own = good(kind);
                    array[first ? other : at] = handle;
                    int code = called(call, n, array);
                    CHECK(class_of(code) == MPI_ERR_REQUEST, "MPI_%s with handle %d beside request %d: %d", names[call], wrong, kind, code);
                    CHECK(array[first ? other : at] == handle);
                    end_good(kind, *own, first && call == WAITALL, names[call]);
                }
}

static void single(void)
{
    for (int wrong = 0; wrong < INVALID_KINDS; wrong++) {
        MPI_Request handle = invalid(wrong), again = handle;
        int flag;
        FAILS(MPI_Wait(&again, MPI_STATUS_IGNORE), MPI_ERR_REQUEST);
        FAILS(MPI_Test(&again, &flag, MPI_STATUS_IGNORE), MPI_ERR_REQUEST);
        FAILS(MPI_Request_get_status(again, &flag, MPI_STATUS_IGNORE), MPI_ERR_REQUEST);
        FAILS(MPI_Cancel(&again), MPI_ERR_REQUEST);
        FAILS(MPI_Start(&again), MPI_ERR_REQUEST);
        FAILS(MPI_Pready(0, again), MPI_ERR_REQUEST);
        FAILS(MPI_Parrived(again, 0, &flag), MPI_ERR_REQUEST);
        FAILS(MPI_Request_free(&again), MPI_ERR_REQUEST);
        CHECK(again == handle);
    }
}

/* Calls that persistent requests do not allow in their state. */
static void persistent(void)
{
    MPI_Request request = good(INACTIVE), pair[2] = {request, request}, once = good(OPEN);
    MPI_Status status;
    int flag = 0;
    FAILS(MPI_Cancel(&request), MPI_ERR_REQUEST);
    FAILS(MPI_Pready(0, request), MPI_ERR_REQUEST);
    FAILS(MPI_Start(&once), MPI_ERR_REQUEST);
    end_good(OPEN, once, 0, "Start");
    CHECK(MPI_Test(&request, &flag, &status) == MPI_SUCCESS && flag && status.MPI_SOURCE == MPI_ANY_SOURCE);
    CHECK(MPI_Waitall(2, pair, MPI_STATUSES_IGNORE) == MPI_SUCCESS && pair[0] == request);
    MPI_Waitany(2, pair, &flag, &status);
    CHECK(flag == MPI_UNDEFINED);
    FAILS(MPI_Startall(2, pair), MPI_ERR_REQUEST);
    FAILS(MPI_Start(&request), MPI_ERR_REQUEST);
    MPI_Cancel(&request);
    MPI_Wait(&request, &status);
    MPI_Test_cancelled(&status, &flag);
    CHECK(flag && request == pair[0]);
    /* The message is too long; the request can be started again. */
    int two[2] = {1, 2};
    MPI_Start(&request);
    MPI_Send(two, 2, MPI_INT, 0, 2, comms[0]);
    FAILS(MPI_Wait(&request, &status), MPI_ERR_TRUNCATE);
    CHECK(MPI_Start(&request) == MPI_SUCCESS);
    MPI_Request copy = request;
    MPI_Request_free(&request);
    CHECK(request == MPI_REQUEST_NULL);
    FAILS(MPI_Wait(&copy, &status), MPI_ERR_REQUEST);
    MPI_Send(&out, 1, MPI_INT, 0, 2, comms[0]);
    /* A communicator is freed before its requests, whose errors its handler still hears. */
    MPI_Comm brief;
    MPI_Comm_dup(comms[0], &brief);
    MPI_Recv_init(&in, 1, MPI_INT, MPI_ANY_SOURCE, 2, brief, &pair[0]);
    MPI_Send_init(two, 2, MPI_INT, 0, 2, brief, &pair[1]);
    MPI_Comm_free(&brief);
    for (int i = 0; i < 3; i++) {
        MPI_Startall(2, pair);
        FAILS(MPI_Wait(&pair[0], &status), MPI_ERR_TRUNCATE);
        CHECK(MPI_Wait(&pair[1], &status) == MPI_SUCCESS);
    }
    MPI_Request_free(&pair[0]);
    MPI_Request_free(&pair[1]);
}

/* Counts what MPI_Waitany allocates over requests of all communicators, of which some are persistent. */
static void waits_without_memory(void)
{
    for (int round = 0; round < 20; round++) {
        MPI_Request all[2 * COMMS], kept[2 * COMMS];
        int words[2 * COMMS];
        for (int i = 0; i < 2 * COMMS; i++) {
            words[i] = -1;
            kept[i] = MPI_REQUEST_NULL;
            if (i % 3 == 0) {
                MPI_Recv_init(&words[i], 1, MPI_INT, 0, i, comms[i % COMMS], &all[i]);
                MPI_Start(&all[i]);
                kept[i] = all[i];
            } else {
                MPI_Irecv(&words[i], 1, MPI_INT, 0, i, comms[i % COMMS], &all[i]);
            }
            int word = round + i;
            MPI_Send(&word, 1, MPI_INT, 0, i, comms[i % COMMS]);
        }
        long before = allocations;
        int seen = 0, index;
        for (int i = 0; i < 2 * COMMS; i++) {
            MPI_Waitany(2 * COMMS, all, &index, MPI_STATUS_IGNORE);
            CHECK(index >= 0 && index < 2 * COMMS && !(seen >> index & 1) && words[index] == round + index, "%d", index);
            seen |= 1 << index;
            CHECK(all[index] == kept[index]);
        }
        CHECK(round < 2 || allocations == before, "%ld allocations", allocations - before);
        MPI_Waitany(2 * COMMS, all, &index, MPI_STATUS_IGNORE);
        CHECK(index == MPI_UNDEFINED);
        for (int i = 0; i < 2 * COMMS; i++)
            if (all[i] != MPI_REQUEST_NULL) MPI_Request_free(&all[i]);
    }
}

/* Between two calls of MPI_Waitany on an array, other calls end a persistent request of the array, start it again, and replace another
   request. Only requests that are complete are reported, each with its own message. */
static void changes_between_waits(void)
{
    MPI_Request all[4];
    int words[4], index, flag, word;
    for (int round = 0; round < 4; round++) {
        for (int i = 0; i < 4; i++) {
            words[i] = -1;
            word = i;
            MPI_Recv_init(&words[i], 1, MPI_INT, 0, i, comms[i / 2], &all[i]);
            MPI_Start(&all[i]);
            MPI_Send(&word, 1, MPI_INT, 0, i, comms[i / 2]);
        }
        MPI_Waitany(4, all, &index, MPI_STATUS_IGNORE);
        CHECK(index >= 0 && words[index] == index);
        int again = (index + 1) % 4, other = (index + 2) % 4, last = (index + 3) % 4;
        MPI_Wait(&all[again], MPI_STATUS_IGNORE);
        MPI_Start(&all[again]);
        /* The request that is open now is not reported before its message comes. */
        MPI_Wait(&all[other], MPI_STATUS_IGNORE);
        MPI_Request_free(&all[other]);
        MPI_Irecv(&words[other], 1, MPI_INT, 0, 7, comms[0], &all[other]);
        MPI_Waitany(4, all, &index, MPI_STATUS_IGNORE);
        CHECK(index == last && words[last] == last, "%d for %d", index, last);
        MPI_Testany(4, all, &index, &flag, MPI_STATUS_IGNORE);
        CHECK(!flag, "%d", index);
        word = 70;
        MPI_Send(&word, 1, MPI_INT, 0, 7, comms[0]);
        MPI_Waitany(4, all, &index, MPI_STATUS_IGNORE);
        CHECK(index == other && words[other] == 70 && all[other] == MPI_REQUEST_NULL, "%d for %d", index, other);
        word = 80;
        MPI_Send(&word, 1, MPI_INT, 0, again, comms[again / 2]);
        MPI_Waitany(4, all, &index, MPI_STATUS_IGNORE);
        CHECK(index == again && words[again] == 80, "%d for %d", index, again);
        MPI_Waitany(4, all, &index, MPI_STATUS_IGNORE);
        CHECK(index == MPI_UNDEFINED);
        for (int i = 0; i < 4; i++)
            if (all[i] != MPI_REQUEST_NULL) MPI_Request_free(&all[i]);
    }
}

int main(int argc, char **argv)
{
    int level;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int i = 0; i < COMMS; i++) MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
    arrays();
    single();
    persistent();
    waits_without_memory();
    changes_between_waits();
    for (int i = 0; i < COMMS; i++) MPI_Comm_free(&comms[i]);
    return end();
}
