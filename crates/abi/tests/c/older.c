/* What programs older than MPI 3 call, and handles of Fortran: mpi.h has it, inline. It is C89 and C++, too. */
#include <mpi.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

static int failures = 0;

#define CHECK(what)                                                            \
    do {                                                                       \
        if (!(what)) {                                                         \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #what); \
            failures++;                                                        \
        }                                                                      \
    } while (0)

typedef struct { char letter; double number; int last[2]; } Mixed;

static int handled = 0;

static void handler(MPI_Comm *comm, int *code, ...)
{
    (void)comm, (void)code;
    handled++;
}

static void handles(void)
{
    MPI_Comm comm;
    MPI_Group group;
    MPI_Datatype type;
    MPI_Info info;
    MPI_Request request;
    int n = -1, data = 1;
    MPI_Comm_dup(MPI_COMM_SELF, &comm);
    CHECK(MPI_Comm_f2c(MPI_Comm_c2f(comm)) == comm && PMPI_Comm_f2c(PMPI_Comm_c2f(comm)) == comm);
    CHECK(MPI_Comm_c2f(comm) == MPI_Comm_toint(comm));
    MPI_Comm_size(MPI_Comm_f2c(MPI_Comm_c2f(comm)), &n);
    CHECK(n == 1);
    MPI_Comm_group(comm, &group);
    CHECK(MPI_Group_f2c(MPI_Group_c2f(group)) == group);
    MPI_Type_contiguous(3, MPI_INT, &type);
    CHECK(MPI_Type_f2c(MPI_Type_c2f(type)) == type);
    MPI_Info_create(&info);
    CHECK(MPI_Info_f2c(MPI_Info_c2f(info)) == info);
    MPI_Isend(&data, 1, MPI_INT, MPI_PROC_NULL, 0, comm, &request);
    CHECK(MPI_Request_f2c(MPI_Request_c2f(request)) == request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(MPI_Op_f2c(MPI_Op_c2f(MPI_SUM)) == MPI_SUM);
    CHECK(MPI_Win_f2c(MPI_Win_c2f(MPI_WIN_NULL)) == MPI_WIN_NULL);
    CHECK(MPI_File_f2c(MPI_File_c2f(MPI_FILE_NULL)) == MPI_FILE_NULL);
    CHECK(MPI_Message_f2c(MPI_Message_c2f(MPI_MESSAGE_NO_PROC)) == MPI_MESSAGE_NO_PROC);
    CHECK(MPI_Session_f2c(MPI_Session_c2f(MPI_SESSION_NULL)) == MPI_SESSION_NULL);
    CHECK(MPI_Errhandler_f2c(MPI_Errhandler_c2f(MPI_ERRORS_RETURN)) == MPI_ERRORS_RETURN);
    MPI_Info_free(&info);
    MPI_Type_free(&type);
    MPI_Group_free(&group);
    MPI_Comm_free(&comm);
}

static void statuses(void)
{
    int sent[3] = {1, 2, 3}, got[3], n = -1;
    MPI_Fint in_fortran[MPI_F_STATUS_SIZE], again[MPI_F_STATUS_SIZE];
    MPI_F08_status in_f08;
    MPI_Status status, back;
    MPI_Sendrecv(sent, 3, MPI_INT, 0, 7, got, 3, MPI_INT, 0, 7, MPI_COMM_SELF, &status);
    memset(&back, 0, sizeof back);
    CHECK(MPI_Status_c2f(&status, in_fortran) == MPI_SUCCESS);
    CHECK(in_fortran[MPI_F_SOURCE] == 0 && in_fortran[MPI_F_TAG] == 7);
    CHECK(MPI_Status_f2f08(in_fortran, &in_f08) == MPI_SUCCESS);
    CHECK(MPI_Status_f082f(&in_f08, again) == MPI_SUCCESS);
    CHECK(memcmp(in_fortran, again, sizeof again) == 0);
    CHECK(MPI_Status_f2c(again, &back) == MPI_SUCCESS);
    MPI_Get_count(&back, MPI_INT, &n);
    CHECK(n == 3 && back.MPI_TAG == 7);
    memset(&back, 0, sizeof back);
    CHECK(MPI_Status_c2f08(&status, &in_f08) == MPI_SUCCESS);
    CHECK(MPI_Status_f082c(&in_f08, &back) == MPI_SUCCESS);
    CHECK(memcmp(&back, &status, sizeof back) == 0);
}

/* Lower bound, extent and size. */
static int is(MPI_Datatype type, MPI_Aint low, MPI_Aint extent, int bytes)
{
    MPI_Aint lb = -99, its = -99, ub = -99, length = -99;
    int size = -1;
    MPI_Type_get_extent(type, &lb, &its);
    MPI_Type_size(type, &size);
    CHECK(lb == low && its == extent && size == bytes);
    MPI_Type_lb(type, &lb);
    MPI_Type_ub(type, &ub);
    MPI_Type_extent(type, &length);
    CHECK(lb == low && ub == low + extent && length == extent);
    return lb == low && its == extent && size == bytes;
}

static void types(void)
{
    MPI_Datatype type, parts[5], mixed;
    MPI_Aint places[5], base;
    int lengths[5], i;
    Mixed out[2], in[2];
    memset(out, 0, sizeof out);
    memset(in, 0, sizeof in);

    MPI_Type_hvector(3, 2, 16, MPI_INT, &type);
    CHECK(is(type, 0, 40, 24));
    MPI_Type_free(&type);
    lengths[0] = 1, lengths[1] = 2, places[0] = 8, places[1] = 20;
    MPI_Type_hindexed(2, lengths, places, MPI_INT, &type);
    CHECK(is(type, 8, 20, 12));
    MPI_Type_free(&type);

    /* As programs did: the end of the structure marked by MPI_UB. */
    MPI_Address(&out[0], &base);
    MPI_Address(&out[0].letter, &places[0]);
    MPI_Address(&out[0].number, &places[1]);
    MPI_Address(&out[0].last[1], &places[2]);
    MPI_Address(&out[1], &places[3]);
    for (i = 0; i < 4; i++) places[i] -= base, lengths[i] = 1;
    parts[0] = MPI_CHAR, parts[1] = MPI_DOUBLE, parts[2] = MPI_INT, parts[3] = MPI_UB;
    CHECK(MPI_Type_struct(4, lengths, places, parts, &mixed) == MPI_SUCCESS);
    CHECK(is(mixed, 0, (MPI_Aint)sizeof(Mixed), 13));
    MPI_Type_commit(&mixed);
    for (i = 0; i < 2; i++) out[i].letter = (char)('a' + i), out[i].number = i + .5, out[i].last[1] = i + 7;
    MPI_Sendrecv(out, 2, mixed, 0, 0, in, 2, mixed, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE);
    for (i = 0; i < 2; i++) CHECK(in[i].letter == out[i].letter && in[i].number == i + .5 && in[i].last[1] == i + 7);
    MPI_Type_free(&mixed);

    /* Both bounds, each twice, one of length 0: the least and the greatest that are there. */
    parts[0] = MPI_LB, parts[1] = MPI_INT, parts[2] = MPI_UB, parts[3] = MPI_LB, parts[4] = MPI_UB;
    places[0] = -4, places[1] = 0, places[2] = 40, places[3] = -8, places[4] = 99;
    lengths[4] = 0;
    MPI_Type_struct(5, lengths, places, parts, &type);
    CHECK(is(type, -8, 48, 4));
    MPI_Type_free(&type);
    /* A lower bound alone, bounds alone, and none. */
    MPI_Type_struct(2, lengths, places, parts, &type);
    CHECK(is(type, -4, 8, 4));
    MPI_Type_free(&type);
    parts[1] = MPI_UB, places[1] = 12;
    PMPI_Type_struct(2, lengths, places, parts, &type);
    CHECK(is(type, -4, 16, 0));
    MPI_Type_free(&type);
    parts[0] = MPI_CHAR, parts[1] = MPI_CHAR;
    MPI_Type_struct(2, lengths, places, parts, &type);
    CHECK(is(type, -4, 17, 2));
    MPI_Type_free(&type);

    /* No such combiner is ever told. */
    CHECK(MPI_COMBINER_HVECTOR_INTEGER < 0 && MPI_COMBINER_HINDEXED_INTEGER < 0 && MPI_COMBINER_STRUCT_INTEGER < 0);
    /* The two bounds are no datatypes elsewhere. */
    CHECK(MPI_Type_dup(MPI_UB, &type) != MPI_SUCCESS && MPI_Type_struct(1, lengths, places, NULL, &type) != MPI_SUCCESS);
    parts[0] = MPI_UB, parts[1] = MPI_DATATYPE_NULL;
    CHECK(MPI_Type_struct(2, lengths, places, parts, &type) != MPI_SUCCESS);
}

static void errors(void)
{
    MPI_Handler_function *function = handler;
    MPI_Errhandler mine, its;
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_SELF, &comm);
    MPI_Errhandler_create(function, &mine);
    MPI_Errhandler_set(comm, mine);
    MPI_Errhandler_get(comm, &its);
    CHECK(its == mine);
    CHECK(MPI_Send(NULL, 0, MPI_INT, 5, 0, comm) != MPI_SUCCESS && handled == 1);
    MPI_Errhandler_free(&mine);
    MPI_Errhandler_free(&its);
    MPI_Comm_free(&comm);
}

int main(void)
{
    MPI_Init(NULL, NULL);
    MPI_Errhandler_set(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Errhandler_set(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    handles();
    statuses();
    types();
    errors();
    MPI_Finalize();
    return failures != 0;
}
