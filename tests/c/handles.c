// ranks: 1 3
// says: correct
//
// Handles as integers and back (MPI 5.0, section 20.4): the same object, no other, usable; and
// predefined handles keep the values that the ABI gives them.
#include "check.h"

#define WORLD MPI_COMM_WORLD

/* Two objects of one class have different numbers, and each number leads back. */
#define BACK(Class, a, b)                                                             \
    do {                                                                              \
        int one = MPI_##Class##_toint(a), two = MPI_##Class##_toint(b);               \
        CHECK(one != two, #Class ": both are %d", one);                               \
        CHECK(MPI_##Class##_fromint(one) == (a) && MPI_##Class##_fromint(two) == (b), \
              #Class ": other handles");                                              \
    } while (0)
#define PREDEFINED(Class, handle)                                                     \
    CHECK(MPI_##Class##_toint(handle) == (int)(intptr_t)(handle) &&                   \
              MPI_##Class##_fromint((int)(intptr_t)(handle)) == (handle), #handle)

static void twice(void *in, void *inout, int *n, MPI_Datatype *type)
{
    (void)type;
    for (int i = 0; i < *n; i++) ((int *)inout)[i] += 2 * ((int *)in)[i];
}

static void failed(MPI_Comm *comm, int *code, ...)
{
    (void)comm, (void)code;
}

static void communicators(void)
{
    MPI_Comm a, b;
    int n = -1;
    MPI_Comm_dup(WORLD, &a);
    MPI_Comm_split(WORLD, rank, 0, &b);
    BACK(Comm, a, b);
    BACK(Comm, a, WORLD);
    MPI_Comm_size(MPI_Comm_fromint(MPI_Comm_toint(b)), &n);
    CHECK(n == 1);
    MPI_Comm_size(MPI_Comm_fromint(MPI_Comm_toint(a)), &n);
    CHECK(n == size);
    PREDEFINED(Comm, MPI_COMM_WORLD);
    PREDEFINED(Comm, MPI_COMM_SELF);
    PREDEFINED(Comm, MPI_COMM_NULL);
    MPI_Comm_free(&a), MPI_Comm_free(&b);
}

static void groups(void)
{
    MPI_Group a, b;
    int n = -1, me = rank;
    MPI_Comm_group(WORLD, &a);
    MPI_Group_incl(a, 1, &me, &b);
    BACK(Group, a, b);
    MPI_Group_size(MPI_Group_fromint(MPI_Group_toint(a)), &n);
    CHECK(n == size);
    PREDEFINED(Group, MPI_GROUP_EMPTY);
    PREDEFINED(Group, MPI_GROUP_NULL);
    MPI_Group_free(&a), MPI_Group_free(&b);
}

static void types_and_operators(void)
{
    MPI_Datatype a, b;
    MPI_Op c, d;
    int n = -1, in = 5, inout = 1;
    MPI_Type_contiguous(3, MPI_INT, &a);
    MPI_Type_contiguous(5, MPI_INT, &b);
    BACK(Type, a, b);
    MPI_Type_size(MPI_Type_fromint(MPI_Type_toint(b)), &n);
    CHECK(n == 20);
    PREDEFINED(Type, MPI_INT);
    PREDEFINED(Type, MPI_DATATYPE_NULL);
    MPI_Type_free(&a), MPI_Type_free(&b);
    MPI_Op_create(twice, 1, &c);
    MPI_Op_create(twice, 0, &d);
    BACK(Op, c, d);
    MPI_Reduce_local(&in, &inout, 1, MPI_INT, MPI_Op_fromint(MPI_Op_toint(c)));
    CHECK(inout == 11, "%d", inout);
    PREDEFINED(Op, MPI_SUM);
    PREDEFINED(Op, MPI_OP_NULL);
    MPI_Op_free(&c), MPI_Op_free(&d);
}

static void messages_and_requests(void)
{
    MPI_Request a, b, again;
    MPI_Message m, n;
    int out[2] = {rank, rank + 100}, in[2] = {-1, -1};
    MPI_Irecv(&in[0], 1, MPI_INT, rank, 1, WORLD, &a);
    MPI_Irecv(&in[1], 1, MPI_INT, rank, 2, WORLD, &b);
    BACK(Request, a, b);
    MPI_Send(&out[0], 1, MPI_INT, rank, 1, WORLD);
    MPI_Send(&out[1], 1, MPI_INT, rank, 2, WORLD);
    again = MPI_Request_fromint(MPI_Request_toint(b));
    MPI_Wait(&again, MPI_STATUS_IGNORE);
    MPI_Wait(&a, MPI_STATUS_IGNORE);
    CHECK(in[0] == rank && in[1] == rank + 100);
    PREDEFINED(Request, MPI_REQUEST_NULL);
    MPI_Isend(&out[0], 1, MPI_INT, rank, 3, WORLD, &a);
    MPI_Isend(&out[1], 1, MPI_INT, rank, 4, WORLD, &b);
    MPI_Mprobe(rank, 3, WORLD, &m, MPI_STATUS_IGNORE);
    MPI_Mprobe(rank, 4, WORLD, &n, MPI_STATUS_IGNORE);
    BACK(Message, m, n);
    MPI_Message same = MPI_Message_fromint(MPI_Message_toint(n));
    in[0] = in[1] = -1;
    MPI_Mrecv(&in[1], 1, MPI_INT, &same, MPI_STATUS_IGNORE);
    MPI_Mrecv(&in[0], 1, MPI_INT, &m, MPI_STATUS_IGNORE);
    CHECK(in[0] == rank && in[1] == rank + 100);
    MPI_Wait(&a, MPI_STATUS_IGNORE), MPI_Wait(&b, MPI_STATUS_IGNORE);
    PREDEFINED(Message, MPI_MESSAGE_NO_PROC);
    PREDEFINED(Message, MPI_MESSAGE_NULL);
}

static void the_others(void)
{
    MPI_Info a, b;
    MPI_Errhandler c, d;
    MPI_Session s, t;
    int n = -1;
    MPI_Info_create(&a), MPI_Info_create(&b);
    MPI_Info_set(b, "key", "value");
    BACK(Info, a, b);
    MPI_Info_get_nkeys(MPI_Info_fromint(MPI_Info_toint(b)), &n);
    CHECK(n == 1);
    PREDEFINED(Info, MPI_INFO_ENV);
    PREDEFINED(Info, MPI_INFO_NULL);
    MPI_Info_free(&a), MPI_Info_free(&b);
    MPI_Comm_create_errhandler(failed, &c), MPI_Comm_create_errhandler(failed, &d);
    BACK(Errhandler, c, d);
    PREDEFINED(Errhandler, MPI_ERRORS_RETURN);
    MPI_Errhandler_free(&c), MPI_Errhandler_free(&d);
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &s);
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &t);
    BACK(Session, s, t);
    PREDEFINED(Session, MPI_SESSION_NULL);
    PREDEFINED(File, MPI_FILE_NULL);
    PREDEFINED(Win, MPI_WIN_NULL);
    MPI_Session_finalize(&s), MPI_Session_finalize(&t);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    communicators();
    groups();
    types_and_operators();
    messages_and_requests();
    the_others();
    return end();
}
