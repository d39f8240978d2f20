C     mpif.h in fixed form; families with results that can be checked.
C     The tests run it again with `use mpi` in place of the file.
      PROGRAM OLD
      IMPLICIT NONE
      INCLUDE 'mpif.h'
      INTEGER ierr, rank, ranks, i, n, a(8), b(8), req(4), next, before
      INTEGER sts(MPI_STATUS_SIZE,4), st(MPI_STATUS_SIZE), places(4)
      INTEGER comm, cart, group, newtyp, op, keyval, info, win, len
      INTEGER blocks(2), types(2), dims(2), coords(2), eh, class
      LOGICAL flag, wrap(2), reorder, keep(2)
      INTEGER(KIND=MPI_ADDRESS_KIND) lb, extent, disps(2), value, extra
      CHARACTER*(MPI_MAX_OBJECT_NAME) name
      CHARACTER*12 short
      CHARACTER*(MPI_MAX_ERROR_STRING) text
      DOUBLE PRECISION t
      EXTERNAL ADDER, COPIED, GONE, WRONG
      INTEGER copies, deletes, errors
      COMMON /COUNTS/ copies, deletes, errors
      copies = 0
      deletes = 0
      errors = 0
      CALL MPI_INITIALIZED(flag, ierr)
      CALL CHECK(.NOT. flag, 'initialized before')
      CALL MPI_INIT(ierr)
      CALL MPI_INITIALIZED(flag, ierr)
      CALL CHECK(flag, 'initialized')
      CALL MPI_COMM_RANK(MPI_COMM_WORLD, rank, ierr)
      CALL MPI_COMM_SIZE(MPI_COMM_WORLD, ranks, ierr)
      next = MOD(rank + 1, ranks)
      before = MOD(rank + ranks - 1, ranks)
      t = MPI_WTIME()
      CALL CHECK(t .LE. PMPI_WTIME() .AND. MPI_WTICK() .GT. 0, 'time')
C     Point to point.
      a(1) = rank
      CALL MPI_IRECV(b, 1, MPI_INTEGER, before, 3, MPI_COMM_WORLD,
     &     req(2), ierr)
      CALL MPI_ISEND(a, 1, MPI_INTEGER, next, 3, MPI_COMM_WORLD,
     &     req(1), ierr)
      CALL MPI_WAITALL(2, req, sts, ierr)
      CALL CHECK(b(1) .EQ. before, 'irecv')
      CALL CHECK(sts(MPI_SOURCE,2) .EQ. before .AND.
     &     sts(MPI_TAG,2) .EQ. 3, 'statuses')
      CALL MPI_GET_COUNT(sts(1,2), MPI_INTEGER, n, ierr)
      CALL CHECK(n .EQ. 1, 'count')
      CALL CHECK(req(1) .EQ. MPI_REQUEST_NULL, 'null request')
      CALL PMPI_SENDRECV(a, 1, MPI_INTEGER, next, 4, b(2), 1,
     &     MPI_INTEGER, before, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE,
     &     ierr)
      CALL CHECK(b(2) .EQ. before, 'profiling name')
      req(1) = MPI_REQUEST_NULL
      CALL MPI_IRECV(b, 1, MPI_INTEGER, rank, 5, MPI_COMM_WORLD,
     &     req(2), ierr)
      CALL MPI_SEND(rank, 1, MPI_INTEGER, rank, 5, MPI_COMM_WORLD,
     &     ierr)
      CALL MPI_WAITANY(2, req, i, st, ierr)
      CALL CHECK(i .EQ. 2, 'places count from one')
      CALL MPI_IRECV(b, 1, MPI_INTEGER, rank, 5, MPI_COMM_WORLD,
     &     req(3), ierr)
      CALL MPI_SEND(rank, 1, MPI_INTEGER, rank, 5, MPI_COMM_WORLD,
     &     ierr)
      req(1) = MPI_REQUEST_NULL
      req(2) = MPI_REQUEST_NULL
      CALL MPI_WAITSOME(3, req, n, places, MPI_STATUSES_IGNORE, ierr)
      CALL CHECK(n .EQ. 1 .AND. places(1) .EQ. 3, 'waitsome')
      CALL MPI_WAITANY(2, req, i, st, ierr)
      CALL CHECK(i .EQ. MPI_UNDEFINED, 'no request')
      CALL MPI_RECV(b, 1, MPI_INTEGER, MPI_PROC_NULL, 0,
     &     MPI_COMM_WORLD, st, ierr)
      CALL CHECK(st(MPI_SOURCE) .EQ. MPI_PROC_NULL, 'no process')
