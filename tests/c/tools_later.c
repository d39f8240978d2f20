// ranks: 1 2 4
// says: correct
// env: WEFT_COPY_MODEL=generic | WEFT_COPY_MODEL=generic WEFT_STAGING=0 WEFT_ALLREDUCE=MPI-GB
//
// Control variables while MPI runs: each either may be written, as its description says, and then counts; or it is read
// at MPI_Init, and says that it can never be written again. After MPI_Finalize none can. The model says what is sent at once
// below a limit: a measured one may have that fetched.
#include "tools.h"

static MPI_T_pvar_session session;

/* All of them: written as they are, they take it or never will. */
static int sweep(int running)
{
    int count, writable = 0;
    OK(MPI_T_cvar_get_num(&count));
    for (int i = 0; i < count; i++) {
        char name[200], text[2000], data[8192] = "";
        int elements, bind, scope, lengths[] = {sizeof name, sizeof text};
        MPI_Datatype type;
        MPI_T_cvar_handle handle;
        OK(MPI_T_cvar_get_info(i, name, &lengths[0], NULL, &type, NULL, text, &lengths[1], &bind, &scope));
        CHECK(bind == MPI_T_BIND_NO_OBJECT, "%s", name);
        CHECK(scope == MPI_T_SCOPE_LOCAL || scope == MPI_T_SCOPE_ALL_EQ, "%s", name);
        int later = strstr(text, "May be written while MPI runs") != NULL;
        CHECK(later != (strstr(text, "Read at MPI_Init") != NULL), "%s: %s", name, text);
        OK(MPI_T_cvar_handle_alloc(i, NULL, &handle, &elements));
        OK(MPI_T_cvar_read(handle, data));
        int code = MPI_T_cvar_write(handle, data);
        CHECK(code == (later && running ? MPI_SUCCESS : MPI_T_ERR_CVAR_SET_NEVER), "%s: %d", name, code);
        if (later && running && type != MPI_CHAR) {
            char same[8192] = "", wrong[8];
            memset(wrong, 0x81, sizeof wrong); /* far below, or far above */
            IS(MPI_T_ERR_INVALID, MPI_T_cvar_write(handle, wrong));
            OK(MPI_T_cvar_read(handle, same));
            CHECK(!memcmp(same, data, 8), "%s: a wrong value changed it", name);
        }
        writable += code == MPI_SUCCESS;
        OK(MPI_T_cvar_handle_free(&handle));
    }
    return writable;
}

static void set_text(const char *name, const char *text)
{
    int room;
    MPI_T_cvar_handle handle = control(name, &room);
    OK(MPI_T_cvar_write(handle, text));
    OK(MPI_T_cvar_handle_free(&handle));
}

static int set(const char *name, number n)
{
    int room, word = (int)n;
    MPI_T_cvar_handle handle = control(name, &room);
    MPI_Datatype type;
    OK(MPI_T_cvar_get_info(cvar(name), NULL, NULL, NULL, &type, NULL, NULL, NULL, NULL, NULL));
    int code = MPI_T_cvar_write(handle, type == MPI_INT ? (void *)&word : (void *)&n);
    OK(MPI_T_cvar_handle_free(&handle));
    return code;
}

/* Messages that one allreduce sends here, blocking or not. */
static number messages(MPI_Comm comm, int blocking)
{
    MPI_T_pvar_handle sent = counter(session, "weft.p2p.sent_eager");
    MPI_Request request;
    int sum = -1;
    for (int i = 0; i < 2; i++) { /* the first one may send messages to set itself up */
        OK(MPI_T_pvar_reset(session, sent));
        if (blocking) {
            MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm);
        } else {
            MPI_Iallreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm, &request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
        CHECK(sum == size * (size - 1) / 2);
    }
    number n = value(session, sent);
    OK(MPI_T_pvar_handle_free(session, &sent));
    return n;
}

