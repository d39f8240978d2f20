/* Bytes of datatypes: packed and in the external form; and the elements of a status. */
#include "answers.h"

/* Number of bytes on both sides of an address, for types of any bounds. */
#define ROOM (1 << 19)
static unsigned char from[2 * ROOM], to[2 * ROOM], packing[ROOM];

/* Fills memory with small integers: their external form exists in every type. */
static void fill(void)
{
    for (int i = 0; i < 2 * ROOM; i++)
        from[i] = (unsigned char)(i * 7 + i / 251);
}

static void externally(const char *name, int count, MPI_Datatype type)
{
    MPI_Aint needed = -1, place = 0;
    MPI_Pack_external_size("external32", count, type, &needed);
    say("%s external size %d = %ld", name, count, (long)needed);
    int code = MPI_Pack_external("external32", from + ROOM, count, type, packing, ROOM, &place);
    say("%s external %d = %d %ld %u", name, count, class_of(code), (long)place, hash(packing, (size_t)place));
}

void packed(const char *name, MPI_Datatype type, int external, int elementary)
{
    MPI_Count bytes, low, length;
    int needed = -1, at = 0, count = between(1, 3);
    MPI_Type_size_c(type, &bytes);
    MPI_Type_get_true_extent_c(type, &low, &length);
    if (low < -ROOM / 8 || low + length > ROOM / 8 || bytes > ROOM / 8)
        return;
    if (from[1] == 0)
        fill();
    MPI_Type_commit(&type);
    MPI_Pack_size(count, type, MPI_COMM_SELF, &needed);
    say("%s pack size %d = %d", name, count, needed);
    int code = MPI_Pack(from + ROOM, count, type, packing, ROOM, &at, MPI_COMM_SELF);
    say("%s packed %d = %d %d %u", name, count, class_of(code), at, hash(packing, (size_t)at));
    int end = at;
    memset(to, 0, sizeof to);
    at = 0;
    code = MPI_Unpack(packing, end, &at, to + ROOM, count, type, MPI_COMM_SELF);
    say("%s unpacked = %d %d %u", name, class_of(code), at, hash(to + ROOM / 2, ROOM));

    if (external)
        externally(name, count, type);

    /* Sends a message to the rank itself, and asks its status for elements of other types. */
    MPI_Status status;
    int elements = -1, whole = -1;
    MPI_Count many = -1;
    memset(to, 0, sizeof to);
    code = MPI_Sendrecv(from + ROOM, count, type, 0, 1, to + ROOM, count + 1, type, 0, 1, MPI_COMM_SELF, &status);
    MPI_Get_count(&status, type, &whole);
    if (elementary) {
        MPI_Get_elements(&status, type, &elements);
        MPI_Get_elements_c(&status, type, &many);
    }
    say("%s received = %d %d %lld %d %u", name, class_of(code), elements, (long long)many, whole,
        hash(to + ROOM / 2, ROOM));
    if (!elementary)
        return;
    int set = between(0, 9);
    code = MPI_Status_set_elements(&status, type, set);
    MPI_Get_elements(&status, type, &elements);
    MPI_Get_count(&status, type, &whole);
    say("%s set %d = %d %d %d", name, set, class_of(code), elements, whole);
}
