// ranks: 1
// says: correct
//
// What grows with what is outstanding is linear in total: n, 2 n and 4 n operations at once, counted by the library.
// To oneself, so that the counts are the same in each run: everything has arrived before it is waited for.
#include "tools.h"

enum { FIRST = 500, LAST = 4 * FIRST };

static MPI_T_pvar_session session;
static MPI_T_pvar_handle tasks, polls, looks, passed, requests, rounds;
static MPI_Request request[2 * LAST];
static MPI_Status status[2 * LAST];
static int data[LAST], into[LAST], place[2 * LAST], n;

static number of(MPI_T_pvar_handle handle)
{
    return value(session, handle);
}

static void start(void)
{
    MPI_T_pvar_handle all[] = {tasks, polls, looks, passed, requests, rounds};
    for (int i = 0; i < 6; i++) OK(MPI_T_pvar_reset(session, all[i]));
    memset(into, -1, sizeof into);
}

/* At most so many of each for one operation: entries of queues looked at in vain, requests looked at in arrays. A task
 * is polled when it begins and at each of its waits; a round looks at few of them, and there may be one an operation. */
static void linear(const char *what, int in_vain, int in_arrays)
{
    number each = n, began = of(tasks);
    CHECK(of(passed) <= in_vain * each, "%s, %d: %llu passed", what, n, of(passed));
    CHECK(of(requests) <= in_arrays * each, "%s, %d: %llu in arrays", what, n, of(requests));
    CHECK(of(polls) <= 8 * began + 64, "%s, %d: %llu polls of %llu tasks", what, n, of(polls), began);
    CHECK(of(rounds) <= 4 * each + 64, "%s, %d: %llu rounds", what, n, of(rounds));
    CHECK(of(looks) <= 64 * (of(rounds) + each), "%s, %d: %llu looks at tasks", what, n, of(looks));
}

/* So that no order is the good one: 7919 is a prime. */
static int scattered(int i)
{
    return (int)((long)i * 7919 % n);
}

static int backwards(int i)
{
    return n - 1 - i;
}

static void all_came(void)
{
    for (int i = 0; i < n; i++) CHECK(into[i] == data[i], "%d: %d", i, into[i]);
}

static void receive(int i, int from, int tag, int at)
{
    MPI_Irecv(&into[i], 1, MPI_INT, from, tag, MPI_COMM_WORLD, &request[at]);
}

static void send(int i)
{
    MPI_Send(&data[i], 1, MPI_INT, 0, i, MPI_COMM_WORLD);
}

