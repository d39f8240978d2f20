#include "check.h"
#include <stddef.h>

struct mixed {
    char c;
    double d[2];
    int i;
};

/* Size, lower bound and extent, true lower bound and extent. */
static int measures(MPI_Datatype type, long size, long lb, long extent, long true_lb, long true_extent) {
    int s = -1;
    MPI_Count s_x, lb_x, extent_x;
    MPI_Aint l, e, tl, te;
    MPI_Type_size(type, &s);
    MPI_Type_size_x(type, &s_x);
    MPI_Type_get_extent(type, &l, &e);
    MPI_Type_get_extent_x(type, &lb_x, &extent_x);
    MPI_Type_get_true_extent(type, &tl, &te);
    int same = s == size && s_x == size && l == lb && lb_x == lb && e == extent && extent_x == extent &&
               tl == true_lb && te == true_extent;
    if (!same)
        fprintf(stderr, "size %d lb %ld extent %ld true %ld %ld\n", s, (long)l, (long)e, (long)tl, (long)te);
    return same;
}

static void constructors(void) {
    MPI_Datatype t;
    int lengths[3] = {2, 0, 1}, places[3] = {4, 9, 0};
    MPI_Aint bytes[3] = {16, 36, 0};
    MPI_Type_contiguous(5, MPI_INT, &t);
    CHECK(measures(t, 20, 0, 20, 0, 20));
    MPI_Type_free(&t);
    CHECK(t == MPI_DATATYPE_NULL);
    MPI_Type_vector(3, 2, 4, MPI_DOUBLE, &t);
    CHECK(measures(t, 48, 0, 80, 0, 80));
    MPI_Type_free(&t);
    MPI_Type_create_hvector(3, 2, -20, MPI_SHORT, &t);
    CHECK(measures(t, 12, -40, 44, -40, 44));
    MPI_Type_free(&t);
    MPI_Type_indexed(3, lengths, places, MPI_INT, &t);
    CHECK(measures(t, 12, 0, 24, 0, 24));
    MPI_Type_free(&t);
    MPI_Type_create_hindexed(3, lengths, bytes, MPI_INT, &t);
    CHECK(measures(t, 12, 0, 24, 0, 24));
    MPI_Type_free(&t);
    MPI_Type_create_indexed_block(3, 2, places, MPI_INT, &t);
    CHECK(measures(t, 24, 0, 44, 0, 44));
    MPI_Type_free(&t);
    MPI_Type_create_hindexed_block(2, 1, bytes, MPI_INT, &t);
    CHECK(measures(t, 8, 16, 24, 16, 24));
    MPI_Type_free(&t);
    MPI_Type_create_resized(MPI_INT, -4, 16, &t);
    CHECK(measures(t, 4, -4, 16, 0, 4));
    MPI_Type_free(&t);
    int sizes[2] = {4, 6}, parts[2] = {2, 3}, starts[2] = {1, 2};
    MPI_Type_create_subarray(2, sizes, parts, starts, MPI_ORDER_C, MPI_CHAR, &t);
    CHECK(measures(t, 6, 0, 24, 8, 9));
    MPI_Type_free(&t);
    int gsizes[1] = {10}, kinds[1] = {MPI_DISTRIBUTE_BLOCK}, args[1] = {MPI_DISTRIBUTE_DFLT_DARG}, p[1] = {2};
    MPI_Type_create_darray(2, 1, 1, gsizes, kinds, args, p, MPI_ORDER_C, MPI_CHAR, &t);
    CHECK(measures(t, 5, 0, 10, 5, 5));
    MPI_Type_free(&t);
}

