#include "check.h"

static int calls = 0, last_class = -1;
static MPI_Comm last_comm;

static int class_of(int code) {
    int class = -1;
    MPI_Error_class(code, &class);
    return class;
}

static void handler(MPI_Comm *comm, int *code, ...) {
    int size = 0;
    /* The program may call MPI here. */
    CHECK(MPI_Comm_size(*comm, &size) == MPI_SUCCESS && size == 1);
    calls++;
    last_class = class_of(*code);
    last_comm = *comm;
}

static void file_handler(MPI_File *file, int *code, ...) {
    (void)file, (void)code;
    calls = 100;
}

static void win_handler(MPI_Win *win, int *code, ...) {
    (void)win, (void)code;
}

static void bad_arguments(void) {
    int value = 0, flag;
    MPI_Comm world = MPI_COMM_WORLD, freed;
    MPI_Status status;
    MPI_Request request;
    MPI_Datatype raw, freed_type;
    MPI_Type_contiguous(2, MPI_INT, &raw);
    MPI_Type_contiguous(2, MPI_INT, &freed_type);
    MPI_Datatype stale_type = freed_type;
    MPI_Type_free(&freed_type);
    MPI_Comm_dup(world, &freed);
    MPI_Comm stale = freed;
    MPI_Comm_free(&freed);

    REFUSED(MPI_Send(&value, 1, MPI_INT, 7, 0, world), MPI_ERR_RANK,
            "MPI_ERR_RANK: invalid rank: MPI_Send on MPI_COMM_WORLD: argument dest = 7: ranks are 0 to 0");
    REFUSED(MPI_Send(&value, 1, MPI_INT, -9, 0, world), MPI_ERR_RANK, "dest = -9");
    REFUSED(MPI_Send(&value, 1, MPI_INT, MPI_ANY_SOURCE, 0, world), MPI_ERR_RANK, "dest = -1");
    REFUSED(MPI_Recv(&value, 1, MPI_INT, 1, 0, world, &status), MPI_ERR_RANK, "source = 1");
    REFUSED(MPI_Send(&value, 1, MPI_INT, 0, -5, world), MPI_ERR_TAG, "tag = -5: tags are 0 to");
    REFUSED(MPI_Send(&value, 1, MPI_INT, 0, MPI_ANY_TAG, world), MPI_ERR_TAG, "tag = -2");
    REFUSED(MPI_Irecv(&value, 1, MPI_INT, 0, -5, world, &request), MPI_ERR_TAG, "MPI_Irecv");
    REFUSED(MPI_Send(&value, -1, MPI_INT, 0, 0, world), MPI_ERR_COUNT, "count = -1 is negative");
    REFUSED(MPI_Send(&value, 1, MPI_DATATYPE_NULL, 0, 0, world), MPI_ERR_TYPE,
            "argument datatype is the null datatype");
    REFUSED(MPI_Send(&value, 1, raw, 0, 0, world), MPI_ERR_TYPE, "not committed: MPI_Type_commit");
    REFUSED(MPI_Send(&value, 1, stale_type, 0, 0, world), MPI_ERR_TYPE, "freed");
    REFUSED(MPI_Send(NULL, 1, MPI_INT, 0, 0, world), MPI_ERR_BUFFER, "buf is NULL, but count = 1");
    REFUSED(MPI_Bcast(&value, 1, MPI_INT, 3, world), MPI_ERR_ROOT, "root = 3");
    REFUSED(MPI_Allreduce(&value, &flag, 1, MPI_FLOAT, MPI_BAND, world), MPI_ERR_OP,
            "MPI_BAND is not defined on MPI_FLOAT");
    REFUSED(MPI_Comm_rank(MPI_COMM_NULL, &value), MPI_ERR_COMM, "comm is the null communicator");
    REFUSED(MPI_Comm_rank(stale, &value), MPI_ERR_COMM, "freed");
    REFUSED(MPI_Send(&value, 1, MPI_INT, 0, 0, stale), MPI_ERR_COMM, "freed");
    REFUSED(MPI_Comm_rank(world, NULL), MPI_ERR_ARG, "argument rank is NULL");
    REFUSED(MPI_Comm_split(world, -3, 0, &freed), MPI_ERR_ARG, "color = -3");
    REFUSED(MPI_Comm_free(&world), MPI_ERR_COMM, "predefined communicator");
    MPI_Request nonsense = MPI_Request_fromint(123456);
    REFUSED(MPI_Wait(&nonsense, &status), MPI_ERR_REQUEST, "request");
    REFUSED(MPI_Free_mem(&value), MPI_ERR_BASE, "MPI_Alloc_mem did not return it");
    void *memory;
    REFUSED(MPI_Alloc_mem(-1, MPI_INFO_NULL, &memory), MPI_ERR_ARG, "size = -1");
    REFUSED(MPI_Alloc_mem((MPI_Aint)1 << 60, MPI_INFO_NULL, &memory), MPI_ERR_NO_MEM, "no room for 1152921504606846976 bytes (1.0 EiB)");
    MPI_Type_free(&raw);
}

