// ranks: 1 3
// says: correct
//
// Representations: "external32", and one of the program's own, which turns every byte around.
#include "files.h"

#define OK(call) CHECK((call) == MPI_SUCCESS)

static int extents, reads, writes;

/* Checks that the program's functions get only predefined datatypes. */
static void is_predefined(MPI_Datatype type)
{
    int integers, addresses, types, combiner;
    MPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner);
    CHECK(combiner == MPI_COMBINER_NAMED);
}

static int extent(MPI_Datatype type, MPI_Aint *to, void *extra)
{
    int len;
    extents++;
    is_predefined(type);
    CHECK(extra == &extents);
    MPI_Type_size(type, &len);
    *to = 2 * len;
    return MPI_SUCCESS;
}

/* Each byte twice, the second turned around. */
static void out_of(void *userbuf, MPI_Datatype type, long long count, void *filebuf, int back)
{
    int len;
    unsigned char *user = userbuf, *file = filebuf;
    is_predefined(type);
    MPI_Type_size(type, &len);
    for (long long i = 0; i < count * len; i++) {
        if (back) {
            CHECK((unsigned char)~file[2 * i] == file[2 * i + 1]);
            user[i] = file[2 * i];
        } else {
            file[2 * i] = user[i];
            file[2 * i + 1] = ~user[i];
        }
    }
}

static int reading(void *user, MPI_Datatype type, int count, void *file, MPI_Offset position, void *extra)
{
    (void)extra, (void)position;
    reads++;
    out_of(user, type, count, file, 1);
    return MPI_SUCCESS;
}

static int writing(void *user, MPI_Datatype type, int count, void *file, MPI_Offset position, void *extra)
{
    (void)extra, (void)position;
    writes++;
    out_of(user, type, count, file, 0);
    return MPI_SUCCESS;
}

static int reading_c(void *user, MPI_Datatype type, MPI_Count count, void *file, MPI_Offset position, void *extra)
{
    (void)extra, (void)position;
    reads++;
    out_of(user, type, count, file, 1);
    return MPI_SUCCESS;
}

static int failing_c(void *user, MPI_Datatype type, MPI_Count count, void *file, MPI_Offset position, void *extra)
{
    (void)user, (void)type, (void)count, (void)file, (void)position, (void)extra;
    return MPI_ERR_CONVERSION;
}

