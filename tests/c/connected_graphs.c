// ranks: 1 2 3
// says: correct
// env: | WEFT_FABRIC=shm+ofi | WEFT_FABRIC=ofi | WEFT_NODES=2 WEFT_FABRIC=shm+ofi
//
// Connection is transitive (MPI 5.0, section 11.10.4): random graphs of jobs that are spawned, accepted and joined. Their processes grow
// together, component by component, by MPI_Intercomm_create over the one communicator in which two leaders meet; in the end every pair
// makes an intercommunicator and sends. All processes compute the same plan from a seed. With the argument "apart" they are on several
// hosts, and meet by spawning and by ports whose names travel in messages. A second argument: the number of graphs.
#define _GNU_SOURCE
#include "check.h"
#include <fcntl.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { MOST = 8, STEPS = 64, EDGES = 64 };
enum kind { SPAWN, PORT, JOIN, CREATE };

struct step {
    enum kind kind;
    int u, v, edge, count, dead;
};

/* A communicator in which leaders can meet, with its members in their order. */
struct edge {
    int count, member[MOST], dead, world;
    MPI_Comm comm;
};

static struct step steps[STEPS];
static struct edge edges[EDGES];
static int step_count, edge_count, processes, roots, apart;
static int component[MOST];
static unsigned state;

/* The members of each component, in their order, after the steps so far. */
static int grown[MOST], order[MOST][MOST];

static int rnd(int below)
{
    state = state * 1103515245u + 12345u;
    return (int)((state >> 16) % (unsigned)below);
}

static int add_edge(int first, int count, int also)
{
    struct edge *e = &edges[edge_count];
    memset(e, 0, sizeof *e);
    e->comm = MPI_COMM_NULL;
    if (also >= 0)
        e->member[e->count++] = also;
    for (int i = 0; i < count; i++)
        e->member[e->count++] = first + i;
    e->world = also < 0;
    return edge_count++;
}

static int one_component(void)
{
    for (int i = 1; i < processes; i++)
        if (component[i] != component[0])
            return 0;
    return 1;
}

/* Finds two members of an edge that are in different components. */
static int bridge(int edge, int *u, int *v)
{
    struct edge *e = &edges[edge];
    int start = rnd(e->count);
    for (int i = 0; i < e->count && !e->dead; i++)
        for (int j = 0; j < e->count; j++) {
            *u = e->member[(start + i) % e->count];
            *v = e->member[(start + j) % e->count];
            if (component[*u] != component[*v])
                return 1;
        }
    return 0;
}

static void plan(unsigned seed)
{
    int extra = 2, all = roots + 2 + (int)(seed % 3);
    state = seed * 2654435761u + 1;
    step_count = edge_count = 0;
    processes = roots;
    for (int i = 0; i < MOST; i++)
        component[i] = i;
    add_edge(0, roots, -1);
    while (step_count < STEPS && edge_count < EDGES - 2) {
        int done = processes == all && one_component();
        if (done && extra-- == 0)
            return;
        struct step *s = &steps[step_count];
        memset(s, 0, sizeof *s);
        s->kind = done ? PORT : (enum kind)rnd(4);
        s->u = rnd(processes);
        s->v = rnd(processes);
        if (s->kind == SPAWN && processes < all) {
            s->count = 1 + rnd(all - processes > 1 ? 2 : 1);
            s->v = processes;
            s->edge = add_edge(processes, s->count, s->u);
            add_edge(processes, s->count, -1);
            processes += s->count;
            step_count++;
        } else if ((s->kind == PORT || (s->kind == JOIN && !apart)) && s->u != s->v) {
            if ((apart && component[s->u] != component[s->v]) || rnd(2))
                continue;
            s->edge = add_edge(s->v, 1, s->u);
            step_count++;
        } else if (s->kind == CREATE) {
            s->edge = rnd(edge_count);
            if (!bridge(s->edge, &s->u, &s->v))
                continue;
            for (int i = 0, from = component[s->v]; i < MOST; i++)
                if (component[i] == from)
                    component[i] = component[s->u];
            /* A communicator may be freed only if its processes stay connected by other communicators. */
            int u, v, needed = bridge(s->edge, &u, &v);
            s->dead = edges[s->edge].dead = !needed && !edges[s->edge].world && rnd(2);
            step_count++;
        }
    }
    CHECK(0, "no plan for seed %u", seed);
}

static int place(const int *list, int count, int who)
{
    for (int i = 0; i < count; i++)
        if (list[i] == who)
            return i;
    return -1;
}

