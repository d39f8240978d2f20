// ranks: 1 2
// says: correct
// env: | WEFT_CMA=0
//
// One error has one owner by every way to it (MPI 5.0, section 9.3): which handler is called, with which
// object, with which code, and how often. An error without an object goes to MPI_COMM_WORLD's handler
// while nobody has set MPI_COMM_SELF's.
#include "check.h"

enum { NOBODY, COMM, WIN, FILES, SESSION };

static struct {
    int kind, calls, code;
    uintptr_t handle;
} heard;

static void hear(int kind, uintptr_t handle, int code)
{
    heard.kind = kind, heard.handle = handle, heard.code = code;
    heard.calls++;
}
static void by_comm(MPI_Comm *comm, int *code, ...) { hear(COMM, (uintptr_t)*comm, *code); }
static void by_win(MPI_Win *win, int *code, ...) { hear(WIN, (uintptr_t)*win, *code); }
static void by_file(MPI_File *file, int *code, ...) { hear(FILES, (uintptr_t)*file, *code); }
static void by_session(MPI_Session *s, int *code, ...) { hear(SESSION, (uintptr_t)*s, *code); }

/* The call failed with this class, and this object alone was told, once, of the code that came back. */
static void owned(int line, int code, int class, int kind, const void *handle)
{
    char text[MPI_MAX_ERROR_STRING];
    int length;
    MPI_Error_string(code, text, &length);
    CHECK(heard.calls == 1, "line %d: %d calls: %s", line, heard.calls, text);
    CHECK(class_of(code) == class, "line %d: %s", line, text);
    CHECK(heard.kind == kind && heard.handle == (uintptr_t)handle, "line %d: kind %d, %#lx: %s", line,
          heard.kind, (long)heard.handle, text);
    CHECK(heard.code == code, "line %d: %d and %d", line, heard.code, code);
    memset(&heard, 0, sizeof heard);
}
#define OWNED(class, kind, handle, call) owned(__LINE__, call, MPI_ERR_##class, kind, handle)

static int out[4000], in[4000];
static MPI_Comm c;
static MPI_Datatype gaps;

/* A message of `n` ints to oneself, of which half is to be received. */
static void send(int n)
{
    MPI_Request request;
    MPI_Isend(out, n, MPI_INT, rank, 1, c, &request);
    MPI_Request_free(&request);
}

enum { WAIT, TEST, WAITANY, TESTANY, WAITALL, TESTALL, WAITSOME, TESTSOME, ENDS };

/* Ends a request whose error belongs to `c`, by each function that can. */
static void end_it(int line, int how, MPI_Request request, const void *owner)
{
    MPI_Status status, two[2] = {{0}, {0}};
    MPI_Request pair[2] = {MPI_REQUEST_NULL, request};
    int flag = 0, index, n = 0, places[2], code = 0;
    switch (how) {
    case WAIT: code = MPI_Wait(&request, &status); break;
    case TEST:
        while (!flag) code = MPI_Test(&request, &flag, &status);
        break;
    case WAITANY:
        code = MPI_Waitany(2, pair, &index, &status);
        CHECK(index == 1);
        break;
    case TESTANY:
        while (!flag) code = MPI_Testany(2, pair, &index, &flag, &status);
        break;
    case WAITALL: code = MPI_Waitall(2, pair, two); break;
    case TESTALL:
        while (!flag) code = MPI_Testall(2, pair, &flag, two);
        break;
    case WAITSOME: code = MPI_Waitsome(2, pair, &n, places, two); break;
    case TESTSOME:
        while (!n) code = MPI_Testsome(2, pair, &n, places, two);
    }
    if (how >= WAITALL) {
        /* The handler hears the code that is in the status (section 9.3.1). */
        CHECK(code == MPI_ERR_IN_STATUS, "line %d, way %d: %d", line, how, code);
        code = two[how <= TESTALL].MPI_ERROR;
    }
    owned(line, code, MPI_ERR_TRUNCATE, COMM, owner);
}

