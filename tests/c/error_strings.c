// ranks: 1 2
// says: correct
//
// Error codes and their strings (MPI 5.0, sections 9.4 and 9.5): the program's own are exactly what it
// said, those of classes are always the same, and what failed is behind the code that the call returned.
#include "check.h"

static char text[MPI_MAX_ERROR_STRING];

static const char *string_of(int code)
{
    int length = -1;
    memset(text, '#', sizeof text);
    CHECK(MPI_Error_string(code, text, &length) == MPI_SUCCESS, "of %d", code);
    CHECK(length == (int)strlen(text), "%d: %s", length, text);
    return text;
}

static int last_code;
static void hear(MPI_Comm *comm, int *code, ...)
{
    (void)comm;
    last_code = *code;
}

/* All ways on which an error comes to a handler, with this code. */
static void raise_it(int code)
{
    MPI_Errhandler handler;
    MPI_Comm_create_errhandler(hear, &handler);
    MPI_Comm_call_errhandler(MPI_COMM_WORLD, code);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, handler);
    MPI_Comm_call_errhandler(MPI_COMM_SELF, code);
    CHECK(last_code == code);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Errhandler_free(&handler);
    MPI_File_call_errhandler(MPI_FILE_NULL, code);
}

static int last_used(void)
{
    int *value, flag;
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &value, &flag);
    CHECK(flag);
    return *value;
}

static void own(void)
{
    int class, code, plain, found;
    CHECK(last_used() == MPI_ERR_LASTCODE);
    MPI_Add_error_class(&class);
    MPI_Add_error_code(class, &code);
    MPI_Add_error_code(MPI_ERR_RANK, &plain);
    CHECK(MPI_ERR_LASTCODE < class && class < code && code < plain && last_used() == plain);
    CHECK(class_of(code) == class && class_of(class) == class && class_of(plain) == MPI_ERR_RANK);
    int codes[] = {class, code, plain};
    for (int i = 0; i < 3; i++) {
        CHECK(!strcmp(string_of(codes[i]), ""), "without a string: %s", text);
        raise_it(codes[i]);
        CHECK(!strcmp(string_of(codes[i]), ""), "raised without a string: %s", text);
        MPI_Add_error_string(codes[i], "mine");
        CHECK(!strcmp(string_of(codes[i]), "mine"), "%s", text);
        raise_it(codes[i]);
        CHECK(!strcmp(string_of(codes[i]), "mine"), "raised: %s", text);
        MPI_Add_error_string(codes[i], "yours: 7 %d");
        CHECK(!strcmp(string_of(codes[i]), "yours: 7 %d"), "%s", text);
    }
    memset(text, 'x', sizeof text - 1), text[sizeof text - 1] = 0;
    char longest[sizeof text];
    strcpy(longest, text);
    CHECK(MPI_Add_error_string(code, longest) == MPI_SUCCESS && !strcmp(string_of(code), longest));
    /* What was removed is no code any more, and numbers do not come back. */
    FAILS(MPI_Remove_error_code(plain), MPI_ERR_ARG);
    MPI_Remove_error_string(plain);
    CHECK(!strcmp(string_of(plain), "") && MPI_Remove_error_code(plain) == MPI_SUCCESS);
    FAILS(MPI_Error_class(plain, &found), MPI_ERR_ARG);
    CHECK(last_used() == code);
    MPI_Add_error_class(&found);
    CHECK(found > plain && last_used() == found);
    FAILS(MPI_Add_error_string(MPI_ERR_RANK, "mine"), MPI_ERR_ARG);
}

static int last_class_text(int class, char *to)
{
    strcpy(to, string_of(class));
    return class;
}

