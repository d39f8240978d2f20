/* file_small_read: a small MPI_File_read_at after the other, each rank in its own part of the file; us. */
#define NAME "file_small_read"
#define SIZES "8,512,4K"
#define LAYOUT SMALL
#define WRITES 0
#define ACCESS MPI_File_read_at
#include "file.h"
