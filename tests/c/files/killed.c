/* Writes one file for ever, in all the ways in which ranks wait for each other or for a lock: to be killed meanwhile. The file, which
 * the argument names, is one that others before were killed over: no lock of theirs may be left. */
#include "../files.h"
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#define OK(call) CHECK((call) == MPI_SUCCESS)

enum { PIECE = 512, PIECES = 512 };

static unsigned char data[PIECE * PIECES];

static MPI_File opened(const char *buffering, const char *sieving)
{
    MPI_File file;
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "romio_cb_write", buffering);
    MPI_Info_set(info, "romio_ds_write", sieving);
    MPI_Info_set(info, "cb_buffer_size", "65536");
    OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, info, &file));
    MPI_Info_free(&info);
    MPI_Datatype type;
    MPI_Type_vector(PIECES, PIECE, PIECE * size, MPI_BYTE, &type);
    MPI_Type_commit(&type);
    OK(MPI_File_set_view(file, (MPI_Offset)rank * PIECE, MPI_BYTE, type, "native", MPI_INFO_NULL));
    MPI_Type_free(&type);
    return file;
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    CHECK(argc > 1);
    snprintf(path, sizeof path, "%s", argv[1]);
    if (rank == 0) {
        // Before the file is opened: an opening has a lock of its own.
        struct flock all = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
        int fd = open(path, O_RDWR | O_CREAT, 0600);
        CHECK(fd >= 0 && fcntl(fd, F_SETLK, &all) == 0, "who was killed has left a lock: %s", strerror(errno));
        close(fd);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File phases = opened("enable", "automatic"), sieved = opened("disable", "enable");
    MPI_File atomic = opened("disable", "disable");
    OK(MPI_File_set_atomicity(atomic, 1));
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) printf("running\n"), fflush(stdout);
    for (;;) {
        OK(MPI_File_write_at_all(phases, 0, data, PIECE * PIECES, MPI_BYTE, MPI_STATUS_IGNORE));
        OK(MPI_File_write_at(sieved, 0, data, PIECE * PIECES, MPI_BYTE, MPI_STATUS_IGNORE));
        OK(MPI_File_write_at(atomic, 0, data, PIECE * PIECES, MPI_BYTE, MPI_STATUS_IGNORE));
        OK(MPI_File_write_shared(phases, data, PIECE, MPI_BYTE, MPI_STATUS_IGNORE));
        OK(MPI_File_seek_shared(phases, 0, MPI_SEEK_SET));
    }
}