static void algorithms(void)
{
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    messages(comm, 0); /* its view for nonblocking ones is there */
    for (int round = 0; round < 2; round++) {
        set_text("WEFT_ALLREDUCE", "CENTRAL");
        for (int i = 0; i < 4; i++)
            CHECK(messages(i / 2 ? comm : MPI_COMM_WORLD, i % 2) == 0, "by memory: %d", i);
        set_text("WEFT_ALLREDUCE", "MPI-GB");
        for (int i = 0; i < 4; i++)
            CHECK((messages(i / 2 ? comm : MPI_COMM_WORLD, i % 2) > 0) == (size > 1), "by messages: %d", i);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Comm_free(&comm);
    int room;
    MPI_T_cvar_handle handle = control("WEFT_MAP", &room);
    IS(MPI_T_ERR_INVALID, MPI_T_cvar_write(handle, "no.such.map"));
    OK(MPI_T_cvar_write(handle, "none"));
    OK(MPI_T_cvar_write(handle, "auto"));
}

/* Sends so many bytes round; how many messages were sent at once. */
static number round_robin(int bytes)
{
    static char data[2][1 << 20];
    MPI_T_pvar_handle sent = counter(session, "weft.p2p.sent_eager");
    MPI_Sendrecv(data[0], bytes, MPI_CHAR, (rank + 1) % size, 1, data[1], bytes, MPI_CHAR,
                 (rank + size - 1) % size, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    number n = value(session, sent);
    OK(MPI_T_pvar_handle_free(session, &sent));
    return n;
}

static void limits(void)
{
    CHECK(round_robin(2000) == 1);
    OK(set("WEFT_EAGER", 1999));
    CHECK(round_robin(1999) == 1 && round_robin(2000) == 0);
    OK(set("WEFT_EAGER", 2000));
    CHECK(round_robin(2000) == 1);
    /* Payloads that are read, or written: where nothing is staged. */
    MPI_T_pvar_handle written = counter(session, "weft.p2p.received_written");
    int staging = getenv("WEFT_STAGING") == NULL;
    round_robin(1 << 19);
    CHECK(value(session, written) == 0);
    OK(set("WEFT_RENDEZVOUS", 1));
    round_robin(1 << 19);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(staging || value(session, written) > 0, "%llu", value(session, written));
    OK(set("WEFT_RENDEZVOUS", 0));
}

/* Rank 0 waits for the others, who are away for a while. */
static number sleeps(void)
{
    MPI_T_pvar_handle slept = counter(session, "weft.waiting.sleeps");
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_T_pvar_reset(session, slept));
    if (rank == 1) {
        double until = MPI_Wtime() + 0.05;
        while (MPI_Wtime() < until) {
        }
        MPI_Send(NULL, 0, MPI_INT, 0, 6, MPI_COMM_WORLD);
    } else if (rank == 0) {
        MPI_Recv(NULL, 0, MPI_INT, 1, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    number n = value(session, slept);
    OK(MPI_T_pvar_handle_free(session, &slept));
    return n;
}

static void waits(void)
{
    if (size != 2) return;
    OK(set("WEFT_SPIN_US", 0));
    number without = sleeps();
    CHECK(rank > 0 || without > 0);
    OK(set("WEFT_SPIN_US", 500));
}

/* Sizes of streams until there is one. */
static void streams(void)
{
    static char data[10000];
    MPI_T_pvar_handle small = counter(session, "weft.collective.stream_small");
    MPI_T_pvar_handle segmented = counter(session, "weft.collective.stream_segmented");
    MPI_T_pvar_handle blocks = counter(session, "weft.collective.stream_blocks");
    OK(set("WEFT_STREAM_RENDEZVOUS", 5000));
    OK(set("WEFT_STREAM_BLOCK", 4096));
    set_text("WEFT_BCAST", "FLAT");
    MPI_Barrier(MPI_COMM_WORLD); /* all have written them before one sends */
    MPI_Bcast(data, 4999, MPI_CHAR, 0, MPI_COMM_WORLD);
    CHECK(value(session, segmented) == (number)(rank == 0 ? size - 1 : 0), "%llu", value(session, segmented));
    MPI_Bcast(data, 9999, MPI_CHAR, 0, MPI_COMM_WORLD);
    CHECK(value(session, blocks) == (number)(rank == 0 ? size - 1 : 0), "%llu", value(session, blocks));
    CHECK(value(session, small) == 0);
    if (size > 1) IS(MPI_T_ERR_CVAR_SET_NEVER, set("WEFT_STREAM_RENDEZVOUS", 6000));
    set_text("WEFT_BCAST", "auto");
}

/* Windows that are made from then on work as the variable says. */
static void windows(void)
{
    int *memory, sum = 0;
    for (number fence = 0; fence < 5; fence++) {
        MPI_Win window;
        MPI_T_pvar_handle sent = counter(session, "weft.p2p.sent_eager");
        OK(set("WEFT_FENCE", fence));
        MPI_Win_allocate(sizeof *memory, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
        MPI_Win_fence(0, window);
        OK(MPI_T_pvar_reset(session, sent));
        MPI_Put(&rank, 1, MPI_INT, (rank + 1) % size, 0, 1, MPI_INT, window);
        MPI_Win_fence(0, window);
        CHECK(*memory == (rank + size - 1) % size, "%d", *memory);
        sum += fence == 0 && value(session, sent) > 0;
        MPI_Win_free(&window);
        OK(MPI_T_pvar_handle_free(session, &sent));
    }
    /* Operations of the first design are messages. */
    CHECK(sum == 1);
    OK(set("WEFT_FENCE", 4));
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    tool_begin();
    OK(MPI_T_pvar_session_create(&session));
    MPI_Barrier(MPI_COMM_WORLD);
    int writable = sweep(1);
    CHECK(writable > 20, "%d", writable);
    MPI_Barrier(MPI_COMM_WORLD);
    streams();
    limits();
    algorithms();
    waits();
    windows();
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_T_finalize());
    end();
    tool_begin();
    CHECK(sweep(0) == 0);
    OK(MPI_T_finalize());
    return 0;
}
