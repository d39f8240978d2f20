// ranks: 1 2
// says: correct
//
// Files are not built yet. A program with a way around must be able to take it: their errors have the
// handler of MPI_FILE_NULL, which returns them unless the program says otherwise (MPI 5.0, section 14.7).
// What starts processes has its communicator's handler.
#include "check.h"

static int files, comms;
static MPI_Comm with;

static void of_files(MPI_File *file, int *code, ...)
{
    CHECK(*file == MPI_FILE_NULL && class_of(*code) == MPI_ERR_UNSUPPORTED_OPERATION);
    files++;
}

static void of_comms(MPI_Comm *comm, int *code, ...)
{
    CHECK(class_of(*code) == MPI_ERR_UNSUPPORTED_OPERATION);
    with = *comm;
    comms++;
}

static int extent(MPI_Datatype type, MPI_Aint *to, void *extra)
{
    (void)type, (void)extra;
    *to = 1;
    return MPI_SUCCESS;
}

enum { CALLS = 8 };

static void use_files(void)
{
    MPI_File file = MPI_FILE_NULL;
    MPI_Info info;
    MPI_Offset offset;
    int word = 0;
    int codes[CALLS] = {
        MPI_File_open(MPI_COMM_WORLD, "none", MPI_MODE_RDONLY, MPI_INFO_NULL, &file),
        MPI_File_open(MPI_COMM_SELF, "none", MPI_MODE_RDONLY, MPI_INFO_NULL, &file),
        MPI_File_delete("none", MPI_INFO_NULL),
        MPI_File_close(&file),
        MPI_File_write_at_all(file, 0, &word, 1, MPI_INT, MPI_STATUS_IGNORE),
        MPI_File_get_info(file, &info),
        MPI_File_get_position((MPI_File)0x12345, &offset),
        MPI_Register_datarep("mine", MPI_CONVERSION_FN_NULL, MPI_CONVERSION_FN_NULL, extent, NULL),
    };
    for (int i = 0; i < CALLS; i++)
        CHECK(class_of(codes[i]) == MPI_ERR_UNSUPPORTED_OPERATION, "call %d: %d", i, codes[i]);
    CHECK(file == MPI_FILE_NULL);
    CHECK(MPI_File_fromint(MPI_File_toint(MPI_FILE_NULL)) == MPI_FILE_NULL);
}

int main(int argc, char **argv)
{
    MPI_Errhandler handler, current;
    MPI_Comm none = MPI_COMM_NULL, dup;
    char port[MPI_MAX_PORT_NAME];
    begin(&argc, &argv);
    MPI_File_get_errhandler(MPI_FILE_NULL, &current);
    CHECK(current == MPI_ERRORS_RETURN);
    use_files();

    MPI_File_create_errhandler(of_files, &handler);
    CHECK(MPI_File_set_errhandler(MPI_FILE_NULL, handler) == MPI_SUCCESS);
    MPI_File_get_errhandler(MPI_FILE_NULL, &current);
    CHECK(current == handler);
    MPI_Errhandler_free(&current);
    MPI_Errhandler_free(&handler);
    use_files();
    CHECK(files == CALLS, "%d", files);
    MPI_File_call_errhandler(MPI_FILE_NULL, MPI_ERR_UNSUPPORTED_OPERATION);
    CHECK(files == CALLS + 1);
    MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN);
    /* Of other kinds, or of no file. */
    MPI_Comm_create_errhandler(of_comms, &handler);
    FAILS(MPI_File_set_errhandler(MPI_FILE_NULL, handler), MPI_ERR_ERRHANDLER);
    FAILS(MPI_File_set_errhandler((MPI_File)0x12345, MPI_ERRORS_RETURN), MPI_ERR_FILE);
    FAILS(MPI_File_get_errhandler((MPI_File)0x12345, &current), MPI_ERR_FILE);
    FAILS(MPI_File_get_errhandler(MPI_FILE_NULL, NULL), MPI_ERR_ARG);

    MPI_Comm_dup(MPI_COMM_WORLD, &dup);
    MPI_Comm_set_errhandler(dup, handler);
    FAILS(MPI_Comm_spawn("true", MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, dup, &none, MPI_ERRCODES_IGNORE),
          MPI_ERR_UNSUPPORTED_OPERATION);
    CHECK(comms == 1 && with == dup && none == MPI_COMM_NULL);
    FAILS(MPI_Comm_connect("nowhere", MPI_INFO_NULL, 0, dup, &none), MPI_ERR_UNSUPPORTED_OPERATION);
    FAILS(MPI_Comm_accept("nowhere", MPI_INFO_NULL, 0, dup, &none), MPI_ERR_UNSUPPORTED_OPERATION);
    CHECK(comms == 3 && with == dup);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
    FAILS(MPI_Open_port(MPI_INFO_NULL, port), MPI_ERR_UNSUPPORTED_OPERATION);
    FAILS(MPI_Comm_join(0, &none), MPI_ERR_UNSUPPORTED_OPERATION);
    CHECK(comms == 5 && with == MPI_COMM_WORLD);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    MPI_Errhandler_free(&handler);
    MPI_Comm_free(&dup);
    return end();
}
