// ranks: 1 2 3
// env: | WEFT_CMA=0 | WEFT_FAULT=seed=7,message_delay=0.3,completion_delay=0.3,reorder=1 | WEFT_PROGRESS=handover | WEFT_FENCE=2S | WEFT_FENCE=1S WEFT_RMA_ORDER=turns WEFT_FAULT=seed=3,completion_delay=0.5 | WEFT_FENCE=1S-BARRIER | WEFT_FENCE=RI WEFT_FAULT=seed=3,completion_delay=0.5
// says: correct
//
// One-sided communication (MPI 5.0, chapter 12): all kinds of windows in all kinds of epochs, every
// operation, with int counts and large ones.
#include "check.h"
#include <stddef.h>

#define WORLD MPI_COMM_WORLD
enum { N = 64 };

static int right, left;
static int together; /* all ranks share memory */

/* Windows of N longs, all of one rank's value in each. */
typedef struct {
    MPI_Win win;
    long *mine;
    MPI_Aint at; /* displacement of the first long in a target; of a dynamic window it is an address */
    MPI_Aint *addresses;
    void *memory;
} Made;

enum { CREATE, ALLOCATE, SHARED, DYNAMIC, ALLOCATED_CREATE, KINDS };

static Made make(int kind)
{
    Made made = {.mine = NULL};
    MPI_Info info;
    MPI_Info_create(&info);
    switch (kind) {
    case CREATE:
        made.mine = made.memory = malloc(N * sizeof(long));
        MPI_Win_create(made.mine, N * sizeof(long), sizeof(long), info, WORLD, &made.win);
        break;
    case ALLOCATED_CREATE:
        MPI_Alloc_mem(N * sizeof(long), MPI_INFO_NULL, &made.mine);
        MPI_Win_create_c(made.mine, N * sizeof(long), sizeof(long), info, WORLD, &made.win);
        break;
    case ALLOCATE:
        MPI_Info_set(info, "mpi_minimum_memory_alignment", "8192");
        MPI_Win_allocate(N * sizeof(long), sizeof(long), info, WORLD, &made.mine, &made.win);
        CHECK((size_t)made.mine % 8192 == 0);
        break;
    case SHARED:
        MPI_Win_allocate_shared(N * sizeof(long), sizeof(long), info, WORLD, &made.mine, &made.win);
        break;
    case DYNAMIC: {
        MPI_Aint address;
        made.mine = made.memory = malloc(N * sizeof(long));
        MPI_Win_create_dynamic(info, WORLD, &made.win);
        MPI_Win_attach(made.win, made.mine, N * sizeof(long));
        made.addresses = malloc(size * sizeof *made.addresses);
        MPI_Get_address(made.mine, &address);
        MPI_Allgather(&address, 1, MPI_AINT, made.addresses, 1, MPI_AINT, WORLD);
    }
    }
    MPI_Info_free(&info);
    for (int i = 0; i < N; i++) made.mine[i] = rank;
    MPI_Barrier(WORLD);
    return made;
}

/* The displacement of a rank's long `i`. */
static MPI_Aint at(const Made *made, int target, int i)
{
    return made->addresses ? made->addresses[target] + i * (MPI_Aint)sizeof(long) : i;
}

static void unmake(Made *made, int kind)
{
    if (kind == DYNAMIC) MPI_Win_detach(made->win, made->mine);
    MPI_Win_free(&made->win);
    CHECK(made->win == MPI_WIN_NULL);
    if (kind == ALLOCATED_CREATE) MPI_Free_mem(made->mine);
    free(made->memory);
    free(made->addresses);
}

