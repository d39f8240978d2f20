// Deadlocks, and jobs that look like deadlocks for three seconds, by the name in the first argument.
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank, size, value;
static MPI_Comm world = MPI_COMM_WORLD;

static void receive_from(int source, int tag) {
    MPI_Recv(&value, 1, MPI_INT, source, tag, world, MPI_STATUS_IGNORE);
}

static MPI_Win window(void) {
    static int memory[4];
    MPI_Win win;
    MPI_Win_create(memory, sizeof memory, sizeof *memory, MPI_INFO_NULL, world, &win);
    return win;
}

static void all_receive_first(void) { receive_from((rank + 1) % size, 3); }

static void all_send_long_first(void) {
    size_t bytes = 16 << 20;
    char *data = calloc(bytes, 1);
    MPI_Send(data, (int)bytes, MPI_CHAR, (rank + 1) % size, 3, world);
    MPI_Recv(data, (int)bytes, MPI_CHAR, (rank + size - 1) % size, 3, world, MPI_STATUS_IGNORE);
    free(data);
}

static void another_tag(void) {
    if (rank == 0) {
        MPI_Send(&value, 1, MPI_INT, 1, 3, world);
    } else if (rank == 1) {
        receive_from(0, 4);
    }
    MPI_Barrier(world);
}

