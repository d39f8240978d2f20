// For MPI_Get_processor_name, MPI_Get_version.
char name[MPI_MAX_PROCESSOR_NAME];
int length, version, subversion;
MPI_Get_processor_name(name, &length);
MPI_Get_version(&version, &subversion);
if (length > 0)
    printf("rank %d knows its host and has MPI %d.%d\n", rank, version, subversion);
// prints: rank 0 knows its host and has MPI 5.0
// prints: rank 1 knows its host and has MPI 5.0