static void received_too_little(void)
{
    MPI_Request request, pair[2];
    MPI_Message message;
    MPI_Status status;
    int flag;
    for (int n = 4; n <= 4000; n *= 10) {
        int half = n / 2;
        send(n);
        OWNED(TRUNCATE, COMM, c, MPI_Recv(in, half, MPI_INT, rank, 1, c, &status));
        CHECK(status.MPI_SOURCE == rank && status.MPI_TAG == 1);
        send(n);
        OWNED(TRUNCATE, COMM, c, MPI_Recv(in, 1, gaps, MPI_ANY_SOURCE, MPI_ANY_TAG, c, &status));
        send(n);
        MPI_Mprobe(rank, 1, c, &message, &status);
        OWNED(TRUNCATE, COMM, c, MPI_Mrecv(in, half, MPI_INT, &message, &status));
        CHECK(message == MPI_MESSAGE_NULL);
        OWNED(TRUNCATE, COMM, c,
              MPI_Sendrecv(out, n, MPI_INT, rank, 1, in, half, MPI_INT, rank, 1, c, &status));
        for (int how = 0; how < ENDS; how++) {
            MPI_Irecv(in, half, MPI_INT, rank, 1, c, &request);
            send(n);
            end_it(__LINE__, how, request, c);

            send(n);
            do MPI_Improbe(rank, 1, c, &flag, &message, &status);
            while (!flag);
            MPI_Imrecv(in, half, MPI_INT, &message, &request);
            end_it(__LINE__, how, request, c);

            MPI_Recv_init(in, half, MPI_INT, rank, 1, c, &request);
            for (int again = 0; again < 2; again++) {
                MPI_Start(&request);
                send(n);
                end_it(__LINE__, how, request, c);
            }
            MPI_Request_free(&request);

            MPI_Isendrecv(out, n, MPI_INT, rank, 1, in, half, MPI_INT, rank, 1, c, &request);
            end_it(__LINE__, how, request, c);
        }
        /* Two that fail in one call: the handler is called once. */
        for (int i = 0; i < 2; i++) MPI_Irecv(in + 2000 * i, half, MPI_INT, rank, 1, c, &pair[i]);
        send(n), send(n);
        CHECK(MPI_Waitall(2, pair, MPI_STATUSES_IGNORE) == MPI_ERR_IN_STATUS && heard.calls == 1);
        owned(__LINE__, heard.code, MPI_ERR_TRUNCATE, COMM, c);
    }
}

/* The same by operations of more than one message. */
static void others_received_too_little(void)
{
    for (int how = 0; how < ENDS; how++) {
        MPI_Request pair[2];
        MPI_Psend_init(out, 2, 4, MPI_INT, rank, 1, c, MPI_INFO_NULL, &pair[0]);
        MPI_Precv_init(in, 2, 2, MPI_INT, rank, 1, c, MPI_INFO_NULL, &pair[1]);
        MPI_Startall(2, pair);
        MPI_Pready_range(0, 1, pair[0]);
        end_it(__LINE__, how, pair[1], c);
        MPI_Wait(&pair[0], MPI_STATUS_IGNORE);
        MPI_Request_free(&pair[0]), MPI_Request_free(&pair[1]);
        /* The last rank expects less than the root sends. */
        int expected = rank == size - 1 && size > 1;
        MPI_Ibcast(out, expected ? 2 : 4, MPI_INT, 0, c, &pair[0]);
        MPI_Bcast_init(out, expected ? 2 : 4, MPI_INT, 0, c, MPI_INFO_NULL, &pair[1]);
        MPI_Start(&pair[1]);
        for (int i = 0; i < 2; i++) {
            if (expected) end_it(__LINE__, how, pair[i], c);
            else MPI_Wait(&pair[i], MPI_STATUS_IGNORE);
        }
        MPI_Request_free(&pair[1]);
        if (expected) OWNED(TRUNCATE, COMM, c, MPI_Bcast(out, 2, MPI_INT, 0, c));
        else MPI_Bcast(out, 4, MPI_INT, 0, c);
    }
    if (size == 1) OWNED(TRUNCATE, COMM, c, MPI_Allgather(out, 4, MPI_INT, in, 2, MPI_INT, c));
}

/* The communicator has lost its handle, but not its handler. */
static void freed(void)
{
    MPI_Errhandler handler;
    MPI_Comm kept = c, owner = MPI_COMM_NULL;
    for (int how = 0; how < ENDS; how++) {
        MPI_Request request;
        MPI_Message message;
        MPI_Status status;
        MPI_Comm_dup(kept, &c);
        MPI_Comm_create_errhandler(by_comm, &handler);
        MPI_Comm_set_errhandler(c, handler);
        MPI_Irecv(in, 1, MPI_INT, rank, 1, c, &request);
        send(2), send(2);
        MPI_Mprobe(rank, 1, c, &message, &status);
        MPI_Comm_free(&c);
        MPI_Errhandler_free(&handler);
        end_it(__LINE__, how, request, owner);
        OWNED(TRUNCATE, COMM, owner, MPI_Mrecv(in, 1, MPI_INT, &message, &status));
    }
    c = kept;
}

