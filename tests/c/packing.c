// ranks: 1
// says: correct
//
// Packing in the representation external32 (MPI 5.0, sections 5.3 and 14.5.2): bytes, sizes, mixed
// types, what does not fit.
#include "check.h"
#include <stddef.h>

struct record {
    short s;
    double d[2];
    long l;
    char c[3];
};

static void mixed_types_come_back(void)
{
    MPI_Datatype type, several;
    int lengths[] = {1, 2, 1, 3};
    MPI_Aint places[] = {offsetof(struct record, s), offsetof(struct record, d),
                         offsetof(struct record, l), offsetof(struct record, c)};
    MPI_Datatype members[] = {MPI_SHORT, MPI_DOUBLE, MPI_LONG, MPI_CHAR};
    MPI_Type_create_struct(4, lengths, places, members, &type);
    MPI_Type_create_resized(type, 0, sizeof(struct record), &several);
    MPI_Type_commit(&several);
    struct record out[3], in[3];
    memset(out, 0, sizeof out);
    for (int i = 0; i < 3; i++)
        out[i] = (struct record){(short)(-i - 1), {i + 0.5, -i}, -1000000000L + i, {'a', 'b', (char)i}};
    MPI_Aint size = 0, at = 0, from = 0;
    MPI_Pack_external_size("external32", 3, several, &size);
    CHECK(size == 3 * (2 + 2 * 8 + 4 + 3));
    unsigned char bytes[100] = {0};
    MPI_Pack_external("external32", out, 3, several, bytes, sizeof bytes, &at);
    CHECK(at == size);
    CHECK(bytes[0] == 0xff && bytes[1] == 0xff); /* -1, big-endian */
    CHECK(bytes[2] == 0x3f && bytes[3] == 0xe0); /* 0.5 */
    memset(in, 0, sizeof in);
    MPI_Unpack_external("external32", bytes, sizeof bytes, &from, in, 3, several);
    CHECK(from == size);
    for (int i = 0; i < 3; i++) {
        CHECK(in[i].s == out[i].s && in[i].d[0] == out[i].d[0] && in[i].d[1] == out[i].d[1]);
        CHECK(in[i].l == out[i].l && memcmp(in[i].c, out[i].c, 3) == 0);
    }
    MPI_Type_free(&type);
    MPI_Type_free(&several);
}

static void long_doubles_and_pairs_come_back(void)
{
    long double out[2] = {3.25L, -1e300L}, in[2] = {0, 0};
    struct {
        double value;
        int index;
    } pair = {2.5, 7}, got = {0, 0};
    unsigned char bytes[64];
    MPI_Aint at = 0, from = 0;
    MPI_Pack_external("external32", out, 2, MPI_LONG_DOUBLE, bytes, sizeof bytes, &at);
    CHECK(at == 32 && bytes[0] == 0x40 && bytes[1] == 0x00 && bytes[2] == 0xa0);
    MPI_Pack_external("external32", &pair, 1, MPI_DOUBLE_INT, bytes, sizeof bytes, &at);
    CHECK(at == 44 && bytes[43] == 7);
    MPI_Unpack_external("external32", bytes, at, &from, in, 2, MPI_LONG_DOUBLE);
    MPI_Unpack_external("external32", bytes, at, &from, &got, 1, MPI_DOUBLE_INT);
    CHECK(from == at && in[0] == out[0] && in[1] == out[1]);
    CHECK(got.value == 2.5 && got.index == 7);
}

static void class_is(int code, int wanted)
{
    int class = -1;
    MPI_Error_class(code, &class);
    CHECK(class == wanted, "class %d instead of %d", class, wanted);
}

static void mistakes_are_errors(void)
{
    long big = 1L << 40;
    int number = 1;
    unsigned char bytes[8];
    MPI_Aint at = 0, size;
    class_is(MPI_Pack_external("external32", &big, 1, MPI_LONG, bytes, 8, &at), MPI_ERR_CONVERSION);
    class_is(MPI_Pack_external("native", &number, 1, MPI_INT, bytes, 8, &at), MPI_ERR_ARG);
    class_is(MPI_Pack_external("external32", &number, 1, MPI_INT, bytes, 3, &at), MPI_ERR_TRUNCATE);
    class_is(MPI_Unpack_external("external32", bytes, 3, &at, &number, 1, MPI_INT),
             MPI_ERR_TRUNCATE);
    class_is(MPI_Pack_external_size("external32", -1, MPI_INT, &size), MPI_ERR_COUNT);
    CHECK(at == 0 && number == 1);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    mixed_types_come_back();
    long_doubles_and_pairs_come_back();
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    mistakes_are_errors();
    return end();
}
