// ranks: 2 3
// says: correct
// env: | WEFT_PROGRESS=handover | WEFT_CMA=0 WEFT_EAGER=512
//
// MPI_THREAD_MULTIPLE, everything at once: eight threads a rank, each with a communicator of its own,
// go through all kinds of calls, each in another order; between them all share one communicator, apart
// by tag. The argument is how often. `cargo xtask soak --tsan` runs it under ThreadSanitizer.
#include "tools.h"
#include <pthread.h>
#include <unistd.h>

enum { THREADS = 8, LONG = 6000 };

static int rounds = 4;
static MPI_T_pvar_session tool;

/* What a thread has: its communicator, and numbers that are the same on all ranks. */
typedef struct {
    MPI_Comm comm;
    int thread, round, salt;
    MPI_T_pvar_handle received;
} place;

static int right(void) { return (rank + 1) % size; }
static int left(void) { return (rank + size - 1) % size; }

static pthread_t begin_thread(void *(*f)(void *), void *argument)
{
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, f, argument) == 0);
    return thread;
}

/* Blocking, nonblocking and persistent messages, short and long, to and from neighbours. */
static void messages(place *p)
{
    long *out = malloc(LONG * sizeof *out), *in = malloc(LONG * sizeof *in);
    MPI_Request both[2], again;
    MPI_Recv_init(in, LONG, MPI_LONG, left(), 1, p->comm, &again);
    for (int i = 0; i < 12; i++) {
        int n = i % 4 ? 1 + i : LONG, got, flag = 0;
        MPI_Status status;
        for (int k = 0; k < n; k++) out[k] = rank * 7L + p->salt + i + k, in[k] = -1;
        switch (i % 3) {
        case 0:
            MPI_Irecv(in, n, MPI_LONG, MPI_ANY_SOURCE, 1, p->comm, &both[0]);
            MPI_Isend(out, n, MPI_LONG, right(), 1, p->comm, &both[1]);
            MPI_Wait(&both[1], MPI_STATUS_IGNORE);
            while (!flag) MPI_Test(&both[0], &flag, &status);
            break;
        case 1:
            MPI_Start(&again);
            MPI_Ssend(out, n, MPI_LONG, right(), 1, p->comm);
            MPI_Wait(&again, &status);
            break;
        default:
            MPI_Sendrecv(out, n, MPI_LONG, right(), 1, in, n, MPI_LONG, left(), 1, p->comm, &status);
        }
        MPI_Get_count(&status, MPI_LONG, &got);
        CHECK(got == n && status.MPI_SOURCE == left() && status.MPI_TAG == 1, "%d of %d", got, n);
        for (int k = 0; k < n; k++) CHECK(in[k] == left() * 7L + p->salt + i + k, "%d: %ld", k, in[k]);
    }
    MPI_Request_free(&again);
    free(out), free(in);
}

/* A server at rank 0 that probes; clients that ask. */
static void ask_and_answer(place *p)
{
    MPI_Status status;
    MPI_Message message;
    int word, n, flag;
    if (rank) {
        for (int i = 0; i < 10; i++) {
            int words[10] = {p->salt + i};
            MPI_Send(words, i + 1, MPI_INT, 0, i % 3, p->comm);
            MPI_Recv(&word, 1, MPI_INT, 0, 9, p->comm, MPI_STATUS_IGNORE);
            CHECK(word == p->salt + i + (i + 1), "%d", word);
        }
        return;
    }
    for (int i = 0; i < 10 * (size - 1); i++) {
        int words[10] = {-1};
        switch (i % 4) {
        case 0: MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, p->comm, &status); break;
        case 1:
            do MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, p->comm, &flag, &status);
            while (!flag);
            break;
        case 2: MPI_Mprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, p->comm, &message, &status); break;
        default:
            do MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, p->comm, &flag, &message, &status);
            while (!flag);
        }
        int from = status.MPI_SOURCE, tag = status.MPI_TAG;
        MPI_Get_count(&status, MPI_INT, &n);
        CHECK(n > 0 && n <= 10, "%d", n);
        if (i % 4 < 2) MPI_Recv(words, n, MPI_INT, from, tag, p->comm, &status);
        else MPI_Mrecv(words, n, MPI_INT, &message, &status);
        CHECK(status.MPI_SOURCE == from && status.MPI_TAG == tag && (n - 1) % 3 == tag);
        CHECK(words[0] == p->salt + n - 1, "%d", words[0]);
        word = words[0] + n;
        MPI_Send(&word, 1, MPI_INT, from, 9, p->comm);
    }
}

static void probes(place *p)
{
    ask_and_answer(p);
    /* What a client does next is not for the server, which takes all tags. */
    MPI_Barrier(p->comm);
}