/* Calls with nothing but a request or a message, used wrongly. */
static void misused(void)
{
    MPI_Request requests[2], request;
    MPI_Message message, same;
    MPI_Status status;
    int flag;
    MPI_Irecv(in, 1, MPI_INT, rank, 1, c, &request);
    OWNED(REQUEST, COMM, c, MPI_Start(&request));
    OWNED(REQUEST, COMM, c, MPI_Pready(0, request));
    OWNED(REQUEST, COMM, c, MPI_Pready_range(0, 0, request));
    OWNED(REQUEST, COMM, c, MPI_Pready_list(0, NULL, request));
    OWNED(REQUEST, COMM, c, MPI_Parrived(request, 0, &flag));
    OWNED(REQUEST, COMM, c, MPI_Grequest_complete(request));
    OWNED(ARG, COMM, c, MPI_Test(&request, NULL, &status));
    OWNED(ARG, COMM, c, MPI_Request_get_status(request, NULL, &status));
    MPI_Send_init(out, 1, MPI_INT, rank, 1, c, &requests[0]);
    OWNED(REQUEST, COMM, c, MPI_Cancel(&requests[0]));
    requests[1] = request;
    OWNED(REQUEST, COMM, c, MPI_Startall(2, requests));
    MPI_Wait(&request, &status), MPI_Wait(&requests[0], &status);
    MPI_Request_free(&requests[0]);
    MPI_Ibarrier(c, &request);
    OWNED(REQUEST, COMM, c, MPI_Cancel(&request));
    MPI_Wait(&request, &status);
    MPI_Psend_init(out, 2, 1, MPI_INT, rank, 1, c, MPI_INFO_NULL, &requests[0]);
    MPI_Precv_init(in, 2, 1, MPI_INT, rank, 1, c, MPI_INFO_NULL, &requests[1]);
    MPI_Startall(2, requests);
    OWNED(REQUEST, COMM, c, MPI_Request_free(&requests[0]));
    OWNED(ARG, COMM, c, MPI_Pready(7, requests[0]));
    MPI_Pready_range(0, 1, requests[0]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    MPI_Request_free(&requests[0]), MPI_Request_free(&requests[1]);
    send(1);
    MPI_Mprobe(rank, 1, c, &message, &status);
    same = message;
    OWNED(COUNT, COMM, c, MPI_Mrecv(in, -1, MPI_INT, &message, &status));
    OWNED(COUNT, COMM, c, MPI_Imrecv(in, -1, MPI_INT, &message, &request));
    CHECK(message == same);
    MPI_Mrecv(in, 1, MPI_INT, &message, &status);
}

/* Arguments of calls that have a communicator. */
static void arguments(void)
{
    MPI_Request request;
    MPI_Comm none;
    MPI_Win win;
    int n, color = -77;
    OWNED(RANK, COMM, c, MPI_Send(out, 1, MPI_INT, 99, 1, c));
    OWNED(TYPE, COMM, c, MPI_Isend(out, 1, MPI_DATATYPE_NULL, 0, 1, c, &request));
    OWNED(ROOT, COMM, c, MPI_Bcast(in, 1, MPI_INT, 99, c));
    OWNED(ROOT, COMM, c, MPI_Ibcast(in, 1, MPI_INT, 99, c, &request));
    OWNED(ROOT, COMM, c, MPI_Bcast_init(in, 1, MPI_INT, 99, c, MPI_INFO_NULL, &request));
    OWNED(OP, COMM, c, MPI_Iallreduce(out, in, 1, MPI_INT, MPI_OP_NULL, c, &request));
    OWNED(ARG, COMM, c, MPI_Comm_split(c, color, 0, &none));
    OWNED(GROUP, COMM, c, MPI_Comm_create(c, MPI_GROUP_NULL, &none));
    OWNED(ARG, COMM, c, MPI_Comm_size(c, NULL));
    OWNED(KEYVAL, COMM, c, MPI_Comm_delete_attr(c, MPI_KEYVAL_INVALID));
    OWNED(SIZE, COMM, c, MPI_Win_create(NULL, -1, 1, MPI_INFO_NULL, c, &win));
    OWNED(TOPOLOGY, COMM, c, MPI_Cartdim_get(c, &n));
    OWNED(INFO, COMM, c, MPI_Comm_set_info(c, MPI_INFO_NULL));
    OWNED(NO_SUCH_FILE, FILES, MPI_FILE_NULL,
          MPI_File_open(c, "none", MPI_MODE_RDONLY, MPI_INFO_NULL, &(MPI_File){MPI_FILE_NULL}));
}

static void windows(void)
{
    MPI_Errhandler handler;
    MPI_Win win, old;
    MPI_Request request;
    int *memory, n = 1;
    MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, c, &memory, &win);
    MPI_Win_create_errhandler(by_win, &handler);
    MPI_Win_set_errhandler(win, handler);
    MPI_Errhandler_free(&handler);
    OWNED(RMA_SYNC, WIN, win, MPI_Put(&n, 1, MPI_INT, rank, 0, 1, MPI_INT, win));
    OWNED(RMA_SYNC, WIN, win, MPI_Win_unlock(rank, win));
    OWNED(LOCKTYPE, WIN, win, MPI_Win_lock(99, rank, 0, win));
    OWNED(KEYVAL, WIN, win, MPI_Win_delete_attr(win, MPI_KEYVAL_INVALID));
    MPI_Win_lock_all(0, win);
    OWNED(RMA_RANGE, WIN, win, MPI_Put(&n, 1, MPI_INT, rank, 7, 1, MPI_INT, win));
    OWNED(RMA_RANGE, WIN, win, MPI_Rput(&n, 1, MPI_INT, rank, 7, 1, MPI_INT, win, &request));
    OWNED(RMA_RANGE, WIN, win, MPI_Rget(&n, 1, MPI_INT, rank, 7, 1, MPI_INT, win, &request));
    OWNED(OP, WIN, win, MPI_Accumulate(&n, 1, MPI_INT, rank, 0, 1, MPI_INT, MPI_NO_OP, win));
    OWNED(RANK, WIN, win, MPI_Fetch_and_op(&n, &n, MPI_INT, 99, 0, MPI_SUM, win));
    MPI_Rput(&n, 1, MPI_INT, rank, 0, 1, MPI_INT, win, &request);
    OWNED(REQUEST, WIN, win, MPI_Start(&request));
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Win_unlock_all(win);
    old = win;
    MPI_Win_free(&win);
    OWNED(WIN, COMM, MPI_COMM_WORLD, MPI_Win_fence(0, old));
}

