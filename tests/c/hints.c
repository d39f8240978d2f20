// ranks: 1 3
// says: correct
//
// Hints of communicators (MPI 5.0, section 7.4.4), and limits of info objects (chapter 10).
#include "check.h"

#define WORLD MPI_COMM_WORLD

static const char *const assertions[] = {
    "mpi_assert_no_any_tag", "mpi_assert_no_any_source", "mpi_assert_exact_length",
    "mpi_assert_allow_overtaking", "mpi_assert_strict_persistent_collective_ordering"};
enum { ASSERTIONS = sizeof assertions / sizeof *assertions };

/* What the communicator says of a key; "" if nothing. */
static const char *hint(MPI_Comm comm, const char *key)
{
    static char value[MPI_MAX_INFO_VAL + 1];
    int length = sizeof value, flag;
    MPI_Info info;
    MPI_Comm_get_info(comm, &info);
    MPI_Info_get_string(info, key, &length, value, &flag);
    MPI_Info_free(&info);
    CHECK(info == MPI_INFO_NULL);
    return flag ? value : "";
}

static void has(MPI_Comm comm, const char *key, const char *value)
{
    CHECK(!strcmp(hint(comm, key), value), "%s is '%s', not '%s'", key, hint(comm, key), value);
}

static void defaults(MPI_Comm comm)
{
    for (int i = 0; i < ASSERTIONS; i++) has(comm, assertions[i], "false");
    has(comm, "mpi_assert_memory_alloc_kinds", "");
    has(comm, "unknown", "");
}

int main(int argc, char **argv)
{
    MPI_Comm comm, copy, later, split;
    MPI_Info info, other;
    MPI_Request request;
    begin(&argc, &argv);
    defaults(WORLD);
    defaults(MPI_COMM_SELF);
    MPI_Info_create(&info);
    MPI_Info_set(info, assertions[0], "true");
    MPI_Info_set(info, assertions[1], "perhaps"); /* no truth: ignored */
    MPI_Info_set(info, "mpi_assert_memory_alloc_kinds", "system");
    MPI_Info_set(info, "unknown", "true");

    MPI_Comm_dup_with_info(WORLD, info, &comm);
    has(comm, assertions[0], "true");
    has(comm, assertions[1], "false");
    has(comm, "mpi_assert_memory_alloc_kinds", "system");
    has(comm, "unknown", "");
    defaults(WORLD);

    /* Ours ask for algorithms; of those that there are none of, nothing is kept. */
    MPI_Info_create(&other);
    MPI_Info_set(other, "weft_allreduce", "MPI-GB");
    MPI_Info_set(other, "weft_barrier", "FASTEST");
    MPI_Comm_dup_with_info(WORLD, other, &copy);
    has(copy, "weft_allreduce", "MPI-GB");
    has(copy, "weft_barrier", "");
    has(WORLD, "weft_allreduce", "");
    int one = 1, total = 0;
    MPI_Allreduce(&one, &total, 1, MPI_INT, MPI_SUM, copy);
    CHECK(total == size, "a sum of %d", total);
    MPI_Info_set(other, "weft_allreduce", "auto");
    MPI_Comm_set_info(copy, other);
    has(copy, "weft_allreduce", "auto");
    MPI_Allreduce(&one, &total, 1, MPI_INT, MPI_SUM, copy);
    CHECK(total == size, "a sum of %d", total);
    MPI_Comm_free(&copy);
    MPI_Info_free(&other);

    /* What is set later adds to what is there. */
    MPI_Info_create(&other);
    MPI_Info_set(other, assertions[3], "true");
    MPI_Comm_set_info(comm, other);
    has(comm, assertions[0], "true");
    has(comm, assertions[3], "true");
    MPI_Info_set(other, assertions[0], "false");
    MPI_Comm_set_info(comm, other);
    has(comm, assertions[0], "false");
    /* The program's object and what it got are copies. */
    MPI_Info_set(other, assertions[3], "false");
    has(comm, assertions[3], "true");

    /* No hint is handed on. */
    MPI_Comm_dup(comm, &copy);
    defaults(copy);
    MPI_Comm_free(&copy);
    MPI_Comm_idup(comm, &copy, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    defaults(copy);
    MPI_Comm_free(&copy);
    MPI_Comm_dup_with_info(comm, MPI_INFO_NULL, &copy);
    defaults(copy);
    MPI_Comm_free(&copy);
    MPI_Comm_split(comm, 0, 0, &split);
    defaults(split);
    MPI_Comm_free(&split);
    MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, info, &split);
    has(split, assertions[0], "true");
    MPI_Comm_free(&split);

    /* The info object is read before MPI_Comm_idup_with_info returns; attributes come along. */
    int key, attribute = 5, flag, *found, sum = 0;
    MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, &key, NULL);
    MPI_Comm_set_attr(comm, key, &attribute);
    MPI_Comm_idup_with_info(comm, info, &later, &request);
    MPI_Info_set(info, assertions[0], "false");
    MPI_Info_free(&info);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    has(later, assertions[0], "true");
    has(later, assertions[3], "false");
    MPI_Comm_get_attr(later, key, &found, &flag);
    CHECK(flag && found == &attribute);
    MPI_Comm_compare(comm, later, &flag);
    CHECK(flag == MPI_CONGRUENT);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, later);
    CHECK(sum == size * (size - 1) / 2);

    MPI_Comm_set_errhandler(WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    FAILS(MPI_Comm_set_info(WORLD, MPI_INFO_NULL), MPI_ERR_INFO);
    FAILS(MPI_Comm_get_info(WORLD, NULL), MPI_ERR_ARG);
    FAILS(MPI_Comm_get_info(MPI_COMM_NULL, &info), MPI_ERR_COMM);
    FAILS(MPI_Comm_idup_with_info(WORLD, MPI_INFO_NULL, NULL, &request), MPI_ERR_ARG);
    FAILS(MPI_Comm_idup_with_info(WORLD, MPI_INFO_NULL, &copy, NULL), MPI_ERR_ARG);
    FAILS(MPI_Comm_idup_with_info(WORLD, (MPI_Info)0x7000, &copy, &request), MPI_ERR_INFO);

    static char longest[MPI_MAX_INFO_VAL + 2];
    memset(longest, 'x', MPI_MAX_INFO_VAL + 1);
    FAILS(MPI_Info_set(other, "key", longest), MPI_ERR_INFO_VALUE);
    longest[MPI_MAX_INFO_VAL - 1] = 0;
    FAILS(MPI_Info_set(other, "key", longest), MPI_SUCCESS);
    FAILS(MPI_Info_set(other, longest, "value"), MPI_ERR_INFO_KEY);
    longest[MPI_MAX_INFO_KEY] = 0;
    FAILS(MPI_Info_set(other, longest, "value"), MPI_ERR_INFO_KEY);
    longest[MPI_MAX_INFO_KEY - 1] = 0;
    FAILS(MPI_Info_set(other, longest, "value"), MPI_SUCCESS);
    FAILS(MPI_Info_set(other, "", "value"), MPI_ERR_INFO_KEY);
    FAILS(MPI_Info_set(other, NULL, "value"), MPI_ERR_ARG);
    FAILS(MPI_Info_delete(other, "absent"), MPI_ERR_INFO_NOKEY);
    MPI_Comm_set_errhandler(WORLD, MPI_ERRORS_ARE_FATAL);

    MPI_Info_free(&other);
    MPI_Comm_free_keyval(&key);
    MPI_Comm_free(&comm);
    MPI_Comm_free(&later);
    return end();
}