static void epochs(int kind)
{
    Made made = make(kind);
    MPI_Win win = made.win;
    MPI_Group all, one[2];
    long data[N], got[N];
    int members[2] = {right, left};
    for (int i = 0; i < N; i++) data[i] = 1000 * (rank + 1) + i;

    /* Fences, and data with gaps on one side. */
    MPI_Datatype every_other;
    MPI_Type_vector(N / 4, 1, 2, MPI_LONG, &every_other);
    MPI_Type_commit(&every_other);
    MPI_Win_fence(MPI_MODE_NOPRECEDE, win);
    MPI_Put(data, N / 4, MPI_LONG, right, at(&made, right, 1), 1, every_other, win);
    MPI_Win_fence(0, win);
    for (int i = 0; i < N / 4; i++) {
        CHECK(made.mine[1 + 2 * i] == 1000 * (left + 1) + i, "long %d is %ld", i, made.mine[1 + 2 * i]);
        CHECK(made.mine[2 * i] == rank, "a gap holds %ld", made.mine[2 * i]);
    }
    memset(got, 0, sizeof got);
    MPI_Get_c(got, 1, every_other, left, at(&made, left, 1), 1, every_other, win);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    int beyond = (left + size - 1) % size;
    for (int i = 0; i < N / 4; i++) CHECK(got[2 * i] == 1000 * (beyond + 1) + i && !got[2 * i + 1]);
    MPI_Type_free(&every_other);

    /* Post and start, wait and test. */
    MPI_Win_get_group(win, &all);
    for (int i = 0; i < 2; i++) MPI_Group_incl(all, 1, &members[i], &one[i]);
    for (int round = 0; round < 6; round++) {
        MPI_Win_post(one[1], round % 2 ? MPI_MODE_NOSTORE : 0, win);
        MPI_Win_start(one[0], 0, win);
        MPI_Put_c(&data[round], 1, MPI_LONG, right, at(&made, right, 0), 1, MPI_LONG, win);
        MPI_Win_complete(win);
        if (round % 2) {
            int flag = 0;
            while (!flag) MPI_Win_test(win, &flag);
        } else {
            MPI_Win_wait(win);
        }
        CHECK(made.mine[0] == 1000 * (left + 1) + round, "round %d: %ld", round, made.mine[0]);
    }
    MPI_Barrier(WORLD);
    for (int i = 0; i < 2; i++) MPI_Group_free(&one[i]);
    MPI_Group_free(&all);

    /* Locks. */
    for (int round = 0; round < 20; round++) {
        int target = round % size;
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win);
        MPI_Get(got, 1, MPI_LONG, target, at(&made, target, 4), 1, MPI_LONG, win);
        MPI_Win_flush(target, win);
        got[0] = round < size ? 1 : got[0] + 1;
        if (round < size) MPI_Win_flush_local(target, win);
        else MPI_Put(got, 1, MPI_LONG, target, at(&made, target, 4), 1, MPI_LONG, win);
        MPI_Win_unlock(target, win);
    }
    MPI_Barrier(WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win);
    int turns = 0;
    for (int round = size; round < 20; round++) turns += round % size == rank;
    CHECK(made.mine[4] == rank + (long)turns * size, "%ld, not %d turns of all", made.mine[4], turns);
    MPI_Win_unlock(rank, win);
    MPI_Barrier(WORLD);
    MPI_Win_lock_all(0, win);
    MPI_Put(&data[9], 2, MPI_LONG, right, at(&made, right, 9), 2, MPI_LONG, win);
    MPI_Win_flush_all(win);
    MPI_Get(got, 2, MPI_LONG, right, at(&made, right, 9), 2, MPI_LONG, win);
    MPI_Win_flush_local_all(win);
    CHECK(got[0] == data[9] && got[1] == data[10]);
    MPI_Win_sync(win);
    MPI_Put(data, 1, MPI_LONG, MPI_PROC_NULL, 0, 1, MPI_LONG, win);
    MPI_Win_unlock_all(win);
    MPI_Win_lock(MPI_LOCK_SHARED, right, MPI_MODE_NOCHECK, win);
    MPI_Win_unlock(right, win);
    MPI_Barrier(WORLD);
    unmake(&made, kind);
}