static void sessions(void)
{
    MPI_Errhandler handler;
    MPI_Session session, old;
    MPI_Group group;
    int n;
    MPI_Session_create_errhandler(by_session, &handler);
    MPI_Session_init(MPI_INFO_NULL, handler, &session);
    MPI_Errhandler_free(&handler);
    OWNED(ARG, SESSION, session, MPI_Group_from_session_pset(session, "nobody", &group));
    OWNED(ARG, SESSION, session, MPI_Session_get_num_psets(session, MPI_INFO_NULL, NULL));
    OWNED(BUFFER, SESSION, session, MPI_Session_flush_buffer(session));
    old = session;
    MPI_Session_finalize(&session);
    OWNED(SESSION, COMM, MPI_COMM_WORLD, MPI_Session_get_num_psets(old, MPI_INFO_NULL, &n));
}

/* Errors without an object. */
static void without(const void *owner)
{
    MPI_Comm_copy_attr_function *copy = MPI_COMM_NULL_COPY_FN;
    MPI_Request stray = (MPI_Request)0x77, strays[2] = {MPI_REQUEST_NULL, stray};
    MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Datatype type = MPI_DATATYPE_NULL;
    MPI_Group group = MPI_GROUP_NULL;
    MPI_Comm none = MPI_COMM_NULL;
    MPI_Info info = MPI_INFO_NULL;
    MPI_Win win = MPI_WIN_NULL;
    MPI_Op op = MPI_OP_NULL;
    int n = 0, key = MPI_KEYVAL_INVALID;
    void *memory;
#define WITHOUT(class, call) OWNED(class, COMM, owner, call)
    WITHOUT(TYPE, MPI_Type_size(MPI_DATATYPE_NULL, &n));
    WITHOUT(TYPE, MPI_Type_commit(&type));
    WITHOUT(TYPE, MPI_Type_free(&type));
    WITHOUT(COUNT, MPI_Type_contiguous(-1, MPI_INT, &type));
    WITHOUT(GROUP, MPI_Group_size(group, &n));
    WITHOUT(GROUP, MPI_Group_free(&group));
    WITHOUT(OP, MPI_Op_free(&op));
    WITHOUT(OP, MPI_Op_commutative(op, &n));
    WITHOUT(INFO, MPI_Info_get_nkeys(info, &n));
    WITHOUT(INFO, MPI_Info_free(&info));
    WITHOUT(KEYVAL, MPI_Comm_free_keyval(&key));
    WITHOUT(KEYVAL, MPI_Type_free_keyval(&key));
    WITHOUT(KEYVAL, MPI_Win_free_keyval(&key));
    WITHOUT(ARG, MPI_Comm_create_keyval(copy, MPI_COMM_NULL_DELETE_FN, NULL, NULL));
    WITHOUT(ERRHANDLER, MPI_Errhandler_free(&handler));
    WITHOUT(COMM, MPI_Barrier(none));
    WITHOUT(COMM, MPI_Comm_free(&none));
    WITHOUT(COMM, MPI_Comm_size((MPI_Comm)0x1234567, &n));
    WITHOUT(COMM, MPI_Comm_get_errhandler(none, &handler));
    WITHOUT(COMM, MPI_Comm_call_errhandler(none, MPI_ERR_OTHER));
    WITHOUT(WIN, MPI_Win_fence(0, win));
    WITHOUT(WIN, MPI_Win_free(&win));
    WITHOUT(SESSION, MPI_Session_finalize(&(MPI_Session){MPI_SESSION_NULL}));
    WITHOUT(REQUEST, MPI_Wait(&stray, MPI_STATUS_IGNORE));
    WITHOUT(REQUEST, MPI_Waitall(2, strays, MPI_STATUSES_IGNORE));
    WITHOUT(REQUEST, MPI_Start(&stray));
    WITHOUT(REQUEST, MPI_Mrecv(in, 1, MPI_INT, &message, MPI_STATUS_IGNORE));
    WITHOUT(ARG, MPI_Error_class(-1, &n));
    WITHOUT(ARG, MPI_Add_error_string(MPI_ERR_ARG, "mine"));
    WITHOUT(BASE, MPI_Free_mem(&n));
    WITHOUT(ARG, MPI_Alloc_mem(-1, MPI_INFO_NULL, &memory));
    WITHOUT(ARG, MPI_Get_address(&n, NULL));
    WITHOUT(DIMS, MPI_Dims_create(5, 1, (int[]){3}));
    WITHOUT(OTHER, MPI_Init(NULL, NULL));
    WITHOUT(BUFFER, MPI_Buffer_detach(&memory, &n));
}