/* One failure after another, and always the same strings of classes. */
static void standard(void)
{
    enum { LAST = MPI_ERR_ABI, MANY = 1000 };
    static char before[LAST + 1][MPI_MAX_ERROR_STRING];
    static int codes[MANY];
    int word = 0, n;
    for (int class = MPI_SUCCESS; class <= LAST; class++) last_class_text(class, before[class]);
    CHECK(!strcmp(before[MPI_ERR_RANK], "MPI_ERR_RANK: invalid rank"), "%s", before[MPI_ERR_RANK]);
    MPI_T_cvar_handle_free(NULL);
    int tool = MPI_T_enum_get_info(NULL, &n, NULL, NULL);
    CHECK(tool >= MPI_T_ERR_CANNOT_INIT && !strstr(string_of(tool), "MPI_T_enum"), "%s", text);
    MPI_Status status;
    MPI_Message none = MPI_MESSAGE_NULL;
    MPI_Request null = (MPI_Request)0x77;
    MPI_Win win;
    int failed[] = {
        MPI_Send(&word, 1, MPI_INT, 99, 0, MPI_COMM_WORLD),
        MPI_Send(&word, 1, MPI_INT, 0, -7, MPI_COMM_WORLD),
        MPI_Recv(&word, -1, MPI_INT, 0, 0, MPI_COMM_WORLD, &status),
        MPI_Bcast(&word, 1, MPI_INT, 77, MPI_COMM_WORLD),
        MPI_Barrier(MPI_COMM_NULL),
        MPI_Type_size(MPI_DATATYPE_NULL, &n),
        MPI_Group_size(MPI_GROUP_NULL, &n),
        MPI_Info_get_nkeys(MPI_INFO_NULL, &n),
        MPI_Wait(&null, &status),
        MPI_Waitall(1, &null, &status),
        MPI_Mrecv(&word, 1, MPI_INT, &none, &status),
        MPI_Allreduce(&word, &n, 1, MPI_FLOAT, MPI_BAND, MPI_COMM_WORLD),
        MPI_Comm_free_keyval(&(int){MPI_KEYVAL_INVALID}),
        MPI_Win_create(NULL, -1, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win),
        MPI_Win_fence(0, MPI_WIN_NULL),
        MPI_Error_class(-1, &n),
        MPI_Free_mem(&word),
        MPI_File_close(&(MPI_File){MPI_FILE_NULL}),
    };
    for (unsigned i = 0; i < sizeof failed / sizeof *failed; i++) {
        int class = class_of(failed[i]);
        CHECK(class > MPI_SUCCESS && class <= LAST && failed[i] != class, "failure %u: %d", i, failed[i]);
        CHECK((failed[i] & 255) == class, "exits with its class");
        string_of(failed[i]);
        CHECK(!strncmp(text, before[class], strlen(before[class])), "%s", text);
        CHECK(!strncmp(text + strlen(before[class]), ": MPI_", 6), "what failed: %s", text);
        FAILS(MPI_Add_error_string(failed[i], "mine"), MPI_ERR_ARG);
        FAILS(MPI_Remove_error_code(failed[i]), MPI_ERR_ARG);
        raise_it(failed[i]);
        raise_it(class);
    }
    CHECK(last_used() > MPI_ERR_LASTCODE);
    /* The same again is the same code; each other one keeps its class, the last ones their words. */
    CHECK(MPI_Send(&word, 1, MPI_INT, 99, 0, MPI_COMM_WORLD) == failed[0]);
    for (int i = 0; i < MANY; i++) {
        codes[i] = MPI_Send(&word, 1, MPI_INT, 1000 + i, 0, MPI_COMM_WORLD);
        if (i % 7 == 0) codes[i] = MPI_Recv(&word, 1, MPI_INT, 0, -1000 - i, MPI_COMM_WORLD, &status);
    }
    for (int i = 0; i < MANY; i++) {
        char number[32];
        int class = i % 7 ? MPI_ERR_RANK : MPI_ERR_TAG;
        sprintf(number, " = %d:", i % 7 ? 1000 + i : -1000 - i);
        CHECK(class_of(codes[i]) == class && !strncmp(string_of(codes[i]), before[class], 10));
        CHECK(strstr(text, number) || (i < MANY - 200 && !strcmp(text, before[class])), "%s", text);
    }
    for (int class = MPI_SUCCESS; class <= LAST; class++)
        CHECK(!strcmp(string_of(class), before[class]) && class_of(class) == class, "%s", text);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    own();
    standard();
    return end();
}