static void handlers(void) {
    MPI_Errhandler made, found, win, stale;
    MPI_Comm comm, copy;
    int value;
    MPI_Comm_get_errhandler(MPI_COMM_WORLD, &found);
    CHECK(found == MPI_ERRORS_RETURN);
    MPI_Errhandler_free(&found);
    CHECK(found == MPI_ERRHANDLER_NULL);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    CHECK(MPI_Comm_create_errhandler(handler, &made) == MPI_SUCCESS);
    CHECK(MPI_Errhandler_fromint(MPI_Errhandler_toint(made)) == made);
    MPI_Comm_set_errhandler(comm, made);
    CHECK(class_of(MPI_Send(&value, 1, MPI_INT, 5, 0, comm)) == MPI_ERR_RANK);
    CHECK(calls == 1 && last_class == MPI_ERR_RANK && last_comm == comm);
    CHECK(MPI_Comm_call_errhandler(comm, MPI_ERR_OTHER) == MPI_SUCCESS);
    CHECK(calls == 2 && last_class == MPI_ERR_OTHER && last_comm == comm);
    /* It is inherited, and lives until nobody has it. */
    MPI_Comm_dup(comm, &copy);
    MPI_Comm_get_errhandler(copy, &found);
    CHECK(found == made);
    stale = made;
    MPI_Errhandler_free(&made);
    MPI_Errhandler_free(&found);
    MPI_Comm_free(&comm);
    CHECK(class_of(MPI_Send(&value, -1, MPI_INT, 0, 0, copy)) == MPI_ERR_COUNT);
    CHECK(calls == 3 && last_class == MPI_ERR_COUNT && last_comm == copy);
    REFUSED(MPI_Comm_set_errhandler(MPI_COMM_WORLD, stale), MPI_ERR_ERRHANDLER, "freed");
    MPI_Comm_get_errhandler(copy, &found);
    CHECK(found == stale);
    MPI_Errhandler_free(&found);
    MPI_Comm_free(&copy);
    /* With the last communicator it is gone. */
    MPI_Comm_create_errhandler(handler, &made);
    CHECK(made != stale);
    MPI_Errhandler_free(&made);
    MPI_Win_create_errhandler(win_handler, &win);
    REFUSED(MPI_Comm_set_errhandler(MPI_COMM_WORLD, win), MPI_ERR_ERRHANDLER, "not for communicators");
    MPI_Errhandler_free(&win);
    REFUSED(MPI_Errhandler_free(&win), MPI_ERR_ERRHANDLER, "the null error handler");
    MPI_Errhandler file = MPI_ERRHANDLER_NULL;
    MPI_File_create_errhandler(file_handler, &file);
    REFUSED(MPI_Comm_set_errhandler(MPI_COMM_WORLD, file), MPI_ERR_ERRHANDLER, "not for communicators");
    MPI_Errhandler_free(&file);
    CHECK(file == MPI_ERRHANDLER_NULL);
    REFUSED(MPI_Comm_create_errhandler(NULL, &made), MPI_ERR_ARG, "comm_errhandler_fn is NULL");
    /* Errors without an object of their own go to MPI_COMM_SELF, whose handler was set. */
    calls = 0;
    MPI_Comm_create_errhandler(handler, &made);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, made);
    CHECK(class_of(MPI_Group_size(MPI_GROUP_NULL, &value)) == MPI_ERR_GROUP);
    CHECK(class_of(MPI_Comm_size(MPI_COMM_NULL, &value)) == MPI_ERR_COMM);
    CHECK(calls == 2 && last_class == MPI_ERR_COMM && last_comm == MPI_COMM_SELF);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Errhandler_free(&made);
}