int main(int argc, char **argv)
{
    MPI_Errhandler comm_handler, file_handler;
    begin(&argc, &argv);
    MPI_Comm_create_errhandler(by_comm, &comm_handler);
    MPI_File_create_errhandler(by_file, &file_handler);
    MPI_File_set_errhandler(MPI_FILE_NULL, file_handler);
    MPI_Errhandler same;
    MPI_File_get_errhandler(MPI_FILE_NULL, &same);
    CHECK(same == file_handler);
    MPI_Errhandler_free(&same);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, comm_handler);
    MPI_Comm_dup(MPI_COMM_WORLD, &c);
    MPI_Type_vector(1, 1, 2, MPI_INT, &gaps);
    MPI_Type_commit(&gaps);
    received_too_little();
    others_received_too_little();
    freed();
    misused();
    arguments();
    windows();
    sessions();
    without(MPI_COMM_WORLD);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, comm_handler);
    without(MPI_COMM_SELF);
    received_too_little();
    CHECK(heard.calls == 0);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    CHECK(class_of(MPI_Group_size(MPI_GROUP_NULL, &argc)) == MPI_ERR_GROUP && heard.calls == 0);
    MPI_Type_free(&gaps);
    MPI_Comm_free(&c);
    MPI_Errhandler_free(&comm_handler);
    MPI_Errhandler_free(&file_handler);
    return end();
}
