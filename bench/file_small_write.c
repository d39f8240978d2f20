/* file_small_write: a small MPI_File_write_at after the other, each rank in its own part of the file; us. */
#define NAME "file_small_write"
#define SIZES "8,512,4K"
#define LAYOUT SMALL
#define WRITES 1
#define ACCESS MPI_File_write_at
#include "file.h"
