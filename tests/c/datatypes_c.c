// ranks: 1 2
// says: correct
//
// Datatypes made with counts of MPI_Count (the names that end in _c): each equals the type of the
// same arguments made with int, byte for byte when packed and in all its measures; and holds
// numbers that an int cannot.
#include "check.h"

enum { ROOM = 400 };

static void packed_as(MPI_Datatype type, unsigned char *bytes, MPI_Count *size)
{
    static unsigned char data[ROOM];
    MPI_Count at = 0;
    for (int i = 0; i < ROOM; i++) data[i] = (unsigned char)(i * 11 + 1);
    MPI_Datatype committed;
    MPI_Type_dup(type, &committed);
    MPI_Type_commit(&committed);
    MPI_Pack_size_c(1, committed, MPI_COMM_WORLD, size);
    memset(bytes, 0, ROOM);
    MPI_Pack_c(data, 1, committed, bytes, ROOM, &at, MPI_COMM_WORLD);
    CHECK(at == *size && at > 0, "%d of %d bytes packed", (int)at, (int)*size);
    MPI_Type_free(&committed);
}

/* Frees both. */
static void same(int line, MPI_Datatype *a, MPI_Datatype *b)
{
    unsigned char one[ROOM], two[ROOM];
    MPI_Count size_a = -1, size_b = -2, lb = -1, extent = -1;
    MPI_Aint lb_a, extent_a;
    packed_as(*a, one, &size_a), packed_as(*b, two, &size_b);
    CHECK(size_a == size_b && !memcmp(one, two, size_a), "line %d: other bytes", line);
    MPI_Type_get_extent(*a, &lb_a, &extent_a);
    MPI_Type_get_extent_c(*b, &lb, &extent);
    CHECK(lb == lb_a && extent == extent_a, "line %d: %d to %d", line, (int)lb, (int)extent);
    MPI_Type_get_true_extent(*a, &lb_a, &extent_a);
    MPI_Type_get_true_extent_c(*b, &lb, &extent);
    CHECK(lb == lb_a && extent == extent_a, "line %d: true %d to %d", line, (int)lb, (int)extent);
    lb = extent = -1;
    MPI_Type_get_true_extent_x(*b, &lb, &extent);
    CHECK(lb == lb_a && extent == extent_a, "line %d: true %d to %d", line, (int)lb, (int)extent);
    MPI_Type_size_c(*b, &extent);
    CHECK(extent == size_a, "line %d: size %d", line, (int)extent);
    MPI_Type_free(a), MPI_Type_free(b);
}
#define SAME(make, make_c) (make, make_c, same(__LINE__, &a, &b))

static void constructors(void)
{
    MPI_Datatype a, b;
    int n[3] = {2, 1, 3}, at[3] = {5, 0, 9}, sizes[2] = {4, 6}, parts[2] = {2, 3}, starts[2] = {1, 2};
    int kinds[2] = {MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_BLOCK}, grid[2] = {2, 1};
    int args[2] = {2, MPI_DISTRIBUTE_DFLT_DARG}, global[2] = {7, 5};
    MPI_Aint bytes[3] = {40, 0, 72};
    MPI_Count n_c[3] = {2, 1, 3}, at_c[3] = {5, 0, 9}, bytes_c[3] = {40, 0, 72};
    MPI_Count sizes_c[2] = {4, 6}, parts_c[2] = {2, 3}, starts_c[2] = {1, 2}, global_c[2] = {7, 5};
    MPI_Datatype types[3] = {MPI_INT, MPI_DOUBLE, MPI_CHAR};
    SAME(MPI_Type_contiguous(5, MPI_INT, &a), MPI_Type_contiguous_c(5, MPI_INT, &b));
    SAME(MPI_Type_vector(3, 2, 4, MPI_INT, &a), MPI_Type_vector_c(3, 2, 4, MPI_INT, &b));
    SAME(MPI_Type_create_hvector(3, 2, 20, MPI_INT, &a), MPI_Type_create_hvector_c(3, 2, 20, MPI_INT, &b));
    SAME(MPI_Type_indexed(3, n, at, MPI_INT, &a), MPI_Type_indexed_c(3, n_c, at_c, MPI_INT, &b));
    SAME(MPI_Type_create_hindexed(3, n, bytes, MPI_INT, &a),
         MPI_Type_create_hindexed_c(3, n_c, bytes_c, MPI_INT, &b));
    SAME(MPI_Type_create_indexed_block(3, 2, at, MPI_INT, &a),
         MPI_Type_create_indexed_block_c(3, 2, at_c, MPI_INT, &b));
    SAME(MPI_Type_create_hindexed_block(3, 2, bytes, MPI_INT, &a),
         MPI_Type_create_hindexed_block_c(3, 2, bytes_c, MPI_INT, &b));
    SAME(MPI_Type_create_struct(3, n, bytes, types, &a), MPI_Type_create_struct_c(3, n_c, bytes_c, types, &b));
    SAME(MPI_Type_create_resized(MPI_DOUBLE, -4, 20, &a), MPI_Type_create_resized_c(MPI_DOUBLE, -4, 20, &b));
    SAME(MPI_Type_create_subarray(2, sizes, parts, starts, MPI_ORDER_C, MPI_INT, &a),
         MPI_Type_create_subarray_c(2, sizes_c, parts_c, starts_c, MPI_ORDER_C, MPI_INT, &b));
    SAME(MPI_Type_create_darray(2, 1, 2, global, kinds, args, grid, MPI_ORDER_FORTRAN, MPI_SHORT, &a),
         MPI_Type_create_darray_c(2, 1, 2, global_c, kinds, args, grid, MPI_ORDER_FORTRAN, MPI_SHORT, &b));
}