static MPI_Comm merged(MPI_Comm inter, int high)
{
    MPI_Comm both;
    MPI_Intercomm_merge(inter, high, &both);
    MPI_Comm_free(&inter);
    return both;
}

static int abstract(struct sockaddr_un *at, const char *name)
{
    memset(at, 0, sizeof *at);
    at->sun_family = AF_UNIX;
    strcpy(at->sun_path + 1, name);
    return (int)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name));
}

/* Waits a little for another process. Messages to further processes make progress meanwhile. */
static void pause_a_little(void)
{
    int flag;
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE);
    usleep(2000);
}

static MPI_Comm by_socket(int accepts, const char *name)
{
    struct sockaddr_un at;
    int length = abstract(&at, name), tries = 0, fd = socket(AF_UNIX, SOCK_STREAM, 0);
    MPI_Comm inter;
    if (accepts) {
        int listener = fd;
        CHECK(bind(listener, (void *)&at, length) == 0 && listen(listener, 1) == 0);
        fcntl(listener, F_SETFL, O_NONBLOCK);
        while ((fd = accept(listener, NULL, NULL)) < 0 && tries++ < 10000)
            pause_a_little();
        CHECK(fd >= 0);
        close(listener);
    } else {
        while (connect(fd, (void *)&at, length) != 0 && tries++ < 10000)
            pause_a_little();
    }
    MPI_Comm_join(fd, &inter);
    close(fd);
    return merged(inter, !accepts);
}

static MPI_Comm by_port(int accepts, const char *name, MPI_Comm common, int other)
{
    char port[MPI_MAX_PORT_NAME];
    MPI_Comm inter;
    if (accepts) {
        MPI_Open_port(MPI_INFO_NULL, port);
        if (apart)
            MPI_Send(port, sizeof port, MPI_CHAR, other, 1, common);
        else
            MPI_Publish_name(name, MPI_INFO_NULL, port);
        MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter);
        if (!apart)
            MPI_Unpublish_name(name, MPI_INFO_NULL, port);
        MPI_Close_port(port);
    } else {
        int found = MPI_ERR_NAME;
        MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
        if (apart)
            found = MPI_Recv(port, sizeof port, MPI_CHAR, other, 1, common, MPI_STATUS_IGNORE);
        for (int i = 0; i < 10000 && found != MPI_SUCCESS; i++, pause_a_little())
            found = MPI_Lookup_name(name, MPI_INFO_NULL, port);
        MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
        MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter);
    }
    return merged(inter, !accepts);
}

/* Makes an intercommunicator of every pair and of random halves, and sends messages. */
static void talk(MPI_Comm all, int me)
{
    int count, at, who[MOST];
    MPI_Comm_size(all, &count);
    MPI_Comm_rank(all, &at);
    CHECK(count == processes && order[0][at] == me, "process %d is at %d of %d", me, at, count);
    MPI_Allgather(&me, 1, MPI_INT, who, 1, MPI_INT, all);
    for (int i = 0; i < count; i++)
        CHECK(who[i] == order[0][i]);
    for (int i = 0; i < count; i++)
        for (int j = i + 1; j < count; j++) {
            if (at != i && at != j)
                continue;
            int other = at == i ? j : i, said[2] = {me, i * MOST + j}, heard[2] = {-1, -1};
            MPI_Comm inter;
            MPI_Intercomm_create(MPI_COMM_SELF, 0, all, other, i * MOST + j, &inter);
            MPI_Sendrecv(said, 2, MPI_INT, 0, 3, heard, 2, MPI_INT, 0, 3, inter, MPI_STATUS_IGNORE);
            CHECK(heard[0] == who[other] && heard[1] == said[1], "%d from %d", heard[0], who[other]);
            MPI_Comm_disconnect(&inter);
        }
    for (int again = 0; again < 2; again++) {
        int first = rnd(count), half = 1 + rnd(count - 1);
        int mine = (at - first + count) % count < half, sum = 0, expected = 0;
        MPI_Comm side, inter;
        MPI_Comm_split(all, mine, at, &side);
        int leaders[2] = {-1, -1};
        for (int i = count - 1; i >= 0; i--)
            leaders[(i - first + count) % count < half] = i;
        MPI_Intercomm_create(side, 0, all, leaders[!mine], again, &inter);
        MPI_Allreduce(&me, &sum, 1, MPI_INT, MPI_SUM, inter);
        for (int i = 0; i < count; i++)
            expected += (i - first + count) % count < half ? (mine ? 0 : who[i]) : (mine ? who[i] : 0);
        CHECK(sum == expected, "%d, not %d", sum, expected);
        MPI_Comm_disconnect(&inter);
        MPI_Comm_free(&side);
    }
}