/* Calls MPI from within, which lets go of the library. */
static void add(void *in, void *inout, int *n, MPI_Datatype *type)
{
    int bytes;
    MPI_Type_size(*type, &bytes);
    for (int i = 0; i < *n && bytes == sizeof(long); i++) ((long *)inout)[i] += ((long *)in)[i];
}

static void collectives(place *p)
{
    long ranks = (long)size * (size - 1) / 2, mine, sum, prefix, *all = malloc(size * sizeof *all);
    MPI_Request request, pair[2];
    MPI_Op op;
    int flag = 0;
    MPI_Op_create(add, 1, &op);
    MPI_Allreduce_init(&mine, &sum, 1, MPI_LONG, MPI_SUM, p->comm, MPI_INFO_NULL, &request);
    for (int i = 0; i < 6; i++) {
        int root = i % size;
        long want = ranks + (long)size * (p->salt + i);
        mine = rank + p->salt + i, sum = -1;
        MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        CHECK(sum == want, "%ld", sum);
        sum = -1;
        MPI_Allreduce(&mine, &sum, 1, MPI_LONG, op, p->comm);
        CHECK(sum == want, "%ld", sum);
        sum = -1, prefix = -1;
        MPI_Iallreduce(&mine, &sum, 1, MPI_LONG, op, p->comm, &pair[0]);
        MPI_Iscan(&mine, &prefix, 1, MPI_LONG, MPI_SUM, p->comm, &pair[1]);
        MPI_Waitall(2, pair, MPI_STATUSES_IGNORE);
        CHECK(sum == want && prefix == rank * (rank + 1L) / 2 + (rank + 1L) * (p->salt + i));
        MPI_Ibarrier(p->comm, &pair[0]);
        for (flag = 0; !flag;) MPI_Test(&pair[0], &flag, MPI_STATUS_IGNORE);
        MPI_Allgather(&mine, 1, MPI_LONG, all, 1, MPI_LONG, p->comm);
        for (int r = 0; r < size; r++) CHECK(all[r] == r + p->salt + i);
        MPI_Bcast(&mine, 1, MPI_LONG, root, p->comm);
        CHECK(mine == root + p->salt + i);
        MPI_Barrier(p->comm);
    }
    MPI_Request_free(&request);
    MPI_Op_free(&op);
    free(all);
}

/* Every second int of a vector, packed and sent. */
static void datatypes(place *p)
{
    for (int i = 0; i < 8; i++) {
        int out[40], in[40], bytes, n = 5 + i;
        MPI_Datatype vector, twice;
        MPI_Type_vector(n, 1, 2, MPI_INT, &vector);
        MPI_Type_dup(vector, &twice);
        MPI_Type_commit(&twice);
        MPI_Type_free(&vector);
        MPI_Type_size(twice, &bytes);
        CHECK(bytes == n * (int)sizeof(int));
        for (int k = 0; k < 40; k++) out[k] = p->salt + rank + k, in[k] = -1;
        MPI_Sendrecv(out, 1, twice, right(), 2, in, 1, twice, left(), 2, p->comm, MPI_STATUS_IGNORE);
        for (int k = 0; k < 40; k++)
            CHECK(in[k] == (k < 2 * n && k % 2 == 0 ? p->salt + left() + k : -1), "%d: %d", k, in[k]);
        MPI_Type_free(&twice);
    }
}

static int deleted(MPI_Comm comm, int key, void *value, void *extra)
{
    MPI_Comm_size(comm, value);
    (void)key;
    ++*(int *)extra;
    return MPI_SUCCESS;
}

static int errors_heard[THREADS];
static void hear(MPI_Comm *comm, int *code, ...)
{
    void *number;
    int flag, class;
    MPI_Comm_get_attr(*comm, MPI_TAG_UB, &number, &flag);
    MPI_Error_class(*code, &class);
    CHECK(flag && class == MPI_ERR_RANK, "%d", class);
}

