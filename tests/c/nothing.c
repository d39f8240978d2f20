// ranks: 1 2 4
// says: correct
// env: | WEFT_CMA=0
//
// What the library hands out for things without a size: addresses that mean something or NULL, never a
// sentinel of its own, and the same in meaning for owner and neighbours.
#include "check.h"

/* No program has memory there: the first page, and the last bytes of all. */
static void real_or_null(const void *at, const char *what)
{
    uintptr_t word = (uintptr_t)at;
    CHECK(word == 0 || (word >= 4096 && word < (uintptr_t)-4096), "%s is %p", what, at);
}

static void *base_of(MPI_Win win, MPI_Aint expected)
{
    void *base = (void *)1;
    MPI_Aint *length = NULL;
    int *unit = NULL, flag = 0;
    MPI_Win_get_attr(win, MPI_WIN_BASE, &base, &flag);
    CHECK(flag);
    MPI_Win_get_attr(win, MPI_WIN_SIZE, &length, &flag);
    CHECK(flag && *length == expected, "size %ld", (long)*length);
    MPI_Win_get_attr(win, MPI_WIN_DISP_UNIT, &unit, &flag);
    CHECK(flag && *unit >= 1);
    real_or_null(base, "MPI_WIN_BASE");
    return base;
}

/* Windows of shared memory in which some ranks have nothing: bits of `who` say which. */
static void shared(MPI_Comm node, int who, int apart)
{
    int me, n, unit;
    MPI_Info info;
    MPI_Win win;
    MPI_Comm_rank(node, &me);
    MPI_Comm_size(node, &n);
    MPI_Info_create(&info);
    if (apart) MPI_Info_set(info, "alloc_shared_noncontig", "true");
    MPI_Aint mine = who >> me & 1 ? 0 : 64 * (me + 1), length, first = 0;
    char *base = (char *)1, *seen = (char *)1, *start = NULL;
    MPI_Win_allocate_shared(mine, 4, info, node, &base, &win);
    MPI_Info_free(&info);
    real_or_null(base, "the base of a shared window");
    CHECK(base != NULL && base == base_of(win, mine));
    MPI_Win_lock_all(MPI_MODE_NOCHECK, win);
    for (int i = 0; i < n; i++) {
        MPI_Win_shared_query(win, i, &length, &unit, &seen);
        CHECK(length == (who >> i & 1 ? 0 : 64 * (i + 1)) && unit == 4);
        real_or_null(seen, "what a shared window shows");
        if (i == me) CHECK(seen == base, "%p and %p", (void *)seen, (void *)base);
        /* Parts follow each other; a part of no bytes lies between its neighbours. */
        if (i == 0) start = seen;
        if (!apart) CHECK(seen == start + first, "rank %d of %d, who %d", i, n, who);
        first += length;
        /* Owner and neighbours mean the same place. */
        if (length) seen[0] = 0;
    }
    MPI_Win_unlock_all(win);
    int none = who == (1 << n) - 1, sum = 0;
    seen = (char *)1, length = -1;
    MPI_Win_shared_query(win, MPI_PROC_NULL, &length, &unit, &seen);
    real_or_null(seen, "MPI_PROC_NULL's part");
    CHECK(none ? length == 0 : length > 0 && seen != NULL);
    MPI_Barrier(node);
    if (mine) base[0] = (char)(me + 1);
    MPI_Win_fence(0, win);
    for (int i = 0; i < n; i++) {
        MPI_Win_shared_query(win, i, &length, &unit, &seen);
        if (length) CHECK(seen[0] == i + 1);
        sum += (int)length;
    }
    MPI_Win_fence(0, win);
    CHECK(apart || sum == (int)first);
    MPI_Win_free(&win);
}

