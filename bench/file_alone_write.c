/* file_alone_write: pieces in which ranks take turns, each rank by itself: MPI_File_write_at; us. */
#define NAME "file_alone_write"
#define SIZES "8,64,512,4K"
#define LAYOUT STRIDED
#define WRITES 1
#define ACCESS MPI_File_write_at
#include "file.h"
