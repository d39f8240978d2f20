/* file_alone_read: pieces in which ranks take turns, each rank by itself: MPI_File_read_at; us. */
#define NAME "file_alone_read"
#define SIZES "8,64,512,4K"
#define LAYOUT STRIDED
#define WRITES 0
#define ACCESS MPI_File_read_at
#include "file.h"
