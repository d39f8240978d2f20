// ranks: 1 2 4
// says: correct
// env: | WEFT_ALLREDUCE=CENTRAL WEFT_EAGER=4000
//
// A control variable that is written before MPI_Init takes effect as if it stood in the environment,
// and in place of it; a wrong value is refused and changes nothing; afterwards what is read is what
// holds. What may be written then is in tools_later.c.
#include "tools.h"

/* Index of a word among the items of the variable's enumeration. */
static int item(const char *variable, const char *word)
{
    MPI_T_enum type;
    int num, value;
    OK(MPI_T_cvar_get_info(cvar(variable), NULL, NULL, NULL, NULL, &type, NULL, NULL, NULL, NULL));
    OK(MPI_T_enum_get_info(type, &num, NULL, NULL));
    for (int i = 0; i < num; i++) {
        char name[100];
        int length = sizeof name;
        OK(MPI_T_enum_get_item(type, i, &value, name, &length));
        if (!strcmp(name, word)) return value;
    }
    CHECK(0, "no %s", word);
    return -1;
}

static number sent(MPI_T_pvar_session session, MPI_T_pvar_handle *how)
{
    return value(session, how[0]) + value(session, how[1]);
}

int main(int argc, char **argv)
{
    int one, room;
    tool_begin();
    MPI_T_cvar_handle allreduce = control("WEFT_ALLREDUCE", &room), eager = control("WEFT_EAGER", &one);
    MPI_T_cvar_handle rail = control("WEFT_RAIL", &one), faults = control("WEFT_FAULT", &room);
    MPI_T_cvar_handle cma = control("WEFT_CMA", &one), fabric = control("WEFT_FABRIC", &one);
    MPI_T_cvar_handle nodes = control("WEFT_NODES", &room);

    /* The environment's, or the defaults. */
    int given = getenv("WEFT_ALLREDUCE") != NULL, word = -7;
    number bytes = 7;
    char name[8192];
    OK(MPI_T_cvar_read(allreduce, name));
    CHECK(!strcmp(name, given ? "CENTRAL" : "auto"), "%s", name);
    OK(MPI_T_cvar_read(fabric, &word));
    CHECK(word == item("WEFT_FABRIC", "auto"), "%d", word);
    OK(MPI_T_cvar_read(eager, &bytes));
    CHECK(bytes == (given ? 4000 : 16384), "%llu", bytes);
    OK(MPI_T_cvar_read(rail, &word));
    CHECK(word == -1, "none is -1, not %d", word);

    /* Wrong values. */
    char text[8192] = "reorder=7";
    int wrong[] = {-1, 6, 1000}; /* It has six words. */
    for (int i = 0; i < 3; i++) IS(MPI_T_ERR_INVALID, MPI_T_cvar_write(fabric, &wrong[i]));
    strcpy(name, "FASTEST");
    IS(MPI_T_ERR_INVALID, MPI_T_cvar_write(allreduce, name));
    wrong[0] = 2;
    IS(MPI_T_ERR_INVALID, MPI_T_cvar_write(cma, &wrong[0]));
    bytes = 1ULL << 40;
    IS(MPI_T_ERR_INVALID, MPI_T_cvar_write(eager, &bytes));
    wrong[0] = -2;
    IS(MPI_T_ERR_INVALID, MPI_T_cvar_write(rail, &wrong[0]));
    IS(MPI_T_ERR_INVALID, MPI_T_cvar_write(faults, text));
    memset(text, 'x', sizeof text);
    IS(MPI_T_ERR_INVALID, MPI_T_cvar_write(faults, text)); /* no end */
    char message[MPI_MAX_ERROR_STRING];
    MPI_Error_string(MPI_T_ERR_INVALID, message, &word);
    CHECK(!strcmp(message, "MPI_T_ERR_INVALID: invalid use of the interface"), "%s", message);
    OK(MPI_T_cvar_read(eager, &bytes));
    CHECK(bytes == (given ? 4000 : 16384), "%llu", bytes);

    /* Right ones. */
    strcpy(name, "MPI-GB");
    OK(MPI_T_cvar_write(allreduce, name));
    bytes = 100;
    OK(MPI_T_cvar_write(eager, &bytes));
    word = 3;
    OK(MPI_T_cvar_write(rail, &word));
    word = -1;
    OK(MPI_T_cvar_write(rail, &word));
    word = item("WEFT_FABRIC", "shm");
    OK(MPI_T_cvar_write(fabric, &word));
    strcpy(text, "seed=3,message_delay=0.1");
    OK(MPI_T_cvar_write(faults, text));
    strcpy(text, "64"); /* ranks a node */
    OK(MPI_T_cvar_write(nodes, text));
    OK(MPI_T_finalize()); /* they stay */

    begin(&argc, &argv);
    MPI_Barrier(MPI_COMM_WORLD); /* the first one sends messages to set itself up */
    MPI_T_pvar_session session;
    tool_begin();
    OK(MPI_T_pvar_session_create(&session));
    MPI_T_pvar_handle how[] = {counter(session, "weft.p2p.sent_eager"),
                               counter(session, "weft.p2p.sent_rendezvous")};

    /* A barrier of ranks that share memory sends no message; the allreduce would not either. */
    int sum = -1;
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(sent(session, how) == 0, "%llu", sent(session, how));
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(sum == size * (size - 1) / 2);
    CHECK((sent(session, how) > 0) == (size > 1), "%llu", sent(session, how));

    /* Up to 100 bytes at once, and no more. */
    number before[] = {value(session, how[0]), value(session, how[1])};
    static char data[101];
    for (int length = 99; length <= 101; length++) {
        MPI_Request request;
        int to = (rank + 1) % size, from = (rank + size - 1) % size;
        MPI_Isend(data, length, MPI_CHAR, to, length, MPI_COMM_WORLD, &request);
        MPI_Recv(data, length, MPI_CHAR, from, length, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    CHECK(value(session, how[0]) == before[0] + 2, "%llu", value(session, how[0]) - before[0]);
    CHECK(value(session, how[1]) == before[1] + 1, "%llu", value(session, how[1]) - before[1]);

    /* What is read is what holds. */
    setenv("WEFT_EAGER", "77", 1);
    setenv("WEFT_SPIN_US", "77", 1);
    eager = control("WEFT_EAGER", &one);
    OK(MPI_T_cvar_read(eager, &bytes));
    CHECK(bytes == 100, "%llu", bytes);
    OK(MPI_T_cvar_read(control("WEFT_SPIN_US", &one), &bytes));
    CHECK(bytes == 500, "%llu", bytes);
    allreduce = control("WEFT_ALLREDUCE", &room);
    OK(MPI_T_cvar_read(allreduce, name));
    CHECK(!strcmp(name, "MPI-GB"), "%s", name);
    OK(MPI_T_cvar_read(control("WEFT_NODES", &room), text));
    CHECK(!strcmp(text, "64"), "%s", text);
    OK(MPI_T_cvar_read(control("WEFT_FAULT", &room), text));
    CHECK(!strcmp(text, "seed=3,message_delay=0.1"), "%s", text);
    IS(MPI_T_ERR_CVAR_SET_NEVER, MPI_T_cvar_write(control("WEFT_FABRIC", &one), &word));
    end();
    IS(MPI_T_ERR_CVAR_SET_NEVER, MPI_T_cvar_write(eager, &bytes));
    OK(MPI_T_finalize());
    return 0;
}