/* What is kept for a process as a whole: attributes, infos, groups, error texts, handlers. */
static void objects(place *p)
{
    for (int i = 0; i < 12; i++) {
        int key, count = 0, n, flag, code, class, length, value = 0;
        void *found;
        char text[MPI_MAX_ERROR_STRING], word[32], back[32];
        MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, deleted, &key, &count);
        MPI_Comm_set_attr(p->comm, key, &value);
        MPI_Comm_get_attr(p->comm, key, &found, &flag);
        CHECK(flag && found == &value);
        MPI_Comm_delete_attr(p->comm, key);
        MPI_Comm_free_keyval(&key);
        CHECK(count == 1 && value == size);
        MPI_Info info, copy;
        MPI_Info_create(&info);
        snprintf(word, sizeof word, "%d-%d", p->salt, i);
        MPI_Info_set(info, "name", word);
        MPI_Info_dup(info, &copy);
        MPI_Info_free(&info);
        n = sizeof back;
        MPI_Info_get_string(copy, "name", &n, back, &flag);
        CHECK(flag && !strcmp(word, back), "%s", back);
        MPI_Info_free(&copy);
        MPI_Group all, rest;
        MPI_Comm_group(p->comm, &all);
        MPI_Group_excl(all, 1, &rank, &rest);
        MPI_Group_size(rest, &n);
        CHECK(n == size - 1);
        MPI_Group_free(&rest), MPI_Group_free(&all);
        MPI_Errhandler handler;
        MPI_Comm_create_errhandler(hear, &handler);
        MPI_Comm_set_errhandler(p->comm, handler);
        MPI_Errhandler_free(&handler);
        code = MPI_Send(NULL, 0, MPI_INT, size + i, 0, p->comm);
        MPI_Error_class(code, &class);
        MPI_Error_string(code, text, &length);
        CHECK(class == MPI_ERR_RANK && length > 0 && (int)strlen(text) == length);
        MPI_Comm_set_errhandler(p->comm, MPI_ERRORS_ARE_FATAL);
        errors_heard[p->thread]++;
    }
}

/* Communicators from the thread's own, and from the world by tag and by name. */
static void communicators(place *p)
{
    MPI_Comm made[5];
    MPI_Group all;
    MPI_Request request;
    char name[40];
    snprintf(name, sizeof name, "test.weft://%d", p->thread);
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Comm_dup(p->comm, &made[0]);
    MPI_Comm_split(p->comm, 0, -rank, &made[1]);
    MPI_Comm_idup(p->comm, &made[2], &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Comm_create_group(MPI_COMM_WORLD, all, 100 + p->thread, &made[3]);
    MPI_Comm_create_from_group(all, name, MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &made[4]);
    MPI_Group_free(&all);
    for (int i = 0; i < 5; i++) {
        int me, sum = -1, want = p->salt * size + size * (size - 1) / 2;
        MPI_Comm_rank(made[i], &me);
        CHECK(me == (i == 1 ? size - 1 - rank : rank));
        int mine = me + p->salt;
        MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, made[i]);
        CHECK(sum == want, "%d: %d", i, sum);
        MPI_Comm_free(&made[i]);
    }
}

/* A message of partitions, each marked by a thread of its own. */
typedef struct {
    MPI_Request request;
    int at;
} part;

static void *ready(void *argument)
{
    part *a = argument;
    if (a->at == 1) usleep(300);
    MPI_Pready(a->at, a->request);
    return NULL;
}

static void partitions(place *p)
{
    enum { EACH = 50 };
    int out[2 * EACH] = {0}, in[2 * EACH], flag = 0;
    MPI_Request send, receive;
    MPI_Psend_init(out, 2, EACH, MPI_INT, right(), 5, p->comm, MPI_INFO_NULL, &send);
    MPI_Precv_init(in, 2, EACH, MPI_INT, left(), 5, p->comm, MPI_INFO_NULL, &receive);
    for (int i = 0; i < 3; i++) {
        pthread_t threads[2];
        part parts[2];
        for (int k = 0; k < 2 * EACH; k++) out[k] = p->salt + rank + k + i, in[k] = -1;
        MPI_Start(&receive), MPI_Start(&send);
        for (int t = 0; t < 2; t++) {
            parts[t] = (part){send, t};
            threads[t] = begin_thread(ready, &parts[t]);
        }
        for (flag = 0; i == 1 && !flag;) MPI_Parrived(receive, 0, &flag);
        MPI_Wait(&receive, MPI_STATUS_IGNORE);
        for (int t = 0; t < 2; t++) pthread_join(threads[t], NULL);
        MPI_Wait(&send, MPI_STATUS_IGNORE);
        for (int k = 0; k < 2 * EACH; k++) CHECK(in[k] == p->salt + left() + k + i, "%d: %d", k, in[k]);
    }
    MPI_Request_free(&send), MPI_Request_free(&receive);
}

/* A request of the program's own, completed by another thread while this one sleeps. */
static int query(void *extra, MPI_Status *status)
{
    MPI_Status_set_elements(status, MPI_INT, *(int *)extra);
    MPI_Status_set_cancelled(status, 0);
    status->MPI_SOURCE = rank, status->MPI_TAG = 0;
    return MPI_SUCCESS;
}
static int forget(void *extra) { return *(int *)extra += 1, MPI_SUCCESS; }
static int no_cancel(void *extra, int complete) { return (void)extra, (void)complete, MPI_SUCCESS; }