static void external32(MPI_File file)
{
    int words[4] = {1, 2, 3, 0x01020304}, back[4] = {0};
    unsigned char bytes[16];
    MPI_Aint len;
    MPI_Status status;
    OK(MPI_File_set_view(file, 16 * rank, MPI_INT, MPI_INT, "external32", MPI_INFO_NULL));
    OK(MPI_File_write_all(file, words, 4, MPI_INT, &status));
    has_count(&status, MPI_INT, 4);
    OK(MPI_File_read_at(file, 0, back, 4, MPI_INT, &status));
    has_count(&status, MPI_INT, 4);
    CHECK(memcmp(words, back, sizeof words) == 0);
    OK(MPI_File_get_type_extent(file, MPI_LONG, &len));
    CHECK(len == 4, "%ld", (long)len);
    OK(MPI_File_set_view(file, 16 * rank, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
    OK(MPI_File_read_at(file, 0, bytes, 16, MPI_BYTE, &status));
    CHECK(bytes[3] == 1 && bytes[12] == 1 && bytes[15] == 4);
    /* Longs have 4 bytes there: every other one, by a type whose displacements are scaled. */
    MPI_Datatype every_other;
    long longs[5] = {10, 20, 30, 40, 50}, there[5] = {0};
    MPI_Type_vector(5, 1, 2 * size, MPI_LONG, &every_other);
    MPI_Type_commit(&every_other);
    OK(MPI_File_set_size(file, 0));
    OK(MPI_File_set_view(file, 4 * rank, MPI_LONG, every_other, "external32", MPI_INFO_NULL));
    OK(MPI_File_write_at_all(file, 0, longs, 5, MPI_LONG, &status));
    has_count(&status, MPI_LONG, 5);
    OK(MPI_File_read_at_all(file, 0, there, 5, MPI_LONG, &status));
    CHECK(memcmp(longs, there, sizeof longs) == 0);
    MPI_Offset byte;
    OK(MPI_File_get_byte_offset(file, 1, &byte));
    CHECK(byte == 4 * rank + 8 * size, "%lld", (long long)byte);
    MPI_Type_free(&every_other);
    /* One that does not fit is an error, not another number. */
    long large = 1L << 40;
    FAILS(MPI_File_write_at(file, 0, &large, 1, MPI_LONG, &status), MPI_ERR_CONVERSION);
    MPI_Barrier(MPI_COMM_WORLD);
    /* On one rank of several: the others' are written, and nobody waits for ever. */
    large = rank == 0 ? 1L << 40 : 7 + rank;
    OK(MPI_File_set_view(file, 8 * rank, MPI_LONG, MPI_LONG, "external32", MPI_INFO_NULL));
    int code = MPI_File_write_at_all(file, 0, &large, 1, MPI_LONG, &status);
    CHECK(class_of(code) == (rank == 0 ? MPI_ERR_CONVERSION : MPI_SUCCESS));
    if (rank > 0) {
        OK(MPI_File_read_at(file, 0, longs, 1, MPI_LONG, &status));
        CHECK(longs[0] == 7 + rank);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

static void own(MPI_File file)
{
    MPI_Status status;
    MPI_Request request;
    short words[6] = {1, -2, 3, -4, 5, -6}, back[6] = {0};
    MPI_Aint len;
    OK(MPI_Register_datarep("twice", reading, writing, extent, &extents));
    FAILS(MPI_Register_datarep("twice", reading, writing, extent, &extents), MPI_ERR_DUP_DATAREP);
    FAILS(MPI_Register_datarep("native", reading, writing, extent, &extents), MPI_ERR_DUP_DATAREP);
    OK(MPI_File_set_view(file, 24 * rank, MPI_SHORT, MPI_SHORT, "twice", MPI_INFO_NULL));
    OK(MPI_File_get_type_extent(file, MPI_SHORT, &len));
    CHECK(len == 4 && extents > 0);
    OK(MPI_File_write_at_all(file, 0, words, 6, MPI_SHORT, &status));
    has_count(&status, MPI_SHORT, 6);
    OK(MPI_File_iread_at(file, 0, back, 6, MPI_SHORT, &request));
    MPI_Wait(&request, &status);
    has_count(&status, MPI_SHORT, 6);
    CHECK(memcmp(words, back, sizeof words) == 0 && reads == 1 && writes == 1);
    OK(MPI_Register_datarep_c("fails", reading_c, failing_c, extent, &extents));
    OK(MPI_File_set_view(file, 24 * rank, MPI_SHORT, MPI_SHORT, "fails", MPI_INFO_NULL));
    FAILS(MPI_File_write_at(file, 0, words, 6, MPI_SHORT, &status), MPI_ERR_CONVERSION);
    memset(back, 0, sizeof back);
    OK(MPI_File_read_at(file, 0, back, 6, MPI_SHORT, &status));
    CHECK(memcmp(words, back, sizeof words) == 0 && reads == 2);
    /* Without functions the file has the machine's bytes, and that fits only if it has the machine's extents. */
    OK(MPI_Register_datarep("none", MPI_CONVERSION_FN_NULL, MPI_CONVERSION_FN_NULL, extent, &extents));
    OK(MPI_File_set_view(file, 0, MPI_SHORT, MPI_SHORT, "none", MPI_INFO_NULL));
    FAILS(MPI_File_write_at(file, 0, words, 6, MPI_SHORT, &status), MPI_ERR_CONVERSION);
}

/* A number of an element: its place in memory, and its bytes in memory and in "external32". */
struct number {
    int at, here, there;
};

enum { ELEMENTS = 3, NUMBERS = 8, ROOM = ELEMENTS * 64 };

struct element {
    MPI_Datatype type;
    int extent, count;
    struct number numbers[NUMBERS];
};

static void make(struct element *to, int kind)
{
    static const int ones[4] = {1, 2, 1, 1};
    static const MPI_Aint places[4] = {40, 4, 16, 0};
    const MPI_Datatype types[4] = {MPI_DOUBLE, MPI_SHORT, MPI_LONG, MPI_CHAR};
    MPI_Datatype plain;
    switch (kind) {
    case 0:
        MPI_Type_contiguous(5, MPI_INT, &plain);
        *to = (struct element){.extent = 20, .count = 5};
        for (int i = 0; i < 5; i++) to->numbers[i] = (struct number){4 * i, 4, 4};
        break;
    case 1:
        MPI_Type_create_hvector(4, 1, 12, MPI_LONG, &plain);
        *to = (struct element){.extent = 44, .count = 4};
        for (int i = 0; i < 4; i++) to->numbers[i] = (struct number){12 * i, 8, 4};
        break;
    default:
        MPI_Type_create_struct(4, ones, places, types, &plain);
        *to = (struct element){.extent = 48, .count = 5,
                               .numbers = {{40, 8, 8}, {4, 2, 2}, {6, 2, 2}, {16, 8, 4}, {0, 1, 1}}};
    }
    MPI_Type_create_resized(plain, 0, to->extent, &to->type);
    MPI_Type_commit(&to->type);
    MPI_Type_free(&plain);
}

/* Reads in all ways. */
static void any_read(MPI_File file, int way, void *to, MPI_Datatype type, MPI_Status *status)
{
    MPI_Request request;
    switch (way % 4) {
    case 0: OK(MPI_File_read_at(file, 0, to, ELEMENTS, type, status)); break;
    case 1: OK(MPI_File_read_at_all(file, 0, to, ELEMENTS, type, status)); break;
    case 2:
        OK(MPI_File_iread_at(file, 0, to, ELEMENTS, type, &request));
        OK(MPI_Wait(&request, status));
        break;
    default:
        OK(MPI_File_read_at_all_begin(file, 0, to, ELEMENTS, type));
        OK(MPI_File_read_at_all_end(file, to, status));
    }
}

/* Tests a file that ends anywhere within a read: all numbers before its end come, and nothing else is changed. */
static void cut(MPI_File file, const char *representation, const struct element *element)
{
    char out[ROOM], in[ROOM];
    int all = ELEMENTS * element->count, ends[ELEMENTS * NUMBERS], end = 0, found;
    int as_they_are = strcmp(representation, "native") == 0 || strcmp(representation, "internal") == 0;
    MPI_Status status;
    for (int i = 0; i < ROOM; i++) out[i] = 1 + i % 100;
    for (int i = 0; i < all; i++) {
        const struct number *number = &element->numbers[i % element->count];
        int by = strcmp(representation, "external32") == 0 ? number->there : number->here;
        ends[i] = end += strcmp(representation, "twice") == 0 ? 2 * number->here : by;
        /* In the file, numbers have fewer bytes, so only small values fit. */
        if (number->there < number->here)
            *(long *)(out + i / element->count * element->extent + number->at) = -1000 - i;
    }
    OK(MPI_File_set_size(file, 0));
    OK(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, representation, MPI_INFO_NULL));
    OK(MPI_File_write_at(file, 0, out, ELEMENTS, element->type, &status));
    for (int len = end; len >= 0; len--) {
        int there = 0;
        while (there < all && ends[there] <= len) there++;
        OK(MPI_File_set_size(file, len));
        memset(in, 0x7f, sizeof in);
        any_read(file, len, in, element->type, &status);
        MPI_Get_elements(&status, element->type, &found);
        int between = there == 0 ? len == 0 : ends[there - 1] == len;
        /* In the native and internal forms a part of a number is read, too, and no number of elements describes the bytes. */
        int expected = between || !as_they_are ? there : MPI_UNDEFINED;
        CHECK(found == expected, "%s, %d bytes: %d elements, expected %d", representation, len, found, expected);
        MPI_Get_count(&status, element->type, &found);
        if (there % element->count == 0 && (between || !as_they_are))
            CHECK(found == there / element->count, "%s, %d bytes: count %d", representation, len, found);
        for (int i = 0; i < all; i++) {
            const struct number *number = &element->numbers[i % element->count];
            int at = i / element->count * element->extent + number->at;
            if (i < there) CHECK(memcmp(in + at, out + at, number->here) == 0, "%s, %d bytes: number %d", representation, len, i);
            for (int k = 0; i > there && k < number->here; k++)
                CHECK(in[at + k] == 0x7f, "%s, %d bytes: number %d was touched", representation, len, i);
        }
    }
}

static void cut_anywhere(void)
{
    static const char *representations[] = {"native", "internal", "external32", "twice"};
    char mine[300];
    MPI_File file;
    snprintf(mine, sizeof mine, "%s-%d", path, rank);
    OK(MPI_File_open(MPI_COMM_SELF, mine, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL,
                     &file));
    for (int kind = 0; kind < 3; kind++) {
        struct element element;
        make(&element, kind);
        for (int i = 0; i < 4; i++) cut(file, representations[i], &element);
        MPI_Type_free(&element.type);
    }
    close_file(&file);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    name_file("representations");
    MPI_File file = open_file(MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE);
    external32(file);
    own(file);
    cut_anywhere();
    close_file(&file);
    return end();
}
