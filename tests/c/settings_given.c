// ranks: 2
// says: correct
// env: | WEFT_RMA_ORDER=called | WEFT_RMA_ORDER=turns | WEFT_FENCE=2S WEFT_RMA_ATOMICS=guarded | WEFT_PROGRESS=handover | WEFT_PROGRESS=locked | WEFT_STREAM_SEGMENT=1024 | WEFT_STREAM_SEGMENT=1024 WEFT_STREAM_WINDOW=1 | WEFT_STREAM_RENDEZVOUS=30000 | WEFT_STREAM_RENDEZVOUS=30000 WEFT_STREAM_BLOCK=4096
//
// What the environment says of windows, of the helper thread and of streams takes effect, and the defaults do without it.
#define _GNU_SOURCE
#include "tools.h"
#include <dirent.h>

static const char *given(const char *name, const char *usual)
{
    const char *text = getenv(name);
    return text ? text : usual;
}

/* How a window works is what its hints say. */
static void windows(void)
{
    static const char *const names[][3] = {{"WEFT_FENCE", "weft_fence", "ACK"},
                                           {"WEFT_RMA_ORDER", "weft_rma_order", "called"},
                                           {"WEFT_RMA_ATOMICS", "weft_rma_atomics", "auto"}};
    int *memory, other = 1 - rank;
    MPI_Win window;
    MPI_Info info;
    MPI_Group world, peer;
    MPI_Win_allocate(sizeof *memory, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
    MPI_Win_get_info(window, &info);
    for (int i = 0; i < 3; i++) {
        char value[100] = "";
        int flag, length = sizeof value;
        MPI_Info_get_string(info, names[i][1], &length, value, &flag);
        CHECK(flag && !strcmp(value, given(names[i][0], names[i][2])), "%s: %s", names[i][0], value);
    }
    MPI_Info_free(&info);
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, 1, &other, &peer);
    for (int round = 0; round < 10; round++) {
        int word = 100 * round + rank;
        MPI_Win_post(peer, 0, window);
        MPI_Win_start(peer, 0, window);
        MPI_Put(&word, 1, MPI_INT, other, 0, 1, MPI_INT, window);
        MPI_Win_complete(window);
        MPI_Win_wait(window);
        CHECK(*memory == 100 * round + other, "%d", *memory);
    }
    MPI_Group_free(&peer);
    MPI_Group_free(&world);
    MPI_Win_free(&window);
}

/* Whether the process has a thread of that name. */
static int runs(const char *thread)
{
    DIR *tasks = opendir("/proc/self/task");
    struct dirent *task;
    int found = 0;
    while ((task = readdir(tasks))) {
        char path[300], name[100] = "";
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", task->d_name);
        FILE *file = fopen(path, "r");
        if (file && fgets(name, sizeof name, file)) found |= !strncmp(name, thread, strlen(thread));
        if (file) fclose(file);
    }
    closedir(tasks);
    return found;
}

static void helper(void)
{
    if (!getenv("WEFT_PROGRESS")) return;
    /* It is there when MPI_Init is over, but may have to begin yet. */
    for (double until = MPI_Wtime() + 20; MPI_Wtime() < until;)
        if (runs("weft-helper")) return;
    CHECK(0, "no helper thread");
}

static void streams(void)
{
    enum { BYTES = 40 << 10 };
    static char data[BYTES];
    MPI_T_pvar_session session;
    tool_begin();
    OK(MPI_T_pvar_session_create(&session));
    int room;
    OK(MPI_T_cvar_write(control("WEFT_BCAST", &room), "FLAT"));
    MPI_T_pvar_handle segmented = counter(session, "weft.collective.stream_segmented");
    MPI_T_pvar_handle blocks = counter(session, "weft.collective.stream_blocks");
    MPI_T_pvar_handle pieces = counter(session, "weft.collective.stream_pieces");
    MPI_T_pvar_handle grants = counter(session, "weft.collective.stream_grants");
    if (rank == 0) memset(data, 'x', sizeof data);
    MPI_Bcast(data, BYTES, MPI_CHAR, 0, MPI_COMM_WORLD);
    CHECK(data[0] == 'x' && data[BYTES - 1] == 'x');
    number segment = strtoull(given("WEFT_STREAM_SEGMENT", "65536"), NULL, 10);
    number block = strtoull(given("WEFT_STREAM_BLOCK", "131072"), NULL, 10);
    number rendezvous = strtoull(given("WEFT_STREAM_RENDEZVOUS", "262144"), NULL, 10);
    number unit = BYTES > rendezvous ? block : segment, sent = rank == 0;
    CHECK(value(session, segmented) == (BYTES > rendezvous ? 0 : sent));
    CHECK(value(session, blocks) == (BYTES > rendezvous ? sent : 0));
    CHECK(value(session, pieces) == sent * ((BYTES + unit - 1) / unit), "%llu", value(session, pieces));
    /* One after the other is given room, or many at once. */
    number given_room = value(session, grants);
    if (rank == 1 && segment == 1024) {
        if (getenv("WEFT_STREAM_WINDOW")) CHECK(given_room >= 30, "%llu", given_room);
        else CHECK(given_room < 30, "%llu", given_room);
    }
    OK(MPI_T_finalize());
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    windows();
    helper();
    streams();
    return end();
}