C     Collectives, with an operator of this program.
      DO i = 1, 8
         a(i) = rank + i
      END DO
      CALL MPI_OP_CREATE(ADDER, .TRUE., op, ierr)
      CALL MPI_OP_COMMUTATIVE(op, flag, ierr)
      CALL CHECK(flag, 'commutative')
      CALL MPI_ALLREDUCE(a, b, 8, MPI_INTEGER, op, MPI_COMM_WORLD,
     &     ierr)
      CALL CHECK(b(8) .EQ. 8*ranks + ranks*(ranks-1)/2, 'operator')
      CALL MPI_OP_FREE(op, ierr)
      CALL CHECK(op .EQ. MPI_OP_NULL, 'freed operator')
      CALL MPI_ALLREDUCE(MPI_IN_PLACE, a, 8, MPI_INTEGER, MPI_SUM,
     &     MPI_COMM_WORLD, ierr)
      CALL CHECK(a(3) .EQ. b(3), 'in place')
      flag = rank .EQ. 0
      CALL MPI_ALLREDUCE(flag, reorder, 1, MPI_LOGICAL, MPI_LOR,
     &     MPI_COMM_WORLD, ierr)
      CALL CHECK(reorder, 'logical or')
C     Datatypes: MPI_BOTTOM with addresses.
      CALL MPI_GET_ADDRESS(a(1), disps(1), ierr)
      CALL MPI_GET_ADDRESS(a(5), disps(2), ierr)
      CALL CHECK(MPI_AINT_DIFF(disps(2), disps(1)) .EQ. 16, 'address')
      CALL CHECK(MPI_AINT_ADD(disps(1), disps(2) - disps(1)) .EQ.
     &     disps(2), 'aint add')
      blocks(1) = 1
      blocks(2) = 2
      types(1) = MPI_INTEGER
      types(2) = MPI_INTEGER
      CALL MPI_TYPE_CREATE_STRUCT(2, blocks, disps, types, newtyp, ierr)
      CALL MPI_TYPE_COMMIT(newtyp, ierr)
      b = -1
      CALL MPI_SENDRECV(MPI_BOTTOM, 1, newtyp, rank, 1, b, 3,
     &     MPI_INTEGER, rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE,
     &     ierr)
      CALL CHECK(b(1) .EQ. a(1) .AND. b(2) .EQ. a(5) .AND.
     &     b(3) .EQ. a(6) .AND. b(4) .EQ. -1, 'bottom')
      CALL MPI_TYPE_GET_EXTENT(MPI_DOUBLE_PRECISION, lb, extent, ierr)
      CALL CHECK(lb .EQ. 0 .AND. extent .EQ. 8, 'extent')
      CALL MPI_TYPE_FREE(newtyp, ierr)
C     Communicators, names, attributes.
      CALL MPI_COMM_CREATE_KEYVAL(COPIED, GONE, keyval, 77_8, ierr)
      value = 5000000000_8 + rank
      CALL MPI_COMM_SET_ATTR(MPI_COMM_SELF, keyval, value, ierr)
      CALL MPI_COMM_DUP(MPI_COMM_SELF, comm, ierr)
      CALL MPI_COMM_GET_ATTR(comm, keyval, extra, flag, ierr)
      CALL CHECK(flag .AND. extra .EQ. value + 1, 'copied attribute')
      CALL CHECK(copies .EQ. 1 .AND. deletes .EQ. 0, 'copied')
      CALL MPI_COMM_SET_NAME(comm, '  a name  ', ierr)
      short = 'xxxxxxxxxxxx'
      CALL MPI_COMM_GET_NAME(comm, short, len, ierr)