static void pack_a_struct(void) {
    struct mixed in[2] = {{'a', {1.5, 2.5}, 3}, {'b', {4.5, 5.5}, 6}}, out[2];
    int lengths[3] = {1, 2, 1}, size, position = 0;
    MPI_Aint places[3], base;
    MPI_Datatype types[3] = {MPI_CHAR, MPI_DOUBLE, MPI_INT}, whole, t;
    MPI_Get_address(&in[0], &base);
    MPI_Get_address(&in[0].c, &places[0]);
    MPI_Get_address(&in[0].d, &places[1]);
    MPI_Get_address(&in[0].i, &places[2]);
    for (int i = 0; i < 3; i++)
        places[i] = MPI_Aint_diff(places[i], base);
    MPI_Type_create_struct(3, lengths, places, types, &t);
    MPI_Type_create_resized(t, 0, sizeof(struct mixed), &whole);
    MPI_Type_commit(&whole);
    /* The larger type keeps the smaller one alive. */
    MPI_Type_free(&t);
    CHECK(measures(whole, 21, 0, sizeof(struct mixed), 0, offsetof(struct mixed, i) + 4));
    MPI_Pack_size(2, whole, MPI_COMM_WORLD, &size);
    CHECK(size == 42);
    char packed[50];
    position = 3;
    CHECK(MPI_Pack(in, 2, whole, packed, sizeof packed, &position, MPI_COMM_WORLD) == MPI_SUCCESS);
    CHECK(position == 45 && packed[3] == 'a' && memcmp(packed + 4, in[0].d, 16) == 0 && packed[24] == 'b');
    memset(out, 0, sizeof out);
    position = 3;
    CHECK(MPI_Unpack(packed, 45, &position, out, 2, whole, MPI_COMM_WORLD) == MPI_SUCCESS);
    CHECK(position == 45 && out[0].c == 'a' && out[1].d[1] == 5.5 && out[1].i == 6);
    position = 9;
    REFUSED(MPI_Pack(in, 2, whole, packed, sizeof packed, &position, MPI_COMM_WORLD), MPI_ERR_TRUNCATE,
            "outsize = 50: 42 bytes are needed from position 9 on");
    REFUSED(MPI_Unpack(packed, 45, &position, out, 2, whole, MPI_COMM_WORLD), MPI_ERR_TRUNCATE, "insize = 45");
    CHECK(position == 9);
    position = -1;
    REFUSED(MPI_Pack(in, 1, whole, packed, 50, &position, MPI_COMM_WORLD), MPI_ERR_ARG, "position = -1");

    /* Messages use the type, even one freed before the message is over. */
    MPI_Request request;
    MPI_Status status;
    memset(out, 0, sizeof out);
    MPI_Irecv(out, 2, whole, 0, 1, MPI_COMM_SELF, &request);
    MPI_Type_dup(whole, &t);
    MPI_Type_free(&whole);
    MPI_Send(in, 2, t, 0, 1, MPI_COMM_SELF);
    MPI_Wait(&request, &status);
    CHECK(out[0].d[0] == 1.5 && out[1].c == 'b' && out[1].i == 6);
    int count;
    MPI_Get_count(&status, t, &count);
    CHECK(count == 2);
    MPI_Get_elements(&status, t, &count);
    CHECK(count == 8);
    MPI_Get_count(&status, MPI_DOUBLE, &count);
    CHECK(count == MPI_UNDEFINED);
    MPI_Status_set_elements(&status, t, 6);
    MPI_Get_elements(&status, t, &count);
    CHECK(count == 6);
    MPI_Get_count(&status, t, &count);
    CHECK(count == MPI_UNDEFINED);
    MPI_Count big;
    MPI_Status_set_elements_x(&status, MPI_INT, (MPI_Count)1 << 40);
    MPI_Get_elements_x(&status, MPI_INT, &big);
    CHECK(big == (MPI_Count)1 << 40);
    MPI_Get_count(&status, MPI_INT, &count);
    CHECK(count == MPI_UNDEFINED);
    MPI_Get_count_c(&status, MPI_INT, &big);
    CHECK(big == (MPI_Count)1 << 40);
    int flag = 0;
    MPI_Status_set_cancelled(&status, 1);
    MPI_Test_cancelled(&status, &flag);
    CHECK(flag);
    MPI_Type_free(&t);
}

