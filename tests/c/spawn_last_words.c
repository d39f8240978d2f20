// ranks: 1 2
// says: correct
//
// Children that end before MPI_Init: the error of MPI_Comm_spawn has their last words on standard error, at all parents. The words
// of one child and of several, by an exit code, a signal, in good order; control characters are escaped, and of long words the end
// is kept. This program is the child, too. Arguments: names of the hosts that errors must name.
#define _GNU_SOURCE
#include "check.h"
#include <signal.h>
#include <unistd.h>

struct end {
    const char *name, *printed, *reason, *words;
};

static const struct end ends[] = {
    {"code", "no licence\n", "exit code 5", "last words: no licence"},
    {"signal", "first\nsecond", "SIGKILL", "last words: first\\nsecond"},
    {"order", "usage: FILE\n", "without a call of MPI_Init", "last words: usage: FILE"},
    {"control", "\x1b[31mred\a\tend", "exit code 5", "last words: \\u{1b}[31mred\\u{7}\\tend"},
    {"long", NULL, "exit code 5", "........ and the end"},
    {"silent", "", "exit code 5", NULL},
};

/* Ends a child before its main function. */
__attribute__((constructor)) static void begins(void)
{
    const char *name = getenv("SPAWN_END");
    for (size_t i = 0; name && i < sizeof ends / sizeof *ends; i++) {
        if (strcmp(ends[i].name, name) != 0)
            continue;
        for (int dot = 0; ends[i].printed == NULL && dot < 5000; dot++)
            fputc('.', stderr);
        fputs(ends[i].printed ? ends[i].printed : " and the end\n", stderr);
        if (strcmp(name, "signal") == 0)
            raise(SIGKILL);
        _exit(strcmp(name, "order") == 0 ? 0 : 5);
    }
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int children = 1; children <= 2; children++) {
        for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
            MPI_Comm inter = MPI_COMM_NULL;
            MPI_Info info;
            char line[64], text[MPI_MAX_ERROR_STRING];
            int length, error;
            snprintf(line, sizeof line, "SPAWN_END=%s", ends[i].name);
            MPI_Info_create(&info);
            MPI_Info_set(info, "env", line);
            error = MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, children, info, 0, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE);
            MPI_Info_free(&info);
            MPI_Error_string(error, text, &length);
            CHECK(class_of(error) == MPI_ERR_SPAWN && inter == MPI_COMM_NULL, "%s: %s", ends[i].name, text);
            CHECK(strstr(text, ends[i].reason), "%s: %s", ends[i].name, text);
            if (argc > 2 && strcmp(ends[i].name, "order") != 0)
                CHECK(strstr(text, argv[1]) || strstr(text, argv[2]), "%s: %s", ends[i].name, text);
            if (ends[i].words)
                CHECK(strstr(text, ends[i].words), "%s: %s", ends[i].name, text);
            else
                CHECK(!strstr(text, "last words"), "%s: %s", ends[i].name, text);
        }
    }
    return end();
}