C     Blanks in front are part of a name, those behind are not.
      CALL CHECK(short .EQ. '  a name' .AND. len .EQ. 8, 'name')
      CALL MPI_COMM_FREE(comm, ierr)
      CALL CHECK(deletes .EQ. 1 .AND. comm .EQ. MPI_COMM_NULL, 'gone')
      CALL MPI_COMM_DELETE_ATTR(MPI_COMM_SELF, keyval, ierr)
      CALL MPI_COMM_FREE_KEYVAL(keyval, ierr)
      CALL CHECK(keyval .EQ. MPI_KEYVAL_INVALID, 'keyval')
      CALL MPI_COMM_CREATE_KEYVAL(MPI_COMM_DUP_FN,
     &     MPI_COMM_NULL_DELETE_FN, keyval, 0_8, ierr)
      CALL MPI_COMM_SET_ATTR(MPI_COMM_SELF, keyval, value, ierr)
      CALL MPI_COMM_DUP(MPI_COMM_SELF, comm, ierr)
      CALL MPI_COMM_GET_ATTR(comm, keyval, extra, flag, ierr)
      CALL CHECK(flag .AND. extra .EQ. value, 'predefined copy')
      CALL MPI_COMM_FREE(comm, ierr)
      CALL MPI_COMM_GET_ATTR(MPI_COMM_WORLD, MPI_TAG_UB, value, flag,
     &     ierr)
      CALL CHECK(flag .AND. value .GE. 32767, 'tag bound')
      CALL MPI_COMM_GROUP(MPI_COMM_WORLD, group, ierr)
      CALL MPI_GROUP_RANK(group, n, ierr)
      CALL CHECK(n .EQ. rank, 'group')
      CALL MPI_GROUP_FREE(group, ierr)
C     Topologies: arrays of logicals.
      dims = 0
      CALL MPI_DIMS_CREATE(ranks, 2, dims, ierr)
      wrap(1) = .TRUE.
      wrap(2) = .FALSE.
      CALL MPI_CART_CREATE(MPI_COMM_WORLD, 2, dims, wrap, .FALSE.,
     &     cart, ierr)
      keep = .FALSE.
      CALL MPI_CART_GET(cart, 2, dims, keep, coords, ierr)
      CALL CHECK(keep(1) .AND. .NOT. keep(2), 'cart get')
      keep(1) = .FALSE.
      keep(2) = .TRUE.
      CALL MPI_CART_SUB(cart, keep, comm, ierr)
      CALL MPI_COMM_SIZE(comm, n, ierr)
      CALL CHECK(n .EQ. dims(2), 'cart sub')
      CALL MPI_COMM_FREE(comm, ierr)
      CALL MPI_COMM_FREE(cart, ierr)
      places(1) = before
      coords(1) = next
      CALL MPI_DIST_GRAPH_CREATE_ADJACENT(MPI_COMM_WORLD, 1, places,
     &     MPI_UNWEIGHTED, 1, coords, MPI_UNWEIGHTED, MPI_INFO_NULL,
     &     .FALSE., comm, ierr)
      CALL MPI_DIST_GRAPH_NEIGHBORS_COUNT(comm, i, n, flag, ierr)
      CALL CHECK(i .EQ. 1 .AND. n .EQ. 1 .AND. .NOT. flag, 'graph')
      CALL MPI_NEIGHBOR_ALLGATHER(rank, 1, MPI_INTEGER, b, 1,
     &     MPI_INTEGER, comm, ierr)
      CALL CHECK(b(1) .EQ. before, 'neighbour')
      CALL MPI_COMM_FREE(comm, ierr)
C     Errors.
      CALL MPI_COMM_CREATE_ERRHANDLER(WRONG, eh, ierr)
      CALL MPI_COMM_SET_ERRHANDLER(MPI_COMM_WORLD, eh, ierr)
      CALL MPI_ERRHANDLER_FREE(eh, ierr)
      CALL MPI_SEND(a, -1, MPI_INTEGER, rank, 0, MPI_COMM_WORLD, ierr)
      CALL CHECK(errors .EQ. 1 .AND. ierr .NE. MPI_SUCCESS, 'handler')
      CALL MPI_ERROR_CLASS(ierr, class, ierr)
      CALL CHECK(class .EQ. MPI_ERR_COUNT, 'class')
      CALL MPI_ERROR_STRING(MPI_ERR_TRUNCATE, text, len, ierr)
      CALL CHECK(len .GT. 0 .AND. text(len+1:) .EQ. ' ', 'error string')
      CALL MPI_COMM_SET_ERRHANDLER(MPI_COMM_WORLD,
     &     MPI_ERRORS_ARE_FATAL, ierr)