static void contents(void) {
    MPI_Datatype vector, type, back[1];
    int ni, na, nd, combiner, integers[8];
    MPI_Aint addresses[4];
    MPI_Count cni, cna, cnc, cnd, counts[4];
    MPI_Type_get_envelope(MPI_INT, &ni, &na, &nd, &combiner);
    CHECK(combiner == MPI_COMBINER_NAMED && ni == 0 && na == 0 && nd == 0);
    MPI_Type_vector(3, 2, 4, MPI_DOUBLE, &vector);
    MPI_Type_create_hvector(5, 6, 700, vector, &type);
    MPI_Type_get_envelope(type, &ni, &na, &nd, &combiner);
    CHECK(combiner == MPI_COMBINER_HVECTOR && ni == 2 && na == 1 && nd == 1);
    MPI_Type_get_contents(type, 8, 4, 1, integers, addresses, back);
    CHECK(integers[0] == 5 && integers[1] == 6 && addresses[0] == 700);
    CHECK(back[0] != vector && back[0] != type);
    MPI_Type_free(&vector);
    vector = back[0];
    MPI_Type_get_envelope(vector, &ni, &na, &nd, &combiner);
    CHECK(combiner == MPI_COMBINER_VECTOR && ni == 3 && na == 0 && nd == 1);
    MPI_Type_get_contents(vector, 3, 0, 1, integers, NULL, back);
    CHECK(integers[0] == 3 && integers[1] == 2 && integers[2] == 4 && back[0] == MPI_DOUBLE);
    REFUSED(MPI_Type_get_contents(vector, 2, 0, 1, integers, NULL, back), MPI_ERR_ARG, "max_integers = 2");
    REFUSED(MPI_Type_get_contents(MPI_INT, 0, 0, 0, NULL, NULL, NULL), MPI_ERR_TYPE, "MPI_INT");
    MPI_Type_free(&vector);
    MPI_Type_free(&type);

    MPI_Type_vector_c(3, 2, (MPI_Count)1 << 33, MPI_CHAR, &type);
    MPI_Type_get_envelope_c(type, &cni, &cna, &cnc, &cnd, &combiner);
    CHECK(combiner == MPI_COMBINER_VECTOR && cni == 0 && cna == 0 && cnc == 3 && cnd == 1);
    MPI_Type_get_contents_c(type, 0, 0, 4, 1, NULL, NULL, counts, back);
    CHECK(counts[0] == 3 && counts[2] == (MPI_Count)1 << 33 && back[0] == MPI_CHAR);
    REFUSED(MPI_Type_get_envelope(type, &ni, &na, &nd, &combiner), MPI_ERR_TYPE, "large counts");
    MPI_Type_free(&type);
    MPI_Type_dup(MPI_INT, &type);
    MPI_Type_get_envelope(type, &ni, &na, &nd, &combiner);
    CHECK(combiner == MPI_COMBINER_DUP && nd == 1);
    MPI_Type_free(&type);
    /* Two INT_MAX bytes do not fit an int. */
    MPI_Type_contiguous_c((MPI_Count)1 << 33, MPI_CHAR, &type);
    MPI_Type_size(type, &ni);
    CHECK(ni == MPI_UNDEFINED);
    MPI_Type_size_c(type, &cni);
    CHECK(cni == (MPI_Count)1 << 33);
    MPI_Type_free(&type);
}

static void names(void) {
    char name[MPI_MAX_OBJECT_NAME];
    int length, size;
    MPI_Datatype t;
    MPI_Type_get_name(MPI_INT, name, &length);
    CHECK(strcmp(name, "MPI_INT") == 0 && length == 7);
    MPI_Type_get_name(MPI_DATATYPE_NULL, name, &length);
    CHECK(strcmp(name, "MPI_DATATYPE_NULL") == 0);
    /* Of two names for a handle, the one that table 3.2 does not call a synonym. */
    MPI_Type_get_name(MPI_C_FLOAT_COMPLEX, name, &length);
    CHECK(strcmp(name, "MPI_C_COMPLEX") == 0 && length == 13);
    MPI_Type_get_name(MPI_LONG_LONG, name, &length);
    CHECK(strcmp(name, "MPI_LONG_LONG_INT") == 0 && length == 17);
    MPI_Type_contiguous(2, MPI_INT, &t);
    MPI_Type_get_name(t, name, &length);
    CHECK(length == 0 && name[0] == 0);
    MPI_Type_set_name(t, "two");
    MPI_Type_get_name(t, name, &length);
    CHECK(strcmp(name, "two") == 0 && length == 3);
    CHECK(MPI_Type_fromint(MPI_Type_toint(t)) == t);
    CHECK(MPI_Type_fromint(MPI_Type_toint(MPI_INT)) == MPI_INT);
    MPI_Type_free(&t);
    MPI_Type_match_size(MPI_TYPECLASS_REAL, 8, &t);
    MPI_Type_size(t, &size);
    CHECK(t == MPI_REAL8 && size == 8);
    REFUSED(MPI_Type_match_size(MPI_TYPECLASS_REAL, 5, &t), MPI_ERR_ARG, "size = 5");
    MPI_Type_get_value_index(MPI_DOUBLE, MPI_INT, &t);
    CHECK(t == MPI_DOUBLE_INT);
    MPI_Type_get_value_index(MPI_DOUBLE, MPI_FLOAT, &t);
    CHECK(t == MPI_DATATYPE_NULL);
}

