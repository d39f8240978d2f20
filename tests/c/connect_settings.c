// ranks: 1 2
// says: correct
//
// Jobs that connect must have the settings in common that MPI_Init compares within a job. A difference is an error at once, on both
// sides and with the setting and both values: of MPI_Comm_spawn by MPI_ERR_SPAWN, of MPI_Comm_accept and MPI_Comm_connect by
// MPI_ERR_PORT. Children get the settings of their parents, whatever the environment has become since MPI_Init. Settings that each
// process or each job may have for itself make no difference.
#define _GNU_SOURCE
#include "check.h"
#include <unistd.h>

struct difference {
    const char *name, *value, *in_words;
};

/* Settings of several kinds, each with another value than the default. */
static const struct difference refused[] = {
    {"WEFT_CREDIT", "2097152", "WEFT_CREDIT is 1048576 in this job"},
    {"WEFT_CMA", "0", "WEFT_CMA is 1 in this job"},
    {"WEFT_FENCE", "RI", "WEFT_FENCE is ACK in this job"},
    {"WEFT_BCAST", "MPI-BINOMIAL", "WEFT_BCAST is auto in this job"},
};
static const struct difference allowed[] = {{"WEFT_FABRIC", "shm", NULL}, {"WEFT_SPIN_US", "7", NULL}};

/* Tests that an error names a setting, and both values. */
static void named(int error, int class, const struct difference *what)
{
    char text[MPI_MAX_ERROR_STRING], value[64];
    int length;
    MPI_Error_string(error, text, &length);
    CHECK(class_of(error) == class, "%s: %s", what->name, text);
    snprintf(value, sizeof value, "%s in the other job", what->value);
    CHECK(strstr(text, what->in_words) && strcasestr(text, value), "%s", text);
}

static int spawned(char *self, const struct difference *with, MPI_Comm *inter)
{
    char line[128], *argv[] = {"child", NULL};
    MPI_Info info;
    int error;
    MPI_Info_create(&info);
    if (with) {
        snprintf(line, sizeof line, "%s=%s", with->name, with->value);
        MPI_Info_set(info, "env", line);
    }
    error = MPI_Comm_spawn(self, argv, 2, info, 0, MPI_COMM_WORLD, inter, MPI_ERRCODES_IGNORE);
    MPI_Info_free(&info);
    return error;
}

/* Meets the parents in an allreduce over both jobs. */
static void meet(MPI_Comm inter, int high)
{
    MPI_Comm all;
    int one = 1, sum = 0, both;
    MPI_Intercomm_merge(inter, high, &all);
    MPI_Comm_size(all, &both);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, all);
    CHECK(sum == both);
    MPI_Comm_free(&all);
    MPI_Comm_disconnect(&inter);
}

/* A job of its own calls this one. */
static void connected(const char *self, const struct difference *with)
{
    char port[MPI_MAX_PORT_NAME], line[MPI_MAX_PORT_NAME + 600];
    MPI_Comm inter = MPI_COMM_NULL;
    FILE *other = NULL;
    if (rank == 0) {
        MPI_Open_port(MPI_INFO_NULL, port);
        snprintf(line, sizeof line, "mpiexec -x %s=%s -n 2 %s call '%s' '%s' '%s'", with->name, with->value, self, port, with->name,
                 with->value);
        other = popen(line, "w");
    }
    int error = MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter);
    named(error, MPI_ERR_PORT, with);
    if (rank == 0) {
        CHECK(pclose(other) == 0);
        MPI_Close_port(port);
    }
}

/* The calling job, which hears of the same difference from its own side. */
static int call(char **argv)
{
    MPI_Comm inter = MPI_COMM_NULL;
    char text[MPI_MAX_ERROR_STRING], value[64];
    int length, error = MPI_Comm_connect(argv[2], MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter);
    MPI_Error_string(error, text, &length);
    CHECK(class_of(error) == MPI_ERR_PORT && inter == MPI_COMM_NULL, "%s", text);
    snprintf(value, sizeof value, "%s in this job", argv[4]);
    CHECK(strstr(text, argv[3]) && strcasestr(text, value), "%s", text);
    MPI_Finalize();
    return 0;
}

int main(int argc, char **argv)
{
    MPI_Comm inter;
    begin(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (argc > 4)
        return call(argv);
    MPI_Comm_get_parent(&inter);
    if (inter != MPI_COMM_NULL) {
        meet(inter, 1);
        MPI_Finalize();
        return 0;
    }
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        named(spawned(argv[0], &refused[i], &inter), MPI_ERR_SPAWN, &refused[i]);
        connected(argv[0], &refused[i]);
    }
    for (size_t i = 0; i < sizeof allowed / sizeof *allowed; i++) {
        CHECK(spawned(argv[0], &allowed[i], &inter) == MPI_SUCCESS);
        meet(inter, 0);
    }
    setenv("WEFT_BCAST", "MPI-BINOMIAL", 1);
    setenv("WEFT_CMA", "no number", 1);
    CHECK(spawned(argv[0], NULL, &inter) == MPI_SUCCESS);
    meet(inter, 0);
    return end();
}
