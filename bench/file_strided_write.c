/* file_strided_write: pieces in which ranks take turns, by MPI_File_write_at_all; us. */
#define NAME "file_strided_write"
#define SIZES "8,64,512,4K"
#define LAYOUT STRIDED
#define WRITES 1
#define ACCESS MPI_File_write_at_all
#include "file.h"
