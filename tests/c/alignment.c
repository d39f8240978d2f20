// ranks: 1 2 3
// env: | WEFT_FABRIC=ofi | WEFT_NODES=1
// says: correct
//
// The hint mpi_minimum_memory_alignment (MPI 5.0, sections 9.2 and 12.2.2): memory of any length is at a multiple of it in every
// process that sees the memory. A value that is not a power of two, or is too large, is ignored.
#include "check.h"
#include <stddef.h>
#include <stdint.h>

enum { LARGEST = 2 << 20, PIECES = 40 };

static const MPI_Aint lengths[] = {0, 1, 7, 100, 4097, 100000};
enum { LENGTHS = sizeof lengths / sizeof *lengths };

static MPI_Info hints(const char *align, const char *noncontiguous)
{
    MPI_Info info;
    MPI_Info_create(&info);
    if (align) MPI_Info_set(info, "mpi_minimum_memory_alignment", align);
    if (noncontiguous) MPI_Info_set(info, "alloc_shared_noncontig", noncontiguous);
    return info;
}

static int at(const void *memory, size_t align)
{
    return (uintptr_t)memory % align == 0;
}

/* Returns the value of the hint that a window reports, or 0 if it reports none. */
static long told(MPI_Win win)
{
    MPI_Info info;
    char text[64] = "0";
    int len = sizeof text, flag;
    MPI_Win_get_info(win, &info);
    MPI_Info_get_string(info, "mpi_minimum_memory_alignment", &len, text, &flag);
    MPI_Info_free(&info);
    return flag ? atol(text) : 0;
}

/* Allocates memory of this length, and checks that neighbouring pieces do not touch it. */
static void allocated(MPI_Aint len, size_t align, MPI_Info info)
{
    char *pieces[3];
    for (int i = 0; i < 3; i++) {
        MPI_Alloc_mem(len, info, &pieces[i]);
        CHECK(at(pieces[i], align), "piece %d of %ld, alignment %zu: %p", i, (long)len, align, (void *)pieces[i]);
        memset(pieces[i], i + 1, len);
    }
    for (int i = 0; i < 3; i++) {
        CHECK(len == 0 || (pieces[i][0] == i + 1 && pieces[i][len - 1] == i + 1), "piece %d is not whole", i);
        MPI_Free_mem(pieces[i]);
    }
}

/* Checks that every rank's part of a window, as this rank sees it, is at a multiple of `align` and holds what its rank wrote. */
static void seen(MPI_Win win, char *mine, MPI_Aint len, size_t align, int first_alone)
{
    memset(mine, rank + 1, len);
    MPI_Win_lock_all(0, win);
    MPI_Win_sync(win);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_sync(win);
    for (int from = 0; from < size; from++) {
        MPI_Aint there;
        int unit;
        char *part;
        MPI_Win_shared_query(win, from, &there, &unit, &part);
        if (there == 0) continue;
        CHECK(at(part, first_alone && from ? 1 : align), "rank %d's part, alignment %zu: %p", from, align, (void *)part);
        CHECK(part[0] == from + 1 && part[there - 1] == from + 1, "rank %d's part holds %d", from, part[0]);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_unlock_all(win);
}

static void windows(MPI_Aint len, size_t align, const char *text, int together)
{
    char *mine;
    MPI_Win win;
    MPI_Info info = hints(text, NULL);
    MPI_Win_allocate(len, 1, info, MPI_COMM_WORLD, &mine, &win);
    CHECK(at(mine, align), "window of %ld, alignment %zu: %p", (long)len, align, (void *)mine);
    CHECK(told(win) == (long)align);
    seen(win, mine, len, align, 0);
    MPI_Win_free(&win);
    if (together) {
        MPI_Aint own = rank % 2 ? len : len + 3;
        MPI_Win_allocate_shared(own, 1, info, MPI_COMM_WORLD, &mine, &win);
        seen(win, mine, own, align, 1);
        MPI_Win_free(&win);
    }
    MPI_Info_free(&info);
    info = hints(text, "true");
    if (together) {
        MPI_Win_allocate_shared(len, 1, info, MPI_COMM_WORLD, &mine, &win);
        CHECK(len == 0 || at(mine, align), "own part of %ld, alignment %zu: %p", (long)len, align, (void *)mine);
        seen(win, mine, len, align, 0);
        MPI_Win_free(&win);
    }
    MPI_Info_free(&info);
}

int main(int argc, char **argv)
{
    char text[64];
    int ranks;
    MPI_Comm node;
    begin(&argc, &argv);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_size(node, &ranks);
    const char *fabric = getenv("WEFT_FABRIC");
    const int together = size == 1 || (ranks == size && !(fabric && !strcmp(fabric, "ofi")));
    for (size_t align = 1; align <= LARGEST; align *= align < 4096 ? 2 : 8) {
        snprintf(text, sizeof text, "%zu", align);
        MPI_Info info = hints(text, NULL);
        for (int i = 0; i < LENGTHS; i++) {
            allocated(lengths[i], align, info);
            windows(lengths[i], align, text, together);
        }
        MPI_Info_free(&info);
    }
    windows(100, LARGEST, "2097152", together);

    /* Only memory outside of windows can have a larger alignment. */
    MPI_Info large = hints("1073741824", NULL);
    allocated(100, 1 << 30, large);
    MPI_Info_free(&large);

    /* Without a valid hint the memory suits any predefined type, and the window reports no hint. */
    const char *odd[] = {NULL, "0", "-16", "3", "abc", "100", "4294967296", "18446744073709551616"};
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        MPI_Info info = hints(odd[i], NULL);
        char *mine;
        MPI_Win win;
        allocated(100, _Alignof(max_align_t), info);
        MPI_Win_allocate(100, 1, info, MPI_COMM_WORLD, &mine, &win);
        CHECK(at(mine, _Alignof(max_align_t)) && told(win) == 0, "%s is told", odd[i]);
        MPI_Win_free(&win);
        MPI_Info_free(&info);
    }

    /* Allocates many pieces at once, of all lengths and alignments. */
    char *pieces[PIECES];
    for (int i = 0; i < PIECES; i++) {
        snprintf(text, sizeof text, "%d", 1 << i % 17);
        MPI_Info info = hints(text, NULL);
        MPI_Alloc_mem(1 + 37 * i, info, &pieces[i]);
        CHECK(at(pieces[i], 1 << i % 17), "piece %d", i);
        memset(pieces[i], i, 1 + 37 * i);
        MPI_Info_free(&info);
    }
    for (int i = 0; i < PIECES; i++) {
        for (int k = 0; k < 1 + 37 * i; k++) CHECK(pieces[i][k] == i, "piece %d", i);
        MPI_Free_mem(pieces[i]);
    }
    MPI_Comm_free(&node);
    return end();
}
