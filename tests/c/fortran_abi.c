// ranks: 1
// says: correct
//
// What a Fortran layer tells the library, once (MPI 5.0, section 20.4.1).
#include "check.h"

static const char *known(const char *key)
{
    static char value[32];
    int length = sizeof value, flag;
    MPI_Info info;
    MPI_Abi_get_fortran_info(&info);
    CHECK(info != MPI_INFO_NULL);
    MPI_Info_get_string(info, key, &length, value, &flag);
    MPI_Info_free(&info);
    return flag ? value : "";
}

static void says(const char *key, const char *value)
{
    CHECK(!strcmp(known(key), value), "%s is '%s', not '%s'", key, known(key), value);
}

static int tell(const char *key, const char *value)
{
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, key, value);
    MPI_Info_set(info, "unknown", "true");
    int class = class_of(MPI_Abi_set_fortran_info(info));
    MPI_Info_free(&info);
    return class;
}

int main(int argc, char **argv)
{
    int yes = 1, no = 0, got_yes = 7, got_no = 7, set = -1;
    long long wide_yes = 7, wide_no = 7;
    begin(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);

    says("mpi_integer_size", "4");
    says("mpi_real16_supported", "true");
    /* What cannot be is refused, and changes nothing. */
    CHECK(tell("mpi_integer_size", "8") == MPI_ERR_ABI);
    CHECK(tell("mpi_real16_supported", "perhaps") == MPI_ERR_INFO_VALUE);
    CHECK(class_of(MPI_Abi_set_fortran_info(MPI_INFO_NULL)) == MPI_ERR_INFO);
    says("mpi_integer_size", "4");
    CHECK(tell("mpi_real16_supported", "false") == MPI_SUCCESS);
    says("mpi_real16_supported", "false");
    says("mpi_real8_supported", "true");
    says("unknown", "");
    CHECK(tell("mpi_real16_supported", "true") == MPI_ERR_ABI);
    says("mpi_real16_supported", "false");

    MPI_Abi_get_fortran_booleans(sizeof yes, &got_yes, &got_no, &set);
    CHECK(set == 0 && got_yes == 7 && got_no == 7, "%d", set);
    CHECK(class_of(MPI_Abi_set_fortran_booleans(3, &yes, &no)) == MPI_ERR_ARG);
    CHECK(class_of(MPI_Abi_set_fortran_booleans(-4, &yes, &no)) == MPI_ERR_ARG);
    CHECK(class_of(MPI_Abi_set_fortran_booleans(4, NULL, &no)) == MPI_ERR_ARG);
    CHECK(class_of(MPI_Abi_set_fortran_booleans(4, &yes, NULL)) == MPI_ERR_ARG);
    CHECK(class_of(MPI_Abi_set_fortran_booleans(4, &no, &yes)) == MPI_ERR_ABI);
    CHECK(class_of(MPI_Abi_get_fortran_booleans(4, &got_yes, &got_no, NULL)) == MPI_ERR_ARG);
    yes = -1;
    CHECK(MPI_Abi_set_fortran_booleans(sizeof yes, &yes, &no) == MPI_SUCCESS);
    MPI_Abi_get_fortran_booleans(sizeof yes, &got_yes, &got_no, &set);
    CHECK(set == 1 && got_yes == -1 && got_no == 0, "%d %d %d", set, got_yes, got_no);
    MPI_Abi_get_fortran_booleans(sizeof wide_yes, &wide_yes, &wide_no, &set);
    CHECK(set == 0 && wide_yes == 7, "nothing is known of another size");
    yes = 1;
    CHECK(class_of(MPI_Abi_set_fortran_booleans(sizeof yes, &yes, &no)) == MPI_ERR_ABI);
    MPI_Abi_get_fortran_booleans(sizeof yes, &got_yes, &got_no, &set);
    CHECK(got_yes == -1, "%d", got_yes);
    return end();
}
