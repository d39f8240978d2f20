// Common part of the programs that call every function of a header. A test of a function prints one line: the name, the error
// class, and all outputs as numbers, texts or names of constants, so that lines of programs built with different headers are equal.
#define _GNU_SOURCE
#include <fcntl.h>
#include <mpi.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define COUNT_OF(array) ((int)(sizeof(array) / sizeof *(array)))
#define LONGEST_SECONDS 60
#define UNTOUCHED (-7)

typedef struct {
    const char *name;
    int value;
} NamedValue;

#include "symbols.h"

static int rank, size, next, previous, code;
static MPI_Comm comm;
static MPI_Info info;
static int sent[64], received[64], calls;
static const char *program, *folder, *current = "start";
static char line[16384];

static void say(const char *format, ...)
{
    size_t used = strlen(line);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line + used, sizeof line - used, format, arguments);
    va_end(arguments);
}

static void number(const char *name, long long value)
{
    say(" %s=%lld", name, value);
}

static void text(const char *name, const char *value)
{
    say(" %s='%s'", name, value);
}

static void integers(const char *name, const int *values, int count)
{
    say(" %s=", name);
    for (int i = 0; i < count; i++)
        say(i ? ",%d" : "%d", values[i]);
}

// Prints an array of any integer type.
#define NUMBERS(name, values, count)                                 \
    do {                                                             \
        say(" %s=", name);                                           \
        for (int i_ = 0; i_ < (int)(count); i_++)                    \
            say(i_ ? ",%lld" : "%lld", (long long)(values)[i_]);     \
    } while (0)

static void expect(int holds, const char *text)
{
    if (!holds)
        say(" FAULT(%s)", text);
}
#define EXPECT(condition) expect((condition) != 0, #condition)

#define SYMBOL(name, table, value) symbol(name, table, COUNT_OF(table), value)
static void symbol(const char *name, const NamedValue *table, int count, int value)
{
    for (int i = 0; i < count; i++)
        if (table[i].value == value) {
            say(" %s=%s", name, table[i].name);
            return;
        }
    number(name, value);
}

static void error_class(const char *name, int value)
{
    int class = value;
    if (value)
        MPI_Error_class(value, &class);
    SYMBOL(name, ERROR_CLASS, class);
}

