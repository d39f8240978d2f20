// ranks: 1 2
// says: correct
//
// Names of files may contain any bytes, which arrive unchanged. A name may be relative to a folder that the program leaves.
#include "files.h"
#include <dirent.h>
#include <errno.h>
#include <sys/stat.h>

#define OK(call) CHECK((call) == MPI_SUCCESS)

/* Checks that the folder has only this file, or no file. */
static void folder_has(const char *name)
{
    DIR *folder = opendir(".");
    struct dirent *entry;
    int files = 0;
    CHECK(folder != NULL);
    while ((entry = readdir(folder)) != NULL) {
        if (entry->d_name[0] == '.') continue;
        files++;
        CHECK(name != NULL && strcmp(entry->d_name, name) == 0, "found %s", entry->d_name);
    }
    closedir(folder);
    CHECK(files == (name != NULL));
}

static void bytes_arrive(void)
{
    static const char *names[] = {"caf\xe9", "\xff\xfe\x80 x", "\xed\xa0\x80", "a\xc3", "ufs:pre\xe4" "fix", "w\xc3\xa4r", "no:\xb5"};
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
        MPI_File file;
        const char *name = strncmp(names[i], "ufs:", 4) == 0 ? names[i] + 4 : names[i];
        OK(MPI_File_open(MPI_COMM_WORLD, names[i], MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
        folder_has(name);
        close_file(&file);
        MPI_Barrier(MPI_COMM_WORLD);
        OK(MPI_File_open(MPI_COMM_WORLD, names[i], MPI_MODE_RDONLY | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file));
        close_file(&file);
        folder_has(NULL);
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0) {
            OK(MPI_File_open(MPI_COMM_SELF, names[i], MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file));
            close_file(&file);
            folder_has(name);
            OK(MPI_File_delete(names[i], MPI_INFO_NULL));
            folder_has(NULL);
            FAILS(MPI_File_delete(names[i], MPI_INFO_NULL), MPI_ERR_NO_SUCH_FILE);
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

/* Changes the working directory and renames the folder: the file is still deleted when it is closed. */
static void left_behind(const char *folder)
{
    MPI_File files[2];
    char moved[300];
    if (rank == 0) CHECK(mkdir("below", 0700) == 0);
    MPI_Barrier(MPI_COMM_WORLD);
    int amode = MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE;
    OK(MPI_File_open(MPI_COMM_WORLD, "here", amode, MPI_INFO_NULL, &files[0]));
    OK(MPI_File_open(MPI_COMM_WORLD, "below/there", amode, MPI_INFO_NULL, &files[1]));
    CHECK(access("here", F_OK) == 0 && access("below/there", F_OK) == 0);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(chdir("/") == 0);
    snprintf(moved, sizeof moved, "%s-moved", folder);
    if (rank == 0) CHECK(rename(folder, moved) == 0);
    MPI_Barrier(MPI_COMM_WORLD);
    close_file(&files[0]);
    close_file(&files[1]);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(chdir(moved) == 0);
    CHECK(access("here", F_OK) != 0 && errno == ENOENT && access("below/there", F_OK) != 0);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) CHECK(rmdir("below") == 0 && rmdir(moved) == 0);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    name_file("names");
    if (rank == 0) CHECK(mkdir(path, 0700) == 0);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(chdir(path) == 0);
    bytes_arrive();
    left_behind(path);
    return end();
}