static void operations(int kind)
{
    Made made = make(kind);
    MPI_Win win = made.win;
    long one = 1, two = 2, was, data[4] = {1, 2, 3, 4}, before[4];
    MPI_Request request[4];
    MPI_Win_lock_all(0, win);
    /* All add to all; what they find grows. */
    for (int target = 0; target < size; target++) {
        long last = -1;
        for (int i = 0; i < 50; i++) {
            MPI_Fetch_and_op(&one, &was, MPI_LONG, target, at(&made, target, 0), MPI_SUM, win);
            MPI_Win_flush(target, win);
            CHECK(was > last && was >= target, "%ld after %ld", was, last);
            last = was;
        }
        MPI_Accumulate(data, 4, MPI_LONG, target, at(&made, target, 1), 4, MPI_LONG, MPI_SUM, win);
        MPI_Accumulate_c(data, 4, MPI_LONG, target, at(&made, target, 1), 4, MPI_LONG, MPI_SUM, win);
        MPI_Raccumulate(&data[3], 1, MPI_LONG, target, at(&made, target, 5), 1, MPI_LONG, MPI_MAX, win,
                        &request[0]);
        MPI_Raccumulate_c(&data[3], 1, MPI_LONG, target, at(&made, target, 5), 1, MPI_LONG, MPI_MAX, win,
                          &request[1]);
        MPI_Rget_accumulate(data, 1, MPI_LONG, before, 1, MPI_LONG, target, at(&made, target, 6), 1,
                            MPI_LONG, MPI_SUM, win, &request[2]);
        MPI_Rget_accumulate_c(NULL, 0, MPI_LONG, before, 1, MPI_LONG, target, at(&made, target, 6), 1,
                              MPI_LONG, MPI_NO_OP, win, &request[3]);
        MPI_Waitall(4, request, MPI_STATUSES_IGNORE);
        CHECK(before[0] > target, "%ld", before[0]);
        MPI_Get_accumulate(data, 2, MPI_LONG, before, 2, MPI_LONG, target, at(&made, target, 7), 2, MPI_LONG,
                           MPI_REPLACE, win);
        MPI_Get_accumulate_c(data, 2, MPI_LONG, before, 2, MPI_LONG, target, at(&made, target, 7), 2,
                             MPI_LONG, MPI_NO_OP, win);
        MPI_Win_flush(target, win);
        CHECK((before[0] == 1 || before[0] == 2) && before[1] == 2, "%ld %ld", before[0], before[1]);
        MPI_Compare_and_swap(&two, &one, &was, MPI_LONG, target, at(&made, target, 7), win);
        MPI_Win_flush(target, win);
    }
    MPI_Win_unlock_all(win);
    MPI_Barrier(WORLD);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, win);
    CHECK(made.mine[0] == rank + 50 * size, "%ld", made.mine[0]);
    for (int i = 0; i < 4; i++) CHECK(made.mine[1 + i] == rank + 2 * data[i] * size);
    CHECK(made.mine[5] == (rank > 4 ? rank : 4) && made.mine[6] == rank + size && made.mine[8] == 2);
    CHECK(made.mine[7] == 1 || made.mine[7] == 2);
    MPI_Win_unlock(rank, win);
    MPI_Barrier(WORLD);

    /* Requests of puts and gets. */
    MPI_Win_lock_all(0, win);
    MPI_Rput(data, 2, MPI_LONG, right, at(&made, right, 10), 2, MPI_LONG, win, &request[0]);
    MPI_Rput_c(&data[2], 2, MPI_LONG, right, at(&made, right, 12), 2, MPI_LONG, win, &request[1]);
    MPI_Waitall(2, request, MPI_STATUSES_IGNORE);
    MPI_Win_flush(right, win);
    MPI_Rget(before, 2, MPI_LONG, right, at(&made, right, 10), 2, MPI_LONG, win, &request[0]);
    MPI_Rget_c(&before[2], 2, MPI_LONG, right, at(&made, right, 12), 2, MPI_LONG, win, &request[1]);
    MPI_Rget(NULL, 0, MPI_LONG, MPI_PROC_NULL, 0, 0, MPI_LONG, win, &request[2]);
    MPI_Waitall(3, request, MPI_STATUSES_IGNORE);
    for (int i = 0; i < 4; i++) CHECK(before[i] == data[i]);
    MPI_Win_unlock_all(win);
    MPI_Barrier(WORLD);
    unmake(&made, kind);
}

