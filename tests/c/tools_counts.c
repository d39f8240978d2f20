// ranks: 1 2
// says: correct
//
// Performance variables count what happened: rank 0 sends, the last rank receives (one and the same
// where there is one). Each handle measures for itself, from its start to its stop.
#include "tools.h"

enum { TEN = 10, BYTES = 100, LARGE = 200000 };

static MPI_T_pvar_session session;
static int receiver, sends, receives;

static MPI_T_pvar_handle level(const char *name, void *object)
{
    return gauge(session, name, MPI_T_PVAR_CLASS_LEVEL, object);
}

static number now(MPI_T_pvar_handle handle) { return value(session, handle); }

/* Ten messages that wait for their receive. Behind them comes one that is awaited, so that all are
   there when it is. */
static void send_unexpected(void)
{
    static char data[BYTES];
    MPI_Request last;
    if (receives) MPI_Irecv(NULL, 0, MPI_CHAR, 0, 99, MPI_COMM_WORLD, &last);
    MPI_Barrier(MPI_COMM_WORLD);
    if (sends) {
        for (int i = 0; i < TEN; i++)
            MPI_Send(data, BYTES, MPI_CHAR, receiver, i, MPI_COMM_WORLD);
        MPI_Send(NULL, 0, MPI_CHAR, receiver, 99, MPI_COMM_WORLD);
    }
    if (receives) MPI_Wait(&last, MPI_STATUS_IGNORE);
}