static void fortran(void) {
    MPI_Datatype a, b, t;
    int ni, na, nd, combiner, wish[2], size, count, pair[2] = {1, 2}, sum[2] = {0, 0};
    MPI_Type_create_f90_real(15, 300, &a);
    MPI_Type_create_f90_real(15, 300, &b);
    MPI_Type_size(a, &size);
    CHECK(a == b && a != MPI_REAL8 && size == 8);
    MPI_Type_get_envelope(a, &ni, &na, &nd, &combiner);
    CHECK(combiner == MPI_COMBINER_F90_REAL && ni == 2 && na == 0 && nd == 0);
    MPI_Type_get_contents(a, 2, 0, 0, wish, NULL, NULL);
    CHECK(wish[0] == 15 && wish[1] == 300);
    size = 0, t = MPI_DATATYPE_NULL;
    MPI_Type_create_f90_complex(6, MPI_UNDEFINED, &t);
    MPI_Type_size(t, &size);
    CHECK(size == 8);
    /* A type made of one gives the same handle back. */
    MPI_Type_contiguous(2, a, &t);
    MPI_Type_get_contents(t, 1, 0, 1, &count, NULL, &b);
    CHECK(b == a);
    MPI_Type_free(&t);
    /* It reduces as the predefined type does. */
    MPI_Type_create_f90_integer(9, &t);
    MPI_Allreduce(pair, sum, 2, t, MPI_SUM, MPI_COMM_SELF);
    CHECK(sum[0] == 1 && sum[1] == 2);
    REFUSED(MPI_Type_free(&t), MPI_ERR_TYPE, "MPI_Type_create_f90_*, which is predefined");
    REFUSED(MPI_Type_create_f90_integer(39, &t), MPI_ERR_ARG, "r = 39");
    REFUSED(MPI_Type_create_f90_real(40, 1, &t), MPI_ERR_ARG, "p = 40");
    REFUSED(MPI_Type_create_f90_real(MPI_UNDEFINED, MPI_UNDEFINED, &t), MPI_ERR_ARG, "both MPI_UNDEFINED");
}

static void refusals(void) {
    MPI_Datatype t, types[2] = {MPI_INT, MPI_DATATYPE_NULL}, predefined = MPI_INT;
    int lengths[2] = {1, -1}, places[2] = {0, 0}, size;
    MPI_Aint bytes[2] = {0, 0};
    REFUSED(MPI_Type_contiguous(-1, MPI_INT, &t), MPI_ERR_COUNT, "count is -1");
    REFUSED(MPI_Type_contiguous(1, MPI_DATATYPE_NULL, &t), MPI_ERR_TYPE, "argument oldtype is the null");
    REFUSED(MPI_Type_contiguous(1, MPI_INT, NULL), MPI_ERR_ARG, "argument newtype is NULL");
    REFUSED(MPI_Type_vector(1, -2, 1, MPI_INT, &t), MPI_ERR_ARG, "blocklength is -2");
    REFUSED(MPI_Type_indexed(2, lengths, places, MPI_INT, &t), MPI_ERR_ARG, "array_of_blocklengths[1] is -1");
    REFUSED(MPI_Type_indexed(2, NULL, places, MPI_INT, &t), MPI_ERR_ARG, "array_of_blocklengths is NULL");
    REFUSED(MPI_Type_indexed(-2, lengths, places, MPI_INT, &t), MPI_ERR_COUNT, "count = -2 is negative");
    REFUSED(MPI_Type_create_hindexed(2, lengths, NULL, MPI_INT, &t), MPI_ERR_ARG, "array_of_displacements is NULL");
    lengths[1] = 1;
    REFUSED(MPI_Type_create_struct(2, lengths, bytes, types, &t), MPI_ERR_TYPE, "array_of_types[1] is the null");
    REFUSED(MPI_Type_create_subarray(1, lengths, lengths, lengths, MPI_ORDER_C, MPI_INT, &t), MPI_ERR_ARG, "starts");
    REFUSED(MPI_Type_commit(NULL), MPI_ERR_ARG, "argument datatype is NULL");
    REFUSED(MPI_Type_free(&predefined), MPI_ERR_TYPE, "MPI_INT, which is predefined");
    REFUSED(MPI_Type_size(MPI_DATATYPE_NULL, &size), MPI_ERR_TYPE, "null datatype");
}

int main(void) {
    begin();
    constructors();
    pack_a_struct();
    contents();
    names();
    fortran();
    refusals();
    return end();
}