/* Elements that are longer than a word, pairs, and such as lie anywhere. */
static void elements(void)
{
    struct pair { double value; int where; };
    struct { struct pair best; double re, im; char shifted[9]; } *mine;
    MPI_Win win;
    MPI_Win_allocate_c(sizeof *mine, 1, MPI_INFO_NULL, WORLD, &mine, &win);
    memset(mine, 0, sizeof *mine);
    MPI_Barrier(WORLD);
    MPI_Win_lock_all(MPI_MODE_NOCHECK, win);
    MPI_Aint shifted = offsetof(__typeof__(*mine), shifted) + 1;
    for (int i = 0; i < 30; i++) {
        struct pair pair = {i % 7 + rank, 100 * rank + i};
        double complex_one[2] = {1, -1}, value = 1;
        MPI_Accumulate(&pair, 1, MPI_DOUBLE_INT, 0, 0, 1, MPI_DOUBLE_INT, MPI_MAXLOC, win);
        MPI_Accumulate(complex_one, 1, MPI_C_DOUBLE_COMPLEX, 0, sizeof(struct pair), 1,
                       MPI_C_DOUBLE_COMPLEX, MPI_SUM, win);
        MPI_Accumulate(&value, 1, MPI_DOUBLE, 0, shifted, 1, MPI_DOUBLE, MPI_SUM, win);
    }
    MPI_Win_unlock_all(win);
    MPI_Barrier(WORLD);
    if (rank == 0) {
        double sum;
        memcpy(&sum, mine->shifted + 1, sizeof sum);
        CHECK(mine->best.value == 6 + size - 1 && mine->best.where == 100 * (size - 1) + 6);
        CHECK(mine->re == 30 * size && mine->im == -30 * size, "%g %g", mine->re, mine->im);
        CHECK(sum == 30 * size, "%g", sum);
    }
    MPI_Win_free(&win);
}

/* What lies in shared memory is seen by all. */
static void shared(void)
{
    int *mine, *first, *other, unit;
    MPI_Aint length, unit_c;
    MPI_Win win;
    MPI_Info info;
    for (int apart = 0; apart < 2; apart++) {
        MPI_Info_create(&info);
        MPI_Info_set(info, "alloc_shared_noncontig", apart ? "true" : "false");
        MPI_Win_allocate_shared_c((rank + 1) * sizeof *mine, sizeof *mine, info, WORLD, &mine, &win);
        MPI_Info_free(&info);
        MPI_Win_lock_all(0, win);
        for (int i = 0; i <= rank; i++) mine[i] = 10 * rank + i;
        MPI_Win_sync(win);
        MPI_Barrier(WORLD);
        MPI_Win_sync(win);
        MPI_Win_shared_query(win, MPI_PROC_NULL, &length, &unit, &first);
        CHECK(length == sizeof *mine && unit == sizeof *mine);
        for (int i = 0, sum = 0; i < size; sum += ++i) {
            MPI_Win_shared_query_c(win, i, &length, &unit_c, &other);
            CHECK(length == (MPI_Aint)((i + 1) * sizeof *mine) && unit_c == sizeof *mine);
            CHECK(apart || other == first + sum);
            for (int j = 0; j <= i; j++) CHECK(other[j] == 10 * i + j);
        }
        MPI_Win_unlock_all(win);
        MPI_Win_free(&win);
    }
}

static int deleted, handled;

static int copy_nothing(MPI_Win win, int key, void *extra, void *in, void *out, int *flag)
{
    *flag = 0;
    return MPI_SUCCESS;
}

static int delete(MPI_Win win, int key, void *value, void *extra)
{
    deleted += *(int *)value;
    return MPI_SUCCESS;
}

static void handle(MPI_Win *win, int *code, ...)
{
    handled = class_of(*code);
}

