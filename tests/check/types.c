// Types of messages: sends and receives whose predefined types differ, by every way in which a type is built.
#include "catalogue.h"

// Sends elements of one type from rank 0 to rank 1, which receives another type.
#define TRANSFER(count, type, other_count, other_type)                                      \
    do {                                                                                    \
        if (rank == 0) MPI_Send(large, count, type, 1, 5, world);                           \
        if (rank == 1) MPI_Recv(large, other_count, other_type, 0, 5, world, no_status);    \
    } while (0)

static MPI_Datatype committed(MPI_Datatype type) {
    MPI_Type_commit(&type);
    return type;
}
static MPI_Datatype contiguous(int count, MPI_Datatype of) {
    MPI_Datatype type;
    MPI_Type_contiguous(count, of, &type);
    return committed(type);
}
static MPI_Datatype vector(int count, int length, int stride, MPI_Datatype of) {
    MPI_Datatype type;
    MPI_Type_vector(count, length, stride, of, &type);
    return committed(type);
}
static MPI_Datatype structure(MPI_Datatype first, MPI_Datatype second) {
    int lengths[2] = {1, 1};
    MPI_Aint places[2] = {0, 8};
    MPI_Datatype types[2] = {first, second}, type;
    MPI_Type_create_struct(2, lengths, places, types, &type);
    return committed(type);
}
static MPI_Datatype subarray(MPI_Datatype of) {
    MPI_Datatype type;
    int sizes[2] = {4, 4}, parts[2] = {2, 2}, starts[2] = {1, 1};
    MPI_Type_create_subarray(2, sizes, parts, starts, MPI_ORDER_C, of, &type);
    return committed(type);
}
static MPI_Datatype indexed(MPI_Datatype of) {
    MPI_Datatype type;
    int lengths[2] = {1, 3}, places[2] = {0, 5};
    MPI_Type_indexed(2, lengths, places, of, &type);
    return committed(type);
}
static MPI_Datatype resized(MPI_Datatype of) {
    MPI_Datatype type;
    MPI_Type_create_resized(of, 0, 64, &type);
    return committed(type);
}