static MPI_Comm spawned(const struct step *s, char *self, unsigned seed, long mark)
{
    char words[5][24];
    char *argv[] = {"graph", words[0], words[1], words[2], words[3], words[4], NULL};
    MPI_Comm inter;
    snprintf(words[0], sizeof words[0], "%u", seed);
    snprintf(words[1], sizeof words[1], "%d", roots);
    snprintf(words[2], sizeof words[2], "%d", (int)(s - steps));
    snprintf(words[3], sizeof words[3], "%d", apart);
    snprintf(words[4], sizeof words[4], "%ld", mark);
    MPI_Comm_spawn(self, argv, s->count, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter, MPI_ERRCODES_IGNORE);
    return merged(inter, 0);
}

/* Follows the plan from a step on, as process `me`. */
static void follow(char *self, unsigned seed, long mark, int from, int me, MPI_Comm comp)
{
    char name[64];
    for (int i = 0; i < MOST; i++) {
        component[i] = order[i][0] = i;
        grown[i] = 1;
    }
    for (int at = 0; at < step_count; at++) {
        struct step *s = &steps[at];
        struct edge *e = &edges[s->edge];
        int here = at >= from, mine = component[me];
        snprintf(name, sizeof name, "weft-graph-%ld-%u-%d", mark, seed, at);
        if (here && s->kind == SPAWN && s->u == me)
            e->comm = spawned(s, self, seed, mark);
        if (here && (s->kind == PORT || s->kind == JOIN) && (s->u == me || s->v == me)) {
            int other = place(order[mine], grown[mine], s->u == me ? s->v : s->u);
            e->comm = s->kind == PORT ? by_port(s->u == me, name, comp, other) : by_socket(s->u == me, name);
        }
        if (s->kind != CREATE)
            continue;
        int one = component[s->u], two = component[s->v];
        if (here && (mine == one || mine == two)) {
            int leader = mine == one ? s->u : s->v, other = mine == one ? s->v : s->u;
            MPI_Comm inter;
            MPI_Intercomm_create(comp, place(order[mine], grown[mine], leader), e->comm,
                                 place(e->member, e->count, other), at, &inter);
            if (comp != MPI_COMM_SELF)
                MPI_Comm_free(&comp);
            comp = merged(inter, mine == two);
        }
        memcpy(order[one] + grown[one], order[two], sizeof(int) * grown[two]);
        grown[one] += grown[two];
        for (int i = 0; i < MOST; i++)
            if (component[i] == two)
                component[i] = one;
        if (s->dead && e->comm != MPI_COMM_NULL)
            MPI_Comm_free(&e->comm);
    }
    memcpy(order[0], order[component[0]], sizeof order[0]);
    talk(comp, me);
    if (comp != MPI_COMM_SELF)
        MPI_Comm_disconnect(&comp);
    for (int i = 0; i < edge_count; i++)
        if (edges[i].comm != MPI_COMM_NULL && edges[i].comm != MPI_COMM_WORLD)
            MPI_Comm_disconnect(&edges[i].comm);
}

int main(int argc, char **argv)
{
    MPI_Comm parent;
    begin(&argc, &argv);
    MPI_Comm_get_parent(&parent);
    if (parent != MPI_COMM_NULL) {
        unsigned seed = (unsigned)atoi(argv[2]);
        int from = atoi(argv[4]);
        roots = atoi(argv[3]);
        apart = atoi(argv[5]);
        plan(seed);
        edges[steps[from].edge].comm = merged(parent, 1);
        edges[steps[from].edge + 1].comm = MPI_COMM_WORLD;
        follow(argv[0], seed, atol(argv[6]), from + 1, steps[from].v + rank, MPI_COMM_SELF);
        MPI_Finalize();
        return 0;
    }
    apart = argc > 1 && strcmp(argv[1], "apart") == 0;
    int graphs = argc > 2 ? atoi(argv[2]) : 2;
    long mark = (long)getpid();
    MPI_Bcast(&mark, 1, MPI_LONG, 0, MPI_COMM_WORLD);
    roots = size;
    for (int i = 0; i < graphs; i++) {
        unsigned seed = (unsigned)(argc > 3 ? atoi(argv[3]) + i : 10 * size + i);
        plan(seed);
        edges[0].comm = MPI_COMM_WORLD;
        follow(argv[0], seed, mark, 0, rank, MPI_COMM_SELF);
    }
    return end();
}
