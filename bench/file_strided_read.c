/* file_strided_read: pieces in which ranks take turns, by MPI_File_read_at_all; us. */
#define NAME "file_strided_read"
#define SIZES "8,64,512,4K"
#define LAYOUT STRIDED
#define WRITES 0
#define ACCESS MPI_File_read_at_all
#include "file.h"