C     Info: strings in and out.
      CALL MPI_INFO_CREATE(info, ierr)
      CALL MPI_INFO_SET(info, ' key ', '  a value   ', ierr)
      short = 'xxxxxxxxxxxx'
      len = 12
      CALL MPI_INFO_GET_STRING(info, 'key', len, short, flag, ierr)
      CALL CHECK(flag .AND. short .EQ. 'a value' .AND. len .EQ. 7,
     &     'info')
      len = 3
      CALL MPI_INFO_GET_STRING(info, 'key', len, short, flag, ierr)
      CALL CHECK(short .EQ. 'a v' .AND. len .EQ. 7, 'a short string')
      CALL MPI_INFO_GET_STRING(info, 'other', len, short, flag, ierr)
      CALL CHECK(.NOT. flag .AND. len .EQ. 7, 'no such key')
      CALL MPI_INFO_GET_NTHKEY(info, 0, name, ierr)
      CALL CHECK(name .EQ. 'key', 'key')
      CALL MPI_INFO_FREE(info, ierr)
C     Windows.
      CALL MPI_WIN_CREATE(a, 32_8, 4, MPI_INFO_NULL, MPI_COMM_WORLD,
     &     win, ierr)
      CALL MPI_WIN_GET_ATTR(win, MPI_WIN_SIZE, value, flag, ierr)
      CALL CHECK(flag .AND. value .EQ. 32, 'size of the window')
      CALL MPI_WIN_FENCE(0, win, ierr)
      CALL MPI_PUT(rank, 1, MPI_INTEGER, next, 2_8, 1, MPI_INTEGER, win,
     &     ierr)
      CALL MPI_WIN_FENCE(0, win, ierr)
      CALL CHECK(a(3) .EQ. before, 'put')
      CALL MPI_WIN_FREE(win, ierr)
      CALL MPI_FINALIZE(ierr)
      IF (rank .EQ. 0) PRINT *, 'old: all checks passed'
      END

      SUBROUTINE CHECK(right, what)
      LOGICAL right
      CHARACTER*(*) what
      IF (right) RETURN
      PRINT *, 'WRONG: ', what
      STOP 1
      END

      SUBROUTINE ADDER(in, inout, len, type)
      INCLUDE 'mpif.h'
      INTEGER len, type, in(len), inout(len), i
      CALL CHECK(type .EQ. MPI_INTEGER, 'type of the operator')
      DO i = 1, len
         inout(i) = inout(i) + in(i)
      END DO
      END

      SUBROUTINE COPIED(comm, keyval, extra, in, out, flag, ierr)
      INTEGER comm, keyval, ierr, copies, deletes, errors
      INTEGER*8 extra, in, out
      LOGICAL flag
      COMMON /COUNTS/ copies, deletes, errors
      CALL CHECK(extra .EQ. 77, 'extra state')
      out = in + 1
      flag = .TRUE.
      copies = copies + 1
      ierr = 0
      END

      SUBROUTINE GONE(comm, keyval, value, extra, ierr)
      INTEGER comm, keyval, ierr, copies, deletes, errors
      INTEGER*8 extra, value
      COMMON /COUNTS/ copies, deletes, errors
      CALL CHECK(extra .EQ. 77, 'extra state of delete')
      deletes = deletes + 1
      ierr = 0
      END

      SUBROUTINE WRONG(comm, code)
      INCLUDE 'mpif.h'
      INTEGER comm, code, copies, deletes, errors
      COMMON /COUNTS/ copies, deletes, errors
      CALL CHECK(comm .EQ. MPI_COMM_WORLD, 'communicator of the error')
      errors = errors + 1
      END