ERRONEOUS(int_and_float, "type mismatch", 2) {
    TRANSFER(1, MPI_INT, 1, MPI_FLOAT);  // named
}
ERRONEOUS(int_and_unsigned, "type mismatch", 2) {
    TRANSFER(1, MPI_INT, 1, MPI_UNSIGNED);  // named
}
ERRONEOUS(long_and_double, "type mismatch", 2) {
    TRANSFER(3, MPI_LONG, 3, MPI_DOUBLE);  // named
}
ERRONEOUS(char_and_byte, "type mismatch", 2) {
    TRANSFER(3, MPI_CHAR, 3, MPI_BYTE);  // named
}
ERRONEOUS(int_and_bytes, "type mismatch", 2) {
    TRANSFER(1, MPI_INT, 4, MPI_BYTE);  // named
}
ERRONEOUS(two_ints_and_a_long, "type mismatch", 2) {
    TRANSFER(2, MPI_INT, 1, MPI_LONG);  // named
}
ERRONEOUS(complex_and_doubles, "type mismatch", 2) {
    TRANSFER(1, MPI_C_DOUBLE_COMPLEX, 2, MPI_DOUBLE);  // named
}
ERRONEOUS(pair_and_its_integers, "type mismatch", 2) {
    TRANSFER(1, MPI_FLOAT_INT, 1, MPI_2INT);  // named
}
CORRECT(equal_predefined_types, 2) {
    TRANSFER(1, MPI_INT, 1, MPI_INT32_T);
    TRANSFER(1, MPI_LONG, 1, MPI_INT64_T);
    TRANSFER(3, MPI_INT, 10, MPI_INT);
    TRANSFER(0, MPI_INT, 1, MPI_DOUBLE);
    TRANSFER(1, MPI_2INT, 2, MPI_INT);
    TRANSFER(1, MPI_AINT, 1, MPI_OFFSET);
}
ERRONEOUS(contiguous_ints_and_floats, "type mismatch", 2) {
    MPI_Datatype four = contiguous(4, MPI_INT);
    TRANSFER(1, four, 4, MPI_FLOAT);  // named
    MPI_Type_free(&four);
}
CORRECT(contiguous_ints, 2) {
    MPI_Datatype four = contiguous(4, MPI_INT);
    TRANSFER(1, four, 4, MPI_INT);
    TRANSFER(4, MPI_INT, 2, four);
    MPI_Type_free(&four);
}
ERRONEOUS(vector_of_doubles_and_longs, "type mismatch", 2) {
    MPI_Datatype column = vector(4, 1, 3, MPI_DOUBLE);
    TRANSFER(1, column, 4, MPI_LONG);  // named
    MPI_Type_free(&column);
}
CORRECT(vector_of_doubles, 2) {
    MPI_Datatype column = vector(4, 1, 3, MPI_DOUBLE);
    TRANSFER(1, column, 4, MPI_DOUBLE);
    MPI_Type_free(&column);
}
ERRONEOUS(structures_in_other_order, "type mismatch", 2) {
    MPI_Datatype a = structure(MPI_INT, MPI_DOUBLE), b = structure(MPI_DOUBLE, MPI_INT);
    TRANSFER(1, a, 1, b);  // named
    MPI_Type_free(&a);
    MPI_Type_free(&b);
}
ERRONEOUS(structure_and_its_first_type, "type mismatch", 2) {
    MPI_Datatype a = structure(MPI_INT, MPI_DOUBLE);
    TRANSFER(1, a, 4, MPI_INT);  // named
    MPI_Type_free(&a);
}
CORRECT(equal_structures, 2) {
    MPI_Datatype a = structure(MPI_INT, MPI_DOUBLE), b = structure(MPI_INT, MPI_DOUBLE);
    TRANSFER(2, a, 2, b);
    MPI_Type_free(&a);
    MPI_Type_free(&b);
}
ERRONEOUS(subarray_of_ints_and_floats, "type mismatch", 2) {
    MPI_Datatype part = subarray(MPI_INT);
    TRANSFER(1, part, 4, MPI_FLOAT);  // named
    MPI_Type_free(&part);
}
CORRECT(subarray_of_ints, 2) {
    MPI_Datatype part = subarray(MPI_INT);
    TRANSFER(1, part, 4, MPI_INT);
    MPI_Type_free(&part);
}
ERRONEOUS(indexed_ints_and_floats, "type mismatch", 2) {
    MPI_Datatype parts = indexed(MPI_INT);
    TRANSFER(1, parts, 4, MPI_FLOAT);  // named
    MPI_Type_free(&parts);
}
CORRECT(indexed_ints, 2) {
    MPI_Datatype parts = indexed(MPI_INT);
    TRANSFER(1, parts, 4, MPI_INT);
    MPI_Type_free(&parts);
}
ERRONEOUS(resized_ints_and_floats, "type mismatch", 2) {
    MPI_Datatype wide = resized(MPI_INT);
    TRANSFER(2, wide, 2, MPI_FLOAT);  // named
    MPI_Type_free(&wide);
}
CORRECT(resized_ints, 2) {
    MPI_Datatype wide = resized(MPI_INT), copy;
    TRANSFER(2, wide, 2, MPI_INT);
    MPI_Type_dup(wide, &copy);
    TRANSFER(2, copy, 2, MPI_INT);
    MPI_Type_free(&copy);
    MPI_Type_free(&wide);
}
ERRONEOUS(nested_types, "type mismatch", 2) {
    MPI_Datatype pair = structure(MPI_INT, MPI_DOUBLE), pairs = vector(2, 1, 2, pair), other = contiguous(2, MPI_INT);
    TRANSFER(1, pairs, 4, other);  // named
    MPI_Type_free(&pair);
    MPI_Type_free(&pairs);
    MPI_Type_free(&other);
}
CORRECT(nested_types_of_equal_elements, 2) {
    MPI_Datatype pair = structure(MPI_INT, MPI_DOUBLE), pairs = vector(2, 1, 2, pair);
    TRANSFER(1, pairs, 2, pair);
    MPI_Type_free(&pair);
    MPI_Type_free(&pairs);
}
ERRONEOUS(sendrecv_of_other_type, "type mismatch", 2) {
    MPI_Sendrecv(ints, 1, MPI_INT, 1 - rank, 1, more, 1, MPI_FLOAT, 1 - rank, 1, world, no_status);  // named
}
CORRECT(sendrecv_replace_of_one_type, 2) {
    MPI_Sendrecv_replace(ints, 4, MPI_INT, 1 - rank, 1, 1 - rank, 1, world, no_status);
}
ERRONEOUS(ssend_of_other_type, "type mismatch", 2) {
    if (rank == 0) MPI_Ssend(ints, 1, MPI_INT, 1, 1, world);  // named
    if (rank == 1) MPI_Recv(ints, 1, MPI_FLOAT, 0, 1, world, no_status);  // named
}
ERRONEOUS(irecv_of_other_type, "type mismatch", 2) {
    MPI_Request request;
    if (rank == 0) MPI_Send(ints, 1, MPI_INT, 1, 1, world);  // named
    if (rank == 1) {
        MPI_Irecv(ints, 1, MPI_FLOAT, 0, 1, world, &request);  // named
        MPI_Wait(&request, no_status);
    }
}
ERRONEOUS(second_message_of_other_type, "type mismatch", 2) {
    if (rank == 0) {
        MPI_Send(ints, 1, MPI_INT, 1, 1, world);
        MPI_Send(ints, 1, MPI_FLOAT, 1, 1, world);  // named
    } else {
        for (int i = 0; i < 2; i++) MPI_Recv(ints, 1, MPI_INT, 0, 1, world, no_status);  // named
    }
}
ERRONEOUS(wildcard_receive_of_other_type, "type mismatch", 2) {
    if (rank == 0) MPI_Send(ints, 1, MPI_INT, 1, 1, world);  // named
    if (rank == 1) MPI_Recv(ints, 1, MPI_FLOAT, MPI_ANY_SOURCE, MPI_ANY_TAG, world, no_status);  // named
}
CORRECT(packed_messages, 2) {
    char buffer[100];
    int place = 0;
    MPI_Pack(ints, 3, MPI_INT, buffer, sizeof buffer, &place, world);
    if (rank == 0) MPI_Send(buffer, place, MPI_PACKED, 1, 1, world);
    if (rank == 1) MPI_Recv(ints, 3, MPI_INT, 0, 1, world, no_status);
    if (rank == 1) MPI_Send(ints, 3, MPI_INT, 0, 1, world);
    if (rank == 0) MPI_Recv(buffer, 100, MPI_PACKED, 1, 1, world, no_status);
}