static void receive_unexpected(void)
{
    char data[BYTES];
    for (int i = 0; receives && i < TEN; i++)
        MPI_Recv(data, BYTES, MPI_CHAR, 0, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void messages(void)
{
    MPI_Comm self = MPI_COMM_SELF, world = MPI_COMM_WORLD;
    MPI_T_pvar_handle sent = counter(session, "weft.p2p.sent_eager");
    MPI_T_pvar_handle came = counter(session, "weft.p2p.unexpected");
    MPI_T_pvar_handle received = counter(session, "weft.p2p.received");
    MPI_T_pvar_handle bytes =
        gauge(session, "weft.p2p.received_bytes", MPI_T_PVAR_CLASS_AGGREGATE, NULL);
    MPI_T_pvar_handle stopped =
        gauge(session, "weft.p2p.sent_eager", MPI_T_PVAR_CLASS_COUNTER, NULL);
    MPI_T_pvar_handle most =
        gauge(session, "weft.p2p.unexpected_most", MPI_T_PVAR_CLASS_HIGHWATERMARK, NULL);
    MPI_T_pvar_handle in_queue = level("weft.p2p.unexpected_now", NULL);
    MPI_T_pvar_handle queued = level("weft.p2p.unexpected_bytes_now", NULL);
    MPI_T_pvar_handle of_world = level("weft.p2p.comm_unexpected_now", &world);
    MPI_T_pvar_handle of_self = level("weft.p2p.comm_unexpected_now", &self);
    OK(MPI_T_pvar_start(session, bytes));
    OK(MPI_T_pvar_start(session, most));
    CHECK(now(in_queue) == 0 && now(most) == 0 && now(came) == 0);

    send_unexpected();
    number ten = receives ? TEN : 0;
    CHECK(now(sent) == (sends ? TEN + 1 : 0), "%llu", now(sent));
    CHECK(now(stopped) == 0, "%llu", now(stopped));
    CHECK(now(came) == ten, "%llu", now(came));
    CHECK(now(in_queue) == ten && now(of_world) == ten && now(of_self) == 0);
    CHECK(now(queued) == ten * BYTES, "%llu", now(queued));
    CHECK(now(received) == (receives ? 1 : 0) && now(bytes) == 0, "%llu", now(received));

    receive_unexpected();
    CHECK(now(in_queue) == 0 && now(of_world) == 0 && now(queued) == 0);
    CHECK(now(most) == ten && now(came) == ten);
    CHECK(now(received) == ten + (receives ? 1 : 0), "%llu", now(received));
    CHECK(now(bytes) == ten * BYTES, "%llu", now(bytes));

    /* A mark of its own for who begins now, or again. */
    MPI_T_pvar_handle later =
        gauge(session, "weft.p2p.unexpected_most", MPI_T_PVAR_CLASS_HIGHWATERMARK, NULL);
    number n = 1;
    OK(MPI_T_pvar_start(session, later));
    CHECK(now(later) == 0 && now(most) == ten);
    OK(MPI_T_pvar_readreset(session, most, &n));
    CHECK(n == ten && now(most) == 0);

    /* Stopped, they stay. */
    OK(MPI_T_pvar_stop(session, came));
    OK(MPI_T_pvar_stop(session, came));
    send_unexpected();
    receive_unexpected();
    CHECK(now(came) == ten && now(later) == ten && now(most) == ten);
    OK(MPI_T_pvar_start(session, came));
    OK(MPI_T_pvar_start(session, came));
    send_unexpected();
    receive_unexpected();
    CHECK(now(came) == 2 * ten, "%llu", now(came));

    /* Written, reset. */
    n = 1000;
    OK(MPI_T_pvar_write(session, came, &n));
    send_unexpected();
    receive_unexpected();
    CHECK(now(came) == 1000 + ten);
    OK(MPI_T_pvar_readreset(session, came, &n));
    CHECK(n == 1000 + ten && now(came) == 0);
    OK(MPI_T_pvar_write(session, came, &n));
    OK(MPI_T_pvar_reset(session, came));
    CHECK(now(came) == 0);

    /* All at once: those that only show are left out. */
    OK(MPI_T_pvar_reset(session, MPI_T_PVAR_ALL_HANDLES));
    CHECK(now(sent) == 0 && now(received) == 0 && now(bytes) == 0);
    OK(MPI_T_pvar_stop(session, MPI_T_PVAR_ALL_HANDLES));
    send_unexpected();
    receive_unexpected();
    CHECK(now(sent) == 0 && now(received) == 0 && now(stopped) == 0);
    OK(MPI_T_pvar_start(session, MPI_T_PVAR_ALL_HANDLES));
    send_unexpected();
    receive_unexpected();
    CHECK(now(sent) == (sends ? TEN + 1 : 0) && now(stopped) == now(sent));
}

static void receives_posted(void)
{
    MPI_Request request[3];
    MPI_Comm self = MPI_COMM_SELF, world = MPI_COMM_WORLD;
    MPI_T_pvar_handle all = level("weft.p2p.posted_now", NULL);
    MPI_T_pvar_handle ours = level("weft.p2p.comm_posted_now", &self);
    MPI_T_pvar_handle others = level("weft.p2p.comm_posted_now", &world);
    MPI_T_pvar_handle most =
        gauge(session, "weft.p2p.posted_most", MPI_T_PVAR_CLASS_HIGHWATERMARK, NULL);
    OK(MPI_T_pvar_start(session, most));
    number before = now(all);
    int source[] = {0, MPI_ANY_SOURCE, 0}, word = 0;
    for (int i = 0; i < 3; i++)
        MPI_Irecv(NULL, 0, MPI_INT, source[i], i, MPI_COMM_SELF, &request[i]);
    CHECK(now(all) == before + 3 && now(ours) == 3 && now(others) == 0, "%llu", now(ours));
    for (int i = 0; i < 3; i++) MPI_Send(&word, 0, MPI_INT, 0, i, MPI_COMM_SELF);
    MPI_Waitall(3, request, MPI_STATUSES_IGNORE);
    CHECK(now(all) == before && now(ours) == 0 && now(most) == before + 3);
}

static void large(void)
{
    static char data[LARGE];
    MPI_T_pvar_handle offered = counter(session, "weft.p2p.sent_rendezvous");
    MPI_T_pvar_handle bytes =
        gauge(session, "weft.p2p.sent_rendezvous_bytes", MPI_T_PVAR_CLASS_AGGREGATE, NULL);
    MPI_T_pvar_handle how[] = {counter(session, "weft.p2p.received_by_read"),
                               counter(session, "weft.p2p.received_shared"),
                               counter(session, "weft.p2p.received_in_pieces")};
    MPI_T_pvar_handle pieces = counter(session, "weft.p2p.sent_in_pieces");
    MPI_Request request = MPI_REQUEST_NULL;
    OK(MPI_T_pvar_start(session, bytes));
    if (receives) MPI_Irecv(data, LARGE, MPI_CHAR, 0, 5, MPI_COMM_WORLD, &request);
    if (sends) MPI_Send(data, LARGE, MPI_CHAR, receiver, 5, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(now(offered) == (number)sends && now(bytes) == (number)sends * LARGE);
    CHECK(now(how[0]) + now(how[1]) + now(how[2]) == (number)receives);
    CHECK(now(pieces) <= (number)sends);
    CHECK(now(level("weft.p2p.peers", NULL)) >= 1);
}

static void collectives(void)
{
    MPI_Comm comm;
    MPI_Request request;
    int word = 0;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_T_pvar_handle barriers = counter(session, "weft.collective.barrier");
    MPI_T_pvar_handle bcasts = counter(session, "weft.collective.bcast");
    MPI_T_pvar_handle scans = counter(session, "weft.collective.scan");
    MPI_T_pvar_handle of_comm =
        gauge(session, "weft.collective.comm_operations", MPI_T_PVAR_CLASS_COUNTER, &comm);
    OK(MPI_T_pvar_start(session, of_comm));
    MPI_Barrier(comm);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Ibarrier(comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Bcast_init(&word, 1, MPI_INT, 0, comm, MPI_INFO_NULL, &request);
    CHECK(now(bcasts) == 0, "not started yet");
    for (int i = 0; i < 2; i++) {
        MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Request_free(&request);
    CHECK(now(barriers) == 3 && now(bcasts) == 2 && now(scans) == 0);
    CHECK(now(of_comm) == 4, "%llu", now(of_comm));
    MPI_Comm_free(&comm);
    number n;
    IS(MPI_T_ERR_INVALID_HANDLE, MPI_T_pvar_read(session, of_comm, &n));
    OK(MPI_T_pvar_handle_free(session, &of_comm));
}

static void waiting(void)
{
    MPI_T_pvar_handle polls = counter(session, "weft.waiting.polls");
    MPI_T_pvar_handle sleeps = counter(session, "weft.waiting.sleeps");
    int flag;
    for (int i = 0; i < 100; i++)
        MPI_Iprobe(MPI_ANY_SOURCE, 12345, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    CHECK(now(polls) >= 100 && now(sleeps) == 0, "%llu %llu", now(polls), now(sleeps));
    if (size == 1) return;
    /* Rank 0 waits for who is away for longer than a wait spins. */
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1) {
        double until = MPI_Wtime() + 0.3;
        while (MPI_Wtime() < until) {
        }
        MPI_Send(NULL, 0, MPI_INT, 0, 6, MPI_COMM_WORLD);
    } else {
        MPI_Recv(NULL, 0, MPI_INT, 1, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK(now(sleeps) > 0);
    }
}

static void bad_input(void)
{
    number n = 7;
    int count, index;
    MPI_Comm nobody = MPI_COMM_NULL;
    MPI_T_pvar_session other;
    MPI_T_pvar_handle shows = level("weft.p2p.peers", NULL), freed, none = MPI_T_PVAR_HANDLE_NULL;
    MPI_T_pvar_handle counts = counter(session, "weft.p2p.sent_eager");
    OK(MPI_T_pvar_session_create(&other));
    IS(MPI_T_ERR_PVAR_NO_STARTSTOP, MPI_T_pvar_start(session, shows));
    IS(MPI_T_ERR_PVAR_NO_STARTSTOP, MPI_T_pvar_stop(session, shows));
    IS(MPI_T_ERR_PVAR_NO_WRITE, MPI_T_pvar_write(session, shows, &n));
    IS(MPI_T_ERR_PVAR_NO_WRITE, MPI_T_pvar_reset(session, shows));
    IS(MPI_T_ERR_PVAR_NO_WRITE, MPI_T_pvar_readreset(session, shows, &n));
    IS(MPI_T_ERR_INVALID, MPI_T_pvar_read(session, counts, NULL));
    IS(MPI_T_ERR_INVALID, MPI_T_pvar_write(session, counts, NULL));
    IS(MPI_T_ERR_INVALID, MPI_T_pvar_readreset(session, counts, NULL));

    /* Of another session, of none, of all. */
    IS(MPI_T_ERR_INVALID_HANDLE, MPI_T_pvar_read(other, counts, &n));
    IS(MPI_T_ERR_INVALID_HANDLE, MPI_T_pvar_start(other, counts));
    IS(MPI_T_ERR_INVALID_HANDLE, MPI_T_pvar_stop(other, counts));
    IS(MPI_T_ERR_INVALID_HANDLE, MPI_T_pvar_reset(other, counts));
    IS(MPI_T_ERR_INVALID_HANDLE, MPI_T_pvar_write(other, counts, &n));
    IS(MPI_T_ERR_INVALID_HANDLE, MPI_T_pvar_readreset(other, counts, &n));
    IS(MPI_T_ERR_INVALID_HANDLE, MPI_T_pvar_handle_free(other, &counts));
    IS(MPI_T_ERR_INVALID_SESSION, MPI_T_pvar_read(MPI_T_PVAR_SESSION_NULL, counts, &n));
    IS(MPI_T_ERR_INVALID_SESSION, MPI_T_pvar_start(MPI_T_PVAR_SESSION_NULL, counts));
    IS(MPI_T_ERR_INVALID_HANDLE, MPI_T_pvar_read(session, none, &n));
    IS(MPI_T_ERR_INVALID_HANDLE, MPI_T_pvar_read(session, MPI_T_PVAR_ALL_HANDLES, &n));
    IS(MPI_T_ERR_INVALID_HANDLE, MPI_T_pvar_write(session, MPI_T_PVAR_ALL_HANDLES, &n));
    IS(MPI_T_ERR_INVALID_HANDLE, MPI_T_pvar_readreset(session, MPI_T_PVAR_ALL_HANDLES, &n));
    CHECK(n == 7);
    freed = counts;
    OK(MPI_T_pvar_handle_free(session, &counts));
    CHECK(counts == MPI_T_PVAR_HANDLE_NULL);
    IS(MPI_T_ERR_INVALID_HANDLE, MPI_T_pvar_read(session, freed, &n));
    IS(MPI_T_ERR_INVALID_HANDLE, MPI_T_pvar_handle_free(session, &freed));

    /* What a handle is bound to. */
    OK(MPI_T_pvar_get_index("weft.p2p.comm_posted_now", MPI_T_PVAR_CLASS_LEVEL, &index));
    IS(MPI_T_ERR_INVALID, MPI_T_pvar_handle_alloc(session, index, NULL, &none, &count));
    IS(MPI_T_ERR_INVALID_HANDLE, MPI_T_pvar_handle_alloc(session, index, &nobody, &none, &count));
    IS(MPI_T_ERR_INVALID, MPI_T_pvar_handle_alloc(session, 0, NULL, NULL, &count));
    IS(MPI_T_ERR_INVALID_INDEX, MPI_T_pvar_handle_alloc(session, -1, NULL, &none, &count));
    IS(MPI_T_ERR_INVALID_INDEX, MPI_T_pvar_handle_alloc(session, 9999, NULL, &none, &count));

    /* The end of a session is that of its handles. */
    freed = counter(other, "weft.p2p.sent_eager");
    MPI_T_pvar_session old = other;
    OK(MPI_T_pvar_session_free(&other));
    CHECK(other == MPI_T_PVAR_SESSION_NULL);
    IS(MPI_T_ERR_INVALID_SESSION, MPI_T_pvar_session_free(&old));
    IS(MPI_T_ERR_INVALID_SESSION, MPI_T_pvar_read(old, freed, &n));
    IS(MPI_T_ERR_INVALID_HANDLE, MPI_T_pvar_read(session, freed, &n));
    IS(MPI_T_ERR_INVALID_SESSION, MPI_T_pvar_handle_alloc(old, 0, NULL, &none, &count));
}

int main(int argc, char **argv)
{
    /* Before MPI_Init nothing has happened, and a handle counts on from there. */
    tool_begin();
    OK(MPI_T_pvar_session_create(&session));
    MPI_T_pvar_handle early = counter(session, "weft.p2p.sent_eager");
    int kind = -1;
    CHECK(now(early) == 0);
    OK(MPI_T_pvar_read(session, gauge(session, "weft.fabric.kind", MPI_T_PVAR_CLASS_STATE, NULL),
                       &kind));
    CHECK(kind == 0, "nothing is connected yet");
    begin(&argc, &argv);
    receiver = size - 1, sends = rank == 0, receives = rank == receiver;
    MPI_Barrier(MPI_COMM_WORLD); /* later ones send no messages */
    messages();
    /* It was reset, stopped and started with all others. */
    CHECK(now(early) == (sends ? TEN + 1 : 0), "%llu", now(early));
    receives_posted();
    large();
    collectives();
    waiting();
    bad_input();
    number last = now(early);
    end();
    CHECK(now(early) >= last);
    OK(MPI_T_pvar_reset(session, early));
    CHECK(now(early) == 0);
    OK(MPI_T_pvar_session_free(&session));
    OK(MPI_T_finalize());
    return 0;
}