/* Lets what was sent arrive. */
static void arrive(void)
{
    int flag;
    for (int i = 0; i <= n / 64; i++)
        MPI_Iprobe(0, 1 << 20, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
}

/* Receives that are posted forwards and met in another order, by the source or by any. */
static void posted(int from, int (*order)(int))
{
    start();
    for (int i = 0; i < n; i++) receive(i, from, i, i);
    for (int i = 0; i < n; i++) send(order(i));
    MPI_Waitall(n, request, MPI_STATUSES_IGNORE);
    all_came();
    linear("receives", 8, 0);
}

/* Messages that came before their receives, which take them in another order. */
static void unexpected(int from, int (*order)(int))
{
    start();
    for (int i = 0; i < n; i++) send(i);
    arrive();
    for (int i = 0; i < n; i++) {
        int at = order(i), flag = 0;
        MPI_Iprobe(from, at, MPI_COMM_WORLD, &flag, &status[0]);
        CHECK(flag && status[0].MPI_TAG == at);
        MPI_Iprobe(from, LAST + at, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
        CHECK(!flag);
        receive(at, from, at, i);
    }
    MPI_Waitall(n, request, MPI_STATUSES_IGNORE);
    all_came();
    linear("unexpected messages", 64, 0);
}

/* All that call for one or some of many. */
static void arrays(int (*order)(int))
{
    int index, count, flag, done;
    for (int how = 0; how < 6; how++) {
        start();
        for (int i = 0; i < n; i++) receive(i, 0, i, i);
        for (int i = 0; i < n; i++) send(order(i));
        done = 0;
        switch (how) {
        case 0:
        case 1:
            for (; done < n; done++) {
                if (how == 0) {
                    MPI_Waitany(n, request, &index, status);
                } else {
                    flag = 0;
                    MPI_Testany(n, request, &index, &flag, status);
                    CHECK(flag);
                }
                CHECK(index >= 0 && status[0].MPI_TAG == index && request[index] == MPI_REQUEST_NULL);
            }
            MPI_Waitany(n, request, &index, status);
            CHECK(index == MPI_UNDEFINED);
            break;
        case 2:
            MPI_Waitsome(n, request, &count, place, status);
            CHECK(count == n, "all that are complete: %d of %d", count, n);
            break;
        case 3:
            MPI_Testsome(n, request, &count, place, status);
            CHECK(count == n, "all that are complete: %d of %d", count, n);
            break;
        case 4:
            for (flag = 0; !flag; done++) MPI_Testall(n, request, &flag, status);
            CHECK(done <= n / 32, "%d calls", done);
            break;
        case 5:
            for (flag = 0; !flag; done++) MPI_Request_get_status_all(n, request, &flag, status);
            MPI_Waitall(n, request, status);
            break;
        }
        all_came();
        const char *name[] = {"Waitany",  "Testany", "Waitsome",
                              "Testsome", "Testall", "Request_get_status_all"};
        linear(name[how], 8, 4);
    }
}

/* One after the other completes, and each time somebody asks. */
static void one_at_a_time(void)
{
    int index, flag;
    start();
    for (int i = 0; i < n; i++) receive(i, 0, i, i);
    for (int i = 0; i < n; i++) {
        send(i);
        MPI_Testall(n, request, &flag, MPI_STATUSES_IGNORE);
        CHECK(flag == (i == n - 1));
    }
    all_came();
    linear("Testall of one after the other", 8, 4);
    start();
    for (int i = 0; i < n; i++) MPI_Irecv(&into[i], 1, MPI_INT, 0, i, MPI_COMM_WORLD, &request[i]);
    for (int i = 0; i < n; i++) {
        /* Those of one another: nobody may be forgotten for what is remembered of another. */
        send(scattered(i));
        MPI_Wait(&request[scattered(i)], MPI_STATUS_IGNORE);
    }
    MPI_Waitany(n, request, &index, MPI_STATUS_IGNORE);
    CHECK(index == MPI_UNDEFINED);
    all_came();
    linear("Wait", 8, 1);
}

static void cancelled(void)
{
    int flag;
    start();
    for (int i = 0; i < n; i++) receive(0, 0, 7, i);
    for (int i = n; i-- > 0;) MPI_Cancel(&request[i]);
    MPI_Waitall(n, request, status);
    for (int i = 0; i < n; i++) {
        MPI_Test_cancelled(&status[i], &flag);
        CHECK(flag);
    }
    linear("cancelled receives", 8, 0);
    start();
    for (int i = 0; i < n; i++) MPI_Issend(&data[i], 1, MPI_INT, 0, i, MPI_COMM_WORLD, &request[i]);
    arrive();
    for (int i = n; i-- > 0;) MPI_Cancel(&request[i]);
    MPI_Waitall(n, request, status);
    linear("cancelled sends", 32, 0);
}

static void collectives(void)
{
    start();
    for (int i = 0; i < n; i++) {
        MPI_Iallreduce(&data[i], &into[i], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request[2 * i]);
        MPI_Ibarrier(MPI_COMM_WORLD, &request[2 * i + 1]);
    }
    MPI_Waitall(2 * n, request, MPI_STATUSES_IGNORE);
    all_came();
    linear("collective operations", 8, 0);
}

/* Half of them over when they are asked for, half forgotten or still going on. */
static void both_ways(void)
{
    start();
    for (int i = 0; i < n; i++)
        MPI_Isendrecv(&data[i], 1, MPI_INT, 0, i, &into[i], 1, MPI_INT, 0, backwards(i), MPI_COMM_WORLD,
                      &request[i]);
    MPI_Waitall(n, request, MPI_STATUSES_IGNORE);
    for (int i = 0; i < n; i++) CHECK(into[i] == data[backwards(i)]);
    linear("Isendrecv", 32, 0);
    start();
    for (int i = 0; i < n; i++) {
        MPI_Issend(&data[i], 1, MPI_INT, 0, i, MPI_COMM_WORLD, &request[i]);
        MPI_Request_free(&request[i]);
    }
    for (int i = n; i-- > 0;)
        MPI_Recv(&into[i], 1, MPI_INT, 0, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    all_came();
    linear("freed requests", 32, 0);
}

static int queried(void *extra, MPI_Status *s)
{
    (void)extra;
    MPI_Status_set_elements(s, MPI_INT, 0);
    MPI_Status_set_cancelled(s, 0);
    return MPI_SUCCESS;
}

static int freed(void *extra)
{
    ++*(int *)extra;
    return MPI_SUCCESS;
}

static int not_cancelled(void *extra, int complete)
{
    (void)extra, (void)complete;
    return MPI_SUCCESS;
}

static void generalized(void)
{
    int index, count = 0;
    start();
    for (int i = 0; i < n; i++)
        MPI_Grequest_start(queried, freed, not_cancelled, &count, &request[i]);
    for (int i = n; i-- > 0;) MPI_Grequest_complete(request[i]);
    for (int i = 0; i < n; i++) MPI_Waitany(n, request, &index, MPI_STATUS_IGNORE);
    CHECK(count == n, "%d", count);
    linear("generalized requests", 8, 4);
}

static void partitioned(void)
{
    MPI_Request ends[2];
    start();
    MPI_Psend_init(data, n, 1, MPI_INT, 0, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &ends[0]);
    MPI_Precv_init(into, n, 1, MPI_INT, 0, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &ends[1]);
    MPI_Startall(2, ends);
    for (int i = n; i-- > 0;) MPI_Pready_list(1, &i, ends[0]);
    MPI_Waitall(2, ends, MPI_STATUSES_IGNORE);
    all_came();
    linear("partitions", 8, 0);
    MPI_Request_free(&ends[0]);
    MPI_Request_free(&ends[1]);
}

static void buffered(void)
{
    int bytes = n * (int)(sizeof(int) + MPI_BSEND_OVERHEAD);
    void *room = malloc((size_t)bytes), *back;
    start();
    MPI_Buffer_attach(room, bytes);
    for (int i = 0; i < n; i++) MPI_Bsend(&data[i], 1, MPI_INT, 0, i, MPI_COMM_WORLD);
    for (int i = n; i-- > 0;)
        MPI_Recv(&into[i], 1, MPI_INT, 0, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Buffer_detach(&back, &bytes);
    CHECK(back == room);
    free(room);
    all_came();
    linear("buffered sends", 32, 0);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    tool_begin();
    OK(MPI_T_pvar_session_create(&session));
    tasks = counter(session, "weft.waiting.tasks");
    polls = counter(session, "weft.waiting.task_polls");
    looks = counter(session, "weft.waiting.task_looks");
    rounds = counter(session, "weft.waiting.polls");
    requests = counter(session, "weft.waiting.request_looks");
    passed = counter(session, "weft.p2p.queue_passed");
    for (int i = 0; i < LAST; i++) data[i] = i * i + 5;
    for (n = FIRST; n <= LAST; n *= 2) {
        posted(0, backwards);
        posted(MPI_ANY_SOURCE, scattered);
        unexpected(0, backwards);
        unexpected(MPI_ANY_SOURCE, scattered);
        arrays(backwards);
        arrays(scattered);
        one_at_a_time();
        cancelled();
        collectives();
        both_ways();
        generalized();
        partitioned();
        buffered();
    }
    OK(MPI_T_finalize());
    return end();
}
