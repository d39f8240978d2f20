// ranks: 1 3
// says: correct
//
// MPI_Info_create_env (MPI 5.0, section 10.2) before MPI_Init says what it says after it: how many processes were asked
// for, above all. And after MPI_Finalize.
#include "check.h"

static char before[8][MPI_MAX_INFO_VAL];
static const char *keys[] = {"command", "argv", "maxprocs", "host", "arch", "wdir"};
enum { KEYS = sizeof keys / sizeof *keys };

static void look(char values[][MPI_MAX_INFO_VAL])
{
    MPI_Info info;
    if (MPI_Info_create_env(0, NULL, &info)) exit(4);
    for (int i = 0; i < KEYS; i++) {
        int room = MPI_MAX_INFO_VAL, there = 0;
        MPI_Info_get_string(info, keys[i], &room, values[i], &there);
        if (!there) strcpy(values[i], "absent");
    }
    MPI_Info_free(&info);
}

int main(int argc, char **argv)
{
    static char now[8][MPI_MAX_INFO_VAL];
    char number[16];
    int there, code = 0;
    look(before);
    begin(&argc, &argv);
    snprintf(number, sizeof number, "%d", size);
    CHECK(!strcmp(before[2], number), "maxprocs is %s", before[2]);
    look(now);
    for (int i = 0; i < KEYS; i++) CHECK(!strcmp(before[i], now[i]), "%s: %s, then %s", keys[i], before[i], now[i]);
    MPI_Info_get(MPI_INFO_ENV, "maxprocs", MPI_MAX_INFO_VAL - 1, now[0], &there);
    CHECK(there && !strcmp(now[0], number));
    code = end();
    look(now);
    for (int i = 0; i < KEYS; i++) code |= !!strcmp(before[i], now[i]);
    return code;
}
