/* file_block_read: blocks that follow each other, by MPI_File_read_at_all; GB/s. */
#define NAME "file_block_read"
#define SIZES "64K,1M,16M"
#define LAYOUT BLOCK
#define WRITES 0
#define ACCESS MPI_File_read_at_all
#include "file.h"