static void *complete(void *request)
{
    usleep(1000);
    MPI_Grequest_complete(*(MPI_Request *)request);
    return NULL;
}

static void generalized(place *p)
{
    for (int i = 0; i < 3; i++) {
        int number = p->thread + i, n = -1;
        MPI_Request request, copy;
        MPI_Status status;
        MPI_Grequest_start(query, forget, no_cancel, &number, &request);
        copy = request;
        pthread_t thread = begin_thread(complete, &copy);
        MPI_Wait(&request, &status);
        pthread_join(thread, NULL);
        MPI_Get_count(&status, MPI_INT, &n);
        CHECK(n == p->thread + i && number == n + 1 && request == MPI_REQUEST_NULL, "%d", n);
    }
}

static void sessions(place *p)
{
    MPI_Session session;
    MPI_Group group;
    int n = -1;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
    MPI_Group_from_session_pset(session, p->round % 2 ? "mpi://WORLD" : "mpi://SELF", &group);
    MPI_Group_size(group, &n);
    CHECK(n == (p->round % 2 ? size : 1), "%d", n);
    MPI_Group_free(&group);
    MPI_Session_finalize(&session);
}

/* Reads the tool interface around messages that it counts. */
static void tools(place *p)
{
    number before = value(tool, p->received), after;
    for (int i = 0; i < 10; i++) {
        int in = -1;
        MPI_Sendrecv(&i, 1, MPI_INT, right(), 3, &in, 1, MPI_INT, left(), 3, p->comm, MPI_STATUS_IGNORE);
        CHECK(in == i);
    }
    after = value(tool, p->received);
    CHECK(after >= before + 10, "%llu after %llu", after, before);
}

/* All threads on the world, apart by tag alone. Each leaves a receive that is cancelled. */
static void shared(place *p)
{
    int tag = 1000 + p->thread, flag = 0;
    MPI_Request never, request;
    MPI_Status status;
    MPI_Irecv(NULL, 0, MPI_INT, MPI_ANY_SOURCE, 2000 + p->thread, MPI_COMM_WORLD, &never);
    for (int i = 0; i < 20; i++) {
        int out[2] = {p->salt, i}, in[2] = {-1, -1};
        MPI_Irecv(in, 2, MPI_INT, i % 2 ? left() : MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, &request);
        MPI_Request_get_status(never, &flag, MPI_STATUS_IGNORE);
        CHECK(!flag);
        if (i % 5) MPI_Send(out, 2, MPI_INT, right(), tag, MPI_COMM_WORLD);
        else MPI_Ssend(out, 2, MPI_INT, right(), tag, MPI_COMM_WORLD);
        MPI_Wait(&request, &status);
        CHECK(in[0] == p->salt && in[1] == i && status.MPI_SOURCE == left(), "%d, %d", in[0], in[1]);
        /* Then it comes late and the others sleep. */
        if (i == p->thread) usleep(2000);
    }
    MPI_Cancel(&never);
    MPI_Wait(&never, &status);
    MPI_Test_cancelled(&status, &flag);
    CHECK(flag);
}

typedef void work(place *p);
static work *const WORKS[] = {messages,   probes,      collectives, datatypes, objects, communicators,
                              partitions, generalized, sessions,    tools,     shared};
enum { KINDS = sizeof WORKS / sizeof *WORKS };

static void *live(void *argument)
{
    place *p = argument;
    for (p->round = 0; p->round < rounds; p->round++)
        for (int k = 0; k < KINDS; k++) {
            p->salt = p->thread * 100000 + p->round * 100 + k;
            WORKS[(k * 3 + p->thread + p->round) % KINDS](p);
        }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS];
    place places[THREADS];
    int provided;
    if (argc > 1) rounds = atoi(argv[1]);
    OK(MPI_T_init_thread(MPI_THREAD_MULTIPLE, &provided));
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    CHECK(provided == MPI_THREAD_MULTIPLE && rounds > 0);
    OK(MPI_T_pvar_session_create(&tool));
    for (int t = 0; t < THREADS; t++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &places[t].comm);
        places[t].thread = t;
        places[t].received = counter(tool, "weft.p2p.received");
    }
    for (int t = 0; t < THREADS; t++) threads[t] = begin_thread(live, &places[t]);
    for (int t = 0; t < THREADS; t++) pthread_join(threads[t], NULL);
    for (int t = 0; t < THREADS; t++) {
        CHECK(errors_heard[t] == 12 * rounds);
        MPI_Comm_free(&places[t].comm);
    }
    OK(MPI_T_finalize());
    return end();
}