/* No memory is touched: only the numbers are looked at. */
static void beyond_an_int(void)
{
    MPI_Count big = (MPI_Count)3 << 40, n[2] = {1, 2}, at[2], lb = -1, extent = -1, size = -1;
    MPI_Datatype t, members[2] = {MPI_INT, MPI_CHAR};
#define IS(make, size_, lb_, extent_)                                                      \
    do {                                                                                   \
        make;                                                                              \
        MPI_Type_size_c(t, &size);                                                         \
        MPI_Type_get_extent_c(t, &lb, &extent);                                            \
        CHECK(size == (size_) && lb == (lb_) && extent == (extent_), "%lld, %lld, %lld",   \
              (long long)size, (long long)lb, (long long)extent);                          \
        MPI_Type_get_true_extent_c(t, &lb, &extent);                                       \
        MPI_Type_free(&t);                                                                 \
    } while (0)
    at[0] = 0, at[1] = big;
    IS(MPI_Type_contiguous_c(big, MPI_INT, &t), 4 * big, 0, 4 * big);
    IS(MPI_Type_vector_c(2, 3, big, MPI_INT, &t), 24, 0, 4 * big + 12);
    IS(MPI_Type_create_hvector_c(2, 3, big, MPI_INT, &t), 24, 0, big + 12);
    IS(MPI_Type_indexed_c(2, n, at, MPI_INT, &t), 12, 0, 4 * big + 8);
    IS(MPI_Type_create_hindexed_c(2, n, at, MPI_INT, &t), 12, 0, big + 8);
    IS(MPI_Type_create_indexed_block_c(2, 2, at, MPI_INT, &t), 16, 0, 4 * big + 8);
    IS(MPI_Type_create_hindexed_block_c(2, 2, at, MPI_INT, &t), 16, 0, big + 8);
    at[1] = big, at[0] = big + 8;
    IS(MPI_Type_create_struct_c(2, n, at, members, &t), 6, big, 12);
    IS(MPI_Type_create_resized_c(MPI_INT, -big, 2 * big, &t), 4, -big, 2 * big);
    MPI_Count sizes[2] = {big, 4}, parts[2] = {big / 2, 2}, starts[2] = {big / 2, 1};
    IS(MPI_Type_create_subarray_c(2, sizes, parts, starts, MPI_ORDER_C, MPI_CHAR, &t), big, 0, 4 * big);
    CHECK(lb == 2 * big + 1 && extent == 2 * big - 2, "true %lld, %lld", (long long)lb, (long long)extent);
    int kind = MPI_DISTRIBUTE_BLOCK, arg = MPI_DISTRIBUTE_DFLT_DARG, grid = 4;
    IS(MPI_Type_create_darray_c(4, 3, 1, &big, &kind, &arg, &grid, MPI_ORDER_C, MPI_CHAR, &t), big / 4, 0, big);
    CHECK(lb == big / 4 * 3 && extent == big / 4, "true %lld, %lld", (long long)lb, (long long)extent);
    MPI_Pack_size_c(big, MPI_DOUBLE, MPI_COMM_WORLD, &size);
    CHECK(size == 8 * big);
    MPI_Pack_external_size_c("external32", big, MPI_LONG, &size);
    CHECK(size == 4 * big);
}

