/* A library that does nothing but write down what reaches it. */
#define _GNU_SOURCE
#include <mpi.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PLAIN, SPECIAL, FAILING };
enum { IN = 1, OUT = 2 };

/* A line that goes out whole. */
static char line[1 << 14];
static size_t used;
static int variant;
/* The function whose call is awaited; others are asked by the bindings themselves. */
static char awaited[128];
/* Prefix of the called name: P, or nothing. */
static const char *by = "";
static int heard;

static void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void say(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    if (used < sizeof(line) - 256)
        used += (size_t)vsnprintf(line + used, 256, format, list);
    va_end(list);
}

static void out(void)
{
    size_t at = 0;
    line[used++] = '\n';
    while (at < used) {
        ssize_t n = write(STDOUT_FILENO, line + at, used - at);
        if (n <= 0)
            _exit(99);
        at += (size_t)n;
    }
    used = 0;
}

/* An address that is none is told, and the program goes on: this is for bindings that are wrong. */
static sigjmp_buf back;
static volatile sig_atomic_t reading;

static void fault(int signal)
{
    (void)signal;
    if (reading)
        siglongjmp(back, 1);
    used = 0;
    say("crash");
    out();
    _exit(98);
}

/* `# NUMBER NAME`: the Fortran program is about to call. */
void weft_record_(const int *number, const char *name, size_t length)
{
    const char *set = getenv("WEFT_VARIANT");
    static char stack[1 << 16];
    static const stack_t other = { .ss_sp = stack, .ss_size = sizeof(stack) };
    struct sigaction action = { .sa_handler = fault, .sa_flags = SA_ONSTACK | SA_NODEFER };
    sigaltstack(&other, NULL);
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGBUS, &action, NULL);
    variant = set ? atoi(set) : PLAIN;
    heard = 0;
    if (length >= sizeof(awaited))
        length = sizeof(awaited) - 1;
    memcpy(awaited, name, length);
    awaited[length] = '\0';
    used = 0;
    say("# %d %s", *number, awaited);
    out();
}

static void begin(const char *name)
{
    heard = strcmp(name, awaited) == 0;
    used = 0;
    say("c %s%s", by, name);
}

/* Whether values are to be set. */
static int sets(void)
{
    return !heard || variant != FAILING;
}

static int finish(void)
{
    if (heard)
        out();
    return sets() ? MPI_SUCCESS : 77;
}

#define GUARDED(what)                                                                  \
    reading = 1;                                                                       \
    if (sigsetjmp(back, 1))                                                            \
        say("!");                                                                      \
    else {                                                                             \
        what;                                                                          \
    }                                                                                  \
    reading = 0

/* Addresses with a meaning are small. */
static int small(const char *name, const void *at)
{
    say(" %s=", name);
    if ((uintptr_t)at >= 4096)
        return 0;
    say("@%d", (int)(uintptr_t)at);
    return 1;
}

static void put_number(const char *name, int64_t value)
{
    say(" %s=%lld", name, (long long)value);
}

/* `n` integers of `size` bytes: read, and replaced by those given. */
static void put_numbers(const char *name, void *at, int n, size_t size, int direction,
                    const int64_t *set)
{
    if (small(name, at))
        return;
    GUARDED(for (int k = 0; (direction & IN) && k < n; k++) {
        int64_t wide = size == 8 ? ((int64_t *)at)[k] : ((int32_t *)at)[k];
        say("%s%lld", k ? "," : "", (long long)wide);
    } for (int k = 0; (direction & OUT) && sets() && k < n; k++) {
        if (size == 8)
            ((int64_t *)at)[k] = set[k];
        else
            ((int32_t *)at)[k] = (int32_t)set[k];
    });
}

/* Handles: those of the program are no numbers, and say their type. */
enum { Comm = 1, Type, Errhandler, File, Group, Info, Message, Op, Request, Session, Win };

static void *handle_of(int kind, int number)
{
    return (unsigned)number < 4096 ? (void *)(intptr_t)number
                                   : (void *)((uintptr_t)0x7e00 + (unsigned)kind << 32 | (unsigned)number);
}

static int number_of(int kind, const void *handle)
{
    if ((uintptr_t)handle < 4096)
        return (int)(intptr_t)handle;
    return (uintptr_t)handle >> 32 == (uintptr_t)0x7e00 + (unsigned)kind ? (int)(uintptr_t)handle : -1;
}

static void put_handle(const char *name, int kind, const void *value)
{
    say(" %s=%d", name, number_of(kind, value));
}

static void put_handles(const char *name, int kind, void **at, int n, int direction, const int64_t *set)
{
    if (small(name, at))
        return;
    GUARDED(for (int k = 0; (direction & IN) && k < n; k++)
        say("%s%d", k ? "," : "", number_of(kind, at[k]));
    for (int k = 0; (direction & OUT) && sets() && k < n; k++)
        at[k] = handle_of(kind, (int)set[k]));
}

/* Memory of the caller's: its first eight bytes. */
static void put_buffer(const char *name, void *at, int direction)
{
    if (small(name, at))
        return;
    GUARDED(say("%lld", *(long long *)at); if ((direction & OUT) && sets())
        *(long long *)at += 1000000);
}

static void put_text(const char *name, const char *at)
{
    if (small(name, at))
        return;
    GUARDED(say("\"%.60s\"", at));
}

static void put_text_out(const char *name, char *at, const char *set)
{
    if (small(name, at))
        return;
    GUARDED(if (sets()) strcpy(at, set));
}

/* `n` texts, or up to NULL. */
static void put_texts(const char *name, char **at, int n)
{
    if (small(name, at))
        return;
    GUARDED(for (int k = 0; n ? k < n : at[k] != NULL; k++)
        say("\"%.60s\"", at[k]));
}

static void put_table(const char *name, char ***at, int n)
{
    if (small(name, at))
        return;
    GUARDED(for (int k = 0; k < n; k++) {
        for (int i = 0; at[k][i]; i++)
            say("\"%.60s\"", at[k][i]);
        say(";");
    });
}

/* An address that C returns. */
static void put_address(const char *name, void *at, int64_t set)
{
    if (small(name, at))
        return;
    GUARDED(if (sets()) *(int64_t *)at = set);
}

#define HANDLE(name, type)                                                             \
    type PMPI_##name##_fromint(int value)                                              \
    {                                                                                  \
        return (type)handle_of(name, value);                                           \
    }                                                                                  \
    int PMPI_##name##_toint(type value)                                                \
    {                                                                                  \
        return number_of(name, value);                                                 \
    }
HANDLE(Comm, MPI_Comm)
HANDLE(Errhandler, MPI_Errhandler)
HANDLE(File, MPI_File)
HANDLE(Group, MPI_Group)
HANDLE(Info, MPI_Info)
HANDLE(Message, MPI_Message)
HANDLE(Op, MPI_Op)
HANDLE(Request, MPI_Request)
HANDLE(Session, MPI_Session)
HANDLE(Type, MPI_Datatype)
HANDLE(Win, MPI_Win)
