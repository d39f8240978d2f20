// ranks: 1 2
// says: correct
//
// Performance variables of what connects the ranks: its kind, in words; shared memory that was
// allocated; connections and registered memory, where there are adapters.
#include "tools.h"

enum { LARGE = 1200000 };

static MPI_T_pvar_session session;

static number now(const char *name)
{
    MPI_T_pvar_handle handle = gauge(session, name, MPI_T_PVAR_CLASS_LEVEL, NULL);
    number n = value(session, handle);
    OK(MPI_T_pvar_handle_free(session, &handle));
    return n;
}

/* What connects the ranks, in words. */
static const char *kind(void)
{
    static char name[100];
    MPI_T_pvar_handle handle = gauge(session, "weft.fabric.kind", MPI_T_PVAR_CLASS_STATE, NULL);
    MPI_T_enum type;
    int index, item = -1, value, length = sizeof name;
    OK(MPI_T_pvar_read(session, handle, &item));
    OK(MPI_T_pvar_get_index("weft.fabric.kind", MPI_T_PVAR_CLASS_STATE, &index));
    OK(MPI_T_pvar_get_info(index, NULL, NULL, NULL, NULL, NULL, &type, NULL, NULL, NULL, NULL, NULL,
                           NULL));
    OK(MPI_T_enum_get_item(type, item, &value, name, &length));
    CHECK(value == item);
    return name;
}

int main(int argc, char **argv)
{
    static char out[LARGE], in[LARGE];
    tool_begin();
    OK(MPI_T_pvar_session_create(&session));
    CHECK(!strcmp(kind(), "nothing yet"), "%s", kind());
    MPI_T_pvar_handle made = counter(session, "weft.fabric.verbs.registrations_made");
    begin(&argc, &argv);
    int to = (rank + 1) % size, from = (rank + size - 1) % size;
    MPI_Sendrecv(out, LARGE, MPI_CHAR, to, 0, in, LARGE, MPI_CHAR, from, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    number connections = now("weft.fabric.verbs.connections");
    number registered = now("weft.fabric.verbs.registered");
    number pieces = now("weft.fabric.verbs.registrations");
    if (strstr(kind(), "verbs")) {
        CHECK(connections > 0 && connections < (number)size, "%llu", connections);
        CHECK(pieces > 0 && registered > pieces, "%llu in %llu", registered, pieces);
        CHECK(value(session, made) >= pieces, "%llu", value(session, made));
    } else if (strstr(kind(), "libfabric")) {
        number peers = now("weft.fabric.ofi.peers");
        CHECK(peers > 0 && peers < (number)size, "%llu", peers);
        CHECK(now("weft.fabric.ofi.buffers") > 0);
        CHECK(connections == 0 && registered == 0 && pieces == 0, "no adapters");
    } else {
        CHECK(!strcmp(kind(), "shared memory"), "%s", kind());
        CHECK(connections == 0 && registered == 0 && pieces == 0 && value(session, made) == 0);
        number before = now("weft.fabric.shm.allocated");
        void *memory;
        MPI_Alloc_mem(5000, MPI_INFO_NULL, &memory);
        CHECK(now("weft.fabric.shm.allocated") >= before + 5000);
        MPI_Free_mem(memory);
        CHECK(now("weft.fabric.shm.allocated") == before);
    }
    return end();
}