/* Names, attributes, hints, handlers, integers for Fortran. */
static void properties(void)
{
    char name[MPI_MAX_OBJECT_NAME], value[MPI_MAX_INFO_VAL + 1];
    int key, length, flag, three = 3, *number;
    void *found;
    long memory[4];
    MPI_Win win;
    MPI_Info info;
    MPI_Errhandler handler, other;
    MPI_Info_create(&info);
    MPI_Info_set(info, "accumulate_ordering", "none");
    MPI_Info_set(info, "no_locks", "perhaps");
    MPI_Win_create(memory, sizeof memory, 4, info, WORLD, &win);
    MPI_Info_free(&info);
    MPI_Win_get_name(win, name, &length);
    CHECK(length == 0);
    MPI_Win_set_name(win, "halo");
    MPI_Win_get_name(win, name, &length);
    CHECK(length == 4 && !strcmp(name, "halo"));
    MPI_Win_get_attr(win, MPI_WIN_BASE, &found, &flag);
    CHECK(flag && found == memory);
    MPI_Aint *bytes;
    MPI_Win_get_attr(win, MPI_WIN_SIZE, &bytes, &flag);
    CHECK(flag && *bytes == sizeof memory);
    MPI_Win_get_attr(win, MPI_WIN_DISP_UNIT, &number, &flag);
    CHECK(flag && *number == 4);
    MPI_Win_get_attr(win, MPI_WIN_CREATE_FLAVOR, &number, &flag);
    CHECK(flag && *number == MPI_WIN_FLAVOR_CREATE);
    MPI_Win_get_attr(win, MPI_WIN_MODEL, &number, &flag);
    CHECK(flag && *number == MPI_WIN_UNIFIED);
    MPI_Win_create_keyval(copy_nothing, delete, &key, NULL);
    MPI_Win_get_attr(win, key, &found, &flag);
    CHECK(!flag);
    MPI_Win_set_attr(win, key, &three);
    MPI_Win_get_attr(win, key, &found, &flag);
    CHECK(flag && found == &three);
    MPI_Win_delete_attr(win, key);
    CHECK(deleted == 3);
    MPI_Win_set_attr(win, key, &three);
    MPI_Win_get_info(win, &info);
    length = sizeof value;
    MPI_Info_get_string(info, "accumulate_ordering", &length, value, &flag);
    CHECK(flag && !strcmp(value, "none"));
    length = sizeof value;
    MPI_Info_get_string(info, "no_locks", &length, value, &flag);
    CHECK(flag && !strcmp(value, "false"));
    MPI_Info_set(info, "same_size", "true");
    MPI_Win_set_info(win, info);
    MPI_Info_free(&info);
    MPI_Win_get_errhandler(win, &other);
    CHECK(other == MPI_ERRORS_ARE_FATAL);
    MPI_Win_create_errhandler(handle, &handler);
    MPI_Win_set_errhandler(win, handler);
    MPI_Win_get_errhandler(win, &other);
    CHECK(other == handler);
    MPI_Errhandler_free(&other);
    MPI_Errhandler_free(&handler);
    MPI_Win_call_errhandler(win, MPI_ERR_RMA_RANGE);
    CHECK(handled == MPI_ERR_RMA_RANGE);
    FAILS(MPI_Put(memory, 1, MPI_LONG, rank, 0, 1, MPI_LONG, win), MPI_ERR_RMA_SYNC);
    CHECK(handled == MPI_ERR_RMA_SYNC);
    CHECK(MPI_Win_fromint(MPI_Win_toint(win)) == win);
    CHECK(MPI_Win_fromint(MPI_Win_toint(MPI_WIN_NULL)) == MPI_WIN_NULL);
    MPI_Win_free(&win);
    CHECK(deleted == 6);
    MPI_Win_free_keyval(&key);
    CHECK(key == MPI_KEYVAL_INVALID);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    right = (rank + 1) % size;
    left = (rank + size - 1) % size;
    MPI_Comm node;
    MPI_Comm_split_type(WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_compare(WORLD, node, &together);
    together = together != MPI_UNEQUAL;
    MPI_Comm_free(&node);
    for (int kind = 0; kind < KINDS; kind++) {
        if (kind == SHARED && !together) continue;
        epochs(kind);
        operations(kind);
    }
    elements();
    if (together) shared();
    properties();
    return end();
}