// Calls a function that prepares or ends a test. A failure is a fault of the test.
#define OK(call)                                                     \
    do {                                                             \
        int code_ = (call);                                          \
        if (code_) {                                                 \
            say(" FAULT(%s", #call);                                 \
            error_class("", code_);                                  \
            say(")");                                                \
        }                                                            \
    } while (0)

static void print_line(void)
{
    size_t used = strlen(line);
    line[used++] = '\n';
    if (write(1, line, used) < 0)
        _exit(9);
    line[0] = 0;
}

static void end_by_signal(int signal)
{
    say(" FAULT(signal %d)", signal);
    print_line();
    _exit(9);
}

static void begin(const char *name)
{
    current = name;
    line[0] = 0;
    say("r%d %s:", rank, name);
    for (int i = 0; i < COUNT_OF(sent); i++) {
        sent[i] = 100 * (rank + 1) + i;
        received[i] = UNTOUCHED;
    }
    code = UNTOUCHED;
    calls = 0;
    alarm(LONGEST_SECONDS);
}

static void show_code(int expected)
{
    int class = code;
    if (code)
        MPI_Error_class(code, &class);
    SYMBOL("code", ERROR_CLASS, class);
    if (class != expected)
        say(" FAULT(the function failed)");
}

static void show_status(const char *name, MPI_Status *status)
{
    int count = UNTOUCHED, cancelled = UNTOUCHED;
    say(" %s={", name);
    // The source and the tag of an operation on a file are undefined.
    if (!strstr(current, "MPI_File_")) {
        SYMBOL("source", RANK, status->MPI_SOURCE);
        SYMBOL("tag", TAG, status->MPI_TAG);
    }
    MPI_Get_count(status, MPI_INT, &count);
    SYMBOL("count", RANK, count);
    MPI_Test_cancelled(status, &cancelled);
    number("cancelled", cancelled);
    say("}");
}

static void fill_status(MPI_Status *status)
{
    memset(status, 0, sizeof *status);
    status->MPI_SOURCE = status->MPI_TAG = status->MPI_ERROR = UNTOUCHED;
}

static void fill_statuses(MPI_Status *statuses, int count)
{
    for (int i = 0; i < count; i++)
        fill_status(&statuses[i]);
}

static void finish_request(const char *name, MPI_Request *request, int is_persistent)
{
    MPI_Status status;
    fill_status(&status);
    if (*request == MPI_REQUEST_NULL) {
        say(" FAULT(%s is null)", name);
        return;
    }
    if (is_persistent)
        OK(MPI_Start(request));
    OK(MPI_Wait(request, &status));
    if (is_persistent)
        OK(MPI_Request_free(request));
    EXPECT(*request == MPI_REQUEST_NULL);
}

static void finish_request_with_status(const char *name, MPI_Request *request, int is_persistent)
{
    MPI_Status status;
    fill_status(&status);
    if (*request == MPI_REQUEST_NULL) {
        say(" FAULT(%s is null)", name);
        return;
    }
    if (is_persistent)
        OK(MPI_Start(request));
    OK(MPI_Wait(request, &status));
    show_status("status", &status);
    if (is_persistent)
        OK(MPI_Request_free(request));
    EXPECT(*request == MPI_REQUEST_NULL);
}

static void use_comm(const char *name, MPI_Comm *made)
{
    int members = UNTOUCHED, place = UNTOUCHED, is_inter = 0;
    if (*made == MPI_COMM_NULL) {
        say(" %s=null", name);
        return;
    }
    OK(MPI_Comm_size(*made, &members));
    OK(MPI_Comm_rank(*made, &place));
    OK(MPI_Comm_test_inter(*made, &is_inter));
    say(" %s=%d of %d%s", name, place, members, is_inter ? " inter" : "");
    if (!is_inter) {
        int sum = -1;
        OK(MPI_Allreduce(&place, &sum, 1, MPI_INT, MPI_SUM, *made));
        EXPECT(sum == members * (members - 1) / 2);
    }
    OK(MPI_Comm_free(made));
    EXPECT(*made == MPI_COMM_NULL);
}

static void use_group(const char *name, MPI_Group *made)
{
    int members = UNTOUCHED, place = UNTOUCHED;
    if (*made == MPI_GROUP_NULL) {
        say(" %s=null", name);
        return;
    }
    OK(MPI_Group_size(*made, &members));
    OK(MPI_Group_rank(*made, &place));
    number(name, members);
    SYMBOL("place", RANK, place);
    if (*made != MPI_GROUP_EMPTY) {
        OK(MPI_Group_free(made));
        EXPECT(*made == MPI_GROUP_NULL);
    }
}

static void show_type(const char *name, MPI_Datatype type)
{
    MPI_Count bytes = UNTOUCHED;
    MPI_Aint lower = UNTOUCHED, extent = UNTOUCHED;
    if (type == MPI_DATATYPE_NULL) {
        say(" %s=null", name);
        return;
    }
    OK(MPI_Type_size_x(type, &bytes));
    OK(MPI_Type_get_extent(type, &lower, &extent));
    say(" %s=%lld bytes, extent %lld from %lld", name, (long long)bytes, (long long)extent, (long long)lower);
}

// Shows a new datatype, sends an element to the same process, and frees the datatype.
static void use_type(const char *name, MPI_Datatype *made)
{
    static int from[256], to[256];
    MPI_Aint lower = 0, extent = 0;
    MPI_Count bytes = 0;
    MPI_Status status;
    int sum = 0;
    show_type(name, *made);
    if (*made == MPI_DATATYPE_NULL)
        return;
    OK(MPI_Type_get_extent(*made, &lower, &extent));
    OK(MPI_Type_size_x(*made, &bytes));
    OK(MPI_Type_commit(made));
    if (lower >= 0 && lower + extent <= 1024) {
        for (int i = 0; i < COUNT_OF(from); i++)
            from[i] = i + 1, to[i] = 0;
        OK(MPI_Sendrecv(from, 1, *made, 0, 3, to, 1, *made, 0, 3, MPI_COMM_SELF, &status));
        for (int i = 0; i < COUNT_OF(from); i++)
            sum += to[i] ? i + 1 : 0;
        number("moved", sum);
    }
    OK(MPI_Type_free(made));
    EXPECT(*made == MPI_DATATYPE_NULL);
}

// Shows a datatype without freeing it.
static void use_named_type(const char *name, MPI_Datatype *made)
{
    show_type(name, *made);
}

static void use_info(const char *name, MPI_Info *made)
{
    int keys = UNTOUCHED;
    EXPECT(*made != MPI_INFO_NULL);
    if (*made == MPI_INFO_NULL)
        return;
    OK(MPI_Info_get_nkeys(*made, &keys));
    EXPECT(keys >= 0);
    OK(MPI_Info_free(made));
    EXPECT(*made == MPI_INFO_NULL);
    say(" %s=set", name);
}

static void use_errhandler(const char *name, MPI_Errhandler *made)
{
    EXPECT(*made != MPI_ERRHANDLER_NULL);
    say(" %s=%s", name, *made == MPI_ERRORS_RETURN ? "MPI_ERRORS_RETURN" : *made == MPI_ERRORS_ARE_FATAL ? "MPI_ERRORS_ARE_FATAL" : "own");
    if (*made == MPI_ERRHANDLER_NULL)
        return;
    OK(MPI_Errhandler_free(made));
    EXPECT(*made == MPI_ERRHANDLER_NULL);
}

static void use_op(const char *name, MPI_Op *made)
{
    int own[2] = {3, 4}, all[2] = {0, 0};
    EXPECT(*made != MPI_OP_NULL);
    if (*made == MPI_OP_NULL)
        return;
    OK(MPI_Allreduce(own, all, 2, MPI_INT, *made, comm));
    integers(name, all, 2);
    OK(MPI_Op_free(made));
    EXPECT(*made == MPI_OP_NULL);
}

static void use_message(const char *name, MPI_Message *message)
{
    MPI_Status status;
    EXPECT(*message != MPI_MESSAGE_NULL);
    if (*message == MPI_MESSAGE_NULL)
        return;
    OK(MPI_Mrecv(received, 4, MPI_INT, message, &status));
    EXPECT(*message == MPI_MESSAGE_NULL);
    say(" %s received", name);
    integers("received", received, 6);
}

static void use_win(const char *name, MPI_Win *made)
{
    EXPECT(*made != MPI_WIN_NULL);
    if (*made == MPI_WIN_NULL)
        return;
    OK(MPI_Win_fence(0, *made));
    OK(MPI_Win_fence(0, *made));
    OK(MPI_Win_free(made));
    EXPECT(*made == MPI_WIN_NULL);
    say(" %s=set", name);
}

static void use_file(const char *name, MPI_File *made)
{
    EXPECT(*made != MPI_FILE_NULL);
    if (*made == MPI_FILE_NULL)
        return;
    OK(MPI_File_close(made));
    EXPECT(*made == MPI_FILE_NULL);
    say(" %s=set", name);
}

static void use_session(const char *name, MPI_Session *made)
{
    EXPECT(*made != MPI_SESSION_NULL);
    if (*made == MPI_SESSION_NULL)
        return;
    OK(MPI_Session_finalize(made));
    EXPECT(*made == MPI_SESSION_NULL);
    say(" %s=set", name);
}

static const char *path_of(const char *name)
{
    static char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void start(int *argc, char ***argv)
{
    program = (*argv)[0];
    folder = getenv("HEADER_CALLS_FOLDER") ? getenv("HEADER_CALLS_FOLDER") : "/tmp";
    signal(SIGSEGV, end_by_signal);
    signal(SIGBUS, end_by_signal);
    signal(SIGABRT, end_by_signal);
    signal(SIGFPE, end_by_signal);
    signal(SIGALRM, end_by_signal);
}

// Returns false for the functions that the environment excludes, separated by blanks.
static int is_wanted(const char *name)
{
    const char *excluded = getenv("HEADER_CALLS_EXCLUDED");
    size_t length = strlen(name);
    for (const char *at = excluded; at && (at = strstr(at, name)); at += length)
        if ((at == excluded || at[-1] == ' ') && (at[length] == ' ' || !at[length]))
            return 0;
    return 1;
}

static void prepare(void)
{
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    next = (rank + 1) % size;
    previous = (rank + size - 1) % size;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Info_create(&info);
    MPI_Info_set(info, "test_key", "test value");
}

static void complete(void)
{
    MPI_Info_free(&info);
    MPI_Comm_free(&comm);
}