/* The other kinds of windows, without a byte. */
static void windows(void)
{
    void *base = (void *)1, *seen;
    MPI_Aint length;
    MPI_Win win;
    int unit;
    MPI_Win_allocate(0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    real_or_null(base, "MPI_Win_allocate's base");
    CHECK(base_of(win, 0) == base);
    for (int i = MPI_PROC_NULL; i < size; i = i < 0 ? 0 : i + 1) {
        seen = (void *)1;
        MPI_Win_shared_query(win, i, &length, &unit, &seen);
        CHECK(length == 0);
        real_or_null(seen, "what an allocated window shows");
        CHECK(i != rank || seen == base || seen == NULL);
    }
    MPI_Put(NULL, 0, MPI_INT, MPI_PROC_NULL, 0, 0, MPI_INT, win);
    MPI_Win_free(&win);
    char own[4];
    void *given[] = {NULL, own, (void *)16};
    for (int i = 0; i < 3; i++) {
        MPI_Win_create(given[i], 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
        int flag;
        MPI_Win_get_attr(win, MPI_WIN_BASE, &seen, &flag);
        CHECK(flag && seen == given[i], "what the program gave: %p", seen);
        for (int peer = 0; peer < size; peer++) {
            seen = (void *)1;
            MPI_Win_shared_query(win, peer, &length, &unit, &seen);
            CHECK(length == 0);
            real_or_null(seen, "what a window of nothing shows");
        }
        MPI_Win_free(&win);
    }
    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    CHECK(base_of(win, 0) == MPI_BOTTOM);
    MPI_Win_free(&win);
}

static void memory_and_buffers(void)
{
    void *at = (void *)1, *again = (void *)1;
    int n = -1;
    MPI_Count many = -1;
    MPI_Alloc_mem(0, MPI_INFO_NULL, &at);
    MPI_Alloc_mem(0, MPI_INFO_NULL, &again);
    real_or_null(at, "MPI_Alloc_mem of 0 bytes");
    CHECK(at == NULL || at != again);
    MPI_Free_mem(at), MPI_Free_mem(again);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    at = (void *)1;
    FAILS(MPI_Buffer_detach(&at, &n), MPI_ERR_BUFFER);
    CHECK(at == (void *)1 && n == -1, "nothing was detached");
    MPI_Buffer_attach(NULL, 0);
    MPI_Buffer_detach(&at, &n);
    CHECK(at == NULL && n == 0);
    MPI_Buffer_attach(&n, 0);
    MPI_Buffer_detach_c(&at, &many);
    CHECK(at == &n && many == 0);
    MPI_Buffer_attach(MPI_BUFFER_AUTOMATIC, 0);
    MPI_Buffer_detach_c(&at, &many);
    CHECK(at == MPI_BUFFER_AUTOMATIC && many == 0);
    MPI_Comm_attach_buffer(MPI_COMM_WORLD, NULL, 0);
    MPI_Comm_detach_buffer(MPI_COMM_WORLD, &at, &n);
    CHECK(at == NULL && n == 0);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

/* Statuses of nothing (MPI 5.0, section 3.7.3), and of the process null. */
static void empty(const MPI_Status *status, int source)
{
    int n = -1, cancelled = -1;
    MPI_Count elements = -1;
    CHECK(status->MPI_SOURCE == source && status->MPI_TAG == MPI_ANY_TAG, "%d %d", status->MPI_SOURCE,
          status->MPI_TAG);
    CHECK(status->MPI_ERROR == MPI_SUCCESS);
    MPI_Get_count(status, MPI_INT, &n);
    MPI_Get_elements_c(status, MPI_INT, &elements);
    MPI_Test_cancelled(status, &cancelled);
    CHECK(n == 0 && elements == 0 && !cancelled);
}

static void statuses(void)
{
    MPI_Status status, two[2];
    MPI_Request null = MPI_REQUEST_NULL, inactive, pair[2];
    MPI_Message message;
    int flag, index, n, places[2];
    MPI_Recv_init(&n, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, &inactive);
    MPI_Request *idle[] = {&null, &inactive};
    for (int i = 0; i < 2; i++) {
#define RUBBISH memset(&status, 0x5a, sizeof status), memset(two, 0x5a, sizeof two)
        pair[0] = pair[1] = *idle[i];
        RUBBISH, MPI_Wait(idle[i], &status), empty(&status, MPI_ANY_SOURCE);
        RUBBISH, MPI_Test(idle[i], &flag, &status), empty(&status, MPI_ANY_SOURCE);
        CHECK(flag);
        RUBBISH, MPI_Request_get_status(*idle[i], &flag, &status), empty(&status, MPI_ANY_SOURCE);
        RUBBISH, MPI_Waitany(2, pair, &index, &status), empty(&status, MPI_ANY_SOURCE);
        CHECK(index == MPI_UNDEFINED);
        RUBBISH, MPI_Testany(2, pair, &index, &flag, &status), empty(&status, MPI_ANY_SOURCE);
        CHECK(flag && index == MPI_UNDEFINED);
        RUBBISH, MPI_Waitall(2, pair, two);
        empty(&two[0], MPI_ANY_SOURCE), empty(&two[1], MPI_ANY_SOURCE);
        RUBBISH, MPI_Testall(2, pair, &flag, two);
        empty(&two[0], MPI_ANY_SOURCE), empty(&two[1], MPI_ANY_SOURCE);
        MPI_Waitsome(2, pair, &n, places, two);
        CHECK(n == MPI_UNDEFINED);
    }
    MPI_Request_free(&inactive);
    RUBBISH, status.MPI_ERROR = 0;
    MPI_Recv(&n, 1, MPI_INT, MPI_PROC_NULL, 3, MPI_COMM_WORLD, &status);
    empty(&status, MPI_PROC_NULL);
    RUBBISH, status.MPI_ERROR = 0;
    MPI_Probe(MPI_PROC_NULL, 3, MPI_COMM_WORLD, &status), empty(&status, MPI_PROC_NULL);
    RUBBISH, status.MPI_ERROR = 0;
    MPI_Mprobe(MPI_PROC_NULL, 3, MPI_COMM_WORLD, &message, &status), empty(&status, MPI_PROC_NULL);
    CHECK(message == MPI_MESSAGE_NO_PROC);
    RUBBISH, status.MPI_ERROR = 0;
    MPI_Mrecv(&n, 1, MPI_INT, &message, &status), empty(&status, MPI_PROC_NULL);
    CHECK(message == MPI_MESSAGE_NULL);
    RUBBISH, status.MPI_ERROR = 0;
    MPI_Irecv(&n, 1, MPI_INT, MPI_PROC_NULL, 3, MPI_COMM_WORLD, &null);
    MPI_Wait(&null, &status), empty(&status, MPI_PROC_NULL);
}

static void others(void)
{
    MPI_Aint address = -1, lower = -1, extent = -1;
    MPI_Datatype type;
    MPI_Group group;
    MPI_Comm comm = MPI_COMM_WORLD;
    MPI_Info info;
    int n = -1, flag = -1, a, d, i, combiner;
    char name[MPI_MAX_OBJECT_NAME] = "##";
    MPI_Get_address(MPI_BOTTOM, &address);
    CHECK(address == 0);
    MPI_Type_contiguous(0, MPI_INT, &type);
    MPI_Type_get_extent(type, &lower, &extent);
    CHECK(lower == 0 && extent == 0);
    MPI_Type_get_true_extent(type, &lower, &extent);
    CHECK(lower == 0 && extent == 0, "%ld %ld", (long)lower, (long)extent);
    MPI_Type_get_name(type, name, &n);
    CHECK(n == 0 && name[0] == 0);
    MPI_Type_free(&type);
    MPI_Type_create_struct(0, NULL, NULL, NULL, &type);
    MPI_Type_get_true_extent(type, &lower, &extent);
    CHECK(lower == 0 && extent == 0);
    MPI_Type_size(type, &n);
    MPI_Type_get_envelope(type, &i, &a, &d, &combiner);
    CHECK(n == 0 && i == 1 && a == 0 && d == 0 && combiner == MPI_COMBINER_STRUCT);
    i = -1;
    MPI_Type_get_contents(type, 1, 0, 0, &i, NULL, NULL);
    CHECK(i == 0);
    MPI_Type_free(&type);
    MPI_Comm_get_parent(&comm);
    CHECK(comm == MPI_COMM_NULL);
    MPI_Comm_group(MPI_COMM_WORLD, &group);
    MPI_Group none;
    MPI_Group_incl(group, 0, NULL, &none);
    CHECK(none == MPI_GROUP_EMPTY);
    MPI_Group_rank(none, &n);
    CHECK(n == MPI_UNDEFINED);
    MPI_Group_free(&group);
    MPI_Info_create(&info);
    MPI_Info_set(info, "key", "");
    n = sizeof name, strcpy(name, "##");
    MPI_Info_get_string(info, "key", &n, name, &flag);
    CHECK(flag && n == 1 && name[0] == 0, "%d", n);
    MPI_Info_free(&info);
    MPI_Comm_dup(MPI_COMM_SELF, &comm);
    strcpy(name, "##");
    MPI_Comm_get_name(comm, name, &n);
    CHECK(n == 0 && name[0] == 0);
    MPI_Comm_free(&comm);
    CHECK(comm == MPI_COMM_NULL);
}

int main(int argc, char **argv)
{
    MPI_Comm node;
    int n;
    begin(&argc, &argv);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_size(node, &n);
    for (int who = 0; who < 1 << n; who++)
        for (int apart = 0; apart < 2; apart++) shared(node, who, apart);
    MPI_Comm_free(&node);
    windows();
    memory_and_buffers();
    statuses();
    others();
    return end();
}