static const char *text_of(int code) {
    static char text[MPI_MAX_ERROR_STRING];
    int length = -1;
    CHECK(MPI_Error_string(code, text, &length) == MPI_SUCCESS && length == (int)strlen(text));
    return text;
}

static void codes(void) {
    int class, code, found, *last, flag;
    CHECK(strcmp(text_of(MPI_SUCCESS), "MPI_SUCCESS: no error") == 0);
    for (int c = MPI_ERR_BUFFER; c <= MPI_ERR_ABI; c++) {
        CHECK(strncmp(text_of(c), "MPI_ERR_", 8) == 0);
        CHECK(MPI_Error_class(c, &found) == MPI_SUCCESS && found == c);
    }
    REFUSED(MPI_Error_class(-1, &found), MPI_ERR_ARG, "errorcode = -1");
    REFUSED(MPI_Error_class(MPI_ERR_LASTCODE, &found), MPI_ERR_ARG, "neither a standard error code");
    MPI_Add_error_class(&class);
    CHECK(class > MPI_ERR_LASTCODE && strcmp(text_of(class), "") == 0);
    MPI_Add_error_code(class, &code);
    CHECK(code > class);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &last, &flag);
    CHECK(flag && *last == code);
    MPI_Add_error_string(code, "the soup is cold");
    CHECK(strcmp(text_of(code), "the soup is cold") == 0);
    MPI_Error_class(code, &found);
    CHECK(found == class);
    CHECK(MPI_Comm_call_errhandler(MPI_COMM_WORLD, code) == MPI_SUCCESS);
    REFUSED(MPI_Remove_error_code(code), MPI_ERR_ARG, "still has a text");
    REFUSED(MPI_Remove_error_class(class), MPI_ERR_ARG, "still has error codes");
    REFUSED(MPI_Remove_error_class(code), MPI_ERR_ARG, "is a code, not a class");
    REFUSED(MPI_Remove_error_code(class), MPI_ERR_ARG, "is a class, not a code");
    REFUSED(MPI_Remove_error_class(MPI_ERR_ARG), MPI_ERR_ARG, "belongs to the standard");
    REFUSED(MPI_Add_error_string(MPI_ERR_ARG, "mine"), MPI_ERR_ARG, "belongs to the standard");
    REFUSED(MPI_Add_error_code(code, &found), MPI_ERR_ARG, "errorclass");
    CHECK(MPI_Remove_error_string(code) == MPI_SUCCESS);
    CHECK(MPI_Remove_error_code(code) == MPI_SUCCESS);
    REFUSED(MPI_Error_class(code, &found), MPI_ERR_ARG, "neither");
    CHECK(MPI_Remove_error_class(class) == MPI_SUCCESS);
    REFUSED(MPI_Remove_error_class(class), MPI_ERR_ARG, "neither");
}

int main(void) {
    begin();
    bad_arguments();
    handlers();
    codes();
    return end();
}
