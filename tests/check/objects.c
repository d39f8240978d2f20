// Objects that the program makes and does not free.
#include "catalogue.h"

ERRONEOUS(dup_left, "object not freed", 2) {
    MPI_Comm comm;
    MPI_Comm_dup(world, &comm);  // named
}
ERRONEOUS(split_left, "object not freed", 2) {
    MPI_Comm comm;
    MPI_Comm_split(world, rank, 0, &comm);  // named
}
ERRONEOUS(one_of_two_copies_left, "object not freed", 2) {
    MPI_Comm first, second;
    MPI_Comm_dup(world, &first);
    MPI_Comm_dup(world, &second);  // named
    MPI_Comm_free(&first);
}
ERRONEOUS(cart_left, "object not freed", 2) {
    MPI_Comm comm;
    int periods = 0;
    MPI_Cart_create(world, 1, &size, &periods, 0, &comm);  // named
}
ERRONEOUS(create_group_left, "object not freed", 2) {
    MPI_Comm comm;
    MPI_Group group;
    MPI_Comm_group(world, &group);
    MPI_Comm_create_group(world, group, 1, &comm);  // named
    MPI_Group_free(&group);
}
CORRECT(communicators_freed, 2) {
    MPI_Comm comm, half;
    MPI_Group group;
    MPI_Comm_dup(world, &comm);
    MPI_Comm_split(comm, rank, 0, &half);
    MPI_Comm_free(&half);
    MPI_Comm_disconnect(&comm);
    MPI_Comm_group(world, &group);
    MPI_Comm_create(world, group, &comm);
    MPI_Comm_free(&comm);
    MPI_Group_free(&group);
}
ERRONEOUS(group_left, "object not freed", 2) {
    MPI_Group group;
    MPI_Comm_group(world, &group);  // named
}
ERRONEOUS(derived_group_left, "object not freed", 2) {
    MPI_Group all, one;
    MPI_Comm_group(world, &all);
    MPI_Group_incl(all, 1, &rank, &one);  // named
    MPI_Group_free(&all);
}
ERRONEOUS(group_of_a_window_left, "object not freed", 2) {
    MPI_Win win;
    MPI_Group group;
    MPI_Win_create(ints, 8, 1, MPI_INFO_NULL, world, &win);
    MPI_Win_get_group(win, &group);  // named
    MPI_Win_free(&win);
}
CORRECT(groups_freed, 2) {
    MPI_Group all, one, rest;
    MPI_Comm_group(world, &all);
    MPI_Group_incl(all, 1, &rank, &one);
    MPI_Group_difference(all, one, &rest);
    MPI_Group_free(&rest);
    MPI_Group_free(&one);
    MPI_Group_free(&all);
}
ERRONEOUS(contiguous_left, "object not freed", 2) {
    MPI_Datatype type;
    MPI_Type_contiguous(3, MPI_INT, &type);  // named
}
ERRONEOUS(types_in_a_loop_left, "object not freed", 2) {
    MPI_Datatype type;
    for (int i = 1; i < 5; i++) MPI_Type_vector(i, 1, 2, MPI_INT, &type);  // named
}
ERRONEOUS(base_of_a_type_left, "object not freed", 2) {
    MPI_Datatype inner, outer;
    MPI_Type_contiguous(3, MPI_INT, &inner);  // named
    MPI_Type_contiguous(3, inner, &outer);
    MPI_Type_free(&outer);
}
ERRONEOUS(copy_of_a_type_left, "object not freed", 2) {
    MPI_Datatype type;
    MPI_Type_dup(MPI_INT, &type);  // named
}
CORRECT(types_freed, 2) {
    MPI_Datatype inner, outer;
    MPI_Type_contiguous(3, MPI_INT, &inner);
    MPI_Type_vector(3, 1, 2, inner, &outer);
    MPI_Type_free(&inner);
    MPI_Type_commit(&outer);
    MPI_Sendrecv(ints, 1, outer, rank, 1, more, 9, MPI_INT, rank, 1, world, no_status);
    MPI_Type_free(&outer);
    MPI_Type_match_size(MPI_TYPECLASS_INTEGER, 4, &inner);
}
static void add(void *in, void *out, int *n, MPI_Datatype *type) {
    (void)type;
    for (int i = 0; i < *n; i++) ((int *)out)[i] += ((int *)in)[i];
}
ERRONEOUS(operator_left, "object not freed", 2) {
    MPI_Op op;
    MPI_Op_create(add, 1, &op);  // named
}
CORRECT(operator_freed, 2) {
    MPI_Op op;
    MPI_Op_create(add, 1, &op);
    MPI_Allreduce(ints, more, 4, MPI_INT, op, world);
    MPI_Op_free(&op);
}
ERRONEOUS(window_left, "object not freed", 2) {
    MPI_Win win;
    MPI_Win_create(ints, 8, 1, MPI_INFO_NULL, world, &win);  // named
}
ERRONEOUS(allocated_window_left, "object not freed", 2) {
    MPI_Win win;
    void *base;
    MPI_Win_allocate(8, 1, MPI_INFO_NULL, world, &base, &win);  // named
}
ERRONEOUS(file_left, "object not freed", 2) {
    MPI_File fh;
    MPI_File_open(world, "/dev/null", MPI_MODE_RDONLY, MPI_INFO_NULL, &fh);  // named
}
CORRECT(windows_and_files_freed, 2) {
    MPI_Win win;
    MPI_File fh;
    void *base;
    MPI_Win_allocate(8, 1, MPI_INFO_NULL, world, &base, &win);
    MPI_Win_free(&win);
    MPI_File_open(world, "/dev/null", MPI_MODE_RDONLY, MPI_INFO_NULL, &fh);
    MPI_File_close(&fh);
}
static void handler(MPI_Comm *comm, int *code, ...) { (void)comm, (void)code; }
ERRONEOUS(handler_left, "object not freed", 2) {
    MPI_Errhandler own;
    MPI_Comm_create_errhandler(handler, &own);  // named
}
CORRECT(handler_freed, 2) {
    MPI_Errhandler own;
    MPI_Comm_create_errhandler(handler, &own);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, own);
    MPI_Errhandler_free(&own);
}
