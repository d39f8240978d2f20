/* file_block_sync: the same as file_block_write, and MPI_File_sync: what is measured is the device; GB/s. */
#define NAME "file_block_sync"
#define SIZES "1M,16M"
#define LAYOUT BLOCK
#define WRITES 1
#define ACCESS MPI_File_write_at_all
#define SYNC
#include "file.h"
