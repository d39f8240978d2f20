// ranks: 1 2
// says: correct
//
// What a program asks of its surroundings, and small functions (MPI 5.0, chapters 3, 7, 9, 20):
// versions, names, clocks, addresses, the fields of a status.
#include "check.h"
#include <unistd.h>

static void versions(void)
{
    int major = -1, minor = -1, length = -1, flag = 0;
    char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    MPI_Get_version(&major, &minor);
    CHECK(major == MPI_VERSION && minor == MPI_SUBVERSION && major >= 5, "%d.%d", major, minor);
    major = minor = -1;
    MPI_Abi_get_version(&major, &minor);
    CHECK(major == MPI_ABI_VERSION && minor == MPI_ABI_SUBVERSION && major >= 1, "%d.%d", major, minor);
    MPI_Get_library_version(text, &length);
    CHECK(length == (int)strlen(text) && strstr(text, "Weft"), "%s", text);
    /* The sizes of the integers that the ABI leaves open. */
    static const struct { const char *key; size_t size; } sizes[] = {
        {"mpi_aint_size", sizeof(MPI_Aint)}, {"mpi_count_size", sizeof(MPI_Count)},
        {"mpi_offset_size", sizeof(MPI_Offset)}};
    MPI_Info info = MPI_INFO_NULL;
    MPI_Abi_get_info(&info);
    CHECK(info != MPI_INFO_NULL);
    for (int i = 0; i < 3; i++) {
        char value[16] = "";
        int room = sizeof value;
        MPI_Info_get_string(info, sizes[i].key, &room, value, &flag);
        CHECK(flag && atoi(value) == (int)sizes[i].size, "%s: '%s'", sizes[i].key, value);
    }
    MPI_Info_free(&info);
}

static void names(void)
{
    char name[MPI_MAX_PROCESSOR_NAME] = "", host[256] = "", of[MPI_MAX_OBJECT_NAME] = "";
    int length = -1;
    MPI_Comm copy, parent = MPI_COMM_WORLD;
    MPI_Get_processor_name(name, &length);
    gethostname(host, sizeof host - 1);
    CHECK(!strcmp(name, host) && length == (int)strlen(host), "'%s', not '%s'", name, host);
    MPI_Comm_get_name(MPI_COMM_WORLD, of, &length);
    CHECK(!strcmp(of, "MPI_COMM_WORLD") && length == 14, "'%s'", of);
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    MPI_Comm_get_name(copy, of, &length);
    CHECK(of[0] == 0 && length == 0, "'%s': a copy has no name", of);
    MPI_Comm_set_name(copy, "the ocean");
    MPI_Comm_get_name(copy, of, &length);
    CHECK(!strcmp(of, "the ocean") && length == 9, "'%s'", of);
    MPI_Comm_free(&copy);
    MPI_Comm_get_parent(&parent);
    CHECK(parent == MPI_COMM_NULL, "mpiexec is no parent");
}

static void clocks(void)
{
    double tick = -1, before = -1, after = -1;
    tick = MPI_Wtick(), before = MPI_Wtime();
    usleep(20000);
    after = MPI_Wtime();
    CHECK(tick > 0 && tick <= 0.01, "a tick of %g s", tick);
    CHECK(after - before >= 0.019 && after - before < 60, "%g s in 20 ms", after - before);
}

static void addresses(void)
{
    static int place[10];
    MPI_Aint first = -1, fifth = -1;
    MPI_Get_address(&place[1], &first);
    MPI_Get_address(&place[6], &fifth);
    CHECK(MPI_Aint_diff(fifth, first) == 5 * (MPI_Aint)sizeof(int));
    CHECK(MPI_Aint_diff(first, fifth) == -5 * (MPI_Aint)sizeof(int));
    CHECK(MPI_Aint_add(first, 5 * sizeof(int)) == fifth && (int *)fifth == &place[6]);
}

static void fields(void)
{
    MPI_Status status;
    int value = -1, sent = 3, got = 0, class;
    MPI_Sendrecv(&sent, 1, MPI_INT, rank, 17, &got, 1, MPI_INT, rank, 17, MPI_COMM_WORLD, &status);
    MPI_Status_get_source(&status, &value);
    CHECK(value == rank);
    MPI_Status_get_tag(&status, &value);
    CHECK(value == 17);
    status.MPI_ERROR = MPI_ERR_TRUNCATE;
    MPI_Status_get_error(&status, &value);
    CHECK(value == MPI_ERR_TRUNCATE);
    MPI_Status_set_source(&status, 12);
    MPI_Status_set_tag(&status, 13);
    MPI_Status_set_error(&status, MPI_ERR_RANK);
    CHECK(status.MPI_SOURCE == 12 && status.MPI_TAG == 13 && status.MPI_ERROR == MPI_ERR_RANK);
    MPI_Get_count(&status, MPI_INT, &value);
    CHECK(value == 1, "the length is as it was: %d", value);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Error_class(MPI_Status_get_tag(&status, NULL), &class);
    CHECK(class == MPI_ERR_ARG);
    MPI_Error_class(MPI_Status_set_tag(MPI_STATUS_IGNORE, 1), &class);
    CHECK(class == MPI_ERR_ARG);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    versions();
    names();
    clocks();
    addresses();
    fields();
    /* What it does is a profiling tool's; without one it takes whatever it gets. */
    CHECK(MPI_Pcontrol(0) == MPI_SUCCESS && MPI_Pcontrol(7, "phase", 2.5) == MPI_SUCCESS);
    return end();
}
