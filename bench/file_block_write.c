/* file_block_write: blocks that follow each other, by MPI_File_write_at_all; GB/s. */
#define NAME "file_block_write"
#define SIZES "64K,1M,16M"
#define LAYOUT BLOCK
#define WRITES 1
#define ACCESS MPI_File_write_at_all
#include "file.h"