static void packing(void)
{
    short out[4] = {1, -2, 3, -4}, in[4] = {0};
    unsigned char bytes[32];
    MPI_Count at = 3, from = 3;
    MPI_Pack_c(out, 4, MPI_SHORT, bytes, sizeof bytes, &at, MPI_COMM_WORLD);
    CHECK(at == 11 && !memcmp(bytes + 3, out, 8));
    MPI_Unpack_c(bytes, 11, &from, in, 4, MPI_SHORT, MPI_COMM_WORLD);
    CHECK(from == 11 && !memcmp(in, out, 8));
    memset(in, 0, sizeof in), at = from = 1;
    MPI_Pack_external_c("external32", out, 4, MPI_SHORT, bytes, sizeof bytes, &at);
    CHECK(at == 9 && bytes[1] == 0 && bytes[2] == 1 && bytes[3] == 0xff && bytes[4] == 0xfe);
    MPI_Unpack_external_c("external32", bytes, 9, &from, in, 4, MPI_SHORT);
    CHECK(from == 9 && !memcmp(in, out, 8));
}

static void elements(void)
{
    MPI_Status status;
    MPI_Datatype pair;
    MPI_Count big = (MPI_Count)5 << 33, n = -1;
    int small = -1, lengths[2] = {1, 1};
    MPI_Aint places[2] = {0, 8};
    MPI_Datatype members[2] = {MPI_INT, MPI_DOUBLE};
    MPI_Type_create_struct(2, lengths, places, members, &pair);
    MPI_Type_commit(&pair);
    MPI_Status_set_elements_c(&status, pair, big + 1);
    MPI_Get_elements_c(&status, pair, &n);
    CHECK(n == big + 1, "%lld elements", (long long)n);
    MPI_Get_elements_x(&status, pair, &n);
    CHECK(n == big + 1, "%lld elements", (long long)n);
    MPI_Get_elements(&status, pair, &small);
    CHECK(small == MPI_UNDEFINED);
    MPI_Get_count_c(&status, pair, &n);
    CHECK(n == MPI_UNDEFINED);
    MPI_Status_set_elements_c(&status, pair, big);
    MPI_Get_count_c(&status, pair, &n);
    CHECK(n == big / 2);
    /* Half a pair in a real message. */
    int out[3] = {1, 2, 3};
    struct { int i; double d; } got[2] = {{0, 0}};
    if (rank == 0) {
        MPI_Request request;
        MPI_Isend(out, 1, MPI_INT, size - 1, 0, MPI_COMM_WORLD, &request);
        if (size > 1) MPI_Wait(&request, MPI_STATUS_IGNORE);
        else {
            MPI_Recv(got, 2, pair, 0, 0, MPI_COMM_WORLD, &status);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
    } else if (rank == size - 1) {
        MPI_Recv(got, 2, pair, 0, 0, MPI_COMM_WORLD, &status);
    }
    if (rank == size - 1) {
        MPI_Get_elements_c(&status, pair, &n);
        CHECK(n == 1 && got[0].i == 1, "%lld elements", (long long)n);
        MPI_Get_count_c(&status, pair, &n);
        CHECK(n == MPI_UNDEFINED);
    }
    MPI_Type_free(&pair);
}

static void mistakes(void)
{
    int class;
    MPI_Datatype t = MPI_DATATYPE_NULL;
    MPI_Count n[2] = {1, -1}, at[2] = {0, 4}, from = 0;
    char byte[8];
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
#define REFUSED(call, wanted)                                                              \
    do {                                                                                   \
        MPI_Error_class(call, &class);                                                     \
        CHECK(class == wanted, "class %d, expected " #wanted, class);                      \
    } while (0)
    REFUSED(MPI_Type_contiguous_c(-1, MPI_INT, &t), MPI_ERR_COUNT);
    REFUSED(MPI_Type_contiguous_c(1, MPI_DATATYPE_NULL, &t), MPI_ERR_TYPE);
    REFUSED(MPI_Type_indexed_c(2, n, at, MPI_INT, &t), MPI_ERR_ARG);
    REFUSED(MPI_Type_create_hindexed_c(2, at, NULL, MPI_INT, &t), MPI_ERR_ARG);
    REFUSED(MPI_Pack_c(byte, 9, MPI_BYTE, byte, 8, &from, MPI_COMM_WORLD), MPI_ERR_TRUNCATE);
    REFUSED(MPI_Pack_external_c("native", byte, 1, MPI_BYTE, byte, 8, &from), MPI_ERR_ARG);
    REFUSED(MPI_Type_get_extent_c(MPI_DATATYPE_NULL, &n[0], &n[1]), MPI_ERR_TYPE);
    REFUSED(MPI_Type_contiguous_c((MPI_Count)1 << 62, MPI_DOUBLE, &t), MPI_ERR_ARG);
    CHECK(from == 0 && t == MPI_DATATYPE_NULL);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    constructors();
    beyond_an_int();
    packing();
    elements();
    mistakes();
    return end();
}