static void synchronous_to_nobody(void) {
    MPI_Request request;
    MPI_Issend(&value, 1, MPI_INT, (rank + 1) % size, 3, world, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void collective_against_receive(void) {
    if (rank == 0) {
        MPI_Barrier(world);
    } else {
        receive_from(0, 3);
    }
}

static void finalize_against_receive(void) {
    if (rank > 0) receive_from(0, 3);
}

static void probe(void) { MPI_Probe(MPI_ANY_SOURCE, 3, world, MPI_STATUS_IGNORE); }

static void waitany(void) {
    MPI_Request requests[2];
    int values[2], index;
    for (int i = 0; i < 2; i++) {
        MPI_Irecv(&values[i], 1, MPI_INT, (rank + 1) % size, i, world, &requests[i]);
    }
    MPI_Waitany(2, requests, &index, MPI_STATUS_IGNORE);
}

static void window_lock(void) {
    MPI_Win win = window();
    if (rank == 0) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
        MPI_Barrier(world);
        receive_from(1, 3);
    } else {
        MPI_Barrier(world);
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
        MPI_Win_unlock(0, win);
        if (rank == 1) MPI_Send(&value, 1, MPI_INT, 0, 3, world);
    }
    MPI_Win_free(&win);
}

static void window_start(void) {
    MPI_Win win = window();
    MPI_Group group;
    MPI_Win_get_group(win, &group);
    MPI_Win_start(group, 0, win);
    MPI_Win_complete(win);
}

static void nonblocking_collective(void) {
    MPI_Request request;
    if (rank > 0) {
        MPI_Ibcast(&value, 1, MPI_INT, 0, world, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
}

static void partitioned(void) {
    MPI_Request request;
    MPI_Precv_init(&value, 1, 1, MPI_INT, (rank + 1) % size, 3, world, MPI_INFO_NULL, &request);
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

// No deadlocks.

static void slow_rank(void) {
    if (rank == 0) sleep(3);
    MPI_Barrier(world);
}

static void *send_late(void *unused) {
    sleep(3);
    MPI_Send(&value, 1, MPI_INT, (rank + 1) % size, 3, world);
    return unused;
}

static void thread_that_sends_late(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, send_late, NULL);
    receive_from((rank + size - 1) % size, 3);
    pthread_join(thread, NULL);
}

static void *complete_late(void *request) {
    sleep(3);
    MPI_Grequest_complete(*(MPI_Request *)request);
    return NULL;
}

static int query(void *state, MPI_Status *status) {
    (void)state;
    return MPI_Status_set_elements(status, MPI_INT, 0);
}
static int nothing(void *state) { (void)state; return MPI_SUCCESS; }
static int never(void *state, int complete) { (void)state; (void)complete; return MPI_SUCCESS; }

static void generalized_request(void) {
    MPI_Request request;
    pthread_t thread;
    MPI_Grequest_start(query, nothing, never, NULL, &request);
    MPI_Request copy = request;
    pthread_create(&thread, NULL, complete_late, &copy);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    pthread_join(thread, NULL);
}

static void stopped_rank(void) {
    if (rank == 0) {
        pid_t parent = getpid();
        if (fork() == 0) {
            sleep(3);
            kill(parent, SIGCONT);
            _exit(0);
        }
        raise(SIGSTOP);
    }
    MPI_Barrier(world);
}

static void slow_child(char *program) {
    char *arguments[] = {"child", NULL};
    MPI_Comm children;
    MPI_Comm_spawn(program, arguments, 1, MPI_INFO_NULL, 0, world, &children, MPI_ERRCODES_IGNORE);
    MPI_Barrier(children);
    MPI_Comm_disconnect(&children);
}

static void child(void) {
    MPI_Comm parent;
    MPI_Comm_get_parent(&parent);
    sleep(3);
    MPI_Barrier(parent);
    MPI_Comm_disconnect(&parent);
}

static void timer_handler(int signal) { (void)signal; }

static void signals(void) {
    signal(SIGALRM, timer_handler);
    ualarm(100000, 100000);
    if (rank == 0) {
        for (int i = 0; i < 30; i++) usleep(100000);
    }
    MPI_Barrier(world);
    ualarm(0, 0);
}

// Rank 0 tests, rank 1 probes, and rank 2 waits.
static void loops(void) {
    MPI_Request request;
    int value, flag = 0;
    switch (rank) {
    case 0:
        MPI_Irecv(&value, 1, MPI_INT, 1, 3, world, &request);
        while (!flag) MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
        break;
    case 1:
        while (!flag) MPI_Iprobe(2, 3, world, &flag, MPI_STATUS_IGNORE);
        break;
    default: MPI_Recv(&value, 1, MPI_INT, 0, 3, world, MPI_STATUS_IGNORE);
    }
}

// All ranks test until three seconds are over, and then send what the others test for.
static void loops_until_a_time(void) {
    MPI_Request request;
    int in, flag = 0;
    double end = MPI_Wtime() + 3;
    MPI_Irecv(&in, 1, MPI_INT, (rank + 1) % size, 3, world, &request);
    while (!flag && MPI_Wtime() < end) MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
    MPI_Send(&rank, 1, MPI_INT, (rank + size - 1) % size, 3, world);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

// A rank computes for three seconds and tests now and then, after many tests without a result. The others wait for it.
static void tests_between_computing(void) {
    MPI_Request request;
    int in, flag = 0;
    if (rank == 0) {
        MPI_Irecv(&in, 1, MPI_INT, 1, 3, world, &request);
        for (int i = 0; i < 10000; i++) MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
        for (double end = MPI_Wtime() + 3; MPI_Wtime() < end;) {
            for (double next = MPI_Wtime() + 0.004; MPI_Wtime() < next;) {}
            MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
        }
        MPI_Barrier(world);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
        MPI_Barrier(world);
        if (rank == 1) MPI_Send(&rank, 1, MPI_INT, 0, 3, world);
    }
}

// Two ranks test for a message of a rank that sends it after three seconds.
static void loops_for_a_slow_rank(void) {
    MPI_Request request;
    int in, flag = 0;
    if (rank == 0) {
        sleep(3);
        for (int to = 1; to < size; to++) MPI_Send(&rank, 1, MPI_INT, to, 3, world);
        return;
    }
    MPI_Irecv(&in, 1, MPI_INT, 0, 3, world, &request);
    while (!flag) MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
}

static const struct {
    const char *name;
    void (*run)(void);
} kinds[] = {
    {"all_receive_first", all_receive_first},
    {"all_send_long_first", all_send_long_first},
    {"another_tag", another_tag},
    {"synchronous_to_nobody", synchronous_to_nobody},
    {"collective_against_receive", collective_against_receive},
    {"finalize_against_receive", finalize_against_receive},
    {"probe", probe},
    {"waitany", waitany},
    {"window_lock", window_lock},
    {"window_start", window_start},
    {"nonblocking_collective", nonblocking_collective},
    {"partitioned", partitioned},
    {"slow_rank", slow_rank},
    {"thread_that_sends_late", thread_that_sends_late},
    {"generalized_request", generalized_request},
    {"stopped_rank", stopped_rank},
    {"child", child},
    {"signals", signals},
    {"loops", loops},
    {"loops_until_a_time", loops_until_a_time},
    {"tests_between_computing", tests_between_computing},
    {"loops_for_a_slow_rank", loops_for_a_slow_rank},
};

int main(int argc, char **argv) {
    // A second argument asks for threads.
    int provided;
    MPI_Init_thread(&argc, &argv, argc > 2 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
    MPI_Comm_rank(world, &rank);
    MPI_Comm_size(world, &size);
    if (!strcmp(argv[1], "slow_child")) slow_child(argv[0]);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (!strcmp(argv[1], kinds[i].name)) kinds[i].run();
    }
    MPI_Finalize();
    if (rank == 0) printf("no deadlock\n");
    return 0;
}
